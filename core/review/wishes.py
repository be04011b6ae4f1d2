"""Finds the clauses in which a person asks for a change.

A wish is one clause that a person typed, in their language or in English: an imperative, a request
or a plain statement that something is over. A whole clause must have the form of a wish
(`data/wishes.toml` lists the forms as frames), so that "I deleted it" or "Ana says delete it" is
none. Sentences with hearsay or a condition, sentences that are taken back, questions about
something else, and lines below a text without a wish don't count either. `core/review/naming.py`
finds out which item a wish names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from core.review.negation import list_refusals, to_plain_pattern
from core.text.languages import latin_stop_words, script_stop_words
from core.text.normalize import fold, is_unspaced, language_data, plain_with_offsets, words_of
from core.text.terms import stop_words, word_terms
from core.types import Effect

LANGUAGES = ("en", "de", "es", "fr", "pt", "ru", "zh", "ja", "ko", "tr")
UNSPACED_LANGUAGES = frozenset({"zh", "ja"})
MAX_LINES = 20
"""A wish stands in one of the first lines of a message."""
MAX_SENTENCE_CHARS = 300
"""A longer sentence is no wish."""
MAX_NAME_WORDS = 3
"""A signature has at most this many words."""
MAX_LEADS = 6
MAX_TAILS = 3
"""At most this many polite words may come before and after a frame, so that matching is fast."""
MIN_VERB_LETTERS = 6
"""A form of a verb with fewer letters may be another word."""
MAX_SHORT_CHARS = 40
"""A sentence of at most this length may name somebody else who has the wish next to it."""

# The tables of frames that show the wish for an effect.
_TABLES = {
    Effect.CHANGE: ("change", "remove"),
    Effect.WEAKEN: ("weaken", "remove", "stated", "doubt", "denied"),
    Effect.REMOVE: ("remove", "stated"),
    Effect.PLAN: ("plan", "resume"),
}
# The tables of frames by which something ends.
_END_TABLES = frozenset({"remove", "weaken", "stated"})
# Tables with parts of Korean words, which have endings.
_KOREAN_PARTS = frozenset({"hearsay", "request", "denial", "ends", "pauses"})
_ALL_TABLES = ("remove", "weaken", "stated", "doubt", "change", "plan", "resume")
_NAMES = {"german": "de", "spanish": "es", "french": "fr", "portuguese": "pt", "turkish": "tr"}
_SCRIPTS = (
    ("ko", re.compile("[\uac00-\ud7a3]")),
    ("ja", re.compile("[\u3041-\u30ff]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
    ("ru", re.compile("[\u0400-\u052f]")),
)
_LATIN = frozenset({"en", "de", "es", "fr", "pt", "tr"})
# Letters that only one language has.
_LETTERS = {
    "de": "\u00df\u00e4",
    "es": "\u00f1\u00bf\u00a1",
    "fr": "\u0153\u00e8\u00f9\u00eb",
    "pt": "\u00e3\u00f5",
    "tr": "\u011f\u015f\u0131",
}
# Languages that can't be told apart in short texts.
_RELATED = frozenset({"es", "pt"})
_SENTENCE_END = re.compile(
    r"(?<=[.!?\u2026])(?<!\b[A-Z][a-z]\.)(?<!\b[A-Z]\.)(?<!\b[A-Z][a-z]{2}\.)\s+"
    r"|(?<=[\u3002\uff01\uff1f])"
)
_CLAUSE_END = re.compile(
    r"(?<!\d)[,:](?!\d)|[,:]\s|[;()\u2013\u2014\uff0c\uff1a\uff1b\u3001\u201d\u2026]|\s-\s"
)
_QUOTATION = re.compile(
    '\u201c[^\u201d]*\u201d|"[^"]*"|\u201e[^\u201c\u201d]*[\u201c\u201d]|\u00ab[^\u00bb]*\u00bb'
    "|\u300c[^\u300d]*\u300d|\u300e[^\u300f]*\u300f"
)
# This sign replaces a quotation, because its words aren't the person's own.
_MASK = "\u00a7"
_NOT_A_WORD = re.compile(rf"[^\w'{_MASK}]+")
# Numbers in a list stay in one clause.
_NUMBER_LIST = re.compile(
    r"(\d)(?:\s*,\s*|\s+(?:and|und|y|et|e|\u0438|ve)\s+|\s*[\u3001\u548c\u3068]\s*)(?=\d)"
)
# An item of a list, which is rarely typed as a request.
_BULLET = re.compile(r"\s*(?:[-*\u2022\u2013\u2014>]|\d+[.)])\s")
# A comma before "that", as in "vergiss, dass …".
_SUBORDINATE = re.compile(
    r",(?=\s+(?:dass|da\u00df|was|wer|wie|wo|that|what|who|where|\u0447\u0442\u043e|\u043a\u0430\u043a|\u0433\u0434\u0435|\u043a\u0442\u043e)\b)"
)
# The verbs of a frame that consists of verbs and a thing.
_VERB_FRAME = re.compile(r"^\(([^()*]+)\) ?\*$|\(([^()*]+)\)(?:\([^()*]*\)\??)*$")
# A colon right behind the verb: "fix: the boat is green".
_VERB_WITH_COLON = re.compile(r"^\s*(\w+(?:\s+\w+)?)\s*[:\uff1a](?=\s)")


@dataclass(frozen=True, slots=True)
class Wish:
    """A clause that asks for a change."""

    # The words that name the thing, in lower case and without accents.
    object: str
    # The table of its frame.
    table: str
    # The language of its frame.
    language: str
    # Whether the words come before the verb, so that one of them may be its subject.
    is_object_first: bool
    # The sentence, as typed.
    sentence: str
    # A later day that comes first or last. It names the thing, or the wish isn't for now.
    later: str = ""


def find_wishes(
    messages: Sequence[str], effect: Effect, questions: Sequence[str] = ()
) -> list[Wish]:
    """Return the wishes for an effect in typed messages.

    `questions` are questions of the assistant to which the person said yes.
    """
    tables = _TABLES.get(effect, ())
    wishes: list[Wish] = []
    for message in messages:
        wishes += _find_in_message(message, tables, effect)
    for question in questions:
        languages = find_languages(question)
        if _offers_more(question, languages):
            continue
        wishes += _find_in_sentence(question, tables, languages, effect, is_offer=True)
    return wishes


def _offers_more(question: str, languages: frozenset[str]) -> bool:
    """Return True if a question offers two deeds, because a yes doesn't say which is meant."""
    text = _mask_quotations(question)[0]
    clauses = [clause for clause, _ in split_clauses(text, languages)]
    return sum(not _is_lead(clause, languages) for clause in clauses) > 1


