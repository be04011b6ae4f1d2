"""An hour with Mneme in German, Japanese and Turkish on Telegram, and in French on Discord.

The real process answers through its real clients. The test walks every text and button that was
shown: it finds no English word, no placeholder and nothing that the platforms refuse.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway.texts.catalog import Texts, load_texts
from tests.fixtures.bot_api import BotApi
from tests.fixtures.discord_api import DiscordApi
from tests.fixtures.english_words import find_english
from tests.fixtures.live_system import KEY, PERSON, LiveSystem
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.model_reply import ModelReply

pytestmark = pytest.mark.slow

STRANGER = 99
STICKER: dict[str, Any] = {
    "file_id": "s",
    "file_unique_id": "s",
    "type": "regular",
    "width": 90,
    "height": 90,
    "is_animated": False,
    "is_video": False,
}
POLL: dict[str, Any] = {
    "id": "1",
    "question": "Kim?",
    "options": [
        {"persistent_id": "a", "text": "Kim", "voter_count": 0},
        {"persistent_id": "b", "text": "Mika", "voter_count": 0},
    ],
    "total_voter_count": 0,
    "is_closed": False,
    "is_anonymous": True,
    "type": "regular",
    "allows_multiple_answers": False,
    "allows_revoting": True,
    "members_only": False,
}
# Lines that people type in every language: commands with their English names and arguments.
COMMON = (
    "/start",
    "/help",
    "/help all",
    "/help remind",
    "/help recall",
    "/cron",
    "/cron pause 1",
    "/cron",
    "/cron resume 1",
    "/cron skip 2",
    "/cron end 2",
    "/cron target 1",
    "/cron urgent 1",
    "/cron remove 99",
    "/cron pause",
    "/cron xyz",
    "/cron brief 7:30",
    "/snooze",
    "/snooze 99 10 minutes",
    "/remind",
    "/remind 2020-01-01 09:00 x",
    "/memory",
    "/memory history",
    "/memory pending",
    "/memory undo 999",
    "/memory approve 7",
    "/memory xyz",
    "/facts",
    "/memory why f1",
    "/memory pin f1",
    "/memory right f1",
    "/memory wrong f1",
    "/memory unpin f1",
    "/memory why f99",
    "/recall xyzzy",
    "/recall page:9",
    "/recall role:banana xyzzy",
    "/recall around:99999",
    "/recall in:999",
    "/recall",
    "/sessions",
    "/sessions 999",
    "/sessions xyzzy",
    "/title",
    "/branch",
    "/undo back",
    "/undo x",
    "/retry",
    "/compress",
    "/stop",
    "/status",
    "/usage",
    "/usage months",
    "/usage 999",
    "/usage more",
    "/whoami",
    "/people",
    "/people remove",
    "/approve",
    "/approve ABCD2345",
    "/link",
    "/link ABCD2345",
    "/unlink",
    "/export",
    "/files",
    "/files send 9",
    "/voice",
    "/voice on",
    "/skills",
    "/skill",
    "/skills show xyz",
    "/model",
    "/agenda",
    "/instructions",
    "/why",
    "/why 99",
    "/timezone",
    "/timezone Paris",
    "/timezone xyzzy",
    "/quiet",
    "/quiet 22:00-7:00",
    "/quiet off",
    "/language",
    "/language xyzzy",
    "/incognito on",
    "/memory add x",
    "/incognito off",
    "/xyzzy",
)


# What people send besides text.
SENT_THINGS: tuple[dict[str, Any], ...] = (
    {"photo": [{"file_id": "p", "file_unique_id": "p", "width": 90, "height": 60}]},
    {"document": {"file_id": "d", "file_unique_id": "d", "file_name": "x.pdf"}},
    {"voice": {"file_id": "v", "file_unique_id": "v", "duration": 3}},
    {"sticker": {**STICKER, "emoji": "👍"}},
    {"location": {"latitude": 38.7, "longitude": -9.1}},
    {"contact": {"phone_number": "+351 1", "first_name": "Kim"}},
    {"dice": {"emoji": "🎲", "value": 3}},
    {"poll": POLL},
)
# The methods of Telegram that show a text or the labels of buttons in a chat.
SHOWING_METHODS = (
    *("sendMessage", "sendRichMessage", "sendMessageDraft", "sendDocument", "sendVoice"),
    *("sendPhoto", "editMessageText", "editMessageCaption", "editMessageReplyMarkup"),
    "answerCallbackQuery",
)
# Commands on Discord that need no option.
NAMES_ALONE = (
    *("facts", "link", "model", "sessions", "status", "stop", "timezone", "undo", "unlink"),
    *("usage", "whoami", "why", "language", "quiet", "compress"),
)


@dataclass(frozen=True, kw_only=True)
class Script:
    """What a person types in their language. The lines stand in `tests/fixtures/hours.toml`."""

    hello: str
    fact: str
    question: str
    reminder: str
    recurring: str
    note: str
    remember: str
    word: str
    yes: str
    others: tuple[str, ...]

    def list_lines(self) -> Iterator[str]:
        """Yield the lines of the hour in order, after the first greeting."""
        yield self.reminder
        yield self.recurring
        yield f"/remind {self.reminder}"
        yield self.fact
        yield self.question
        yield f"/memory add user: {self.note}"
        yield f"/memory why {self.note}"
        yield f"/remember {self.remember}"
        yield f"/memory replace {self.note} => {self.fact}"
        yield f"/recall {self.word}"
        yield f"/memory facts {self.word}"
        yield f"/instructions set {self.note}"
        yield from self.others
        yield f"/title {self.word}"
        yield from COMMON
        yield "/memory undo"
        yield f"/forget {self.word}"
        yield self.yes
        yield "/forget xyzzy"
        yield "/new"
        yield self.hello
        yield "/undo"
        yield self.question

    def list_words(self) -> list[str]:
        """Return the lines in the person's own words, which Mneme may quote."""
        own = (self.hello, self.fact, self.question, self.reminder, self.recurring, self.note)
        return [*own, self.remember, self.word, *self.others, "Kim Mika", "role:banana xyzzy"]


