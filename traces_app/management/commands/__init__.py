"""Commands to export, import and verify a Trace."""
