-- The tables of state.db in schema 1. A released migration is never edited; changes are in schema.py. Times are REAL
-- seconds since 1970 UTC. The text indexes and facts have files of their own.

-- Visibility: scopes, groups with a new id, people with their accounts, pairing codes.

CREATE TABLE state_meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE scopes (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE
);

CREATE TABLE rooms (
    key TEXT PRIMARY KEY,
    scope_key TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE people (
    id INTEGER PRIMARY KEY,
    is_owner INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE accounts (
    platform TEXT NOT NULL,
    user_id TEXT NOT NULL,
    person_id INTEGER NOT NULL REFERENCES people (id),
    owner_by TEXT,
    name TEXT NOT NULL DEFAULT '',
    admitted_at REAL,
    PRIMARY KEY (platform, user_id)
) WITHOUT ROWID;
CREATE INDEX accounts_by_person ON accounts (person_id);

CREATE TABLE own_rooms (
    scope_key TEXT PRIMARY KEY
) WITHOUT ROWID;

CREATE TABLE pairings (
    code TEXT PRIMARY KEY,
    platform TEXT NOT NULL,
    user_id TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    used_at REAL
) WITHOUT ROWID;

-- Conversations: addresses, sessions, messages.

CREATE TABLE addresses (
    id INTEGER PRIMARY KEY,
    platform TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    thread_id TEXT NOT NULL DEFAULT '',
    link_base TEXT,
    UNIQUE (platform, chat_id, thread_id)
);

CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    address_id INTEGER NOT NULL REFERENCES addresses (id),
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    external_id TEXT,
    parent_id INTEGER REFERENCES sessions (id),
    root_id INTEGER,
    opens_at INTEGER,
    closes_at INTEGER NOT NULL DEFAULT 0,
    title TEXT,
    model TEXT NOT NULL DEFAULT '',
    system_prompt TEXT NOT NULL DEFAULT '',
    sight TEXT NOT NULL DEFAULT '[]',
    started_at REAL NOT NULL,
    last_at REAL NOT NULL,
    ended_at REAL,
    end_reason TEXT,
    messages INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX sessions_by_scope ON sessions (scope_id, last_at);
CREATE INDEX sessions_by_parent ON sessions (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX sessions_by_lineage ON sessions (COALESCE(root_id, id));
CREATE UNIQUE INDEX sessions_open ON sessions (address_id) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX sessions_external ON sessions (scope_id, external_id) WHERE external_id IS NOT NULL;

CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    address_id INTEGER NOT NULL REFERENCES addresses (id),
    role TEXT NOT NULL,
    kind TEXT NOT NULL DEFAULT 'chat',
    text TEXT NOT NULL,
    blocks TEXT,
    sent TEXT,
    tools TEXT,
    tool_name TEXT,
    external_id TEXT,
    posted_id TEXT,
    sender_id TEXT,
    sender_name TEXT,
    sender_is_nobody INTEGER NOT NULL DEFAULT 0,
    is_forward INTEGER NOT NULL DEFAULT 0,
    created_at REAL NOT NULL,
    usage TEXT
);
CREATE INDEX messages_by_session ON messages (session_id, id);
CREATE UNIQUE INDEX messages_external ON messages (address_id, external_id) WHERE external_id IS NOT NULL;

-- Inbox and outbox. `lane` is the key of an address, `parcel` the key of an outbox item.

CREATE TABLE raw_updates (
    platform TEXT NOT NULL,
    update_id INTEGER NOT NULL,
    raw TEXT NOT NULL,
    error TEXT,
    failed_at REAL,
    PRIMARY KEY (platform, update_id)
) WITHOUT ROWID;
CREATE INDEX raw_updates_failed ON raw_updates (failed_at) WHERE failed_at IS NOT NULL;

CREATE TABLE inbox (
    id INTEGER PRIMARY KEY,
    address_id INTEGER NOT NULL REFERENCES addresses (id),
    external_id TEXT NOT NULL,
    inbound TEXT NOT NULL,
    received_at REAL NOT NULL,
    UNIQUE (address_id, external_id)
);

CREATE TABLE answered (
    address_id INTEGER NOT NULL REFERENCES addresses (id),
    external_id TEXT NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (address_id, external_id)
) WITHOUT ROWID;
CREATE INDEX answered_by_time ON answered (at);

CREATE TABLE outbox (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    lane TEXT NOT NULL,
    kind TEXT NOT NULL,
    payload TEXT,
    posted TEXT NOT NULL DEFAULT '[]',
    message_id INTEGER,
    reply_to TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    next_at REAL,
    created_at REAL NOT NULL,
    done_at REAL,
    dead_at REAL,
    error TEXT
);
CREATE INDEX outbox_open ON outbox (lane, id) WHERE done_at IS NULL AND dead_at IS NULL AND payload IS NOT NULL;
CREATE INDEX outbox_done ON outbox (done_at) WHERE done_at IS NOT NULL;

CREATE TABLE actions (
    id TEXT PRIMARY KEY,
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    account TEXT,
    command TEXT NOT NULL,
    arguments TEXT NOT NULL,
    expires_at REAL NOT NULL,
    address TEXT,
    parcel TEXT,
    takes_words INTEGER NOT NULL DEFAULT 0,
    origin TEXT,
    taker TEXT
) WITHOUT ROWID;
CREATE INDEX actions_by_expiry ON actions (expires_at);
CREATE INDEX actions_by_address ON actions (address, account) WHERE address IS NOT NULL;

-- Reminders and scheduled prompts, and their runs.

CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    address_id INTEGER NOT NULL REFERENCES addresses (id),
    account TEXT,
    origin TEXT UNIQUE,
    text TEXT NOT NULL,
    is_prompt INTEGER NOT NULL DEFAULT 0,
    zone TEXT NOT NULL,
    cron TEXT,
    every_s INTEGER,
    start_at REAL,
    at REAL,
    created_at REAL NOT NULL,
    next_at REAL,
    paused_at REAL,
    ended_at REAL
);
CREATE INDEX jobs_by_scope ON jobs (scope_id) WHERE ended_at IS NULL;

CREATE TABLE runs (
    job_id INTEGER NOT NULL REFERENCES jobs (id),
    due_at REAL NOT NULL,
    started_at REAL NOT NULL,
    finished_at REAL,
    PRIMARY KEY (job_id, due_at)
) WITHOUT ROWID;

-- The history of curated notes, and changes that wait for a confirmation.

CREATE TABLE notes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    target TEXT NOT NULL,
    action TEXT NOT NULL,
    before TEXT,
    after TEXT,
    account TEXT,
    message_id INTEGER,
    address_id INTEGER REFERENCES addresses (id),
    external_id TEXT,
    undoes INTEGER,
    is_insisted INTEGER NOT NULL DEFAULT 0,
    at REAL NOT NULL
);
CREATE INDEX notes_by_scope ON notes (scope_id, id);

