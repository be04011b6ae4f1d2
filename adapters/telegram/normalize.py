"""Converts a Telegram update to an `Inbound`, or to None if Mneme doesn't handle such updates.

The functions here use neither the network nor the clock. They determine the scope, the base URL of
message links, the sender, whether the bot is addressed, and which command the message contains.
Telegram counts the offsets of entities in UTF-16 units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

import telegram
from telegram import (
    CallbackQuery,
    Chat,
    ChatMemberUpdated,
    MaybeInaccessibleMessage,
    Message,
    MessageEntity,
    MessageOrigin,
    MessageOriginUser,
    MessageReactionUpdated,
    Update,
    User,
)

from adapters.reactions import read_thumb
from core.errors import word_clause
from core.guard.origin_and_fence import insertion
from core.markup.markdown import utf16_length
from core.types import Address, Attachment, Command, Inbound, Origin, Quote, Scope, Sender

PLATFORM = "telegram"
# A language code such as "zh-hans" isn't longer than this.
MAX_LANGUAGE_CHARS = 35
# The users that Telegram shows as senders for anonymous group admins, for posts in the name of a
# channel, and for Telegram's own messages.
ANONYMOUS_USER_IDS = frozenset({1087968824, 136817688, 777000})
# A supergroup has the id -(10**12 + number) in the Bot API. Links contain the number.
_SUPERGROUP_OFFSET = 10**12


@dataclass(frozen=True, slots=True)
class _FileType:
    kind: str
    # The name and type to use if the update doesn't contain them.
    default_name: str
    default_mime: str | None = None


_FILE_TYPES: dict[type, _FileType] = {
    telegram.PhotoSize: _FileType("photo", "photo.jpg", "image/jpeg"),
    telegram.Animation: _FileType("animation", "animation.mp4"),
    telegram.Document: _FileType("document", "document"),
    telegram.Voice: _FileType("voice", "voice.ogg", "audio/ogg"),
    telegram.Audio: _FileType("audio", "audio"),
    telegram.Video: _FileType("video", "video.mp4"),
    telegram.VideoNote: _FileType("video note", "video.mp4", "video/mp4"),
    telegram.Sticker: _FileType("sticker", "sticker"),
}


# The kinds of files for which a member may ask about a group message.
_ASKABLE_KINDS = frozenset({"photo", "animation", "document", "video", "sticker"})


def normalize(update: Update, me: User, now: datetime) -> Inbound | None:
    """Convert an update to an `Inbound`.

    `me` is the bot. A button press gets the time of the message with the button, or the time `now`
    if Telegram no longer has that message. Returns None for channels, for messages without text or
    a file, for a live location that has moved, and for buttons without data.
    """
    inbound = _convert_update(update, me, now)
    if inbound is None or inbound.is_direct or me.can_read_all_group_messages:
        return inbound
    if inbound.command is None and inbound.kind != "action":
        return inbound
    # The bot may be an admin of the group, which gets all messages.
    return replace(inbound, heard_replies="replies")


def _convert_update(update: Update, me: User, now: datetime) -> Inbound | None:
    """Convert an update as `normalize` does, without what Telegram passes on from a group."""
    if update.callback_query:
        return _convert_press(update.callback_query, now)
    if update.message_reaction:
        return _convert_reaction(update.message_reaction)
    if update.my_chat_member:
        return _convert_arrival(update.my_chat_member)
    message = update.message or update.edited_message
    if message is None or message.chat.type not in (Chat.PRIVATE, Chat.GROUP, Chat.SUPERGROUP):
        return None
    if update.edited_message is not None and message.location is not None:
        # A live location is edited every few seconds without a new question by the person.
        return None
    return _convert_message(message, me, is_edit=update.edited_message is not None)


def _convert_message(message: Message, me: User, *, is_edit: bool) -> Inbound | None:
    """Convert a message. Returns None if it has no text and no file and reports no change."""
    text, entities = _text_of(message)
    attachments = _attachments_of(message)
    if not text and not attachments:
        return _convert_service_message(message, me)
    return _convert_content(message, me, text, entities, attachments, is_edit=is_edit)


def _convert_service_message(message: Message, me: User) -> Inbound | None:
    """Convert a service message. Returns None if it reports no change."""
    # Imported here because service messages are rare.
    from adapters.telegram.service_messages import describe_service_message

    text = describe_service_message(message, me)
    if not text:
        return None
    inbound = _convert_content(message, me, text, (), (), is_edit=False)
    if not inbound.is_direct:
        # Telegram wrote the message, so it isn't a request, even where Mneme answers every message.
        inbound = replace(inbound, sender=replace(inbound.sender, is_anonymous=True))
    return inbound


def _convert_content(
    message: Message,
    me: User,
    text: str,
    entities: tuple[MessageEntity, ...],
    attachments: tuple[Attachment, ...],
    *,
    is_edit: bool,
) -> Inbound:
    """Convert a message with a text or a file."""

    is_direct = message.chat.type == Chat.PRIVATE
    target = _replied_message(message)
    start = _start_after_mention(text, entities, me)
    is_for_other_bot, command = _find_command(text, entities, me, start)
    is_for_us = command is not None or _is_addressed(text, entities, target, me)
    is_addressed = is_direct or (is_for_us and not is_for_other_bot)
    sender = _sender_of(message)
    address = _address_of(message)
    return Inbound(
        kind="edit" if is_edit else "message",
        address=address,
        is_in_general=_is_in_general(message),
        scope=_scope_of(message.chat, sender),
        sender=sender,
        text=_render_text(text, entities, start),
        message_id=str(message.message_id),
        # The time of an edit distinguishes it from other edits of the same message.
        sent_at=message.edit_date or message.date,
        is_direct=is_direct,
        is_addressed=is_addressed,
        is_mention=any(_is_mention(text, entity, me) for entity in entities),
        command=None if is_edit else command,
        reply_to=str(target.message_id) if target else None,
        quote=_quote_of(message, target, me),
        attachments=attachments,
        replied_files=_list_replied_files(target, me),
        origin=_origin_of(message),
        link_base=_link_base_of(message.chat, address),
        group_id=message.media_group_id,
        language=_language_of(message.from_user),
    )


def _render_text(text: str, entities: tuple[MessageEntity, ...], start: int) -> str:
    """Return the text from an offset on, with the addresses of links and marked mentions.

    The words of a link are followed by its address. A mention of a person without a username
    contains the name that this person chose.
    """
    parts: list[str] = []
    position = start
    for entity in entities:
        end = entity.offset + entity.length
        if entity.offset < position:
            continue
        words = _slice_utf16(text, entity.offset, entity.length)
        if entity.type == MessageEntity.TEXT_LINK and entity.url:
            visible_text = f"{words} {insertion(entity.url)}"
        elif entity.type == MessageEntity.TEXT_MENTION:
            visible_text = insertion(words.removeprefix("@"), "@")
        else:
            continue
        parts += [_slice_utf16(text, position, entity.offset - position), visible_text]
        position = end
    parts.append(_slice_utf16(text, position))
    return _replace_surrogates("".join(parts))


def group_migration(update: Update) -> tuple[str, str] | None:
    """Return the old and the new chat id if a group became a supergroup, or None otherwise."""
    message = update.message
    if message is None or not (message.migrate_to_chat_id or message.migrate_from_chat_id):
        return None
    old_id = message.migrate_from_chat_id or message.chat.id
    new_id = message.migrate_to_chat_id or message.chat.id
    return str(old_id), str(new_id)


def _convert_press(query: CallbackQuery, now: datetime) -> Inbound | None:
    """Convert a press on a button. Returns None for a button without an id, or in a channel.

    An update doesn't contain the time of the press. The time of the message is used instead, so
    that the result is the same if Telegram delivers the press twice. The content of an old message
    may be unavailable, but its chat is always known.
    """
    message = query.message
    if message is None or not query.data or message.chat.type == Chat.CHANNEL:
        return None
    sent_at = now
    if isinstance(message, Message) and message.is_accessible:
        sent_at = message.edit_date or message.date
    sender = _sender_of_user(query.from_user)
    return Inbound(
        kind="action",
        address=_address_of(message),
        is_in_general=_is_in_general(message),
        scope=_scope_of(message.chat, sender),
        sender=sender,
        text=_replace_surrogates(query.data),
        message_id=query.id,
        sent_at=sent_at,
        is_direct=message.chat.type == Chat.PRIVATE,
        reply_to=str(message.message_id),
        language=_language_of(query.from_user),
    )


def _convert_reaction(change: MessageReactionUpdated) -> Inbound | None:
    """Convert a change of a person's reactions to one message.

    Returns None if an anonymous admin or a channel reacted, not a person. The update doesn't name
    the topic, so the address is that of the chat.
    """
    if change.user is None or change.chat.type == Chat.CHANNEL:
        return None
    sender = _sender_of_user(change.user)
    emojis = [
        reaction.emoji
        for reaction in change.new_reaction
        if isinstance(reaction, telegram.ReactionTypeEmoji)
    ]
    return Inbound(
        kind="reaction",
        address=Address(platform=PLATFORM, chat_id=str(change.chat.id)),
        scope=_scope_of(change.chat, sender),
        sender=sender,
        text=read_thumb(emojis),
        message_id=str(change.message_id),
        sent_at=change.date,
        is_direct=change.chat.type == Chat.PRIVATE,
        language=_language_of(change.user),
    )


def _convert_arrival(change: ChatMemberUpdated) -> Inbound | None:
    """Convert a change of the bot's membership. Returns None unless it was added to a group."""
    is_group = change.chat.type in (Chat.GROUP, Chat.SUPERGROUP)
    if not is_group or _is_present(change.old_chat_member):
        return None
    if not _is_present(change.new_chat_member):
        return None
    sender = _sender_of_user(change.from_user)
    return Inbound(
        kind="arrival",
        address=Address(platform=PLATFORM, chat_id=str(change.chat.id)),
        scope=_scope_of(change.chat, sender),
        sender=sender,
        text="",
        message_id="",
        sent_at=change.date,
        is_direct=False,
        is_addressed=True,
        language=_language_of(change.from_user),
    )


