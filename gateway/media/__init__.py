"""Thumb reactions to answers, and spoken answers."""
