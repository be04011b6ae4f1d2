"""Notices to the owner, or to the person whose notes they are: somebody asks to be let in, a memory is out of order,
something waits for a decision. Each is left once, where that person talked last in private.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from config.settings import Limited
from core.memory.manager import MemoryNotice
from core.notes.notebook import ALL_FILES
from core.store import rows
from core.store.jobs import Job
from core.store.mailbox import OutboxItem
from core.store.notes import PendingNote
from core.store.removal import NOT_SERVED
from core.store.usage import Budget
from core.types import LOCAL, Answer, Button, Scope
from gateway import texts
from gateway.commands.memory import decision
from gateway.commands.registry import actions_of, with_ids
from gateway.services import Services
from gateway.supervisor import CONNECTED


class OwnerNotices:
    """Leaves notices where `Services.private_place` finds a person."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def tell(
        self, key: str, text: str, scope: Scope = LOCAL, not_on: str = "", buttons: Sequence[Button] = ()
    ) -> None:
        """Leaves a notice once for each `key`, for the person of `scope`, or the owner where that is a room, on another
        platform than `not_on`."""
        services = self._services
        if (place := await services.private_place(scope, not_on)) is None:
            return
        now, (address, scope) = services.clock.now(), place
        answer = Answer(text=text, buttons=with_ids(buttons))
        await services.actions.add(actions_of(answer.buttons, scope, rows.account_of(scope.key.partition(":")[2]), now))
        notice = OutboxItem(key=key, kind="notice", address=address, answer=answer, next_at=now)
        if await services.outbox.put(notice):
            services.on_change()

    async def tell_of_dead_letter(self, platform: str) -> None:
        """Once a day for each platform."""
        key = f"dead:{platform}:{self._services.clock.now():%Y-%m-%d}"
        await self.tell(key, texts.SET_ASIDE.format(platform=platform.title()))

    async def tell_of_memory(self, kind: MemoryNotice, name: str, reason: str) -> None:
        """Once a day for each provider and kind."""
        text = texts.MEMORY_DOWN if kind == "down" else texts.MEMORY_KEEPS
        key = f"memory-{kind}:{name}:{self._services.clock.now().date()}"
        await self.tell(key, text.format(name=name, reason=reason))

    async def tell_of_budget(self, budget: Budget, name: Limited) -> None:
        """Once a day for each person and each room, of each limit that is nearly reached."""
        day = self._services.clock.now().astimezone(self._services.zone).date()
        whose = f"the room `{budget.scope.key}`" if budget.scope.is_room else "you"
        text = texts.LIMIT_NEAR.format(whose=whose, used=budget.said(name))
        await self.tell(f"limit:{budget.scope.key}:{name}:{day}", text, budget.scope)

    async def tell_of_outage(self, platform: str, state: str) -> None:
        """Of a platform that is dead, elsewhere, and that it is back."""
        dead = texts.GIVEN_UP if state.startswith("given up") else texts.DEAD
        text = (texts.BACK if state == CONNECTED else dead).format(platform=platform.title(), state=state)
        await self.tell(f"outage:{platform}:{self._services.clock.now().isoformat()}", text, not_on=platform)

    async def tell_of_pause(self, job: Job, reason: str) -> None:
        """Tells the person of a job that it does not come any more; the owner where that person is not served."""
        is_gone = reason == NOT_SERVED and not job.scope.is_room
        whose = f" of `{job.scope.key}`" if is_gone else _of_room(job.scope)
        text = texts.JOB_PAUSED.format(number=job.id, room=whose, reason=reason)
        await self.tell(f"paused:{job.id}:{job.next_at}", text, LOCAL if is_gone else job.scope)

    async def tell_of_pending(self, note: PendingNote) -> None:
        """Tells of what waits for a yes, the owner for a room; nothing new where a notice was left since `began_at`."""
        scope = note.scope
        if note.is_draft and not scope.is_room:
            text = "\n".join([texts.DRAFT.format(reason=note.reason), "", *texts.difference(note.operations)])
            await self.tell(f"draft:{note.id}", text, scope, buttons=decision(note))
            return
        did = {"fact": "remember", "remind": "plan", "cron": "plan", "skill": "learn"}.get(note.target, "note")
        text = f"Before I {did} something, I need your yes: {note.reason}. `/memory pending` shows it"
        if scope.is_room:
            shell = f"`mneme memory pending --scope {scope.key}` in a shell"
            text = f"About the room `{scope.key}`: {text} in that room, {shell}"
        since = f"draft:{note.id}" if note.is_draft else (note.began_at or note.at).isoformat()
        await self.tell(f"aside:{scope.key}:{since}", f"{text}.", scope)

    async def warn_of_note(self, scope: Scope, target: str, reason: str, entry: str) -> None:
        """A note written by hand that looks wrong; it stands all the same."""
        digest = sha256(entry.encode("utf-8", "replace")).hexdigest()
        text = texts.NOTE_BY_HAND.format(name=f"{ALL_FILES[target]}{_of_room(scope)}", reason=reason)
        await self.tell(f"warned:{scope.key}:{digest}", text, scope)

    async def warn_of_file(self, name: str, reason: str, digest: str) -> None:
        """The same for a file of the owner's own, once for what it says."""
        await self.tell(f"warned:{name}:{digest}", texts.OWNER_FILE.format(name=name, reason=reason))


def _of_room(scope: Scope) -> str:
    return f" of the room `{scope.key}`" if scope.is_room else ""
