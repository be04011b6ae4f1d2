"""Videos are decoded in the worker process: pictures, length and sound."""

from __future__ import annotations

import sys
from pathlib import Path

import av
import pytest
from PIL import Image

from core.media import worker
from core.media.decoding import Decoder
from tests.fixtures.media_samples import make_video
from tests.media.test_decoding import decode

pytestmark = pytest.mark.slow


async def test_video_has_three_pictures_from_its_beginning_middle_and_end(tmp_path: Path) -> None:
    decoded = await decode(tmp_path, make_video(), "video.mp4")
    assert (decoded.type, decoded.note, decoded.has_sound) == ("video/mp4", "", True)
    assert (decoded.width, decoded.height) == (160, 120)
    assert decoded.duration_s == pytest.approx(6, 0.1)
    brightest = []
    for name in ("view", "view.1", "view.2"):
        with Image.open(tmp_path / name) as view:
            pixel = view.getpixel((80, 60))
        assert isinstance(pixel, tuple)
        brightest.append(pixel.index(max(pixel)))
    assert brightest == [0, 1, 2], "red, green, blue"


async def test_sound_of_a_video_is_opus_of_the_same_length(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(make_video(3))
    sound_path = tmp_path / "sound.ogg"
    assert await Decoder(timeout_s=60.0).write_speech(path, sound_path)
    with av.open(str(sound_path)) as sound:
        assert sound.streams.audio[0].codec_context.name in ("opus", "libopus")
        assert sound.duration is not None
        assert sound.duration / av.time_base == pytest.approx(3, abs=0.3)


async def test_video_without_sound_has_none_to_write(tmp_path: Path) -> None:
    content = make_video(2, has_sound=False)
    assert not (await decode(tmp_path, content, "a.mp4")).has_sound
    assert not await Decoder(timeout_s=60.0).write_speech(tmp_path / "file", tmp_path / "sound")


@pytest.mark.parametrize("size", [40, 400, 3_000])
async def test_truncated_video_is_reported_as_broken_without_a_picture(
    tmp_path: Path, size: int
) -> None:
    decoded = await decode(tmp_path, make_video()[:size], "video.mp4")
    assert decoded.note == "broken"
    assert not (tmp_path / "view").exists()


def test_without_pyav_a_video_is_kept_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "core.media.formats.recordings", None)
    path = tmp_path / "file"
    path.write_bytes(make_video(1))
    result = worker.read_file(path, tmp_path / "view", "video.mp4")
    assert result == {"type": "video/mp4", "note": "no_video"}
    assert worker.write_speech(path, tmp_path / "sound", "") == {"clean": False}
