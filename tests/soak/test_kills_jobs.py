"""Three hundred kills around the moments at which reminders and scheduled questions are due, on
Telegram and Discord. Each job is made once, runs once, and is shown once. Some messages among them ask for a
note."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.fixtures.kill_storm import (
    MARK,
    TOKEN,
    KillStorm,
    choose_seed,
    discord_place,
    open_system,
    telegram_place,
)
from tests.fixtures.tool_caller import SHARE, ToolCaller

KILLS = 300
"""Together with the other files test_kills_*.py: 1,400."""
KILLS_PER_HOME = 50
LATE = r"(?: \(due [^)]*: I was away\))?"
PAST = r"[^⏰]* is in the past\."
"""What a person is told if the process was off until the time had passed."""
REPEATED = rf"(?:{re.escape(MARK)}\s+)?"
WHOLE = re.compile(
    rf"{REPEATED}(?:"
    rf"⏰ Reminder \d+{LATE}: tea [td]\d+q\d+|"
    rf"⏰ Question \d+{LATE}: what about [td]\d+q\d+\?\s+Answer to [td]\d+q\d+\.|"
    rf"{PAST}|"
    r"[^⏰]*\b[td]\d+q\d+\b[^⏰]*"
    r")(?:\n\n.*I couldn't send this earlier.*)?"
)
"""Everything that may be shown: a reminder, an answer, and the confirmation of a new job."""

pytestmark = pytest.mark.timeout(2400)


def phrase_job(token: str, chance: random.Random) -> str:
    """Return a command that makes a reminder or a scheduled question, due in some seconds."""
    seconds = chance.randint(1, 3)
    if chance.random() < 0.5:
        return f"/remind in {seconds} seconds tea {token}"
    return f"/cron add in {seconds} seconds | what about {token}?"


def list_job_damage(storm: KillStorm, wishes: Collection[str]) -> list[str]:
    """Return the jobs that aren't there once, or whose result isn't shown once, and every text that
    isn't whole. The messages of `wishes` ask for no job."""
    live = storm.live
    jobs = Counter(
        token
        for (text,) in live.query("SELECT text FROM jobs")
        for token in TOKEN.findall(str(text))
    )
    wrong = []
    for place in storm.places:
        shown = place.list_shown()
        results = Counter(
            token for text in shown if "⏰" in text for token in set(TOKEN.findall(text))
        )
        unmarked = Counter(
            token
            for text in shown
            if "⏰" in text and MARK not in text
            for token in set(TOKEN.findall(text))
        )
        asked_for = [token for token in storm.said[place.letter] if token not in wishes]
        refused = [token for token in asked_for if not jobs[token]]
        refusals = [text for text in shown if re.fullmatch(rf"{REPEATED}{PAST}", text)]
        repeated = sum(MARK in text for text in refusals)
        if not len(refusals) - repeated <= len(refused) <= len(refusals):
            wrong.append(f"{refused} have no job, and the answers are {refusals}")
        for token in storm.said[place.letter]:
            if jobs[token] > 1:
                wrong.append(f"there are {jobs[token]} jobs for {token}")
            if jobs[token] and not results[token]:
                wrong.append(f"the result of {token} was lost")
            if unmarked[token] > 1:
                wrong.append(f"{token} is shown {unmarked[token]} times without a mark")
        wrong += [f"an orphan: {text}" for text in shown if not WHOLE.fullmatch(text)]
    answers = Counter(
        token
        for (text,) in live.query("SELECT text FROM messages WHERE role = 'assistant'")
        if str(text).startswith("Answer to")
        for token in TOKEN.findall(str(text))
    )
    wrong += [f"{token} is answered {n} times" for token, n in answers.items() if n != 1]
    asked = Counter(
        str(text)
        for (text,) in live.query("SELECT text FROM messages WHERE role = 'user' AND kind = 'chat'")
    )
    wrong += [f"asked {n} times: {text}" for text, n in asked.items() if n != 1]
    return wrong


@pytest.mark.parametrize("part", range(KILLS // KILLS_PER_HOME))
async def test_kills_around_due_moments_run_and_show_each_job_once(home: Path, part: int) -> None:
    caller = ToolCaller(("a note",), share=SHARE, phrase_other=phrase_job)
    async with open_system(home, caller) as live:
        caller.live = live
        places = (telegram_place(live, messages=(0, 2)), discord_place(live, messages=(0, 2)))
        storm = KillStorm(live=live, seed=choose_seed(), places=places, phrase=caller.phrase)
        await storm.blow(KILLS_PER_HOME)
        await storm.assert_whole(list_job_damage(storm, caller.wishes) + caller.list_damage())
