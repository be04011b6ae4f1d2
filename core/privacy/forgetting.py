"""/forget from the question to the receipt: finds what is meant and, after a yes, erases it with all its copies.

Messages are found as recall finds them, copies by the words and by stretches of what was said. Rows are erased by
`core/store/erasure.py`, bytes by `core/store/sqlite/indexing.py`; an unfinished list is resumed after a crash.
"""

from __future__ import annotations

import asyncio
import html
import re
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise, product
from typing import Any
from urllib.parse import unquote_plus
from zoneinfo import ZoneInfo

import structlog

from core.errors import Refused, StoreError
from core.notes.notebook import ALL_FILES, Notebook
from core.ports import Clock
from core.privacy.home_files import HomeFiles
from core.search.query import inflected, read_filters
from core.skills.library import Skills
from core.store import archive, epoch, erasure
from core.store.erasure import ErasureItem, ErasureList, ErasureRequest, Erasures
from core.store.notes import Operation
from core.store.query import DEFAULT_ROLES, SearchPlan, SearchQuery
from core.store.rows import Connection, Row, account_in, clean, load_inbound, moment
from core.store.sqlite.database import Database
from core.store.sqlite.indexing import compact, compact_step, latest
from core.store.sqlite.schema import list_value
from core.store.sqlite.text_index import TextIndex, is_stale
from core.text.normalize import bare, is_unspaced
from core.text.terms import stop_words
from core.types import Role, Scope

SHOWN = 8
ABANDONED = timedelta(seconds=30)
"""After this a list that this process does not work on is taken up: the process that began it may be dead."""
PATIENCE_S = 10.0
"""How long a person waits for the bytes; maintenance goes on."""
LATER = "You need not: your yes counts, and I go on with it by myself within a minute."
UNCLEAR = (
    'Say what to forget, as you would look for it with /recall: `/forget Porto`, `/forget "the blue drawer"`, '
    "`/forget ferry before:2026`."
)
_log = structlog.get_logger("forgetting")

ForgetCopies = Callable[[Sequence[int], Sequence[int]], Awaitable[Sequence[str]]]
"""Asks the memory services that were told of messages and changes of notes, by id, to erase them; their names."""


