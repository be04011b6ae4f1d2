"""Written down or held in memory only: both kinds of conversations fill the role that the agent knows."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from core.ports import Conversations
from core.privacy.incognito import IncognitoConversations
from core.store import sessions


def _methods(kind: type) -> dict[str, Any]:
    return {name: value for name, value in vars(kind).items() if inspect.isfunction(value) and not name.startswith("_")}


@pytest.mark.parametrize("kind", [sessions.Conversations, IncognitoConversations])
def test_a_class_has_the_methods_of_its_role_with_the_same_parameters(kind: type) -> None:
    role, filled = _methods(Conversations), _methods(kind)
    assert role
    for name, method in role.items():
        assert inspect.signature(filled[name]).parameters == inspect.signature(method).parameters
