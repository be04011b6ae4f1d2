"""Shows notes and facts with their sources and changes on the page "Memory"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from core.errors import Refused
from core.markup.markdown import escape
from core.notes.notebook import FILES
from core.store.facts.history import (
    LAST_ID,
    LoggedFactChange,
    count_changes,
    list_first_facts,
    list_latest_changes,
    list_latest_facts,
)
from core.store.facts.rows import Fact, FactChange
from core.store.notes import INSTRUCTIONS, NoteChange, NoteVersion, Operation
from core.types import Answer, Command, Message, Session
from gateway.commands.facts import FactCommands, group_facts, is_own_account
from gateway.commands.memory import MemoryCommands, NoteEdit
from gateway.commands.registry import make_button
from gateway.commands.skills import describe_change
from gateway.web.conversations import find_message
from gateway.web.rendering import ChangedWords, count_fitting, diff_change, diff_words, measure_html
from gateway.web.views import (
    MAX_FIELD_CHARS,
    Action,
    Page,
    PageRequest,
    Values,
    View,
    check_unchanged,
    fingerprint,
    read_field,
    run_command,
)

FACTS_PER_PAGE = 50
# The facts of a page have at most so many bytes of HTML, and those that contradict each other half
# of that. A fact has so many besides its text, which is on the page twice.
MAX_FACTS_BYTES = 80_000
FACT_FRAME_BYTES = 1_500
# The same for the entries of a history, and for each run of words that changed or stayed.
MAX_ENTRIES_BYTES = 90_000
ENTRY_FRAME_BYTES = 1_300
RUN_FRAME_BYTES = 11
MAX_SOURCE_CHARS = 300
CHANGES_PER_PAGE = 30
# The number of changes before and after a change of a note that are searched for its history.
MAX_CHANGES_TRACED = 200
MAX_SKILLS = 200
MAX_SOURCES = 4
# The actions that change the words of a fact.
WORDED = frozenset({"correct", "merge"})
MAX_PROMPTS = 10
# The notes that each file contains now.
CurrentNotes = Mapping[str, frozenset[str]]
MAX_WORDS_CHARS = 1_000
# The actions of /memory on a fact that need only its number.
FACT_ACTIONS = ("right", "wrong", "pin", "unpin", "restore", "forget")
_HEADING = re.compile(r"(?m)^(?=#{1,3} )")


@dataclass(frozen=True, slots=True)
class NoteView:
    """A note for the page, with the change that wrote it, if that is known."""

    target: str
    text: str
    version: NoteVersion | None
    # "right" or "wrong" if a person said so, otherwise "".
    verdict: str


@dataclass(frozen=True, slots=True)
class NoteFileView:
    """A note file for the page: how full it is, and its notes with the change that wrote each."""

    target: str
    usage: str
    entries: Sequence[NoteView]


async def load_memory(request: PageRequest) -> Values:
    """Return the notes, the changes that wait for approval, and contradictory facts."""
    notebook = request.services.notebook
    files = [await _load_file(request, target) for target in FILES]
    own_scope = frozenset({request.context.scope})
    instructions = await notebook.entries(own_scope, INSTRUCTIONS)
    instruction_versions = await notebook.versions(own_scope, INSTRUCTIONS)
    pending = await notebook.review.list_pending(request.scopes)
    conflicts = await request.services.facts.list_conflicts(request.scopes)
    group_sizes = [sum(map(_measure_fact, group)) for group in conflicts]
    conflicts = conflicts[: count_fitting(group_sizes, MAX_FACTS_BYTES // 2)]
    in_conflict = [fact for group in conflicts for fact in group]
    database = request.services.database
    facts = await list_first_facts(database, request.scopes, FACTS_PER_PAGE + 1)
    rest_bytes = MAX_FACTS_BYTES - sum(map(_measure_fact, in_conflict))
    count = count_fitting(map(_measure_fact, facts[:FACTS_PER_PAGE]), rest_bytes)
    shown_facts = [*facts[:count], *in_conflict]
    return {
        "files": files,
        "instructions": "\n\n".join(instructions),
        "instructions_version": instruction_versions[-1] if instruction_versions else None,
        "pending_count": len(pending),
        "problems": await notebook.list_problems(request.scopes),
        "conflicts": conflicts,
        "groups": group_facts(request.texts, facts[:count]),
        "changes_of": await count_changes(database, request.scopes, shown_facts),
        "has_more": len(facts) > count,
    }


def _measure_fact(fact: Fact) -> int:
    """Return about how many bytes of HTML a fact has in a list."""
    return FACT_FRAME_BYTES + 2 * measure_html(fact.content)


async def _load_file(request: PageRequest, target: str) -> NoteFileView:
    notebook = request.services.notebook
    entries = await notebook.entries(request.scopes, target)
    versions = {
        version.after: version for version in await notebook.versions(request.scopes, target)
    }
    verdicts = await notebook.load_verdicts(request.scopes)
    usage = notebook.heading(target, entries)
    views = [
        NoteView(target, entry, versions.get(entry), verdicts.get((target, entry), ""))
        for entry in entries
    ]
    return NoteFileView(target, usage, views)


async def load_facts(request: PageRequest) -> Values:
    """Return one page of the facts, latest first."""
    before = request.number("before", LAST_ID)
    database = request.services.database
    facts = await list_latest_facts(database, request.scopes, FACTS_PER_PAGE + 1, before)
    count = count_fitting(map(_measure_fact, facts[:FACTS_PER_PAGE]), MAX_FACTS_BYTES)
    has_more = len(facts) > count
    facts = facts[:count]
    return {
        "facts": facts,
        "changes_of": await count_changes(database, request.scopes, facts),
        "before": facts[-1].id if has_more else None,
        "is_first": before == LAST_ID,
    }


async def load_fact(request: PageRequest) -> Values | None:
    """Return a fact with its source and history, or None if this person can't see it."""
    facts = request.services.facts
    fact = await facts.find(request.number("fact"), request.scopes)
    if fact is None:
        return None
    changes = await facts.list_changes(fact.id, request.scopes)
    closing = None
    if fact.closed_by is not None:
        closing = await facts.find(fact.closed_by, request.scopes)
    return {
        "fact": fact,
        "changes": _pair_wordings(fact, changes),
        "source": FactCommands(request.services).describe_source(
            request.texts, fact, changes, request.context
        ),
        "messages": await _load_sources(request, fact, changes),
        "changes_of": {fact.id: len(changes)},
        "closing": closing,
        "correction": _find_silent_correction(fact, changes),
        "can_change": request.context.can_change(fact.account),
    }


