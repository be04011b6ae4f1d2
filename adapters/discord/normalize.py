"""Turns Discord's channels and events into `Address`, `Scope` and `Inbound`, and our commands into what Discord calls
application commands. Pure: no call, no state. Commands are within Discord's limits as `commands.toml` names them; a
test holds that.

Fails closed: a channel whose kind is not certain gives none at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import discord

from core.types import Address, Attachment, Command, CommandSpec, Inbound, Option, Quoted, Scope, Sender

PLATFORM = "discord"
WRITTEN_TYPES = (discord.MessageType.default, discord.MessageType.reply)
"""Kinds of messages that a person has written; all others are notes of the system."""
CHAT_INPUT, MESSAGE = 1, 3
"""Kinds of application commands: typed, and in the menu of a message."""
STRING = 3
"""Kind of option."""
PLACES = {"contexts": [0, 1], "integration_types": [0]}
"""Used in guilds and direct chats, installed in guilds."""
QUOTES = frozenset('"\u201c\u201d\u201e\u2033')
MENTION = re.compile(r"<(@!?|@&|#)([0-9]{15,20})>")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordChannel:
    """`user_id`: the person of a direct chat, None in a room. `guild_id`: None outside of guilds."""

    address: Address
    scope: Scope
    user_id: int | None = None
    guild_id: int | None = None

    @property
    def is_direct(self) -> bool:
        return self.user_id is not None

    @property
    def link_base(self) -> str:
        """What with a message id behind it opens that message; of channels outside of guilds for their people."""
        channel_id = self.address.thread_id or self.address.chat_id
        return f"https://discord.com/channels/{self.guild_id or '@me'}/{channel_id}/"


def channel_of(channel: Any, user_id: int | None = None) -> DiscordChannel | None:
    """A channel object of the library; None when only an id is known, so that it has to be fetched. `user_id`: whose
    direct chat it is, where the object does not say so."""
    if isinstance(channel, discord.DMChannel):
        user_id = channel.recipient.id if channel.recipient is not None else user_id
        if user_id is None:
            return None
        scope = Scope.account(PLATFORM, str(user_id))
        return DiscordChannel(address=_address(channel.id), scope=scope, user_id=user_id)
    if isinstance(channel, discord.Thread):
        owner_id = channel.id if channel.is_private() else channel.parent_id
        address, scope = _address(channel.parent_id, channel.id), Scope.room(PLATFORM, str(owner_id))
        return DiscordChannel(address=address, scope=scope, guild_id=channel.guild.id)
    if isinstance(channel, discord.GroupChannel | discord.abc.GuildChannel):
        guild = getattr(channel, "guild", None)
        scope = Scope.room(PLATFORM, str(channel.id))
        return DiscordChannel(address=_address(channel.id), scope=scope, guild_id=guild and guild.id)
    return None


def _address(channel_id: int, thread_id: int | None = None) -> Address:
    return Address(platform=PLATFORM, chat_id=str(channel_id), thread_id=None if thread_id is None else str(thread_id))


def from_message(
    message: discord.Message, channel: DiscordChannel, bot: discord.ClientUser, specs: Mapping[str, CommandSpec]
) -> Inbound | None:
    """A message; None when nothing of it can be read (no content intent)."""
    inbound = _written(message, channel, bot)
    if not inbound.text and not inbound.attachments:
        return None
    # A command may be pasted or typed as a plain message, which Discord's client does not catch.
    name, _, arguments = inbound.text.partition(" ")
    if not (channel.is_direct and name.startswith("/") and name[1:].lower() in specs):
        return inbound
    return replace(inbound, command=Command(name=name[1:].lower(), arguments=arguments.strip()))


def from_edit(
    message: discord.Message, before: discord.Message | None, channel: DiscordChannel, bot: discord.ClientUser
) -> Inbound | None:
    """A new text of a message; None for the many updates that change something else (an unfolded link, a pin)."""
    if message.edited_at is None or (before is not None and before.content == message.content):
        return None
    inbound = _written(message, channel, bot)
    if not (message.content or inbound.is_addressed):
        return None
    return replace(inbound, kind="edit", sent_at=message.edited_at)


def from_delete(message_id: int, before: discord.Message | None, channel: DiscordChannel, now: datetime) -> Inbound:
    """A deleted message. Discord does not say whose it was: in a direct chat it is the person's, else nobody's."""
    unknown = Sender(id=str(channel.user_id or ""), name="", is_nobody=not channel.is_direct)
    sender = unknown if before is None else _sender(before)
    return _inbound(channel, kind="delete", sender=sender, text="", message_id=str(message_id), sent_at=now)


def from_interaction(
    interaction: discord.Interaction[discord.Client], channel: DiscordChannel, specs: Mapping[str, CommandSpec]
) -> Inbound:
    """A called application command, whose arguments are the line a person would have typed, or the chosen message; or a
    pressed button, whose `text` is the id that it was given."""
    data: dict[str, Any] = dict(interaction.data or {})
    command, reply_to = None, str(interaction.message.id) if interaction.message is not None else None
    if interaction.type is not discord.InteractionType.component:
        name, is_of_menu = str(data["name"]), data.get("type") == MESSAGE
        spec = next((spec for spec in specs.values() if is_of_menu and spec.menu == name), None)
        if spec is not None:
            name, reply_to = spec.name, str(data["target_id"])
            arguments = _chosen_text(data["resolved"]["messages"][reply_to], interaction)
        else:
            arguments = joined(data.get("options"), specs.get(name))
        command = Command(name=name, arguments=arguments)
    return _inbound(
        channel,
        kind="action" if command is None else "message",
        sender=_user(interaction.user),
        text=str(data["custom_id"]) if command is None else f"/{command.name} {command.arguments}".rstrip(),
        message_id=str(interaction.id),
        sent_at=interaction.created_at,
        command=command,
        reply_to=reply_to,
        is_interaction=True,
    )


def _chosen_text(raw: Any, interaction: discord.Interaction[discord.Client]) -> str:
    """What the message of a context menu says, with whose words they are, unless they are the caller's own."""
    message = discord.Message(state=interaction._state, channel=interaction.channel, data=raw)  # type: ignore[arg-type]
    is_own = message.author == interaction.user and message.webhook_id is None
    lead = "Forwarded: " if message.message_snapshots else "" if is_own else f"{message.author.display_name}: "
    text = _text(message, interaction.client.user)  # type: ignore[arg-type]  # known since the login
    return lead + text if text else ""


