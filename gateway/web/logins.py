"""Creates one-time keys that open the page, and keeps the logins of browsers that used a key.

Keys and cookies have 192 random bits. Only their digests are stored and compared. Keys are in
memory. Logins are also in a file of the home, so a restart doesn't end them. Backups don't contain
this file, because restoring it would bring back logins that were ended.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import structlog

from config.files import replace_file
from core.ports import Clock
from core.types import Account, Address, Answer, Command, File, Scope

Key = TypeVar("Key")
Entry = TypeVar("Entry")
KEY_LIFETIME = timedelta(minutes=10)
# A login ends if it isn't used for this long.
IDLE_LIFETIME = timedelta(days=7)
# After this many wrong keys within a minute, all keys are rejected for the rest of it.
MAX_WRONG_KEYS = 10
WRONG_KEYS_PERIOD = timedelta(minutes=1)
QUESTION_LIFETIME = timedelta(minutes=10)
# The maximum numbers of keys and logins. If there are more, the oldest ones end.
MAX_KEYS = 20
MAX_LOGINS = 50
MAX_QUESTIONS = 100
MAX_FILES = 10
MAX_ANSWERS = 20
_BROWSER_CHARS = 120
# The time of the last use is written at most once in this interval.
SAVE_INTERVAL = timedelta(hours=1)
# The parameter of an address that names the answer to show.
ANSWER = "answer"
ANSWER_ID_CHARS = 20
_TYPED_FIELD = re.compile(r"text\d*|line|title|value|when|words")
_ANSWER_PARAMETER = re.compile(rf"[?&]{ANSWER}=[^&#]*\Z")
LOGINS_FILE = "page_logins.json"
_log = structlog.get_logger("page")


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """The person whose page is shown, and the direct chat whose rights the page has."""

    account: Account
    address: Address
    scope: Scope
    name: str
    language: str = ""


@dataclass(slots=True)
class Draft:
    """The fields of a form whose action was refused, or needs a confirmation first."""

    action: str
    fields: Mapping[str, str]
    # Whether the page that is rendered has this form.
    is_shown: bool = False

    def is_of(self, action: str, **hidden: object) -> bool:
        """Return whether this is a form of an action, with these hidden fields."""
        is_same = action == self.action and all(
            _join_lines(self.fields.get(name, "")) == _join_lines(str(value))
            for name, value in hidden.items()
        )
        self.is_shown = self.is_shown or is_same
        return is_same

    def fill(self, action: str, name: str, value: str = "", **hidden: object) -> str:
        """Return the value of a field: the typed text if this is its form, otherwise `value`."""
        return self.fields.get(name, value) if self.is_of(action, **hidden) else value

    @property
    def texts(self) -> list[str]:
        """Return the texts that the person typed."""
        return list_typed(self.fields)

    @property
    def is_lost(self) -> bool:
        """Return whether the person typed something, and the page doesn't have this form."""
        return bool(self.texts) and not self.is_shown


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer to an action, and its form if the action was refused or needs a confirmation."""

    answer: Answer | None
    draft: Draft | None = None
    # The ids of its buttons that were shown, by their labels.
    questions: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Login:
    """A browser that was logged in with a key."""

    # The name of the login on the page. It isn't secret.
    id: str
    visitor: Visitor
    # The token that every form must repeat. Empty until the browser sends its cookie.
    form_token: str
    begun_at: datetime
    seen_at: datetime
    browser: str
    # The network addresses of the browser at the login and at the last use; empty if unknown.
    begun_from: str = ""
    seen_from: str = ""
    # Commands that wait for a click, by the ids of their buttons, with the time when they expire.
    questions: dict[str, tuple[Command, datetime]] = field(default_factory=dict)
    # Files of answers, by the ids of their links.
    files: dict[str, File] = field(default_factory=dict)
    # The outcomes of the latest forms, by ids that depend on their address and fields.
    answers: dict[str, asyncio.Future[Outcome]] = field(default_factory=dict)


class Logins:
    """Creates keys and logs browsers in with them. `folder` contains the file with the logins."""

    def __init__(self, clock: Clock, folder: Path) -> None:
        self._clock = clock
        self._path = folder / LOGINS_FILE
        self._saved_at = clock.now()
        # By the digest of the key.
        self._keys: dict[bytes, tuple[Visitor, datetime]] = {}
        # By the digest of the cookie.
        self._logins: dict[bytes, Login] = {}
        # Whether this process serves the page, so that keys can be used.
        self.is_page_served = False
        # The times at which the last wrong keys were tried.
        self._wrong_keys: deque[datetime] = deque(maxlen=MAX_WRONG_KEYS)

    def load(self, names: Mapping[Account, str]) -> None:
        """Read the logins of earlier processes.

        `names` has the names of people, which aren't in the file. If the file is missing or can't
        be read, there are no logins.
        """
        try:
            entries = json.loads(self._path.read_text(encoding="utf-8"))["logins"]
            logins = {
                bytes.fromhex(entry["digest"]): _read_login(entry, names) for entry in entries
            }
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError) as error:
            _log.warning("the logins of the page can't be read", error=str(error))
            return
        oldest = self._clock.now() - IDLE_LIFETIME
        self._logins = {key: login for key, login in logins.items() if login.seen_at >= oldest}

    def _save(self) -> None:
        """Write the logins to the file. If that fails, they are lost when this process ends."""
        self._saved_at = self._clock.now()
        entries = [
            {
                "digest": digest.hex(),
                "id": login.id,
                "account": login.visitor.account.key,
                "address": login.visitor.address.key,
                "scope": login.visitor.scope.key,
                "begun_at": login.begun_at.isoformat(),
                "seen_at": login.seen_at.isoformat(),
                "browser": login.browser,
                "begun_from": login.begun_from,
                "seen_from": login.seen_from,
            }
            for digest, login in self._logins.items()
        ]
        try:
            replace_file(self._path, json.dumps({"logins": entries}, indent=1).encode())
        except OSError as error:
            _log.warning("the logins of the page can't be written", error=str(error))

    def create_key(self, visitor: Visitor) -> str:
        """Return a new key, which opens this person's page once within ten minutes."""
        key = secrets.token_urlsafe(24)
        _drop_oldest(self._keys, MAX_KEYS - 1)
        self._keys[_digest(key)] = (visitor, self._clock.now() + KEY_LIFETIME)
        return key

    def redeem(self, key: str, browser: str, address: str = "") -> tuple[str, Login] | None:
        """Exchange a key for a login. Returns its cookie and the login.

        Returns None for a wrong key, and for any key while `is_locked`.
        """
        if self.is_locked:
            return None
        now = self._clock.now()
        visitor, expires_at = self._keys.pop(_digest(key), (None, now))
        if visitor is None or expires_at < now:
            self.record_wrong_key()
            return None
        cookie = secrets.token_urlsafe(24)
        login = Login(
            id=secrets.token_hex(8),
            visitor=visitor,
            form_token=_derive_form_token(cookie),
            begun_at=now,
            seen_at=now,
            browser=browser[:_BROWSER_CHARS],
            begun_from=address,
            seen_from=address,
        )
        _drop_oldest(self._logins, MAX_LOGINS - 1)
        self._logins[_digest(cookie)] = login
        self._save()
        return cookie, login

    def record_wrong_key(self) -> None:
        """Count a wrong key or password."""
        self._wrong_keys.append(self._clock.now())

    @property
    def is_locked(self) -> bool:
        """Return whether too many wrong keys were tried within a minute, so no key is accepted."""
        is_full = len(self._wrong_keys) == MAX_WRONG_KEYS
        return is_full and self._clock.now() - self._wrong_keys[0] < WRONG_KEYS_PERIOD

    def find(self, cookie: str, address: str = "") -> Login | None:
        """Return the login of a cookie, and record its use. Returns None if it has ended."""
        digest = _digest(cookie)
        login = self._logins.get(digest)
        if login is None:
            return None
        now = self._clock.now()
        if now - login.seen_at > IDLE_LIFETIME:
            del self._logins[digest]
            self._save()
            return None
        login.seen_at = now
        login.seen_from = address
        login.form_token = _derive_form_token(cookie)
        if now - self._saved_at > SAVE_INTERVAL:
            self._save()
        return login

    def forget_answers(self) -> None:
        """Drop all answers and their files, because data that they repeat was erased."""
        for login in self._logins.values():
            login.files.clear()
            running = {key: each for key, each in login.answers.items() if not each.done()}
            login.answers = running

    def list_logins(self, account: Account) -> list[Login]:
        """Return the logins of an account, the most recently used first."""
        return [login for login in self.list_all() if login.visitor.account == account]

    def list_all(self) -> list[Login]:
        """Return the logins of all accounts, the most recently used first."""
        return sorted(self._logins.values(), key=lambda login: login.seen_at, reverse=True)

    def end(self, login_id: str, account: Account) -> bool:
        """End a login of an account. Returns False if the account has no login with this id."""
        for digest, login in self._logins.items():
            if login.id == login_id and login.visitor.account == account:
                del self._logins[digest]
                self._save()
                return True
        return False

    def ask(self, login: Login, command: Command) -> str:
        """Store a command that waits for a click, and return the id of its button."""
        _drop_oldest(login.questions, MAX_QUESTIONS - 1)
        question_id = secrets.token_urlsafe(12)
        login.questions[question_id] = (command, self._clock.now() + QUESTION_LIFETIME)
        return question_id

    def ask_once(self, login: Login, outcome: Outcome, label: str, command: Command) -> str:
        """Return the id of a button of an answer, or "" if it was used or has expired."""
        if label not in outcome.questions:
            outcome.questions[label] = self.ask(login, command)
        question_id = outcome.questions[label]
        _, expires_at = login.questions.get(question_id, (None, self._clock.now()))
        return question_id if expires_at > self._clock.now() else ""

    def has_form_token(self, login: Login, token: str) -> bool:
        """Return whether a form is of this login, or of another one of the same account.

        A page stays open in the browser when its person logs in again.
        """
        typed = token.encode("utf-8", "replace")
        tokens = [each.form_token for each in self.list_logins(login.visitor.account)]
        return any(secrets.compare_digest(typed, known.encode()) for known in tokens if known)

    def take(self, login: Login, question_id: str) -> Command | None:
        """Remove and return the command of a button. Returns None if it has expired or was used."""
        command, expires_at = login.questions.pop(question_id, (None, self._clock.now()))
        return command if expires_at > self._clock.now() else None


