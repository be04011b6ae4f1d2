"""Finds the part of a person's message that they pasted or may have pasted.

`core/text/data/pastes.toml` contains the phrases that introduce a paste, and the words with which
people refer to themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from core.text.normalize import is_unspaced, language_data

# A longer first paragraph counts as pasted.
TYPED_CHARS = 600
# A text is searched for the beginning of a paste only up to the length of typed texts.
_MAX_SEARCHED_CHARS = TYPED_CHARS + 100
_MAX_SEARCHED_LINES = 100
_MAX_SEARCHED_COLONS = 50
# A blank line, or the line that opens a code block.
_PASTE_START = re.compile(r"\n[^\S\n]*\n|^[^\S\n]{0,3}(?:```|~~~)", re.MULTILINE)
# A line that begins with a sign of a quotation, also with its wide form or a drawn line.
QUOTED_LINE = re.compile(r"^[^\S\n]*[>\u00bb|\uff1e\u276f\uff5c\u2502\u2503][^\n]*$", re.MULTILINE)
# A quotation in any of the usual marks, including those of emphasis. An apostrophe isn't a mark.
QUOTATION = re.compile(
    r"\u201c[^\u201d\n]*\u201d|[\"\uff02][^\"\uff02\n]*[\"\uff02]"
    r"|\u201e[^\u201c\u201d\n]*[\u201c\u201d]|\u00ab[^\u00bb\n]*\u00bb|\u00bb[^\u00ab\n]*\u00ab"
    r"|\u2039[^\u203a\n]*\u203a|\u203a[^\u2039\n]*\u2039|\u300c[^\u300d\n]*\u300d"
    r"|\u300e[^\u300f\n]*\u300f|\u300a[^\u300b\n]*\u300b|\u3008[^\u3009\n]*\u3009"
    r"|``[^`'\n]*''|`[^`\n]+`|(?<![\w*])\*[^*\n]+\*(?![\w*])"
    r"|(?<!\w)['\u2018\u201a][^'\u2018\u201a\u2019\n]+"
    r"(?:['\u2019](?=\w)[^'\u2018\u201a\u2019\n]+)*['\u2018\u2019](?!\w)"
)
_LINE_BREAK = re.compile(r"\n\s*")
_LINE = re.compile(r"[^\n]+")
# Notes below a heading have lines of at most this length, and the items of a list are shorter.
MAX_NOTE_CHARS = 90
MAX_ITEM_CHARS = 50
# The number of messages that show a person's style, and how much the share of lines with a trait
# may differ.
MIN_STYLE_MESSAGES = 3
MAX_STYLE_DIFFERENCE = 0.35


def find_paste(text: str) -> int:
    """Return the position at which the pasted part of a message begins, or the message's length.

    A text that is too long to count as typed is searched only up to that length. A text with more
    quoted lines or colons than people type counts as pasted as a whole.
    """
    paste = _PASTE_START.search(text)
    if paste is not None and _asks_about(text[: paste.start()], text[paste.end() :]):
        return 0
    searched = text if paste is None else text[: paste.start()]
    end = len(searched)
    if end > _MAX_SEARCHED_CHARS:
        searched, end = _limit_search(searched)
    # An introduction needs a colon, so other texts skip the slower search.
    if ":" in searched or "\uff1a" in searched:
        end = _find_end_of_lead(searched, end)
    if "\n" in searched:
        end = _find_pasted_lines(searched, text, end)
    return end


def _asks_about(text: str, last: str) -> bool:
    """Return whether a last line only asks about the text above it, such as "is this a scam?"."""
    line = _fold_apostrophes(last.strip())
    if not line or "\n" in line or _count_words(line) > _MAX_LABELLED_WORDS:
        return False
    return _matches_paste_pattern("abouts", line) and not _matches_paste_pattern(
        "alone", _fold_apostrophes(text)
    )


def _speaks_for_sender(text: str) -> bool:
    """Return whether a folded text refers to its sender ("I", "my") or asks for something."""
    tables = ("first_person", "speaking", "requests", "asking", "greetings")
    return any(_matches_paste_pattern(table, text) for table in tables)


def _limit_search(text: str) -> tuple[str, int]:
    """Return the part of a long text to search, and where a paste begins if the search finds none.

    Quoted lines never count as typed, so their number is limited, not their length.
    """
    typed_chars = start = 0
    for _ in range(_MAX_SEARCHED_LINES):
        line_end = text.find("\n", start)
        line = text[start:] if line_end < 0 else text[start:line_end]
        if QUOTED_LINE.match(line) is None:
            content = line.strip()
            searched_chars = _MAX_SEARCHED_CHARS - typed_chars
            if len(content) > searched_chars:
                return text[: start + line.index(content) + searched_chars], len(text)
            typed_chars += len(content)
        if line_end < 0:
            return text, len(text)
        start = line_end + 1
    return "", 0


def _find_end_of_lead(text: str, end: int) -> int:
    """Return the position after an introduction such as "my friend sent me:", or `end`."""
    for number, colon in enumerate(_COLON.finditer(text)):
        line = _read_line_end(text, colon.start())
        sentence = _SENTENCE.split(_fold_apostrophes(line))[-1]
        if _matches_paste_pattern("leads", sentence) and not _matches_paste_pattern(
            "requests", sentence
        ):
            return colon.end()
        if number == _MAX_SEARCHED_COLONS:
            return 0
    return end


def _find_pasted_lines(searched: str, text: str, end: int) -> int:
    """Return the position before the first line that looks pasted, or `end`.

    `text` begins with `searched`. The text below a line is checked up to `end`, but not much
    further than typed texts are long.
    """
    for line_break in _LINE_BREAK.finditer(searched[:end]):
        above = _read_line_end(text, line_break.start()).strip()
        below = text[line_break.end() : min(line_break.end() + _MAX_SEARCHED_CHARS, end)]
        if below.startswith(("[attached ", ">")) or above.startswith((">", "[attached ")):
            continue
        if _is_pasted_below(_fold_apostrophes(above), _fold_apostrophes(below)):
            return line_break.start()
    return end


def _read_line_end(text: str, end: int) -> str:
    """Return the part of a line before a position, without the beginning of a very long line."""
    return text[max(text.rfind("\n", 0, end) + 1, end - _MAX_SEARCHED_CHARS) : end]


def _is_pasted_below(above: str, below: str) -> bool:
    """Return whether the text below a line looks pasted, not typed together with it."""
    if re.match(r"https?://|[\"“„«「『]", below) or _matches_paste_pattern(
        "openings", below, is_start=True
    ):
        return True
    if _matches_paste_pattern("requests", above):
        return False
    has_lead = above.endswith((":", "\uff1a")) and _matches_paste_pattern("leads", above)
    if has_lead or _matches_paste_pattern("abouts", above):
        return True
    is_question = above.endswith(("?", "\uff1f", "\u5417", "\u5462")) or _OR_NOT.search(above)
    return bool(is_question) and not _matches_paste_pattern("first_person", below)


def find_doubt(text: str, sender_name: str = "") -> int:
    """Return the position at which text begins that may be pasted, or the text's length.

    `text` is a message up to its paste. A text that names its author may be pasted as a whole,
    unless the sender has this name. A text after a request to work on it ("Fix the spelling:") may
    also be pasted.

    Lines count as typed if the sender refers to themselves or asks for something in the first line,
    and continues below. Below a heading, such as "Ferry rules", they count as typed only if they
    look like the sender's own notes or list. Lines that address the reader like a letter may be
    pasted.
    """
    if shows_author(text, sender_name) or _is_edited_prose(text):
        return 0
    speaker = _find_other_speaker(text[: 2 * _MAX_SEARCHED_CHARS], sender_name)
    if speaker is not None:
        return speaker
    entries = _find_entries(text[: 2 * _MAX_SEARCHED_CHARS], sender_name)
    if entries is not None:
        return entries
    for sign in _SIGN_BEFORE_TEXT.finditer(text[:_MAX_SEARCHED_CHARS]):
        if _introduces(text[: sign.start()], text[sign.end() :], sign[0].strip()):
            return sign.end()
    lines = _list_lines(text[: 2 * _MAX_SEARCHED_CHARS])
    if len(lines) < 2:
        return len(text)
    is_task = len(lines) > 2 and _is_task(lines[0])
    if is_task or not _is_own_message(lines):
        return lines[0].end
    for above, line in pairwise(lines):
        if _matches_paste_pattern("addressed", line.text):
            return above.end
    return len(text)


def shows_author(text: str, sender_name: str = "") -> bool:
    """Return whether a text names an author other than the sender.

    It begins like a line of a chat log or a mail ("[12:03] Eve: …"), or ends with a signature.
    """
    text = text.strip()
    start, end = text[:_MAX_SEARCHED_CHARS], text[-_MAX_SIGNATURE_CHARS:]
    if _ADDRESS_IN_BRACKETS.search(start) or _LOG_START.match(start) or _PHONE_START.match(start):
        return True
    stamp = _NAME_AND_TIME.match(start)
    if stamp is not None and _is_log_entry(stamp["minutes"], start[stamp.end() :]):
        return True
    label = _LABEL.match(start)
    if label is not None and _is_author(label["name"], start[label.end() :], sender_name):
        return True
    signature = _SIGNATURE.search(end) or _closing_pattern().search(end)
    if signature is None or _count_words(text[: -len(signature[0])]) < _MIN_SIGNED_WORDS:
        return False
    name = signature["name"] or ""
    return not _is_sender(name, sender_name) and not _matches_paste_pattern(
        "greetings", name.casefold()
    )


def _is_edited_prose(text: str) -> bool:
    """Return whether a line is long, written like a letter or an article, and about others.

    People who type such a line nearly always refer to themselves or ask for something.
    """
    text = text.strip()
    folded = _fold_apostrophes(text[:_MAX_SEARCHED_CHARS])
    if "\n" in text or not _PROSE.match(text) or _speaks_for_sender(folded):
        return False
    words = _count_words(text)
    if any(map(is_unspaced, text)) or words < _MIN_PROSE_WORDS:
        return words >= _MIN_ADDRESSED_WORDS and _matches_paste_pattern("addressed", folded)
    return True


def _find_entries(text: str, sender_name: str) -> int | None:
    """Return the position of the first line from a chat, a log or a program, or None."""
    labels: list[int] = []
    code: list[int] = []
    is_said = False
    for match in _LINE.finditer(text):
        line = match[0].strip()
        if match.start() and (_LOG_START.match(line) or _LOG_TIME.match(line)):
            return match.start() - 1
        if _CODE.search(match[0]):
            code.append(match.start())
        label = _LABEL.match(line)
        if label is not None and not _is_own_label(label["name"], sender_name):
            labels.append(match.start())
            is_said = is_said or _count_words(line[label.end() :]) >= _MIN_SIGNED_WORDS
    if len(labels) > 1 and is_said:
        return max(0, labels[0] - 1)
    return max(0, code[0] - 1) if len(code) > 1 else None


def _find_other_speaker(text: str, sender_name: str) -> int | None:
    """Return the position before the first line in which another person speaks, or None.

    Such a line has a name before a colon, and then a request, words such as "I" and "my", or a
    whole statement. A line such as "Ben: allergic to nuts" is the sender's note about Ben.
    """
    for line in _LINE.finditer(text):
        label = _SPEAKER.match(line[0])
        if label is None or not all(map(_begins_name, label["name"].split())):
            continue
        words = _fold_apostrophes(line[0][label.end() :].strip())
        speaks = _speaks_for_sender(words) or _matches_paste_pattern("states", words)
        if speaks and not _is_own_label(label["name"], sender_name):
            return max(0, line.start() - 1)
    return None


def _begins_name(word: str) -> bool:
    """Return whether a word may be a name: "@ben", or a word without a small first letter."""
    if any(map(is_unspaced, word)):
        return len(word) <= _MAX_UNSPACED_NAME_CHARS
    return word.startswith("@") or not word[0].islower()


def _is_own_label(label: str, sender_name: str) -> bool:
    """Return whether a word before a colon is the sender's name or a usual label of notes."""
    folded = _fold_apostrophes(label)
    tables = ("requests", "asking", "greetings", "lists", "labels")
    return _is_sender(label, sender_name) or any(
        _matches_paste_pattern(table, folded) for table in tables
    )


