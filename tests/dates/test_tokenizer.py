"""One tokenizer for requests and for recall: the same text gives the same kinds in both lexicons."""

# ruff: noqa: RUF001
from __future__ import annotations

import pytest

from core.dates.lexicon import Lexicon, build_lexicon, load_lexicon
from core.dates.period_lexicon import load_period_words
from core.dates.tokenizer import (
    MAX_END_CHARS,
    MAX_START_CHARS,
    MAX_WORD_CHARS,
    find_middle,
    plain_text,
    tokenize,
)
from core.dates.tokens import Kind, Token, Unit


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "the 5th"),
        ("en", "2026-12-01"),
        ("en", "2026-12"),
        ("de", "3.5.2027"),
        ("de", "18:30"),
        ("fr", "3/5"),
        ("es", "1.5"),
        ("tr", "1999 tane"),
        ("ru", "10 000"),
    ],
)
def test_digits_mean_the_same_in_a_request_and_in_a_sentence_about_the_past(
    language: str, text: str
) -> None:
    requested = _tokenize(text, load_lexicon(language))
    recalled = _tokenize(text, load_period_words().words)

    assert requested
    assert [token for token in recalled if token.is_digits or token.date] == [
        token for token in requested if token.is_digits or token.date
    ]


@pytest.mark.parametrize(
    ("language", "text", "kind"),
    [
        ("de", "übermorgen", Kind.RELATIVE),
        ("fr", "après-demain", Kind.RELATIVE),
        ("pt", "véspera de Natal", Kind.FEAST),
        ("zh", "大后天", Kind.RELATIVE),
        ("ja", "明後日", Kind.RELATIVE),
        ("ko", "모레", Kind.RELATIVE),
        ("tr", "yarın", Kind.RELATIVE),
    ],
)
def test_name_of_a_day_in_the_lexicon_of_a_language_means_the_same_in_recall(
    language: str, text: str, kind: Kind
) -> None:
    requested = _tokenize(text, load_lexicon(language))
    recalled = _tokenize(text, load_period_words().words)

    assert [token.kind for token in requested] == [kind]
    assert recalled == requested


def test_word_counts_only_as_a_whole_and_in_any_white_space() -> None:
    lexicon = Lexicon()
    lexicon.add("day after tomorrow", (Token(Kind.RELATIVE, 2, Unit.DAY),))
    lexicon.add("may", (Token(Kind.MONTH, 5),))
    lexicon.add("juni*", (Token(Kind.MONTH, 6),))

    assert _kinds("the day  after\ntomorrow", lexicon) == [Kind.OTHER, Kind.RELATIVE]
    assert _kinds("maybe dismay", lexicon) == [Kind.OTHER, Kind.OTHER]
    assert _kinds("May3", lexicon) == [Kind.MONTH, Kind.NUMBER]
    assert _kinds("junio junioritas", lexicon) == [Kind.MONTH, Kind.OTHER]


def test_tokens_point_to_their_place_in_a_text_with_other_white_space() -> None:
    text = plain_text("Ａｔ\n\n  noon")

    token = tokenize(text, load_lexicon("en"))[-1]

    assert text.original[text.locate(token.start) :] == "noon"


def _tokenize(text: str, lexicon: Lexicon) -> list[Token]:
    return tokenize(plain_text(text), lexicon)


def _kinds(text: str, lexicon: Lexicon) -> list[Kind]:
    return [token.kind for token in _tokenize(text, lexicon)]


def test_phrase_with_nested_alternatives_stands_for_each_choice_of_words() -> None:
    phrases = "(set|add (a|an)) (new|) Alarm*,\n  wake  (me|us)"
    lexicon = build_lexicon("xx", {"tokens": {"REQUEST": phrases}})
    beginnings = ["set", "add a", "add an"]
    stems = [f"{words}{new} alarm" for words in beginnings for new in (" new", "")]

    request = (Token(Kind.REQUEST),)
    assert lexicon.stems == dict.fromkeys(stems, request)
    wakes = {name: tokens for name, tokens in lexicon.phrases.items() if tokens == request}
    assert wakes == {"wake me": request, "wake us": request}


@pytest.mark.parametrize("text", ["word: 3 " * 250, "日曜日の3時" * 250, "naïve_*[](`>#+=.!" * 100])
def test_words_in_the_middle_of_a_long_request_are_one_token(text: str) -> None:
    source = plain_text(text)
    tokens = tokenize(source, load_lexicon("ja"), find_middle(source.plain))
    lengths = [token.end - token.start for token in tokens]
    middle = tokens[lengths.index(max(lengths))]
    assert middle.kind is Kind.OTHER
    assert MAX_START_CHARS - MAX_WORD_CHARS <= middle.start <= MAX_START_CHARS + MAX_WORD_CHARS
    assert len(source.plain) - middle.end >= MAX_END_CHARS
    assert len(tokens) <= MAX_START_CHARS + MAX_END_CHARS + 2 * MAX_WORD_CHARS
