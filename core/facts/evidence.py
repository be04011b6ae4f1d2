"""Find the message in which a person stated a fact that the model wants to store.

Only typed messages count, never a summary. The person must have typed all names and numbers of the
statement, and most of its other words or synonyms of them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from core.errors import ToolError, word_clause
from core.facts.alignment import TypedText, align, split_all
from core.facts.assertions import Statement, is_asserted, resolve_owner
from core.facts.clauses import Marker, SplitSentence
from core.facts.closeness import Judgement, Support, judge
from core.facts.patterns import claim_pattern
from core.facts.wording import (
    AnalyzedText,
    evidence_pattern,
    evidence_words,
    extract_own_words,
    is_english,
    split_sentences,
)
from core.guard.foreign_texts import list_foreign_texts, list_own_foreign_texts
from core.guard.origin_and_fence import typed_text
from core.review.phrases import is_plain_yes
from core.review.repetition import has_terms_of, list_sentence_terms
from core.review.transcript import (
    MAX_EARLIER,
    drop_repetitions,
    find_question,
    load_takers,
    mark_repeats,
)
from core.store.sessions import Conversations
from core.text.normalize import is_unspaced, words_of
from core.text.pastes import has_style_of
from core.text.terms import ME, names_in, terms_of, word_terms
from core.types import Message, Scope, Sender, Session, ToolContext

MIN_WORD_SHARE = 0.7
"""A message must contain at least this share of a statement's words."""
MIN_SHORT_WORD_SHARE = 0.85
"""The minimum share for a statement of at most `SHORT_STATEMENT_WORDS` words."""
SHORT_STATEMENT_WORDS = 5
MIN_ANCHORED_WORD_SHARE = 0.3
"""The minimum share if the message contains a name or number of the statement (an anchor)."""
MAX_EVIDENCE_MESSAGES = 100
"""Only this many of the latest typed messages are searched."""
NAME_LOOKBACK_MESSAGES = 30
"""A name may be in one of this many earlier messages of the same person."""
FIGURE_LOOKBACK_MESSAGES = 2
"""A number may be in one of this many earlier messages of the same person."""
FOREIGN_WORDS_PER_ANCHOR = 2
"""If a message is in another language than the statement, this many words per anchor may be missing
from it."""
TRANSLATED_MESSAGES = 3
"""A note in another language may translate one of this many latest messages."""
MAX_YES_WORDS = 5
"""A longer message isn't just a "yes"."""
MAX_NAME_WORDS = 2
"""An argument of a tool with at most this many words counts as a name and not as a statement."""
MAX_MISSING_LISTED = 5
MISSING_CHARS = 80


class _Comparison:
    """A message compared with a statement that it may support.

    `question` is the assistant's question right before the message, and `speaker` is the name of
    the message's sender.
    """

    def __init__(
        self,
        statement: Statement,
        message: AnalyzedText,
        question: AnalyzedText,
        speaker: AnalyzedText,
    ) -> None:
        self.text = message.text
        is_short = len(message.text.split()) <= MAX_YES_WORDS
        # Whether the message is just a "yes" to the assistant's question.
        self.is_yes = (
            bool(question.text)
            and is_short
            and evidence_pattern("yes").match(message.text) is not None
        )
        # The text that counts as typed: the message, and after a "yes" also the question.
        self.own = message
        if self.is_yes:
            self.own = AnalyzedText(f"{message.text}\n{question.text}")
        # The question if the message answers it, else an empty text. An answer adds a part of the
        # statement that the question doesn't contain.
        adds_nothing = statement.parts_in(message) <= statement.parts_in(question)
        is_answer = self.is_yes or not adds_nothing
        self.question = question if is_answer else AnalyzedText("")
        # The parts of the statement that the message contains. People rarely say their own name,
        # so the speaker's name always counts.
        self.parts = statement.parts_in(self.own)
        self.parts |= {name for name in statement.names if speaker.has_name(name)}


# Accepted notes count as typed messages of no session.
_NO_SESSION = 0


