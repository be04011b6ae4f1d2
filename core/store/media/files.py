"""Store the files that people send: their messages, their contents and their search index.

Each content is stored once, under its SHA-256 hash, even if several messages have it. A file
belongs to its message and to the message's scope, and refers to its content by hash. When a message
is erased, triggers delete its files in the same transaction. The hash of content that no message
uses any more is listed in `file_removals`, and `core/media/folder.py` deletes its bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from core.errors import StaleReadError
from core.store import rows
from core.store.engine import Connection, Database, Ranking, Row, in_list
from core.store.media.sent_forms import forget_file
from core.store.query import FILE_KINDS, FileHit, SearchFilters, SearchQuery
from core.store.rows import address_values, request_compaction, to_timestamp
from core.store.visibility import encode_list, scope_parameter, visible
from core.text.normalize import comparison_form, shorten
from core.text.terms import query_terms, terms_of
from core.types import Address, ErasureEpoch, Scope

# A search compares at most this many matching parts.
MAX_PARTS = 200
MAX_HITS = 3
SNIPPET_CHARS = 160
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """A part of the text of a file, such as a page."""

    # The place of the part in the file: "page 7", "0:42" or "sheet Costs". Empty for the whole
    # text.
    label: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContent:
    """The properties of a file's bytes, and the text that was read from them."""

    hash: str
    # The MIME type, detected from the bytes.
    type: str
    size: int
    pages: int | None = None
    duration_s: float | None = None
    width: int | None = None
    height: int | None = None
    # Why there is no text: a word of `core.media.decoding`, or "". See also `list_scanned_pages`.
    note: str = ""

    @property
    def is_video(self) -> bool:
        return self.type.startswith("video/")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedFile:
    """A file that was sent with a message."""

    # The row's id, or 0 for a file of an incognito conversation.
    id: int = 0
    scope: Scope
    address: Address
    # The platform's id of the message, and the file's position in it, from 0.
    external_id: str
    position: int
    message_id: int | None = None
    account: str = ""
    # The platform's word for the kind: "photo", "voice", "document" and so on.
    kind: str
    name: str
    mime: str | None = None
    size: int | None = None
    # The platform's id or URL of the file.
    reference: str | None = None
    # A word of `core.media.intake.Problem` that says why the file isn't stored, such as "failed".
    # Empty if it is stored or wasn't downloaded yet.
    problem: str = ""
    at: datetime
    # None if the file isn't stored.
    content: FileContent | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMatch:
    """A file that a search found, with the part of its text that matched."""

    file: AttachedFile
    # The best matching part, or None if only the name matches.
    part: FilePart | None = None
    score: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFilter:
    """The conditions that a file must meet to be found."""

    # A kind such as "photo" (see `FILE_KINDS`), or None for all.
    has: str | None = None
    # Part of the file's name.
    name: str = ""
    # The period in which the file was sent.
    after: datetime | None = None
    before: datetime | None = None


@dataclass(frozen=True, slots=True)
class FileUsage:
    """The number of files, and their total size in bytes."""

    files: int
    size: int


