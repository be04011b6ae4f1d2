"""The one way in which something is done only after a yes: a question waits for the person's next message.

A command answers with `Answer.confirm`; the question is a row that survives a restart, for the account that was asked,
at its address, for ten minutes. A yes, or the button, takes it and runs the command; anything else takes it too, and
is handled as usual. Whoever takes it is noted, so that what a crash cut short is done again and nothing is done twice.
"""

from __future__ import annotations

import secrets
import unicodedata
from datetime import timedelta

from core.ports import Actions, Clock
from core.records import Action
from core.types import Account, Address, Button, Command, Inbound, Scope
from gateway.caller import Caller

WAITS = timedelta(minutes=10)
YES = Command(name="yes")
"""What a terminal shows for the button, and takes for a yes."""
UNCLEAR = Command(name="yes", arguments="to several")
"""What a yes runs that may mean several questions."""
_LETTERS_MOST = 20
_WORDS = """
yes y yeah yep yup ja jawohl sim oui si sí sì da да так tak ano áno igen kyllä \u03bd\u03b1\u03b9 evet
כן نعم ايوه بله हाँ हां
ใช่ はい うん 是 是的 好 好的 对 對 예 네 응 có vâng ya oo ndiyo igen joo jes
"""
_YES = frozenset(_WORDS.casefold().split())


class Confirmations:
    """Questions that wait, over the rows of buttons."""

    def __init__(self, actions: Actions, clock: Clock) -> None:
        self._actions = actions
        self._clock = clock

    async def ask(self, command: Command, caller: Caller) -> Button:
        """Lets `command` wait for the caller's yes. The button says yes; what it does stands in its row alone."""
        return await self.lay(command, caller.account, caller.scope, caller.inbound.address)

    async def lay(self, command: Command, account: Account, scope: Scope, address: Address) -> Button:
        """The same for an account that is asked at `address` through the outbox."""
        action = Action(
            id=secrets.token_urlsafe(12),
            scope=scope,
            account=account,
            command=command,
            expires_at=self._clock.now() + WAITS,
            address=address,
        )
        await self._actions.add([action])
        return Button(label="Yes", command=YES, id=action.id)

    async def taken(self, inbound: Inbound) -> Command | None:
        """What an event of the person confirms; None when nothing waited, or the event is no yes and what waited waits
        no more. To be asked of every message, command and press in its turn, before all else."""
        account = Account(platform=inbound.address.platform, user_id=inbound.sender.id)
        taker = f"{inbound.kind}:{inbound.message_id}"
        waiting = await self._actions.take(inbound.address, account, taker, self._clock.now())
        if inbound.kind == "action":
            return next((action.command for action in waiting if inbound.text == action.id), None)
        if not waiting or not is_yes(inbound):
            return None
        # One of several may have come from elsewhere and not be seen yet: a bare yes does not say which is meant.
        return waiting[0].command if len(waiting) == 1 else UNCLEAR


def is_yes(inbound: Inbound) -> bool:
    """Whether a message says yes and nothing else, in whatever language, case and punctuation."""
    if inbound.attachments:
        return False
    if inbound.command is not None:
        return inbound.command == YES
    if len(inbound.text) > 2 * _LETTERS_MOST:
        return False
    folded = unicodedata.normalize("NFKC", inbound.text).casefold()
    said = "".join(sign for sign in folded if unicodedata.category(sign)[0] in "LM" or sign.isspace())
    return said.strip() in _YES