def load_script(language: str) -> Script:
    path = Path(__file__).parents[1] / "fixtures" / "hours.toml"
    lines = tomllib.loads(path.read_text(encoding="utf-8"))[language]
    return Script(**{**lines, "others": tuple(lines["others"])})


# An hour of use has hundreds of steps.
@pytest.mark.sweep
@pytest.mark.timeout(600)
@pytest.mark.parametrize("language", ["de", "ja", "tr"])
async def test_hour_of_use_on_telegram_in_another_language_shows_no_english_text(
    home: Path, language: str
) -> None:
    script, texts = load_script(language), load_texts(language)
    model = MessagesApi(propose_note(script), key=KEY)
    async with LiveSystem.open(home, model, is_loop_watched=False) as live:
        telegram = live.telegram
        telegram.person(PERSON, "Kim", language_code=language)
        telegram.person(STRANGER, "Mika", language_code=language)
        await live.start(ANTHROPIC_API_KEY="", ANTHROPIC_BASE_URL="")

        async def say(line: str, who: int = PERSON) -> None:
            count = len(telegram.messages(who))
            telegram.user_says(who, line)
            await live.until(lambda: len(telegram.messages(who)) > count)

        await say(script.hello)
        await say(script.hello, STRANGER)
        code = re.findall(r"\b[A-Z0-9]{8}\b", telegram.texts(STRANGER)[0])[0]
        await say(f"/approve {code}")
        await live.until(lambda: len(telegram.messages(STRANGER)) > 1)
        await say("/people")
        await say("/people remove telegram:99")
        await press_all(live, lambda: telegram.messages(PERSON))
        for line in script.list_lines():
            await say(line)
        await see_reminder(live, texts)
        for fields in SENT_THINGS:
            count = len(telegram.messages(PERSON))
            telegram.user_says(PERSON, "", **fields)
            await live.until(partial(has_more, partial(telegram.messages, PERSON), count))
        await see_dead_letter(live, texts)
        await say("/status")
        assert await live.stop() == 0
        await see_late_reminder(live, partial(telegram.texts, PERSON))
        await see_waiting_changes(live, script, texts)
        assert await live.stop() == 0
        assert telegram.violations == []
        shown = [
            text
            for method in SHOWING_METHODS
            for values in telegram.called(method)
            for text in list_shown(values)
        ]
        menus = list(list_telegram_menus(telegram, language))
        assert len(menus) > 50
        check_shown([*shown, *menus], language, script.list_words())