_CONTENT_COLUMNS = "type, files.size AS bytes, pages, duration_s, width, height, note"
SELECT_FILES = f"""
SELECT message_files.*, scopes.key AS scope, addresses.platform, addresses.chat_id,
    addresses.thread_id, {_CONTENT_COLUMNS}
FROM message_files JOIN scopes ON scopes.id = message_files.scope_id
JOIN addresses ON addresses.id = message_files.address_id
LEFT JOIN files ON files.hash = message_files.hash
"""
_IS_SHOWN = f"""
{visible("message_files.scope_id")} AND (message_files.message_id IS NULL OR EXISTS (
    SELECT 1 FROM messages WHERE messages.id = message_files.message_id AND kind <> 'undone'
))
"""
"""The condition that a person may see a file: its scope is visible, and its message isn't undone.
"""
_IS_OF_ADDRESS = f"message_files.address_id = ({rows.ADDRESS_ID})"
_INSERT_CONTENT = """
INSERT INTO files (hash, type, size, pages, duration_s, width, height, note)
VALUES (:hash, :type, :size, :pages, :duration_s, :width, :height, :note)
ON CONFLICT (hash) DO UPDATE SET type = excluded.type, pages = excluded.pages,
    duration_s = COALESCE(excluded.duration_s, files.duration_s), note = excluded.note,
    width = excluded.width, height = excluded.height
"""
INSERT_FILE = """
INSERT INTO message_files (scope_id, address_id, external_id, position, message_id, account, kind,
    name, mime, size, reference, hash, problem, at)
SELECT :scope_id, :address_id, :external_id, :position, (
        SELECT id FROM messages WHERE address_id = :address_id AND external_id = :external_id
    ), :account, :kind, :name, :mime, :size, :reference, :hash, :problem, :at
WHERE NOT EXISTS (
    SELECT 1 FROM messages WHERE address_id = :address_id AND external_id = :external_id
        AND kind = 'command' AND text = ''
)
ON CONFLICT (address_id, external_id, position) DO UPDATE SET
    hash = excluded.hash, problem = excluded.problem, size = excluded.size
"""
"""Inserts nothing if the message was erased in the meantime."""
_DELETE_REPLACED_FILE = """
DELETE FROM message_files
WHERE address_id = :address_id AND external_id = :external_id AND position = :position
    AND reference <> :reference RETURNING id, address_id, external_id, message_id
"""
_SELECT_ROW = """
SELECT 1 FROM message_files
WHERE address_id = :address_id AND external_id = :external_id AND position = :position
"""
MADE_PREFIX = "tool:"
"""The beginning of the `external_id` of a file that a tool made. Such a file has no id on a
platform."""
_INSERT_MADE_FILE = """
INSERT INTO message_files (scope_id, address_id, external_id, position, message_id, account, kind,
    name, mime, size, hash, at)
SELECT :scope_id, :address_id, :external_id, :position, id, :account, :kind, :name, :mime, :size,
    :hash, :at
FROM messages WHERE id = :message_id AND text <> ''
"""
"""Inserts nothing if the question was erased in the meantime."""
_INSERT_PART = """
INSERT INTO file_parts (hash, position, label, text) VALUES (:hash, :position, :label, :text)
"""
_SHOWN_FILES = f"""
    SELECT message_files.id, message_files.hash FROM message_files WHERE {_IS_SHOWN}
        AND (:kinds IS NULL OR {in_list("message_files.kind", "kinds")})
        AND (:name = '' OR instr(bare(message_files.name), :name) > 0)
        AND (:after IS NULL OR message_files.at >= :after)
        AND (:before IS NULL OR message_files.at < :before)
"""
_SELECT_BY_NAME = f"""
{SELECT_FILES} WHERE {_IS_SHOWN}
    AND (:kinds IS NULL OR {in_list("message_files.kind", "kinds")})
    AND (:name = '' OR instr(bare(message_files.name), :name) > 0)
    AND (:after IS NULL OR message_files.at >= :after)
    AND (:before IS NULL OR message_files.at < :before)
ORDER BY message_files.id DESC LIMIT :limit
"""
_COUNT_SCOPES = "SELECT COUNT(DISTINCT scope_id) FROM message_files WHERE hash = :hash"
# The label of a part with a description. Parts of documents and recordings have other labels.
DESCRIPTION_LABEL = ""
"""The label of the part that describes a picture."""
_SELECT_ORPHANS = """
SELECT id FROM message_files WHERE message_id IS NULL AND at < :before
    AND NOT EXISTS (
        SELECT 1 FROM inbox WHERE inbox.address_id = message_files.address_id
            AND inbox.external_id = message_files.external_id
    )
"""


# The signs that may surround a name in a question.
_SIGNS = "?!.,:;…()[]{}<>\"'“”„\u201a\u2018\u2019«»\u2039\u203a「」『』（）【】、。，？！：；¿¡*_`"
_SELECT_PARTS = "SELECT label, text FROM file_parts WHERE hash = :hash ORDER BY position"
_SELECT_CONTENT = "SELECT *, size AS bytes FROM files WHERE hash = :hash"


