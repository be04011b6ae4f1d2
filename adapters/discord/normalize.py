"""Converts Discord's channels and events to `Address`, `Scope` and `Inbound`.

The functions here make no calls and have no state. Channels of unknown kinds aren't converted to a
`DiscordChannel`, so their events are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

import discord

from adapters.discord.commands import (
    find_menu_command,
    join_form,
    join_options,
    join_values,
    keep_words,
    list_file_ids,
)
from adapters.reactions import read_thumb
from core.errors import word_clause
from core.guard.origin_and_fence import insertion
from core.menus.command_specs import CommandSpec
from core.ports import PastMessage
from core.types import Address, Attachment, Command, Inbound, Quote, Scope, Sender

PLATFORM = "discord"
# The kinds of messages that people write. All other kinds are notices of Discord.
WRITTEN_TYPES = (discord.MessageType.default, discord.MessageType.reply)
# The kinds of files for which a member may ask about a group message.
_ASKABLE_KINDS = frozenset({"image", "file", "video", "sticker"})
# A mention of a person, role or channel in the raw text: "<@42…>", "<@&42…>", "<#42…>".
MENTION = re.compile(r"<(@!?|@&|#)([0-9]{15,20})>")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordChannel:
    """A channel, thread or direct chat, with its address and scope."""

    address: Address
    scope: Scope
    # The person of a direct chat. None in a group.
    user_id: int | None = None
    # None outside of guilds.
    guild_id: int | None = None
    # Who opened a thread.
    owner_id: int | None = None

    @property
    def is_direct(self) -> bool:
        return self.user_id is not None

    @property
    def link_base(self) -> str:
        """A URL to which a message id is appended. Only members of the channel can open it."""
        channel_id = self.address.thread_id or self.address.chat_id
        return f"https://discord.com/channels/{self.guild_id or '@me'}/{channel_id}/"


def channel_of(channel: Any, user_id: int | None = None) -> DiscordChannel | None:
    """Convert a channel object of the library.

    `user_id` is the person of a direct chat if the object doesn't contain it. Returns None if the
    object has too little information and the channel must be fetched.
    """
    if isinstance(channel, discord.DMChannel):
        if channel.recipient is not None:
            user_id = channel.recipient.id
        if user_id is None:
            return None
        return DiscordChannel(
            address=_make_address(channel.id),
            scope=Scope.account(PLATFORM, str(user_id)),
            user_id=user_id,
        )
    if isinstance(channel, discord.Thread):
        # A public thread shares the scope of its channel.
        scope_id = channel.id if channel.is_private() else channel.parent_id
        return DiscordChannel(
            address=_make_address(channel.parent_id, channel.id),
            scope=Scope.group(PLATFORM, str(scope_id)),
            guild_id=channel.guild.id,
            owner_id=channel.owner_id,
        )
    if isinstance(channel, discord.GroupChannel | discord.abc.GuildChannel):
        guild = getattr(channel, "guild", None)
        return DiscordChannel(
            address=_make_address(channel.id),
            scope=Scope.group(PLATFORM, str(channel.id)),
            guild_id=guild.id if guild is not None else None,
        )
    return None


def is_personal(interaction: discord.Interaction[discord.Client]) -> bool:
    """Return whether the bot was installed only by the person, and not by the guild.

    The person may be in any guild or in a chat with other people. The bot isn't a member there, so
    only the person gets answers. Mneme reads only the content of the interaction.
    """
    if interaction.context.dm_channel:
        return False
    return interaction.is_user_integration() and not interaction.is_guild_integration()


def add_poll_end(raw: Any) -> None:
    """Give a poll without an end the time of its message as its end.

    Discord allows such a poll, but the library can't read it. `raw` is the raw data of a message,
    which may contain the message that it replies to.
    """
    for message in (raw, raw.get("referenced_message")):
        poll = None if message is None else message.get("poll")
        if poll is not None and poll.get("expiry") is None:
            poll["expiry"] = discord.utils.snowflake_time(int(message["id"])).isoformat()


def build_message(state: Any, channel: Any, raw: Any) -> discord.Message:
    """Return the library's object for the raw data of a message."""
    add_poll_end(raw)
    return discord.Message(state=state, channel=channel, data=raw)