@pytest.mark.sweep
@pytest.mark.timeout(600)
async def test_hour_of_use_on_discord_in_french_shows_no_english_text(home: Path) -> None:
    script, texts = load_script("fr"), load_texts("fr")
    async with LiveSystem.open(home, is_loop_watched=False) as live:
        discord, person, channel = live.discord, live.discord_person, live.channel
        discord.world.locales[person] = "fr"
        await live.start(ANTHROPIC_API_KEY="", ANTHROPIC_BASE_URL="")
        shown: list[str] = []

        pressed: list[str] = []

        async def call(name: str, **options: Any) -> None:
            number = await discord.slash(channel, person, name, **options)
            await live.until(partial(has_text, discord, number))
            for post in discord.answers(number):
                shown.extend(list_posted(post))

        async def call_and_press(name: str, **options: Any) -> None:
            """Call a command, and press each button of its answer once."""
            number = await discord.slash(channel, person, name, **options)
            await live.until(partial(has_text, discord, number))
            post = discord.answers(number)[0]
            shown.extend(list_posted(post))
            for label in list_button_labels(post):
                press = await discord.press(channel, person, post["id"], label)
                await live.until(partial(has_reacted, discord, press))
                pressed.append(press)

        async def say(text: str) -> None:
            count = len(discord.said(channel))
            await discord.user_says(channel, text, person)
            await live.until(lambda: len(discord.said(channel)) > count)

        await call("help")
        await say(script.hello)
        for line in (script.reminder, script.recurring, script.fact, script.question):
            await say(line)
        for line in script.others:
            await say(line)
        for name in NAMES_ALONE:
            await call(name)
        await call("help", command="all")
        await call("remind", when="demain à 9h", text=script.word)
        await call("recall", query=script.word)
        await call("recall", query="xyzzy")
        await call("sessions", which="999")
        await call("snooze", number="99")
        await call("title", text=script.word)
        await call("remember", what=script.remember)
        await call("timezone", city="xyzzy")
        await call("quiet", hours="22:00-7:00")
        # Otherwise the late reminder waits if the test runs at night.
        await call("quiet", hours="off")
        await call("memory", action="add", text=script.note)
        for action in ("history", "facts", "pending"):
            await call("memory", action=action)
        for action in ("why", "pin", "right", "wrong", "unpin"):
            await call("memory", action=action, entry="f1")
        await call("people", action="list")
        await call("people", action="remove", who="telegram:99")
        await call("approve", code="ABCD2345")
        for action in ("pause", "resume", "urgent", "target", "skip", "remove"):
            await call("cron", action=action, number="1")
        await call_and_press("cron", action="list")
        await call_and_press("remind", when="demain à 10h", text=script.word)
        await call_and_press("memory", action="list")
        await call_and_press("memory", action="undo")
        await call_and_press("recall", query=script.word)
        await call_and_press("memory", action="add", text=f"{script.note} {script.word}")
        await call_and_press("memory", action="facts")
        await call_and_press("sessions")
        await call_and_press("forget", what=script.remember)
        assert len(pressed) >= 5
        suggestions: list[str] = []
        for name, action, option in list_suggesting_options(discord.commands):
            typing = await discord.types(channel, person, name, option, "", action)
            callbacks = discord.interactions.calls[typing].callbacks
            await live.until(partial(bool, callbacks))
            suggestions += [choice["name"] for choice in callbacks[0]["data"]["choices"]]
        assert len(suggestions) > 20
        shown += suggestions
        await call("forget", what=script.word)
        await say(script.yes)
        await call("new")
        assert await live.stop() == 0
        await see_late_reminder(live, partial(discord.said, channel))
        for press in pressed:
            for callback in discord.interactions.calls[press].callbacks:
                shown.extend(list_strings(callback.get("data") or {}))
            for post in discord.answers(press):
                shown.extend(list_posted(post))
        shown += [text for post in discord.messages(channel) for text in list_posted(post)]
        assert texts.ERASED in "".join(shown)
        assert discord.violations == []
        check_shown(shown, "fr", script.list_words())
        menus = [text for command in discord.commands for text in list_localized(command, "fr")]
        assert len(menus) > 50
        check_shown(menus, "fr", script.list_words())
        assert all(
            "es-419" in command["description_localizations"]
            for command in discord.commands
            if command["type"] == 1
        )


