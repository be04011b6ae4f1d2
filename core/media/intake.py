"""Receives the files of a message: downloads each file once, stores, decodes and records it.

A turn waits for its files, but not longer than the settings allow. A slower download continues in
the background. The files of an incognito conversation stay in memory until the turn ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import structlog

from config.media_options import MediaOptions
from core.errors import FileError, Refused, StoreError
from core.media.decoding import Decoded, Decoder
from core.media.file_rows import (
    describe_content,
    hide_animation,
    list_parts,
    make_row,
    name_made_kind,
)
from core.media.folder import MediaFolder, list_views
from core.media.speech import Transcriber, Transcript
from core.ports import Clock, FileSource
from core.store.media.files import (
    DESCRIPTION_LABEL,
    MADE_PREFIX,
    AttachedFile,
    FileContent,
    FilePart,
    Files,
)
from core.store.media.unfinished import UnfinishedFiles
from core.types import Address, Attachment, ErasureEpoch, File, Inbound, Scope, ToolContext

MEGABYTE = 1_000_000
# The kind of a voice note.
VOICE = "voice"
# For these kinds, the spoken words become the text of the message.
SPOKEN_KINDS = frozenset({VOICE, "video note"})
# The type of voice notes. Other sound files may state where they were recorded.
_TYPES_WITHOUT_POSITION = frozenset({"audio/ogg"})
Problem = Literal[
    "",
    # The file has more bytes than the settings allow.
    "too_large",
    # The person, or all people, have used up the room for files.
    "person_full",
    "all_full",
    # The platform doesn't provide the file, or no longer does.
    "gone",
    # The download failed. It's tried again when the person asks.
    "failed",
    # The adapter of the platform can't fetch files.
    "no_source",
    # The disk is full or can't be written.
    "disk",
]
"""The reason why a file isn't stored. The gateway words it for people."""
# The problems after which a download is tried again when the file is needed.
_RETRYABLE = frozenset({"", "failed", "disk", "person_full", "all_full"})
# The notes of recordings that are transcribed when they are sent again.
_UNTRANSCRIBED = frozenset({"unheard", "inaudible"})
# The address, message and position of a file.
_Key = tuple[str, str, int]
_log = structlog.get_logger("media")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reception:
    """The files of a message after their download, and the message with their text."""

    # The message. The text of a voice note is the transcript.
    inbound: Inbound
    files: Sequence[AttachedFile] = ()
    # The names of files that are still being downloaded.
    unfinished: Sequence[str] = ()
    # Whether the files live only until the end of the turn.
    is_incognito: bool = False
    # The spoken words of the message's voice notes.
    transcript: str = ""


@dataclass(slots=True)
class _TransientFile:
    """A file of an incognito conversation, which is only in memory."""

    file: AttachedFile
    content: bytes
    views: Sequence[bytes]
    parts: Sequence[FilePart]


@dataclass(frozen=True, slots=True, eq=False)
class _Download:
    """A running download of a file."""

    file: AttachedFile
    task: asyncio.Task[AttachedFile]
    is_transient: bool


