"""One engine for filters and requests: both read the name of a day as the same day."""

# ruff: noqa: RUF001

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from core.dates.coming_day import read_coming_day
from core.dates.lexicon import lexicon_languages, load_lexicon, plain_phrase
from core.dates.period_lexicon import load_name_lexicon, load_period_words
from core.dates.period_name import read_period
from core.dates.requests.reader import read_request
from core.dates.tokens import Kind, Token
from core.search.query import extract_filters
from core.store.query import SearchQuery
from tests.fixtures.tables import each_row

MADRID = ZoneInfo("Europe/Madrid")
NOW = datetime(2026, 3, 4, 11, 30, tzinfo=MADRID)
"""A Wednesday."""


@each_row(
    ("language", "name", "day"),
    [
        ("en", "tomorrow", "2026-03-05"),
        ("en", "the day after tomorrow", "2026-03-06"),
        ("en", "next Friday", "2026-03-06"),
        ("en", "3 May 2027", "2027-05-03"),
        ("en", "May 3, 2027", "2027-05-03"),
        ("en", "the second Tuesday of May 2027", "2027-05-11"),
        ("en", "Easter 2027", "2027-03-28"),
        ("en", "Christmas Eve 2026", "2026-12-24"),
        ("en", "2027-05-03", "2027-05-03"),
        ("de", "morgen", "2026-03-05"),
        ("de", "übermorgen", "2026-03-06"),
        ("de", "nächsten Freitag", "2026-03-06"),
        ("de", "3. Mai 2027", "2027-05-03"),
        ("de", "am 3. Mai 2027", "2027-05-03"),
        ("de", "der zweite Dienstag im Mai 2027", "2027-05-11"),
        ("de", "Ostern 2027", "2027-03-28"),
        ("de", "Heiligabend 2026", "2026-12-24"),
        ("de", "3.5.2027", "2027-05-03"),
        ("fr", "demain", "2026-03-05"),
        ("fr", "après-demain", "2026-03-06"),
        ("fr", "vendredi prochain", "2026-03-06"),
        ("fr", "3 mai 2027", "2027-05-03"),
        ("fr", "le 3 mai 2027", "2027-05-03"),
        ("fr", "le deuxième mardi de mai 2027", "2027-05-11"),
        ("fr", "Pâques 2027", "2027-03-28"),
        ("fr", "la veille de Noël 2026", "2026-12-24"),
        ("fr", "3/5/2027", "2027-05-03"),
        ("es", "mañana", "2026-03-05"),
        ("es", "pasado mañana", "2026-03-06"),
        ("es", "el próximo viernes", "2026-03-06"),
        ("es", "3 de mayo de 2027", "2027-05-03"),
        ("es", "el 3 de mayo de 2027", "2027-05-03"),
        ("es", "el segundo martes de mayo de 2027", "2027-05-11"),
        ("es", "Pascua 2027", "2027-03-28"),
        ("es", "Nochebuena de 2026", "2026-12-24"),
        ("es", "3/5/2027", "2027-05-03"),
        ("pt", "amanhã", "2026-03-05"),
        ("pt", "depois de amanhã", "2026-03-06"),
        ("pt", "na próxima sexta", "2026-03-06"),
        ("pt", "3 de maio de 2027", "2027-05-03"),
        ("pt", "dia 3 de maio de 2027", "2027-05-03"),
        ("pt", "Páscoa de 2027", "2027-03-28"),
        ("pt", "véspera de Natal de 2026", "2026-12-24"),
        ("pt", "3/5/2027", "2027-05-03"),
        ("ru", "завтра", "2026-03-05"),
        ("ru", "послезавтра", "2026-03-06"),
        ("ru", "в следующую пятницу", "2026-03-06"),
        ("ru", "3 мая 2027", "2027-05-03"),
        ("ru", "3 мая 2027 года", "2027-05-03"),
        ("ru", "во второй вторник мая 2027", "2027-05-11"),
        ("ru", "Пасха 2027", "2027-05-02"),
        ("ru", "03.05.2027", "2027-05-03"),
        ("zh", "明天", "2026-03-05"),
        ("zh", "后天", "2026-03-06"),
        ("zh", "下周五", "2026-03-13"),
        ("zh", "2027年5月3日", "2027-05-03"),
        ("zh", "2027年5月3号", "2027-05-03"),
        ("zh", "2027年5月第二个星期二", "2027-05-11"),
        ("zh", "2027年春节", "2027-02-06"),
        ("zh", "2026年平安夜", "2026-12-24"),
        ("zh", "2027-05-03", "2027-05-03"),
        ("ja", "明日", "2026-03-05"),
        ("ja", "明後日", "2026-03-06"),
        ("ja", "来週の金曜日", "2026-03-13"),
        ("ja", "2027年5月3日", "2027-05-03"),
        ("ja", "2027/5/3", "2027-05-03"),
        ("ja", "2027年5月の第2火曜日", "2027-05-11"),
        ("ja", "2027年イースター", "2027-03-28"),
        ("ja", "2026年クリスマスイブ", "2026-12-24"),
        ("ja", "2027-05-03", "2027-05-03"),
        ("ko", "내일", "2026-03-05"),
        ("ko", "모레", "2026-03-06"),
        ("ko", "다음 주 금요일", "2026-03-13"),
        ("ko", "2027년 5월 3일", "2027-05-03"),
        ("ko", "2027.5.3", "2027-05-03"),
        ("ko", "2027년 5월 둘째 화요일", "2027-05-11"),
        ("ko", "2027년 설날", "2027-02-07"),
        ("ko", "2026년 크리스마스이브", "2026-12-24"),
        ("ko", "2027-05-03", "2027-05-03"),
        ("tr", "yarın", "2026-03-05"),
        ("tr", "öbür gün", "2026-03-06"),
        ("tr", "gelecek cuma", "2026-03-06"),
        ("tr", "3 Mayıs 2027", "2027-05-03"),
        ("tr", "3 Mayıs 2027'de", "2027-05-03"),
        ("tr", "2027 Paskalya", "2027-03-28"),
        ("tr", "2026 yılbaşı gecesi", "2026-12-31"),
        ("tr", "03.05.2027", "2027-05-03"),
    ],
)
def test_name_of_a_day_means_the_same_day_in_a_filter_and_in_a_request(
    language: str, name: str, day: str
) -> None:
    period = read_period(name, NOW, MADRID)
    reading = read_request(name, NOW, MADRID, (language,), is_request=True, default_hour=20)

    assert period is not None
    assert reading.moment is not None
    first, end = (moment.astimezone(MADRID) for moment in period)
    assert first.date() == date.fromisoformat(day)
    assert end.date() == first.date() + timedelta(days=1)
    assert reading.moment.astimezone(MADRID).date() == first.date()


