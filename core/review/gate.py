"""Decides before a tool runs whether its call runs at once or waits for the person's approval.

The gate checks the calls of all tools. It considers the effect of the call (`core.types.Effect`),
the person's words in the messages that are being answered, and the foreign text in the conversation
(`core/review/transcript.py`):

- `READ` and `SPEND` run at once. A budget limits the costs of a turn.

- A call that changes a pinned item waits.

- If the person spoke, and the conversation contains no foreign text, every other call runs at once,
  unless it sends something and the message forbids that. But a message may be a paste that isn't
  recognized. Therefore, an item is removed or weakened at once only if a short message contains
  words that only this item has, and doesn't name another person as the author of the request.

- Otherwise, the whole message must be the request (`core/review/wishes.py`), and it must name the
  item exactly (`core/review/naming.py`). A text that is sent or that replaces another text must be
  typed in one piece. A web address that the person typed is opened whatever else the message says,
  unless it speaks against that. The address may also be a result of an earlier search.

- In all other cases, the helper model decides (`core/review/wish_judge.py`), or the person does
  with a tap.

The tools for notes, facts, skills and reminders also compare their texts with the typed messages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from core.errors import Refused, ToolError, word_clause
from core.review.carried_out import (
    CarriedOutWishes,
    LinkChoices,
    MadeCall,
    SearchForms,
    SentTexts,
)
from core.review.doubts import speaks_against_wish
from core.review.effects import list_choices, list_effects
from core.review.naming import dictates_change, names_subject, points_at_thing
from core.review.pending import Review, is_waiting_result
from core.review.phrases import is_dictated
from core.review.repetition import shares_words
from core.review.searches import (
    Offer,
    asks_for_address,
    asks_for_look_up,
    asks_to_send,
    forbids_sending,
    hands_over_address,
    has_marks,
    has_other_content,
    is_for_sender,
    is_made_of,
    is_typed_span,
    judge_link,
    judge_repetition,
    judge_result,
    list_joined_sites,
    list_searchable,
    name_query,
    names_address,
)
from core.review.transcript import Transcript, TranscriptReader
from core.review.wish_judge import WishedCall, WishJudge, may_be_wished
from core.review.wishes import Wish, find_wishes, is_bare_question
from core.store.notes import TOOL_CALL, Author, Operation
from core.types import Effect, Json, Subject, Tool, ToolContext

EvidenceCheck = Callable[[Sequence[str], ToolContext], Awaitable[str | None]]
"""A function that returns a clause about the first text that the person didn't type, or None."""

FREE_EFFECTS = frozenset({Effect.READ, Effect.SPEND})
# A replacement counts as typed if the person typed at least this share of the words that it adds.
_MIN_TYPED_SHARE = 0.6
# A replacement must repeat at least this share of the words of the note that it replaces.
_MIN_KEPT_SHARE = 0.3
# For these effects, the texts of a call are compared with the typed messages. A tool that holds
# back its own calls (`can_hold`) compares them itself.
_CONTENT_EFFECTS = frozenset({Effect.ADD, Effect.CHANGE, Effect.PLAN})
# The person must have typed at least this share of the words in a text that leaves the machine.
_MIN_SENT_SHARE = 1.0
# A name of an argument.
_KEY = re.compile(r"[A-Za-z_][\w.$-]{0,39}")
# If a long message may contain a paste, these effects need an explicit request.
_ENDING_EFFECTS = frozenset({Effect.REMOVE, Effect.WEAKEN})
# Effects that a voice message may have at once. Other effects wait, because speech is easily
# misheard.
_SPOKEN_EFFECTS = frozenset({Effect.ADD, Effect.PLAN})


