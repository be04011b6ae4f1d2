"""Settings of group chats, and notices about chats that Mneme can't write to."""
