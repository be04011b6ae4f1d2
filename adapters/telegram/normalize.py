"""Turns a Telegram update into an `Inbound`, or None where nothing is said to us. Pure: no network, no clock.

Decides what kind of chat it is (scope, links), who speaks, whether we are meant, and what a command is. Offsets of
entities are UTF-16 code units, as Telegram counts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

import telegram
from telegram import (
    CallbackQuery,
    Chat,
    MaybeInaccessibleMessage,
    Message,
    MessageEntity,
    MessageOrigin,
    MessageOriginUser,
    Update,
    User,
)

from core.markup.markdown import utf16_length
from core.types import Address, Attachment, Command, Inbound, Origin, Quoted, Scope, Sender

PLATFORM = "telegram"
NOBODIES = frozenset({1087968824, 136817688, 777000})
"""Anonymous group admins, posts in the name of a channel, Telegram itself."""
_FILES: dict[type, tuple[str, str, str | None]] = {
    telegram.PhotoSize: ("photo", "photo.jpg", "image/jpeg"),
    telegram.Animation: ("animation", "animation.mp4", None),
    telegram.Document: ("document", "document", None),
    telegram.Voice: ("voice", "voice.ogg", "audio/ogg"),
    telegram.Audio: ("audio", "audio", None),
    telegram.Video: ("video", "video.mp4", None),
    telegram.VideoNote: ("video", "video.mp4", "video/mp4"),
    telegram.Sticker: ("sticker", "sticker", None),
}
"""Kind, and name and type where Telegram says none."""
_FIRST_SUPERGROUP = 10**12
"""The Bot API's id of a supergroup is its own number and this, negative; links have the number."""


def normalize(update: Update, me: User, now: datetime) -> Inbound | None:
    """What an update says to us. `me` is the bot; `now` is the time of a press under a message that is gone."""
    if update.callback_query:
        return _pressed(update.callback_query, now)
    message = update.message or update.edited_message
    if message is None or message.chat.type not in (Chat.PRIVATE, Chat.GROUP, Chat.SUPERGROUP):
        return None
    text, entities = _text(message)
    attachments = _attachments(message)
    if not text and not attachments:
        return None
    is_direct = message.chat.type == Chat.PRIVATE
    answered = _answered(message)
    lead = _lead(text, entities, me)
    is_other, command = _command(text, entities, me, lead)
    is_to_us = command is not None or _is_meant(text, entities, answered, me)
    is_edit = update.edited_message is not None
    sender = _sender(message)
    address = _address(message)
    return Inbound(
        kind="edit" if is_edit else "message",
        address=address,
        scope=_scope(message.chat, sender),
        sender=sender,
        text=_clean(_cut(text, lead)) or _clean(text),
        message_id=str(message.message_id),
        # For an edit the moment of the edit: it distinguishes one edit of a message from the next.
        sent_at=message.edit_date or message.date,
        is_direct=is_direct,
        is_addressed=is_direct or (is_to_us and not is_other),
        command=None if is_edit else command,
        reply_to=str(answered.message_id) if answered else None,
        quoted=_quoted(message, answered, me),
        attachments=attachments,
        origin=_origin(message),
        link_base=_link_base(message.chat, address),
        group_id=message.media_group_id,
    )


def moved(update: Update) -> tuple[str, str] | None:
    """(old, new) chat id when the update says that a group became a supergroup."""
    message = update.message
    if message is None or not (message.migrate_to_chat_id or message.migrate_from_chat_id):
        return None
    return str(message.migrate_from_chat_id or message.chat.id), str(message.migrate_to_chat_id or message.chat.id)


def _pressed(query: CallbackQuery, now: datetime) -> Inbound | None:
    """A pressed button. A press carries no time: it gets that of the message as it was shown, which is the same when it
    is delivered again. That message may be too old for Telegram to show; its chat is always known."""
    message = query.message
    if message is None or not query.data or message.chat.type == Chat.CHANNEL:
        return None
    sender = _user(query.from_user)
    return Inbound(
        kind="action",
        address=_address(message),
        scope=_scope(message.chat, sender),
        sender=sender,
        text=_clean(query.data),
        message_id=query.id,
        sent_at=message.edit_date or message.date if isinstance(message, Message) and message.is_accessible else now,
        is_direct=message.chat.type == Chat.PRIVATE,
        reply_to=str(message.message_id),
    )


def _address(message: MaybeInaccessibleMessage) -> Address:
    """Replies in any supergroup carry a thread id too; only topics are places of their own. General has none."""
    thread_id = message.message_thread_id if isinstance(message, Message) and message.is_topic_message else None
    chat_id = str(message.chat.id)
    return Address(platform=PLATFORM, chat_id=chat_id, thread_id=None if thread_id is None else str(thread_id))


def _link_base(chat: Chat, address: Address) -> str | None:
    """Only supergroups have links to their messages: with a public name for everybody, without for the members."""
    if chat.type != Chat.SUPERGROUP:
        return None
    name = chat.username or f"c/{-chat.id - _FIRST_SUPERGROUP}"
    topic = f"{address.thread_id}/" if address.thread_id is not None else ""
    return f"https://t.me/{name}/{topic}"


def _scope(chat: Chat, sender: Sender) -> Scope:
    if chat.type == Chat.PRIVATE:
        return Scope.account(PLATFORM, sender.id)
    return Scope.room(PLATFORM, str(chat.id))


def _sender(message: Message) -> Sender:
    chat = message.sender_chat
    if chat is None and message.from_user is not None:
        return _user(message.from_user)
    name = _clean(chat.effective_name or "") if chat else ""
    return Sender(id=str((chat or message.chat).id), name=name, is_nobody=True)