def _find_in_message(message: str, tables: Sequence[str], effect: Effect) -> list[Wish]:
    """Return the wishes in a message, up to the first line that asks for nothing.

    The lines after such a line may be another person's text.
    """
    languages = find_languages(message)
    wishes: list[Wish] = []
    lines = [line for line in message.splitlines() if line.strip()][:MAX_LINES]
    if len(lines) > 1 and _is_signature(lines[-1], languages):
        return []
    for line in lines:
        if _BULLET.match(line):
            break
        sentences = [part for part in _SENTENCE_END.split(line.strip()) if part.strip()]
        for index, sentence in enumerate(sentences):
            if not _is_doubtful(sentences, index, languages):
                wishes += _find_in_sentence(sentence, tables, languages, effect)
        if not all(_asks_or_greets(sentence, languages) for sentence in sentences):
            break
    return wishes


def may_hold_wish(message: str, effect: Effect) -> bool:
    """Return True if a message may hold a wish of the sender's own, as far as rules can tell.

    Hearsay, words that take a wish back, a condition, "don't delete", a question that asks the
    assistant for nothing, words before a colon that ask for nothing, and items of a list speak
    against it. A wish to remove or pause something needs a word such as "over" or "delete". What a
    language without a table says isn't known, so it holds none.
    """
    if _is_in_other_language(message):
        return False
    languages = find_languages(message)
    for line in message.splitlines():
        if _BULLET.match(line):
            return False
        for sentence in _SENTENCE_END.split(line.strip()):
            if _speaks_against(sentence, effect, languages):
                return False
    if effect not in (Effect.REMOVE, Effect.WEAKEN):
        return True
    plain = to_plain(_mask_quotations(message)[0])
    names = ("ends", "denial", "pauses") if effect is Effect.WEAKEN else ("ends", "denial")
    return any(_has_end(plain, language, names) for language in languages)


