"""Decides before a tool runs whether its call runs at once or waits for the person's approval.

The gate checks the calls of all tools. It considers the effect of the call (`core.types.Effect`),
the person's words in the messages that are being answered, and the foreign text in the conversation
(`core/review/transcript.py`):

* `READ` and `SPEND` run at once. A budget limits the costs of a turn.
* A call that changes a pinned item waits.
* If the person wrote something, and the conversation contains no foreign text, every other call
  runs at once. There is one exception: a long message may contain a paste that can't be recognized.
  In a conversation with such a message, an item is removed or weakened at once only if a short
  message names the item.
* Otherwise, the whole message must be a request for the call (`core/review/wishes.py`). If it has
  other content, the helper model decides (`core/review/wish_judge.py`). Texts that are added or
  sent must consist of words that the person typed. The address of a look-up may also be one that an
  earlier look-up returned.

The tools for notes, facts, skills and reminders also compare their texts with the typed messages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from core.errors import Refused, ToolError, word_clause
from core.review.effects import list_effects
from core.review.naming import is_same_word, mentions_subject, names_subject
from core.review.pending import Review
from core.review.phrases import is_dictated, to_plain
from core.review.repetition import shares_words
from core.review.searches import has_other_content, is_offered, list_searchable, names_address
from core.review.transcript import Transcript, TranscriptReader
from core.review.wish_judge import WishedCall, WishJudge
from core.review.wishes import Wish, find_wishes, is_short_line
from core.store.notes import TOOL_CALL, Author, Operation
from core.text.normalize import words_of
from core.text.terms import word_terms
from core.types import Effect, Json, Subject, Tool, ToolContext

EvidenceCheck = Callable[[Sequence[str], ToolContext], Awaitable[str | None]]
"""Returns a clause about the first text that the person didn't type, or None."""

FREE_EFFECTS = frozenset({Effect.READ, Effect.SPEND})
# A replacement counts as typed if the person typed at least this share of the words that it adds.
_MIN_TYPED_SHARE = 0.6
# A replacement must repeat at least this share of the words of the note that it replaces.
_MIN_KEPT_SHARE = 0.3
# A replacement may drop this many words more than it adds, such as an article.
_MAX_DROPPED_WORDS = 1
# For these effects, the texts of a call are compared with the typed messages. A tool that holds
# back its own calls (`can_hold`) compares them itself.
_CONTENT_EFFECTS = frozenset({Effect.ADD, Effect.CHANGE, Effect.PLAN})
# The person must have typed at least this share of the words in a text that leaves the machine.
_MIN_SENT_SHARE = 1.0
# Effects that need an explicit request if a long message may contain a paste.
_ENDING_EFFECTS = frozenset({Effect.REMOVE, Effect.WEAKEN})
# Effects that a voice message may have at once. Others wait, because speech is easily misheard.
_SPOKEN_EFFECTS = frozenset({Effect.ADD, Effect.PLAN})


