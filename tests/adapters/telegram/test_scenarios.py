"""From the raw JSON of an update to the raw requests of its answer, one row a scenario.

The real library parses the updates and makes the requests. The server checks every update and every
request against the published description of the Bot API, if that is beside the checkout.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from adapters.telegram.adapter import Telegram
from core.ports import Reply
from core.store.mailbox import Inbox
from core.store.sqlite.database import Database
from core.types import Answer, Button, Command, File, Inbound
from tests.fixtures.bot_api import BotApi
from tests.fixtures.clock import SteadyClock
from tests.fixtures.delivery_record import ListRecord
from tests.fixtures.echo_router import EchoRouter

pytestmark = pytest.mark.slow

Json = dict[str, Any]

DATE = 1795176000
ANA: Json = {"id": 42, "is_bot": False, "first_name": "Ana", "language_code": "en"}
BOB: Json = {"id": 43, "is_bot": False, "first_name": "Bob"}
US: Json = {
    "id": 110201543,
    "is_bot": True,
    "first_name": "mneme_bot",
    "username": "mneme_bot",
}
OTHER_BOT: Json = {"id": 99, "is_bot": True, "first_name": "Weather", "username": "weather_bot"}
ADMIN: Json = {"id": 1087968824, "is_bot": True, "first_name": "Group"}
DIRECT: Json = {"id": 42, "type": "private", "first_name": "Ana"}
GROUP: Json = {"id": -200, "type": "group", "title": "Family"}
FORUM: Json = {"id": -1001234567890, "type": "supergroup", "title": "Flat", "is_forum": True}
CHANNEL: Json = {"id": -1009, "type": "channel", "title": "News"}
SIZES = [
    {"file_id": "small", "file_unique_id": "s", "width": 90, "height": 60},
    {"file_id": "large", "file_unique_id": "l", "width": 900, "height": 600, "file_size": 9000},
]
FILE: Json = {"file_id": "f1", "file_unique_id": "u1"}


def message(chat: Json = DIRECT, sender: Json = ANA, **fields: Any) -> Json:
    """The JSON of a message. A text gets the entities of commands and mentions."""
    raw: Json = {"message_id": 700, "date": DATE, "chat": chat, "from": sender, **fields}
    text = fields.get("text", "")
    found: list[Json] = []
    position = 0
    for word in text.split(" "):
        if word.startswith("/") and (position == 0 or found):
            found.append({"type": "bot_command", "offset": position, "length": len(word)})
        elif word.startswith("@"):
            name = word.rstrip(",:")
            found.append({"type": "mention", "offset": position, "length": len(name)})
        position += len(word) + 1
    if found and "entities" not in fields:
        raw["entities"] = found
    return raw


def said(text: str, chat: Json = DIRECT, sender: Json = ANA, **fields: Any) -> Json:
    return {"message": message(chat, sender, text=text, **fields)}


def sent(chat: Json = DIRECT, sender: Json = ANA, **fields: Any) -> Json:
    return {"message": message(chat, sender, **fields)}


def of(sender: Json, text: str, chat: Json = GROUP, **fields: Any) -> Json:
    """An earlier message that another one replies to."""
    return {
        "message_id": 600,
        "date": DATE - 60,
        "chat": chat,
        "from": sender,
        "text": text,
        **fields,
    }


def press(**fields: Any) -> Json:
    """A press on a button of a message of ours."""
    button = {
        "id": "9",
        "from": ANA,
        "chat_instance": "1",
        "data": "act-1",
        "message": of(US, "Which?", DIRECT),
    }
    return {"callback_query": drop_none({**button, **fields})}


def drop_none(values: Json) -> Json:
    return {key: value for key, value in values.items() if value is not None}


def reaction(*emojis: str, chat: Json = DIRECT, **fields: Any) -> Json:
    change = {
        "chat": chat,
        "message_id": 600,
        "date": DATE,
        "user": ANA,
        "old_reaction": [],
        "new_reaction": [{"type": "emoji", "emoji": emoji} for emoji in emojis],
    }
    return {"message_reaction": drop_none({**change, **fields})}


def origin(kind: str, **fields: Any) -> Json:
    return {"type": kind, "date": DATE - 600, **fields}


USER = origin("user", sender_user=BOB)
"""Where a forwarded message comes from."""


PICTURE = File(name="a.jpg", content=b"\xff\xd8\xff picture", mime="image/jpeg")
VIDEO = File(name="a.mp4", content=b"mp4", mime="video/mp4")
SONG = File(name="a.mp3", content=b"mp3", mime="audio/mpeg")
TABLE = File(name="a.csv", content=b"1,2", mime="text/csv")


# --- What people send. The answer echoes the event, with a button: see `describe_event`. ---

INCOMING: Mapping[str, tuple[Json, list[str]]] = {
    "text": (
        said("hello"),
        ["sendMessage 42 'message: hello' italic 0+7 [Again]"],
    ),
    "text with emoji and right-to-left": (
        said("👋 שלום"),
        ["sendMessage 42 'message: 👋 שלום' italic 0+7 [Again]"],
    ),
    "text with half of a character": (
        said("half \ud83d"),
        ["sendMessage 42 'message: half �' italic 0+7 [Again]"],
    ),
    "command": (
        said("/help"),
        ["sendMessage 42 'message: /help' italic 0+7 [Again]"],
    ),
    "command with arguments": (
        said("/recall ferry"),
        ["sendMessage 42 'message: /recall ferry' italic 0+7 [Again]"],
    ),
    "command for us by name": (
        said("/help@mneme_bot", GROUP),
        ["sendMessage -200 to 700 'message: /help@mneme_bot' italic 0+7 [Again]"],
    ),
    "command for another bot": (
        said("/help@weather_bot", GROUP),
        [],
    ),
    "command for another bot in a direct chat": (
        said("/help@weather_bot"),
        ["sendMessage 42 'message: /help@weather_bot' italic 0+7 [Again]"],
    ),
    "group talk": (
        said("nice weather", GROUP),
        [],
    ),
    "mention in front": (
        said("@mneme_bot when?", GROUP),
        ["sendMessage -200 to 700 'message: when?' italic 0+7 [Again]"],
    ),
    "mention in another case": (
        said("@Mneme_Bot, when?", GROUP),
        ["sendMessage -200 to 700 'message: when?' italic 0+7 [Again]"],
    ),
    "mention in the middle": (
        said("so @mneme_bot when?", GROUP),
        ["sendMessage -200 to 700 'message: so @mneme_bot when?' italic 0+7 [Again]"],
    ),
    "mention of another bot": (
        said("@weather_bot when?", GROUP),
        [],
    ),
    "only a mention": (
        said("@mneme_bot", GROUP),
        ["sendMessage -200 to 700 'message:' italic 0+7 [Again]"],
    ),
    "mention without a name": (
        said(
            "Mneme when?",
            GROUP,
            entities=[{"type": "text_mention", "offset": 0, "length": 5, "user": US}],
        ),
        ["sendMessage -200 to 700 'message: when?' italic 0+7 [Again]"],
    ),
    "person mentioned without a name": (
        said("ask Bob", entities=[{"type": "text_mention", "offset": 4, "length": 3, "user": BOB}]),
        ["sendMessage 42 'message: ask @Bob' italic 0+7 [Again]"],
    ),
    "mention and command": (
        said("@mneme_bot /help", GROUP),
        ["sendMessage -200 to 700 'message: /help' italic 0+7 [Again]"],
    ),
    "reply to us": (
        said("and then?", GROUP, reply_to_message=of(US, "At nine.")),
        [
            "sendMessage -200 to 700 'message: and then? <reply of Mneme: At nine.>' italic 0+7 [Again]"
        ],
    ),
    "reply to somebody else": (
        said("and then?", GROUP, reply_to_message=of(BOB, "At nine.")),
        [],
    ),
    "reply to a part of ours": (
        said(
            "why?",
            GROUP,
            reply_to_message=of(US, "At nine."),
            quote={"text": "nine", "position": 3},
        ),
        ["sendMessage -200 to 700 'message: why? <part of Mneme: nine>' italic 0+7 [Again]"],
    ),
    "reply to a message elsewhere": (
        said(
            "what is this?",
            external_reply={"origin": USER},
            quote={"text": "north quay", "position": 0},
        ),
        ["sendMessage 42 'message: what is this? <part of Bob: north quay>' italic 0+7 [Again]"],
    ),
    "link with words": (
        said(
            "see this",
            entities=[
                {"type": "text_link", "offset": 4, "length": 4, "url": "https://example.org/"}
            ],
        ),
        ["sendMessage 42 'message: see this {https://example.org/}' italic 0+7 [Again]"],
    ),
    "formatted text": (
        said("bold", entities=[{"type": "bold", "offset": 0, "length": 4}]),
        ["sendMessage 42 'message: bold' italic 0+7 [Again]"],
    ),
    "forum topic": (
        said("@mneme_bot when?", FORUM, message_thread_id=5, is_topic_message=True),
        ["sendMessage -1001234567890 topic 5 to 700 'message: when?' italic 0+7 [Again]"],
    ),
    "General topic": (
        said("@mneme_bot when?", FORUM),
        ["sendMessage -1001234567890 to 700 'message: when?' italic 0+7 [Again]"],
    ),
    "thread of replies that is no topic": (
        said(
            "@mneme_bot when?", FORUM, message_thread_id=600, reply_to_message=of(BOB, "x", FORUM)
        ),
        ["sendMessage -1001234567890 to 700 'message: when? <reply of Bob: x>' italic 0+7 [Again]"],
    ),
    "first message of a topic": (
        said(
            "/help@mneme_bot",
            FORUM,
            message_thread_id=5,
            is_topic_message=True,
            reply_to_message=of(
                BOB, "", FORUM, forum_topic_created={"name": "Plans", "icon_color": 1}
            ),
        ),
        ["sendMessage -1001234567890 topic 5 to 700 'message: /help@mneme_bot' italic 0+7 [Again]"],
    ),
    "topic of a direct chat": (
        said("hello", message_thread_id=44, is_topic_message=True),
        ["sendMessage 42 topic 44 'message: hello' italic 0+7 [Again]"],
    ),
    "forward of a person": (
        said("At nine.", forward_origin=USER),
        ["sendMessage 42 'message: (forwarded) At nine. <forward of Bob: >' italic 0+7 [Again]"],
    ),
    "forward of a hidden person": (
        said("At nine.", forward_origin=origin("hidden_user", sender_user_name="Cleo")),
        ["sendMessage 42 'message: (forwarded) At nine. <forward of Cleo: >' italic 0+7 [Again]"],
    ),
    "forward of a channel": (
        said("At nine.", forward_origin=origin("channel", chat=CHANNEL, message_id=3)),
        ["sendMessage 42 'message: (forwarded) At nine. <forward of News: >' italic 0+7 [Again]"],
    ),
    "forward of a group": (
        said("At nine.", forward_origin=origin("chat", sender_chat=GROUP)),
        ["sendMessage 42 'message: (forwarded) At nine. <forward of Family: >' italic 0+7 [Again]"],
    ),
    "sent through a bot": (
        said("Sunny.", via_bot=OTHER_BOT),
        ["sendMessage 42 'message: (via_bot) Sunny.' italic 0+7 [Again]"],
    ),
    "photo": (
        sent(photo=SIZES),
        ["sendMessage 42 'message: <photo photo.jpg>' italic 0+7 [Again]"],
    ),
    "photo with a caption": (
        sent(photo=SIZES, caption="the quay"),
        ["sendMessage 42 'message: the quay <photo photo.jpg>' italic 0+7 [Again]"],
    ),
    "photo of an album": (
        sent(photo=SIZES, media_group_id="77"),
        ["sendMessage 42 'message: <photo photo.jpg>' italic 0+7 [Again]"],
    ),
    "photo for us in a group": (
        sent(
            GROUP,
            photo=SIZES,
            caption="@mneme_bot what is it?",
            caption_entities=[{"type": "mention", "offset": 0, "length": 10}],
        ),
        ["sendMessage -200 to 700 'message: what is it? <photo photo.jpg>' italic 0+7 [Again]"],
    ),
    "photo in a group": (
        sent(GROUP, photo=SIZES, caption="the quay"),
        [],
    ),
    "document": (
        sent(
            document={**FILE, "file_name": "a.pdf", "mime_type": "application/pdf", "file_size": 9}
        ),
        ["sendMessage 42 'message: <document a.pdf>' italic 0+7 [Again]"],
    ),
    "voice note": (
        sent(voice={**FILE, "duration": 3, "mime_type": "audio/ogg"}),
        ["sendMessage 42 'message: <voice voice.ogg>' italic 0+7 [Again]"],
    ),
    "audio": (
        sent(audio={**FILE, "duration": 3, "title": "Song"}),
        ["sendMessage 42 'message: <audio Song>' italic 0+7 [Again]"],
    ),
    "video": (
        sent(video={**FILE, "width": 9, "height": 9, "duration": 3}),
        ["sendMessage 42 'message: <video video.mp4>' italic 0+7 [Again]"],
    ),
    "video note": (
        sent(video_note={**FILE, "length": 9, "duration": 3}),
        ["sendMessage 42 'message: <video note video.mp4>' italic 0+7 [Again]"],
    ),
    "animation": (
        sent(animation={**FILE, "width": 9, "height": 9, "duration": 3}),
        ["sendMessage 42 'message: <animation animation.mp4>' italic 0+7 [Again]"],
    ),
    "sticker": (
        sent(
            sticker={
                **FILE,
                "type": "regular",
                "width": 9,
                "height": 9,
                "is_animated": False,
                "is_video": False,
                "emoji": "🙂",
                "set_name": "Cats",
            }
        ),
        ["sendMessage 42 'message: <sticker 🙂 (set Cats)>' italic 0+7 [Again]"],
    ),
    "location": (
        sent(location={"latitude": 41.5, "longitude": -8.6}),
        ["sendMessage 42 'message: Location: {41.5, -8.6}' italic 0+7 [Again]"],
    ),
    "venue": (
        sent(
            venue={
                "location": {"latitude": 41.5, "longitude": -8.6},
                "title": "Quay",
                "address": "Rua 1",
            }
        ),
        ["sendMessage 42 'message: Place: {Quay, Rua 1 (41.5, -8.6)}' italic 0+7 [Again]"],
    ),
    "contact": (
        sent(contact={"phone_number": "+351", "first_name": "Bob"}),
        ["sendMessage 42 'message: Contact: {Bob, +351}' italic 0+7 [Again]"],
    ),
    "poll": (
        sent(
            poll={
                "id": "5",
                "question": "Boat?",
                "options": [
                    {"persistent_id": "1", "text": "Yes", "voter_count": 1},
                    {"persistent_id": "2", "text": "No", "voter_count": 0},
                ],
                "total_voter_count": 1,
                "is_closed": False,
                "is_anonymous": True,
                "type": "regular",
                "allows_multiple_answers": False,
                "allows_revoting": False,
                "members_only": False,
            }
        ),
        ["sendMessage 42 'message: Poll: {Boat? Options: Yes; No}' italic 0+7 [Again]"],
    ),
    "checklist": (
        sent(
            checklist={
                "title": "Trip",
                "tasks": [
                    {"id": 1, "text": "tickets"},
                    {"id": 2, "text": "bags", "completion_date": 1795176000},
                ],
            }
        ),
        [
            "sendMessage 42 'message: Checklist: {Trip. open: tickets; done: bags}' italic 0+7 [Again]"
        ],
    ),
    "dice": (
        sent(dice={"emoji": "🎲", "value": 4}),
        ["sendMessage 42 'message: Dice: {🎲 4}' italic 0+7 [Again]"],
    ),
    "story": (
        sent(story={"chat": CHANNEL, "id": 3}),
        [
            # The text names the story and has it as JSON.
            "sendMessage 42 133 characters italic 0+7 [Again]"
        ],
    ),
    "start with the payload of a link": (
        said("/start abc"),
        ["sendMessage 42 'message: /start abc' italic 0+7 [Again]"],
    ),
    "command with a line break": (
        said("/remember\nAna", entities=[{"type": "bot_command", "offset": 0, "length": 9}]),
        ["sendMessage 42 'message: /remember\\nAna' italic 0+7 [Again]"],
    ),
    "command in a caption": (
        sent(
            photo=SIZES,
            caption="/remember this",
            caption_entities=[{"type": "bot_command", "offset": 0, "length": 9}],
        ),
        ["sendMessage 42 'message: /remember this <photo photo.jpg>' italic 0+7 [Again]"],
    ),
    "spoiler": (
        said("it sinks", entities=[{"type": "spoiler", "offset": 0, "length": 8}]),
        ["sendMessage 42 'message: it sinks' italic 0+7 [Again]"],
    ),
    "code": (
        said("x = 1", entities=[{"type": "pre", "offset": 0, "length": 5, "language": "python"}]),
        ["sendMessage 42 'message: x = 1' italic 0+7 [Again]"],
    ),
    "hashtag": (
        said("a #boat", entities=[{"type": "hashtag", "offset": 2, "length": 5}]),
        ["sendMessage 42 'message: a #boat' italic 0+7 [Again]"],
    ),
    "live location": (
        sent(location={"latitude": 41.5, "longitude": -8.6, "live_period": 900}),
        ["sendMessage 42 'message: Location: {41.5, -8.6}' italic 0+7 [Again]"],
    ),
    "reply to us with a photo": (
        sent(GROUP, photo=SIZES, reply_to_message=of(US, "At nine.")),
        [
            "sendMessage -200 to 700 'message: <reply of Mneme: At nine.> <photo photo.jpg>' italic 0+7 [Again]"
        ],
    ),
    "video in a group": (
        sent(GROUP, video={**FILE, "width": 9, "height": 9, "duration": 3}),
        [],
    ),
    "mention in a topic by a reply to somebody": (
        said(
            "@mneme_bot when?",
            FORUM,
            message_thread_id=5,
            is_topic_message=True,
            reply_to_message=of(BOB, "x", FORUM),
        ),
        [
            "sendMessage -1001234567890 topic 5 to 700 'message: when? <reply of Bob: x>' italic 0+7 [Again]"
        ],
    ),
    "mention after a line break": (
        said("so\n@mneme_bot", GROUP, entities=[{"type": "mention", "offset": 3, "length": 10}]),
        ["sendMessage -200 to 700 'message: so\\n@mneme_bot' italic 0+7 [Again]"],
    ),
    "edit of a caption": (
        {"edited_message": message(photo=SIZES, caption="the quay", edit_date=DATE + 5)},
        ["sendMessage 42 'edit: the quay <photo photo.jpg>' italic 0+4 [Again]"],
    ),
    "edit in a group": (
        {"edited_message": message(GROUP, text="@mneme_bot when?", edit_date=DATE + 5)},
        ["sendMessage -200 to 700 'edit: when?' italic 0+4 [Again]"],
    ),
    "edit": (
        {"edited_message": message(text="hello again", edit_date=DATE + 5)},
        ["sendMessage 42 'edit: hello again' italic 0+4 [Again]"],
    ),
    "edit of a command": (
        {"edited_message": message(text="/help", edit_date=DATE + 5)},
        ["sendMessage 42 'edit: /help' italic 0+4 [Again]"],
    ),
    "live location that moves": (
        {
            "edited_message": message(
                location={"latitude": 41.6, "longitude": -8.6, "live_period": 900},
                edit_date=DATE + 5,
            )
        },
        [],
    ),
    "press on a button": (
        press(),
        ["answerCallbackQuery 9", "sendMessage 42 'action: act-1' italic 0+6 [Again]"],
    ),
    "press on a button of an old message": (
        press(message={"chat": DIRECT, "message_id": 600, "date": 0}),
        ["answerCallbackQuery 9", "sendMessage 42 'action: act-1' italic 0+6 [Again]"],
    ),
    "press on a game": (
        press(data=None, game_short_name="chess"),
        [],
    ),
    "thumb": (
        reaction("👍"),
        [],
    ),
    "thumb removed": (
        reaction(),
        [],
    ),
    "reaction in the name of a group": (
        reaction("👍", chat=GROUP, user=None, actor_chat=GROUP),
        [],
    ),
    "anonymous admin": (
        said("@mneme_bot when?", GROUP, ADMIN, sender_chat=GROUP),
        [],
    ),
    "another bot": (
        said("@mneme_bot when?", GROUP, OTHER_BOT),
        [],
    ),
    "post of the linked channel": (
        said(
            "@mneme_bot when?",
            GROUP,
            {"id": 777000, "is_bot": False, "first_name": "Telegram"},
            sender_chat=CHANNEL,
            is_automatic_forward=True,
        ),
        [],
    ),
    "post in a channel": (
        {"channel_post": {"message_id": 700, "date": DATE, "chat": CHANNEL, "text": "news"}},
        [],
    ),
    "somebody joins": (
        sent(GROUP, new_chat_members=[BOB]),
        [],
    ),
    "group that moves": (
        sent(GROUP, migrate_to_chat_id=-1007),
        [],
    ),
    "title of a group": (
        sent(GROUP, new_chat_title="Home"),
        [],
    ),
    "inline query": (
        {"inline_query": {"id": "1", "from": ANA, "query": "x", "offset": ""}},
        [],
    ),
    "bot that is removed": (
        {
            "my_chat_member": {
                "chat": GROUP,
                "from": ANA,
                "date": DATE,
                "old_chat_member": {"user": US, "status": "member"},
                "new_chat_member": {"user": US, "status": "left"},
            }
        },
        [],
    ),
    "open poll changes": (
        {
            "poll": {
                "id": "5",
                "question": "Boat?",
                "options": [],
                "total_voter_count": 1,
                "is_closed": False,
                "is_anonymous": True,
                "type": "regular",
                "allows_multiple_answers": False,
                "allows_revoting": False,
                "members_only": False,
            }
        },
        [],
    ),
}

# --- What is answered. The message is "hello" unless the row has another one. ---

OUTGOING: Mapping[str, tuple[Json, Answer, list[str]]] = {
    "plain words": (
        said("hello"),
        Answer(text="At nine."),
        ["sendMessage 42 'At nine.'"],
    ),
    "bold and italic": (
        said("hello"),
        Answer(text="**bold** and *italic*"),
        ["sendMessage 42 'bold and italic' bold 0+4 italic 9+6"],
    ),
    "code": (
        said("hello"),
        Answer(text="type `ls`"),
        ["sendMessage 42 'type ls' code 5+2"],
    ),
    "code block with a language": (
        said("hello"),
        Answer(text="```python\nprint(1)\n```"),
        ["sendMessage 42 'print(1)' pre 0+8 python"],
    ),
    "link": (
        said("hello"),
        Answer(text="[the quay](https://example.org/)"),
        ["sendMessage 42 'the quay' text_link 0+8 https://example.org/"],
    ),
    "list": (
        said("hello"),
        Answer(text="- one\n- two"),
        ["sendMessage 42 '• one\\n• two'"],
    ),
    "numbers": (
        said("hello"),
        Answer(text="1. one\n2. two"),
        ["sendMessage 42 '1. one\\n2. two'"],
    ),
    "heading": (
        said("hello"),
        Answer(text="# Boats\n\nAt nine."),
        ["sendMessage 42 'Boats\\n\\nAt nine.' bold 0+5"],
    ),
    "quotation": (
        said("hello"),
        Answer(text="> at nine"),
        ["sendMessage 42 'at nine' blockquote 0+7"],
    ),
    "table": (
        said("hello"),
        Answer(text="| a | b |\n|---|---|\n| 1 | 2 |"),
        [
            "sendRichMessage 42 <table bordered><tr><th>a</th><th>b</th></tr>"
            "<tr><td>1</td><td>2</td></tr></table>"
        ],
    ),
    "table in a text": (
        said("hello"),
        Answer(text="## Trip\n\n**Two** boats & one `bus`:\n\n|a|b|\n|:-|-:|\n|<1>|2|\n\n> late"),
        [
            "sendRichMessage 42 <h2><b>Trip</b></h2><p><b>Two</b> boats &amp; one "
            '<code>bus</code>:</p><table bordered><tr><th align="left">a</th>'
            '<th align="right">b</th></tr><tr><td align="left">&lt;1&gt;</td>'
            '<td align="right">2</td></tr></table><blockquote><p>late</p></blockquote>'
        ],
    ),
    "table with a button in a forum topic": (
        said("@mneme_bot hello", FORUM, message_thread_id=5, is_topic_message=True),
        Answer(
            text="| a |\n|---|\n| 1 |",
            buttons=(Button(label="Yes", command=Command(name="x"), id="act-0"),),
        ),
        [
            "sendRichMessage -1001234567890 topic 5 to 700 <table bordered><tr><th>a</th></tr>"
            "<tr><td>1</td></tr></table> [Yes]"
        ],
    ),
    "table with more columns than Telegram takes": (
        said("hello"),
        Answer(text="|" + "a|" * 21 + "\n|" + "-|" * 21 + "\n|" + "1|" * 21),
        ["sendMessage 42 245 characters pre 0+245"],
    ),
    "arithmetic and money": (
        said("hello"),
        Answer(text="2*3*4 costs $400 and a_b_c"),
        ["sendMessage 42 '2*3*4 costs $400 and a_b_c'"],
    ),
    "offsets behind an emoji": (
        said("hello"),
        Answer(text="👋 **bold**"),
        ["sendMessage 42 '👋 bold' bold 3+4"],
    ),
    "strike": (
        said("hello"),
        Answer(text="~~gone~~"),
        ["sendMessage 42 'gone' strikethrough 0+4"],
    ),
    "raw tags": (
        said("hello"),
        Answer(text="<b>not bold</b>"),
        ["sendMessage 42 '<b>not bold</b>'"],
    ),
    "text of two messages": (
        said("hello"),
        Answer(text="word " * 1000),
        ["sendMessage 42 4094 characters", "sendMessage 42 904 characters"],
    ),
    "code block over two messages": (
        said("hello"),
        Answer(text="```python\n" + "x = 1\n" * 900 + "```"),
        [
            "sendMessage 42 4091 characters pre 0+4091 python",
            "sendMessage 42 1307 characters pre 0+1307 python",
        ],
    ),
    "hundred entities": (
        said("hello"),
        Answer(text=" ".join(f"**w{n}**" for n in range(120))),
        [
            "sendMessage 42 389 characters bold 0+2 bold 3+2 bold 6+2 bold 9+2 bold 12+2 bold 15+2",
            "sendMessage 42 'w100 w101 w102 w103 w104 w105 w106 w107 w108 w109 w110 w111 w112 w113 w114 w115 w116 w117 w118 w119' bold 0+4 bold 5+4 bold 10+4 bold 15+4 bold 20+4 bold 25+4",
        ],
    ),
    "one button": (
        said("hello"),
        Answer(
            text="Which?", buttons=(Button(label="Yes", command=Command(name="x"), id="act-0"),)
        ),
        ["sendMessage 42 'Which?' [Yes]"],
    ),
    "three short buttons": (
        said("hello"),
        Answer(
            text="Which?",
            buttons=(
                Button(label="One", command=Command(name="x"), id="act-0"),
                Button(label="Two", command=Command(name="x"), id="act-1"),
                Button(label="Three", command=Command(name="x"), id="act-2"),
                Button(label="Four", command=Command(name="x"), id="act-3"),
            ),
        ),
        ["sendMessage 42 'Which?' [One | Two | Three] [Four]"],
    ),
    "long buttons": (
        said("hello"),
        Answer(
            text="Which?",
            buttons=(
                Button(label="A rather long label", command=Command(name="x"), id="act-0"),
                Button(label="Another long label", command=Command(name="x"), id="act-1"),
            ),
        ),
        ["sendMessage 42 'Which?' [A rather long label] [Another long label]"],
    ),
    "file": (
        said("hello"),
        Answer(text="Here.", files=(File(name="a.txt", content=b"abc", mime="text/plain"),)),
        ["sendMessage 42 'Here.'", "sendDocument 42 document 3 bytes"],
    ),
    "picture": (
        said("hello"),
        Answer(text="Here.", files=(PICTURE,)),
        ["sendMessage 42 'Here.'", "sendPhoto 42 photo 11 bytes"],
    ),
    "picture that came as a file": (
        said("hello"),
        Answer(text="", files=(replace(PICTURE, is_document=True),)),
        ["sendDocument 42 document 11 bytes"],
    ),
    "picture that Telegram can't show": (
        said("hello"),
        Answer(text="", files=(File(name="a.jpg", content=b"no JPEG", mime="image/jpeg"),)),
        ["sendPhoto 42 photo 7 bytes", "sendDocument 42 document 7 bytes"],
    ),
    "video and audio": (
        said("hello"),
        Answer(text="", files=(VIDEO, SONG)),
        ["sendVideo 42 video 3 bytes", "sendAudio 42 audio 3 bytes"],
    ),
    "album of pictures and a video": (
        said("hello"),
        Answer(text="Here.", files=(PICTURE, VIDEO, PICTURE)),
        ["sendMessage 42 'Here.'", "sendMediaGroup 42 photo video photo"],
    ),
    "albums of each kind": (
        said("hello"),
        Answer(text="", files=(PICTURE, PICTURE, TABLE, TABLE, SONG, SONG, PICTURE)),
        [
            "sendMediaGroup 42 photo photo",
            "sendMediaGroup 42 document document",
            "sendMediaGroup 42 audio audio",
            "sendPhoto 42 photo 11 bytes",
        ],
    ),
    "eleven pictures": (
        said("hello"),
        Answer(text="", files=(PICTURE,) * 11),
        ["sendMediaGroup 42" + " photo" * 10, "sendPhoto 42 photo 11 bytes"],
    ),
    "album with a picture that Telegram can't show": (
        said("hello"),
        Answer(text="", files=(PICTURE, File(name="a.jpg", content=b"no JPEG", mime="image/jpeg"))),
        [
            "sendMediaGroup 42 photo photo",
            "sendPhoto 42 photo 11 bytes",
            "sendPhoto 42 photo 7 bytes",
            "sendDocument 42 document 7 bytes",
        ],
    ),
    "album in a forum topic": (
        said("@mneme_bot hello", FORUM, message_thread_id=5, is_topic_message=True),
        Answer(text="", files=(PICTURE, PICTURE)),
        ["sendMediaGroup -1001234567890 topic 5 to 700 photo photo"],
    ),
    "spoken answer": (
        said("hello"),
        Answer(text="", files=(File(name="a.ogg", content=b"OggS-and-more", mime="audio/ogg"),)),
        ["sendVoice 42 voice 13 bytes"],
    ),
    "answer in a group": (
        said("@mneme_bot hello", GROUP),
        Answer(text="At nine."),
        ["sendMessage -200 to 700 'At nine.'"],
    ),
    "two messages in a group": (
        said("@mneme_bot hello", GROUP),
        Answer(text="word " * 1000),
        ["sendMessage -200 to 700 4094 characters", "sendMessage -200 904 characters"],
    ),
    "answer in a forum topic": (
        said("@mneme_bot hello", FORUM, message_thread_id=5, is_topic_message=True),
        Answer(text="At nine."),
        ["sendMessage -1001234567890 topic 5 to 700 'At nine.'"],
    ),
    "file in a forum topic": (
        said("@mneme_bot hello", FORUM, message_thread_id=5, is_topic_message=True),
        Answer(text="Here.", files=(File(name="a.txt", content=b"abc", mime="text/plain"),)),
        [
            "sendMessage -1001234567890 topic 5 to 700 'Here.'",
            "sendDocument -1001234567890 topic 5 document 3 bytes",
        ],
    ),
    "answer in a topic of a direct chat": (
        said("hello", message_thread_id=44, is_topic_message=True),
        Answer(text="At nine."),
        ["sendMessage 42 topic 44 'At nine.'"],
    ),
    "answer to a press": (
        press(),
        Answer(text="Done."),
        ["answerCallbackQuery 9", "sendMessage 42 'Done.'"],
    ),
}


def describe(method: str, values: Mapping[str, Any]) -> str:
    """A request in one line: method, chat, topic, the message it replies to, text and the rest."""
    parts = [method, str(values.get("chat_id", ""))]
    if values.get("message_thread_id"):
        parts.append(f"topic {values['message_thread_id']}")
    if values.get("reply_parameters"):
        parts.append(f"to {values['reply_parameters']['message_id']}")
    if values.get("message_id"):
        parts.append(f"of {values['message_id']}")
    if "text" in values:
        text = values["text"]
        parts.append(repr(text) if len(text) <= 120 else f"{len(text)} characters")
    if "rich_message" in values:
        parts.append(values["rich_message"]["html"])
    parts += [
        f"{entity['type']} {entity['offset']}+{entity['length']}"
        + "".join(f" {entity[key]}" for key in ("url", "language") if key in entity)
        for entity in values.get("entities") or ()
    ][:6]
    rows = (values.get("reply_markup") or {}).get("inline_keyboard", ())
    parts += ["[" + " | ".join(button["text"] for button in row) + "]" for row in rows]
    kinds = ("document", "voice", "photo", "video", "audio")
    parts += [f"{key} {len(values[key])} bytes" for key in kinds if key in values]
    parts += [item["type"] for item in values.get("media", ())]
    parts += [str(values[key]) for key in ("action", "callback_query_id") if key in values]
    return " ".join(part for part in parts if part)


def describe_event(inbound: Inbound) -> str:
    """Return an event in one line: its kind, its origin unless it's typed, its text and the rest."""
    parts = [f"*{inbound.kind}*:"]
    if inbound.origin != "typed":
        parts.append(f"({inbound.origin})")
    parts.append(inbound.text)
    if inbound.quote is not None:
        author = "Mneme" if inbound.quote.is_ours else inbound.quote.name
        parts.append(f"<{inbound.quote.kind} of {author}: {inbound.quote.text}>")
    parts += [f"<{file.kind} {file.name}>" for file in inbound.attachments]
    return " ".join(part for part in parts if part)


