"""The one way in which something is done only after a yes: a question waits for the person's next message.

A command answers with `Answer.confirm`; the question is a row that survives a restart, for the account that was asked,
at its address, for ten minutes. A yes, or the button, takes it and runs the command; anything else takes it too, and
is handled as usual. Whoever takes it is noted, so that what a crash cut short is done again and nothing is done twice.
`Answer.dictated` waits in the same way for a sentence.
"""

from __future__ import annotations

import secrets
import unicodedata
from dataclasses import replace
from datetime import timedelta

from core.memory.smalltalk import is_smalltalk
from core.ports import Clock
from core.store.actions import Actions, ButtonAction
from core.types import Account, Address, Button, Command, Inbound, Scope
from gateway.commands.context import CommandContext

WAITS = timedelta(minutes=10)
YES = Command(name="yes")
"""What a terminal shows for the button, and takes for a yes."""
UNCLEAR = Command(name="yes", arguments="to several")
"""What a yes runs that may mean several questions."""
_LETTERS_MOST = 20
_CALLED_OFF = frozenset({"cancel", "nevermind", "stop", "leaveit", "forgetit"})
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

    async def ask(self, command: Command, caller: CommandContext) -> Button:
        """Lets `command` wait for the caller's yes. The button says yes; what it does stands in its row alone."""
        action = self._waiting(command, caller)
        await self._actions.add([action])
        return Button(label="Yes", command=YES, id=action.id)

    async def listen(self, command: Command, caller: CommandContext) -> None:
        """Lets `command` wait for a sentence of the caller's, which is put behind its arguments."""
        await self._actions.add([replace(self._waiting(command, caller), takes_words=True)])

    async def lay(self, command: Command, account: Account, scope: Scope, address: Address, outbox_item: str) -> Button:
        """A question for an account that is asked at `address`, through the outbox in the parcel of that key: until it
        has arrived, no message there says yes to it, and none calls it off."""
        action = ButtonAction(
            id=secrets.token_urlsafe(12),
            scope=scope,
            account=account,
            command=command,
            expires_at=self._clock.now() + WAITS,
            address=address,
            outbox_item=outbox_item,
            origin=outbox_item,
        )
        await self._actions.add([action])
        return Button(label="Yes", command=YES, id=action.id)

    def _waiting(self, command: Command, caller: CommandContext) -> ButtonAction:
        return ButtonAction(
            id=secrets.token_urlsafe(12),
            scope=caller.scope,
            account=caller.account,
            command=command,
            expires_at=self._clock.now() + WAITS,
            address=caller.inbound.address,
            origin=caller.origin,
        )

    async def taken(self, inbound: Inbound) -> Command | None:
        """What an event of the person confirms, or is the sentence of (`is_dictated` tells which); None when nothing
        waited, or the event is neither and what waited waits no more. To be asked of every message, command and press
        in its turn, before all else."""
        account = Account(platform=inbound.address.platform, user_id=inbound.sender.id)
        taker = f"{inbound.kind}:{inbound.message_id}"
        waiting = await self._actions.take(inbound.address, account, taker, self._clock.now())
        if inbound.kind == "action":
            return next((action.command for action in waiting if inbound.text == action.id), None)
        for action in waiting:
            if action.takes_words and is_dictated(inbound):
                return replace(action.command, arguments=f"{action.command.arguments} {inbound.text.strip()}")
        waiting = [action for action in waiting if not action.takes_words]
        if not waiting or not is_yes(inbound):
            return None
        # One of several may have come from elsewhere and not be seen yet: a bare yes does not say which is meant.
        return waiting[0].command if len(waiting) == 1 else UNCLEAR


def is_dictated(inbound: Inbound) -> bool:
    """Whether a message is a sentence of the person's own, said to us: no command, no forward, and neither a yes, a no
    nor a word that calls it off."""
    if inbound.kind != "message" or inbound.command is not None or inbound.origin != "typed" or is_yes(inbound):
        return False
    said = "".join(sign for sign in inbound.text.casefold() if sign.isalpha())
    is_ours = inbound.is_addressed and not inbound.attachments
    return is_ours and bool(said) and said not in _CALLED_OFF and not is_smalltalk(inbound.text)


def is_yes(inbound: Inbound) -> bool:
    """Whether somebody says yes himself and nothing else, in whatever language, case and punctuation."""
    if inbound.attachments or inbound.origin != "typed":
        return False
    if inbound.command is not None:
        return inbound.command == YES
    if len(inbound.text) > 2 * _LETTERS_MOST:
        return False
    folded = unicodedata.normalize("NFKC", inbound.text).casefold()
    said = "".join(sign for sign in folded if unicodedata.category(sign)[0] in "LM" or sign.isspace())
    return said.strip() in _YES
