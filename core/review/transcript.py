"""Splits a conversation into texts that the person typed and foreign texts, for the approval gate.

Foreign text is everything in the model's context that the person didn't type: forwards, quotes,
pastes, files, other members of a group, results of tools that read from elsewhere, recalled lines
of others, summaries, results of jobs, skills and context files.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType

from core.errors import Sentence
from core.guard.foreign_texts import (
    ForeignText,
    has_unreadable_file,
    list_doubtful_answers,
    list_foreign_texts,
    list_message_parts,
    list_own_foreign_texts,
    list_result,
)
from core.guard.origin_and_fence import (
    EARLIER_ANSWERS_LEAD,
    FILE_LEAD,
    JOB_RESULTS_LEAD,
    RULES_LEAD,
    SKILL_LEAD,
    find_foreign_start,
    typed_part,
    typed_text,
)
from core.review.carried_out import MadeCall, list_made_calls
from core.review.naming import is_about_words_of
from core.review.phrases import (
    ends_with_question,
    is_plain_yes,
    list_question_terms,
    list_questions,
    mask_quotations,
)
from core.review.repetition import (
    RepetitionFinder,
    borrows_name,
    has_terms_of,
    join_neighbors,
    list_sentence_terms,
    shares_words,
)
from core.review.searches import list_page_requests
from core.review.wishes import is_marked, is_single_line
from core.store.sessions import Conversations
from core.text.normalize import words_of
from core.text.terms import terms_of
from core.types import Message, Sender, Session, ToolContext

# The number of the latest messages that are searched for foreign text that a person repeats.
MAX_EARLIER = 300
_TOOL_SOURCE = Sentence("source_tool_description")
_PROMPT_SOURCE = Sentence("source_prompt")
_SUMMARY_SOURCE = Sentence("source_summary")
_MEMBER_SOURCE = Sentence("source_member")
# The number of earlier answers whose conversations are searched for foreign text.
MAX_EARLIER_ANSWERS = 20
# A longer reply isn't just a "yes".
MAX_REPLY_CHARS = 60
# A question repeats foreign texts if they contain this share of its words.
MIN_REPEATED_SHARE = 0.5
# A question repeats the description of a tool if the description has this share of its terms.
MIN_DEFINITION_SHARE = 0.8
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+", re.IGNORECASE)
# A line of recalled background that isn't a note (n1) or a fact (f1).
_RECALLED_LINE = re.compile(r"- (?![nf]\d)")
# A line with a message: "- m12 3 May 2026: Ana: The ferry leaves at ten."
_RECALLED_MESSAGE = re.compile(r"- m(?P<id>\d{1,18}) \d+ \w+ \d{4}: (?P<rest>.*)")
_FRAME_SOURCES = {
    f"[{SKILL_LEAD}": "source_skill",
    f"[{RULES_LEAD}": "source_project_file",
    f"[{JOB_RESULTS_LEAD}": "source_job",
    f"[{EARLIER_ANSWERS_LEAD}": "source_job",
    f"[{FILE_LEAD}": "source_file",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """The typed and foreign texts of a conversation up to a tool call."""

    # The texts that the person typed in the messages that are being answered.
    messages: tuple[str, ...]
    # The questions of the assistant to which the person said yes in these messages.
    questions: tuple[str, ...]
    # All texts that the person typed in the conversation.
    all_typed: str
    # The last typed message before these messages.
    previous: str = ""
    # Text in the model's context that the person didn't type.
    foreign: tuple[ForeignText, ...]
    # The results of web searches, and the pages that were read.
    search_results: tuple[str, ...] = ()
    page_results: tuple[str, ...] = ()
    # The pages that were read for the messages that are being answered.
    new_page_results: tuple[str, ...] = ()
    # The requested address of each page, with the address that was read after redirects.
    page_requests: tuple[tuple[str, str], ...] = ()
    # One of the messages that are being answered is a voice note.
    is_spoken: bool = False
    # The calls that were made for the messages that are being answered, and didn't fail.
    calls: tuple[MadeCall, ...] = ()
    # A message of the person is more than one short line, so it may contain an unrecognized paste.
    has_long: bool = False

    @property
    def typed(self) -> str:
        """The typed messages and confirmed questions as one text."""
        return "\n".join((*self.messages, *self.questions))

    @property
    def tool_source(self) -> str:
        """The source of tool descriptions that others wrote, or "" if others wrote none."""
        is_described = any(item.source == _TOOL_SOURCE for item in self.foreign)
        return str(_TOOL_SOURCE) if is_described else ""

    @property
    def is_clean(self) -> bool:
        """Whether the person wrote, and no other text can have suggested a change."""
        return bool(self.messages) and not self.foreign


@dataclass(frozen=True, slots=True)
class _AnswerChecks:
    """Which recalled answers are the assistant's own, by id, as far as they were checked."""

    # The latest messages of people and results of tools, in all conversations.
    latest: Sequence[Message]
    results: dict[int, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TranscriptReader:
    """Loads transcripts for the gate, and for tools that do their own check of who typed a text."""

    conversations: Conversations
    # Headings in a system prompt whose text may be from other people.
    prompt_marks: Sequence[str] = ()
    # Returns descriptions of tools that others wrote and that are part of every request.
    list_definitions: Callable[[], Sequence[str]] = tuple

    async def load(self, context: ToolContext) -> Transcript:
        """Load the typed and the foreign texts of the conversation in which a tool is called."""
        session = context.session
        rows = await self.conversations.load_history(session, context.scopes)
        latest = await self.conversations.list_latest_from_outside(context.scopes, MAX_EARLIER)
        own_rows = _join_accounts(rows, context)
        recalled = await self._load_recalled(rows, context, _AnswerChecks(latest))
        takers = await load_takers(self.conversations, own_rows, session)
        session_ids = {session.id, *(row.session_id for row in rows)}
        has_erased = await self.conversations.has_erased(session, session_ids)

        def read() -> Transcript:
            earlier = list_foreign_texts(latest, session)
            checked_takers = drop_repetitions(takers, own_rows, earlier)
            transcript = read_transcript(
                own_rows,
                session,
                context.sender,
                earlier,
                self.prompt_marks,
                recalled,
                checked_takers,
            )
            others = [ForeignText(_TOOL_SOURCE, text) for text in self.list_definitions()]
            if has_erased:
                # The answers may repeat the deleted text.
                others.append(ForeignText(Sentence("source_deleted"), ""))
            return replace(transcript, foreign=(*transcript.foreign, *others))

        # Comparing long texts takes long, so it runs in a thread.
        return await asyncio.to_thread(read)

    async def repeats_foreign_text(
        self, answer: str, rows: Sequence[Message], context: ToolContext
    ) -> bool:
        """Return whether the question at the end of an answer repeats text that wasn't typed.

        `rows` is the history that the model has read. All foreign texts in it count, and those of
        earlier conversations.
        """
        session = context.session
        latest = await self.conversations.list_latest_from_outside(context.scopes, MAX_EARLIER)
        own_rows = _join_accounts(rows, context)
        recalled = await self._load_recalled(rows, context, _AnswerChecks(latest))

        def compare() -> bool:
            question = _read_question(answer, own_rows)
            if not question or _repeats_member(question, own_rows, context.sender):
                return True
            foreign = _list_all_foreign(own_rows, session, context.sender, recalled)
            foreign += list_doubtful_answers(own_rows)
            if _repeats_seen_text(question, answer, foreign):
                return True
            terms = list_question_terms(question)
            typed = "\n".join(_get_typed_text(row, context.sender) for row in own_rows)
            if borrows_name(question, terms, [item.text for item in foreign], typed):
                return True
            if foreign and not is_about_words_of(question, typed):
                return True
            if has_unreadable_file(own_rows) and not terms <= set(terms_of(typed)):
                return True
            if self._repeats_standing_text(question, session, foreign):
                return True
            earlier = list_sentence_terms(list_foreign_texts(latest, session))
            return has_terms_of(frozenset(terms_of(question)), earlier)

        # Comparing long texts takes long, so it runs in a thread.
        return await asyncio.to_thread(compare)

    def _repeats_standing_text(
        self, question: str, session: Session, foreign: Sequence[ForeignText]
    ) -> bool:
        """Return whether a question repeats foreign text that is a part of every request.

        Tool descriptions share many words with honest questions ("Shall I add an entry to the
        diary?"), so almost all terms of the question must be in such a description.
        """
        texts = [item.text for item in foreign if item.source == _SUMMARY_SOURCE]
        texts.append(_find_foreign_prompt(session.prompt.text, self.prompt_marks))
        sentences = join_neighbors(list_sentence_terms(texts))
        definitions = join_neighbors(list_sentence_terms(self.list_definitions()))
        terms = list_question_terms(question)
        return has_terms_of(terms, sentences) or has_terms_of(
            terms, definitions, MIN_DEFINITION_SHARE
        )

    async def _load_recalled(
        self, rows: Sequence[Message], context: ToolContext, checks: _AnswerChecks
    ) -> dict[int, Message]:
        """Return the messages that recalled lines quote, by id, without doubtful answers."""
        ids = _list_recalled_ids(rows)
        quoted = await self.conversations.load_messages(ids, context.scopes) if ids else []
        return {
            message.id: message
            for message in _join_accounts(quoted, context)
            if message.role != "assistant" or await self._is_own_answer(message, context, checks)
        }

    async def _is_own_answer(
        self, answer: Message, context: ToolContext, checks: _AnswerChecks
    ) -> bool:
        """Return whether an earlier answer was given when its conversation had no foreign text.

        Otherwise, the answer may repeat foreign text. A recalled answer in that conversation is
        checked in the same way. After `MAX_EARLIER_ANSWERS`, further answers count as foreign.
        """
        if answer.id not in checks.results:
            is_full = len(checks.results) >= MAX_EARLIER_ANSWERS
            checks.results[answer.id] = False
            if not is_full:
                is_own = await self._had_no_foreign_text(answer, context, checks)
                checks.results[answer.id] = is_own
        return checks.results[answer.id]

    async def _had_no_foreign_text(
        self, answer: Message, context: ToolContext, checks: _AnswerChecks
    ) -> bool:
        """Load the conversation up to an answer, and return whether it had no foreign text."""
        session = await self.conversations.find(answer.session_id, context.scopes)
        if answer.kind != "chat" or session is None or session.scope.is_group:
            return False
        rows = await self.conversations.load_history(session, context.scopes)
        session_ids = {session.id, *(row.session_id for row in rows)}
        if await self.conversations.has_erased(session, session_ids):
            return False
        known_rows = _join_accounts([row for row in rows if row.id <= answer.id], context)
        if not known_rows or known_rows[-1].id != answer.id:
            return False
        recalled = await self._load_recalled(known_rows, context, checks)

        def is_clean() -> bool:
            known_before = [row for row in checks.latest if row.id < answer.id]
            earlier = list_foreign_texts(known_before, session)
            return read_transcript(
                known_rows, session, context.sender, earlier, self.prompt_marks, recalled
            ).is_clean

        return await asyncio.to_thread(is_clean)


def _join_accounts(rows: Sequence[Message], context: ToolContext) -> list[Message]:
    """Return the messages, with the asker as the sender of messages from their other accounts.

    A direct chat shows the scopes of all accounts that are linked. In a group, only the account
    that asks is the asker's. An anonymous asker has no accounts.
    """
    own_ids = {scope.speaker("").user_id for scope in context.scopes if not scope.is_group}
    is_owner_of_chat = context.sender.id in own_ids and not context.sender.is_anonymous
    if context.session.scope.is_group or not is_owner_of_chat:
        return list(rows)
    joined: list[Message] = []
    for row in rows:
        if row.sender is not None and not row.sender.is_anonymous and row.sender.id in own_ids:
            row = replace(row, sender=replace(row.sender, id=context.sender.id))
        joined.append(row)
    return joined


def read_transcript(
    rows: Sequence[Message],
    session: Session,
    asker: Sender,
    earlier_foreign: Sequence[str] = (),
    prompt_marks: Sequence[str] = (),
    recalled: Mapping[int, Message] = MappingProxyType({}),
    takers: Mapping[int, str] | None = None,
) -> Transcript:
    """Split the messages of a conversation, oldest first, into typed and foreign texts.

    `earlier_foreign` are foreign texts of earlier conversations. A system prompt with one of the
    `prompt_marks` contains files that the person may not have written. `recalled` are messages that
    recalled lines quote, by id: those of people, and answers that can't repeat foreign text. See
    `find_question` for `takers`.
    """
    foreign = _list_all_foreign(rows, session, asker, recalled)
    prompt = _find_foreign_prompt(session.prompt.text, prompt_marks)
    if prompt:
        foreign.insert(0, ForeignText(_PROMPT_SOURCE, prompt))
    texts = [item.text for item in foreign if item.source != _PROMPT_SOURCE]
    finder = RepetitionFinder([*texts, *earlier_foreign])
    current = _list_answered_messages(rows)
    # A scheduled question was typed or approved when it was set.
    is_scheduled = session.address.platform == "cron"
    typed: list[str] = []
    questions: list[str] = []
    all_typed: list[str] = []
    previous = ""
    for index, row in enumerate(rows):
        part = _get_typed_text(row, asker)
        # An address that the person copies from a page is their own choice.
        if part and not is_scheduled and finder.is_repetition(_ADDRESS.sub(" ", part)):
            foreign.append(ForeignText(Sentence("source_repetition"), part))
        elif part:
            all_typed.append(part)
            if any(row is each for each in current):
                typed.append(part)
                # A "yes" to a question counts as if the person had typed the question.
                questions.append(_find_confirmed_question(part, row, rows[:index], asker, takers))
            else:
                previous = part
    if not all(map(is_plain_yes, typed)):
        # A message next to the "yes" may take it back: "wait, rather not".
        questions = []
    return Transcript(
        messages=tuple(typed),
        questions=tuple(filter(None, questions)),
        all_typed="\n".join(all_typed),
        previous=previous,
        foreign=tuple(foreign),
        search_results=_list_results(rows, "web_search"),
        page_results=_list_results(rows, "web_fetch"),
        new_page_results=_list_results(_list_rows_after(rows, current), "web_fetch"),
        page_requests=list_page_requests(list_made_calls(rows)),
        is_spoken=any(row.origin == "spoken" for row in current),
        calls=list_made_calls(_list_rows_after(rows, current)),
        has_long=not is_scheduled and _has_long_message(rows),
    )


def _find_foreign_prompt(prompt: str, marks: Sequence[str]) -> str:
    """Return a system prompt from the first section that other people may have written, or ""."""
    starts = [prompt.find(mark) for mark in marks if mark in prompt]
    return prompt[min(starts) :] if starts else ""


def _has_long_message(rows: Sequence[Message]) -> bool:
    """Return whether a person's message is more than one short line."""
    texts = [row.text for row in rows if row.role == "user" and row.kind == "chat" and row.text]
    return not all(map(is_single_line, texts))


def _list_rows_after(rows: Sequence[Message], current: Sequence[Message]) -> Sequence[Message]:
    """Return the rows that follow the first of the messages that are being answered."""
    for index, row in enumerate(rows):
        if any(row is each for each in current):
            return rows[index:]
    return ()


def _list_results(rows: Sequence[Message], tool_name: str) -> tuple[str, ...]:
    """Return the results of a tool's calls.

    Errors are left out, as they may repeat the arguments.
    """
    return tuple(
        row.text
        for row in rows
        if row.role == "tool"
        and row.tool_name == tool_name
        and not any(block.get("is_error") for block in row.blocks or ())
    )


def _find_confirmed_question(
    part: str,
    reply: Message,
    earlier: Sequence[Message],
    asker: Sender,
    takers: Mapping[int, str] | None,
) -> str:
    """Return the question that a typed "yes" in the message `reply` answers, or "".

    A question that repeats another member's words isn't the assistant's own, so it is ignored.
    """
    # Marks may take the "yes" back: "~yes~".
    is_bare = mask_quotations(part) == part and not is_marked(part)
    is_yes = is_bare and is_plain_yes(part)
    question = find_question(earlier, reply, takers) if is_yes else ""
    return "" if _repeats_member(question, earlier, asker) else question


def _repeats_member(question: str, rows: Sequence[Message], asker: Sender) -> bool:
    """Return whether a question repeats a message of another member of the group."""
    return bool(question) and any(
        row.sender is not None
        and row.sender.id != asker.id
        and shares_words(question, row.text, MIN_REPEATED_SHARE)
        for row in rows
    )


def _list_all_foreign(
    rows: Sequence[Message], session: Session, asker: Sender, recalled: Mapping[int, Message]
) -> list[ForeignText]:
    """Return all texts in the messages that the asker didn't type."""
    foreign: list[ForeignText] = []
    answers = {row.id: row.text for row in rows if row.role == "assistant"}
    for row in rows:
        foreign += _list_foreign(row, session, asker, recalled)
        # The rows already contain the texts behind the assistant's answers of this conversation.
        # Lines that the gateway adds to an answer, such as receipts, may repeat other texts.
        quote = row.quote
        if quote is not None and quote.is_ours:
            answer = " ".join(words_of(answers.get(quote.message_id or 0, "")))
            if " ".join(words_of(quote.text)) not in answer:
                foreign.append(ForeignText(Sentence("source_earlier_answer"), quote.text))
    return foreign


async def load_takers(
    conversations: Conversations, rows: Sequence[Message], session: Session
) -> Mapping[int, str]:
    """Return which event took the question of each answer that a person's message follows.

    If a message was deleted, no question counts, because it may repeat the deleted text.
    """
    if await conversations.has_erased(session, {session.id, *(row.session_id for row in rows)}):
        return {}
    answers: list[int] = []
    last_answer = 0
    for row in rows:
        if row.role == "assistant" and row.text.strip():
            last_answer = row.id
        elif last_answer and row.role == "user":
            answers.append(last_answer)
    return await conversations.load_takers(session, answers)


def drop_repetitions(
    takers: Mapping[int, str], rows: Sequence[Message], foreign_texts: Sequence[str]
) -> Mapping[int, str]:
    """Return the takers, with "" for answers that repeat foreign texts of earlier conversations.

    Only answers before a short reply are compared, because comparing takes long.
    """
    if not takers or not foreign_texts:
        return takers
    answers = [
        answer
        for answer, reply in pairwise(rows)
        if takers.get(answer.id) and len(reply.text) <= MAX_REPLY_CHARS
    ]
    if not answers:
        return takers
    sentences = list_sentence_terms(foreign_texts)
    checked_takers = dict(takers)
    for answer in answers:
        questions = list_questions(answer.text)
        if any(has_terms_of(frozenset(terms_of(text)), sentences) for text in questions):
            checked_takers[answer.id] = ""
    return checked_takers


def find_question(
    earlier: Sequence[Message], reply: Message, takers: Mapping[int, str] | None = None
) -> str:
    """Return the question that a "yes" in the message `reply` confirms, or "".

    The question must be the only question in the assistant's last answer, and at its end. If the
    conversation has foreign text, the answer must consist of the question alone, and no foreign
    text may have half of its words. A reply to another message answers that message. If another
    person wrote in between, the "yes" may answer that person.

    `takers` says which event took the question that was shown with an answer, by the id of the
    answer's message (`core.store.messages.load_takers`). It must be the reply. The taker is "" if
    the question repeated foreign text when it was stored, because that text may be edited later.
    The same question in a later answer isn't confirmed, either. If `takers` is None, it isn't known
    which questions were shown, and only the messages decide.
    """
    for message in reversed(earlier):
        if message.role == "assistant" and message.text.strip():
            if reply.quote is not None and reply.quote.message_id != message.id:
                return ""
            if takers is not None and takers.get(message.id) != f"message:{reply.external_id}":
                return ""
            question = _read_question(message.text, earlier)
            return "" if _repeats_doubtful_question(question, earlier, takers) else question
        if message.role != "user" or not _is_same_sender(message, reply):
            break
    return ""


def _repeats_doubtful_question(
    question: str, earlier: Sequence[Message], takers: Mapping[int, str] | None
) -> bool:
    """Return whether a question repeats an earlier one that repeated foreign text."""
    return any(
        takers is not None
        and takers.get(row.id) == ""
        and shares_words(question, row.text, MIN_REPEATED_SHARE)
        for row in earlier
    )


def _read_question(answer: str, earlier: Sequence[Message]) -> str:
    """Return the question at the end of an answer if a "yes" can confirm the question, else ""."""
    questions = list_questions(answer)
    if len(questions) != 1 or not ends_with_question(answer):
        return ""
    texts = [
        item.text
        for row in earlier
        if row.role != "assistant"
        for item in list_own_foreign_texts(row)
    ]
    if texts and questions[0].strip() != answer.strip():
        return ""
    is_foreign = shares_words(questions[0], "\n".join(texts), MIN_REPEATED_SHARE)
    return "" if is_foreign else questions[0]


def _repeats_seen_text(question: str, answer: str, foreign: Sequence[ForeignText]) -> bool:
    """Return whether a question repeats foreign texts of the conversation that the model has seen.

    If there are such texts, the answer must consist of the question alone. Messages of other
    members and summaries are compared in other ways.
    """
    texts = [item.text for item in foreign if item.source not in (_MEMBER_SOURCE, _SUMMARY_SOURCE)]
    if texts and question.strip() != answer.strip():
        return True
    return shares_words(question, "\n".join(texts), MIN_REPEATED_SHARE)


def _is_same_sender(message: Message, other: Message) -> bool:
    """Return whether two messages have the same sender, if both senders are known."""
    if message.sender is None or other.sender is None:
        return message.sender is other.sender
    return message.sender.id == other.sender.id


def mark_repeats(rows: Sequence[Message], earlier_foreign: Sequence[str]) -> list[Message]:
    """Return the rows, with the origin "pasted" for those that repeat a foreign text.

    If only the part that may be pasted repeats a foreign text, that part is removed instead.
    `earlier_foreign` are foreign texts of earlier conversations. A foreign text counts from the row
    in which it appears.
    """
    finder = RepetitionFinder(earlier_foreign)
    marked: list[Message] = []
    for row in rows:
        if row.role == "user" and row.sender is not None:
            parts = [item.text for item in list_message_parts(row)]
            text = row.text.strip()
            doubtful_text = text[find_foreign_start(text, row.sender_name) :].strip()
            if doubtful_text and finder.is_repetition(doubtful_text):
                row = replace(row, text=typed_part(row.text, sender_name=row.sender_name))
            finder.add(parts)
        if (part := typed_text(row)) and finder.is_repetition(part):
            row = replace(row, origin="pasted")
        marked.append(row)
    return marked


def _get_typed_text(row: Message, asker: Sender) -> str:
    """Return the text that the asker typed in a message, or ""."""
    if row.sender is None or row.sender.id != asker.id:
        return ""
    return typed_text(row, with_speech=True)


def _list_answered_messages(rows: Sequence[Message]) -> list[Message]:
    """Return the messages that are being answered: the last messages of people.

    Tool calls may be between them, after a restart or if a message arrives during the answer.
    """
    current: list[Message] = []
    for row in reversed(rows):
        if row.role == "user" and row.kind == "chat":
            current.append(row)
        elif current and row.role != "tool" and not _calls_tools(row):
            break
    return current


def _calls_tools(row: Message) -> bool:
    return any(block.get("type") == "tool_use" for block in row.blocks or ())


def _list_foreign(
    row: Message, session: Session, asker: Sender, recalled: Mapping[int, Message]
) -> list[ForeignText]:
    """Return the foreign texts that a row adds to the model's context."""
    if row.kind == "summary":
        return [ForeignText(_SUMMARY_SOURCE, row.text)]
    if row.role == "tool":
        return list_result(row, is_group=session.scope.is_group)
    if row.role == "assistant":
        if row.origin == "job":
            return [ForeignText(Sentence("source_job"), row.text)]
        return []

    texts = _list_background(row, session, recalled)
    if row.kind != "chat":
        return texts
    if row.sender is not None and row.sender.id != asker.id:
        return [*texts, ForeignText(_MEMBER_SOURCE, row.text)]
    return [*texts, *list_message_parts(row)]


def _list_recalled_ids(rows: Sequence[Message]) -> set[int]:
    """Return the ids of the messages that recalled lines quote."""
    ids: set[int] = set()
    for row in rows:
        for block in row.memory_blocks:
            for line in str(block.get("text", "")).splitlines():
                if match := _RECALLED_MESSAGE.match(line):
                    ids.add(int(match["id"]))
    return ids


def _list_background(
    row: Message, session: Session, recalled: Mapping[int, Message]
) -> list[ForeignText]:
    """Return the texts that Mneme added to a message: recalled lines, skills, rules and jobs.

    Recalled lines that the sender typed are left out.
    """
    texts: list[ForeignText] = []
    for block in row.sent_blocks or ():
        text = str(block.get("text", ""))
        for lead, source in _FRAME_SOURCES.items():
            if text.startswith(lead):
                texts.append(ForeignText(Sentence(source), text))
    for block in row.memory_blocks:
        for line in str(block.get("text", "")).splitlines():
            if _RECALLED_LINE.match(line) and not _is_own_line(line, row, session, recalled):
                texts.append(ForeignText(Sentence("source_recalled"), line))
    return texts


def _is_own_line(
    line: str, row: Message, session: Session, recalled: Mapping[int, Message]
) -> bool:
    """Return whether a recalled line quotes a message of the row's sender, or an own answer.

    The message itself is checked, because the line doesn't show which part was pasted. A line with
    more text than the message, such as a title, isn't the sender's own.
    """
    match = _RECALLED_MESSAGE.match(line)
    message = recalled.get(int(match["id"])) if match is not None else None
    if match is None or message is None or row.sender is None or session.scope.is_group:
        return False
    if message.role == "assistant":
        return _is_quoted(message, "you: ", match["rest"])
    if message.sender is None or message.sender.id != row.sender.id:
        return False
    is_quoted = _is_quoted(message, f"{message.sender.name}: ", match["rest"])
    is_typed = message.origin == "typed" and typed_text(message) != ""
    return is_quoted and is_typed and not list_message_parts(replace(message, quote=None))


def _is_quoted(message: Message, lead: str, line: str) -> bool:
    """Return whether a line consists of the lead and the beginning of a message's text."""
    start = line.removesuffix(" \u2026")
    is_beginning = f"{lead}{' '.join(message.text.split())}".startswith(start)
    return is_beginning and len(start) > len(lead)
