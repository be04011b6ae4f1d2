"""An echo bot written with python-telegram-bot, to measure what the library itself costs.
``echo_bot.py TOKEN API_URL [MODEL_URL KEY]``.

With a model, it also sends the whole conversation of a chat to the Messages API, as every bot with
a model does, and sends the model's answer. It stores nothing.
"""

from __future__ import annotations

import json
import logging
import sys
from collections import defaultdict
from typing import Any

import aiohttp
from pydantic_core import to_json
from telegram import Update
from telegram.ext import Application, ContextTypes, MessageHandler, filters


class Model:
    """A client of a model server, with the turns of each chat."""

    def __init__(self, url: str, key: str) -> None:
        self._url = f"{url}/v1/messages"
        self._headers = {
            "x-api-key": key,
            "anthropic-version": "2023-06-01",
            "content-type": "application/json",
        }
        self._turns: dict[int, list[Any]] = defaultdict(list)
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, chat_id: int, text: str) -> str:
        """Return the answer to a message."""
        turns = self._turns[chat_id]
        turns.append({"role": "user", "content": [{"type": "text", "text": text}]})
        body = {"model": "claude-sonnet-5-5", "max_tokens": 8_000, "stream": True}
        if self._session is None:
            self._session = aiohttp.ClientSession(headers=self._headers)
        content = to_json({**body, "messages": turns})
        answer = ""
        async with self._session.post(self._url, data=content) as response:
            async for line in response.content:
                if line.startswith(b"data: "):
                    answer += json.loads(line[6:]).get("delta", {}).get("text", "")
        turns.append({"role": "assistant", "content": [{"type": "text", "text": answer}]})
        return answer


def main() -> None:
    """Poll for updates until the process is stopped."""
    logging.disable(logging.WARNING)
    token, url = sys.argv[1:3]
    model = Model(*sys.argv[3:]) if sys.argv[3:] else None

    async def echo(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
        message = update.effective_message
        if message is None:
            return
        if model is None:
            await message.reply_text(f"You said: {message.text}")
        else:
            await message.reply_text(await model.ask(message.chat_id, message.text or ""))

    application = (
        Application.builder().token(token).base_url(f"{url}/bot").concurrent_updates(True).build()
    )
    application.add_handler(MessageHandler(filters.TEXT, echo))
    application.run_polling()


if __name__ == "__main__":
    main()
