"""What a sentence states, before it is a fact, and how it becomes one; what a person asks to be remembered.

Read by rules, careful ones, because what is missed can be said again and what is wrong is believed: only plain
statements of the present count, no question, no condition, no wish, no denial, nothing that somebody else has said,
nothing in quotation marks or code. The patterns are in `data/patterns.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import Literal
from zoneinfo import ZoneInfo

from core.dates import periods
from core.dates.grammar import MONTHS, WEEKDAYS, Phrase
from core.dates.mentions import month_of
from core.errors import Refused
from core.review.pending import ANYWAY, insisting, typed
from core.store.facts import CALLED, Fact, FactKind, FactOrigin, Facts, Grain
from core.store.notes import Author, Operation, PendingNote
from core.text.normalize import is_unspaced, language_data
from core.text.terms import ME, attribute_of, entity_key, is_several, kin_words, names_in
from core.types import Account, ErasureEpoch, Message, Scope, Sender

LIMIT_CHARS = 2_000  # a longer message is most likely pasted
CLAUSE_CHARS = 240
THING_WORDS = 8
NAME_CHARS_UNSPACED = 8
LANGUAGES = ("english", "german", "french", "spanish", "portuguese", "russian", "chinese", "japanese")
Shape = Literal["place", "name", "title", "thing", "date", "number", "free"]

_PART = re.compile(r"\{([a-z_]+)\}")
_EASTERN_DAY = re.compile(r"(?:(?P<year>(?:19|20)\d\d)年)?(?P<month>1[0-2]|0?[1-9])月(?P<day>\d{1,2})[日号號]?")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_SENTENCE = re.compile(
    r"(?<=[。！？；])\s*|(?<=[.!?;])(?<!\b\d\.)(?<!\b\d\d\.)(?<!\b(?:Dr|Mr|St)\.)(?<!\b(?:Mrs)\.)(?<!\bProf\.)"
    r"(?<!\be\.g\.)(?<!\bi\.e\.)\s+|\n+"
)
_data = partial(language_data, "patterns", "core.facts")
_QUOTED = re.compile(r"[\"“”„«»‟]|(?:^|\s)['\u2018]\w[^'’]*['’](?:\s|[.,!?]|$)")


@cache
def sign(name: str) -> re.Pattern[str]:
    """A pattern of `data/patterns.toml`."""
    return _compiled("".join(_data()["signs"][name]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """`content`: the sentence. `attribute` begins with ``me|`` where it is about who speaks. The rest as in
    `core.store.facts.Fact`."""

    content: str
    kind: FactKind
    attribute: str | None = None
    value: str = ""
    entities: tuple[str, ...] = ()
    valid_from: datetime | None = None
    grain: Grain = "day"
    is_asked: bool = False

    def laid_over(self, fact: Fact) -> Fact:
        """The fact with attribute, value and, where given, time of this claim; as it is where it says none."""
        if self.attribute is None:
            return fact
        since = (self.valid_from, self.grain) if self.valid_from else (fact.valid_from, fact.grain)
        attribute = placed(self.attribute, fact.scope, fact.account)
        return replace(fact, attribute=attribute, value=self.value, valid_from=since[0], grain=since[1])


SingleAttribute = Literal[
    "home", "work", "profession", "birthday", "name", "age", "phone", "email", "partner", "diet", "deadline"
]
"""What has one value only, for the model."""
TRUST: dict[FactOrigin, float] = {"person": 0.95, "rule": 0.7, "model": 0.6}
ASKED = 0.9  # trust in what a person asks to be remembered
FACT_CHARS = 400


def placed(attribute: str | None, scope: Scope, account: Account | None) -> str | None:
    """As it is kept: in a room "me" and "my" are an account's."""
    if attribute and scope.is_room and account and sign("whose").match(attribute):
        return f"{account.key}|{attribute.removeprefix('me|')}"
    return attribute


