"""Reads and writes state.db: its tables and its text indexes."""
