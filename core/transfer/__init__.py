"""Imports and exports. Each module reads a family of formats, and yields records to store."""
