"""Sends, edits and deletes the messages of one answer, in a channel or in reply to an interaction.

Mentions in our messages never ping anyone, because the client disables them. A private answer is
either ephemeral (only the person sees it) or sent in a direct chat.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import discord

from adapters.discord.channels import DiscordChannels
from adapters.discord.components import MAX_FILES, build_edited_parts, build_parts
from adapters.discord.errors import ALREADY_ACKNOWLEDGED, translate_errors
from adapters.discord.forms import DiscordForms
from adapters.streaming import ABSENT, LostMessage, PostLock
from core.errors import DeliveryError
from core.markup.discord import to_discord
from core.markup.markdown import StyledText
from core.ports import LostPost
from core.types import Address, Answer, File

MAX_NONCE_CHARS = 25
MAX_THREAD_NAME_CHARS = 100
# Discord's error code if a message already has a thread.
THREAD_EXISTS = 160004

# Interactions of these types leave nothing visible if they aren't answered.
_WITHOUT_TRACE = (discord.InteractionType.component, discord.InteractionType.modal_submit)

StartTask = Callable[[Awaitable[None]], None]
"""Runs work in a task that outlives the gateway connection."""

log = logging.getLogger(__name__)


class _Messages:
    """The methods of a `MessageApi` that are the same for channels and interactions."""

    # All kinds of messages can have this length. Some kinds can be longer.
    limit_chars = 2000
    # Discord allows five edits in five seconds per channel.
    pace_s = 1.2
    can_read_history = True
    posts_files_alone = False
    max_files = MAX_FILES
    # The maximum number of lines in one message. 0: no limit.
    max_lines = 0

    def measure(self, part: StyledText) -> int:
        """Return the number of code points of the text as it is sent.

        A text with too many lines counts as too long.
        """
        length = len(to_discord(part))
        if self.max_lines and part.text.count("\n") >= self.max_lines:
            return max(length, self.limit_chars + 1)
        return length

    async def show_draft(self, part: StyledText, nonce: str) -> bool:
        """Return False, because Discord has no drafts."""
        return False

    def count_album_files(self, files: Sequence[File]) -> int:
        """Return 1, because all files of a message are attached to it."""
        return 1

    async def post_album(self, files: Sequence[File]) -> Sequence[str]:
        """Raise DeliveryError, because Discord has no albums."""
        raise DeliveryError("no albums", is_missing=True)


class DiscordMessages(_Messages):
    """The messages of one answer in a channel, thread or direct chat.

    `reply_to` is the id of the message to reply to. For a private answer, `reply_to` is "@" and the
    id of the person: "@42".
    """

    def __init__(
        self,
        channels: DiscordChannels,
        start_task: StartTask,
        address: Address,
        reply_to: str | None,
        forms: DiscordForms,
        *,
        thread_name: str = "",
        max_lines: int = 0,
    ) -> None:
        self._forms = forms
        self.max_lines = max_lines
        self._channels = channels
        self._address = address
        # An answer to the first message of a thread may have to create the thread.
        self._has_thread = address.thread_id is None or address.thread_id != reply_to
        self._thread_name = thread_name
        self._thread_lock = asyncio.Lock()
        self._start_task = start_task
        self._channel_id = address.thread_id or address.chat_id
        self._reply_to: int | None = None
        self._person_id: int | None = None
        if reply_to and reply_to.isdecimal():
            self._reply_to = int(reply_to)
        elif reply_to and reply_to.startswith("@"):
            self._person_id = int(reply_to[1:])
        # The ids of other messages of the bot from the last search. None before a search.
        self._known_ids: Collection[str] | None = None
        self._is_typing = False
        self._has_moved_to_direct_chat = False

    async def show_typing(self) -> None:
        """Start a task that shows typing.

        The task isn't awaited, because Discord may ask for a delay. The task isn't cancelled
        either, because the library would then block all other calls forever.
        """
        if not self._is_typing:
            self._is_typing = True
            self._start_task(self._show_typing_once())

    async def prepare(self, answer: Answer) -> None:
        """If the answer is private, send it in the person's direct chat from now on.

        There it has no buttons, because they work only in the chat of the question. Raises
        DeliveryError if this isn't a direct chat and the person is unknown.
        """
        self._forms.remember(answer.buttons)
        if not answer.is_private:
            return
        partial_channel = await self._get_channel()
        with translate_errors():
            channel = await self._channels.find(partial_channel.id)
            if channel is not None and channel.is_direct:
                return
            person_id = self._person_id
            if person_id is None and self._reply_to is not None:
                message = await partial_channel.fetch_message(self._reply_to)
                person_id = message.author.id
            if person_id is None:
                raise DeliveryError(
                    "expired: a private answer cannot be sent in a group", is_permanent=True
                )
            client = await self._channels.get_client()
            direct_chat = await client.create_dm(discord.Object(person_id))
            self._channel_id = str(direct_chat.id)
            # The message to reply to isn't in the direct chat.
            self._reply_to = None
            self._has_moved_to_direct_chat = True

    async def post(self, part: StyledText, answer: Answer | None, nonce: str) -> str:
        """Create a message and return its id.

        If the same `nonce` was posted within the last minutes, Discord creates no message and
        returns the first one. If that message shows another text, it's edited. If it already
        belongs to another answer of this process, a new message is created.
        """
        channel = await self._get_channel()
        answer = self._leave_out_dead_buttons(answer)
        options = build_parts(answer)
        if self._reply_to is not None:
            replied_message = channel.get_partial_message(self._reply_to)
            options["reference"] = replied_message.to_reference(fail_if_not_exists=False)
        short_nonce = hashlib.sha256(nonce.encode()).hexdigest()[:MAX_NONCE_CHARS]
        text = to_discord(part)
        with translate_errors(is_post=True):
            message = await channel.send(text, nonce=short_nonce, **options)
            if self._shows_another_answer(str(message.id)):
                new_nonce = secrets.token_hex(MAX_NONCE_CHARS // 2)
                message = await channel.send(text, nonce=new_nonce, **options)
        if not _is_shown(message, text, answer):
            await self._edit_earlier(message, part, answer)
        self._channels.note_posted(int(self._channel_id), message.id)
        # Only the first part is shown as a reply; the others follow it.
        self._reply_to = None
        return str(message.id)

    def _shows_another_answer(self, message_id: str) -> bool:
        """Return whether a message that Discord returned for a nonce already shows another answer.

        This is possible only after a search that didn't find the message of a lost post.
        """
        if self._known_ids is None:
            return False
        return message_id in self._known_ids or self._channels.is_posted(message_id)

    async def edit(self, message_id: str, part: StyledText, answer: Answer | None) -> None:
        """Replace the text of a message, and set its buttons and files.

        Raises a DeliveryError with `is_missing` if the message is gone or can't be edited.
        """
        with translate_errors(is_edit=True):
            await self._edit(message_id, part, self._leave_out_dead_buttons(answer))

    def _leave_out_dead_buttons(self, answer: Answer | None) -> Answer | None:
        if answer is None or not self._has_moved_to_direct_chat:
            return answer
        return replace(answer, buttons=())

    async def _edit(self, message_id: str, part: StyledText, answer: Answer | None) -> None:
        message = (await self._get_channel()).get_partial_message(int(message_id))
        await message.edit(content=to_discord(part), **build_edited_parts(answer))

    @property
    def post_lock(self) -> PostLock:
        return self._channels.get_post_lock(self._channel_id)

    @property
    def newest_id(self) -> str:
        """The id of the newest known message of the channel, or an estimate.

        If the next message is a reply, the id of the replied message follows: "123/122".
        """
        if not self._channel_id.isdecimal():
            return ""
        newest_id = self._channels.find_newest(int(self._channel_id), self._reply_to or 0)
        return f"{newest_id}/{self._reply_to}" if self._reply_to else str(newest_id)

    async def find_lost(
        self,
        lost_post: LostPost,
        part: StyledText,
        answer: Answer | None,
        known_ids: Collection[str],
    ) -> LostMessage | None:
        """Search for a lost message among the messages of the channel after its `after_id`.

        If `after_id` begins with "@", the lost message answers an interaction. Such a message may
        be ephemeral, so it may exist even if it isn't found. Returns None if it can't be found.
        """
        after_id = lost_post.after_id
        interaction_id = after_id.removeprefix("@") if after_id.startswith("@") else None
        newest_id, _, replied_id = after_id.partition("/")
        first_id = interaction_id or newest_id
        self._known_ids = known_ids
        if not first_id.isdecimal() or not self._channel_id.isdecimal():
            return None
        client = await self._channels.get_client()
        try:
            messages, are_all = await self._channels.list_from(int(self._channel_id), int(first_id))
        except DeliveryError as error:
            if not error.is_permanent:
                raise
            log.info("A lost message can't be looked for on Discord: %s", error)
            return None
        for raw in messages:
            message_id = str(raw["id"])
            is_own = client.user is not None and int(raw["author"]["id"]) == client.user.id
            if not is_own or message_id in known_ids or self._channels.is_posted(message_id):
                continue
            if _may_be_lost(raw, interaction_id, replied_id):
                log.info("The lost message %s of Discord is found", message_id)
                self._channels.note_posted(int(self._channel_id), int(message_id))
                return LostMessage(message_id)
        return ABSENT if are_all and interaction_id is None else None

    async def delete(self, message_id: str) -> None:
        message = (await self._get_channel()).get_partial_message(int(message_id))
        with translate_errors():
            await message.delete()

    async def _edit_earlier(
        self, message: discord.Message, part: StyledText, answer: Answer | None
    ) -> None:
        """Edit the message that an earlier call with the same nonce created.

        Errors are marked as uncertain, because the message exists.
        """
        try:
            with translate_errors():
                await self._edit(str(message.id), part, answer)
        except DeliveryError as error:
            error.is_uncertain = True
            raise

    async def _show_typing_once(self) -> None:
        """Show typing once. A failure is only logged."""
        try:
            with translate_errors():
                await (await self._get_channel()).typing()
        except DeliveryError as error:
            log.debug("Discord did not show typing: %s", error)
        finally:
            self._is_typing = False

    async def _get_channel(self) -> discord.PartialMessageable:
        """Return the library's object for the channel.

        If the answer belongs in a new thread, the first call creates the thread.

        Raises DeliveryError if the id of the channel isn't a number.
        """
        client = await self._channels.get_client()
        async with self._thread_lock:
            if not self._has_thread:
                await self._create_thread(client)
                self._has_thread = True
        if not self._channel_id.isdecimal():
            raise DeliveryError(
                f"{self._channel_id} isn't the id of a Discord channel", is_permanent=True
            )
        return client.get_partial_messageable(int(self._channel_id))

    async def _create_thread(self, client: discord.Client) -> None:
        """Create the thread that begins with the message to answer, unless it exists.

        If that isn't allowed, the answer is sent in the channel, as a reply.
        """
        name = " ".join(self._thread_name.split()) or "Mneme"
        try:
            with translate_errors():
                await client.http.start_thread_with_message(
                    self._address.chat_id,
                    self._address.thread_id or "",
                    name=name[:MAX_THREAD_NAME_CHARS],
                    auto_archive_duration=1440,
                )
            # A message can't be a reply to a message in another channel.
            self._reply_to = None
        except DeliveryError as error:
            cause = error.__cause__
            if isinstance(cause, discord.HTTPException) and cause.code == THREAD_EXISTS:
                self._reply_to = None
                return
            if not error.is_permanent:
                raise
            log.info("A thread can't be created on Discord: %s", error)
            self._channel_id = self._address.chat_id


class DiscordInteraction(_Messages):
    """The messages that answer one interaction.

    Discord shows an interaction as failed if it isn't acknowledged within 3 seconds. `defer`
    acknowledges the interaction without an answer. Discord then shows "thinking" until the first
    message replaces it. If `is_private` is set, messages are ephemeral. This can't change after the
    first message. A lock prevents the deferral and the answer from being sent at the same time.
    """

    def __init__(
        self,
        interaction: discord.Interaction[discord.Client],
        *,
        is_private: bool,
        forms: DiscordForms,
        max_lines: int = 0,
    ) -> None:
        self._interaction = interaction
        self.max_lines = max_lines
        self._forms = forms
        # No other message is posted with this interaction.
        self.post_lock = PostLock()
        self._is_private = is_private
        self._was_private_at_first = is_private
        self._lock = asyncio.Lock()
        self._is_answered = False
        # The first message replaces the message with the pressed button.
        self._replaces_page = False

    @property
    def newest_id(self) -> str:
        """ "@" and the id of the interaction. Messages that answer it contain this id."""
        return f"@{self._interaction.id}"

    async def find_lost(
        self,
        lost_post: LostPost,
        part: StyledText,
        answer: Answer | None,
        known_ids: Collection[str],
    ) -> LostMessage | None:
        """Return ABSENT if only the first message can be lost, because `post` then replaces it.

        Otherwise return None, because later messages may be ephemeral and can't be searched for.
        """
        became_private = self._is_private != self._was_private_at_first
        return None if self._is_answered or became_private else ABSENT

    async def defer(self) -> None:
        """Acknowledge the interaction if it has no answer yet. Never raises."""
        async with self._lock:
            if self._is_answered:
                return
            try:
                with translate_errors(is_interaction=True):
                    await self._interaction.response.defer(
                        ephemeral=self._is_private, thinking=True
                    )
            except DeliveryError as error:
                log.warning(
                    "Discord refused the deferral of interaction %d: %s",
                    self._interaction.id,
                    error,
                )

    async def dismiss(self) -> None:
        """Acknowledge an interaction without an answer, with no visible result. Never raises."""
        async with self._lock:
            if self._is_answered:
                return
            self._is_answered = True
            response = self._interaction.response
            # Unless it was deferred, a button press shows nothing that must be deleted.
            is_button = self._interaction.type in _WITHOUT_TRACE
            is_visible = response.is_done() or not is_button
            try:
                with translate_errors(is_interaction=True):
                    if not response.is_done():
                        await response.defer(ephemeral=True, thinking=is_visible)
                    if is_visible:
                        await self._interaction.delete_original_response()
            except DeliveryError as error:
                log.info("Interaction %d could not be dismissed: %s", self._interaction.id, error)

    async def show_typing(self) -> None:
        """Do nothing, because the deferral already shows that an answer is being prepared."""

    async def prepare(self, answer: Answer) -> None:
        """Before a private answer, delete a public deferral and make all messages ephemeral."""
        self._forms.remember(answer.buttons)
        self._replaces_page = self._may_replace_page(answer)
        async with self._lock:
            if self._is_private or not answer.is_private:
                return
            self._is_private = True
            if self._interaction.response.is_done() and not self._is_answered:
                self._is_answered = True
                with translate_errors(is_interaction=True):
                    await self._interaction.delete_original_response()

    def _may_replace_page(self, answer: Answer) -> bool:
        """Return whether a page may replace the message with the pressed button.

        A private page doesn't replace a message that others see.
        """
        message = self._interaction.message
        if not answer.is_page or message is None or self._is_answered:
            return False
        is_seen_by_others = self._interaction.guild_id is not None and not message.flags.ephemeral
        return not (is_seen_by_others and (answer.is_private or self._is_private))

    async def post(self, part: StyledText, answer: Answer | None, nonce: str) -> str:
        """Create a message and return its id.

        The first message answers the interaction or replaces "thinking". Later messages follow it.
        """
        async with self._lock:
            with translate_errors(is_interaction=True):
                message_id = await self._send(to_discord(part), answer)
            self._is_answered = True
            return str(message_id)

    async def edit(self, message_id: str, part: StyledText, answer: Answer | None) -> None:
        """Replace the text of a message, and set its buttons and files.

        Raises a DeliveryError with `is_missing` if the message is gone or can't be edited.
        """
        options = build_edited_parts(answer)
        with translate_errors(is_interaction=True, is_edit=True):
            await self._interaction.followup.edit_message(
                int(message_id), content=to_discord(part), **options
            )

    async def delete(self, message_id: str) -> None:
        with translate_errors(is_interaction=True):
            await self._interaction.followup.delete_message(int(message_id))

    async def _send(self, text: str, answer: Answer | None) -> int:
        """Send a message and return its id.

        The call depends on the state of the interaction: a follow-up if it's answered, the response
        if it isn't acknowledged, otherwise an edit that replaces "thinking".
        """
        interaction = self._interaction
        options = {"ephemeral": self._is_private, **build_parts(answer)}
        if self._is_answered:
            return (await interaction.followup.send(text, wait=True, **options)).id
        if not interaction.response.is_done() and self._replaces_page and interaction.message:
            # A page without cards replaces one with cards, or the other way round.
            shown = {"embeds": [], **build_edited_parts(answer)}
            await interaction.response.edit_message(
                content=text, suppress_embeds=not shown["embeds"], **shown
            )
            return interaction.message.id
        if not interaction.response.is_done():
            try:
                response = await interaction.response.send_message(text, **options)
                return response.message_id or (await interaction.original_response()).id
            except discord.HTTPException as error:
                # ALREADY_ACKNOWLEDGED means that an earlier attempt succeeded, but its response was
                # lost. That message is edited below, unless it is public and the answer is private.
                became_private = self._is_private != self._was_private_at_first
                if error.code != ALREADY_ACKNOWLEDGED or became_private:
                    raise
        message = await interaction.edit_original_response(
            content=text, **build_edited_parts(answer)
        )
        return message.id


def _may_be_lost(raw: Any, interaction_id: str | None, replied_id: str) -> bool:
    """Return whether a message of the bot may be the lost one.

    Messages that answer another interaction or another message are excluded. If the message to
    reply to was deleted, Discord shows the reply as an ordinary message.
    """
    interaction = raw.get("interaction_metadata")
    if interaction_id is not None or interaction is not None:
        return interaction is not None and str(interaction["id"]) == interaction_id
    reference = raw.get("message_reference") or {}
    return str(reference.get("message_id", replied_id)) == replied_id


def _is_shown(message: discord.Message, text: str, answer: Answer | None) -> bool:
    """Return whether a message already has a text, and buttons and files if the answer has any."""
    has_buttons = not (answer and answer.buttons) or bool(message.components)
    has_files = not (answer and answer.files) or bool(message.attachments)
    has_cards = not (answer and answer.cards) or bool(message.embeds)
    is_text_shown = message.content.split() == text.split()
    return is_text_shown and has_buttons and has_files and has_cards