@dataclass
class Gate:
    """Decides whether a call runs at once, and stores the calls that need approval."""

    transcripts: TranscriptReader
    review: Review
    explain_untyped: EvidenceCheck
    link_choices: LinkChoices
    # Judges requests that the rules don't recognize. None without a helper model.
    judge: WishJudge | None = None
    carried_out: CarriedOutWishes = field(default_factory=CarriedOutWishes)
    sent_texts: SentTexts = field(default_factory=SentTexts)
    search_forms: SearchForms = field(default_factory=SearchForms)

    async def check(
        self,
        tool: Tool,
        arguments: Json,
        context: ToolContext,
        tools: Mapping[str, Tool] = MappingProxyType({}),
    ) -> ToolContext:
        """Return the context for a call. If the call has to wait, its `hold_reason` says why.

        `tools` are the tools that the turn may have called before, by name. Raises ToolError if the
        arguments name an action that the tool doesn't have.
        """
        effects = list_effects(tool, arguments) - FREE_EFFECTS
        if not effects:
            return context
        subjects = await _find_subjects(tool, arguments, context)
        if reason := _explain_pinned(subjects):
            return replace(context, hold_reason=reason)
        transcript = await self.transcripts.load(context)
        context = replace(context, foreign_source=transcript.tool_source)
        if transcript.is_spoken and effects - _SPOKEN_EFFECTS:
            return replace(context, hold_reason=word_clause("waits_misheard"))
        ends_items = bool(effects & _ENDING_EFFECTS) and bool(subjects)
        if transcript.is_clean:
            is_forbidden = not tool.is_lookup and forbids_sending(transcript.messages)
            sends = effects & {Effect.SEND} if is_forbidden else frozenset()
            effects = sends | _list_doubtful_effects(effects, subjects, transcript)
        for effect in sorted(effects, key=lambda effect: effect.value):
            reason = await self._explain(effect, tool, arguments, subjects, transcript, context)
            if reason:
                return replace(context, hold_reason=reason)
        if Effect.SEND in effects and not self._is_sent_first(tool, arguments, transcript, context):
            return replace(context, hold_reason=word_clause("waits_sent_already"))
        if ends_items:
            ended = _list_ended_items(transcript.calls, tool, arguments, tools)
            if not self._may_end(subjects, ended, transcript, context):
                return replace(context, hold_reason=_word_unrequested(transcript))
        return context

    def _may_end(
        self,
        subjects: Sequence[Subject],
        ended: Sequence[str],
        transcript: Transcript,
        context: ToolContext,
    ) -> bool:
        """Record that a call ends some items, and return whether the messages ask for that.

        `ended` are the items that earlier calls ended for the same messages.
        """
        if context.message_id is None:
            return True
        typed = (*transcript.messages, *transcript.questions)
        self.carried_out.restore(context.message_id, ended)
        return self.carried_out.take(context.message_id, subjects, typed)

    def _is_sent_first(
        self, tool: Tool, arguments: Json, transcript: Transcript, context: ToolContext
    ) -> bool:
        """Record a call of an external service, and return whether its texts are sent first.

        A call that failed counts, too, because the service may have received it. Files for the
        person aren't recorded. A look-up is made once for a message, so it may be repeated.
        """
        if context.message_id is None or not tool.is_external:
            return True
        if tool.is_lookup:
            return self._has_one_form(tool, arguments, transcript, context.message_id)
        calls = [
            call.arguments
            for call in transcript.calls
            if call.tool == tool.name and not is_waiting_result(call.result)
        ]
        earlier = [_describe_sent_texts(tool, call) for call in calls]
        self.sent_texts.restore(context.message_id, earlier)
        return self.sent_texts.take(context.message_id, _describe_sent_texts(tool, arguments))

    def _has_one_form(
        self, tool: Tool, arguments: Json, transcript: Transcript, message_id: int
    ) -> bool:
        """Record a search, and return whether the message had no other form of its query.

        "the weather in Rome" and "weather Rome" are forms of one query.
        """
        query = _find_query(arguments)
        if not query:
            return True
        earlier = [
            _find_query(call.arguments)
            for call in transcript.calls
            if call.tool == tool.name and not is_waiting_result(call.result)
        ]
        self.search_forms.restore(message_id, {name_query(form): form for form in earlier})
        return self.search_forms.take(message_id, name_query(query), query)

    async def hold(self, tool: Tool, arguments: Json, context: ToolContext) -> str:
        """Store a call until the person approves it, and return a sentence for the model.

        Raises Refused if too many changes are already waiting.
        """
        author = Author(
            account=None if context.sender.is_anonymous else context.account,
            message_id=context.message_id,
            address=context.session.address,
            epoch=context.epoch,
        )
        content = json.dumps(dict(arguments), ensure_ascii=False)
        operation = Operation(action="call", path=tool.name, content=content)
        return await self.review.put_aside(
            context.scope, TOOL_CALL, [operation], author, context.hold_reason
        )

    async def _explain(
        self,
        effect: Effect,
        tool: Tool,
        arguments: Json,
        subjects: Sequence[Subject],
        transcript: Transcript,
        context: ToolContext,
    ) -> str:
        """Return a clause that says why a call with this effect has to wait, or ""."""
        call = arguments
        arguments, action_argument = _get_inner_call(tool, arguments)
        texts = _list_texts(arguments, action_argument)
        if effect is Effect.CHANGE:
            choices = list_choices(tool.schema)
            texts = [text for text in texts if text not in choices]
        if effect is Effect.SEND and tool.is_lookup:
            return await self._explain_lookup(tool, arguments, transcript, context)
        if effect in (*_CONTENT_EFFECTS, Effect.SEND) and not tool.can_hold:
            texts += _list_numbers_and_keys(arguments, action_argument)
            missing = await self._explain_content(texts, transcript, context)
            if missing:
                return missing
        if effect is Effect.ADD:
            return _explain_addition(tool, texts, transcript)
        if _compares_itself(tool, effect, subjects, transcript):
            return ""
        tool_words = _name_tool(tool, call)
        if effect is Effect.SEND and not _is_typed_to_send(tool, call, texts, subjects, transcript):
            return _word_unrequested(transcript)
        known = [*texts, tool_words]
        reason = _explain_untyped(effect, texts, subjects, transcript, known)
        if reason and await self._is_wished(tool, effect, arguments, subjects, transcript, context):
            return ""
        return reason

    async def _is_wished(
        self,
        tool: Tool,
        effect: Effect,
        arguments: Json,
        subjects: Sequence[Subject],
        transcript: Transcript,
        context: ToolContext,
    ) -> bool:
        """Return whether the helper model says that the person requested a call."""
        if self.judge is None:
            return False
        wished = WishedCall(tool.name, effect, arguments, subjects)
        return await self.judge.is_wished(wished, transcript, context)

    async def _explain_lookup(
        self, tool: Tool, arguments: Json, transcript: Transcript, context: ToolContext
    ) -> str:
        """Return a clause that says why a look-up has to wait, or "".

        If the words and addresses were typed in a message with other content, the helper model
        decides. A link that the model chooses has to wait if it has already chosen one.
        """
        reason, may_ask_helper = _judge_lookup(arguments, transcript, context)
        url = str(arguments.get("url") or "").strip()
        if not reason and url and _judge_address(url, transcript, context) is Offer.CHOSEN:
            may_ask_helper = False
            sites = list_joined_sites(url, transcript.page_requests)
            if not await self.link_choices.take(url, sites, context):
                reason = word_clause("waits_another_link")
        if reason and may_ask_helper:
            effect = Effect.SEND
            if await self._is_wished(tool, effect, arguments, (), transcript, context):
                return ""
        return reason

    async def _explain_content(
        self, texts: Sequence[str], transcript: Transcript, context: ToolContext
    ) -> str:
        """Return a clause that says which text of a call the person didn't type, or ""."""
        others = [
            text
            for text in texts
            if not any(is_dictated(text, message) for message in transcript.messages)
        ]
        missing = await self.explain_untyped(others, context)
        is_typed = bool(texts) and all(
            shares_words(text, transcript.all_typed, _MIN_TYPED_SHARE) for text in texts
        )
        if missing or is_typed:
            return missing or ""
        # The words of another member of a group aren't the asker's.
        return word_clause("waits_not_typed")


