"""state.db: rows and both text indexes, one class a noun."""
