"""A bare echo bot of python-telegram-bot: what the library itself costs. ``echo_bot.py TOKEN
API_URL``."""

from __future__ import annotations

import logging
import sys

from telegram import Update
from telegram.ext import Application, ContextTypes, MessageHandler, filters


async def echo(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
    """Says what was said."""
    if update.effective_message is not None:
        await update.effective_message.reply_text(f"You said: {update.effective_message.text}")


def main() -> None:
    """Polls until it is stopped."""
    logging.disable(logging.WARNING)
    token, url = sys.argv[1:]
    application = (
        Application.builder().token(token).base_url(f"{url}/bot").concurrent_updates(True).build()
    )
    application.add_handler(MessageHandler(filters.TEXT, echo))
    application.run_polling()


if __name__ == "__main__":
    main()
