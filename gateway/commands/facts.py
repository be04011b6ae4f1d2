"""/remember, and the facts in /memory: what is known, page by page, each with why, forget, pin and correct.

A fact is named by ``f`` and its number, a change by ``c`` and its number; the names stay the same for ever. In a room
everybody reads the facts, and only the owner and who said one change it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import groupby

from core.errors import Refused
from core.facts.dictation import Dictation
from core.facts.ranking import KnownFacts, Question
from core.markup.render import escape
from core.ports import Clock
from core.privacy.forgetting import Forgetting
from core.store.erasure import ErasureRequest
from core.store.facts import Fact, FactChange, Facts
from core.store.notes import Author
from core.types import Address, Answer, Button, Command, CommandSpec, Message, Option, Scope, Sender
from gateway.commands.context import CommandContext
from gateway.commands.forget import CONFIRMED, receipt_text, traces_text

PAGE = 8
SHOWN_CHANGES = 12
PART_CHARS = 120
_FACT = re.compile(r"f(\d{1,12})(?:\s+(?P<rest>.*))?", re.IGNORECASE | re.DOTALL)
_CHANGE = re.compile(r"c(\d{1,12})", re.IGNORECASE)
_CHANGING = frozenset({"forget", "pin", "unpin", "correct", "undo", "right", "wrong"})
ACTIONS = ("facts", "changes", "why", "pin", "unpin", "right", "wrong", "correct", "forget", "undo")
"""What /memory does with facts, as it is announced."""
_TITLES = {
    "identity": "Who you are, what you have and like",
    "project": "What you work on and decided",
    "episode": "What happened",
    "working": "What matters just now",
    "over": "What is no longer so",
}
_DEEDS = {
    "learn": "learned",
    "close": "over, because of something newer",
    "correct": "corrected",
    "pin": "pinned",
    "unpin": "no longer pinned",
    "trust": "judged",
    "merge": "put together with what says the same",
    "flag": "doubted",
    "undo": "taken back",
}
_REMEMBER = CommandSpec(
    name="remember",
    description="Remember a fact for good",
    options=(Option(name="what", description="a sentence: Ana's birthday is on 3 May; or answer a message with it"),),
    is_private=True,
    menu="Remember this",
)


class FactCommands:
    """Fills the role Family for /remember, and answers for /memory what concerns facts. `find` gives the message of a
    platform's id."""

    specs = (_REMEMBER,)

    def __init__(
        self,
        ledger: Facts,
        knowledge: KnownFacts,
        dictation: Dictation,
        forgetting: Forgetting,
        find: Callable[[Address, str, frozenset[Scope]], Awaitable[Message | None]],
        clock: Clock,
    ) -> None:
        self._find = find
        self._ledger = ledger
        self._knowledge = knowledge
        self._dictation = dictation
        self._forgetting = forgetting
        self._clock = clock

    def is_reading(self, command: Command) -> bool:
        """Never: /remember writes."""
        return False

    async def run(self, command: Command, caller: CommandContext) -> Answer:
        """See `gateway.commands.registry`."""
        source = await self._pointed_at(command, caller)
        text = command.arguments
        if source is not None and not text:
            text = _words(source, caller.inbound.sender)
        said = Message(
            role="user",
            text=text,
            session_id=caller.session.id,
            created_at=source.created_at if source else self._clock.now(),
            id=source.id if source else 0,
            sender=caller.inbound.sender,
        )
        facts = await self._dictation.take(said, caller.scope, caller.account.platform)
        return Answer(
            text="I will remember:\n\n" + "\n".join(self._line(fact) for fact in facts),
            buttons=tuple(_button("Why", fact) for fact in facts),
        )

    async def _pointed_at(self, command: Command, caller: CommandContext) -> Message | None:
        """The message to remember: the one whose menu was used, or the one that is answered with /remember alone."""
        inbound = caller.inbound
        if inbound.reply_to is None or inbound.kind != "message" or (command.arguments and not inbound.is_interaction):
            return None
        return await self._find(inbound.address, inbound.reply_to, frozenset((caller.scope,)))

    @staticmethod
    def changes_facts(action: str, text: str) -> bool:
        """Whether this of /memory is about facts and changes something. `action` is its first word in lower case,
        `text` what follows."""
        return action in _CHANGING and _is_meant(action, text) and not (action == "correct" and not _rest(text))

    async def answer(self, action: str, text: str, caller: CommandContext) -> Answer | None:
        """What /memory says to something about facts; None where it is about something else."""
        if action == "facts":
            is_page = text.isdecimal() and len(text) < 6
            return await self._about(text, caller) if text and not is_page else await self.page(caller, int(text or 1))
        if action == "changes":
            return await self._changes(text, caller)
        if not _is_meant(action, text):
            return None
        if action == "forget" and _rest(text):
            return await self._erase(text, caller)
        if action == "undo":
            return await self._undo(text, caller)
        fact = await self._fact(text, caller)
        if action == "why":
            return await self._why(fact, caller)
        self._check(fact, caller)
        if action == "forget":
            return await self._forget(fact, caller)
        if action == "correct":
            return await self._correct(fact, _rest(text), caller)
        if action in ("right", "wrong"):
            judged = await self._ledger.feedback(fact.id, caller.scopes, action == "right", _author(caller)) or fact
            return Answer(text=f"{self._line(judged)}\n\n{_surety(judged)}", buttons=(_button("Why", judged),))
        kept = await self._ledger.pin(fact.id, caller.scopes, action == "pin", _author(caller)) or fact
        done = "It stays as it is, however old it gets" if kept.is_pinned else "It may age again"
        return Answer(text=f"{done}:\n\n{self._line(kept)}", buttons=(_button("Why", kept),))

    async def page(self, caller: CommandContext, number: int = 1) -> Answer:
        """One page of what is known here, from 1 on."""
        found = await self._ledger.page(caller.scopes, (max(1, number) - 1) * PAGE, PAGE + 1)
        shown, has_more = found[:PAGE], len(found) > PAGE
        if not shown:
            more = "There is no such page." if number > 1 else "Nothing yet. Tell me something, or `/remember` it."
            return Answer(text=f"**What I know**\n\n{more}")
        lines = ["**What I know**" + (f", page {number}" if number > 1 or has_more else "")]
        order = list(_TITLES)
        for title, facts in groupby(sorted(shown, key=lambda fact: order.index(_group(fact))), _group):
            lines += ["", f"_{_TITLES[title]}_", "", *[await self._doubted_line(fact, caller) for fact in facts]]
        buttons = [_button(f"f{fact.id}", fact) for fact in shown]
        if number > 1:
            buttons.append(_link("Back", f"facts {number - 1}"))
        if has_more:
            buttons.append(_link("More", f"facts {number + 1}"))
            lines += [
                "",
                f"There is more: `/memory facts {number + 1}`, or `/memory facts Ana` for what has that word.",
            ]
        lines += ["", f"Ask about one by its name: `/memory why f{shown[0].id}`; also forget, pin, correct."]
        return Answer(text="\n".join(lines), buttons=tuple(buttons))

    async def _about(self, text: str, caller: CommandContext) -> Answer:
        """What is known here about something, best first."""
        question = Question.of(text, caller.scopes, self._clock.now(), caller.account)
        found = await self._knowledge.search(question, PAGE)
        if not found:
            return Answer(text=f"I know nothing about “{escape(text)}” here. `/memory facts` lists what I know.")
        lines = [await self._doubted_line(fact, caller) for fact in found]
        return Answer(text="\n".join(lines), buttons=tuple(_button(f"f{fact.id}", fact) for fact in found))

    async def _doubted_line(self, fact: Fact, caller: CommandContext) -> str:
        """A fact in a line, with the doubt that nobody has cleared up since."""
        history = await self._ledger.history(fact.id, caller.scopes)
        doubt = history[-1].reason if fact.is_open and history and history[-1].action == "flag" else ""
        return f"{self._line(fact)}{f' ❓ _{escape(doubt)}_' if doubt else ''}"

    async def _why(self, fact: Fact, caller: CommandContext) -> Answer:
        """Where a fact comes from, what became of it, and what can be done with it."""
        said = self._knowledge.day(fact.last_at or fact.created_at)
        history = await self._ledger.history(fact.id, caller.scopes)
        worded = [change for change in history if change.action in ("learn", "correct", "undo")][-1:]
        is_fixed = any(change.action == "correct" for change in worded)
        author = worded[0].account if is_fixed else fact.account
        is_own, is_speaker = author in (None, caller.account), author == fact.account
        who = "You" if is_own else escape(fact.speaker if is_speaker and fact.speaker else "Somebody here")
        source = {"person": "asked me to remember it", "rule": "said it", "model": "said it, as I understood it"}
        did = "put it right" if is_fixed else source[fact.origin]
        times = "" if fact.said == 1 else f", {fact.said} times in all"
        lines = [self._line(fact), "", f"{who} {did}, last on {said}{times}."]
        lines.append(_surety(fact))
        if fact.is_pinned:
            lines.append("It is pinned: it does not age.")
        if fact.message_id is not None:
            lines.append(f"The message: `/recall around:{fact.message_id}`.")
        lines += ["", *(self._step(change) for change in history[-SHOWN_CHANGES:])]
        pin = "unpin" if fact.is_pinned else "pin"
        buttons = [_button(word.title(), fact, word) for word in ("forget", pin, "right", "wrong", "correct")]
        if fact.message_id is not None:
            look = Command(name="recall", arguments=f"around:{fact.message_id}")
            buttons.append(Button(label="The message", command=look))
        return Answer(text="\n".join(lines), buttons=tuple(buttons) if _may(fact, caller) else tuple(buttons[5:]))

    async def _correct(self, fact: Fact, text: str, caller: CommandContext) -> Answer:
        if not text:
            if caller.session.is_incognito:
                raise Refused("This is incognito, where nothing is written down. `/incognito off` ends that.")
            return Answer(text=f"{self._line(fact)}\n\n{_asked(caller)}", dictated=_command("correct", fact))
        by = replace(_author(caller), message_id=caller.said_id)
        fixed = await self._dictation.correct(fact, text, caller.scopes, by, caller.inbound.sent_at) or fact
        before = "" if fixed.content == fact.content else f"\n\nBefore: {escape(fact.content)}"
        undo = [_link("Undo", f"undo c{one.id}") for one in await self._ledger.history(fact.id, caller.scopes)]
        return Answer(text=f"Corrected:\n\n{self._line(fixed)}{before}", buttons=(_button("Why", fixed), *undo[-1:]))

    async def _forget(self, fact: Fact, caller: CommandContext) -> Answer:
        """Shows what goes with a fact, and lets it wait for a yes."""
        claim = _claim(caller)
        phrase = " ".join(re.sub(r'["“”„″]', " ", fact.content).split())
        traces = await self._forgetting.look(f'"{phrase}"', claim)
        listed = traces_text(traces, self._knowledge.zone, is_limited=claim.is_limited) if traces else self._line(fact)
        token = traces.token if traces else ""
        return Answer(
            text=f"{listed}\n\nAnswer **yes** to erase it for good; anything else leaves it as it is.",
            confirm=Command(name="memory", arguments=f"forget f{fact.id} {CONFIRMED}{token}".strip()),
        )

    async def _erase(self, text: str, caller: CommandContext) -> Answer:
        """What a yes runs. The fact goes last, so that what a crash cut short can be done again."""
        name, _, token = text.partition(f" {CONFIRMED.strip()}")
        match = _FACT.fullmatch(name)
        fact = await self._ledger.find(int(match[1]), caller.scopes) if match else None
        if fact is not None:
            self._check(fact, caller)
        told = "Forgotten. No message says it in these words, so none was erased."
        if token.strip():
            told = receipt_text(await self._forgetting.erase(token.strip(), _claim(caller)))
        elif fact is None:
            raise Refused(f"There is no fact {name} here. `/memory facts` lists them.")
        if fact is not None:
            await self._ledger.forget([fact.id], caller.scopes)
        return Answer(text=told)

    async def _changes(self, text: str, caller: CommandContext) -> Answer:
        """The latest changes, or the latest up to one that is named."""
        named = _CHANGE.fullmatch(text)
        found = await self._ledger.changes(caller.scopes, SHOWN_CHANGES + 1, int(named[1]) if named else None)
        if not found:
            return Answer(text="No fact was learned or changed here yet.")
        changes, older = found[:SHOWN_CHANGES], found[SHOWN_CHANGES:]
        lines = [f"{self._step(change)} (f{change.fact_id}: {_part(change)})" for change in changes]
        lines += ["", f"Take one back: `/memory undo c{changes[0].id}`."]
        lines += [f"Those before: `/memory changes c{older[0].id}`."] if older else []
        buttons = tuple(_link("Older", f"changes c{change.id}") for change in older)
        return Answer(text="\n".join(["**What changed in what I know**", "", *lines]), buttons=buttons)

    async def _undo(self, text: str, caller: CommandContext) -> Answer:
        """By a change's name, or the latest change of a fact."""
        fact_id, change_id = _FACT.fullmatch(text), _CHANGE.fullmatch(text)
        if fact_id is not None:
            fact = await self._fact(text, caller)
            history = await self._ledger.history(fact.id, caller.scopes)
        else:
            number = int(change_id[1]) if change_id else 0
            known = await self._ledger.changes(caller.scopes, 1, number)
            history = [change for change in known if change.id == number]
            if not history:
                raise Refused(f"There is no change {text}. `/memory changes` lists the latest.")
            fact = await self._fact(f"f{history[0].fact_id}", caller)
        self._check(fact, caller)
        change = history[-1]
        undone = await self._ledger.undo(change.id, caller.scopes, _author(caller))
        if undone is None:
            raise Refused("That fact is not there any more.")
        if change.before is None:
            return Answer(text=f"Taken back: I do not know any more that {escape(undone.content)}.")
        return Answer(text=f"Taken back. It is again:\n\n{self._line(undone)}", buttons=(_button("Why", undone),))

    async def _fact(self, text: str, caller: CommandContext) -> Fact:
        match = _FACT.fullmatch(text)
        fact = await self._ledger.find(int(match[1]), caller.scopes) if match else None
        if fact is None:
            raise Refused(f"There is no fact {text.split()[0]} here. `/memory facts` lists them.")
        return fact

    @staticmethod
    def _check(fact: Fact, caller: CommandContext) -> None:
        if not _may(fact, caller):
            raise Refused("In a room only the owner and who said it change a fact.")

    def _line(self, fact: Fact) -> str:
        pin = " 📌" if fact.is_pinned else ""
        return f"- **f{fact.id}**{pin} {escape(self._knowledge.told(fact))}"

    def _step(self, change: FactChange) -> str:
        by = "" if change.account or change.action in ("learn", "close") else ", by me"
        reason = f": {escape(change.reason)}" if change.reason and change.action in ("merge", "flag", "trust") else ""
        if change.action == "correct" and change.before is not None:
            reason = f", before: “{_short(change.before)}”"
        return (
            f"- c{change.id}, {self._knowledge.day(change.at)}: {_DEEDS.get(change.action, change.action)}{by}{reason}"
        )


