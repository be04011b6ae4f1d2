"""Ask the model for descriptions of pictures: one line per picture, for search.

The instruction is sent next to the picture. The model writes the line into a block that is removed
from every answer (see `core.guard.origin_and_fence.Scrubber`). So people don't see the line, and it
isn't sent again. The description is stored for the bytes of the picture, if only one scope has
these bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from core.guard.origin_and_fence import neutralise
from core.store.media.files import DESCRIPTION_LABEL, Files
from core.text.normalize import shorten, to_single_line
from core.types import MEMORY_TAG, Message, Scopes

# A picture is named by the beginning of its hash.
NAME_CHARS = 12
MAX_CHARS = 300
# A summary names at most this many pictures, the newest ones.
MAX_OLD_PICTURES = 40
_DESCRIPTION = re.compile(
    r"<memory-context picture=\"([0-9a-f]{12})\">(.{3,2000}?)</memory-context>", re.DOTALL
)


def request_description(content_hash: str) -> str:
    """Return the sentence that asks the model to describe a picture."""
    tag = f'{MEMORY_TAG[:-1]} picture="{content_hash[:NAME_CHARS]}">'
    return (
        f"If you can see it, end your next answer once with the line {tag}what it shows, in at "
        "most 25 words, with the text in it</memory-context>. It's removed before anybody reads "
        "your answer, and lets the person find the picture."
    )


def may_describe(text: str) -> bool:
    """Return whether an answer may contain descriptions. This check is fast."""
    return f"{MEMORY_TAG[:-1]} picture=" in text


def find_descriptions(text: str) -> Mapping[str, str]:
    """Return the descriptions in an answer.

    Their keys are the beginnings of the pictures' hashes.
    """
    descriptions: dict[str, str] = {}
    for match in _DESCRIPTION.finditer(text):
        line = to_single_line(match[2])
        if line and "<" not in line:
            descriptions.setdefault(match[1], shorten(line, MAX_CHARS))
    return descriptions


async def describe_old_pictures(
    rows: Sequence[Message], files: Files, scopes: Scopes
) -> Sequence[str]:
    """Return a line with the description of each picture in messages that leave the prompt.

    The line includes the number of the file, so that the model can still send the file.
    """
    lines: list[str] = []
    for row in rows:
        if row.role != "user" or "[attached " not in row.text:
            continue
        for file in await files.load_by_message_id(row.id, scopes):
            if file.content is None or not file.content.width:
                continue
            parts = await files.load_parts(file.content.hash)
            texts = [part.text for part in parts if part.label == DESCRIPTION_LABEL]
            name = neutralise(to_single_line(file.name))[:80]
            line = f"- Picture “{name}” (file {file.id})"
            lines.append(": ".join([line, *map(neutralise, texts)]))
    return lines[-MAX_OLD_PICTURES:]