DAY_NAMES = {Kind.WEEKDAY, Kind.MONTH, Kind.RELATIVE, Kind.FEAST}
MONTH_LIKE = {Kind.NAMELIKE_MONTH, Kind.VERBLIKE_MONTH, Kind.SHORT_MONTH, Kind.RARE_MONTH}
# In sentences of about thirty languages, these are other words, such as the English "ago".
OTHER_WORDS_IN_RECALL = {"ago", "the other day", "mardi gras", "금주"}


def test_names_of_days_in_all_lexicons_mean_the_same_in_recall() -> None:
    lexicons = [load_name_lexicon(is_short_first=is_first) for is_first in (True, False)]
    lexicons.append(load_period_words().words)
    different = set()
    count = 0
    for language in lexicon_languages():
        for phrase, tokens in load_lexicon(language).phrases.items():
            recalled = [
                lexicon.phrases[phrase] for lexicon in lexicons if phrase in lexicon.phrases
            ]
            if len(tokens) != 1 or tokens[0].kind not in DAY_NAMES or not recalled:
                continue
            count += 1
            if not any(_means_same(tokens[0], others) for others in recalled):
                different.add(phrase)
    assert count > 1_000
    assert different == {plain_phrase(word) for word in OTHER_WORDS_IN_RECALL}


def _means_same(token: Token, others: Sequence[Token]) -> bool:
    """Return whether the tokens of recall are the token of a request, perhaps after "in"."""
    last = others[-1]
    kind = Kind.MONTH if last.kind in MONTH_LIKE else last.kind
    return (kind, last.number, last.unit) == (token.kind, token.number, token.unit)


@each_row(
    ("name", "day"),
    [
        ("in 3 days", "2026-03-07"),
        ("Friday week", "2026-03-13"),
        ("in 3 Tagen", "2026-03-07"),
        ("Montag in einer Woche", "2026-03-16"),
        ("dans 3 jours", "2026-03-07"),
        ("lundi en huit", "2026-03-16"),
        ("en 3 días", "2026-03-07"),
        ("daqui a 3 dias", "2026-03-07"),
        ("через 3 дня", "2026-03-07"),
        ("3天后", "2026-03-07"),
        ("3日後", "2026-03-07"),
        ("3일 후", "2026-03-07"),
        ("3 gün sonra", "2026-03-07"),
    ],
)
def test_filter_reads_a_coming_day_as_a_request_does(name: str, day: str) -> None:
    query = SearchQuery(text=f'budget on:"{name}"', scopes=frozenset())
    filters = extract_filters(query, NOW, MADRID).query.filters
    midnight = datetime.fromisoformat(f"{day}T00:00").replace(tzinfo=MADRID)
    assert filters.after == midnight
    assert filters.before == midnight + timedelta(days=1)


@each_row("text", ["8 pm", "in 3 hours", "project 3", "kitchen", "call Ana in 3 days"])
def test_text_that_names_no_coming_day_is_no_filter(text: str) -> None:
    assert read_coming_day(text, NOW, MADRID) is None
