"""What is special about chats with several people, and chats that Mneme can't write to."""
