"""What the router says when it does not answer: it was away, it failed, it does not know who writes."""

from __future__ import annotations

from datetime import timedelta

from core.errors import MnemeError
from core.types import Answer

FORGOTTEN = Answer(text="You had me forget this before I had answered it, so I leave it unanswered.")
"""For what was erased while it waited."""


def away(age: timedelta) -> Answer:
    """For what was written so long ago that an answer would come out of nowhere."""
    words = f"I was away when you wrote this {_ago(age)}, so I have not answered it."
    return Answer(text=f"{words} Ask again if it still matters.")


def failed(error: Exception, incident: str, *, is_kept: bool = True) -> Answer:
    """For a turn that failed; `incident` is what the log knows it by."""
    reason = str(error) if isinstance(error, MnemeError) else "Something went wrong on my side."
    kept = "What you wrote is kept. Please" if is_kept else "🕶 This is incognito, so what you wrote is not kept. Please"
    return Answer(text=f"{reason} {kept} try again; the log has the details under {incident}.")


def unknown(code: str) -> Answer:
    """For a stranger who may be let in."""
    return Answer(
        text="I do not know you yet, so I keep nothing of what you write here. If my owner wants me to talk to you, "
        f"give him this code; it is good for one hour:\n\n`{code}`\n\nHe types `/approve {code}`."
    )


def _ago(age: timedelta) -> str:
    if age >= timedelta(days=2):
        return f"{age.days} days ago"
    hours = round(age.total_seconds() / 3600)
    return f"{hours} hours ago" if hours > 1 else "a while ago"
