"""An event as it may be shown: what somebody calls himself is his own choice, and what he passes on is not his word."""

from __future__ import annotations

from dataclasses import replace

from core.text.sanitize import on_one_line
from core.types import Inbound

NAME_CHARS = 100


def presentable(inbound: Inbound) -> Inbound:
    """People choose their names themselves: on one line, without anything that a terminal would obey. And what somebody
    passes on is not his command, whatever it looks like."""
    name = on_one_line(inbound.sender.name)[:NAME_CHARS] or inbound.sender.id
    if inbound.is_forward:
        inbound = replace(inbound, command=None)
    return replace(inbound, sender=replace(inbound.sender, name=name))