class Files:
    """Stores, loads and searches the files of messages in state.db."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def store(
        self,
        file: AttachedFile,
        parts: Sequence[FilePart] = (),
        epoch: ErasureEpoch | None = None,
        *,
        needs_row: bool = False,
    ) -> AttachedFile:
        """Store a file of a message with its content, and return the stored row.

        A file with another reference at the same position of the message is replaced. `parts`
        replaces the stored text of the content. Raises StaleReadError if the message was erased,
        or if `needs_row` and the file has no row, because it was removed.
        """

        def write(connection: Connection) -> AttachedFile:
            """Store the content and the file, unless the message was erased."""
            content = file.content
            values = file_values(connection, file)
            if needs_row and connection.execute(_SELECT_ROW, values).fetchone() is None:
                raise StaleReadError("file_removed")
            # First, because the trigger of the deletion may delete the content.
            for file_id, *file_row in connection.execute(_DELETE_REPLACED_FILE, values).fetchall():
                forget_file(connection, file_id, file_row)
            if content is not None:
                _store_content(connection, content, parts)
            is_made = file.external_id.startswith(MADE_PREFIX)
            statement = _INSERT_MADE_FILE if is_made else INSERT_FILE
            if not connection.execute(statement, values).rowcount:
                raise StaleReadError("message_erased")
            if content is not None and content.width is not None:
                _drop_shared_description(connection, content.hash)
            return _load_of_message(connection, file.address, [file.external_id], file.position)[0]

        return await self._database.write(write, epoch)

    async def store_parts(self, content: FileContent, parts: Sequence[FilePart]) -> None:
        """Replace the text of a content, for example after a transcription."""

        def write(connection: Connection) -> None:
            known = connection.execute(
                "SELECT 1 FROM files WHERE hash = :hash", {"hash": content.hash}
            ).fetchone()
            if known is not None:
                _store_content(connection, content, parts)

        await self._database.write(write)

    async def describe(self, content_hash: str, text: str) -> None:
        """Store the description of a picture or video, if it has none yet.

        Nothing is stored if files in several scopes have the same bytes, because the description
        may repeat what people said in one of them.
        """

        def write(connection: Connection) -> None:
            """Add the description as a part of the content, unless it must not be stored."""
            values = {"hash": content_hash}
            row = connection.execute(_SELECT_CONTENT, values).fetchone()
            scopes = connection.execute(_COUNT_SCOPES, values).fetchone()[0]
            parts = [
                FilePart(label=part["label"], text=part["text"])
                for part in connection.execute(_SELECT_PARTS, values)
            ]
            is_described = any(part.label == DESCRIPTION_LABEL for part in parts)
            if row is None or row["width"] is None or scopes != 1 or is_described:
                return
            parts.append(FilePart(label=DESCRIPTION_LABEL, text=text))
            _store_content(connection, _read_content(row), parts)

        await self._database.write(write)

    async def load_of_messages(
        self, address: Address, external_ids: Sequence[str]
    ) -> list[AttachedFile]:
        """Return the files of these messages at an address, in order."""
        return await self._database.read(
            partial(_load_of_message, address=address, external_ids=external_ids)
        )

    async def load_by_message_id(
        self, message_id: int, scopes: frozenset[Scope]
    ) -> list[AttachedFile]:
        """Return the files of a stored message, if it is visible in these scopes."""
        statement = f"""
            {SELECT_FILES} WHERE message_files.message_id = :id AND {_IS_SHOWN} ORDER BY position
        """
        values = {"id": message_id, "scopes": scope_parameter(scopes)}
        return [read_file(row) for row in await self._database.fetch_all(statement, values)]

    async def load_by_message_ids(
        self, message_ids: Sequence[int], scopes: frozenset[Scope]
    ) -> list[AttachedFile]:
        """Return the files of the messages that are visible in these scopes, in order."""
        statement = f"""
            {SELECT_FILES} WHERE {in_list("message_files.message_id", "ids")} AND {_IS_SHOWN}
            ORDER BY message_files.message_id, position
        """
        values = {"ids": encode_list(message_ids), "scopes": scope_parameter(scopes)}
        return [read_file(row) for row in await self._database.fetch_all(statement, values)]

    async def find(self, file_id: int, scopes: frozenset[Scope]) -> AttachedFile | None:
        """Return a file by its id, or None if it isn't visible in these scopes."""
        statement = f"{SELECT_FILES} WHERE message_files.id = :id AND {_IS_SHOWN}"
        values = {"id": rows.int64_or_zero(file_id), "scopes": scope_parameter(scopes)}
        row = await self._database.fetch_one(statement, values)
        return None if row is None else read_file(row)

    async def find_content(self, content_hash: str) -> FileContent | None:
        """Return the content with this hash, or None if it isn't stored."""
        statement = (
            f"SELECT hash, {_CONTENT_COLUMNS} FROM files WHERE hash = :hash AND EXISTS "
            "(SELECT 1 FROM message_files WHERE message_files.hash = files.hash)"
        )
        row = await self._database.fetch_one(statement, {"hash": content_hash})
        return None if row is None else _read_content(row)

    async def load_parts(self, content_hash: str) -> list[FilePart]:
        """Return the parts of a content's text, in order."""
        part_rows = await self._database.fetch_all(_SELECT_PARTS, {"hash": content_hash})
        return [FilePart(label=row["label"], text=row["text"]) for row in part_rows]

    async def search(
        self, text: str, scopes: frozenset[Scope], file_filter: FileFilter, limit: int
    ) -> list[FileMatch]:
        """Find files by their text, then files by their name, both best first.

        Without words, return the latest files.
        """
        return await self._database.read(
            partial(_search, text=text, scopes=scopes, file_filter=file_filter, limit=limit)
        )

    async def list_latest(
        self, scopes: frozenset[Scope], file_filter: FileFilter, limit: int
    ) -> list[AttachedFile]:
        """Return the latest files, newest first."""
        return await self._database.read(
            partial(_list_by_name, scopes=scopes, file_filter=file_filter, limit=limit)
        )

    async def list_untranscribed(self, scopes: frozenset[Scope]) -> list[AttachedFile]:
        """Return voice notes, recordings and videos without text, oldest first."""
        statement = f"""
            {SELECT_FILES} WHERE {_IS_SHOWN} AND (
                    {in_list("message_files.kind", "kinds")}
                    AND message_files.hash IN (SELECT hash FROM files)
                    OR message_files.hash IN (
                        SELECT hash FROM files WHERE note IN ('unheard', 'inaudible')
                    )
                )
                AND message_files.hash NOT IN (SELECT hash FROM file_parts)
            ORDER BY message_files.id
        """
        values = {
            "scopes": scope_parameter(scopes),
            "kinds": encode_list(FILE_KINDS["voice"]),
        }
        return [read_file(row) for row in await self._database.fetch_all(statement, values)]

    async def measure_usage(self, accounts: Iterable[str] | None = None) -> FileUsage:
        """Count the files of these accounts, and measure the space that they take.

        Equal bytes take space only once. Without `accounts`, all files are measured.
        """
        condition = ""
        values: dict[str, Any] = {}
        if accounts is not None:
            condition = f"AND {in_list('message_files.account', 'accounts')}"
            values["accounts"] = encode_list(accounts)
        row = await self._database.fetch_one(
            f"""
            SELECT COALESCE(SUM(size), 0) AS size, (
                SELECT COUNT(*) FROM message_files WHERE hash IS NOT NULL {condition}
            ) AS files
            FROM files WHERE EXISTS (
                SELECT 1 FROM message_files WHERE message_files.hash = files.hash {condition}
            )
            """,
            values,
        )
        assert row is not None
        return FileUsage(row["files"], row["size"])

    async def remove(self, file_id: int, scopes: frozenset[Scope]) -> bool:
        """Remove a file from its message, and its text from what the model gets.

        Returns False if the file isn't visible in these scopes.
        """

        def write(connection: Connection) -> bool:
            request_compaction(connection)
            values = {"id": rows.int64_or_zero(file_id), "scopes": scope_parameter(scopes)}
            statement = f"""
                DELETE FROM message_files WHERE id = :id AND {_IS_SHOWN}
                RETURNING address_id, external_id, message_id
            """
            removed_rows = connection.execute(statement, values).fetchall()
            for row in removed_rows:
                forget_file(connection, file_id, row)
            return bool(removed_rows)

        return await self._database.write(write)

    async def drop_orphans(self, before: datetime) -> None:
        """Delete files that are older than `before` and whose message was never stored."""
        values = {"before": to_timestamp(before)}
        orphan_rows = await self._database.fetch_all(_SELECT_ORPHANS, values)
        if orphan_rows:
            ids = encode_list(row["id"] for row in orphan_rows)
            statement = f"DELETE FROM message_files WHERE {in_list('id', 'ids')}"
            await self._database.execute(statement, {"ids": ids})

    async def list_removals(self) -> list[str]:
        """Return the hashes of the contents whose bytes must be deleted."""
        removal_rows = await self._database.fetch_all(
            "SELECT hash FROM file_removals WHERE hash NOT IN (SELECT hash FROM files)"
        )
        return [row["hash"] for row in removal_rows]

    async def forget_removals(self, hashes: Sequence[str]) -> None:
        """Remove contents from the deletion list.

        Call this after the bytes were deleted, or if they are needed again.
        """
        statement = (
            f"DELETE FROM file_removals WHERE {in_list('hash', 'hashes')} "
            "OR hash IN (SELECT hash FROM files)"
        )
        await self._database.execute(statement, {"hashes": encode_list(hashes)})


