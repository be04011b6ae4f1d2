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
        WHERE told.message_id = OLD.id AND json_extract(told.after, '$.content') <> facts.content
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
        WHERE told.message_id = OLD.id AND json_extract(told.after, '$.content') <> facts.content
    );
END;