class Evidence:
    """The typed messages of a conversation, which may support a statement.

    `messages` are all messages of the conversation, oldest first. `takers` says which of them
    answers a question that was shown (`core.review.transcript.find_question`). `foreign_texts` are
    texts that the model has read here and the person didn't type, and `earlier_foreign_texts` are
    those of earlier conversations.
    """

    def __init__(
        self,
        messages: Sequence[Message],
        takers: Mapping[int, str] | None = None,
        foreign_texts: Sequence[str] = (),
        earlier_foreign_texts: Sequence[str] = (),
    ) -> None:
        self.messages = messages
        self._takers = takers
        self._foreign_texts = foreign_texts
        self._earlier_foreign_texts = earlier_foreign_texts
        typed_indexes = [
            index for index, message in enumerate(messages) if typed_text(message, with_speech=True)
        ]
        self._typed_indexes = typed_indexes[-MAX_EVIDENCE_MESSAGES:]
        self._analyze = cache(AnalyzedText)

    @property
    def latest_typed_text(self) -> str:
        """The text of the last message that was typed, or "". Accepted notes don't count."""
        for index in reversed(self._typed_indexes):
            if self.messages[index].session_id != _NO_SESSION:
                return typed_text(self.messages[index])
        return ""

    def with_accepted(self, notes: Sequence[str], at: datetime) -> Evidence:
        """Return the same evidence, extended by notes that a person accepted earlier."""
        rows = [
            Message(role="user", text=note, session_id=_NO_SESSION, created_at=at) for note in notes
        ]
        return Evidence(
            [*self.messages, *rows], self._takers, self._foreign_texts, self._earlier_foreign_texts
        )

    def find_support(
        self,
        content: str,
        names: Sequence[str] = (),
        *,
        is_about_speaker: bool = False,
        message: Message | None = None,
    ) -> Message | None:
        """Return the message that best supports a statement, or None.

        If several messages are equally good, return the latest. `names` are the names in the
        statement and the value of its attribute. With `message`, consider only this message.
        """
        statement = Statement(content, names, is_about_speaker=is_about_speaker)
        best_score = 0
        best_index = 0
        for index in self._typed_indexes:
            if message is not None and self.messages[index] is not message:
                continue
            score = self._score(statement, index)
            # With ">=", the latest of several equally good messages is chosen.
            if score >= best_score:
                best_score, best_index = score, index
        return self.messages[best_index] if best_score else None

    def is_supported(self, content: str) -> bool:
        """Return whether each sentence of a note is supported by some message."""
        sentences = [sentence for sentence in split_sentences(content) if word_terms(sentence)]
        is_about_speaker = (
            evidence_pattern("user").match(content) is not None and resolve_owner(content) == ME
        )
        return bool(sentences) and all(
            self.find_support(sentence, is_about_speaker=is_about_speaker) for sentence in sentences
        )

    def judge_note(
        self, content: str, sender: Sender | None = None, *, with_doubtful: bool = False
    ) -> Judgement:
        """Judge how close a note is to the typed messages. See `core/facts/closeness.py`.

        With `sender`, only this person's messages and previously accepted notes count, and the
        sender's name in the note means the sender. Lines that may be pasted count only
        `with_doubtful`. An unclear note is refused if it may come from the foreign texts.
        """
        if sender is not None and sender.name.strip():
            content = re.sub(rf"\b{re.escape(sender.name.strip())}\b", "User", content)
        typed = self.list_typed(sender, with_doubtful=with_doubtful)
        judgement = judge(content, typed)
        if judgement.support is Support.UNCLEAR and self._may_be_foreign(content, typed):
            return Judgement(Support.REFUSED, judgement.reasons | {"foreign"})
        return judgement

    def _may_be_foreign(self, content: str, typed: Sequence[TypedText]) -> bool:
        """Return whether a note may say what a foreign text says, in its words or in others."""
        if self._foreign_texts and _is_in_other_words(content, typed):
            return True
        return _borrows(content, typed, [*self._foreign_texts, *self._earlier_foreign_texts])

    def list_typed(self, sender: Sender | None, *, with_doubtful: bool = False) -> list[TypedText]:
        """Return the typed messages, oldest first.

        A "yes" is replaced by the question that it answers. With `sender`, messages of other people
        are left out. Lines that may be pasted are included only `with_doubtful`.
        """
        texts = []
        for index in self._typed_indexes:
            message = self.messages[index]
            if sender is not None and message.sender is not None and message.sender.id != sender.id:
                continue
            text = extract_own_words(message.text, sender_name=message.sender_name)
            if with_doubtful:
                text = self._add_doubtful(text, index)
            question = self._question_before(index)
            is_short = len(text.split()) <= MAX_YES_WORDS
            is_yes = is_short and bool(question) and evidence_pattern("yes").match(text) is not None
            if is_yes and len(split_sentences(question)) == 1:
                text = question.rstrip("?？ ")
            is_accepted = message.session_id == _NO_SESSION
            texts.append(TypedText(text, message.created_at.date(), question, is_accepted))
        return texts

    def _add_doubtful(self, own_words: str, index: int) -> str:
        """Return a message's own words, extended by lines that may be pasted.

        These lines are added only if the person's other messages are written in the same way.
        """
        message = self.messages[index]
        extended = extract_own_words(
            message.text, with_doubtful=True, sender_name=message.sender_name
        )
        doubtful_text = extended.removeprefix(own_words).strip()
        if not doubtful_text:
            return own_words
        other_texts = []
        for other_index in self._typed_indexes:
            other = self.messages[other_index]
            if other_index != index and other.sender == message.sender:
                other_texts.append(extract_own_words(other.text, sender_name=other.sender_name))
        return extended if has_style_of(doubtful_text, other_texts) else own_words

    def describe_missing(self, content: str, names: Sequence[str] = ()) -> str:
        """Return a clause about the names and numbers that no message contains.

        The person who approves the fact reads, for example, ``no one here has typed “Porto”``.
        """
        statement = Statement(content, names)
        parts: set[str] = set()
        for index in self._typed_indexes:
            parts |= statement.parts_in(self._own_words(index))
        missing = [
            f"“{part[:MISSING_CHARS]}”"
            for part in (*statement.names, *statement.figures)
            if part not in parts
        ]
        if not missing:
            return word_clause("waits_text_missing")
        return word_clause("waits_words_missing", words=" or ".join(missing[:MAX_MISSING_LISTED]))

    def _score(self, statement: Statement, index: int) -> int:
        """Return how many parts of a statement a message contains.

        Returns 0 if the message doesn't support the statement.
        """
        sender = self.messages[index].sender
        comparison = _Comparison(
            statement,
            self._own_words(index),
            self._analyze(self._question_before(index)),
            self._analyze(sender.name if sender else ""),
        )
        if not comparison.parts or not statement.text.terms:
            return 0
        if not self._has_names_and_figures(statement, index, comparison):
            return 0
        if not comparison.is_yes and not is_asserted(statement, comparison.text):
            return 0
        return len(comparison.parts) if _has_enough_words(statement, comparison) else 0

    def _has_names_and_figures(
        self, statement: Statement, index: int, comparison: _Comparison
    ) -> bool:
        """Return whether the person has typed all names and numbers of a statement.

        They may also be in the question before the message, or in earlier messages of the same
        person. If the message names someone who isn't in the statement, earlier messages can't
        supply its names.
        """
        parts = comparison.parts | statement.parts_in(comparison.question)
        missing_names = set(statement.names) - parts
        missing_figures = {
            figure
            for figure in set(statement.figures) - parts
            if not _is_derived(figure, statement, self.messages[index], comparison.own)
        }
        if not missing_names and not missing_figures:
            return True
        earlier_parts = self._list_earlier_parts(statement, index)
        if not missing_figures <= set().union(*earlier_parts[-FIGURE_LOOKBACK_MESSAGES:]):
            return False
        if not missing_names:
            return True
        names_others = any(not statement.text.has_name(name) for name in names_in(comparison.text))
        return not names_others and missing_names <= set().union(*earlier_parts)

    def _list_earlier_parts(self, statement: Statement, index: int) -> list[set[str]]:
        """Return the statement's parts in each of the sender's last messages before this one."""
        sender = self.messages[index].sender
        earlier_indexes = [
            earlier_index
            for earlier_index in self._typed_indexes
            if earlier_index < index and self.messages[earlier_index].sender == sender
        ]
        return [
            statement.parts_in(self._own_words(earlier_index))
            for earlier_index in earlier_indexes[-NAME_LOOKBACK_MESSAGES:]
        ]

    def _own_words(self, index: int) -> AnalyzedText:
        return self._analyze(
            extract_own_words(
                self.messages[index].text, sender_name=self.messages[index].sender_name
            )
        )

    def _question_before(self, index: int) -> str:
        """Return the question that a "yes" in this message answers, or ""."""
        return find_question(self.messages[:index], self.messages[index], self._takers)


