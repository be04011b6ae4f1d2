-- The SQL functions that statements written for both engines call. Each connection that creates or upgrades the schema
-- runs this script, so a changed function needs no step in upgrades.sql.

-- A document may have the escape \u0000 for the character NUL, which jsonb refuses. It is read as the replacement
-- character.
CREATE OR REPLACE FUNCTION read_json(document text) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN strpos(document, '\u0000') = 0 THEN document::jsonb
        ELSE regexp_replace(document, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g')::jsonb END
$$;
CREATE OR REPLACE FUNCTION json_each(list text) RETURNS TABLE (key bigint, value text) LANGUAGE sql IMMUTABLE AS $$
    SELECT place - 1, item FROM jsonb_array_elements_text(read_json(list)) WITH ORDINALITY AS items (item, place)
$$;
CREATE OR REPLACE FUNCTION json_extract(document text, path text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_path_query_first(read_json(document), path::jsonpath) #>> '{}'
$$;
CREATE OR REPLACE FUNCTION json_field(document text, name text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT read_json(document) ->> name
$$;
CREATE OR REPLACE FUNCTION json_valid(document text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    PERFORM read_json(document);
    RETURN TRUE;
EXCEPTION WHEN invalid_text_representation OR untranslatable_character THEN
    RETURN FALSE;
END;
$$;
CREATE OR REPLACE FUNCTION json_array_length(list text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE jsonb_typeof(read_json(list)) WHEN 'array' THEN jsonb_array_length(read_json(list)) ELSE 0 END
$$;
-- Paths are ``$.name``. The values of json_set are texts.
CREATE OR REPLACE FUNCTION json_remove(document text, VARIADIC paths text[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT (read_json(document) - ARRAY(SELECT substr(path, 3) FROM unnest(paths) AS path))::text
$$;
CREATE OR REPLACE FUNCTION json_set(document text, VARIADIC pairs text[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT (read_json(document) || (
        SELECT jsonb_object_agg(substr(pairs[place], 3), pairs[place + 1])
        FROM generate_series(1, array_length(pairs, 1), 2) AS place
    ))::text
$$;
CREATE OR REPLACE FUNCTION append_to_json(list jsonb, item text) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT list || jsonb_build_array(item)
$$;
CREATE OR REPLACE FUNCTION json_as_text(list jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT list::text
$$;
CREATE OR REPLACE FUNCTION instr(haystack text, needle text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
    SELECT strpos(haystack, needle)
$$;
CREATE OR REPLACE FUNCTION append_with_separator(list text, item text, separator text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN item IS NULL THEN list WHEN list IS NULL THEN item ELSE list || separator || item END
$$;
CREATE OR REPLACE FUNCTION append_to_list(list text, item text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN item IS NULL THEN list WHEN list IS NULL THEN item ELSE list || ',' || item END
$$;
CREATE OR REPLACE FUNCTION add_to_total(total double precision, number double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE AS $$
    SELECT total + COALESCE(number, 0)
$$;

-- Each write of a gateway calls this first. A gateway without a row was given up, and its chats belong to others.
CREATE OR REPLACE FUNCTION check_gateway(gateway bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM gateways WHERE id = gateway) THEN
        RAISE EXCEPTION 'gateway % was given up', gateway USING ERRCODE = 'MN001';
    END IF;
END;
$$;
