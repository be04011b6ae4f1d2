"""Writes a home with the code that is checked out, as a killed process leaves it.

``python -m tests.tools.write_home FOLDER``. A later version must open such a home with all that is
in it: `tests/fixtures/homes/README.md` says which commits have written one, and
`tests/end_to_end/test_home_upgrade.py` opens them.
"""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import timedelta
from itertools import count
from pathlib import Path

from core.store.mailbox import OutboxItem
from core.store.search.chunks import index_pending
from core.types import Account, Address, Answer
from tests.fixtures.embedding_service import EmbeddingDouble
from tests.fixtures.gateway_harness import KeptReply
from tests.fixtures.populated_home import HOMES, PopulatedHome
from tests.fixtures.provider_harness import plugged
from tests.fixtures.scripted_model import calls, says
from tests.services.doubles.double import KEY, running

STRANGER = Account(platform="telegram", user_id="9")
TALK = (
    "The hatchback broke down beside the bakery in Sintra.",
    "My sister Ângela moved to Évora and works at the town hall.",
    "Meine Großmutter züchtet Süßkirschen in Würzburg.",
    "Моя сестра Оля переехала в Новосибирск и купила рыжего кота.",
    "我的表哥在成都开了一家火锅店，每个周末都排队。",
    "祖父は金沢で和菓子の店を五十年続けています。",
    "ร้านก๋วยเตี๋ยวของพี่สาวอยู่ที่เชียงใหม่",
    "I am allergic to walnuts, so never suggest a recipe with them.",
)
FACTS = ("My boat is called Seagull.", "Ana's birthday is on 3 May.")
COMMANDS = (
    "/title Boats and bakeries",
    "/remind every Monday at 9 water the ferns",
    "/remind tomorrow at 18 renew the mooring licence",
    "/memory add The spare key of the boathouse is in the blue drawer.",
    "/undo",
    "/language de",
    "/new",
)


async def write_home(home: Path) -> None:
    """Fill the home, and end the process without closing anything."""
    named = await PopulatedHome.build(home)
    plugged(home, "diary")
    double = EmbeddingDouble()
    async with running(double):
        options = (
            f'[recall.embeddings]\nurl = "{double.url}/v1"\nmodel = "small"\n'
            'key = "EMBEDDINGS_KEY"\n[memory.providers.diary]\nenabled = true\n'
        )
        variables = {"EMBEDDINGS_KEY": KEY}
        async with PopulatedHome.open(home, named, None, options, variables) as populated:
            await _talk(populated)
            await _leave_work_open(populated)
            os._exit(0)


async def _talk(populated: PopulatedHome) -> None:
    """Talk about everyday things, with facts, tools, a thumb and an erasure."""
    place, harness = HOMES["ostrich"], populated.harness
    # The ids that the messages of `PopulatedHome.build` have were given already.
    harness._ids = count(100_000)
    for text in TALK:
        await populated.hear(text, place, says(f"Noted: {text.split()[-1]}"))
    for text in FACTS:
        await populated.hear(f"/remember {text}", place)
    note = {"target": "user", "action": "add", "content": "Calls the boat Seagull."}
    asked = "Note that I call the boat Seagull."
    await populated.hear(asked, place, calls(("memory", note)), says("Done."))
    answer = await populated.hear("What is my boat called?", place, says("It is called Seagull."))
    assert answer.receipt is not None
    (number,) = answer.receipt.message_ids
    thumb = harness.inbound("up", kind="reaction", message_id=number)
    await harness.admission.admit(thumb, KeptReply())
    for text in COMMANDS:
        await populated.hear(text, place)
    await populated.hear("The password of the cabin is tangerine-sunset.", place)
    question = await populated.hear("/forget tangerine", place)
    assert question.answer is not None
    button = question.answer.buttons[0]
    await populated.hear(button.id, place, kind="action", command=None)
    embeddings = harness.services.embeddings
    assert embeddings is not None
    while await embeddings.tend():
        pass


async def _leave_work_open(populated: PopulatedHome) -> None:
    """Leave an answer, a due item and an incognito conversation behind."""
    services = populated.harness.services
    now = services.clock.now()
    address = Address(platform="telegram", chat_id="42")
    for number, text in enumerate(("the first parcel", "the second, behind it")):
        item = OutboxItem(
            key=f"test:{number}",
            kind="notice",
            address=address,
            answer=Answer(text=text),
            next_at=now + timedelta(minutes=number),
        )
        await services.outbox.put(item)
    await services.people.request_pairing(STRANGER, "Nine", now)
    await services.inbox.store_dead_letter("telegram", 9001, {"odd": True}, "not a message")
    await populated.hear("/ostrich-pier which way?", HOMES["ostrich"])
    while await services.database.write(index_pending):
        pass
    incognito = HOMES["otter"]
    await populated.hear("/incognito on", incognito)
    waiting = populated.harness.inbound("Which day is the market?", message_id="waiting-1")
    await populated.harness.admission.admit(waiting, KeptReply())


if __name__ == "__main__":
    asyncio.run(write_home(Path(sys.argv[1])))
