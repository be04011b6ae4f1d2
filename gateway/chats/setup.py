"""Shows and changes when the assistant answers in a group, and what it stores: /setup.

Everyone in the group may see these settings. Only its admins and the owner may change them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from core.dates.lexicon import lexicon_languages
from core.dates.requests.reader import read_whole_length
from core.errors import Refused
from core.markup.markdown import escape
from core.store.mailbox import OutboxItem
from core.store.preferences import (
    LISTENING,
    ChatSettings,
    chat_keys,
    introduction_key,
    server_key,
)
from core.types import Account, Address, Answer, Command, Scope
from gateway.chats.admins import ChatAdmins
from gateway.commands.language import find_language
from gateway.commands.menus.suggestions import filter_labels
from gateway.commands.registry import (
    CommandContext,
    load_specs,
    make_button,
    parse_number,
)
from gateway.services import Services
from gateway.texts.catalog import Texts
from gateway.texts.dates import DAYS_A_YEAR, format_days
from gateway.texts.text_files import load_names

MAX_PREFIX_CHARS = 20
# Ten years.
MAX_RETENTION_DAYS = 3650
# The words that clear a setting.
_OFF = frozenset({"off", "none", "no", "default", "0"})
# The words that end the retention. Others, such as "0", could mean that nothing is kept.
_RETENTION_OFF = frozenset({"off", "default"})
# The word that clears a setting without an "off".
_DEFAULT = "default"
# The place where a change applies: the topic, thread or channel, or the whole group or server.
_WHOLE_PLACE = re.compile(r"(?:^|\s)for:\s*\"?(all|here)\"?(?=\s|$)", re.IGNORECASE)
_ROLE = re.compile(r"<@&(\d{15,20})>|\b(\d{15,20})\b")
_CONFIRMED = "--confirmed"
_DAYS_A_MONTH = 30
# Periods that people often choose.
_SUGGESTED_DAYS = (7, 30, 90, 365)
_SUGGESTED_PREFIXES = ("!", "?", ">", "mneme")

Change = Callable[[str, str, CommandContext], Awaitable[Answer]]


class SetupCommands:
    specs = load_specs("setup")
    suggests = ("setup",)

    def __init__(self, services: Services, admins: ChatAdmins) -> None:
        self._services = services
        self._rules = services.chat_rules
        self._admins = admins
        self._changes: dict[str, Change] = {
            "listen": self._set_listening,
            "prefix": self._set_prefix,
            "store": self._set_storing,
            "roles": self._set_roles,
            "language": self._set_language,
            "retention": self._set_retention,
            "erase": self._erase,
        }

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """Show the settings of a group, or change one.

        Raises Refused in a direct chat, for members who aren't admins, and for unknown values.
        """
        texts = context.texts
        if not context.scope.is_group:
            raise Refused(texts.SETUP_IN_GROUP)
        await self._rules.load()
        arguments, is_whole = _split_place(command.arguments)
        name, _, value = arguments.partition(" ")
        if not name:
            return await self._show(context)
        change = self._changes.get(name.lower())
        if change is None:
            raise Refused(texts.SETUP_UNKNOWN.format(names=texts.join_list(list(self._changes))))
        await self._admins.require(context)
        keys = chat_keys(context.inbound)
        narrowest_key, widest_key = keys[0], keys[-1]
        return await change(widest_key if is_whole else narrowest_key, value.strip(), context)

    async def autocomplete(
        self, source: str, typed: str, scope: Scope, account: Account | None
    ) -> Mapping[str, str]:
        """Return the labels of a setting's values. `typed` begins with the setting's name."""
        texts = self._services.languages.of_scope(scope)
        name, _, value = typed.partition(" ")
        labels: dict[str, str] = {}
        match name:
            case "listen":
                labels = {
                    key: texts.pair(key, text) for key, text in texts.table("SETUP_LISTENS").items()
                }
            case "store":
                labels = {
                    key: texts.pair(key, text) for key, text in texts.table("SETUP_STORES").items()
                }
            case "language":
                labels = {language: language for language in load_names().values()}
            case "retention":
                labels = {str(days): format_days(days, texts.locale) for days in _SUGGESTED_DAYS}
            case "prefix":
                labels = {prefix: prefix for prefix in _SUGGESTED_PREFIXES}
            case "roles":
                labels = await self._suggest_roles(scope)
        if name in ("listen", "store"):
            labels["default"] = "default"
        elif name in ("prefix", "roles", "language", "retention"):
            labels["off"] = "off"
        return filter_labels(labels, value)

    async def _suggest_roles(self, scope: Scope) -> dict[str, str]:
        """Return the names of the server's roles, by the words that name them in the command."""
        await self._rules.load()
        chat_key = scope.key.removeprefix("room:").partition("#")[0]
        platform, _, server_id = (self._rules.get(chat_key).server or "").partition(":server:")
        if not server_id:
            return {}
        names = await self._admins.load_role_names(platform, server_id)
        return {f"<@&{role}>": name for role, name in names.items() if role != server_id}

    async def _show(self, context: CommandContext) -> Answer:
        """Show the settings of this group, with buttons for the most common changes."""
        texts = context.texts
        settings = self._rules.find(context.inbound)
        keys = chat_keys(context.inbound)
        days = self._rules.find_retention(_find_retention_key(context))
        stores_all = settings.stores == "all" if settings.stores else self._stores_all
        name = await self._admins.load_place_name(context.inbound.address)
        lines = [
            f"{texts.SETUP_SHOWN} · {escape(name)}" if name else texts.SETUP_SHOWN,
            f"- {_describe_listening(texts, settings)}",
            f"- {self._describe_storing(context, stores_all=stores_all)}",
        ]
        if not self._serves_everyone(context):
            lines.append(f"- {texts.SETUP_APPROVED_ONLY}")
        needs_all = stores_all or settings.listens == "always" or settings.prefix
        if needs_all:
            lines += [f"- {sentence}" for sentence in await self._describe_unheard(context)]
        if settings.roles:
            roles = await self._list_roles(settings.roles, context)
            lines.append(f"- {texts.SETUP_ROLES.format(roles=roles)}")
        if days:
            duration = format_days(days, texts.locale)
            lines.append(f"- {texts.SETUP_RETENTION.format(duration=duration)}")
        lines.append(f"- {texts.LANGUAGE_SHORT.format(language=texts.language_name)}")
        if len(keys) > 1:
            lines.append(f"- {self._describe_origin(keys[0], context)}")
        labels = texts.table("SETUP_LISTENS")
        buttons = [
            make_button(labels[words], "setup", f"listen {words}")
            for words in ("mention reply", "always", "commands")
            if words != (settings.listens or "mention reply")
        ]
        return Answer(text="\n".join([*lines, "", texts.SETUP_HINT]), buttons=tuple(buttons))

    def _describe_storing(self, context: CommandContext, *, stores_all: bool) -> str:
        """Return a text that says which messages are stored."""
        if stores_all and not self._serves_everyone(context):
            return context.texts.SETUP_STORES_ALLOWED
        return context.texts.table("SETUP_STORES")["all" if stores_all else "addressed"]

    def _serves_everyone(self, context: CommandContext) -> bool:
        """Return whether the owner's settings list this group, so that all members get answers."""
        keys = {_find_retention_key(context), chat_keys(context.inbound)[0].partition("/")[0]}
        return not keys.isdisjoint(self._services.settings.access.rooms)

    def _describe_origin(self, key: str, context: CommandContext) -> str:
        """Return a text that says whether the topic or channel with a key has its own settings.

        Only a channel of Discord has a language of its own. Its threads share it.
        """
        inbound = context.inbound
        is_channel = bool(inbound.server_id) and not inbound.address.thread_id
        has_language = is_channel and context.scope.key in self._services.languages.codes
        is_own = self._rules.get(key).has_rules or has_language
        return context.texts.SETUP_OWN if is_own else context.texts.SETUP_SHARED

    @property
    def _stores_all(self) -> bool:
        return self._services.settings.room.listen

    async def _describe_unheard(self, context: CommandContext) -> Sequence[str]:
        """Return a sentence if the platform keeps messages back that don't mention Mneme."""
        if context.inbound.server_id:
            hears_all = self._services.settings.discord.message_content
            return () if hears_all else (context.texts.SETUP_UNREADABLE,)
        hears_all = await self._admins.hears_all(context.inbound.address)
        return () if hears_all else (context.texts.SETUP_UNHEARD,)

    async def _list_roles(self, roles: tuple[str, ...], context: CommandContext) -> str:
        """Return the names of roles, or the ids of those that no longer exist."""
        inbound = context.inbound
        names = await self._admins.load_role_names(inbound.address.platform, inbound.server_id)
        texts = context.texts
        return texts.join_list([texts.quote(names.get(role, role)) for role in roles])

    async def _set_listening(self, key: str, value: str, context: CommandContext) -> Answer:
        """Set which messages get an answer: mentions, replies, both, all, or only commands."""
        words = value.lower().replace(",", " ").split()
        if words and words[0] == "prefix":
            prefix = "".join(value.split(maxsplit=1)[1:])
            return await self._set_prefix(key, prefix, context)
        listens = " ".join(word for word in LISTENING if word in words)
        is_known = set(words) <= set(LISTENING)
        if words == [_DEFAULT]:
            await self._rules.save(key, listens=None)
        elif not is_known or listens not in context.texts.table("SETUP_LISTENS"):
            raise Refused(context.texts.SETUP_LISTENS_UNKNOWN)
        else:
            await self._rules.save(key, listens=listens)
        return await self._confirm(key, context)

    async def _set_prefix(self, key: str, value: str, context: CommandContext) -> Answer:
        """Set or remove the prefix that marks a message as addressed to the assistant."""
        if not value or len(value) > MAX_PREFIX_CHARS or value.startswith("/"):
            raise Refused(context.texts.SETUP_PREFIX_UNKNOWN.format(limit=MAX_PREFIX_CHARS))
        await self._rules.save(key, prefix="" if value.lower() in _OFF else value)
        return await self._confirm(key, context)

    async def _set_storing(self, key: str, value: str, context: CommandContext) -> Answer:
        """Set whether messages that aren't addressed to the assistant are stored."""
        stores = value.lower()
        is_cleared = stores == _DEFAULT
        if not is_cleared and stores not in ("all", "addressed"):
            raise Refused(context.texts.SETUP_STORES_UNKNOWN)
        stored_all = self._stores_all_at(key, context)
        await self._rules.save(key, stores=None if is_cleared else stores)
        stores_all = self._stores_all_at(key, context)
        # Only the owner uses a group in which the owner's other scopes are visible.
        has_other_users = context.scopes == {context.scope}
        if stores_all != stored_all and has_other_users:
            await self._introduce_again(context, stores_all=stores_all)
            if key == chat_keys(context.inbound)[-1]:
                told = "all" if stores_all else None
                await self._rules.save(introduction_key(key), stores=told)
        return await self._confirm(key, context)

    def _stores_all_at(self, key: str, context: CommandContext) -> bool:
        """Return whether all messages are stored at a topic, group or server with this key."""
        keys = chat_keys(context.inbound)
        settings = ChatSettings()
        for wider_key in keys[keys.index(key) :]:
            settings = settings.fill_gaps(self._rules.get(wider_key))
        return settings.stores == "all" if settings.stores else self._stores_all

    async def _introduce_again(self, context: CommandContext, *, stores_all: bool) -> None:
        """Tell everyone in the group what is stored from now on.

        On Discord, only the person who types `/setup` sees its answer.
        """
        is_listed = self._serves_everyone(context)
        text = context.texts.choose_introduction(stores_all=stores_all, is_listed=is_listed)
        notice = OutboxItem(
            key=f"introduction:{context.idempotency_key}",
            kind="notice",
            address=context.inbound.address,
            answer=Answer(text=text),
            next_at=self._services.clock.now(),
        )
        if await self._services.outbox.put(notice):
            self._services.on_change()

    async def _set_roles(self, key: str, value: str, context: CommandContext) -> Answer:
        """Set the roles whose members get answers. Only Discord has roles."""
        if not context.inbound.server_id:
            raise Refused(context.texts.SETUP_NO_ROLES)
        roles = tuple(match[1] or match[2] for match in _ROLE.finditer(value))
        if not (roles or value.lower() in _OFF):
            raise Refused(context.texts.SETUP_ROLES_UNKNOWN)
        inbound = context.inbound
        names = await self._admins.load_role_names(inbound.address.platform, inbound.server_id)
        # Discord doesn't list @everyone among the roles of a member.
        if not names.keys() - {inbound.server_id} >= set(roles):
            raise Refused(context.texts.SETUP_ROLES_UNKNOWN)
        await self._rules.save(key, roles=roles)
        return await self._confirm(key, context)

    async def _set_language(self, key: str, value: str, context: CommandContext) -> Answer:
        """Set the language of the group or of the whole server, or clear it."""
        texts = context.texts
        is_cleared = value.lower() in _OFF
        language = find_language(value) if value else None
        if language is None and not is_cleared:
            raise Refused(
                texts.LANGUAGE_UNKNOWN.format(
                    languages=texts.join_list(list(load_names().values()))
                )
            )
        is_server = ":server:" in key
        key = key if is_server else context.scope.key
        languages = self._services.languages
        await languages.save(key, language)
        codes = languages.codes
        inbound = context.inbound
        place_language = codes.get(context.scope.key) or codes.get(server_key(inbound))
        new_language = place_language or codes.get(inbound.account.key, "en")
        inbound = replace(inbound, language=new_language)
        return await self._confirm(key, replace(context, inbound=inbound))

    async def _set_retention(self, key: str, value: str, context: CommandContext) -> Answer:
        """Set how many days messages are kept. All topics of a group share this setting."""
        languages = (context.texts.language, *lexicon_languages())
        is_off = value.lower() in _RETENTION_OFF
        days = None if is_off else await asyncio.to_thread(_parse_days, value, languages)
        if not is_off and not (days and days <= MAX_RETENTION_DAYS):
            raise Refused(context.texts.SETUP_RETENTION_UNKNOWN.format(limit=MAX_RETENTION_DAYS))
        is_server = ":server:" in key
        retention_key = key if is_server else _find_retention_key(context)
        await self._rules.save(retention_key, retention_days=days)
        return await self._confirm(key if is_server else context.scope.key, context)

    async def _erase(self, key: str, value: str, context: CommandContext) -> Answer:
        """Erase everything that was said in a place, after a confirmation.

        The place is the topic or thread, the channel with its threads, or the group. With
        ``for:all``, it's the whole group or server. The confirmed command names the place, because
        a button doesn't say whether it's in the topic General.
        """
        texts = context.texts
        is_confirmed, _, place = value.partition(" ")
        if context.is_typed_command or is_confirmed != _CONFIRMED:
            place = _name_place(key, context)
            command = Command(name="setup", arguments=f"erase {_CONFIRMED} {place}")
            question = f"{texts.table('SETUP_ERASE_PLACES')[place]} {texts.SETUP_ERASE_ASKED}"
            return Answer(text=question, confirm_command=command)
        scopes = {context.scope}
        thread_id = None
        if place == "server":
            scopes = await self._list_scopes(server_key(context.inbound), context)
        elif place in ("topic", "thread"):
            thread_id = context.inbound.address.thread_id or ""
        elif place == "general":
            thread_id = ""
        count = 0
        for scope in sorted(scopes, key=lambda scope: scope.key):
            count += await self._erase_scope(scope, thread_id, context)
        text = texts.SETUP_ERASED.format(messages=texts.format_count(count, "message"))
        return Answer(text=text, has_erased_data=True)

    async def _erase_scope(
        self, scope: Scope, thread_id: str | None, context: CommandContext
    ) -> int:
        """Erase the messages of a group, or of one of its topics, and return how many."""
        now = self._services.clock.now()
        request = replace(
            context.erasure_request, is_owner=True, scope=scope, scopes=frozenset({scope})
        )
        count = 0
        while erased := await self._services.forgetting.expire(request, now, thread_id=thread_id):
            count += erased
        return count

    async def _list_scopes(self, server: str, context: CommandContext) -> set[Scope]:
        """Return the scopes of a server's channels.

        Unless the owner asks, the owner's own channels are left out."""
        scopes = {context.scope}
        for key in self._rules.list_chats(server):
            address = Address.parse(key)
            chat = Scope.group(address.platform, address.chat_id)
            access = await self._services.people.load_access(context.account, chat)
            if access.is_owner or access.scopes == {access.scope}:
                scopes.add(access.scope)
        return scopes

    async def _confirm(self, key: str, context: CommandContext) -> Answer:
        """Confirm where a change applies, and list the current settings."""
        texts = context.texts
        place = texts.table("SETUP_PLACES")[_name_place(key, context)]
        overview = await self._show(context)
        return replace(
            overview, text=f"{texts.SETUP_CHANGED} {place}\n\n{overview.text}", buttons=()
        )


