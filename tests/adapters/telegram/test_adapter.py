"""The Telegram adapter against a Bot API server: nothing accepted is lost, nothing is taken twice,
nothing stops it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest
from aiohttp import web
from telegram import Bot

from adapters import poll_lock
from adapters.telegram.adapter import Telegram, check_telegram
from adapters.telegram.menus import send_menus
from core.errors import ConfigError, DeliveryError, StoreError
from core.menus.command_specs import CommandSpec
from core.ports import Reply
from core.store.engine import Connection
from core.store.mailbox import Inbox
from core.store.rows import ensure_address
from core.store.sqlite.database import Database
from core.types import Address, Answer, Inbound
from tests.adapters.telegram.test_normalize import POLL
from tests.fixtures.bot_api import BotApi
from tests.fixtures.clock import SteadyClock
from tests.fixtures.delivery_record import ListRecord
from tests.fixtures.echo_router import EchoRouter

pytestmark = pytest.mark.slow

GROUP, FORUM = -200, -1001234567890
COMMANDS = (
    CommandSpec(name="help", description="What I can do", translations={"de": "Was ich kann"}),
    CommandSpec(name="new", description="x" * 300),
)


class House:
    """One home with its state.db; `running` is one life of the process."""

    def __init__(self, api: BotApi, database: Database, clock: SteadyClock) -> None:
        self.api = api
        self.clock = clock
        self.inbox = Inbox(database, clock)
        self.desk = EchoRouter(self.inbox, clock)
        self.pause_s = 0.01
        self.marks_working = False
        self.owner_ids: tuple[str, ...] = ()

    def adapter(self, inbox: Inbox | None = None) -> Telegram:
        adapter = Telegram(
            token=self.api.token,
            api_url=self.api.url,
            inbox=inbox or self.inbox,
            clock=self.clock,
            marks_working=self.marks_working,
            owner_ids=self.owner_ids,
        )
        adapter.poll_timeout_s, adapter.pause_s = 5, self.pause_s
        return adapter

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


async def test_message_on_telegram_is_answered_and_confirmed(api: BotApi, house: House) -> None:
    async with house.running():
        api.user_says(42, "Where does Ana live?")
        await api.wait_for(lambda: api.texts(42) == ["message: Where does Ana live?"])
        await house.confirmed()
        await api.wait_for(lambda: api.commands)
        async with asyncio.timeout(60):
            await house.desk.is_idle.wait()
    assert await house.inbox.list_waiting() == []
    assert api.called("getUpdates")[0]["allowed_updates"] == [
        "message",
        "edited_message",
        "callback_query",
        "message_reaction",
        "my_chat_member",
        "poll",
    ]
    assert api.commands == [
        {"command": "help", "description": "What I can do"},
        {"command": "new", "description": "x" * 256},
    ]


async def test_telegram_group_is_answered_only_when_addressed_and_topics_in_their_topic(
    api: BotApi, house: House
) -> None:
    topic = api.topic(FORUM)
    async with house.running():
        api.user_says(GROUP, "just talking")
        asked = api.user_says(GROUP, "@mneme_bot hi")
        api.user_says(FORUM, "/help@mneme_bot", thread_id=topic)
        await api.wait_for(lambda: api.messages(GROUP) and api.messages(FORUM))
    assert api.texts(GROUP) == ["message: hi"]
    assert (
        api.messages(GROUP)[0]["reply_to_message"]["message_id"] == asked["message"]["message_id"]
    )
    assert api.texts(FORUM, topic) == ["message: /help@mneme_bot"]
    assert [inbound.is_addressed for inbound in house.desk.admitted] == [False, True, True]


async def test_telegram_message_of_an_anonymous_chat_is_ignored_and_of_a_stranger_passed_on(
    api: BotApi, house: House
) -> None:
    async with house.running():
        api.user_says(GROUP, "@mneme_bot hi", sender_chat=api.chats[GROUP])
        api.user_says(42, "hello")
        await api.wait_for(lambda: api.messages(42))
    assert api.messages(GROUP) == []
    assert house.desk.texts == ["hello"]


async def test_edit_of_a_message_reaches_the_router_as_an_edit(api: BotApi, house: House) -> None:
    async with house.running():
        message = api.user_says(42, "firts")["message"]
        api.user_edits(42, message["message_id"], "first")
        await api.wait_for(lambda: len(api.messages(42)) == 2)
    assert [(inbound.kind, inbound.message_id) for inbound in house.desk.admitted] == [
        ("message", "1"),
        ("edit", "1"),
    ]


async def test_outcome_of_a_poll_is_an_edit_of_its_message(api: BotApi, house: House) -> None:
    async with house.running():
        message = api.user_says(42, "", poll=POLL)["message"]
        api.poll_closes({**POLL, "id": "of another chat"})
        api.poll_closes(POLL)
        await api.wait_for(lambda: len(api.messages(42)) == 2)
        await house.confirmed()
    _, outcome = house.desk.admitted
    assert (outcome.kind, outcome.message_id) == ("edit", str(message["message_id"]))
    assert outcome.text == "Closed poll: {Which day? Options: Monday (2); Friday (1)}"
    assert (outcome.sender.id, outcome.address.chat_id) == ("42", "42")


async def test_a_pressed_button_is_acknowledged_once_and_served(api: BotApi, house: House) -> None:
    async with house.running():
        api.user_says(42, "hi")
        await api.wait_for(lambda: api.messages(42))
        api.user_presses(42, api.messages(42)[0]["message_id"], "Again")
        await api.wait_for(lambda: len(api.messages(42)) == 2 and not api.presses)
    assert api.texts(42)[-1] == "action: act-1"
    assert len(api.called("answerCallbackQuery")) == 1


async def test_telegram_group_migration_is_reported_and_the_new_chat_answered(
    api: BotApi, house: House
) -> None:
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
    assert [entry.inbound.text for entry in await house.inbox.list_waiting()] == ["one"]

    async with house.running():
        await api.wait_for(lambda: api.messages(42))
        await house.confirmed()
    assert house.desk.texts == ["two"], "the router takes up what it knows when it starts"


async def test_redelivered_message_is_not_answered_a_second_time(api: BotApi, house: House) -> None:
    update = api.user_says(42, "once")
    async with house.running():
        await api.wait_for(lambda: api.messages(42))
        await house.confirmed()
        api.updates.append(update)
        api.user_says(42, "then")
        await api.wait_for(lambda: len(api.messages(42)) == 2)
    assert house.desk.texts == ["once", "then"]


async def test_redelivered_telegram_button_press_is_not_handled_a_second_time(
    api: BotApi, house: House
) -> None:
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


async def test_an_update_that_cannot_be_read_is_kept_and_skipped(
    api: BotApi, house: House, database: Database
) -> None:
    async with house.running():
        api.user_says(42, "before")
        api.push(message="nonsense")
        api.push(
            message={
                "message_id": 7,
                "date": "yesterday",
                "chat": {"id": 42, "type": "private"},
                "text": "x",
            }
        )
        api.push(message={"message_id": 8})
        api.user_says(42, "after")
        await api.wait_for(lambda: len(api.messages(42)) == 2)
        await house.confirmed()
        polls = len(api.called("getUpdates"))
    assert house.desk.texts == ["before", "after"]
    assert polls < 8
    failed = await database.read(
        lambda connection: connection.execute(
            "SELECT error FROM raw_updates ORDER BY update_id"
        ).fetchall()
    )
    assert len(failed) == 3
    assert all(row["error"] for row in failed)


async def test_lone_surrogate_in_a_telegram_message_is_replaced_and_answered(
    api: BotApi, house: House
) -> None:
    async with house.running():
        api.user_says(42, "a\ud83d b")
        await api.wait_for(lambda: api.texts(42) == ["message: a\ufffd b"])


async def test_telegram_polling_problem_is_reported_until_polling_works_again(
    api: BotApi, house: House
) -> None:
    assert house.adapter().problem == "not reached yet"
    assert house.adapter().accepted_at == 0
    async with house.running() as adapter:
        await api.wait_for(lambda: adapter.problem == "")
        assert adapter.accepted_at > 0
        for _ in range(3):
            api.fail(409, "Conflict: terminated by other getUpdates request", method="getUpdates")
        api.user_says(42, "first")
        await api.wait_for(lambda: adapter.problem == "another process polls with this token (409)")
        api.user_says(42, "after that")
        await api.wait_for(lambda: adapter.problem == "")
        await api.wait_for(lambda: len(api.messages(42)) == 2)
        api.fail(
            500, f"nobody at https://me:hunter2@there/bot{api.token}", method="getUpdates", times=99
        )
        api.user_says(42, "and at last")
        # By its shape; as it stands, where settings have hidden it in this process before.
        masked = [f"nobody at https://[secret]@there/{name}[secret]" for name in ("", "bot")]
        await api.wait_for(lambda: adapter.problem in masked)


async def test_connected_means_that_a_poll_was_answered_not_long_ago(
    api: BotApi, house: House
) -> None:
    async with house.running() as adapter:
        await api.wait_for(lambda: adapter.problem == "")
        adapter._polled_at -= 60
        assert adapter.problem.startswith("no poll was answered for 6")
        await api.stop()
        for _ in range(100):
            if adapter.problem == "127.0.0.1 refuses the connection":
                break
            await asyncio.sleep(0.05)
        assert adapter.problem == "127.0.0.1 refuses the connection"
        await api.start()
        await api.wait_for(lambda: adapter.problem == "")


@pytest.mark.parametrize(
    ("url", "clause"),
    [
        ("http://127.0.0.1:9", "127.0.0.1 refuses the connection"),
        ("http://bot.invalid", "the name bot.invalid cannot be resolved"),
    ],
)
async def test_telegram_status_and_check_describe_a_problem_in_the_same_words(
    house: House, url: str, clause: str
) -> None:
    adapter = Telegram(token="1:A", api_url=url, inbox=house.inbox, clock=house.clock)
    await adapter.open()
    assert adapter.problem == clause
    await adapter.close()
    with pytest.raises(DeliveryError, match=clause):
        await check_telegram("1:A", url)


async def test_check_of_the_telegram_token_names_the_bot_or_reports_a_refusal(api: BotApi) -> None:
    assert await check_telegram(api.token, api.url) == "The token is valid; the bot is @mneme_bot."
    with pytest.raises(ConfigError, match="refused the token"):
        await check_telegram("1:A", api.url)


async def test_parameters_of_polling_are_in_the_body_and_not_in_the_address(
    api: BotApi, house: House
) -> None:
    async with house.running():
        api.user_says(42, "hi")
        await api.wait_for(lambda: api.messages(42))
        await house.confirmed()
    assert "getUpdates" in api.paths
    assert not any("?" in path for path in api.paths)


@pytest.mark.parametrize("is_repeating", [False, True], ids=["empty", "confirmed updates again"])
async def test_telegram_server_that_ignores_long_polling_is_polled_with_pauses(
    api: BotApi, house: House, *, is_repeating: bool
) -> None:
    api.is_patient = False
    house.pause_s = 0.2
    async with house.running():
        update = api.user_says(42, "hi")
        await api.wait_for(lambda: api.messages(42))
        api.is_repeating = is_repeating
        if is_repeating:
            api.updates.append(update)
        polls = len(api.called("getUpdates"))
        await asyncio.sleep(0.5)
        assert len(api.called("getUpdates")) - polls <= 4
        api.user_says(42, "then")
        await api.wait_for(lambda: len(api.messages(42)) == 2)
    assert house.desk.texts == ["hi", "then"]


async def test_updates_of_one_poll_are_all_admitted_before_the_first_is_served(
    api: BotApi, house: House
) -> None:
    log: list[str] = []

    class Logging(EchoRouter):
        async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
            log.append(f"admit {inbound.text}")
            return await super().admit(inbound, reply)

        async def serve(self, entry_id: int) -> None:
            log.append("serve")
            await super().serve(entry_id)

    house.desk = Logging(house.inbox, house.clock)
    for text in ("one", "two", "three"):
        api.user_says(42, text)
    async with house.running():
        await api.wait_for(lambda: len(api.messages(42)) == 3)
    assert log == ["admit one", "admit two", "admit three", "serve", "serve", "serve"]


class Failing(EchoRouter):
    """Raises `error` for messages that say "bad", and tells so."""

    error: Exception = ZeroDivisionError("a mistake")
    tries = 0

    async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
        if "bad" in inbound.text and self.error:
            self.tries += 1
            raise self.error
        return await super().admit(inbound, reply)


@pytest.mark.parametrize(
    "error", [ZeroDivisionError("a mistake"), DeliveryError("not now"), AssertionError()]
)
async def test_update_that_fails_three_times_becomes_a_dead_letter(
    api: BotApi, house: House, database: Database, error: Exception
) -> None:
    failing = house.desk = Failing(house.inbox, house.clock)
    failing.error = error
    house.pause_s = 0.3  # longer than an answer takes
    api.user_says(42, "bad")
    api.user_says(42, "good")
    async with house.running():
        await api.wait_for(lambda: api.messages(42))
        assert failing.tries == 1, "nobody waits for it"
        await house.confirmed()
        assert failing.tries == 3
        api.user_says(42, "more")
        await api.wait_for(lambda: len(api.messages(42)) == 2)
    assert house.desk.texts == ["good", "more"]
    (row,) = await database.fetch_all("SELECT raw, error FROM raw_updates", {})
    assert json.loads(row["raw"])["message"]["text"] == "bad"
    assert row["error"].startswith(type(error).__name__)


async def test_failed_telegram_update_of_an_incognito_chat_is_stored_without_its_content(
    api: BotApi, house: House, database: Database
) -> None:
    address = Address(platform="telegram", chat_id="42", thread_id="7")

    def begin_incognito(connection: Connection) -> None:
        values = {"address": ensure_address(connection, address)}
        statement = "INSERT INTO incognito_addresses (address_id, at) VALUES (:address, 0)"
        connection.execute(statement, values)

    await database.write(begin_incognito)
    failing = house.desk = Failing(house.inbox, house.clock)
    failing.error = ValueError("odd")
    api.user_says(42, "bad")
    api.user_says(42, "good")
    async with house.running():
        await api.wait_for(lambda: api.messages(42))
        await house.confirmed()
    (row,) = await database.fetch_all("SELECT raw FROM raw_updates", {})
    assert row["raw"] == "{}"


async def test_telegram_update_without_a_chat_is_set_aside_and_later_updates_are_served(
    api: BotApi, house: House, database: Database
) -> None:
    strange = api.user_says(42, "from nowhere")
    strange["message"]["chat"] = {**strange["message"]["chat"], "id": ""}
    for _ in range(2):
        api.user_says(42, "still there?")
        async with house.running() as adapter:
            await api.wait_for(lambda: api.messages(42) and not api.updates)
            assert adapter.problem == ""
            api.history[42].clear()
    assert house.desk.texts == ["still there?", "still there?"]
    aside = await database.fetch_all(
        "SELECT update_id FROM raw_updates WHERE error LIKE 'ValueError%'", {}
    )
    assert [row["update_id"] for row in aside][-1] == strange["update_id"]


async def test_telegram_updates_wait_in_order_while_the_database_is_full(
    api: BotApi, house: House
) -> None:
    class Full(EchoRouter):
        is_full = True

        async def admit(self, inbound: Inbound, reply: Reply) -> int | None:
            if self.is_full:
                if inbound.text == "one" and not api.messages(42):
                    reply.begin(ListRecord())
                    await reply.finish(Answer(text="The disk is full."))
                raise StoreError("database or disk is full")
            return await super().admit(inbound, reply)

    full = house.desk = Full(house.inbox, house.clock)
    async with house.running() as adapter:
        api.user_says(42, "one")
        api.user_says(42, "two")
        api.user_says(43, "and I")
        await api.wait_for(lambda: api.texts(42) == ["The disk is full."])
        polls = len(api.called("getUpdates"))
        await api.wait_for(lambda: len(api.called("getUpdates")) >= polls + 4)
        assert len(api.updates) == 3
        assert adapter.problem == ""
        full.is_full = False
        await api.wait_for(lambda: len(api.messages(42)) == 3 and api.messages(43), 5)
        await house.confirmed()
    assert full.texts == ["one", "two", "and I"]


async def test_message_is_answered_after_failed_polls(api: BotApi, house: House) -> None:
    api.fail(502, "Bad Gateway", method="getUpdates")
    api.drop(method="getUpdates")
    api.fail(404, "Not Found", method="getUpdates")
    api.fail(409, "Conflict: terminated by other getUpdates request", method="getUpdates")
    async with house.running():
        api.user_says(42, "after all that")
        await api.wait_for(lambda: api.messages(42))
    assert len(api.called("getUpdates")) in (5, 6)


async def test_telegram_flood_limit_on_polling_is_waited_for(api: BotApi, house: House) -> None:
    api.flood(1, method="getUpdates")
    started = asyncio.get_running_loop().time()
    async with house.running():
        api.user_says(42, "slow")
        await api.wait_for(lambda: api.messages(42))
    assert asyncio.get_running_loop().time() - started >= 1
    assert len(api.called("getUpdates")) <= 3


async def test_webhook_that_is_still_set_is_removed_before_polling(
    api: BotApi, house: House
) -> None:
    api.webhook_url = "https://old.example/hook"
    async with house.running():
        api.user_says(42, "hi")
        await api.wait_for(lambda: api.messages(42))
    assert api.called("deleteWebhook")


async def test_telegram_adapter_connects_once_an_unreachable_server_becomes_available(
    api: BotApi, house: House
) -> None:
    await api.stop()
    async with house.running():
        await api.start()
        api.user_says(42, "good morning")
        await api.wait_for(lambda: api.messages(42))


async def test_second_poller_of_a_telegram_token_on_one_machine_is_refused_and_reads_no_updates(
    api: BotApi, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poll_lock, "LOCK_TIMEOUT_S", 0.0)
    async with house.running():
        second = house.adapter()
        with pytest.raises(
            ConfigError, match=f"process {os.getpid()} on this machine uses the same bot token"
        ):
            await second.open()
        await second.close()
        api.user_says(42, "hi")
        await api.wait_for(lambda: api.messages(42))


async def test_error_for_a_refused_telegram_token_names_the_variable_without_the_token(
    api: BotApi, house: House
) -> None:
    good, api.token = api.token, "110201543:AAwrong"
    adapter = house.adapter()
    api.token = good
    with pytest.raises(ConfigError, match="TELEGRAM_BOT_TOKEN") as told:
        await adapter.open()
    # Nothing has to be closed after it.
    del adapter
    gc.collect()
    assert "AAwrong" not in str(told.value) + repr(told.value.__cause__)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        *((status, "<html>Log in to this network</html>") for status in (200, 302, 401, 403, 404)),
        (200, "[]"),
    ],
)
async def test_answer_of_a_captive_portal_does_not_count_as_a_refused_token(
    api: BotApi, house: House, status: int, text: str
) -> None:
    async def portal(_: web.BaseRequest) -> web.StreamResponse:
        headers = {"Location": "/login"}
        return web.Response(status=status, text=text, headers=headers)

    port = int(api.url.rpartition(":")[2])
    await api.stop()
    runner = web.ServerRunner(web.Server(portal))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    async with house.running() as adapter:
        assert adapter.problem == f"the answer with status {status} isn't from a Bot API"
        await runner.cleanup()
        await api.start()
        api.user_says(42, "hi")
        await api.wait_for(lambda: api.messages(42))
    assert adapter.problem == ""


async def test_revoked_telegram_token_stops_listening_with_an_error(
    api: BotApi, house: House
) -> None:
    adapter = house.adapter()
    await adapter.open()
    listening = asyncio.create_task(adapter.listen(house.desk, COMMANDS))
    await api.wait_for(lambda: api.called("getUpdates"))
    api.token = "110201543:AAnew"
    api.user_says(42, "hi")
    with pytest.raises(ConfigError, match="refused the token"):
        await listening
    await adapter.close()


async def test_groups_and_topics_have_the_names_that_their_messages_show(
    api: BotApi, house: House
) -> None:
    topic = api.topic(FORUM, "Travel")
    forum = Address(platform="telegram", chat_id=str(FORUM))
    async with house.running() as adapter:
        await house.confirmed()
        in_topic = Address(platform="telegram", chat_id=str(FORUM), thread_id=str(topic))
        assert await adapter.load_place_name(in_topic) == "Flat / Travel"
        # After a start, Telegram knows the group, but not its topics.
    async with house.running() as adapter:
        assert await adapter.load_place_name(forum) == "Flat"
        assert await adapter.load_place_name(in_topic) == f"Flat / {topic}"
        with pytest.raises(DeliveryError):
            await adapter.load_place_name(Address(platform="telegram", chat_id="-99"))


async def test_refused_telegram_command_menu_does_not_prevent_answering(
    api: BotApi, house: House
) -> None:
    api.fail(400, "Bad Request: BOT_COMMAND_INVALID", method="setMyCommands")
    async with house.running():
        api.user_says(42, "hi")
        await api.wait_for(lambda: api.messages(42))


async def test_the_menu_is_sent_in_each_language(api: BotApi, house: House) -> None:
    async with house.running():
        await api.wait_for(lambda: api.translated_commands)
    assert api.commands[0]["description"] == "What I can do"
    assert api.translated_commands["de"][0]["description"] == "Was ich kann"


MENU_SPECS = (
    CommandSpec(name="help", description="Help", translations={"de": "Hilfe"}),
    CommandSpec(name="link", description="Link", translations={"de": "Verbinden"}, place="direct"),
    CommandSpec(name="setup", description="Set up", place="group"),
    CommandSpec(name="people", description="People", is_for_owner=True),
)


async def send_menus_of(
    house: House, specs: Sequence[CommandSpec], *owner_ids: str
) -> list[tuple[object, str]]:
    """Send the menus as a start does, and return the scope and language of each that was sent."""
    api = house.api
    before = len(api.called("setMyCommands"))
    async with Bot(api.token, base_url=f"{api.url}/bot") as bot:
        await send_menus(bot, house.inbox, specs, owner_ids)
    return [
        (call.get("scope", {}).get("type", "default"), call.get("language_code", ""))
        for call in api.called("setMyCommands")[before:]
    ]


async def test_menus_differ_for_direct_chats_groups_and_the_owner(
    api: BotApi, house: House
) -> None:
    await send_menus_of(house, MENU_SPECS, "42")
    assert [command["command"] for command in api.commands] == ["help", "link"]
    assert api.scoped_commands["all_group_chats", ""] == ["help", "setup"]
    assert api.scoped_commands[42, "de"] == ["help", "link", "people"]


async def test_start_sends_only_the_menus_that_changed(api: BotApi, house: House) -> None:
    places = ("default", "all_group_chats", "chat")
    all_menus = [(place, code) for place in places for code in ("", "de")]
    assert await send_menus_of(house, MENU_SPECS, "42") == all_menus
    assert await send_menus_of(house, MENU_SPECS, "42") == []
    reworded = (replace(MENU_SPECS[0], translations={"de": "Die Hilfe"}), *MENU_SPECS[1:])
    assert await send_menus_of(house, reworded, "42") == [(place, "de") for place in places]
    # The earlier menu counts as changed, too, because Telegram no longer has it.
    assert await send_menus_of(house, MENU_SPECS, "42") == [(place, "de") for place in places]


async def test_menu_that_telegram_refuses_is_sent_again_at_the_next_start(
    api: BotApi, house: House
) -> None:
    api.fail(400, "Bad Request: chat not found", method="setMyCommands")
    first = await send_menus_of(house, MENU_SPECS)
    assert first == [("default", ""), ("all_group_chats", ""), ("all_group_chats", "de")]
    assert await send_menus_of(house, MENU_SPECS) == [("default", ""), ("default", "de")]


async def test_telegram_answer_in_progress_is_still_sent_after_listening_was_cancelled(
    api: BotApi, house: House
) -> None:
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


async def test_telegram_chat_is_answered_while_another_chats_answer_is_slow(
    api: BotApi, house: House
) -> None:
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


async def test_telegram_reply_without_an_incoming_message_is_sent_and_recorded(
    api: BotApi, house: House
) -> None:
    async with house.running() as adapter:
        reply = adapter.reply(Address(platform="telegram", chat_id="42"))
        slip = ListRecord()
        reply.begin(slip)
        await reply.finish(Answer(text="Call Ana"))
    assert api.texts(42) == ["Call Ana"]
    assert slip.message_ids == ["1"]


async def test_telegram_token_is_not_written_to_the_log(
    api: BotApi, house: House, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with house.running():
        api.user_says(42, "hi")
        await api.wait_for(lambda: api.messages(42))
    assert api.token not in caplog.text


async def test_thumb_names_the_message_and_its_removal_is_empty(house: House) -> None:
    async with house.running():
        house.api.user_says(42, "Good morning")
        await house.confirmed()
        seen = house.desk.reactions
        for emoji in ("👍", "", "👎"):
            house.api.user_reacts(42, 1, emoji)
        await house.api.wait_for(lambda: len(seen) == 3)
    assert [(inbound.text, inbound.message_id) for inbound in seen] == [
        ("up", "1"),
        ("", "1"),
        ("down", "1"),
    ]


async def test_message_gets_a_reaction_while_its_answer_is_prepared_if_configured(
    house: House,
) -> None:
    house.marks_working = True

    def list_marks() -> list[object]:
        return [call["reaction"] for call in house.api.called("setMessageReaction")]

    async def answer(inbound: Inbound, reply: Reply) -> None:
        reply.begin(ListRecord())
        await house.api.wait_for(list_marks)
        await reply.finish(Answer(text="Done."))

    house.desk.answer = answer
    async with house.running():
        house.api.user_says(42, "Work!")
        await house.api.wait_for(lambda: len(list_marks()) == 2)
    assert list_marks() == [[{"type": "emoji", "emoji": "👀"}], []]
