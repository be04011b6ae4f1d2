"""Describes failed model calls: their kinds, and a sentence for people about each kind.

The module doesn't depend on any vendor's SDK. The patterns are in `data/failures.toml`, and the
sentences in `core/errors.toml`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from config.masking import MASK, mask_secrets
from core.errors import MnemeError, ModelError, Sentence
from core.text.normalize import language_data

# At most this many characters of the server's explanation of an error are shown.
MAX_EXPLANATION_CHARS = 300
# A shorter key is a placeholder for a server that needs none. Its letters also occur in words.
MIN_KEY_CHARS = 8
# The levels of thinking, lowest first.
EFFORT_LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_RETRYABLE_STATUSES = (408, 409, 429)
_FAILURES = language_data("failures", "core.models")
_TOO_LONG = re.compile(_FAILURES["too_long"])
_NO_MODEL = re.compile(_FAILURES["no_model"])
_NO_MODEL_CODES = frozenset(_FAILURES["no_model_codes"]["names"])
_ACCOUNT_SETTING = re.compile(_FAILURES["account_setting"])
_FLAGGED = re.compile(_FAILURES["flagged"])
_BAD_KEY = re.compile(_FAILURES["bad_key"])
_NO_CREDIT = re.compile(_FAILURES["no_credit"])
_WINDOW = re.compile(_FAILURES["window"])
_CALL_IDS = re.compile(_FAILURES["call_ids"], re.IGNORECASE)
_MISSING_THINKING: Mapping[str, re.Pattern[str]] = {
    kind: re.compile(entry["refusal"], re.IGNORECASE)
    for kind, entry in _FAILURES["missing_thinking"].items()
}
_PAUSE = re.compile(_FAILURES["pause"], re.IGNORECASE)
_SUCCESSOR = re.compile(_FAILURES["successor"], re.IGNORECASE)
_STATUSES = frozenset(_FAILURES["kinds"]["statuses"])
_NOT_RETRYABLE = frozenset(_FAILURES["kinds"]["not_retryable"])
_LEVEL = re.compile(rf"['\"`“]({'|'.join(EFFORT_LEVELS)})['\"`”]")
_LEVEL_LIST = re.compile(_FAILURES["level_list"])
_REFUSED_ABILITIES = {
    ability: re.compile(pattern) for ability, pattern in _FAILURES["refused_ability"].items()
}
# The statuses with which servers refuse a part that a model can't use, and the abilities that they
# refuse only with the status of an invalid request.
_ABILITY_STATUSES = (400, 404, 422, 500, 501)
_REQUEST_ABILITIES = ("thinking", "effort")


WordSentence = Callable[[str, Sentence], str]
"""Words a sentence in a language, such as "de". The gateway has the languages."""


def word_in_english(language: str, sentence: Sentence) -> str:
    return str(sentence)


def build_sentence(error: MnemeError) -> Sentence:
    """Return the sentence of an error."""
    return Sentence(error.key, error.values)


def build_public_sentence(error: MnemeError) -> Sentence:
    """Return the sentence of an error without the server's words.

    The server's words may repeat a person's words.
    """
    if isinstance(error, ModelFailure):
        return error.public_sentence
    return Sentence(error.log_message)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerNames:
    """The names of a server's settings and API in sentences about failures."""

    # The environment variable with the key. Empty if the server needs no key.
    key: str = "ANTHROPIC_API_KEY"
    # The setting that names the environment variable with the key.
    key_setting: str = "model.servers.anthropic.key"
    # The setting with the address.
    address: str = "ANTHROPIC_BASE_URL"
    # The form of the API that the server is expected to have.
    api: str = "Messages API"


