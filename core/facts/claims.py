"""Reads by rules what people state about themselves, and turns it into facts.

The rules are careful: a statement that is missed can be said again, but a wrong one is believed.
Only plain statements of the present count. Questions, conditions, wishes, denials, hearsay,
quotations and code don't. The patterns are in `data/patterns.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

from core.dates import periods
from core.dates.cursor import MONTHS, WEEKDAYS, WordCursor
from core.dates.mentions import month_number
from core.facts.patterns import (
    ClaimPattern,
    Shape,
    claim_pattern,
    compile_pattern,
    load_english_words,
    load_patterns,
    load_words,
)
from core.store.fact_rows import Fact, FactKind, FactOrigin, Grain
from core.store.facts import ALIAS_ATTRIBUTE
from core.text.normalize import is_unspaced
from core.text.terms import (
    ME,
    attribute_key,
    entity_key,
    is_plural_relation,
    names_in,
    relation_words,
)
from core.types import Account, Message, Scope

MAX_FACT_CHARS = 400
MAX_MESSAGE_CHARS = 2_000
"""A longer message is most likely pasted."""
MAX_CLAUSE_CHARS = 240
MIN_CLAUSE_CHARS = 3
MAX_THING_WORDS = 8
MAX_PLACE_WORDS = 5
MAX_LOWERCASE_PLACE_WORDS = 2
MAX_NAME_WORDS = 4
MAX_UNSPACED_NAME_CHARS = 8
MIN_YEAR_DAYS = 360
MIN_MONTH_DAYS = 28
TRUST_BY_ORIGIN: dict[FactOrigin, float] = {"person": 0.95, "rule": 0.7, "model": 0.6}
REQUESTED_TRUST = 0.9
"""Trust in a statement that the person asks to remember."""

SingleAttribute = Literal[
    "home",
    "work",
    "profession",
    "birthday",
    "name",
    "age",
    "phone",
    "email",
    "partner",
    "diet",
    "deadline",
]
"""Attributes with one value at a time, among which a model chooses."""

_EASTERN_DAY = re.compile(
    r"(?:(?P<year>(?:19|20)\d\d)年)?(?P<month>1[0-2]|0?[1-9])月(?P<day>\d{1,2})[日号號]?"
)
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_SENTENCE_END = re.compile(
    r"(?<=[。！？；])\s*"
    r"|(?<=[.!?;])(?<!\b\d\.)(?<!\b\d\d\.)(?<!\b(?:Dr|Mr|St)\.)(?<!\b(?:Mrs)\.)(?<!\bProf\.)"
    r"(?<!\be\.g\.)(?<!\bi\.e\.)\s+"
    r"|\n+"
)
_SENTENCE_SIGNS = " .!;。！…"
_QUESTION_ENDS = ("?", "？", "吗", "か")
_NON_SENTENCE_STARTS = (">", "[", "|", "#", "¿", "- ", "* ", "• ")
_QUOTATION_MARK = re.compile(
    r"[\"“”„«»‟]"
    r"|(?:^|\s)['\u2018]\w[^'’]*['’](?:\s|[.,!?]|$)"
)
_DATE_PARTICLES = frozenset({"de", "den", "der", "of", "the"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a sentence states, before it is a fact. The fields are those of `Fact`."""

    # The sentence.
    content: str
    kind: FactKind
    # Begins with ``me|`` if it is about the speaker.
    attribute: str | None = None
    value: str = ""
    entities: tuple[str, ...] = ()
    valid_from: datetime | None = None
    grain: Grain = "day"
    # The person asked to remember it.
    is_requested: bool = False

    def apply_to(self, fact: Fact) -> Fact:
        """Return the fact with the attribute and value of this claim, and its time if it has one.

        A claim without an attribute changes nothing.
        """
        if self.attribute is None:
            return fact
        attribute = qualify_attribute(self.attribute, fact.scope, fact.account)
        new_fact = replace(fact, attribute=attribute, value=self.value)
        if self.valid_from is None:
            return new_fact
        return replace(new_fact, valid_from=self.valid_from, grain=self.grain)


def qualify_attribute(attribute: str | None, scope: Scope, account: Account | None) -> str | None:
    """Return an attribute as it is stored: in a group, "me" and "my" belong to an account."""
    if attribute and scope.is_group and account and claim_pattern("own_subject").match(attribute):
        return f"{account.key}|{attribute.removeprefix('me|')}"
    return attribute


