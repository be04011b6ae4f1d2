"""Carries out /forget: lists the data to erase, and erases it after the person confirms.

`erasure_search` finds the rows, `core/store/erasure/statements.py` erases them, and
`core/store/sqlite/compaction.py` removes their bytes from the database file. This module itself
erases notes, parts of skills, and texts in files of the home. It also resumes erasures that a crash
interrupted.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import structlog

from core.errors import Refused, StoreError
from core.notes.notebook import ALL_FILES, Notebook
from core.ports import Clock
from core.privacy.erasure_search import fill_expired_list, fill_list
from core.privacy.home_files import HomeFiles
from core.privacy.quotes import QuoteMatcher
from core.search.query import extract_filters
from core.skills.library import Skills
from core.store.engine import Database, Row
from core.store.erasure import epoch, personal_data, statements
from core.store.erasure.statements import ErasureItem, ErasureList, ErasureRequest, Erasures
from core.store.erasure.unconfirmed import find_unconfirmed
from core.store.notes import Operation
from core.store.query import SearchQuery
from core.store.rows import read_account
from core.store.sync import SyncQueue
from core.types import Scope

# How many items a person sees before they confirm.
MAX_SHOWN_ITEMS = 8
MAX_SHOWN_REPEATS = 8
# An erasure that began this long ago is resumed, because the process that began it may be dead.
ABANDONED_AFTER = timedelta(seconds=30)
# How long a person waits until the bytes are removed. Maintenance removes the rest afterwards.
COMPACTION_TIMEOUT_S = 10.0
_log = structlog.get_logger("forgetting")


@dataclass(frozen=True, slots=True)
class _Note:
    scope: Scope
    # The key in `ALL_FILES` of the file with the note.
    target: str
    text: str


@dataclass
class Forgetting:
    """Lists the data that an erasure would remove, erases it, and resumes interrupted erasures."""

    database: Database
    notebook: Notebook
    files: HomeFiles
    clock: Clock
    # An IANA name.
    zone: str
    # Passes erasures on to the memory services.
    sync_queue: SyncQueue | None = None
    skills: Skills | None = None
    # Deletes the bytes of files whose messages are gone. Returns the names of the files that can't
    # be deleted now.
    remove_files: Callable[[datetime], Awaitable[Sequence[str]]] | None = None

    def __post_init__(self) -> None:
        self.erasures = Erasures(self.database, self.clock)
        # The tokens of erasures that this process is carrying out.
        self._running: set[str] = set()

    async def prepare(self, text: str, request: ErasureRequest) -> ErasureList:
        """List all data that would be erased, and store the list until the person confirms it.

        The returned list has the token that `erase` needs, and only the first items to show. If
        there is nothing to erase, the list isn't stored and has no token. Raises Refused if the
        request is unclear, or if the search could miss some data.
        """
        erasure_list = ErasureList(request=request, text=text)
        await self._fill(erasure_list)
        if not (erasure_list.counts or erasure_list.derived):
            await self._count_recollections(erasure_list)
            if not erasure_list.derived:
                return erasure_list

        erasure_list.token = secrets.token_urlsafe(12)
        await self.erasures.save(erasure_list)
        del erasure_list.items[MAX_SHOWN_ITEMS:]
        erasure_list.repeats = _choose_repeats(erasure_list.repeats)
        return erasure_list

    async def list_all(self, token: str, request: ErasureRequest) -> ErasureList | None:
        """Return the list that `prepare` stored, with all items and texts that repeat them.

        Returns None if this person can no longer confirm it. Raises Refused like `prepare`.
        """
        erasure_list = await find_unconfirmed(self.database, token, request)
        if erasure_list is not None:
            await self._fill(erasure_list)
            erasure_list.repeats = list(dict.fromkeys(erasure_list.repeats))
        return erasure_list

    async def _fill(self, erasure_list: ErasureList) -> None:
        """Add everything that would be erased to the list, and count it."""
        request = erasure_list.request
        words = await self._search(erasure_list)
        await self._add_notes_and_skills(erasure_list, words)
        group_lists = await self._list_in_groups(erasure_list)
        for group_list in group_lists:
            erasure_list.items += [
                replace(item, kind="room", author="") for item in group_list.items
            ]
        erasure_list.counts = dict(Counter(item.kind for item in erasure_list.items))

        typed_texts = await asyncio.to_thread(self.files.list_typed_entries, request.scopes)
        matching_texts = [text for text in typed_texts if words.has_words(text)]
        erasure_list.repeats += [("typed", text) for text in matching_texts]
        derived_count = len(matching_texts)
        for each_list in (erasure_list, *group_lists):
            derived_count += sum(len(each_list.ids[kind]) for kind in statements.UNLISTED_KINDS)
        erasure_list.derived = derived_count
        erasure_list.first_said_at = _find_first_time(erasure_list.items)
        if request.scope.is_group:
            # Others read the question, and what repeats the person's words may be said elsewhere.
            erasure_list.repeats.clear()
        # Notes come first, because their erasure has the most effect.
        erasure_list.items.sort(key=lambda item: (item.kind != "note", item.kind))

    async def erase(self, token: str, request: ErasureRequest) -> ErasureList:
        """Erase all data on a confirmed list.

        Returns the list with counts of the texts that still match. Raises Refused if this person no
        longer has a list with this token, or if the erasure can't be finished now and will be
        resumed later.
        """
        erasure_list = await self.erasures.begin(token, request)
        if erasure_list is None:
            raise Refused("forget_question_expired")
        try:
            await self._carry_out(erasure_list)
        except Refused as refusal:
            raise Refused("forget_later", reason=refusal) from refusal
        except OSError as error:
            raise Refused("forget_files_unusable", reason=error.strerror or error) from error
        unwritable_files = await self._remove_files()
        erasure_list.unwritable_files = (*erasure_list.unwritable_files, *unwritable_files)
        erasure_list.is_clean = await self._compact()
        if erasure_list.text:
            erasure_list.remaining_counts = await self._count_remaining(erasure_list)
            erasure_list.remaining_files = await self._find_remaining_files(erasure_list)
        return erasure_list

    async def expire(
        self, request: ErasureRequest, before: datetime, *, thread_id: str | None = None
    ) -> int:
        """Erase the data older than `before` in the scopes of a request, and count the messages.

        With `thread_id`, only the messages of this topic or thread are erased; "" stands for the
        messages outside of any. One call erases at most a few thousand messages. Raises Refused or
        OSError if notes can't be changed now. In that case, the erasure is resumed later.
        """
        erasure_list = ErasureList(request=request, expires_before=before, thread_id=thread_id)
        await self._search(erasure_list)
        if not erasure_list.ids["messages"]:
            return 0
        erasure_list.token = secrets.token_urlsafe(12)
        await self.erasures.save(erasure_list)
        begun_list = await self.erasures.begin(erasure_list.token, request)
        if begun_list is None:
            return 0
        await self._carry_out(begun_list)
        await self._remove_files()
        return len(begun_list.ids["messages"])

    async def resume(self, before: datetime | None = None) -> int:
        """Resume unfinished erasures that this process isn't already carrying out.

        With `before`, only erasures that began earlier are resumed. Returns how many erasures were
        resumed, including those that still couldn't be finished.
        """
        abandoned_lists = [
            erasure_list
            for erasure_list in await self.erasures.list_unfinished(before)
            if erasure_list.token not in self._running
        ]
        for erasure_list in abandoned_lists:
            try:
                await self._carry_out(erasure_list)
            except (Refused, OSError) as error:
                _log.warning("something is not erased yet", reason=str(error))
        return len(abandoned_lists)

    async def note_unknown_erasures(self) -> None:
        """Note that the journal of a restored backup is missing, so that a later restore says so.

        Otherwise, the second restore of the same backup would find no erasure since the first one.
        """
        await self.database.write(epoch.note_unknown_erasures)

    async def replay_journal(self) -> tuple[int, Sequence[str]]:
        """If this state.db is a restored backup, repeat the erasures made after the backup.

        Also finishes erasures that a killed process has left unfinished. Returns the result of
        `epoch.replay_journal`.
        """
        result = await self.begin_replay()
        before = None if result[0] else self.clock.now() - ABANDONED_AFTER
        if await self.resume(before):
            await self._compact()
        return result

    async def begin_replay(self) -> tuple[int, Sequence[str]]:
        """Begin the erasures that were made after this state.db was backed up.

        These erasures count as abandoned from the start. So if this process is killed, the next one
        finishes them before it shows anything.
        """
        journal = await asyncio.to_thread(self.files.read_journal)
        began_at = self.clock.now() - ABANDONED_AFTER
        return await self.database.write(
            partial(epoch.replay_journal, journal=journal, now=began_at)
        )

    async def maintain(self) -> bool:
        """Resume abandoned erasures, and remove some bytes of erased rows from the database file.

        Returns whether there are more bytes to remove.
        """
        await self.erasures.prune()
        await self.resume(self.clock.now() - ABANDONED_AFTER)
        await self._remove_files()
        return await self.database.compact_step()

    async def _add_notes_and_skills(self, erasure_list: ErasureList, words: QuoteMatcher) -> None:
        """Add an item for each note and each part of a skill that would be erased."""
        now = self.clock.now()
        notes = await self._find_notes(erasure_list, words)
        for text in {note.text for note in notes}:
            erasure_list.items.append(ErasureItem(kind="note", text=text, at=now))
        skill_parts, _ = await self._erase_skills(erasure_list, words, is_trial=True)
        for part in skill_parts:
            erasure_list.items.append(ErasureItem(kind="skill", text=part, at=now))

    async def _count_recollections(self, erasure_list: ErasureList) -> None:
        """Count the stored memory blocks and the names that contain the words.

        The counts are needed only for a list without items. Other texts aren't counted, because the
        person's request itself contains the words.
        """
        remaining = await self._count_remaining(erasure_list)
        if not erasure_list.request.is_limited:
            erasure_list.derived = remaining["recollection"]
        erasure_list.remaining_counts = +Counter(name=remaining["name"])

    async def _remove_files(self) -> Sequence[str]:
        if self.remove_files is None:
            return ()
        return await self.remove_files(self.clock.now())

    async def _compact(self) -> bool:
        """Remove the bytes of erased rows until the timeout.

        Returns whether all of them are removed.
        """
        try:
            return await self.database.compact(COMPACTION_TIMEOUT_S)
        except StoreError as error:
            # Maintenance repairs a damaged index, and then removes the bytes.
            _log.error("the bytes of what was erased are still there", error=str(error))
            return False

    async def _carry_out(self, erasure_list: ErasureList) -> None:
        """Carry out an erasure that has begun. Every step can be repeated after a crash.

        A request in a direct chat also erases what the person said in groups (`_list_in_groups`).
        Copies outside of state.db are erased before the rows, because the rows are needed to find
        the copies. Raises Refused or OSError if notes can't be changed now.
        """
        if erasure_list.is_done:
            return
        self._running.add(erasure_list.token)
        try:
            group_lists = await self._list_in_groups(erasure_list)
            for group_list in group_lists:
                await self.erasures.save(group_list)
                await self.erasures.begin(group_list.token, group_list.request)
            # A note that is being written now might contain the words.
            await self.notebook.wait_for_writes()
            unwritable_files: set[str] = set()
            for each_list in (erasure_list, *group_lists):
                await self._erase_outside_database(each_list)
                unwritable_files.update(each_list.unwritable_files)
            erasure_list.unwritable_files = tuple(sorted(unwritable_files))
            await self._write_journal(erasure_list)

            services: set[str] = set()
            for group_list in group_lists:
                await self.erasures.finish(group_list, self.sync_queue)
                services.update(group_list.services)
            erasure_list.services = tuple(sorted({*erasure_list.services, *services}))
            await self.erasures.finish(erasure_list, self.sync_queue)
            _log.info(
                "something was erased",
                messages=len(erasure_list.ids["messages"]),
                derived=erasure_list.derived,
            )
        finally:
            self._running.discard(erasure_list.token)

    async def _write_journal(self, erasure_list: ErasureList) -> None:
        """Append the erasure to the journal, from which it is repeated in a restored backup.

        Sets `is_journaled` to whether the journal could be written.
        """
        line = await self.database.read(
            partial(epoch.build_journal_line, token=erasure_list.token, now=self.clock.now())
        )
        erasure_list.is_journaled = await asyncio.to_thread(self.files.append_to_journal, line)

    async def _list_in_groups(self, erasure_list: ErasureList) -> list[ErasureList]:
        """List the person's messages in groups that aren't among the scopes of this direct chat.

        Returns a list for each account in each group. If the request came from a group, the result
        is empty, because other people read the answer there.
        """
        if erasure_list.request.scope.is_group or not erasure_list.text:
            return []
        group_lists = []
        rows = await self.database.fetch_all(statements.SELECT_GROUPS, erasure_list.parameters)
        for row in rows:
            group_list = _start_group_list(erasure_list, row)
            await self._search(group_list)
            if group_list.items or any(group_list.ids.values()):
                group_lists.append(group_list)
        return group_lists

    async def _count_remaining(self, erasure_list: ErasureList) -> Counter[str]:
        """Return how many texts still match, by kind."""
        if not erasure_list.phrase:
            # The request has only filters and no words, so the search is repeated.
            repeated_list = ErasureList(request=erasure_list.request, text=erasure_list.text)
            await self._search(repeated_list)
            return +Counter(message=len(repeated_list.ids["messages"]))
        return await self.database.read(
            partial(
                personal_data.count_matching_texts,
                request=erasure_list.request,
                has_words=erasure_list.has_words,
            )
        )

    async def _find_remaining_files(self, erasure_list: ErasureList) -> tuple[str, ...] | None:
        """Return the names of the files in the home that still contain the phrase.

        Returns None if the request has no phrase, or if it isn't the owner's request in a direct
        chat, because the files also contain other people's words.
        """
        request = erasure_list.request
        if not erasure_list.phrase or not request.is_owner or request.scope.is_group:
            return None
        names = await asyncio.to_thread(
            self.files.find_files_containing, erasure_list.phrase, erasure_list.has_words
        )
        return tuple(names)

    async def _search(self, erasure_list: ErasureList) -> QuoteMatcher:
        """Fill the list with the rows to erase, and return a matcher for the words of its text.

        For a member of a group, the matcher has no words, because other members use the same words.
        Raises Refused if the text doesn't say what to search for.
        """
        if erasure_list.expires_before is not None:
            return await self.database.read(partial(fill_expired_list, erasure_list=erasure_list))
        request = erasure_list.request
        plain_query = SearchQuery(
            text=erasure_list.text, scopes=request.scopes, asker=request.account
        )
        moment = erasure_list.made_at or self.clock.now()
        query = extract_filters(plain_query, moment, ZoneInfo(self.zone)).query
        has_content = query != replace(plain_query, text="")
        if not erasure_list.text.strip() or not has_content:
            raise Refused("forget_unclear")
        matcher = await self.database.read(
            partial(fill_list, erasure_list=erasure_list, query=query)
        )
        erasure_list.has_words = matcher.has_words
        return QuoteMatcher(()) if request.is_limited else matcher

    async def _erase_outside_database(self, erasure_list: ErasureList) -> None:
        """Erase matching notes, parts of skills, and texts in files of the home.

        Files that can't be written are skipped and added to `unwritable_files`. Retrying would
        block the conversation until they can be written.
        """
        words = QuoteMatcher(())
        if erasure_list.text or erasure_list.expires_before is not None:
            words = await self._search(erasure_list)
        unwritable_files: list[str] = []
        for note in await self._find_notes(erasure_list, words):
            erasure_list.note_entries.add(note.text)
            removal = Operation(action="remove", old_text=note.text)
            try:
                await self.notebook.apply(
                    note.scope, frozenset({note.scope}), note.target, [removal]
                )
            except OSError:
                unwritable_files.append(ALL_FILES[note.target])
        matcher = await asyncio.to_thread(
            words.with_texts, [*erasure_list.message_texts, *erasure_list.note_entries]
        )
        unwritable_files += await asyncio.to_thread(
            self.files.erase, erasure_list.request.scopes, matcher
        )
        unwritable_skills: list[str] = []
        if erasure_list.expires_before is None:
            _, unwritable_skills = await self._erase_skills(erasure_list, matcher)
        # Without duplicates, in the same order.
        erasure_list.unwritable_files = tuple(
            dict.fromkeys([*unwritable_files, *unwritable_skills])
        )

    async def _erase_skills(
        self, erasure_list: ErasureList, words: QuoteMatcher, *, is_trial: bool = False
    ) -> tuple[list[str], list[str]]:
        """Erase matching parts of skills. With `is_trial`, only find them.

        Returns the parts, and the names of the files that couldn't be written.
        """
        if self.skills is None:
            return [], []
        matcher = await asyncio.to_thread(words.with_texts, erasure_list.message_texts)
        return await self.skills.erase(
            erasure_list.request.scopes,
            lambda text: matcher.has_words(text) or matcher.has_passage(text),
            is_trial=is_trial,
        )

    async def _find_notes(self, erasure_list: ErasureList, words: QuoteMatcher) -> list[_Note]:
        """Return the notes that are in `erasure_list.note_entries` or contain the words."""
        notes = []
        for scope in sorted(erasure_list.request.scopes):
            for target in ALL_FILES:
                for entry in await self.notebook.entries(frozenset({scope}), target):
                    if entry in erasure_list.note_entries or words.has_words(entry):
                        notes.append(_Note(scope, target, entry))
        return notes


def _choose_repeats(repeats: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the repetitions that the person sees, with some of each kind."""
    texts_by_kind: dict[str, list[str]] = {}
    unique_repeats = list(dict.fromkeys(repeats))
    for kind, text in unique_repeats:
        texts_by_kind.setdefault(kind, []).append(text)
    chosen_counts: Counter[str] = Counter()
    for _ in range(min(len(unique_repeats), MAX_SHOWN_REPEATS)):
        kinds = [kind for kind, texts in texts_by_kind.items() if len(texts) > chosen_counts[kind]]
        chosen_counts[min(kinds, key=chosen_counts.__getitem__)] += 1
    chosen = []
    for kind, count in chosen_counts.items():
        chosen += [(kind, text) for text in texts_by_kind[kind][:count]]
    return chosen


def _find_first_time(items: Sequence[ErasureItem]) -> datetime | None:
    """Return when the oldest message was sent, or None if items of other kinds may be older."""
    if not items or any(item.kind != "message" for item in items):
        return None
    return min(item.at for item in items)


def _start_group_list(erasure_list: ErasureList, row: Row) -> ErasureList:
    """Return an empty list for one account in one group. `row` has the account and the group.

    The token of the new list begins with the token of `erasure_list`.
    """
    scope = Scope(key=row["scope"])
    request = replace(
        erasure_list.request,
        account=read_account(row),
        scope=scope,
        scopes=frozenset((scope,)),
        is_owner=False,
    )
    return ErasureList(
        request=request,
        text=erasure_list.text,
        token=f"{erasure_list.token}.{row['id']}.{row['user_id']}",
        made_at=erasure_list.made_at,
        upto=erasure_list.upto,
    )