def _user(user: User) -> Sender:
    return Sender(id=str(user.id), name=_clean(user.full_name), is_nobody=user.is_bot or user.id in NOBODIES)


def _origin(message: Message) -> Origin:
    return "forwarded" if message.forward_origin else "via_bot" if message.via_bot else "typed"


def _answered(message: Message) -> Message | None:
    """The message that this one answers; what stands in a topic formally answers the notice that opened the topic."""
    answered = message.reply_to_message
    return None if answered is None or answered.forum_topic_created else answered


def _quoted(message: Message, answered: Message | None, me: User) -> Quoted | None:
    """What is forwarded, answered, or answered in another chat, of which only the part that was picked out is told."""
    if message.forward_origin:
        return _by(message.forward_origin, me, "forward")
    part = _clean(message.quote.text) if message.quote else ""
    kind: Literal["reply", "part"] = "part" if part else "reply"
    if answered is None:
        elsewhere = message.external_reply
        return replace(_by(elsewhere.origin, me, kind), text=part) if elsewhere else None
    text = part or _clean(_text(answered)[0]) or "".join(f"({file.kind})" for file in _attachments(answered))
    if answered.forward_origin:
        return replace(_by(answered.forward_origin, me, kind), text=text)
    sender, is_ours = _sender(answered), answered.from_user == me
    return Quoted(kind=kind, text=text, name=sender.name, user_id=sender.id, at=answered.date, is_ours=is_ours)


def _by(origin: MessageOrigin, me: User, kind: Literal["reply", "part", "forward"]) -> Quoted:
    """Who said something first: a person, one who hides who they are, a group or a channel."""
    if isinstance(origin, MessageOriginUser):
        sender = _user(origin.sender_user)
        is_ours = origin.sender_user == me
        return Quoted(kind=kind, name=sender.name, user_id=sender.id, at=origin.date, is_ours=is_ours)
    chat = getattr(origin, "sender_chat", None) or getattr(origin, "chat", None)
    name = chat.effective_name if chat else getattr(origin, "sender_user_name", "")
    return Quoted(kind=kind, name=_clean(name or ""), at=origin.date)


def _is_meant(text: str, entities: tuple[MessageEntity, ...], answered: Message | None, me: User) -> bool:
    is_reply = answered is not None and answered.from_user == me
    return is_reply or any(_is_mention(text, entity, me) for entity in entities)


def _is_mention(text: str, entity: MessageEntity, me: User) -> bool:
    if entity.type == MessageEntity.TEXT_MENTION:
        return entity.user == me
    name = _cut(text, entity.offset, entity.length)
    return entity.type == MessageEntity.MENTION and name.lower() == f"@{me.username}".lower()


def _lead(text: str, entities: tuple[MessageEntity, ...], me: User) -> int:
    """Where the text begins once a mention of us at its start is left out, in UTF-16 units."""
    for entity in entities:
        if entity.offset == 0 and _is_mention(text, entity, me):
            rest = _cut(text, entity.length)
            return entity.length + utf16_length(rest) - utf16_length(rest.lstrip(" \t\n,:;"))
    return 0


def _command(text: str, entities: tuple[MessageEntity, ...], me: User, lead: int) -> tuple[bool, Command | None]:
    """(whether it commands another bot, the command for us). ``/cmd@name`` says for whom it is."""
    for entity in entities:
        if entity.type == MessageEntity.BOT_COMMAND and entity.offset == lead:
            name, _, target = _cut(text, entity.offset, entity.length)[1:].partition("@")
            if target and target.lower() != (me.username or "").lower():
                return lead == 0, None
            arguments = _cut(text, entity.offset + entity.length)
            return False, Command(name=name.lower(), arguments=_clean(arguments).strip())
    return False, None


def _text(message: Message) -> tuple[str, tuple[MessageEntity, ...]]:
    """What is written: text, caption, or a place or contact put into words."""
    if message.text:
        return message.text, message.entities
    if message.caption:
        return message.caption, message.caption_entities
    if message.venue:
        place = message.venue.location
        return f"{message.venue.title}, {message.venue.address} ({place.latitude}, {place.longitude})", ()
    if message.location:
        return f"Location: {message.location.latitude}, {message.location.longitude}", ()
    if message.contact:
        contact = message.contact
        name = " ".join(part for part in (contact.first_name, contact.last_name) if part)
        return f"Contact: {name}, {contact.phone_number}", ()
    return "", ()


def _attachments(message: Message) -> tuple[Attachment, ...]:
    """The file by Telegram's id, under which it can be fetched. A photo comes in sizes, the largest last."""
    found: Any = message.effective_attachment
    file = found[-1] if isinstance(found, Sequence) else found
    if type(file) not in _FILES:
        return ()
    kind, name, mime = _FILES[type(file)]
    said = [getattr(file, field, None) for field in ("file_name", "title", "emoji")]
    named, typed = _clean(next(filter(None, said), name)), getattr(file, "mime_type", None) or mime
    return (Attachment(kind=kind, name=named, mime=typed, size_bytes=file.file_size, reference=file.file_id),)


def _cut(text: str, start: int, length: int | None = None) -> str:
    """A part of a text by UTF-16 units, up to its end without a `length`."""
    units = text.encode("utf-16-le", "surrogatepass")[2 * start :]
    return units[: None if length is None else 2 * length].decode("utf-16-le", "surrogatepass")


def _clean(text: str) -> str:
    """Half characters, which JSON can carry and no file can hold, become the replacement character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
