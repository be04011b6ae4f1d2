"""Imports and exports.

Each module reads a group of related formats, and yields records to store.
"""
