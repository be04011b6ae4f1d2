"""From people's own messages, each once, to facts: what a model tells is looked up in what they typed; without a model
the rules read.

What nobody has typed is dropped, or waits for a yes where the model can quote what it means. Of an answer each item
that can be read is kept; for the rest it is asked once more, and then the rules read.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, TypeVar
from weakref import WeakValueDictionary
from zoneinfo import ZoneInfo

import structlog
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from core.errors import LimitReached, ModelError, Refused
from core.facts.claims import FACT_CHARS, Claim, SingleAttribute, claims, fact_of, is_alias, since_of, value_of
from core.facts.evidence import Evidence, own_words, subject_of
from core.guard.fence import said as typed
from core.guard.fence import typed_part
from core.guard.guard import Arguments, suspicion
from core.models.wrappers import ask
from core.ports import Clock, Model
from core.review.pending import Review
from core.store.facts import Fact, FactKind, FactOrigin, Facts
from core.store.notes import FACT, Author, Operation
from core.text.normalize import language_data
from core.text.terms import ME, attribute_of, names_in, terms_of
from core.types import Account, ErasureEpoch, Message, Payer, Session

MAX_TOKENS = 2_000
MOST_FACTS = 24


# A fact as a model tells it; a docstring would be told to it.
class ToldFact(Arguments):
    content: Annotated[str, AfterValidator(lambda text: " ".join(text.split()))] = Field(
        min_length=3, max_length=FACT_CHARS
    )
    kind: FactKind = "identity"
    about: str = Field(default=ME, max_length=80)
    attribute: SingleAttribute | None = None
    value: str | None = Field(default=None, max_length=120)
    since: str | None = Field(default=None, pattern=r"^([0-9]{4}(-[0-9]{2}){0,2})?$")
    names: list[str] = Field(default=[], max_length=10)

    @property
    def is_own_affair(self) -> bool:
        return self.about.casefold() == ME

    @property
    def must_be_said(self) -> list[str]:
        """The names (with a capital or figures, or of another script) and values that somebody must have typed."""
        proper = [name for name in self.names if not name.isascii() or re.search(r"[A-Z0-9]", name)]
        return [*proper, self.value or "", *([] if self.is_own_affair else names_in(self.about))]

    def source(self, evidence: Evidence, row: Message | None = None) -> tuple[Message, bool] | None:
        """The message that bears it out, `row` or any, and whether that says since when too."""
        for dates in ([self.since], []) if self.since else ([],):
            names = [*self.must_be_said, *dates]
            found = evidence.support(self.content, names, is_own_affair=self.is_own_affair, row=row)
            if found is not None:
                return found, bool(dates)
        return None

    def claim(self, row: Message, zone: ZoneInfo, *, is_dated: bool) -> Claim:
        since, grain = since_of(self.since if is_dated else None, row.created_at, zone)
        if since is not None and since > row.created_at:
            since, grain = None, "day"
        subject = subject_of(self.about, self.content, row)
        value = value_of(self.attribute, self.value or "")
        attribute = attribute_of(subject, self.attribute) if subject and self.attribute and value else None
        names = [*(self.names or names_in(self.content)), *([] if self.is_own_affair else [self.about])]
        return Claim(
            content=self.content,
            kind=self.kind,
            attribute=attribute,
            value=value if attribute else "",
            entities=tuple(dict.fromkeys(names)),
            valid_from=since,
            grain=grain,
        )


class _Item(ToldFact):
    """What is told of the message with this number."""

    model_config = ConfigDict(extra="ignore", strict=True)

    message: int
    quote: str | None = None

    def quotes(self, row: Message) -> bool:
        words = (self.quote or "").casefold().split()
        return bool(words) and " ".join(words) in " ".join(own_words(row.text).casefold().split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A claim out of a message, and what has read it. `doubt`: why it waits for a yes, as a clause."""

    source: Message
    claim: Claim
    origin: FactOrigin
    doubt: str = ""


_UNREADABLE = (400, 413, 422)
"""HTTP statuses that refuse the messages themselves, also the next time: the rules read them."""
_OBJECT = re.compile(r"\{[^{}]*\}")
_log = structlog.get_logger("facts")
T = TypeVar("T", bound=BaseModel)
LOOP_CHARS = 1_000
"""The rules take 0.1 ms for a sentence and 4 ms for the worst text of this length: less than a thread is worth, once
their patterns are compiled, which takes 60 ms."""
PATIENCE = timedelta(minutes=2)
"""How long a model that was out of reach is left alone."""