def _written(message: discord.Message, channel: DiscordChannel, bot: discord.ClientUser) -> Inbound:
    reference = message.reference
    is_reply = reference is not None and reference.type is discord.MessageReferenceType.reply
    return _inbound(
        channel,
        kind="message",
        sender=_sender(message),
        text=_text(message, bot),
        message_id=str(message.id),
        sent_at=message.created_at,
        is_addressed=channel.is_direct or _is_meant(message, bot),
        reply_to=str(reference.message_id) if is_reply and reference and reference.message_id else None,
        quoted=_quoted(message, bot),
        attachments=_attachments(message),
        origin="forwarded" if message.message_snapshots else "typed",
        link_base=channel.link_base,
    )


def _inbound(channel: DiscordChannel, **fields: Any) -> Inbound:
    return Inbound(address=channel.address, scope=channel.scope, is_direct=channel.is_direct, **fields)


def _sender(message: discord.Message) -> Sender:
    is_person = message.webhook_id is None and message.type in WRITTEN_TYPES
    sender = _user(message.author)
    return sender if is_person else replace(sender, is_nobody=True)


def _user(user: discord.User | discord.Member) -> Sender:
    return Sender(id=str(user.id), name=user.display_name, is_nobody=user.bot or user.system)


def _is_meant(message: discord.Message, bot: discord.ClientUser) -> bool:
    if any(user.id == bot.id for user in message.mentions):
        return True
    replied = message.reference.resolved if message.reference is not None else None
    return isinstance(replied, discord.Message) and replied.author.id == bot.id


