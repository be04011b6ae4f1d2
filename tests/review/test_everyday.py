"""315 everyday requests in ten languages: how many ask, although the person typed the wish.

All are asked in a conversation that holds foreign text, because without any the gate never asks.
Run with -s to print the requests that ask.
"""

from __future__ import annotations

from pathlib import Path

from core.review.naming import names_subject
from core.review.wishes import find_wishes
from core.types import Effect, Subject

REQUESTS = Path(__file__).parent / "data" / "everyday.txt"
MAX_SHARE = 0.02
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


def _read() -> list[tuple[Effect, Subject, str]]:
    requests = []
    for line in REQUESTS.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            effect, thing, text = (part.strip() for part in line.split("|"))
            number, _, words = thing.partition(" ")
            label = f"reminder {number}"
            subject = Subject(
                label=label, text=words, number="" if number == "0" else number, others=RIVALS
            )
            requests.append((Effect(effect), subject, text))
    return requests


def _asks(effect: Effect, subject: Subject, text: str) -> bool:
    # What is planned anew names nothing that exists.
    wishes = find_wishes([text], effect)
    if effect is Effect.PLAN and not subject.number:
        return not wishes
    return not any(names_subject(wish, subject) for wish in wishes)


def test_at_most_two_percent_of_everyday_requests_ask() -> None:
    requests = _read()
    asking = [text for effect, subject, text in requests if _asks(effect, subject, text)]
    print(f"\n{len(asking)} of {len(requests)} ask: {asking}")  # noqa: T201  The figure is asked for.
    assert len(requests) == 315
    assert len(asking) <= MAX_SHARE * len(requests), asking
