"""Reads pictures with Pillow: their size, a scaled view for the model, a copy without a position.

Only the worker process imports this module.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from PIL import Image, ImageOps, TiffImagePlugin

from core.media.api_limits import API_LIMITS
from core.media.formats.recording_position import mentions_position

# A larger picture isn't decoded.
MAX_PIXELS = 100_000_000
# The longest edge of a view.
VIEW_EDGE = API_LIMITS.useful_edge_px
VIEW_QUALITY = 85
# The EXIF tag of the table with the position, and the tags that may also tell where the picture was
# taken.
_GPS_TABLE = 0x8825
# The beginning of EXIF data, which is followed by tables in the format of TIFF.
_EXIF_HEADER = re.compile(rb"Exif\x00\x00(?=II\*\x00|MM\x00\*)")
# The names of formats of metadata that may contain a position.
_EXIF_MARK = b"Exif"
_XMP_MARKS = (b"application/rdf+xml", b"http://ns.adobe.com/xap/", b"http://ns.adobe.com/xmp/")
# The names under which Pillow keeps XMP metadata, and the tag for it in a TIFF file.
_XMP_KEYS = ("xmp", "XML:com.adobe.xmp")
_XMP_TAG = 700
_GIF_XMP = b"XMP DataXMP"
_XMP_POSITION = b":GPSL"
# The markers of a JPEG: any marker, the end, metadata, and markers without a length.
_JPEG_MARKER = re.compile(rb"\xff(?=[\x01-\xcf\xd8-\xfe])")
_END_OF_JPEG = b"\xd9"
_METADATA_MARKER = b"\xe1"
_BARE_MARKERS = (b"\x01", b"\xd8", _END_OF_JPEG)
# The quality of a WebP picture from which a position was removed.
RESAVED_QUALITY = 92
ERRORS = (OSError, ValueError, SyntaxError, Image.DecompressionBombError, MemoryError)


@dataclass(frozen=True, slots=True)
class PictureSize:
    """The size of a picture in pixels."""

    width: int
    height: int


def make_view(source: Path | bytes, view_path: Path) -> PictureSize:
    """Write a scaled JPEG of a picture without EXIF data. Returns the size of the original.

    For an animation, the first frame is used. Raises one of `ERRORS` if the picture is broken or
    has too many pixels.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Image.open(BytesIO(source) if isinstance(source, bytes) else source) as image:
            size = PictureSize(*image.size)
            if size.width * size.height > MAX_PIXELS:
                raise ValueError("too many pixels")
            if image.format == "JPEG":
                image.draft("RGB", (VIEW_EDGE, VIEW_EDGE))
            view = ImageOps.exif_transpose(image)
            view.thumbnail((VIEW_EDGE, VIEW_EDGE))
            # Pillow would write the comment of the picture.
            view.info.pop("comment", None)
            _flatten(view).save(view_path, "JPEG", quality=VIEW_QUALITY, optimize=True)
    return size


def _flatten(image: Image.Image) -> Image.Image:
    """Return the picture in RGB, with white instead of transparency."""
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        layer = image.convert("RGBA")
        background = Image.new("RGB", layer.size, "white")
        background.paste(layer, mask=layer.getchannel("A"))
        return background
    return image.convert("RGB")


def remove_position(path: Path, clean_path: Path) -> bool:
    """Write a copy of a picture without the position in its metadata.

    If the picture has no position, writes nothing and returns False. Raises one of `ERRORS` if the
    picture is broken.
    """
    content = path.read_bytes()
    clean_content = clean_picture(content)
    if clean_content == content:
        return False
    clean_path.write_bytes(clean_content)
    return True


def clean_picture(content: bytes) -> bytes:
    """Return a picture without the position in its metadata, or unchanged if it has none.

    A JPEG isn't compressed again, and an animation keeps its frames. Raises one of `ERRORS` if the
    picture is broken.
    """
    with Image.open(BytesIO(content)) as image:
        exif = image.getexif()
        if image.format in ("JPEG", "MPO"):
            return clean_jpeg(content)
        has_xmp = _XMP_TAG in exif or any(key in image.info for key in _XMP_KEYS)
        if _GPS_TABLE not in exif and not has_xmp and _GIF_XMP not in content:
            return content
        exif.pop(_GPS_TABLE, None)
        exif.pop(_XMP_TAG, None)
        options: dict[str, object] = {"exif": exif, "save_all": getattr(image, "n_frames", 1) > 1}
        if image.format == "WEBP":
            options["quality"] = RESAVED_QUALITY
        for key in _XMP_KEYS:
            image.info.pop(key, None)
        if isinstance(image, TiffImagePlugin.TiffImageFile):
            image.tag_v2.pop(_XMP_TAG, None)
        buffer = BytesIO()
        image.save(buffer, image.format, **options)
    if _XMP_POSITION in buffer.getvalue():
        raise ValueError("the position of a further page stays")
    return buffer.getvalue()


def clean_jpeg(content: bytes) -> bytes:
    """Return a JPEG without the position and without XMP metadata. Its pixels stay as they are.

    Some phones add a film after the picture. It's removed if it may have a position.
    """
    segments: list[bytes] = []
    start = 0
    for segment in _split_jpeg(content):
        segments.append(_clean_segment(segment))
        start += len(segment)
    trailer = content[start:]
    if not (may_have_position(trailer) or mentions_position(trailer)):
        segments.append(trailer)
    return b"".join(segments)


def _split_jpeg(content: bytes) -> Iterator[bytes]:
    """Yield the segments of a JPEG, each with its marker, up to the end of the picture.

    The compressed pixels belong to the segment before them.
    """
    start = 0
    while start < len(content):
        marker = content[start + 1 : start + 2]
        header_end = start + 2
        if marker not in _BARE_MARKERS:
            header_end += int.from_bytes(content[start + 2 : start + 4], "big")
        match = _JPEG_MARKER.search(content, header_end)
        end = match.start() if match else len(content)
        yield content[start:end]
        start = end
        if marker == _END_OF_JPEG:
            return


def _clean_segment(segment: bytes) -> bytes:
    """Return a segment of a JPEG without its position, or nothing if it has XMP metadata."""
    payload = segment[4:]
    if segment[1:2] != _METADATA_MARKER:
        return segment
    if payload.startswith(_XMP_MARKS):
        return b""
    if not payload.startswith(_EXIF_MARK) or not _has_gps_table(payload[6:]):
        return segment
    exif = Image.Exif()
    exif.load(payload)
    exif.pop(_GPS_TABLE, None)
    clean_payload = exif.tobytes()
    return segment[:2] + (len(clean_payload) + 2).to_bytes(2, "big") + clean_payload


def may_have_position(content: bytes) -> bool:
    """Return whether a picture that Pillow can't read, such as HEIC, may have a position.

    Its metadata isn't compressed, so it's searched for EXIF data with a position. If the metadata
    can't be read, the result is True.
    """
    if any(mark in content for mark in (*_XMP_MARKS, _XMP_POSITION)):
        return True
    headers = list(_EXIF_HEADER.finditer(content))
    if not headers:
        return _EXIF_MARK in content
    return any(_has_gps_table(content[header.end() :]) for header in headers)


def _has_gps_table(tables: bytes) -> bool:
    exif = Image.Exif()
    try:
        exif.load(tables)
    except ERRORS:
        return True
    return not exif or _GPS_TABLE in exif
