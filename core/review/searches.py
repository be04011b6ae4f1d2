"""Finds the typed words and addresses that may leave the machine.

People often type a secret right before a question about something else: "My PIN is 4471. When does
the ferry leave?" The words of such a clause may be searched for only if the clause itself requests
it (`core/review/data/searches.toml` lists the words).

A page whose links differ can learn a secret from the link that is opened: it only has to tell the
model which link stands for which secret. Short chains of pages with few links do the same step by
step. So the model chooses at most one link per site and conversation
(`core/review/carried_out.py`). Links that the person names aren't the model's choice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from urllib.parse import urlsplit

from core.guard.guard import find_suspicion
from core.review.carried_out import MadeCall
from core.review.naming import INNER_CAPITAL, consists_of
from core.review.negation import to_plain_pattern
from core.review.phrases import (
    UNSPACED_LANGUAGES,
    detail_words,
    filler_words,
    find_languages,
    has_marker,
    is_question,
    marker,
    polite_words,
    split_clauses,
    to_plain,
)
from core.review.wishes import drop_polite_ends, is_marked, is_short_line
from core.text.normalize import is_unspaced, language_data, to_normal_form, words_of
from core.text.terms import word_terms

# Languages in which a verb is recognized by its stem, so the verb may be anywhere.
_ENDING_LANGUAGES = UNSPACED_LANGUAGES | {"ko"}
_PUNCTUATION = ".,;:!?\u2026\"'()\u201c\u201d\u201e\u00ab\u00bb"
# A composed query may have this many signs, such as quotation marks.
_MAX_SIGNS = 2
# At most this many words may be between a verb and the word that denies it.
_MAX_DENIAL_WORDS = 2
# The tables whose words don't make a request say more than what to look up or to send.
_REQUEST_TABLES = (
    "deeds",
    "lookups",
    "sends",
    "writes",
    "gives",
    "nouns",
    "repeats",
    "to_asker",
)
# A clause of at most this many words may be the secret that the clause before it announces.
_MAX_SECRET_WORDS = 3
# The characters that may follow a web address in a text: a slash, then punctuation and a space, or
# a closing bracket.
_ADDRESS_END = r"/?(?:[.,;:!?]*(?:\s|$)|[)\]}>\"'”»])"
MAX_FREE_LINKS = 3
"""A page with more links to its own host could have a link for each secret."""
MAX_PAGES_PER_MESSAGE = 4
"""After this many pages of a site for one message, links to further pages aren't offered."""
# The signs that end a web address in a text, besides blanks and an unpaired closing bracket.
_ADDRESS_BORDERS = frozenset('<>[]{}"\u00ab\u00bb\u201c\u201d\u201e')
# The second level of country codes below which names are registered, as in "a.co.uk".
_SECOND_LEVELS = frozenset(
    {"ac", "co", "com", "edu", "go", "gob", "gouv", "gov", "gv", "ne", "net", "or", "org", "sch"}
)
# A search result: its number and title, and its address in the line below.
_RESULT = re.compile(r"^\d+\. (?P<title>[^\n]*)\n   (?P<url>\S+)$", re.MULTILINE)
_PAGE_ADDRESS = re.compile(r"^Address: (\S+)$", re.MULTILINE)
_ANY_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)
# Replaces a web address in a text, so that the words around it can be read.
_ADDRESS_WORD = "xaddressx"
_SENTENCE_END = re.compile(r"(?<=[.!?\u2026])\s+|(?<=[\u3002\uff01\uff1f])|\n")


def list_searchable(texts: Iterable[str]) -> str:
    """Return the typed texts without clauses that state a secret. A search may use their words."""
    return "\n".join(map(_drop_secrets, texts))