def fact_of(claim: Claim, origin: FactOrigin, scope: Scope, platform: str, source: Message) -> Fact:
    account = None if source.sender is None else Account(platform=platform, user_id=source.sender.id)
    return Fact(
        scope=scope,
        content=claim.content[:FACT_CHARS],
        kind=claim.kind,
        origin=origin,
        created_at=source.created_at,
        trust=ASKED if claim.is_asked else TRUST[origin],
        attribute=placed(claim.attribute, scope, account),
        value=claim.value,
        entities=claim.entities,
        valid_from=claim.valid_from,
        grain=claim.grain,
        message_id=source.id or None,
        account=account,
        speaker=source.sender.name if source.sender else "",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pattern:
    """See the head of `data/patterns.toml`."""

    text: str
    what: str
    shape: Shape
    kind: FactKind = "identity"
    stance: str = ""
    may_deny: bool = False
    is_kin: bool = False


def _abroad(table: str) -> Mapping[str, Mapping[str, str]]:
    """By language, the words for an English one."""
    words: Mapping[str, Mapping[str, str]] = (
        language_data("attributes")["kin_abroad"] if table == "kin" else _data()[table]
    )
    return words


@cache
def _parts() -> Mapping[str, str]:
    parts = {name: "".join(text) for name, text in _data()["parts"].items()}
    parts["kin"] = "|".join(sorted(kin_words(), key=len, reverse=True))
    for table in ("kin", "things"):
        for language, known in _abroad(table).items():
            words = [word for text in known.values() for word in text.split()]
            given = "|".join(sorted(words, key=len, reverse=True))
            parts[f"{table}_{language}"] = given if table == "kin" else f"(?P<what>{given})"
    return parts


@cache
def _patterns() -> tuple[_Pattern, ...]:
    data = _data()
    return tuple(
        _Pattern(text=text, **data["meanings"][meaning])
        for language in LANGUAGES
        for meaning, texts in data[language].items()
        for text in texts
    )


@cache
def _compiled(text: str) -> re.Pattern[str]:
    """With the parts that it names in braces."""
    while _PART.search(text):
        text = _PART.sub(lambda part: _parts()[part[1]], text)
    return re.compile(text, re.IGNORECASE | re.DOTALL)


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(_data()["words"][name].split())


@cache
def _english_of(table: Literal["kin", "things"]) -> Mapping[str, str]:
    return {
        word: english for known in _abroad(table).values() for english, words in known.items() for word in words.split()
    }


def claims(text: str, now: datetime, zone: ZoneInfo, *, is_dictated: bool = False) -> list[Claim]:
    """In the order of the message, said at `now`: "in May" is the last May that had begun. `is_dictated`: all of it was
    asked to be remembered."""
    found: dict[tuple[str, str | None], Claim] = {}
    for clause, is_asked in _clauses(text, is_dictated):
        stated = list(_read(clause, now, zone))
        if not stated and is_asked:
            stated = [Claim(content=_sentence(clause), kind="identity", entities=names_in(clause))]
        for claim in stated:
            found.setdefault((claim.content, claim.attribute), replace(claim, is_asked=is_asked))
    return list(found.values())


def is_alias(claim: Claim) -> bool:
    """Whether it says what somebody or something is called too."""
    what = (claim.attribute or "").split("|")
    return what[0] == ME and len(what) > 1 and (what[1] == CALLED or what[1] in kin_words())


def value_of(attribute: str | None, value: str) -> str:
    """As it is compared: "May 3" does not contradict "3 May"."""
    return (_birthday(value) if attribute == "birthday" else None) or entity_key(value)


def _clauses(text: str, is_dictated: bool) -> Iterator[tuple[str, bool]]:
    """The plain statements, without full stops, and whether they are asked to be remembered."""
    for said, is_asked in _sentences(text, is_dictated):
        for part in _split(said):
            if sign("posed").match(part.strip()):
                break
            clause = sign("aside").sub("", sign("lead").sub("", part.strip()).strip(" ,"))
            if 2 < len(clause) <= CLAUSE_CHARS:
                yield clause, is_asked


def _sentences(text: str, is_dictated: bool) -> Iterator[tuple[str, bool]]:
    if len(text) > LIMIT_CHARS or (not is_dictated and sign("feigned").search(text)):
        return
    for sentence in _SENTENCE.split(_CODE.sub(" \n ", text)):
        said = " ".join(sentence.split())
        if not is_dictated and (sign("handed_over").match(said) or sign("opened").match(said)):
            return
        if not _is_stated(said):
            continue
        said = said.rstrip(" .!;。！…")
        asked = sign("remember").fullmatch(said)
        if asked is not None:
            yield (asked["what"] or asked["abroad"] or asked["unspaced"]).strip(), True
        elif is_dictated or not (_QUOTED.search(said) or sign("unsure").search(said)):
            yield said, is_dictated


def _is_stated(said: str) -> bool:
    """No question, quotation, line of a list or table, nor a whole story."""
    if not said or said.startswith((">", "[", "|", "#", "¿", "- ", "* ", "• ")) or len(said) > 2 * CLAUSE_CHARS:
        return False
    return not said.endswith(("?", "？", "吗", "か")) and not sign("asked_back").search(said.rstrip(" .!;。！…"))


def _split(said: str, name: str | None = None) -> Iterator[str]:
    """The statements of a sentence: "my sister Ana lives in Porto and her birthday is on 3 May" ends as "Ana's birthday
    is on 3 May"; where nobody was named the second is left out."""
    second = sign("same_subject").search(said)
    first = said if second is None else said[: second.start()]
    yield from sign("next_clause").split(first)
    if (named := sign("apposition").search(first)) is not None:
        name = named["value"]
    if second is not None and name is not None:
        owner = "'s" if second["who"].lower() in ("his", "her", "their") else ""
        yield from _split(f"{name}{owner} {said[second.end() :].strip()}", name)


def _read(clause: str, now: datetime, zone: ZoneInfo) -> Iterator[Claim]:
    is_denied = sign("denied").search(clause) is not None
    if sign("unsure").search(clause) or _QUOTED.search(clause):
        return
    if not is_denied and (apposed := sign("apposition").search(clause)):
        what = apposed["what"].lower()
        yield _kin_claim(f"My {what} is {apposed['value']}", what, apposed["value"])
    for pattern in _patterns():
        if is_denied and not pattern.may_deny:
            continue
        match = _compiled(pattern.text).fullmatch(clause)
        if match is not None and (claim := _claim(pattern, match, clause, now, zone)):
            yield claim
            return


def _claim(pattern: _Pattern, match: re.Match[str], clause: str, now: datetime, zone: ZoneInfo) -> Claim | None:
    groups = match.groupdict("")
    value = sign("tail").sub("", groups.get("value", "").strip(" ,"))
    since, grain = since_of(groups.get("when"), now, zone)
    key = _value(pattern, value, clause)
    who = groups.get("who", "").lower()
    if key is None or (since is not None and since > now) or who in (*_words("nobody"), *WEEKDAYS, *MONTHS):
        return None
    what = pattern.what.format(what=_english(groups.get("what", "").lower(), "kin" if pattern.is_kin else "things"))
    if pattern.is_kin:
        return _kin_claim(_sentence(clause), what, value)
    attribute = attribute_of(_subject(groups.get("who", "")), what, key if pattern.stance else "") if what else None
    names = [*names_in(clause), *([value] if pattern.shape in ("place", "name", "title") else [])]
    return Claim(
        content=_sentence(clause),
        kind=pattern.kind,
        attribute=attribute,
        value=pattern.stance or (key if attribute else ""),
        entities=tuple({entity_key(name): name for name in names}.values()),
        valid_from=since,
        grain=grain,
    )


def _kin_claim(content: str, what: str, value: str) -> Claim:
    key = entity_key(value)
    attribute = attribute_of(ME, what, key if is_several(what) else "")
    return Claim(content=content, kind="identity", attribute=attribute, value=key, entities=(value,))


def _subject(who: str) -> str:
    """``me``, the key of a name, or ``my sister``."""
    words = who.split()
    if not words or who in ("my", "My"):
        return ME
    if words[0].lower() not in ("my", "our"):
        return entity_key(who)
    named = [word for word in words[1:] if word[:1].isupper()]
    return entity_key(" ".join(named or ("my", *words[1:])))


def _value(pattern: _Pattern, value: str, clause: str) -> str | None:
    """The folded value; None where it does not have the pattern's shape."""
    if not value:
        return None
    if pattern.shape == "date":
        return _birthday(value)
    if is_unspaced(value):
        is_fit = _is_fit_unspaced(pattern.shape, value)
    else:
        is_lower = clause == clause.lower()
        match pattern.shape:
            case "place":
                is_fit = _is_place(value, is_lower=is_lower)
            case "name" | "title":
                is_fit = _is_name(value, is_lower=pattern.shape == "name" and is_lower)
            case "thing":
                is_fit = not sign("no_thing").match(value) and len(value.split()) <= THING_WORDS and "," not in value
            case _:
                is_fit = pattern.shape == "free" or re.search(r"\d", value) is not None
    return entity_key(value) if is_fit else None


def _is_place(value: str, *, is_lower: bool) -> bool:
    words = value.split()
    is_named = value[:1].isupper() or (value[:4] == "the " and value[4:5].isupper())
    is_one = is_lower or all(word[:1].isupper() or word.lower() in _words("particles") for word in words[1:])
    is_long = len(words) > (5 if is_named else 2) or re.search(r"\d", value)
    return is_one and (is_named or is_lower) and not is_long and not sign("no_place").match(value)


def _is_name(value: str, *, is_lower: bool) -> bool:
    words = value.split()
    if words[0].lower() in _words("no_name") or len(words) > 4 or sign("no_thing").match(value):
        return False
    return (words[0][:1].isupper() and words[-1][:1].isupper()) or (is_lower and len(words) == 1)


def _is_fit_unspaced(shape: Shape, value: str) -> bool:
    if shape == "free":
        return True
    if shape in ("name", "title"):
        return len(value) <= NAME_CHARS_UNSPACED and not sign("no_unspaced_name").search(value)
    if shape == "place" and sign("no_unspaced_place").search(value):
        return False
    return not sign("no_unspaced").search(value)


def _birthday(value: str) -> str | None:
    """A day of the year as ``3.5`` or ``3.5.1990``."""
    if (eastern := _EASTERN_DAY.fullmatch(value)) is not None:
        value = f"{int(eastern['day'])} {MONTHS[min(int(eastern['month']), 12) - 1]} {eastern['year'] or ''}"
    words = [_english_month(word) for word in re.sub(r"[.,]", " ", value).split()]
    phrase = Phrase([word for word in words if word not in ("de", "den", "der", "of", "the")])
    found = phrase.month_day()
    if found is None:
        return None
    return f"{found.day}.{found.month}" + (f".{found.year}" if found.year else "") if phrase.is_done else None


def since_of(when: str | None, now: datetime, zone: ZoneInfo) -> tuple[datetime | None, Grain]:
    """From ``2026-05-03``, ``2026-05``, ``2026``, or how it is said, as ``desde maio``; None for what is no time."""
    period = periods.read((when or "").strip(" ,"), now, zone)
    if period is None:
        return None, "day"
    days = (period[1] - period[0]).days
    return period[0].astimezone(UTC), "year" if days >= 360 else "month" if days >= 28 else "day"


def _english(word: str, table: Literal["kin", "things"]) -> str:
    return _english_of(table).get(word.casefold(), word)


def _english_month(word: str) -> str:
    month = month_of(word)
    return MONTHS[month - 1] if month else word


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:]


