"""Questions that wait for a yes, as rows for the account and address that was asked, for ten minutes. A yes, or the
button, runs the command of `Answer.confirm`; anything else cancels it and is handled as usual.
"""

from __future__ import annotations

import secrets
import tomllib
import unicodedata
from datetime import timedelta
from functools import cache
from importlib.resources import files

from core.ports import Clock
from core.store.actions import Actions, ButtonAction
from core.types import Account, Address, Button, Command, Inbound, Scope

LIFETIME = timedelta(minutes=10)
YES = Command(name="yes")
"""What a terminal shows for the button, and takes for a yes."""
UNCLEAR = Command(name="yes", arguments="to several")
"""What a yes runs that may mean several questions."""
SUGGESTIONS = frozenset({"remind", "cron"})
"""Commands that suggest what was probably meant: "ok" is enough for them, but not for what cannot be undone."""
_LONGEST_CHARS = 40


class Confirmations:
    """Questions that wait, over the rows of buttons."""

    def __init__(self, actions: Actions, clock: Clock) -> None:
        self._actions = actions
        self._clock = clock

    async def ask(
        self,
        command: Command,
        account: Account,
        scope: Scope,
        address: Address,
        origin: str,
        outbox_item: str | None = None,
    ) -> Button:
        """Lets `command` wait for a yes of the account at `address`, given by message or with the button. Where an
        outbox item carries the question there: until that has arrived, no message says yes to it, and none cancels
        it."""
        action = ButtonAction(
            id=secrets.token_urlsafe(12),
            scope=scope,
            account=account,
            command=command,
            expires_at=self._clock.now() + LIFETIME,
            address=address,
            origin=origin,
            outbox_item=outbox_item,
        )
        await self._actions.add([action])
        return Button(label="Yes", command=YES, id=action.id)

    async def taken(self, inbound: Inbound) -> Command | None:
        """The command that an event confirms; None when nothing waited, or the event is no yes and what waited is over.
        Must see every message, command and press in its turn, before all else."""
        taker = f"{inbound.kind}:{inbound.message_id}"
        waiting = await self._actions.take(inbound.address, inbound.account, taker, self._clock.now())
        if inbound.kind == "action":
            return next((action.command for action in waiting if inbound.text == action.id), None)
        questions = [action.command for action in waiting]
        if not questions or not is_yes(inbound, is_ok_enough=all(one.name in SUGGESTIONS for one in questions)):
            return None
        # One of several may have come from elsewhere and not be seen yet: a bare yes does not say which is meant.
        return questions[0] if len(questions) == 1 else UNCLEAR


def is_yes(inbound: Inbound, *, is_ok_enough: bool = False) -> bool:
    """Whether a person says yes, with a please or thanks at most, in any language, case and punctuation; "ok" or a
    thumb up where that is enough."""
    if inbound.attachments or inbound.origin != "typed":
        return False
    if inbound.command is not None:
        return inbound.command == YES
    if len(inbound.text) > _LONGEST_CHARS:
        return False
    folded = unicodedata.normalize("NFKC", inbound.text).casefold()
    said = "".join(sign for sign in folded if unicodedata.category(sign)[0] in "LM" or sign.isspace()).split()
    if not said:
        return is_ok_enough and "👍" in folded
    answers = _words("yes") | _words("ok") if is_ok_enough else _words("yes")
    return " ".join(said) in answers or (said[0] in answers and _words("beside").issuperset(said[1:]))


@cache
def _words(kind: str) -> frozenset[str]:
    tables = tomllib.loads(files("gateway.commands").joinpath("confirmations.toml").read_text(encoding="utf-8"))
    return frozenset(tables[kind].split())
