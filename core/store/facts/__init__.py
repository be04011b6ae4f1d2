"""Store facts: learn, close, correct and search them."""