UNCOUNTED = {"getMe", "getUpdates", "setMyCommands", "sendChatAction"}


async def run(
    api: BotApi, database: Database, clock: SteadyClock, update: Json, answer: Answer | None
) -> list[str]:
    """Let the adapter receive an update, and return the requests that follow."""
    inbox = Inbox(database, clock)
    router = EchoRouter(inbox, clock)

    async def give(inbound: Inbound, reply: Reply) -> None:
        reply.begin(ListRecord())
        again = Button(label="Again", command=Command(name="again"), id=inbound.message_id)
        echo = Answer(text=describe_event(inbound), buttons=(again,))
        await reply.finish(answer or echo)

    router.answer = give
    adapter = Telegram(token=api.token, api_url=api.url, inbox=inbox, clock=clock)
    await adapter.open()
    try:
        raw = {"update_id": 1, **update}
        api.violations += api.contract.value("Update", raw)
        assert await adapter._receive({1: raw}, router) == set()
        while tasks := list(adapter._tasks):
            await asyncio.gather(*tasks)
    finally:
        await adapter.close()
    requests = [describe(name, values) for name, values in api.calls if name not in UNCOUNTED]
    # A press is confirmed beside its answer.
    return sorted(requests) if "callback_query" in update else requests


def prepare(api: BotApi) -> None:
    api.person(42, "Ana")
    api.group(-200)
    api.group(FORUM["id"], "Flat", is_forum=True)
    api.topics.setdefault(FORUM["id"], set()).add(5)
    api.topics.setdefault(42, set()).add(44)
    api.presses.add("9")


@pytest.mark.parametrize("name", INCOMING)
async def test_each_listed_telegram_update_causes_exactly_its_listed_api_requests(
    database: Database, clock: SteadyClock, name: str
) -> None:
    update, expected = INCOMING[name]
    async with BotApi() as api:
        prepare(api)
        assert await run(api, database, clock, update, None) == expected
        assert api.violations == []


@pytest.mark.parametrize("name", OUTGOING)
async def test_each_listed_answer_causes_exactly_its_listed_telegram_requests(
    database: Database, clock: SteadyClock, name: str
) -> None:
    update, answer, expected = OUTGOING[name]
    async with BotApi() as api:
        prepare(api)
        assert await run(api, database, clock, update, answer) == expected
        assert api.violations == []


def test_table_of_telegram_scenarios_has_at_least_eighty_rows() -> None:
    assert len(INCOMING) >= 80
