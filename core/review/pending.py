"""Stores changes that wait for confirmation, and checks whether a change must wait.

A text that a person typed is stored at once, without invisible characters. But if it looks
suspicious, such as a password, Mneme refuses it and asks the person to reword it or to insist.

Any other text waits. It's stored only after the person who decides for its scope has confirmed it.
`core/notes/approval.py`, `core/skills/tools.py` and `core/facts/provider.py` decide which changes
must wait. This module never changes a file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from core.errors import Refused, Sentence, word_clause
from core.guard import guard
from core.guard.origin_and_fence import account_mark, origin_label
from core.ports import Clock
from core.review.phrases import ANSWER_SENTENCE_END, ends_with_question, list_questions
from core.review.repetition import shares_words
from core.store.actions import YES_TO_MODEL, YES_TO_REPETITION, YES_TO_SEVERAL
from core.store.notes import TOOL_CALL, Author, Notes, Operation, PendingNote
from core.types import Account, Command, ErasureEpoch, Message, Scope, Sender, ToolContext

# A person writes this before a text to store the text even if it looks suspicious.
ANYWAY = "--anyway"
# The beginning of the result of a call that waits for confirmation. `ToolRunner` ensures that no
# result of an external tool begins like this.
WAITING_LEAD = "Not kept yet: "
# Phones replace two hyphens with a dash.
_ANYWAY_SPELLINGS = (ANYWAY, "\N{EM DASH}anyway")
# A line of recalled background, such as "- m12 …", but not of a note (n1) or a fact (f1).
_RECALLED_LINE = re.compile(r"- (?![nf]\d)")
MAX_NAME_CHARS = 80


@dataclass(frozen=True, slots=True)
class EditableText:
    """A text of a waiting change that a person may reword before approving it."""

    # The argument of a tool call, such as "to" or "items.1.name". Empty for anything else.
    name: str
    text: str


class Review:
    """Stores, lists and announces the changes that wait for confirmation."""

    def __init__(
        self,
        notes: Notes,
        clock: Clock,
        on_pending: Callable[[PendingNote], Awaitable[None]] | None = None,
        on_warning: Callable[[Scope, str, str, str], Awaitable[None]] | None = None,
    ) -> None:
        self._notes = notes
        self._clock = clock
        # Announces a change that waits for confirmation.
        self._on_pending = on_pending
        # Called with the scope, target, suspicion and text of a suspicious note that was written
        # into a file by hand.
        self.on_warning = on_warning

    async def put_aside(
        self,
        scope: Scope,
        target: str,
        operations: Sequence[Operation],
        author: Author,
        reason: str,
    ) -> str:
        """Store a change until a person confirms it, and return a sentence for the model.

        `reason` is a clause that says why the change waits. Raises Refused if too many changes are
        already waiting.
        """
        note = PendingNote(
            **author.source_values,
            scope=scope,
            target=target,
            operations=tuple(operations),
            reason=reason,
            at=self._clock.now(),
            is_proposed=author.is_proposed,
        )
        # The answer of a turn shows the waiting changes, except in a group, because the owner may
        # not be a member.
        is_shown = author.call is not None and not scope.is_group
        if not await self.add_pending(note, author.epoch, is_announced=not is_shown):
            raise Refused("too_many_wait", reason=reason)
        if author.is_proposed:
            return (
                "Proposed: right after this answer, it's compared with what the person typed, and "
                "they're told whether it was noted. Do not try it again in other words."
            )
        decider = "the owner" if scope.is_group else "the person"
        return (
            f"{WAITING_LEAD}{reason}. It waits for {decider} to say yes "
            "(/memory pending). Do not try it again in other words."
        )

    async def add_pending(
        self, note: PendingNote, epoch: ErasureEpoch | None, *, is_announced: bool = True
    ) -> bool:
        """Store and announce a change that waits. Returns False if too many are already waiting."""
        stored_note = await self._notes.add_pending(note, epoch)
        if stored_note is None:
            return False
        is_announced = is_announced and not stored_note.is_proposed
        if self._on_pending is not None and is_announced:
            await self._on_pending(stored_note)
        return True

    async def list_pending(self, scopes: frozenset[Scope]) -> Sequence[PendingNote]:
        """Return the waiting changes, oldest first."""
        return await self._notes.list_pending(scopes)

    async def announce_pending(self, scopes: frozenset[Scope]) -> None:
        """Announce the oldest draft and the oldest other change of each scope again.

        When they were first announced, the person may not have had a chat with Mneme.
        """
        if self._on_pending is None:
            return
        # `list_pending` returns the oldest first, so the last assignment for a key is the oldest.
        oldest_notes: dict[tuple[Scope, bool], PendingNote] = {}
        for note in reversed(await self.list_pending(scopes)):
            if note.is_proposed:
                continue
            oldest_notes[note.scope, note.is_draft] = note
        for note in oldest_notes.values():
            await self._on_pending(note)


def clean_typed_text(
    content: str, limit_chars: int, *, has_anyway: bool
) -> tuple[str, Sentence | None]:
    """Return a typed text without hidden characters, and a sentence about the removed ones.

    The sentence is empty if no suspicious character was removed. Raises Refused if the text is too
    long, or if it's suspicious and the person doesn't insist (`has_anyway`).
    """
    if len(content) > limit_chars:
        raise Refused("note_too_long", chars=len(content), limit=limit_chars)
    text = guard.clean_text(content)
    if not has_anyway:
        suspicion = guard.find_suspicion(text)
        if suspicion:
            raise Refused("ask_to_reword", suspicion=suspicion)
    removed_part = guard.find_suspicion(content) if text != content else None
    if not removed_part:
        return text, None
    return text, Sentence("note_cleaned", {"part": removed_part})


def explain_suspicion(operations: Sequence[Operation]) -> str | None:
    """Return a clause that says why the contents look suspicious, or None if they don't.

    A person must confirm suspicious contents, no matter who wrote them.
    """
    for operation in operations:
        suspicion = guard.find_suspicion(operation.content)
        if suspicion:
            return word_clause("waits_suspicious", suspicion=suspicion)
    return None


def split_anyway(text: str) -> tuple[str, bool]:
    """Return the text without a leading --anyway, and whether the text had one."""
    word, _, rest = text.partition(" ")
    if word in _ANYWAY_SPELLINGS:
        return rest.strip(), True
    return text, False


def is_foreign(row: Message, asker: Sender, own_tools: Sequence[str]) -> bool:
    """Return whether a message contains text that the asker didn't type.

    Such text is the result of a tool other than `own_tools`, a forward, a quote of another person,
    a paste, a file, or a message by another member.
    """
    if row.role != "user":
        # The assistant's own messages don't count.
        return row.role == "tool" and row.tool_name not in own_tools
    quotes_other = row.quote is not None and not row.quote.is_ours and row.quote.user_id != asker.id
    is_from_other = row.sender is not None and row.sender.id != asker.id
    return quotes_other or bool(origin_label(row)) or is_from_other


def find_foreign_source(
    rows: Sequence[Message], context: ToolContext, own_tools: Sequence[str]
) -> str | None:
    """Return a clause that says why a change by the model may not come from the asker, or None.

    The clause is about the first message with foreign or recalled text in the conversation, or
    about text by others that is part of every request.
    """
    source = context.foreign_source
    for row in rows:
        if _is_recalled(row) or is_foreign(row, context.sender, own_tools):
            source = word_clause("source_untyped_here")
            if row.role == "tool":
                source = word_clause("source_tool_result", tool=row.tool_name)
            break
    if not source:
        return None
    return word_clause("waits_idea_of_others", source=source)


def list_editable_texts(note: PendingNote) -> list[EditableText]:
    """Return the texts of a waiting change: what it would store, or the arguments of a tool call.

    The result is empty for a change without words, such as a removal.
    """
    if note.target == TOOL_CALL:
        return list(_walk_texts(json.loads(note.operations[0].content)))
    return [EditableText("", each.content) for each in note.operations if each.content]


def reword(note: PendingNote, new_texts: Sequence[str], account: Account) -> PendingNote:
    """Return a waiting change with the texts that a person typed on the page.

    The texts have the order of `list_editable_texts`.
    """
    texts = iter(new_texts)
    reason = word_clause("waits_reworded")
    if note.target == TOOL_CALL:
        arguments = _replace_texts(json.loads(note.operations[0].content), texts)
        content = json.dumps(arguments, ensure_ascii=False)
        operations: Sequence[Operation] = [replace(note.operations[0], content=content)]
    else:
        operations = [
            replace(each, content=next(texts)) if each.content else each for each in note.operations
        ]
    return replace(note, operations=tuple(operations), account=account, reason=reason)


def _walk_texts(value: object, name: str = "") -> Iterator[EditableText]:
    """Yield the texts in the arguments of a call that aren't empty, each with its path."""
    if isinstance(value, str):
        if value.strip():
            yield EditableText(name, value)
    elif isinstance(value, dict):
        for key, child in value.items():
            yield from _walk_texts(child, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for number, child in enumerate(value, 1):
            yield from _walk_texts(child, f"{name}.{number}" if name else str(number))


def _replace_texts(value: object, texts: Iterator[str]) -> object:
    """Return the arguments of a call with the texts that the person typed instead of its own."""
    if isinstance(value, str):
        return next(texts) if value.strip() else value
    if isinstance(value, dict):
        return {key: _replace_texts(child, texts) for key, child in value.items()}
    if isinstance(value, list):
        return [_replace_texts(child, texts) for child in value]
    return value


def is_waiting_result(text: str) -> bool:
    """Return whether the result of a call says that the call waits for confirmation."""
    return text.startswith(WAITING_LEAD)


def quote_operations(
    name: str, account: Account, operations: Sequence[Operation]
) -> list[Operation]:
    """Turn the contents of a group member's operations into quotations: "Ana #3fa9: “…”"."""
    short_name = " ".join(name.split())[:MAX_NAME_CHARS]
    author = f"{short_name} {account_mark(account)}"
    quoted_operations = []
    for operation in operations:
        if operation.content:
            content = f"{author}: “{operation.content.strip()}”"
            operation = replace(operation, content=content)
        quoted_operations.append(operation)
    return quoted_operations


def _is_recalled(row: Message) -> bool:
    """Return whether a message contains text from another conversation.

    This can be a summary, the result of a job, or recalled background. Recalled notes and facts
    don't count, because people typed or accepted them.
    """
    if row.kind == "summary" or row.origin == "job":
        return True
    for block in row.memory_blocks:
        lines = str(block.get("text", "")).splitlines()
        if any(_RECALLED_LINE.match(line) for line in lines):
            return True
    return False


def choose_command(commands: Sequence[Command], answer: str) -> Command | None:
    """Return which of the commands that wait for a "yes" it confirms.

    `answer` is the model's last answer. None means that the model gets the "yes", because it asked
    the question.
    """
    to_model = (YES_TO_MODEL, YES_TO_REPETITION)
    others = [command for command in commands if command not in to_model]
    if not others:
        return None
    if len(others) > 1 or len(list_questions(answer)) > 1:
        # The person may not have seen all questions yet, so it's unclear which one is meant.
        return YES_TO_SEVERAL
    _, _, task = others[0].arguments.partition(" | ")
    if answer and task and others[0].name in ("remind", "cron"):
        # A tool stored the question, and the model's answer may not show it.
        return others[0] if shows_question(answer, task) else None
    return YES_TO_SEVERAL if len(others) < len(commands) else others[0]


def shows_question(answer: str, task: str) -> bool:
    """Return whether an answer ends with a single question, which names a task.

    A sentence that says how to answer may follow, such as "Answer yes to set it".
    """
    sentences = [part for part in ANSWER_SENTENCE_END.split(answer.strip()) if part.strip()]
    places = [place for place, part in enumerate(sentences) if ends_with_question(part)]
    is_alone = len(places) == 1 and places[0] >= len(sentences) - 2
    return is_alone and shares_words(task, sentences[places[0]], 1.0)
