"""Whatever may repeat words that were read is refused once something was erased after they were
read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from core.dates.schedule import Schedule
from core.errors import StaleReadError
from core.store.actions import Actions, ButtonAction
from core.store.engine import Database
from core.store.erasure.statements import ErasureList, Erasures
from core.store.facts.facts import Facts
from core.store.facts.rows import Fact
from core.store.jobs import Job, Jobs
from core.store.mailbox import Inbox, Outbox, OutboxItem
from core.store.notes import Author, Notes, Operation, PendingNote
from core.store.ownership.people import EpochGuard
from core.store.sessions import Conversations
from core.types import Answer, Command, ErasureEpoch, Inbound, Sender, Session
from tests.fixtures.clock import SteadyClock
from tests.fixtures.forgetting import claim_of
from tests.fixtures.samples import ANA, BOB, CHAT, NOON, message, opened

Write = Callable[[Database, SteadyClock, Session, ErasureEpoch], Awaitable[object]]


def fact(content: str) -> Fact:
    return Fact(scope=ANA, content=content, kind="identity", origin="person", created_at=NOON)


async def correct(database: Database, clock: SteadyClock, _: Session, epoch: ErasureEpoch) -> None:
    facts = Facts(database, clock)
    known = await facts.learn(fact("Lives in Lisbon"))
    await facts.correct(known.id, frozenset((ANA,)), "Lives in Porto", Author(epoch=epoch))


JOB = Job(
    schedule=Schedule(zone="UTC", at=NOON), text="Porto", target=CHAT, scope=ANA, created_at=NOON
)
BUTTON = ButtonAction(
    id="b", scope=ANA, account=None, command=Command(name="recall"), expires_at=NOON
)
PENDING = PendingNote(
    scope=ANA,
    target="memory",
    operations=(Operation(action="add", content="Porto"),),
    reason="why",
    at=NOON,
)
ITEM = OutboxItem(
    key="job:1", kind="reminder", address=CHAT, answer=Answer(text="Porto"), next_at=NOON
)

WRITES: dict[str, Write] = {
    "a message": lambda database, clock, session, epoch: Conversations(database, clock).append(
        [message(session.id)], epoch=epoch
    ),
    "a session with the title of another": lambda database, clock, session, epoch: Conversations(
        database, clock
    ).create(session, epoch=epoch),
    "a prompt": lambda database, clock, session, epoch: Conversations(database, clock).store_prompt(
        session.id, "Lives in Porto", epoch=epoch
    ),
    "a title": lambda database, clock, session, epoch: Conversations(database, clock).retitle(
        session.id, "Porto", epoch
    ),
    "a note": lambda database, clock, session, epoch: Notes(database).check_epoch(epoch),
    "a note that waits": lambda database, clock, session, epoch: Notes(database).add_pending(
        PENDING, epoch
    ),
    "a fact": lambda database, clock, session, epoch: Facts(database, clock).learn(
        fact("Lives in Porto"), epoch=epoch
    ),
    "a corrected fact": correct,
    "a reminder": lambda database, clock, session, epoch: Jobs(database).add(JOB, epoch),
    "a button": lambda database, clock, session, epoch: Actions(database, clock).add(
        [BUTTON], epoch
    ),
    "what is due": lambda database, clock, session, epoch: Outbox(database, clock).put(
        ITEM, epoch=epoch
    ),
    "what is asked on schedule": lambda database, clock, session, epoch: Inbox(
        database, clock
    ).accept(
        Inbound(
            kind="message",
            address=CHAT,
            scope=ANA,
            sender=Sender(id="1", name="schedule"),
            text="Porto",
            message_id="1",
            sent_at=NOON,
            is_direct=True,
            epoch=epoch,
        ),
        NOON,
    ),
}


@pytest.mark.parametrize("name", WRITES)
async def test_write_based_on_a_read_before_an_erasure_is_refused(
    database: Database, clock: SteadyClock, name: str
) -> None:
    session = await opened(Conversations(database, clock))
    guard = EpochGuard(database)
    mine, other = (await guard.view(ANA)).epoch, (await guard.view(BOB)).epoch
    erasures = Erasures(database, clock)
    await erasures.save(ErasureList(request=claim_of(ANA), text="Porto", token="t"))
    assert await erasures.begin("t", claim_of(ANA)) is not None
    with pytest.raises(StaleReadError):
        await WRITES[name](database, clock, session, mine)
    await WRITES[name](database, clock, session, other)