async def see_dead_letter(live: LiveSystem, texts: Texts) -> None:
    """Let Telegram refuse an answer, and look at how the command line lists it."""
    # Otherwise, Telegram could refuse a part of an earlier answer instead.
    waiting = (
        "SELECT 1 FROM inbox UNION ALL "
        "SELECT 1 FROM outbox WHERE done_at IS NULL AND dead_at IS NULL"
    )
    await live.until(lambda: live.query(waiting) == [])
    live.telegram.fail(403, "Forbidden: bot was blocked by the user", method="sendMessage")
    live.telegram.user_says(PERSON, "/whoami")
    blocked = "bot was blocked by the user"
    statement = "SELECT error FROM outbox WHERE dead_at IS NOT NULL"
    await live.until(lambda: any(blocked in str(row[0]) for row in live.query(statement)))
    for (error,) in live.query(statement):
        # The answers to the stranger may have been on their way when access was withdrawn.
        worded = texts.word_reason(str(error))
        assert worded != error
        assert worded.endswith(blocked) == str(error).endswith(blocked)


async def see_late_reminder(live: LiveSystem, read: Callable[[], Sequence[str]]) -> None:
    """Let a reminder be due while Mneme is off. `read` returns the texts of the chat."""
    assert live.query("SELECT 1 FROM jobs WHERE ended_at IS NULL") != []
    live.change("UPDATE jobs SET next_at = next_at - 86400 * 400 WHERE ended_at IS NULL")
    live.change("UPDATE jobs SET at = at - 86400 * 400 WHERE at IS NOT NULL AND ended_at IS NULL")
    count = len(read())
    await live.start(ANTHROPIC_API_KEY="", ANTHROPIC_BASE_URL="")
    await live.until(lambda: any("⏰" in text for text in read()[count:]))
    assert await live.stop() == 0


def propose_note(script: Script) -> Callable[[dict[str, Any]], ModelReply]:
    """Return a model that notes what a forwarded message says, and answers in the language."""

    def answer(body: dict[str, Any]) -> ModelReply:
        if not body.get("tools"):
            return ModelReply.say("[]")
        if body["messages"][-1]["content"][0]["type"] == "tool_result":
            return ModelReply.say(script.hello)
        note = {"action": "add", "target": "user", "content": script.remember}
        return ModelReply.call(("memory", note))

    return answer


async def see_waiting_changes(live: LiveSystem, script: Script, texts: Texts) -> None:
    """Let the model propose notes from forwarded messages: approve one and reject one."""
    telegram = live.telegram
    await live.start()
    origin = {"type": "hidden_user", "sender_user_name": "Mika", "date": telegram.now()}
    for label in (texts.BUTTON_APPROVE, texts.BUTTON_REJECT):
        telegram.user_says(PERSON, script.remember, forward_origin=origin)
        await live.until(lambda: live.query("SELECT 1 FROM pending_notes") != [])
        ((number,),) = live.query("SELECT id FROM pending_notes")
        button = label.format(id=number)
        await live.until(partial(has_button, live, button))
        count = len(telegram.messages(PERSON))
        question = next(filter(partial(shows_button, button), telegram.messages(PERSON)))
        telegram.user_presses(PERSON, question["message_id"], button)
        await live.until(partial(has_more, partial(telegram.messages, PERSON), count))
        await live.until(lambda: live.query("SELECT 1 FROM pending_notes") == [])


def shows_button(label: str, message: Mapping[str, Any]) -> bool:
    rows = message.get("reply_markup", {}).get("inline_keyboard", ())
    return any(button["text"] == label for row in rows for button in row)


def has_button(live: LiveSystem, label: str) -> bool:
    return any(shows_button(label, message) for message in live.telegram.messages(PERSON))


def list_button_labels(post: Mapping[str, Any]) -> list[str]:
    """Return the labels of the buttons of a message that call Mneme."""
    items = [item for row in post.get("components") or () for item in row.get("components", ())]
    return [item["label"] for item in items if item.get("label") and item.get("custom_id")]


def has_text(discord: DiscordApi, number: str) -> bool:
    """Return whether an interaction has an answer with a text."""
    posts = discord.answers(number)
    return bool(posts) and any(list_posted(posts[0]))


def has_reacted(discord: DiscordApi, press: str) -> bool:
    """Return whether a pressed button has shown something: a form, a text or a changed message."""
    callbacks = discord.interactions.calls[press].callbacks
    if not callbacks or callbacks[0]["type"] == 9:
        return bool(callbacks)
    return has_text(discord, press)


def list_strings(data: Any) -> Iterator[str]:
    """Yield the texts of a form or an answer to a pressed button that people read."""
    if isinstance(data, list):
        for item in data:
            yield from list_strings(item)
    elif isinstance(data, Mapping):
        for key in ("title", "content", "label", "placeholder", "description", "name"):
            yield str(data.get(key) or "")
        for value in data.values():
            yield from list_strings(value)


