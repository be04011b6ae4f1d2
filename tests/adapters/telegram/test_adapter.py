"""The Telegram adapter against a Bot API server: nothing accepted is lost, nothing is taken twice, nothing stops it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator

import pytest

from adapters.telegram.adapter import Telegram
from core.errors import ConfigError
from core.ports import Reply
from core.store.inbox import Inbox
from core.store.sqlite.database import Database
from core.types import Address, Answer, CommandSpec, Inbound
from tests.fixtures.bot_api import BotApi
from tests.fixtures.clock import SteadyClock
from tests.fixtures.delivery_record import ListRecord
from tests.fixtures.echo_router import EchoRouter

pytestmark = pytest.mark.slow

GROUP, FORUM = -200, -1001234567890
COMMANDS = (CommandSpec(name="help", description="What I can do"), CommandSpec(name="new", description="x" * 300))


class House:
    """One home with its state.db; `running` is one life of the process."""

    def __init__(self, api: BotApi, database: Database, clock: SteadyClock) -> None:
        self.api = api
        self.clock = clock
        self.inbox = Inbox(database, clock)
        self.desk = EchoRouter(self.inbox, clock)

    def adapter(self, inbox: Inbox | None = None) -> Telegram:
        return Telegram(
            token=self.api.token,
            api_url=self.api.url,
            inbox=inbox or self.inbox,
            clock=self.clock,
            poll_timeout_s=5,
            backoff_s=0.01,
        )

    @contextlib.asynccontextmanager
    async def running(self, inbox: Inbox | None = None) -> AsyncIterator[Telegram]:
        adapter = self.adapter(inbox)
        await adapter.open()
        listening = asyncio.create_task(adapter.listen(self.desk, COMMANDS))
        try:
            yield adapter
        finally:
            listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await listening
            await adapter.close()

    async def confirmed(self) -> None:
        """Waits until nothing is left on the server."""
        await self.api.wait_for(lambda: not self.api.updates)


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with BotApi() as running:
        running.person(42, "Ana", "ana")
        running.group(GROUP)
        running.group(FORUM, "Flat", is_forum=True)
        yield running
        assert running.violations == []


@pytest.fixture
def house(api: BotApi, database: Database, clock: SteadyClock) -> House:
    return House(api, database, clock)


async def test_a_message_is_answered(api: BotApi, house: House) -> None:
    async with house.running():
        api.user_says(42, "Where does Ana live?")
        await api.wait_for(lambda: api.texts(42) == ["message: Where does Ana live?"])
        await house.confirmed()
        async with asyncio.timeout(5):
            await house.desk.is_idle.wait()
    assert await house.inbox.left_raw("telegram") == []
    assert await house.inbox.waiting() == []
    assert api.called("getUpdates")[0]["allowed_updates"] == [
        "message",
        "edited_message",
        "callback_query",
        "my_chat_member",
    ]
    assert api.commands == [
        {"command": "help", "description": "What I can do"},
        {"command": "new", "description": "x" * 256},
    ]


async def test_groups_are_answered_when_meant_and_topics_in_their_place(api: BotApi, house: House) -> None:
    topic = api.topic(FORUM)
    async with house.running():
        api.user_says(GROUP, "just talking")
        asked = api.user_says(GROUP, "@mneme_bot hi")
        api.user_says(FORUM, "/help@mneme_bot", thread_id=topic)
        await api.wait_for(lambda: api.messages(GROUP) and api.messages(FORUM))
    assert api.texts(GROUP) == ["message: hi"]
    assert api.messages(GROUP)[0]["reply_to_message"]["message_id"] == asked["message"]["message_id"]
    assert api.texts(FORUM, topic) == ["message: /help@mneme_bot"]
    assert [inbound.is_addressed for inbound in house.desk.admitted] == [False, True, True]


async def test_strangers_are_the_routers_to_judge(api: BotApi, house: House) -> None:
    async with house.running():
        api.user_says(GROUP, "@mneme_bot hi", sender_chat=api.chats[GROUP])
        api.user_says(42, "hello")
        await api.wait_for(lambda: api.messages(42))
    assert api.messages(GROUP) == []
    assert house.desk.texts == ["hello"]


async def test_edits_reach_the_router(api: BotApi, house: House) -> None:
    async with house.running():
        message = api.user_says(42, "firts")["message"]
        api.user_edits(42, message["message_id"], "first")
        await api.wait_for(lambda: len(api.messages(42)) == 2)
    assert [(inbound.kind, inbound.message_id) for inbound in house.desk.admitted] == [("message", "1"), ("edit", "1")]


async def test_a_pressed_button_is_acknowledged_once_and_served(api: BotApi, house: House) -> None:
    async with house.running():
        api.user_says(42, "hi")
        await api.wait_for(lambda: api.messages(42))
        api.user_presses(42, api.messages(42)[0]["message_id"], "Again")
        await api.wait_for(lambda: len(api.messages(42)) == 2 and not api.presses)
    assert api.texts(42)[-1] == "action: act-1"
    assert len(api.called("answerCallbackQuery")) == 1


async def test_a_group_that_moves_keeps_its_router(api: BotApi, house: House) -> None:
    async with house.running():
        api.migrate(GROUP, -100555)
        api.user_says(-100555, "@mneme_bot still there?")
        await api.wait_for(lambda: api.messages(-100555))
    assert set(house.desk.moves) == {("telegram", "-200", "-100555")}


async def test_updates_are_accepted_before_they_are_confirmed(api: BotApi, house: House) -> None:
    """Killed between accepting and confirming: redelivered, and taken once."""

    class Dying(EchoRouter):
        async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
            await super().admit(inbound, reply)
            raise asyncio.CancelledError

    api.user_says(42, "one")
    api.user_says(42, "two")
    first = house.adapter()
    await first.open()
    with pytest.raises(asyncio.CancelledError):
        await first.listen(Dying(house.inbox, house.clock), COMMANDS)
    await first.close()
    assert len(api.updates) == 2
    assert [entry.inbound.text for entry in await house.inbox.waiting()] == ["one"]

    async with house.running():
        await api.wait_for(lambda: api.messages(42))
        await house.confirmed()
    assert house.desk.texts == ["two"], "the router takes up what it knows when it starts"


async def test_what_an_older_version_has_stored_is_worked_off(api: BotApi, house: House, database: Database) -> None:
    update = api.user_says(42, "only here")
    api.updates.clear()
    values = {"id": update["update_id"], "raw": json.dumps(update)}
    insert = "INSERT INTO raw_updates (platform, update_id, raw) VALUES ('telegram', :id, :raw)"
    await database.execute(insert, values)
    async with house.running():
        await api.wait_for(lambda: api.texts(42) == ["message: only here"])
        await api.wait_for(lambda: api.called("getUpdates"))
    assert await house.inbox.left_raw("telegram") == []


async def test_a_redelivered_update_changes_nothing(api: BotApi, house: House) -> None:
    update = api.user_says(42, "once")
    async with house.running():
        await api.wait_for(lambda: api.messages(42))
        await house.confirmed()
        api.updates.append(update)
        api.user_says(42, "then")
        await api.wait_for(lambda: len(api.messages(42)) == 2)
    assert house.desk.texts == ["once", "then"]


async def test_a_redelivered_press_changes_nothing(api: BotApi, house: House) -> None:
    async with house.running():
        api.user_says(42, "hi")
        await api.wait_for(lambda: api.messages(42))
        update = api.user_presses(42, api.messages(42)[0]["message_id"], "Again")
        await api.wait_for(lambda: len(api.messages(42)) == 2)
        await house.confirmed()
        house.clock.advance(minutes=1)
        api.updates.append(update)
        api.user_says(42, "then")
        await api.wait_for(lambda: len(api.messages(42)) == 3)
    assert [inbound.kind for inbound in house.desk.admitted] == ["message", "action", "message"]


async def test_an_update_that_cannot_be_read_is_kept_and_skipped(api: BotApi, house: House, database: Database) -> None:
    async with house.running():
        api.user_says(42, "before")
        api.push(message="nonsense")
        api.push(message={"message_id": 7, "date": "yesterday", "chat": {"id": 42, "type": "private"}, "text": "x"})
        api.push(message={"message_id": 8})
        api.user_says(42, "after")
        await api.wait_for(lambda: len(api.messages(42)) == 2)
        await house.confirmed()
        polls = len(api.called("getUpdates"))
    assert house.desk.texts == ["before", "after"]
    assert polls < 8
    assert await house.inbox.left_raw("telegram") == []
    failed = await database.read(
        lambda connection: connection.execute("SELECT error FROM raw_updates ORDER BY update_id").fetchall()
    )
    assert len(failed) == 3
    assert all(row["error"] for row in failed)


async def test_half_characters_do_not_stop_anything(api: BotApi, house: House) -> None:
    async with house.running():
        api.user_says(42, "a\ud83d b")
        await api.wait_for(lambda: api.texts(42) == ["message: a\ufffd b"])


async def test_what_is_wrong_with_polling_is_told_until_it_passes(api: BotApi, house: House) -> None:
    for _ in range(3):
        api.fail(409, "Conflict: terminated by other getUpdates request", method="getUpdates")
    assert house.adapter().problem == "not reached yet"
    async with house.running() as adapter:
        await api.wait_for(lambda: adapter.problem == "another process polls with this token")
        api.user_says(42, "after that")
        await api.wait_for(lambda: api.messages(42))
        assert adapter.problem == ""


async def test_trouble_with_polling_passes(api: BotApi, house: House) -> None:
    api.fail(502, "Bad Gateway", method="getUpdates")
    api.drop(method="getUpdates")
    api.fail(404, "Not Found", method="getUpdates")
    api.fail(409, "Conflict: terminated by other getUpdates request", method="getUpdates")
    async with house.running():
        api.user_says(42, "after all that")
        await api.wait_for(lambda: api.messages(42))
    assert len(api.called("getUpdates")) in (5, 6)


async def test_a_flood_is_waited_out(api: BotApi, house: House) -> None:
    api.flood(1, method="getUpdates")
    started = asyncio.get_running_loop().time()
    async with house.running():
        api.user_says(42, "slow")
        await api.wait_for(lambda: api.messages(42))
    assert asyncio.get_running_loop().time() - started >= 1
    assert len(api.called("getUpdates")) <= 3


async def test_a_webhook_is_removed(api: BotApi, house: House) -> None:
    api.webhook_url = "https://old.example/hook"
    async with house.running():
        api.user_says(42, "hi")
        await api.wait_for(lambda: api.messages(42))
    assert api.called("deleteWebhook")


async def test_a_server_that_comes_late(api: BotApi, house: House) -> None:
    await api.stop()
    async with house.running():
        await api.start()
        api.user_says(42, "good morning")
        await api.wait_for(lambda: api.messages(42))


async def test_a_refused_token_is_told_without_showing_it(api: BotApi, house: House) -> None:
    good = api.token
    for token in ("110201543:AAwrong", ""):
        api.token = token
        adapter = house.adapter()
        api.token = good
        with pytest.raises(ConfigError, match="TELEGRAM_BOT_TOKEN") as told:
            await adapter.open()
        await adapter.close()
        assert "AAwrong" not in str(told.value) + repr(told.value.__cause__)


async def test_a_revoked_token_ends_listening(api: BotApi, house: House) -> None:
    adapter = house.adapter()
    await adapter.open()
    listening = asyncio.create_task(adapter.listen(house.desk, COMMANDS))
    await api.wait_for(lambda: api.called("getUpdates"))
    api.token = "110201543:AAnew"
    api.user_says(42, "hi")
    with pytest.raises(ConfigError, match="refused the token"):
        await listening
    await adapter.close()


async def test_a_menu_that_is_refused_is_no_obstacle(api: BotApi, house: House) -> None:
    api.fail(400, "Bad Request: BOT_COMMAND_INVALID", method="setMyCommands")
    async with house.running():
        api.user_says(42, "hi")
        await api.wait_for(lambda: api.messages(42))


async def test_answers_under_way_outlive_listening(api: BotApi, house: House) -> None:
    may_answer = asyncio.Event()

    async def slow(inbound: Inbound, reply: Reply) -> None:
        reply.begin(ListRecord())
        await may_answer.wait()
        await reply.finish(Answer(text="at last"))

    house.desk.answer = slow
    adapter = house.adapter()
    await adapter.open()
    listening = asyncio.create_task(adapter.listen(house.desk, COMMANDS))
    api.user_says(42, "a hard question")
    await api.wait_for(lambda: api.called("sendChatAction"))
    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening
    may_answer.set()
    await api.wait_for(lambda: api.texts(42) == ["at last"])
    await adapter.close()


async def test_one_chat_does_not_wait_for_another(api: BotApi, house: House) -> None:
    may_answer = asyncio.Event()

    async def slow_for_ana(inbound: Inbound, reply: Reply) -> None:
        if inbound.sender.id == "42":
            await may_answer.wait()
        await EchoRouter.echo(inbound, reply)

    house.desk.answer = slow_for_ana
    async with house.running():
        api.user_says(42, "slow")
        api.user_says(43, "quick")
        await api.wait_for(lambda: api.messages(43))
        assert api.messages(42) == []
        may_answer.set()
        await api.wait_for(lambda: api.messages(42))


async def test_a_reply_without_an_event_beside_it(api: BotApi, house: House) -> None:
    async with house.running() as adapter:
        reply = adapter.reply(Address(platform="telegram", chat_id="42"))
        slip = ListRecord()
        reply.begin(slip)
        await reply.finish(Answer(text="Call Ana"))
    assert api.texts(42) == ["Call Ana"]
    assert slip.posted == ["1"]


async def test_the_token_is_not_logged(api: BotApi, house: House, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with house.running():
        api.user_says(42, "hi")
        await api.wait_for(lambda: api.messages(42))
    assert api.token not in caplog.text
