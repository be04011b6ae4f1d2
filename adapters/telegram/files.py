"""Downloads the files that people send to the bot.

Telegram identifies a file by an id. `getFile` returns a path that is valid for an hour, from which
the bytes are downloaded. Bots can't download files over 20 MB, except from their own Bot API
server.
"""

from __future__ import annotations

from http import HTTPStatus

from telegram import Bot
from telegram.error import BadRequest, Forbidden, TelegramError

from adapters.telegram.errors import describe_error
from adapters.telegram.messages import TelegramRequest
from core.errors import FileError
from core.types import Attachment

# A path may expire between the two calls, so a new path is requested once.
ATTEMPTS = 2


async def fetch_file(
    bot: Bot, request: TelegramRequest, attachment: Attachment, limit_bytes: int
) -> bytes:
    """Return the bytes of a file.

    Raises FileError if Telegram refuses the download, or if the download breaks off.
    """
    for attempt in range(1, ATTEMPTS + 1):
        url = await _find_url(bot, attachment)
        try:
            status, content = await request.download(url, limit_bytes)
        except TelegramError as error:
            raise FileError(f"Telegram's file server: {describe_error(error)}") from error
        if status == HTTPStatus.OK:
            return _check_size(content, attachment, limit_bytes)
        if attempt == ATTEMPTS:
            is_gone = status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)
            raise FileError(
                f"Telegram's file server answers with status {status}", is_permanent=is_gone
            )
    raise AssertionError("unreachable")


async def _find_url(bot: Bot, attachment: Attachment) -> str:
    """Return the URL of a file. Raises FileError if Telegram refuses or doesn't return a URL."""
    try:
        file = await bot.get_file(attachment.reference or "")
    except (BadRequest, Forbidden) as error:
        raise FileError(
            f"Telegram doesn't give out the file: {error.message}", is_permanent=True
        ) from error
    except TelegramError as error:
        raise FileError(f"Telegram can't be asked for a file: {describe_error(error)}") from error
    url = file.file_path or ""
    if not url.startswith(("http://", "https://")):
        raise FileError(
            "Telegram's server stores files on its own disk; start it without --local",
            is_permanent=True,
        )
    return url


def _check_size(content: bytes, attachment: Attachment, limit_bytes: int) -> bytes:
    """Return the bytes. Raises FileError if the transfer broke off before the announced size."""
    size = attachment.size_bytes
    if size is not None and len(content) < min(size, limit_bytes):
        raise FileError("the download broke off")
    return content
