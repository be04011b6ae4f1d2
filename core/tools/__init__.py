"""Reminders as everybody handles them, and the tools the model may call, one file each."""
