"""How answers look on Telegram: formatting, splitting, streaming, buttons, files, and what happens
when it refuses."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from telegram import Bot
from telegram.error import NetworkError

import adapters.telegram
from adapters.streaming import StreamedReply
from adapters.telegram.messages import TelegramMessages, TelegramRequest
from core.errors import ChatRefused, DeliveryError
from core.markup.markdown import render, utf16_length
from core.store.mailbox import INTENT_MARK
from core.types import Address, Answer, Button, Command, File
from tests.fixtures.bot_api import BotApi
from tests.fixtures.delivery_record import ListRecord

pytestmark = pytest.mark.slow

GROUP, FORUM = -200, -1001234567890


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with BotApi() as running:
        running.person(42)
        running.person(43)
        running.group(GROUP)
        running.group(FORUM, "Flat", is_forum=True)
        yield running
        assert running.violations == []


@pytest.fixture
async def bot(api: BotApi) -> AsyncIterator[Bot]:
    """A bot as the adapter makes it: the library's `Bot.initialize` isn't called."""
    request = TelegramRequest(api.token, 4)
    await request.initialize()
    yield Bot(api.token, f"{api.url}/bot", request=request, get_updates_request=request)
    await request.shutdown()


def canvas(
    bot: Bot, chat_id: int, thread_id: int | None = None, reply_to: str | None = None
) -> TelegramMessages:
    thread = str(thread_id) if thread_id else None
    made = TelegramMessages(
        bot, Address(platform="telegram", chat_id=str(chat_id), thread_id=thread), reply_to
    )
    made.pace_s = 0.01
    return made


def test_telegram_send_interval_is_longer_in_groups_than_in_direct_chats() -> None:
    bot = Bot("1:x")
    paces = [
        TelegramMessages(bot, Address(platform="telegram", chat_id=chat), None).pace_s
        for chat in ("42", "-200")
    ]
    assert paces == [1.0, 3.0]


async def test_formatting_of_an_answer_is_sent_as_entities(api: BotApi, bot: Bot) -> None:
    await canvas(bot, 42).post(
        render("🦉 **bold** and [link](https://example.org)\n\n```python\nx = 1\n```"), None, "n"
    )
    message = api.messages(42)[0]
    assert message["text"] == "🦉 bold and link\n\nx = 1"
    assert message["entities"] == [
        {"type": "bold", "offset": 3, "length": 4},
        {"type": "text_link", "offset": 12, "length": 4, "url": "https://example.org"},
        {"type": "pre", "offset": 18, "length": 5, "language": "python"},
    ]
    assert api.called("sendMessage")[0]["link_preview_options"] == {"is_disabled": True}


DATA_LINKS = "https://evil.example/?q=walrus or [this](https://evil.example/?q=plan)"
# The calls of the library that the adapter makes and that could show a preview.
WITH_PREVIEW = {"send_message", "edit_message_text"}


def test_telegram_adapter_makes_no_call_with_a_preview_that_the_test_below_lacks() -> None:
    with_preview = {
        name
        for name, method in inspect.getmembers(Bot, inspect.iscoroutinefunction)
        if "link_preview_options" in inspect.signature(method).parameters
    }
    assert with_preview >= WITH_PREVIEW
    used: set[str] = set()
    raw: set[str] = set()
    for path in Path(adapters.telegram.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                used.add(node.attr)
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("do_api_request"):
                raw.add(ast.literal_eval(node.args[0]))
    assert used & with_preview == WITH_PREVIEW
    assert raw == {"sendRichMessage", "get_Updates"}


async def test_no_message_makes_telegram_fetch_a_link(api: BotApi, bot: Bot) -> None:
    drawn = canvas(bot, 42)
    button = Button(label="Go", command=Command(name="recall", arguments="2"), id="abc")
    table = f"{TABLE}\n\n{DATA_LINKS}"
    files = [File(name=name, content=b"x", mime="text/plain") for name in ("a.txt", "b.txt")]
    await drawn.show_draft(render(DATA_LINKS), "n")
    message_id = await drawn.post(render(DATA_LINKS), Answer(text="", buttons=(button,)), "n")
    await drawn.edit(message_id, render(f"{DATA_LINKS}!"), None)
    table_id = await drawn.post(render(table), None, "n")
    await drawn.edit(message_id, render(table), None)
    await drawn.edit(table_id, render(DATA_LINKS), None)
    await drawn.post(render(""), Answer(text="", files=(files[0],)), "n")
    await drawn.post_album(files)

    names = [name for name, _ in api.calls if name.startswith(("send", "edit"))]
    assert set(names) == {
        "sendMessage",
        "editMessageText",
        "sendMessageDraft",
        "sendRichMessage",
        "sendDocument",
        "sendMediaGroup",
    }
    for name, values in api.calls:
        shown = str(values.get("text") or values.get("rich_message") or "")
        assert "caption" not in values
        if name in ("sendMessage", "editMessageText") and "rich_message" not in values:
            assert values["link_preview_options"] == {"is_disabled": True}
        if "evil.example" in shown:
            assert "this (https://evil.example/?q=plan)" in shown
            assert re.search("<(?!/?(?:p|table|tr|th|td|b|i|s|code)[ >])", shown) is None
            assert "text_link" not in str(values.get("entities"))


@pytest.mark.parametrize(
    "complaint",
    [
        "Bad Request: can't parse entities: unsupported something",
        "Bad Request: ENTITY_BOUNDS_INVALID",
        "Bad Request: entity beginning at UTF-16 offset 3 ends after the end of the text at UTF-16 offset 9",
    ],
)
async def test_telegram_message_with_refused_formatting_is_sent_as_plain_text(
    api: BotApi, bot: Bot, complaint: str
) -> None:
    drawn = canvas(bot, 42)
    api.fail(400, complaint, method="sendMessage")
    message_id = await drawn.post(render("**bold** word"), None, "n")
    assert "entities" not in api.messages(42)[0]
    api.fail(400, complaint, method="editMessageText")
    await drawn.edit(message_id, render("**bold** words"), None)
    assert api.texts(42) == ["bold words"]


TABLE = "| a | b |\n|---|---|\n| 1 | 2 |"


@pytest.mark.parametrize("is_unknown", [True, False])
async def test_table_is_monospaced_text_if_telegram_refuses_the_rich_message(
    api: BotApi, bot: Bot, is_unknown: bool
) -> None:
    if is_unknown:
        api.unknown_methods.add("sendRichMessage")
    else:
        api.fail(400, "Bad Request: RICH_MESSAGE_INVALID", method="sendRichMessage", times=2)
    drawn = canvas(bot, 42)
    for _ in range(2):
        await drawn.post(render(TABLE), None, "turn:1:0")
    assert api.texts(42) == ["a | b\n--+--\n1 | 2"] * 2
    tries = [path for path in api.paths if path == "sendRichMessage"]
    assert len(tries) == (1 if is_unknown else 2)


async def test_message_that_becomes_a_table_and_a_text_again_is_edited_in_place(
    api: BotApi, bot: Bot
) -> None:
    drawn = canvas(bot, 42)
    message_id = await drawn.post(render("Let me see."), None, "turn:1:0")
    await drawn.edit(message_id, render(TABLE), None)
    assert api.texts(42)[0].startswith("<table bordered>")
    await drawn.edit(message_id, render(TABLE), None)
    await drawn.edit(message_id, render("Nothing."), None)
    assert api.texts(42) == ["Nothing."]


async def test_length_is_counted_in_utf16_units_of_the_rendered_text(bot: Bot) -> None:
    assert canvas(bot, 42).measure(render(f"**{'🦉' * 50}**")) == 100


async def test_answer_with_more_than_a_hundred_entities_takes_several_messages(
    api: BotApi, bot: Bot
) -> None:
    reply = StreamedReply(canvas(bot, 42))
    reply.begin(ListRecord())
    await reply.finish(Answer(text="🦉 " + "**b** " * 150 + "[l](https://a.b)\n\n" + "- x\n" * 150))
    entities = [message.get("entities", []) for message in api.messages(42)]
    assert max(map(len, entities)) <= 100
    assert sum(map(len, entities)) == 151
    assert len(entities) == 2, "the marks of a list are none"


async def test_first_part_of_a_telegram_group_answer_is_a_reply_to_the_question(
    api: BotApi, bot: Bot
) -> None:
    asked = api.user_says(GROUP, "@mneme_bot hi")["message"]["message_id"]
    drawn = canvas(bot, GROUP, reply_to=str(asked))
    await drawn.post(render("one"), None, "a")
    await drawn.post(render("two"), None, "b")
    replies = [
        message.get("reply_to_message", {}).get("message_id") for message in api.messages(GROUP)
    ]
    assert replies == [asked, None]
    api.user_says(42, "hi")
    await canvas(bot, 42, reply_to="1").post(render("direct"), None, "c")
    assert "reply_to_message" not in api.messages(42)[0]


@pytest.mark.parametrize("gone", ["99", "cron-1"])
async def test_telegram_answer_to_a_deleted_message_is_sent_without_the_reply(
    api: BotApi, bot: Bot, gone: str
) -> None:
    await canvas(bot, GROUP, reply_to=gone).post(render("still here"), None, "n")
    assert api.texts(GROUP) == ["still here"]


async def test_answer_in_a_topic_is_typed_and_posted_in_the_topic(api: BotApi, bot: Bot) -> None:
    topic = api.topic(FORUM)
    drawn = canvas(bot, FORUM, topic)
    await drawn.show_typing()
    await drawn.post(render("in the topic"), None, "n")
    assert api.texts(FORUM, topic) == ["in the topic"]
    assert api.called("sendChatAction") == [
        {"chat_id": FORUM, "message_thread_id": topic, "action": "typing"}
    ]


async def test_a_topic_that_is_gone_falls_back_to_the_chat(api: BotApi, bot: Bot) -> None:
    drawn = canvas(bot, FORUM, 777)
    await drawn.show_typing()
    await drawn.post(render("**one**"), None, "a")
    await drawn.post(render("two"), None, "b")
    await drawn.post(render(""), Answer(text="", files=(File(name="a.txt", content=b"a"),)), "c")
    assert api.texts(FORUM) == ["one", "two", ""]
    assert [
        (name, call.get("message_thread_id")) for name, call in api.calls if name != "getMe"
    ] == [
        ("sendChatAction", 777),
        *(
            (name, None)
            for name in ("sendChatAction", "sendMessage", "sendMessage", "sendDocument")
        ),
    ]


async def test_telegram_message_to_a_migrated_group_is_sent_to_its_new_id(
    api: BotApi, bot: Bot
) -> None:
    api.migrate(GROUP, -100555)
    await canvas(bot, GROUP).post(render("found you"), None, "n")
    assert api.texts(-100555) == ["found you"]


async def test_telegram_edit_without_a_change_succeeds_and_of_a_missing_message_fails_as_missing(
    api: BotApi, bot: Bot
) -> None:
    drawn = canvas(bot, 42)
    message_id = await drawn.post(render("same"), None, "n")
    await drawn.edit(message_id, render("same"), None)
    await drawn.delete(message_id)
    with pytest.raises(DeliveryError):
        await drawn.delete(message_id)
    with pytest.raises(DeliveryError, match="to edit not found") as told:
        await drawn.edit(message_id, render("other"), None)
    assert (told.value.is_missing, told.value.is_permanent) == (True, False)


@pytest.mark.parametrize(
    "said", ["Bad Request: message can't be edited", "Bad Request: MESSAGE_ID_INVALID"]
)
async def test_telegram_refusal_to_ever_edit_a_message_is_classified_as_missing(
    api: BotApi, bot: Bot, said: str
) -> None:
    drawn = canvas(bot, 42)
    message_id = await drawn.post(render("old"), None, "n")
    api.fail(400, said, method="editMessageText")
    with pytest.raises(DeliveryError) as told:
        await drawn.edit(message_id, render("new"), None)
    assert (told.value.is_missing, told.value.is_permanent) == (True, False)


async def test_message_that_cannot_be_edited_for_a_moment_does_not_count_as_deleted(
    api: BotApi, bot: Bot
) -> None:
    drawn = canvas(bot, 42)
    message_id = await drawn.post(render("old"), None, "n")
    api.flood(7, method="editMessageText")
    api.fail(502, "Bad Gateway", method="editMessageText")
    for _ in range(2):
        with pytest.raises(DeliveryError) as told:
            await drawn.edit(message_id, render("new"), None)
        assert (told.value.is_missing, told.value.is_permanent) == (False, False)


async def test_an_answer_whose_message_was_deleted_is_posted_anew_at_once(
    api: BotApi, bot: Bot
) -> None:
    drawn, slip = canvas(bot, GROUP), ListRecord()
    drawn.pace_s = 0.01
    painter = StreamedReply(drawn, first_words_s=0)
    painter.begin(slip)
    painter.show("Half of")
    await api.wait_for(lambda: api.texts(GROUP) == ["Half of"])
    painter.show("Half of it")
    await api.wait_for(lambda: api.texts(GROUP) == ["Half of it"])
    await drawn.delete(slip.message_ids[0])
    await painter.finish(Answer(text="Half of it was not enough"))
    assert api.texts(GROUP) == ["Half of it was not enough"]
    edits = [call for call in api.called("editMessageText") if "not enough" in str(call)]
    assert len(edits) == 1, "no second try"


@pytest.mark.parametrize(
    ("code", "said", "cause"),
    [
        (403, "Forbidden: bot was blocked by the user", "blocked"),
        (403, "Forbidden: bot was kicked from the group chat", "gone"),
        (403, "Forbidden: user is deactivated", "blocked"),
        (403, "Forbidden: something new", "no_rights"),
        (400, "Bad Request: chat not found", "gone"),
        (400, "Bad Request: TOPIC_CLOSED", "closed"),
        (400, "Bad Request: TOPIC_DELETED", "deleted"),
        (400, "Bad Request: not enough rights to send text messages to the chat", "no_rights"),
        (400, "Bad Request: CHAT_ADMIN_REQUIRED", "no_rights"),
        (400, "Bad Request: USER_BANNED_IN_CHANNEL", "no_rights"),
        (403, "Forbidden: CHAT_GUEST_SEND_FORBIDDEN", "no_rights"),
        (400, "Bad Request: PRIVACY_PREMIUM_REQUIRED", "private"),
        (403, "Forbidden: ALLOW_PAYMENT_REQUIRED_10", "private"),
        (400, "Bad Request: INPUT_USER_DEACTIVATED", "blocked"),
        (400, "Bad Request: CHANNEL_INVALID", "gone"),
    ],
)
async def test_a_chat_that_is_lost_is_permanent(
    api: BotApi, bot: Bot, code: int, said: str, cause: str
) -> None:
    api.fail(code, said, method="sendMessage")
    with pytest.raises(ChatRefused) as told:
        await canvas(bot, 42).post(render("x"), None, "n")
    assert (told.value.is_permanent, told.value.cause) == (True, cause)
    assert api.messages(42) == []


@pytest.mark.parametrize(
    "said",
    [
        "MESSAGE_THREAD_INVALID",
        "BUTTON_DATA_INVALID",
        "message text is empty",
        "something new",
    ],
)
async def test_message_that_telegram_refuses_is_refused_permanently(
    api: BotApi, bot: Bot, said: str
) -> None:
    api.fail(400, f"Bad Request: {said}", method="sendMessage")
    with pytest.raises(DeliveryError) as told:
        await canvas(bot, 42).post(render("x"), None, "n")
    assert told.value.is_permanent


async def test_message_that_is_refused_with_and_without_its_topic_is_refused_permanently(
    api: BotApi, bot: Bot
) -> None:
    refusal = "Bad Request: message thread not found"
    api.fail(400, refusal, method="sendMessage", times=2)
    with pytest.raises(DeliveryError) as told:
        await canvas(bot, FORUM, 5).post(render("x"), None, "n")
    assert told.value.is_permanent
    assert len(api.called("sendMessage")) == 2


async def test_telegram_flood_and_server_failures_are_temporary_delivery_errors(
    api: BotApi, bot: Bot
) -> None:
    drawn = canvas(bot, 42)
    api.fail(502, "Bad Gateway", method="sendMessage")
    api.drop(method="sendMessage")
    # One method's 404 is not a revoked token.
    api.fail(404, "Not Found", method="sendMessage")
    for _ in range(3):
        with pytest.raises(DeliveryError) as told:
            await drawn.post(render("x"), None, "n")
        assert (told.value.retry_after_s, told.value.is_permanent) == (None, False)
        assert api.token not in str(told.value)
    await drawn.post(render("x"), None, "n")
    assert api.texts(42) == ["x"]


async def test_a_flood_wait_is_obeyed_by_every_call_of_that_chat_and_by_no_other(
    api: BotApi, bot: Bot
) -> None:
    ana, ben = canvas(bot, 42), canvas(bot, 43)
    posted = await ana.post(render("x"), None, "n")
    api.flood(7, method="editMessageText")
    with pytest.raises(DeliveryError) as told:
        await ana.edit(posted, render("y"), None)
    assert (told.value.retry_after_s, told.value.is_permanent) == (7.0, False)
    calls = len(api.calls)
    for call in (
        ana.post(render("z"), None, "n2"),
        ana.edit(posted, render("z"), None),
        ana.delete(posted),
    ):
        with pytest.raises(DeliveryError) as told:
            await call
        assert 6.5 < (told.value.retry_after_s or 0) <= 7
    with pytest.raises(DeliveryError):
        await ana.show_draft(render("z"), "n2")
    await ana.show_typing()
    assert len(api.calls) == calls, "none of it was sent"
    await ben.post(render("hi"), None, "n")
    assert api.texts(43) == ["hi"]


async def test_telegram_group_is_sent_at_most_twenty_messages_a_minute(
    api: BotApi, bot: Bot
) -> None:
    group = canvas(bot, GROUP)
    for number in range(20):
        await group.post(render(str(number)), None, f"n{number}")
    with pytest.raises(DeliveryError) as told:
        await group.post(render("more"), None, "n20")
    assert 50 < (told.value.retry_after_s or 0) <= 60
    await group.show_typing()
    assert len(api.messages(GROUP)) == 20
    assert api.calls[-1][0] == "sendChatAction"


async def test_telegram_calls_stay_under_30_a_second_and_typing_signals_are_dropped_first(
    api: BotApi, bot: Bot
) -> None:
    times: list[float] = []
    began_at = asyncio.get_running_loop().time()

    async def post(number: int) -> None:
        while True:
            try:
                await canvas(bot, 42).post(render("x"), None, f"n{number}")
            except DeliveryError as error:
                await asyncio.sleep(error.retry_after_s or 0)
            else:
                times.append(asyncio.get_running_loop().time())
                return

    async with asyncio.TaskGroup() as tasks:
        for number in range(70):
            tasks.create_task(post(number))
        await asyncio.sleep(0)
        await canvas(bot, 43).show_typing()
    assert len(api.messages(42)) == 70
    assert sum(at - began_at < 1 for at in times) <= 30
    assert times[-1] - began_at > 2
    assert not api.called("sendChatAction")


async def test_buttons_of_an_answer_become_an_inline_keyboard(api: BotApi, bot: Bot) -> None:
    def button(label: str) -> Button:
        return Button(label=label, command=Command(name="help"), id=f"id-{label}")

    labels = ("1", "2", "3", "4", "A rather long label", "5")
    answer = Answer(text="Choose", buttons=tuple(button(label) for label in labels))
    drawn = canvas(bot, 42)
    message_id = await drawn.post(render("Choose"), answer, "n")
    rows = api.messages(42)[0]["reply_markup"]["inline_keyboard"]
    assert [[one["text"] for one in row] for row in rows] == [
        ["1", "2", "3"],
        ["4"],
        ["A rather long label"],
        ["5"],
    ]
    assert rows[1][0]["callback_data"] == "id-4"
    await drawn.edit(message_id, render("Chosen"), None)
    assert "reply_markup" not in api.messages(42)[0]


# The server of the double warns as it reads the end of a large file of an album.
@pytest.mark.filterwarnings("ignore:unread_data:DeprecationWarning")
async def test_files_follow_the_text_and_are_sent_once(api: BotApi, bot: Bot) -> None:
    large = b"two" * 1_000_000
    files = (File(name="a.csv", content=b"1,2"), File(name="b für Ana.txt", content=large))
    answer = Answer(text="Here", files=files)
    record = ListRecord()
    reply = StreamedReply(canvas(bot, 42))
    reply.begin(record)
    api.fail(400, "Bad Request: try it once more", method="sendMediaGroup")
    api.fail(400, "Bad Request: try it once more", method="sendDocument")
    with pytest.raises(DeliveryError):
        await reply.finish(answer)
    await reply.finish(answer)
    names = [message.get("document", {}).get("file_name") for message in api.messages(42)]
    assert names == [None, "a.csv", "b für Ana.txt"]
    assert record.message_ids == [str(message["message_id"]) for message in api.messages(42)]
    again = StreamedReply(canvas(bot, 42))
    again.begin(record)
    await again.finish(answer)
    assert len(api.messages(42)) == 3
    assert api.files == {"a.csv": b"1,2", "b für Ana.txt": large}


async def test_recording_in_the_form_of_a_voice_message_is_sent_as_one(
    api: BotApi, bot: Bot
) -> None:
    reply = StreamedReply(canvas(bot, 42))
    reply.begin(ListRecord())
    file = File(name="answer.ogg", content=b"OggS123", mime="audio/ogg")
    await reply.finish(Answer(text="", files=(file,)))
    assert [message["voice"]["file_size"] for message in api.messages(42)] == [7]


def pictures(count: int) -> tuple[File, ...]:
    return tuple(
        File(name=f"{number}.jpg", content=b"\xff\xd8 %d" % number, mime="image/jpeg")
        for number in range(count)
    )


async def test_album_is_recorded_message_by_message_and_not_sent_again_after_a_restart(
    api: BotApi, bot: Bot
) -> None:
    answer = Answer(text="Here", files=pictures(3))
    record = ListRecord()
    reply = StreamedReply(canvas(bot, 42))
    reply.begin(record)
    await reply.finish(answer)
    assert record.stored == [str(message["message_id"]) for message in api.messages(42)]
    assert len(record.stored) == 4
    again = StreamedReply(canvas(bot, 42))
    again.begin(ListRecord(posted=record.stored))
    await again.finish(answer)
    assert len(api.called("sendMediaGroup")) == 1
    assert len(api.messages(42)) == 4


async def test_album_whose_response_was_lost_is_found_and_not_sent_again(
    api: BotApi, bot: Bot
) -> None:
    answer = Answer(text="Here", files=pictures(3))
    record = ListRecord()
    reply = StreamedReply(canvas(bot, 42))
    reply.begin(record)
    api.lose(502, method="sendMediaGroup")
    with pytest.raises(DeliveryError) as lost:
        await reply.finish(answer)
    assert lost.value.is_uncertain
    text_id, *file_ids = (str(message["message_id"]) for message in api.messages(42))
    assert record.stored == [text_id, *[f"{INTENT_MARK}{text_id}"] * 3]
    after_restart = ListRecord(posted=record.stored)
    again = StreamedReply(canvas(bot, 42))
    again.begin(after_restart)
    await again.finish(answer)
    assert len(api.messages(42)) == 4
    assert after_restart.message_ids == [text_id, *file_ids]


async def test_album_that_never_arrived_is_sent_once_without_a_notice(
    api: BotApi, bot: Bot
) -> None:
    answer = Answer(text="Here", files=pictures(2))
    reply = StreamedReply(canvas(bot, 42))
    reply.begin(ListRecord())
    api.fail(502, "Bad Gateway", method="sendMediaGroup")
    with pytest.raises(DeliveryError):
        await reply.finish(answer)
    (message,) = api.messages(42)
    text_id = str(message["message_id"])
    again = StreamedReply(canvas(bot, 42))
    again.begin(ListRecord(posted=[text_id, *[f"{INTENT_MARK}{text_id}"] * 2]))
    await again.finish(answer)
    assert api.texts(42) == ["Here", "", ""]
    assert len(api.called("sendMediaGroup")) == 2


async def test_answer_with_only_files_is_sent_without_text(api: BotApi, bot: Bot) -> None:
    painter = StreamedReply(canvas(bot, 42))
    slip = ListRecord()
    painter.begin(slip)
    await painter.finish(Answer(text="", files=(File(name="a.csv", content=b"1"),)))
    assert [message["document"]["file_name"] for message in api.messages(42)] == ["a.csv"]
    assert len(slip.message_ids) == 1


async def test_streamed_telegram_answer_is_a_draft_in_a_direct_chat_and_then_one_message(
    api: BotApi, bot: Bot
) -> None:
    record = ListRecord()
    reply = StreamedReply(canvas(bot, 42), first_words_s=0)
    reply.begin(record)
    await api.wait_for(lambda: api.called("sendChatAction"))
    reply.show("Ana lives")
    await api.wait_for(lambda: api.drafts == [(42, "Ana lives")])
    reply.show("Ana lives in **Porto**.")
    await api.wait_for(lambda: api.drafts[-1] == (42, "Ana lives in Porto."))
    assert api.texts(42) == []
    await reply.finish(Answer(text="Ana lives in **Porto**."))
    assert api.texts(42) == ["Ana lives in Porto."]
    assert api.called("editMessageText") == []
    assert len({call["draft_id"] for call in api.called("sendMessageDraft")}) == 1, (
        "one draft grows"
    )


async def test_telegram_server_without_drafts_gets_a_streamed_message_by_edits(
    api: BotApi, bot: Bot
) -> None:
    api.fail(404, "Not Found", method="sendMessageDraft")
    reply = StreamedReply(canvas(bot, 42), first_words_s=0)
    reply.begin(ListRecord())
    reply.show("Ana lives")
    await api.wait_for(lambda: api.texts(42) == ["Ana lives"])
    await reply.finish(Answer(text="Ana lives here."))
    assert api.texts(42) == ["Ana lives here."]
    assert len(api.called("sendMessageDraft")) == 1, "it is not asked again"


async def test_streamed_telegram_answer_in_a_group_edits_one_message(api: BotApi, bot: Bot) -> None:
    drawn = canvas(bot, GROUP)
    drawn.pace_s = 0.01
    reply, record = StreamedReply(drawn, first_words_s=0), ListRecord()
    reply.begin(record)
    reply.show("Ana lives")
    await api.wait_for(lambda: api.texts(GROUP) == ["Ana lives"])
    reply.show("Ana lives in **Por")
    await api.wait_for(lambda: len(api.called("editMessageText")) == 1)
    await reply.finish(Answer(text="Ana lives in **Porto**."))
    assert api.texts(GROUP) == ["Ana lives in Porto."]
    assert api.messages(GROUP)[0]["entities"] == [{"type": "bold", "offset": 13, "length": 5}]
    assert len(api.called("sendMessage")) == 1
    assert record.stored == [str(api.messages(GROUP)[0]["message_id"])]


async def test_telegram_answer_that_is_complete_at_once_is_sent_in_one_message(
    api: BotApi, bot: Bot
) -> None:
    reply = StreamedReply(canvas(bot, 42))
    reply.begin(ListRecord())
    await api.wait_for(lambda: api.called("sendChatAction"))
    for text in ("Ana", "Ana lives", "Ana lives in Porto."):
        reply.show(text)
    await reply.finish(Answer(text="Ana lives in Porto."))
    assert [method for method, _ in api.calls if method != "getMe"] == [
        "sendChatAction",
        "sendMessage",
    ]


@pytest.mark.parametrize("status", [0, 502, 504])
async def test_telegram_message_whose_response_was_lost_is_repeated_with_a_mark(
    api: BotApi, bot: Bot, status: int
) -> None:
    """0: the connection is closed; else a proxy does not know what became of the call."""
    record = ListRecord()
    reply = StreamedReply(canvas(bot, 42))
    reply.begin(record)
    api.fail(status, "Bad Gateway", method="sendMessage")
    with pytest.raises(DeliveryError) as lost:
        await reply.finish(Answer(text="Tea is ready."))
    assert lost.value.is_uncertain
    assert record.stored == [INTENT_MARK]
    again = StreamedReply(canvas(bot, 42))
    again.begin(ListRecord(posted=record.stored))
    await again.finish(Answer(text="Tea is ready."))
    assert api.texts(42) == ["(you may have seen this; the connection broke)\n\nTea is ready."]


@pytest.mark.parametrize("status", [408, 499, 500, 520, 524])
async def test_telegram_message_that_a_proxy_gave_up_on_counts_as_perhaps_sent(
    api: BotApi, bot: Bot, status: int
) -> None:
    record = ListRecord()
    reply = StreamedReply(canvas(bot, 42))
    reply.begin(record)
    api.lose(status, method="sendMessage")
    with pytest.raises(DeliveryError) as lost:
        await reply.finish(Answer(text="Tea is ready."))
    assert lost.value.is_uncertain
    assert record.stored == [INTENT_MARK]
    assert api.texts(42) == ["Tea is ready."]


async def test_telegram_call_that_was_never_sent_leaves_no_uncertain_record(
    api: BotApi, bot: Bot
) -> None:
    await api.stop()
    record = ListRecord()
    reply = StreamedReply(canvas(bot, 42))
    reply.begin(record)
    with pytest.raises(DeliveryError) as refused:
        await reply.finish(Answer(text="Tea is ready."))
    assert not refused.value.is_uncertain
    assert record.stored == []


async def test_a_long_answer_is_split_within_the_limit(api: BotApi, bot: Bot) -> None:
    text = "\n\n".join(f"Paragraph {number} 🦉 " + "word " * 60 for number in range(40))
    painter = StreamedReply(canvas(bot, 42))
    painter.begin(ListRecord())
    await painter.finish(
        Answer(text=text, buttons=(Button(label="More", command=Command(name="x"), id="i"),))
    )
    shown = api.texts(42)
    assert len(shown) > 2
    assert max(utf16_length(part) for part in shown) <= 4096
    assert "".join("".join(shown).split()) == "".join(text.split())
    assert ["reply_markup" in message for message in api.messages(42)] == [False] * (
        len(shown) - 1
    ) + [True]


async def test_a_restart_edits_and_does_not_post_again(api: BotApi, bot: Bot) -> None:
    message_id = await canvas(bot, 42).post(render("Ana liv"), None, "n")
    painter = StreamedReply(canvas(bot, 42))
    painter.begin(ListRecord(posted=[message_id]))
    await painter.finish(Answer(text="Ana lives in Porto."))
    assert api.texts(42) == ["Ana lives in Porto."]


async def test_a_message_that_a_person_deleted_is_posted_anew(api: BotApi, bot: Bot) -> None:
    painter = StreamedReply(canvas(bot, 42))
    slip = ListRecord(posted=["31"])
    painter.begin(slip)
    await painter.finish(Answer(text="Here again."))
    assert api.texts(42) == ["Here again."]
    assert slip.message_ids == ["1"]


async def test_answer_to_a_person_who_blocked_the_telegram_bot_fails_permanently(
    api: BotApi, bot: Bot
) -> None:
    api.user_blocks(42)
    painter = StreamedReply(canvas(bot, 42))
    painter.begin(ListRecord())
    with pytest.raises(DeliveryError) as told:
        await painter.finish(Answer(text="Are you there?"))
    assert told.value.is_permanent


@pytest.mark.parametrize(
    "text", ["> quote\n> > inner", "| a | b |\n|---|---|\n| 1 | 2 |", "*" * 300, "<b>x</b>"]
)
async def test_message_with_odd_markdown_is_accepted_by_telegram(
    api: BotApi, bot: Bot, text: str
) -> None:
    await canvas(bot, 42).post(render(text), None, "n")
    assert len(api.messages(42)) == 1


async def test_telegram_network_errors_do_not_contain_the_token(api: BotApi) -> None:
    request = TelegramRequest(api.token, 1)
    await request.initialize()
    values: dict[str, Any] = {"url": f"http://127.0.0.1:1/bot{api.token}/getMe", "method": "POST"}
    with pytest.raises(NetworkError) as told:
        await request.do_request(**values)
    await request.shutdown()
    assert api.token not in str(told.value)


async def test_telegram_requests_use_the_proxy_of_the_environment_except_for_no_proxy_hosts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "bot.internal,api.internal:8081")
    request = TelegramRequest("1:x", 1)
    await request.initialize()
    said = {}
    for host in ("mneme.invalid", "bot.internal:8081", "api.internal:8081"):
        with pytest.raises(NetworkError) as told:
            await request.do_request(f"http://{host}/bot1:x/getMe", "POST")
        said[host] = told.value.message.startswith("the proxy refuses")
    await request.shutdown()
    assert said == {"mneme.invalid": True, "bot.internal:8081": False, "api.internal:8081": False}


async def test_telegram_file_whose_send_response_was_lost_is_not_sent_again(
    api: BotApi, bot: Bot
) -> None:
    answer = Answer(text="Here", files=(File(name="a.csv", content=b"1,2"),))
    record = ListRecord()
    reply = StreamedReply(canvas(bot, 42))
    reply.begin(record)
    api.lose(502, method="sendDocument")
    with pytest.raises(DeliveryError) as lost:
        await reply.finish(answer)
    assert lost.value.is_uncertain
    text_id, file_id = (str(message["message_id"]) for message in api.messages(42))
    assert record.stored == [text_id, f"{INTENT_MARK}{text_id}"]
    after_restart = ListRecord(posted=record.stored)
    again = StreamedReply(canvas(bot, 42))
    again.begin(after_restart)
    await again.finish(answer)
    assert api.texts(42) == ["Here", ""]
    assert after_restart.message_ids == [text_id, file_id]


async def test_file_that_never_arrived_is_sent_without_a_notice(api: BotApi, bot: Bot) -> None:
    answer = Answer(text="Here", files=(File(name="a.csv", content=b"1,2"),))
    reply = StreamedReply(canvas(bot, 42))
    reply.begin(ListRecord())
    api.fail(502, "Bad Gateway", method="sendDocument")
    with pytest.raises(DeliveryError):
        await reply.finish(answer)
    (message,) = api.messages(42)
    text_id = str(message["message_id"])
    again = StreamedReply(canvas(bot, 42))
    again.begin(ListRecord(posted=[text_id, f"{INTENT_MARK}{text_id}"]))
    await again.finish(answer)
    assert api.texts(42) == ["Here", ""]
    assert api.messages(42)[-1]["document"]["file_name"] == "a.csv"
