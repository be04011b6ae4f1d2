"""Why a model call failed, as a sentence a person can act on, and whether trying again can help.

Works on status codes and words alone and knows no vendor package, so that every server is judged alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from core.errors import ModelError

WORDS_CHARS = 300  # of a server's own explanation
_STATUS_OF_TYPE: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""An error event inside a stream that began with 200 has a type only; it means the status it would have come with."""

_TOO_LONG = re.compile(
    r"prompt is too long|too many tokens|exceeds? (the )?(available )?context|context (length|window)"
)
_RETRYABLE = (408, 409, 429)

_SENTENCES: Mapping[int, tuple[str, str]] = {
    401: ("The model's server does not accept the key", "Put a valid one into ANTHROPIC_API_KEY."),
    402: ("The account behind the model's key cannot pay for this", "Check its billing and credit."),
    403: ("The model's key is not permitted to do this", "Check the rights of the key and its workspace."),
    408: ("The model's server waited too long for the request", ""),
    409: ("The model's server is busy with a conflicting request", ""),
    413: ("This conversation is too large for the model", "Start a new one with /new."),
    429: ("The model's rate limit is reached", ""),
    503: ("The model's server is out of service", ""),
    504: ("The model took too long to answer", ""),
    529: ("The model is overloaded", ""),
}

_KINDS: Mapping[str, tuple[str, str, bool]] = {
    "unreached": (
        "The model's server cannot be reached",
        "Check the network, and ANTHROPIC_BASE_URL if it is set.",
        True,
    ),
    "lost": ("The connection to the model was lost", "", True),
    "late": ("The model took too long to answer", "", True),
    "unreadable": ("The model's answer came in pieces that cannot be read", "", True),
    "foreign": (
        "What answers at the model's address does not speak the Messages API",
        "Check ANTHROPIC_BASE_URL.",
        True,
    ),
    "illegal_key": (
        "The model's key has characters that no key can have",
        "Copy it into ANTHROPIC_API_KEY again.",
        False,
    ),
}
"""Failures without a status: clause, advice, whether trying again can help."""


class ModelFailure(ModelError):
    """`clause`: the reason without a full stop, so that ``; trying again in 4 s`` can follow it. `is_break`: part of
    the answer had come already."""

    def __init__(
        self,
        clause: str,
        advice: str = "",
        *,
        is_retryable: bool = False,
        retry_after_s: float | None = None,
        status: int | None = None,
        is_break: bool = False,
    ) -> None:
        sentence = f"{clause}. {advice}".rstrip()
        super().__init__(sentence, is_retryable=is_retryable, retry_after_s=retry_after_s, status=status)
        self.clause = clause
        self.is_break = is_break


def of_kind(kind: str) -> ModelFailure:
    """A failure without a status; `kind` is a key of `_KINDS`."""
    clause, advice, is_retryable = _KINDS[kind]
    return ModelFailure(clause, advice, is_retryable=is_retryable, is_break=kind == "unreadable")


def of_status(status: int, words: str, model: str, code: str | None = None) -> ModelFailure:
    """`words` are the server's own, `code` its error code."""
    words = " ".join(words.split())[:WORDS_CHARS].rstrip(". ")
    if (code or "").endswith("_spend_limit_reached"):
        clause, advice = "The spending limit of the model's account is reached", "Raise it, or wait until it renews."
        return ModelFailure(clause, advice, status=status)
    if status == 400 and "credit balance" in words:
        status = 402
    if status in (400, 422) and _TOO_LONG.search(words.casefold()):
        status = 413
    if status == 404:
        return _not_found(words, model)
    if status in _SENTENCES:
        clause, advice = _SENTENCES[status]
    elif status >= 500:
        clause, advice = f"The model's server has an internal error ({status})", ""
    else:
        clause, advice = f"The model's server refused the request ({status}): {words or 'it does not say why'}", ""
    return ModelFailure(clause, advice, status=status, is_retryable=status in _RETRYABLE or status >= 500)


def status_of(status: int, kind: str | None) -> int:
    """For an error event in a stream that began with 200, the status of its type."""
    return status if status >= 400 else _STATUS_OF_TYPE.get(kind or "", 500)


def _not_found(words: str, model: str) -> ModelFailure:
    if "model" in words.casefold() or model in words:
        return ModelFailure(
            f"The server has no model named {model}", "Set model.chat or model.helper to one that it has.", status=404
        )
    return ModelFailure("There is no Messages API at the model's address", "Check ANTHROPIC_BASE_URL.", status=404)
