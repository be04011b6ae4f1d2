"""Makes up tales, as hypothesis strategies: a history and what somebody asks of it, in few words of many scripts, so
that much is found.

No two words of the vocabulary are so alike that one could be taken for the other misspelt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from hypothesis import strategies as st

from core.search import Query
from core.types import Account, Role, Scope, Sender, Window
from tests.doubles.saga import STATES, Change, Deed, Line, Opening, Saga, Speech, Stage, State
from tests.doubles.scanner import ENDLESS
from tests.doubles.wording import Term

ANA, BEN, ROOM = Scope.account("telegram", "1"), Scope.account("discord", "2"), Scope.room("discord", "9")
PLATFORMS = ("telegram", "discord", "terminal")
TITLES = (None, "Ferry plans", "\uff34ravel Café", "服务端")
SENDERS = (
    Sender(id="1", name="Ana Maria"),
    Sender(id="2", name="Börje"),
    Sender(id="3", name="Mariana"),
    Sender(id="4", name="小明"),
)
WORDS = ("ferry", "ferries", "Garden", "gardens", "went", "go", "kettle", "décidé", "decided", "привет", "foo_bar",
    "a-b", "\uff32edis", "x1", "the")  # fmt: skip
RUNS = ("数据库", "数据", "缓存", "库", "服务端", "北京的服务", "數據庫", "緩存", "服務", "テスト", "ﾃｽﾄ", "회의",
    "ทำงาน")  # fmt: skip
SYMBOLS = ("👍", "👍🏽", "🛶", "⏰", "🥰")
ROLES: tuple[Role, ...] = ("user", "user", "user", "assistant", "assistant", "tool")
SPOKEN = (*WORDS, *RUNS, *SYMBOLS)
ASKED = ("Ana", "Wednesday", "May")
"""Of names and days, which are found where nobody said them."""
MIDNIGHTS = tuple(datetime(2026, month, day, tzinfo=UTC) for month, day in ((4, 30), (5, 1), (5, 2), (5, 3)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What somebody asks. `alternatives` are what `words` says in operators, none for a question. Sessions and messages
    are named by their place in the history. `is_spelled`: the filters are typed."""

    words: str = ""
    alternatives: tuple[tuple[Term, ...], ...] = ()
    scopes: frozenset[Scope] = frozenset({ANA})
    roles: tuple[Role, ...] = ("user", "assistant")
    platforms: tuple[str, ...] = ()
    title: str | None = None
    sender: str | None = None
    is_own: bool = False
    after: datetime | None = None
    before: datetime | None = None
    session: int | None = None
    around: int | None = None
    window: int = 5
    hidden: tuple[tuple[int, int], ...] = ()
    is_spelled: bool = False

    def query(self, stage: Stage) -> Query:
        """The query with all filters as fields."""
        return Query(
            scopes=self.scopes,
            text=self.words,
            roles=self.roles,
            platforms=self.platforms,
            title=self.title,
            sender=self.sender,
            asker=Account(platform="discord", user_id="1"),
            is_own=self.is_own,
            after=self.after,
            before=self.before,
            session=self._session(stage),
            around=None if self.around is None else stage.message(self.around),
            window=self.window,
            hidden=self._window(stage),
        )

    def typed(self, stage: Stage) -> Query:
        """The same as it is asked."""
        query = self.query(stage)
        if not self.is_spelled:
            return query
        parts = [self.words]
        parts += [f"platform:{','.join(self.platforms)}"] if self.platforms else []
        parts += [f'title:"{self.title}"'] if self.title else []
        parts += [f'from:"{self.sender}"'] if self.sender else []
        parts += ["from:me"] if self.is_own else []
        parts += [f"role:{','.join(self.roles)}"] if not self.is_own and self.roles != ("user", "assistant") else []
        parts += [f"after:{self.after:%Y-%m-%d}"] if self.after else []
        parts += [f"before:{self.before:%Y-%m-%d}"] if self.before else []
        parts += [f"in:{query.session}"] if query.session is not None and self.around is None else []
        return Query(
            scopes=query.scopes,
            text=" ".join(parts),
            asker=query.asker,
            session=query.session if self.around is not None else None,
            around=query.around,
            window=query.window,
            hidden=query.hidden,
        )

    def _session(self, stage: Stage) -> int | None:
        return None if self.session is None else stage.session(self.session)

    def _window(self, stage: Stage) -> Window | None:
        """A span of each of these sessions, from one message on, to its end or to another."""
        spans: dict[int, tuple[int, int, int]] = {}
        for first, last in self.hidden:
            if stage.messages:
                start = stage.message(first)
                end = stage.message(last)
                session_id = stage.scanner.told[start].session_id
                spans[session_id] = (session_id, start, end if end >= start else ENDLESS)
        return Window(spans=tuple(spans.values())) if spans else None


