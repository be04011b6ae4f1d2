"""Each row: one raw event of Discord's gateway, and the raw requests that follow from it.

The real client is connected to the double, which checks every request against the published
schema. All rows share one gateway. A row's people and places are those of `DiscordScene`; the
braces in an event stand for their ids.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import pytest_asyncio

from tests.fixtures.discord_scene import DiscordScene, open_scene

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(600)]

Json = dict[str, Any]
EPHEMERAL = 64
DIRECT, CHANNEL, OTHER = "{direct}", "{channel}", "{other}"
VOICE, POST = "{voice}", "{post}"


@dataclass(frozen=True)
class Request:
    """A request that must be sent: the end of its path, and parts of its body as JSON."""

    method: str
    path: str
    parts: tuple[str, ...] = ()
    # Whether the answer is ephemeral. None if it isn't a response to an interaction.
    is_private: bool | None = None


@dataclass(frozen=True)
class Row:
    id: str
    event: str
    data: Mapping[str, Any]
    requests: Sequence[Request] = ()
    place: str = DIRECT
    person: str = "{ana}"
    is_personal: bool = False
    # Slash commands that are given before, each as a line of its name, action and options.
    before: Sequence[tuple[str, str, Mapping[str, Any]]] = field(default=())


def respond(*parts: str, is_private: bool = True) -> tuple[Request, ...]:
    """The answer is the response to the interaction, for one person unless it says otherwise."""
    return (Request("POST", "/callback", ('"type": 4', *parts), is_private),)


def post(*parts: str, place: str = DIRECT) -> tuple[Request, ...]:
    return (Request("POST", f"/channels/{place}/messages", parts),)


def slash(
    name: str,
    *parts: str,
    action: str = "",
    options: Mapping[str, Any] | None = None,
    is_private: bool = True,
    **more: Any,
) -> Row:
    """A slash command, as its raw interaction data."""
    kinds = {str: 3, int: 4, bool: 5}
    given = [
        {"type": kinds[type(value)], "name": key, "value": value}
        for key, value in (options or {}).items()
    ]
    shown = [{"type": 1, "name": action, "options": given}] if action else given
    data = {"id": "{command}", "name": name, "type": 1, "options": shown}
    row_id = " ".join(filter(None, [f"/{name}", action, *(options or {}), more.pop("note", "")]))
    return Row(
        row_id,
        "INTERACTION_CREATE",
        {"type": 2, "data": data},
        respond(*parts, is_private=is_private),
        **more,
    )


def typing(name: str, option: str, value: str, *parts: str, action: str = "", **more: Any) -> Row:
    """An option that is being typed."""
    focused = {"type": 3, "name": option, "value": value, "focused": True}
    shown = [{"type": 1, "name": action, "options": [focused]}] if action else [focused]
    data = {"id": "{command}", "name": name, "type": 1, "options": shown}
    return Row(
        f"typing /{name} {action} {option}",
        "INTERACTION_CREATE",
        {"type": 4, "data": data},
        (Request("POST", "/callback", ('"type": 8', *parts)),),
        **more,
    )


def menu(label: str, content: str, *parts: str, kind: int = 4, **more: Any) -> Row:
    """An entry of a message's menu. The message is Bo's."""
    data = {"id": "{command}", "name": label, "type": 3, "target_id": "{message}"}
    return Row(
        f"{label}: {content}{' (personal)' if more.get('is_personal') else ''}",
        "INTERACTION_CREATE",
        {"type": 2, "data": data, "content": content},
        (Request("POST", "/callback", (f'"type": {kind}', *parts)),),
        **more,
    )


def message(row_id: str, content: str, requests: Sequence[Request], **more: Any) -> Row:
    """A message. `fields` replace those of its payload."""
    fields = more.pop("fields", {})
    return Row(row_id, "MESSAGE_CREATE", {"content": content, **fields}, requests, **more)


FACT = ("remember", "", {"what": "Ana's car is red"})
JOB = ("remind", "", {"when": "tomorrow at 9:00", "text": "Water plants"})
PAUSE = ("cron", "pause", {"number": "1"})
REMOVAL = ("cron", "remove", {"number": "1"})
NOTE = ("memory", "add", {"text": "The boiler is a Vaillant"})
POLL: Json = {
    "question": {"text": "Pizza?"}, "allow_multiselect": False, "layout_type": 1,
    "expiry": "2027-01-01T00:00:00+00:00",
    "answers": [{"answer_id": 1, "poll_media": {"text": "Yes"}}],
}  # fmt: skip

SLASH_ROWS = [
    slash("help"),
    slash("help", "/recall", options={"command": "recall"}),
    slash("help", "/ask", note="all", options={"command": "all"}),
    slash("status"),
    slash("whoami", "{ana}"),
    slash("new", is_private=False),
    slash("stop"),
    slash("sessions"),
    slash("sessions", options={"which": "walrus"}),
    slash("title", "Ferries", options={"text": "Ferries"}, is_private=False),
    slash("model", is_private=False),
    slash("recall", options={"query": "xyzzy"}),
    slash("recall", options={"query": "xyzzy", "from": "me", "deep": False}),
    slash("why", options={"number": 1}),
    slash("remember", "car", options={"what": "Ana's car is red"}),
    slash("facts", "car", before=[FACT]),
    slash("facts", "car", options={"words": "car"}, before=[FACT]),
    slash("instructions", action="show"),
    slash("instructions", "Be brief", action="set", options={"text": "Be brief"}),
    slash("instructions", action="clear"),
    slash("memory", action="list"),
    slash("memory", "Vaillant", action="add", options={"text": "The boiler is a Vaillant"}),
    slash("memory", action="pending"),
    slash("memory", action="history"),
    slash("memory", action="facts"),
    slash("memory", action="undo"),
    slash("memory", action="approve", options={"number": 999}),
    slash("memory", action="reject", options={"number": 999}),
    slash("memory", "Vaillant", action="why", options={"entry": "Vaillant"}, before=[NOTE]),
    slash("memory", "Vaillant", action="pin", options={"entry": "Vaillant"}, before=[NOTE]),
    slash("memory", "Vaillant", action="unpin", options={"entry": "Vaillant"}, before=[NOTE]),
    slash(
        "memory", "Bosch", action="replace", options={"note": "Vaillant", "text": "A Bosch boiler"},
        before=[NOTE],
    ),
    slash("memory", action="remove", options={"note": "Bosch"}),
    slash("memory", "car", action="right", options={"entry": "f1"}, before=[FACT]),
    slash("memory", "car", action="wrong", options={"entry": "f1"}, before=[FACT]),
    slash("memory", action="correct", options={"fact": "f999", "text": "x"}),
    slash("memory", "car", action="forget", options={"fact": "f1"}, before=[FACT]),
    slash("memory", action="restore", options={"fact": "f999"}),
    slash("skills", action="list"),
    slash("skills", action="show", options={"name": "nothing"}),
    slash("skills", action="enable", options={"name": "nothing"}),
    slash("forget", options={"what": "xyzzy"}),
    slash(
        "remind", "Water plants", options={"when": "tomorrow at 9:00", "text": "Water plants"},
        is_private=False,
    ),
    slash("cron", "Water plants", action="list", before=[JOB]),
    slash("cron", "Paused", action="pause", options={"number": "1"}, is_private=False, before=[JOB]),
    slash("cron", "Resumed", action="resume", options={"number": "1"}, is_private=False, before=[JOB, PAUSE]),
    slash(
        "cron", "10:30", action="edit", options={"number": "1", "text": "at 10:30"},
        is_private=False, before=[JOB],
    ),
    slash("cron", "urgent", action="urgent", options={"number": "1"}, is_private=False, before=[JOB]),
    slash("cron", "Removed", action="remove", options={"number": "1"}, is_private=False, before=[JOB]),
    slash(
        "cron", "Set again", action="restore", options={"number": "1"}, is_private=False,
        before=[JOB, REMOVAL],
    ),
    slash("cron", action="done", options={"number": "999"}, is_private=False),
    slash("snooze", options={"number": "999", "time": "1 hour"}, is_private=False),
    slash("timezone", "Europe/Lisbon", options={"city": "Lisbon"}, is_private=False),
    slash("quiet", is_private=False),
    slash("language", options={"name": "en"}),
    slash("people", action="list"),
    slash("people", action="block", options={"who": "nobody"}),
    slash("approve", options={"code": "AAAABBBB"}),
    slash("files", action="list"),
    slash("files", action="send", options={"number": "999"}),
    slash("voice", is_private=False),
    slash("usage"),
    slash("usage", options={"list": "months"}),
    slash("ask", "ok", options={"question": "When is the ferry?"}, is_private=False),
    # In a channel, and as a member.
    slash("help", note="in a channel", place=CHANNEL, person="{bo}"),
    slash("facts", note="of a member", place=CHANNEL, person="{bo}"),
    slash("people", note="of a member", action="list", place=CHANNEL, person="{bo}"),
    slash(
        "ask", "ok", note="in a channel", options={"question": "Ferry?"}, is_private=False,
        place=CHANNEL, person="{bo}",
    ),
    slash("cron", note="in a channel", action="list", place=CHANNEL),
    # Only the person has installed the bot.
    slash("memory", note="personal", action="list", place=OTHER, is_personal=True),
    slash(
        "ask", "ok", note="personal", options={"question": "Ferry?"}, place=OTHER, is_personal=True
    ),
    slash("whoami", "code", note="of a stranger", place=OTHER, person="{cleo}", is_personal=True),
]  # fmt: skip
OTHER_ROWS = [
    typing("help", "command", "rem", "remind"),
    typing("memory", "fact", "car", "car", action="correct", before=[FACT]),
    typing("memory", "note", "boiler", "Vaillant", action="remove", before=[NOTE]),
    typing("memory", "entry", "boiler", "Vaillant", action="why", before=[NOTE]),
    typing("cron", "number", "plants", "Water plants", action="pause", before=[JOB]),
    typing("timezone", "city", "lisb", "Europe/Lisbon"),
    typing("model", "name", "", "choices"),
    typing("sessions", "which", "", "choices"),
    typing("skill", "name", "nothing", '"choices": []'),
    typing("files", "number", "", '"choices": []', action="send"),
    menu("Remember this", "My boat is green", "boat", place=CHANNEL),
    menu("Remind me about this", "The ladder", '"title": "Remind', kind=9, place=CHANNEL),
    menu("Recall similar", "xyzzy", '"flags": 68', place=CHANNEL),
    menu("Ask about this", "The ladder", '"title": "Ask about this"', kind=9, place=CHANNEL),
    menu("Remember this", "My bike is blue", "bike", place=OTHER, is_personal=True),
    Row("a press that has expired", "INTERACTION_CREATE",
        {"type": 3, "data": {"custom_id": "gone", "component_type": 2, "id": 1}, "content": "old"},
        (Request("POST", "/callback", ('"type": 4', "expired")),)),
    Row("a choice that has expired", "INTERACTION_CREATE",
        {"type": 3, "content": "old",
         "data": {"custom_id": "choose:x", "component_type": 3, "id": 1, "values": ["gone"]}},
        (Request("POST", "/callback", ('"type": 4', "expired")),)),
    Row("a form that has expired", "INTERACTION_CREATE",
        {"type": 5, "data": {"custom_id": "menu:1", "components": []}},
        (Request("POST", "/callback", ('"type": 4', "expired")),)),
    message("a direct message", "hello", post('"content": "ok"')),
    message("a typed command", "/whoami", post("{ana}")),
    message("a mention in a channel", "<@{bot}> hello", post(
        '"content": "ok"', '"message_reference"', place=CHANNEL), place=CHANNEL, person="{bo}"),
    message("a mention in the chat of a voice channel", "<@{bot}> hello", post(
        '"content": "ok"', place=VOICE), place=VOICE),
    message("a mention in a post of a forum", "<@{bot}> hello", post(
        '"content": "ok"', place=POST), place=POST),
    slash("ask", "ok", note="in a post of a forum", options={"question": "Ferry?"}, place=POST, is_private=False),
    message("talk in a channel", "hello all", (), place=CHANNEL, person="{bo}"),
    message("a mention in a channel that isn't listed", "<@{bot}> hi", post("ask for access", place=OTHER), place=OTHER,
            person="{cleo}"),
    message("a message of a bot", "<@{bot}> hi", (), place=CHANNEL, person="{robot}"),
    message("a message of a webhook", "<@{bot}> hi", (), place=CHANNEL, person="{bo}",
            fields={"webhook_id": "42"}),
    message("a poll", "", post('"content": "ok"'), fields={"poll": POLL}),
    Row("a reaction without a meaning", "MESSAGE_REACTION_ADD",
        {"user_id": "{ana}", "channel_id": DIRECT, "message_id": "1", "type": 0, "burst": False,
         "emoji": {"id": None, "name": "🎉"}}),
    Row("a deleted message", "MESSAGE_DELETE", {"id": "1", "channel_id": DIRECT}),
    Row("somebody types", "TYPING_START",
        {"channel_id": DIRECT, "user_id": "{ana}", "timestamp": 1790000000}),
]  # fmt: skip
ROWS = [*SLASH_ROWS, *OTHER_ROWS]


# The whole help needs a second message.
LONG_HELP = next(row for row in SLASH_ROWS if row.id == "/help command all")
ROWS[ROWS.index(LONG_HELP)] = replace(
    LONG_HELP, requests=(*LONG_HELP.requests, Request("POST", ""))
)


@dataclass(frozen=True)
class Stage:
    scene: DiscordScene
    places: Mapping[str, str]

    def fill(self, value: Any) -> Any:
        """Replace the braces in an event or a request by ids."""
        text = json.dumps(value)
        for name, place in self.places.items():
            text = text.replace(f"{{{name}}}", place)
        return json.loads(text)

    def list_requests(self, start: int) -> list[Json]:
        """List what was sent since, apart from what only reads or shows that somebody types."""
        return [
            request
            for request in self.scene.api.requests[start:]
            if request["method"] != "GET"
            and not request["path"].endswith(("/typing", "/users/@me/channels"))
        ]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with open_scene(tmp_path_factory.mktemp("scenarios")) as scene:
        api = scene.api
        places = {
            "ana": scene.ana,
            "bo": scene.bo,
            "cleo": api.user("Cleo"),
            "robot": api.user("Robot", is_bot=True),
            "bot": api.bot_id,
            "direct": scene.direct,
            "channel": scene.channel,
            "other": await api.channel("other"),
            "voice": await api.channel("voice", is_voice=True),
            "post": await api.thread(
                await api.channel("forum", is_forum=True), "Ferries", scene.ana
            ),
        }
        yield Stage(scene, places)


async def test_table_of_discord_scenarios_has_eighty_distinct_rows() -> None:
    ids = [row.id for row in ROWS]
    assert len(ids) >= 80
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
async def test_each_listed_discord_event_causes_exactly_its_listed_requests(
    stage: Stage, row: Row
) -> None:
    scene, api = stage.scene, stage.scene.api
    place, person = stage.fill([row.place, row.person])
    for name, action, options in row.before:
        call = await api.slash(scene.direct, scene.ana, name, options, action=action)
        await scene.read(call)
    await scene.harness.turns.drain(30)
    start = len(api.requests)

    data = stage.fill(dict(row.data))
    if row.event == "INTERACTION_CREATE":
        await send_interaction(stage, row, data, place, person)
    elif row.event == "MESSAGE_CREATE":
        content = data.pop("content")
        await api.user_says(place, content, person, **data)
    else:
        await api.gateway.dispatch(row.event, data)

    wanted = [
        (request, *stage.fill([request.path, list(request.parts)])) for request in row.requests
    ]
    await api.wait_for(lambda: len(stage.list_requests(start)) >= len(wanted), 120)
    if not wanted:
        # The answer to a later event shows that this one was handled.
        await scene.read(await api.slash(place, scene.ana, "whoami"))
    await scene.harness.turns.drain(30)
    sent = [
        request
        for request in stage.list_requests(start)
        if wanted or not request["path"].endswith("/callback")
    ]
    assert len(sent) == len(wanted), sent
    for request, (expected, path, parts) in zip(sent, wanted, strict=True):
        body = json.dumps(request["body"], ensure_ascii=False)
        assert (request["method"], request["path"].endswith(path)) == (expected.method, True)
        assert [part for part in parts if part not in body] == [], body
        if expected.is_private is not None:
            flags = int(request["body"]["data"].get("flags") or 0)
            assert bool(flags & EPHEMERAL) == expected.is_private, body


async def send_interaction(stage: Stage, row: Row, data: Json, place: str, person: str) -> None:
    """Send a raw interaction, with the message whose button or menu was used if there is one."""
    api = stage.scene.api
    inner = data["data"]
    shown = None
    if "content" in data:
        author = stage.places["bo"] if inner.get("type") == 3 else api.bot_id
        shown = api.world.add_post(place, author, data["content"])
    if shown is not None and inner.get("type") == 3:
        inner["target_id"] = shown["id"]
        inner["resolved"] = {"messages": {shown["id"]: shown}}
        shown = None
    payload = api.interactions.open(
        data["type"], place, person, inner, shown, is_personal=row.is_personal
    )
    await api.gateway.dispatch("INTERACTION_CREATE", payload)
