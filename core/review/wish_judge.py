"""Asks the helper model whether the person requested a change that the rules don't recognize.

`core/review/wishes.py` knows the usual forms of a request. People also say "the plumber came
already, kill that reminder". If the rules find no request, but the person typed words of the item
and no sign speaks against a request, the helper model is asked once before the tool runs. It gets
the typed lines and the call as data. Only "yes" lets the call run at once. After any other answer,
an error or a timeout, the call waits for the person's approval, as it does without a helper model.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import structlog
from pydantic import BaseModel, ConfigDict, ValidationError

from core.errors import ModelError
from core.models.wrappers import ask_model, take_call
from core.ports import Model
from core.review.doubts import (
    asks_to_end,
    asks_to_resume,
    may_contain_wish,
    says_that_it_ends,
)
from core.review.naming import is_kept_or_in_text, mentions_subject, says_only_that_it_ended
from core.review.repetition import shares_words
from core.review.transcript import Transcript
from core.review.wishes import is_short_line
from core.text.normalize import language_data
from core.types import BillingScope, Effect, Json, Subject, ToolContext

MAX_TOKENS = 100
TIMEOUT_S = 15
MAX_MESSAGE_CHARS = 600
MAX_OTHERS = 20
MAX_WORD_CHARS = 20
# The effects that a request in free words may have. The gate has already compared the texts that
# leave the machine.
JUDGED_EFFECTS = frozenset({Effect.CHANGE, Effect.WEAKEN, Effect.REMOVE, Effect.PLAN, Effect.SEND})
# Calls with these effects may have no subject.
_FREE_OF_SUBJECTS = frozenset({Effect.PLAN, Effect.SEND})
_log = structlog.get_logger("wishes")


class _Verdict(BaseModel):
    """The helper model's verdict on a call."""

    model_config = ConfigDict(extra="forbid", strict=True)

    asks: Literal["yes", "no", "unclear"]


@dataclass(frozen=True, slots=True)
class WishedCall:
    """A call for which the rules find no request, and the items that it changes."""

    tool: str
    effect: Effect
    arguments: Json
    subjects: Sequence[Subject]
    # Texts of the call that the tool itself has compared with the typed words.
    compared: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WishJudge:
    """Asks the helper model whether the person requested a call."""

    model: Model
    # The name of the helper model.
    name: str

    async def is_wished(
        self, wished: WishedCall, transcript: Transcript, context: ToolContext
    ) -> bool:
        """Return whether the messages that are being answered request the call."""
        if not may_be_wished(wished.effect, wished.subjects, transcript.messages):
            return False
        if context.budget is not None:
            if not context.budget.has_calls_left():
                return False
            take_call(context.budget)
        call = _describe_call(wished, transcript)
        lines = [json.dumps({"typed": text}, ensure_ascii=False) for text in transcript.messages]
        try:
            async with asyncio.timeout(TIMEOUT_S):
                completion = await ask_model(
                    self.model,
                    self.name,
                    "evidence",
                    language_data("prompts", "core.review")["wish"],
                    ["\n".join(lines), json.dumps({"call": call}, ensure_ascii=False)],
                    max_tokens=MAX_TOKENS,
                    billing=BillingScope(
                        session_id=context.session.id,
                        scope=context.scope,
                        user_id=context.sender.id,
                    ),
                )
        except (ModelError, TimeoutError) as error:
            _log.info("a call waits for approval", why=str(error) or type(error).__name__)
            return False
        return _read_verdict(completion.text)


def _describe_call(wished: WishedCall, transcript: Transcript) -> dict[str, object]:
    """Return the call as the helper model gets it."""
    others: list[str] = []
    for subject in wished.subjects:
        others += subject.others
    return {
        "tool": wished.tool,
        "effect": wished.effect.value,
        "arguments": {**_list_typed_arguments(wished.arguments, transcript), **wished.compared},
        "things": [f"{subject.label}: {subject.text}" for subject in wished.subjects],
        "other things": others[:MAX_OTHERS],
    }


def may_be_wished(effect: Effect, subjects: Sequence[Subject], messages: Sequence[str]) -> bool:
    """Return whether the rules allow asking the helper model about a call.

    The messages must have words of the item, and no sign against a request, such as "Ana says",
    "if" or "don't delete". They must ask to end or resume the item, or say nothing else but that it
    ended. A new plan needs no words of an item.
    """
    if effect not in JUDGED_EFFECTS or (not subjects and effect not in _FREE_OF_SUBJECTS):
        return False
    if any(
        len(text) > MAX_MESSAGE_CHARS or not may_contain_wish(text, effect) for text in messages
    ):
        return False
    if subjects and not _may_ask_for_effect(effect, subjects, messages):
        return False
    return bool(messages) and all(
        any(mentions_subject(message, subject) for message in messages) for subject in subjects
    )


def _may_ask_for_effect(
    effect: Effect, subjects: Sequence[Subject], messages: Sequence[str]
) -> bool:
    """Return whether messages may ask for an effect on items, and don't only mention the items."""
    if effect is Effect.PLAN:
        return any(map(asks_to_resume, messages))
    if effect in (Effect.REMOVE, Effect.WEAKEN):
        return not _may_be_kept(subjects, messages) and _may_ask_to_end(subjects, messages)
    return True


def _may_ask_to_end(subjects: Sequence[Subject], messages: Sequence[str]) -> bool:
    """Return whether messages don't only mention items in passing.

    They contain a verb such as "delete", or say nothing but that the items have ended. A reminder
    may also be over for another reason: "the plants died, so no more watering".
    """
    if any(map(asks_to_end, messages)):
        return True
    is_stored_text = any(subject.kind == "memory" for subject in subjects)
    if not is_stored_text and any(map(says_that_it_ends, messages)):
        return True
    return all(
        any(says_only_that_it_ended(message, subject) for message in messages)
        for subject in subjects
    )


def _may_be_kept(subjects: Sequence[Subject], messages: Sequence[str]) -> bool:
    """Return whether messages may ask to keep an item, or may contain a paste."""
    known = "\n".join(subject.text for subject in subjects)
    # A long message may contain a paste that can't be recognized.
    if not all(is_short_line(message, known) for message in messages):
        return True
    return any(is_kept_or_in_text(message, subject) for subject in subjects for message in messages)


def _list_typed_arguments(arguments: Json, transcript: Transcript) -> dict[str, object]:
    """Return the arguments that are single words or consist of typed words.

    Other arguments are left out, because the model could have composed them to argue for the call.
    """
    return {
        name: value
        for name, value in arguments.items()
        if not isinstance(value, (str, dict, list))
        or (isinstance(value, str) and len(value) <= MAX_WORD_CHARS and " " not in value)
        or (isinstance(value, str) and shares_words(value, transcript.all_typed, 1.0))
    }


def _read_verdict(answer: str) -> bool:
    """Return whether an answer is a valid verdict of "yes"."""
    try:
        return _Verdict.model_validate_json(answer.strip()).asks == "yes"
    except ValidationError:
        return False