class ModelFailure(ModelError):
    """Raised if a model call fails. Its sentence has the key `model_<kind>` in `core/errors.toml`.

    `details` are the values for the placeholders of the sentence.
    """

    def __init__(
        self,
        kind: str,
        *,
        names: ServerNames | None = None,
        status: int | None = None,
        is_retryable: bool | None = None,
        **details: Any,
    ) -> None:
        """Compose the message. If `is_retryable` is None, it follows from the kind."""
        names = names or ServerNames()
        details |= {
            "key": names.key,
            "key_setting": names.key_setting,
            "address": names.address,
            "api": names.api,
        }
        self.kind = kind
        # Whether the server began its answer before the call failed.
        self.has_begun = False
        # The abilities that the server refuses according to its explanation, as keys of
        # `refused_ability`, most likely first.
        self.refused_abilities: tuple[str, ...] = ()
        # The levels of thinking that the server's explanation names.
        self.levels: tuple[str, ...] = ()
        # The size of the model's window in tokens, and its successor, if the server names them.
        self.window_tokens: int | None = None
        self.successor = ""
        if is_retryable is None:
            is_retryable = kind not in _NOT_RETRYABLE
        sentence_kind = "401_without_key" if kind == "401" and not names.key else kind
        super().__init__(
            f"model_{sentence_kind}", is_retryable=is_retryable, status=status, **details
        )
        # The server's words may repeat what people wrote, so they aren't logged.
        public_kind = "refused_silently" if kind == "refused" else sentence_kind
        values = {name: value for name, value in self.values.items() if name != "words"}
        self.public_sentence = Sentence(f"model_{public_kind}", values)
        self.log_message = str(self.public_sentence)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorResponse:
    """An error response of a model's server."""

    # The HTTP status. For an error event in a stream, which began with status 200, the status that
    # a failed request of this type would have had.
    status: int
    # The body as JSON, or as text if it isn't JSON.
    body: object
    # The server's code and type for the error, or empty.
    code: str = ""
    type: str = ""
    # Empty for an error event in a stream.
    headers: Mapping[str, str]
    # The name of the requested model.
    model: str


def status_of_type(error_type: str) -> int:
    """Return the HTTP status for a type of error, or 500 if the type is unknown."""
    return int(_FAILURES["status_of_type"].get(error_type, 500))


def build_refusal(response: ErrorResponse, names: ServerNames, key: str) -> ModelFailure:
    """Return the failure for an error that the server reported.

    Its message doesn't contain `key`.
    """
    explanation = mask_secrets(_read_explanation(response.body))
    if len(key) >= MIN_KEY_CHARS:
        explanation = explanation.replace(key, MASK)
    explanation = " ".join(explanation.split())[:MAX_EXPLANATION_CHARS].rstrip(". ")
    kind, status = _classify(response, explanation)
    # A server that is overloaded may answer soon. A spending limit stays until a person raises it.
    is_retryable = kind != "spend_limit" and (status in _RETRYABLE_STATUSES or status >= 500)
    failure = ModelFailure(
        kind,
        names=names,
        status=status,
        is_retryable=is_retryable,
        model=response.model,
        words=explanation,
        number=status,
    )
    failure.retry_after_s = _read_retry_after(response.headers, _read_explanation(response.body))
    should_retry = response.headers.get("x-should-retry")
    if should_retry in ("true", "false"):
        failure.is_retryable = should_retry == "true"
    words = explanation.casefold()
    if status == 413:
        failure.window_tokens = _find_window(words)
        return failure
    failure.refused_abilities = _find_refused_abilities(status, words)
    if failure.refused_abilities:
        failure.is_retryable = False
        failure.levels = _find_levels(words)
    elif kind == "no_model":
        failure.successor = _find_successor(explanation, response.model)
    return failure


def is_about_call_ids(explanation: str) -> bool:
    """Return whether a server refused a request because of the ids of its tool calls."""
    return _CALL_IDS.search(explanation) is not None


def find_missing_thinking(explanation: str) -> str:
    """Return the kind of thinking that a server requires in the history of a request, or ""."""
    for kind, pattern in _MISSING_THINKING.items():
        if pattern.search(explanation):
            return kind
    return ""


def find_placeholders(kind: str) -> Mapping[str, Any]:
    """Return the fields that a server accepts in place of missing thinking of this kind.

    The fields of "message" belong in an answer with tool calls, those of "call" in its first call.
    """
    entry: Mapping[str, Any] = _FAILURES["missing_thinking"][kind]
    return entry


def _read_explanation(body: object) -> str:
    """Return the server's explanation of an error, or "" if it's missing or HTML.

    Servers nest it in different ways: ``{"error": {"message": "…"}}``, ``{"detail": "…"}``. Gemini
    puts it into a list.
    """
    value: Any = body
    if isinstance(value, list) and value:
        value = value[0]
    while isinstance(value, Mapping):
        for name in ("error", "message", "detail"):
            if value.get(name):
                value = value[name]
                break
        else:
            value = str(value)
    if value is None or str(value).lstrip().startswith("<"):
        return ""
    return str(value)