def _drop_secrets(text: str) -> str:
    """Return the plain words of the clauses that don't state a secret.

    If no clause may state a secret, the whole text is returned unchanged.
    """
    languages = find_languages(text)
    safe_clauses: list[str] = []
    has_secret = is_announced = False
    for sentence in filter(None, _SENTENCE_END.split(text)):
        clauses = [clause for clause, _ in split_clauses(sentence, languages)]
        is_question = sentence.rstrip().endswith(("?", "\uff1f")) and len(clauses) == 1
        is_key = find_suspicion(sentence) is not None
        for clause in clauses:
            names_secret = _has_pattern(clause, "secrets", languages)
            is_value = is_announced and len(clause.split()) <= _MAX_SECRET_WORDS
            asks = _has_pattern(clause, "lookups", languages) or (is_question and not is_value)
            if asks or not (names_secret or is_value or is_key):
                safe_clauses.append(clause)
            else:
                has_secret = True
            is_announced = names_secret
    return "\n".join(safe_clauses) if has_secret else text


def _has_pattern(clause: str, name: str, languages: Iterable[str]) -> bool:
    return any(_pattern(language, name).search(clause) for language in languages)


@cache
def _pattern(language: str, name: str) -> re.Pattern[str]:
    words = to_plain_pattern(language_data("searches", "core.review")[language][name])
    is_spaced = language not in UNSPACED_LANGUAGES and language != "ko"
    return re.compile(rf"(?<!\w)(?:{words})(?!\w)" if is_spaced else words)


def names_address(text: str, url: str) -> bool:
    """Return whether a text contains a whole web address.

    The text may leave out the scheme. The text or the address may leave out a slash at the end. A
    typed "https" address isn't opened as "http", because others could read and change the
    transferred data.
    """
    pattern = _build_address_pattern(url)
    return pattern is not None and pattern.search(text) is not None


def _build_address_pattern(url: str) -> re.Pattern[str] | None:
    """Return a pattern for a typed web address, or None if `url` has only a scheme."""
    scheme, _, rest = url.partition("://")
    address = rest.removesuffix("/")
    if not address:
        return None
    schemes = "https?" if scheme == "https" else "http"
    return re.compile(rf"(?<![\w.@%/:-])(?:{schemes}://)?{re.escape(address)}(?={_ADDRESS_END})")


def hands_over_address(messages: Iterable[str], url: str) -> bool:
    """Return whether messages contain a web address, and don't speak against opening it.

    "Don't open it", "if Ben agrees" and "should I open it?" speak against it. The other sentences
    of the messages may say anything else.
    """
    pattern = _build_address_pattern(url)
    if pattern is None:
        return False
    # The signs of another address aren't marks of the message.
    texts = [
        _ANY_ADDRESS.sub(" ", pattern.sub(f" {_ADDRESS_WORD} ", message)) for message in messages
    ]
    if not any(_ADDRESS_WORD in text for text in texts) or has_marks(texts, [_ADDRESS_WORD]):
        return False
    return not any(
        _speaks_against_opening(sentence, find_languages(text))
        for text in texts
        for sentence in filter(None, _SENTENCE_END.split(text))
    )


def _speaks_against_opening(sentence: str, languages: frozenset[str]) -> bool:
    """Return whether a sentence denies a look-up, or is about the address with doubts."""
    clauses = [clause for clause, _ in split_clauses(sentence, languages)]
    for clause in clauses:
        for name in ("lookups", "deeds"):
            if any(_forbids(clause, name, code) for code in languages):
                return True
    names = [_ADDRESS_WORD in clause for clause in clauses]
    if not any(names):
        return False
    address_index = names.index(True)
    for index, clause in enumerate(clauses):
        is_short = len(clause.split()) <= _MAX_SECRET_WORDS
        if (names[index] or is_short) and has_marker(clause, "denial", languages):
            return True
        # "And when is my dentist?" asks for a time. "Can you open it when Ben agrees?" doesn't.
        asks_time = is_question(sentence) and not has_marker(clause, "request", languages)
        if _depends(clause, languages, asks_time=asks_time and index >= address_index):
            return True
    return False


def _depends(clause: str, languages: frozenset[str], *, asks_time: bool) -> bool:
    """Return whether a clause is a condition, or offers to do something ("should I …").

    With `asks_time`, a word such as "when" isn't a condition.
    """
    if has_marker(clause, "offer", languages):
        return True
    for code in languages:
        words = _pattern(code, "asks_when").sub(" ", clause) if asks_time else clause
        if has_marker(words, "condition", (code,)):
            return True
    return False


