"""Who sees what: everybody, everywhere, by every way there is, and nothing but what the rule of
scopes allows.

A column is somebody at a place, a row a way (`tests/fixtures/visible_rows.py`). Each place has an
animal of its own in all that is kept of it (`tests/fixtures/populated_home.py`). Whoever asks must
meet their own animals there and no other; what is not theirs answers, letter for letter, like what
does not exist, and stays as it was."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.dates.schedule import Schedule
from core.errors import Refused
from core.menus.command_specs import CommandSpec
from core.store.facts.rows import Fact
from core.store.jobs import Job
from core.store.mailbox import OutboxItem
from core.store.notes import Operation, PendingNote
from core.store.ownership.removal import removal_reason
from core.store.query import SearchQuery
from core.store.usage_limits import Budget
from core.types import LOCAL_SCOPE, Account, Address, Answer, Tool
from gateway.texts.catalog import ENGLISH as texts
from tests.fixtures.command_line import good
from tests.fixtures.embedding_service import EmbeddingDouble
from tests.fixtures.exports import telegram_account, telegram_chat, telegram_message, write
from tests.fixtures.gateway_harness import KeptReply, notices, open_gateway
from tests.fixtures.populated_home import (
    HOMES,
    LINKED,
    MEMBER,
    MISSING,
    Place,
    PopulatedHome,
    direct,
    room,
)
from tests.fixtures.scripted_model import calls, says
from tests.fixtures.stores import share_stores
from tests.fixtures.sweeps import list_cases
from tests.fixtures.visible_rows import ANSWERED, SURFACES, Step, VisibleRows
from tests.services.doubles.double import KEY, running

GROUP = {"raccoon", "tapir"}
OWNER = {"ostrich", "bison"}
PERSON = {"marmot", "lemur"}
SAID_IN_ROOMS = {"raccoon", "heron", "gecko"}
NOBODY: set[str] = set()
OWNERS = Account(platform="telegram", user_id="42")
OTHERS = 3
"""So many others are asked for by name, one a row in turn: each costs as much as all else."""


@dataclass(frozen=True)
class _Column:
    """`exported`: what an export may hold: with his own words in rooms. `after`: what has happened
    before."""

    place: Place
    seen: set[str]
    exported: set[str]
    after: Callable[[PopulatedHome], Awaitable[None]] | None = None
    is_heard: bool = True


def _deaf(place: Place, after: Callable[[PopulatedHome], Awaitable[None]] | None = None) -> _Column:
    """Nothing that is said there by this sender is answered."""
    return _Column(place, NOBODY, NOBODY, after, is_heard=False)


def _removed(
    *accounts: Account, is_blocked: bool = False
) -> Callable[[PopulatedHome], Awaitable[None]]:
    """These are not served any more."""

    async def remove(made: PopulatedHome) -> None:
        services = made.harness.services
        await services.removals.remove(accounts, services.clock.now(), is_blocked=is_blocked)

    return remove


async def _unlinked(made: PopulatedHome) -> None:
    await made.hear("/unlink", direct("member"))


async def _room_parted(made: PopulatedHome) -> None:
    """The owner's own room is not the owner's any more."""
    await made.harness.services.people.set_owner([Account(platform="telegram", user_id="42")], [])


async def _claimed(made: PopulatedHome) -> None:
    """A stranger is to be one with the member: both have said yes, the owner has not."""
    code = (await made.hear("/link", direct("member"))).text.split("`")[1]
    await made.hear(f"/link {code}", direct("stranger"))
    for person in ("stranger", "member"):
        await made.hear("yes", direct(person))
    services = made.harness.services
    assert len(await services.links.list_for_owner(services.clock.now())) == 1


COLUMNS: Mapping[str, _Column] = {
    "owner, direct chat": _Column(direct("owner"), OWNER, OWNER | {"tapir"}),
    "owner, own room": _Column(room("owner", "telegram:-200"), OWNER, NOBODY),
    "owner, direct chat, room parted": _Column(
        direct("owner"), OWNER, OWNER | {"tapir"}, after=_room_parted
    ),
    "owner, parted room": _Column(
        room("owner", "telegram:-200"), NOBODY, NOBODY, after=_room_parted
    ),
    "member, parted room": _Column(
        room("member", "telegram:-200"), NOBODY, NOBODY, after=_room_parted
    ),
    "stranger with a claim, direct chat": _Column(
        direct("stranger"), NOBODY, NOBODY, after=_claimed
    ),
    "member with a claim, direct chat": _Column(
        direct("member"), PERSON, PERSON | SAID_IN_ROOMS, after=_claimed
    ),
    "owner, group": _Column(room("owner", "telegram:-100"), GROUP, NOBODY),
    "owner, topic": _Column(room("owner", "telegram:-100/3"), GROUP, NOBODY),
    "member, direct chat": _Column(direct("member"), PERSON, PERSON | SAID_IN_ROOMS),
    "member, topic of his direct chat": _Column(
        direct("member", "5"), PERSON, PERSON | SAID_IN_ROOMS
    ),
    "member, group": _Column(room("member", "telegram:-100"), GROUP, NOBODY),
    "member, topic": _Column(room("member", "telegram:-100/3"), GROUP, NOBODY),
    "member, moved group": _Column(room("member", "telegram:-1009"), GROUP, NOBODY),
    "member, parted": _Column(direct("member"), {"marmot"}, {"marmot", "raccoon"}, after=_unlinked),
    "linked, direct chat": _Column(direct("linked"), PERSON, PERSON | SAID_IN_ROOMS),
    "linked, private thread": _Column(room("linked", "discord:9/555", "555"), {"puma"}, NOBODY),
    "linked, channel": _Column(room("linked", "discord:900"), {"heron"}, NOBODY),
    "linked, public thread": _Column(room("linked", "discord:900/901", "900"), {"heron"}, NOBODY),
    "linked, private thread of the channel": _Column(
        room("linked", "discord:900/902", "902"), NOBODY, NOBODY
    ),
    "linked, group of direct messages": _Column(room("linked", "discord:700"), {"gecko"}, NOBODY),
    "linked, parted": _Column(direct("linked"), NOBODY, NOBODY, after=_unlinked),
    "other, direct chat": _Column(direct("other"), {"otter"}, {"otter"}),
    "other, channel": _Column(room("other", "discord:900"), {"heron"}, NOBODY),
    "stranger, direct chat": _Column(direct("stranger"), NOBODY, NOBODY),
    "stranger, group": _Column(room("stranger", "telegram:-100"), GROUP, NOBODY),
    "stranger, unknown room": _deaf(room("stranger", "telegram:-300")),
    "stranger, own room of the owner": _deaf(room("stranger", "telegram:-200")),
    "member, own room of the owner": _deaf(room("member", "telegram:-200")),
    "anonymous admin, group": _deaf(room("1087968824", "telegram:-100", is_nobody=True)),
    "anonymous admin, own room of the owner": _deaf(
        room("1087968824", "telegram:-200", is_nobody=True)
    ),
    "post of a channel, group": _deaf(room("136817688", "telegram:-100", is_nobody=True)),
    "Telegram itself, group": _deaf(room("777000", "telegram:-100", is_nobody=True)),
    "bot with the number of the owner, group": _deaf(
        room("owner", "telegram:-100", is_nobody=True)
    ),
    "webhook, channel": _deaf(room("990", "discord:900", is_nobody=True)),
    "member, removed": _Column(direct("member"), NOBODY, NOBODY, _removed(MEMBER, LINKED)),
    "member, removed, group": _deaf(room("member", "telegram:-100"), _removed(MEMBER, LINKED)),
    "member, blocked": _deaf(direct("member"), _removed(MEMBER, LINKED, is_blocked=True)),
    "linked, of who was removed": _Column(direct("linked"), NOBODY, NOBODY, _removed(MEMBER)),
    "linked, revoked, channel": _deaf(room("linked", "discord:900"), _removed(LINKED)),
    "owner, revoked": _Column(direct("owner"), NOBODY, NOBODY, _removed(OWNERS)),
    "owner, revoked, own room": _deaf(room("owner", "telegram:-200"), _removed(OWNERS)),
}
"""Who asks where, and what he may meet there."""
KEPT_COLUMNS = (
    "member, parted",
    "stranger, direct chat",
)
"""The columns of `make test`: a member whose access has ended, and a stranger."""


@pytest.fixture(scope="module")
def zoo(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[tuple[Path, dict[str, dict[str, str]]]]:
    """A house in which everybody has spoken, to be copied, and what can be named in it."""
    home = tmp_path_factory.mktemp("zoo")
    with share_stores(lambda: request.getfixturevalue("postgres_server")) as share:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MNEME_HOME", str(home))
            named = asyncio.run(PopulatedHome.build(home))
        share()
        yield home, named


@pytest.mark.slow
@pytest.mark.parametrize("name", list_cases(COLUMNS, *KEPT_COLUMNS))
async def test_person_sees_only_what_belongs_to_their_scopes(
    home: Path, zoo: tuple[Path, dict[str, dict[str, str]]], name: str
) -> None:
    template, named = zoo
    column = COLUMNS[name]
    async with PopulatedHome.open(home, named, template) as made:
        await made.harness.services.people.migrate_group("telegram", "-100", "-1009")
        (home / "CLAUDE.md").write_text("The project of the ostrich.")
        if column.after is not None:
            await column.after(made)
        await made.hear("hello", column.place, says("Ok."))
        reached = column.seen | column.exported
        before = await made.kept(reached)
        wrong = [fault for row in SURFACES for fault in [await _fault(made, column, row)] if fault]
        assert not wrong, "\n" + "\n".join(wrong)
        assert await made.kept(reached) == before, "something of others has changed"
        told = made.told.get(column.place["address"], "").casefold()
        assert {animal for animal in HOMES if animal in told} <= column.seen, "by a notice"


async def _fault(made: PopulatedHome, column: _Column, row: str) -> str | None:
    """What is wrong with one field of the table; None: nothing."""
    surface = SURFACES[row]
    allowed = column.exported if surface.how == "export" else column.seen
    if "forget" in row:
        # Of one's own words, also in rooms.
        allowed = column.seen | column.exported
    own = (
        [*column.seen]
        if surface.is_own and surface.is_naming
        else []
        if surface.is_naming
        else [MISSING]
    )
    shown = "\n".join(
        [
            await _done(made, column, surface, step, animal)
            for animal in own
            for step in surface.steps
        ]
    )
    for step in surface.steps if surface.is_naming else ():
        of_none = await _done(made, column, surface, step, MISSING)
        animal = _other(column, row)
        told = await _done(made, column, surface, step, animal)
        if animal in allowed:
            continue
        if surface.names(step) and _masked(told, step, made, animal) != _masked(
            of_none, step, made, MISSING
        ):
            return f"{row}, {step} of {animal}: {told!r} but of none: {of_none!r}"
    # Whoever asks for the settings of a group that isn't served learns who can change that.
    not_served = texts.SETUP_NOT_SERVED.partition(".")[0].casefold()
    answered = [line for line in shown.splitlines() if not line.startswith(not_served)]
    if not column.is_heard and "".join(answered).strip():
        return f"{row}: {shown!r} was answered"
    met = {animal for animal in HOMES if animal in shown}
    is_right = met == allowed if surface.is_whole and column.is_heard else met <= allowed
    return None if is_right else f"{row}: met {sorted(met)}, not {sorted(allowed)}"


def _other(column: _Column, row: str) -> str:
    """One whose home cannot be seen from there: of the other homes of who asks, then of those of
    others."""
    who = column.place["sender"].id
    foreign = [animal for animal in HOMES if animal not in column.seen]
    foreign.sort(key=lambda animal: HOMES[animal]["sender"].id != who)
    others = [animal for animal in foreign if not _is_same_home(column, animal)][:OTHERS]
    return others[list(SURFACES).index(row) % len(others)]


def _is_same_home(column: _Column, animal: str) -> bool:
    """Whether the animal is at home with the one who asks, there; not where its home has become
    another one."""
    home = HOMES[animal]
    is_there = (
        home["scope"] == column.place["scope"] and home["sender"].id == column.place["sender"].id
    )
    return bool(is_there and column.after is not _room_parted)


async def _done(
    made: PopulatedHome, column: _Column, surface: VisibleRows, step: Step, animal: str
) -> str:
    """What the person reads, and what the model reads for it."""
    place, named = dict(column.place), made.named[animal]
    before = len(made.model.requests)
    if not isinstance(step, str):
        called = calls((step[0], _filled(step[1], named)))
        await made.hear("Look into it", place, called, says("Done."))
        return "\n".join(_results(made.model.requests[before:]))
    text = step.format(**named) if "{" in step else step
    more: dict[str, Any] = {}
    if surface.how == "press":
        more["kind"] = "action"
    elif surface.how in ANSWERED:
        more["reply_to"] = named[ANSWERED[surface.how]]
    elif surface.how == "cron":
        place["address"] = Address(platform="cron", chat_id="99")
    elif surface.how == "job":
        place["address"] = Address(platform="cron", chat_id=named["job"])
    reply = await made.hear(text, place, says("Done."), **more)
    if reply.answer is None:
        return ""
    told = [
        reply.answer.text,
        *(f"{button.label} {button.command}" for button in reply.answer.buttons),
    ]
    told += [file.content.decode() for file in reply.answer.files]
    if surface.how == "prompt":
        return "\n".join(str(request.system) for request in made.model.requests[before:]).casefold()
    # What the model is told is shown to nobody, and may be said to anybody.
    return "\n".join(
        [*told, *(str(request.messages[-1:]) for request in made.model.requests[before:])]
    ).casefold()


def _results(requests: Any) -> Iterator[str]:
    """What tools gave to the model."""
    for request in requests:
        for block in request.messages[-1]["content"]:
            if block["type"] == "tool_result":
                yield json.dumps(block["content"], ensure_ascii=False).casefold()


def _filled(arguments: Mapping[str, Any], named: Mapping[str, str]) -> dict[str, Any]:
    def value(given: Any) -> Any:
        if isinstance(given, list):
            return [value(one) for one in given]
        if not isinstance(given, str) or "{" not in given:
            return given
        text = given.format(**named)
        return int(text) if text.isdecimal() else text

    return {name: value(given) for name, given in arguments.items()}


def _masked(text: str, step: Step, made: PopulatedHome, animal: str) -> str:
    """The text without what was asked for, without how long it took, and when."""
    text = re.sub(r"took_ms\W+[\d.]+|\d\d:\d\d(?= europe/)", "", text)
    for name, value in made.named[animal].items():
        if f"{{{name}}}" in str(step):
            text = re.sub(
                rf"(?<![a-z0-9]){re.escape(value.casefold())}(?!\w)|(?<=\b[fc]){value}\b", "#", text
            )
    return text


JOBS: Mapping[str, tuple[tuple[Account, ...], bool, set[str]]] = {
    "nobody was removed": ((), True, NOBODY),
    "the member": ((MEMBER,), True, {"marmot", "raccoon", "lemur"}),
    "the linked account": ((LINKED,), True, {"lemur", "heron", "gecko"}),
    "an account of the owner": ((OWNERS,), True, {"ostrich", "tapir", "bison"}),
    "no room is listed any more": ((), False, {"puma"}),
    "the member, and no room is listed": (
        (MEMBER,),
        False,
        {"marmot", "raccoon", "lemur", "puma", "heron", "gecko"},
    ),
}
"""Who was removed, whether the rooms are still listed, and whose jobs do not come any more."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", list_cases(JOBS, "the member, and no room is listed", "an account of the owner")
)
async def test_job_is_delivered_as_long_as_its_planner_has_access(
    home: Path, zoo: tuple[Path, dict[str, dict[str, str]]], name: str
) -> None:
    template, named = zoo
    removed, is_listed, paused = JOBS[name]
    async with PopulatedHome.open(home, named, template) as made:
        services, access = made.harness.services, made.harness.access
        if removed:
            await services.removals.remove(removed, services.clock.now())
        if not is_listed:
            access._listed_groups = frozenset()
        refused = set()
        for animal in HOMES:
            job = await services.jobs.get(int(named[animal]["job"]))
            assert job is not None
            try:
                await access.load_job_view(job)
            except Refused:
                refused.add(animal)
    assert refused == paused