@dataclass
class Gate:
    """Decides whether a call runs at once, and stores the calls that need approval."""

    transcripts: TranscriptReader
    review: Review
    explain_untyped: EvidenceCheck
    # Judges requests that the rules don't recognize. None without a helper model.
    judge: WishJudge | None = None

    async def check(self, tool: Tool, arguments: Json, context: ToolContext) -> ToolContext:
        """Return the context for a call. If the call has to wait, its `hold_reason` says why.

        Raises ToolError if the arguments name an action that the tool doesn't have.
        """
        effects = list_effects(tool, arguments) - FREE_EFFECTS
        if not effects:
            return context
        subjects = await _find_subjects(tool, arguments, context)
        for subject in subjects:
            if subject.is_pinned:
                reason = word_clause("waits_pinned", label=subject.label)
                return replace(context, hold_reason=reason)
        transcript = await self.transcripts.load(context)
        context = replace(context, foreign_source=transcript.tool_source)
        if transcript.is_spoken and effects - _SPOKEN_EFFECTS:
            return replace(context, hold_reason=word_clause("waits_misheard"))
        if transcript.is_clean:
            effects = _list_doubtful_effects(effects, subjects, transcript)
        for effect in sorted(effects, key=lambda effect: effect.value):
            reason = await self._explain(effect, tool, arguments, subjects, transcript, context)
            if reason:
                return replace(context, hold_reason=reason)
        return context

    async def hold(self, tool: Tool, arguments: Json, context: ToolContext) -> str:
        """Store a call until the person approves it, and return a sentence for the model.

        Raises Refused if too many changes are already waiting.
        """
        author = Author(
            account=None if context.sender.is_anonymous else context.account,
            message_id=context.message_id,
            address=context.session.address,
            epoch=context.epoch,
        )
        content = json.dumps(dict(arguments), ensure_ascii=False)
        operation = Operation(action="call", path=tool.name, content=content)
        return await self.review.put_aside(
            context.scope, TOOL_CALL, [operation], author, context.hold_reason
        )

    async def _explain(
        self,
        effect: Effect,
        tool: Tool,
        arguments: Json,
        subjects: Sequence[Subject],
        transcript: Transcript,
        context: ToolContext,
    ) -> str:
        """Return a clause that says why a call with this effect has to wait, or ""."""
        arguments, action_argument = _open_call(tool, arguments)
        texts = _list_texts(arguments, action_argument)
        if effect is Effect.SEND and tool.is_lookup:
            return await self._explain_lookup(tool, arguments, transcript, context)
        if effect in (*_CONTENT_EFFECTS, Effect.SEND) and not tool.can_hold:
            texts += _list_odd_texts(arguments, action_argument)
            missing = await self._explain_content(texts, transcript, context)
            if missing:
                return missing
        if effect is Effect.ADD:
            return ""
        is_new_plan = effect is Effect.PLAN and not subjects
        if is_new_plan and tool.can_hold and transcript.messages:
            # The tool itself compares the text and the time with the typed messages, and asks the
            # helper.
            return ""
        known = [*texts, tool.name.replace("_", " ")]
        if effect is Effect.SEND and not _is_typed_to_send(texts, subjects, transcript):
            return _word_not_wished(transcript)
        reason = _explain_untyped(effect, texts, subjects, transcript, known)
        if reason and await self._is_wished(tool, effect, arguments, subjects, transcript, context):
            return ""
        return reason

    async def _is_wished(
        self,
        tool: Tool,
        effect: Effect,
        arguments: Json,
        subjects: Sequence[Subject],
        transcript: Transcript,
        context: ToolContext,
    ) -> bool:
        """Return whether the helper model says that the person requested a call."""
        if self.judge is None:
            return False
        wished = WishedCall(tool.name, effect, arguments, subjects)
        return await self.judge.is_wished(wished, transcript, context)

    async def _explain_lookup(
        self, tool: Tool, arguments: Json, transcript: Transcript, context: ToolContext
    ) -> str:
        """Return a clause that says why a look-up has to wait, or "".

        If the words and addresses were typed in a message with other content, the helper model
        decides.
        """
        reason, is_typed = _judge_lookup(arguments, transcript, context)
        if reason and is_typed:
            effect = Effect.SEND
            if await self._is_wished(tool, effect, arguments, (), transcript, context):
                return ""
        return reason

    async def _explain_content(
        self, texts: Sequence[str], transcript: Transcript, context: ToolContext
    ) -> str:
        """Return a clause that says which text of a call the person didn't type, or ""."""
        others = [
            text
            for text in texts
            if not any(is_dictated(text, message) for message in transcript.messages)
        ]
        missing = await self.explain_untyped(others, context)
        is_typed = bool(texts) and all(
            shares_words(text, transcript.all_typed, _MIN_TYPED_SHARE) for text in texts
        )
        if missing or is_typed:
            return missing or ""
        # The words of another member of a group aren't the asker's.
        return word_clause("waits_not_typed")


def _open_call(tool: Tool, arguments: Json) -> tuple[Json, str]:
    """Return the arguments that a call passes on, and the name of the one with the action, or "".

    A tool that stands for several tools passes on the arguments of the inner tool.
    """
    if not tool.inner_argument:
        return arguments, tool.action_argument
    inner = arguments.get(tool.inner_argument)
    return (inner if isinstance(inner, Mapping) else {}), ""


