"""What of an error's text is masked, and that all else stays."""

from __future__ import annotations

import time

import pytest

from config import masking
from config.masking import hide, masked
from core.errors import ConfigError, DeliveryError, ModelError

TELEGRAM = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1"
DISCORD = "MTk4NjIyNDgzNDcxOTI1MjQ4" + ".Cl2FMQ." + "ZnCjm1XVW7vRze4b7Cq4se7kKWs"


@pytest.fixture(autouse=True)
def _no_secrets_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "_hidden", set())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"POST https://api.telegram.org/bot{TELEGRAM}/getMe", "POST https://api.telegram.org/[secret]/getMe"),
        (f"the token `{TELEGRAM}` was rejected", "the token `[secret]` was rejected"),
        (f"GET https://host/bot{TELEGRAM.replace(':', '%3A')}", "GET https://host/[secret]"),
        (f"Bot {DISCORD} is unknown", "Bot [secret] is unknown"),
        ("https://me:hunter2@proxy.test:81/v1 is down", "https://[secret]@proxy.test:81/v1 is down"),
        ("https://a-token@git.test/x", "https://[secret]@git.test/x"),
        ("{'Authorization': 'Bearer abcd.efgh', 'Accept': 'x'}", "{'Authorization': 'Bearer [secret]', 'Accept': 'x'}"),
        ("authorization: Basic bWU6aHVudGVy, again", "authorization: Basic [secret], again"),
        ("401 for Bearer abcdef0123456789", "401 for Bearer [secret]"),
        ('{"x-api-key": "hush-hush"}', '{"x-api-key": "[secret]"}'),
        (r'"said": "{\"x-api-key\": \"hush-hush\"}"', r'"said": "{\"x-api-key\": \"[secret]\"}"'),
        (r'"said": "password=\"hush-hush\""', r'"said": "password=\"[secret]\""'),
        ("x-api-key: 1234567890", "x-api-key: [secret]"),
        ("GET /v1?access_token=hush&page=2", "GET /v1?access_token=[secret]&page=2"),
        ("GET /v1?page=2&key=AbCdEf", "GET /v1?page=2&key=[secret]"),
        ("password=hunter and more", "password=[secret] and more"),
        ("Cookie: session=abcdef", "Cookie: [secret]"),
        ("the key sk-ant-api03-abcdefgh is refused", "the key [secret] is refused"),
        ("sk-proj-abc123def456ghi789", "[secret]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-def", "[secret]"),
        ("https://hooks.slack.com/services/T00000000/B00000000/XXXX", "https://hooks.slack.com/[secret]"),
    ],
)
def test_a_secret_is_masked_by_its_shape_or_its_place(text: str, shown: str) -> None:
    assert masked(text) == shown
    assert masked(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "The model's server does not accept the key. Put a valid one into ANTHROPIC_API_KEY.",
        "telegram_token: is no option; set the environment variable TELEGRAM_BOT_TOKEN instead",
        "telegram: https://api.telegram.org refused the token (Unauthorized). Copy it again from @BotFather",
        "max_tokens: 4096 > 2048, and max_tokens=4096",
        "undeliverable key=turn:telegram:42:message:17 error='chat not found'",
        "Basic authentication is off; a bearer token is required",
        "prompt is too long: 200001 tokens > 200000 maximum",
        "see https://docs.test/@me and mail@host.test",
        "invalid x-api-key",
    ],
)
def test_a_sentence_without_a_secret_stays_as_it_is(text: str) -> None:
    assert masked(text) == text


def test_secrets_of_this_process_are_masked_as_they_stand() -> None:
    hide(["correct horse", "correct horse battery", "k"])
    assert masked("correct horse battery, correct horse, correct%20horse, k") == "[secret], [secret], [secret], k"


def test_no_error_of_ours_says_a_secret() -> None:
    for error in (ConfigError(TELEGRAM), DeliveryError(f"at {TELEGRAM}", is_permanent=True), ModelError(TELEGRAM)):
        assert "AAHd" not in str(error)
        assert "[secret]" in str(error)


@pytest.mark.parametrize(
    "piece", ["eyJ", "eyJaaaaaaaaaa.", "://a:", "token=", "authorization: ", "sk-", "bearer a", "1"]
)
def test_the_time_is_linear(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    began = time.thread_time()
    masked(text)
    assert time.thread_time() - began < 1.0
