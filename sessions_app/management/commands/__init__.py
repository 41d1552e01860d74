"""Commands of the product: one task in the terminal, tokens, configuration."""