def _is_in_other_words(content: str, typed: Sequence[TypedText]) -> bool:
    """Return whether a sentence of a note shares no word with any message in its language.

    Such a note may be a translation only if one of the latest messages states something in another
    language. A mere "yes" says nothing in any language.
    """
    notes, sources = split_all(content, typed)
    telling = [source for source in sources if not is_plain_yes(source.sentence.text)]
    if not telling:
        return True
    first = telling[-1].message - TRANSLATED_MESSAGES
    latest = [source.sentence for source in telling if source.message > first]
    for note in notes:
        alignment = align(note, sources)
        is_repeated = bool(alignment.sources) or alignment.has_same_date
        if not is_repeated and not _may_restate(note, latest):
            return True
    return False


def _may_restate(note: SplitSentence, latest: Sequence[SplitSentence]) -> bool:
    """Return whether a note may translate one of the latest messages, or has a related word."""
    statements = [sentence for sentence in latest if _may_state(sentence)]
    if any(note.languages.isdisjoint(sentence.languages) for sentence in statements):
        return True
    words = AnalyzedText(" ".join(sentence.text for sentence in latest))
    terms = [term for token in note.tokens for term in word_terms(token.form)]
    return any(map(words.mentions, terms))


def _may_state(sentence: SplitSentence) -> bool:
    """Return whether a sentence may state something, and isn't a question, a word or a joke."""
    markers = {marker for clause in sentence.clauses for marker in clause.markers}
    is_statement = markers.isdisjoint((Marker.JOKE, Marker.UNREAL, Marker.CONDITION))
    return is_statement and not sentence.is_question and len(sentence.tokens) > 1


