"""Reads videos and sound with PyAV: frames of a video, and sound as OGG with Opus.

Only the worker process imports this module. PyAV is the extra `video`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import av
from av.audio.resampler import AudioResampler
from av.container import InputContainer
from av.video.stream import VideoStream

# A video is shown by this many pictures, evenly spread.
FRAMES = 3
# Larger pictures aren't decoded. 8K has 33 million pixels.
MAX_PIXELS = 40_000_000
# The maximum number of frames to decode after a jump to find one picture.
MAX_DECODED_FRAMES = 300
# Only the beginning of a longer recording is read.
MAX_SOUND_S = 3_600
SAMPLE_RATE = 48_000
BIT_RATE = 24_000
# The rate that programs for speech recognition expect.
WAVE_SAMPLE_RATE = 16_000
ERRORS = (av.FFmpegError, OSError, ValueError, LookupError, TypeError, MemoryError, AssertionError)


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoInfo:
    """The length and the size of a video, and whether it has sound."""

    width: int
    height: int
    duration_s: float | None
    has_sound: bool


def open_recording(path: Path) -> InputContainer:
    """Open a recording. Addresses and other files that it refers to aren't opened."""
    options = {"protocol_whitelist": "file", "enable_drefs": "0"}
    return av.open(str(path), options=options, timeout=10.0)


def read_info(path: Path) -> VideoInfo | None:
    """Return the details of a video, or None if the file contains only sound."""
    with closing(open_recording(path)) as container:
        if not container.streams.video:
            return None
        stream = container.streams.video[0]
        return VideoInfo(
            width=stream.width,
            height=stream.height,
            duration_s=_find_duration(container),
            has_sound=bool(container.streams.audio),
        )


def read_duration(path: Path) -> float | None:
    """Return the length of a recording, or None if the file doesn't state it."""
    with closing(open_recording(path)) as container:
        return _find_duration(container)


def _find_duration(container: InputContainer) -> float | None:
    return None if container.duration is None else container.duration / av.time_base


def read_subtitles(path: Path) -> Iterator[bytes]:
    """Yield the text of each subtitle of a video, with the bytes of its format around it."""
    with closing(open_recording(path)) as container:
        if container.streams.subtitles:
            for packet in container.demux(container.streams.subtitles):
                yield bytes(packet)


def read_frames(path: Path) -> Iterator[bytes]:
    """Yield frames of a video as PNG, evenly spaced. A short video may give fewer."""
    with closing(open_recording(path)) as container:
        stream = container.streams.video[0]
        if stream.width * stream.height > MAX_PIXELS:
            raise ValueError("too many pixels")
        stream.thread_count = 1
        duration = container.duration or 0
        shown_at: set[int | None] = set()
        for number in range(FRAMES if duration else 1):
            start = duration * (2 * number + 1) // (2 * FRAMES)
            frame = _decode_frame(container, stream, start)
            if frame is None or frame.pts in shown_at:
                continue
            shown_at.add(frame.pts)
            buffer = BytesIO()
            image = frame.to_image()  # type: ignore[no-untyped-call]
            image.save(buffer, "PNG", compress_level=1)
            yield buffer.getvalue()


def _decode_frame(
    container: InputContainer, stream: VideoStream, start: int
) -> av.VideoFrame | None:
    """Return the first frame at or after a time in microseconds.

    If no frame follows, the last one before the time is returned. Returns None if no frame can be
    decoded.
    """
    container.seek(start, backward=True, any_frame=False)
    last: av.VideoFrame | None = None
    for count, frame in enumerate(container.decode(stream)):
        last = frame
        if frame.time is None or frame.time * av.time_base >= start or count >= MAX_DECODED_FRAMES:
            break
    return last


def write_speech(source: Path, target: Path) -> bool:
    """Write the sound of a recording in one channel, as OGG with Opus or, for ".wav", as WAV.

    Returns False, and writes nothing, if the recording has no sound.
    """
    is_wave = target.suffix == ".wav"
    rate = WAVE_SAMPLE_RATE if is_wave else SAMPLE_RATE
    with closing(open_recording(source)) as container:
        if not container.streams.audio:
            return False
        sound = container.streams.audio[0]
        with closing(av.open(str(target), "w", format="wav" if is_wave else "ogg")) as output:
            if is_wave:
                encoder = output.add_stream("pcm_s16le", rate=rate, layout="mono")
            else:
                encoder = output.add_stream("libopus", rate=rate, layout="mono")
                encoder.bit_rate = BIT_RATE
            resampler = AudioResampler(
                format="s16", layout="mono", rate=rate, frame_size=rate // 50
            )
            for frame in container.decode(sound):
                if frame.time is not None and frame.time > MAX_SOUND_S:
                    break
                for piece in resampler.resample(frame):
                    output.mux(encoder.encode(piece))
            for piece in resampler.resample(None):
                output.mux(encoder.encode(piece))
            output.mux(encoder.encode(None))
    return True