def _is_log_entry(minutes: str, text_after: str) -> bool:
    """Return whether a text after a name and a time is a message and not an appointment.

    Appointments are at multiples of five minutes, and are rarely followed by a sentence.
    """
    folded = _fold_apostrophes(text_after)
    if _count_words(text_after) < _MIN_SIGNED_WORDS or _matches_paste_pattern("requests", folded):
        return False
    begins_sentence = text_after[:2].istitle() and text_after[1:2].isalpha()
    return int(minutes) % 5 != 0 or (
        begins_sentence and _count_words(text_after) > _MAX_LABELLED_WORDS
    )


def _is_author(label: str, text_after: str, sender_name: str) -> bool:
    """Return whether a word before a colon seems to name the author of the text after it."""
    if _is_own_label(label, sender_name):
        return False
    words = _count_words(text_after)
    return words > _MAX_LABELLED_WORDS or (words >= _MIN_SIGNED_WORDS and text_after[:1].isupper())


def _is_sender(name: str, sender_name: str) -> bool:
    """Return whether a name, such as "Ana", is the sender's name or a part of it."""
    words = set(name.casefold().split())
    return bool(words) and words <= set(sender_name.casefold().split())


def _count_words(text: str) -> int:
    """Return the number of words. Two characters of a script without spaces count as one word."""
    unspaced = sum(is_unspaced(character) for character in text)
    return len(text.split()) + unspaced // 2


