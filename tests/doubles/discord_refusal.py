"""How the double says no: status, Discord's own code, and nested errors where the body was wrong."""

from __future__ import annotations

from typing import Any


class DiscordRefusal(Exception):
    """Raised by a handler, answered as the JSON error that Discord documents."""

    def __init__(self, status: int, code: int, message: str, errors: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.errors = errors

    @property
    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"message": self.message, "code": self.code}
        if self.errors:
            body["errors"] = self.errors
        return body
