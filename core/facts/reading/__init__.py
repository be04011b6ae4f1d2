"""What a model reports about facts, and how its reports are checked against the messages."""