def fact_from_claim(
    claim: Claim, origin: FactOrigin, scope: Scope, platform: str, source: Message
) -> Fact:
    """Build the fact of a claim that the sender of `source` makes."""
    account = None
    if source.sender is not None:
        account = Account(platform=platform, user_id=source.sender.id)
    return Fact(
        scope=scope,
        content=claim.content[:MAX_FACT_CHARS],
        kind=claim.kind,
        origin=origin,
        created_at=source.created_at,
        trust=REQUESTED_TRUST if claim.is_requested else TRUST_BY_ORIGIN[origin],
        attribute=qualify_attribute(claim.attribute, scope, account),
        value=claim.value,
        entities=claim.entities,
        valid_from=claim.valid_from,
        grain=claim.grain,
        message_id=source.id or None,
        account=account,
        speaker=source.sender.name if source.sender else "",
    )


def is_alias(claim: Claim) -> bool:
    """Whether a claim names an alias: "call me Jo", "my sister is Ana"."""
    subject, _, rest = (claim.attribute or "").partition("|")
    if subject != ME or not rest:
        return False
    attribute = rest.split("|")[0]
    return attribute == ALIAS_ATTRIBUTE or attribute in relation_words()


class _Clause(NamedTuple):
    """A plain statement without its full stop."""

    text: str
    # The person asks to remember it.
    is_requested: bool


def extract_claims(
    text: str, now: datetime, zone: ZoneInfo, *, is_request: bool = False
) -> list[Claim]:
    """Return what a message states, in its order.

    `now` is the time of the message: "in May" is the last May that had begun by then. With
    `is_request` the person asks to remember all of it.
    """
    claims: dict[tuple[str, str | None], Claim] = {}
    for clause in _split_clauses(text, is_request):
        clause_claims = list(_read_clause(clause.text, now, zone))
        if not clause_claims and clause.is_requested:
            sentence = _capitalize(clause.text)
            clause_claims = [
                Claim(content=sentence, kind="identity", entities=names_in(clause.text))
            ]
        for claim in clause_claims:
            key = (claim.content, claim.attribute)
            claims.setdefault(key, replace(claim, is_requested=clause.is_requested))
    return list(claims.values())


def _split_clauses(text: str, is_request: bool) -> Iterator[_Clause]:
    """The plain statements of a message, without filler words.

    The rest of a sentence is skipped once its speaker takes another role.
    """
    for sentence in _split_sentences(text, is_request):
        for part in _split_statements(sentence.text):
            statement = part.strip()
            if claim_pattern("role_play").match(statement):
                break
            statement = claim_pattern("opening_filler").sub("", statement).strip(" ,")
            statement = claim_pattern("closing_filler").sub("", statement)
            if MIN_CLAUSE_CHARS <= len(statement) <= MAX_CLAUSE_CHARS:
                yield _Clause(statement, sentence.is_requested)


def _split_sentences(text: str, is_request: bool) -> Iterator[_Clause]:
    """The sentences of a message that may state something.

    Everything behind a sentence that hands a text over ("translate this:") may be someone else's,
    so reading ends there, unless the person asks to remember all of it.
    """
    if len(text) > MAX_MESSAGE_CHARS:
        return
    if not is_request and claim_pattern("playful").search(text):
        return
    for sentence in _SENTENCE_END.split(_CODE.sub(" \n ", text)):
        line = " ".join(sentence.split())
        if not is_request and _introduces_text(line):
            return
        if not _may_state(line):
            continue
        line = line.rstrip(_SENTENCE_SIGNS)
        request = claim_pattern("request").fullmatch(line)
        if request is not None:
            content = request["what"] or request["abroad"] or request["unspaced"]
            yield _Clause(content.strip(), is_requested=True)
        elif is_request or not _is_uncertain(line):
            yield _Clause(line, is_request)


def _introduces_text(line: str) -> bool:
    """Whether a line hands over the text behind it, such as "translate this:"."""
    is_order = claim_pattern("handed_over").match(line) is not None
    return is_order or claim_pattern("opening").match(line) is not None


def _may_state(line: str) -> bool:
    """Whether a line isn't a question, a quotation, a list item, a table row or a whole story."""
    if not line or line.startswith(_NON_SENTENCE_STARTS) or len(line) > 2 * MAX_CLAUSE_CHARS:
        return False
    if line.endswith(_QUESTION_ENDS):
        return False
    return not claim_pattern("tag_question").search(line.rstrip(_SENTENCE_SIGNS))


