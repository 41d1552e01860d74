"""Pages for people (GET, synchronous) and what they do (POST, asynchronous)."""
