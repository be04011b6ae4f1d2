"""Pictures, PDF files, mails, drawings and archives leave without the positions in their metadata."""

from __future__ import annotations

import base64
import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable
from email import message_from_bytes
from email.message import EmailMessage
from pathlib import Path

import pytest
from PIL import Image, PngImagePlugin, TiffImagePlugin
from pypdf import PdfReader, PdfWriter

from core.errors import Refused
from core.media.decoding import Decoder
from core.media.formats import images
from core.media.worker import MAX_DEPTH, clean_file
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

    assert clean_file(path, copy_path, "contract.pdf")["clean"]

    copy = PdfReader(copy_path)
    assert b"GPSL" not in copy_path.read_bytes()
    pictures = [image.data for page in copy.pages for image in page.images]
    pictures += [version for versions in copy.attachments.values() for version in versions]
    assert len(pictures) == 1 + len(copy.attachments)
    assert not any(map(has_position, pictures))
    assert (b"pdfaid" in copy_path.read_bytes()) == (b"pdfaid" in content)
    copy_path.rename(path)
    assert not clean_file(path, copy_path, "contract.pdf")["clean"]


def pack(name: str, content: bytes) -> bytes:
    """A TAR archive with one file, packed with gzip."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def lock(archive: bytes) -> bytes:
    """The archive with the mark of a password at its only entry."""
    content = bytearray(archive)
    content[6] |= 1
    content[archive.index(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


def lock_pdf(content: bytes) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(content)))
    writer.encrypt("boiler", algorithm="RC4-128")
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def make_mail(photo: bytes) -> bytes:
    message = EmailMessage()
    message["Subject"] = "The quay"
    message.set_content("See the picture.")
    message.add_attachment(photo, maintype="image", subtype="jpeg", filename="quay.jpg")
    return message.as_bytes()


def make_page_mail(photo: bytes) -> bytes:
    """A mail whose page has the picture in its address, in quoted-printable."""
    message = EmailMessage()
    message["Subject"] = "The quay"
    message.set_content(make_drawing(photo).decode(), subtype="html", cte="quoted-printable")
    return message.as_bytes()


def make_drawing(photo: bytes) -> bytes:
    picture = base64.b64encode(photo)
    return b'<svg xmlns="x"><image href="data:image/jpeg;base64,' + picture + b'"/></svg>'


def nest(depth: int) -> bytes:
    content = make_zip({"notes.txt": "Nothing"})
    for _ in range(depth):
        content = make_zip({"inner.zip": content})
    return content


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("contract.pdf", make_pdf()),
        ("locked.pdf", make_pdf(password="boiler")),
        ("photo.pdf", make_pdf_with_photo(make_photo())),
        ("notes.zip", nest(2)),
        ("damaged.zip", make_zip({"quay.png": b"\x89PNG\r\n\x1a\n" + bytes(50)})),
        ("notes.tar.gz", pack("notes.txt", b"The boiler")),
        ("quay.eml", make_mail(make_photo())),
        ("notes.txt", b"The boiler /9j/ is old, " + b"and the rent is due. " * 9),
        ("letter.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + make_photo()),
    ],
)
def test_file_without_a_position_stays_as_it_is(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    result = clean_file(tmp_path / "file", tmp_path / "copy", name)
    assert (result["clean"], result.get("note", "")) == (False, "")
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize(
    ("name", "wrap"),
    [
        ("photos.zip", lambda photo: make_zip({"day/inner.zip": make_zip({"quay": photo})})),
        ("letters.zip", lambda photo: make_zip({"letter.docx": make_docx(photo)})),
        ("quay.eml", make_mail),
        ("page.eml", make_page_mail),
        ("page.htm", lambda photo: make_drawing(photo).decode().encode("utf-16")),
        ("drawing.svg", make_drawing),
        ("page.html", lambda photo: b"<html>" + make_drawing(photo) + b"</html>"),
        ("notes.md", lambda photo: b"![Quay](data:;base64," + base64.b64encode(photo) + b")\n"),
    ],
)
def test_photo_inside_another_file_loses_only_its_position(
    tmp_path: Path, name: str, wrap: Callable[[bytes], bytes]
) -> None:
    photo = make_photo(has_position=True)
    (tmp_path / "file").write_bytes(wrap(photo))

    assert clean_file(tmp_path / "file", tmp_path / "copy", name)["clean"]

    expected = wrap(images.clean_picture(photo))
    copy = (tmp_path / "copy").read_bytes()
    assert unpack(copy) == unpack(expected)


def unpack(content: bytes) -> object:
    """The entries of an archive and of the archives in it; of a mail, its parts."""
    if content.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return {name: unpack(archive.read(name)) for name in archive.namelist()}
    if content.startswith(b"Subject"):
        return [part.get_payload(decode=True) for part in message_from_bytes(content).walk()]
    return content


def test_file_attached_to_a_pdf_loses_the_position_in_it(tmp_path: Path) -> None:
    inner = make_docx(make_photo(has_position=True))
    (tmp_path / "file").write_bytes(add_to_pdf(make_pdf(), photo=inner))

    assert clean_file(tmp_path / "file", tmp_path / "copy", "contract.pdf")["clean"]

    [[attached]] = PdfReader(tmp_path / "copy").attachments.values()
    with zipfile.ZipFile(io.BytesIO(attached)) as document:
        assert not has_position(document.read("word/media/image1.jpg"))


def test_drawing_with_xmp_metadata_loses_the_position_in_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b'<svg xmlns="x"><metadata>' + XMP + b"</metadata></svg>")
    assert clean_file(tmp_path / "file", tmp_path / "copy", "drawing.svg")["clean"]
    copy = (tmp_path / "copy").read_bytes()
    assert b"GPSL" not in copy
    assert b'pdfaid:part="1"' in copy


PHOTO = make_photo(has_position=True)


def quote(content: bytes) -> bytes:
    """The content with each byte as quoted-printable."""
    return b"".join(b"=%02X=\n" % byte for byte in content)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("photos.zip", lock(make_zip({"quay.jpg": PHOTO}))),
        ("photos.pdf", lock_pdf(make_pdf_with_photo(PHOTO))),
        ("photos.7z", b"7z\xbc\xaf\x27\x1c" + bytes(50)),
        ("photos.tar.gz", pack("quay.jpg", PHOTO)),
        ("photos.tar", gzip.decompress(pack("quay.jpg", PHOTO))),
        ("letter.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + PHOTO),
        ("letter.rtf", b"{\\rtf1 {\\pict\\jpegblip " + PHOTO.hex(" ", 64).encode() + b"}}"),
        ("page.htm", make_drawing(PHOTO).decode().encode("utf-16-le")),
        ("quay.eml", b"Content-Transfer-Encoding: quoted-printable\n\n" + quote(PHOTO)),
        ("deep.zip", nest(MAX_DEPTH + 1)),
    ],
)
def test_file_whose_positions_cannot_be_removed_is_not_sent(
    tmp_path: Path, name: str, content: bytes
) -> None:
    (tmp_path / "file").write_bytes(content)
    assert clean_file(tmp_path / "file", tmp_path / "copy", name)["note"] == "broken"
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

    assert clean_file(path, copy_path, "contract.docx")["clean"]

    with zipfile.ZipFile(path) as document, zipfile.ZipFile(copy_path) as copy:
        assert copy.namelist() == document.namelist()
        assert not has_position(copy.read("word/media/image1.jpg"))
        others = [name for name in copy.namelist() if not name.endswith(".jpg")]
        assert all(copy.read(name) == document.read(name) for name in others)
    copy_path.rename(path)
    assert not clean_file(path, copy_path, "contract.docx")["clean"]