@dataclass
class Forgetting:
    """`zone`: an IANA name."""

    database: Database
    notebook: Notebook
    files: HomeFiles
    clock: Clock
    zone: str
    forget_copies: ForgetCopies | None = None
    skills: Skills | None = None

    def __post_init__(self) -> None:
        self.erasures = Erasures(self.database, self.clock)
        self._working: set[str] = set()

    async def look(self, text: str, request: ErasureRequest) -> ErasureList:
        """What there is to erase, its beginning `shown`, stored for a yes under its token; without one where there is
        nothing. Raises Refused when it is unclear what is meant, or something could be overlooked."""
        found = ErasureList(request=request, text=text)
        words = await self._find(found)
        notes = {entry for _, _, entry in await self._notes(found, words)}
        typed = await asyncio.to_thread(self.files.typed, request.scopes)
        found.shown += [ErasureItem(kind="note", text=entry, at=self.clock.now()) for entry in notes]
        parts, _ = await self._skills(found, words, is_trial=True)
        found.shown += [ErasureItem(kind="skill", text=part, at=self.clock.now()) for part in parts]
        rooms = await self._in_rooms(found)
        found.shown += [replace(item, kind="room", who="") for room in rooms for item in room.shown]
        found.counts = dict(Counter(item.kind for item in found.shown))
        repeating = [one.ids[kind] for one in (found, *rooms) for kind in erasure.UNNAMED]
        found.derived = sum(map(words.has_words, typed)) + sum(map(len, repeating))
        if not (found.counts or found.derived):
            # Of the rest the question itself may have the words.
            left = await self._left(found)
            found.derived, found.left = 0 if request.is_limited else left["recollection"], +Counter(name=left["name"])
            if not found.derived:
                return found
        found.token = secrets.token_urlsafe(12)
        await self.erasures.save(found)
        found.shown = sorted(found.shown, key=lambda item: (item.kind != "note", item.kind))[:SHOWN]
        return found

    async def erase(self, token: str, request: ErasureRequest) -> ErasureList:
        """Erases a list for good. Raises Refused when it is not this person's, too old, or goes on by itself later."""
        found = await self.erasures.begin(token, request)
        if found is None:
            raise Refused("That question is too old by now, so nothing was erased. Ask again.")
        try:
            await self._work(found)
        except Refused as refusal:
            raise Refused(f"{refusal} {LATER}") from refusal
        except OSError as error:
            raise Refused(f"The files of the notes cannot be used ({error.strerror or error}). {LATER}") from error
        found.is_clean = await self._compacted()
        if found.text:
            found.left = await self._left(found)
            # Nobody else is to hear what others said.
            if found.phrase and found.request.is_owner and not found.request.scope.is_room:
                found.files = tuple(await asyncio.to_thread(self.files.having, found.phrase, found.has_words))
        return found

    async def resume(self, before: datetime | None = None) -> int:
        """Finishes what other processes began (before a moment) and left; how many lists those were."""
        left = [found for found in await self.erasures.begun(before) if found.token not in self._working]
        for found in left:
            try:
                await self._work(found)
            except (Refused, OSError) as error:
                _log.warning("something is not erased yet", reason=str(error))
        return len(left)

    async def repeat(self) -> tuple[int, Sequence[str]]:
        """Erases again what was erased since state.db was backed up: see `epoch.repeat`."""
        journal = await asyncio.to_thread(self.files.noted)
        done = await self.database.write(partial(epoch.repeat, journal=journal, now=self.clock.now()))
        if done[0]:
            await self.resume()
            await self._compacted()
        return done

    async def tend(self) -> bool:
        """One small step of erasing bytes, True while there is more to do now; takes up what other processes left."""
        await self.erasures.prune()
        await self.resume(self.clock.now() - ABANDONED)
        return await compact_step(self.database)

    async def _compacted(self) -> bool:
        try:
            return await compact(self.database, PATIENCE_S)
        except StoreError as error:
            # A damaged index is rebuilt by maintenance, which goes on with the bytes then.
            _log.error("the bytes of what was erased are still there", error=str(error))
        return False

    async def _work(self, found: ErasureList) -> None:
        """Copies outside go first, while the rows still say what to look for; each part can be done twice."""
        if found.is_done:
            return
        self._working.add(found.token)
        try:
            rooms = await self._in_rooms(found)
            for room in rooms:
                await self.erasures.save(room)
                await self.erasures.begin(room.token, room.request)
            # After this, notes that were being written are in their files or never will be.
            await self.notebook.settle()
            for one in (found, *rooms):
                await self._erase_elsewhere(one)
                found.asked = tuple(sorted({*found.asked, *one.asked}))
                found.stuck = tuple(sorted({*found.stuck, *one.stuck}))
            line = await self.database.read(partial(epoch.noted, token=found.token, now=self.clock.now()))
            found.is_noted = await asyncio.to_thread(self.files.note, line)
            for one in (*rooms, found):
                await self.erasures.finish(one)
            _log.info("something was erased", messages=len(found.ids["messages"]), derived=found.derived)
        finally:
            self._working.discard(found.token)

    async def _in_rooms(self, found: ErasureList) -> list[ErasureList]:
        """What the asker said in rooms that are not seen from here, a list for each; where others read, none."""
        if found.request.scope.is_room or not found.text:
            return []
        lists = []
        for row in await self.database.fetch_all(erasure.ROOMS, found.values):
            token, scope, of = f"{found.token}.{row['id']}.{row['user_id']}", Scope(key=row["scope"]), account_in(row)
            here = replace(found.request, account=of, scope=scope, scopes=frozenset((scope,)), is_owner=False)
            one = ErasureList(request=here, text=found.text, token=token, made_at=found.made_at, upto=found.upto)
            await self._find(one)
            if one.shown or any(one.ids.values()):
                lists.append(one)
        return lists

    async def _left(self, found: ErasureList) -> Counter[str]:
        if not found.phrase:
            again = ErasureList(request=found.request, text=found.text)
            await self._find(again)
            return +Counter(message=len(again.ids["messages"]))
        return await self.database.read(partial(archive.scan, request=found.request, has_words=found.has_words))

    async def _find(self, found: ErasureList) -> Quoting:
        """Fills the list; gives its words, for a member of a room none: there they are others' words too."""
        whole = SearchQuery(text=found.text, scopes=found.request.scopes, asker=found.request.account)
        query = read_filters(whole, found.made_at or self.clock.now(), ZoneInfo(self.zone)).query
        if not found.text.strip() or query == replace(whole, text=""):
            raise Refused(UNCLEAR)
        quoting = await self.database.read(partial(_find, found=found, query=query))
        found.has_words = quoting.has_words
        return Quoting(()) if found.request.is_limited else quoting

    async def _erase_elsewhere(self, found: ErasureList) -> None:
        """Finds it again and erases all of it outside of state.db."""
        words = await self._find(found) if found.text else Quoting(())
        stuck = []
        for scope, target, entry in await self._notes(found, words):
            found.notes.add(entry)
            removal = [Operation(action="remove", old_text=entry)]
            try:
                await self.notebook.apply(scope, frozenset({scope}), target, removal)
            except OSError:
                stuck.append(ALL_FILES[target])
        if self.forget_copies is not None:
            messages = [*found.ids["messages"], *found.ids["repeats"]]
            found.asked = tuple(await self.forget_copies(messages, found.ids["note_changes"]))
        quoting = words.over([*found.texts, *found.notes])
        stuck += await asyncio.to_thread(self.files.erase, found.request.scopes, quoting)
        stuck += (await self._skills(found, quoting))[1]
        # Waiting for a file that nobody can write would hold up every answer here for ever.
        found.stuck = tuple(dict.fromkeys(stuck))

    async def _skills(
        self, found: ErasureList, quoting: Quoting, *, is_trial: bool = False
    ) -> tuple[list[str], list[str]]:
        """What goes of the skills of these scopes, and what cannot be written."""
        if self.skills is None:
            return [], []
        quoting = quoting.over(found.texts)
        return await self.skills.erase(
            found.request.scopes, lambda text: quoting.has_words(text) or quoting.repeats(text), is_trial=is_trial
        )

    async def _notes(self, found: ErasureList, words: Quoting) -> list[tuple[Scope, str, str]]:
        """Scope, target and text of the notes that are on the list or have the words."""
        return [
            (scope, target, entry)
            for scope, target in product(sorted(found.request.scopes), ALL_FILES)
            for entry in await self.notebook.entries(frozenset({scope}), target)
            if entry in found.notes or words.has_words(entry)
        ]