def _is_present(member: telegram.ChatMember) -> bool:
    if isinstance(member, telegram.ChatMemberRestricted):
        return member.is_member
    return member.status not in (telegram.ChatMember.LEFT, telegram.ChatMember.BANNED)


def _language_of(user: User | None) -> str:
    """Return the language code of a person's app, such as ``de``, or ""."""
    return (user.language_code or "")[:MAX_LANGUAGE_CHARS] if user else ""


def _address_of(message: MaybeInaccessibleMessage) -> Address:
    """Return the chat and topic of a message.

    In supergroups, replies also have a thread id, but only topics are separate conversations. The
    topic "General" has no id.
    """
    thread_id = None
    if isinstance(message, Message) and message.is_topic_message:
        thread_id = message.message_thread_id
    return Address(
        platform=PLATFORM,
        chat_id=str(message.chat.id),
        thread_id=None if thread_id is None else str(thread_id),
    )


def _is_in_general(message: MaybeInaccessibleMessage) -> bool:
    """Return whether a message is in the topic "General".

    For old messages, Telegram doesn't report this.
    """
    is_known = isinstance(message, Message) and message.chat.type == Chat.SUPERGROUP
    return is_known and bool(message.chat.is_forum) and _address_of(message).thread_id is None


def _link_base_of(chat: Chat, address: Address) -> str | None:
    """Return the URL to which a message id is appended: ``https://t.me/c/1234/``.

    Returns None outside of supergroups, which have no such links. Anyone can open the links of a
    public group. Only members can open the links of a private group.
    """
    if chat.type != Chat.SUPERGROUP:
        return None
    name = chat.username or f"c/{-chat.id - _SUPERGROUP_OFFSET}"
    topic = f"{address.thread_id}/" if address.thread_id is not None else ""
    return f"https://t.me/{name}/{topic}"


