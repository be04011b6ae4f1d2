-- The changes that brought state.db from each earlier version to the next one. A released section is never edited: add a
-- section at its end, and draw the result in schema.sql. Triggers, views and indexes needn't be mentioned in a new section,
-- because an upgrade creates those of schema.sql at its end.

-- ## 1. The tables of the first version, its text indexes and its facts.

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

-- The text indexes. $$shown is the condition that people may see a message; $$scope begins the word that names a scope.
-- The views return exactly the indexed text, because FTS5 needs it to delete a row.
CREATE INDEX messages_shown ON messages (session_id, id)
WHERE $shown;

CREATE VIRTUAL TABLE messages_fts USING fts5(
    text, tools, scope, content = 'messages_words', content_rowid = 'id',
    tokenize = "unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);
INSERT INTO messages_fts (messages_fts, rank) VALUES ('rank', 'bm25(1.0, 0.5, 0.0)');

-- Chunks: rows of messages as one document. The counts are chunks per scope.
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL,
    scope_id INTEGER NOT NULL,
    place INTEGER NOT NULL,
    first_id INTEGER NOT NULL,
    last_id INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    is_indexed INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX chunks_by_session ON chunks (session_id, place);
CREATE INDEX chunks_waiting ON chunks (id) WHERE is_indexed = 0;
CREATE TABLE chunk_counts (
    scope_id INTEGER PRIMARY KEY,
    chunks INTEGER NOT NULL
);
CREATE TRIGGER chunk_counted AFTER INSERT ON chunks
BEGIN
    INSERT INTO chunk_counts (scope_id, chunks) VALUES (NEW.scope_id, 1)
    ON CONFLICT (scope_id) DO UPDATE SET chunks = chunks + 1;
END;
CREATE TRIGGER chunk_uncounted AFTER DELETE ON chunks
BEGIN
    UPDATE chunk_counts SET chunks = chunks - 1 WHERE scope_id = OLD.scope_id;
END;
CREATE VIEW chunk_texts AS
SELECT chunks.id AS id, (
    SELECT chunk_terms(chunks.scope_id, messages.text, messages.sender_name, messages.created_at)
    FROM messages
    WHERE messages.session_id = chunks.session_id AND messages.id BETWEEN chunks.first_id AND chunks.last_id
        AND $shown
) AS terms
FROM chunks WHERE chunks.is_indexed = 1;
CREATE VIRTUAL TABLE chunks_fts USING fts5(
    terms, content = 'chunk_texts', content_rowid = 'id',
    tokenize = "unicode61 remove_diacritics 0 categories 'L* N* Co Mn Mc'"
);
CREATE VIRTUAL TABLE chunk_vocabulary USING fts5vocab('chunks_fts', 'row');
-- Writing a message merges no segments, unless there are 8. Maintenance merges them, two at a time, because a search
-- looks up each word in each segment, and for a person with 50 chats each word in each chat.
INSERT INTO messages_fts (messages_fts, rank) VALUES ('automerge', 0);
INSERT INTO messages_fts (messages_fts, rank) VALUES ('usermerge', 2);
INSERT INTO messages_fts (messages_fts, rank) VALUES ('crisismerge', 8);
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('automerge', 0);
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('usermerge', 2);
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('crisismerge', 8);
INSERT INTO state_meta (key, value) VALUES ('index_version', '$version');
-- Facts in schema 1: statements about people and things, their history, their text index and its triggers.
-- When a message is edited or deleted, the facts that were learned from it are deleted. A fact that was reworded since
-- then stays, without the words of the message.

CREATE TABLE facts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    content TEXT NOT NULL,
    folded TEXT NOT NULL,
    kind TEXT NOT NULL,
    attribute TEXT,
    value TEXT NOT NULL DEFAULT '',
    trust REAL NOT NULL,
    said INTEGER NOT NULL DEFAULT 1,
    valid_from REAL,
    valid_to REAL,
    grain TEXT NOT NULL DEFAULT 'day',
    created_at REAL NOT NULL,
    last_at REAL NOT NULL,
    closed_at REAL,
    closed_by INTEGER,
    message_id INTEGER,
    account TEXT NOT NULL DEFAULT '',
    speaker TEXT NOT NULL DEFAULT '',
    origin TEXT NOT NULL,
    is_pinned INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX facts_by_scope ON facts (scope_id, id);
CREATE UNIQUE INDEX facts_open ON facts (scope_id, account, folded) WHERE closed_at IS NULL;
CREATE INDEX facts_by_attribute ON facts (scope_id, attribute) WHERE attribute IS NOT NULL;
CREATE INDEX facts_by_message ON facts (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX facts_by_closer ON facts (closed_by) WHERE closed_by IS NOT NULL;

CREATE TABLE entities (
    id INTEGER PRIMARY KEY,
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    name TEXT NOT NULL,
    shown TEXT NOT NULL,
    facts INTEGER NOT NULL DEFAULT 0,
    UNIQUE (scope_id, name)
);

CREATE TABLE fact_entities (
    entity_id INTEGER NOT NULL REFERENCES entities (id),
    fact_id INTEGER NOT NULL REFERENCES facts (id),
    PRIMARY KEY (entity_id, fact_id)
) WITHOUT ROWID;
CREATE INDEX fact_entities_by_fact ON fact_entities (fact_id);

CREATE TABLE fact_changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    fact_id INTEGER NOT NULL,
    action TEXT NOT NULL,
    before TEXT,
    after TEXT,
    reason TEXT NOT NULL DEFAULT '',
    at REAL NOT NULL,
    account TEXT,
    message_id INTEGER
);
CREATE INDEX fact_changes_by_fact ON fact_changes (fact_id);
CREATE INDEX fact_changes_by_scope ON fact_changes (scope_id, id);
CREATE INDEX fact_changes_by_message ON fact_changes (message_id) WHERE message_id IS NOT NULL;

CREATE TABLE fact_marks (
    session_id INTEGER PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    message_id INTEGER NOT NULL
);
CREATE TABLE fact_rereads (
    message_id INTEGER PRIMARY KEY
);

CREATE VIRTUAL TABLE facts_fts USING fts5(
    terms, hints, tokenize = "unicode61 remove_diacritics 0 categories 'L* N* Co Mn Mc'"
);
CREATE VIRTUAL TABLE facts_vocabulary USING fts5vocab('facts_fts', 'row');

CREATE TRIGGER fact_named AFTER INSERT ON fact_entities
BEGIN
    UPDATE entities SET facts = facts + 1 WHERE id = NEW.entity_id;
END;
CREATE TRIGGER fact_unnamed AFTER DELETE ON fact_entities
BEGIN
    UPDATE entities SET facts = facts - 1 WHERE id = OLD.entity_id;
    DELETE FROM entities WHERE id = OLD.entity_id AND facts <= 0;
END;
CREATE TRIGGER fact_going BEFORE DELETE ON facts
BEGIN
    DELETE FROM fact_entities WHERE fact_id = OLD.id;
    DELETE FROM fact_changes WHERE fact_id = OLD.id;
    DELETE FROM facts_fts WHERE rowid = OLD.id;
END;
CREATE TRIGGER fact_gone AFTER DELETE ON facts
BEGIN
    UPDATE facts SET closed_by = OLD.closed_by, valid_to = COALESCE(OLD.valid_to, valid_to)
    WHERE closed_by = OLD.id AND OLD.closed_by IS NOT NULL;
    UPDATE OR IGNORE facts SET closed_at = NULL, closed_by = NULL, valid_to = NULL WHERE closed_by = OLD.id;
END;
CREATE TRIGGER message_edited_of_fact AFTER UPDATE OF text ON messages WHEN NEW.text <> OLD.text
BEGIN
    DELETE FROM facts WHERE message_id = OLD.id;
    DELETE FROM fact_changes WHERE fact_id IN (
        SELECT facts.id FROM fact_changes AS told JOIN facts ON facts.id = told.fact_id
        WHERE told.message_id = OLD.id AND json_extract(told.after, '$$.content') <> facts.content
    );
    DELETE FROM fact_rereads WHERE message_id = OLD.id;
    INSERT INTO fact_rereads (message_id)
    SELECT NEW.id WHERE NEW.role = 'user' AND NEW.kind = 'chat' AND NEW.text <> '';
END;
CREATE TRIGGER message_gone_of_fact AFTER DELETE ON messages
BEGIN
    DELETE FROM facts WHERE message_id = OLD.id;
    DELETE FROM fact_rereads WHERE message_id = OLD.id;
    DELETE FROM fact_changes WHERE fact_id IN (
        SELECT facts.id FROM fact_changes AS told JOIN facts ON facts.id = told.fact_id
        WHERE told.message_id = OLD.id AND json_extract(told.after, '$$.content') <> facts.content
    );
END;
INSERT INTO facts_fts (facts_fts, rank) VALUES ('rank', 'bm25(1.0, 0.6)');
INSERT INTO state_meta (key, value) VALUES ('facts_version', '$version');

-- ## 2. Where a message comes from. Earlier imports didn't mark which sender was the owner.

ALTER TABLE messages ADD COLUMN origin TEXT NOT NULL DEFAULT 'typed';
UPDATE messages SET origin = 'forwarded' WHERE is_forward;
UPDATE messages SET origin = 'imported'
WHERE role = 'user' AND address_id IN (SELECT id FROM addresses WHERE platform = 'import');
ALTER TABLE messages DROP COLUMN is_forward;

-- ## 3. Overwrites pages that were freed while `PRAGMA secure_delete` was off: fills them with zeros.

INSERT INTO zeros (zeros)
SELECT zeroblob(MIN(freelist_count * page_size, 900000000))
FROM pragma_freelist_count, pragma_page_size;
DROP TABLE zeros;
UPDATE state_meta SET value = 'log' WHERE key = 'erasure_compaction'
    AND value IN ('zeroing', 'emptying');

-- ## 4. The keys of outbox and inbox show which runs a job has delivered. Past runs were never shown.

DROP TABLE runs;

-- ## 5. Wrong link codes aren't counted any more: there are 27 ** 8 codes, which expire within minutes.

DROP TABLE link_tries;
DELETE FROM state_meta WHERE key = 'wrong_codes';

-- ## 6. All messages of a memory service's backfill are queued at the start.

DROP TABLE pasts;

-- ## 7. The reason for a cache miss is found without a digest of the request.

ALTER TABLE calls DROP COLUMN imprint;

-- ## 8. One index over messages instead of three. It also covers scripts without spaces.

DROP TRIGGER IF EXISTS messages_indexed;
DROP TRIGGER IF EXISTS messages_indexed_wide;
DROP TRIGGER IF EXISTS messages_unindexed;
DROP TRIGGER IF EXISTS messages_changing;
DROP TRIGGER IF EXISTS messages_changed;
DROP TRIGGER IF EXISTS messages_changed_in_rebuild;
DROP TRIGGER IF EXISTS messages_deleted_in_rebuild;
DROP VIEW IF EXISTS messages_words;
DROP TABLE IF EXISTS messages_fts_trigram;
DROP TABLE IF EXISTS messages_fts_pairs;
DROP VIEW IF EXISTS messages_runs;
DROP VIEW IF EXISTS messages_pairs;
-- Triggers that keep the index over messages up to date. The view returns exactly the indexed text, because FTS5 needs
-- it to delete a row.
CREATE VIEW messages_words AS
SELECT messages.id AS id, indexed_words(messages.text) AS text, indexed_words(messages.tools) AS tools,
    '$scope' || sessions.scope_id AS scope
FROM messages JOIN sessions ON sessions.id = messages.session_id
WHERE messages.kind = 'chat';

-- While index_stale is set, these triggers do nothing.
CREATE TRIGGER messages_indexed AFTER INSERT ON messages WHEN NEW.kind = 'chat' AND NOT EXISTS (SELECT 1 FROM state_meta WHERE key = 'index_stale')
BEGIN
    INSERT INTO messages_fts (rowid, text, tools, scope) SELECT id, text, tools, scope FROM messages_words WHERE id = NEW.id;
END;
-- Before a message is changed or deleted, it leaves the indexes, and its chunk is marked to be indexed again.
CREATE TRIGGER messages_unindexed BEFORE DELETE ON messages WHEN OLD.kind = 'chat' AND NOT EXISTS (SELECT 1 FROM state_meta WHERE key = 'index_stale')
BEGIN
    INSERT INTO messages_fts (messages_fts, rowid, text, tools, scope) SELECT 'delete', id, text, tools, scope FROM messages_words WHERE id = OLD.id;

    INSERT INTO chunks_fts (chunks_fts, rowid, terms) SELECT 'delete', id, terms FROM chunk_texts WHERE id IN (
        SELECT id FROM chunks WHERE session_id = OLD.session_id AND OLD.id BETWEEN first_id AND last_id
    );
    UPDATE chunks SET is_indexed = 0
    WHERE session_id = OLD.session_id AND OLD.id BETWEEN first_id AND last_id AND is_indexed = 1;
END;
CREATE TRIGGER messages_changing BEFORE UPDATE OF text, tools, kind ON messages WHEN OLD.kind = 'chat' AND NOT EXISTS (SELECT 1 FROM state_meta WHERE key = 'index_stale')
BEGIN
    INSERT INTO messages_fts (messages_fts, rowid, text, tools, scope) SELECT 'delete', id, text, tools, scope FROM messages_words WHERE id = OLD.id;

    INSERT INTO chunks_fts (chunks_fts, rowid, terms) SELECT 'delete', id, terms FROM chunk_texts WHERE id IN (
        SELECT id FROM chunks WHERE session_id = OLD.session_id AND OLD.id BETWEEN first_id AND last_id
    );
    UPDATE chunks SET is_indexed = 0
    WHERE session_id = OLD.session_id AND OLD.id BETWEEN first_id AND last_id AND is_indexed = 1;
END;
CREATE TRIGGER messages_changed AFTER UPDATE OF text, tools, kind ON messages WHEN NEW.kind = 'chat' AND NOT EXISTS (SELECT 1 FROM state_meta WHERE key = 'index_stale')
BEGIN
    INSERT INTO messages_fts (rowid, text, tools, scope) SELECT id, text, tools, scope FROM messages_words WHERE id = NEW.id;
END;
-- A change during a rebuild restarts it.
CREATE TRIGGER messages_changed_in_rebuild AFTER UPDATE OF text, tools, kind ON messages WHEN EXISTS (SELECT 1 FROM state_meta WHERE key = 'index_cursor')
BEGIN
    DELETE FROM state_meta WHERE key = 'index_cursor';
END;
CREATE TRIGGER messages_deleted_in_rebuild AFTER DELETE ON messages WHEN EXISTS (SELECT 1 FROM state_meta WHERE key = 'index_cursor')
BEGIN
    DELETE FROM state_meta WHERE key = 'index_cursor';
END;

DELETE FROM state_meta WHERE key = 'index_cursor';
INSERT OR IGNORE INTO state_meta (key, value)
SELECT 'index_stale', '1' WHERE EXISTS (SELECT 1 FROM messages);

-- ## 9. Updates that weren't handled are failed ones, because an update is confirmed once it is in the inbox.

UPDATE raw_updates SET failed_at = CAST(strftime('%s', 'now') AS REAL),
    error = 'an earlier version had not handled it'
WHERE failed_at IS NULL;

-- ## 10. Accounts that lost their access, and the reason why a job is paused.

ALTER TABLE accounts ADD COLUMN admitted_by TEXT;
ALTER TABLE accounts ADD COLUMN removed_at REAL;
ALTER TABLE accounts ADD COLUMN is_blocked INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN pause_reason TEXT;

-- ## 11. The message that a stranger sent, which is answered once they are approved.

ALTER TABLE pairings ADD COLUMN inbound TEXT;

-- ## 12. Groups that used to belong to the owner alone. Their messages of that time stay the owner's.

ALTER TABLE own_rooms ADD COLUMN is_past INTEGER NOT NULL DEFAULT 0;

-- ## 13. The key of the record of erasures.

INSERT INTO state_meta (key, value) VALUES ('erasure_key', lower(hex(randomblob(32))));

-- ## 14. The account that caused a model call. It is unknown for earlier calls in groups.

ALTER TABLE calls ADD COLUMN account TEXT;
ALTER TABLE calls ADD COLUMN turns INTEGER NOT NULL DEFAULT 0;
CREATE INDEX calls_by_account ON calls (account, at);
CREATE INDEX jobs_by_creation ON jobs (created_at);
UPDATE calls SET account = (
    SELECT substr(key, 9) FROM scopes
    WHERE scopes.id = calls.scope_id AND substr(key, 1, 8) = 'account:'
);

-- ## 15. The index `messages_by_session` is as fast, so each message needn't be written to both.

DROP INDEX IF EXISTS messages_shown;

-- ## 16. Sessions in which the model works on a delegated task.

ALTER TABLE sessions ADD COLUMN is_delegated INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sessions_delegated ON sessions (is_delegated) WHERE is_delegated;

-- ## 17. Less memory for changes of the text indexes.

INSERT INTO messages_fts (messages_fts, rank) VALUES ('hashsize', 131072);
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('hashsize', 131072);

-- ## 18. Pinned notes, drafts of the curator, and the last change that it has reviewed.

ALTER TABLE notes ADD COLUMN is_pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pending_notes ADD COLUMN is_draft INTEGER NOT NULL DEFAULT 0;
CREATE TABLE note_reviews (
    scope_id INTEGER PRIMARY KEY REFERENCES scopes (id),
    mark INTEGER,
    rests_until REAL NOT NULL DEFAULT 0
);

-- ## 19. How often each skill is used.

CREATE TABLE skills (
    id INTEGER PRIMARY KEY,
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    name TEXT NOT NULL,
    uses INTEGER NOT NULL DEFAULT 0,
    used_at REAL,
    is_disabled INTEGER NOT NULL DEFAULT 0,
    UNIQUE (scope_id, name)
);

-- ## 20. The message that is quoted, and an index by the platform ids of answers.

ALTER TABLE messages ADD COLUMN quoted TEXT;
CREATE INDEX messages_posted ON messages (address_id, posted_id) WHERE posted_id IS NOT NULL;

-- ## 21. Messages that were undone and can be redone.

CREATE TABLE undone (
    message_id INTEGER PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    origin TEXT NOT NULL,
    at REAL NOT NULL,
    back TEXT
);
CREATE INDEX undone_by_session ON undone (session_id, at);
CREATE INDEX undone_by_origin ON undone (origin);
CREATE INDEX undone_by_back ON undone (back) WHERE back IS NOT NULL;
CREATE TRIGGER message_undone_of_fact AFTER UPDATE OF kind ON messages WHEN 'undone' IN (OLD.kind, NEW.kind)
BEGIN
    UPDATE facts SET said = said - 1, message_id = told.message_id
    FROM fact_changes AS told JOIN messages AS first ON first.id = told.message_id AND first.kind = 'chat'
    WHERE facts.message_id = OLD.id AND NEW.kind = 'undone' AND told.fact_id = facts.id AND told.action = 'learn';
    DELETE FROM facts WHERE message_id = OLD.id AND NEW.kind = 'undone' AND NOT is_pinned;
    DELETE FROM pending_notes WHERE message_id = OLD.id AND NEW.kind = 'undone' AND target = 'fact';
    DELETE FROM fact_rereads WHERE message_id = OLD.id;
    INSERT INTO fact_rereads (message_id)
    SELECT NEW.id WHERE NEW.role = 'user' AND NEW.kind = 'chat' AND NEW.text <> '';
END;

-- ## 22. The first exchange of a conversation, which compression doesn't remove.

ALTER TABLE sessions ADD COLUMN head_from INTEGER;
ALTER TABLE sessions ADD COLUMN head_until INTEGER;

-- ## 23. Vectors of messages for semantic search.

CREATE TABLE message_vectors (
    message_id INTEGER PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    model TEXT NOT NULL,
    vector BLOB NOT NULL
);
CREATE TRIGGER message_vector_changed AFTER UPDATE OF text, kind, sender_name ON messages
BEGIN
    DELETE FROM message_vectors WHERE message_id = OLD.id;
    UPDATE state_meta SET value = OLD.id - 1
    WHERE key = 'vectors_until' AND NEW.kind = 'chat' AND CAST(value AS INTEGER) >= OLD.id;
END;

-- ## 24. Which tool calls were carried out, and which changes to files aren't written yet.

CREATE TABLE tool_calls (
    session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    call_id TEXT NOT NULL,
    PRIMARY KEY (session_id, call_id)
) WITHOUT ROWID;
CREATE TABLE unfinished_changes (
    note_id INTEGER PRIMARY KEY REFERENCES notes (id) ON DELETE CASCADE,
    session_id INTEGER,
    call_id TEXT
);

-- ## 25. Recurrences of RFC 5545, urgent jobs, watches, and the time zone and quiet hours of people.

ALTER TABLE jobs ADD COLUMN recurrences TEXT NOT NULL DEFAULT '[]';
ALTER TABLE jobs ADD COLUMN is_urgent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN is_watch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
CREATE INDEX jobs_by_due ON jobs (next_at) WHERE ended_at IS NULL AND paused_at IS NULL;
CREATE TABLE preferences (
    account TEXT PRIMARY KEY,
    zone TEXT,
    quiet_from TEXT,
    quiet_until TEXT
);

-- ## 26. Notes that the helper model hasn't compared yet with what was typed.

ALTER TABLE pending_notes ADD COLUMN is_proposed INTEGER NOT NULL DEFAULT 0;

-- ## 27. When the memory of each private scope was last reviewed.

CREATE TABLE memory_reviews (
    scope_id INTEGER PRIMARY KEY REFERENCES scopes (id),
    message_id INTEGER NOT NULL,
    at REAL NOT NULL
);

-- ## 28. Cron lines and intervals become recurrences of RFC 5545. A cron line that no rule expresses stays.

UPDATE jobs SET recurrences = job_recurrences(zone, cron, every_s, start_at, created_at)
WHERE cron IS NOT NULL OR every_s IS NOT NULL;
UPDATE jobs SET cron = NULL, every_s = NULL, start_at = NULL WHERE recurrences <> '[]';

-- ## 29. The files that people send.

-- The files that people send. `files` has one row for each content, by the SHA-256 of its bytes, which are in the home.
-- `message_files` has one row for each file of a message: several messages may have the same content.
-- `file_parts` has the text of a file in parts, such as pages, with an index.

CREATE TABLE files (
    hash TEXT PRIMARY KEY,
    type TEXT NOT NULL,
    size INTEGER NOT NULL,
    pages INTEGER,
    duration_s REAL,
    width INTEGER,
    height INTEGER,
    -- Why the file has no text, as a word of core/media/decoding.py.
    note TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;

CREATE TABLE message_files (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    address_id INTEGER NOT NULL REFERENCES addresses (id),
    external_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    message_id INTEGER,
    account TEXT,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    mime TEXT,
    size INTEGER,
    reference TEXT,
    hash TEXT,
    -- Why the file isn't kept, as a sentence.
    problem TEXT NOT NULL DEFAULT '',
    at REAL NOT NULL,
    UNIQUE (address_id, external_id, position)
);
CREATE INDEX message_files_by_scope ON message_files (scope_id, id);
CREATE INDEX message_files_by_message ON message_files (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX message_files_by_hash ON message_files (hash) WHERE hash IS NOT NULL;

CREATE TABLE file_parts (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL REFERENCES files (hash) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    label TEXT NOT NULL,
    text TEXT NOT NULL,
    UNIQUE (hash, position)
);
CREATE VIRTUAL TABLE files_fts USING fts5(
    terms, tokenize = "unicode61 remove_diacritics 0 categories 'L* N* Co Mn Mc'"
);

-- Contents that no message has any more. Their bytes are deleted from the home.
CREATE TABLE file_removals (
    hash TEXT PRIMARY KEY
) WITHOUT ROWID;

CREATE TRIGGER file_part_gone AFTER DELETE ON file_parts
BEGIN
    DELETE FROM files_fts WHERE rowid = OLD.id;
END;
CREATE TRIGGER file_of_message_stored AFTER INSERT ON messages
WHEN NEW.external_id IS NOT NULL AND instr(NEW.text, '[attached ')
BEGIN
    UPDATE message_files SET message_id = NEW.id
    WHERE address_id = NEW.address_id AND external_id = NEW.external_id;
END;
CREATE TRIGGER file_of_message_erased AFTER UPDATE OF text ON messages WHEN NEW.text = '' AND OLD.text <> ''
BEGIN
    DELETE FROM message_files WHERE message_id = OLD.id;
END;
CREATE TRIGGER file_of_message_gone AFTER DELETE ON messages
BEGIN
    DELETE FROM message_files WHERE message_id = OLD.id;
END;
CREATE TRIGGER file_gone AFTER DELETE ON message_files
WHEN OLD.hash IS NOT NULL AND NOT EXISTS (SELECT 1 FROM message_files WHERE hash = OLD.hash)
BEGIN
    INSERT OR IGNORE INTO file_removals (hash) VALUES (OLD.hash);
    DELETE FROM files WHERE hash = OLD.hash;
END;

-- ## 30. Digests of the changes that a person has rejected, so no review proposes them again.

ALTER TABLE memory_reviews ADD COLUMN rejections TEXT NOT NULL DEFAULT '[]';

-- ## 31. Whether a call waits for approval. It's NULL for the calls that an earlier version recorded.

ALTER TABLE tool_calls ADD COLUMN is_waiting INTEGER;

-- ## 32. Thumbs on answers.

CREATE TABLE thumbs (
    message_id INTEGER NOT NULL,
    account TEXT NOT NULL,
    -- 1: up, -1: down, 0: removed.
    verdict INTEGER NOT NULL,
    -- The ids of the facts that the person has judged with it.
    facts TEXT NOT NULL DEFAULT '[]',
    at REAL NOT NULL,
    PRIMARY KEY (message_id, account)
) WITHOUT ROWID;
CREATE TRIGGER thumb_of_message_erased AFTER UPDATE OF text ON messages WHEN NEW.text = '' AND OLD.text <> ''
BEGIN
    DELETE FROM thumbs WHERE message_id = OLD.id;
END;
CREATE TRIGGER thumb_of_message_gone AFTER DELETE ON messages
BEGIN
    DELETE FROM thumbs WHERE message_id = OLD.id;
END;

-- ## 33. Whether a person's answers are spoken, too.

ALTER TABLE preferences ADD COLUMN voice TEXT;

-- ## 34. How often messages of a session were changed or deleted.

CREATE TABLE history_changes (
    session_id INTEGER PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    changes INTEGER NOT NULL
);
CREATE TRIGGER message_changed_of_history AFTER UPDATE OF role, kind, text, blocks, sent, tools, tool_name,
    external_id, sender_id, sender_name, sender_is_nobody, origin, quoted, created_at, usage ON messages
BEGIN
    INSERT INTO history_changes (session_id, changes) VALUES (OLD.session_id, 1)
    ON CONFLICT (session_id) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER message_gone_of_history AFTER DELETE ON messages
BEGIN
    INSERT INTO history_changes (session_id, changes) VALUES (OLD.session_id, 1)
    ON CONFLICT (session_id) DO UPDATE SET changes = changes + 1;
END;

-- ## 35. Merges the segments of the text indexes when there are 8, not only when there are 64.

INSERT INTO messages_fts (messages_fts, rank) VALUES ('crisismerge', 8);
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('crisismerge', 8);

-- ## 36. The language of a person, or of a group, whose row has the key of its scope.

ALTER TABLE preferences ADD COLUMN language TEXT;

-- ## 37. Why a platform takes no message for the chat of an item.

ALTER TABLE outbox ADD COLUMN cause TEXT NOT NULL DEFAULT '';

-- ## 38. Tables and columns get the words of the glossary.

ALTER TABLE rooms RENAME TO group_scopes;
ALTER TABLE own_rooms RENAME TO owner_groups;
ALTER TABLE partings RENAME TO scope_detachments;
ALTER TABLE scope_detachments RENAME COLUMN number TO epoch;
ALTER TABLE veils RENAME TO incognito_addresses;
ALTER TABLE undone RENAME TO undone_messages;
ALTER TABLE undone_messages RENAME COLUMN back TO redone_by;
ALTER TABLE answered RENAME TO answered_events;
ALTER TABLE notes RENAME TO note_changes;
ALTER TABLE calls RENAME TO model_calls;
ALTER TABLE disturbances RENAME TO prefix_breaks;
ALTER TABLE told RENAME TO sync_watermarks;
ALTER TABLE fact_marks RENAME TO fact_watermarks;
ALTER TABLE accounts RENAME COLUMN owner_by TO owner_source;
ALTER TABLE links RENAME COLUMN agreed_at TO confirmed_at;
ALTER TABLE links DROP COLUMN shown;
ALTER TABLE sessions RENAME COLUMN opens_at TO parent_from;
ALTER TABLE sessions RENAME COLUMN closes_at TO parent_until;
ALTER TABLE sessions RENAME COLUMN sight TO visible_scopes;
ALTER TABLE sessions RENAME COLUMN messages TO message_count;
ALTER TABLE messages RENAME COLUMN sender_is_nobody TO sender_is_anonymous;
ALTER TABLE outbox RENAME COLUMN lane TO address;
ALTER TABLE actions RENAME COLUMN parcel TO outbox_key;
ALTER TABLE actions DROP COLUMN takes_words;
ALTER TABLE note_reviews RENAME COLUMN mark TO watermark;
ALTER TABLE note_reviews RENAME COLUMN rests_until TO paused_until;
ALTER TABLE erasures RENAME COLUMN lane TO address;
ALTER TABLE erasures RENAME COLUMN number TO epoch;
ALTER TABLE erasures RENAME COLUMN begun_at TO started_at;
ALTER TABLE chunks RENAME COLUMN place TO position;
ALTER TABLE chunks RENAME COLUMN messages TO message_count;
ALTER TABLE chunk_counts RENAME COLUMN chunks TO chunk_count;
ALTER TABLE facts RENAME COLUMN folded TO comparison_form;
ALTER TABLE facts RENAME COLUMN said TO mention_count;
ALTER TABLE facts RENAME COLUMN grain TO precision;
ALTER TABLE entities RENAME COLUMN shown TO display_name;
ALTER TABLE entities RENAME COLUMN facts TO fact_count;
-- The history of facts names columns, too.
UPDATE fact_changes SET before =
    json_remove(json_set(before, '$$.mention_count', json_extract(before, '$$.said')), '$$.said')
WHERE json_valid(before) AND json_type(before, '$$.said') IS NOT NULL;
UPDATE fact_changes SET before =
    json_remove(json_set(before, '$$.precision', json_extract(before, '$$.grain')), '$$.grain')
WHERE json_valid(before) AND json_type(before, '$$.grain') IS NOT NULL;
UPDATE fact_changes SET after =
    json_remove(json_set(after, '$$.mention_count', json_extract(after, '$$.said')), '$$.said')
WHERE json_valid(after) AND json_type(after, '$$.said') IS NOT NULL;
UPDATE fact_changes SET after =
    json_remove(json_set(after, '$$.precision', json_extract(after, '$$.grain')), '$$.grain')
WHERE json_valid(after) AND json_type(after, '$$.grain') IS NOT NULL;

-- ## 39. The settings of groups, topics and servers.

CREATE TABLE chat_settings (
    -- The key of an address, or "discord:server:5".
    key TEXT PRIMARY KEY,
    listens TEXT,
    prefix TEXT,
    stores TEXT,
    roles TEXT NOT NULL DEFAULT '[]',
    retention_days INTEGER,
    server TEXT,
    -- When the group was told what is kept, and its strangers that they aren't answered.
    introduced_at REAL,
    refused_at REAL
) WITHOUT ROWID;

-- ## 40. The tools that a person has switched off.
ALTER TABLE preferences ADD COLUMN tools_off TEXT;

-- ## 41. The web searches that a model's server makes, which have a price of their own.
ALTER TABLE model_calls ADD COLUMN web_searches INTEGER NOT NULL DEFAULT 0;

-- ## 42. The order of the list of facts: only the index facts_by_place is new.

-- ## 43. Skills that a person has pinned.
ALTER TABLE skills ADD COLUMN is_pinned INTEGER NOT NULL DEFAULT 0;