async def _load_sources(
    request: PageRequest, fact: Fact, changes: Sequence[FactChange]
) -> list[tuple[str, Session, Message]]:
    """Return the messages that determined the text of a fact, latest first, and what each did."""
    actions = {change.message_id: change.action for change in changes if change.before is None}
    actions |= {change.message_id: change.action for change in changes if change.action in WORDED}
    actions.setdefault(fact.message_id, "learn")
    sources = []
    for message_id, action in sorted(
        ((id_, action) for id_, action in actions.items() if id_ is not None), reverse=True
    )[:MAX_SOURCES]:
        session, message = await find_message(request, message_id)
        if session is not None and message is not None:
            action_name = request.texts.table("FACT_DONE").get(action, action)
            sources.append((action_name, session, message))
    return sources


def _find_silent_correction(
    fact: Fact, changes: Sequence[FactChange]
) -> tuple[FactChange, list[ChangedWords]] | None:
    """Return the last correction with its diff, unless it came from a message."""
    for change, words in _pair_wordings(fact, changes):
        if change.action in WORDED:
            return (change, words) if change.message_id is None else None
    return None


def _pair_wordings(
    fact: Fact, changes: Sequence[FactChange]
) -> list[tuple[FactChange, list[ChangedWords]]]:
    """Return the changes of a fact with their diffs, latest first.

    The diff is empty if a change kept the text.
    """
    pairs = []
    after = fact.content
    for change in reversed(changes):
        if change.before is None:
            # The fact was learned with these words.
            pairs.append((change, diff_words("", after)))
            continue
        before = change.before
        words = diff_words(before, after) if before != after else []
        pairs.append((change, words))
        after = before
    return pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """A change of a note, a skill or a fact, for the history."""

    # "note", "skill" or "fact".
    kind: str
    # The number of the change or of the fact, for commands.
    number: int
    at: datetime
    # What was done, in a word such as "corrected".
    done: str
    words: Sequence[ChangedWords]
    can_undo: bool = True
    # The number of changes of a fact. The change can be undone only as long as there are no more.
    fact_changes: int = 0
    # The name of a skill.
    title: str = ""
    # The file of a note.
    target: str = ""
    # The account that made the change, and the message with which it was made.
    account: str = ""
    message_id: int | None = None
    sender: str = ""
    source_text: str = ""

    @property
    def size_bytes(self) -> int:
        """Return about how many bytes of HTML it has."""
        words = sum(RUN_FRAME_BYTES + measure_html(run.text) for run in self.words)
        return ENTRY_FRAME_BYTES + words + measure_html(self.source_text[:MAX_SOURCE_CHARS])

    @property
    def anchor(self) -> str:
        return f"{self.kind[0]}{self.number}" if self.kind == "fact" else f"c{self.number}"


