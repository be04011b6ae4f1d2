"""Stores the language of each person and group.

At first, a person's language is the language that their platform reports. They can choose another
language with /language. A group uses the language that was chosen there, or otherwise the language
of the person who writes. The choices are kept in memory, so that no message waits for the store.
"""

from __future__ import annotations

from core.store.preferences import Preferences
from core.types import Account, Address, Inbound, Scope
from gateway.texts.catalog import Texts, load_texts
from gateway.texts.text_files import match_language


class Languages:
    """Stores the languages of people and groups, and returns texts in them."""

    def __init__(self, preferences: Preferences) -> None:
        self._preferences = preferences
        # The languages by the keys of accounts and groups, as far as they are known.
        self.codes: dict[str, str] = {}
        # The accounts of direct chats, by platform and chat id. On Telegram, both have the same id.
        self._chat_accounts: dict[tuple[str, str], Account] = {}
        self.is_loaded = False

    async def load(self) -> None:
        """Load the chosen languages. Until then, the language that the platform reports is used."""
        self.codes = await self._preferences.list_languages()
        self._chat_accounts = await self._preferences.list_direct_chats()
        self.is_loaded = True

    async def choose(self, inbound: Inbound, scope: Scope) -> str:
        """Return the language of the answer to an event whose platform reports a language.

        The language is stored, unless it's English, which is the default.
        """
        language = match_language(inbound.language) or "en"
        key = inbound.account.key
        if inbound.is_direct:
            self._chat_accounts[_chat_key(inbound.address)] = inbound.account
        is_scheduled = inbound.address.platform == "cron"
        if not is_scheduled and not inbound.sender.is_anonymous:
            language = self.codes.setdefault(key, language)
            if language != "en":
                await self._preferences.save_language(key, language)
        return self.codes.get(scope.key, language)

    async def save(self, key: str, language: str | None) -> None:
        """Store the language of an account or a group, by its key. None clears it."""
        await self._preferences.save_language(key, language)
        if language is None:
            self.codes.pop(key, None)
        else:
            self.codes[key] = language

    def of_account(self, account: Account | None) -> Texts:
        """Return the texts in the language of an account."""
        key = "" if account is None else account.key
        return load_texts(self.codes.get(key, ""))

    def of_scope(self, scope: Scope, account: Account | None = None) -> Texts:
        """Return the texts for a chat, in the group's language or that of an account."""
        language = self.codes.get(scope.key)
        if language is not None:
            return load_texts(language)
        return self.of_account(account or scope.speaker(""))

    def of_address(self, address: Address) -> Texts:
        """Return the texts for a chat if only its address is known."""
        return self.of_scope(
            Scope.group(address.platform, address.chat_id),
            self._chat_accounts.get(
                _chat_key(address), Account(platform=address.platform, user_id=address.chat_id)
            ),
        )


def _chat_key(address: Address) -> tuple[str, str]:
    return address.platform, address.chat_id
