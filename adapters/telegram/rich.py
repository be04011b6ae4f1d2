"""Sends and edits rich messages, which can show tables.

The library has no methods for them yet. If a server doesn't know rich messages, ordinary messages
are sent, in which a table is monospaced text.
"""

from __future__ import annotations

from typing import Any

import structlog
import telegram
from telegram.error import BadRequest, EndPointNotFound, InvalidToken

from core.markup.markdown import StyledText
from core.markup.rich import to_rich_html

_log = structlog.get_logger(__name__)


class RichMessages:
    """Makes the calls for rich messages of one bot.

    No more calls are made after the server has reported that it doesn't know the method.
    """

    def __init__(self) -> None:
        self._is_known = True

    def write(self, part: StyledText) -> str:
        """Return the HTML of a rich message, or "".

        The result is empty if the text needs no rich message or doesn't fit.
        """
        return to_rich_html(part) if self._is_known else ""

    async def send(self, bot: telegram.Bot, html: str, **arguments: Any) -> telegram.Message:
        """Send a rich message. Raises BadRequest if the server doesn't know rich messages.

        A server answers 404 both for an unknown method and for a refused token. `get_me` tells
        them apart, and raises InvalidToken if the token is refused.
        """
        values = {name: value for name, value in arguments.items() if value is not None}
        try:
            message: telegram.Message = await bot.do_api_request(
                "sendRichMessage",
                api_kwargs={**values, "rich_message": {"html": html}},
                return_type=telegram.Message,
            )
        except (InvalidToken, EndPointNotFound) as error:
            await bot.get_me()
            self._is_known = False
            _log.info("telegram.no_rich_messages")
            raise BadRequest("the server doesn't know rich messages") from error
        return message

    async def edit(self, bot: telegram.Bot, html: str, **arguments: Any) -> Any:
        """Replace the content of a message with a rich one."""
        # The text is left out, which the type of the library doesn't allow.
        text: Any = None
        rich = {"rich_message": {"html": html}}
        return await bot.edit_message_text(text, api_kwargs=rich, **arguments)