def _borrows(content: str, typed: Sequence[TypedText], foreign_texts: Sequence[str]) -> bool:
    """Return whether a sentence of a note repeats a foreign one, with words that nobody typed."""
    foreign = list_sentence_terms(foreign_texts)
    own_terms = {term for text in typed for term in terms_of(text.text)}
    for sentence in split_sentences(content):
        terms = frozenset(terms_of(sentence))
        if not terms <= own_terms and has_terms_of(terms, foreign):
            return True
    return False


def _has_enough_words(statement: Statement, comparison: _Comparison) -> bool:
    """Return whether the message contains enough words of a statement."""
    anchors = {*statement.figures, *filter(comparison.own.has_name, statement.names)}
    anchor_count = len(comparison.parts & anchors)
    words: Sequence[str] = statement.words
    min_share = MIN_WORD_SHARE
    if anchor_count:
        # Words such as "à" and "в" are ignored, because they occur in almost every text.
        words = [word for word in words if len(word) > 2 or is_unspaced(word)]
        min_share = MIN_ANCHORED_WORD_SHARE
    elif len(words) <= SHORT_STATEMENT_WORDS:
        min_share = MIN_SHORT_WORD_SHARE
    missing = _find_missing_words(words, statement, comparison)
    if len(words) - len(missing) >= min_share * len(words):
        return True

    # A message in another language may say the same in words that can't be compared. It must
    # contain anchors. If the statement is about the speaker, so must the message be.
    if is_english(comparison.text):
        return False
    if statement.is_about_speaker and not claim_pattern("first_person").search(comparison.text):
        return False
    return len(missing) <= FOREIGN_WORDS_PER_ANCHOR * anchor_count


