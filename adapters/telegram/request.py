"""The HTTP layer under the Telegram client: reports a flood as an error of ours and keeps the token out of messages."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from telegram.error import NetworkError
from telegram.request import HTTPXRequest

from adapters.telegram.errors import flood

CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 20.0
POOL_TIMEOUT_S = 10.0


class TelegramRequest(HTTPXRequest):
    """One pool of connections. `connections` is how many calls may be under way at once."""

    def __init__(self, token: str, connections: int) -> None:
        super().__init__(
            connection_pool_size=connections,
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=READ_TIMEOUT_S,
            write_timeout=READ_TIMEOUT_S,
            pool_timeout=POOL_TIMEOUT_S,
        )
        self._token = token

    async def do_request(self, *args: Any, **options: Any) -> tuple[int, bytes]:
        """Raises the flood error for status 429, else answers as its parent does."""
        try:
            code, payload = await super().do_request(*args, **options)
        except NetworkError as error:
            if self._token not in error.message:
                raise
            # The cause would show the token in a traceback as well.
            raise NetworkError(error.message.replace(self._token, "<token>")) from None
        if code == HTTPStatus.TOO_MANY_REQUESTS:
            raise flood(_retry_after_s(payload))
        return code, payload


def _retry_after_s(payload: bytes) -> float:
    """What a 429 asks for; one second when it does not say."""
    try:
        return float(json.loads(payload)["parameters"]["retry_after"])
    except (ValueError, KeyError, TypeError):
        return 1.0
