"""649 everyday requests in ten languages: how many ask, although the person typed the wish.

188 refusals such as "stop deleting my reminder" show that the opposite never counts as a wish, and
96 statements such as "my dentist doesn't take cards" that a mention doesn't.

All are asked in a conversation that holds foreign text, because without any the gate never asks.
The helper model of these tests is always right. It's only asked if a message isn't wholly the wish
and nothing speaks against one. Run with -s to print the requests that ask.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from core.review.naming import names_subject
from core.review.wish_judge import may_be_wished
from core.review.wishes import find_wishes
from core.types import Effect, Subject

DATA = Path(__file__).parent / "data"
MAX_SHARE = 0.02
# Some statements are like requests: "the swim was over by noon".
MAX_SHARE_IN_PASSING = 0.12
# Other things of the same kind, in each language.
RIVALS = (
    "take the bins out",
    "school run at 8",
    "Eve likes jazz",
    "Steuer machen",
    "llamar a Luis",
    "appeler Luc",
    "ligar ao Rui",
    "позвонить маме",
    "买牛奶",
    "牛乳を買う",
    "우유 사기",
    "süt al",
)


def _read(name: str) -> list[tuple[Effect, Subject, str]]:
    requests = []
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            effect, thing, text = (part.strip() for part in line.split("|"))
            number, _, words = thing.partition(" ")
            label = f"reminder {number}"
            kind = "memory" if number == "0" else "reminder"
            subject = Subject(
                label=label, text=words, number=number.strip("0"), kind=kind, others=RIVALS
            )
            requests.append((Effect(effect), subject, text))
    return requests


def _asks(effect: Effect, subject: Subject, text: str) -> bool:
    # What is planned anew names nothing that exists.
    wishes = find_wishes([text], effect)
    if effect is Effect.PLAN and not subject.number:
        return not wishes
    return not any(names_subject(wish, subject) for wish in wishes)


def _may_be_judged(effect: Effect, subject: Subject, text: str) -> bool:
    is_new = effect is Effect.PLAN and not subject.number
    return may_be_wished(effect, () if is_new else (subject,), [text])


@pytest.mark.slow
@pytest.mark.sweep
def test_at_most_two_percent_of_requests_need_approval_with_a_correct_helper_model() -> None:
    requests = [
        request
        for name in ("everyday.txt", "everyday_free.txt", "everyday_words.txt")
        for request in _read(name)
    ]
    unknown = [request for request in requests if _asks(*request)]
    asking = [text for effect, thing, text in unknown if not _may_be_judged(effect, thing, text)]
    print(f"\n{len(unknown)} of {len(requests)} ask by rules alone, {len(asking)} in all: {asking}")  # noqa: T201  The figure is asked for.
    assert len(requests) == 649
    assert len(asking) <= MAX_SHARE * len(requests), asking


def test_refusals_are_never_read_as_wishes_even_if_the_helper_model_always_says_yes() -> None:
    refusals = _read("refused.txt")
    found = [text for effect, thing, text in refusals if not _asks(effect, thing, text)]
    reaching = [text for effect, thing, text in refusals if _may_be_judged(effect, thing, text)]
    print(f"\nThe helper is asked about {len(reaching)} of {len(refusals)}: {reaching}")  # noqa: T201  The figure is asked for.
    assert len(refusals) == 188
    assert found == []
    assert len(reaching) <= MAX_SHARE * len(refusals), reaching


def test_statements_that_mention_an_item_in_passing_rarely_reach_the_helper_model() -> None:
    statements = _read("in_passing.txt")
    found = [text for effect, thing, text in statements if not _asks(effect, thing, text)]
    reaching = [text for effect, thing, text in statements if _may_be_judged(effect, thing, text)]
    print(f"\nThe helper is asked about {len(reaching)} of {len(statements)}: {reaching}")  # noqa: T201  The figure is asked for.
    assert len(statements) == 96
    assert found == []
    assert len(reaching) <= MAX_SHARE_IN_PASSING * len(statements), reaching
