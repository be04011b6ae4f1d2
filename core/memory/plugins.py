"""Finds memory providers by name and creates them from their options.

A service is the file core/memory/services/NAME.py of this package. A plugin is the file
plugins/NAME.py in the home, or the folder plugins/NAME/.

A plugin runs with all rights of Mneme. Loading it raises ConfigError if it fails, or if other users
can write to its files.
"""

import importlib
import re
import sys
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any

from config.files import OptionForm, OptionsError
from core.errors import ConfigError, Sentence, to_sentence
from core.guard.foreign_code import run_file
from core.memory.provider import MemoryProvider
from core.memory.provider_thread import translate_foreign_errors

SERVICES_FOLDER = Path(__file__).with_name("services")
BUILT_IN = ("notes", "history", "facts")
RESERVED_NAMES = (*BUILT_IN, "memory")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
# Modules that plugins of earlier versions import, and the modules that define their classes today.
_OLD_MODULES = {
    "core.memory.forgotten": "core.memory.provider",
    "core.memory.secret": "core.memory.provider",
    "core.memory.options": "core.memory.provider",
    "core.records": "core.store.notes",
}


class Plugins:
    """Loads the plugins in `home`/plugins and the services of this package."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "plugins"

    def names(self) -> list[str]:
        """Return the sorted names of all plugins and services without running any plugin."""
        names = {path.stem for path in self._folder.glob("*.py")}
        names |= {path.parent.name for path in self._folder.glob("*/__init__.py")}
        names |= {path.stem for path in SERVICES_FOLDER.glob("*.py")}
        return sorted(
            name for name in names if _NAME.fullmatch(name) and name not in RESERVED_NAMES
        )

    def load_form(self, name: str) -> OptionForm:
        """Return the options of a provider. Raises ConfigError if the provider can't be loaded."""
        _, form = self._load(name)
        return form

    def create_provider(
        self, name: str, table: Mapping[str, Any], variables: Mapping[str, str]
    ) -> MemoryProvider:
        """Create a provider from its settings table and the environment variables.

        Raises ConfigError if the provider can't be loaded or its settings are invalid.
        """
        provider_class, form = self._load(name)
        with translate_foreign_errors(name):
            try:
                options = form.build_options(table, variables)
            except OptionsError as error:
                missing = [key for key in form.required_names if key not in table]
                key = "memory_needs_setup" if missing else "memory_is_off"
                problem = ConfigError(key, name=name, problems=join_clauses(error))
                other = _find_other_problem(provider_class, form, table, error)
                if other is None:
                    raise problem from error
                raise ConfigError(
                    "joined_sentences", first=to_sentence(problem), second=to_sentence(other)
                ) from error
            if provider_class.options is None:
                provider = provider_class()
            else:
                provider = provider_class(options)  # type: ignore[call-arg]
            if provider.name != name:
                raise ConfigError(
                    "memory_provider_name", class_name=provider_class.__name__, name=name
                )
        return provider

    def _load(self, name: str) -> tuple[type[MemoryProvider], OptionForm]:
        """Run the file of a provider, and return the class and the options that it defines.

        Raises ConfigError if the file doesn't exist, its code fails, or it doesn't define exactly
        one provider.
        """
        path = self._find_file(name)
        with translate_foreign_errors(str(path)):
            module = _import_file(name, path)
            classes = _provider_classes_in(module)
            if len(classes) != 1:
                raise ConfigError("memory_provider_count", path=str(path), count=len(classes))
            provider_class = classes.pop()
            return provider_class, OptionForm(provider_class.options)

    def _find_file(self, name: str) -> Path:
        """Return the file of a provider. A plugin takes precedence over a service.

        Raises ConfigError if the file doesn't exist or the name is reserved.
        """
        if name in RESERVED_NAMES:
            raise ConfigError("memory_built_in", name=name)
        if _NAME.fullmatch(name):
            for path in (
                self._folder / f"{name}.py",
                self._folder / name / "__init__.py",
                SERVICES_FOLDER / f"{name}.py",
            ):
                if path.is_file():
                    return path
        raise ConfigError("memory_unknown", name=name[:40], folder=str(self._folder))


def join_clauses(error: OptionsError) -> Sentence:
    """Return the problems of options as one sentence without a full stop."""
    clauses = [Sentence(problem.key, problem.values) for problem in error.problems]
    return reduce(
        lambda first, second: Sentence("joined_clauses", {"first": first, "second": second}),
        clauses,
    )


def _find_other_problem(
    provider_class: type[MemoryProvider],
    form: OptionForm,
    table: Mapping[str, Any],
    error: OptionsError,
) -> ConfigError | None:
    """Return the problem that a provider would have if all variables with secrets were set."""
    variables = {}
    for problem in error.problems:
        if problem.key != "option_variable_unset":
            return None
        variables[problem.values["variable"]] = "unset"
    for name, value in table.items():
        if name in form.fields and form.is_secret(name):
            variables[str(value).strip()] = "unset"
    try:
        provider_class(form.build_options(table, variables))  # type: ignore[call-arg]
    except ConfigError as other:
        return other
    return None


def _import_file(name: str, path: Path) -> ModuleType:
    """Import a service, or run a plugin, and return its module."""
    if path.parent == SERVICES_FOLDER:
        return importlib.import_module(f"core.memory.services.{name}")
    for old, new in _OLD_MODULES.items():
        sys.modules[old] = importlib.import_module(new)
    return run_file(name, path)


def _provider_classes_in(module: ModuleType) -> set[type[MemoryProvider]]:
    """Return the provider classes of a module, except those imported from elsewhere."""
    classes = set()
    for value in vars(module).values():
        if not isinstance(value, type) or not issubclass(value, MemoryProvider):
            continue
        # The class is defined in the module itself or in one of its submodules.
        if f"{value.__module__}.".startswith(f"{module.__name__}."):
            classes.add(value)
    return classes
