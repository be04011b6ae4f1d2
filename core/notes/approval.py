"""Decides which changes of notes a person must confirm before they're made.

A change that the model asks for is made at once if the person typed its content in this
conversation. It waits for confirmation in these cases:

* Its content looks suspicious, such as a password (`find_suspicion` in `core/guard/guard.py`).
* The person didn't type its content. `core/facts/closeness.py` compares the content with their
  messages. If these rules can't decide, the helper model decides after the answer
  (`core/notes/verdicts.py`).
* A group member asks for a note to be added or reworded. The owner decides about the notes of a
  group.

Changes made with /memory aren't checked here, because a person typed them. `core/review/pending.py`
stores and announces the changes that wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.errors import ToolError, word_clause
from core.facts.closeness import Support
from core.facts.evidence import Evidence, EvidenceSearch
from core.guard.guard import REASONS
from core.notes.notebook import Notebook
from core.review.naming import dictates_change
from core.review.pending import explain_suspicion, quote_operations
from core.store.notes import Author, Operation
from core.types import Sender, Subject, ToolContext


@dataclass
class NoteApproval:
    """Decides for each call of the tool `memory` whether the person must confirm its operations."""

    notebook: Notebook
    evidence: EvidenceSearch
    # Whether a helper model judges notes about which the rules can't decide.
    has_verifier: bool = False

    async def decide(
        self, target: str, operations: Sequence[Operation], context: ToolContext
    ) -> tuple[Sequence[Operation], Author]:
        """Return the operations and their author for `Notebook.apply`.

        The author's origin is "typed" if the operations may be applied at once. Otherwise they wait
        for confirmation, and `author.reason` gives the reason. The content of a group member
        becomes a quotation with their name. Raises ToolError if a group member may not change one
        of the notes.
        """
        author = Author(account=context.account, message_id=context.message_id, epoch=context.epoch)
        # The owner's own groups see more than their own scope. There, the owner has the same rights
        # as in a private chat.
        is_others_group = context.scope.is_group and context.scopes == {context.scope}
        if is_others_group:
            await self._check_member_rights(target, operations, context)
            if any(operation.content for operation in operations):
                quotations = quote_operations(context.sender.name, context.account, operations)
                return quotations, replace(
                    author, origin="member", reason=word_clause("waits_group_notes")
                )

        reason = explain_suspicion(operations) or context.hold_reason or None
        is_unclear = False
        if reason is None:
            reason, is_unclear = await self._explain_untyped(target, operations, context)
        if reason is None:
            return operations, replace(author, origin="typed")
        is_proposed = is_unclear and self.has_verifier
        return operations, replace(author, reason=reason, is_proposed=is_proposed)

    async def _check_member_rights(
        self, target: str, operations: Sequence[Operation], context: ToolContext
    ) -> None:
        """Raise ToolError if a group member would change a note that another person added."""
        for operation in operations:
            if operation.action == "add":
                continue
            _, _, origin = await self.notebook.find_note(
                context.scopes, operation.old_text, [target]
            )
            if origin is None or origin.account != context.account:
                raise ToolError(
                    "In a group, only the person who added a note, or the owner with /memory, can "
                    "change it."
                )

    async def _explain_untyped(
        self, target: str, operations: Sequence[Operation], context: ToolContext
    ) -> tuple[str | None, bool]:
        """Return a clause about content that the person didn't type, or None.

        The second result is True if the contents may still follow from the person's messages. The
        words of the replaced note count as typed, because the person accepted that note.
        """
        old_texts = [text for operation in operations if (text := operation.old_text.strip())]
        entries = await self.notebook.entries(context.scopes, target)
        replaced_entries = [entry for entry in entries if any(text in entry for text in old_texts)]
        contents = [operation.content for operation in operations if operation.content.strip()]
        evidence = await self.evidence.load_evidence(context, replaced_entries)
        if len(replaced_entries) == len(contents) == 1:
            subject = Subject(label="the note", text=replaced_entries[0], kind="memory")
            message = evidence.latest_typed_text
            if await asyncio.to_thread(dictates_change, message, contents[0], subject):
                return None, False
        sender = context.sender if context.scope.is_group else None
        return await asyncio.to_thread(_explain_unsupported, evidence, contents, sender)


def _explain_unsupported(
    evidence: Evidence, contents: Sequence[str], sender: Sender | None
) -> tuple[str | None, bool]:
    """Return a clause about the first content that isn't close to the typed messages, or None.

    The second result is True if the contents neither contradict the messages nor add to them. For
    this check, lines that may have been pasted count as typed.
    """
    reason = None
    is_unclear = True
    for content in contents:
        judgement = evidence.judge_note(content, sender)
        if judgement.support is Support.CLOSE:
            continue
        with_doubtful = evidence.judge_note(content, sender, with_doubtful=True)
        is_unclear = is_unclear and with_doubtful.support is not Support.REFUSED
        if with_doubtful.support is Support.CLOSE:
            reason = reason or word_clause("waits_suspicious", suspicion=REASONS["doubtful"])
        if judgement.reasons & {"name", "figure", "nothing typed"}:
            reason = reason or evidence.describe_missing(content)
        reason = reason or word_clause("waits_other_wording")
    return reason, is_unclear