def list_posted(post: Mapping[str, Any]) -> Iterator[str]:
    """Yield the text, the cards and the labels of the buttons of a message on Discord."""
    yield str(post["content"])
    for card in post.get("embeds") or ():
        yield from list_strings(card)
        yield from (str(field["value"]) for field in card.get("fields") or ())
        yield str((card.get("footer") or {}).get("text", ""))
    for row in post.get("components") or ():
        yield from (str(item.get("label", "")) for item in row.get("components", ()))


def list_suggesting_options(commands: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Return the options that suggest values while a person types: (command, action, option)."""
    options = []
    for command in commands:
        for option in command.get("options") or ():
            if option.get("autocomplete"):
                options.append((command["name"], "", option["name"]))
            for inner in option.get("options") or ():
                if inner.get("autocomplete"):
                    options.append((command["name"], option["name"], inner["name"]))
    return options


def list_localized(command: Mapping[str, Any], locale: str) -> Iterator[str]:
    """Yield the descriptions of a command and its options in a language."""
    yield command.get("description_localizations", {}).get(locale, "")
    for option in command.get("options") or ():
        yield from list_localized(option, locale)


async def press_all(live: LiveSystem, read: Callable[[], list[dict[str, Any]]]) -> None:
    """Press the buttons of the first answer, one after the other."""
    first = next(message for message in read() if message.get("reply_markup"))
    labels = [
        button["text"]
        for row in first["reply_markup"]["inline_keyboard"]
        for button in row
        if "callback_data" in button
    ]
    for label in labels:
        count = len(read())
        live.telegram.user_presses(PERSON, first["message_id"], label)
        await live.until(partial(has_more, read, count))


async def see_reminder(live: LiveSystem, texts: Texts) -> None:
    """Let a reminder come, and press its buttons."""
    telegram = live.telegram

    def find_reminder() -> dict[str, Any]:
        for message in reversed(telegram.messages(PERSON)):
            if "⏰" in message.get("text", "") and message.get("reply_markup"):
                return message
        return {}

    telegram.user_says(PERSON, "/remind in 1 second x")
    await live.until(lambda: bool(find_reminder()))
    for label in (texts.BUTTON_TEN_MINUTES, texts.BUTTON_EDIT, texts.BUTTON_DONE):
        count = len(telegram.messages(PERSON))
        telegram.user_presses(PERSON, find_reminder()["message_id"], label)
        await live.until(partial(has_more, partial(telegram.messages, PERSON), count))


def has_more(read: Callable[[], Sequence[object]], count: int) -> bool:
    return len(read()) > count


def list_shown(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the text and the labels of the buttons of a message to Telegram, without its code."""
    text = str(values.get("text") or values.get("caption") or "")
    if "rich_message" in values:
        text = re.sub(r"<[^>]*>", " ", load(values["rich_message"])["html"])
    units = text.encode("utf-16-le")
    for entity in load(values.get("entities") or values.get("caption_entities") or []):
        if entity["type"] in ("code", "pre"):
            start, end = 2 * entity["offset"], 2 * (entity["offset"] + entity["length"])
            units = units[:start] + " ".encode("utf-16-le") * entity["length"] + units[end:]
    yield units.decode("utf-16-le")
    for row in load(values.get("reply_markup") or {}).get("inline_keyboard", ()):
        yield from (str(button["text"]) for button in row)


def list_telegram_menus(telegram: BotApi, language: str) -> Iterator[str]:
    """Yield the descriptions of the commands and of the bot in a language."""
    for method in ("setMyCommands", "setMyDescription", "setMyShortDescription"):
        for values in telegram.called(method):
            if values.get("language_code") == language:
                yield str(values.get("description") or values.get("short_description") or "")
                for command in load(values.get("commands") or []):
                    yield str(command["description"])


def load(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def check_shown(shown: Sequence[str], language: str, typed: Sequence[str]) -> None:
    """Fail with every text that has an English word or a placeholder."""
    english = {}
    for text in dict.fromkeys(shown):
        words = find_english(text, language, typed)
        if words:
            english[text] = words
    assert len(shown) > 50
    assert not [text for text in shown if re.search(r"\{\w+\}", text)]
    assert english == {}, "\n\n".join(f"{words}: {text}" for text, words in english.items())
