"""Removes the position from videos and sound files, without decoding them.

MP4 and MOV files consist of boxes. A box with a position is overwritten in place, because the
pictures and the sound must keep their places in the file. Only the worker process imports this
module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_HEADER_BYTES = 8
_LARGE_HEADER_BYTES = 16
# The type of a box that players skip.
_UNUSED = b"free"
# Boxes that contain other boxes, and may have a position inside.
_CONTAINERS = frozenset(
    {b"moov", b"trak", b"mdia", b"minf", b"stbl", b"moof", b"traf", b"udta", b"meta", b"ilst"}
)
# Boxes of user data that have no position. Cameras store positions in many others.
_HARMLESS_USER_DATA = frozenset(
    {b"meta", b"name", b"titl", b"perf", b"auth", b"chpl", b"hnti", b"hinf", b"\xa9nam"}
    | {b"\xa9ART", b"\xa9alb", b"\xa9day", b"\xa9cmt", b"\xa9too", b"\xa9swr", b"\xa9enc", _UNUSED}
)
_POSITION_BOXES = frozenset({b"\xa9xyz", b"loci"})
_LOCATION = b"location"
# Tracks that record a position for each moment of a film.
_POSITION_TRACKS = frozenset({b"gpmd", b"camm", b"rtmd", b"djmd"})
_POSITION_MARKS = (*_POSITION_BOXES, b"quicktime.location", b"gps ", *_POSITION_TRACKS)
# A position as latitude and longitude (ISO 6709) after the name of its field.
_ISO_6709 = re.compile(
    rb"location.{0,64}?[+-]\d{2,6}(?:\.\d+)?[+-]\d{3,7}(?:\.\d+)?", re.DOTALL | re.IGNORECASE
)
_DIGIT = re.compile(rb"[1-9]")
_DEGREES = rb"[-+]?\d{1,3}\.\d{2,}"
# A position in a subtitle, such as "[latitude: 48.20820]", "GPS (16.3738, 48.2082, 19)" and a
# sentence of NMEA 0183.
_SUBTITLE_POSITION = re.compile(
    rb"\b(?:lat(?:itude)?|lng|lon(?:gt?itude)?)[ \t]{0,3}[:=][ \t]{0,3}%(degrees)s"
    rb"|\b(?:GPS|HOME)[ \t]{0,3}[(:][ \t(]{0,3}%(degrees)s[ \t]{0,3},[ \t]{0,3}%(degrees)s"
    rb"|\$G[A-Z](?:RMC|GGA|GLL),[\d.,A-Z-]{12,100}" % {b"degrees": _DEGREES},
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Box:
    """A box of an MP4 file. Its content is from `content` to `end`."""

    start: int
    content: int
    end: int
    type: bytes


def remove_position(data: bytearray) -> bool:
    """Overwrite the positions in an MP4 or MOV file. Returns whether there were any.

    Raises ValueError if the file may have a position that can't be removed.
    """
    try:
        return _clean_boxes(data, 0, len(data), b"")
    except _BrokenBoxError as error:
        if any(mark in data for mark in _POSITION_MARKS):
            raise ValueError("a damaged file may have a position") from error
        return False


def may_have_position(data: bytes) -> bool:
    """Return whether a recording in another format, such as WebM, states a position."""
    return _ISO_6709.search(data) is not None


def mentions_position(data: bytes) -> bool:
    """Return whether a film at the end of a picture may have a position."""
    return any(mark in data for mark in _POSITION_MARKS) or may_have_position(data)


def clear_subtitles(data: bytearray) -> bool:
    """Replace the digits of positions in subtitles with zeros. Returns whether there were any.

    Drones and dashboard cameras write a position into each subtitle. The length of the data stays
    the same. Compressed subtitles aren't found.
    """
    matches = [(match.start(), match[0]) for match in _SUBTITLE_POSITION.finditer(data)]
    for start, text in matches:
        data[start : start + len(text)] = _DIGIT.sub(b"0", text)
    return bool(matches)


def has_subtitle_position(text: bytes) -> bool:
    """Return whether a subtitle states a position other than zero."""
    return any(_DIGIT.search(match[0]) for match in _SUBTITLE_POSITION.finditer(text))


class _BrokenBoxError(Exception):
    """A box is longer than the box around it."""


def _clean_boxes(data: bytearray, start: int, end: int, parent: bytes) -> bool:
    """Overwrite the positions in the boxes of a range. Returns whether there were any."""
    has_changed = False
    location_keys: frozenset[bytes] = frozenset()
    for box in _list_boxes(data, start, end):
        if box.type == b"keys":
            location_keys = _find_location_keys(data, box)
        elif box.type == b"ilst" and parent == b"meta":
            has_changed |= _clean_items(data, box, location_keys)
        elif box.type == b"stsd":
            _refuse_position_track(data, box)
        elif box.type == b"gps " and parent == b"moov":
            raise ValueError("the file has a table of positions")
        elif _is_position(box, parent):
            _overwrite(data, box)
            has_changed = True
        elif box.type in _CONTAINERS:
            content = box.content + _count_version_bytes(data, box)
            has_changed |= _clean_boxes(data, content, box.end, box.type)
    return has_changed


def _is_position(box: _Box, parent: bytes) -> bool:
    """Return whether a box has or may have a position."""
    if box.type in _POSITION_BOXES:
        return True
    if box.type == b"uuid":
        # XMP metadata. Boxes of this type inside tracks describe the pictures.
        return parent in (b"", b"moov", b"udta")
    return parent == b"udta" and box.type not in _HARMLESS_USER_DATA


def _list_boxes(data: bytearray, start: int, end: int) -> Iterator[_Box]:
    """Yield the boxes of a range. Raises _BrokenBoxError if a box doesn't fit."""
    while end - start >= _HEADER_BYTES:
        size = int.from_bytes(data[start : start + 4], "big")
        content = start + _HEADER_BYTES
        if size == 1:
            content = start + _LARGE_HEADER_BYTES
            size = int.from_bytes(data[start + _HEADER_BYTES : content], "big")
        elif size == 0:
            size = end - start
        box = _Box(start, content, start + size, bytes(data[start + 4 : start + _HEADER_BYTES]))
        if box.end < box.content or box.end > end:
            raise _BrokenBoxError
        yield box
        start = box.end


