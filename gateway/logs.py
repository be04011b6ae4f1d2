"""The log: one line an event, of ours and of every library, with no secret in it whatever was logged.

Says when something starts, stops or fails; what people say is never logged.
"""

import logging
import os
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TextIO

import structlog

from config.masking import masked
from config.settings import Settings

FILE_BYTES = 5_000_000
FILES_KEPT = 3
_OURS = ("mneme", "adapters")
"""Above the loggers of this program. All others stay at warning: libraries log what people say, and what is sent."""


def configure(settings: Settings, destination: TextIO | Path | None = None) -> None:
    """Sends the log to a stream (standard error unless given) or a file (mode 0600, three old ones kept); the last call
    counts."""
    handler: logging.Handler = (
        _PrivateFile(destination, maxBytes=FILE_BYTES, backupCount=FILES_KEPT, encoding="utf-8", errors="replace")
        if isinstance(destination, Path)
        else logging.StreamHandler(destination)
    )
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        _add_name,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    handler.setFormatter(_Redacting(shared, settings.general.log_format == "json"))
    root = logging.getLogger()
    for old in [held for held in root.handlers if isinstance(held.formatter, _Redacting)]:
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    level = logging.getLevelNamesMapping()[settings.general.log_level.upper()]
    root.setLevel(max(level, logging.WARNING))
    for name in _OURS:
        logging.getLogger(name).setLevel(level)
    logging.captureWarnings(True)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=_logger,
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(name if name.partition(".")[0] in _OURS else f"{_OURS[0]}.{name}")


def _add_name(logger: logging.Logger, method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    event["logger"] = event.get("_record", logger).name.removeprefix(f"{_OURS[0]}.")
    return event


class _Redacting(structlog.stdlib.ProcessorFormatter):
    """Renders a record and masks the secrets in the finished line, so that none gets past in a traceback or a repr."""

    def __init__(self, shared: list[structlog.typing.Processor], is_json: bool) -> None:
        processors: list[structlog.typing.Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
        if is_json:
            processors += [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]
        else:
            plain = structlog.dev.plain_traceback
            processors.append(structlog.dev.ConsoleRenderer(colors=False, exception_formatter=plain))
        super().__init__(foreign_pre_chain=shared, processors=processors)

    def format(self, record: logging.LogRecord) -> str:
        return masked(super().format(record))


class _PrivateFile(RotatingFileHandler):
    """A log file for its owner only, also after rotation. What a full disk does not take is lost without a trace."""

    def _open(self) -> TextIOWrapper:
        os.close(os.open(self.baseFilename, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        return super()._open()

    def handleError(self, record: logging.LogRecord) -> None:
        return None
