"""Takes facts out of what a person says, by rules, where no model does: careful ones, because what is missed can be
said again and what is wrong is believed.

Only plain statements of the present count: no question, no condition, no wish, no denial, nothing that somebody else
has said, nothing in quotation marks or code. Pure.
"""

# ruff: noqa: RUF001

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from core.dates.periods import read
from core.dates.scanner import MONTHS, WEEKDAYS, Phrase
from core.facts.claims import Claim
from core.facts.evidence import pattern
from core.facts.patterns import (
    APPOSED,
    LEADS_ABROAD,
    MANY_KIN,
    MONTHS_ABROAD,
    NO_UNSPACED,
    NO_UNSPACED_NAME,
    NO_UNSPACED_PLACE,
    TELLINGS,
    TELLINGS_ABROAD,
    TELLINGS_EASTERN,
    FactPattern,
    fitting,
)
from core.store.facts import Grain
from core.text.attributes import ME, attribute_of
from core.text.names import entity_key, names_in
from core.text.normalize import is_unspaced

LIMIT_CHARS = 2_000
"""A longer message is most likely pasted, and its sentences are somebody else's."""
CLAUSE_CHARS = 240
THING_WORDS = 8
_YEAR = re.compile(r"(?:19|20)\d\d")

_EASTERN_DAY = re.compile(r"(?:(?P<year>(?:19|20)\d\d)年)?(?P<month>1[0-2]|0?[1-9])月(?P<day>\d{1,2})[日号號]?")

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_SENTENCE = re.compile(
    r"(?<=[。！？；])\s*|(?<=[.!?;])(?<!\b\d\.)(?<!\b\d\d\.)(?<!\bDr\.)(?<!\bSt\.)(?<!\be\.g\.)(?<!\bi\.e\.)\s+|\n+"
)
_QUOTED = re.compile(r"[\"“”„«»‟]|(?:^|\s)['\u2018]\w[^'’]*['’](?:\s|[.,!?]|$)")
_CLAUSE = re.compile(
    r",?\s+(?:and|but|und|aber|e|mas|y|pero|et|mais)\s+(?=(?:i|i['’]m|my|we|our|ich|mein|wir|eu|o meu|meu|moro|"
    r"trabalho|yo|mi|me|vivo|trabajo|je|mon)\b|j['’])|,\s+(?=(?:i|my|we|ich|mein|eu|je|yo|я)\s)|，",
    re.IGNORECASE,
)
_SAME = re.compile(r",?\s+(?:and|but)\s+(?P<who>he|she|they|his|her|their)(?=\s+[\w])", re.IGNORECASE)
_LEAD = re.compile(
    r"\A(?:(?:btw|by the way|so|well|oh|hey|hi|hello|ok|okay|also|fyi|and|yes|yeah|actually|as of today|now|"
    r"just so you know|for your information|good news|news|übrigens|hallo|olá|hola|bonjour|aliás|"
    r"por cierto|au fait)[,:!]?\s+)+",
    re.IGNORECASE,
)
_REMEMBER = re.compile(
    r"(?:please\s+|pls\s+)?(?:remember|note|keep in mind|don['’]?t forget|do not forget)"
    r"(?:\s*[:,]\s*|\s+that\s+|\s+(?=my\s|i\s|i['’]m\s|we\s|our\s))(?P<what>.+)|"
    r"(?:merk dir|denk daran|vergiss nicht|recuerda|acuérdate(?: de)?|no olvides|lembra-te(?: de)?|lembre-se(?: de)?|"
    r"não te esqueças(?: de)?|souviens-toi|n['’]oublie pas|запомни|не забудь)"
    r"(?:\s*[:,](?!\s*dass\b)\s*(?:что )?|\s+que\s+)(?P<abroad>.+)|"
    r"(?:请|請)?(?:(?:记住|記住)(?=我)|(?:记住|記住|记得|記得|覚えて(?:おいて)?)[：:，,、])\s*(?P<unspaced>.+)",
    re.IGNORECASE | re.DOTALL,
)
_UNSURE = re.compile(
    r"\b(?:if|unless|would|could|might|maybe|perhaps|possibly|probably|wish|imagine|imagined|suppose|supposed|supposedly|"
    r"pretend|pretended|hypothetically|wonder|wondered|hope|hoped|dream|dreamt|dreamed|almost|nearly|kidding|joking|"
    r"role-?play|guess|used to|say that|said|says|saying|told|tells|asked|asks|claims|claimed|according to|"
    r"writes|wrote|thinks|thought|believes|believed|heard|reckons|example|should i|when i|until i|before i|once i|"
    r"whether|"
    r"as though|"
    r"se|si|wenn|falls|wäre|würde|hätte|vielleicht|talvez|quizás|tal vez|peut-être|gostaria|gostava|quisiera|voudrais|"
    r"aimerais|disse|dijo|dice|diz|sagt|sagte|dit)\b|\b(?:i|we|you|he|she|they)['’]d\b",
    re.IGNORECASE,
)
_FEIGNED = re.compile(
    r"\b(?:lol|lmao|rofl|ha(?:ha)+h?|je(?:je)+|ja(?:ja)+|rs(?:rs)+|kk+|xd|kidding|joking|jk|just a joke|"
    r"pretend|imagine|hypothetical|hypothetically|assume|role-?play|"
    r"once upon a time|lyrics|let['’]?s (?:say|play)|let us (?:say|play)|if only|my character|"
    r"in (?:the|my|this|a|our|that) (?:\w+ )?(?:story|novel|game|book|film|movie|play|song|poem|dream)"
    r"(?! (?:industry|business|trade|club|shop|store|scene|sector)))\b|[\U0001F602\U0001F923\U0001F609\U0001F61C]|哈哈|"
    r"笑\Z|[w\uff57]{2,}\Z|(?<!\S)/s\b|(?<!\S);-?\)",
    re.IGNORECASE,
)
"""Words and signs that make all of a message play, whichever of its sentences they stand in."""
_OPENED = re.compile(r"(?!(?:please\s+|pls\s+)?(?:remember|note)\b).*:\Z", re.IGNORECASE)
"""A sentence behind which a text begins that may be anybody's."""
_POSED = re.compile(
    r"(?:as (?:a|an|the)|for (?:the|my) (?:role|part)|(?:she|he|they|everyone|everybody) goes?)\b", re.IGNORECASE
)
"""How somebody begins who goes on in another's person."""
_ASKED_BACK = re.compile(
    r",\s*(?:right|correct|or|no|huh|eh|(?:do|don['’]?t|am|ain['’]?t|aren['’]?t|did|didn['’]?t|is|isn['’]?t)\s+(?:i|it))\Z",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\b(?:not|never|no longer|cannot|neither|nor|não|nao|nunca|nicht|kein|keine|keinen|nie|ne|pas|jamais|nem|ni|не|"
    r"(?<!moro )(?<!mora )(?<!vivo )(?<!vive )(?<!trabalho )no)\b|n['’]t\b|\b(?:dont|wont|cant|isnt|arent)\b|"
    r"不|没|沒|ません",
    re.IGNORECASE,
)
_NO_THING = re.compile(
    r"(?:it|that|this|these|those|you|your|yours|him|her|his|them|their|us|when|how|what|where|why|who|which|to|"
    r"the idea|the way|the fact|the one|the first|the second|the last|one of|all of|both|neither|some of|myself|home|"
    r"night|nights|free|noon|weekends|least|me|mine|everyone|everybody|option|version|"
    r"the former|the latter|the other|none|"
    r"nothing|something|anything|everything|same|here|there|now|then|se|isso|isto|eso|esto|das|dass|dich|es|ça|que|"
    r"te|tu|ti|lo|bien|disso|disto|mim|voc[eê]s?|del[ae]s?|tudo|todo|nada|ello|toi|ça|cela|tout|rien|vous|"
    r"euch|alles|nichts|ob|wenn|wie|deine?[mnrs]?|trop|ta|ton|tes|beaucoup|quand|mucho|tus?|cuando|como|muito|teus?|tuas?|"
    r"quando|когда|"
    r"тебя|вас|его|её|их|это|всё)\b",
    re.IGNORECASE,
)
_NO_PLACE = re.compile(
    r"(?:a|an|my|his|her|our|their|your|this|that|these|fear|hope|peace|bed|tears|it|another|other|one|next|plan|sales|"
    r"marketing|management|linux|windows|mac|macos|vim|emacs|python|rust|git|github|slack|discord|telegram|"
    r"whatsapp|signal|notion|android|ios|iphone|firefox|chrome|the (?-i:(?![A-Z]))|something|someone|accept|"
    r"angst|armut|scheidung|trennung|hause|ruhe|luxus|not|panik|надежде|страхе|"
    r"uma?|eine[rmn]?|une?|mein|meu|mi|mon|paz|frieden|paix|casa|der|dem)\b",
    re.IGNORECASE,
)
_OTHER_WORDS = """
later back now when tomorrow today tonight at if again anytime asap soon maybe crazy old on in please what whatever
sir sick ill tired busy here there fine ok okay sad happy dead late ready sorry
american australian austrian belgian brazilian british bulgarian canadian chinese croatian czech danish dutch english
finnish french german greek hungarian indian iranian irish italian japanese korean mexican norwegian pakistani polish
portuguese romanian russian scottish spanish swedish swiss turkish ukrainian welsh jewish catholic muslim christian
"""
_NO_NAME = frozenset(_OTHER_WORDS.split())
_SMALL_WORDS = """
the of de da do das dos del della di la le las les los el en im am an der den dem bei sur upon and und y e
"""
_PARTICLES = frozenset(_SMALL_WORDS.split())
"""Small words in the midst of a place."""
_NO_PERSONS = """
he she they it this that who everyone everybody someone somebody nobody er sie es il elle ele ela
"""
_NOBODY = frozenset(_NO_PERSONS.split())
"""What has a capital at the beginning of a sentence and is no name."""
_ASIDE = re.compile(
    r"[ ,]+(?:btw|by the way|though|actually|you know|übrigens|aliás|por cierto|au fait)\Z", re.IGNORECASE
)
_TAIL = re.compile(
    r",?\s+(?:now|nowadays|currently|these days|at the moment|too|as well|a lot|very much|so much|myself|"
    r"by the way|btw|originally)\Z",
    re.IGNORECASE,
)
_ABROAD = {
    word: english
    for table in (MONTHS_ABROAD, LEADS_ABROAD)
    for english, words in table.items()
    for word in words.split()
}


def claims(text: str, now: datetime, zone: ZoneInfo, *, is_dictated: bool = False) -> list[Claim]:
    """What a message states, in its order. `now` is when it was said: "in May" is the last May that had begun.
    `is_dictated`: all of it was asked to be remembered."""
    found: list[Claim] = []
    for clause, is_asked in _clauses(text, is_dictated):
        told = list(_told(clause, now, zone))
        if not told and is_asked:
            told = [Claim(content=_sentence(clause), kind="identity", entities=names_in(clause))]
        for claim in told:
            marked = replace(claim, is_asked=is_asked)
            if all(marked.content != other.content or marked.attribute != other.attribute for other in found):
                found.append(marked)
    return found


def value_of(attribute: str | None, value: str) -> str:
    """A value as it is compared, so that "May 3" does not contradict "3 May"."""
    return (_birthday(value) if attribute == "birthday" else None) or entity_key(value)


def _clauses(text: str, is_dictated: bool) -> Iterator[tuple[str, bool]]:
    """The plain statements of a message without their full stops, and whether they are asked to be remembered."""
    if len(text) > LIMIT_CHARS or (not is_dictated and _FEIGNED.search(text)):
        return
    for sentence in _SENTENCE.split(_CODE.sub(" \n ", text)):
        said = " ".join(sentence.split())
        if not is_dictated and (pattern("handed_over").match(said) or _OPENED.match(said)):
            return
        if not said or said.startswith((">", "[", "|", "#")) or said.endswith(("?", "？", "吗", "か")):
            continue
        if said.startswith(("¿", "- ", "* ", "• ")) or len(said) > 2 * CLAUSE_CHARS:
            continue
        said = said.rstrip(" .!;。！…")
        if _ASKED_BACK.search(said):
            continue
        asked = _REMEMBER.fullmatch(said)
        if asked is not None:
            said = (asked["what"] or asked["abroad"] or asked["unspaced"]).strip()
        elif not is_dictated and (_QUOTED.search(said) or _UNSURE.search(said)):
            continue
        for part in _parts(said):
            if _POSED.match(part.strip()):
                break
            clause = _ASIDE.sub("", _LEAD.sub("", part.strip()).strip(" ,"))
            if 2 < len(clause) <= CLAUSE_CHARS:
                yield clause, is_dictated or asked is not None


def _parts(said: str, name: str | None = None) -> Iterator[str]:
    """The statements of a sentence. A second one about somebody named in the first is told of him: "my sister Ana lives
    in Porto and her birthday is on 3 May" ends as "Ana's birthday is on 3 May"; where nobody was named it is left
    out."""
    second = _SAME.search(said)
    first = said if second is None else said[: second.start()]
    yield from _CLAUSE.split(first)
    if (named := APPOSED.search(first)) is not None:
        name = named["value"]
    if second is not None and name is not None:
        owner = "'s" if second["who"].lower() in ("his", "her", "their") else ""
        yield from _parts(f"{name}{owner} {said[second.end() :].strip()}", name)


def _told(clause: str, now: datetime, zone: ZoneInfo) -> Iterator[Claim]:
    is_denied = _DENIED.search(clause) is not None
    if _UNSURE.search(clause) or _QUOTED.search(clause):
        return
    if not is_denied and (apposed := APPOSED.search(clause)):
        what = apposed["what"].lower()
        yield _of_kin(f"My {what} is {apposed['value']}", what, apposed["value"])
    for telling in (*TELLINGS, *TELLINGS_ABROAD, *TELLINGS_EASTERN):
        if is_denied and not telling.may_deny:
            continue
        match = fitting(telling.pattern).fullmatch(clause)
        if match is not None and (claim := _claim(telling, match, clause, now, zone)):
            yield claim
            return


def _claim(telling: FactPattern, match: re.Match[str], clause: str, now: datetime, zone: ZoneInfo) -> Claim | None:
    groups = match.groupdict()
    value = _TAIL.sub("", (groups.get("value") or "").strip(" ,"))
    since, grain = _since(groups.get("when"), now, zone)
    if since is not None and since > now:
        return None
    key = _value(telling, value, clause)
    if key is None:
        return None
    what = telling.what.format(what=(groups.get("what") or "").lower())
    if (groups.get("who") or "").lower() in (*_NOBODY, *WEEKDAYS, *MONTHS):
        return None
    if telling.what == "{what}" and telling.shape in ("name", "title"):
        return _of_kin(_sentence(clause), what, value)
    subject = _subject(groups.get("who"))
    attribute = attribute_of(subject, what, key if telling.is_many else "") if what else None
    names = [*names_in(clause), *([value] if telling.shape in ("place", "name", "title") else [])]
    return Claim(
        content=_sentence(clause),
        kind=telling.kind,
        attribute=attribute,
        value=telling.stance if telling.is_many else (key if attribute else ""),
        entities=tuple({entity_key(name): name for name in names}.values()),
        valid_from=since,
        grain=grain,
    )


def _of_kin(content: str, what: str, value: str) -> Claim:
    """Who somebody's sister is; of sisters there may be several."""
    key = entity_key(value)
    attribute = attribute_of(ME, what, key if what in MANY_KIN else "")
    return Claim(content=content, kind="identity", attribute=attribute, value=key, entities=(value,))


def _subject(who: str | None) -> str:
    """Whom it is about: ``me``, the key of a name, or ``my sister``."""
    words = (who or "").split()
    if not words or who in ("my", "My"):
        return ME
    if words[0].lower() not in ("my", "our"):
        return entity_key(who or "")
    named = [word for word in words[1:] if word[:1].isupper()]
    return entity_key(" ".join(named)) if named else entity_key(" ".join(("my", *words[1:])))


def _value(telling: FactPattern, value: str, clause: str) -> str | None:
    """The folded value; None where it does not look like what it should be."""
    if not value:
        return None
    words = value.split()
    is_lower = clause == clause.lower()
    if telling.shape != "date" and is_unspaced(value):
        return entity_key(value) if _is_fit_unspaced(telling, value) else None
    match telling.shape:
        case "place":
            is_named = value[:1].isupper() or (value[:4] == "the " and value[4:5].isupper())
            is_fit = not _NO_PLACE.match(value) and not re.search(r"\d", value) and len(words) <= 5
            is_one = is_lower or all(word[:1].isupper() or word.lower() in _PARTICLES for word in words[1:])
            is_fit = is_fit and is_one and (is_named or (is_lower and len(words) <= 2))
        case "name" | "title":
            is_fit = words[0].lower() not in _NO_NAME and len(words) <= 4 and not _NO_THING.match(value)
            is_capital = words[0][:1].isupper() and words[-1][:1].isupper()
            is_fit = is_fit and (is_capital or (telling.shape == "name" and is_lower and len(words) == 1))
        case "thing":
            is_fit = not _NO_THING.match(value) and len(words) <= THING_WORDS and "," not in value
        case "date":
            return _birthday(value)
        case "number":
            is_fit = bool(re.search(r"\d", value))
        case "free":
            is_fit = True
    return entity_key(value) if is_fit else None


def _is_fit_unspaced(telling: FactPattern, value: str) -> bool:
    if telling.shape in ("name", "title"):
        return len(value) <= 8 and not NO_UNSPACED_NAME.search(value)
    return not NO_UNSPACED.search(value) and not (telling.shape == "place" and NO_UNSPACED_PLACE.search(value))


def _birthday(value: str) -> str | None:
    """A day of the year however it is written, as it is compared: ``3.5`` or ``3.5.1990``; None where it is none."""
    if (eastern := _EASTERN_DAY.fullmatch(value)) is not None:
        value = f"{int(eastern['day'])} {MONTHS[min(int(eastern['month']), 12) - 1]} {eastern['year'] or ''}"
    words = [_english(word) for word in re.sub(r"[.,]", " ", value).split()]
    phrase = Phrase([word for word in words if word not in ("de", "den", "der", "of", "the")])
    found = phrase.month_day()
    if found is None:
        return None
    year = phrase.match(_YEAR)
    return f"{found[1]}.{found[0]}" + (f".{year[0]}" if year else "") if phrase.is_done else None


def _since(when: str | None, now: datetime, zone: ZoneInfo) -> tuple[datetime | None, Grain]:
    """Since when it is so, and how exactly that is known; None where it was not said, or not in words that are read."""
    words = [_english(word) for word in (when or "").strip(" ,").split()]
    text = " ".join(word for word in words if word not in ("de", "do", "mês", "mes", "du"))
    period = read(text.removeprefix("since "), now, zone) if text else None
    if period is None:
        return None, "day"
    start, end = period
    length = (end or start + timedelta(days=1)) - start
    if length >= timedelta(days=360):
        return start, "year"
    return start, "month" if length >= timedelta(days=28) else "day"


def _english(word: str) -> str:
    return _ABROAD.get(word.casefold(), word)


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:]