CROWD: tuple[Deed, ...] = tuple(
    Opening(BEN, "discord", None, None, (Line("the ferry 数据库 缓存 👍 kettle"),)) for _ in range(7)
)
"""Others, so that what Ana has is little."""


class Tale(NamedTuple):
    """A history and what is asked of it."""

    saga: Saga
    wishes: list[Wish]


Wishing = Callable[[Sequence[str]], st.SearchStrategy[Wish]]
"""Makes wishes of the words that a tale is told in."""


@st.composite
def tales(draw: st.DrawFn, wishing: Wishing, states: tuple[State, ...] = STATES, most: int = 6) -> Tale:
    """Tales of few words whose indexes are in one of these states."""
    words = draw(st.lists(st.sampled_from(SPOKEN), min_size=3, max_size=7, unique=True))
    deeds = [draw(_openings(words)), *draw(st.lists(_deeds(words), min_size=1, max_size=9))]
    crowd = CROWD if draw(st.sampled_from((False, False, True))) else ()
    saga = Saga((*crowd, *deeds), draw(st.sampled_from(states)), len(crowd) + draw(st.integers(1, len(deeds))))
    return Tale(saga, draw(st.lists(wishing(words), min_size=min(3, most), max_size=most)))


def typed_wishes(words: Sequence[str]) -> st.SearchStrategy[Wish]:
    """Words and operators, with filters."""
    return _typed_wishes(words)


def questions(words: Sequence[str]) -> st.SearchStrategy[Wish]:
    """Plain questions, with filters."""
    return _questions(words)


def words_of_any_kind(words: Sequence[str]) -> st.SearchStrategy[Wish]:
    """One or the other."""
    return _typed_wishes(words) | _questions(words)


def wordless(words: Sequence[str]) -> st.SearchStrategy[Wish]:
    """No words: filters only, a session to read, a message to look around, or nothing at all."""
    return _wordless()


def _deeds(words: Sequence[str]) -> st.SearchStrategy[Deed]:
    speeches = st.builds(Speech, session=st.integers(0, 9), lines=_speeches(words))
    changes = st.builds(Change, message=st.integers(0, 99), text=st.none() | _texts(words))
    return _openings(words) | _openings(words) | speeches | changes


def _openings(words: Sequence[str]) -> st.SearchStrategy[Opening]:
    return st.builds(
        Opening,
        scope=st.sampled_from((ANA, ANA, ANA, BEN, ROOM)),
        platform=st.sampled_from(PLATFORMS),
        title=st.sampled_from(TITLES),
        parent=st.none() | st.integers(0, 3),
        lines=_speeches(words),
    )


@st.composite
def _speeches(draw: st.DrawFn, words: Sequence[str]) -> tuple[Line, ...]:
    """A few lines that matter, sometimes behind or before enough of those that do not to fill a chunk."""
    lines = draw(st.lists(_lines(words), min_size=draw(st.sampled_from((2, 2, 2, 0))), max_size=8))
    idle = [Line("pebble", role) for role in ("user", "assistant") * 9][: draw(st.sampled_from((0, 0, 0, 0, 2, 7, 17)))]
    return tuple(lines + idle if draw(st.booleans()) else idle + lines)


@st.composite
def _lines(draw: st.DrawFn, words: Sequence[str]) -> Line:
    role: Role = draw(st.sampled_from(ROLES))
    return Line(
        text=draw(_texts(words)),
        role=role,
        kind=draw(st.sampled_from(("chat",) * 9 + ("quote", "command", "notice"))),
        tools=draw(st.none() | st.none() | _texts(words)) if role == "assistant" else None,
        sender=draw(st.none() | st.sampled_from(SENDERS)) if role == "user" else None,
        late_h=draw(st.sampled_from((0, 0, 0, 0, 30))),
    )


@st.composite
def _texts(draw: st.DrawFn, words: Sequence[str]) -> str:
    text = last = ""
    for word in draw(st.lists(st.sampled_from(words), min_size=draw(st.sampled_from((1, 1, 1, 0))), max_size=6)):
        between = draw(st.sampled_from((" ", " ", ", ", "-", "\n", "", "\u2068", "₽")))
        if between == "" and word in WORDS and last in WORDS:
            between = " "
        text += between + word if text else word
        last = word
    return text


