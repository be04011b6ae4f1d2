"""Defines the options for the files that people send, and for the transcriber of voice messages.

`config/settings.py` reads the options. This module only defines their types.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from config.field_types import KeyVariable, OptionalWebAddress, Seconds, ServedModel


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class TranscriberOptions(_Section):
    # The address of a server with the endpoint /audio/transcriptions. Empty if there is none.
    url: OptionalWebAddress
    model: ServedModel
    # The name of an environment variable. Empty if the server needs no key.
    key: KeyVariable
    # A program instead of a server. "{file}" stands for the path of the voice note.
    command: Annotated[tuple[str, ...], Field(strict=False)]
    timeout_s: Seconds


class SpeakerOptions(_Section):
    # The address of a server with the endpoint /audio/speech. Empty if there is none.
    url: OptionalWebAddress
    model: ServedModel
    voice: str
    # The name of an environment variable. Empty if the server needs no key.
    key: KeyVariable
    # A program instead of a server. It reads the text from its input, and writes a WAV file to
    # "{file}".
    command: Annotated[tuple[str, ...], Field(strict=False)]
    timeout_s: Seconds


class MediaOptions(_Section):
    # The sizes are in millions of bytes.
    file_mb: Annotated[float, Field(gt=0, le=2_000)]
    person_mb: Annotated[float, Field(ge=0, le=10**7)]
    total_mb: Annotated[float, Field(ge=0, le=10**7)]
    wait_s: Seconds
    decode_s: Seconds
    decode_memory_mb: Annotated[int, Field(ge=256, le=65_536)]
    # How much memory each process of a program for speech may use.
    program_memory_mb: Annotated[int, Field(ge=64, le=1_000_000)]
    pictures: bool
    # Whether files of group talk that isn't addressed to Mneme are kept, if the talk is.
    group_talk: bool
    # Whether the model adds a line about each picture to its answer, by which the picture is found.
    describe_pictures: bool
    # How many pages of a scan the model sees.
    scan_pages: Annotated[int, Field(ge=1, le=10)]
    # Whether videos are read: three pictures and the spoken words.
    video: bool
    document_chars: Annotated[int, Field(ge=1_000, le=10**6)]
    show_transcript: bool
    transcriber: TranscriberOptions
    speaker: SpeakerOptions