def _find_refused_abilities(status: int, words: str) -> tuple[str, ...]:
    """Return the abilities that a server refuses according to its explanation."""
    if status not in _ABILITY_STATUSES:
        return ()
    abilities = [
        ability
        for ability, pattern in _REFUSED_ABILITIES.items()
        if (status in (400, 422) or ability not in _REQUEST_ABILITIES) and pattern.search(words)
    ]
    if "thinking" in abilities and "effort" in abilities:
        # The refusal is about the thinking in the history. The model itself can think.
        abilities.remove("effort")
    return tuple(abilities)


def _find_levels(words: str) -> tuple[str, ...]:
    """Return the levels of thinking that an explanation names, in quotes or in a list."""
    levels = {match[1] for match in _LEVEL.finditer(words)}
    for match in _LEVEL_LIST.finditer(words):
        levels |= set(re.findall(r"\w+", match[1])) & set(EFFORT_LEVELS)
    return tuple(level for level in EFFORT_LEVELS if level in levels)


def _find_window(words: str) -> int | None:
    """Return the size of a model's window in tokens, if an explanation states it.

    Otherwise, returns None.
    """
    match = _WINDOW.search(words)
    return int(match[1].replace(",", "")) if match else None


def _find_successor(explanation: str, model: str) -> str:
    """Return the model that an explanation recommends in place of `model`, or ""."""
    for match in _SUCCESSOR.finditer(explanation):
        name = match[1].rstrip(".:-")
        if name != model:
            return name
    return ""


def _classify(response: ErrorResponse, explanation: str) -> tuple[str, int]:
    """Return the kind of an error response, and its corrected status.

    Servers use different statuses for the same problem. Missing credit may have 400 or 429 instead
    of 402, a request that is too long 400 instead of 413, and a retired model 400 or 410 instead of
    404.
    """
    status = response.status
    words = explanation.casefold()
    if response.code.endswith("_spend_limit_reached"):
        return "spend_limit", status
    if _is_about_model_name(response, explanation):
        return "no_model", 404
    if response.code in _FAILURES["status_of_code"]:
        status = _FAILURES["status_of_code"][response.code]
    elif status in (400, 403, 429) and _NO_CREDIT.search(words):
        status = 402
    elif status == 400 and _BAD_KEY.search(words):
        status = 401
    elif status in (400, 422) and _TOO_LONG.search(words):
        status = 413
    return _find_kind(status, words), 404 if status == 410 else status


def _find_kind(status: int, words: str) -> str:
    """Return the kind of an error response from its corrected status and the server's words."""
    if status in (404, 410):
        return "refused" if _ACCOUNT_SETTING.search(words) else "no_api"
    if status == 403 and _FLAGGED.search(words):
        return "refused"
    if status in _STATUSES:
        return str(status)
    if status >= 500:
        return "internal"
    return "refused" if words else "refused_silently"


def _is_about_model_name(response: ErrorResponse, explanation: str) -> bool:
    """Return whether a refusal says that the server doesn't have a model of this name."""
    words = explanation.casefold()
    if {response.code.casefold(), response.type.casefold()} & _NO_MODEL_CODES:
        return True
    if response.status not in (400, 404, 410, 422) or _ACCOUNT_SETTING.search(words):
        return False
    if _NO_MODEL.search(words):
        return True
    names_model = "model" in words or response.model in explanation
    return response.status in (404, 410) and names_model


def _read_retry_after(headers: Mapping[str, str], words: str) -> float | None:
    """Return the pause in seconds that a server requests, or None.

    The headers are ``retry-after-ms`` and ``retry-after``, which may be a date. OpenAI and Gemini
    state the pause only in words: "Please try again in 6m1.5s."
    """
    try:
        if headers.get("retry-after-ms"):
            pause_s = float(headers["retry-after-ms"]) / 1000
        elif headers.get("retry-after", "").endswith("GMT"):
            end, start = (parsedate_to_datetime(headers[name]) for name in ("retry-after", "date"))
            pause_s = (end - start).total_seconds()
        elif headers.get("retry-after"):
            pause_s = float(headers["retry-after"])
        else:
            return _find_pause(words)
    except (ValueError, LookupError):
        return None
    return max(0.0, pause_s) if math.isfinite(pause_s) else None


def _find_pause(words: str) -> float | None:
    """Return the pause in seconds that a server requests in words, or None."""
    match = _PAUSE.search(words)
    if match is None:
        return None
    numbers = {name: float(value) for name, value in match.groupdict().items() if value}
    factors = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
    return sum(factors[name] * number for name, number in numbers.items()) or None
