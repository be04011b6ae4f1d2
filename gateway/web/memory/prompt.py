"""Shows what the model is told at the beginning of each request."""

from __future__ import annotations

import re
from dataclasses import dataclass

from core.types import Session
from gateway.texts.catalog import Texts
from gateway.web.views import (
    PageRequest,
    Values,
)

MAX_PROMPTS = 10
_HEADING = re.compile(r"(?m)^(?=#{1,3} )")
# The labels of sections by how their headings begin: the table and the key of the text. The prompt
# speaks to Mneme, in English.
_LABELS = {
    "How you": ("page_memory", "PROMPT_WORK"),
    "What you": ("page_memory", "PROMPT_KNOWS"),
    "MEMORY ": ("page", "NOTES_MEMORY"),
    "USER ": ("page", "NOTES_USER"),
    "Skills": ("page_memory", "SKILLS"),
    "Instructions ": ("page_memory", "INSTRUCTIONS"),
    "Where you": ("page_memory", "PROMPT_PLACE"),
    "Your model": ("page_memory", "PROMPT_MODEL"),
}


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A section of the system prompt and its share of the tokens."""

    label: str
    text: str
    tokens: int


async def load_prompt(request: PageRequest) -> Values:
    """Return the sections of a conversation's system prompt. The default is the latest one."""
    conversations = request.services.conversations
    latest = await conversations.list_recent(request.scopes, MAX_PROMPTS)
    number = request.number("session") or (latest[0].id if latest else 0)
    session = await conversations.find(number, request.scopes) if number else None
    parts = [] if session is None else _split_prompt(session, request.texts)
    return {
        "latest": latest,
        "session": session,
        "parts": parts,
        "tokens": sum(part.tokens for part in parts),
    }


def _split_prompt(session: Session, texts: Texts) -> list[PromptPart]:
    """Split a system prompt at its headings. The tokens are estimated from the length."""
    # Imported here because few people open this page.
    from core.models.estimates import CHARS_PER_TOKEN

    parts = []
    for text in _HEADING.split(session.prompt.text):
        heading, _, body = text.partition("\n") if text.startswith("#") else ("", "", text)
        if text.strip():
            tokens = round(len(text) / CHARS_PER_TOKEN)
            parts.append(
                PromptPart(_name_section(heading.strip("# "), texts), body.strip(), tokens)
            )
    return parts


def _name_section(heading: str, texts: Texts) -> str:
    """Return the label of a section in the person's language, or its heading if it has none."""
    for beginning, (table, key) in _LABELS.items():
        if heading.startswith(beginning):
            return texts.table(table)[key]
    return heading
