"""The tables of what joins accounts: offers under a code, of which only a digest is kept, and tries that were wrong.
`token` is what a yes names a claimed one by; nobody is shown it. `partings` says whose accounts were parted: `number`
as in `vantage.py`.
"""

from __future__ import annotations

LINK_TABLES = """
CREATE TABLE links (
    id INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    platform TEXT NOT NULL,
    user_id TEXT NOT NULL,
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    address TEXT NOT NULL,
    expires_at REAL NOT NULL,
    claimed_platform TEXT,
    claimed_user_id TEXT,
    claimed_name TEXT,
    claimed_address TEXT,
    token TEXT UNIQUE,
    shown TEXT,
    agreed_at REAL,
    joined_at REAL
);
CREATE INDEX links_by_expiry ON links (expires_at);

CREATE TABLE link_tries (
    account TEXT NOT NULL,
    at REAL NOT NULL
);
CREATE INDEX link_tries_by_account ON link_tries (account, at);
CREATE INDEX link_tries_by_time ON link_tries (at);

CREATE TABLE partings (
    number INTEGER PRIMARY KEY,
    scopes TEXT NOT NULL
);
"""
