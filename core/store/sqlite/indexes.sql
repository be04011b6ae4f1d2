
-- The text indexes. $$shown is what people may see of a session, $$scope begins the word that names a scope.
-- The views give exactly what is indexed, because FTS5 needs that to delete.
CREATE INDEX messages_shown ON messages (session_id, id)
WHERE $shown;

CREATE VIEW messages_words AS
SELECT messages.id AS id, spaced_words(messages.text) AS text, spaced_words(messages.tools) AS tools,
    '$scope' || sessions.scope_id AS scope
FROM messages JOIN sessions ON sessions.id = messages.session_id
WHERE messages.kind = 'chat';

CREATE VIEW messages_runs AS
SELECT id, runs FROM (
    SELECT id, unspaced_runs(text, tools) AS runs FROM messages WHERE kind = 'chat'
) WHERE runs <> '';

CREATE VIEW messages_pairs AS
SELECT id, pairs, scope FROM (
    SELECT messages.id AS id, unspaced_pairs(messages.text, messages.tools) AS pairs,
        '$scope' || sessions.scope_id AS scope
    FROM messages JOIN sessions ON sessions.id = messages.session_id
    WHERE messages.kind = 'chat'
) WHERE pairs <> '';

CREATE VIRTUAL TABLE messages_fts USING fts5(
    text, tools, scope, content = 'messages_words', content_rowid = 'id',
    tokenize = "unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);
CREATE VIRTUAL TABLE messages_fts_trigram USING fts5(
    runs, content = 'messages_runs', content_rowid = 'id', tokenize = 'trigram'
);
CREATE VIRTUAL TABLE messages_fts_pairs USING fts5(
    pairs, scope, content = 'messages_pairs', content_rowid = 'id',
    tokenize = "unicode61 remove_diacritics 0 categories 'L* N* Co Mn Mc'"
);
INSERT INTO messages_fts (messages_fts, rank) VALUES ('rank', 'bm25(1.0, 0.5, 0.0)');
INSERT INTO messages_fts_pairs (messages_fts_pairs, rank) VALUES ('rank', 'bm25(1.0, 0.0)');

-- Stretches of messages as documents. The counts say how many each scope has.
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
-- No merging while a message is written, unless 64 segments have piled up: maintenance does it.
INSERT INTO messages_fts (messages_fts, rank) VALUES ('automerge', 0);
INSERT INTO messages_fts (messages_fts, rank) VALUES ('crisismerge', 64);
INSERT INTO messages_fts_trigram (messages_fts_trigram, rank) VALUES ('automerge', 0);
INSERT INTO messages_fts_trigram (messages_fts_trigram, rank) VALUES ('crisismerge', 64);
INSERT INTO messages_fts_pairs (messages_fts_pairs, rank) VALUES ('automerge', 0);
INSERT INTO messages_fts_pairs (messages_fts_pairs, rank) VALUES ('crisismerge', 64);
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('automerge', 0);
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('crisismerge', 64);
INSERT INTO state_meta (key, value) VALUES ('index_version', '$version');
-- While index_stale is set the triggers rest.
CREATE TRIGGER messages_indexed AFTER INSERT ON messages WHEN NEW.kind = 'chat' AND NOT EXISTS (SELECT 1 FROM state_meta WHERE key = 'index_stale')
BEGIN
    INSERT INTO messages_fts (rowid, text, tools, scope) SELECT id, text, tools, scope FROM messages_words WHERE id = NEW.id;
END;
-- More than ASCII: most messages have nothing for these two, and to find that out takes as long as the first.
CREATE TRIGGER messages_indexed_wide AFTER INSERT ON messages WHEN NEW.kind = 'chat' AND (length(NEW.text) <> length(CAST(NEW.text AS BLOB)) OR length(NEW.tools) <> length(CAST(NEW.tools AS BLOB))) AND NOT EXISTS (SELECT 1 FROM state_meta WHERE key = 'index_stale')
BEGIN
    INSERT INTO messages_fts_trigram (rowid, runs) SELECT id, runs FROM messages_runs WHERE id = NEW.id;
    INSERT INTO messages_fts_pairs (rowid, pairs, scope) SELECT id, pairs, scope FROM messages_pairs WHERE id = NEW.id;
END;
-- Before a message changes or goes, it leaves the indexes, and its chunk waits to be indexed again.
CREATE TRIGGER messages_unindexed BEFORE DELETE ON messages WHEN OLD.kind = 'chat' AND NOT EXISTS (SELECT 1 FROM state_meta WHERE key = 'index_stale')
BEGIN
    INSERT INTO messages_fts (messages_fts, rowid, text, tools, scope) SELECT 'delete', id, text, tools, scope FROM messages_words WHERE id = OLD.id;
    INSERT INTO messages_fts_trigram (messages_fts_trigram, rowid, runs) SELECT 'delete', id, runs FROM messages_runs WHERE id = OLD.id;
    INSERT INTO messages_fts_pairs (messages_fts_pairs, rowid, pairs, scope) SELECT 'delete', id, pairs, scope FROM messages_pairs WHERE id = OLD.id;

    INSERT INTO chunks_fts (chunks_fts, rowid, terms) SELECT 'delete', id, terms FROM chunk_texts WHERE id IN (
        SELECT id FROM chunks WHERE session_id = OLD.session_id AND OLD.id BETWEEN first_id AND last_id
    );
    UPDATE chunks SET is_indexed = 0
    WHERE session_id = OLD.session_id AND OLD.id BETWEEN first_id AND last_id AND is_indexed = 1;
END;
CREATE TRIGGER messages_changing BEFORE UPDATE OF text, tools, kind ON messages WHEN OLD.kind = 'chat' AND NOT EXISTS (SELECT 1 FROM state_meta WHERE key = 'index_stale')
BEGIN
    INSERT INTO messages_fts (messages_fts, rowid, text, tools, scope) SELECT 'delete', id, text, tools, scope FROM messages_words WHERE id = OLD.id;
    INSERT INTO messages_fts_trigram (messages_fts_trigram, rowid, runs) SELECT 'delete', id, runs FROM messages_runs WHERE id = OLD.id;
    INSERT INTO messages_fts_pairs (messages_fts_pairs, rowid, pairs, scope) SELECT 'delete', id, pairs, scope FROM messages_pairs WHERE id = OLD.id;

    INSERT INTO chunks_fts (chunks_fts, rowid, terms) SELECT 'delete', id, terms FROM chunk_texts WHERE id IN (
        SELECT id FROM chunks WHERE session_id = OLD.session_id AND OLD.id BETWEEN first_id AND last_id
    );
    UPDATE chunks SET is_indexed = 0
    WHERE session_id = OLD.session_id AND OLD.id BETWEEN first_id AND last_id AND is_indexed = 1;
END;
CREATE TRIGGER messages_changed AFTER UPDATE OF text, tools, kind ON messages WHEN NEW.kind = 'chat' AND NOT EXISTS (SELECT 1 FROM state_meta WHERE key = 'index_stale')
BEGIN
    INSERT INTO messages_fts (rowid, text, tools, scope) SELECT id, text, tools, scope FROM messages_words WHERE id = NEW.id;
    INSERT INTO messages_fts_trigram (rowid, runs) SELECT id, runs FROM messages_runs WHERE id = NEW.id;
    INSERT INTO messages_fts_pairs (rowid, pairs, scope) SELECT id, pairs, scope FROM messages_pairs WHERE id = NEW.id;
END;
-- A change during a rebuild begins it anew.
CREATE TRIGGER messages_changed_in_rebuild AFTER UPDATE OF text, tools, kind ON messages WHEN EXISTS (SELECT 1 FROM state_meta WHERE key = 'index_cursor')
BEGIN
    DELETE FROM state_meta WHERE key = 'index_cursor';
END;
CREATE TRIGGER messages_deleted_in_rebuild AFTER DELETE ON messages WHEN EXISTS (SELECT 1 FROM state_meta WHERE key = 'index_cursor')
BEGIN
    DELETE FROM state_meta WHERE key = 'index_cursor';
END;
