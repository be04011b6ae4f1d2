"""The words for the times of reminders in the languages of the interface.

`core.scheduling.recurrence_words` puts them together. English has its words there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from babel.dates import format_date, format_skeleton

from core.scheduling.recurrence_words import ENGLISH_WORDS, ScheduleWords, load_english_words
from gateway.texts.catalog import ENGLISH_CODE, load_catalog, load_texts

if TYPE_CHECKING:
    from gateway.texts.catalog import Texts


@lru_cache(maxsize=64)
def load_words(language: str) -> ScheduleWords:
    """Return the words of a language."""
    return ENGLISH_WORDS if language == ENGLISH_CODE else BabelWords(load_texts(language))


class BabelWords:
    """The words of a language other than English. Babel formats its dates, plurals and lists."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._templates = {
            **load_english_words(),
            **load_catalog(texts.language).get("schedules", {}),
        }

    @property
    def templates(self) -> Mapping[str, Any]:
        return self._templates

    def choose_plural(self, forms: Mapping[str, str], number: int) -> str:
        return self._texts.choose_plural(forms, number)

    def join_list(self, parts: Sequence[str]) -> str:
        return self._texts.join_list(parts)

    def join_alternatives(self, parts: Sequence[str]) -> str:
        return self._texts.join_alternatives(parts)

    def format_date(self, day: date) -> str:
        return format_date(day, "long", locale=self._texts.locale)

    def format_month_day(self, month: int, day: int) -> str:
        # A leap year has every day.
        return format_skeleton("MMMMd", datetime(2028, month, day), locale=self._texts.locale)  # noqa: DTZ001

    def format_full_date(self, day: date) -> str:
        return format_date(day, "full", locale=self._texts.locale)

    def format_moment(self, local: datetime, *, has_seconds: bool = False) -> str:
        clock = f"{local:%H:%M}"
        if has_seconds and local.second:
            clock = f"{local:%H:%M:%S}"
        text: str = self._templates["moment"].format(
            day=self.format_full_date(local.date()), clock=clock
        )
        return text
