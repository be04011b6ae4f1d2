"""Shows and changes facts: /remember, /facts, and the actions of /memory that concern facts.

The name of a fact is ``f`` and its number, such as ``f12``. In a group, everyone may read the
facts, but only the owner and the person who stated a fact may change it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import tzinfo
from itertools import groupby

from core.errors import Refused
from core.facts.editor import FactEditor
from core.facts.provider import FactRanking, FactSearch, Question
from core.markup.markdown import escape
from core.store.facts.history import list_facts_after, list_facts_before
from core.store.facts.rows import Fact, FactChange
from core.store.messages import find_original
from core.text.normalize import shorten
from core.types import Account, Answer, Button, Command, Form, Message, Scope
from gateway.commands.privacy import (
    CONFIRMED_PREFIX,
    describe_copies,
    is_owner_alone,
    quote_phrase,
    render_erasure_list,
    render_receipt,
)
from gateway.commands.registry import CommandContext, load_specs, make_button
from gateway.services import Services
from gateway.texts.catalog import Texts

_FACTS_PER_PAGE = 8
_MAX_SHOWN_CHANGES = 12
_MAX_BEFORE_CHARS = 120
# "f12", or "f12 I live in Faro" with the rest "I live in Faro".
_FACT_NAME = re.compile(r"f(?P<id>\d{1,12})(?:\s+(?P<rest>.*))?", re.IGNORECASE | re.DOTALL)
# "after f12": the page that begins after this fact.
_PAGE = re.compile(r"(?P<side>after|before) f(?P<id>\d{1,12})", re.IGNORECASE)
# The actions of /memory on a fact. `data/commands.toml` describes them.
_FACT_ACTIONS = (
    "facts",
    "why",
    "pin",
    "unpin",
    "right",
    "wrong",
    "correct",
    "forget",
    "undo",
    "restore",
)
# After "undo f12", this takes back all changes of the fact: it is deleted.
UNDO_ALL = "--all"
# The kinds of changes that set the wording of a fact.
_WORDING_CHANGES = ("learn", "correct", "undo")
_CONFIRMED = CONFIRMED_PREFIX.strip()


def is_own_account(context: CommandContext, account: Account) -> bool:
    """Return whether an account belongs to the person who runs the command."""
    scope = Scope.account(account.platform, account.user_id)
    return account == context.account or scope in context.scopes


class FactCommands:
    specs = load_specs("remember", "facts")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._facts = services.facts
        ranking = FactRanking(hrr=services.settings.facts.hrr_weight)
        self.known_facts = FactSearch(services.facts, ranking, services.zone)
        self._editor = FactEditor(services.facts, services.zone)

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """Run /facts or /remember."""
        if command.name == "facts":
            return await self._list(command.arguments.strip(), context)
        return await self._remember(command.arguments, context)

    async def answer_memory_command(
        self, action: str, text: str, context: CommandContext
    ) -> Answer | None:
        """Answer a /memory command that concerns facts. Returns None for any other command.

        `text` is the text after the action, such as ``f12`` or ``f12 I live in Faro``.
        """
        if action == "facts":
            return await self._list(text, context)
        if action not in _FACT_ACTIONS:
            return None
        match = _FACT_NAME.fullmatch(text)
        if match is None:
            return None
        new_text = (match["rest"] or "").strip()
        is_confirmed = action == "forget" and new_text.startswith(_CONFIRMED)
        is_whole = action == "undo" and new_text == UNDO_ALL
        if new_text and action != "correct" and not is_confirmed and not is_whole:
            # The command concerns a note with a text that looks like the name of a fact.
            return None

        return await self._run_on_fact(action, int(match["id"]), new_text, context)

    async def _run_on_fact(
        self, action: str, fact_id: int, new_text: str, context: CommandContext
    ) -> Answer:
        """Find a fact, check that the person may change it, and run an action on it.

        `new_text` is the text after the name of the fact. Raises Refused if this person may not
        change the fact, or if there is no such fact.
        """
        texts = context.texts
        is_forgetting = action == "forget" and new_text.startswith(_CONFIRMED)
        fact = await self._facts.find(fact_id, context.scopes)
        # Only "yes" and the button confirm. Their command ends with the token of the list of
        # messages to erase, if there are any.
        is_confirmed = is_forgetting and not context.is_typed_command
        token = new_text.removeprefix(_CONFIRMED).strip() if is_confirmed else ""
        if fact is None and not token:
            raise Refused(texts.NO_FACT.format(name=f"f{fact_id}"))
        if fact is not None and action != "why" and not context.can_change(fact.account):
            raise Refused(texts.SPEAKER_CHANGES)
        # After a crash, a confirmed erasure is repeated even if the fact is already deleted.
        if fact is None or is_confirmed:
            return await self._erase(fact, token, context)
        return await self._run_action(action, fact, new_text, context)

    async def find_facts(self, text: str, context: CommandContext, limit: int) -> Sequence[Fact]:
        """Return the facts that match `text`, best first. Without text, return the latest."""
        if not text:
            return await self._facts.list_page(context.scopes, limit)
        question = Question(text, context.scopes, self._services.clock.now(), context.account)
        return await self.known_facts.search(question, limit)

    async def render_page(
        self, context: CommandContext, after: int | None = None, before: int | None = None
    ) -> Answer:
        """Render one page of all facts, grouped by kind, with a button for each fact.

        `after` and `before` are the number of the fact after which the page begins or before which
        it ends.
        """
        texts = context.texts
        facts, has_earlier, has_more = await self._load_page(context, after, before)
        if not facts:
            is_first = after is None and before is None
            empty = texts.NO_FACTS if is_first else texts.NO_SUCH_PAGE
            return Answer(text=f"{texts.FACTS_HEADING}\n\n{empty}")

        lines = [texts.FACTS_HEADING, *self._render_groups(facts, context)]
        buttons = _make_fact_choices(texts, facts)
        if has_earlier:
            earlier_page = f"facts before f{facts[0].id}"
            buttons.append(make_button(texts.BUTTON_BACK, "memory", earlier_page))
        if has_more:
            next_page = f"facts after f{facts[-1].id}"
            buttons.append(make_button(texts.BUTTON_MORE, "memory", next_page))
            lines.append("")
            lines.append(texts.FACTS_MORE.format(page=next_page))
        first = f"f{facts[0].id}"
        lines.append("")
        lines.append(texts.FACTS_HINT.format(fact=first))
        return Answer(text="\n".join(lines), buttons=tuple(buttons), is_page=True)

    async def _load_page(
        self, context: CommandContext, after: int | None, before: int | None
    ) -> tuple[Sequence[Fact], bool, bool]:
        """Return the facts of a page, and whether more facts come before and after them."""
        database = self._services.database
        scopes = context.scopes
        limit = _FACTS_PER_PAGE + 1
        if before is not None:
            facts = await list_facts_before(database, scopes, before, limit)
            return facts[-_FACTS_PER_PAGE:], len(facts) == limit, True
        if after is not None:
            facts = await list_facts_after(database, scopes, after, limit)
            return facts[:_FACTS_PER_PAGE], True, len(facts) == limit
        facts = await self._facts.list_page(scopes, limit)
        return facts[:_FACTS_PER_PAGE], False, len(facts) == limit

    def _render_groups(self, facts: Sequence[Fact], context: CommandContext) -> list[str]:
        """Render facts as Markdown lines, one titled group for each kind of fact."""
        lines = []
        for title, group in group_facts(context.texts, facts):
            lines += ["", f"_{title}_", "", *self._render_lines(group, context)]
        return lines

    async def _list(self, text: str, context: CommandContext) -> Answer:
        """List one page of the facts, or the facts that match `text`.

        ``after f12`` and ``before f12`` name a page.
        """
        if not text:
            return await self.render_page(context)
        if match := _PAGE.fullmatch(text):
            fact_id = int(match["id"])
            is_after = match["side"].lower() == "after"
            return await self.render_page(context, **{"after" if is_after else "before": fact_id})
        facts = await self.find_facts(text, context, _FACTS_PER_PAGE)
        if not facts:
            return Answer(text=context.texts.NO_FACTS_ABOUT.format(words=escape(text)))
        return Answer(
            text="\n".join(self._render_lines(facts, context)),
            buttons=tuple(_make_fact_choices(context.texts, facts)),
        )

    async def _remember(self, text: str, context: CommandContext) -> Answer:
        """Store the facts in `text`, or in the message that the command points to."""
        source = await self._find_source(text, context)
        if source is None:
            source = Message(
                role="user",
                text=text,
                session_id=context.session.id,
                created_at=self._services.clock.now(),
            )
        elif not text:
            text = _quote_source(source, context)
        statement = replace(source, text=text, sender=context.inbound.sender)
        facts = await self._editor.remember(
            statement, context.scope, context.account.platform, context.epoch
        )
        return self._report(context, context.texts.FACTS_REMEMBERED, *facts)

    async def _find_source(self, text: str, context: CommandContext) -> Message | None:
        """Return the message that /remember points to, or None.

        A person points to a message by choosing the command in the message's menu, or by replying
        to the message with /remember and no other words.
        """
        inbound = context.inbound
        if inbound.reply_to is None or inbound.kind != "message":
            return None
        if text and not inbound.is_interaction:
            return None
        return await find_original(
            self._services.database,
            inbound.address,
            inbound.reply_to,
            frozenset((context.scope,)),
        )

    async def _run_action(
        self, action: str, fact: Fact, new_text: str, context: CommandContext
    ) -> Answer:
        """Run an action of /memory on a fact. For "correct", `new_text` is the new text."""
        match action:
            case "why":
                return await self._explain(fact, context)
            case "undo":
                if new_text == UNDO_ALL:
                    return await self._unlearn(fact, context)
                return await self._undo(fact, context)
            case "restore":
                return await self._restore(fact, context)
            case "forget":
                return await self._ask_to_forget(fact, context)
            case "correct":
                return await self._correct(fact, new_text, context)
            case "right" | "wrong":
                return await self._judge(fact, context, is_right=action == "right")
            case _:
                return await self._pin(fact, context, is_pinned=action == "pin")

    async def _undo(self, fact: Fact, context: CommandContext) -> Answer:
        """Undo the last change to a fact. If the fact is new, it's deleted.

        Raises Refused if there is nothing to undo.
        """
        texts = context.texts
        earlier = await self._facts.undo(fact.id, context.scopes, context.author)
        if earlier is None:
            raise Refused("nothing_to_undo")
        if not earlier.id:
            return Answer(text=texts.FACT_UNLEARNED.format(fact=escape(earlier.content)))
        return self._report(context, texts.FACT_UNDONE, earlier)

    async def _unlearn(self, fact: Fact, context: CommandContext) -> Answer:
        """Take back all changes of a fact. It's deleted, and the messages that it comes from stay.

        Raises Refused if the fact was deleted meanwhile.
        """
        if not await self._facts.forget([fact.id], context.scopes):
            raise Refused("nothing_to_undo")
        return Answer(text=context.texts.FACT_UNLEARNED.format(fact=escape(fact.content)))

    async def _restore(self, fact: Fact, context: CommandContext) -> Answer:
        """Reopen a former fact, and end the fact that replaced it.

        Raises Refused if the fact isn't a former one.
        """
        texts = context.texts
        if fact.is_open:
            raise Refused(texts.FACT_STILL_HOLDS.format(name=f"f{fact.id}"))
        if fact.closed_by is not None:
            await self._facts.remove(fact.closed_by, context.scopes, context.author)
        return await self._undo(fact, context)

    async def _judge(self, fact: Fact, context: CommandContext, *, is_right: bool) -> Answer:
        """Raise or lower the trust in a fact after the person's feedback."""
        texts = context.texts
        current = await self._facts.record_feedback(
            fact.id, context.scopes, is_right, context.author
        )
        current = current or fact
        (line,) = self._render_lines([current], context)
        return Answer(
            text=f"{line}\n\n{_describe_trust(texts, current)}",
            buttons=(_make_fact_button(texts.BUTTON_WHY, current),),
        )

    async def _pin(self, fact: Fact, context: CommandContext, *, is_pinned: bool) -> Answer:
        """Pin or unpin a fact. A pinned fact doesn't lose weight with age."""
        texts = context.texts
        current = await self._facts.pin(fact.id, context.scopes, is_pinned, context.author)
        current = current or fact
        if current.is_pinned:
            return self._report(context, texts.FACT_PINNED, current)
        return self._report(context, texts.FACT_UNPINNED, current)

    async def _correct(self, fact: Fact, text: str, context: CommandContext) -> Answer:
        """Replace the text of a fact. If `text` is empty, explain how to correct the fact."""
        texts = context.texts
        if not text:
            usage = texts.CORRECT_USAGE.format(name=f"f{fact.id}")
            (line,) = self._render_lines([fact], context)
            return Answer(text=f"{line}\n\n{usage}")
        new_fact = await self._editor.correct(
            fact, text, context.scopes, context.author, context.inbound.sent_at
        )
        new_fact = new_fact or fact
        (line,) = self._render_lines([new_fact], context)
        report = f"{texts.FACT_CORRECTED}\n\n{line}"
        if new_fact.content != fact.content:
            report += f"\n\n{texts.FACT_BEFORE.format(fact=escape(fact.content))}"
        buttons = (
            _make_fact_button(texts.BUTTON_WHY, new_fact),
            _make_fact_button(texts.BUTTON_UNDO, new_fact, "undo"),
        )
        return Answer(text=report, buttons=buttons)

    async def _explain(self, fact: Fact, context: CommandContext) -> Answer:
        """Describe the source of a fact, how certain it is, and how it has changed.

        Only the latest `_MAX_SHOWN_CHANGES` changes are listed.
        """
        texts = context.texts
        changes = await self._facts.list_changes(fact.id, context.scopes)
        zone = self._services.zone_of(context.zone)
        lines = [
            *self._render_lines([fact], context),
            "",
            self.describe_source(texts, fact, changes, context, zone),
            _describe_trust(texts, fact),
        ]
        if fact.is_pinned:
            lines.append(texts.FACT_IS_PINNED)
        if fact.message_id is not None:
            lines.append(texts.FACT_MESSAGE.format(id=fact.message_id))
        lines.append("")
        lines += [
            self._render_change(texts, change, zone) for change in changes[-_MAX_SHOWN_CHANGES:]
        ]

        buttons = _make_change_buttons(texts, fact) if context.can_change(fact.account) else []
        if fact.message_id is not None:
            buttons.append(make_button(texts.BUTTON_MESSAGE, "recall", f"around:{fact.message_id}"))
        return Answer(text="\n".join(lines), buttons=tuple(buttons))

    def describe_source(
        self,
        texts: Texts,
        fact: Fact,
        changes: Sequence[FactChange],
        context: CommandContext,
        zone: tzinfo,
    ) -> str:
        """Return who stated or last corrected a fact, when, and how often."""
        wordings = [change for change in changes if change.action in _WORDING_CHANGES]
        author = fact.account
        origin = str(fact.origin)
        if wordings and wordings[-1].action == "correct":
            author = wordings[-1].account
            origin = "corrected"
        speaker_name = texts.SOMEONE_HERE
        if author == fact.account and fact.speaker:
            speaker_name = escape(fact.speaker)
        is_own = author is None or is_own_account(context, author)
        reader = "you" if is_own else "other"
        source = texts.table("FACT_SOURCES")[f"{reader}_{origin}"].format(who=speaker_name)
        day = texts.format_day(fact.last_at or fact.created_at, zone)
        if fact.mention_count == 1:
            return texts.FACT_SOURCE.format(source=source, day=day)
        return texts.FACT_SOURCE_TIMES.format(source=source, day=day, count=fact.mention_count)

    def _render_change(self, texts: Texts, change: FactChange, zone: tzinfo) -> str:
        """Render a change of a fact with its reason.

        For a correction, this includes the previous text.
        """
        action_name = texts.table("FACT_DONE")[change.action]
        if change.action == "correct" and change.before is not None:
            before = texts.quote(shorten(change.before, _MAX_BEFORE_CHARS))
            action_name = texts.FACT_PREVIOUSLY.format(done=action_name, text=before)
        elif change.reason:
            action_name = texts.pair(action_name, escape(texts.word_stored(change.reason)))
        return "- " + texts.pair(texts.format_day(change.at, zone), action_name)

    async def _ask_to_forget(self, fact: Fact, context: CommandContext) -> Answer:
        """Ask for confirmation to erase a fact and all messages that contain its text."""
        texts = context.texts
        phrase = quote_phrase(fact.content)
        request = context.erasure_request
        erasure_list = await self._services.forgetting.prepare(phrase, request)
        (summary,) = self._render_lines([fact], context)
        arguments = f"forget f{fact.id} {_CONFIRMED}"
        if erasure_list.token:
            zone = self._services.zone_of(context.zone)
            summary = render_erasure_list(texts, erasure_list, zone)
            arguments += f" {erasure_list.token}"
        return Answer(
            text=f"{summary}\n\n{texts.CONFIRM_ERASURE}",
            confirm_command=Command(name="memory", arguments=arguments),
        )

    async def _erase(self, fact: Fact | None, token: str, context: CommandContext) -> Answer:
        """Erase a fact and the messages that the person confirmed, which `token` identifies.

        The fact is deleted last, so the command can be repeated after a crash.
        """
        texts = context.texts
        report = texts.FORGOTTEN_FACT
        if token:
            try:
                receipt = await self._services.forgetting.erase(token, context.erasure_request)
            except Refused as refusal:
                return Answer(text=texts.word(refusal), has_erased_data=True)
            is_owner = is_owner_alone(context)
            copies = await describe_copies(texts, self._services, receipt, is_owner=is_owner)
            report = render_receipt(texts, receipt, self._services.settings, copies)
        if fact is not None:
            await self._facts.forget([fact.id], context.scopes)
        return Answer(text=report, has_erased_data=True)

    def _report(self, context: CommandContext, heading: str, *facts: Fact) -> Answer:
        """List facts below a heading, with a "Why" button for each fact."""
        lines = "\n".join(self._render_lines(facts, context))
        buttons = tuple(_make_fact_button(context.texts.BUTTON_WHY, fact) for fact in facts)
        return Answer(text=f"{heading}\n\n{lines}", buttons=buttons)

    def _render_lines(self, facts: Iterable[Fact], context: CommandContext) -> list[str]:
        zone = self._services.zone_of(context.zone)
        lines = []
        for fact in facts:
            pin = " 📌" if fact.is_pinned else ""
            text = context.texts.describe_fact(fact, self.known_facts.zone, zone)
            lines.append(f"- **f{fact.id}**{pin} {escape(text)}")
        return lines


