"""Template tags of the record's pages."""
