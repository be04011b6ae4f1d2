"""What stands below an answer."""