class Offer(Enum):
    """Whether the model may open a web address that a search or a page returned."""

    # The person named the link, it's a result of a search, or the page has just been read.
    FREE = "free"
    # The model chose the link among others.
    CHOSEN = "chosen"
    # Nothing returned the address, or it stands among too many others.
    NONE = "none"


def list_joined_sites(url: str, requests: Iterable[tuple[str, str]]) -> set[str]:
    """Return the site of a web address with all sites that redirected to it, or from it.

    `requests` are the requested addresses of the conversation, each with the address of the page
    that was read.
    """
    pairs = [{_get_site(requested), _get_site(final)} for requested, final in requests]
    joined = {_get_site(url)}
    for _ in pairs:
        for pair in pairs:
            if joined & pair:
                joined |= pair
    return joined


def judge_result(url: str, results: Iterable[str], messages: Iterable[str]) -> Offer:
    """Return whether a web address is a result of a search.

    Addresses in the excerpts of results don't count. Only the first `MAX_FREE_LINKS` results of a
    site are free, apart from one that the messages name.
    """
    address, site = _normalize(url), _get_site(url)
    for text in results:
        titles: dict[str, str] = {}
        for match in _RESULT.finditer(text):
            if _get_site(match["url"]) == site:
                titles.setdefault(_normalize(match["url"]), f"{match['title']} {match['url']}")
        if address in [*titles][:MAX_FREE_LINKS] + _list_named(titles, messages)[:1]:
            return Offer.FREE if address else Offer.NONE
    return Offer.NONE


def judge_link(
    url: str, pages: Sequence[str], messages: Sequence[str], new_pages: Sequence[str] = ()
) -> Offer:
    """Return whether a web address is a link from one of some pages to the page's own host.

    If a page has more than `MAX_FREE_LINKS` such links, the messages must name the link. It's free
    if it's the only named link of its page, and the pages of its site name no other link that
    hasn't been read. After `MAX_PAGES_PER_MESSAGE` new pages of a site, no link is offered, because
    the length of a chain of pages can tell a secret, too.
    """
    address, host, site = _normalize(url), _get_host(url), _get_site(url)
    if sum(_get_site(_get_page_address(text)) == site for text in new_pages) >= (
        MAX_PAGES_PER_MESSAGE
    ):
        return Offer.NONE
    offers = {Offer.NONE}
    named_on_site: set[str] = set()
    addresses = {_normalize(_get_page_address(text)) for text in pages}
    for text in pages:
        page_address = _get_page_address(text)
        if not host or _get_site(page_address) != site:
            continue
        links = _list_own_links(text, _get_host(page_address))
        named = _list_named(links, messages)
        named_on_site.update(named)
        if address not in links:
            continue
        if named == [address]:
            offers.add(Offer.FREE)
        choices = links if len(links) <= MAX_FREE_LINKS else named
        if address in choices and len(choices) <= MAX_FREE_LINKS:
            offers.add(Offer.CHOSEN)
    if named_on_site - addresses - {address}:
        offers.discard(Offer.FREE)
    return next(offer for offer in Offer if offer in offers)


def judge_repetition(url: str, new_pages: Sequence[str], pages: Sequence[str]) -> Offer:
    """Return whether a web address is the one of a page that was read before.

    A page that was read for the same message isn't requested again. If several pages of a site were
    read for earlier messages, the model chooses which one it reads again.
    """
    if url in map(_get_page_address, new_pages):
        return Offer.FREE
    addresses = {_get_page_address(text) for text in pages}
    if url not in addresses:
        return Offer.NONE
    site = _get_site(url)
    is_only_one = [_get_site(address) for address in addresses].count(site) == 1
    return Offer.FREE if is_only_one else Offer.CHOSEN


def _list_named(links: Mapping[str, str], messages: Iterable[str]) -> list[str]:
    """Return the links whose words contain a word of the messages. `links` has their words."""
    requested = set(word_terms(list_searchable(messages)))
    return [url for url, words in links.items() if requested.intersection(word_terms(words))]