def group_facts(texts: Texts, facts: Sequence[Fact]) -> list[tuple[str, list[Fact]]]:
    """Group facts under the titles of their kinds, in a fixed order of the titles."""
    titles = texts.table("FACT_TITLES")
    order = list(titles)
    sorted_facts = sorted(facts, key=lambda fact: order.index(_group_key(fact)))
    return [(titles[key], list(group)) for key, group in groupby(sorted_facts, key=_group_key)]


def _quote_source(source: Message, context: CommandContext) -> str:
    """Return the text of a message, preceded by its author unless this person typed it."""
    if source.origin != "typed":
        author = source.origin.replace("_", " ").capitalize()
    elif source.sender is None:
        author = context.texts.THE_ASSISTANT
    elif source.sender == context.inbound.sender:
        return source.text
    else:
        author = source.sender.name
    return context.texts.pair(author, source.text)


def _group_key(fact: Fact) -> str:
    """Return the key of the fact's group in the text table ``FACT_TITLES``."""
    return "over" if fact.has_ended else fact.kind


def _describe_trust(texts: Texts, fact: Fact) -> str:
    if fact.has_ended:
        return texts.FACT_IS_OVER
    return texts.FACT_TRUST.format(percent=round(100 * fact.trust))


def _make_change_buttons(texts: Texts, fact: Fact) -> list[Button]:
    """Return the buttons that erase, pin, rate and correct a fact."""
    labels = texts.table("FACT_BUTTONS")
    pin_action = "unpin" if fact.is_pinned else "pin"
    buttons = [
        _make_fact_button(labels[action], fact, action)
        for action in ("forget", pin_action, "right", "wrong")
    ]
    correct_button = _make_fact_button(labels["correct"], fact, "correct")
    form = Form(title=labels["correct"], value=fact.content)
    return [*buttons, replace(correct_button, form=form)]


def _make_fact_choices(texts: Texts, facts: Sequence[Fact]) -> list[Button]:
    """Return a menu entry for each fact."""
    return [
        replace(
            _make_fact_button(f"f{fact.id}", fact), menu=texts.CHOOSE_FACT, details=fact.content
        )
        for fact in facts
    ]


def _make_fact_button(label: str, fact: Fact, action: str = "why") -> Button:
    return make_button(label, "memory", f"{action} f{fact.id}")
