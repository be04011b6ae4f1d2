"""Erase rows, and keep erased words from being written back."""