@st.composite
def _typed_wishes(draw: st.DrawFn, words: Sequence[str]) -> Wish:
    alternatives = []
    for _ in range(draw(st.sampled_from((1, 1, 1, 2, 3)))):
        wanted = [draw(_terms(words, False)) for _ in range(draw(st.sampled_from((1, 1, 1, 2, 2, 3))))]
        unwanted = [draw(_terms(words, True)) for _ in range(draw(st.sampled_from((0, 0, 1))))]
        alternatives.append(tuple(draw(st.permutations([*wanted, *unwanted]))))
    typed = " OR ".join(" AND ".join(term.typed() for term in terms) for terms in alternatives)
    return Wish(words=typed, alternatives=tuple(alternatives), **draw(_filters()), **draw(_sights()))


@st.composite
def _terms(draw: st.DrawFn, words: Sequence[str], is_excluded: bool) -> Term:
    is_quoted = draw(st.sampled_from((False, False, True)))
    if is_quoted:
        text = " ".join(draw(st.lists(st.sampled_from(words), min_size=1, max_size=2)))
    else:
        text = draw(st.sampled_from((*words, *words, "修改redis服务端", "数据x1", "ferry👍", "go-gone")))
    is_prefix = draw(st.sampled_from((False, False, True)))
    if is_prefix and text[-1].isascii():
        text = text[: max(1, len(text) - draw(st.integers(0, 2)))].rstrip(" -_") or text
    return Term(text, is_quoted, is_prefix, is_excluded)


@st.composite
def _questions(draw: st.DrawFn, words: Sequence[str]) -> Wish:
    asked = " or ".join(draw(st.lists(st.sampled_from((*words, *ASKED)), min_size=1, max_size=4)))
    return Wish(words=f"What about the {asked}?", **draw(_filters()), **draw(_sights()))


@st.composite
def _wordless(draw: st.DrawFn) -> Wish:
    around = draw(st.none() | st.integers(0, 99))
    window = draw(st.sampled_from((5, 0, 1, 2, -3, 10**9)))
    return Wish(around=around, window=window, **draw(_filters()), **draw(_sights()))


@st.composite
def _filters(draw: st.DrawFn) -> dict[str, Any]:
    """Two filters at most, often none."""
    names = st.sampled_from(("roles", "platforms", "title", "sender", "own", "time", "session"))
    chosen = [draw(names) for _ in range(draw(st.sampled_from((0, 0, 0, 0, 1, 1, 2))))]
    found: dict[str, Any] = {"is_spelled": draw(st.booleans())}
    if "roles" in chosen:
        found["roles"] = draw(st.sampled_from((("user",), ("assistant",), ("tool",), ("user", "assistant", "tool"))))
    if "platforms" in chosen:
        found["platforms"] = tuple(draw(st.lists(st.sampled_from(PLATFORMS), min_size=1, max_size=2, unique=True)))
    if "title" in chosen:
        found["title"] = draw(st.sampled_from(("ferry", "TRAVEL CAFE", "端", "r", "nothing")))
    if "sender" in chosen:
        found["sender"] = draw(st.sampled_from(("ana", "Maria", "BORJE", "3", "明", "Ana Maria")))
    elif "own" in chosen:
        found |= {"is_own": True, "roles": ("user",)}
    if "time" in chosen:
        found["after"] = draw(st.none() | st.sampled_from(MIDNIGHTS))
        found["before"] = draw(st.none() | st.sampled_from(MIDNIGHTS))
    if "session" in chosen:
        found["session"] = draw(st.integers(0, 9))
    return found


@st.composite
def _sights(draw: st.DrawFn) -> dict[str, Any]:
    """Who looks, and what stands in the model's window."""
    spans = st.tuples(st.integers(0, 99), st.integers(0, 99))
    all_of_them = (ANA, BEN, ROOM)
    seen = st.sampled_from(((ANA,), (ANA,), (ANA, ROOM), all_of_them, all_of_them, all_of_them, (ROOM,), (BEN,), ()))
    return {
        "scopes": frozenset(draw(seen)),
        "hidden": tuple(draw(spans) for _ in range(draw(st.sampled_from((0, 0, 0, 0, 1, 2))))),
    }
