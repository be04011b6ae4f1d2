"""What texts say and hold that try to command the assistant, by language; and what needs none, in machine.py."""
