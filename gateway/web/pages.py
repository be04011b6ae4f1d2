"""Lists all pages in the order of the navigation, and the addresses that correspond to commands."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from core.types import Command
from gateway.web.access import PAGE as ACCESS
from gateway.web.chat import PAGE as CHAT
from gateway.web.conversations import PAGE as CONVERSATIONS
from gateway.web.memory.page import PAGE as MEMORY
from gateway.web.owner.people import PEOPLE
from gateway.web.owner.settings import SETTINGS
from gateway.web.recall import PAGE as RECALL
from gateway.web.reminders import PAGE as REMINDERS
from gateway.web.today import PAGE as TODAY
from gateway.web.use import PAGE as USE
from gateway.web.views import Action, Page

PAGES: Sequence[Page] = (
    TODAY,
    RECALL,
    CONVERSATIONS,
    CHAT,
    MEMORY,
    REMINDERS,
    USE,
    PEOPLE,
    SETTINGS,
    ACCESS,
)
# The actions by their names, each with its page.
ACTIONS: Mapping[str, tuple[Page, Action]] = {
    action.name: (page, action) for page in PAGES for action in page.actions
}
_AROUND = re.compile(r"around:(\d{1,12})")
_WHY_FACT = re.compile(r"why f(\d{1,12})")


def find_link(command: Command) -> str | None:
    """Return the page address with the same content as a command, or None if there is none."""
    if command.name == "recall":
        if match := _AROUND.fullmatch(command.arguments):
            return f"/conversations/at/{match[1]}"
        return f"/recall?q={quote(command.arguments)}"
    if command.name == "memory":
        if match := _WHY_FACT.fullmatch(command.arguments):
            return f"/memory/facts/{match[1]}"
        if command.arguments.startswith("history"):
            return "/memory/history"
    return None
