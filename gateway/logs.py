"""The log: one line an event, of ours and of every library, with no secret in it whatever was logged.

Says when something starts, stops or fails; what people say is never logged.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Sequence
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TextIO
from urllib.parse import quote

import structlog

from config.settings import Settings

MASK = "[secret]"
FILE_BYTES = 5_000_000
FILES_KEPT = 3
_TOKENS = re.compile(r"\bsk-ant-[\w-]{8,200}|\b(?:bot)?\d{6,12}:[\w-]{30,50}\b")
"""What looks like an API key or a bot token, though it is not the one in the settings."""
_CHATTERING = ("httpx", "httpx2", "httpcore", "httpcore2", "apscheduler", "asyncio", "aiosqlite", "anthropic")
"""Libraries whose everyday work is not worth a line."""


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
        structlog.stdlib.add_logger_name,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    handler.setFormatter(_Redacting(settings.secrets(), shared, settings.general.log_format == "json"))
    root = logging.getLogger()
    for old in [held for held in root.handlers if isinstance(held.formatter, _Redacting)]:
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    level = logging.getLevelNamesMapping()[settings.general.log_level.upper()]
    root.setLevel(level)
    for name in _CHATTERING:
        logging.getLogger(name).setLevel(max(level, logging.WARNING) if level > logging.DEBUG else level)
    logging.captureWarnings(True)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


class _Redacting(structlog.stdlib.ProcessorFormatter):
    """Renders a record and masks the secrets in the finished line, so that none gets past in a traceback or a repr."""

    def __init__(self, secrets: Sequence[str], shared: list[structlog.typing.Processor], is_json: bool) -> None:
        processors: list[structlog.typing.Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
        if is_json:
            processors += [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]
        else:
            plain = structlog.dev.plain_traceback
            processors.append(structlog.dev.ConsoleRenderer(colors=False, exception_formatter=plain))
        super().__init__(foreign_pre_chain=shared, processors=processors)
        known = {form for secret in secrets for form in (secret, quote(secret, safe="")) if form}
        self._secrets = sorted(known, key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        for secret in self._secrets:
            line = line.replace(secret, MASK)
        return _TOKENS.sub(MASK, line)


class _PrivateFile(RotatingFileHandler):
    """A log file for its owner only, also after rotation. What a full disk does not take is lost without a trace."""

    def _open(self) -> TextIOWrapper:
        os.close(os.open(self.baseFilename, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        return super()._open()

    def handleError(self, record: logging.LogRecord) -> None:
        return None