def _find_query(arguments: Json) -> str:
    """Return the query of a search in lower case and without needless blanks, or ""."""
    return " ".join(str(arguments.get("query") or "").casefold().split())


def _list_ended_items(
    calls: Sequence[MadeCall], tool: Tool, arguments: Json, tools: Mapping[str, Tool]
) -> list[str]:
    """Return the calls that ended an item, as text, without those equal to the present call."""
    ended: list[str] = []
    for call in calls:
        other = tools.get(call.tool)
        is_same = call.tool == tool.name and call.arguments == arguments
        if other is None or is_same or is_waiting_result(call.result):
            continue
        try:
            effects = list_effects(other, call.arguments)
        except ToolError:
            continue
        if effects & _ENDING_EFFECTS:
            ended.append(f"{call.tool}\n{json.dumps(call.arguments, sort_keys=True)}")
    return ended


def _get_inner_call(tool: Tool, arguments: Json) -> tuple[Json, str]:
    """Return the arguments that a call passes on, and the name of the one with the action, or "".

    A tool that stands for several tools passes on the arguments of the inner tool.
    """
    if not tool.inner_argument:
        return arguments, tool.action_argument
    inner = arguments.get(tool.inner_argument)
    return (inner if isinstance(inner, Mapping) else {}), ""


