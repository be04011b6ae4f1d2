"""One message of another system as a line of JSON, and back: the format of `mneme import` and `mneme export`.

    {"session": str, "title": str?, "platform": str?, "chat": str?, "scope": str?, "role": "user"|"assistant"|"tool",
     "sender": str?, "text": str, "at": ISO 8601 (naive = UTC), "id": str?}

Knows no table. A line that is not like this raises ValueError with the reason.

What a person decides about an import, where the file cannot say it.
JSON lines, the format of `mneme export`: each line is read or refused with its number. Knows no table.
Moments as exports write them: seconds since 1970 as number or text, or ISO 8601. Never raises.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, cast, get_args

from core.types import Address, Message, Origin, Role, Scope, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What became of the lines or messages of an import. `known`: they were here already. `reasons`: the first of the
    `refused` lines, as ``line 7: reason``. `skipped`: what was left out on purpose, as (what it is, how many), most
    first. `broken`: why the file could not be read to its end; what came before is taken. `scopes`: whose the messages
    of the file are, taken now or known, as (scope's key, how many), most first."""

    lines: int = 0
    taken: int = 0
    known: int = 0
    refused: int = 0
    sessions: int = 0
    reasons: tuple[str, ...] = ()
    skipped: tuple[tuple[str, int], ...] = ()
    broken: str | None = None
    scopes: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Something in a file to import that is not taken. With `line`, a line that is refused, `reason` says why; without,
    `reason` names what it is, in the plural, from a fixed set: they are counted."""

    reason: str
    line: int | None = None


HOME = Scope.account("terminal", "local")
"""What is imported belongs to whoever sits at the terminal, unless the line says otherwise."""
PLATFORM = "terminal"
TITLE_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferRecord:
    """One line. `session` is the other system's name of the conversation, `id` its name of the message. `origin`: typed
    where the importing person has named the sender as himself; no file can say so."""

    session: str
    role: Role
    text: str
    at: datetime
    address: Address
    scope: Scope = HOME
    title: str | None = None
    sender: str | None = None
    id: str | None = None
    origin: Origin = "imported"

    @classmethod
    def parse(cls, line: str | bytes, scope: Scope = HOME) -> TransferRecord:
        """Reads one line, which is of `scope` when it names none; raises ValueError with a reason for a person."""
        values = _object(line)
        session = _text(values, "session") or ""
        if not session:
            raise ValueError('"session" is missing')
        role = _text(values, "role")
        if role not in get_args(Role):
            raise ValueError('"role" is not user, assistant or tool')
        text = _text(values, "text")
        if text is None or not text.strip():
            raise ValueError('"text" is missing or empty')
        platform, chat = _text(values, "platform") or PLATFORM, _text(values, "chat")
        if ":" in platform:
            raise ValueError('"platform" cannot contain a colon')
        return cls(
            session=session,
            role=cast(Role, role),
            text=text,
            at=_moment(_text(values, "at")),
            address=_address(platform, chat) if chat else Address(platform=platform, chat_id=session),
            scope=_scope(_text(values, "scope"), scope),
            title=(_text(values, "title") or "").strip()[:TITLE_CHARS] or None,
            sender=_text(values, "sender") or None,
            id=_text(values, "id") or None,
        )

    @classmethod
    def of(cls, session: Session, name: str, message: Message) -> TransferRecord:
        """A message as it is exported; `name` is that of its session."""
        return cls(
            session=name,
            title=session.title,
            address=session.address,
            scope=session.scope,
            role=message.role,
            sender=None if message.sender is None else message.sender.name or None,
            text=message.text,
            at=message.created_at,
            id=message.external_id,
        )

    def line(self) -> str:
        """The reverse of `parse`, without an end of line."""
        values = {
            "session": self.session,
            "title": self.title,
            "platform": self.address.platform,
            "chat": None if self.address.chat_id == self.session else self.address.key.partition(":")[2],
            "scope": self.scope.key,
            "role": self.role,
            "sender": self.sender,
            "text": self.text,
            "at": self.at.astimezone(UTC).isoformat(),
            "id": self.id,
        }
        return json.dumps({key: value for key, value in values.items() if value is not None}, ensure_ascii=False)


def _address(platform: str, chat: str) -> Address:
    """A chat is written as in the key of an address, with its thread after a slash."""
    try:
        return Address.parse(f"{platform}:{chat}")
    except ValueError:
        return Address(platform=platform, chat_id=chat)


def _object(line: str | bytes) -> dict[str, Any]:
    try:
        values = json.loads(line.decode("utf-8") if isinstance(line, bytes) else line)
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON ({error.msg} at character {error.pos + 1})") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    if not isinstance(values, dict):
        raise ValueError("is not a JSON object")
    return values


def _text(values: dict[str, Any], key: str) -> str | None:
    value = values.get(key)
    if value is not None and not isinstance(value, str):
        raise ValueError(f'"{key}" is not a string')
    return value


def _moment(value: str | None) -> datetime:
    if not value:
        raise ValueError('"at" is missing')
    try:
        at = datetime.fromisoformat(value.strip())
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f'"at" is not a moment in ISO 8601: {value[:40]!r}') from None


def _scope(key: str | None, otherwise: Scope) -> Scope:
    if not key:
        return otherwise
    kind, _, rest = key.partition(":")
    platform, _, number = rest.partition(":")
    if kind not in ("account", "room") or not platform or not number or "\0" in key:
        raise ValueError('"scope" is neither account:platform:id nor room:platform:chat')
    return Scope(key=key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """`scope`: whose the history is. `zone`: where local times without a zone were written (old Telegram exports have
    only those). `assistants`: names or ids of senders who are the assistant, not a person; compared without case.
    `own`: names of senders who are the person: what they say counts as said by the person before."""

    scope: Scope = HOME
    zone: tzinfo = UTC
    assistants: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()

    def is_assistant(self, *names: str | None) -> bool:
        """Whether a sender with any of these names and ids was named as the assistant."""
        return _is_among(self.assistants, names)

    def is_own(self, *names: str | None) -> bool:
        """Whether a sender with any of these names was named as the person."""
        return _is_among(self.own, names)


def _is_among(known: frozenset[str], names: tuple[str | None, ...]) -> bool:
    folded = {name.casefold() for name in known}
    return any(name is not None and name.casefold() in folded for name in names)


def read(lines: Iterable[bytes | str], scope: Scope = HOME) -> Iterator[TransferRecord | Skipped | None]:
    """One thing for each line, None for a blank one. `scope` is that of lines which name none."""
    for number, line in enumerate(lines, start=1):
        if number == 1:
            line = _without_mark(line)
        if not line.strip():
            yield None
            continue
        try:
            yield TransferRecord.parse(line, scope)
        except ValueError as error:
            yield Skipped(reason=str(error), line=number)


def _without_mark(line: bytes | str) -> bytes | str:
    """The mark that some editors put in front of a file is no part of it."""
    return line.removeprefix(b"\xef\xbb\xbf") if isinstance(line, bytes) else line.removeprefix("\ufeff")


_LONGEST_CHARS = 64


def from_seconds(value: object) -> datetime | None:
    """Seconds since 1970 UTC, exact to the microsecond; None for what is no such number."""
    if isinstance(value, str) and len(value) > _LONGEST_CHARS:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return datetime.fromtimestamp(float(value), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def from_text(value: object, zone: tzinfo = UTC) -> datetime | None:
    """A moment in ISO 8601, with a space or a T; `zone` is where it was written when it does not say. None for what
    cannot be read."""
    if not isinstance(value, str) or len(value) > _LONGEST_CHARS:
        return None
    try:
        at = datetime.fromisoformat(value.strip())
        return (at.replace(tzinfo=zone) if at.tzinfo is None else at).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