def _text(message: discord.Message, bot: discord.ClientUser) -> str:
    """What was written: without the leading mention of the bot, mentions as names; for a forward what it shows."""
    if message.type not in WRITTEN_TYPES:
        return message.system_content or message.content  # the answer to a command is of a kind of its own
    content = message.content or "\n\n".join(snapshot.content for snapshot in message.message_snapshots)
    text = re.sub(rf"^<@!?{bot.id}>(?:[,:] )?", "", content.strip()).strip()
    if not text and content and not message.attachments:
        return f"@{bot.display_name}"  # nothing but the mention: a call, and no empty message
    names = {f"@{user.id}": user.display_name for user in message.mentions}
    names |= {f"@&{role.id}": role.name for role in message.role_mentions}
    names |= {f"#{channel.id}": channel.name for channel in message.channel_mentions}

    def named(match: re.Match[str]) -> str:
        sign = match[1].rstrip("!")
        name = names.get(sign + match[2])
        return match[0] if name is None else sign[0] + name

    return MENTION.sub(named, text)


def _quoted(message: discord.Message, bot: discord.ClientUser) -> Quoted | None:
    """What is forwarded, of which Discord does not say whose it was, or answered; None where that was deleted."""
    if message.message_snapshots:
        return Quoted(kind="forward", at=message.message_snapshots[0].created_at)
    answered = message.reference.resolved if message.reference is not None else None
    if not isinstance(answered, discord.Message):
        return None
    cards = [part for card in answered.embeds for part in (card.title, card.description) if part]
    text = _text(answered, bot) or "\n".join(cards) or "".join(f"({file.kind})" for file in _attachments(answered))
    if answered.message_snapshots:
        return Quoted(kind="reply", text=text, at=answered.created_at)
    sender, is_ours = _sender(answered), answered.author.id == bot.id
    return Quoted(kind="reply", text=text, name=sender.name, user_id=sender.id, at=answered.created_at, is_ours=is_ours)


def _attachments(message: discord.Message) -> tuple[Attachment, ...]:
    files = [*message.attachments, *(file for snapshot in message.message_snapshots for file in snapshot.attachments)]
    stickers = [Attachment(kind="sticker", name=sticker.name, reference=sticker.url) for sticker in message.stickers]
    return (*map(_attachment, files), *stickers)


def _attachment(file: discord.Attachment) -> Attachment:
    family = "voice" if file.is_voice_message() else (file.content_type or "").partition("/")[0]
    kind = family if family in ("voice", "image", "audio", "video") else "file"
    return Attachment(kind=kind, name=file.filename, mime=file.content_type, size_bytes=file.size, reference=file.url)


def described(spec: CommandSpec) -> list[dict[str, Any]]:
    """The payloads of one command and of its entry in the menu of a message, if it has one. Discord wants required
    options first; the order of values is restored in `joined`."""
    options = [
        {
            "type": STRING,
            "name": option.name,
            "description": option.description,
            "required": option.is_required,
            "choices": [{"name": choice, "value": choice} for choice in option.choices],
            "autocomplete": option.has_suggestions,
        }
        for option in sorted(spec.options, key=lambda option: not option.is_required)
    ]
    typed = {"type": CHAT_INPUT, "name": spec.name, "description": spec.description, "options": options, **PLACES}
    return [typed, {"type": MESSAGE, "name": spec.menu, **PLACES}] if spec.menu else [typed]


def joined(options: object, spec: CommandSpec | None) -> str:
    """The values of a call, in the order of the command's options, as one line; switches and what has a prefix stand
    before the rest, whatever quotes that has."""
    given = {str(option["name"]): str(option["value"]) for option in options} if isinstance(options, list) else {}
    if spec is None:
        return " ".join(given.values()).strip()
    ordered = sorted(spec.options, key=lambda option: (not option.is_switch, not option.prefix))
    values = [_typed_option(option, given[option.name]) for option in ordered if option.name in given]
    return spec.joiner.join(value for value in values if value).strip()


def _typed_option(option: Option, value: str) -> str:
    """A value as a person would type it, in quotes; quotes inside of it cannot be escaped and are left out."""
    if option.is_switch:
        return option.prefix if value == "true" else ""
    if not option.prefix:
        return value
    words = " ".join("".join(character for character in value if character not in QUOTES).split())
    return f'{option.prefix}"{words}"' if words else ""
