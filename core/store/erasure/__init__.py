"""Erases rows, and keeps erased words from being written back."""