def _is_in_other_language(message: str) -> bool:
    """Return True if a message is probably in a language without a table.

    A text in Latin letters is, too, if it denies something, and contains no other common word.
    """
    plain = to_plain(message)
    if _other_words().search(plain) or _other_letters().search(message.casefold()):
        return True
    languages = find_languages(message)
    if not languages <= _LATIN or not _has_marker(plain, "denial", _LATIN):
        return False
    for language in _LATIN:
        plain = _marker(language, "denial").sub(" ", plain)
    is_known = any(_marker(language, "ends").search(plain) for language in languages)
    is_known = is_known or any(_verbs_to_end(language).search(plain) for language in languages)
    return not is_known and not any(_count_common_words(plain).values())


@cache
def _other_words() -> re.Pattern[str]:
    words = language_data("wishes", "core.review")["others"]["words"]
    return re.compile(rf"(?<!\w)(?:{to_plain_pattern(words)})(?!\w)")


@cache
def _other_letters() -> re.Pattern[str]:
    return re.compile(f"[{language_data('wishes', 'core.review')['others']['letters']}]")


def is_dictated(text: str, message: str) -> bool:
    """Return True if a message only says what to do with a text, such as "Write: met Ana today"."""
    lead, colon, rest = message.partition(":")
    if not colon or rest.strip() != text.strip() or not 0 < len(lead.split()) <= MAX_LEADS:
        return False
    return not _has_marker(to_plain(lead), "denial", find_languages(lead))


def _has_end(plain: str, language: str, names: Sequence[str]) -> bool:
    """Return True if a text as plain words says that something ends, or has a word of a table."""
    if any(_marker(language, name).search(plain) for name in names):
        return True
    text = plain.replace(" ", "") if language in UNSPACED_LANGUAGES else plain
    return _verbs_to_end(language).search(text) is not None


def _speaks_against(sentence: str, effect: Effect, languages: frozenset[str]) -> bool:
    plain = to_plain(_mask_quotations(sentence)[0])
    if _is_unmeant(plain, languages):
        return True
    is_question = sentence.rstrip().endswith(("?", "\uff1f"))
    if is_question and not _has_marker(plain, "request", languages):
        return True
    clauses = [clause for clause, _ in split_clauses(sentence, languages)]
    if list_refusals(clauses, effect, languages):
        return True
    if effect is Effect.PLAN:
        return False
    before, colon, _ = sentence.partition(":")
    if colon and not _asks_or_greets(before, languages):
        return True
    return _depends(plain, languages) or any(_forbids(clause, languages) for clause in clauses)


def _is_unmeant(plain: str, languages: frozenset[str]) -> bool:
    """Return True if a sentence says what somebody else wants, or takes its wish back."""
    return any(_has_marker(plain, name, languages) for name in ("hearsay", "retract"))


def _depends(plain: str, languages: frozenset[str]) -> bool:
    """Return True if a sentence asks for something only in some case, or not now."""
    return any(_has_marker(plain, name, languages) for name in ("condition", "not_now"))


def _forbids(clause: str, languages: frozenset[str]) -> bool:
    """Return True if a clause denies a verb by which people ask to remove or pause something."""
    return any(
        _marker(language, "denial").search(clause) and _verbs_to_end(language).search(clause)
        for language in languages
    )


@cache
def _list_verbs_to_end(language: str) -> frozenset[str]:
    """Return the verbs in frames such as "(delete|drop) *"."""
    data = language_data("wishes", "core.review")[language]
    verbs: set[str] = set()
    for frame in (*data["remove"], *data["weaken"]):
        match = _VERB_FRAME.search(to_plain_pattern(frame))
        if match:
            verbs |= {verb for verb in (match[1] or match[2]).split("|") if verb}
    return frozenset(verbs)


@cache
def _verbs_to_end(language: str) -> re.Pattern[str]:
    """Return a pattern of `_list_verbs_to_end`."""
    joined = "|".join(sorted(map(re.escape, _list_verbs_to_end(language)), key=len, reverse=True))
    if language == "tr":
        return re.compile(rf"(?<!\w)(?:{joined})")
    is_spaced = language not in UNSPACED_LANGUAGES and language != "ko"
    return re.compile(rf"(?<!\w)(?:{joined})(?!\w)" if is_spaced else f"(?:{joined})")


