"""Remembers what was carried out for the person's messages, because each may allow it only once.

A request such as "delete that one" ends one item. Without a record, the model could remove several
items for it, because each single call is a call that the person asked for. After a restart, the
gate restores this record from the stored calls of the turn. In the same way, a message asks to send
a text only once, and to search for a query in one form. The number of calls and the choice of a
form could tell others a secret.

The model may choose one link of a website (`core/review/searches.py`). This record is stored,
because a restart and a compression of the conversation mustn't allow a second choice. It contains
only hashes, because an address can be private.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from core.review.phrases import SENTENCE_END, find_languages, joint_pattern, to_plain
from core.review.wishes import mentions_several
from core.store.engine import Database
from core.store.tool_calls import record_link_choice
from core.types import Json, Message, Subject, ToolContext

MAX_MESSAGES = 200
"""The number of messages whose requests the record keeps."""


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A tool call, and its result."""

    tool: str
    arguments: Json
    result: str


def list_made_calls(rows: Sequence[Message]) -> tuple[MadeCall, ...]:
    """Return the calls among these rows that have a result, without failed calls."""
    results: dict[str, str] = {}
    for row in rows:
        for block in row.blocks or ():
            if row.role == "tool" and not block.get("is_error"):
                results[block["tool_use_id"]] = row.text
    calls: list[MadeCall] = []
    for row in rows:
        for block in row.blocks or ():
            if block.get("type") == "tool_use" and block["id"] in results:
                arguments = block.get("input") or {}
                calls.append(MadeCall(block["name"], arguments, results[block["id"]]))
    return tuple(calls)


@dataclass(eq=False)
class CarriedOutWishes:
    """The items that were removed or weakened for each of the latest messages."""

    _items: OrderedDict[int, set[str]] = field(default_factory=OrderedDict)

    def restore(self, message_id: int, items: Collection[str]) -> None:
        """Record items that an earlier process ended for a message, unless it has a record."""
        self._items.setdefault(message_id, set(items))

    def take(self, message_id: int, subjects: Sequence[Subject], typed: Sequence[str]) -> bool:
        """Record that the request in a message ends some items. Returns whether it may end them.

        A request for one item may end the same item again, but not a second item.
        """
        items = self._items.setdefault(message_id, set())
        self._items.move_to_end(message_id)
        if len(self._items) > MAX_MESSAGES:
            self._items.popitem(last=False)
        all_items = items | {f"{subject.label}\n{subject.text}" for subject in subjects}
        if len(all_items) > 1 and not may_want_several(typed):
            return False
        items |= all_items
        return True


def may_want_several(typed: Collection[str]) -> bool:
    """Return whether messages may ask to end several items.

    The messages may want several if they have several sentences or clauses, a list, or words such
    as "both" and "all".
    """
    if len(typed) != 1:
        return True
    (text,) = typed
    text = text.strip()
    if "," in text or "\n" in text or len(SENTENCE_END.split(text)) > 1:
        return True
    plain, languages = to_plain(text), find_languages(text)
    return joint_pattern(languages).search(plain) is not None or mentions_several(plain, languages)


@dataclass(eq=False)
class SentTexts:
    """The texts that were sent to external services for each of the latest messages."""

    _texts: OrderedDict[int, set[str]] = field(default_factory=OrderedDict)

    def restore(self, message_id: int, texts: Collection[str]) -> None:
        """Record what an earlier process sent for a message, unless it has a record."""
        self._texts.setdefault(message_id, set(texts))

    def take(self, message_id: int, text: str) -> bool:
        """Record that a text is sent, and return whether it's sent for the first time."""
        texts = self._texts.setdefault(message_id, set())
        self._texts.move_to_end(message_id)
        if len(self._texts) > MAX_MESSAGES:
            self._texts.popitem(last=False)
        is_new = text not in texts
        texts.add(text)
        return is_new


@dataclass(eq=False)
class SearchForms:
    """The form in which each query was searched for, for each of the latest messages."""

    _forms: OrderedDict[int, dict[str, str]] = field(default_factory=OrderedDict)

    def restore(self, message_id: int, forms: Mapping[str, str]) -> None:
        """Record the forms of an earlier process by query, unless the message has a record."""
        self._forms.setdefault(message_id, dict(forms))

    def take(self, message_id: int, query: str, form: str) -> bool:
        """Record that a query is searched for, and return whether it had no other form before."""
        forms = self._forms.setdefault(message_id, {})
        self._forms.move_to_end(message_id)
        if len(self._forms) > MAX_MESSAGES:
            self._forms.popitem(last=False)
        return forms.setdefault(query, form) == form


@dataclass(frozen=True, slots=True)
class LinkChoices:
    """The links that the model chose, by conversation and site."""

    database: Database

    async def take(self, url: str, sites: Collection[str], context: ToolContext) -> bool:
        """Record a choice, and return whether the link may be opened.

        It may be opened if it's the first choice on its sites in this conversation for a day. For
        the same message, it may be opened again, because a page is requested once per message.
        """
        root_id = context.session.root_id or context.session.id
        keys = [_hash(f"{root_id} {site}") for site in sorted(sites)]
        link = _hash(f"{context.message_id} {url}")
        return await record_link_choice(self.database, keys, link, context.now)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
