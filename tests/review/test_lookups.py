"""Which web addresses count as typed by the person or as returned by a look-up."""

from __future__ import annotations

import pytest

from core.review.gate import names_address

TYPED = "Read https://ferry.example/times, then www.bus.example/a?b=c (and http://tram.example/)."


@pytest.mark.parametrize(
    "url",
    [
        "https://ferry.example/times",
        "http://ferry.example/times",
        "https://ferry.example/times/",
        "https://www.bus.example/a?b=c",
        "http://tram.example/",
        "http://tram.example",
    ],
)
def test_typed_address_is_recognized_with_another_scheme_or_a_slash_at_the_end(url: str) -> None:
    assert names_address(TYPED, url)


@pytest.mark.parametrize(
    "url",
    [
        "https://ferry.example/",
        "https://ferry.example/time",
        "https://ferry.example/times?q=secret",
        "https://bus.example/a?b=c",
        "https://evil.example/https://ferry.example/times",
        "https://evil.example/ferry.example/times",
        "https://example/times",
        "https://ferry.example/times//",
        "https://ferry.example/times///////",
        "https://",
        "https:///",
    ],
)
def test_address_that_is_longer_shorter_or_different_is_not_recognized(url: str) -> None:
    assert not names_address(TYPED, url)