def is_against(message: str, names: Callable[[str], bool], known: str) -> bool:
    """Return True if a message keeps a thing, or is about a text ("her line about the swim").

    `names` says whether a clause has words of the thing, and `known` is the text of the thing,
    whose own words don't count. Two verbs to end something in a clause cancel each other.
    """
    languages = find_languages(message)
    has_verb = False
    for sentence in _SENTENCE_END.split(message):
        for clause, _ in split_clauses(_mask_quotations(sentence)[0], languages):
            verb_count = max(count_verbs_to_end(clause, known, code) for code in languages)
            if verb_count > 1 or _has_other(clause, "texts", known, languages):
                return True
            is_left_out = has_verb and _begins_with_denial(clause, languages)
            is_kept = is_left_out or _has_other(clause, "keeps", known, languages)
            if is_kept and names(clause):
                return True
            has_verb = has_verb or verb_count > 0
    return False


def _has_other(clause: str, name: str, known: str, languages: Iterable[str]) -> bool:
    """Return True if a clause has a word of a table that isn't in a known text."""
    known_words = to_plain(known)
    return any(
        match[0] not in known_words
        for language in languages
        for match in _marker(language, name).finditer(clause)
    )


def _begins_with_denial(clause: str, languages: Iterable[str]) -> bool:
    return any(_marker(language, "denial").match(clause) for language in languages)


def count_verbs_to_end(clause: str, known: str, language: str) -> int:
    """Return how many verbs to end something a clause has besides those of a known text."""
    known_words = to_plain(known)
    matches = [match[0] for match in _verbs_to_end(language).finditer(clause)]
    if language in UNSPACED_LANGUAGES or language in ("ko", "tr"):
        return len({verb for verb in matches if verb not in known_words})
    terms = _terms_to_end(language)
    return sum(
        not terms.isdisjoint(word_terms(word))
        for word in clause.split()
        if word not in known_words and (word in matches or len(word) >= MIN_VERB_LETTERS)
    )


@cache
def _terms_to_end(language: str) -> frozenset[str]:
    """Return the stems of the verbs by which people ask to remove or pause something."""
    verbs = _list_verbs_to_end(language)
    return frozenset(term for verb in verbs if " " not in verb for term in word_terms(verb))


def _is_signature(line: str, languages: frozenset[str]) -> bool:
    """Return True if the last line may be the name below a letter."""
    words = line.split()
    is_capitalized = all(word[0].isupper() for word in words)
    return len(words) <= MAX_NAME_WORDS and is_capitalized and not _asks_or_greets(line, languages)


def _is_doubtful(sentences: Sequence[str], index: int, languages: frozenset[str]) -> bool:
    """Return True if a sentence is another person's wish, or is taken back.

    A short sentence next to it may say whose wish it is. Only the next sentence can take it back.
    """
    neighbours = [
        *(sentences[max(0, index - 1) : index]),
        *(sentences[index + 1 : index + 2]),
    ]
    for neighbour in neighbours:
        plain = to_plain(neighbour)
        if len(plain) <= MAX_SHORT_CHARS and _has_marker(plain, "hearsay", languages):
            return True
    following = sentences[index + 1 : index + 2]
    return any(
        _has_marker(to_plain(sentence), name, languages)
        for sentence in following
        for name in ("retract", "not_now")
    )


def _asks_or_greets(sentence: str, languages: frozenset[str]) -> bool:
    """Return True if a sentence asks for something, or consists of polite words."""
    if _find_in_sentence(sentence, _ALL_TABLES, languages, None):
        return True
    return all(_is_lead(clause, languages) for clause, _ in split_clauses(sentence, languages))


