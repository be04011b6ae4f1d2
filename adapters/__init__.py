"""Platforms: each file turns one of them into Inbound and Reply."""
