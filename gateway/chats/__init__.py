"""Stores settings of group chats, and notifies people about chats that Mneme can't write to."""
