"""Reads and writes state.db: its tables, and the two text indexes."""
