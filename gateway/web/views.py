"""Defines the parts of pages: views, which show something, and actions, which change something.

The docstring of the package explains how to add a page.
"""

from __future__ import annotations

import string
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from zoneinfo import ZoneInfo

from core.errors import Refused
from core.markup.markdown import escape
from core.types import Answer, Command, File, Scope
from gateway.commands.registry import CommandContext, CommandRegistry
from gateway.services import Services
from gateway.texts.catalog import Texts
from gateway.upkeep.home_checks import CheckResult
from gateway.upkeep.spending import SpendingHistory
from gateway.web.logins import Login, Logins

Values = Mapping[str, object]
# Longer values of a field are refused. A message or a note is far shorter.
MAX_FIELD_CHARS = 20_000
MAX_NUMBER_DIGITS = 12
FINGERPRINT_CHARS = 16
# The fields of actions that must be numbers.
NUMBER_FIELDS = frozenset({"number", "fact", "changes", "session", "message"})
# The types of files that a browser shows. Nothing in them can run.
PICTURE_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")
# The headers by which reverse proxies pass on the address of a browser.
FORWARDING_HEADERS = ("Forwarded", "Via", "X-Forwarded-For", "X-Real-IP")


@dataclass(slots=True)
class LastChecks:
    """The problems that the owner's last checks found, and when. All requests share it."""

    at: datetime | None = None
    # Whether Mneme ran at that time.
    was_running: bool = False
    problems: Sequence[CheckResult] = ()


@dataclass(frozen=True, kw_only=True)
class PageRequest:
    """A request by a person who is logged in."""

    services: Services
    commands: CommandRegistry
    logins: Logins
    login: Login
    spending: SpendingHistory
    # The problems that the checks found last.
    last_checks: LastChecks
    # The rights of the person, as for a command in their direct chat.
    context: CommandContext
    # The name of the page that is shown, or whose form was sent.
    page: str
    # The address, without the id of the answer.
    path: str
    # Names the answer to the action that led here, if there was one.
    answer_id: str
    # The parts of the address that the path of the view names, and the query.
    parameters: Mapping[str, str]
    # Whether the browser runs on the machine of Mneme, without a reverse proxy.
    is_local: bool = False

    @property
    def scopes(self) -> frozenset[Scope]:
        """Return the scopes that this person can see."""
        return self.context.scopes

    @property
    def texts(self) -> Texts:
        return self.context.texts

    @property
    def words(self) -> Mapping[str, str]:
        """Return the texts of the page by their keys in the tables `[page_NAME]` and `[page]`."""
        return load_words(self.texts, self.page)

    @property
    def zone(self) -> ZoneInfo:
        return self.services.zone_of(self.context.zone)

    def parameter(self, name: str) -> str:
        """Return a parameter of the URL, or "" if it's missing."""
        return self.parameters.get(name, "")

    def with_parameters(self, **parameters: object) -> PageRequest:
        """Return the request with other parameters in its URL."""
        changed = {name: str(value) for name, value in parameters.items()}
        return replace(self, parameters={**self.parameters, **changed})

    def number(self, name: str, default: int = 0) -> int:
        """Return a URL parameter as a number, or the default if it isn't a number."""
        text = self.parameters.get(name, "")
        return int(text) if is_number(text) else default


Load = Callable[[PageRequest], Awaitable[Values | File | Path | None]]
Run = Callable[[PageRequest, Mapping[str, str]], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class View:
    """A URL of a page that shows something. `path` may have parts such as ``/memory/facts/{fact}``.

    If `load` returns a file, no template is rendered. Browsers show pictures and save other files.
    """

    path: str
    template: str
    load: Load
    # Whether the top of the page is sent before `load` runs. Then `load` returns neither None nor a
    # file, and the heading is the name in the navigation.
    is_streamed: bool = False


@dataclass(frozen=True, slots=True)
class Action:
    """A named operation that a form runs. `run` gets the fields of the form."""

    name: str
    run: Run


@dataclass(frozen=True, slots=True)
class Page:
    """An entry of the navigation. The key of its label is ``NAV_`` and the name in capitals."""

    name: str
    views: tuple[View, ...]
    actions: tuple[Action, ...] = ()
    # Only the owner sees the page and may use its actions.
    is_for_owner: bool = False


def run_command(name: str, arguments: str = "") -> Run:
    """Return a function for `Action.run` that runs a chat command.

    `arguments` may contain fields of the form, such as ``pin f{fact}``.
    """
    fields = [field for _, field, _, _ in string.Formatter().parse(arguments) if field]

    async def run(request: PageRequest, form: Mapping[str, str]) -> Answer:
        values = {field: read_field(request, form, field) for field in fields}
        command = Command(name=name, arguments=arguments.format(**values))
        return await request.commands.run(command, request.context)

    return run


def read_field(request: PageRequest, form: Mapping[str, str], name: str) -> str:
    """Return a field of a form.

    Raises Refused if the field is empty or too long, or if it must be a number and isn't.
    """
    value = form.get(name, "").replace("\r\n", "\n").strip()
    words = request.words
    label = words.get(f"FIELD_{name.upper().rstrip('0123456789')}")
    if label is not None and not value:
        raise Refused(words["FIELD_EMPTY"].format(field=label))
    if label is not None and len(value) > MAX_FIELD_CHARS:
        limit = request.texts.format_number(MAX_FIELD_CHARS)
        raise Refused(words["FIELD_LONG"].format(field=label, limit=limit))
    is_valid = is_number(value) if name in NUMBER_FIELDS else 0 < len(value) <= MAX_FIELD_CHARS
    if not is_valid:
        raise Refused(words["WRONG_FIELD"])
    return value


def fingerprint(text: str) -> str:
    """Return a short digest of a text, by which a form knows the text that it was shown with."""
    joined = text.replace("\r\n", "\n").strip()
    return sha256(joined.encode("utf-8", "replace")).hexdigest()[:FINGERPRINT_CHARS]


def check_unchanged(request: PageRequest, form: Mapping[str, str], current: str) -> None:
    """Raise Refused if a text was changed elsewhere after its form was shown.

    The typed text stays in the form, and the refusal quotes the current one. A form that is sent
    again replaces it.
    """
    is_same = form.get("shown", "") in ("", fingerprint(current))
    if not is_same and fingerprint(form.get("text", "")) != fingerprint(current):
        quote = "\n".join(f"> {escape(line)}" for line in (current or "–").split("\n"))
        raise Refused(f"{request.words['CHANGED_TEXT']}\n\n{quote}")


@cache
def load_words(texts: Texts, page: str = "") -> Mapping[str, str]:
    """Return the texts that all pages share, and those of one page."""
    words = dict(texts.table("page"))
    if page:
        words |= texts.table(f"page_{page}")
    return words


def is_local(headers: Mapping[str, str], remote: str | None) -> bool:
    """Return whether a browser runs on this machine, and no reverse proxy passed its request."""
    is_own_name = headers.get("Host", "").rpartition(":")[0].lower() in LOCAL_NAMES
    is_passed_on = any(name in headers for name in FORWARDING_HEADERS)
    return is_own_name and remote in ("127.0.0.1", "::1") and not is_passed_on


def is_picture(media_type: str) -> bool:
    """Return whether a browser may show a file of this media type within the page."""
    return media_type in PICTURE_TYPES


def is_number(text: str) -> bool:
    """Return whether a text can be a row's id: ASCII digits, and not too many of them."""
    return text.isascii() and text.isdigit() and len(text) <= MAX_NUMBER_DIGITS
