"""The built-in tools, a file each."""