def _name_tool(tool: Tool, call: Json) -> str:
    """Return the words of a tool's name and of the action that a call names."""
    action = call.get(tool.action_argument) if tool.action_argument else ""
    words = f"{tool.name} {action if isinstance(action, str) else ''}"
    return re.sub(r"[\W_]+", " ", words).strip()


def _explain_pinned(subjects: Sequence[Subject]) -> str:
    """Return why a call that changes a pinned item has to wait, as a clause, or ""."""
    for subject in subjects:
        if subject.is_pinned:
            return word_clause("waits_pinned", label=subject.label)
    return ""


def _describe_sent_texts(tool: Tool, call: Json) -> str:
    """Return the tool and the texts of a call, whatever their order and their arguments."""
    arguments, action_argument = _get_inner_call(tool, call)
    texts = _list_texts(arguments, action_argument)
    texts += _list_numbers_and_keys(arguments, action_argument)
    return "\n".join([_name_tool(tool, call), *sorted(text.strip().casefold() for text in texts)])


def _may_hide_values(arguments: Json) -> bool:
    """Return whether repeated texts, blanks around texts or empty values could carry data.

    A missing value (null) isn't sent (`core/tools/mcp_tools.py`).
    """
    texts = _list_texts(arguments, "")
    is_repeated = len({text.casefold() for text in texts}) < len(texts)
    has_blanks = any(text != text.strip() for text in texts)
    return is_repeated or has_blanks or any(value in ("", [], {}) for value in arguments.values())


def _explain_addition(tool: Tool, texts: Sequence[str], transcript: Transcript) -> str:
    """Return why an addition of typed texts has to wait, as a clause, or "".

    It waits if the messages only ask about the texts or cross them out. If a tool holds back its
    own calls, it compares the texts itself.
    """
    messages = transcript.messages
    is_doubtful = any(map(is_bare_question, messages)) or has_marks(messages, texts)
    return _word_unrequested(transcript) if is_doubtful and not tool.can_hold else ""


def _compares_itself(
    tool: Tool, effect: Effect, subjects: Sequence[Subject], transcript: Transcript
) -> bool:
    """Return whether the tool itself compares a new plan with the typed messages."""
    is_new_plan = effect is Effect.PLAN and not subjects
    return is_new_plan and tool.can_hold and bool(transcript.messages)


def _list_doubtful_effects(
    effects: Iterable[Effect], subjects: Sequence[Subject], transcript: Transcript
) -> frozenset[Effect]:
    """Return the effects that need an exact request although the conversation has no foreign text.

    These effects are removing and weakening. They don't need an exact request if a short message of
    the person names the item, or if it points at the item ("delete that one") in a conversation
    without long messages.
    """
    ending = _ENDING_EFFECTS.intersection(effects)
    if not ending or transcript.questions:
        return ending if transcript.has_long else frozenset()
    messages = transcript.messages
    if all(may_be_wished(effect, subjects, messages) for effect in ending):
        return frozenset()
    is_own = not transcript.has_long and not any(
        speaks_against_wish(text, Effect.REMOVE) for text in messages
    )
    wishes = find_wishes(messages, Effect.WEAKEN)
    is_open = not subjects or any(map(points_at_thing, wishes))
    return frozenset() if is_own and is_open else ending


def _word_unrequested(transcript: Transcript) -> str:
    """Return the clause for a call that the person didn't request."""
    if not transcript.foreign:
        return word_clause("waits_nobody_asked")
    return word_clause("waits_not_wished", source=transcript.foreign[0].source)


def _explain_untyped(
    effect: Effect,
    texts: Sequence[str],
    subjects: Sequence[Subject],
    transcript: Transcript,
    known: Sequence[str],
) -> str:
    """Return a clause that says why the messages aren't wholly a request for a call, or "".

    `known` are texts whose words a message may contain if the call has no subject or sends
    something.
    """
    not_wished = _word_unrequested(transcript)
    if not transcript.messages:
        return not_wished
    if effect is Effect.SEND:
        known = (*known, *(f"{subject.text} {subject.label}" for subject in subjects))
        return not_wished if has_other_content(transcript.messages, known) else ""
    if effect is Effect.CHANGE and any(_list_new_texts(texts, each) for each in subjects):
        return "" if _is_typed_replacement(texts, subjects, transcript) else not_wished
    wishes = find_wishes(transcript.messages, effect, transcript.questions)
    if not wishes:
        return not_wished
    if effect is Effect.PLAN and not subjects:
        is_typed = all(
            is_typed_span(text, transcript.messages, with_small_words=True) for text in texts
        )
        return "" if is_typed and not has_other_content(transcript.messages, known) else not_wished
    return _explain_unnamed(wishes, subjects, transcript)


