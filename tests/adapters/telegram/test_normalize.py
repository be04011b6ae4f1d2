"""What an update of Telegram says to us: chats, senders, mentions, commands, topics,
attachments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from telegram import Update, User

from adapters.telegram.normalize import group_migration, normalize
from core.guard.origin_and_fence import typed_part
from core.types import Address, Attachment, Command, Inbound, Quote, Scope, Sender
from tests.fixtures.bot_chats import GROUP_ADMIN, BotChats

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
GROUP, FORUM = -200, -1001234567890


@pytest.fixture
def chats() -> Iterator[BotChats]:
    made = BotChats(username="mneme_bot")
    made.person(42, "Ana", "ana")
    made.group(GROUP)
    made.group(FORUM, "Flat", is_forum=True)
    yield made
    assert made.violations == []


def read(chats: BotChats, update: dict[str, Any]) -> Inbound | None:
    me = User.de_json(chats.bot, None)
    return normalize(Update.de_json(update, None), me, NOW)


def heard(chats: BotChats, update: dict[str, Any]) -> Inbound:
    inbound = read(chats, update)
    assert inbound is not None
    return inbound


async def test_direct_telegram_message_is_read_with_its_account_scope_and_sender(
    chats: BotChats,
) -> None:
    update = chats.user_says(42, "Hello 👋 there", date=1795176000)
    assert read(chats, update) == Inbound(
        kind="message",
        address=Address(platform="telegram", chat_id="42"),
        scope=Scope.account("telegram", "42"),
        sender=Sender(id="42", name="Ana"),
        text="Hello 👋 there",
        message_id="1",
        sent_at=datetime(2026, 11, 20, 12, 0, tzinfo=UTC),
        is_direct=True,
        is_addressed=True,
        language="en",
    )


async def test_telegram_group_message_without_a_mention_is_in_the_group_scope_and_unaddressed(
    chats: BotChats,
) -> None:
    inbound = heard(chats, chats.user_says(GROUP, "nice weather", user_id=42))
    assert inbound.scope == Scope.group("telegram", "-200")
    assert not inbound.is_direct
    assert not inbound.is_addressed


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("@mneme_bot what is up?", "what is up?"),
        ("@Mneme_Bot, what is up?", "what is up?"),
        ("👋 hi @mneme_bot what is up?", "👋 hi @mneme_bot what is up?"),
        ("@mneme_bot", ""),
    ],
)
async def test_telegram_mention_addresses_the_bot_and_is_removed_from_the_start(
    chats: BotChats, said: str, text: str
) -> None:
    inbound = heard(chats, chats.user_says(GROUP, said))
    assert inbound.is_addressed
    assert inbound.text == text


async def test_telegram_mention_of_another_name_does_not_address_the_bot(chats: BotChats) -> None:
    for said in ("@mneme_bot2 hi", "@ana hi", "mail me at x@mneme_bot"):
        inbound = heard(chats, chats.user_says(GROUP, said))
        assert not inbound.is_addressed
        assert inbound.text == said


async def test_telegram_text_mention_without_a_username_addresses_the_bot(chats: BotChats) -> None:
    entity = {"type": "text_mention", "offset": 0, "length": 5, "user": chats.bot}
    inbound = heard(chats, chats.user_says(GROUP, "Mneme look", entities=[entity]))
    assert inbound.is_addressed
    assert inbound.text == "look"


async def test_reply_to_the_bot_addresses_it(chats: BotChats) -> None:
    ours = chats.enter(GROUP, chats.bot, text="Yes?")
    theirs = heard(chats, chats.user_says(GROUP, "one", user_id=42))
    to_us = heard(chats, chats.user_says(GROUP, "and why?", reply_to=ours["message_id"]))
    to_them = heard(chats, chats.user_says(GROUP, "and you?", reply_to=int(theirs.message_id)))
    assert (to_us.is_addressed, to_us.reply_to) == (True, "1")
    assert (to_them.is_addressed, to_them.reply_to) == (False, "2")


@pytest.mark.parametrize(
    ("said", "command"),
    [
        ("/recall Porto in May", Command(name="recall", arguments="Porto in May")),
        ("/Recall@Mneme_Bot  Porto ", Command(name="recall", arguments="Porto")),
        ("/start", Command(name="start")),
        (
            "/remind tomorrow 9:00\nbuy milk 🥛",
            Command(name="remind", arguments="tomorrow 9:00\nbuy milk 🥛"),
        ),
        ("@mneme_bot /help", Command(name="help")),
    ],
)
async def test_command_is_recognised_in_a_chat_and_in_a_group(
    chats: BotChats, said: str, command: Command
) -> None:
    for chat in (42, GROUP):
        inbound = heard(chats, chats.user_says(chat, said))
        assert inbound.command == command
        assert inbound.is_addressed


@pytest.mark.parametrize(("reads_all", "heard_in_group"), [(False, "replies"), (True, "all")])
async def test_command_in_a_group_says_whether_telegram_passes_on_other_messages(
    chats: BotChats, reads_all: bool, heard_in_group: str
) -> None:
    me = User.de_json({**chats.bot, "can_read_all_group_messages": reads_all}, None)
    updates = [chats.user_says(chat, "/forget boat") for chat in (42, GROUP)]
    inbounds = [normalize(Update.de_json(update, None), me, NOW) for update in updates]
    assert [inbound and inbound.heard_replies for inbound in inbounds] == ["all", heard_in_group]


async def test_telegram_command_for_another_bot_is_not_a_command(chats: BotChats) -> None:
    inbound = heard(chats, chats.user_says(GROUP, "/help@other_bot"))
    assert inbound.command is None
    assert not inbound.is_addressed


async def test_a_slash_inside_the_text_is_no_command(chats: BotChats) -> None:
    inbound = heard(chats, chats.user_says(42, "what does /help do?"))
    assert inbound.command is None
    assert inbound.text == "what does /help do?"


async def test_telegram_topics_have_their_own_address_in_the_groups_scope(chats: BotChats) -> None:
    topic = chats.topic(FORUM)
    inbound = heard(chats, chats.user_says(FORUM, "plan", thread_id=topic))
    assert inbound.address == Address(platform="telegram", chat_id=str(FORUM), thread_id=str(topic))
    assert inbound.scope == Scope.group("telegram", str(FORUM))
    assert inbound.reply_to is None
    general = heard(chats, chats.user_says(FORUM, "general"))
    assert general.address.thread_id is None


async def test_a_topic_that_the_bot_opened_does_not_address_it(chats: BotChats) -> None:
    topic = chats.topic(FORUM)
    chats.history[FORUM][topic]["from"] = chats.bot
    assert not heard(chats, chats.user_says(FORUM, "just talking", thread_id=topic)).is_addressed


async def test_telegram_reply_thread_in_a_plain_group_is_not_read_as_a_topic(
    chats: BotChats,
) -> None:
    chats.group(-100777, "Plain")
    inbound = heard(chats, chats.user_says(-100777, "an answer", message_thread_id=5))
    assert inbound.address.thread_id is None


async def test_only_messages_of_supergroups_have_links(chats: BotChats) -> None:
    topic = chats.topic(FORUM)
    chats.group(-1000000012345, "Old")
    chats.group(-1009999999999, "Town")
    chats.chats[-1009999999999]["username"] = "town_square"
    bases = {
        where: heard(
            chats, chats.user_says(chat_id, "@mneme_bot hi", thread_id=thread_id)
        ).link_base
        for where, chat_id, thread_id in (
            ("direct", 42, None),
            ("group", GROUP, None),
            ("forum", FORUM, None),
            ("topic", FORUM, topic),
            ("old", -1000000012345, None),
            ("public", -1009999999999, None),
        )
    }
    assert bases == {
        "direct": None,
        "group": None,
        "forum": "https://t.me/c/1234567890/",
        "topic": f"https://t.me/c/1234567890/{topic}/",
        "old": "https://t.me/c/12345/",
        "public": "https://t.me/town_square/",
    }
    topic = chats.topic(-1009999999999)
    spoken = heard(chats, chats.user_says(-1009999999999, "@mneme_bot hi", thread_id=topic))
    assert spoken.link_base == f"https://t.me/town_square/{topic}/"


async def test_message_or_press_in_general_is_known_from_one_in_a_topic(chats: BotChats) -> None:
    topic = chats.topic(FORUM)
    places = (FORUM, None), (FORUM, topic), (GROUP, None), (42, None)
    inbounds = [
        heard(chats, chats.user_says(chat_id, "@mneme_bot hi", thread_id=thread_id))
        for chat_id, thread_id in places
    ]
    assert [inbound.is_in_general for inbound in inbounds] == [True, False, False, False]
    assert inbounds[0].address.key == f"telegram:{FORUM}"
    message = chats.enter(FORUM, chats.bot)
    keyboard = {"inline_keyboard": [[{"text": "Yes", "callback_data": "a1"}]]}
    message |= {"text": "Sure?", "reply_markup": keyboard}
    assert heard(chats, chats.user_presses(FORUM, message["message_id"], "Yes")).is_in_general


async def test_telegram_topic_in_a_direct_chat_has_the_persons_scope(chats: BotChats) -> None:
    topic = chats.topic(42)
    inbound = heard(chats, chats.user_says(42, "here", thread_id=topic))
    assert inbound.address.key == f"telegram:42/{topic}"
    assert inbound.scope == Scope.account("telegram", "42")


async def test_anonymous_admin_channel_or_bot_is_an_anonymous_sender(chats: BotChats) -> None:
    channel = {"id": -100999, "type": "channel", "title": "News"}
    telegram = {"id": 777000, "is_bot": False, "first_name": "Telegram"}
    bot = {"id": 7, "is_bot": True, "first_name": "Other"}
    group = chats.chats[GROUP]
    for fields in (
        {"user_id": GROUP_ADMIN, "sender_chat": group},
        {"user_id": 42, "sender_chat": channel},
        {"from": telegram},
        {"from": bot},
        {
            "from": {"id": 136817688, "is_bot": True, "first_name": "Channel"},
            "sender_chat": channel,
        },
    ):
        inbound = heard(chats, chats.user_says(GROUP, "@mneme_bot let me in", **fields))
        assert inbound.sender.is_anonymous
        assert inbound.sender.id != "42"


async def test_telegram_channel_posts_are_ignored(chats: BotChats) -> None:
    post = {
        "message_id": 1,
        "date": 1,
        "chat": {"id": -100999, "type": "channel", "title": "News"},
        "text": "x",
    }
    assert read(chats, chats.push(channel_post=post)) is None
    assert read(chats, chats.push(message=post)) is None


async def test_edits_carry_the_new_text_and_their_own_time(chats: BotChats) -> None:
    chats.user_says(42, "firts", date=1795176000)
    inbound = heard(chats, chats.user_edits(42, 1, "/first"))
    assert (inbound.kind, inbound.text, inbound.message_id, inbound.command) == (
        "edit",
        "/first",
        "1",
        None,
    )
    assert inbound.sent_at == datetime.fromtimestamp(chats.history[42][1]["edit_date"], UTC)


async def test_press_of_a_button_becomes_an_action_at_the_place_of_its_message(
    chats: BotChats,
) -> None:
    topic = chats.topic(FORUM)
    keyboard = {"inline_keyboard": [[{"text": "More", "callback_data": "a1b2"}]]}
    ours = chats.enter(FORUM, chats.bot, thread_id=topic, text="Found", reply_markup=keyboard)
    update = chats.user_presses(FORUM, ours["message_id"], "More", user_id=42)
    inbound = heard(chats, update)
    assert (inbound.kind, inbound.text, inbound.message_id) == (
        "action",
        "a1b2",
        update["callback_query"]["id"],
    )
    assert inbound.address.thread_id == str(topic)
    assert inbound.sender.id == "42"
    assert inbound.reply_to == str(ours["message_id"])
    assert inbound.sent_at == datetime.fromtimestamp(ours["date"], UTC)


async def test_press_under_a_message_too_old_to_be_shown(chats: BotChats) -> None:
    query = {
        "id": "9",
        "from": chats.people[42],
        "chat_instance": "1",
        "data": "a1",
        "message": {"chat": {"id": 42, "type": "private"}, "message_id": 3, "date": 0},
    }
    inbound = heard(chats, chats.push(callback_query=query))
    assert (inbound.text, inbound.address.key, inbound.sent_at) == ("a1", "telegram:42", NOW)
    del query["message"]
    assert read(chats, chats.push(callback_query=query | {"inline_message_id": "x"})) is None


async def test_attachment_gets_its_kind_and_name_and_its_caption_is_the_text(
    chats: BotChats,
) -> None:
    sizes = [
        {"file_id": f"p{n}", "file_unique_id": f"u{n}", "width": n, "height": n, "file_size": n}
        for n in (90, 800)
    ]
    inbound = heard(chats, chats.user_says(GROUP, "@mneme_bot what is this?", photo=sizes))
    assert inbound.text == "what is this?"
    assert inbound.is_addressed
    assert inbound.attachments == (
        Attachment(
            kind="photo", name="photo.jpg", mime="image/jpeg", size_bytes=800, reference="p800"
        ),
    )
    document = {
        "file_id": "d",
        "file_unique_id": "d",
        "file_name": "plan.pdf",
        "mime_type": "application/pdf",
    }
    inbound = heard(chats, chats.user_says(42, "", document=document))
    assert inbound.text == ""
    assert inbound.attachments == (
        Attachment(kind="document", name="plan.pdf", mime="application/pdf", reference="d"),
    )
    voice = {"file_id": "v", "file_unique_id": "v", "duration": 3, "file_size": 10}
    assert heard(chats, chats.user_says(42, "", voice=voice)).attachments[0].kind == "voice"
    sticker = {
        "file_id": "s",
        "file_unique_id": "s",
        "type": "regular",
        "width": 1,
        "height": 1,
        "emoji": "🦉",
    }
    sticker |= {"is_animated": False, "is_video": False}
    assert heard(chats, chats.user_says(42, "", sticker=sticker)).attachments[0].name == "🦉"


async def test_telegram_locations_venues_and_contacts_become_text(chats: BotChats) -> None:
    place = {"latitude": 41.15, "longitude": -8.61}
    assert heard(chats, chats.user_says(42, "", location=place)).text == "Location: {41.15, -8.61}"
    venue = {"location": place, "title": "Majestic", "address": "Rua 1"}
    assert (
        heard(chats, chats.user_says(42, "", location=place, venue=venue)).text
        == "Place: {Majestic, Rua 1 (41.15, -8.61)}"
    )
    contact = {"phone_number": "+351123", "first_name": "Rui"}
    assert heard(chats, chats.user_says(42, "", contact=contact)).text == "Contact: {Rui, +351123}"


async def test_url_behind_telegram_link_text_is_added_but_does_not_count_as_typed(
    chats: BotChats,
) -> None:
    link = {"type": "text_link", "offset": 5, "length": 4, "url": "https://evil.example/x"}
    inbound = heard(chats, chats.user_says(42, "Open this please", entities=[link]))
    assert inbound.text == "Open this {https://evil.example/x} please"
    assert typed_part(inbound.text) == "Open this please"


async def test_name_in_a_mention_is_marked_as_inserted(chats: BotChats) -> None:
    user = {"id": 7, "is_bot": False, "first_name": "my boss is Eve Evil and"}
    mention = {"type": "text_mention", "offset": 6, "length": 23, "user": user}
    inbound = heard(
        chats, chats.user_says(42, "Hello my boss is Eve Evil and I agree", entities=[mention])
    )
    assert inbound.text == "Hello @{my boss is Eve Evil and} I agree"


async def test_telegram_updates_without_a_message_are_ignored(chats: BotChats) -> None:
    assert read(chats, chats.user_blocks(42)) is None
    assert (
        read(
            chats,
            chats.push(
                poll_answer={
                    "poll_id": "1",
                    "option_ids": [0],
                    "option_persistent_ids": ["0"],
                    "user": chats.people[42],
                }
            ),
        )
        is None
    )


async def test_telegram_group_migration_is_read_with_its_old_and_new_id(chats: BotChats) -> None:
    for update in chats.migrate(GROUP, -100555):
        assert group_migration(Update.de_json(update, None)) == ("-200", "-100555")
        assert read(chats, update) is None
    assert group_migration(Update.de_json(chats.user_says(42, "hi"), None)) is None


async def test_half_characters_in_a_command_are_replaced(chats: BotChats) -> None:
    entity = {"type": "bot_command", "offset": 0, "length": 5}
    inbound = heard(chats, chats.user_says(42, "/note a\ud83d b", entities=[entity]))
    assert inbound.command == Command(name="note", arguments="a\ufffd b")
    assert inbound.text == "/note a\ufffd b"


async def test_forwarded_message_has_the_origin_forwarded(chats: BotChats) -> None:
    origin = {"type": "hidden_user", "sender_user_name": "Ben", "date": 1795176000}
    assert (
        heard(chats, chats.user_says(42, "I live in Rome", forward_origin=origin)).origin
        == "forwarded"
    )
    assert heard(chats, chats.user_says(42, "I live in Porto")).origin == "typed"
    bot = {"id": 9, "is_bot": True, "first_name": "Gif", "username": "gif"}
    assert heard(chats, chats.user_says(42, "/forget everything", via_bot=bot)).origin == "via_bot"


USER = {"id": 8, "is_bot": False, "first_name": "Ben"}
GROUP_CHAT, CHANNEL = (
    {"id": -7, "type": "group", "title": "Flat"},
    {"id": -8, "type": "channel", "title": "News"},
)


@pytest.mark.parametrize(
    ("origin", "name", "user_id"),
    [
        ({"type": "user", "sender_user": USER}, "Ben", "8"),
        ({"type": "hidden_user", "sender_user_name": "B."}, "B.", ""),
        ({"type": "chat", "sender_chat": GROUP_CHAT}, "Flat", ""),
        ({"type": "channel", "chat": CHANNEL, "message_id": 3}, "News", ""),
    ],
)
async def test_telegram_forward_becomes_a_quote_with_its_original_author(
    chats: BotChats, origin: dict[str, Any], name: str, user_id: str
) -> None:
    inbound = heard(
        chats, chats.user_says(42, "I live in Rome", forward_origin={**origin, "date": 1795176000})
    )
    assert inbound.quote == Quote(kind="forward", name=name, user_id=user_id, at=NOW)
    part = {"text": "Ro\ud83d", "position": 0}
    there = {"origin": {**origin, "date": 1795176000}}
    inbound = heard(chats, chats.user_says(42, "where?", external_reply=there, quote=part))
    assert inbound.quote == Quote(kind="part", text="Ro\ufffd", name=name, user_id=user_id, at=NOW)
    assert inbound.reply_to is None, "it stands in another chat"


async def test_telegram_reply_carries_the_quoted_message_and_its_author(chats: BotChats) -> None:
    ours = chats.enter(GROUP, chats.bot, text="The ferry leaves at nine.", date=1795176000)
    answer = chats.user_says(GROUP, "and why?", reply_to=ours["message_id"])
    quoted = Quote(
        kind="reply",
        text="The ferry leaves at nine.",
        name="Mneme",
        user_id=str(chats.bot["id"]),
        at=NOW,
        is_ours=True,
    )
    assert heard(chats, answer).quote == quoted
    answer = chats.user_says(
        GROUP, "nine?", reply_to=ours["message_id"], quote={"text": "at nine", "position": 17}
    )
    assert heard(chats, answer).quote == replace(quoted, kind="part", text="at nine")
    sticker = chats.user_says(
        42, "", photo=[{"file_id": "f", "file_unique_id": "u", "width": 9, "height": 9}]
    )
    answer = chats.user_says(42, "what is this?", reply_to=sticker["message"]["message_id"])
    assert (found := heard(chats, answer).quote)
    assert (found.text, found.name) == ("(photo)", "Ana")
    origin = {"type": "user", "sender_user": USER, "date": 1795176000}
    passed = chats.user_says(42, "I live in Rome", forward_origin=origin)
    answer = chats.user_says(42, "he does", reply_to=passed["message"]["message_id"])
    assert (found := heard(chats, answer).quote)
    assert (found.kind, found.text, found.name) == ("reply", "I live in Rome", "Ben")


async def test_telegram_message_in_a_topic_has_no_quote(chats: BotChats) -> None:
    topic = chats.topic(FORUM)
    assert heard(chats, chats.user_says(FORUM, "hi", thread_id=topic)).quote is None


POLL = {
    "id": "1",
    "question": "Which day?",
    "options": [
        {"text": "Monday", "voter_count": 2, "persistent_id": "a"},
        {"text": "Friday", "voter_count": 1, "persistent_id": "b"},
    ],
    "total_voter_count": 3,
    "is_closed": False,
    "is_anonymous": True,
    "type": "regular",
    "allows_multiple_answers": False,
    "allows_revoting": True,
    "members_only": False,
}


async def test_telegram_poll_becomes_text_with_its_outcome_once_it_is_closed(
    chats: BotChats,
) -> None:
    message = chats.user_says(42, "", poll=POLL)
    assert heard(chats, message).text == "Poll: {Which day? Options: Monday; Friday}"
    closed = chats.user_says(42, "", poll={**POLL, "is_closed": True})
    assert heard(chats, closed).text == "Closed poll: {Which day? Options: Monday (2); Friday (1)}"


async def test_telegram_dice_and_checklists_become_text(chats: BotChats) -> None:
    dice = chats.user_says(42, "", dice={"emoji": "🎲", "value": 4})
    assert heard(chats, dice).text == "Dice: {🎲 4}"
    tasks = [
        {"id": 1, "text": "Milk"},
        {"id": 2, "text": "Bread", "completion_date": 1_790_000_000},
    ]
    checklist = chats.user_says(42, "", checklist={"title": "Shop", "tasks": tasks})
    assert heard(chats, checklist).text == "Checklist: {Shop. open: Milk; done: Bread}"


UNREADABLE: dict[str, dict[str, Any]] = {
    "a story": {"story": {"chat": {"id": 42, "type": "private", "first_name": "Ana"}, "id": 3}},
    "a game": {"game": {"title": "Walrus", "description": "Catch it", "photo": []}},
    "an invoice": {
        "invoice": {
            "title": "Walrus",
            "description": "A ferry",
            "start_parameter": "",
            "currency": "EUR",
            "total_amount": 900,
        }
    },
    "data of a web app": {"web_app_data": {"data": "walrus", "button_text": "Send"}},
    # PTB doesn't know this kind.
    "something new": {"hologram": {"words": "Walrus"}},
}


@pytest.mark.parametrize("kind", UNREADABLE)
async def test_telegram_message_of_an_unreadable_kind_becomes_text_that_names_and_keeps_it(
    chats: BotChats, kind: str
) -> None:
    text = heard(chats, chats.user_says(42, "", **UNREADABLE[kind])).text
    assert text.startswith(f"Message: {{{kind}, which can be read only in Telegram: (")
    assert ("Ana" if kind == "a story" else "walrus") in text.replace("Walrus", "walrus")
    assert text.count("{") == text.count("}") == 1
    if kind == "something new":
        # The contract of this version of the Bot API doesn't have the field.
        chats.violations = [line for line in chats.violations if "hologram" not in line]


async def test_live_photo_is_received_as_its_still_picture(chats: BotChats) -> None:
    size = {"file_id": "still", "file_unique_id": "s", "width": 90, "height": 90}
    video = {**size, "file_id": "moving", "file_unique_id": "m", "duration": 3}
    message = chats.user_says(42, "", photo=[size], live_photo={**video, "photo": [size]})
    (attachment,) = heard(chats, message).attachments
    assert (attachment.kind, attachment.reference) == ("photo", "still")


BEN = {"id": 43, "is_bot": False, "first_name": "Ben"}
NAMED = {"name": "Trips", "icon_color": 7322096}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"new_chat_members": [BEN]}, "Group: {Ben joined}"),
        ({"left_chat_member": BEN}, "Group: {Ben left}"),
        ({"new_chat_title": "Flat 7"}, "Group: {the new title is “Flat 7”}"),
        ({"forum_topic_created": NAMED}, "Group: {the topic “Trips” began}"),
        ({"forum_topic_edited": {"name": "Tours"}}, "Group: {the topic is now called “Tours”}"),
        ({"forum_topic_closed": {}}, "Group: {the topic was closed}"),
        ({"forum_topic_reopened": {}}, "Group: {the topic was opened again}"),
        ({"video_chat_started": {}}, "Group: {a video chat began}"),
        ({"video_chat_ended": {"duration": 1500}}, "Group: {a video chat ended after 25 min}"),
        (
            {"video_chat_scheduled": {"start_date": 1_795_176_000}},
            "Group: {video chat planned for 20 November 2026 12:00 UTC}",
        ),
    ],
)
async def test_telegram_service_message_becomes_unaddressed_text_of_an_anonymous_sender(
    chats: BotChats, fields: dict[str, Any], text: str
) -> None:
    inbound = heard(chats, chats.user_says(GROUP, "", **fields))
    assert inbound.text == text
    assert not inbound.is_addressed
    assert inbound.sender.is_anonymous
    assert typed_part(inbound.text).strip() in ("", "Group:")


async def test_telegram_pin_notice_becomes_text_with_the_pinned_message(chats: BotChats) -> None:
    pinned = chats.user_says(GROUP, "The meter reading is 4711")["message"]
    inbound = heard(chats, chats.user_says(GROUP, "", pinned_message=pinned))
    assert inbound.text == "Group: {pinned: The meter reading is 4711}"


async def test_changed_tasks_of_a_telegram_checklist_become_text(chats: BotChats) -> None:
    tasks = [{"id": 1, "text": "Milk"}, {"id": 2, "text": "Bread"}]
    checklist = {"title": "Shop", "tasks": tasks}
    message = chats.user_says(42, "", checklist=checklist)["message"]
    done = {
        "checklist_message": message,
        "marked_as_done_task_ids": [1],
        "marked_as_not_done_task_ids": [2, 9],
    }
    inbound = heard(chats, chats.user_says(42, "", checklist_tasks_done=done))
    assert inbound.text == "Checklist: {done: Milk. open again: Bread; #9}"
    assert inbound.is_addressed
    assert not inbound.sender.is_anonymous
    added = {"tasks": [{"id": 3, "text": "Eggs"}]}
    inbound = heard(chats, chats.user_says(42, "", checklist_tasks_added=added))
    assert inbound.text == "Checklist: {added: Eggs}"


async def test_service_message_about_the_bot_or_in_a_direct_chat_is_no_message(
    chats: BotChats,
) -> None:
    assert read(chats, chats.user_says(GROUP, "", new_chat_members=[chats.bot])) is None
    pinned = chats.user_says(42, "A note")["message"]
    assert read(chats, chats.user_says(42, "", pinned_message=pinned)) is None
    assert read(chats, chats.user_says(GROUP, "", delete_chat_photo=True)) is None


async def test_photo_of_a_group_that_is_asked_about_comes_with_the_question(
    chats: BotChats,
) -> None:
    photo = [{"file_id": "f", "file_unique_id": "u", "width": 9, "height": 9}]
    theirs = chats.user_says(GROUP, "look", photo=photo)["message"]["message_id"]
    asked = heard(chats, chats.user_says(GROUP, "@mneme_bot what is this?", reply_to=theirs))
    assert [(file.kind, file.reference) for file in asked.replied_files] == [("photo", "f")]
    assert asked.attachments == ()
    voice = {"file_id": "v", "file_unique_id": "v", "duration": 3, "file_size": 10}
    theirs = chats.user_says(GROUP, "", voice=voice)["message"]["message_id"]
    asked = heard(chats, chats.user_says(GROUP, "@mneme_bot what?", reply_to=theirs))
    assert asked.replied_files == (), "somebody else said it"


async def test_telegram_sticker_is_named_by_its_emoji_and_set(chats: BotChats) -> None:
    sticker = {
        "file_id": "s",
        "file_unique_id": "s",
        "type": "regular",
        "width": 1,
        "height": 1,
        "emoji": "🦉",
        "set_name": "Owls",
        "is_animated": False,
        "is_video": False,
    }
    inbound = heard(chats, chats.user_says(42, "", sticker=sticker))
    assert inbound.attachments[0].name == "🦉 (set Owls)"


def membership(chats: BotChats, old: str, new: str, chat_id: int = GROUP, **fields: Any) -> Any:
    """A change of the bot's membership in a chat."""
    people = [{"user": chats.bot, "status": status, **fields} for status in (old, new)]
    kind = "private" if chat_id > 0 else "group"
    change = {
        "chat": {"id": chat_id, "type": kind, "title": "Flat", "first_name": "Ana"},
        "from": {"id": 42, "is_bot": False, "first_name": "Ana", "language_code": "de"},
        "date": 1795176000,
        "old_chat_member": people[0],
        "new_chat_member": people[1],
    }
    return {"update_id": 1, "my_chat_member": change}


