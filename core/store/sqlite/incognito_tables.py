"""The table of incognito conversations: where, and since when."""

from __future__ import annotations

VEIL_TABLES = """
CREATE TABLE veils (
    address_id INTEGER PRIMARY KEY REFERENCES addresses (id),
    at REAL NOT NULL
);
"""
