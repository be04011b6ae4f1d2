"""Shows and sets the language of a person or a group: /language."""

from __future__ import annotations

from core.errors import Refused
from core.types import Answer, Command
from gateway.chats.admins import ChatAdmins
from gateway.commands.registry import CommandContext, load_specs, make_button
from gateway.services import Services
from gateway.texts.catalog import list_languages, load_texts
from gateway.texts.text_files import load_names, match_language


class LanguageCommands:
    specs = load_specs("language")

    def __init__(self, services: Services, admins: ChatAdmins | None = None) -> None:
        self._services = services
        # On the page, there are no admins, because only the owner uses it.
        self._admins = admins or ChatAdmins({})

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """Show a button for each language, or set the language.

        In a group, the owner and the group's admins may set it. Raises Refused if there is no such
        language.
        """
        texts = context.texts
        word = command.arguments.strip()
        if not word:
            return await self._show(context)
        language = find_language(word)
        if language is None:
            names = texts.join_list([load_names()[code] for code in list_languages()])
            raise Refused(texts.LANGUAGE_UNKNOWN.format(languages=names))
        await self._admins.require(context)
        await self._save(language, context)
        texts = load_texts(language)
        return Answer(text=texts.LANGUAGE_SET.format(language=texts.language_name))

    async def _show(self, context: CommandContext) -> Answer:
        texts = context.texts
        text = texts.LANGUAGE_SHOWN.format(language=texts.language_name)
        if not await self._admins.may_manage(context):
            return Answer(text=text)
        buttons = [
            make_button(load_names()[code], "language", code)
            for code in list_languages()
            if code != texts.language
        ]
        return Answer(text=text, buttons=tuple(buttons))

    async def _save(self, language: str, context: CommandContext) -> None:
        """Store the language for the group, or for all accounts of the person."""
        languages = self._services.languages
        if context.scope.is_group:
            await languages.save(context.scope.key, language)
            return
        linked_accounts = await self._services.links.list_accounts(context.account)
        keys = {context.account.key, *(entry.account.key for entry in linked_accounts)}
        for key in sorted(keys):
            await languages.save(key, language)


def find_language(word: str) -> str | None:
    """Return the code of a language from its own name, its English name or its code.

    Returns None if Mneme doesn't speak the language.
    """
    name = word.casefold()
    english_names = load_texts("en").table("LANGUAGE_NAMES")
    for code in list_languages():
        names = {code, load_names()[code].casefold(), english_names[code].casefold()}
        if name in names:
            return code
    # A code with a country, such as "de-AT", means the language.
    return match_language(word) if len(word) == 5 else None