def find_files(connection: Connection, query: SearchQuery) -> tuple[FileHit, ...]:
    """Return the files that match a search of the history, best first.

    Returns no files if the search has a filter that doesn't apply to files, such as a sender.
    """
    filters = query.filters
    filters_for_files = SearchFilters(
        file_kind=filters.file_kind,
        file_name=filters.file_name,
        after=filters.after,
        before=filters.before,
    )
    if filters != filters_for_files or query.limits.page > 1:
        return ()
    if not query.text.strip() and not (filters.file_kind or filters.file_name):
        return ()
    matches = _search(
        connection,
        text=query.text,
        scopes=query.scopes,
        file_filter=FileFilter(
            has=filters.file_kind,
            name=filters.file_name,
            after=filters.after,
            before=filters.before,
        ),
        limit=MAX_HITS,
    )
    terms = frozenset(query_terms(query.text))
    return tuple(_make_hit(connection, match, terms) for match in matches)


def _make_hit(connection: Connection, match: FileMatch, terms: frozenset[str]) -> FileHit:
    """Return a match with the text around the words, or the beginning if only the name matches."""
    file = match.file
    place = ""
    snippet = ""
    if match.part is not None:
        place = match.part.label
        snippet = find_snippet(match.part.text, terms)
    elif terms and file.content is not None:
        row = connection.execute(f"{_SELECT_PARTS} LIMIT 1", {"hash": file.content.hash}).fetchone()
        snippet = "" if row is None else shorten(" ".join(row["text"].split()), SNIPPET_CHARS)
    return FileHit(file.id, file.name, file.kind, place, snippet, file.at, file.message_id)