def keep_file(login: Login, file: File) -> str:
    """Store a file of an answer and return the id of its link.

    Only the last ten files of a login are kept.
    """
    _drop_oldest(login.files, MAX_FILES - 1)
    file_id = secrets.token_urlsafe(12)
    login.files[file_id] = file
    return file_id


def list_typed(form: Mapping[str, str]) -> list[str]:
    """Return the texts that a person typed into a form."""
    return [text for name, text in form.items() if text and _TYPED_FIELD.fullmatch(name)]


def answer_once(
    login: Login, path: str, form: Mapping[str, str], run: Callable[[], Awaitable[Outcome]]
) -> tuple[str, asyncio.Future[Outcome]]:
    """Run the action of a form, or find its outcome if the same form was sent before.

    So a double click runs the action once. Each rendered form has a separate id in the field
    ``form``. If an action has failed, it's run again. Returns the id of the outcome, and the
    outcome.
    """
    fields = json.dumps([path, sorted(form.items())]).encode()
    key = hashlib.sha256(fields).hexdigest()[:ANSWER_ID_CHARS]
    earlier = login.answers.get(key) if form.get("form") else None
    if earlier is not None and (not earlier.done() or earlier.exception() is None):
        return key, earlier
    login.answers.pop(key, None)
    _drop_oldest(login.answers, MAX_ANSWERS - 1)
    login.answers[key] = asyncio.ensure_future(run())
    return key, login.answers[key]