def _is_uncertain(text: str) -> bool:
    """Whether a text has a quotation, or words like "maybe"."""
    has_quotation = _QUOTATION_MARK.search(text) is not None
    return has_quotation or claim_pattern("uncertain").search(text) is not None


def _split_statements(sentence: str, name: str | None = None) -> Iterator[str]:
    """Split a sentence into statements, each with its subject.

    "My sister Ana lives in Porto and her birthday is on 3 May" ends with "Ana's birthday is on 3
    May". The part with the pronoun is left out if the sentence has no name for it.
    """
    pronoun = claim_pattern("same_subject").search(sentence)
    first = sentence if pronoun is None else sentence[: pronoun.start()]
    yield from claim_pattern("clause_separator").split(first)
    apposition = claim_pattern("apposition").search(first)
    if apposition is not None:
        name = apposition["value"]
    if pronoun is not None and name is not None:
        is_possessive = pronoun["who"].lower() in ("his", "her", "their")
        subject = f"{name}'s" if is_possessive else name
        yield from _split_statements(f"{subject} {sentence[pronoun.end() :].strip()}", name)


def _read_clause(clause: str, now: datetime, zone: ZoneInfo) -> Iterator[Claim]:
    """What a clause states: a relation with a name ("my sister Ana"), and one pattern's claim."""
    if _is_uncertain(clause):
        return
    has_denial = claim_pattern("denial").search(clause) is not None
    apposition = claim_pattern("apposition").search(clause)
    if apposition is not None and not has_denial:
        relation = apposition["what"].lower()
        name = apposition["value"]
        yield _relation_claim(f"My {relation} is {name}", relation, name)
    for pattern in load_patterns():
        if has_denial and not pattern.may_deny:
            continue
        match = compile_pattern(pattern.text).fullmatch(clause)
        if match is None:
            continue
        claim = _build_claim(pattern, match, clause, now, zone)
        if claim is not None:
            yield claim
            return


def _build_claim(
    pattern: ClaimPattern, match: re.Match[str], clause: str, now: datetime, zone: ZoneInfo
) -> Claim | None:
    """The claim of a clause that matches a pattern.

    None if the value doesn't have the pattern's shape, or if the clause is about the future or
    about no particular person.
    """
    groups = match.groupdict("")
    value = claim_pattern("value_tail").sub("", groups.get("value", "").strip(" ,"))
    key = _value_key(pattern.shape, value, clause)
    since, grain = parse_since(groups.get("when"), now, zone)
    if key is None or (since is not None and since > now):
        return None
    who = groups.get("who", "")
    if who.lower() in load_words("no_subject") or who.lower() in (*WEEKDAYS, *MONTHS):
        return None

    word = groups.get("what", "").lower()
    english_words = load_english_words("relations" if pattern.is_relation else "things")
    what = pattern.what.format(what=english_words.get(word.casefold(), word))
    if pattern.is_relation:
        return _relation_claim(_capitalize(clause), what, value)
    attribute = None
    if what:
        attribute = attribute_key(_subject_key(who), what, key if pattern.stance else "")
    names = list(names_in(clause))
    if pattern.shape in ("place", "name", "title"):
        names.append(value)
    return Claim(
        content=_capitalize(clause),
        kind=pattern.kind,
        attribute=attribute,
        value=pattern.stance or (key if attribute else ""),
        entities=tuple({entity_key(name): name for name in names}.values()),
        valid_from=since,
        grain=grain,
    )


def _relation_claim(content: str, relation: str, name: str) -> Claim:
    """The claim that someone of the speaker's has a name.

    One may have several sisters, so their names don't contradict each other.
    """
    key = entity_key(name)
    attribute = attribute_key(ME, relation, key if is_plural_relation(relation) else "")
    return Claim(content=content, kind="identity", attribute=attribute, value=key, entities=(name,))


def _subject_key(who: str) -> str:
    """The subject of an attribute: ``me``, the key of a name, or ``my sister``."""
    words = who.split()
    if not words or who in ("my", "My"):
        return ME
    if words[0].lower() not in ("my", "our"):
        return entity_key(who)
    name_words = [word for word in words[1:] if word[:1].isupper()]
    return entity_key(" ".join(name_words or ["my", *words[1:]]))