def _introduces(before: str, after: str, sign: str) -> bool:
    """Return whether the words before a colon or a dash introduce text by another person."""
    words = _SENTENCE.split(_fold_apostrophes(before))[-1]
    if sign in ":\uff1a":
        return _refers_to_text_below(words)
    is_heading = "'" not in words and _count_words(before) <= _MAX_SOURCE_WORDS
    is_source = _matches_paste_pattern("leads", words) and not _matches_paste_pattern(
        "requests", words
    )
    is_own = _matches_paste_pattern("first_person", words)
    return is_heading and is_source and not is_own and _count_words(after) > _MAX_LABELLED_WORDS


def _refers_to_text_below(above: str) -> bool:
    """Return whether a line refers to the text below it, or asks to work on that text."""
    return _matches_paste_pattern("pointers", above) and not _matches_paste_pattern(
        "requests", above
    )


@dataclass(frozen=True, slots=True)
class _Line:
    """A line in lower case, and the position of its end in the text."""

    text: str
    end: int

    @property
    def is_own(self) -> bool:
        """Whether the sender refers to themselves in the line."""
        is_speaker = _matches_paste_pattern("first_person", self.text) or _matches_paste_pattern(
            "speaking", self.text
        )
        return is_speaker or _matches_paste_pattern("elliptic", self.text, is_start=True)

    @property
    def is_sentence(self) -> bool:
        return _ends_sentence(self.text)