@pytest.mark.slow
async def test_member_of_a_listed_group_is_a_stranger_in_a_direct_chat(
    home: Path, zoo: tuple[Path, dict[str, dict[str, str]]]
) -> None:
    template, named = zoo
    async with PopulatedHome.open(home, named, template) as made:
        in_room = room("stranger", "telegram:-100")
        assert (await made.hear("hello", in_room, says("Hi."))).text == "Hi."
        assert (
            "I don't know you" in (await made.hear("hello", direct("stranger"), says("Hi."))).text
        )
        assert (
            await made.hear("hello", room("stranger", "telegram:-200"), says("Hi."))
        ).answer is None
        assert "works only in a direct chat" in (await made.hear("/link", in_room)).text
        made.harness.access._listed_groups = frozenset()
        told = await made.hear("hello", in_room, says("Hi."))
        assert told.text == texts.STRANGER_IN_GROUP
        assert (await made.hear("hello", in_room, says("Hi."))).answer is None


async def test_every_command_and_every_tool_stands_in_the_table(home: Path) -> None:
    typed = [
        step for surface in SURFACES.values() for step in surface.steps if isinstance(step, str)
    ]
    used = [
        step for surface in SURFACES.values() for step in surface.steps if not isinstance(step, str)
    ]
    async with open_gateway(home) as harness:
        wanted = {line for spec in harness.commands.specs for line in _lines(spec)}
        missing = {
            line
            for line in wanted
            if not any(re.match(rf"{re.escape(line)}(\W|$)", step) for step in typed)
        }
        missing |= {
            f"{spec.name}: {option.prefix}"
            for spec in harness.commands.specs
            for option in spec.options
            if option.prefix
            and not any(
                step.startswith(f"/{spec.name}") and option.prefix in step for step in typed
            )
        }
        for tool in harness.agent.tool_runner.tools.values():
            uses = [arguments for name, arguments in used if name == tool.name]
            missing |= (
                {f"{tool.name} {value}" for value in _values(tool, uses)} if uses else {tool.name}
            )
    assert missing == set(), "add a line for each to tests/fixtures/visible_rows.py"


