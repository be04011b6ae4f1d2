"""Handles thumb reactions to answers, and speaks answers."""
