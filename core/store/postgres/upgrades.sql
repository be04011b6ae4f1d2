-- The steps from each earlier version of the schema to the next one. Each section begins with the version that it leads
-- to. schema.py runs the missing sections, then functions.sql, in one transaction.

-- version 2
-- JSON with the escape \u0000: only functions.sql has changed.

-- version 3
CREATE INDEX facts_by_place ON facts (scope_id, is_pinned, (closed_at IS NULL), last_at, id);

-- version 4
CREATE SEQUENCE gateway_numbers;
CREATE TABLE gateways (
    id bigint PRIMARY KEY DEFAULT nextval('gateway_numbers'),
    joined_at double precision NOT NULL
);
CREATE TABLE chat_owners (
    chat text COLLATE "C" PRIMARY KEY,
    gateway_id bigint NOT NULL REFERENCES gateways (id) ON DELETE CASCADE
);
CREATE INDEX chat_owners_by_gateway ON chat_owners (gateway_id);

-- version 5
ALTER TABLE skills ADD COLUMN is_pinned boolean NOT NULL DEFAULT FALSE;

-- version 6
-- Chunks also have marks for words that occur three and six times, so the text indexes are built again.
INSERT INTO state_meta (key, value) VALUES ('index_stale', '1') ON CONFLICT (key) DO UPDATE SET value = '1';
DELETE FROM state_meta WHERE key = 'index_cursor';

-- version 7
-- Chunks also have marks for words that occur eight times, so the text indexes are built again.
INSERT INTO state_meta (key, value) VALUES ('index_stale', '1') ON CONFLICT (key) DO UPDATE SET value = '1';
DELETE FROM state_meta WHERE key = 'index_cursor';