def _lines(spec: CommandSpec) -> Iterator[str]:
    """How each thing begins that a command can do."""
    choices = [choice for option in spec.options if not option.prefix for choice in option.choices]
    yield from (f"/{spec.name} {choice}" for choice in choices)
    if not choices:
        yield f"/{spec.name}"


def _values(tool: Tool, uses: list[Mapping[str, Any]]) -> Iterator[str]:
    """What a tool can be told to do and is not, and numbers of rows that it takes and is not
    given."""
    for name, schema in tool.schema["properties"].items():
        kinds = [schema, *schema.get("anyOf", ())]
        choices = (
            [choice for kind in kinds for choice in kind.get("enum", ())]
            if name in ("action", "mode")
            else []
        )
        given = [use.get(name) for use in uses]
        yield from (choice for choice in choices if choice not in given)
        if name.endswith("_id") and not any("{" in str(value) for value in given):
            yield name


@pytest.mark.slow
async def test_buttons_and_questions_in_a_group_work_only_for_the_person_who_asked(
    home: Path, zoo: tuple[Path, dict[str, dict[str, str]]]
) -> None:
    template, named = zoo
    async with PopulatedHome.open(home, named, template) as made:
        for person in ("owner", "other", "stranger"):
            where = room(person, "telegram:-100")
            unknown = await made.hear(named[MISSING]["button"], where, kind="action")
            for name in ("button", "question"):
                pressed = await made.hear(named["raccoon"][name], where, kind="action")
                # Everyone in the group sees both.
                assert "for someone else" in pressed.text or pressed.answer == unknown.answer, (
                    f"the {name} of the member, pressed by: {person}"
                )
            said = await made.hear("yes", where, says("Done."))
            assert said.text == "Done."
        mine = room("member", "telegram:-100")
        assert (
            "raccoon"
            in (await made.hear(named["raccoon"]["button"], mine, kind="action")).text.casefold()
        )
        # That press was something else than a yes: what waited for one waits no more.
        assert (await made.hear("yes", mine, says("Done."))).text == "Done."