def _list_doubtful_effects(
    effects: Iterable[Effect], subjects: Sequence[Subject], transcript: Transcript
) -> frozenset[Effect]:
    """Return the effects that need an explicit request even without foreign text.

    These are removing and weakening, if the message that is being answered quotes something, or if
    a long message may contain a paste that can't be recognized.
    """
    known = "\n".join(subject.text for subject in subjects)
    if all(is_short_line(text, known) for text in transcript.messages):
        is_named = bool(subjects) and all(
            any(mentions_subject(text, subject) for text in transcript.messages)
            for subject in subjects
        )
        if is_named or not transcript.has_long:
            return frozenset()
    return _ENDING_EFFECTS.intersection(effects)


def _word_not_wished(transcript: Transcript) -> str:
    """Return the clause for a call that the person didn't request."""
    if not transcript.foreign:
        return word_clause("waits_nobody_asked")
    return word_clause("waits_not_wished", source=transcript.foreign[0].source)


def _explain_untyped(
    effect: Effect,
    texts: Sequence[str],
    subjects: Sequence[Subject],
    transcript: Transcript,
    known: Sequence[str],
) -> str:
    """Return a clause that says why the messages aren't wholly a request for a call, or "".

    `known` are texts whose words a message may contain if the call has no subject or sends
    something.
    """
    not_wished = _word_not_wished(transcript)
    if not transcript.messages:
        return not_wished
    if effect is Effect.SEND:
        known = (*known, *(f"{subject.text} {subject.label}" for subject in subjects))
        return not_wished if has_other_content(transcript.messages, known) else ""
    new_text = "\n".join(texts) if effect is Effect.CHANGE else ""
    if new_text and any(_is_weakened(texts, subject) for subject in subjects):
        effect = Effect.REMOVE
    if effect is Effect.CHANGE and _is_typed_statement(texts, subjects, transcript):
        return ""
    wishes = find_wishes(transcript.messages, effect, transcript.questions)
    if not wishes:
        return not_wished
    if effect is Effect.PLAN and not subjects:
        return not_wished if has_other_content(transcript.messages, known) else ""
    return _explain_unnamed(wishes, subjects, new_text, transcript)


def _is_typed_to_send(
    texts: Sequence[str], subjects: Sequence[Subject], transcript: Transcript
) -> bool:
    """Return whether the messages being answered contain all words that leave the machine.

    Words of earlier messages don't count, because they were typed for another purpose.
    """
    is_typed = all(shares_words(text, transcript.typed, _MIN_SENT_SHARE) for text in texts)
    return is_typed and all(_is_named_to_send(subject, transcript) for subject in subjects)


def _is_named_to_send(subject: Subject, transcript: Transcript) -> bool:
    """Return whether the messages being answered contain an item's words or its label."""
    typed = "\n".join(transcript.messages)
    if shares_words(subject.text, typed, _MIN_SENT_SHARE):
        return True
    return bool(re.search(rf"(?<!\w){re.escape(subject.label)}(?!\w)", typed, re.IGNORECASE))


def _judge_lookup(
    arguments: Json, transcript: Transcript, context: ToolContext
) -> tuple[str, bool]:
    """Return a clause that says why a look-up has to wait, or "", and whether it was all typed.

    The argument `url` must be an address that the person typed, a result of an earlier search, or a
    link from a page to its own host. In a session without a person, only typed addresses are
    opened, because a page can offer a link for each secret.

    All words of the other arguments must be typed by the person, in the message being answered or
    in the one before it. Older words were typed for another purpose, and so were those in a clause
    that states a secret (`core/review/searches.py`). If the message has other content, or if the
    words are only in the message before it, the look-up waits, too.
    """
    is_attended = context.session.is_remembered
    earlier = list_searchable((transcript.previous, *transcript.messages, *transcript.questions))
    current = list_searchable((*transcript.messages, *transcript.questions))
    texts = [text for text in arguments.values() if isinstance(text, str)]
    is_whole = not is_attended or not has_other_content(transcript.messages, texts)
    for name, text in arguments.items():
        if not isinstance(text, str):
            continue
        if name == "url":
            url = text.strip()
            if is_attended and is_offered(url, transcript.search_results, transcript.page_results):
                continue
            if not names_address(transcript.all_typed, url):
                return word_clause("waits_address"), False
            if not is_whole:
                return word_clause("waits_address"), names_address(transcript.typed, url)
        elif not shares_words(text, earlier, _MIN_SENT_SHARE):
            return word_clause("waits_search_words"), False
        elif not is_whole or not shares_words(text, current, _MIN_SENT_SHARE):
            return word_clause("waits_search_words"), True
    return "", True


