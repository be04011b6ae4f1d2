"""Sends the model's answers in a direct chat as voice messages, too: /voice.

The text is sent first, while the speech is being generated. The voice message is then put into the
outbox, so it's sent once even if the process is killed.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable

import structlog

from core.errors import FileError, Refused, StoreError
from core.markup.markdown import to_plain
from core.store.mailbox import OutboxItem
from core.types import Account, Answer, Command, File, Inbound
from gateway.commands.registry import CommandContext, load_specs
from gateway.services import Services
from gateway.texts.catalog import Texts, load_texts

# If an answer is longer than this, only its last whole sentence before this limit and the text
# before it are spoken.
MAX_SPOKEN_CHARS = 3_000
VOICE_NAME = "answer.ogg"
VOICE_MIME = "audio/ogg"
_CODE = re.compile(r"```.*?(```|\Z)", re.DOTALL)
_ADDRESS = re.compile(r"https?://\S+")
_log = structlog.get_logger("voice")


class VoiceCommands:
    """Answers /voice, and generates voice messages for people who switched it on."""

    specs = load_specs("voice")

    def __init__(
        self, services: Services, tasks: asyncio.TaskGroup, on_change: Callable[[], None]
    ) -> None:
        self._services = services
        # Called when an item of the outbox is due.
        self._on_change = on_change
        # Owns the tasks that speak, so that they end with the gateway.
        self._tasks = tasks
        # The accounts that have switched it on; None before the first answer.
        self._listeners: set[Account] | None = None

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """Switch spoken answers on or off, or show the current state.

        Raises Refused in a group, if no speech server is configured, or if the word is neither "on"
        nor "off".
        """
        texts = context.texts
        if context.scope.is_group:
            raise Refused(texts.VOICE_IN_GROUP)
        if self._services.speaker is None:
            raise Refused(texts.NO_SPEAKER)
        listeners = await self._load_listeners()
        match command.arguments.strip().lower():
            case "":
                is_on = context.account in listeners
                return Answer(text=texts.VOICE_IS_ON if is_on else texts.VOICE_IS_OFF)
            case "on":
                await self._services.preferences.save(context.account, voice="on")
                listeners.add(context.account)
                return Answer(text=texts.VOICE_ON)
            case "off":
                await self._services.preferences.save(context.account, voice=None)
                listeners.discard(context.account)
                return Answer(text=texts.VOICE_OFF)
        raise Refused(texts.VOICE_USAGE)

    async def _load_listeners(self) -> set[Account]:
        if self._listeners is None:
            self._listeners = set(await self._services.preferences.list_voice_accounts())
        return self._listeners

    async def speak(self, inbound: Inbound, outbox_item: OutboxItem, answer: Answer) -> None:
        """Start to generate a voice message for an answer if the person switched that on.

        The caller doesn't wait for it.
        """
        if not inbound.is_direct or answer.is_private:
            return
        if inbound.account in await self._load_listeners():
            texts = load_texts(inbound.language)
            self._tasks.create_task(self._speak(texts, outbox_item, answer))

    async def _speak(self, texts: Texts, outbox_item: OutboxItem, answer: Answer) -> None:
        """Generate a voice message, and put it into the outbox.

        If that fails, put a notice there instead.
        """
        text = select_speech(answer.text)
        speaker = self._services.speaker
        if not text or speaker is None:
            return
        try:
            content = await speaker.speak(text)
            file = File(name=VOICE_NAME, content=content, mime=VOICE_MIME)
            voice_answer = Answer(text="", files=(file,))
        except FileError as error:
            _log.warning("an answer isn't spoken", reason=error.log_message)
            voice_answer = Answer(text=texts.NOT_SPOKEN)
        digest = hashlib.sha256(answer.text.encode()).hexdigest()[:16]
        item = OutboxItem(
            key=f"voice:{digest}:{outbox_item.key}",
            kind="answer",
            address=outbox_item.address,
            answer=voice_answer,
            next_at=self._services.clock.now(),
        )
        try:
            if await self._services.outbox.put(item, sibling_key=outbox_item.key):
                self._on_change()
        except StoreError as error:
            _log.warning("a spoken answer can't be stored", error=str(error))


def select_speech(markdown: str) -> str:
    """Return the text of an answer to speak, without code and URLs."""
    text = to_plain(_ADDRESS.sub("", _CODE.sub("", markdown))).strip()
    if len(text) <= MAX_SPOKEN_CHARS:
        return text
    head = text[:MAX_SPOKEN_CHARS]
    end = max(head.rfind(mark) for mark in (". ", "! ", "? ", "。", "\n"))
    return head[: end + 1] if end > 0 else head
