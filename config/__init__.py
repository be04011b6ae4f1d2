"""Defines typed settings and their defaults."""
