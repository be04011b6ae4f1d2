"""Asks the helper model whether notes follow from the person's messages if rules can't decide.

`core/notes/approval.py` proposes such a note during a turn. After the answer, one call asks the
helper model about all proposed notes of a conversation. A note that follows is added, and the
person gets a receipt. The other notes wait for the person's confirmation. If the model can't be
reached, all of them wait. Proposals are stored, so they are judged even after a crash.

If a later message corrects a note, the rules refuse the note. It then waits for confirmation,
whatever the model says.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import structlog
from pydantic import BaseModel, ConfigDict

from core.errors import ModelError, Refused
from core.facts.closeness import Support
from core.facts.evidence import Evidence, EvidenceSearch
from core.facts.reading.operations import parse_items
from core.models.wrappers import ask_model
from core.notes.notebook import Notebook
from core.ports import Model
from core.store.notes import Author, Notes, PendingNote
from core.text.normalize import language_data
from core.types import Address, BillingScope, ErasureEpoch, Scope, Sender, Session

MAX_TOKENS = 1_000
MAX_LINES = 40
"""The helper model reads this many of the latest typed lines."""
MAX_CHANGES = 50
"""This many of the latest changes are searched for a note that was added before a crash."""
MAX_NOTES = 20
"""One call asks about at most this many notes. The others wait for approval."""
_log = structlog.get_logger("verdicts")

OnVerdict = Callable[[PendingNote, int | None], Awaitable[bool]]
"""Reports the verdict on a note to the person. The number is that of the note's change, or None if
the note needs approval. Returns False if the answer of the note's turn isn't written yet. The
verdict is then reported later."""


class _Verdict(BaseModel):
    """The helper model's verdict on one note."""

    model_config = ConfigDict(extra="forbid", strict=True)

    # The number of the note, starting with 1.
    note: int
    follows: Literal["yes", "no", "unclear"]


@dataclass(frozen=True, slots=True)
class _Proposal:
    note: PendingNote
    epoch: ErasureEpoch

    @property
    def text(self) -> str:
        return "\n".join(
            operation.content for operation in self.note.operations if operation.content
        )


