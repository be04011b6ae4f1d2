"""Sends the files of an answer as pictures, videos, audio, voice messages or documents.

Several files of the same kind form an album. Telegram refuses some files of a kind, for example
very narrow pictures. Such a file is sent as a document.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import Any

import structlog
import telegram

from core.errors import ChatRefused, DeliveryError
from core.types import File

Call = Callable[..., Awaitable[Any]]
"""Makes a call for a chat. Raises DeliveryError."""

# Telegram's limits for one album and for one picture.
MAX_ALBUM_FILES = 10
MAX_PHOTO_BYTES = 10_000_000


class FileKind(Enum):
    """The form in which Telegram shows a file, such as a picture or a document."""

    PHOTO = "photo"
    VIDEO = "video"
    AUDIO = "audio"
    VOICE = "voice"
    DOCUMENT = "document"


# The types of files that aren't documents. A voice message is OGG, with Opus.
_KINDS = {
    "image/jpeg": FileKind.PHOTO,
    "image/png": FileKind.PHOTO,
    "image/webp": FileKind.PHOTO,
    "video/mp4": FileKind.VIDEO,
    "audio/mpeg": FileKind.AUDIO,
    "audio/mp4": FileKind.AUDIO,
    "audio/x-m4a": FileKind.AUDIO,
    "audio/ogg": FileKind.VOICE,
}
# Pictures and videos can share an album. Documents and audio files need albums of the same kind.
_ALBUMS = (
    frozenset({FileKind.PHOTO, FileKind.VIDEO}),
    frozenset({FileKind.AUDIO}),
    frozenset({FileKind.DOCUMENT}),
)
_MEDIA_TYPES: dict[FileKind, Callable[..., telegram.InputMedia]] = {
    FileKind.PHOTO: telegram.InputMediaPhoto,
    FileKind.VIDEO: telegram.InputMediaVideo,
    FileKind.AUDIO: telegram.InputMediaAudio,
    FileKind.DOCUMENT: telegram.InputMediaDocument,
}

_log = structlog.get_logger(__name__)


def find_kind(file: File) -> FileKind:
    """Return the form in which a file is sent."""
    kind = _KINDS.get(file.mime, FileKind.DOCUMENT)
    is_large_photo = kind is FileKind.PHOTO and len(file.content) > MAX_PHOTO_BYTES
    return FileKind.DOCUMENT if file.is_document or is_large_photo else kind


def count_album_files(files: Sequence[File]) -> int:
    """Return how many of the first files form an album, or 1 if they form none."""
    first = find_kind(files[0])
    album = next((kinds for kinds in _ALBUMS if first in kinds), frozenset[FileKind]())
    count = 0
    for file in files[:MAX_ALBUM_FILES]:
        if find_kind(file) not in album:
            break
        count += 1
    return max(count, 1)


async def send_file(bot: telegram.Bot, call: Call, file: File, place: dict[str, Any]) -> Any:
    """Send one file and return its message.

    If Telegram refuses the file in the form of its kind, it's sent as a document. `place` has the
    topic and the message to reply to.
    """
    kind = find_kind(file)
    methods: dict[FileKind, Call] = {
        FileKind.PHOTO: bot.send_photo,
        FileKind.VIDEO: bot.send_video,
        FileKind.AUDIO: bot.send_audio,
        FileKind.VOICE: bot.send_voice,
        FileKind.DOCUMENT: bot.send_document,
    }
    try:
        return await call(methods[kind], **{kind.value: _make_upload(file)}, **place)
    except DeliveryError as error:
        is_refused = error.is_missing and not isinstance(error, ChatRefused)
        if kind is FileKind.DOCUMENT or not is_refused:
            raise
        _log.info("telegram.sent_as_document", kind=kind.value, error=str(error))
    return await call(bot.send_document, document=_make_upload(file), **place)


async def send_album(
    bot: telegram.Bot, call: Call, files: Sequence[File], place: dict[str, Any]
) -> Sequence[Any]:
    """Send files as one album and return their messages, in order."""
    media = [_MEDIA_TYPES[find_kind(file)](media=_make_upload(file, attach=True)) for file in files]
    messages: Sequence[Any] = await call(bot.send_media_group, media=media, **place)
    return messages


def _make_upload(file: File, *, attach: bool = False) -> telegram.InputFile:
    return telegram.InputFile(file.content, filename=file.name, attach=attach)
