"""Settings of the HTTP connections to a model's server, for all model clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import httpx2

from config.open_files import bound_connections

CONNECT_TIMEOUT_S = 10.0
# For the question how large a model's window is.
WINDOW_TIMEOUT_S = 5.0
# For the list of the server's models.
LIST_TIMEOUT_S = 20.0
# Sent to servers that need no key. Without any key, the SDKs search the disk or the environment.
NO_KEY = "no-key"
MAX_CONNECTIONS = 100
# Connections stay open for a minute, so that the next turn of a conversation needs no handshake.
KEEPALIVE_S = 60.0
_LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
# The kinds of failures in `data/failures.toml`, with their exceptions. The first kind that matches
# is used. Any other exception means a lost connection.
_EXCEPTION_KINDS: Sequence[tuple[str, tuple[type[Exception], ...]]] = (
    (
        "unreached",
        (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError, httpx2.UnsupportedProtocol),
    ),
    ("late", (httpx2.TimeoutException,)),
    ("unreadable", (ValueError,)),
)


def max_connections() -> int:
    """Return how many connections to a model's server may be open at the same time."""
    return bound_connections(MAX_CONNECTIONS)


def connection_limits() -> httpx2.Limits:
    """Return the limits for a connection pool."""
    return httpx2.Limits(max_connections=max_connections(), keepalive_expiry=KEEPALIVE_S)


def read_model_names(response: object) -> list[str]:
    """Return the names in a server's list of models: ``{"data": [{"id": "gpt-6"}]}``."""
    entries = response.get("data") if isinstance(response, Mapping) else None
    names = []
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("id"), str):
            names.append(entry["id"])
    return names


def is_on_this_machine(url: str) -> bool:
    """Return True if the server runs on this machine. Proxies must then be ignored."""
    return urlsplit(url).hostname in _LOOPBACK_HOSTS


def exception_kind(error: BaseException) -> str:
    """Return the kind of failure for an exception of the HTTP client or of an SDK.

    An SDK wraps the exceptions of its HTTP client, so the cause of the exception is tried too.
    """
    for exception in (error, error.__cause__):
        for kind, exception_types in _EXCEPTION_KINDS:
            if isinstance(exception, exception_types):
                return kind
    return "lost"