@dataclass
class Verifier:
    """Judges, after the answer of a turn, the notes that the turn proposed."""

    notebook: Notebook
    notes: Notes
    evidence: EvidenceSearch
    # The helper model and its name.
    model: Model
    name: str
    on_verdict: OnVerdict
    # Returns False if another gateway works on an address.
    is_ours: Callable[[Address], bool] = lambda _: True

    def __post_init__(self) -> None:
        # Whether proposed notes may be waiting, including those of an earlier process.
        self.has_proposals = True
        # The verdicts that weren't reported to the person yet: the number of the note's change or
        # None, by the id of the note.
        self._unreported: dict[int, int | None] = {}

    async def judge_proposals(self, busy_scopes: Collection[Scope]) -> None:
        """Judge all proposed notes except those of scopes with a running turn."""
        if not self.has_proposals:
            return
        self.has_proposals = False
        batches: dict[int | None, tuple[Session | None, list[_Proposal]]] = {}
        for note, epoch in await self.notes.list_proposed():
            if note.scope in busy_scopes:
                self.has_proposals = True
                continue
            session = None
            if note.message_id is not None:
                session = await self.evidence.conversations.find_by_message(
                    note.message_id, frozenset((note.scope,))
                )
            if session is not None and not self.is_ours(session.address):
                continue
            key = None if session is None else session.id
            batches.setdefault(key, (session, []))[1].append(_Proposal(note, epoch))
        for session, proposals in batches.values():
            await self._settle_conversation(session, proposals)

    async def _settle_conversation(
        self, session: Session | None, proposals: Sequence[_Proposal]
    ) -> None:
        """Add the notes that follow from their conversation, and ask the person about the others.

        Also reports verdicts that earlier calls couldn't report.
        """
        unjudged = [each for each in proposals if each.note.id not in self._unreported]
        following: set[int] = set()
        if session is not None and unjudged:
            following = await self._ask(session, unjudged[:MAX_NOTES])
        for index, proposal in enumerate(unjudged):
            change_id = None
            if index in following:
                change_id = await self._add_note(proposal)
            self._unreported[proposal.note.id] = change_id
        for proposal in proposals:
            await self._report_verdict(proposal.note)

    async def _report_verdict(self, note: PendingNote) -> None:
        """Report the verdict on a note to the person. If that fails, a later call tries again.

        The note stays proposed until the verdict is reported. If a crash prevents the report, the
        note is judged again. An answer that is being written meanwhile still mentions the verdict,
        and the person isn't informed twice.
        """
        change_id = self._unreported[note.id]
        if not await self.on_verdict(note, change_id):
            self.has_proposals = True
            return
        del self._unreported[note.id]
        if change_id is None:
            await self.notes.ask_about(note.id)
        else:
            await self.notes.drop(note.id)

    async def _ask(self, session: Session, proposals: Sequence[_Proposal]) -> set[int]:
        """Ask the helper model for the indexes of the notes that follow from the messages."""
        note = proposals[0].note
        sender = _sender_of(note) if note.scope.is_group else None
        evidence = await self.evidence.load_session(session, frozenset((note.scope,)))
        possible = await asyncio.to_thread(_find_possible, evidence, proposals, sender)
        if not possible:
            return set()
        lines = _render_lines(evidence, sender)
        questions = [
            json.dumps({"note": number, "text": proposals[index].text}, ensure_ascii=False)
            for number, index in enumerate(possible, 1)
        ]
        try:
            completion = await ask_model(
                self.model,
                self.name,
                "evidence",
                language_data("prompts", "core.notes")["evidence"],
                ["\n".join(lines), "\n".join(questions)],
                max_tokens=MAX_TOKENS,
                billing=BillingScope(
                    session_id=session.id,
                    scope=note.scope,
                    user_id=note.account.user_id if note.account else "",
                ),
            )
        except ModelError as error:
            _log.info("notes wait for approval", why=error.log_message)
            return set()
        return _read_verdicts(completion.text, possible)

    async def _add_note(self, proposal: _Proposal) -> int | None:
        """Add a proposed note. Returns the number of its change, or None if that fails."""
        note = proposal.note
        scopes = frozenset((note.scope,))
        made_id = await self._find_added_change(note)
        if made_id is not None:
            return made_id
        author = Author(**note.source_values, origin="typed", epoch=proposal.epoch)
        try:
            await self.notebook.apply(note.scope, scopes, note.target, note.operations, author)
            change = await self.notebook.find_change(scopes, None)
        except Refused as refusal:
            _log.info("a note can't be added", why=str(refusal))
            return None
        return change.id

    async def _find_added_change(self, note: PendingNote) -> int | None:
        """Return the number of the change with which an earlier process added the note, or None."""
        contents = {operation.content for operation in note.operations}
        changes = await self.notes.list_changes(frozenset((note.scope,)), MAX_CHANGES)
        for change in changes:
            is_of_turn = change.message_id == note.message_id and change.at >= note.at
            if is_of_turn and change.after in contents:
                return change.id
        return None


def _find_possible(
    evidence: Evidence, proposals: Sequence[_Proposal], sender: Sender | None
) -> list[int]:
    """Return the indexes of the notes that the rules allow."""
    possible = []
    for index, proposal in enumerate(proposals):
        replaced = [operation.old_text for operation in proposal.note.operations]
        whole = evidence.with_accepted([*filter(None, replaced)], proposal.note.at)
        judgement = whole.judge_note(proposal.text, sender, with_doubtful=True)
        if judgement.support is not Support.REFUSED:
            possible.append(index)
    return possible


def _render_lines(evidence: Evidence, sender: Sender | None) -> list[str]:
    """Return the latest typed messages, and their parts that may be pasted, as lines of JSON."""
    typed = evidence.list_typed(sender)
    whole = evidence.list_typed(sender, with_doubtful=True)
    lines = []
    for line, whole_line in list(zip(typed, whole, strict=True))[-MAX_LINES:]:
        fields = {"typed": line.text, "on": f"{line.day:%A %d %B %Y}"}
        doubtful_text = whole_line.text.removeprefix(line.text).strip()
        if doubtful_text:
            fields["may be pasted"] = doubtful_text
        lines.append(json.dumps(fields, ensure_ascii=False))
    return lines


def _read_verdicts(answer: str, possible: Sequence[int]) -> set[int]:
    """Return the indexes of the notes with only "yes" verdicts.

    If the model's answer is incomplete, return none.
    """
    verdicts, is_whole = parse_items(answer, _Verdict)
    if not is_whole:
        return set()
    answers: dict[int, set[str]] = {}
    for verdict in verdicts:
        answers.setdefault(verdict.note, set()).add(verdict.follows)
    return {index for number, index in enumerate(possible, 1) if answers.get(number) == {"yes"}}


def _sender_of(note: PendingNote) -> Sender | None:
    return None if note.account is None else Sender(id=note.account.user_id, name="")
