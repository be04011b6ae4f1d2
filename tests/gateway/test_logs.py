"""The log has no secret in it, whoever logs it and in whatever wrapping, and can be read by its
owner only."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from config.masking import MASK
from config.settings import Settings
from core.errors import StoreError
from gateway import logs
from gateway.logs import StoreErrorLimit, _describe_store_error

TOKEN = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1"


@pytest.fixture(autouse=True)
def _undone() -> Iterator[None]:
    """The log is the process's: put it back as it was."""
    root = logging.getLogger()
    handlers, level, processing = list(root.handlers), root.level, structlog.get_config()
    yield
    for handler in root.handlers[:]:
        if handler not in handlers:
            root.removeHandler(handler)
            handler.close()
    root.setLevel(level)
    logging.captureWarnings(False)
    structlog.configure(**processing)


def settings(home: Path, toml: str = "", **environ: str) -> Settings:
    (home / "mneme.toml").write_text(toml)
    return Settings.load({"MNEME_HOME": str(home), **environ})


def test_log_masks_secrets_in_messages_fields_and_tracebacks(home: Path) -> None:
    out = io.StringIO()
    logs.configure(settings(home, ANTHROPIC_API_KEY="sk-hush-hush", TELEGRAM_BOT_TOKEN=TOKEN), out)
    log = structlog.get_logger("test")
    log.info(
        "the key is sk-hush-hush",
        header={"x-api-key": "sk-hush-hush"},
        url=f"https://host/bot{TOKEN}/getMe",
    )
    logging.getLogger("vendor").warning("GET %s", "https://host/bot" + TOKEN.replace(":", "%3A"))
    try:
        raise ValueError("refused: sk-hush-hush")
    except ValueError:
        log.exception("failed")
    log.warning("another's", key="sk-ant-api03-abcdefghijk", token="987654321:" + "B" * 35)
    text = out.getvalue()
    assert text.count("\n") >= 4
    for secret in ("sk-hush-hush", TOKEN, TOKEN.replace(":", "%3A"), "sk-ant", "BBBB"):
        assert secret not in text
    assert MASK in text
    assert "ValueError" in text


def test_json_log_has_one_object_per_line_for_own_and_library_messages(home: Path) -> None:
    out = io.StringIO()
    logs.configure(
        settings(home, 'general.log_format = "json"', DISCORD_BOT_TOKEN="hush-hush"), out
    )
    structlog.get_logger("router").info("a turn failed", incident="ab12", reason="grüße")
    logging.getLogger("discord").warning("said %s", "hush-hush")
    try:
        raise ValueError("broken\nline")
    except ValueError:
        structlog.get_logger("router").exception("failed")
    first, second, third = [json.loads(line) for line in out.getvalue().splitlines()]
    assert (first["event"], first["level"], first["logger"], first["reason"]) == (
        "a turn failed",
        "info",
        "router",
        "grüße",
    )
    assert first["timestamp"].endswith("Z")
    assert (second["event"], second["logger"]) == (f"said {MASK}", "discord")
    assert "ValueError" in third["exception"]


def test_debug_level_logs_details_of_this_program_and_only_warnings_of_libraries(
    home: Path,
) -> None:
    out = io.StringIO()
    logs.configure(settings(home, 'general.log_level = "debug"'), out)
    structlog.get_logger("ours").debug("details", of="ours")
    logging.getLogger("adapters.discord.messages").debug("more details")
    for vendor in (
        "telegram",
        "discord.gateway",
        "httpcore2.http11",
        "anthropic._base_client",
        "asyncio",
        "a.plugin",
    ):
        logging.getLogger(vendor).info("the body of a message")
        logging.getLogger(vendor).warning("trouble")
    lines = out.getvalue().splitlines()
    assert len(lines) == 8
    assert "details" in lines[0]
    assert "[ours]" in lines[0]
    assert "more details" in lines[1]
    assert "the body" not in out.getvalue()


def test_log_level_applies_and_libraries_log_only_warnings(home: Path) -> None:
    out = io.StringIO()
    logs.configure(settings(home), out)
    structlog.get_logger("ours").debug("details")
    logging.getLogger("httpx").info("HTTP Request")
    logging.getLogger("httpx").warning("trouble")
    assert "details" not in out.getvalue()
    assert "HTTP Request" not in out.getvalue()
    assert "trouble" in out.getvalue()


def test_log_is_written_only_to_the_last_configured_stream(home: Path) -> None:
    first, second = io.StringIO(), io.StringIO()
    logs.configure(settings(home), first)
    logs.configure(settings(home, 'general.log_level = "warning"'), second)
    structlog.get_logger("ours").warning("once")
    structlog.get_logger("ours").info("quiet")
    assert first.getvalue() == ""
    assert second.getvalue().count("once") == 1
    assert "quiet" not in second.getvalue()


def test_a_log_file_is_for_its_owner_and_is_rotated(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "FILE_BYTES", 2000)
    logs.configure(settings(home), home / "mneme.log")
    for number in range(150):
        structlog.get_logger("ours").info("line", number=number)
    files = sorted(home.glob("mneme.log*"))
    assert len(files) == 1 + logs.MAX_BACKUP_FILES
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in files)


def test_same_error_of_the_store_is_logged_once_a_minute_whoever_reports_it() -> None:
    now_s = 1_000.0
    limit = StoreErrorLimit(lambda: now_s)
    error = StoreError("The disk is full.")

    def is_logged(record: logging.LogRecord) -> bool:
        return limit(record)

    def ours(text: str) -> logging.LogRecord:
        event = {"event": "an event", "error": StoreError(text)}
        described = _describe_store_error(logging.getLogger("a"), "error", event)
        return logging.makeLogRecord({"msg": described})

    foreign = logging.makeLogRecord({"msg": "It waits: %s", "args": (error,)})
    assert is_logged(ours("The disk is full."))
    assert not is_logged(ours("The disk is full."))
    assert not is_logged(foreign)
    assert is_logged(ours("state.db is locked."))
    assert is_logged(logging.makeLogRecord({"msg": "Something else"}))
    now_s += 61
    assert is_logged(foreign)
    assert not is_logged(ours("The disk is full."))