def _value_key(shape: Shape, value: str, clause: str) -> str | None:
    """The value as it is compared; None if it doesn't have the shape."""
    if not value:
        return None
    if shape == "date":
        return _parse_birthday(value)
    has_shape = _has_unspaced_shape if is_unspaced(value) else _has_shape
    is_lowercase = clause == clause.lower()
    return entity_key(value) if has_shape(shape, value, is_lowercase) else None


def _has_shape(shape: Shape, value: str, is_lowercase: bool) -> bool:
    """Whether a value fits; `is_lowercase`: the whole clause has no capital."""
    match shape:
        case "place":
            return _is_place(value, is_lowercase=is_lowercase)
        case "name":
            return _is_name(value, may_be_lowercase=is_lowercase)
        case "title":
            return _is_name(value, may_be_lowercase=False)
        case "thing":
            is_short = len(value.split()) <= MAX_THING_WORDS and "," not in value
            return is_short and not claim_pattern("no_thing").match(value)
        case "number":
            return re.search(r"\d", value) is not None
        case _:
            return True


def _has_unspaced_shape(shape: Shape, value: str, is_lowercase: bool) -> bool:
    """Like `_has_shape`, for scripts without spaces, which have no capitals."""
    if shape == "free":
        return True
    if shape in ("name", "title"):
        is_short = len(value) <= MAX_UNSPACED_NAME_CHARS
        return is_short and not claim_pattern("no_unspaced_name").search(value)
    if shape == "place" and claim_pattern("no_unspaced_place").search(value):
        return False
    return not claim_pattern("no_unspaced").search(value)


def _is_place(value: str, *, is_lowercase: bool) -> bool:
    """Whether a value looks like a place: capitals, except in a clause without any."""
    words = value.split()
    has_capital = value[:1].isupper() or (value[:4] == "the " and value[4:5].isupper())
    if not has_capital and not is_lowercase:
        return False
    if not is_lowercase:
        for word in words[1:]:
            if not word[:1].isupper() and word.lower() not in load_words("particles"):
                return False
    max_words = MAX_PLACE_WORDS if has_capital else MAX_LOWERCASE_PLACE_WORDS
    if len(words) > max_words or re.search(r"\d", value):
        return False
    return not claim_pattern("no_place").match(value)


def _is_name(value: str, *, may_be_lowercase: bool) -> bool:
    """Whether a value looks like a name: its first and last word have a capital."""
    words = value.split()
    if words[0].lower() in load_words("no_name") or len(words) > MAX_NAME_WORDS:
        return False
    if claim_pattern("no_thing").match(value):
        return False
    has_capitals = words[0][:1].isupper() and words[-1][:1].isupper()
    return has_capitals or (may_be_lowercase and len(words) == 1)


def comparable_value(attribute: str | None, value: str) -> str:
    """Return a value in the form in which values are compared: "May 3" equals "3 May"."""
    birthday = _parse_birthday(value) if attribute == "birthday" else None
    return birthday or entity_key(value)


def _parse_birthday(value: str) -> str | None:
    """A day of the year as ``3.5`` or ``3.5.1990``; None if the value isn't one."""
    eastern = _EASTERN_DAY.fullmatch(value)
    if eastern is not None:
        month = MONTHS[int(eastern["month"]) - 1]
        value = f"{int(eastern['day'])} {month} {eastern['year'] or ''}"
    words = []
    for word in re.sub(r"[.,]", " ", value).split():
        number = month_number(word)
        english = MONTHS[number - 1] if number else word
        if english not in _DATE_PARTICLES:
            words.append(english)
    cursor = WordCursor(words)
    day = cursor.read_month_day()
    if day is None or not cursor.is_done:
        return None
    birthday = f"{day.day}.{day.month}"
    return f"{birthday}.{day.year}" if day.year else birthday


def parse_since(when: str | None, now: datetime, zone: ZoneInfo) -> tuple[datetime | None, Grain]:
    """Return the start of a period and how exact it is; None if `when` isn't a time.

    `when` is a date (``2026-05-03``, ``2026-05``, ``2026``) or words such as ``desde maio``.
    """
    period = periods.read_period((when or "").strip(" ,"), now, zone)
    if period is None:
        return None, "day"
    start, end = period
    days = (end - start).days
    grain: Grain = "day"
    if days >= MIN_YEAR_DAYS:
        grain = "year"
    elif days >= MIN_MONTH_DAYS:
        grain = "month"
    return start.astimezone(UTC), grain


def _capitalize(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:]
