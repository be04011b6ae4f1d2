"""Why a model call failed, as a sentence a person can act on, and whether trying again can help.

Works on status codes and words alone and knows no vendor package, so that every server is judged alike.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from core.errors import ModelError

WORDS_CHARS = 300  # of a server's own explanation
_TOO_LONG = re.compile(
    r"prompt is too long|too many tokens|exceeds? (the )?(available )?context|context (length|window)"
)
_RETRYABLE = (408, 409, 429)


@cache
def _table(name: str) -> Mapping[str, Any]:
    """A table of `failures.toml`."""
    table: Mapping[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))[name]
    return table


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
    """A failure without a status; `kind` as in `failures.toml`."""
    return ModelFailure(**{"is_retryable": True, **_table("kind")[kind]}, is_break=kind == "unreadable")


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
    if status >= 500:
        clause = f"The model's server has an internal error ({status})"
    else:
        clause = f"The model's server refused the request ({status}): {words or 'it does not say why'}"
    said = {"clause": clause, **_table("status").get(str(status), {})}
    return ModelFailure(**said, status=status, is_retryable=status in _RETRYABLE or status >= 500)


def status_of(status: int, kind: str | None) -> int:
    """For an error event in a stream that began with 200, the status of its type."""
    return status if status >= 400 else int(_table("status_of_type").get(kind or "", 500))


def _not_found(words: str, model: str) -> ModelFailure:
    if "model" in words.casefold() or model in words:
        return ModelFailure(
            f"The server has no model named {model}", "Set model.chat or model.helper to one that it has.", status=404
        )
    return ModelFailure("There is no Messages API at the model's address", "Check ANTHROPIC_BASE_URL.", status=404)