@dataclass
class FactReader:
    """Reads by `model`, under its `name`; without one by the rules. What nobody has typed as the model tells it waits
    in `review`."""

    facts: Facts
    review: Review
    clock: Clock
    zone: ZoneInfo
    model: Model | None = None
    name: str = ""

    def __post_init__(self) -> None:
        self._asks_at = self.clock.now()
        self._locks = WeakValueDictionary[int, asyncio.Lock]()
        self._are_rules_read = False

    async def catch_up(self) -> None:
        """All that is due. While the model is out of reach it is asked now and then."""
        if self.clock.now() < self._asks_at:
            return
        for session in await self.facts.due():
            if not await self.read(session):
                self._asks_at = self.clock.now() + PATIENCE
                return

    async def read(self, session: Session) -> bool:
        """All of a session that was not read yet; False where the model cannot be asked now, and it stays unread."""
        if not session.is_remembered:
            return True
        async with self._locks.setdefault(session.id, asyncio.Lock()):
            epoch, rows = await self.facts.unread(session)
            while rows:
                try:
                    found = await self.candidates(rows)
                except ModelError as error:
                    _log.info("no facts were read", why=error.logged)
                    return False
                rows = await self.facts.keep(rows, await self._certain(session, found, epoch))
        return True

    async def _certain(
        self, session: Session, found: Sequence[Candidate], epoch: ErasureEpoch | None
    ) -> list[tuple[Fact, str]]:
        """Those to keep, with what was heard; what waits for a yes is put aside."""
        facts = []
        for one in found:
            if (reason := suspicion(one.claim.content)) is not None:
                _log.info("a fact was not kept", reason=reason, message=one.source.id)
            elif not one.doubt:
                fact = fact_of(one.claim, one.origin, session.scope, session.address.platform, one.source)
                facts.append((fact, one.source.text))
            # In a room the owner would be asked about what others say.
            elif one.source.sender is not None and not session.scope.is_room:
                account = Account(platform=session.address.platform, user_id=one.source.sender.id)
                author = Author(account=account, message_id=one.source.id, epoch=epoch)
                with contextlib.suppress(Refused):
                    operations = [Operation(action="add", content=one.claim.content)]
                    await self.review.put_aside(session.scope, FACT, operations, author, one.doubt)
        return facts

    async def candidates(self, messages: Sequence[Message]) -> list[Candidate]:
        """What messages state. Raises ModelError where the model cannot be asked now."""
        said = [row for row in messages if typed(row)]
        if self.model is None:
            return await self._by_rules_beside(said)
        said = [row for row in said if len(set(terms_of(own_words(row.text)))) > 1]
        if not said:
            return []
        told, is_whole = await self._asked(self.model, said)
        found = self._looked_up(told, said)
        if is_whole:
            # Who is meant by "my sister", which a model is not asked for, before what it told in the same words.
            return [one for one in await self._by_rules_beside(said) if is_alias(one.claim)] + found
        named = {one.message for one in told}
        return found + await self._by_rules_beside([row for number, row in enumerate(said, 1) if number not in named])

    async def _by_rules_beside(self, said: Sequence[Message]) -> list[Candidate]:
        if self._are_rules_read and sum(len(row.text) for row in said) <= LOOP_CHARS:
            return self._by_rules(said)
        found = await asyncio.to_thread(self._by_rules, said)
        self._are_rules_read = self._are_rules_read or bool(said)
        return found

    def _by_rules(self, said: Sequence[Message]) -> list[Candidate]:
        return [
            Candidate(source=row, claim=claim, origin="rule")
            for row in said
            for claim in claims(typed_part(row.text), row.created_at, self.zone)
        ]

    async def _asked(self, model: Model, said: Sequence[Message]) -> tuple[list[_Item], bool]:
        """Every readable item, of two answers where the first is broken; whether all of the last was readable. Raises
        ModelError where it cannot be asked now."""
        told, is_whole, shown = list[_Item](), False, list[str]()
        for number, row in enumerate(said, 1):
            who, day = row.sender.name if row.sender else "the person", row.created_at.astimezone(self.zone)
            text = {"message": number, "from": who, "on": f"{day:%A} {day:%Y-%m-%d}", "text": own_words(row.text)}
            shown.append(json.dumps(text, ensure_ascii=False))
        texts, asker = ("\n".join(shown),), said[-1].sender
        payer = Payer(session_id=said[0].session_id, user_id=asker.id if asker else "")
        order = language_data("prompts", "core.facts")["order"]
        try:
            for _ in range(2):
                completion = await ask(model, self.name, "facts", order, texts, max_tokens=MAX_TOKENS, payer=payer)
                found, is_whole = read_items(completion.text, _Item)
                told += [one for one in found if one not in told]
                if is_whole:
                    break
                _log.info("a part of an answer cannot be read", read=len(found))
        except ModelError as error:
            if error.status not in _UNREADABLE and not isinstance(error, LimitReached):
                raise
        return told, is_whole

    def _looked_up(self, told: Sequence[_Item], said: Sequence[Message]) -> list[Candidate]:
        evidence = Evidence(said)
        found = []
        for one in told[:MOST_FACTS]:
            row = said[one.message - 1] if 1 <= one.message <= len(said) else None
            source = None if row is None else one.source(evidence, row)
            if row is None or (source is None and not one.quotes(row)):
                _log.info("a fact that nobody has said was dropped")
                continue
            claim = one.claim(row, self.zone, is_dated=source is not None and source[1])
            doubt = "" if source else evidence.missing(one.content, one.must_be_said)
            found.append(Candidate(source=row, claim=claim, origin="model", doubt=doubt))
        return found


def read_items(answer: str, kind: type[T]) -> tuple[list[T], bool]:
    """The items of an answer, and whether that is all of it. A list that was cut off is read up to there."""
    begin, end = answer.find("["), answer.rfind("]")
    found = []
    for text in _OBJECT.findall(answer, max(begin, 0)):
        with contextlib.suppress(ValidationError):
            found.append(kind.model_validate_json(text))
    shape = "".join(_OBJECT.sub("#", answer[begin : end + 1]).split())
    return found, shape == f"[{','.join('#' * len(found))}]"
