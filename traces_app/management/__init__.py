"""Management entry points of the record."""