def from_message(
    message: discord.Message,
    channel: DiscordChannel,
    bot: discord.ClientUser,
    specs: Mapping[str, CommandSpec],
) -> Inbound | None:
    """Convert a message. Returns None if the bot may not read its content."""
    inbound = _convert_message(message, channel, bot)
    if not (inbound.text or inbound.attachments or inbound.is_mention):
        return None
    # Discord's client doesn't recognize a pasted command, so it arrives as a plain message.
    name, _, arguments = inbound.text.partition(" ")
    is_command = name.startswith("/") and name[1:].lower() in specs
    if not (channel.is_direct and is_command):
        return inbound
    return replace(inbound, command=Command(name=name[1:].lower(), arguments=arguments.strip()))


def from_edit(
    message: discord.Message,
    before: discord.Message | None,
    channel: DiscordChannel,
    bot: discord.ClientUser,
) -> Inbound | None:
    """Convert an edit of a message.

    Returns None if neither the text nor the files changed, or if the bot may not read them.
    Discord also sends updates for other changes, such as link previews and pins. The outcome of a
    poll is an update without a time.
    """
    has_outcome = message.poll is not None and message.poll.is_finalised()
    if not has_outcome:
        if message.edited_at is None:
            return None
        if before is not None and _has_same_content(before, message):
            return None
    inbound = _convert_message(message, channel, bot)
    if not (message.content or message.attachments or has_outcome or inbound.is_addressed):
        return None
    return replace(inbound, kind="edit", sent_at=message.edited_at or inbound.sent_at)


def _has_same_content(before: discord.Message, after: discord.Message) -> bool:
    """Return whether a message has the same text and files as before its edit."""
    file_ids = [file.id for file in before.attachments]
    return before.content == after.content and file_ids == [file.id for file in after.attachments]


def from_delete(
    message_id: int, before: discord.Message | None, channel: DiscordChannel, now: datetime
) -> Inbound:
    """Convert a deletion.

    Discord doesn't say who wrote the message. If the library has no cached copy (`before`), the
    sender is the person of the direct chat. Elsewhere, the sender is anonymous.
    """
    if before is not None:
        sender = _sender_of(before)
    else:
        sender = Sender(id=str(channel.user_id or ""), name="", is_anonymous=not channel.is_direct)
    return _make_inbound(
        channel, kind="delete", sender=sender, text="", message_id=str(message_id), sent_at=now
    )


def from_reaction(
    change: discord.RawReactionActionEvent, channel: DiscordChannel, now: datetime
) -> Inbound | None:
    """Convert a thumb that a person added or removed. Returns None for other reactions."""
    thumb = read_thumb([change.emoji.name or ""] if change.emoji.is_unicode_emoji() else [])
    if not thumb:
        return None
    member = change.member
    is_removal = change.event_type == "REACTION_REMOVE"
    # Discord doesn't describe the member who removes a reaction.
    sender = Sender(id=str(change.user_id), name="") if member is None else _sender_of_user(member)
    return _make_inbound(
        channel,
        kind="reaction",
        sender=sender,
        text="" if is_removal else thumb,
        message_id=str(change.message_id),
        sent_at=now,
    )


def from_interaction(
    interaction: discord.Interaction[discord.Client],
    channel: DiscordChannel,
    specs: Mapping[str, CommandSpec],
    form: FilledForm | None = None,
) -> Inbound:
    """Convert a command, a button press, or a form that was filled in.

    The arguments of a slash command are joined to the line that a person would have typed. For a
    button press, `text` is the id of the button. A filled-in form of a button is converted to a
    press of that button, with the typed text in `form_text`.
    """
    data: dict[str, Any] = dict(interaction.data or {})
    if form is not None and form.choice is not None:
        return _from_menu(interaction, channel, form.choice, form.values)
    if form is not None and form.spec is not None:
        return _from_line(interaction, channel, form.spec.name, form.line)
    if interaction.type is not discord.InteractionType.application_command and (
        interaction.type is not discord.InteractionType.autocomplete
    ):
        message = interaction.message
        values = data.get("values")
        return replace(
            _convert_interaction(interaction, channel),
            kind="action",
            text=str(values[0] if values else data["custom_id"]),
            reply_to=None if message is None else str(message.id),
            form_text="" if form is None else "\n".join(form.values.values()),
        )
    choice = read_menu_choice(interaction, specs)
    if choice is not None:
        return _from_menu(interaction, channel, choice, {})

    name = str(data["name"])
    arguments = join_options(data.get("options"), specs.get(name))
    files = data.get("resolved", {}).get("attachments", {})
    attachments = [
        discord.Attachment(data=files[file_id], state=interaction._state)
        for file_id in list_file_ids(data)
        if file_id in files
    ]
    return replace(
        _from_line(interaction, channel, name, arguments),
        attachments=tuple(map(_convert_attachment, attachments)),
    )


