"""Downloads the files that people send from Discord's file server.

The URL of a file is signed and expires after a day. If the URL has expired, the message is fetched
again for a new one.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from urllib.parse import urlsplit

import discord

from adapters.discord.errors import CALL_ERRORS, describe_error
from core.errors import PAYLOAD_ERRORS, FileError
from core.types import Address, Attachment

DOWNLOAD_TIMEOUT_S = 300.0


async def fetch_file(
    client: discord.Client,
    attachment: Attachment,
    address: Address,
    message_id: str,
    limit_bytes: int,
) -> bytes:
    """Return the bytes of a file.

    Raises FileError if the file is gone, or if the download breaks off.
    """
    url = attachment.reference or ""
    try:
        async with asyncio.timeout(DOWNLOAD_TIMEOUT_S):
            try:
                content = await client.http.get_from_cdn(url)
            except (discord.NotFound, discord.Forbidden):
                url = await _find_fresh_url(client, url, address, message_id)
                content = await client.http.get_from_cdn(url)
    except discord.HTTPException as error:
        is_gone = error.status in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN, HTTPStatus.GONE)
        raise FileError(
            f"Discord's file server answers with status {error.status}", is_permanent=is_gone
        ) from error
    except CALL_ERRORS as error:
        raise FileError(f"Discord's file server: {describe_error(error)}") from error
    if attachment.size_bytes is not None and len(content) < attachment.size_bytes:
        raise FileError("the download broke off")
    return content[: limit_bytes + 1]


async def _find_fresh_url(
    client: discord.Client, url: str, address: Address, message_id: str
) -> str:
    """Return the current URL of a file of a message.

    Raises FileError if the message no longer has this file.
    """
    channel_id = int(address.thread_id or address.chat_id)
    path = urlsplit(url).path
    try:
        message = await client.http.get_message(channel_id, int(message_id))
        for file in message.get("attachments", ()):
            if urlsplit(file["url"]).path == path:
                return file["url"]
    except PAYLOAD_ERRORS as error:
        raise FileError("Discord sent a message that can't be read") from error
    raise FileError("the message on Discord no longer has the file", is_permanent=True)