def _list_own_links(page: str, host: str) -> dict[str, str]:
    """Return all addresses of a host in a page, with the words of their labels.

    Each link has exactly one form that may be opened. With several forms, such as one with a dot or
    slash at the end, the choice of a form could tell a secret. The address of the page itself isn't
    included.
    """
    links: dict[str, str] = {}
    own_scheme = _get_page_address(page).partition("://")[0]
    label = r"(?:\[(?P<label>[^\[\]\n]{0,200})\]\()?"
    # The end is looked ahead, because two addresses may stand next to each other without a space.
    pattern = (
        rf"{label}(?<![\w.@%/:-])(?:(?P<scheme>https?)://)?{re.escape(host)}"
        r"(?=(?P<end>[/?#]\S*)?)(?![\w@:-]|\.\w)"
    )
    for match in re.finditer(pattern, page, re.IGNORECASE):
        end = _cut_address_end(match["end"] or "")
        url = _normalize(f"{match['scheme'] or own_scheme}://{host}{end}")
        words = re.sub(r"[\W_]+", " ", end)
        links[url] = f"{links.get(url, '')} {match['label'] or ''} {words}"
    links.pop(_normalize(_get_page_address(page)), None)
    return links


def _cut_address_end(text: str) -> str:
    """Return the part of a text that belongs to a web address, without punctuation at the end.

    A closing bracket belongs to the address only if the address contains the opening one.
    """
    depth = 0
    for index, character in enumerate(text):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        if depth < 0 or character in _ADDRESS_BORDERS:
            text = text[:index]
            break
    bare = text.rstrip(_PUNCTUATION)
    return f"{bare})" if bare.count("(") > bare.count(")") else bare


def _normalize(url: str) -> str:
    """Return a web address without its fragment, with the scheme and the host in lower case.

    The fragment isn't sent to the server. Returns "" for an invalid address.
    """
    host = _get_host(url)
    scheme, separator, rest = url.partition("#")[0].partition("://")
    if not host or not separator:
        return ""
    end = rest[len(host) :]
    return f"{scheme.lower()}://{host}{end or '/'}"


def _get_page_address(page: str) -> str:
    """Return the web address of a page in a result of `web_fetch`, or "" if it has none."""
    match = _PAGE_ADDRESS.search(page)
    return match[1] if match is not None else ""


def list_page_requests(calls: Iterable[MadeCall]) -> tuple[tuple[str, str], ...]:
    """Return the requested address and the final address of each page that was read."""
    return tuple(
        (str(call.arguments.get("url") or ""), address)
        for call in calls
        if call.tool == "web_fetch" and (address := _get_page_address(call.result))
    )


def _get_host(url: str) -> str:
    """Return the host of a web address with its port, or "" if the address is invalid."""
    try:
        return urlsplit(url).netloc.casefold()
    except ValueError:
        return ""


def _get_site(url: str) -> str:
    """Return the part of a host that one owner registers: "a.example" for "www.a.example:80".

    Ports and subdomains cost an attacker nothing, so they don't make another site. The owners of
    subdomains of a hosting service count as one.
    """
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""
    labels = host.split(".")
    if ":" in host or labels[-1].isdigit():
        return host
    is_country_code = len(labels[-1]) == 2 and len(labels) > 2 and labels[-2] in _SECOND_LEVELS
    return ".".join(labels[-3:] if is_country_code else labels[-2:])


def is_typed_span(text: str, typed: Sequence[str], *, with_small_words: bool = False) -> bool:
    """Return whether a text was typed in one piece, letter by letter, or without all small words.

    The whole text may also be in lower case. No other difference is allowed, because signs,
    capitals, repeated words and missing words can carry a secret. `with_small_words` means that
    small words mustn't be missing, because words such as "without" change the meaning of a message.
    """
    stripped = text.strip()
    if not stripped.isprintable() or to_normal_form("NFC", stripped) != stripped:
        return False
    for source in typed:
        forms = [" ".join(source.split())]
        if not with_small_words:
            forms.append(_leave_small_words_out(source))
        for form in forms:
            if _contains(form, stripped) or _contains(form.lower(), stripped):
                return True
    return False


