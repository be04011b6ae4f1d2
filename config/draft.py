"""Changes settings: a draft of mneme.toml and secrets.env that is checked before it is written.

Either both files get the changes or neither does. In mneme.toml, only the changed options are
rewritten. Comments and the order of options stay. A mistake that existed before doesn't prevent
other changes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from config.files import add_options, remove_option, replace_file
from config.locating import (
    find_current_path,
    find_option,
    list_old_paths,
    rename_options,
    split_path,
)
from config.secrets_file import SECRETS_FILE, change_secrets, read_secrets
from config.settings import SETTINGS_FILE, Settings, SettingsError, find_home


class SettingsDraft:
    """The settings of the home with changes that aren't written yet.

    Raises SettingsError if the home can't be created or mneme.toml can't be parsed, and OSError if
    it can't be read. With `is_broken_allowed`, mneme.toml needn't be valid TOML.
    """

    def __init__(self, *, is_broken_allowed: bool = False) -> None:
        self.home: Path = find_home()
        self._file = self.home / SETTINGS_FILE
        self._secrets_file = self.home / SECRETS_FILE
        try:
            self.text = self._file.read_text(encoding="utf-8") if self._file.exists() else ""
            if not is_broken_allowed:
                tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            raise SettingsError(
                [f"{SETTINGS_FILE}: isn't valid TOML: {error}"], self._file
            ) from None
        except UnicodeDecodeError:
            problem = f"{SETTINGS_FILE}: isn't UTF-8 text; save it as UTF-8"
            raise SettingsError([problem], self._file) from None
        self.secrets, _ = read_secrets(self._secrets_file)
        self._old_text = self.text
        self._old_secrets = dict(self.secrets)

    @property
    def is_changed(self) -> bool:
        return self.text != self._old_text or self.secrets != self._old_secrets

    @property
    def own_options(self) -> dict[str, Any]:
        """The options that mneme.toml sets, by their current names."""
        options = tomllib.loads(self.text)
        rename_options(options)
        return options

    def set_option(self, path: str, value: Any) -> None:
        """Set an option by its dotted path. Raises SettingsError if the value is invalid."""
        self._try_text(self._add_option(path, value))

    def set_typed_option(self, path: str, typed: str) -> Any:
        """Set an option to a value that a person typed, and return the value.

        Quotes around texts, brackets around lists and commas in them may be missing. Raises
        SettingsError if the text can't be parsed as a valid value.
        """
        errors: list[SettingsError] = []
        for value in _list_readings(typed):
            try:
                self.set_option(path, value)
            except SettingsError as error:
                errors.append(error)
            else:
                return value
        # For a list without brackets, the last error describes the list, which is more helpful.
        is_list = "list in brackets" in errors[0].problems[0]
        raise errors[-1 if is_list else 0]

    def remove_option(self, path: str) -> None:
        """Reset an option to its default. Raises KeyError if mneme.toml doesn't set the option."""
        path = find_current_path(path)
        text = self._remove_old_names(path)
        options = tomllib.loads(text)
        if text == self.text or find_option(options, path) is not None:
            text = remove_option(text, split_path(path))
        self._try_text(text)

    def set_secret(self, name: str, value: str | None) -> None:
        """Set a variable of secrets.env, or remove it. Raises SettingsError if it's invalid."""
        secrets = {key: text for key, text in self.secrets.items() if key != name}
        if value is not None:
            secrets[name] = value.strip()
        self._check(self.text, secrets)
        self.secrets = secrets

    def replace_text(self, text: str) -> None:
        """Use this text as mneme.toml. Raises SettingsError with all its mistakes."""
        Settings.load(own_text=text, own_secrets=self.secrets)
        self.text = text

    def load(self) -> Settings:
        """Return the settings with the changes.

        Raises SettingsError if the settings have mistakes.
        """
        return Settings.load(own_text=self.text, own_secrets=self.secrets)

    def write(self) -> None:
        """Write the changes.

        Raises OSError if a file can't be written, and ValueError if a secret has several lines. In
        both cases, neither file has changed.
        """
        changes = {
            name: self.secrets.get(name)
            for name in dict.fromkeys((*self._old_secrets, *self.secrets))
            if self.secrets.get(name) != self._old_secrets.get(name)
        }
        if changes:
            change_secrets(self._secrets_file, changes)
        if self.text != self._old_text:
            try:
                replace_file(self._file, self.text.encode())
            except OSError:
                if changes:
                    old = {name: self._old_secrets.get(name) for name in changes}
                    change_secrets(self._secrets_file, old)
                raise
        self._old_text = self.text
        self._old_secrets = dict(self.secrets)

    def with_option(self, path: str, value: Any) -> str:
        """Return the text of mneme.toml with an option, without checking the whole text.

        Raises SettingsError if the parent of the option isn't a table.
        """
        return self._add_option(path, value)

    def _add_option(self, path: str, value: Any) -> str:
        path = find_current_path(path)
        *table, name = split_path(path)
        try:
            return add_options(self._remove_old_names(path), table, {name: value})
        except ValueError as error:
            problem = f"{path}: can't be set: {error}"
            raise SettingsError([problem], self._file, self.text) from None

    def _remove_old_names(self, path: str) -> str:
        """Return the text of mneme.toml without the names that an option had earlier."""
        options = tomllib.loads(self.text)
        text = self.text
        for old_path in list_old_paths(path):
            if find_option(options, old_path) is not None:
                text = remove_option(text, split_path(old_path))
        return text

    def _try_text(self, text: str) -> None:
        self._check(text, self.secrets)
        self.text = text

    def _check(self, text: str, secrets: Mapping[str, str]) -> None:
        """Raise SettingsError with the mistakes that the current draft doesn't have yet."""
        problems = _list_problems(text, secrets)
        if problems:
            known = _list_problems(self.text, self.secrets)
            new = [problem for problem in problems if problem not in known]
            if new:
                raise SettingsError(new, self._file)


def _list_problems(text: str, secrets: Mapping[str, str]) -> list[str]:
    try:
        Settings.load(own_text=text, own_secrets=secrets)
    except SettingsError as error:
        return list(error.problems)
    return []


def _list_readings(typed: str) -> list[Any]:
    """Return the values that a typed text may mean: a TOML value, a text, and lists of them."""
    readings: list[Any] = []
    try:
        value = tomllib.loads(f"value = {typed}")["value"]
        if isinstance(value, str | int | float | bool | list | dict):
            readings.append(value)
    except tomllib.TOMLDecodeError:
        pass
    readings.append(typed)
    parts: list[Any] = [part.strip() for part in typed.split(",") if part.strip()]
    readings.append([int(part) if part.isdecimal() else part for part in parts])
    words: list[Any] = typed.split()
    if len(words) > 1 and len(parts) == 1:
        readings.append([int(word) if word.isdecimal() else word for word in words])
    return readings
