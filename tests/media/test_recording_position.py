"""Videos leave without the position that a camera wrote into them."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import av
import pytest

from core.errors import Refused
from core.media.decoding import Decoder
from core.media.formats.recording_position import clear_subtitles, remove_position
from tests.fixtures.media_samples import make_video
from tests.fixtures.tables import each_row

POSITION = "+48.2082+016.3738/"
QUICKTIME_KEY = "com.apple.quicktime.location.ISO6709"


def make_box(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I4s", len(content) + 8, name) + content


def make_film(*boxes: bytes) -> bytes:
    """An MP4 whose description consists of these boxes."""
    return make_box(b"ftyp", b"qt  \0\0\0\0") + make_box(b"moov", b"".join(boxes))


def make_track(entry: bytes) -> bytes:
    """A track whose samples are described by `entry`."""
    box = make_box(b"stsd", struct.pack(">II", 0, 1) + entry)
    for name in (b"stbl", b"minf", b"mdia", b"trak"):
        box = make_box(name, box)
    return box


@pytest.mark.slow
@pytest.mark.parametrize(
    ("container", "field", "name"),
    [
        ("mov", "location", "ship.mov"),
        ("mp4", "location", "ship.mp4"),
        ("3gp", "location", "ship.3gp"),
        ("mov", QUICKTIME_KEY, "ship.mov"),
    ],
)
async def test_video_that_leaves_keeps_its_pictures_and_title_but_not_its_position(
    tmp_path: Path, container: str, field: str, name: str
) -> None:
    path, copy_path = tmp_path / "file", tmp_path / "copy"
    content = make_video(2, container=container, metadata={field: POSITION, "comment": "Quay"})
    path.write_bytes(content)
    with av.open(io.BytesIO(content)) as video:
        assert any("location" in each for each in video.metadata)

    assert await Decoder(timeout_s=60.0).clean(path, copy_path, name)

    assert copy_path.stat().st_size == len(content)
    with av.open(str(copy_path)) as video:
        assert not any("location" in each for each in video.metadata)
        assert container == "3gp" or video.metadata["comment"] == "Quay"
        assert sum(1 for _ in video.decode(video=0)) == 20


@pytest.mark.slow
async def test_video_without_a_position_leaves_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(make_video(2))
    assert not await Decoder(timeout_s=60.0).clean(path, tmp_path / "copy", "a.mp4")


@pytest.mark.slow
async def test_video_of_another_format_with_a_position_is_refused_with_a_sentence(
    tmp_path: Path,
) -> None:
    path = tmp_path / "file"
    path.write_bytes(make_video(2, container="matroska", metadata={"LOCATION": POSITION}))
    with pytest.raises(Refused, match=r"location from “a\.mkv”, so I haven't sent it"):
        await Decoder(timeout_s=60.0).clean(path, tmp_path / "copy", "a.mkv")


@each_row(
    "box",
    [
        pytest.param(make_box(b"GPMF", POSITION.encode()), id="user data of a camera"),
        pytest.param(make_box(b"\xa9xyz", POSITION.encode()), id="text of a phone"),
        pytest.param(
            make_box(b"meta", bytes(4) + make_box(b"ilst", make_box(b"\xa9xyz", b"+48"))),
            id="item of a player",
        ),
    ],
)
def test_position_among_user_data_is_overwritten(box: bytes) -> None:
    title = make_box(b"\xa9nam", b"Quay")
    film = bytearray(make_film(make_track(b""), make_box(b"udta", title + box)))
    size = len(film)
    assert remove_position(film)
    assert len(film) == size
    assert b"+48" not in film
    assert title in film
    assert not remove_position(film[:])


def test_xmp_metadata_of_a_video_is_overwritten() -> None:
    film = bytearray(make_film() + make_box(b"uuid", bytes(16) + b"exif:GPSLatitude"))
    assert remove_position(film)
    assert b"GPS" not in film


@each_row(
    "entry",
    [
        make_box(b"gpmd", bytes(8)),
        make_box(b"camm", bytes(8)),
        make_box(b"mebx", bytes(8) + QUICKTIME_KEY.encode()),
    ],
)
def test_track_that_records_positions_makes_a_video_refused(entry: bytes) -> None:
    with pytest.raises(ValueError, match="records positions"):
        remove_position(bytearray(make_film(make_track(entry))))


def test_track_of_other_metadata_is_left_unchanged() -> None:
    entry = make_box(b"mebx", bytes(8) + b"com.apple.quicktime.video-orientation")
    assert not remove_position(bytearray(make_film(make_track(entry))))


def test_damaged_video_is_refused_only_if_it_may_have_a_position() -> None:
    film = make_film(make_track(b""))
    assert not remove_position(bytearray(film[:-4]))
    located = make_film(make_box(b"udta", make_box(b"\xa9xyz", POSITION.encode())))
    with pytest.raises(ValueError, match="damaged"):
        remove_position(bytearray(located[:-4]))


@pytest.mark.slow
@pytest.mark.parametrize(("container", "name"), [("mp4", "flight.mp4"), ("matroska", "flight.mkv")])
async def test_video_that_leaves_keeps_its_subtitle_but_not_the_position_in_it(
    tmp_path: Path, container: str, name: str
) -> None:
    path, copy_path = tmp_path / "file", tmp_path / "copy"
    subtitle = b"GPS(16.3738,48.2082,19) height 120.1 m"
    path.write_bytes(make_video(2, container=container, subtitle=subtitle))

    assert await Decoder(timeout_s=60.0).clean(path, copy_path, name)

    with av.open(str(copy_path)) as video:
        texts = [bytes(packet) for packet in video.demux(video.streams.subtitles)]
    assert texts[0].endswith(b"GPS(00.0000,00.0000,19) height 120.1 m")


@each_row(
    ("text", "cleared"),
    [
        (
            b"[latitude: 48.20820] [longtitude: -16.37380]",
            b"[latitude: 00.00000] [longtitude: -00.00000]",
        ),
        (b"HOME(16.3738, 48.2082) 2026.11.20", b"HOME(00.0000, 00.0000) 2026.11.20"),
        (b"$GPRMC,081836,A,4812.492,N,01622.428,E,0", b"$GPRMC,000000,A,0000.000,N,00000.000,E,0"),
        (b"The film begins at 20.15, lat 3", b"The film begins at 20.15, lat 3"),
    ],
)
def test_position_that_a_camera_writes_into_a_subtitle_becomes_zeros(
    text: bytes, cleared: bytes
) -> None:
    data = bytearray(text)
    assert clear_subtitles(data) == (text != cleared)
    assert data == cleared