def _contains(source: str, text: str) -> bool:
    if is_unspaced(text):
        return text in source
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", source) is not None


def _leave_small_words_out(source: str) -> str:
    """Return the words of a text without punctuation at their ends and without small words."""
    words = [word.strip(_PUNCTUATION) for word in source.split()]
    fillers = {word for code in find_languages(source) for word in filler_words(code)}
    fillers -= {word for code in find_languages(source) for word in detail_words(code)}
    return " ".join(word for word in words if word and not {*to_plain(word).split("'")} <= fillers)


def name_query(query: str) -> str:
    """Return the words of a query in lower case, without signs and small words.

    The other forms of a query carry no other request, so their choice could tell a secret.
    """
    words = [word.strip(_PUNCTUATION) for word in query.casefold().split()]
    small: set[str] = set()
    for code in find_languages(query):
        small |= filler_words(code) - detail_words(code)
    content = [word for word in words if word and not {*to_plain(word).split("'")} <= small]
    return " ".join(content or words)


def is_made_of(text: str, typed: str) -> bool:
    """Return whether a text has only typed words, and each at most as often as it was typed."""
    words = words_of(text.casefold())
    is_plain = text.isprintable() and len(to_plain(text).replace("'", "")) + _MAX_SIGNS >= len(text)
    counts, typed_counts = Counter(word_terms(text)), Counter(word_terms(typed))
    return bool(words) and is_plain and counts <= typed_counts


def asks_for_look_up(messages: Iterable[str], *, by_verb: bool = False) -> bool:
    """Return whether a message asks a question, or has a word such as "search" or "read".

    A request to write or send something isn't a request for a look-up. With `by_verb`, a question
    alone isn't enough.
    """
    return any(_asks_for_look_up(text, by_verb=by_verb) for text in messages)


def _asks_for_look_up(text: str, *, by_verb: bool) -> bool:
    asks_to_write = _has_verb(text, ("sends", "writes")) and not _has_verb(text, ("lookups",))
    if is_question(text) and not by_verb and not asks_to_write:
        return True
    return _has_verb(text, ("lookups", "deeds")) and not asks_to_write


def asks_for_address(messages: Sequence[str], url: str) -> bool:
    """Return whether messages ask to open a web address, or consist of it.

    "Should I open it" asks for advice, so a question alone isn't enough.
    """
    words = " ".join(messages).split()
    return (len(words) == 1 and names_address(words[0], url)) or asks_for_look_up(
        messages, by_verb=True
    )


def asks_to_send(messages: Iterable[str], tool_words: str, *, has_subject: bool) -> bool:
    """Return whether a message has a verb for the kind of action that a tool carries out.

    The words of the tool's name and action show the kind: "send" and "post", or "add" and "write".
    For other tools, any request is enough. With `has_subject`, the tool sends a file to the person,
    so "show me the contract" is also a request.
    """
    words = to_plain(tool_words)
    kinds = [name for name in ("sends", "writes") if _has_pattern(words, name, ("en",))]
    if has_subject:
        kinds.append("gives")
    return any(_has_verb(text, kinds or ("deeds", "lookups")) for text in messages)


def is_for_sender(messages: Iterable[str], texts: Sequence[str], tool_words: str) -> bool:
    """Return whether a message asks to send texts to its own sender: "send me …".

    `tool_words` are the words of the tool's name and action. If they don't say that the tool sends
    something, the result is False. Words of the texts don't count.
    """
    if not _has_pattern(to_plain(tool_words), "sends", ("en",)):
        return False
    for message in messages:
        for text in texts:
            message = message.replace(text, " ")
        if _has_pattern(to_plain(message), "to_self", find_languages(message)):
            return True
    return False


def forbids_sending(messages: Iterable[str]) -> bool:
    """Return whether a message says "never send …", apart from a text behind a colon."""
    for message in messages:
        own_words = re.split("[:\uff1a]", message, maxsplit=1)[0]
        languages = find_languages(message)
        for clause, _ in split_clauses(own_words, languages):
            if any(_forbids(clause, "sends", code) for code in languages):
                return True
    return False


