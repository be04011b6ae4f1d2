"""Reads pictures with Pillow: their size, a scaled view for the model, a copy without a position.

Only the worker process imports this module.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from PIL import Image, ImageOps

from core.media.api_limits import API_LIMITS

# A larger picture isn't decoded.
MAX_PIXELS = 100_000_000
# The longest edge of a view.
VIEW_EDGE = API_LIMITS.useful_edge_px
VIEW_QUALITY = 85
# The EXIF tag of the table with the position, and the tags that may also say where it was taken.
_GPS_TABLE = 0x8825
# The beginning of EXIF data, which is followed by tables in the format of TIFF.
_EXIF_HEADER = re.compile(rb"Exif\x00\x00(?=II\*\x00|MM\x00\*)")
# The names of formats of metadata that may contain a position.
_EXIF_MARK = b"Exif"
_XMP_MARKS = (b"application/rdf+xml", b"http://ns.adobe.com/xap/")
ERRORS = (OSError, ValueError, SyntaxError, Image.DecompressionBombError, MemoryError)


@dataclass(frozen=True, slots=True)
class PictureSize:
    """The size of a picture in pixels."""

    width: int
    height: int


def make_view(source: Path | bytes, view_path: Path) -> PictureSize:
    """Write a scaled JPEG of a picture without EXIF data. Return the size of the original.

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
    """Write a copy of a picture without the position in its EXIF data.

    Returns False, and writes nothing, if the picture has no position. Raises one of `ERRORS` if the
    picture is broken.
    """
    with Image.open(path) as image:
        exif = image.getexif()
        if _GPS_TABLE not in exif and "xmp" not in image.info:
            return False
        if exif:
            del exif[_GPS_TABLE]
        options: dict[str, object] = {"exif": exif}
        if image.format == "JPEG":
            options["quality"] = "keep"
        image.info.pop("xmp", None)
        image.save(clean_path, image.format, **options)
    return True


def may_have_position(content: bytes) -> bool:
    """Return whether a picture that Pillow can't read, such as HEIC, may have a position.

    Its metadata isn't compressed, so it's searched for EXIF data with a position. If the metadata
    can't be read, the result is True.
    """
    if any(mark in content for mark in _XMP_MARKS):
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