@dataclass
class Dictation:
    """What a person asks to be remembered."""

    facts: Facts
    zone: ZoneInfo

    async def take(self, said: Message, scope: Scope, platform: str, epoch: ErasureEpoch | None = None) -> list[Fact]:
        """Keeps what `said` states, or all of it, as facts of its sender in `scope`. Raises Refused with what to do."""
        text = self._checked(said.text)
        whole = " ".join(text.split())
        found = claims(text, said.created_at, self.zone, is_dictated=True) or [
            Claim(content=whole, kind="identity", entities=names_in(whole), is_asked=True)
        ]
        facts = [fact_of(claim, "person", scope, platform, said) for claim in found]
        return [await self.facts.learn(fact, epoch=epoch) for fact in facts]

    async def correct(self, fact: Fact, text: str, scopes: frozenset[Scope], by: Author, at: datetime) -> Fact | None:
        """Replaces what a fact says by `text`; None when the fact is gone. Raises Refused with what to do."""
        text = self._checked(text)
        read = claims(text, at, self.zone, is_dictated=True)
        if len(read) != 1:
            return await self.facts.correct(fact.id, scopes, text, by)
        return await self.facts.correct(fact.id, scopes, read[0].content, by, read[0].laid_over)

    async def approve(self, note: PendingNote, epoch: ErasureEpoch | None = None) -> str:
        """Keeps, changes or removes what the model wanted to and a person has approved."""
        if note.operations[0].action != "add":
            return await self._approve_change(note, note.operations[0], epoch)
        account = note.account or Account(platform="terminal", user_id="local")
        text, sender = f"{ANYWAY} {note.operations[0].content}", Sender(id=account.user_id, name="")
        said = Message(role="user", text=text, session_id=0, created_at=note.at, sender=sender)
        kept = await self.take(said, note.scope, account.platform, epoch)
        return " ".join(f"Fact {fact.id} is kept: “{fact.content}”." for fact in kept)

    async def _approve_change(self, note: PendingNote, change: Operation, epoch: ErasureEpoch | None) -> str:
        by = Author(account=note.account, message_id=note.message_id, epoch=epoch)
        number, scopes = int(change.path.removeprefix("f")), frozenset((note.scope,))
        fact = await self.facts.find(number, scopes)
        if fact is None or not fact.is_open or fact.content != change.old_text:
            raise Refused(f"Fact {number} no longer says that: reject it.")
        if change.action == "remove":
            await self.facts.remove(number, scopes, by)
            return f"Fact {number} is over: “{fact.content}”."
        fixed = await self.correct(fact, f"{ANYWAY} {change.content}", scopes, by, note.at) or fact
        return f"Fact {number} now says: “{fixed.content}”."

    @staticmethod
    def _checked(text: str) -> str:
        lines = (line for line in text.splitlines() if not line.startswith("[attached "))
        text, is_insisting = insisting("\n".join(lines).strip())
        if not text:
            raise Refused("Say what to remember: `/remember Ana's birthday is on 3 May`.")
        if len(text) > FACT_CHARS:
            raise Refused(
                f"That is too long for a fact: {len(text):,} characters, and {FACT_CHARS} are the most. Say in a "
                "sentence or two what to remember of it."
            )
        return typed(text, FACT_CHARS, is_insisting=is_insisting)[0]
