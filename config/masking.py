"""Masks secrets in what is said of an error and in the log: those of this process as they stand, others by their shape.

Vendors put into their errors what they were sent: addresses with a token, headers, the key that they refuse.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

MASK = "[secret]"
SHORTEST_CHARS = 8
"""A shorter secret is a word like any other, and known by its shape alone."""

_ADDRESS = re.compile(r"""(?:(?<=://)[^/\s"'<>?#]{1,300}(?=@)|(?<=%3a%2f%2f)[^/\s"'<>?#@]{1,300}?(?=%40))""", re.I)
_NAMED = re.compile(
    r"""(
        authorization(?:\\?["']\s{0,3}[:,]\s{0,3}b?\\?["'] | \s{0,3}(?:[:=]|%3[ad])(?:\s|%20|\+){0,3}+(?:\\?["'])?)
          (?:(?:bearer|basic|bot|token|digest)(?:\s|%20|\+){1,3}+)?+
      | \bbearer\s{1,3}(?=\S{0,100}\d) | \bbasic\s{1,3}(?=\S{1,100}(?-i:[A-Z\d=]))
      | \bcookie(?:\\?["'])?\s{0,3}[:=]\s{0,3}(?:\\?["'])?
      | [?&](?:key|sig)=
      | (?:token|secret|passw(?:or)?d|api[_-]?key|(?:access|private)[_-]?key|signature)
        (?:\\?["']\s{0,3}[:,]\s{0,3}b?\\?["'] | (?:\\?["'])?\s{0,3}(?:=|%3[ad](?:%20|\+)?)\s{0,3}(?:\\?["'])?
          | \s{0,3}:\s{0,3}(?=[^\s"',;]{5,100}\d|\S{0,5}\d\S{5}))
    )(?!\[secret)[^\s"'\\&<>,;)}\]]{4,}""",
    re.X | re.I,
)
"""Behind the name of a header, a parameter or a field; of a plain word and a colon only what has a digit."""
_SHAPES = re.compile(
    r"""\bsk-ant-[\w-]{8,} | \bsk-(?=[\w-]{0,40}\d)[\w-]{16,} | \b[srp]k_(?:live|test)_\w{10,}
      | (?:\bbot|\b)\d{6,12}(?::|%3[Aa])[\w-]{30,}            # Telegram
      | \b[MNO][\w-]{22,28}\.[\w-]{6,7}\.[\w-]{25,}           # Discord
      | \beyJ[\w-]{8,2000}\.[\w-]{4,2000}(?:\.[\w-]*)?        # JSON Web Token
      | \bgh[pousr]_\w{20,} | \bgithub_pat_\w{20,} | \bglpat-[\w-]{18,} | \bxox[abposr]-[\w-]{10,} | \bnpm_\w{30,}
      | \bhf_[A-Za-z]{30,} | \bpypi-[\w-]{40,} | \b(?:AKIA|ASIA|AROA)[0-9A-Z]{16}\b | \bAIza[\w-]{35,}
      | \bya29\.[\w-]{20,} | \bSG\.[\w-]{20,60}\.[\w-]{20,}
      | (?<=hooks\.slack\.com/)\S{15,} | (?<=/api/webhooks/)\d{1,20}/[\w-]{20,}
      | -----BEGIN\ [A-Z ]{0,40}PRIVATE\ KEY-----[^-]{0,20000}""",
    re.X,
)
_hidden: set[str] = set()


def hide(secrets: Iterable[str]) -> None:
    """From now on these, and each line of them, are masked in this process, however an error writes them."""
    pieces = [piece for secret in secrets for piece in (secret, *secret.splitlines()) if len(piece) >= SHORTEST_CHARS]
    _hidden.update(form for piece in pieces for form in _forms(piece))


def _forms(secret: str) -> Iterator[str]:
    """As it stands, and as addresses, JSON, Python and, anywhere within what is encoded, Base64 write it."""
    quoted = json.dumps(secret), json.dumps(secret, ensure_ascii=False), repr(secret), repr(secret.encode())[1:]
    yield from (secret, *(form[1:-1] for form in quoted))
    for form in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        yield from (form, re.sub("%..", lambda found: found[0].lower(), form))
    for before in range(3):
        content = bytes(before) + secret.encode()
        # Only the signs that are made of the secret alone are the same whatever stands beside it.
        form = base64.b64encode(content).decode()[(0, 2, 3)[before] : len(content) * 8 // 6]
        yield from (form, form.translate({43: "-", 47: "_"}))


def masked(text: str) -> str:
    """`text` with a mark in place of each secret; to be called before it is cut, or half a secret would stay."""
    for secret in sorted(_hidden, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return _SHAPES.sub(MASK, _NAMED.sub(rf"\1{MASK}", _ADDRESS.sub(MASK, text)))
