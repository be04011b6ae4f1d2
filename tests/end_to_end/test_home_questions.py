"""Homes of earlier versions answer the same questions as they did with their own version."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.home_questions import NAMES, VARIANTS, ask_all, load_answers, unpack_home
from tests.fixtures.sweeps import keep_first

# The homes have the file state.db of earlier versions.
pytestmark = [pytest.mark.slow, pytest.mark.sqlite]


@pytest.mark.parametrize("name", keep_first(1, NAMES))
def test_home_of_an_earlier_version_gives_the_same_forty_answers(name: str, tmp_path: Path) -> None:
    home = unpack_home(name, VARIANTS[1], tmp_path)
    answers = ask_all(home)
    earlier_answers = load_answers(name)
    for question, answer in answers.items():
        # Later versions also find notes, and then don't explain why no message was found.
        if isinstance(answer, dict) and answer.pop("notes", None):
            earlier_answers[question].pop("note", None)
    assert len(answers) == 40
    assert answers == earlier_answers