def _is_typed_to_send(
    tool: Tool,
    call: Json,
    texts: Sequence[str],
    subjects: Sequence[Subject],
    transcript: Transcript,
) -> bool:
    """Return whether the answered messages ask for a call and contain all text that is sent.

    An answer to a question, and words of an earlier message, were typed for a different purpose.
    """
    arguments, _ = _get_inner_call(tool, call)
    tool_words = _name_tool(tool, call)
    if tool.is_external and _may_hide_values(arguments):
        return False
    if _has_untyped_shape(arguments) or any(map(is_bare_question, transcript.messages)):
        return False
    if not asks_to_send(transcript.messages, tool_words, has_subject=bool(subjects)):
        return False
    if not subjects and is_for_sender(transcript.messages, texts, tool_words):
        return False
    is_typed = all(
        is_typed_span(text, transcript.messages, with_small_words=True) for text in texts
    )
    return is_typed and all(_is_named_to_send(each, transcript) for each in subjects)


def _is_named_to_send(subject: Subject, transcript: Transcript) -> bool:
    """Return whether the messages being answered contain an item's words or its label."""
    typed = "\n".join(transcript.messages)
    if shares_words(subject.text, typed, _MIN_SENT_SHARE):
        return True
    return bool(re.search(rf"(?<!\w){re.escape(subject.label)}(?!\w)", typed, re.IGNORECASE))


def _judge_lookup(
    arguments: Json, transcript: Transcript, context: ToolContext
) -> tuple[str, bool]:
    """Return why a look-up has to wait, as a clause, or "", and whether to ask the helper model.

    An address must be typed in the message that is answered, be a result of an earlier search, or
    be a link from a page to its own host (`core/review/searches.py`). A message may speak against a
    typed address ("don't open …"). In a session without a person, only typed addresses are opened,
    because a page can offer a link for each secret. Other texts must be typed in one piece. The
    message must ask for the look-up and have no other content. A clause that states a secret isn't
    a request (`core/review/searches.py`). The helper model may judge words of the previous message.
    """
    is_attended = context.session.is_remembered
    texts = {name: text for name, text in arguments.items() if isinstance(text, str)}
    is_asked = not is_attended or asks_for_look_up(transcript.messages)
    is_whole = not is_attended or not has_other_content(transcript.messages, [*texts.values()])
    for name, text in texts.items():
        if name != "url":
            if not (is_whole and is_asked and _is_searchable(text, transcript)):
                return word_clause("waits_search_words"), _may_be_searched(text, transcript)
        elif _judge_address(text.strip(), transcript, context) is Offer.NONE:
            return word_clause("waits_address"), names_address(transcript.typed, text.strip())
    return "", True


def _judge_address(url: str, transcript: Transcript, context: ToolContext) -> Offer:
    """Return whether a web address was typed, or returned by a search or a page.

    An address of an earlier message was typed for a different purpose. It's opened only for a
    message such as "open it".
    """
    if not context.session.is_remembered:
        return Offer.FREE if names_address(transcript.all_typed, url) else Offer.NONE
    messages = transcript.messages
    if hands_over_address(messages, url):
        return Offer.FREE
    is_typed = names_address(transcript.all_typed, url) and asks_for_address(messages, url)
    if is_typed and not has_other_content(messages, [url]):
        return Offer.FREE
    return _judge_offer(url, transcript)


def _judge_offer(url: str, transcript: Transcript) -> Offer:
    """Return whether a search or a page offers an address to a person who requests something.

    A page of an earlier message is read again only for a request or a question. Otherwise, it could
    learn a secret from the messages for which it's read. Its links are offered only for a request
    such as "open the prices". Otherwise, a page with a link for each secret could learn a secret
    from any question.
    """
    messages, new_pages = transcript.messages, transcript.new_page_results
    offers = [judge_repetition(url, new_pages, new_pages)]
    if asks_for_look_up(messages):
        offers.append(judge_repetition(url, new_pages, transcript.page_results))
        offers.append(judge_result(url, transcript.search_results, messages))
        offers.append(judge_link(url, new_pages, messages, new_pages))
    if asks_for_look_up(messages, by_verb=True):
        offers.append(judge_link(url, transcript.page_results, messages, new_pages))
    return next(offer for offer in Offer if offer in offers)