@dataclass(frozen=True, slots=True)
class HistoryBounds:
    """The position at which the next page of the history begins.

    The changes of that page have smaller ids than these.
    """

    notes: int
    facts: int


FIRST_BOUNDS = HistoryBounds(LAST_ID, LAST_ID)


async def load_history(request: PageRequest) -> Values:
    """Return one page of the changes of notes, skills and facts, latest first."""
    bounds = HistoryBounds(request.number("notes", LAST_ID), request.number("facts", LAST_ID))
    changes = await _list_changes(request, CHANGES_PER_PAGE + 1, bounds)
    entries = _fit_entries(await _describe_changes(request, changes[:CHANGES_PER_PAGE]))
    page = changes[: len(entries)]
    return {
        "entries": entries,
        "older": _find_bounds(page, bounds) if len(changes) > len(page) else None,
        "is_first": bounds == FIRST_BOUNDS,
    }


async def load_latest_entries(request: PageRequest, limit: int) -> Sequence[HistoryEntry]:
    """Return the latest entries of the history."""
    changes = await _list_changes(request, limit, FIRST_BOUNDS)
    return _fit_entries(await _describe_changes(request, changes[:limit]))


def _fit_entries(entries: Sequence[HistoryEntry]) -> Sequence[HistoryEntry]:
    """Return the first entries of a history, as many as are small enough for one page."""
    return entries[: count_fitting((entry.size_bytes for entry in entries), MAX_ENTRIES_BYTES)]


async def _list_changes(
    request: PageRequest, limit: int, bounds: HistoryBounds
) -> list[NoteChange | LoggedFactChange]:
    """Return up to `limit` changes of notes, and as many of facts, latest first."""
    notes = await request.services.notebook.history(request.scopes, limit, before=bounds.notes)
    facts = await list_latest_changes(
        request.services.database, request.scopes, limit, bounds.facts
    )
    changes: list[NoteChange | LoggedFactChange] = [*notes, *facts]
    changes.sort(key=lambda change: change.at, reverse=True)
    return changes


async def _describe_changes(
    request: PageRequest, changes: Sequence[NoteChange | LoggedFactChange]
) -> list[HistoryEntry]:
    """Return changes as entries of the history."""
    notes_now = await load_current_notes(request)
    sources = await _load_fact_sources(request, changes)
    return [_describe_change(request, change, notes_now, sources) for change in changes]


async def load_current_notes(request: PageRequest) -> CurrentNotes:
    """Return the current notes of each file."""
    notebook = request.services.notebook
    return {target: frozenset(await notebook.entries(request.scopes, target)) for target in FILES}


def can_undo_note(change: NoteChange, current: CurrentNotes) -> bool:
    """Return whether a change can be undone: the note that it wrote isn't replaced or removed."""
    if change.skill is not None or change.after is None or change.target not in current:
        return True
    return change.after in current[change.target]


async def _load_fact_sources(
    request: PageRequest, changes: Sequence[NoteChange | LoggedFactChange]
) -> Mapping[int | None, Message]:
    """Return the messages from which facts were learned or changed, by their ids."""
    ids = {change.message_id for change in changes if isinstance(change, LoggedFactChange)}
    numbers = [number for number in ids if number is not None]
    messages = await request.services.conversations.load_messages(numbers, request.scopes)
    return {message.id: message for message in messages}


def _find_bounds(
    page: Sequence[NoteChange | LoggedFactChange], bounds: HistoryBounds
) -> HistoryBounds:
    """Return the oldest numbers on a page of changes, from which the next page continues."""
    notes = [change.id for change in page if isinstance(change, NoteChange)]
    facts = [change.id for change in page if isinstance(change, LoggedFactChange)]
    return HistoryBounds(min(notes, default=bounds.notes), min(facts, default=bounds.facts))


