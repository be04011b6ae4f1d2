"""Pictures, PDF files and archives leave without the positions in their metadata."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from PIL import Image, PngImagePlugin, TiffImagePlugin
from pypdf import PdfReader

from core.errors import Refused
from core.media.decoding import Decoder
from core.media.formats import images
from core.media.formats.document_position import clean_archive
from core.media.formats.pdf import clean_pdf
from tests.fixtures.media_samples import (
    add_to_pdf,
    make_docx,
    make_exif,
    make_pdf,
    make_pdf_with_photo,
    make_photo,
    make_video,
    make_zip,
)
from tests.fixtures.tables import each_row

GPS_TABLE = 0x8825
XMP = (
    b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF><rdf:Description pdfaid:part="1" '
    b'exif:GPSLatitude="38,43.0N"><exif:GPSLongitude>9,8.0W</exif:GPSLongitude>'
    b"</rdf:Description></rdf:RDF></x:xmpmeta>"
)


def has_position(picture: bytes) -> bool:
    with Image.open(io.BytesIO(picture)) as image:
        return GPS_TABLE in image.getexif() or b"GPSL" in picture


def save(image: Image.Image, form: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def make_animation(form: str, **options: object) -> bytes:
    frames = [Image.new("RGB", (64, 48), colour) for colour in ("red", "lime", "blue")]
    return save(frames[0], form, save_all=True, append_images=frames[1:], duration=100, **options)


def add_xmp_to_gif(gif: bytes) -> bytes:
    """The GIF with a block of XMP metadata before its first frame."""
    block = b"\x21\xff\x0bXMP DataXMP" + XMP + b"\x01" + bytes(range(255, -1, -1)) + b"\x00"
    table_bytes = 3 << ((gif[10] & 7) + 1) if gif[10] & 0x80 else 0
    return gif[: 13 + table_bytes] + block + gif[13 + table_bytes :]


def make_picture(kind: str) -> bytes:
    """A picture of some kind with a position in its metadata."""
    image = Image.new("RGB", (64, 48), "red")
    exif = make_exif(has_position=True)
    if kind == "png text":
        notes = PngImagePlugin.PngInfo()
        notes.add_itxt("XML:com.adobe.xmp", XMP.decode())
        return save(image, "PNG", pnginfo=notes)
    if kind == "tiff xmp":
        tags = TiffImagePlugin.ImageFileDirectory_v2()
        tags[700] = XMP
        return save(image, "TIFF", tiffinfo=tags)
    if kind == "gif xmp":
        return add_xmp_to_gif(make_animation("GIF"))
    if kind == "webp animation":
        return make_animation("WEBP", exif=exif)
    if kind == "two pictures":
        further = Image.new("RGB", (64, 48), "lime")
        return save(image, "MPO", save_all=True, append_images=[further], exif=exif)
    if kind == "picture with a film":
        film = make_video(1, container="mov", metadata={"location": "+38.7223-009.1393/"})
        return make_photo() + film
    return save(image, "JPEG", exif=exif, xmp=XMP)


@each_row(
    ("kind", "frames"),
    [
        ("jpeg", 1),
        ("two pictures", 2),
        ("png text", 1),
        ("tiff xmp", 1),
        ("gif xmp", 3),
        ("webp animation", 3),
        ("picture with a film", 1),
    ],
)
def test_picture_without_its_position_keeps_its_frames(kind: str, frames: int) -> None:
    picture = make_picture(kind)
    assert has_position(picture) or b"+38" in picture

    clean_picture = images.clean_picture(picture)

    assert not has_position(clean_picture)
    assert b"+38" not in clean_picture
    with Image.open(io.BytesIO(clean_picture)) as image:
        assert getattr(image, "n_frames", 1) == frames
    assert images.clean_picture(clean_picture) == clean_picture


def test_jpeg_keeps_its_pixels_and_its_camera_when_its_position_is_removed() -> None:
    image = Image.effect_noise((64, 48), 90.0).convert("RGB")
    photo = save(image, "JPEG", quality=60, exif=make_exif(has_position=True), comment=b"Quay")

    clean_photo = images.clean_jpeg(photo)

    with Image.open(io.BytesIO(photo)) as before, Image.open(io.BytesIO(clean_photo)) as after:
        assert after.tobytes() == before.tobytes()
        assert after.getexif()[0x010F] == "Camera"
        assert after.info["comment"] == b"Quay"


def test_view_for_the_model_has_no_comment_of_the_camera(tmp_path: Path) -> None:
    photo = save(Image.new("RGB", (64, 48)), "JPEG", comment=b"38.72, -9.14")
    images.make_view(photo, tmp_path / "view")
    assert b"38.72" not in (tmp_path / "view").read_bytes()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(make_pdf_with_photo(make_photo(has_position=True)), id="photo"),
        pytest.param(
            make_pdf_with_photo(
                make_photo(has_position=True), filters=("/FlateDecode", "/DCTDecode")
            ),
            id="packed photo",
        ),
        pytest.param(
            add_to_pdf(make_pdf_with_photo(make_photo()), metadata=XMP), id="metadata of the file"
        ),
        pytest.param(
            add_to_pdf(make_pdf_with_photo(make_photo()), photo=make_photo(has_position=True)),
            id="attached photo",
        ),
    ],
)
def test_pdf_without_the_positions_in_it_keeps_its_pictures(tmp_path: Path, content: bytes) -> None:
    path, copy_path = tmp_path / "file", tmp_path / "copy"
    path.write_bytes(content)

    assert clean_pdf(path, copy_path)

    copy = PdfReader(copy_path)
    assert b"GPSL" not in copy_path.read_bytes()
    pictures = [image.data for page in copy.pages for image in page.images]
    pictures += [version for versions in copy.attachments.values() for version in versions]
    assert len(pictures) == 1 + len(copy.attachments)
    assert not any(map(has_position, pictures))
    assert (b"pdfaid" in copy_path.read_bytes()) == (b"pdfaid" in content)
    copy_path.rename(path)
    assert not clean_pdf(path, copy_path)


@pytest.mark.parametrize(
    "content", [make_pdf(), make_pdf(password="boiler"), make_pdf_with_photo(make_photo())]
)
def test_pdf_without_a_position_or_with_a_password_stays_as_it_is(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "file").write_bytes(content)
    assert not clean_pdf(tmp_path / "file", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("contract.pdf", make_pdf_with_photo(make_photo(has_position=True))[:-400]),
        ("photos.zip", make_zip({"quay.jpg": make_photo(has_position=True)[:400]})),
        ("photos.zip", make_zip({"quay.jpg": make_photo(), "zeros": b"0" * 3_000_000})),
    ],
    ids=["damaged", "damaged picture", "bomb"],
)
async def test_document_that_may_have_a_position_is_refused_with_a_sentence(
    tmp_path: Path, name: str, content: bytes
) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(Refused, match=f"location from the pictures in “{name}”"):
        await Decoder().clean(tmp_path / "file", tmp_path / "copy", name)


def test_word_document_keeps_everything_but_the_positions_of_its_photos(tmp_path: Path) -> None:
    path, copy_path = tmp_path / "file", tmp_path / "copy"
    path.write_bytes(make_docx(make_photo(has_position=True)))

    assert clean_archive(path, copy_path)

    with zipfile.ZipFile(path) as document, zipfile.ZipFile(copy_path) as copy:
        assert copy.namelist() == document.namelist()
        assert not has_position(copy.read("word/media/image1.jpg"))
        others = [name for name in copy.namelist() if not name.endswith(".jpg")]
        assert all(copy.read(name) == document.read(name) for name in others)
    copy_path.rename(path)
    assert not clean_archive(path, copy_path)
