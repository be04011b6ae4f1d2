"""Extract facts that people state about themselves, by rules.

The rules are strict, because a person can repeat a missed statement but hardly notices a wrong
fact. Only plain statements about the present count. Questions, conditions, wishes, denials,
hearsay, quotations and code are ignored. The patterns are in `data/patterns.toml`.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from operator import add
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

from core.dates import period_name
from core.facts.patterns import (
    ASCII_LANGUAGES,
    LANGUAGES,
    ClaimPattern,
    Shape,
    any_claim_pattern,
    change_signs,
    claim_pattern,
    compile_pattern,
    correction_openings,
    load_english_words,
    load_patterns,
    load_words,
    naming_verbs,
)
from core.store.facts.facts import ALIAS_ATTRIBUTE
from core.store.facts.rows import Fact, FactKind, FactOrigin, Precision
from core.text.normalize import fold, is_unspaced, plain_with_offsets
from core.text.pastes import QUOTATION
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
"""A longer message is probably pasted text, so it is ignored."""
MAX_CLAUSE_CHARS = 240
MAX_CORRECTION_CHARS = 120
"""A longer message that begins with "no" or "sorry" isn't a correction."""
MIN_CLAUSE_CHARS = 3
MAX_THING_WORDS = 8
MAX_PLACE_WORDS = 5
MAX_LOWERCASE_PLACE_WORDS = 2
MAX_NAME_WORDS = 4
MAX_UNSPACED_NAME_CHARS = 8
MIN_YEAR_DAYS = 360
"""A period of at least this many days has the precision "year"."""
MIN_MONTH_DAYS = 28
"""A period of at least this many days has the precision "month"."""
TRUST_BY_ORIGIN: dict[FactOrigin, float] = {"person": 0.95, "rule": 0.7, "model": 0.6}
REQUESTED_TRUST = 0.9
"""The trust in a statement that the person asks Mneme to remember."""

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
"""The attributes that a model may report. Each has only one value at a time."""

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`", re.DOTALL)
"""A block of code between ``` marks, or a piece of code between ` marks."""
# The gap after a sentence. The full stops of "3. May", "Dr. Silva" and "e.g. tea" don't end a
# sentence.
_SENTENCE_END = re.compile(
    r"(?<=[。！？；])\s*"
    r"|(?<=[.!?;])(?<!\b\d\.)(?<!\b\d\d\.)(?<!\b(?:Dr|Mr|St)\.)(?<!\b(?:Mrs)\.)(?<!\bProf\.)"
    r"(?<!\be\.g\.)(?<!\bi\.e\.)\s+"
    r"|\n+"
)
_SENTENCE_SIGNS = " .!;。！…"
_QUESTION_ENDS = ("?", "？", "吗", "か")
_NON_SENTENCE_STARTS = (">", "[", "|", "#", "¿", "- ", "* ", "• ")
# A double quotation mark, or a word in single ones: 'so called'. The apostrophe of "don't" isn't a
# quotation mark.
_QUOTATION_MARK = re.compile(
    r"[\"“”„«»‟]"
    r"|(?:^|\s)['\u2018]\w[^'’]*['’](?:\s|[.,!?]|$)"
)
# Words before a colon at the beginning of a sentence. A clock time such as "8:30" has no blank.
_LABEL = re.compile(r"[^:：,;]{2,40}(?::\s|：)")
_EMPTY_QUOTATION = "“”"
_DAY_NAMES = frozenset(map(str.lower, (*calendar.day_name, *calendar.month_name[1:])))
"""The English names of days and months."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A statement that rules or a model found in a sentence, before it is stored as a fact.

    See `Fact` for the fields.
    """

    # The sentence.
    content: str
    kind: FactKind
    # The attribute, such as ``me|home`` for the speaker's home.
    attribute: str | None = None
    value: str = ""
    entities: tuple[str, ...] = ()
    valid_from: datetime | None = None
    precision: Precision = "day"
    # Whether the person asked Mneme to remember the statement.
    is_requested: bool = False

    def apply_to(self, fact: Fact) -> Fact:
        """Return a copy of a fact with this claim's attribute, value and time.

        Without an attribute, the fact is returned unchanged. Without a time, the fact keeps its
        time.
        """
        if self.attribute is None:
            return fact
        attribute = qualify_attribute(self.attribute, fact.scope, fact.account)
        new_fact = replace(fact, attribute=attribute, value=self.value)
        if self.valid_from is None:
            return new_fact
        return replace(new_fact, valid_from=self.valid_from, precision=self.precision)


def qualify_attribute(attribute: str | None, scope: Scope, account: Account | None) -> str | None:
    """Return an attribute in the form in which it is stored. None stays None.

    In a group, the speaker's account replaces "me" and qualifies subjects such as "my sister":
    ``me|home`` becomes ``telegram:42|home``.
    """
    if attribute and scope.is_group and account and claim_pattern("own_subject").match(attribute):
        return f"{account.key}|{attribute.removeprefix('me|')}"
    return attribute


def fact_from_claim(
    claim: Claim, origin: FactOrigin, scope: Scope, platform: str, source: Message
) -> Fact:
    """Build the fact that a claim states about the sender of the message `source`."""
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
        precision=claim.precision,
        message_id=source.id or None,
        account=account,
        speaker=source.sender.name if source.sender else "",
    )


def is_alias(claim: Claim) -> bool:
    """Return whether a claim gives someone another name: "call me Jo", "my sister is Ana"."""
    subject, *parts = (claim.attribute or "").split("|")
    if subject != ME or not parts:
        return False
    return parts[0] == ALIAS_ATTRIBUTE or parts[0] in relation_words()


@lru_cache(maxsize=100)
def mentions_change(text: str) -> bool:
    """Return whether a text may be about a change, in one of the ten languages.

    This quick check looks for expressions of `data/changes.toml`. `core.facts.changes` then reads
    the text in its own language.
    """
    plain = plain_with_offsets(fold(text))[0].casefold()
    is_short = len(plain) <= MAX_CORRECTION_CHARS
    if is_short and plain.startswith(correction_openings()):
        return True
    # The signs are grouped by their first one or two characters.
    starts = {*plain, *map(add, plain, plain[1:])}
    groups = change_signs()
    for start in starts & groups.keys():
        for sign in groups[start]:
            if sign in plain:
                return True
    return False


class _Clause(NamedTuple):
    """A plain statement in a message, without its full stop."""

    text: str
    # Whether the person asks Mneme to remember the statement.
    is_requested: bool
    # Whether `_is_uncertain` was already False for this text.
    is_certain: bool = False


def extract_claims(
    text: str, now: datetime, zone: ZoneInfo, *, is_request: bool = False
) -> list[Claim]:
    """Return the claims in a message, in the order of its text.

    `now` is the time of the message. "In May" means the latest May that had begun by then. Set
    `is_request` if the person asks Mneme to remember the whole message.
    """
    claims: dict[tuple[str, str | None], Claim] = {}
    for clause in _split_clauses(text, is_request):
        clause_claims = list(_read_clause(clause, now, zone))
        if not clause_claims and clause.is_requested:
            sentence = _capitalize(clause.text)
            clause_claims = [
                Claim(content=sentence, kind="identity", entities=names_in(clause.text))
            ]
        for claim in clause_claims:
            # The same claim may be repeated in the message.
            key = (claim.value if claim.attribute else claim.content, claim.attribute)
            claims.setdefault(key, replace(claim, is_requested=clause.is_requested))
    return list(claims.values())


def _split_clauses(text: str, is_request: bool) -> Iterator[_Clause]:
    """Yield the plain statements of a message, without filler words.

    If the speaker plays a role ("imagine I'm a pirate"), the rest of the sentence is skipped.
    """
    for sentence in _split_sentences(text, is_request):
        if not sentence.is_requested and _is_labelled(sentence.text):
            continue
        for part in _split_statements(sentence.text):
            statement = part.strip()
            if claim_pattern("role_play").match(statement):
                break
            statement = claim_pattern("opening_filler").sub("", statement).strip(" ,")
            statement = claim_pattern("closing_filler").sub("", statement)
            if MIN_CLAUSE_CHARS <= len(statement) <= MAX_CLAUSE_CHARS:
                is_certain = sentence.is_certain and statement == sentence.text
                yield _Clause(statement, sentence.is_requested, is_certain)


def _is_labelled(sentence: str) -> bool:
    """Return whether a sentence begins with a label: "Auntie's message: hi, I moved to Bath"."""
    label = _LABEL.match(sentence)
    return label is not None and claim_pattern("opening_filler").match(label[0]) is None


def count_sentences(text: str) -> int:
    """Return how many sentences a text has."""
    return sum(bool(sentence.strip()) for sentence in _SENTENCE_END.split(text))


def _split_sentences(text: str, is_request: bool) -> Iterator[_Clause]:
    """Yield the sentences of a message that may state something.

    Text after a line like "translate this:" is skipped, because another person may have written it.
    So are the sentences that aren't meant (see `_list_meant_sentences`). None is skipped if the
    person asks Mneme to remember the whole message (`is_request`).
    """
    if len(text) > MAX_MESSAGE_CHARS:
        return
    text = _CODE.sub(" \n ", text)
    for sentence in _SENTENCE_END.split(text) if is_request else _list_meant_sentences(text):
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
        elif is_request:
            yield _Clause(line, is_requested=True)
        elif not _is_uncertain(line):
            yield _Clause(line, is_requested=False, is_certain=True)


def _list_meant_sentences(text: str) -> Sequence[str]:
    """Return the sentences of a message that the writer means as they say them.

    Jokes, imagined cases, quoted sentences, and sentences that a later one takes back ("Not!") are
    left out.
    """
    if claim_pattern("playful").search(text) or claim_pattern("supposition").match(text):
        return ()
    sentences = _SENTENCE_END.split(_drop_quoted_sentences(text))
    return sentences[count_taken_back(sentences) :]


def _drop_quoted_sentences(text: str) -> str:
    """Return a text with an empty quotation in place of each one of several sentences.

    Otherwise, the sentences inside would have no quotation mark. If the text asks Mneme to remember
    the quotation, it's returned unchanged.
    """
    if claim_pattern("request").fullmatch(" ".join(text.split()).rstrip(_SENTENCE_SIGNS)):
        return text

    def drop_sentences(quotation: re.Match[str]) -> str:
        # The mark after a number means inches.
        is_size = text[: quotation.start()][-1:].isdecimal()
        has_sentences = _SENTENCE_END.search(quotation[0].strip()) is not None
        return _EMPTY_QUOTATION if has_sentences and not is_size else quotation[0]

    return QUOTATION.sub(drop_sentences, text)


def count_taken_back(sentences: Sequence[str]) -> int:
    """Return how many of a message's first sentences a later one takes back."""
    if len(sentences) < 2:
        return 0
    # Imported here because most messages have a single sentence.
    from core.facts import clauses

    return clauses.count_taken_back(sentences)


def _introduces_text(line: str) -> bool:
    """Return whether a line introduces another person's text, like "translate this:"."""
    names = ("handed_over", "source_lead", "opening")
    return any(claim_pattern(name).match(line) is not None for name in names)


def _may_state(line: str) -> bool:
    """Return whether a line may be a statement.

    Questions, quotations, list items, table rows and very long lines aren't statements.
    """
    if not line or line.startswith(_NON_SENTENCE_STARTS) or len(line) > 2 * MAX_CLAUSE_CHARS:
        return False
    if line.endswith(_QUESTION_ENDS):
        return False
    return not claim_pattern("tag_question").search(line.rstrip(_SENTENCE_SIGNS))


def _is_uncertain(text: str) -> bool:
    """Return whether a text contains a quotation mark or a word like "maybe"."""
    has_quotation = _QUOTATION_MARK.search(text) or QUOTATION.search(text)
    return has_quotation is not None or claim_pattern("uncertain").search(text) is not None


def _split_statements(sentence: str, name: str | None = None) -> Iterator[str]:
    """Yield the statements of a sentence, each with its subject.

    "My sister Ana lives in Porto and her birthday is on 3 May" becomes "My sister Ana lives in
    Porto" and "Ana's birthday is on 3 May". If a pronoun's name is unknown, everything from the
    pronoun on is left out. `name` is the name in an earlier part of the sentence.
    """
    named = _match_named_relation(sentence)
    if named is not None:
        yield sentence[: named.end("name")]
        yield from _split_statements(f"{named['owner']} {named['name']} {named['rest']}")
        return
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


def _match_named_relation(sentence: str) -> re.Match[str] | None:
    """Match a relative's name before more about them: "mein Bruder heißt Jonas und arbeitet …"."""
    for language in ("english", *naming_verbs()):
        match = claim_pattern(f"named_{language}").fullmatch(sentence)
        if match is not None:
            return match
    return None


def _read_clause(clause: _Clause, now: datetime, zone: ZoneInfo) -> Iterator[Claim]:
    """Yield the claims of a clause: the name of a relative, and the first matching pattern.

    In "my sister Ana lives in Porto", "my sister Ana" gives the name of the relative.
    """
    text = clause.text
    if not clause.is_certain and _is_uncertain(text):
        return
    has_denial = claim_pattern("denial").search(text) is not None
    if not has_denial:
        yield from _find_named_relations(text)
    for pattern, match in _match_patterns(text):
        if has_denial and not pattern.may_deny:
            continue
        claim = _build_claim(pattern, match, text, now, zone)
        if claim is not None:
            yield claim
            return


def _match_patterns(clause: str) -> Iterator[tuple[ClaimPattern, re.Match[str]]]:
    """Yield the patterns of statements that match a clause, with their matches."""
    for language in ASCII_LANGUAGES if clause.isascii() else LANGUAGES:
        if any_claim_pattern(language).fullmatch(clause) is None:
            continue
        for pattern in load_patterns(language):
            match = compile_pattern(pattern.text).fullmatch(clause)
            if match is not None:
                yield pattern, match


def _find_named_relations(clause: str) -> Iterator[Claim]:
    """Yield the claim that gives a relative a name: "my sister Ana" or "meine Schwester Ana"."""
    apposition = claim_pattern("apposition").search(clause)
    if apposition is not None:
        relation = apposition["what"].lower()
        name = apposition["value"]
        yield _relation_claim(f"My {relation} is {name}", relation, name)
        return
    for language, verb in naming_verbs().items():
        apposition = claim_pattern(f"apposition_{language}").search(clause)
        if apposition is not None:
            word, name = apposition["what"], apposition["value"]
            relation = load_english_words("relations")[word.casefold()]
            content = _capitalize(f"{apposition['owner']}{word} {verb} {name}")
            yield _relation_claim(content, relation, name)
            return


def _build_claim(
    pattern: ClaimPattern, match: re.Match[str], clause: str, now: datetime, zone: ZoneInfo
) -> Claim | None:
    """Return the claim of a clause that matches a pattern.

    Returns None if the value doesn't have the pattern's shape, if the clause is about the future,
    or if its subject isn't a particular person.
    """
    groups = match.groupdict("")
    value = claim_pattern("value_tail").sub("", groups.get("value", "").strip(" ,"))
    key = _value_key(pattern.shape, value, clause)
    since, precision = parse_since(groups.get("when"), now, zone)
    if key is None or (since is not None and since > now):
        return None
    subject = groups.get("who", "")
    if subject.lower() in load_words("no_subject") or subject.lower() in _DAY_NAMES:
        return None

    # A pattern may leave the attribute open: in "my sister is Ana", ``{what}`` is "sister".
    word = groups.get("what", "").lower()
    english_words = load_english_words("relations" if pattern.is_relation else "things")
    attribute_name = pattern.what.format(what=english_words.get(word.casefold(), word))
    if pattern.is_relation:
        return _relation_claim(_capitalize(clause), attribute_name, value)
    attribute = None
    if attribute_name:
        subject_key = _subject_key(subject, groups.get("kin", ""))
        attribute = attribute_key(subject_key, attribute_name, key if pattern.stance else "")
    names = [*names_in(clause), *_list_unspaced_names(subject)]
    if pattern.shape in ("place", "name", "title"):
        names.append(value)
    return Claim(
        content=_capitalize(clause),
        kind=pattern.kind,
        attribute=attribute,
        value=pattern.stance or (key if attribute else ""),
        entities=tuple({entity_key(name): name for name in names}.values()),
        valid_from=since,
        precision=precision,
    )


def _relation_claim(content: str, relation: str, name: str) -> Claim:
    """Return the claim that a relative or friend of the speaker has a name.

    For relations such as "sisters", several names are possible, so the attribute contains the name.
    """
    key = entity_key(name)
    attribute = attribute_key(ME, relation, key if is_plural_relation(relation) else "")
    return Claim(content=content, kind="identity", attribute=attribute, value=key, entities=(name,))


def _list_unspaced_names(subject: str) -> list[str]:
    """Return the subject if it's a name in a script without capital letters, such as 安娜."""
    return [subject] if is_unspaced(subject) and " " not in subject else []


def _subject_key(subject: str, kin: str = "") -> str:
    """Return the subject of an attribute: ``me``, a name's key, or a relation.

    "Ana" and "my sister Ana" become ``ana``, and "my sister" stays ``my sister``. `kin` is the word
    of a language for a relation without a name: "Schwester" becomes ``my sister``.
    """
    if kin:
        return f"my {load_english_words('relations')[kin.casefold()]}"
    words = subject.split()
    if not words or subject in ("my", "My"):
        return ME
    if words[0].lower() not in ("my", "our"):
        return entity_key(" ".join(_drop_relation(words)))
    name_words = [word for word in words[1:] if word[:1].isupper()]
    return entity_key(" ".join(name_words or ["my", *words[1:]]))


def _drop_relation(words: Sequence[str]) -> Sequence[str]:
    """Return the name after a relation in another language: "Ana" for "meine Schwester Ana"."""
    relations = load_english_words("relations")
    for index, word in enumerate(words[:-1]):
        if word.casefold() in relations:
            return words[index + 1 :]
    return words


def _value_key(shape: Shape, value: str, clause: str) -> str | None:
    """Return a value as it is compared, or None if it doesn't have the shape."""
    if not value:
        return None
    if shape == "date":
        return _parse_birthday(value)
    has_shape = _has_unspaced_shape if is_unspaced(value) else _has_shape
    is_lowercase = clause == clause.lower()
    return entity_key(value) if has_shape(shape, value, is_lowercase) else None


def _has_shape(shape: Shape, value: str, is_lowercase: bool) -> bool:
    """Return whether a value has a shape, such as that of a name or a place.

    `is_lowercase` means that the whole clause has no capital letter.
    """
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
    """Return whether a value in a script without spaces has a shape.

    Such scripts have no capital letters to check.
    """
    if shape == "free":
        return True
    if shape in ("name", "title"):
        is_short = len(value) <= MAX_UNSPACED_NAME_CHARS
        return is_short and not claim_pattern("no_unspaced_name").search(value)
    if shape == "place" and claim_pattern("no_unspaced_place").search(value):
        return False
    return not claim_pattern("no_unspaced").search(value)


def _is_place(value: str, *, is_lowercase: bool) -> bool:
    """Return whether a value looks like the name of a place.

    Its words must have capital letters, unless the whole clause has none.
    """
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
    """Return whether a value looks like a name: its first and last words have capital letters.

    With `may_be_lowercase`, a single word without capital letters also counts as a name.
    """
    words = value.split()
    if words[0].lower() in load_words("no_name") or len(words) > MAX_NAME_WORDS:
        return False
    if claim_pattern("no_thing").match(value):
        return False
    has_capitals = words[0][:1].isupper() and words[-1][:1].isupper()
    return has_capitals or (may_be_lowercase and len(words) == 1)


def comparable_value(attribute: str | None, value: str) -> str:
    """Return a value in a form for comparison: "May 3" and "3 May" are the same birthday."""
    birthday = _parse_birthday(value) if attribute == "birthday" else None
    return birthday or entity_key(value)


def _parse_birthday(value: str) -> str | None:
    """Return the date in `value` as ``3.5`` or ``3.5.1990``, or None if it isn't a date."""
    form = period_name.parse_day_name(re.sub(r"\b1(?:er|º|°)", "1", value))
    if form is None:
        return None
    birthday = f"{form.days[0]}.{form.month}"
    return f"{birthday}.{form.year}" if form.year else birthday


def parse_since(
    when: str | None, now: datetime, zone: ZoneInfo
) -> tuple[datetime | None, Precision]:
    """Return the start of a period and its precision, or None if `when` isn't a period.

    `when` is a date (``2026-05-03``, ``2026-05``, ``2026``) or words such as ``desde maio``.
    """
    period = period_name.read_period((when or "").strip(" ,"), now, zone)
    if period is None:
        return None, "day"
    start, end = period
    days = (end - start).days
    precision: Precision = "day"
    if days >= MIN_YEAR_DAYS:
        precision = "year"
    elif days >= MIN_MONTH_DAYS:
        precision = "month"
    return start.astimezone(UTC), precision


def _capitalize(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:]