def _scope_of(chat: Chat, sender: Sender) -> Scope:
    if chat.type == Chat.PRIVATE:
        return Scope.account(PLATFORM, sender.id)
    return Scope.group(PLATFORM, str(chat.id))


def _sender_of(message: Message) -> Sender:
    """Return the sender of a message. A sender who writes in the name of a chat is anonymous."""
    chat = message.sender_chat
    if chat is None and message.from_user is not None:
        return _sender_of_user(message.from_user)
    name = _replace_surrogates(chat.effective_name or "") if chat else ""
    return Sender(id=str((chat or message.chat).id), name=name, is_anonymous=True)


def _sender_of_user(user: User) -> Sender:
    return Sender(
        id=str(user.id),
        name=_replace_surrogates(user.full_name),
        is_anonymous=user.is_bot or user.id in ANONYMOUS_USER_IDS,
    )


def _origin_of(message: Message) -> Origin:
    if message.forward_origin:
        return "forwarded"
    if message.via_bot:
        return "via_bot"
    return "typed"


def _replied_message(message: Message) -> Message | None:
    """Return the message that this message replies to, or None.

    In a topic, a message without a reply refers to the notice that opened the topic. Such a
    reference is ignored.
    """
    target = message.reply_to_message
    if target is None or target.forum_topic_created:
        return None
    return target


