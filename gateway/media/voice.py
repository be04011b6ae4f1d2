"""Sends the model's answers in a direct chat as voice messages, too: /voice.

The text is sent first, while the speech is being generated. The outbox has an item for the voice
message from the start, so it's generated and sent once even if the process is killed.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable
from dataclasses import replace

import structlog

from core.errors import FileError, Refused, StoreError
from core.markup.markdown import to_plain
from core.store.mailbox import OutboxItem
from core.store.media.unfinished import VOICE_PREFIX
from core.types import Account, Address, Answer, Command, File, Inbound
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
        # The keys of the outbox items whose speech this process is generating.
        self._running: set[str] = set()

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

        The caller doesn't wait for it. An empty item in the outbox says that it's being generated,
        so that the next process resumes it if this one is killed.
        """
        if not inbound.is_direct or answer.is_private or not select_speech(answer.text):
            return
        if inbound.account not in await self._load_listeners():
            return
        digest = hashlib.sha256(answer.text.encode()).hexdigest()[:16]
        key = f"{VOICE_PREFIX}{digest}:{outbox_item.key}"
        self._running.add(key)
        item = OutboxItem(key=key, kind="answer", address=outbox_item.address)
        try:
            is_new = await self._services.outbox.put(item, sibling_key=outbox_item.key)
        except StoreError as error:
            _log.warning("a spoken answer can't be stored", error=str(error))
            is_new = False
        if not is_new:
            self._running.discard(key)
            return
        texts = load_texts(inbound.language)
        self._tasks.create_task(self._speak(texts, item, outbox_item.key, answer.text))

    async def resume(self, platform: str, is_ours: Callable[[Address], bool]) -> None:
        """Generate the voice messages of a platform that an earlier process didn't finish.

        Addresses for which `is_ours` is false are left out.
        """
        for unspoken in await self._services.unfinished_files.list_unspoken(platform):
            if unspoken.key in self._running or not is_ours(unspoken.address):
                continue
            self._running.add(unspoken.key)
            texts = self._services.languages.of_address(unspoken.address)
            item = OutboxItem(key=unspoken.key, kind="answer", address=unspoken.address)
            self._tasks.create_task(self._speak(texts, item, "", unspoken.text))

    async def _speak(self, texts: Texts, item: OutboxItem, sibling_key: str, text: str) -> None:
        """Generate a voice message, and put it into its item of the outbox.

        If that fails, put a notice there instead. `sibling_key` is the key of the item with the
        text, or "" if the item in the outbox has the same message already.
        """
        outbox = self._services.outbox
        answer = await self._create_answer(texts, text)
        try:
            if answer is None:
                await outbox.mark_done(item.key)
                return
            new_item = replace(item, answer=answer, next_at=self._services.clock.now())
            if await outbox.put(new_item, sibling_key=sibling_key):
                self._on_change()
        except StoreError as error:
            _log.warning("a spoken answer can't be stored", error=str(error))
        finally:
            self._running.discard(item.key)

    async def _create_answer(self, texts: Texts, text: str) -> Answer | None:
        """Return a voice message with the text, or a notice if it can't be spoken.

        Returns None if there is nothing to speak, or no speaker any more.
        """
        speech = select_speech(text)
        speaker = self._services.speaker
        if not speech or speaker is None:
            return None
        try:
            content = await speaker.speak(speech)
        except FileError as error:
            _log.warning("an answer isn't spoken", reason=error.log_message)
            return Answer(text=texts.NOT_SPOKEN)
        return Answer(text="", files=(File(name=VOICE_NAME, content=content, mime=VOICE_MIME),))


def select_speech(markdown: str) -> str:
    """Return the text of an answer to speak, without code and URLs."""
    text = to_plain(_ADDRESS.sub("", _CODE.sub("", markdown))).strip()
    if len(text) <= MAX_SPOKEN_CHARS:
        return text
    head = text[:MAX_SPOKEN_CHARS]
    end = max(head.rfind(mark) for mark in (". ", "! ", "? ", "。", "\n"))
    return head[: end + 1] if end > 0 else head
