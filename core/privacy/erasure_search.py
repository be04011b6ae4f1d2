"""Finds the rows of state.db to erase: messages that match a query, and their copies.

Messages are found with the search index that recall uses. Copies are rows that contain the words of
the query or repeat passages from the messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from core.errors import Refused
from core.privacy.file_quotes import add_file_quotes
from core.privacy.quotes import QuoteMatcher
from core.search.query import plan_inflected
from core.store.engine import Connection, Row
from core.store.erasure import expiry, statements
from core.store.erasure.statements import ErasureItem, ErasureList, ErasureRequest
from core.store.query import DEFAULT_ROLES, SearchPlan, SearchQuery
from core.store.rows import load_inbound, to_datetime
from core.store.search.text_search import TextSearch, is_stale, latest_message_id
from core.store.visibility import encode_list
from core.text.terms import stop_words

# The maximum number of messages for a query that has filters but no words.
MAX_MESSAGES = 100_000
# Copies are searched for with the texts of this many messages, the newest ones.
MAX_QUOTED_MESSAGES = 2_000
# A repeating line is looked for in texts of at most this length.
MAX_SCANNED_CHARS = 20_000
# Kinds of copies that always belong to the person who asks, even in a group.
_OWN_KINDS = ("facts", "jobs", "pending_notes", "updates", "own_quotes")
# Kinds of copies that are listed for the person, and the kind of their items.
_SHOWN_KINDS: Mapping[str, Literal["fact", "job", "file"]] = {
    "facts": "fact",
    "jobs": "job",
    "files": "file",
}
# Kinds of copies that are listed as repetitions, and the name of their kind in the list. The texts
# of other kinds aren't readable.
_REPEAT_KINDS = {
    "titles": "title",
    "quotes": "quote",
    "own_quotes": "quote",
    "fact_changes": "version",
    "note_changes": "version",
    "skill_changes": "version",
    "senders": "name",
}
# The kinds of copies other than files. Answers that quote files are found first.
_OTHER_KINDS = tuple(kind for kind in statements.COPY_STATEMENTS if kind != "files")
# Kinds of messages that are written for the model, partly in English. They are listed without text.
_MODEL_KINDS = ("prompt", "tool", "summary")
_SELECT_UNINDEXED_TEXTS = f"""
SELECT id, text FROM messages
WHERE session_id IN ({statements.VISIBLE_SESSION_IDS}) AND (NOT :limited OR sender_id = :sender)
    AND (kind = 'chat' AND text GLOB '*[%&\\ßẞ*_~`|]*' OR kind = 'undone')
"""
"""Selects the messages whose words a search of the text index may miss.

