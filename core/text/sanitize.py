"""Text of others as a terminal may show it: nothing moves a cursor, changes a title or the reading direction.

Stands alone so that `mneme --help` loads no language data.
"""

from __future__ import annotations

import re

_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""C0 and C1 controls but tab and new line, and the signs that turn the direction of what follows."""


def legible(text: str) -> str:
    """Text of several lines without what a terminal would obey; lines end with a new line alone."""
    return _OBEYED.sub("", text.replace("\r\n", "\n"))


def on_one_line(text: str) -> str:
    """A name or a title: `legible`, and any white space is one space."""
    return " ".join(legible(text).split())
