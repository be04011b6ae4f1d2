"""Erases rows, and counts erasures so that erased words are not written back."""
