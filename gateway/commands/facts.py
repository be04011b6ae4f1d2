"""/remember, /facts, and the facts in /memory. A fact is named by ``f`` and its number. In a room everybody reads the
facts; only the owner and who said one change it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from core.errors import Refused
from core.facts.claims import Dictation
from core.facts.provider import FactRanking, KnownFacts, Question
from core.markup.markdown import escape
from core.store.facts import Fact, FactChange
from core.store.sessions import find_original
from core.text.normalize import shortened
from core.types import Account, Answer, Button, Command, Message
from gateway import texts
from gateway.commands.privacy import CONFIRMED, receipt_text, traces_text
from gateway.commands.registry import CommandContext, announced, button
from gateway.services import Services

PAGE = 8
SHOWN_CHANGES = 12
PART_CHARS = 120
_FACT = re.compile(r"f(\d{1,12})(?:\s+(?P<rest>.*))?", re.IGNORECASE | re.DOTALL)
ACTIONS = ("facts", "why", "pin", "unpin", "right", "wrong", "correct", "forget", "undo")
"""What /memory does with facts, as it is announced."""


class FactCommands:
    specs = announced("remember", "facts")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._facts = services.facts
        self.known = KnownFacts(services.facts, FactRanking(hrr=services.settings.facts.hrr_weight), services.zone)
        self._dictation = Dictation(services.facts, services.zone)

    async def run(self, command: Command, context: CommandContext) -> Answer:
        if command.name == "facts":
            return await self._list(command.arguments.strip(), context)
        inbound, text, source = context.inbound, command.arguments, None
        if inbound.reply_to is not None and inbound.kind == "message" and (inbound.is_interaction or not text):
            # The message whose menu was used, or that is answered with /remember alone.
            scopes = frozenset((context.scope,))
            source = await find_original(self._services.database, inbound.address, inbound.reply_to, scopes)
        if source is not None and not text:
            who = source.sender.name if source.sender else "The assistant"
            who = who if source.origin == "typed" else source.origin.replace("_", " ").capitalize()
            is_own = source.origin == "typed" and source.sender == inbound.sender
            text = source.text if is_own else f"{who}: {source.text}"
        now = self._services.clock.now()
        source = source or Message(role="user", text=text, session_id=context.session.id, created_at=now)
        said = replace(source, text=text, sender=inbound.sender)
        facts = await self._dictation.take(said, context.scope, context.account.platform, context.epoch)
        return self._told("I will remember:", *facts)

    def _told(self, head: str, *facts: Fact) -> Answer:
        lines = "\n".join(map(self._line, facts))
        return Answer(text=f"{head}\n\n{lines}", buttons=tuple(_button("Why", fact) for fact in facts))

    async def answer(self, action: str, text: str, context: CommandContext) -> Answer | None:
        """The answer of /memory about facts; None where it is about something else."""
        if action == "facts":
            return await self._list(text, context)
        named = _FACT.fullmatch(text) if action in ACTIONS else None
        if named is None:
            return None
        return await self._about(action, int(named[1]), (named["rest"] or "").strip(), context)

    async def _about(self, action: str, number: int, rest: str, context: CommandContext) -> Answer | None:
        is_confirmed = action == "forget" and rest.startswith(CONFIRMED.strip())
        if rest and action != "correct" and not is_confirmed:
            return None  # words about a note may begin in the same way
        fact = await self._facts.find(number, context.scopes)
        token = rest.removeprefix(CONFIRMED.strip()).strip() if is_confirmed else ""
        if fact is None and not token:
            raise Refused(texts.NO_FACT.format(name=f"f{number}"))
        if fact is not None and action != "why" and not context.may_change(fact.account):
            raise Refused(texts.SPEAKER_CHANGES)
        if is_confirmed or fact is None:
            return await self._erase(fact, token, context)
        return await self._do(action, fact, rest, context)

    async def _do(self, action: str, fact: Fact, rest: str, context: CommandContext) -> Answer:
        match action:
            case "why":
                return await self._why(fact, context)
            case "undo":
                undone = await self._facts.undo(fact.id, context.scopes, context.author)
                if undone is None:
                    raise Refused("There is nothing to take back.")
                if not undone.id:
                    return Answer(text=f"Taken back: I no longer know “{escape(undone.content)}”.")
                return self._told("Taken back. It is again:", undone)
            case "forget":
                return await self._forget(fact, context)
            case "correct":
                return await self._correct(fact, rest, context)
            case "right" | "wrong":
                judged = await self._facts.feedback(fact.id, context.scopes, action == "right", context.author) or fact
                return Answer(text=f"{self._line(judged)}\n\n{_surety(judged)}", buttons=(_button("Why", judged),))
            case _:
                kept = await self._facts.pin(fact.id, context.scopes, action == "pin", context.author) or fact
                done = "It stays as it is, however old it gets" if kept.is_pinned else "It may fade again with age"
                return self._told(f"{done}:", kept)

    async def _list(self, text: str, context: CommandContext) -> Answer:
        if not text or (text.isdecimal() and len(text) < 6):
            return await self.page(context, int(text or 1))
        found = await self.find(text, context, PAGE)
        if not found:
            return Answer(text=f"I know nothing about “{escape(text)}” here. `/memory facts` lists what I know.")
        buttons = tuple(_button(f"f{fact.id}", fact) for fact in found)
        return Answer(text="\n".join(map(self._line, found)), buttons=buttons)

    async def find(self, text: str, context: CommandContext, limit: int) -> Sequence[Fact]:
        if not text:
            return await self._facts.page(context.scopes, 0, limit)
        question = Question(text, context.scopes, self._services.clock.now(), context.account)
        return await self.known.search(question, limit)

    async def page(self, context: CommandContext, number: int = 1) -> Answer:
        found = await self._facts.page(context.scopes, (max(1, number) - 1) * PAGE, PAGE + 1)
        shown, has_more = found[:PAGE], len(found) > PAGE
        if not shown:
            return Answer(text=f"**What I know**\n\n{texts.NO_SUCH_PAGE if number > 1 else texts.NO_FACTS}")
        lines = ["**What I know**" + (f", page {number}" if number > 1 or has_more else "")]
        order = list(texts.table("FACT_TITLES"))
        for title, facts in groupby(sorted(shown, key=lambda fact: order.index(_group(fact))), _group):
            lines += ["", f"_{texts.table('FACT_TITLES')[title]}_", ""]
            lines += map(self._line, facts)
        buttons = [_button(f"f{fact.id}", fact) for fact in shown]
        buttons += [button("Back", "memory", f"facts {number - 1}")] if number > 1 else []
        if has_more:
            buttons.append(button("More", "memory", f"facts {number + 1}"))
            more = f"There is more: `/memory facts {number + 1}`, or `/memory facts Ana` for what has that word."
            lines += ["", more]
        lines += ["", f"Ask about one by its name: `/memory why f{shown[0].id}`; also forget, pin, correct."]
        return Answer(text="\n".join(lines), buttons=tuple(buttons))

    async def _why(self, fact: Fact, context: CommandContext) -> Answer:
        history = await self._facts.history(fact.id, context.scopes)
        lines = [self._line(fact), "", self._source(fact, history, context.account), _surety(fact)]
        if fact.is_pinned:
            lines.append("It is pinned: it does not fade with age.")
        if fact.message_id is not None:
            lines.append(f"The message: `/recall around:{fact.message_id}`.")
        lines.append("")
        for change in history[-SHOWN_CHANGES:]:
            reason = f": {escape(change.reason)}" if change.reason else ""
            if change.action == "correct" and change.before is not None:
                reason = f", before: “{escape(shortened(change.before, PART_CHARS))}”"
            lines.append(f"- {self.known.day(change.at)}: {texts.table('FACT_DONE')[change.action]}{reason}")
        actions = ("forget", "unpin" if fact.is_pinned else "pin", "right", "wrong", "correct")
        buttons = [_button(word.title(), fact, word) for word in actions] if context.may_change(fact.account) else []
        if fact.message_id is not None:
            buttons.append(button("The message", "recall", f"around:{fact.message_id}"))
        return Answer(text="\n".join(lines), buttons=tuple(buttons))

    def _source(self, fact: Fact, history: Sequence[FactChange], asker: Account) -> str:
        worded = [change for change in history if change.action in ("learn", "correct", "undo")][-1:]
        is_fixed = any(change.action == "correct" for change in worded)
        author = worded[0].account if is_fixed else fact.account
        speaker = fact.speaker if author == fact.account and fact.speaker else "Somebody here"
        who = "You" if author in (None, asker) else escape(speaker)
        did = "corrected it" if is_fixed else texts.table("FACT_SOURCES")[fact.origin]
        times = "" if fact.said == 1 else f", {fact.said} times in these words"
        return f"{who} {did}, last on {self.known.day(fact.last_at or fact.created_at)}{times}."

    async def _correct(self, fact: Fact, text: str, context: CommandContext) -> Answer:
        if not text:
            return Answer(text=f"{self._line(fact)}\n\n{texts.CORRECT_USAGE.format(name=f'f{fact.id}')}")
        at = context.inbound.sent_at
        fixed = await self._dictation.correct(fact, text, context.scopes, context.author, at) or fact
        before = "" if fixed.content == fact.content else f"\n\nBefore: {escape(fact.content)}"
        buttons = _button("Why", fixed), _button("Undo", fixed, "undo")
        return Answer(text=f"Corrected:\n\n{self._line(fixed)}{before}", buttons=buttons)

    async def _forget(self, fact: Fact, context: CommandContext) -> Answer:
        phrase = " ".join(re.sub(r'["“”„″]', " ", fact.content).split())
        traces = await self._services.forgetting.look(f'"{phrase}"', context.erasure_request)
        shown, token = (traces_text(traces, self.known.zone), traces.token) if traces.token else (self._line(fact), "")
        confirm = Command(name="memory", arguments=f"forget f{fact.id} {CONFIRMED}{token}".strip())
        return Answer(text=f"{shown}\n\n{texts.CONFIRM_ERASURE}", confirm=confirm)

    async def _erase(self, fact: Fact | None, token: str, context: CommandContext) -> Answer:
        """What a yes runs. The fact goes last, so that it can be done again after a crash."""
        done = texts.FORGOTTEN_FACT
        if token:
            try:
                done = receipt_text(await self._services.forgetting.erase(token, context.erasure_request))
            except Refused as refusal:
                return Answer(text=str(refusal), has_erased=True)
        if fact is not None:
            await self._facts.forget([fact.id], context.scopes)
        return Answer(text=done, has_erased=True)

    def _line(self, fact: Fact) -> str:
        return f"- **f{fact.id}**{' 📌' if fact.is_pinned else ''} {escape(self.known.line_of(fact))}"


def _group(fact: Fact) -> str:
    return "over" if fact.is_over else fact.kind


def _surety(fact: Fact) -> str:
    return "It is no longer true." if fact.is_over else f"I am {round(100 * fact.trust)} % sure of it."


def _button(label: str, fact: Fact, action: str = "why") -> Button:
    return button(label, "memory", f"{action} f{fact.id}")
