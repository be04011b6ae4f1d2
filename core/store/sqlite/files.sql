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