def has_style_of(text: str, samples: Sequence[str]) -> bool:
    """Return whether a text is written in the style of a person's other messages.

    Its lines begin with capitals and end with full stops about as often, and they aren't longer.
    The result is False if there are too few messages to show the person's style.
    """
    if len(samples) < MIN_STYLE_MESSAGES:
        return False
    lines = _split_lines(text)
    sample_lines = [line for sample in samples for line in _split_lines(sample)]
    longest = max((_measure_width(line) for line in sample_lines), default=0)
    if any(_measure_width(line) > longest for line in lines):
        return False
    for trait in (lambda line: line[0].isupper(), _ends_sentence):
        share = _share_with_trait(lines, trait)
        sample_share = _share_with_trait(sample_lines, trait)
        if abs(share - sample_share) > MAX_STYLE_DIFFERENCE:
            return False
    return True


def _split_lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _share_with_trait(lines: Sequence[str], trait: Callable[[str], bool]) -> float:
    """Return the share of lines for which `trait` is true."""
    return sum(map(trait, lines)) / max(1, len(lines))


def _ends_sentence(line: str) -> bool:
    return line.endswith((".", "!", "?", "\u3002", "\uff01", "\uff1f"))


def _list_lines(text: str) -> list[_Line]:
    """Return the lines that aren't empty, quoted, or names of attachments."""
    lines: list[_Line] = []
    for match in _LINE.finditer(text):
        line = match[0].strip()
        if line and QUOTED_LINE.match(line) is None and not line.startswith("[attached "):
            lines.append(_Line(_fold_apostrophes(line), match.end()))
    return lines


