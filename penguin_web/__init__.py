"""The site: settings, addresses and the server; no behaviour of its own."""

__version__ = "0.1.0"
