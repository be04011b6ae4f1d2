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