These are undone messages, and messages that contain ß or characters that encode or mark up text, as
in URLs ("%20"), HTML ("&amp;"), JSON ("\\n") or Markdown ("**").
"""
# Filler words of a request such as "everything I said about Porto", in addition to the stop words.
_FILLER_WORDS = frozenset(
    {
        "all",
        "anything",
        "ever",
        "everything",
        "mention",
        "mentioned",
        "said",
        "say",
        "talk",
        "talked",
        "tell",
        "told",
    }
)


def fill_list(
    connection: Connection, *, erasure_list: ErasureList, query: SearchQuery
) -> QuoteMatcher:
    """Add all rows to erase to the list, and return a matcher for the words and the messages.

    If the person has already seen the list, only messages that existed at that time are added.
    Raises Refused while an index is being rebuilt, or if the query has only very common words.
    """
    if is_stale(connection):
        raise Refused("index_is_rebuilt")
    erasure_list.is_narrowed = query != SearchQuery(
        text=query.text, scopes=query.scopes, asker=query.asker
    )
    query = _limit_query(query, erasure_list.request)
    if erasure_list.made_at is None:
        erasure_list.upto = latest_message_id(connection)
    else:
        request_rows = connection.execute(
            statements.SELECT_REQUEST_MESSAGES, erasure_list.parameters
        )
        erasure_list.ids["asked"] = [row["id"] for row in request_rows]

    plan, erasure_list.phrase, message_ids = _find_messages(connection, query)
    words = QuoteMatcher(plan.highlights, is_any=len(plan.alternatives) > 1)
    if not erasure_list.is_narrowed:
        for row in connection.execute(_SELECT_UNINDEXED_TEXTS, erasure_list.parameters):
            if words.has_words(row["text"]):
                message_ids.add(row["id"])
    message_ids.update(erasure_list.ids["messages"])
    _add_messages(connection, erasure_list, message_ids)

    matcher = words.with_texts(erasure_list.message_texts[-MAX_QUOTED_MESSAGES:])
    # The filters of a query can't be applied to unanswered events. So if there are filters, events
    # aren't matched by their words.
    open_entry_words = QuoteMatcher(()) if erasure_list.is_narrowed else matcher
    _add_open_entries(connection, erasure_list, open_entry_words)
    _add_repeats(connection, erasure_list, matcher)
    _add_copies(connection, erasure_list, matcher, ("files",))
    add_file_quotes(connection, erasure_list)
    _add_copies(connection, erasure_list, matcher, _OTHER_KINDS)
    return matcher


def fill_expired_list(connection: Connection, *, erasure_list: ErasureList) -> QuoteMatcher:
    """Add the messages that are older than the list allows, and the data derived from them.

    Newer rows, pinned notes and facts, skills, active jobs and pending changes stay. A new list
    gets at most `MAX_QUOTED_MESSAGES` messages.
    """
    message_ids = set(erasure_list.ids["messages"])
    if erasure_list.made_at is None:
        erasure_list.upto = latest_message_id(connection)
    if not message_ids:
        # After a restored backup, an erasure is repeated at once, regardless of the number of
        # messages.
        limit = MAX_QUOTED_MESSAGES if erasure_list.made_at is None else MAX_MESSAGES
        values = {**erasure_list.parameters, "limit": limit}
        rows = connection.execute(expiry.SELECT_EXPIRED_MESSAGES, values)
        message_ids = {row["id"] for row in rows}
    _add_messages(connection, erasure_list, message_ids)
    matcher = QuoteMatcher(()).with_texts(erasure_list.message_texts[-MAX_QUOTED_MESSAGES:])
    _add_repeats(connection, erasure_list, matcher)
    _add_copies(connection, erasure_list, matcher, ("files", *_OTHER_KINDS))
    for kind in ("summaries", "skills", "skill_changes", "pending_notes"):
        erasure_list.ids[kind] = []
    for kind, statement in expiry.SELECT_SPARED.items():
        values = {**erasure_list.parameters, "ids": encode_list(erasure_list.ids[kind])}
        spared_ids = {row["id"] for row in connection.execute(statement, values)}
        erasure_list.ids[kind] = [id_ for id_ in erasure_list.ids[kind] if id_ not in spared_ids]
    pinned = connection.execute(expiry.SELECT_PINNED_NOTES, erasure_list.parameters)
    erasure_list.note_entries -= {row["after"] for row in pinned}
    return matcher


def _limit_query(query: SearchQuery, request: ErasureRequest) -> SearchQuery:
    """Return the query limited to messages that the person may erase.

    A person may erase all messages in their scopes, including tool results unless the query names
    roles. A member of a group (`is_limited`) may erase only the messages that they sent in this
    group. Delegated sessions are always included.
    """
    roles = query.filters.roles
    if roles == DEFAULT_ROLES:
        roles = (*roles, "tool")
    scopes = request.scopes
    filters = replace(query.filters, roles=roles, has_delegated=True)
    if request.is_limited:
        own_roles = tuple(role for role in roles if role == "user")
        filters = replace(filters, is_askers_own=True, roles=own_roles)
        scopes = frozenset({request.scope})
    return replace(query, scopes=scopes, asker=request.account, filters=filters)


def _find_messages(connection: Connection, query: SearchQuery) -> tuple[SearchPlan, str, set[int]]:
    """Return the search plan, the phrase that was searched for, and the ids of the matches.

    If no message matches the whole query, and the query has no quotation marks, the search is
    repeated without filler words: "everything I said about Porto" becomes "Porto". Raises Refused
    if the query has only filler words.
    """
    plan = plan_inflected(query.text)
    phrase = query.text
    words = query.text.split()
    fillers = stop_words() | _FILLER_WORDS
    subject = [word for word in words if word.strip("?!.,").casefold() not in fillers]
    if words and not subject:
        raise Refused("forget_too_common")
    message_ids = _search(connection, plan, query)
    if not message_ids and len(subject) < len(words) and '"' not in query.text:
        phrase = " ".join(subject)
        plan = plan_inflected(phrase)
        message_ids = _search(connection, plan, query)
    return plan, phrase.replace('"', " ").strip("?!., "), message_ids


def _search(connection: Connection, plan: SearchPlan, query: SearchQuery) -> set[int]:
    """Return the ids of the matching messages.

    A query without words matches all messages that pass its filters.
    """
    if not plan.alternatives and query.text.strip():
        # The query consists of signs that aren't in the index.
        return set()
    index = TextSearch(connection, query)
    if plan.alternatives:
        matches = index.find_messages(plan)
    else:
        matches = index.latest_messages(MAX_MESSAGES)
    return {match.message_id for match in matches}


def _add_messages(connection: Connection, erasure_list: ErasureList, message_ids: set[int]) -> None:
    """Add the messages with these ids, except those newer than the list."""
    parameters = {**erasure_list.parameters, "messages": encode_list(message_ids)}
    rows = connection.execute(statements.SELECT_LISTED_MESSAGES, parameters).fetchall()
    erasure_list.ids["messages"] = [row["id"] for row in rows]
    erasure_list.message_texts = [row["text"] for row in rows]
    for row in rows:
        author = "Mneme"
        if row["role"] == "user":
            author = row["sender_name"] or ""
        erasure_list.items.append(
            ErasureItem(
                kind="message",
                text=row["text"],
                at=to_datetime(row["created_at"]),
                author=author,
            )
        )


def _add_open_entries(
    connection: Connection, erasure_list: ErasureList, words: QuoteMatcher
) -> None:
    """Add unanswered inbox events that belong to a listed message or contain the words.

    An event without a listed message also becomes an item of the list, unless it's a command.
    """
    message_ids = set(erasure_list.ids["messages"])
    request = erasure_list.request
    for row in connection.execute(statements.SELECT_OPEN_ENTRIES, erasure_list.parameters):
        inbound = load_inbound(row["inbound"])
        is_listed_message = row["message_id"] in message_ids
        if not is_listed_message:
            is_own = inbound.sender.id == request.account.user_id
            if request.is_limited and not is_own:
                continue
            texts = [inbound.text]
            if inbound.command:
                texts.append(inbound.command.arguments)
            texts += [file.name for file in inbound.attachments]
            if inbound.quote:
                texts += [inbound.quote.text, inbound.quote.name]
            if not words.has_words(*texts):
                continue
        erasure_list.ids["inbox"].append(row["id"])
        if not is_listed_message and inbound.command is None:
            erasure_list.items.append(
                ErasureItem(
                    kind="message",
                    text=inbound.text,
                    at=inbound.sent_at,
                    author=inbound.sender.name,
                )
            )


def _add_repeats(connection: Connection, erasure_list: ErasureList, matcher: QuoteMatcher) -> None:
    """Add answers, tool results, commands and summaries that repeat the messages.

    If it is enough to erase the repeating lines of a summary, the other lines stay.
    """
    message_ids = set(erasure_list.ids["messages"])
    request = erasure_list.request
    for row in connection.execute(statements.SELECT_POSSIBLE_REPEATS, erasure_list.parameters):
        is_excerpt = row["tool_name"] == statements.READ_CHANNEL
        is_repeat = _is_excerpt_to_erase if is_excerpt else _is_repeat
        if row["id"] in message_ids or not is_repeat(row, request, matcher):
            continue
        kind = _name_repeat(row)
        text = "" if kind in _MODEL_KINDS else _find_repeating_line(row["text"], matcher)
        erasure_list.repeats.append((kind, text))
        if row["kind"] == "summary":
            remaining_text = _remove_repeating_lines(row, request, matcher)
            if remaining_text is not None:
                erasure_list.ids["summaries"].append((row["id"], remaining_text))
                continue
        else:
            erasure_list.message_texts.append(row["text"])
        erasure_list.ids["repeats"].append(row["id"])


def _name_repeat(row: Row) -> str:
    """Return the kind of a message that repeats others, as the list names it."""
    if row["kind"] == "summary":
        return "summary"
    if row["role"] == "user":
        return "command" if row["kind"] == "command" else "prompt"
    return "tool" if row["role"] == "tool" else "answer"


def _find_repeating_line(text: str, matcher: QuoteMatcher) -> str:
    """Return the first line that repeats a message, or "" if no line does so alone.

    The list quotes nothing else. Otherwise a repeated request would take the quoted rest for a text
    to erase, because the first list is an answer that repeats the message.
    """
    for line in text.splitlines() if len(text) <= MAX_SCANNED_CHARS else ():
        if matcher.has_words(line) or matcher.has_passage(line):
            return line
    return ""


def _is_excerpt_to_erase(row: Row, request: ErasureRequest, matcher: QuoteMatcher) -> bool:
    """Return whether to erase a stored excerpt of messages that were read from a channel.

    The excerpt may contain the person's messages, although those aren't stored as messages. It is
    erased if it contains the words of the query, or if a group member's request has no words. Mneme
    can read the messages of the channel again.
    """
    is_wide = request.is_limited and not matcher.has_patterns
    return is_wide or matcher.has_words(row["text"]) or matcher.has_copy(row["text"])


def _remove_repeating_lines(row: Row, request: ErasureRequest, matcher: QuoteMatcher) -> str | None:
    """Return the text of a summary without the lines that repeat the messages.

    Returns None if the remaining lines together still repeat the messages. The whole summary must
    then be erased.
    """
    fields = dict(row)
    lines = []
    for line in row["text"].split("\n"):
        if not _is_repeat({**fields, "text": line}, request, matcher):
            lines.append(line)
    remaining_text = "\n".join(lines)
    if _is_repeat({**fields, "text": remaining_text}, request, matcher):
        return None
    return remaining_text


def _is_repeat(row: Row | dict[str, Any], request: ErasureRequest, matcher: QuoteMatcher) -> bool:
    """Return whether a row repeats the messages, and this person may erase the row.

    * An answer repeats a message if it contains a passage of the message.
    * A command, a tool result or the answer of the person's own job also repeats a message if it
      contains the words of the query or the whole of a short message.
    * Other messages that people typed never count as repetitions.
    """
    texts = (row["text"], row["tools"], row["blocks"])
    is_from_user = row["role"] == "user"
    is_own = is_from_user and row["sender_id"] == request.account.user_id
    is_typed = is_from_user and row["origin"] != "tool" and row["kind"] != "summary"
    if row["is_of_own_job"]:
        return matcher.has_words(*texts) or matcher.has_copy(*texts)
    if is_typed:
        is_command = row["kind"] == "command"
        if not is_command or (request.is_limited and not is_own):
            return False
    if row["kind"] == "chat" and row["blocks"] is None:
        return matcher.has_passage(*texts)
    if (is_own or not request.is_limited) and matcher.has_words(*texts):
        return True
    return matcher.has_copy(*texts)


def _add_copies(
    connection: Connection,
    erasure_list: ErasureList,
    matcher: QuoteMatcher,
    kinds: Iterable[str],
) -> None:
    """Add rows of these kinds that were derived from the messages or repeat them."""
    source_ids = {*erasure_list.ids["messages"], *erasure_list.ids["repeats"]}
    for kind in kinds:
        statement = statements.COPY_STATEMENTS[kind].select
        # In a group, other people use the words of the query too. So rows of other people must
        # repeat a passage.
        can_match_words = kind in _OWN_KINDS or not erasure_list.request.is_limited
        for row_id, message_id, at, *columns in connection.execute(
            statement, erasure_list.parameters
        ):
            texts = [text for text in columns if text]
            is_derived = message_id in source_ids
            # Outgoing messages with files are always erased, because their files aren't searched.
            # The person can make such a file, an export, again.
            has_files = kind == "outbox" and '"files":[{' in texts[0]
            if not (is_derived or has_files or _is_copy(matcher, texts, can_match_words)):
                continue
            erasure_list.ids[kind].append(row_id)
            if kind in _REPEAT_KINDS:
                copies = [text for text in texts if _is_copy(matcher, [text], can_match_words)]
                # The last text is the note after the change, or before it if it was removed.
                derived_texts = texts[-1:] if is_derived else []
                _add_old_texts(erasure_list, kind, copies, derived_texts, matcher)
            elif kind in _SHOWN_KINDS:
                erasure_list.items.append(
                    ErasureItem(kind=_SHOWN_KINDS[kind], text=texts[0], at=to_datetime(at))
                )


def _add_old_texts(
    erasure_list: ErasureList,
    kind: str,
    copies: Sequence[str],
    derived_texts: Sequence[str],
    matcher: QuoteMatcher,
) -> None:
    """Add the old texts of a row to the repetitions.

    `copies` are those that repeat the messages, `derived_texts` those that came from them.
    """
    quote = _find_repeating_line(copies[-1], matcher) if copies else ""
    erasure_list.repeats.append((_REPEAT_KINDS[kind], quote))
    if kind == "note_changes":
        erasure_list.note_entries.update(copies, derived_texts)


def _is_copy(matcher: QuoteMatcher, texts: Sequence[str], can_match_words: bool) -> bool:
    """Return whether the texts repeat a passage or, with `can_match_words`, contain the words."""
    if can_match_words and matcher.has_words(*texts):
        return True
    return matcher.has_passage(*texts)
