"""Turns a Telegram update into an `Inbound`, or None where nothing is said to us. Pure: no network, no clock.

Decides what kind of chat it is (scope, links), who speaks, whether we are meant, and what a command is. Offsets of
entities are UTF-16 code units, as Telegram counts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from core.markup.markdown import utf16_length
from core.types import Address, Attachment, Command, Inbound, Json, Origin, Scope, Sender

PLATFORM = "telegram"
NOBODIES = frozenset({1087968824, 136817688, 777000})
"""Anonymous group admins, posts in the name of a channel, Telegram itself."""
_FILES: dict[str, tuple[str, str, str | None]] = {
    "animation": ("animation", "animation.mp4", None),
    "audio": ("audio", "audio", None),
    "document": ("document", "document", None),
    "photo": ("photo", "photo.jpg", "image/jpeg"),
    "sticker": ("sticker", "sticker", None),
    "video": ("video", "video.mp4", None),
    "video_note": ("video", "video.mp4", "video/mp4"),
    "voice": ("voice", "voice.ogg", "audio/ogg"),
}
"""By the field of the message: kind, and name and type where Telegram says none. An animation is a document too."""
_FIRST_SUPERGROUP = 10**12
"""The Bot API's id of a supergroup is its own number and this, negative; links have the number."""


def normalize(update: Json, me: Json, now: datetime) -> Inbound | None:
    """What an update says to us. `me` is the bot; `now` is the time of a press under a message that is gone. Raises
    whatever comes of an update that is not as documented."""
    if query := update.get("callback_query"):
        return _pressed(query, now)
    is_edit = "edited_message" in update
    message = update.get("edited_message" if is_edit else "message")
    if message is None or message["chat"]["type"] not in ("private", "group", "supergroup"):
        return None
    text, entities = _text(message)
    attachments = _attachments(message)
    if not text and not attachments:
        return None
    is_direct = message["chat"]["type"] == "private"
    answered = _answered(message)
    lead = _lead(text, entities, me)
    is_other, command = _command(text, entities, me, lead)
    is_to_us = command is not None or _is_meant(text, entities, answered, me)
    sender = _sender(message)
    address = _address(message)
    return Inbound(
        kind="edit" if is_edit else "message",
        address=address,
        scope=_scope(message["chat"], sender),
        sender=sender,
        text=_clean(_cut(text, lead, None)) or _clean(text),
        message_id=str(message["message_id"]),
        # For an edit the moment of the edit: it distinguishes one edit of a message from the next.
        sent_at=_shown_at(message) if is_edit else datetime.fromtimestamp(message["date"], UTC),
        is_direct=is_direct,
        is_addressed=is_direct or (is_to_us and not is_other),
        command=None if is_edit else command,
        reply_to=str(answered["message_id"]) if answered else None,
        attachments=attachments,
        origin=_origin(message),
        link_base=_link_base(message["chat"], address),
        group_id=message.get("media_group_id"),
    )


def _shown_at(message: Json) -> datetime:
    return datetime.fromtimestamp(message.get("edit_date") or message["date"], UTC)


def moved(update: Json) -> tuple[str, str] | None:
    """(old, new) chat id when the update says that a group became a supergroup."""
    message = update.get("message") or {}
    old, new = message.get("migrate_from_chat_id"), message.get("migrate_to_chat_id")
    return (str(old or message["chat"]["id"]), str(new or message["chat"]["id"])) if old or new else None


def _pressed(query: Json, now: datetime) -> Inbound | None:
    """A pressed button. A press carries no time: it gets that of the message as it was shown, which is the same when it
    is delivered again. That message may be too old for Telegram to show (it has no date); its chat is always known."""
    message = query.get("message")
    if message is None or not query.get("data") or message["chat"]["type"] == "channel":
        return None
    sender = _user(query["from"])
    return Inbound(
        kind="action",
        address=_address(message),
        scope=_scope(message["chat"], sender),
        sender=sender,
        text=_clean(query["data"]),
        message_id=query["id"],
        sent_at=_shown_at(message) if message["date"] else now,
        is_direct=message["chat"]["type"] == "private",
        reply_to=str(message["message_id"]),
    )


def _address(message: Json) -> Address:
    """Replies in any supergroup carry a thread id too; only topics are places of their own. General has none."""
    thread_id = message.get("message_thread_id") if message.get("is_topic_message") else None
    chat_id = str(message["chat"]["id"])
    return Address(platform=PLATFORM, chat_id=chat_id, thread_id=None if thread_id is None else str(thread_id))


def _link_base(chat: Json, address: Address) -> str | None:
    """Only supergroups have links to their messages: with a public name for everybody, without for the members."""
    if chat["type"] != "supergroup":
        return None
    name = chat.get("username") or f"c/{-chat['id'] - _FIRST_SUPERGROUP}"
    topic = f"{address.thread_id}/" if address.thread_id is not None else ""
    return f"https://t.me/{name}/{topic}"


