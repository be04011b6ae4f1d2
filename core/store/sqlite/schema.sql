-- The whole schema of state.db. A new home gets it at once, and upgrade.py upgrades homes of earlier versions to it.
-- After a change here, add a section to earlier.sql. Times are REAL seconds since 1970 UTC. An upgrade adds columns at
-- the end of a table, so add them at the end here, too. $$shown is the condition that people may see a message. $$scope
-- is the beginning of the word that marks a scope.

-- Visibility: scopes, groups with a new id, people with their accounts, pairing codes, links between accounts.

CREATE TABLE state_meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE scopes (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE
);

-- The current scope of a group whose chat id has changed, or that is no longer the owner's own.
CREATE TABLE group_scopes (
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
    -- Why the account is the owner's: "settings" or "cli". "revoked" if it no longer is.
    owner_source TEXT,
    name TEXT NOT NULL DEFAULT '',
    admitted_at REAL,
    admitted_by TEXT,
    removed_at REAL,
    is_blocked INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (platform, user_id)
) WITHOUT ROWID;
CREATE INDEX accounts_by_person ON accounts (person_id);

-- Groups that are the owner's own. With is_past, the group was in the past, and its messages of that time stay the
-- owner's.
CREATE TABLE owner_groups (
    scope_key TEXT PRIMARY KEY,
    is_past INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE TABLE pairings (
    code TEXT PRIMARY KEY,
    platform TEXT NOT NULL,
    user_id TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    used_at REAL,
    -- A stranger's message, which is answered after their approval.
    inbound TEXT
) WITHOUT ROWID;

-- Offers to link two accounts, with the digest of their code. A confirmation names a claimed offer by `token`, which is
-- never shown.
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
    confirmed_at REAL,
    joined_at REAL
);
CREATE INDEX links_by_expiry ON links (expires_at);

-- Scopes that were visible together until an account was unlinked, and the erasure epoch at that time.
CREATE TABLE scope_detachments (
    epoch INTEGER PRIMARY KEY,
    scopes TEXT NOT NULL
);

-- The time zone, quiet hours, voice and language of a person, or of a group, whose row has the key of its scope.
CREATE TABLE preferences (
    account TEXT PRIMARY KEY,
    zone TEXT,
    quiet_from TEXT,
    quiet_until TEXT,
    voice TEXT,
    language TEXT,
    -- The groups of tools that the person has switched off, separated by commas.
    tools_off TEXT
);