def _find_in_sentence(
    sentence: str,
    tables: Sequence[str],
    languages: frozenset[str],
    effect: Effect | None,
    *,
    is_offer: bool = False,
) -> list[Wish]:
    """Return the wishes of a sentence, or none if it's hearsay, conditional or taken back."""
    if len(sentence) > MAX_SENTENCE_CHARS:
        return []
    masked, quotations = _mask_quotations(sentence)
    plain = to_plain(masked)
    if _is_unmeant(plain, languages) or (effect is not Effect.PLAN and _depends(plain, languages)):
        return []
    is_question = masked.rstrip().endswith(("?", "\uff1f")) and not is_offer
    wishes: list[Wish] = []
    is_own = True
    clauses = split_clauses(masked, languages)
    refusals = list_refusals([clause for clause, _ in clauses], effect, languages)
    for clause, is_after_colon in clauses:
        # Words after a colon may be a quotation, unless the words before it ask or greet.
        if is_after_colon and not is_own:
            break
        is_own = bool(_match(clause, _ALL_TABLES, languages, is_offer=is_offer))
        is_own = is_own or _is_lead(clause, languages)
        if is_question and not _has_marker(clause, "request", languages):
            continue
        if clause in refusals:
            continue
        for match in _match(clause, tables, languages, is_offer=is_offer):
            wishes.append(match.to_wish(_unmask(match.words, quotations), sentence))
    return wishes


def _mask_quotations(sentence: str) -> tuple[str, list[str]]:
    """Return a sentence with a sign for each quotation, and the quotations as plain words."""
    quotations = [to_plain(match[0]) for match in _QUOTATION.finditer(sentence)]
    return _QUOTATION.sub(f" {_MASK} ", sentence), quotations


def _unmask(words: str, quotations: Sequence[str]) -> str:
    """Return the words with the quotations in place of their signs."""
    for quotation in quotations:
        words = words.replace(_MASK, quotation, 1)
    return words


def split_clauses(sentence: str, languages: frozenset[str]) -> list[tuple[str, bool]]:
    """Return the clauses of a sentence as plain words, and whether a colon is before each."""
    text = _VERB_WITH_COLON.sub(r"\1 ", _NUMBER_LIST.sub(r"\1 ", sentence))
    text = _SUBORDINATE.sub(" ", text)
    clauses: list[tuple[str, bool]] = []
    is_after_colon = False
    start = 0
    ends = [*_CLAUSE_END.finditer(text), None]
    for end in ends:
        part = text[start : end.start() if end else len(text)]
        for number, piece in enumerate(_joint_pattern(languages).split(to_plain(part))):
            if piece.strip():
                clauses.append((piece.strip(), is_after_colon and number == 0))
        if end:
            is_after_colon = end[0].strip() in (":", "\uff1a")
            start = end.end()
    return clauses