def _is_own_message(lines: Sequence[_Line]) -> bool:
    """Return whether the sender seems to have typed all lines of a message."""
    head, *below = lines
    if all(_matches_paste_pattern("greetings", line.text) for line in below):
        return True
    if _matches_paste_pattern("greetings", head.text):
        if any(line.is_own or _matches_paste_pattern("asking", line.text) for line in below):
            return True
        return len(below) > 1 and not any(line.is_sentence for line in below)
    if head.is_own or _matches_paste_pattern("asking", head.text):
        return _is_continued(head, below)
    if head.is_sentence:
        is_own_below = any(line.is_own for line in below)
        return is_own_below and (len(below) > 1 or _continues(below[0]))
    return _are_own_notes(head, below)


def _is_task(head: _Line) -> bool:
    """Return whether a short line asks to work on the text below it, such as "shorten"."""
    if head.is_own or head.is_sentence or head.text.endswith("\u4e86"):
        return False
    return _count_words(head.text) <= _MAX_HEADING_WORDS and _refers_to_text_below(head.text)


def _is_continued(head: _Line, below: Sequence[_Line]) -> bool:
    """Return whether the lines below the sender's own line continue that line.

    A single line below words that refer to it, or below very few words, may be pasted.
    """
    if _refers_to_text_below(head.text):
        return False
    line = below[0]
    if len(below) > 1 or _continues(line) or _matches_paste_pattern("greetings", line.text):
        return True
    if head.is_sentence or line.is_sentence:
        return line.is_own and head.is_sentence
    if _matches_paste_pattern("requests", head.text):
        return line.is_own or _measure_width(line.text) <= MAX_NOTE_CHARS
    if _count_words(head.text) <= _MAX_HEADING_WORDS and _count_words(line.text) > 5:
        return False
    return line.is_own or _is_list([line])


def _are_own_notes(head: _Line, below: Sequence[_Line]) -> bool:
    """Return whether the lines below a heading look like the sender's own notes or list."""
    if len(below) < 2 or any(_measure_width(line.text) > MAX_NOTE_CHARS for line in below):
        return False
    if 2 * sum(line.is_sentence for line in below) > len(below):
        return False
    if any(line.is_own or _continues(line) for line in below):
        return True
    return (
        len(below) > 1
        and _is_list(below)
        and (is_unspaced(head.text[-1]) or _matches_paste_pattern("lists", head.text))
    )


def _continues(line: _Line) -> bool:
    """Return whether a line continues the one above it, such as "He thinks so, too"."""
    return _matches_paste_pattern("continuations", line.text, is_start=True)


def _is_list(lines: Sequence[_Line]) -> bool:
    """Return whether the lines are short items that don't state rules."""
    return not any(
        _measure_width(line.text) > MAX_ITEM_CHARS or _matches_paste_pattern("rules", line.text)
        for line in lines
    )


def _measure_width(text: str) -> int:
    """Return the number of characters. Characters of scripts without spaces count twice."""
    return len(text) + sum(character >= "\u2e80" for character in text)


