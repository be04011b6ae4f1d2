"""Adds source lines to answers, and sends answers as files."""