CREATE TABLE pending_notes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    target TEXT NOT NULL,
    operations TEXT NOT NULL,
    reason TEXT NOT NULL,
    account TEXT,
    message_id INTEGER,
    address_id INTEGER REFERENCES addresses (id),
    external_id TEXT,
    is_written INTEGER NOT NULL DEFAULT 0,
    began_at REAL NOT NULL,
    at REAL NOT NULL
);
CREATE INDEX pending_notes_by_scope ON pending_notes (scope_id, id);

-- Linking accounts: offers with the digest of their code, and wrong attempts. A confirmation names a claimed offer by
-- `token`, which is never shown. `partings` lists accounts that were unlinked.

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

-- Addresses that are incognito, and since when.

CREATE TABLE veils (
    address_id INTEGER PRIMARY KEY REFERENCES addresses (id),
    at REAL NOT NULL
);

-- Running erasures: lists of ids, never words. `zeros` overwrites the pages of erased words.

CREATE TABLE erasures (
    id TEXT PRIMARY KEY,
    lane TEXT NOT NULL,
    account TEXT NOT NULL,
    scopes TEXT NOT NULL,
    number INTEGER,
    made_at REAL NOT NULL,
    begun_at REAL,
    done_at REAL,
    list TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE zeros (
    id INTEGER PRIMARY KEY,
    zeros BLOB NOT NULL
);

-- Model calls with their cost, and what has changed the prefix of a session since its last call.

CREATE TABLE calls (
    id INTEGER PRIMARY KEY,
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    session_id INTEGER,
    kind TEXT NOT NULL,
    model TEXT NOT NULL,
    at REAL NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cache_read_tokens INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    cache_write_hour_tokens INTEGER NOT NULL DEFAULT 0,
    miss TEXT,
    missed_tokens INTEGER NOT NULL DEFAULT 0,
    reply_id TEXT,
    imprint TEXT
);
CREATE INDEX calls_by_scope ON calls (scope_id, at);
CREATE INDEX calls_by_session ON calls (session_id, id) WHERE session_id IS NOT NULL;

CREATE TABLE disturbances (
    session_id INTEGER PRIMARY KEY,
    cause TEXT NOT NULL
);

-- The last message that each memory service has received, and the past messages that it still lacks.

CREATE TABLE told (
    provider TEXT NOT NULL,
    subject TEXT NOT NULL,
    last_id INTEGER NOT NULL,
    PRIMARY KEY (provider, subject)
) WITHOUT ROWID;

CREATE TABLE pasts (
    provider TEXT PRIMARY KEY,
    since REAL NOT NULL,
    next_id INTEGER NOT NULL,
    last_id INTEGER NOT NULL
) WITHOUT ROWID;
