"""Rules for chats with several people, and for chats that Mneme can't write to."""
