"""Typed settings and their defaults."""