def _from_line(
    interaction: discord.Interaction[discord.Client],
    channel: DiscordChannel,
    name: str,
    arguments: str,
) -> Inbound:
    """Convert a command with the arguments that a person would have typed."""
    return replace(
        _convert_interaction(interaction, channel),
        text=f"/{name} {arguments}".rstrip(),
        command=Command(name=name, arguments=arguments),
    )


def _convert_interaction(
    interaction: discord.Interaction[discord.Client], channel: DiscordChannel
) -> Inbound:
    """Convert the common fields of an interaction to an `Inbound` without text."""
    return _make_inbound(
        channel,
        kind="message",
        sender=_sender_of_user(interaction.user),
        text="",
        message_id=str(interaction.id),
        sent_at=interaction.created_at,
        is_interaction=True,
        heard_replies=_find_heard_replies(interaction, channel),
        language=str(interaction.locale),
    )


def _find_heard_replies(
    interaction: discord.Interaction[discord.Client], channel: DiscordChannel
) -> Literal["all", "mentions", "none"]:
    """Return which messages Discord passes on from the place of an interaction."""
    if is_personal(interaction):
        return "none"
    reads_all = channel.is_direct or interaction.client.intents.message_content
    return "all" if reads_all else "mentions"


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuChoice:
    """A command that a person chose from the menu of a message, and the message."""

    spec: CommandSpec
    message_id: str
    # The text, with the author before it unless it's the person who used the menu.
    text: str
    # The words for a search.
    words: str
    quote: Quote
    attachments: tuple[Attachment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledForm:
    """The texts that a person typed into a form, by the names of its fields."""

    values: Mapping[str, str]
    # The message with the menu that opened the form. None if a button or a command opened it.
    choice: MenuChoice | None = None
    # The command that opened the form, and the action that was chosen, or "".
    spec: CommandSpec | None = None
    action_name: str = ""

    @property
    def line(self) -> str:
        """The arguments of the command that opened the form."""
        return "" if self.spec is None else join_form(self.spec, self.action_name, self.values)


def read_menu_choice(
    interaction: discord.Interaction[discord.Client], specs: Mapping[str, CommandSpec]
) -> MenuChoice | None:
    """Return the choice from the menu of a message, or None for other interactions."""
    data: dict[str, Any] = dict(interaction.data or {})
    spec = find_menu_command(data, specs)
    if spec is None:
        return None
    message_id = str(data["target_id"])
    raw = data["resolved"]["messages"][message_id]
    channel: Any = interaction.channel
    message = build_message(interaction._state, channel, raw)
    # `user` isn't None, because the client is logged in.
    bot: discord.ClientUser = interaction.client.user  # type: ignore[assignment]
    text = _text_of(message, bot)
    sender = _sender_of(message)
    is_forward = bool(message.message_snapshots)
    if is_forward:
        lead = "Forwarded: "
    elif message.author == interaction.user and message.webhook_id is None:
        lead = ""
    else:
        lead = f"{message.author.display_name}: "
    quote = Quote(
        kind="reply",
        text=text or _describe_content(message),
        name="" if is_forward else sender.name,
        user_id="" if is_forward else sender.id,
        at=message.created_at,
        is_ours=message.author.id == bot.id,
    )
    return MenuChoice(
        spec=spec,
        message_id=message_id,
        text=lead + text if text else "",
        words=keep_words(text),
        quote=quote,
        attachments=tuple(file for file in _attachments_of(message) if file.kind in _ASKABLE_KINDS),
    )


def _from_menu(
    interaction: discord.Interaction[discord.Client],
    channel: DiscordChannel,
    choice: MenuChoice,
    values: Mapping[str, str],
) -> Inbound:
    """Convert the choice from the menu of a message, with the values of its form."""
    spec = choice.spec
    filled = dict(values)
    if spec.menu_fills:
        filled[spec.menu_fills] = choice.words if spec.menu_use == "words" else choice.text
    arguments = join_values(filled, spec.options, spec.joiner)
    is_quote = spec.menu_use == "quote"
    return replace(
        _from_line(interaction, channel, spec.name, arguments),
        reply_to=choice.message_id,
        quote=choice.quote if is_quote else None,
        attachments=choice.attachments if is_quote else (),
    )


def _make_address(channel_id: int, thread_id: int | None = None) -> Address:
    return Address(
        platform=PLATFORM,
        chat_id=str(channel_id),
        thread_id=None if thread_id is None else str(thread_id),
    )


def _make_inbound(channel: DiscordChannel, **fields: Any) -> Inbound:
    return Inbound(
        address=channel.address,
        scope=channel.scope,
        is_direct=channel.is_direct,
        server_id="" if channel.guild_id is None else str(channel.guild_id),
        **fields,
    )


def _convert_message(
    message: discord.Message, channel: DiscordChannel, bot: discord.ClientUser
) -> Inbound:
    """Convert a message, without looking for a command in it."""
    reply_to = None
    reference = message.reference
    if reference is not None and reference.type is discord.MessageReferenceType.reply:
        reply_to = str(reference.message_id) if reference.message_id else None
    # A reply that notifies the bot mentions it, too, but not in the text.
    is_mention = _mentions_own_role(message, bot) or (
        re.search(rf"<@!?{bot.id}>", message.content) is not None
    )
    text = _text_of(message, bot)
    if is_mention and text == f"@{bot.display_name}":
        # A mention without a question has no text. In a quote, its text is the mention itself.
        text = ""
    return _make_inbound(
        channel,
        kind="message",
        sender=_sender_of(message),
        text=text,
        message_id=str(message.id),
        sent_at=message.created_at,
        is_addressed=(
            channel.is_direct or channel.owner_id == bot.id or _is_addressed(message, bot)
        ),
        is_mention=is_mention,
        reply_to=reply_to,
        quote=_quote_of(message, bot),
        attachments=_attachments_of(message),
        replied_files=_list_replied_files(message, channel, bot),
        origin="forwarded" if message.message_snapshots else "typed",
        link_base=channel.link_base,
    )


def _sender_of(message: discord.Message) -> Sender:
    """Return the sender of a message. Webhooks and notices of Discord count as anonymous."""
    sender = _sender_of_user(message.author)
    if message.webhook_id is None and message.type in WRITTEN_TYPES:
        return sender
    return replace(sender, is_anonymous=True)


def _sender_of_user(user: discord.User | discord.Member) -> Sender:
    roles = user.roles if isinstance(user, discord.Member) else ()
    return Sender(
        id=str(user.id),
        name=user.display_name,
        is_anonymous=user.bot or user.system,
        roles=tuple(str(role.id) for role in roles),
    )


def _is_addressed(message: discord.Message, bot: discord.ClientUser) -> bool:
    """Return whether a group message mentions the bot or its role, or replies to it."""
    if any(user.id == bot.id for user in message.mentions) or _mentions_own_role(message, bot):
        return True
    target = _replied_message(message)
    return target is not None and target.author.id == bot.id


def _mentions_own_role(message: discord.Message, bot: discord.ClientUser) -> bool:
    """Return whether a message mentions the role that Discord has created for the bot.

    The role has the bot's name, so people choose it by mistake. Without the message content intent,
    Discord doesn't pass on the text of such a message.
    """
    return bool(_list_own_roles(message, bot))


def _list_own_roles(message: discord.Message, bot: discord.ClientUser) -> list[discord.Role]:
    """Return the mentioned roles that Discord has created for the bot: one, or none."""
    return [
        role
        for role in message.role_mentions
        if role.tags is not None and role.tags.bot_id == bot.id
    ]


def _replied_message(message: discord.Message) -> discord.Message | None:
    """Return the message that a message replies to, or None if it doesn't exist."""
    if message.reference is None:
        return None
    target = message.reference.resolved
    return target if isinstance(target, discord.Message) else None


def _text_of(message: discord.Message, bot: discord.ClientUser) -> str:
    """Return the written or forwarded text, with names for mentions.

    A mention of the bot at the beginning is left out.
    """
    if message.type not in WRITTEN_TYPES:
        # For example the answer to a command, which has its own type.
        return message.system_content or message.content
    content = message.content
    if message.poll is not None:
        content = "\n".join(filter(None, (content, _describe_poll(message.poll))))
    if not content:
        content = "\n\n".join(snapshot.content for snapshot in message.message_snapshots)
    names_of_bot = [f"!?{bot.id}", *(f"&{role.id}" for role in _list_own_roles(message, bot))]
    text = re.sub(rf"^<@(?:{'|'.join(names_of_bot)})>(?:[,:] )?", "", content.strip()).strip()
    if not text and content and not message.attachments:
        # A message that consists only of a mention of the bot keeps it as its text.
        return f"@{bot.display_name}"

    names = {f"@{user.id}": user.display_name for user in message.mentions}
    names |= {f"@&{role.id}": role.name for role in message.role_mentions}
    names |= {f"#{channel.id}": channel.name for channel in message.channel_mentions}

    def replace_mention(match: re.Match[str]) -> str:
        sign = match[1].rstrip("!")
        name = names.get(sign + match[2])
        return match[0] if name is None else insertion(name, sign[0])

    return MENTION.sub(replace_mention, text)


def _describe_poll(poll: discord.Poll) -> str:
    """Return the question and options of a poll, with the votes once it has ended."""
    is_over = poll.is_finalised()
    options = [
        f"{answer.text} ({answer.vote_count})" if is_over else str(answer.text)
        for answer in poll.answers
    ]
    content = word_clause("event_poll", question=poll.question, options="; ".join(options))
    key = "inserted_closed_poll" if is_over else "inserted_poll"
    return word_clause(key, content=insertion(content))


def _quote_of(message: discord.Message, bot: discord.ClientUser) -> Quote | None:
    """Return the message that a message forwards or replies to, or None.

    Discord doesn't say who wrote a forwarded message.
    """
    if message.message_snapshots:
        return Quote(kind="forward", at=message.message_snapshots[0].created_at)
    target = _replied_message(message)
    if target is None:
        return None
    text = _text_of(target, bot) or _describe_content(target)
    if target.message_snapshots:
        return Quote(kind="reply", text=text, at=target.created_at)
    sender = _sender_of(target)
    return Quote(
        kind="reply",
        text=text,
        name=sender.name,
        user_id=sender.id,
        at=target.created_at,
        is_ours=target.author.id == bot.id,
    )


def convert_past_message(message: discord.Message, bot: discord.ClientUser) -> PastMessage:
    """Convert a message of a channel's history."""
    return PastMessage(
        at=message.created_at,
        name=_sender_of(message).name,
        text=_text_of(message, bot) or _describe_content(message),
        is_ours=message.author.id == bot.id,
    )


def _describe_content(message: discord.Message) -> str:
    """Describe a message without text by its embeds, or else by the kinds of its files."""
    lines = []
    for embed in message.embeds:
        lines += [part for part in (embed.title, embed.description) if part]
    if lines:
        return "\n".join(lines)
    return "".join(f"({file.kind})" for file in _attachments_of(message))


def _attachments_of(message: discord.Message) -> tuple[Attachment, ...]:
    """Return the files of a message and of what it forwards, then its stickers."""
    files = list(message.attachments)
    for snapshot in message.message_snapshots:
        files += snapshot.attachments
    stickers = [
        Attachment(kind="sticker", name=sticker.name, reference=sticker.url)
        for sticker in message.stickers
    ]
    return (*map(_convert_attachment, files), *stickers)


def _list_replied_files(
    message: discord.Message, channel: DiscordChannel, bot: discord.ClientUser
) -> tuple[Attachment, ...]:
    """Return the files of the group message that a message replies to.

    The bot may never have received that message. A voice message is left out, because its words
    aren't those of the person who asks.
    """
    target = _replied_message(message)
    if target is None or channel.is_direct or target.author.id == bot.id:
        return ()
    return tuple(file for file in _attachments_of(target) if file.kind in _ASKABLE_KINDS)


def _convert_attachment(file: discord.Attachment) -> Attachment:
    """Convert a file.

    Its kind comes from its MIME type, or is "voice" for a recording, or "file".
    """
    kind = (file.content_type or "").partition("/")[0]
    if file.is_voice_message():
        kind = "voice"
    elif kind not in ("voice", "image", "audio", "video"):
        kind = "file"
    return Attachment(
        kind=kind,
        name=file.filename,
        mime=file.content_type,
        size_bytes=file.size,
        reference=file.url,
    )