def _count_version_bytes(data: bytearray, box: _Box) -> int:
    """Return the number of bytes before the boxes of a `meta` box, which MOV files leave out."""
    if box.type != b"meta" or data[box.content + 4 : box.content + 8] == b"hdlr":
        return 0
    return 4


def _find_location_keys(data: bytearray, keys: _Box) -> frozenset[bytes]:
    """Return the types of the items whose keys name a location. An item's type is its number."""
    names = _list_boxes(data, keys.content + 8, keys.end)
    return frozenset(
        number.to_bytes(4, "big")
        for number, box in enumerate(names, start=1)
        if _LOCATION in bytes(data[box.content : box.end]).lower()
    )


def _clean_items(data: bytearray, items: _Box, location_keys: frozenset[bytes]) -> bool:
    """Overwrite the items with a position. Returns whether there were any."""
    position_items = [
        item
        for item in _list_boxes(data, items.content, items.end)
        if item.type in _POSITION_BOXES or item.type in location_keys
    ]
    for item in position_items:
        _overwrite(data, item)
    return bool(position_items)


def _refuse_position_track(data: bytearray, descriptions: _Box) -> None:
    """Raise ValueError if a track records positions."""
    for entry in _list_boxes(data, descriptions.content + 8, descriptions.end):
        is_location = entry.type == b"mebx" and (
            _LOCATION in bytes(data[entry.content : entry.end]).lower()
        )
        if is_location or entry.type in _POSITION_TRACKS:
            raise ValueError("a track records positions")


def _overwrite(data: bytearray, box: _Box) -> None:
    """Turn a box into an unused one of the same length."""
    data[box.start + 4 : box.start + _HEADER_BYTES] = _UNUSED
    data[box.content : box.end] = bytes(box.end - box.content)
