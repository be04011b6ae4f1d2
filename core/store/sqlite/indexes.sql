
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