MESSAGES_MOST = 100_000
TOO_COMMON = "Nearly every text has these words. Name what it is about, or put what was said in quotes."
QUOTED_MESSAGES = 2_000
"""How many of the found messages, the newest, are looked for in copies."""
_OWN = ("facts", "jobs", "pending_notes", "updates", "own_quotes")
"""Kinds of copies that are the asker's alone, also of a room."""
_SAYING = "all anything ever everything mention mentioned said say talk talked tell told"
"""With the stop words: what stands around the subject of a sentence that says what to forget."""


def _find(connection: Connection, found: ErasureList, query: SearchQuery) -> Quoting:
    """Fills a list with what a query finds, of one that was shown with messages that were there then; gives what
    recognises repetitions. Raises Refused while indexes are rebuilt, and for words that every text has."""
    if is_stale(connection):
        raise Refused("The search index is being built anew, so something could be overlooked. Try again soon.")
    request = found.request
    found.is_narrowed = query != SearchQuery(text=query.text, scopes=query.scopes, asker=query.asker)
    roles = query.roles if query.roles != DEFAULT_ROLES else (*query.roles, "tool")
    query = replace(query, scopes=request.scopes, asker=request.account, roles=roles, has_delegated=True)
    if request.is_limited:
        own: frozenset[Role] = frozenset({"user"})
        query = replace(query, is_own=True, roles=tuple(own.intersection(roles)), scopes=frozenset({request.scope}))
    if found.made_at is None:
        found.upto = latest(connection)
    else:
        found.ids["asked"] = [row["id"] for row in connection.execute(erasure.ASKED, found.values)]
    plan, found.phrase, ids = _messages(connection, query)
    words = Quoting(plan.terms, is_any=len(plan.alternatives) > 1)
    if not found.is_narrowed:
        encoded = connection.execute(erasure.ENCODED, found.values)
        ids.update(row["id"] for row in encoded if words.has_words(row["text"]))
    ids.update(found.ids["messages"])
    said = connection.execute(erasure.SAID, {**found.values, "messages": list_value(ids)}).fetchall()
    found.ids["messages"], found.texts = [row["id"] for row in said], [row["text"] for row in said]
    for row in said:
        who = "I" if row["role"] != "user" else row["sender_name"] or ""
        found.shown.append(ErasureItem(kind="message", text=row["text"], at=moment(row["created_at"]), who=who))
    quoting = words.over(found.texts[-QUOTED_MESSAGES:])
    _find_unanswered(connection, found, Quoting(()) if found.is_narrowed else quoting)
    _find_repeats(connection, found, quoting)
    _find_copies(connection, found, quoting)
    return quoting