def _split_place(arguments: str) -> tuple[str, bool]:
    """Return the arguments without ``for:all`` or ``for:here``, and whether it was ``all``."""
    match = _WHOLE_PLACE.search(arguments)
    if match is None:
        return arguments.strip(), False
    remaining_arguments = f"{arguments[: match.start()]} {arguments[match.end() :]}".strip()
    return remaining_arguments, match[1].lower() == "all"


def _parse_days(text: str, languages: Sequence[str]) -> int | None:
    """Return the days in a text such as ``30``, ``6 weeks`` or ``2 años``, or None for others.

    A month has 30 days and a year 365.
    """
    days = parse_number(text)
    if days is not None:
        return days
    span = read_whole_length(text, languages)
    if span is None or span.seconds:
        return None
    years, months = divmod(span.months, 12)
    return (years * DAYS_A_YEAR + months * _DAYS_A_MONTH + span.days) or None


def _name_place(key: str, context: CommandContext) -> str:
    """Return the place where a setting applies, such as a topic, as a key of `SETUP_PLACES`."""
    is_discord = bool(context.inbound.server_id)
    if ":server:" in key:
        return "server"
    if key.endswith("/general"):
        return "general"
    if "/" in key:
        return "thread" if is_discord else "topic"
    if is_discord:
        return "channel"
    has_topics = len(chat_keys(context.inbound)) > 1
    is_of_all_topics = has_topics and not key.startswith("room:")
    return "topics" if is_of_all_topics else "group"


def _find_retention_key(context: CommandContext) -> str:
    """Return the key under which the retention of a group is stored.

    It's the key of the scope, which stays the same when the group gets a new id.
    """
    return context.scope.key.removeprefix("room:").partition("#")[0]


def _describe_listening(texts: Texts, settings: ChatSettings) -> str:
    """Return a text that says which messages are answered."""
    labels = texts.table("SETUP_LISTENS")
    listens = settings.listens or "mention reply"
    if listens not in labels:
        # Earlier versions accepted contradictions such as "mention always".
        listens = "always" if "always" in listens else listens.removesuffix(" commands")
    text = labels[listens]
    if settings.prefix:
        text += f" {texts.SETUP_PREFIX.format(prefix=texts.quote(settings.prefix))}"
    return text