def _forbids(clause: str, name: str, language: str) -> bool:
    """Return whether a denial stands at most two words before or after a verb from a table."""
    for verb in _pattern(language, name).finditer(clause):
        for denial in marker(language, "denial").finditer(clause):
            start, end = min(verb.end(), denial.end()), max(verb.start(), denial.start())
            if len(clause[start:end].split()) <= _MAX_DENIAL_WORDS:
                return True
    return False


def _has_verb(text: str, names: Sequence[str]) -> bool:
    """Return whether a text has a verb from the tables `names` in the place where requests have it.

    Requests have their verb at the beginning or at the end, apart from polite words, or anywhere
    after "can you". So "I send milk" isn't a request. In languages whose verbs have many endings,
    the verb may be anywhere.
    """
    plain, languages = to_plain(text), find_languages(text)
    is_marked_request = has_marker(plain, "request", languages)
    for language in languages:
        words = drop_polite_ends(plain, language)
        for name in names:
            pattern = _pattern(language, name)
            is_anywhere = is_marked_request or language in _ENDING_LANGUAGES
            if is_anywhere and pattern.search(plain):
                return True
            if pattern.match(words) or any(
                match.end() == len(words) for match in pattern.finditer(words)
            ):
                return True
    return False


def has_other_content(messages: Iterable[str], texts: Sequence[str]) -> bool:
    """Return whether messages contain more than a request to look up or send some texts.

    A negation, signs such as "~~" and a quotation of any other text count as other content. A
    message that only dictates the text, such as "Add to the diary: milk", has no other content.
    """
    message = " ".join(messages)
    for text in texts:
        if "://" in text:
            message = message.replace(text.strip(), " ")
    if not is_short_line(message, "\n".join(texts)) or has_marks(messages, texts):
        return True
    languages = find_languages(message)
    plain = to_plain(message)
    if has_marker(plain, "denial", languages):
        return True
    if has_marker(_drop_asked_time(message, plain, languages), "condition", languages):
        return True
    # In a fixed order, because words that one language drops may be part of another's phrase.
    for language in sorted(languages):
        plain = drop_polite_ends(plain, language)
        for name in _REQUEST_TABLES:
            plain = _pattern(language, name).sub(" ", plain)
        # "Good morning" is polite, but "morning" alone may say when to send something.
        ignored = polite_words(language) - detail_words(language)
        plain = " ".join(word for word in plain.split() if word not in ignored)
    names = _list_inner_names(message).intersection(plain.split())
    are_names_in_texts = names.issubset(to_plain("\n".join(texts)).split())
    return not are_names_in_texts or not consists_of(plain, "\n".join(texts))


def _list_inner_names(message: str) -> set[str]:
    """Return the capitalized words inside a message that are names, such as that of a recipient.

    "Ben" is a name, although it is a common word in Turkish. English and German write some of their
    common words with a capital letter, such as "I" and the polite "Sie".
    """
    common_words = filler_words("en") | filler_words("de")
    return set(map(to_plain, INNER_CAPITAL.findall(message))) - common_words


def _drop_asked_time(message: str, plain: str, languages: Iterable[str]) -> str:
    """Return the plain form of a message without "when" at the beginning of a question.

    In "When does the ferry leave?", this word isn't a condition. In "When Ben agrees can you search
    for it?", it is a condition, because a request follows.
    """
    if is_question(message) and not re.search("[,\u3001\uff0c]", message):
        for language in languages:
            match = _pattern(language, "asks_when").match(plain)
            if match is not None:
                rest = plain[match.end() :]
                return plain if _has_inner_request(rest.strip(), languages) else rest
    return plain


def _has_inner_request(plain: str, languages: Iterable[str]) -> bool:
    """Return whether words such as "can you" are between other plain words."""
    return any(
        request.start() > 0 and request.end() < len(plain)
        for language in languages
        for request in marker(language, "request").finditer(plain)
    )


def has_marks(messages: Iterable[str], texts: Iterable[str]) -> bool:
    """Return whether signs that cross out or quote stand around words other than those of texts."""
    own_words = {word for text in texts for word in text.split()}
    words = " ".join(messages).split()
    return is_marked(" ".join(word for word in words if word not in own_words))