def _messages(connection: Connection, query: SearchQuery) -> tuple[SearchPlan, str, set[int]]:
    """What the words mean, the words, and the messages that have them: of a sentence, those that have its subject."""
    plan, phrase, words = inflected(query.text), query.text, query.text.split()
    beside = stop_words().union(_SAYING.split())
    subject = [word for word in words if word.strip("?!.,").casefold() not in beside]
    if words and not subject:
        raise Refused(TOO_COMMON)
    ids = _matching(connection, plan, query)
    if not ids and len(subject) < len(words) and '"' not in query.text:
        plan, phrase = inflected(" ".join(subject)), " ".join(subject)
        ids = _matching(connection, plan, query)
    return plan, phrase.replace('"', " ").strip("?!., "), ids


def _matching(connection: Connection, plan: SearchPlan, query: SearchQuery) -> set[int]:
    if not plan.alternatives and query.text.strip():
        return set()
    index = TextIndex(connection, query)
    return {one.message_id for one in (index.find(plan) if plan.alternatives else index.latest(MESSAGES_MOST))}


def _find_unanswered(connection: Connection, found: ErasureList, words: Quoting) -> None:
    """Adds the unanswered events that have the words, and shows those that are no messages yet."""
    known, request = set(found.ids["messages"]), found.request
    for row in connection.execute(erasure.WAITING, found.values):
        inbound = load_inbound(row["inbound"])
        arguments = inbound.command.arguments if inbound.command else None
        beside = [one.name for one in inbound.attachments]
        beside += [inbound.quoted.text, inbound.quoted.name] if inbound.quoted else []
        is_message, is_own = row["message_id"] in known, inbound.sender.id == request.account.user_id
        if is_message or ((is_own or not request.is_limited) and words.has_words(inbound.text, arguments, *beside)):
            found.ids["inbox"].append(row["id"])
            if not is_message and inbound.command is None:
                who = inbound.sender.name
                found.shown.append(ErasureItem(kind="message", text=inbound.text, at=inbound.sent_at, who=who))


def _find_repeats(connection: Connection, found: ErasureList, quoting: Quoting) -> None:
    """Adds answers, results of tools and commands that repeat the messages."""
    known = set(found.ids["messages"])
    for row in connection.execute(erasure.CONVERSATION, found.values):
        if row["id"] in known or not _is_repeat(row, found.request, quoting):
            continue
        if row["kind"] != "summary":
            found.texts.append(row["text"])
        else:
            # It is about much else, too: the lines go, and all of it where only several lines together say it.
            lines = [{**dict(row), "text": line} for line in row["text"].split("\n")]
            rest = "\n".join(line["text"] for line in lines if not _is_repeat(line, found.request, quoting))
            if not _is_repeat({**dict(row), "text": rest}, found.request, quoting):
                found.ids["summaries"].append((row["id"], rest))
                continue
        found.ids["repeats"].append(row["id"])


def _is_repeat(row: Row | dict[str, Any], request: ErasureRequest, quoting: Quoting) -> bool:
    """An answer goes for a longer stretch; commands, results of tools and of one's own jobs also for the words."""
    said = (row["text"], row["tools"], row["blocks"])
    is_own = row["role"] == "user" and row["sender_id"] == request.account.user_id
    is_by_person = row["role"] == "user" and row["origin"] != "tool" and row["kind"] != "summary"
    if row["is_of_own_job"]:
        return quoting.has_words(*said) or quoting.copies(*said)
    if is_by_person and (row["kind"] != "command" or (request.is_limited and not is_own)):
        return False
    if row["kind"] == "chat" and row["blocks"] is None:
        return quoting.repeats(*said)
    may_by_words = is_own or not request.is_limited
    return (may_by_words and quoting.has_words(*said)) or quoting.copies(*said)


def _find_copies(connection: Connection, found: ErasureList, quoting: Quoting) -> None:
    """Adds all else that was made of the messages or repeats them."""

    def is_meant(*texts: str) -> bool:
        # In a room the words of a query are others' too: only what was said counts, unless the texts are one's own.
        may_by_words = kind in _OWN or not found.request.is_limited
        return (may_by_words and quoting.has_words(*texts)) or quoting.repeats(*texts)

    made_from = {*found.ids["messages"], *found.ids["repeats"]}
    for kind, (statement, _) in erasure.COPIES.items():
        for row_id, message_id, at, *columns in connection.execute(statement, found.values):
            texts = [text for text in columns if text]
            is_made_of_it = message_id in made_from
            # Exports are made again rather than looked through.
            has_files = kind == "outbox" and '"files":[{' in texts[0]
            if not (is_made_of_it or has_files or is_meant(*texts)):
                continue
            found.ids[kind].append(row_id)
            if kind == "note_changes":
                found.notes.update(texts[-1:] if is_made_of_it else [], filter(is_meant, texts))
            elif kind in ("facts", "jobs"):
                found.shown.append(ErasureItem(kind="fact" if kind == "facts" else "job", text=texts[0], at=moment(at)))