def _describe_fact_change(
    request: PageRequest, change: LoggedFactChange, account: str, source: Message | None
) -> HistoryEntry:
    """Return a change of a fact as an entry of the history, with the message that caused it."""
    entry = HistoryEntry(
        kind="fact",
        number=change.fact_id,
        at=change.at,
        done=request.texts.table("FACT_DONE").get(change.action, change.action),
        words=diff_words(change.before or "", change.after),
        can_undo=change.is_last,
        fact_changes=change.total,
        account=account,
    )
    if source is None:
        return entry
    is_own = account == request.words["YOU"]
    return replace(
        entry,
        message_id=source.id,
        sender=account if is_own else source.sender_name,
        source_text=source.text,
    )


def _describe_change(
    request: PageRequest,
    change: NoteChange | LoggedFactChange,
    notes_now: CurrentNotes,
    sources: Mapping[int | None, Message],
) -> HistoryEntry:
    """Return a change as an entry of the history."""
    account = change.account.key if change.account else ""
    is_own = change.account is not None and is_own_account(request.context, change.account)
    if is_own:
        account = request.words["YOU"]
    if isinstance(change, LoggedFactChange):
        return _describe_fact_change(request, change, account, sources.get(change.message_id))
    return HistoryEntry(
        kind="note" if change.skill is None else "skill",
        number=change.id,
        at=change.at,
        done=request.texts.table("NOTE_DONE").get(change.action, change.action),
        words=diff_change(change),
        can_undo=can_undo_note(change, notes_now),
        title="/".join(change.skill or ()),
        target=change.target if change.skill is None else "",
        account=account,
        message_id=change.message_id,
        sender=request.words["YOU"] if is_own and change.sender else change.sender,
        source_text=change.source_text,
    )


async def load_note(request: PageRequest) -> Values | None:
    """Return the history of a note, or of a file of a skill, by the number of one of its changes.

    Returns None if there is no such change here.
    """
    notebook = request.services.notebook
    try:
        change = await notebook.find_change(request.scopes, request.number("number"))
    except Refused:
        return None
    # The message that changed one of the owner's skills is in another scope.
    scopes = request.scopes if change.skill else frozenset({change.scope})
    earlier = await notebook.history(scopes, MAX_CHANGES_TRACED, before=change.id)
    later = await notebook.history(scopes, MAX_CHANGES_TRACED, after=change.id)
    changes = trace_changes([*later, change, *earlier], change)
    text = changes[0].after
    note = None
    if change.target in FILES:
        views = (await _load_file(request, change.target)).entries
        note = next((view for view in views if view.text == text), None)
    notes_now = await load_current_notes(request)
    return {
        "entries": _fit_entries(
            [_describe_change(request, each, notes_now, {}) for each in changes]
        ),
        "text": text or change.after or change.before or "",
        "note": note,
    }


def trace_changes(changes: Sequence[NoteChange], start: NoteChange) -> list[NoteChange]:
    """Return the changes of the note that `start` changed, latest first.

    `changes` are the changes of all notes, latest first. A note is identified by its words: a
    change belongs to it if it changes the words that the note has at that time.
    """
    place = changes.index(start)
    traced = [start]
    words = start.after
    for change in reversed(changes[:place]):
        if change.target == start.target and _is_same_note(change, words, change.before):
            traced.insert(0, change)
            words = change.after
    words = start.before
    for change in changes[place + 1 :]:
        if change.target == start.target and _is_same_note(change, words, change.after):
            traced.append(change)
            words = change.before
    return traced


def _is_same_note(change: NoteChange, words: str | None, current_words: str | None) -> bool:
    """Whether a change is about the note with these words. A file of a skill is one note."""
    return change.skill is not None or (words is not None and current_words == words)


async def load_forget(request: PageRequest) -> Values:
    """Return the words that the form begins with, such as those of a search."""
    return {"words": request.parameter("words").strip()[:MAX_WORDS_CHARS]}


async def load_skills(request: PageRequest) -> Values:
    """Return the skills, and the problems of folders that don't contain a valid skill."""
    skills, problems = await request.services.skills.list_skills(request.scopes)
    sentences = [request.texts.word(problem) for problem in problems]
    return {"skills": skills[:MAX_SKILLS], "problems": sentences}


