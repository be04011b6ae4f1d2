"""Reads for searches."""
