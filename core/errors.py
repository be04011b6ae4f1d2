"""Defines the exceptions of this project. A message says what failed and what a person can do.

An error that people read consists of a key of `errors.toml` and values for the placeholders. Its
message is the English sentence, which the log and the model read. The gateway renders the key and
the values in the person's language.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path

from config.masking import mask_secrets

# Raised by code that reads a payload of a platform, if the payload has an unexpected shape.
PAYLOAD_ERRORS = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    AssertionError,
)


@cache
def load_sentences() -> Mapping[str, str]:
    """Return the English sentences of errors, by key."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def compose_sentence(message: str, values: Mapping[str, object]) -> str:
    """Return the English sentence for a key and its values.

    A message without values is returned unchanged.
    """
    sentences = load_sentences() if values or " " not in message else {}
    if not values:
        return sentences.get(message, message)
    return sentences[message].format(
        **{
            name: _format_moment(value) if isinstance(value, datetime) else value
            for name, value in values.items()
        }
    )


def word_clause(key: str, **values: object) -> str:
    """Return an English clause of `errors.toml`, such as the reason why a change waits.

    The clause may be stored. `Texts.word_stored` finds its key again.
    """
    return compose_sentence(key, values)


def _format_moment(local: datetime) -> str:
    """Return a moment in English words, in the format of `core.dates.schedule.format_moment`."""
    return f"{local:%A} {local.day} {local:%B %Y} at {local:%H:%M}"


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence for people: a key of `errors.toml`, and the values for its placeholders.

    A key that isn't in the file is the sentence itself. ``str()`` returns the sentence in English.
    """

    key: str
    values: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return compose_sentence(self.key, self.values)


@dataclass(frozen=True, slots=True)
class Report:
    """Several sentences for people. ``str()`` returns the sentences in English."""

    sentences: tuple[Sentence, ...]

    def __str__(self) -> str:
        return " ".join(map(str, self.sentences))


class MnemeError(Exception):
    """The base class of all exceptions of this project. Secrets in the message are masked.

    The message is a key of `errors.toml`, or a sentence that people don't read in a chat.
    """

    def __init__(self, message: str = "", **values: object) -> None:
        self.key = message
        self.values: Mapping[str, object] = {
            name: mask_secrets(value) if isinstance(value, str) else value
            for name, value in values.items()
        }
        super().__init__(mask_secrets(compose_sentence(message, values)))
        # The message for logs, without a service's explanation, because that may quote people.
        self.log_message = str(self)


def to_sentence(error: MnemeError) -> Sentence:
    """Return the sentence of an error."""
    if error.key in load_sentences():
        return Sentence(error.key, error.values)
    return Sentence(str(error))


class ConfigError(MnemeError):
    """Raised if settings are missing, unknown or of the wrong type.

    The message lists all problems, each with the dotted path of its setting.
    """


class AccessRefused(ConfigError):
    """Raised if a platform refuses the token, or a permission that the settings require.

    The owner may be able to correct this without a restart, so the connection is tried again.
    """


class StoreError(MnemeError):
    """Raised if state.db is unreadable, read-only, full, damaged, or written by a newer version."""


class StoreDamagedError(StoreError):
    """Raised if a part of state.db can't be read because it is damaged."""


class StoreLostError(StoreError):
    """Raised if state.db or its log was removed, replaced or cut off while it was open.

    Nothing is stored until Mneme is restarted with an undamaged file.
    """


class StoreLogHeldError(StoreLostError):
    """Raised if the log was removed and another program delays its copy into state.db.

    Everything in the log is safe. Nothing is stored until that program ends.
    """


class StaleReadError(StoreError):
    """Raised if data was erased after it was read.

    Nothing was stored, and the operation can be repeated.
    """


class HistoryError(MnemeError):
    """Raised if a file to import has an unknown format, can't be read, or is damaged."""


