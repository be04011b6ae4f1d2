"""Erase rows, and prevent other writes from storing the erased words again."""