def find_outcome(login: Login, answer_id: str) -> Outcome | None:
    """Return the outcome with this id, or None if it doesn't exist any more."""
    outcome = login.answers.get(answer_id)
    if outcome is None or not outcome.done() or outcome.cancelled() or outcome.exception():
        return None
    return outcome.result()


def list_commands(answer: Answer) -> list[tuple[str, Command]]:
    """Return the labels and commands of an answer's buttons. The label of "Yes" is empty."""
    commands = [] if answer.confirm_command is None else [("", answer.confirm_command)]
    # The page has its own forms for buttons that open one.
    return commands + [
        (button.label, button.command) for button in answer.buttons if button.form is None
    ]


def add_answer(path: str, answer_id: str) -> str:
    """Return the address of a page that shows an answer."""
    path = drop_answer(path)
    return f"{path}{'&' if '?' in path else '?'}{ANSWER}={answer_id}"


def drop_answer(path: str) -> str:
    """Return the address of a page without the id of an answer."""
    return _ANSWER_PARAMETER.sub("", path)


def _join_lines(text: str) -> str:
    """Return a text with line feeds as line ends. A browser sends other line ends."""
    return text.replace("\r\n", "\n")


def _derive_form_token(cookie: str) -> str:
    """Return the form token of a login. The token stays the same after a restart."""
    return hashlib.sha256(f"form {cookie}".encode("utf-8", "replace")).hexdigest()


def _read_login(entry: Mapping[str, Any], names: Mapping[Account, str]) -> Login:
    """Return a login from its entry in the file."""
    platform, _, user_id = entry["account"].partition(":")
    account = Account(platform=platform, user_id=user_id)
    visitor = Visitor(
        account=account,
        address=Address.parse(entry["address"]),
        scope=Scope(key=entry["scope"]),
        name=names.get(account, ""),
    )
    return Login(
        id=entry["id"],
        visitor=visitor,
        form_token="",
        begun_at=datetime.fromisoformat(entry["begun_at"]),
        seen_at=datetime.fromisoformat(entry["seen_at"]),
        browser=entry["browser"],
        begun_from=entry.get("begun_from", ""),
        seen_from=entry.get("seen_from", ""),
    )


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def _drop_oldest(entries: dict[Key, Entry], limit: int) -> None:
    """Remove the oldest entries until at most `limit` are left."""
    while len(entries) > limit:
        del entries[next(iter(entries))]
