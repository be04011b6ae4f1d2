"""Defines what all steps of `mneme setup` share: options, access to secrets, and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from config.draft import SettingsDraft
from config.operating_system import LANGUAGE_VARIABLES, find_shell_language
from config.settings import SettingsError, list_environment_names
from config.variables import select_variables
from gateway.cli.setup.dialog import Dialog
from gateway.texts.catalog import ENGLISH, Texts, load_texts
from gateway.texts.settings_problems import word_problem
from gateway.texts.text_files import match_language


class StepFailed(Exception):
    """Raised when a step can't be finished. Its message is one sentence for the person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupOptions:
    """The command-line options of `mneme setup`. An option that wasn't given is empty."""

    language: str = ""
    zone: str = ""
    model: str = ""
    url: str = ""
    owners: Sequence[str] = ()
    imports: Sequence[str] = ()
    page: str = ""
    backup: str = ""
    wants_service: bool = False


@dataclass(kw_only=True)
class Setup:
    """The state of a running setup: the dialog, the options and the draft of the settings."""

    dialog: Dialog
    draft: SettingsDraft
    options: SetupOptions = field(default_factory=SetupOptions)
    texts: Texts = ENGLISH

    @property
    def words(self) -> Mapping[str, Any]:
        """Return the texts of the setup in the person's language, by their keys."""
        return self.texts.tables("setup")

    def speak(self, language: str) -> None:
        """Switch to another language."""
        self.texts = load_texts(language)
        self.dialog.texts = self.texts

    def describe_failure(self, error: Exception) -> str:
        """Return one sentence about why a step failed."""
        if isinstance(error, SettingsError):
            return self._describe_problem(error)
        if isinstance(error, OSError):
            reason = self.texts.word_stored(error.strerror or str(error))
            if error.filename:
                return str(self.words["unusable"].format(place=error.filename, reason=reason))
            return f"{reason}."
        return self.texts.word(error)

    def find_secret(self, name: str) -> str:
        """Return a secret from the environment or, if it isn't there, from secrets.env.

        Returns "" if it's in neither.
        """
        value = select_variables([name]).get(name, "").strip()
        return value or self.draft.secrets.get(name, "")

    def ask_for_secret(self, name: str, question: str) -> str:
        """Return a secret from the environment or, if it isn't there, from secrets.env.

        Returns "" if neither contains it.
        """
        if list_environment_names([name]):
            self.dialog.tell(self.words["from_environment"].format(name=name))
            return self.find_secret(name)
        return self.dialog.ask_secret(question)

    def set_option(self, path: str, value: Any) -> None:
        """Set an option in the draft. Raises StepFailed if the value is invalid."""
        try:
            self.draft.set_option(path, value)
        except SettingsError as error:
            raise StepFailed(self._describe_problem(error)) from error

    def set_secret(self, name: str, value: str) -> None:
        """Set a secret in the draft. Raises StepFailed if the value is invalid."""
        try:
            self.draft.set_secret(name, value)
        except SettingsError as error:
            raise StepFailed(self._describe_problem(error)) from error

    def _describe_problem(self, error: SettingsError) -> str:
        problem = word_problem(self.texts, error.problems[0])
        return problem if problem.endswith((".", "?", "。", "？")) else f"{problem}."

    def add_owner(self, platform: str, user_id: str) -> None:
        """Add an account to the owner's accounts in the draft.

        Raises StepFailed if `user_id` isn't valid.
        """
        key = f"{platform}:{user_id}"
        if platform not in ("telegram", "discord") or not user_id.isdecimal():
            raise StepFailed(self.words["owner"]["refused"].format(key=key[:60].rstrip(":")))
        owner = self.draft.own_options.get("owner", {})
        ids = [int(existing_id) for existing_id in owner.get(platform, [])]
        if int(user_id) not in ids:
            self.set_option(f"owner.{platform}", [*ids, int(user_id)])


def find_language(draft: SettingsDraft) -> str:
    """Return the language of the settings or, if none is set, of the shell.

    Returns "" if Mneme has no texts in that language.
    """
    language = draft.own_options.get("general", {}).get("language", "auto")
    if isinstance(language, str) and language != "auto":
        return match_language(language) or ""
    return match_language(find_shell_language(select_variables(LANGUAGE_VARIABLES))) or ""
