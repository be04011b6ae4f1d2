"""What of an error's text is masked, and that all else stays."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote, quote_plus

import pytest

from config import masking
from config.masking import mask_secrets, register_secrets
from core.errors import ConfigError, DeliveryError, ModelError
from tests.fixtures.growth import assert_linear
from tests.fixtures.sweeps import keep_first
from tests.fixtures.tables import each_row

TELEGRAM = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1"
DISCORD = "MTk4NjIyNDgzNDcxOTI1MjQ4" + ".Cl2FMQ." + "ZnCjm1XVW7vRze4b7Cq4se7kKWs"


@pytest.fixture(autouse=True)
def _no_secrets_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "_known_secrets", set())


@each_row(
    ("text", "shown"),
    [
        (
            f"POST https://api.telegram.org/bot{TELEGRAM}/getMe",
            "POST https://api.telegram.org/[secret]/getMe",
        ),
        (f"the token `{TELEGRAM}` was rejected", "the token `[secret]` was rejected"),
        (f"GET https://host/bot{TELEGRAM.replace(':', '%3A')}", "GET https://host/[secret]"),
        (f"GET https://host/bot{TELEGRAM.replace(':', '%3a')}", "GET https://host/[secret]"),
        (f"Bot {DISCORD} is unknown", "Bot [secret] is unknown"),
        (
            "https://me:hunter2@proxy.test:81/v1 is down",
            "https://[secret]@proxy.test:81/v1 is down",
        ),
        ("https://me:hunt@er2@proxy.test/v1 is down", "https://[secret]@proxy.test/v1 is down"),
        ("via https%3A%2F%2Fme%3Ahunter2%40proxy.test", "via https%3A%2F%2F[secret]%40proxy.test"),
        ("https://a-token@git.test/x", "https://[secret]@git.test/x"),
        (
            "{'Authorization': 'Bearer abcd.efgh', 'Accept': 'x'}",
            "{'Authorization': 'Bearer [secret]', 'Accept': 'x'}",
        ),
        ("authorization: Basic bWU6aHVudGVy, again", "authorization: Basic [secret], again"),
        ("[(b'Authorization', b'Bearer abcd.efgh')]", "[(b'Authorization', b'Bearer [secret]')]"),
        ("Authorization%3A%20Basic%20bWU6aHVudGVy", "Authorization%3A%20Basic%20[secret]"),
        ("HTTP_AUTHORIZATION=Bearer abcd.efgh", "HTTP_AUTHORIZATION=Bearer [secret]"),
        ("401 for Bearer abcdef0123456789", "401 for Bearer [secret]"),
        ('{"x-api-key": "hush-hush"}', '{"x-api-key": "[secret]"}'),
        (r'"said": "{\"x-api-key\": \"hush-hush\"}"', r'"said": "{\"x-api-key\": \"[secret]\"}"'),
        (r'"said": "password=\"hush-hush\""', r'"said": "password=\"[secret]\""'),
        ("[('x-api-key', 'hush-hush')]", "[('x-api-key', '[secret]')]"),
        ("GET /v1%3Faccess_token%3Dhush-hush", "GET /v1%3Faccess_token%3D[secret]"),
        ("x-api-key: 1234567890", "x-api-key: [secret]"),
        ("GET /v1?access_token=hush&page=2", "GET /v1?access_token=[secret]&page=2"),
        ("GET /v1?page=2&key=AbCdEf", "GET /v1?page=2&key=[secret]"),
        ("password=hunter and more", "password=[secret] and more"),
        ("Cookie: session=abcdef", "Cookie: [secret]"),
        ("the key sk-ant-api03-abcdefgh is refused", "the key [secret] is refused"),
        ("sk-proj-abc123def456ghi789", "[secret]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-def", "[secret]"),
        (
            "https://hooks.slack.com/services/T00000000/B00000000/XXXX",
            "https://hooks.slack.com/[secret]",
        ),
    ],
)
def test_secret_is_masked_by_its_pattern_or_its_position(text: str, shown: str) -> None:
    assert mask_secrets(text) == shown
    assert mask_secrets(shown) == shown


@each_row(
    "text",
    [
        "The model's server does not accept the key. Put a valid one into ANTHROPIC_API_KEY.",
        "telegram_token: isn't an option; set the environment variable TELEGRAM_BOT_TOKEN instead",
        "telegram: https://api.telegram.org refused the token (Unauthorized). Copy it again from @BotFather",
        "max_tokens: 4096 > 2048, and max_tokens=4096",
        "undeliverable key=turn:telegram:42:message:17 error='chat not found'",
        "Basic authentication is off; a bearer token is required",
        "prompt is too long: 200001 tokens > 200000 maximum",
        "see https://docs.test/@me and mail@host.test",
        "invalid x-api-key",
        "no authorization, and no token, was sent",
    ],
)
def test_a_sentence_without_a_secret_stays_as_it_is(text: str) -> None:
    assert mask_secrets(text) == text


def test_registered_secrets_are_masked_also_when_url_encoded() -> None:
    register_secrets(["correct horse", "correct horse battery", "k"])
    assert (
        mask_secrets("correct horse battery, correct horse, correct%20horse, k")
        == "[secret], [secret], [secret], k"
    )


@each_row(
    "secret", ["correct horse", "a/b+c d=éèêëü", "quo\"ted\\and'so", "-first line-\n-second line-"]
)
def test_secrets_of_this_process_are_masked_however_an_error_writes_them(secret: str) -> None:
    register_secrets([secret])
    forms = [
        secret,
        *(
            percent(secret)
            for percent in (quote, quote_plus, lambda text: quote(text, safe="").lower())
        ),
        *(json.dumps(secret, ensure_ascii=is_ascii) for is_ascii in (False, True)),
        *(repr(value) for value in (secret, secret.encode(), {"key": secret})),
        "\n  | ".join(secret.split("\n")),
    ]
    for before in ("", "a", "me", "me:", "name"):
        for encode in (b64encode, urlsafe_b64encode):
            coded = encode(f"{before}{secret}:".encode()).decode()
            forms.append(coded)
            assert len(mask_secrets(coded).replace("[secret]", "")) < 14, coded
    for form in forms:
        assert "[secret]" in mask_secrets(f"refused: {form}, again"), form
        assert not any(
            piece in mask_secrets(form) for piece in ("horse", "c d", "c%20d", "and", "line")
        ), form


def test_error_classes_mask_a_secret_in_their_message() -> None:
    for error in (
        ConfigError(TELEGRAM),
        DeliveryError(f"at {TELEGRAM}", is_permanent=True),
        ModelError(TELEGRAM),
    ):
        assert "AAHd" not in str(error)
        assert "[secret]" in str(error)


@pytest.mark.parametrize(
    "piece",
    keep_first(
        3,
        [
            "eyJ",
            "eyJaaaaaaaaaa.",
            "://a:",
            "token=",
            "authorization: ",
            "sk-",
            "bearer a",
            "1",
            "://a@",
            "%3a%2f%2fa",
        ],
    ),
)
@pytest.mark.slow
def test_masking_takes_linear_time_for_repeated_pieces(piece: str) -> None:
    assert_linear(mask_secrets, piece * (200_000 // len(piece)))
