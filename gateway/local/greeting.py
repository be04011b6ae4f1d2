"""Writes the greeting of the terminal, which names the model and the conversation."""

from __future__ import annotations

from core.errors import StoreError
from core.types import LOCAL_SCOPE, Address
from gateway.services import Services
from gateway.texts.catalog import SHELL as texts


class Greeting:
    """Writes the greeting for a person in the terminal.

    Without a model, new users also see three things to try.
    """

    def __init__(self, services: Services) -> None:
        self._services = services

    async def write(self, address: Address) -> str:
        """Return the greeting for a conversation, or "" if the store can't be read."""
        services = self._services
        try:
            session = await services.conversations.find_open(address)
            is_first = session is None and not await services.conversations.list_recent(
                await services.people.load_visible_scopes(LOCAL_SCOPE), limit=1
            )
        except StoreError:
            return ""
        conversation = texts.CONVERSATION_NEW
        if session is not None:
            title = f" “{texts.name_conversation(session.title)}”" if session.title else ""
            conversation = texts.CONVERSATION_NUMBER.format(number=session.id, title=title)
            if session.is_incognito:
                conversation = texts.CONVERSATION_NEW
        if not services.settings.has_model:
            line = texts.GREETING_OFFLINE.format(conversation=conversation)
            return f"{line}\n{texts.FIRST_STEPS}" if is_first else line
        options = services.settings.model
        model = options.keep_name(session.model) if session and session.model else options.chat
        return texts.GREETING.format(model=model, conversation=conversation)