def _quote_of(message: Message, target: Message | None, me: User) -> Quote | None:
    """Return the message that a message forwards or replies to, or None.

    For a reply to a message in another chat, the update contains only the selected part.
    """
    if message.forward_origin:
        return _quote_origin(message.forward_origin, me, "forward")
    part = _replace_surrogates(message.quote.text) if message.quote else ""
    kind: Literal["reply", "part"] = "part" if part else "reply"
    if target is None:
        external = message.external_reply
        if external is None:
            return None
        return replace(_quote_origin(external.origin, me, kind), text=part)

    text = part or _replace_surrogates(_text_of(target)[0])
    if not text:
        text = "".join(f"({file.kind})" for file in _attachments_of(target))
    if target.forward_origin:
        return replace(_quote_origin(target.forward_origin, me, kind), text=text)
    sender = _sender_of(target)
    return Quote(
        kind=kind,
        text=text,
        name=sender.name,
        user_id=sender.id,
        at=target.date,
        is_ours=target.from_user == me,
    )


def _quote_origin(
    origin: MessageOrigin, me: User, kind: Literal["reply", "part", "forward"]
) -> Quote:
    """Return a quote without text, with the original author of a forwarded message.

    The author is a person, a person who hides their account, a group or a channel. Only a person
    who doesn't hide the account has a user id.
    """
    if isinstance(origin, MessageOriginUser):
        sender = _sender_of_user(origin.sender_user)
        return Quote(
            kind=kind,
            name=sender.name,
            user_id=sender.id,
            at=origin.date,
            is_ours=origin.sender_user == me,
        )
    chat = getattr(origin, "sender_chat", None) or getattr(origin, "chat", None)
    name = chat.effective_name if chat else getattr(origin, "sender_user_name", "")
    return Quote(kind=kind, name=_replace_surrogates(name or ""), at=origin.date)


def _is_addressed(
    text: str, entities: tuple[MessageEntity, ...], target: Message | None, me: User
) -> bool:
    """Return whether a message replies to the bot or mentions it."""
    if target is not None and target.from_user == me:
        return True
    return any(_is_mention(text, entity, me) for entity in entities)


def _is_mention(text: str, entity: MessageEntity, me: User) -> bool:
    if entity.type == MessageEntity.TEXT_MENTION:
        return entity.user == me
    if entity.type != MessageEntity.MENTION:
        return False
    name = _slice_utf16(text, entity.offset, entity.length)
    return name.lower() == f"@{me.username}".lower()