@pytest.mark.slow
@pytest.mark.parametrize("after", [_removed(MEMBER), _room_parted])
async def test_removed_person_loses_access_to_imported_chats_of_others(
    home: Path,
    tmp_path: Path,
    zoo: tuple[Path, dict[str, dict[str, str]]],
    after: Callable[[PopulatedHome], Awaitable[None]],
) -> None:
    template, named = zoo
    async with PopulatedHome.open(home, named, template) as made:
        services, now = made.harness.services, made.harness.services.clock.now()
        file = write(
            tmp_path / "result.json",
            telegram_account([telegram_chat([telegram_message(400_000, "see you")], 8)]),
        )
        for scope in ("account:telegram:7", "room:telegram:-200"):
            good(home, "import", str(file), "--scope", scope)
        await notices(made.harness)
        address, answer = direct("other")["address"], Answer(text="for the other one")
        await services.outbox.put(
            OutboxItem(key="left", kind="answer", address=address, answer=answer, next_at=now)
        )
        await after(made)
        assert [
            item.address for item in await services.outbox.list_due(now) if item.key == "left"
        ] == [address]
        last_spoke = {
            one.account.key: one.seen_at for one in await services.people.list_accounts(())
        }["telegram:7"]
        assert last_spoke is not None
        assert abs(now - last_spoke) < timedelta(minutes=5)


