"""Imports and exports: each module reads one family of formats as records to store."""