def _scope(chat: Json, sender: Sender) -> Scope:
    if chat["type"] == "private":
        return Scope.account(PLATFORM, sender.id)
    return Scope.room(PLATFORM, str(chat["id"]))


def _sender(message: Json) -> Sender:
    chat = message.get("sender_chat")
    if chat is None and "from" in message:
        return _user(message["from"])
    return Sender(id=str((chat or message["chat"])["id"]), name=_clean((chat or {}).get("title", "")), is_nobody=True)


def _user(user: Json) -> Sender:
    is_nobody = user["is_bot"] or user["id"] in NOBODIES
    return Sender(id=str(user["id"]), name=_clean(_full_name(user)), is_nobody=is_nobody)


def _full_name(person: Json) -> str:
    return f"{person['first_name']} {person.get('last_name', '')}".rstrip()


def _origin(message: Json) -> Origin:
    if "forward_origin" in message:
        return "forwarded"
    return "via_bot" if "via_bot" in message else "typed"


def _answered(message: Json) -> Json | None:
    """The message that this one answers; what stands in a topic formally answers the notice that opened the topic."""
    answered: Json | None = message.get("reply_to_message")
    return None if answered is None or "forum_topic_created" in answered else answered


def _is_meant(text: str, entities: Sequence[Json], answered: Json | None, me: Json) -> bool:
    is_reply = answered is not None and answered.get("from", {}).get("id") == me["id"]
    return is_reply or any(_is_mention(text, entity, me) for entity in entities)


def _is_mention(text: str, entity: Json, me: Json) -> bool:
    if entity["type"] == "text_mention":
        return bool(entity["user"]["id"] == me["id"])
    return entity["type"] == "mention" and _entity_text(text, entity).lower() == f"@{me['username']}".lower()


def _lead(text: str, entities: Sequence[Json], me: Json) -> int:
    """Where the text begins once a mention of us at its start is left out, in UTF-16 units."""
    for entity in entities:
        if entity["offset"] == 0 and _is_mention(text, entity, me):
            rest = _cut(text, entity["length"], None)
            return int(entity["length"]) + utf16_length(rest) - utf16_length(rest.lstrip(" \t\n,:;"))
    return 0


def _command(text: str, entities: Sequence[Json], me: Json, lead: int) -> tuple[bool, Command | None]:
    """(whether it commands another bot, the command for us). ``/cmd@name`` says for whom it is."""
    for entity in entities:
        if entity["type"] == "bot_command" and entity["offset"] == lead:
            name, _, target = _entity_text(text, entity)[1:].partition("@")
            if target and target.lower() != me["username"].lower():
                return lead == 0, None
            arguments = _cut(text, entity["offset"] + entity["length"], None)
            return False, Command(name=name.lower(), arguments=_clean(arguments).strip())
    return False, None


def _text(message: Json) -> tuple[str, Sequence[Json]]:
    """What is written: text, caption, or a place or contact put into words."""
    match message:
        case {"text": text}:
            return text, message.get("entities", ())
        case {"caption": caption}:
            return caption, message.get("caption_entities", ())
        case {"venue": venue}:
            place = venue["location"]
            return f"{venue['title']}, {venue['address']} ({place['latitude']}, {place['longitude']})", ()
        case {"location": place}:
            return f"Location: {place['latitude']}, {place['longitude']}", ()
        case {"contact": contact}:
            return f"Contact: {_full_name(contact)}, {contact['phone_number']}", ()
    return "", ()


def _attachments(message: Json) -> tuple[Attachment, ...]:
    """The file by Telegram's id, under which it can be fetched. A photo comes in sizes, the largest last."""
    field = next((field for field in _FILES if field in message), None)
    if field is None:
        return ()
    kind, name, mime = _FILES[field]
    file = message[field][-1] if field == "photo" else message[field]
    attachment = Attachment(
        kind=kind,
        name=_clean(file.get("file_name") or file.get("title") or file.get("emoji") or name),
        mime=file.get("mime_type") or mime,
        size_bytes=file.get("file_size"),
        reference=file["file_id"],
    )
    return (attachment,)


def _entity_text(text: str, entity: Json) -> str:
    return _cut(text, entity["offset"], entity["offset"] + entity["length"])


def _cut(text: str, start: int, end: int | None) -> str:
    """A part of a text by UTF-16 units."""
    units = text.encode("utf-16-le", "surrogatepass")
    return units[2 * start : None if end is None else 2 * end].decode("utf-16-le", "surrogatepass")


def _clean(text: str) -> str:
    """Half characters, which JSON can carry and no file can hold, become the replacement character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
