"""Writes the log: one line per event of Mneme and its libraries, with all secrets masked.

The log records when a part of Mneme starts, stops or fails. It never contains people's messages.
"""

import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TextIO

import structlog

from config.masking import mask_secrets
from config.settings import Settings
from core.errors import StoreError

FILE_BYTES = 5_000_000
MAX_BACKUP_FILES = 3
# The same error of the store is logged at most once in this interval.
STORE_ERROR_INTERVAL_S = 60.0
# If more different errors than this occur, all are forgotten, so they are logged once more.
MAX_STORE_ERRORS = 100
# Marks an event that reports a StoreError.
_STORE_ERROR_KEY = "_store_error"
# The root loggers of Mneme's own loggers. All other loggers log only warnings, because some
# libraries log people's messages at lower levels.
_OWN_ROOTS = ("mneme", "adapters")


def set_level(name: str) -> None:
    """Log only messages of this level and above: "debug", "info", "warning" or "error"."""
    level = logging.getLevelNamesMapping()[name.upper()]
    logging.getLogger().setLevel(max(level, logging.WARNING))
    for root in _OWN_ROOTS:
        logging.getLogger(root).setLevel(level)


def configure(settings: Settings, destination: TextIO | Path | None = None) -> None:
    """Write the log to a stream or a file. The default is standard error.

    A later call replaces the destination. Only the user who runs Mneme can read a log file. When a
    file is full, a new one is started, and the last three full files are kept.
    """
    shared_processors: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        _add_name,
        _describe_store_error,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    handler = _create_handler(destination)
    handler.addFilter(StoreErrorLimit())
    handler.setFormatter(
        _MaskingFormatter(shared_processors, settings.general.log_format == "json")
    )
    _replace_handler(handler)
    set_level(settings.general.log_level)
    logging.captureWarnings(True)
    structlog.configure(
        processors=[*shared_processors, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=_create_logger,
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def _create_handler(destination: TextIO | Path | None) -> logging.Handler:
    """Create a handler that writes to a stream, or to a rotating file."""
    if not isinstance(destination, Path):
        return logging.StreamHandler(destination)
    return _PrivateFile(
        destination,
        maxBytes=FILE_BYTES,
        backupCount=MAX_BACKUP_FILES,
        encoding="utf-8",
        errors="replace",
    )


def _replace_handler(handler: logging.Handler) -> None:
    """Add a handler to the root logger, and remove the handler of an earlier call."""
    root = logging.getLogger()
    for earlier in list(root.handlers):
        if isinstance(earlier.formatter, _MaskingFormatter):
            root.removeHandler(earlier)
            earlier.close()
    root.addHandler(handler)


def _create_logger(name: str) -> logging.Logger:
    """Return a logger below one of Mneme's root loggers: ``turns`` becomes ``mneme.turns``."""
    root = name.partition(".")[0]
    if root not in _OWN_ROOTS:
        name = f"{_OWN_ROOTS[0]}.{name}"
    return logging.getLogger(name)


def _add_name(
    logger: logging.Logger, method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Add the logger's name to an event: ``turns`` for the logger ``mneme.turns``."""
    event["logger"] = event.get("_record", logger).name.removeprefix(f"{_OWN_ROOTS[0]}.")
    return event


def _remove_mark(
    logger: logging.Logger, method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    event.pop(_STORE_ERROR_KEY, None)
    return event


class StoreErrorLimit:
    """A filter that logs the same StoreError at most once a minute, across all loggers.

    While the disk is full or state.db is locked, every part of Mneme raises the same error
    repeatedly.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        # When each error was logged.
        self._logged_at: dict[str, float] = {}

    def __call__(self, record: logging.LogRecord) -> bool:
        """Return False if the record repeats a StoreError from within the last minute."""
        text = _find_store_error(record)
        if not text:
            return True
        now = self._now()
        if now - self._logged_at.get(text, -STORE_ERROR_INTERVAL_S) < STORE_ERROR_INTERVAL_S:
            return False
        if len(self._logged_at) >= MAX_STORE_ERRORS:
            self._logged_at.clear()
        self._logged_at[text] = now
        return True


def _find_store_error(record: logging.LogRecord) -> str:
    """Return the text of the StoreError in a record, or "" if there is none."""
    if isinstance(record.msg, dict):
        return str(record.msg.get(_STORE_ERROR_KEY, ""))
    arguments = record.args if isinstance(record.args, tuple) else ()
    for argument in arguments:
        if isinstance(argument, StoreError):
            return str(argument)
    return ""


def _describe_store_error(
    logger: logging.Logger, method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Replace a StoreError by its text, and mark the event for `StoreErrorLimit`."""
    error = event.get("error")
    if isinstance(error, StoreError):
        event["error"] = event[_STORE_ERROR_KEY] = str(error)
    return event


class _MaskingFormatter(structlog.stdlib.ProcessorFormatter):
    """Formats a record, and masks secrets in the whole line including the traceback."""

    def __init__(self, shared_processors: list[structlog.typing.Processor], is_json: bool) -> None:
        processors: list[structlog.typing.Processor] = [
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            _remove_mark,
        ]
        if is_json:
            processors += [
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(ensure_ascii=False),
            ]
        else:
            plain = structlog.dev.plain_traceback
            processors.append(
                structlog.dev.ConsoleRenderer(colors=False, exception_formatter=plain)
            )
        super().__init__(foreign_pre_chain=shared_processors, processors=processors)

    def format(self, record: logging.LogRecord) -> str:
        return mask_secrets(super().format(record))


class _PrivateFile(RotatingFileHandler):
    """A log file that only the user can read, even after rotation.

    Lines that can't be written because the disk is full are dropped.
    """

    def _open(self) -> TextIOWrapper:
        os.close(os.open(self.baseFilename, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        return super()._open()

    def handleError(self, record: logging.LogRecord) -> None:
        return None


def print_notice(sentence: str) -> None:
    """Print a sentence for the person who has started the process, if there is one."""
    if sentence:
        with contextlib.suppress(OSError):
            print(sentence, file=sys.stderr, flush=True)  # noqa: T201
