"""Masks secrets in error messages and in the log.

The errors of services often repeat a request: a URL with a token, a header or a rejected key. The
registered secrets of this process are always masked. Other texts are masked if they look like a
known kind of key, or if the name before them indicates a secret.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

MASK = "[secret]"
# Shorter secrets could be ordinary words, so they are recognized only by their form.
MIN_SECRET_CHARS = 8

# The user and password of a URL: "ana:pw" in https://ana:pw@host, also percent-encoded.
_URL_USER = re.compile(
    r"""(?:(?<=://)[^/\s"'<>?#]{1,300}(?=@)|(?<=%3a%2f%2f)[^/\s"'<>?#@]{1,300}?(?=%40))""", re.I
)
# A password in a URL: postgresql://ana:pw@host or postgresql://host/db?password=pw.
_URL_PASSWORD = re.compile(r"://[^/\s?#@]{0,300}:[^/\s?#]{1,300}@|://\S{1,300}[?&]password=", re.I)
# The value of a header, parameter or field whose name says that it's secret, such as
# "Authorization: Bearer abc1", "?key=abc1", '"api_key": "abc1"' or "password=abc1". After a plain
# word and a colon ("token: abc1"), the value must contain a digit. Group 1 is the name.
_NAMED_VALUE = re.compile(
    r"""(
        authorization(?:\\?["']\s{0,3}[:,]\s{0,3}b?\\?["']
          | \s{0,3}(?:[:=]|%3[ad])(?:\s|%20|\+){0,3}+(?:\\?["'])?)
          (?:(?:bearer|basic|bot|token|digest)(?:\s|%20|\+){1,3}+)?+
      | \bbearer\s{1,3}(?=\S{0,100}\d) | \bbasic\s{1,3}(?=\S{1,100}(?-i:[A-Z\d=]))
      | \bcookie(?:\\?["'])?\s{0,3}[:=]\s{0,3}(?:\\?["'])?
      | [?&](?:key|sig)=
      | (?:token|secret|passw(?:or)?d|api[_-]?key|(?:access|private)[_-]?key|signature)
        (?:\\?["']\s{0,3}[:,]\s{0,3}b?\\?["']
          | (?:\\?["'])?\s{0,3}(?:=|%3[ad](?:%20|\+)?)\s{0,3}(?:\\?["'])?
          | \s{0,3}:\s{0,3}(?=[^\s"',;]{5,100}\d|\S{0,5}\d\S{5}))
    )(?!\[secret)[^\s"'\\&<>,;)}\]]{4,}""",
    re.X | re.I,
)
# Keys and tokens of well-known services.
_KEY_SHAPE = re.compile(
    r"""\bsk-ant-[\w-]{8,} | \bsk-(?=[\w-]{0,40}\d)[\w-]{16,} | \b[srp]k_(?:live|test)_\w{10,}
      | (?:\bbot|\b)\d{6,12}(?::|%3[Aa])[\w-]{30,}            # Telegram
      | \b[MNO][\w-]{22,28}\.[\w-]{6,7}\.[\w-]{25,}           # Discord
      | \beyJ[\w-]{8,2000}\.[\w-]{4,2000}(?:\.[\w-]*)?        # JSON Web Token
      | \bgh[pousr]_\w{20,} | \bgithub_pat_\w{20,} | \bglpat-[\w-]{18,}
      | \bxox[abposr]-[\w-]{10,} | \bnpm_\w{30,}
      | \bhf_[A-Za-z]{30,} | \bpypi-[\w-]{40,}
      | \b(?:AKIA|ASIA|AROA)[0-9A-Z]{16}\b | \bAIza[\w-]{35,}
      | \bya29\.[\w-]{20,} | \bSG\.[\w-]{20,60}\.[\w-]{20,}
      | (?<=hooks\.slack\.com/)\S{15,} | (?<=/api/webhooks/)\d{1,20}/[\w-]{20,}
      | -----BEGIN\ [A-Z ]{0,40}PRIVATE\ KEY-----[^-]{0,20000}""",
    re.X,
)
# The secrets of this process in all encodings that errors may use.
_known_secrets: set[str] = set()


def register_secrets(secrets: Iterable[str]) -> None:
    """Register secrets of this process. `mask_secrets` then masks them, and each of their lines."""
    for secret in secrets:
        for part in (secret, *secret.splitlines()):
            if len(part) >= MIN_SECRET_CHARS:
                _known_secrets.update(_list_encodings(part))


def has_url_password(text: str) -> bool:
    """Return whether a URL in the text contains a password, before its host or as a parameter."""
    return _URL_PASSWORD.search(text) is not None


def mask_secrets(text: str) -> str:
    """Return the text with `MASK` in place of each secret.

    Call this before cutting the text, because half a secret isn't recognized.
    """
    for secret in sorted(_known_secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    text = _URL_USER.sub(MASK, text)
    text = _NAMED_VALUE.sub(rf"\1{MASK}", text)
    return _KEY_SHAPE.sub(MASK, text)


def _list_encodings(secret: str) -> Iterator[str]:
    """Yield a secret in all encodings: plain, JSON, Python source, URL and Base64."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield repr(secret)[1:-1]
    # The slice turns b'abc' into abc.
    yield repr(secret.encode())[2:-1]
    for url_form in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        yield url_form
        yield re.sub("%..", lambda match: match[0].lower(), url_form)
    yield from _list_base64_forms(secret.encode())


def _list_base64_forms(secret: bytes) -> Iterator[str]:
    """Yield the texts that show that a longer Base64 text contains a secret.

    Base64 encodes three bytes as four characters. The encoded secret therefore depends on how many
    bytes precede it in its group of three: 0, 1 or 2. Characters at its edges that also encode
    other bytes are cut off.
    """
    for bytes_before, characters_before in ((0, 0), (1, 2), (2, 3)):
        content = bytes(bytes_before) + secret
        whole_characters = len(content) * 8 // 6
        form = base64.b64encode(content).decode()[characters_before:whole_characters]
        yield form
        # The same part in the alphabet for URLs.
        yield form.replace("+", "-").replace("/", "_")
