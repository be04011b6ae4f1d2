"""One thing that `mneme check` looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`state`: right, wrong, or off (not set up, which is nobody's fault). `advice`: what to do, where there is
    anything to do."""

    subject: str
    state: Literal["right", "wrong", "off"]
    text: str
    advice: str = ""