def _is_searchable(text: str, transcript: Transcript) -> bool:
    """Return whether a text was typed in one piece, without clauses that state a secret."""
    texts = (*transcript.messages, *transcript.questions)
    return is_typed_span(text, [list_searchable((each,)) for each in texts])


def _may_be_searched(text: str, transcript: Transcript) -> bool:
    """Return whether a text contains only words of these messages and the previous message."""
    texts = (transcript.previous, *transcript.messages, *transcript.questions)
    return is_made_of(text, list_searchable(texts))


def _explain_unnamed(
    wishes: Sequence[Wish], subjects: Sequence[Subject], transcript: Transcript
) -> str:
    """Return why no request names the first of some items, as a clause, or ""."""
    foreign_texts = [item.text for item in transcript.foreign]
    label = "" if subjects else word_clause("label_item")
    for subject in subjects:
        if not any(names_subject(wish, subject, foreign_texts) for wish in wishes):
            label = subject.label
            break
    source = transcript.foreign[0].source if transcript.foreign else None
    return word_clause("waits_not_named", label=label, source=source) if label else ""


def _is_typed_replacement(
    texts: Sequence[str], subjects: Sequence[Subject], transcript: Transcript
) -> bool:
    """Return whether the messages ask to change the item, and contain the exact replacement.

    The replacement must repeat a part of the replaced text.
    """
    typed = " ".join(transcript.messages)
    if speaks_against_wish(typed, Effect.CHANGE):
        return False
    for subject in subjects:
        for text in _list_new_texts(texts, subject):
            is_related = shares_words(subject.text, text, _MIN_KEPT_SHARE)
            if not is_related or not dictates_change(typed, text, subject):
                return False
    return bool(subjects)


def _list_new_texts(texts: Sequence[str], subject: Subject) -> list[str]:
    """Return the texts that a call adds to an item, without those that are part of another one.

    The longest part of the item's text names the item, unless it has a number. Any other part
    replaces the item, so it's new, too.
    """
    parts = sorted((text for text in texts if text in subject.text), key=len)
    if not subject.number:
        parts = parts[:-1]
    new_texts = [text for text in texts if text not in subject.text]
    new_texts = [
        text for text in new_texts if not any(text in other != text for other in new_texts)
    ]
    return [*new_texts, *parts]


def _list_texts(value: object, action_argument: str) -> list[str]:
    """Return all strings in the arguments except the action."""
    texts: list[str] = []
    if isinstance(value, str):
        if value.strip():
            texts.append(value)
    elif isinstance(value, Mapping):
        for name, child in value.items():
            if not action_argument or name != action_argument:
                texts += _list_texts(child, action_argument)
    elif isinstance(value, (list, tuple)):
        for child in value:
            texts += _list_texts(child, action_argument)
    return texts


def _has_untyped_shape(value: object, depth: int = 0) -> bool:
    """Return whether arguments have keys like sentences, or empty values inside other values.

    Both could carry data that the person didn't type.
    """
    if isinstance(value, str):
        return bool(value) and not value.strip()
    if isinstance(value, Mapping):
        children = list(value.values())
        if not all(_KEY.fullmatch(str(key)) for key in value):
            return True
    elif isinstance(value, (list, tuple)):
        children = list(value)
    else:
        return False
    is_empty = [child in (None, "", [], {}) for child in children]
    has_gap = (depth > 0 and any(is_empty)) or (depth > 1 and not children)
    return has_gap or any(_has_untyped_shape(child, depth + 1) for child in children)


def _list_numbers_and_keys(value: object, action_argument: str, depth: int = 0) -> list[str]:
    """Return, as texts, the numbers in the arguments and the keys of nested mappings.

    The names of the arguments themselves come from the tool, so they are left out.
    """
    if isinstance(value, (int, float)):
        return [str(value)]
    texts: list[str] = []
    if isinstance(value, Mapping):
        for name, child in value.items():
            if name != action_argument or depth > 0:
                texts += [str(name)] if depth > 0 else []
                texts += _list_numbers_and_keys(child, action_argument, depth + 1)
    elif isinstance(value, (list, tuple)):
        for child in value:
            texts += _list_numbers_and_keys(child, action_argument, depth + 1)
    return texts


async def _find_subjects(tool: Tool, arguments: Json, context: ToolContext) -> Sequence[Subject]:
    """Return the items that a call changes.

    The result is empty if an item doesn't exist, because the tool itself reports that.
    """
    if tool.find_subjects is None:
        return ()
    try:
        return await tool.find_subjects(arguments, context)
    except (Refused, ToolError):
        return ()