# A name: one to three capitalised words, or a short word of a script without capitals.
_WORD = r"[A-Z\u00c0-\u00de\u0100-\u017d\u0410-\u042f\u0401][^\W\d_]{0,14}"
_NAME = rf"(?:{_WORD}\.?(?: {_WORD}){{0,2}}|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{{2,4}})"
_CLOCK = r"\d{1,2}[:.]\d{2}(?::\d{2})?(?:\s?[ap]m)?"
_STAMP = rf"(?:\d{{1,4}}[./-]\d{{1,2}}[./-]?\d{{0,4}},?\s*)?{_CLOCK}"
_IN_BRACKETS = r"\([^()\n]*\)"
_LOG_START = re.compile(
    # "[12:03] Eve: …" and "29.11.26, 12:03 - Eve: …"
    rf"[\[(]?{_STAMP}[\])]?\s*[-\u2013]?\s*{_NAME}\s*[:\uff1a]"
    # "Eve, [29.11.26 12:03] …"
    rf"|{_NAME}\s*(?:{_IN_BRACKETS}|,)?\s*[\[(]{_STAMP}[\])]"
    # "Eve (+351 912 345 678) 12:03: …"
    rf"|{_NAME}\s*(?:{_IN_BRACKETS}|,)?\s*{_CLOCK}\s*[:\uff1a]"
)
_NAME_AND_TIME = re.compile(rf"{_NAME}\s+\d{{1,2}}[:.](?P<minutes>\d{{2}})\s+")
_ADDRESS_IN_BRACKETS = re.compile(r"<[^<>\s]+@[^<>\s]+>")
_PHONE_START = re.compile(r"[^\n:\d]{0,20}\+?\d[\d ()/-]{6,}\s*[:\uff1a]")
_LABEL = re.compile(rf"(?P<name>{_NAME})\s?[:\uff1a](?!\s*(?://|\{{))\s*")
_SPEAKER = re.compile(
    r"\W{0,3}?(?P<name>@?[^\W\d_][\w.'\u2019-]{0,24}(?: [^\W\d_][\w.'\u2019-]{0,24}){0,2})"
    r"(?<!\d)\s?[:\uff1a](?!//|\s*\{)"
)
_MAX_UNSPACED_NAME_CHARS = 4
# Programs write the seconds of a time.
_LOG_TIME = re.compile(r"\W{0,2}(?:\w{1,6}\W{0,3})?\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}")
# A question such as "is it expensive or not", in Chinese.
_OR_NOT = re.compile("(.)\u4e0d\\1$")
_CODE = re.compile(
    r"^\w+ (?:ERR|ERROR|WARN)\b|^Traceback |^\s*File \"|"
    r"[;{}]\s*$|=>|[=!+*]=|\w\(.*\)\s*[:;{]?\s*(?:[#/]{1,2}\s.*)?$|^\s+(?:return|if|for)\b"
    r"|^\s*(?://|#|--)\s|^\s*(?:def|for|while|class|import|SELECT|FROM|WHERE)\s[^.!?]*$"
)
# A line that begins with a capital and ends like a sentence, without a question.
_PROSE = re.compile(r"[\W\d]{0,3}[^\W\d_a-z][^?\uff1f]*[.!\u3002\uff01][\"')\u201d\u300d]?$")
# "… - Eve", "…. (Eve)" and "…. Best regards, Eve"
_SIGNATURE = re.compile(
    rf"(?:\s*[-\u2013\u2014~]\s*|[.!?\u3002]\s*\(|[.!?\u3002]\s+[^\W\d][^\n.,!?]{{1,30}}, ?)"
    rf"(?P<name>{_NAME})[).]?$"
)
_MAX_SIGNATURE_CHARS = 80
# A shorter text is probably a note, such as "Ben: call him back", and not Ben's message.
_MIN_SIGNED_WORDS = 4
# A text after one of the sender's own labels has at most this many words.
_MAX_LABELLED_WORDS = 7
# Words before a dash that name the source of the text ("from the group chat - …").
_MAX_SOURCE_WORDS = 6
# A shorter line may be a fact about another person that the sender reports.
_MIN_PROSE_WORDS = 18
# The minimum for a line that addresses a reader.
_MIN_ADDRESSED_WORDS = 10
# A line of at most this many words is a heading.
_MAX_HEADING_WORDS = 3

_COLON = re.compile(r"[:\uff1a](?=\s*\S)(?!//)(?!\d\d)")
_SIGN_BEFORE_TEXT = re.compile(rf"{_COLON.pattern}|\s[-\u2013\u2014]\s")
_SENTENCE = re.compile(r"[.!?;\n\u3002\uff01\uff1f]\s*")


def _fold_apostrophes(text: str) -> str:
    return text.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")


def _matches_paste_pattern(table: str, text: str, *, is_start: bool = False) -> bool:
    """Return whether a text in lower case contains a pattern of pastes.toml.

    With `is_start`, the text must begin with the pattern.
    """
    pattern = _paste_pattern(table)
    match = pattern.match(text) if is_start else pattern.search(text)
    return match is not None


@cache
def _paste_pattern(table: str) -> re.Pattern[str]:
    patterns = language_data("pastes")[table].values()
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.MULTILINE)


@cache
def _closing_pattern() -> re.Pattern[str]:
    """Return a pattern for the closing of a letter, such as "best regards", at the end."""
    closings = "|".join(
        f"(?:{pattern})" for pattern in language_data("pastes")["closings"].values()
    )
    return re.compile(
        rf"(?:^|[.!?,;\n\u3002\uff0c])\s*(?i:{closings})[,\s\uff0c\u3001]*(?P<name>{_NAME})?\W*$"
    )