async def load_skill(request: PageRequest) -> Values | None:
    """Return a skill with its text, or None if this person can't see it."""
    try:
        skill = await request.services.skills.find(request.parameter("skill"), request.scopes)
        text = await request.services.skills.read_text(skill)
    except Refused:
        return None
    changes = await request.services.skills.list_history(skill, request.scopes, MAX_CHANGES_TRACED)
    return {
        "skill": skill,
        "text": text,
        "shown": fingerprint(text),
        "can_edit": skill.is_own and len(text) <= MAX_FIELD_CHARS,
        "verdict": await request.services.skills.find_verdict(skill),
        "entries": _fit_entries([_describe_change(request, change, {}, {}) for change in changes]),
    }


async def edit_skill(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Replace the text of a skill. Raises Refused if it isn't a skill, or can't be stored."""
    context = request.context
    if context.is_member:
        raise Refused(request.texts.OWNER_OF_SKILLS)
    name = read_field(request, form, "skill")
    skills = request.services.skills
    operation = Operation(action="edit", path=name, content=read_field(request, form, "text"))
    skill = await skills.find(name, context.scopes)
    check_unchanged(request, form, await skills.read_text(skill))
    report = await skills.apply(context.scope, context.scopes, operation, context.author)
    return describe_change(request.texts, report)


async def remove_skill(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Ask whether to remove a skill. Raises Refused if there is none, or if it can't be removed."""
    name = read_field(request, form, "skill")
    command = Command(name="skills", arguments=f"remove {name}")
    answer = await request.commands.run(command, request.context)
    # The page has its own button for switching a skill off.
    return replace(answer, text=request.words["SKILL_ASK"].format(name=f"**{escape(name)}**"))


async def set_instructions(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Set the instructions, like `/instructions set`.

    Raises Refused if they were changed elsewhere after the page was shown.
    """
    text = read_field(request, form, "text")
    own_scope = frozenset({request.context.scope})
    current = "\n\n".join(await request.services.notebook.entries(own_scope, INSTRUCTIONS))
    check_unchanged(request, form, current)
    command = Command(name="instructions", arguments=f"set {text}")
    answer = await request.commands.run(command, request.context)
    # A question has buttons.
    return answer if answer.buttons else Answer(text=request.words["INSTRUCTIONS_SAVED"])


async def clear_instructions(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Remove the instructions, like `/instructions clear`. The answer has a button to undo that."""
    command = Command(name="instructions", arguments="clear")
    await request.commands.run(command, request.context)
    own_scope = frozenset({request.context.scope})
    changes = await request.services.notebook.history(own_scope, 1)
    label = request.texts.BUTTON_UNDO
    buttons = [make_button(label, "memory", f"undo {change.id}") for change in changes]
    return Answer(text=request.words["INSTRUCTIONS_GONE"], buttons=tuple(buttons))


async def correct_fact(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Correct a fact, like `/memory correct`.

    Raises Refused if it was changed elsewhere after the page was shown.
    """
    number = read_field(request, form, "fact")
    text = read_field(request, form, "text")
    fact = await request.services.facts.find(int(number), request.scopes)
    if fact is not None:
        check_unchanged(request, form, fact.content)
    command = Command(name="memory", arguments=f"correct f{number} {text}")
    return await request.commands.run(command, request.context)


async def undo_fact(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Undo the last change of a fact, like `/memory undo`.

    If the fact was only learned, that deletes it, so the person is asked first. Raises Refused if
    the fact has changed since the page was shown.
    """
    number = read_field(request, form, "fact")
    shown_changes = int(read_field(request, form, "changes"))
    command = Command(name="memory", arguments=f"undo f{number}")
    facts = request.services.facts
    fact = await facts.find(int(number), request.scopes)
    changes = await facts.list_changes(int(number), request.scopes)
    if changes and len(changes) != shown_changes:
        raise Refused(request.words["CHANGED_SINCE"])
    if fact is not None and len(changes) == 1 and request.context.can_change(fact.account):
        question = request.words["UNLEARN_ASK"].format(fact=escape(fact.content))
        return Answer(text=question, confirm_command=command)
    return await request.commands.run(command, request.context)


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A section of the system prompt and its share of the tokens."""

    heading: str
    text: str
    tokens: int


async def load_prompt(request: PageRequest) -> Values:
    """Return the sections of a conversation's system prompt. The default is the latest one."""
    conversations = request.services.conversations
    latest = await conversations.list_recent(request.scopes, MAX_PROMPTS)
    number = request.number("session") or (latest[0].id if latest else 0)
    session = await conversations.find(number, request.scopes) if number else None
    parts = [] if session is None else _split_prompt(session)
    return {
        "latest": latest,
        "session": session,
        "parts": parts,
        "tokens": sum(part.tokens for part in parts),
    }


def _split_prompt(session: Session) -> list[PromptPart]:
    """Split a system prompt at its headings. The tokens are estimated from the length."""
    # Imported here because few people open this page.
    from core.models.estimates import CHARS_PER_TOKEN

    parts = []
    for text in _HEADING.split(session.prompt.text):
        heading, _, body = text.partition("\n") if text.startswith("#") else ("", "", text)
        if text.strip():
            tokens = round(len(text) / CHARS_PER_TOKEN)
            parts.append(PromptPart(heading.strip("# "), body.strip(), tokens))
    return parts


async def add_note(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Add a note to a file, like `/memory add`."""
    operation = Operation(action="add", content=read_field(request, form, "text"))
    return await _change_note(request, form, operation)


async def replace_note(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Replace a note, like `/memory replace`."""
    old_text = read_field(request, form, "note")
    new_text = read_field(request, form, "text")
    target = form.get("target", "")
    if target in FILES:
        entries = await request.services.notebook.entries(request.scopes, target)
        if old_text not in entries:
            raise Refused(request.words["NOTE_GONE"])
    operation = Operation(action="replace", old_text=old_text, content=new_text)
    return await _change_note(request, form, operation)


async def remove_note(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Remove a note, like `/memory remove`."""
    operation = Operation(action="remove", old_text=read_field(request, form, "note"))
    return await _change_note(request, form, operation)


async def _change_note(
    request: PageRequest, form: Mapping[str, str], operation: Operation
) -> Answer:
    """Change a note through the chat command's code. Raise Refused if that isn't possible."""
    target = form.get("target", "")
    if target not in FILES:
        raise Refused(request.words["WRONG_FIELD"])
    edit = NoteEdit(operation, target, is_insisting=False)
    # As in a chat: a suspicious text gets a question with a button.
    context = replace(request.context, is_shell=False)
    return await MemoryCommands(request.services).change(edit, context)


def _facts(name: str, arguments: str) -> Action:
    return Action(f"fact-{name}", run_command("memory", arguments))


PAGE = Page(
    "memory",
    views=(
        View("/memory", "memory.html", load_memory, is_streamed=True),
        View("/memory/facts", "facts.html", load_facts),
        View("/memory/facts/{fact}", "fact.html", load_fact),
        View("/memory/history", "history.html", load_history),
        View("/memory/notes/{number}", "note.html", load_note),
        View("/memory/forget", "forget.html", load_forget),
        View("/memory/skills", "skills.html", load_skills),
        View("/memory/skills/{skill}", "skill.html", load_skill),
        View("/memory/prompt", "prompt.html", load_prompt),
    ),
    actions=(
        Action("remember", run_command("remember", "{text}")),
        *(_facts(name, f"{name} f{{fact}}") for name in FACT_ACTIONS),
        Action("fact-correct", correct_fact),
        Action("fact-undo", undo_fact),
        Action("note-add", add_note),
        Action("note-replace", replace_note),
        Action("note-remove", remove_note),
        Action("note-right", run_command("memory", "right {number}")),
        Action("note-wrong", run_command("memory", "wrong {number}")),
        Action("note-pin", run_command("memory", "pin {number}")),
        Action("note-unpin", run_command("memory", "unpin {number}")),
        Action("change-undo", run_command("memory", "undo {number}")),
        Action("instructions-set", set_instructions),
        Action("instructions-clear", clear_instructions),
        Action("skill-enable", run_command("skills", "enable {skill}")),
        Action("skill-disable", run_command("skills", "disable {skill}")),
        Action("skill-right", run_command("skills", "right {skill}")),
        Action("skill-wrong", run_command("skills", "wrong {skill}")),
        Action("skill-edit", edit_skill),
        Action("skill-remove", remove_skill),
        Action("forget-words", run_command("forget", "{words}")),
    ),
)