def find_snippet(text: str, terms: frozenset[str]) -> str:
    """Return the sentence that contains the most search terms, shortened."""
    best = ""
    best_count = -1
    for sentence in _SENTENCE_END.split(text):
        count = len(terms.intersection(terms_of(sentence)))
        if count > best_count and sentence.strip():
            best = sentence
            best_count = count
    return shorten(" ".join(best.split()), SNIPPET_CHARS)


def _store_content(connection: Connection, content: FileContent, parts: Sequence[FilePart]) -> None:
    """Store a content and its text. An earlier text of the content is replaced."""
    values = rows.field_values(content)
    connection.execute(_INSERT_CONTENT, values)
    connection.execute("DELETE FROM file_removals WHERE hash = :hash", values)
    connection.execute("DELETE FROM file_parts WHERE hash = :hash", values)
    for position, part in enumerate(parts):
        part_id = rows.insert(
            connection,
            _INSERT_PART,
            {
                "hash": content.hash,
                "position": position,
                "label": rows.clean(part.label),
                "text": rows.clean(part.text),
            },
        )
        connection.index.index_file_part(connection, part_id, part.text)


def _drop_shared_description(connection: Connection, content_hash: str) -> None:
    """Delete a picture's description if files in several scopes now have the same bytes."""
    values = {"hash": content_hash, "label": DESCRIPTION_LABEL}
    if connection.execute(_COUNT_SCOPES, values).fetchone()[0] > 1:
        connection.execute("DELETE FROM file_parts WHERE hash = :hash AND label = :label", values)


def file_values(connection: Connection, file: AttachedFile) -> dict[str, object]:
    """Return the columns of a file."""
    return {
        "scope_id": rows.ensure_scope(connection, file.scope),
        "address_id": rows.ensure_address(connection, file.address),
        "external_id": rows.clean(file.external_id),
        "position": file.position,
        "message_id": file.message_id,
        "account": file.account,
        "kind": file.kind,
        "name": rows.clean(file.name),
        "mime": rows.clean_optional(file.mime),
        "size": file.size,
        "reference": rows.clean_optional(file.reference),
        "hash": None if file.content is None else file.content.hash,
        "problem": file.problem,
        "at": to_timestamp(file.at),
    }


def _load_of_message(
    connection: Connection,
    address: Address,
    external_ids: Sequence[str],
    position: int | None = None,
) -> list[AttachedFile]:
    """Return the files of these messages.

    With `position`, return only the file at that position.
    """
    statement = f"""
        {SELECT_FILES} WHERE {_IS_OF_ADDRESS} AND {in_list("message_files.external_id", "ids")}
            AND (:position IS NULL OR position = :position)
        ORDER BY message_files.external_id, position
    """
    values = {
        **address_values(address),
        "ids": encode_list(map(rows.clean, external_ids)),
        "position": position,
    }
    return [read_file(row) for row in connection.execute(statement, values)]