class ModelError(MnemeError):
    """Raised if the model doesn't answer."""

    def __init__(
        self,
        message: str,
        *,
        is_retryable: bool = False,
        retry_after_s: float | None = None,
        status: int | None = None,
        **values: object,
    ) -> None:
        super().__init__(message, **values)
        # The HTTP status, such as 413 if the conversation is too long.
        self.status = status
        # Another attempt may succeed.
        self.is_retryable = is_retryable
        # The pause that the server requested before the next attempt.
        self.retry_after_s = retry_after_s


class ToolError(MnemeError):
    """Raised if a tool call fails. The message is for the model, and says what to do instead."""


class UncertainCallError(ToolError):
    """Raised if a tool call timed out or its connection broke.

    The call may have been carried out.
    """


class DeliveryError(MnemeError):
    """Raised if a platform or a service doesn't accept a message."""

    def __init__(
        self,
        message: str,
        *,
        words: str = "",
        is_permanent: bool = False,
        retry_after_s: float | None = None,
        is_missing: bool = False,
        is_uncertain: bool = False,
        is_unreachable: bool = False,
        **values: object,
    ) -> None:
        """Create the error. `words` is the service's explanation, which isn't logged.

        If the message is a key of `errors.toml`, `values` are the values for its placeholders.
        """
        if words:
            masked_values = {
                name: mask_secrets(value) if isinstance(value, str) else value
                for name, value in values.items()
            }
            sentence = Sentence(message, masked_values)
            super().__init__("with_explanation", sentence=sentence, words=words)
        else:
            super().__init__(message, **values)
        self.log_message = mask_secrets(compose_sentence(message, values))
        # The message may have arrived nevertheless, for example because the connection broke.
        self.is_uncertain = is_uncertain
        # No retry can succeed: the chat is gone, the bot is blocked or the token has expired.
        self.is_permanent = is_permanent
        self.retry_after_s = retry_after_s
        # The platform couldn't be reached, or refused the login, so the message waits.
        self.is_unreachable = is_unreachable
        # The message to edit is gone, so it must be posted again.
        self.is_missing = is_missing


class ChatRefused(DeliveryError):
    """Raised if a platform refuses all messages to a chat. Retries fail until a person acts.

    `cause` is the reason: "blocked" (by the person), "gone" (the chat doesn't exist, or the bot
    isn't in it), "closed" or "deleted" (a topic or thread), "private" (the person only accepts
    messages of some accounts), or "no_rights" (the bot may not write there).
    """

    def __init__(self, message: str, cause: str) -> None:
        super().__init__(message, is_permanent=True)
        self.cause = cause


class NotReadyError(DeliveryError):
    """Raised while a service is still busy with an earlier task. This isn't a failure."""


class FileError(MnemeError):
    """Raised if a file can't be fetched from its platform, or can't be processed by a service."""

    def __init__(self, message: str, *, is_permanent: bool = False, **values: object) -> None:
        super().__init__(message, **values)
        # No retry can succeed: the file is gone or exceeds the platform's limit.
        self.is_permanent = is_permanent


class Refused(MnemeError):
    """Raised if something isn't allowed or exceeds a limit. The message is shown to the person.

    Secrets in the message aren't masked. The message contains no words from a service, so a secret
    in it can only be the person's own.
    """

    def __init__(self, message: str = "", **values: object) -> None:
        super().__init__(message, **values)
        self.values = values
        self.args = (compose_sentence(message, values),)


class LimitReached(ModelError, Refused):
    """Raised if a person or group has reached a daily limit.

    The caller continues without a model.
    """

    def __init__(self, message: str, *, can_be_raised: bool = False, **values: object) -> None:
        super().__init__(message, is_retryable=False, retry_after_s=None, status=None, **values)
        # Whether the owner may raise the limit for this day.
        self.can_be_raised = can_be_raised


TURN_BUDGET_SPENT = "The helpers of this turn have used up its budget"
"""The beginning of the message of `TurnBudgetSpent`."""


class TurnBudgetSpent(ModelError, Refused):
    """Raised if the tools of a turn have used up its budget of model calls or tokens."""

    def __init__(self, calls: int, tokens: int) -> None:
        super().__init__(
            f"{TURN_BUDGET_SPENT} ({calls:,} calls, {tokens:,} tokens). Call no helper again. "
            "Answer with what you have, and say what is missing."
        )