def _find_missing_words(
    words: Iterable[str], statement: Statement, comparison: _Comparison
) -> list[str]:
    """Return the words that neither the message nor the question before it contains.

    If the message introduces someone ("I'm Joana"), words such as "name" don't count as missing.
    """
    implicit_words: frozenset[str] = frozenset()
    has_name = not comparison.parts.isdisjoint(statement.names)
    if has_name and evidence_pattern("introduction").search(comparison.text):
        implicit_words = evidence_words("naming")
    return [
        word
        for word in words
        if word not in implicit_words
        and not comparison.own.mentions(word)
        and not comparison.question.has_word(word)
    ]


def _is_derived(
    figure: str, statement: Statement, message: Message, own_words: AnalyzedText
) -> bool:
    """Return whether a number follows from the date of the message.

    The number may be part of the date that "yesterday" or "two years ago" means, or the year of a
    date that was typed without a year.
    """
    number = int(figure)
    year = message.created_at.year
    is_relative = evidence_pattern("relative_time").search(own_words.plain) is not None
    if abs(number - year) <= 1:
        has_figure = any(int(other) in own_words.numbers for other in statement.figures)
        return is_relative or has_figure
    return is_relative and (number <= 31 or year - number in own_words.numbers)


@dataclass
class EvidenceSearch:
    """Looks for evidence in the conversation that the model sees."""

    conversations: Conversations

    async def load_evidence(
        self, context: ToolContext, accepted_notes: Sequence[str] = ()
    ) -> Evidence:
        """Load the messages of the conversation. Accepted notes count as typed messages."""
        evidence = await self.load_session(context.session, context.scopes)
        return evidence.with_accepted(accepted_notes, context.now)

    async def load_session(self, session: Session, scopes: frozenset[Scope]) -> Evidence:
        """Load the evidence in a session and its parents.

        Text that repeats foreign text doesn't count as typed.
        """
        history = await self.conversations.load_history(session, scopes)
        latest = await self.conversations.list_latest_from_outside(scopes, MAX_EARLIER)
        takers = await load_takers(self.conversations, history, session)

        def compare() -> Evidence:
            earlier = list_foreign_texts(latest, session)
            marked = mark_repeats(history, earlier)
            foreign = [item.text for row in history for item in list_own_foreign_texts(row)]
            checked_takers = drop_repetitions(takers, history, earlier)
            return Evidence(marked, checked_takers, foreign, earlier)

        # Comparing long texts takes time, so it runs in a thread.
        return await asyncio.to_thread(compare)

    async def explain_missing(
        self, contents: Sequence[str], context: ToolContext, accepted_notes: Sequence[str] = ()
    ) -> str | None:
        """Return a clause about the first of `contents` that no message supports, or None.

        Accepted notes count as typed messages.
        """
        evidence = await self.load_evidence(context, accepted_notes)

        def find_missing() -> str | None:
            for content in contents:
                if not evidence.is_supported(content):
                    return evidence.describe_missing(content)
            return None

        return await asyncio.to_thread(find_missing)

    async def explain_untyped(self, contents: Sequence[str], context: ToolContext) -> str | None:
        """Return a clause about the first of `contents` that isn't close to typed text, or None.

        Names and single words only need to be typed.
        """
        evidence = await self.load_evidence(context)
        sender = context.sender if context.scope.is_group else None

        def find_untyped() -> str | None:
            for content in contents:
                if len(words_of(content)) <= MAX_NAME_WORDS:
                    is_typed = evidence.is_supported(content)
                else:
                    is_typed = evidence.judge_note(content, sender).support is Support.CLOSE
                if not is_typed:
                    return evidence.describe_missing(content)
            return None

        return await asyncio.to_thread(find_untyped)

    async def locate_source(self, source: Message, context: ToolContext) -> tuple[Scope, str]:
        """Return the scope and the platform of a message in the conversation.

        These scopes differ from those of the current chat if the conversation began in another
        chat. Raises ToolError if the message was deleted.
        """
        if source.session_id == context.session.id:
            return context.scope, context.session.address.platform
        session = await self.conversations.find(source.session_id, context.scopes)
        if session is None:
            raise ToolError("The message that states this was deleted. Do not store the fact.")
        return session.scope, session.address.platform