-- The settings of groups, topics and servers, as their admins chose them.
CREATE TABLE chat_settings (
    -- The key of an address, or "discord:server:5".
    key TEXT PRIMARY KEY,
    listens TEXT,
    prefix TEXT,
    stores TEXT,
    roles TEXT NOT NULL DEFAULT '[]',
    retention_days INTEGER,
    server TEXT,
    -- When Mneme told the group what it stores, and told strangers that it doesn't answer them.
    introduced_at REAL,
    refused_at REAL
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

CREATE TABLE incognito_addresses (
    address_id INTEGER PRIMARY KEY REFERENCES addresses (id),
    at REAL NOT NULL
);

CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    address_id INTEGER NOT NULL REFERENCES addresses (id),
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    external_id TEXT,
    parent_id INTEGER REFERENCES sessions (id),
    root_id INTEGER,
    -- The messages of the parent that this session also sends: from the first id until before the second one.
    parent_from INTEGER,
    parent_until INTEGER NOT NULL DEFAULT 0,
    title TEXT,
    model TEXT NOT NULL DEFAULT '',
    system_prompt TEXT NOT NULL DEFAULT '',
    -- The keys of the scopes whose contents the system prompt may contain.
    visible_scopes TEXT NOT NULL DEFAULT '[]',
    started_at REAL NOT NULL,
    last_at REAL NOT NULL,
    ended_at REAL,
    end_reason TEXT,
    message_count INTEGER NOT NULL DEFAULT 0,
    is_delegated INTEGER NOT NULL DEFAULT 0,
    -- The first and last message of the first exchange, which a compression keeps.
    head_from INTEGER,
    head_until INTEGER
);
CREATE INDEX sessions_by_scope ON sessions (scope_id, last_at);
CREATE INDEX sessions_by_parent ON sessions (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX sessions_by_lineage ON sessions (COALESCE(root_id, id));
CREATE UNIQUE INDEX sessions_open ON sessions (address_id) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX sessions_external ON sessions (scope_id, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX sessions_delegated ON sessions (is_delegated) WHERE is_delegated;

CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    address_id INTEGER NOT NULL REFERENCES addresses (id),
    role TEXT NOT NULL,
    kind TEXT NOT NULL DEFAULT 'chat',
    text TEXT NOT NULL,
    blocks TEXT,
    -- The sent form: the content blocks exactly as the model got them.
    sent TEXT,
    tools TEXT,
    tool_name TEXT,
    external_id TEXT,
    -- The platform's id of the posted answer.
    posted_id TEXT,
    sender_id TEXT,
    sender_name TEXT,
    sender_is_anonymous INTEGER NOT NULL DEFAULT 0,
    created_at REAL NOT NULL,
    usage TEXT,
    origin TEXT NOT NULL DEFAULT 'typed',
    quoted TEXT
);
-- This index also serves lists of shown messages, so they need no index of their own.
CREATE INDEX messages_by_session ON messages (session_id, id);
CREATE UNIQUE INDEX messages_external ON messages (address_id, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX messages_posted ON messages (address_id, posted_id) WHERE posted_id IS NOT NULL;

-- Messages that were undone, and `redone_by`, the message that asked for them again. See core/store/lineage.py.
CREATE TABLE undone_messages (
    message_id INTEGER PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    origin TEXT NOT NULL,
    at REAL NOT NULL,
    redone_by TEXT
);
CREATE INDEX undone_messages_by_session ON undone_messages (session_id, at);
CREATE INDEX undone_messages_by_origin ON undone_messages (origin);
CREATE INDEX undone_messages_by_redo ON undone_messages (redone_by) WHERE redone_by IS NOT NULL;

-- How often a session's messages were changed or deleted. See `HistoryCache` in core/store/messages.py.
CREATE TABLE history_changes (
    session_id INTEGER PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    changes INTEGER NOT NULL
);
CREATE TRIGGER history_change_counted_after_update AFTER UPDATE OF role, kind, text, blocks, sent, tools, tool_name,
    external_id, sender_id, sender_name, sender_is_anonymous, origin, quoted, created_at, usage ON messages
BEGIN
    INSERT INTO history_changes (session_id, changes) VALUES (OLD.session_id, 1)
    ON CONFLICT (session_id) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER history_change_counted_after_delete AFTER DELETE ON messages
BEGIN
    INSERT INTO history_changes (session_id, changes) VALUES (OLD.session_id, 1)
    ON CONFLICT (session_id) DO UPDATE SET changes = changes + 1;
END;

-- Which tool calls were carried out. is_waiting is NULL for calls that an earlier version recorded.
CREATE TABLE tool_calls (
    session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    call_id TEXT NOT NULL,
    is_waiting INTEGER,
    PRIMARY KEY (session_id, call_id)
) WITHOUT ROWID;

-- Thumbs on answers. See core/store/facts/feedback.py.
CREATE TABLE thumbs (
    message_id INTEGER NOT NULL,
    account TEXT NOT NULL,
    -- 1 is up, -1 is down, and 0 is removed.
    verdict INTEGER NOT NULL,
    -- The ids of the facts that the person has judged with this thumb.
    facts TEXT NOT NULL DEFAULT '[]',
    at REAL NOT NULL,
    PRIMARY KEY (message_id, account)
) WITHOUT ROWID;
CREATE TRIGGER thumb_deleted_with_erased_message AFTER UPDATE OF text ON messages WHEN NEW.text = '' AND OLD.text <> ''
BEGIN
    DELETE FROM thumbs WHERE message_id = OLD.id;
END;
CREATE TRIGGER thumb_deleted_with_message AFTER DELETE ON messages
BEGIN
    DELETE FROM thumbs WHERE message_id = OLD.id;
END;

-- Inbox and outbox. `outbox.address` is the key of an address. Dead letters are updates that Mneme couldn't handle.

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

-- Answered events. If the platform repeats one, it isn't answered again.
CREATE TABLE answered_events (
    address_id INTEGER NOT NULL REFERENCES addresses (id),
    external_id TEXT NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (address_id, external_id)
) WITHOUT ROWID;
CREATE INDEX answered_events_by_time ON answered_events (at);

CREATE TABLE outbox (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    address TEXT NOT NULL,
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
    error TEXT,
    -- Why the platform refuses messages to the chat. See `core.errors.ChatRefused`.
    cause TEXT NOT NULL DEFAULT ''
);
CREATE INDEX outbox_open ON outbox (address, id) WHERE done_at IS NULL AND dead_at IS NULL AND payload IS NOT NULL;
CREATE INDEX outbox_done ON outbox (done_at) WHERE done_at IS NOT NULL;

-- Buttons and questions. `outbox_key` is the outbox item that asks a question, and `taker` is the message or press that
-- answers it.
CREATE TABLE actions (
    id TEXT PRIMARY KEY,
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    account TEXT,
    command TEXT NOT NULL,
    arguments TEXT NOT NULL,
    expires_at REAL NOT NULL,
    address TEXT,
    outbox_key TEXT,
    origin TEXT,
    taker TEXT
) WITHOUT ROWID;
CREATE INDEX actions_by_expiry ON actions (expires_at);
CREATE INDEX actions_by_address ON actions (address, account) WHERE address IS NOT NULL;

-- Reminders and scheduled questions.

CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    address_id INTEGER NOT NULL REFERENCES addresses (id),
    account TEXT,
    origin TEXT UNIQUE,
    text TEXT NOT NULL,
    is_prompt INTEGER NOT NULL DEFAULT 0,
    zone TEXT NOT NULL,
    -- A cron line that no recurrence of RFC 5545 can express. Other schedules are in `recurrences` or `at`.
    cron TEXT,
    every_s INTEGER,
    start_at REAL,
    at REAL,
    created_at REAL NOT NULL,
    next_at REAL,
    paused_at REAL,
    ended_at REAL,
    pause_reason TEXT,
    recurrences TEXT NOT NULL DEFAULT '[]',
    is_urgent INTEGER NOT NULL DEFAULT 0,
    is_watch INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX jobs_by_scope ON jobs (scope_id) WHERE ended_at IS NULL;
CREATE INDEX jobs_by_creation ON jobs (created_at);
CREATE INDEX jobs_by_due ON jobs (next_at) WHERE ended_at IS NULL AND paused_at IS NULL;

-- Changes to notes and skills, and changes that wait for a confirmation.

CREATE TABLE note_changes (
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
    at REAL NOT NULL,
    -- The curator doesn't change a pinned note.
    is_pinned INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX note_changes_by_scope ON note_changes (scope_id, id);

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
    at REAL NOT NULL,
    -- Whether the change is a draft of the curator.
    is_draft INTEGER NOT NULL DEFAULT 0,
    -- Whether the helper model must still compare the change with the typed text.
    is_proposed INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX pending_notes_by_scope ON pending_notes (scope_id, id);

-- Changes to files that aren't written yet. See core/store/tool_calls.py.
CREATE TABLE unfinished_changes (
    note_id INTEGER PRIMARY KEY REFERENCES note_changes (id) ON DELETE CASCADE,
    session_id INTEGER,
    call_id TEXT
);

-- The last change of a scope that the curator has reviewed, and the time until which it is paused.
CREATE TABLE note_reviews (
    scope_id INTEGER PRIMARY KEY REFERENCES scopes (id),
    watermark INTEGER,
    paused_until REAL NOT NULL DEFAULT 0
);

-- When the memory of a private scope was last reviewed, and the last reviewed message. `rejections` has digests of the
-- changes that the person rejected, so no review proposes them again.
CREATE TABLE memory_reviews (
    scope_id INTEGER PRIMARY KEY REFERENCES scopes (id),
    message_id INTEGER NOT NULL,
    at REAL NOT NULL,
    rejections TEXT NOT NULL DEFAULT '[]'
);

-- How often each skill is used. Skills are folders; their versions are in note_changes.
CREATE TABLE skills (
    id INTEGER PRIMARY KEY,
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    name TEXT NOT NULL,
    uses INTEGER NOT NULL DEFAULT 0,
    used_at REAL,
    is_disabled INTEGER NOT NULL DEFAULT 0,
    is_pinned INTEGER NOT NULL DEFAULT 0,
    UNIQUE (scope_id, name)
);

-- Erasures: lists of ids, never words. `epoch` is the erasure epoch at which one began.

CREATE TABLE erasures (
    id TEXT PRIMARY KEY,
    address TEXT NOT NULL,
    account TEXT NOT NULL,
    scopes TEXT NOT NULL,
    epoch INTEGER,
    made_at REAL NOT NULL,
    started_at REAL,
    done_at REAL,
    list TEXT NOT NULL
) WITHOUT ROWID;

-- Model calls with their tokens, and the reason why a session's prefix has changed since its last call.

CREATE TABLE model_calls (
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
    -- Why the cache was missed.
    miss TEXT,
    missed_tokens INTEGER NOT NULL DEFAULT 0,
    reply_id TEXT,
    account TEXT,
    turns INTEGER NOT NULL DEFAULT 0,
    -- Searches by the model's server, which have a price of their own.
    web_searches INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX model_calls_by_scope ON model_calls (scope_id, at);
CREATE INDEX model_calls_by_session ON model_calls (session_id, id) WHERE session_id IS NOT NULL;
CREATE INDEX model_calls_by_account ON model_calls (account, at);

CREATE TABLE prefix_breaks (
    session_id INTEGER PRIMARY KEY,
    cause TEXT NOT NULL
);

-- The last message or note that each memory service has received.
CREATE TABLE sync_watermarks (
    provider TEXT NOT NULL,
    subject TEXT NOT NULL,
    last_id INTEGER NOT NULL,
    PRIMARY KEY (provider, subject)
) WITHOUT ROWID;

-- The text indexes. They have external content: to delete a row, FTS5 needs the indexed text, which the views return
-- unchanged.

CREATE VIEW messages_words AS
SELECT messages.id AS id, indexed_words(messages.text) AS text, indexed_words(messages.tools) AS tools,
    '$scope' || sessions.scope_id AS scope
FROM messages JOIN sessions ON sessions.id = messages.session_id
WHERE messages.kind = 'chat';
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
    position INTEGER NOT NULL,
    first_id INTEGER NOT NULL,
    last_id INTEGER NOT NULL,
    message_count INTEGER NOT NULL,
    is_indexed INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX chunks_by_session ON chunks (session_id, position);
CREATE INDEX chunks_waiting ON chunks (id) WHERE is_indexed = 0;
CREATE TABLE chunk_counts (
    scope_id INTEGER PRIMARY KEY,
    chunk_count INTEGER NOT NULL
);
CREATE TRIGGER chunk_counted_after_insert AFTER INSERT ON chunks
BEGIN
    INSERT INTO chunk_counts (scope_id, chunk_count) VALUES (NEW.scope_id, 1)
    ON CONFLICT (scope_id) DO UPDATE SET chunk_count = chunk_count + 1;
END;
CREATE TRIGGER chunk_counted_after_delete AFTER DELETE ON chunks
BEGIN
    UPDATE chunk_counts SET chunk_count = chunk_count - 1 WHERE scope_id = OLD.scope_id;
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
-- Storing a message merges segments only if there are 8. Maintenance merges two at a time, because a search looks up
-- each word in each segment and, for a person with 50 chats, in each chat.
INSERT INTO messages_fts (messages_fts, rank) VALUES ('automerge', 0);
INSERT INTO messages_fts (messages_fts, rank) VALUES ('usermerge', 2);
INSERT INTO messages_fts (messages_fts, rank) VALUES ('crisismerge', 8);
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('automerge', 0);
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('usermerge', 2);
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('crisismerge', 8);
-- FTS5 collects changes in an eighth of the default memory. With the default, it keeps a hash table of the full size
-- after an import. Scanning the empty table took a tenth of the time of storing a message.
INSERT INTO messages_fts (messages_fts, rank) VALUES ('hashsize', 131072);
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('hashsize', 131072);
INSERT INTO state_meta (key, value) VALUES ('index_version', '$version');

-- While index_stale is set, these triggers do nothing.
CREATE TRIGGER message_indexed_after_insert AFTER INSERT ON messages
WHEN NEW.kind = 'chat' AND NOT EXISTS (SELECT 1 FROM state_meta WHERE key = 'index_stale')
BEGIN
    INSERT INTO messages_fts (rowid, text, tools, scope)
    SELECT id, text, tools, scope FROM messages_words WHERE id = NEW.id;
END;
-- Before a message is changed or deleted, it is removed from the indexes, and its chunk is marked to be indexed again.
CREATE TRIGGER message_unindexed_before_delete BEFORE DELETE ON messages
WHEN OLD.kind = 'chat' AND NOT EXISTS (SELECT 1 FROM state_meta WHERE key = 'index_stale')
BEGIN
    INSERT INTO messages_fts (messages_fts, rowid, text, tools, scope)
    SELECT 'delete', id, text, tools, scope FROM messages_words WHERE id = OLD.id;

    INSERT INTO chunks_fts (chunks_fts, rowid, terms) SELECT 'delete', id, terms FROM chunk_texts WHERE id IN (
        SELECT id FROM chunks WHERE session_id = OLD.session_id AND OLD.id BETWEEN first_id AND last_id
    );
    UPDATE chunks SET is_indexed = 0
    WHERE session_id = OLD.session_id AND OLD.id BETWEEN first_id AND last_id AND is_indexed = 1;
END;
CREATE TRIGGER message_unindexed_before_update BEFORE UPDATE OF text, tools, kind ON messages
WHEN OLD.kind = 'chat' AND NOT EXISTS (SELECT 1 FROM state_meta WHERE key = 'index_stale')
BEGIN
    INSERT INTO messages_fts (messages_fts, rowid, text, tools, scope)
    SELECT 'delete', id, text, tools, scope FROM messages_words WHERE id = OLD.id;

    INSERT INTO chunks_fts (chunks_fts, rowid, terms) SELECT 'delete', id, terms FROM chunk_texts WHERE id IN (
        SELECT id FROM chunks WHERE session_id = OLD.session_id AND OLD.id BETWEEN first_id AND last_id
    );
    UPDATE chunks SET is_indexed = 0
    WHERE session_id = OLD.session_id AND OLD.id BETWEEN first_id AND last_id AND is_indexed = 1;
END;
CREATE TRIGGER message_indexed_after_update AFTER UPDATE OF text, tools, kind ON messages
WHEN NEW.kind = 'chat' AND NOT EXISTS (SELECT 1 FROM state_meta WHERE key = 'index_stale')
BEGIN
    INSERT INTO messages_fts (rowid, text, tools, scope)
    SELECT id, text, tools, scope FROM messages_words WHERE id = NEW.id;
END;
-- A change during a rebuild restarts it.
CREATE TRIGGER rebuild_restarted_after_update AFTER UPDATE OF text, tools, kind ON messages
WHEN EXISTS (SELECT 1 FROM state_meta WHERE key = 'index_cursor')
BEGIN
    DELETE FROM state_meta WHERE key = 'index_cursor';
END;
CREATE TRIGGER rebuild_restarted_after_delete AFTER DELETE ON messages
WHEN EXISTS (SELECT 1 FROM state_meta WHERE key = 'index_cursor')
BEGIN
    DELETE FROM state_meta WHERE key = 'index_cursor';
END;

-- Vectors of messages for semantic search. See core/store/search/vectors.py.
CREATE TABLE message_vectors (
    message_id INTEGER PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    model TEXT NOT NULL,
    vector BLOB NOT NULL
);
CREATE TRIGGER vector_deleted_after_update AFTER UPDATE OF text, kind, sender_name ON messages
BEGIN
    DELETE FROM message_vectors WHERE message_id = OLD.id;
    UPDATE state_meta SET value = OLD.id - 1
    WHERE key = 'vectors_until' AND NEW.kind = 'chat' AND CAST(value AS INTEGER) >= OLD.id;
END;

-- Facts: statements about people and things, their history and their text index. When a message is edited or deleted,
-- the facts that were learned from it are deleted. A fact that was reworded since then stays, but the words of the
-- message are deleted from its history.

CREATE TABLE facts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    content TEXT NOT NULL,
    comparison_form TEXT NOT NULL,
    kind TEXT NOT NULL,
    attribute TEXT,
    value TEXT NOT NULL DEFAULT '',
    trust REAL NOT NULL,
    mention_count INTEGER NOT NULL DEFAULT 1,
    valid_from REAL,
    valid_to REAL,
    precision TEXT NOT NULL DEFAULT 'day',
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
CREATE INDEX facts_by_place ON facts (scope_id, is_pinned, closed_at IS NULL, last_at, id);
CREATE UNIQUE INDEX facts_open ON facts (scope_id, account, comparison_form) WHERE closed_at IS NULL;
CREATE INDEX facts_by_attribute ON facts (scope_id, attribute) WHERE attribute IS NOT NULL;
CREATE INDEX facts_by_message ON facts (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX facts_by_closer ON facts (closed_by) WHERE closed_by IS NOT NULL;

CREATE TABLE entities (
    id INTEGER PRIMARY KEY,
    scope_id INTEGER NOT NULL REFERENCES scopes (id),
    name TEXT NOT NULL,
    display_name TEXT NOT NULL,
    fact_count INTEGER NOT NULL DEFAULT 0,
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

-- The last message of a session that was read for facts, and the messages that must be read again.
CREATE TABLE fact_watermarks (
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
INSERT INTO facts_fts (facts_fts, rank) VALUES ('rank', 'bm25(1.0, 0.6)');
INSERT INTO state_meta (key, value) VALUES ('facts_version', '$version');

CREATE TRIGGER entity_counted_after_insert AFTER INSERT ON fact_entities
BEGIN
    UPDATE entities SET fact_count = fact_count + 1 WHERE id = NEW.entity_id;
END;
CREATE TRIGGER entity_counted_after_delete AFTER DELETE ON fact_entities
BEGIN
    UPDATE entities SET fact_count = fact_count - 1 WHERE id = OLD.entity_id;
    DELETE FROM entities WHERE id = OLD.entity_id AND fact_count <= 0;
END;
CREATE TRIGGER fact_parts_deleted_before_delete BEFORE DELETE ON facts
BEGIN
    DELETE FROM fact_entities WHERE fact_id = OLD.id;
    DELETE FROM fact_changes WHERE fact_id = OLD.id;
    DELETE FROM facts_fts WHERE rowid = OLD.id;
END;
-- If a fact that closed another one is deleted, the other one is closed by its successor, or becomes open again.
CREATE TRIGGER fact_reopened_after_delete AFTER DELETE ON facts
BEGIN
    UPDATE facts SET closed_by = OLD.closed_by, valid_to = COALESCE(OLD.valid_to, valid_to)
    WHERE closed_by = OLD.id AND OLD.closed_by IS NOT NULL;
    UPDATE OR IGNORE facts SET closed_at = NULL, closed_by = NULL, valid_to = NULL WHERE closed_by = OLD.id;
END;
CREATE TRIGGER fact_deleted_with_edited_message AFTER UPDATE OF text ON messages WHEN NEW.text <> OLD.text
BEGIN
    DELETE FROM facts WHERE message_id = OLD.id;
    DELETE FROM fact_changes WHERE fact_id IN (
        SELECT facts.id FROM fact_changes AS learned JOIN facts ON facts.id = learned.fact_id
        WHERE learned.message_id = OLD.id AND json_extract(learned.after, '$$.content') <> facts.content
    );
    DELETE FROM fact_rereads WHERE message_id = OLD.id;
    INSERT INTO fact_rereads (message_id)
    SELECT NEW.id WHERE NEW.role = 'user' AND NEW.kind = 'chat' AND NEW.text <> '';
END;
CREATE TRIGGER fact_deleted_with_message AFTER DELETE ON messages
BEGIN
    DELETE FROM facts WHERE message_id = OLD.id;
    DELETE FROM fact_rereads WHERE message_id = OLD.id;
    DELETE FROM fact_changes WHERE fact_id IN (
        SELECT facts.id FROM fact_changes AS learned JOIN facts ON facts.id = learned.fact_id
        WHERE learned.message_id = OLD.id AND json_extract(learned.after, '$$.content') <> facts.content
    );
END;
-- Facts that only undone messages support are deleted. If a message is redone, its facts are extracted again.
CREATE TRIGGER fact_deleted_with_undone_message AFTER UPDATE OF kind ON messages WHEN 'undone' IN (OLD.kind, NEW.kind)
BEGIN
    UPDATE facts SET mention_count = mention_count - 1, message_id = learned.message_id
    FROM fact_changes AS learned JOIN messages AS first ON first.id = learned.message_id AND first.kind = 'chat'
    WHERE facts.message_id = OLD.id AND NEW.kind = 'undone' AND learned.fact_id = facts.id
        AND learned.action = 'learn';
    DELETE FROM facts WHERE message_id = OLD.id AND NEW.kind = 'undone' AND NOT is_pinned;
    DELETE FROM pending_notes WHERE message_id = OLD.id AND NEW.kind = 'undone' AND target = 'fact';
    DELETE FROM fact_rereads WHERE message_id = OLD.id;
    INSERT INTO fact_rereads (message_id)
    SELECT NEW.id WHERE NEW.role = 'user' AND NEW.kind = 'chat' AND NEW.text <> '';
END;

-- The files that people send. `files` has one row per content, under the SHA-256 of its bytes, which are in the home.
-- `message_files` has one row per file of a message. Several messages may have the same content. `file_parts` has the
-- text of a file in parts, such as pages, with an index. See core/store/media/files.py.

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
    -- Why the file isn't stored, as a sentence.
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

-- Contents that no message uses any more. Their bytes are then deleted from the home.
CREATE TABLE file_removals (
    hash TEXT PRIMARY KEY
) WITHOUT ROWID;

CREATE TRIGGER file_part_unindexed_after_delete AFTER DELETE ON file_parts
BEGIN
    DELETE FROM files_fts WHERE rowid = OLD.id;
END;
CREATE TRIGGER file_joined_to_message AFTER INSERT ON messages
WHEN NEW.external_id IS NOT NULL AND instr(NEW.text, '[attached ')
BEGIN
    UPDATE message_files SET message_id = NEW.id
    WHERE address_id = NEW.address_id AND external_id = NEW.external_id;
END;
CREATE TRIGGER file_deleted_with_erased_message AFTER UPDATE OF text ON messages WHEN NEW.text = '' AND OLD.text <> ''
BEGIN
    DELETE FROM message_files WHERE message_id = OLD.id;
END;
CREATE TRIGGER file_deleted_with_message AFTER DELETE ON messages
BEGIN
    DELETE FROM message_files WHERE message_id = OLD.id;
END;
CREATE TRIGGER content_removed_with_last_file AFTER DELETE ON message_files
WHEN OLD.hash IS NOT NULL AND NOT EXISTS (SELECT 1 FROM message_files WHERE hash = OLD.hash)
BEGIN
    INSERT OR IGNORE INTO file_removals (hash) VALUES (OLD.hash);
    DELETE FROM files WHERE hash = OLD.hash;
END;

-- The key of the erasure journal. See `core.store.erasure.epoch.JOURNAL_META_KEY`.
INSERT INTO state_meta (key, value) VALUES ('erasure_key', lower(hex(randomblob(32))));