@dataclass(eq=False)
class MediaIntake:
    """Downloads, decodes and stores the files that people send."""

    files: Files
    unfinished_files: UnfinishedFiles
    folder: MediaFolder
    decoder: Decoder
    clock: Clock
    options: MediaOptions
    is_incognito: Callable[[Address], bool]
    # Returns the abilities that a model lacks according to the settings.
    known_lacks: Callable[[str], Collection[str]]
    # The adapters, by platform.
    sources: Mapping[str, object] = field(default_factory=dict)
    # Turns voice notes into text. None if the settings have no transcriber.
    transcriber: Transcriber | None = None

    def __post_init__(self) -> None:
        # Running downloads, by address, message and position.
        self._downloads: dict[_Key, _Download] = {}
        # The files of incognito conversations, by the same key.
        self._transient: dict[_Key, _TransientFile] = {}
        # The accounts and sizes of the files that are being downloaded, by the same key. The files
        # of a message must not exceed a quota together.
        self._reserved: dict[_Key, tuple[str, int]] = {}
        self._room_lock = asyncio.Lock()
        # The running downloads whose files have a row. If the row is gone at the end of the
        # download, the person has removed the file.
        self._recorded: set[_Key] = set()
        # How many running downloads have the bytes with a hash.
        self._hash_users: Counter[str] = Counter()
        self._bytes_lock = asyncio.Lock()

    async def receive(
        self, inbound: Inbound, scope: Scope, epoch: ErasureEpoch | None = None
    ) -> Reception:
        """Store the files of a message, and return the result for each of them.

        Files that are already stored aren't downloaded again.
        """
        if not inbound.attachments:
            return Reception(inbound=inbound)
        files = await self.load(inbound.address, inbound.message_id)
        files_by_position = {file.position: file for file in files}
        tasks: dict[int, asyncio.Task[AttachedFile]] = {}
        for position, attachment in enumerate(inbound.attachments):
            file = files_by_position.get(position)
            if file is None or is_replaced(file.reference, attachment):
                file = make_row(inbound, scope, position, attachment)
            elif file.content is not None or file.problem not in _RETRYABLE:
                continue
            tasks[position] = self._start_download(file, epoch, inbound.language)
        if tasks:
            await asyncio.wait(tasks.values(), timeout=self.options.wait_s)
        unfinished: list[str] = []
        for position, task in tasks.items():
            if task.done() and not task.cancelled():
                files_by_position[position] = task.result()
                continue
            attachment = inbound.attachments[position]
            unfinished.append(attachment.name)
            if not task.cancelled():
                file = make_row(inbound, scope, position, attachment)
                await self._record_unfinished(file, epoch)
        received_files = [files_by_position[position] for position in sorted(files_by_position)]
        transcript = await self._load_transcript(received_files)
        if transcript:
            inbound = _add_transcript(inbound, transcript)
        return Reception(
            inbound=inbound,
            files=received_files,
            unfinished=unfinished,
            is_incognito=self.is_incognito(inbound.address),
            transcript=transcript,
        )

    async def _record_unfinished(self, file: AttachedFile, epoch: ErasureEpoch | None) -> None:
        """Record a file whose download continues after the turn.

        The row lets a new process resume the download, and the person remove the file meanwhile.
        Files of incognito conversations aren't recorded.
        """
        key = _make_key(file)
        if key in self._recorded or self.is_incognito(file.address):
            return
        try:
            await self.unfinished_files.store(file, epoch)
        except StoreError as error:
            _log.warning("an unfinished download can't be recorded", error=str(error))
            return
        if key in self._downloads:
            self._recorded.add(key)

    async def resume_downloads(self, platform: str, is_ours: Callable[[Address], bool]) -> None:
        """Start the downloads of a platform that an earlier process didn't finish.

        Addresses for which `is_ours` is false are left out.
        """
        for file in await self.unfinished_files.list_downloads(platform):
            if is_ours(file.address):
                self._start_download(file, None, "")

    async def follow_edit(self, inbound: Inbound, scope: Scope) -> tuple[Inbound, bool]:
        """Replace the files of an edited message that was received before.

        Removed files are deleted. New files are downloaded without waiting for them. Returns the
        edit with the spoken words of the message, which are part of its stored text, and whether
        a file was replaced. Files of incognito conversations aren't replaced.
        """
        if self.is_incognito(inbound.address):
            return inbound, False
        has_new_file = False
        unchanged_files: list[AttachedFile] = []
        for file in await self.load(inbound.address, inbound.message_id):
            if file.position >= len(inbound.attachments):
                await self.files.remove(file.id, frozenset({file.scope}))
                continue
            attachment = inbound.attachments[file.position]
            if is_replaced(file.reference, attachment):
                has_new_file = True
                new_file = make_row(inbound, scope, file.position, attachment)
                self._start_download(new_file, None, inbound.language)
            else:
                unchanged_files.append(file)
        transcript = await self._load_transcript(unchanged_files)
        edit = _add_transcript(inbound, transcript) if transcript else inbound
        return edit, has_new_file

    async def _load_transcript(self, files: Sequence[AttachedFile]) -> str:
        """Return the spoken words of the voice messages among some files."""
        texts: list[str] = []
        for file in files:
            if file.kind in SPOKEN_KINDS and file.content is not None:
                parts = await self.load_parts(file.content.hash)
                texts += [part.text for part in parts if part.label != DESCRIPTION_LABEL]
        return " ".join(texts)

    async def transcribe(self, file: AttachedFile) -> bool:
        """Transcribe a stored voice message or video without a transcript.

        Returns whether it succeeded.
        """
        if file.content is None:
            return False
        path = self.folder.path_of(file.content.hash)
        content, parts = await self._decode_and_transcribe(path, file.content)
        if not content.note:
            await self.files.store_parts(content, parts)
        return not content.note

    async def _decode_and_transcribe(
        self, path: Path, content: FileContent
    ) -> tuple[FileContent, Sequence[FilePart]]:
        """Decode and transcribe a voice message or video. Returns its content and its spoken words.

        If it can't be transcribed, the note in the content gives the reason.
        """
        if self.transcriber is None:
            return replace(content, note="unheard"), ()
        try:
            if content.is_video:
                transcript = await self._transcribe_video(path, self.transcriber)
            elif content.type in _TYPES_WITHOUT_POSITION:
                transcript = await self.transcriber.transcribe(path)
            else:
                transcript = await self._transcribe_whole(path, self.transcriber)
        except FileError as error:
            _log.warning("a recording wasn't transcribed", reason=error.log_message)
            return replace(content, note="inaudible"), ()
        transcribed_content = replace(
            content, note="", duration_s=transcript.duration_s or content.duration_s
        )
        return transcribed_content, transcript.parts

    async def _transcribe_video(self, path: Path, transcriber: Transcriber) -> Transcript:
        """Return the spoken words of a video.

        If its sound can't be extracted, the whole file is sent.
        """
        with self.decoder.open_scratch() as folder:
            sound_path = Path(folder, "sound.ogg")
            if await self.decoder.write_speech(path, sound_path):
                return await transcriber.transcribe(sound_path)
        return await self._transcribe_whole(path, transcriber)

    async def _transcribe_whole(self, path: Path, transcriber: Transcriber) -> Transcript:
        """Return the spoken words of a file, which the transcriber gets without its position.

        Raises FileError if the position can't be removed.
        """
        with self.decoder.open_scratch() as folder:
            copy_path = Path(folder, "copy")
            try:
                is_copied = await self.decoder.clean(path, copy_path, "")
            except Refused as error:
                raise FileError("its position can't be removed") from error
            return await transcriber.transcribe(copy_path if is_copied else path)

    def _has_speech(self, file: AttachedFile, decoded: Decoded) -> bool:
        """Return whether to transcribe a file: a recording, or a video with sound."""
        is_recording = file.kind == VOICE or decoded.type.startswith("audio/")
        return is_recording or (decoded.has_sound and self.options.video)

    async def fetch_again(self, file: AttachedFile) -> AttachedFile:
        """Retry the download of a file that isn't stored, and return the file.

        The wait is limited as in `receive`. If it isn't long enough, the returned file has no
        problem, because it is still being downloaded.
        """
        if file.content is not None or file.problem not in _RETRYABLE or not file.reference:
            return file
        task = self._start_download(file, None, "")
        await asyncio.wait([task], timeout=self.options.wait_s)
        if task.done() and not task.cancelled():
            return task.result()
        return replace(file, problem="")

    async def fetch_missing(self, address: Address, message_id: str) -> None:
        """Retry the failed downloads of a message whose question is asked again."""
        files = [file for file in await self.load(address, message_id) if file.content is None]
        for file in await asyncio.gather(*map(self.fetch_again, files)):
            if file.content is not None:
                await self.unfinished_files.forget_sent_form(file)

    async def keep_file(self, made_file: File, context: ToolContext) -> AttachedFile | None:
        """Store a file from a tool as a file of the message that is being answered.

        Returns None if the message isn't stored, if there is no room, or if it's a picture that
        can't be read.
        """
        address = context.session.address
        if context.message_id is None or self.is_incognito(address):
            return None
        file = AttachedFile(
            scope=context.scope,
            address=address,
            external_id=f"{MADE_PREFIX}{secrets.token_hex(8)}",
            position=0,
            message_id=context.message_id,
            account=context.asker.key,
            kind=name_made_kind(made_file),
            name=made_file.name,
            size=len(made_file.content),
            at=context.now,
        )
        is_too_large = len(made_file.content) > self.options.file_mb * MEGABYTE
        if is_too_large or await self._check_room(file, len(made_file.content)):
            return None
        try:
            stored_file = await self._store_in_home(file, made_file.content, context.epoch)
        except (OSError, StoreError) as error:
            _log.warning("a file of a tool can't be kept", error=str(error))
            return None
        content = stored_file.content
        if file.kind == "image" and (content is None or not content.width):
            await self.files.remove(stored_file.id, frozenset({stored_file.scope}))
            return None
        return stored_file

    async def load(self, address: Address, message_id: str) -> list[AttachedFile]:
        """Return the files that were received with a message."""
        transient = [
            entry.file
            for (key, external_id, _), entry in self._transient.items()
            if key == address.key and external_id == message_id
        ]
        if transient or self.is_incognito(address):
            return transient
        return await self.files.load_of_messages(address, [message_id])

    async def load_parts(self, content_hash: str) -> Sequence[FilePart]:
        """Return the text of the file with this hash, in parts."""
        for entry in self._transient.values():
            if entry.file.content is not None and entry.file.content.hash == content_hash:
                return entry.parts
        return await self.files.load_parts(content_hash)

    async def count_views(self, content_hash: str) -> int:
        """Return the number of views of a picture, scan or video."""
        for entry in self._transient.values():
            if entry.file.content is not None and entry.file.content.hash == content_hash:
                return len(entry.views)
        return await asyncio.to_thread(self.folder.count_views, content_hash)

    async def read_view(self, view_name: str) -> bytes | None:
        """Return a view by its name (see `name_view`), or None if it doesn't exist.

        A lost view is created again.
        """
        content_hash, _, digits = view_name.partition("/")
        number = int(digits or 0)
        for entry in self._transient.values():
            if entry.file.content is not None and entry.file.content.hash == content_hash:
                return entry.views[number] if number < len(entry.views) else None
        view = await asyncio.to_thread(self.folder.read_view, content_hash, number)
        if view is None and self.folder.path_of(content_hash).exists():
            await self._decode(content_hash, "")
            view = await asyncio.to_thread(self.folder.read_view, content_hash, number)
        return view

    def is_transient(self, view_name: str) -> bool:
        """Return whether a view belongs to an incognito conversation."""
        content_hash = view_name.partition("/")[0]
        contents = [entry.file.content for entry in self._transient.values()]
        return any(content is not None and content.hash == content_hash for content in contents)

    def gets_pictures(self, model: str) -> bool:
        """Return whether a model gets pictures."""
        return self.options.pictures and "pictures" not in self.known_lacks(model)

    def forget_transient(self, address: Address) -> None:
        """Remove the files of an incognito conversation from memory at the end of a turn.

        Downloads that are still running are cancelled.
        """
        for key, download in list(self._downloads.items()):
            if key[0] == address.key and download.is_transient:
                download.task.cancel()
        for key in [key for key in self._transient if key[0] == address.key]:
            del self._transient[key]

    async def cancel_erased(self) -> None:
        """Stop the downloads of erased messages and removed files, and delete their bytes."""
        tasks: list[asyncio.Task[AttachedFile]] = []
        for key, download in list(self._downloads.items()):
            is_removed = key in self._recorded and not await self.unfinished_files.has_row(
                download.file
            )
            if is_removed or await self.unfinished_files.is_message_erased(download.file):
                download.task.cancel()
                tasks.append(download.task)
        if tasks:
            await asyncio.wait(tasks)

    def _start_download(
        self, file: AttachedFile, epoch: ErasureEpoch | None, language: str
    ) -> asyncio.Task[AttachedFile]:
        """Start the download of a file, or return the task that is already downloading it.

        If the person replaced the file during its download, the new file is stored afterwards.
        `language` is the language of the person, or "".
        """
        key = _make_key(file)
        running = self._downloads.get(key)
        if running is not None and running.file.reference == file.reference:
            return running.task
        earlier_task = None if running is None else running.task
        task = asyncio.create_task(self._download_and_record(file, epoch, language, earlier_task))
        download = _Download(file, task, self.is_incognito(file.address))
        self._downloads[key] = download
        if file.id:
            self._recorded.add(key)
        task.add_done_callback(lambda _: self._end_download(key, download))
        return task

    def _end_download(self, key: _Key, download: _Download) -> None:
        if self._downloads.get(key) is download:
            del self._downloads[key]
            self._recorded.discard(key)

    async def _download_and_record(
        self,
        file: AttachedFile,
        epoch: ErasureEpoch | None,
        language: str,
        earlier_task: asyncio.Task[AttachedFile] | None,
    ) -> AttachedFile:
        """Download, decode and record a file. If it can't be stored, the reason is recorded.

        `earlier_task` ends first, so that this file replaces its file. An error of the disk or of
        the store isn't recorded, only logged and returned as the file's problem. The file is then
        received again with the next message.
        """
        if earlier_task is not None:
            await asyncio.wait([earlier_task])
        is_incognito = self.is_incognito(file.address)
        try:
            problem, content = await self._fetch(file)
            if is_incognito:
                return await self._keep_in_memory(file, problem, content, language)
            if content is None:
                return await self._store(replace(file, problem=problem), (), epoch)
            stored_file = await self._store_in_home(file, content, epoch, language)
            if not file.problem and _make_key(file) in self._recorded:
                # The turn of the message ended before the download.
                await self.unfinished_files.forget_sent_form(file)
            return stored_file
        except OSError as error:
            _log.warning("a file can't be written", error=str(error))
            return replace(file, problem="disk")
        except StoreError as error:
            _log.warning("a file can't be recorded", error=str(error))
            return replace(file, problem="failed")
        finally:
            self._reserved.pop(_make_key(file), None)

    async def _fetch(self, file: AttachedFile) -> tuple[Problem, bytes | None]:
        """Return the bytes of a file, or the reason why it can't be stored."""
        source = self.sources.get(file.address.platform)
        if not isinstance(source, FileSource) or not file.reference:
            return "no_source", None
        limit = int(self.options.file_mb * MEGABYTE)
        if file.size is not None and file.size > limit:
            return "too_large", None
        problem = await self._reserve_room(file, file.size or 0)
        if problem:
            return problem, None
        attachment = Attachment(
            kind=file.kind,
            name=file.name,
            mime=file.mime,
            size_bytes=file.size,
            reference=file.reference,
        )
        try:
            content = await source.fetch_file(attachment, file.address, file.external_id, limit)
        except FileError as error:
            _log.info("a file can't be fetched", reason=error.log_message)
            return ("gone" if error.is_permanent else "failed"), None
        if len(content) > limit:
            return "too_large", None
        if len(content) > (file.size or 0):
            # The platform gave no size, or a wrong one.
            problem = await self._reserve_room(file, len(content))
        return problem, None if problem else content

    async def _reserve_room(self, file: AttachedFile, size: int) -> Problem:
        """Reserve room for a file until it's stored, or return the reason why there is none."""
        async with self._room_lock:
            problem = await self._check_room(file, size)
            if not problem:
                self._reserved[_make_key(file)] = file.account, size
        return problem

    async def _check_room(self, file: AttachedFile, size: int) -> Problem:
        """Return the reason why there is no room for a file of `size` bytes, or "".

        Files that are being downloaded count as stored.
        """
        others = [entry for key, entry in self._reserved.items() if key != _make_key(file)]
        if self.options.person_mb:
            usage = await self.files.measure_usage([file.account])
            size_of_person = sum(size for account, size in others if account == file.account)
            if usage.size + size_of_person + size > self.options.person_mb * MEGABYTE:
                return "person_full"
        if self.options.total_mb:
            usage = await self.files.measure_usage()
            size_of_all = sum(size for _, size in others)
            if usage.size + size_of_all + size > self.options.total_mb * MEGABYTE:
                return "all_full"
        return ""

    async def _store_in_home(
        self, file: AttachedFile, content: bytes, epoch: ErasureEpoch | None, language: str = ""
    ) -> AttachedFile:
        """Write the bytes to the home, decode them, and record the file.

        If the file can't be recorded, for example because its scope was erased meanwhile, or if
        this is cancelled, the bytes are deleted, unless another file has them.
        """
        content_hash = hashlib.sha256(content).hexdigest()
        self._hash_users[content_hash] += 1
        try:
            async with self._bytes_lock:
                await asyncio.to_thread(self.folder.write, content)
            return await self._decode_and_store(file, content_hash, len(content), epoch, language)
        except (StoreError, asyncio.CancelledError):
            with contextlib.suppress(StoreError):
                await self._remove_bytes(content_hash)
            raise
        finally:
            self._hash_users[content_hash] -= 1
            if not self._hash_users[content_hash]:
                del self._hash_users[content_hash]

    async def _remove_bytes(self, content_hash: str) -> None:
        """Delete bytes that no stored file and no other running download has."""
        async with self._bytes_lock:
            is_used = self._hash_users[content_hash] > 1
            if not is_used and await self.files.find_content(content_hash) is None:
                await asyncio.to_thread(self.folder.remove, content_hash)

    async def _store(
        self, file: AttachedFile, parts: Sequence[FilePart], epoch: ErasureEpoch | None
    ) -> AttachedFile:
        """Record a file. Raises StaleReadError if it was removed during its download."""
        needs_row = _make_key(file) in self._recorded
        return await self.files.store(file, parts, epoch, needs_row=needs_row)

    async def _decode_and_store(
        self,
        file: AttachedFile,
        content_hash: str,
        size: int,
        epoch: ErasureEpoch | None,
        language: str,
    ) -> AttachedFile:
        """Decode a file whose bytes are in the home, and record it.

        Bytes that are known aren't decoded again.
        """
        known_content = await self.files.find_content(content_hash)
        path = self.folder.path_of(content_hash)
        if known_content is not None:
            parts: Sequence[FilePart] = await self.files.load_parts(content_hash)
            if known_content.note in _UNTRANSCRIBED and self.transcriber is not None:
                known_content, parts = await self._decode_and_transcribe(path, known_content)
            new_row = replace(file, size=size, content=known_content, problem="")
            return await self._store(new_row, parts, epoch)
        decoded = hide_animation(file, await self._decode(content_hash, file.name, language))
        file_content = describe_content(content_hash, size, decoded)
        parts = list_parts(decoded)
        if self._has_speech(file, decoded):
            file_content, parts = await self._decode_and_transcribe(path, file_content)
        new_row = replace(file, size=size, content=file_content, problem="")
        return await self._store(new_row, parts, epoch)

    async def _decode(self, content_hash: str, name: str, language: str = "") -> Decoded:
        path = self.folder.path_of(content_hash)
        return await self.decoder.read(path, self.folder.view_path_of(content_hash), name, language)

    async def _keep_in_memory(
        self, file: AttachedFile, problem: Problem, content: bytes | None, language: str
    ) -> AttachedFile:
        """Decode a file of an incognito conversation without leaving it on the disk."""
        transient_file = replace(file, problem=problem)
        views: Sequence[bytes] = ()
        parts: Sequence[FilePart] = ()
        if content is not None:
            with self.decoder.open_scratch() as folder:
                path = Path(folder, "file")
                view_path = Path(folder, "file.view")
                await asyncio.to_thread(path.write_bytes, content)
                decoded = await self.decoder.read(path, view_path, file.name, language)
                decoded = hide_animation(file, decoded)
                views = [view.read_bytes() for view in list_views(view_path)]
                content_hash = hashlib.sha256(content).hexdigest()
                file_content = describe_content(content_hash, len(content), decoded)
                parts = list_parts(decoded)
                if self._has_speech(file, decoded):
                    file_content, parts = await self._decode_and_transcribe(path, file_content)
            transient_file = replace(transient_file, size=len(content), content=file_content)
        key = _make_key(file)
        self._transient[key] = _TransientFile(transient_file, content or b"", views, parts)
        return transient_file


def _make_key(file: AttachedFile) -> _Key:
    """Return the key of a file among the running downloads."""
    return file.address.key, file.external_id, file.position


def _add_transcript(inbound: Inbound, transcript: str) -> Inbound:
    text = "\n".join(filter(None, (inbound.text, transcript)))
    origin = "spoken" if inbound.origin == "typed" else inbound.origin
    return replace(inbound, text=text, origin=origin)


def name_view(content_hash: str, number: int) -> str:
    """Return the name of a view in stored blocks: the hash, and "/1" for the second view."""
    return f"{content_hash}/{number}" if number else content_hash


def is_replaced(reference: str | None, attachment: Attachment) -> bool:
    """Return whether an edit put another file in place of the file with a reference.

    On Discord, the reference is a URL. Its query is a signature that changes.
    """
    old_reference = (reference or "").partition("?")[0]
    return old_reference != (attachment.reference or "").partition("?")[0]