def to_plain(text: str) -> str:
    """Return a text as words in lower case, without accents and punctuation."""
    plain = plain_with_offsets(fold(text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")))[0]
    return " ".join(_NOT_A_WORD.sub(" ", plain).split())


def _count_common_words(text: str) -> dict[str, int]:
    """Return for each language in Latin letters how many of its common words a text contains."""
    words = [word for word in words_of(text.casefold()) if len(word) > 1]
    counts = {"en": sum(word in stop_words() for word in words)}
    for name, language in _NAMES.items():
        known = sum(word in latin_stop_words(name) for word in words)
        letters = sum(letter in _LETTERS[language] for letter in text.casefold())
        counts[language] = known + letters
    return counts


def find_languages(text: str) -> frozenset[str]:
    """Return the languages that a text may be in. English is always among them.

    A text in Latin letters is in the languages with most of its common words, or one fewer. Without
    any such word, it may be in all of them.
    """
    for language, script in _SCRIPTS:
        if script.search(text):
            return frozenset({language, "en"})
    counts = _count_common_words(text)
    most = max(counts.values())
    if most == 0:
        return _LATIN
    languages = {language for language, count in counts.items() if count >= max(1, most - 1)}
    if not languages.isdisjoint(_RELATED):
        languages |= _RELATED
    return frozenset({*languages, "en"})


# --- Frames ---


@dataclass(frozen=True, slots=True)
class _Match:
    """A frame that fits a clause, and the words of the clause in place of the frame's stars."""

    table: str
    language: str
    words: str
    is_object_first: bool
    later: str

    def to_wish(self, words: str, sentence: str) -> Wish:
        return Wish(words, self.table, self.language, self.is_object_first, sentence, self.later)


def _match(
    clause: str, tables: Sequence[str], languages: Iterable[str], *, is_offer: bool
) -> list[_Match]:
    """Return for each language and table the first frame that fits a clause."""
    matches: list[_Match] = []
    for language in LANGUAGES:
        if language not in languages:
            continue
        text = clause.replace(" ", "") if language in UNSPACED_LANGUAGES else clause
        for table in tables:
            match = _match_table(text, table, language, is_offer=is_offer)
            if match is not None:
                matches.append(match)
    return matches


def _match_table(text: str, table: str, language: str, *, is_offer: bool) -> _Match | None:
    """Return the first frame of a table that fits a clause without its polite words."""
    bodies = _list_bodies(text, language, _lead_pattern(language, table == "plan", is_offer))
    for frame, is_object_first in _frames(language, table):
        for body in bodies:
            match = frame.fullmatch(body)
            if match is None:
                continue
            words = " ".join(filter(None, match.groups()))
            is_end = table in _END_TABLES
            if (is_end or is_object_first) and _has_marker(words, "denial", (language, "en")):
                continue
            later = (_find_later(text, language) or _find_later(words, language)) if is_end else ""
            return _Match(table, language, words, is_object_first, later)
    return None


def _find_later(text: str, language: str) -> str:
    """Return a later day that comes first or last, as in "tomorrow" but not "until tomorrow"."""
    match = _later_pattern(language).search(text)
    return (match["last"] or match["first"]) if match and match["until"] is None else ""


@cache
def _later_pattern(language: str) -> re.Pattern[str]:
    gap = _gap(language)
    data = language_data("wishes", "core.review")[language]
    later, until = ("|".join(map(to_plain_pattern, data[name])) for name in ("later", "until"))
    leads = _join_phrases(language, ("lead", "request"))
    polite = rf"(?:{gap}(?:{_join_phrases(language, ('tail',))})){{0,{MAX_TAILS}}}"
    edge = r"(?<!\w)" if gap else ""
    last = rf"{edge}(?P<until>(?:{until}){gap})?(?P<last>{later}){polite}$"
    first = rf"^(?:(?:{leads}){gap}){{0,{MAX_LEADS}}}(?P<first>{later}){gap and '(?= )'}"
    return re.compile(f"{last}|{first}")


def _list_bodies(text: str, language: str, leads: re.Pattern[str]) -> list[str]:
    """Return a clause without polite words at its ends, and then with more and more of them."""
    starts = [0]
    while len(starts) <= MAX_LEADS and (lead := leads.match(text, starts[-1])):
        starts.append(lead.end())
    tails = _tail_pattern(language)
    ends = [len(text)]
    while len(ends) <= MAX_TAILS and (tail := tails.search(text, 0, ends[-1])):
        ends.append(tail.start())
    return [text[start:end] for start in reversed(starts) for end in ends if start < end]


@cache
def _lead_pattern(language: str, has_time: bool, is_offer: bool) -> re.Pattern[str]:
    """Return a pattern of a polite word, and perhaps of a time, before a frame."""
    phrases = _join_phrases(language, ("lead", "request", *(("offer",) if is_offer else ())))
    if has_time:
        phrases = f"{phrases}|{_time_words(language)}"
    return re.compile(f"(?:{phrases}){_gap(language)}")


@cache
def _tail_pattern(language: str) -> re.Pattern[str]:
    return re.compile(f"{_gap(language)}(?:{_join_phrases(language, ('tail',))})$")


def _gap(language: str) -> str:
    return "" if language in UNSPACED_LANGUAGES else " "


@cache
def _frames(language: str, table: str) -> tuple[tuple[re.Pattern[str], bool], ...]:
    """Return the patterns of a table, and whether the object comes first in each."""
    patterns = []
    for frame in language_data("wishes", "core.review")[language][table]:
        body = to_plain_pattern(frame)
        if table == "plan" and body.endswith("*"):
            body = f"{body[:-2]}(?: *)?" if _gap(language) else f"{body[:-1]}(?:*)?"
        body = body.replace("(", "(?:").replace("(?:?:", "(?:").replace("*", "\0")
        body = _restore_repeats(body)
        body = body.replace("\0", "(.+?)" if not body.endswith("\0") else "(.+)")
        patterns.append((re.compile(body), frame.startswith("*")))
    return tuple(patterns)


def _restore_repeats(body: str) -> str:
    """Return a frame in which "word*" and ".*" are regular expressions again, not objects."""
    return body.replace("\\w\0", "\\w*").replace(".\0", ".*")


@cache
def _join_phrases(language: str, tables: tuple[str, ...]) -> str:
    data = language_data("wishes", "core.review")[language]
    phrases = {to_plain_pattern(phrase) for table in tables for phrase in data[table]}
    ordered = sorted(phrases, key=len, reverse=True)
    return "|".join(phrase.replace("(", "(?:").replace("(?:?:", "(?:") for phrase in ordered)


@cache
def _time_words(language: str) -> str:
    """Return a pattern that matches a word about time before a request to plan something."""
    if language in UNSPACED_LANGUAGES:
        return r"\d+|[\u4e00-\u9fff]{1,12}?(?=\u63d0\u9192|\u53eb|\u544a\u8bc9|\u901a\u77e5)"
    every = map(to_plain, language_data("wishes", "core.review")[language]["all"])
    known = sorted(filler_words(language).union(every), key=len, reverse=True)
    return "|".join([r"\d+\w*", *map(re.escape, known)])


@lru_cache(maxsize=2_000)
def _is_lead(clause: str, languages: frozenset[str]) -> bool:
    """Return True if a clause only leads to a request: "please", "could you", "thanks"."""
    for language in languages:
        gap = "" if language in UNSPACED_LANGUAGES else " "
        text = clause.replace(" ", "") if not gap else clause
        phrases = _join_phrases(language, ("lead", "request", "tail"))
        if re.fullmatch(rf"(?:(?:{phrases})(?:{gap}|$)){{1,{MAX_LEADS}}}", text):
            return True
    return False


@cache
def _joint_pattern(languages: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern of the words between two clauses, such as "and" and "then"."""
    joints = []
    for language in sorted(languages):
        words = language_data("wishes", "core.review")[language]["joint"]
        pattern = f"(?:{words})".replace("(?:?:", "(?:")
        joints.append(pattern if language in UNSPACED_LANGUAGES else rf"(?:^|\s){pattern}\s")
    return re.compile("|".join(joints))


def _has_marker(plain: str, name: str, languages: Iterable[str]) -> bool:
    """Return True if a text as plain words contains a marker of one of the languages."""
    return any(_marker(language, name).search(plain) is not None for language in languages)


@cache
def _marker(language: str, name: str) -> re.Pattern[str]:
    """Return a pattern of a language's words of one table, such as those for hearsay."""
    words = language_data("wishes", "core.review")[language][name]
    joined = "|".join(words) if isinstance(words, list) else words
    joined = to_plain_pattern(joined)
    is_spaced = language not in UNSPACED_LANGUAGES and not (
        language == "ko" and name in _KOREAN_PARTS
    )
    return re.compile(rf"(?<!\w)(?:{joined})(?!\w)" if is_spaced else joined)


@cache
def detail_words(language: str) -> frozenset[str]:
    """Return words that only name a thing together with other words, such as days of the week."""
    words = language_data("wishes", "core.review")[language]["filler"].split()
    return frozenset(filter(None, map(to_plain, words)))


@cache
def filler_words(language: str) -> frozenset[str]:
    """Return the words of a language that name no thing, such as articles, and `detail_words`."""
    forms = set(detail_words(language))
    for name, code in _NAMES.items():
        if code == language:
            forms |= {to_plain(word) for word in latin_stop_words(name)}
    if language == "ru":
        forms |= {to_plain(word) for word in script_stop_words()}
    if language == "en":
        forms |= {to_plain(word) for word in stop_words()}
    return frozenset(form for form in forms if form)


@cache
def _list_plain_words(table: str) -> frozenset[str]:
    """Return the words of all languages in a table of `wishes.toml`, without accents."""
    tables = language_data("wishes", "core.review")
    return frozenset(to_plain(word) for words in tables[table].values() for word in words)


def is_plain_yes(text: str) -> bool:
    """Return True if a text says "yes" in any language, perhaps with polite words, and no more."""
    if "?" in text or "\uff1f" in text:
        return False
    yes, polite = _list_plain_words("yes"), _list_plain_words("polite")
    words = to_plain(text).split()
    while words and words[-1] in polite and " ".join(words) not in yes:
        words = words[:-1]
    return " ".join(words) in yes or ("".join(words) in yes and is_unspaced(text))