def _search(
    connection: Connection,
    *,
    text: str,
    scopes: frozenset[Scope],
    file_filter: FileFilter,
    limit: int,
) -> list[FileMatch]:
    """Find files by words of their text, then by words of their name."""
    terms = query_terms(text)
    if not terms:
        latest = _list_by_name(connection, scopes=scopes, file_filter=file_filter, limit=limit)
        return [] if text.strip() else [FileMatch(file=file) for file in latest]
    matches: dict[int, FileMatch] = {}
    for needs_all in (True, False):
        ranking = connection.index.rank_file_parts(terms, needs_all=needs_all)
        for match in _match_parts(connection, ranking, scopes, file_filter):
            matches.setdefault(match.file.id, match)
        if matches:
            break
    for word in _list_name_words(text):
        named = replace(file_filter, name=word)
        for file in _list_by_name(connection, scopes=scopes, file_filter=named, limit=limit):
            if comparison_form(file_filter.name) in comparison_form(file.name):
                matches.setdefault(file.id, FileMatch(file=file))
    return list(matches.values())[:limit]


def _list_name_words(text: str) -> list[str]:
    """Return the words of a query that may be part of a name, without signs around them."""
    words = [word.strip(_SIGNS) for word in text.split()]
    return [word for word in words if query_terms(word)]


def _match_parts(
    connection: Connection, ranking: Ranking, scopes: frozenset[Scope], file_filter: FileFilter
) -> list[FileMatch]:
    """Return the files that `ranking` selects, each with its best matching part."""
    statement = f"""
        WITH shown AS ({_SHOWN_FILES})
        SELECT file_parts.label, file_parts.text, found.score, shown.id
        FROM ({ranking.sql}) AS found
        JOIN file_parts ON file_parts.id = found.part_id
        JOIN shown ON shown.hash = file_parts.hash
        ORDER BY found.score, shown.id DESC LIMIT :limit
    """
    values = {**_filter_values(scopes, file_filter), **ranking.values, "limit": MAX_PARTS}
    matches: dict[int, FileMatch] = {}
    for label, text, score, file_id in connection.execute(statement, values).fetchall():
        if file_id in matches:
            continue
        statement = f"{SELECT_FILES} WHERE message_files.id = :id"
        row = connection.execute(statement, {"id": file_id}).fetchone()
        part = FilePart(label=label, text=text)
        matches[file_id] = FileMatch(file=read_file(row), part=part, score=-score)
    return list(matches.values())


def _list_by_name(
    connection: Connection, *, scopes: frozenset[Scope], file_filter: FileFilter, limit: int
) -> list[AttachedFile]:
    values = {**_filter_values(scopes, file_filter), "limit": limit}
    return [read_file(row) for row in connection.execute(_SELECT_BY_NAME, values)]


def _filter_values(scopes: frozenset[Scope], file_filter: FileFilter) -> dict[str, object]:
    """Return the parameters of a search for files."""
    kinds = None
    if file_filter.has is not None:
        kinds = encode_list(FILE_KINDS.get(file_filter.has, (file_filter.has,)))
    name = comparison_form(rows.clean(file_filter.name)).strip()
    return {
        "scopes": scope_parameter(scopes),
        "kinds": kinds,
        "name": name,
        "after": file_filter.after,
        "before": file_filter.before,
    }


def read_file(row: Row) -> AttachedFile:
    """Convert a row of `SELECT_FILES` to a file."""
    content = None
    if row["hash"] is not None and row["type"] is not None:
        content = _read_content(row)
    return AttachedFile(
        id=row["id"],
        scope=Scope(key=row["scope"]),
        address=rows.read_address(row),
        external_id=row["external_id"],
        position=row["position"],
        message_id=row["message_id"],
        account=row["account"] or "",
        kind=row["kind"],
        name=row["name"],
        mime=row["mime"],
        size=row["size"],
        reference=row["reference"],
        problem=row["problem"],
        at=rows.to_datetime(row["at"]),
        content=content,
    )


def _read_content(row: Row) -> FileContent:
    """Convert a row to the content of a file."""
    return FileContent(
        hash=row["hash"],
        type=row["type"],
        size=row["bytes"],
        pages=row["pages"],
        duration_s=row["duration_s"],
        width=row["width"],
        height=row["height"],
        note=row["note"],
    )