def _start_after_mention(text: str, entities: tuple[MessageEntity, ...], me: User) -> int:
    """Return the offset of the text after a leading mention of the bot, in UTF-16 units.

    For ``@bot, hello``, the offset is 6. Returns 0 if the text doesn't begin with a mention of the
    bot.
    """
    for entity in entities:
        if entity.offset == 0 and _is_mention(text, entity, me):
            following_text = _slice_utf16(text, entity.length)
            separator_length = utf16_length(following_text) - utf16_length(
                following_text.lstrip(" \t\n,:;")
            )
            return entity.length + separator_length
    return 0


def _find_command(
    text: str, entities: tuple[MessageEntity, ...], me: User, start: int
) -> tuple[bool, Command | None]:
    """Return whether the text is a command for another bot, and the command for this bot.

    The command must begin at `start`. ``/cmd@name`` is a command for the bot `name`. After a
    mention of this bot, a command for another bot is ordinary text.
    """
    for entity in entities:
        if entity.type != MessageEntity.BOT_COMMAND or entity.offset != start:
            continue
        command = _slice_utf16(text, entity.offset, entity.length)
        name, _, target = command[1:].partition("@")
        if target and target.lower() != (me.username or "").lower():
            return start == 0, None
        arguments = _slice_utf16(text, entity.offset + entity.length)
        return False, Command(name=name.lower(), arguments=_replace_surrogates(arguments).strip())
    return False, None


def _text_of(message: Message) -> tuple[str, tuple[MessageEntity, ...]]:
    """Return the text or caption with its entities. Messages without text are described."""
    if message.text:
        return message.text, message.entities
    if message.caption:
        return message.caption, message.caption_entities
    if message.venue:
        venue = message.venue
        point = f"({venue.location.latitude}, {venue.location.longitude})"
        content = insertion(f"{venue.title}, {venue.address} {point}")
        return word_clause("inserted_place", content=content), ()
    if message.location:
        point = f"{message.location.latitude}, {message.location.longitude}"
        return word_clause("inserted_location", content=insertion(point)), ()
    if message.contact:
        contact = message.contact
        name = " ".join(part for part in (contact.first_name, contact.last_name) if part)
        content = insertion(f"{name}, {contact.phone_number}")
        return word_clause("inserted_contact", content=content), ()
    # Imported here because such messages are rare.
    from adapters.telegram.special_messages import describe_special_message

    return describe_special_message(message), ()


def _attachments_of(message: Message) -> tuple[Attachment, ...]:
    """Return the file of a message in a tuple, or (). `reference` is Telegram's id of the file."""
    # A live photo has its still picture as `photo`.
    attachment: Any = message.photo or message.effective_attachment
    # A photo comes in several sizes, the largest last.
    file = attachment[-1] if isinstance(attachment, Sequence) else attachment
    file_type = _FILE_TYPES.get(type(file))
    if file_type is None:
        return ()
    name = file_type.default_name
    for field in ("file_name", "title", "emoji"):
        value = getattr(file, field, None)
        if value:
            name = value
            break
    if isinstance(file, telegram.Sticker) and file.set_name:
        name = f"{name} (set {file.set_name})"
    return (
        Attachment(
            kind=file_type.kind,
            name=_replace_surrogates(name),
            mime=getattr(file, "mime_type", None) or file_type.default_mime,
            size_bytes=file.file_size,
            reference=file.file_id,
        ),
    )


def _list_replied_files(target: Message | None, me: User) -> tuple[Attachment, ...]:
    """Return the file of the group message that a message replies to.

    The bot may never have received that message. A voice message is left out, because its words
    aren't those of the person who asks.
    """
    if target is None or target.chat.type == Chat.PRIVATE or target.from_user == me:
        return ()
    return tuple(file for file in _attachments_of(target) if file.kind in _ASKABLE_KINDS)


def _slice_utf16(text: str, start: int, length: int | None = None) -> str:
    """Return the part of the text that begins at `start`, in UTF-16 units.

    Without a `length`, the part extends to the end of the text.
    """
    units = text.encode("utf-16-le", "surrogatepass")[2 * start :]
    if length is not None:
        units = units[: 2 * length]
    return units.decode("utf-16-le", "surrogatepass")


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which JSON can contain but UTF-8 can't, with U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