RIGHTS = dict.fromkeys(
    (
        "can_be_edited", "is_anonymous", "can_manage_chat", "can_delete_messages", "is_member",
        "can_manage_video_chats", "can_restrict_members", "can_promote_members", "can_change_info",
        "can_invite_users", "can_post_stories", "can_edit_stories", "can_delete_stories",
        "can_send_messages", "can_send_polls", "can_send_other_messages", "can_pin_messages",
        "can_add_web_page_previews", "can_manage_topics", "can_send_audios", "can_send_documents",
        "can_send_photos", "can_send_videos", "can_send_video_notes", "can_send_voice_notes",
        "can_edit_tag", "can_react_to_messages",
    ),
    True,
)  # fmt: skip


@pytest.mark.parametrize("status", ["member", "administrator", "restricted"])
async def test_bot_that_is_added_to_a_group_arrives_there(chats: BotChats, status: str) -> None:
    for old in ("left", "kicked"):
        update = membership(chats, old, status, until_date=0, **RIGHTS)
        arrival = heard(chats, update)
        assert (arrival.kind, arrival.address.chat_id, arrival.sender.id) == (
            "arrival",
            str(GROUP),
            "42",
        )
        assert arrival.scope == Scope.group("telegram", str(GROUP))
        assert (arrival.language, arrival.is_direct) == ("de", False)


@pytest.mark.parametrize(
    ("old", "new", "chat_id"),
    [
        ("member", "left", GROUP),
        ("member", "administrator", GROUP),
        ("kicked", "member", 42),
        ("left", "kicked", GROUP),
    ],
)
async def test_other_changes_of_the_bots_membership_are_no_arrival(
    chats: BotChats, old: str, new: str, chat_id: int
) -> None:
    assert read(chats, membership(chats, old, new, chat_id, until_date=0, **RIGHTS)) is None