RUN_TOKENS = 5
RUN_CHARS = 12
"""A quotation has so many words (of an unspaced script, characters) in a row, and so many characters."""
COPIED_CHARS = 6
"""The least length of a short text that is looked for as a whole in copies."""
_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|[nrtbf\"/])")
_EMPHASIS = re.compile(r"\*+|__+|~~|\|\||`+")
_WORD = re.compile(r"\w+")
_TOKEN = re.compile("[\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\\W_]+")


class Quoting:
    """`terms` as `core.store.query.SearchPlan` has them; all of them must stand in a text, or `is_any` one. `texts`:
    what was said, of which any longer stretch counts as well."""

    def __init__(self, terms: Sequence[str], texts: Iterable[str] = (), *, is_any: bool = False) -> None:
        self._terms, self._is_any, texts = tuple(terms), is_any, list(texts)
        self._patterns = [re.compile(pattern) for term in terms if (pattern := _pattern(term))]
        self._whole = {text.strip() for text in texts}
        said = [tuple(_tokens(text)) for text in texts]
        self._runs = {run for tokens in said for start in range(len(tokens)) if (run := _run(tokens, start))}
        self._pairs = {run[:2] for run in self._runs}
        self._short = {one for one in said if len(one) < RUN_TOKENS and sum(map(len, one)) >= COPIED_CHARS}

    def over(self, texts: Iterable[str]) -> Quoting:
        """The same words, with other texts."""
        return Quoting(self._terms, texts, is_any=self._is_any)

    def has_words(self, *texts: str | None) -> bool:
        """Whether the words stand in the texts together; False without words."""
        plain = bare("\n".join(_read(text) for text in texts if text)) if self._patterns else ""
        found = (pattern.search(plain) is not None for pattern in self._patterns)
        return any(found) if self._is_any else bool(self._patterns) and all(found)

    def repeats(self, *texts: str | None) -> bool:
        """Whether a stretch of what was said stands in one of the texts."""
        # Most texts have not even two of the words in a row.
        return bool(self._runs) and any(
            pair in self._pairs and _run(tokens, start) in self._runs
            for tokens in (_tokens(_read(text)) for text in texts if text)
            for start, pair in enumerate(pairwise(tokens))
        )

    def copies(self, *texts: str | None) -> bool:
        """Whether one of the texts is what was said, repeats it, or holds something short that was said as a whole."""
        return self.repeats(*texts) or any(
            text.strip() in self._whole or self._has_short(_tokens(_read(text))) for text in texts if text
        )

    def _has_short(self, tokens: Sequence[str]) -> bool:
        sizes, starts = set(map(len, self._short)), range(len(tokens))
        return any(tuple(tokens[start : start + size]) in self._short for size in sizes for start in starts)


def _read(text: str) -> str:
    """The text without the escapes of JSON, HTML and URLs, and what it says without emphasis where that differs."""
    plain = clean(_ESCAPE.sub(lambda found: chr(int(found[1] or "20", 16)), text)) if "\\" in text else text
    plain = html.unescape(plain) if "&" in plain else plain
    plain = f"{plain}\n{unquote_plus(plain)}" if "%" in plain else plain
    return f"{plain}\n{_EMPHASIS.sub('', plain)}" if _EMPHASIS.search(plain) else plain


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(bare(text))


def _run(tokens: Sequence[str], start: int) -> tuple[str, ...]:
    """The shortest quotation that starts here; empty where the text ends before."""
    for end in range(start + RUN_TOKENS, len(tokens) + 1):
        run = tuple(tokens[start:end])
        if sum(map(len, run)) >= RUN_CHARS:
            return run
    return ()


def _pattern(term: str) -> str:
    """The regular expression of a term; a prefix ends in ``*``, bars separate forms."""
    if "|" in term:
        return f"(?:{'|'.join(filter(None, map(_pattern, term.split('|'))))})"
    plain = bare(term.rstrip("*"))
    words = _WORD.findall(plain)
    if not words:
        return re.escape(plain.strip())
    if is_unspaced(plain):
        return re.escape(plain)
    end = "" if term.endswith("*") else r"(?![^\W_])"
    return r"(?<![^\W_])" + r"[\W_]+".join(map(re.escape, words)) + end