def _words(source: Message, asker: Sender) -> str:
    """What a message says; marked where it is not the asker's own words."""
    if source.origin != "typed":
        return f"{source.origin.replace('_', ' ').capitalize()}: {source.text}"
    if source.sender == asker:
        return source.text
    return f"{source.sender.name if source.sender else 'The assistant'}: {source.text}"


def _group(fact: Fact) -> str:
    return fact.kind if fact.is_open else "over"


def _may(fact: Fact, caller: CommandContext) -> bool:
    return not caller.scope.is_room or caller.is_owner or fact.account == caller.account


def _is_meant(action: str, text: str) -> bool:
    """Whether a fact is named, or a change to undo; a note may be asked for by words that begin in the same way."""
    if action == "undo" and _CHANGE.fullmatch(text):
        return True
    may_go_on = action == "correct" or (action == "forget" and _rest(text).startswith(CONFIRMED.strip()))
    return action in ACTIONS and _FACT.fullmatch(text) is not None and (may_go_on or not _rest(text))


def _rest(text: str) -> str:
    match = _FACT.fullmatch(text)
    return (match["rest"] or "").strip() if match else ""


def _part(change: FactChange) -> str:
    return _short(change.after or change.before or "")


def _short(content: str) -> str:
    text = " ".join(content.split())
    return escape(text if len(text) <= PART_CHARS else text[:PART_CHARS].rsplit(" ", 1)[0] + " …")


def _claim(caller: CommandContext) -> ErasureRequest:
    return ErasureRequest(
        account=caller.account,
        scope=caller.scope,
        scopes=caller.scopes,
        address=caller.inbound.address,
        is_owner=caller.is_owner,
    )


def _surety(fact: Fact) -> str:
    return f"I am {round(100 * fact.trust)} % sure of it." if fact.is_open else "It is no longer so."


def _author(caller: CommandContext) -> Author:
    return Author(account=caller.account)


def _command(action: str, fact: Fact) -> Command:
    return Command(name="memory", arguments=f"{action} f{fact.id}")


def _button(label: str, fact: Fact, action: str = "why") -> Button:
    return Button(label=label, command=_command(action, fact))


def _link(label: str, arguments: str) -> Button:
    return Button(label=label, command=Command(name="memory", arguments=arguments))


def _asked(caller: CommandContext) -> str:
    where = "" if caller.inbound.is_direct else ", with a mention of me or as an answer to one of my messages"
    return (
        f"What is right? Your next message{where}, a whole sentence, takes its place. A command, or **cancel**, leaves "
        "it as it is."
    )
