"""A language as lists of words: which ideas a sentence holds, and which of them make an order when they meet.

Attacks are worded anew each time, but what they are stays: somebody who is not the user tells the assistant to drop
its rules, become another, hide, give away or keep something. The ideas are those of the plot, the words of a language
only lead to them. Found by plain search for substrings, so that the time grows with the length and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import chain, pairwise, product

from core.guard.normalize import folded
from core.memory.lures.tongue import compiled

_SENTENCE = re.compile(r"(?<=[.!?\u061f])\s+|[\u3002\uff01\uff1f\n]")
_NO_WORD = re.compile(r"\W+")
_CHOICE = re.compile(r"\(([^()]*)\)")
_GAP_CHARS = 80
"""How much may stand where a phrase has three dots, with what follows."""

_KEY_CHARS = 9

_NEXT_WORD = 0
"""The reach of what must be the next word."""

_Rest = tuple[tuple[int, tuple[str, ...]], ...]
_Phrase = tuple[str, str, _Rest]
_Rule = tuple[str, frozenset[str], frozenset[str]]

_SHAPES = {
    "place": (
        r"(?:https?|ftp|hxxps?):|\bwww\.|\bt\.me/|(?<![a-z0-9_.+-])[a-z0-9_.+-]{0,64}@[a-z0-9_-]{2,63}|"
        r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])|"
        r"(?<![a-z0-9-])[a-z0-9-]{1,63}\.(?:com|net|org|io|example|test|ru|cn|xyz|top|site|onion)\b"
    ),
    "iban": r"\b[a-z]{2}\d{2} ?\d{4}\b",
    "number": r"(?<![\w.])\+?\d(?:[ ()/-]{0,2}\d){8,14}(?!\w)|(?<![\w.@])@[a-z]\w{3,31}(?![\w.])",
    "link": r"(?:https?|hxxps?)://",
    "open_link": r"https?://\S{1,200}[?&/=](?=[\s,.;!\u3001\u3002]|$)",
    "bot_name": r"(?<!chat)(?<!\bauto)(?<=\w)gpt\b",
    "image": r"!\[[^\]\n]{0,80}\]\(",
    "key_file": (
        r"(?a:\.ssh\b|\bid_(?:rsa|dsa|ecdsa|ed25519)\b|(?<![\w])\.env\b|\.aws\b|\.netrc\b|/etc/(?:shadow|passwd)|"
        r"\bauthorized_keys\b|\.git-credentials|wallet\.dat|\bprintenv\b|\$\(env\))"
    ),
    "start_file": (
        r"(?a:\bcrontab\b|\.bashrc\b|\.zshrc\b|\.profile\b|\bsystemd\b|\bsystemctl\b|\bauthorized_keys\b|"
        r"\blaunchagents?\b|\bautostart\b|\bautorun\b|\brc\.local\b)"
    ),
    "program": r"(?a:\bcurl\b|\bwget\b|\bnc\b|\bnetcat\b|\.sh\b|\|\s?(?:ba)?sh\b|\.(?:exe|ps1|py)\b)",
    "flag": (
        r"\b(?:bypass|ignore|disable|override|skip)_(?:all_)?(?:safety|guidelines?|filters?|restrictions?|rules?|polic\w+|"
        r"moderation)\b|\brespond_without_|[\"']system[\"']\s{0,3}:\s{0,3}[\"']override"
    ),
    "header": (
        r"(?:^|[\n.!?;\u3002]\s{0,3}|[\[\u3010(<{#*=>]\s{0,3})"
        r"(?:(?:urgent |important )?(?:system|sistema|systeme|sistem|administrator|admin|systemverwaltung|operator)"
        r"(?:-?\s?(?:message|prompt|notice|note|alert|update|nachricht|meldung|hinweis|mesaji|bildirimi))?|"
        r"(?:message|mensaje|mensagem|messaggio|aviso|avis|nota|note|notice|mitteilung) (?:du |del |do |di |from the )?"
        r"(?:system\w{0,2}|sistema)|(?:system|developer|operator)(?: level)? (?:message|notice|order)|"
        r"\u0441\u0438\u0441\u0442\u0435\u043c\u0430|\u0441\u0438\u0441\u0442\u0435\u043c\u043d\u043e\u0435 "
        r"\u0441\u043e\u043e\u0431\u0449\u0435\u043d\u0438\u0435|(?:\u0631\u0633\u0627\u0644\u0647 )?"
        r"\u0627\u0644\u0646\u0638\u0627\u0645|\u7cfb[\u7edf\u7d71](?:\u6d88\u606f|\u8a0a\u606f|\u901a\u77e5|"
        r"\u516c\u544a|\u63d0\u793a)?|\u30b7\u30b9\u30c6\u30e0(?:\u30e1\u30c3\u30bb\u30fc\u30b8|\u901a\u77e5)?|"
        r"\uc2dc\uc2a4\ud15c(?: ?\uba54\uc2dc\uc9c0)?)\s{0,3}[\]\u3011):>}]"
    ),
}
"""Ideas that have a shape and no language. The names of files and programs end where their Latin letters do: in a
language without blanks the next word follows at once."""

_RULES: tuple[tuple[str, str], ...] = (
    ("override", "flag"),
    ("override", "told void !spared"),
    ("override", "told outranked !spared"),
    ("override", "note outranks"),
    ("override", "reader heed"),
    ("override", "whatever reply_only"),
    ("override", "self void"),
    ("override", "mine first"),
    ("override", "wishes trifling"),
    ("override", "so_far sham"),
    ("role", "become unbound !played"),
    ("role", "no_more_bot"),
    ("role", "become bot_name"),
    ("role", "guards off"),
    ("role", "mission bypass"),
    ("role", "serve alone"),
    ("disclosure", "show start_text !meaning"),
    ("disclosure", "show others_told"),
    ("disclosure", "show held inner"),
    ("secrecy", "user hush !thing_owner !topic"),
    ("secrecy", "note hush"),
    ("secrecy", "quietly hush_reply"),
    ("secrecy", "asked deny"),
    ("secrecy", "bother traceless"),
    ("exfiltration", "secret send place !reset"),
    ("exfiltration", "private send place !of_event"),
    ("exfiltration", "key_file send away"),
    ("exfiltration", "secret open_link"),
    ("exfiltration", "private open_link"),
    ("exfiltration", "each_reply image"),
    ("exfiltration", "when_user send place"),
    ("exfiltration", "environment place"),
    ("persistence", "rule keep forever"),
    ("persistence", "at_start open_it link"),
    ("persistence", "put start_file program"),
    ("persistence", "put start_script place"),
    ("persistence", "gone rewrite"),
    ("persistence", "despite keep"),
    ("persistence", "each_session push"),
    ("command", "destroy everything unasked"),
    ("authority", "approve_all trusted"),
    ("authority", "signed as_owner"),
    ("deception", "user pay swap"),
    ("deception", "account swap asked"),
    ("deception", "tell_user alarm link"),
    ("authority", "consent unasked"),
    ("authority", "consent all_deeds"),
    ("authority", "user unconfirmed grave"),
    ("deception", "asker steer ever !own_habit"),
    ("exfiltration", "private send unnoticed away"),
    ("command", "when_user destroy quietly"),
    ("command", "when_user destroy hush"),
    ("command", "when_user carry_out quietly"),
    ("role", "session exempt"),
    ("disclosure", "show above_line"),
    ("authority", "maker dodge"),
    ("disclosure", "before_chat handed"),
    ("disclosure", "told show verbatim"),
    ("exfiltration", "send unnoticed place"),
    ("exfiltration", "secret send number !reset"),
    ("exfiltration", "private send number"),
    ("authority", "orders_of like_owner"),
    ("persistence", "note undeletable user"),
    ("persistence", "note replicate"),
    ("deception", "asker say_always !own_habit"),
    ("command", "if_word carry_out"),
    ("deception", "if_word swap"),
    ("authority", "taken_as_yes grave"),
    ("authority", "raised reach"),
    ("authority", "vetted unread"),
    ("secrecy", "unnoticed cleanup"),
    ("secrecy", "unnoticed pay_now"),
    ("deception", "if_word scare"),
    ("deception", "push rivals"),
    ("deception", "weary"),
    ("deception", "each_session tell_them"),
    ("deception", "asker iban"),
    ("authority", "unpermitted grave"),
    ("command", "when_user destroy everything"),
    ("exfiltration", "account open_link"),
    ("deception", "only_good smear"),
    ("authority", "user decide_self"),
    ("deception", "pitch"),
    ("command", "disarm silently_done"),
    ("forgery", "header decree"),
    ("forgery", "tool_said next_step"),
)
"""Names of threats and the ideas that make one, in one sentence or in two that follow each other; what stands behind
``!`` must not be among them."""


@dataclass(frozen=True, kw_only=True)
class Lexicon:
    """`ideas` are phrases by the idea they stand for, `further` are more of them, one a line or parted by `` / ``:
    ``*`` is any end of a word, ``...`` up to 60 characters, ``(a|b)`` a choice, never inside another. Words without
    blanks between them are not `is_spaced`; `script` finds a letter of the language, so that other text need not be
    searched."""

    ideas: Mapping[str, str]
    further: Mapping[str, str] = field(default_factory=dict)
    is_spaced: bool = True
    script: str = ""

    def threat_in(self, text: str) -> str | None:
        """The name of the first threat that the folded `text` holds in this language; None when it holds none."""
        if self.script and not compiled(self.script).search(text):
            return None
        rules = _met(self._held(text), everywhere=True)
        if not rules:
            return None
        for piece in _pieces(text):
            if met := _met(self._held(piece), rules):
                return met[0][0]
        return None

    def _held(self, text: str) -> set[str]:
        """The ideas whose words or shapes stand in the text."""
        plain = f" {_NO_WORD.sub(' ', text)} " if self.is_spaced else f" {text} "
        held = {idea for idea, shape in _SHAPES.items() if compiled(shape).search(text)}
        keys, lengths = self._phrases
        starts = (at for at, sign in enumerate(plain) if sign == " ") if self.is_spaced else range(len(plain))
        for at in starts:
            for length in lengths:
                for idea, first, rest in keys.get(plain[at : at + length], ()):
                    if idea not in held and plain.startswith(first, at) and _follow(rest, plain, at + len(first)):
                        held.add(idea)
        return held

    @cached_property
    def _phrases(self) -> tuple[dict[str, list[_Phrase]], list[int]]:
        """Phrases by how they begin, and the lengths of such beginnings."""
        keys: dict[str, list[_Phrase]] = {}
        for idea, lines in chain(self.ideas.items(), self.further.items()):
            for first, rest in self._spelled_out(lines):
                keys.setdefault(first[:_KEY_CHARS], []).append((idea, first, rest))
        return keys, sorted({len(key) for key in keys})

    def _spelled_out(self, lines: str) -> Iterator[tuple[str, _Rest]]:
        for line in lines.splitlines():
            for phrase in folded(line).split(" / "):
                if phrase.strip():
                    head, *others = phrase.strip().split("...")
                    rest = tuple((_GAP_CHARS, tuple(map(self._bounded, _choices(other)))) for other in others)
                    for first in _choices(head):
                        yield self._ended(first, rest)

    def _ended(self, first: str, rest: _Rest) -> tuple[str, _Rest]:
        """`first` and what follows; where a word of it has a star, the words behind that follow too."""
        begin, star, behind = first.strip().partition("* ")
        if star and behind.strip():
            word, further = self._ended(behind, rest)
            return self._bounded(begin + "*"), ((_NEXT_WORD, (word,)), *further)
        return self._bounded(first), rest

    def _bounded(self, words: str) -> str:
        if self.is_spaced:
            return f" {_NO_WORD.sub(' ', words).strip()}" + ("" if words.strip().endswith("*") else " ")
        return words.strip().replace("_", " ")


def _met(held: set[str], rules: Sequence[_Rule] | None = None, *, everywhere: bool = False) -> list[_Rule]:
    """The rules whose ideas are all held; in a whole text what spares a sentence of it counts for nothing."""
    return [
        (name, needed, barred)
        for name, needed, barred in (_rules() if rules is None else rules)
        if needed <= held and (everywhere or not barred & held)
    ]


@cache
def _rules() -> list[_Rule]:
    found = []
    for name, ideas in _RULES:
        words = ideas.split()
        barred = frozenset(word[1:] for word in words if word[0] == "!")
        found.append((name, frozenset(word for word in words if word[0] != "!"), barred))
    return found


def _pieces(text: str) -> Iterator[str]:
    """Each sentence, then each with the one behind it."""
    sentences = [sentence for sentence in _SENTENCE.split(text) if sentence.strip()]
    yield from sentences
    for first, second in pairwise(sentences):
        yield f"{first} {second}"


def _choices(part: str) -> Iterator[str]:
    return ("".join(choice) for choice in product(*(piece.split("|") for piece in _CHOICE.split(part))))


def _follow(rest: _Rest, text: str, end: int) -> bool:
    """Whether one choice of each part stands behind `end`, each near the one before."""
    for reach, choices in rest:
        # A blank that ends one word begins the next.
        begin = end - 1 if reach else text.find(" ", end)
        near = text[begin : end + reach] if reach else text[begin : begin + len(choices[0])]
        ends = [at + len(choice) for choice in choices if (at := near.find(choice)) >= 0]
        if not ends:
            return False
        end = begin + min(ends)
    return True