HEARS: Mapping[str, set[str]] = {
    **{animal: {"telegram:42"} for animal in HOMES},
    **{animal: {"telegram:7", "discord:dm71"} for animal in ("marmot", "lemur")},
    "otter": {"telegram:8"},
}
"""Where a notice about what is kept with an animal may be read; of a room the owner is told."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["as it is", "imported", "parted", "removed"])
async def test_each_notice_is_delivered_to_its_person_in_private_only(
    home: Path, tmp_path: Path, zoo: tuple[Path, dict[str, dict[str, str]]], kind: str
) -> None:
    template, named = zoo
    hears = dict(HEARS)
    async with PopulatedHome.open(home, named, template) as made:
        services, owner_notices = made.harness.services, made.harness.services.owner_notices
        now = services.clock.now()
        if kind == "imported":
            # Chats with others, newer than all that was said here.
            chats = [
                telegram_chat([telegram_message(400_000, "see you")], number)
                for number in (666, 7, 8)
            ]
            file = write(tmp_path / "result.json", telegram_account(chats))
            for key in {
                LOCAL_SCOPE.key,
                *(place["scope"].key for place in HOMES.values() if place["is_direct"]),
            }:
                good(home, "import", str(file), "--scope", key)
        elif kind == "parted":
            await made.hear("/unlink", direct("member"))
            hears |= {"marmot": {"telegram:7"}, "lemur": {"discord:dm71"}}
        elif kind == "removed":
            await services.removals.remove([MEMBER], now)
            hears |= {"marmot": set(), "lemur": {"discord:dm71"}}
        await notices(made.harness)

        done = set()

        async def told(animal: str, *work: Any) -> None:
            for one in work:
                done.add(one.__name__)
                await one
                places = [place for place, _ in await notices(made.harness)]
                assert len(places) == bool(hears[animal]), f"once, of the {animal}: {places}"
                assert {*places} <= hears[animal], f"of the {animal}"

        for minutes, (animal, place) in enumerate(HOMES.items()):
            scope, operations = place["scope"], (Operation(action="add", content=animal),)
            at = now + timedelta(minutes=minutes)
            note = PendingNote(
                scope=scope, target="memory", operations=operations, reason="it is odd", at=at
            )
            fact = Fact(
                scope=scope, content=animal, kind="identity", origin="person", created_at=now
            )
            schedule, target = Schedule(zone="UTC", at=now), place["address"]
            job = Job(
                schedule=schedule,
                text=animal,
                target=target,
                scope=scope,
                created_at=now,
                next_at=now,
            )
            await told(
                animal,
                owner_notices.warn_about_note(scope, "memory", "a secret", animal),
                owner_notices.notify_pending(note),
                owner_notices.notify_pending(replace(note, is_draft=True, id=minutes + 1)),
                owner_notices.notify_verdict(replace(note, id=minutes + 101), None),
                owner_notices.notify_review([replace(note, id=minutes + 201)], minutes + 1),
                owner_notices.notify_closing(
                    replace(fact, id=minutes + 1), replace(fact, id=minutes + 101), "plain"
                ),
                owner_notices.notify_paused_job(
                    replace(job, id=int(named[animal]["job"]) + 1_000), "It is odd."
                ),
            )
            gone = replace(job, id=int(named[animal]["job"]))
            await told("ostrich", owner_notices.notify_paused_job(gone, removal_reason()))

        async def prepare_dead_letter() -> None:
            await services.inbox.store_dead_letter("telegram", 5, {"update_id": 5}, "odd")

        async def prepare_notice() -> None:
            notice = await owner_notices.prepare_notice("odd", "It is odd.")
            assert notice is not None
            await services.outbox.put(notice.item)

        await told(
            "ostrich",
            prepare_dead_letter(),
            prepare_notice(),
            owner_notices.notify_missed(Address(platform="discord", chat_id="77")),
            owner_notices.notify_memory_problem("down", "diary", "it is odd"),
            owner_notices.warn_about_file("SOUL.md", "a secret", kind),
            owner_notices.notify_outage("discord", "given up: it is odd"),
            owner_notices.notify_retired_model(
                services.settings.model, "an-old-model", "a-new-model"
            ),
        )
        for scope, animal in {place["scope"]: animal for animal, place in HOMES.items()}.items():
            used = {"answers": 9.0}
            budget = Budget(
                scope=scope, limits={"answers": 10}, used=used, prices=services.settings.usage
            )
            await told(animal, owner_notices.notify_budget(budget, "answers"))
        asked = replace(made.harness.inbound("let me in", "667"), message_id="667")
        await told("ostrich", made.harness.admission.admit(asked, KeptReply()))
        kinds = {name for name in vars(type(owner_notices)) if not name.startswith("_")}
        assert kinds - {"notify", "load_texts"} <= done, "every kind of notice is looked at here"


@pytest.mark.slow
async def test_search_by_vectors_shows_only_messages_of_own_scopes(
    home: Path, zoo: tuple[Path, dict[str, dict[str, str]]]
) -> None:
    """Where all that was ever said is equally near to a question."""
    template, named = zoo
    double = Alike()
    async with running(double):
        options = f'[recall.embeddings]\nurl = "{double.url}/v1"\nmodel = "small"\nkey = "EMBEDDINGS_KEY"\n'
        async with PopulatedHome.open(
            home, named, template, options, {"EMBEDDINGS_KEY": KEY}
        ) as made:
            services = made.harness.services
            assert services.embeddings is not None
            while await services.embeddings.tend():
                pass
            sent = " ".join(double.embedded).casefold()
            assert {animal for animal in HOMES if animal in sent} == {*HOMES}
            met = set()
            for name, column in COLUMNS.items():
                if column.after is not None:
                    continue
                reply = await made.hear("/recall whatsoever befell unto thee", column.place)
                told = reply.answer.text.casefold() if reply.answer else ""
                shown = {animal for animal in HOMES if animal in told}
                assert shown <= column.seen, name
                met |= shown
                sender, address = column.place["sender"], column.place["address"]
                account = Account(platform=address.platform, user_id=sender.id)
                standing = await services.people.load_access(account, column.place["scope"])
                query = SearchQuery(text="whatsoever befell unto thee", scopes=standing.scopes)
                ids = json.dumps(
                    [match.message_id for match in await services.embeddings.retrieve(query)]
                )
                found = await services.database.fetch_all(_SCOPES_OF, {"ids": ids})
                assert {row[0] for row in found} <= {scope.key for scope in standing.scopes}, name
            assert met == {*HOMES}


class Alike(EmbeddingDouble):
    """Everything means the same."""

    def vector(self, text: str) -> list[float]:
        return super().vector("")


_SCOPES_OF = """
SELECT DISTINCT scopes.key FROM messages JOIN sessions ON sessions.id = session_id JOIN scopes ON scopes.id = scope_id
WHERE messages.id IN (SELECT value FROM json_each(:ids))
"""
