"""Stores people and their accounts, links accounts to one person, and takes access away."""
