"""Read a model's reports about facts, and check them against the messages."""
