"""Typed settings and the defaults they start from."""
