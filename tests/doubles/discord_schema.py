"""Checks bodies against the OpenAPI description that Discord publishes; knows nothing of sockets or state.

The description stays outside the project: it is looked for in `$MNEME_SPECS` or in `../shared/specs` beside the
checkout. Where it is absent nothing is checked and `is_loaded` says so.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from referencing import Registry
from referencing.jsonschema import DRAFT202012

Json = dict[str, Any]

DOCUMENT = "urn:discord"
FILE = "discord-openapi.json"


def spec_folder() -> Path:
    """Where the published contracts lie on a machine that has them."""
    return Path(os.environ.get("MNEME_SPECS") or Path(__file__).resolve().parents[3] / "shared" / "specs")


class DiscordSchema:
    """Validators by path of the description, made when first needed."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or spec_folder() / FILE
        self.is_loaded = self._path.is_file()

    def request(self, method: str, template: str, body: Any) -> Json:
        """Problems of a request body as Discord nests them (`errors` of code 50035); empty when it is right."""
        operation = f"/paths/{_escaped(template)}/{method.lower()}/requestBody/content/application~1json/schema"
        return _nested(self._errors(operation, body))

    def response(self, method: str, template: str, status: int, body: Any) -> list[str]:
        """Problems of an answer of the double itself, as sentences."""
        operation = f"/paths/{_escaped(template)}/{method.lower()}/responses/{status}/content/application~1json/schema"
        return [
            f"{method} {template}: {_where(error)}: {error.message[:200]}" for error in self._errors(operation, body)
        ]

    def component(self, name: str, body: Any) -> list[str]:
        """Problems of a value against one named schema, as sentences (gateway payloads carry such values)."""
        return [
            f"{name}: {_where(error)}: {error.message[:200]}"
            for error in self._errors(f"/components/schemas/{name}", body)
        ]

    def _errors(self, pointer: str, body: Any) -> Iterator[ValidationError]:
        if not self.is_loaded:
            return
        validator = _validator(self._path, pointer)
        if validator is None:
            return
        for error in validator.iter_errors(body):
            yield _deepest(error)


@functools.cache
def _registry(path: Path) -> tuple[Registry[Any], Json]:
    document = json.loads(path.read_text(encoding="utf-8"))
    # Described as strings, ids are taken as numbers too, and the client library sends some so.
    document["components"]["schemas"]["SnowflakeType"]["type"] = ["string", "integer"]
    resource = DRAFT202012.create_resource(document)
    registry: Registry[Any] = Registry()
    return registry.with_resource(DOCUMENT, resource), document


@functools.cache
def _validator(path: Path, pointer: str) -> Draft202012Validator | None:
    """None where the description has no such place (an answer without a body, for example)."""
    registry, document = _registry(path)
    place: Any = document
    for part in pointer.split("/")[1:]:
        place = place.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(place, dict) else None
        if place is None:
            return None
    return Draft202012Validator({"$ref": f"{DOCUMENT}#{pointer}"}, registry=registry)


def _escaped(template: str) -> str:
    """A JSON pointer inside a URI fragment: slashes as ~1; braces stay, as `referencing` does not need them quoted."""
    return template.replace("~", "~0").replace("/", "~1")


def _deepest(error: ValidationError) -> ValidationError:
    while error.context:
        inner = best_match(error.context)
        if inner is None or inner is error:
            break
        error = inner
    return error


def _where(error: ValidationError) -> str:
    return ".".join(str(part) for part in error.absolute_path) or "body"


def _nested(errors: Iterator[ValidationError]) -> Json:
    nested: Json = {}
    for error in errors:
        place = nested
        for part in error.absolute_path:
            place = place.setdefault(str(part), {})
        code = {"maxLength": "BASE_TYPE_MAX_LENGTH", "required": "BASE_TYPE_REQUIRED"}.get(
            str(error.validator), "BASE_TYPE_BAD"
        )
        place.setdefault("_errors", []).append({"code": code, "message": error.message[:300]})
    return nested
