"""The published description of the Bot API as a judge: decodes what a client sent and says what is wrong with it.

Reads the machine-readable description that lies beside the checkout; where it is absent every value passes and
`is_present` is False, so that a test can skip visibly. Knows nothing of chats.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_NAME = "telegram-bot-api.json"
_TEXTS = frozenset({"text", "caption", "callback_query_id", "action", "document", "parse_mode"})
"""Parameters that are text, for when there is no description to ask."""


class BotContract:
    """Methods and types of the Bot API. Problems are sentences; an empty list means that the value is as documented."""

    def __init__(self, description: Mapping[str, Any]) -> None:
        self.is_present = bool(description)
        self._methods: Mapping[str, Any] = description.get("methods", {})
        self._types: Mapping[str, Any] = description.get("types", {})

    @staticmethod
    @functools.cache
    def load() -> BotContract:
        """From ``$MNEME_SPECS``, else from ``shared/specs`` beside the checkout."""
        folder = os.environ.get("MNEME_SPECS") or Path(__file__).resolve().parents[3] / "shared" / "specs"
        path = Path(folder) / _NAME
        return BotContract(json.loads(path.read_text("utf-8")) if path.is_file() else {})

    def decode(self, method: str, form: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
        """The typed parameters of a request sent as a query or a form, where everything is text; and what is wrong."""
        fields = self._fields(self._methods.get(method, {}))
        values: dict[str, Any] = {}
        problems = []
        for name, text in form.items():
            types = fields[name]["types"] if name in fields else None
            if not self.is_present and name not in _TEXTS:
                types = ["JSON"]
            try:
                values[name] = _typed(text, types)
            except ValueError:
                problems.append(f"{method}.{name}: {text!r} is none of {types}")
        return values, problems

    def request(self, method: str, values: Mapping[str, Any]) -> list[str]:
        """What is wrong with the parameters of a call."""
        if not self.is_present:
            return []
        if method not in self._methods:
            return [f"{method}: no such method"]
        return self._object(method, self._methods[method], values)

    def response(self, method: str, result: Any) -> list[str]:
        """What is wrong with the result of a call."""
        if not self.is_present or method not in self._methods:
            return []
        return self._any(f"{method}()", self._methods[method]["returns"], result)

    def value(self, type_name: str, value: Any) -> list[str]:
        """What is wrong with one value of a named type."""
        return self._any(type_name, [type_name], value) if self.is_present else []

    @staticmethod
    def _fields(description: Mapping[str, Any]) -> dict[str, Any]:
        return {field["name"]: field for field in description.get("fields", [])}

    def _object(self, path: str, description: Mapping[str, Any], value: Any) -> list[str]:
        if not isinstance(value, Mapping):
            return [f"{path}: an object is expected, not {type(value).__name__}"]
        fields = self._fields(description)
        problems = [f"{path}.{name}: no such field" for name in value if name not in fields]
        for name, field in fields.items():
            if name in value:
                problems += self._any(f"{path}.{name}", field["types"], value[name])
            elif field["required"]:
                problems.append(f"{path}.{name}: is missing")
        return problems

    def _any(self, path: str, types: list[str], value: Any) -> list[str]:
        """A value of one of several types; the problems told are those of the type that fits best."""
        attempts = [self._one(path, name, value) for name in types]
        return min(attempts, key=len) if attempts else []

    def _one(self, path: str, name: str, value: Any) -> list[str]:
        if name.startswith("Array of "):
            if not isinstance(value, list):
                return [f"{path}: a list is expected"]
            inner = name.removeprefix("Array of ")
            return [problem for i, item in enumerate(value) for problem in self._one(f"{path}[{i}]", inner, item)]
        match name:
            case "Integer":
                is_right = isinstance(value, int) and not isinstance(value, bool)
            case "Float":
                is_right = isinstance(value, int | float) and not isinstance(value, bool)
            case "Boolean":
                is_right = isinstance(value, bool)
            case "String":
                is_right = isinstance(value, str)
            case "InputFile":
                is_right = isinstance(value, bytes | str)
            case _:
                return self._named(path, name, value)
        return [] if is_right else [f"{path}: {name} is expected, not {value!r:.80}"]

    def _named(self, path: str, name: str, value: Any) -> list[str]:
        description = self._types.get(name)
        if description is None:
            return [f"{path}: the description knows no type {name}"]
        if "subtypes" in description:
            return self._any(path, description["subtypes"], value)
        return self._object(path, description, value)


def _typed(text: str, types: list[str] | None) -> Any:
    """Form text to a value, as the server does it: numbers and truth values by name, everything else but text is JSON.
    Raises ValueError."""
    if types is None or types == ["String"] or types == ["InputFile", "String"]:
        return text
    if "Boolean" in types:
        if text.lower() not in ("true", "false", "1", "0"):
            raise ValueError(text)
        return text.lower() in ("true", "1")
    if "Integer" in types:
        try:
            return int(text)
        except ValueError:
            if "String" in types:
                return text
            raise
    return json.loads(text)