def _explain_unnamed(
    wishes: Sequence[Wish], subjects: Sequence[Subject], new_text: str, transcript: Transcript
) -> str:
    """Return a clause about the first subject that no request names, or ""."""
    label = "" if subjects else word_clause("label_item")
    for subject in subjects:
        if not any(names_subject(wish, subject, new_text) for wish in wishes):
            label = subject.label
            break
    source = transcript.foreign[0].source if transcript.foreign else None
    return word_clause("waits_not_named", label=label, source=source) if label else ""


def _is_weakened(texts: Sequence[str], subject: Subject) -> bool:
    """Return whether a replacement drops more words from a text than it adds.

    It may drop a condition, for example. Such a replacement counts as a removal, even if it adds
    words that the person typed.
    """
    new_texts = [text for text in texts if text not in subject.text]
    if not new_texts:
        return any(text.strip() for text in texts)
    old_words = to_plain(subject.text).split()
    new_words = to_plain(" ".join(new_texts)).split()
    dropped = [word for word in old_words if not _has_word(word, new_words)]
    added = [word for word in new_words if not _has_word(word, old_words)]
    return len(dropped) > len(added) + _MAX_DROPPED_WORDS


def _has_word(word: str, words: Sequence[str]) -> bool:
    return any(is_same_word(word, other) for other in words)


def _is_typed_statement(
    texts: Sequence[str], subjects: Sequence[Subject], transcript: Transcript
) -> bool:
    """Return whether the person typed the words that a replacement adds to the old text."""
    typed = "\n".join(transcript.messages)
    for subject in subjects:
        new_texts = [text for text in texts if text not in subject.text]
        added_words = " ".join(_list_added_words(text, subject.text) for text in new_texts).strip()
        if not added_words or not shares_words(added_words, typed, _MIN_TYPED_SHARE):
            return False
        if not any(shares_words(subject.text, text, _MIN_KEPT_SHARE) for text in new_texts):
            return False
    return bool(subjects)


def _list_added_words(text: str, old_text: str) -> str:
    """Return the words of a text that `old_text` doesn't contain."""
    old_terms = set(word_terms(old_text))
    return " ".join(word for word in words_of(text) if not old_terms & set(word_terms(word)))


def _list_texts(value: object, action_argument: str) -> list[str]:
    """Return all strings in the arguments except the action."""
    texts: list[str] = []
    if isinstance(value, str):
        if value.strip():
            texts.append(value)
    elif isinstance(value, Mapping):
        for name, child in value.items():
            if not action_argument or name != action_argument:
                texts += _list_texts(child, action_argument)
    elif isinstance(value, (list, tuple)):
        for child in value:
            texts += _list_texts(child, action_argument)
    return texts


def _list_odd_texts(value: object, action_argument: str, depth: int = 0) -> list[str]:
    """Return, as texts, the numbers in the arguments and the keys of nested mappings.

    The names of the arguments themselves come from the tool, so they are left out.
    """
    if isinstance(value, (int, float)):
        return [str(value)]
    texts: list[str] = []
    if isinstance(value, Mapping):
        for name, child in value.items():
            if name != action_argument or depth > 0:
                texts += [str(name)] if depth > 0 else []
                texts += _list_odd_texts(child, action_argument, depth + 1)
    elif isinstance(value, (list, tuple)):
        for child in value:
            texts += _list_odd_texts(child, action_argument, depth + 1)
    return texts


async def _find_subjects(tool: Tool, arguments: Json, context: ToolContext) -> Sequence[Subject]:
    """Return the items that a call changes.

    The result is empty if an item doesn't exist, because the tool itself reports that.
    """
    if tool.find_subjects is None:
        return ()
    try:
        return await tool.find_subjects(arguments, context)
    except (Refused, ToolError):
        return ()
