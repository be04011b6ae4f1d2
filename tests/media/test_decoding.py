"""Files are decoded in a process of their own: real files, and files that try to break it."""

from __future__ import annotations

import io
import os
import random
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pytest
from PIL import Image

from core.errors import Refused
from core.media.api_limits import API_LIMITS
from core.media.blocks import MAX_PICTURE_BYTES, MAX_PICTURES, VIEW_TYPE
from core.media.decoding import Decoded, Decoder
from core.media.folder import list_views
from core.media.formats.images import VIEW_EDGE
from core.media.formats.kinds import CUT_MARK
from core.media.formats.office import MAX_ROWS
from core.media.worker import MAX_CHARS, MAX_TEXT_BYTES
from tests.fixtures.media_samples import (
    CONTRACT_PAGES,
    make_docx,
    make_epub,
    make_form,
    make_mixed_pdf,
    make_odp,
    make_ods,
    make_odt,
    make_pdf,
    make_photo,
    make_pptx,
    make_rtf,
    make_scan,
    make_xlsx,
    make_zip,
    make_zip_bomb,
)
from tests.fixtures.sweeps import keep_first, list_cases

pytestmark = pytest.mark.slow

MAIL = b"""From: Ana <ana@example.com>
To: Ben <ben@example.com>
Subject: The boiler
Date: Fri, 20 Nov 2026 12:00:00 +0000

It broke again.
"""
CALENDAR = b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Chimney sweep\nEND:VEVENT\nEND:VCALENDAR\n"
# A function makes what takes long to make, so that other tests don't wait for it.
Content = bytes | Callable[[], bytes]
TEXTS: dict[str, tuple[Content, str, str, str]] = {
    "pdf": (make_pdf, "application/pdf", "page 7", CONTRACT_PAGES[6]),
    "form.pdf": (make_form, "application/pdf", "page 1", "Application\nName: Ana Silva\nPets: Yes"),
    "docx": (make_docx, "wordprocessingml", "section Heating", "Filter | 12 euros"),
    "xlsx": (make_xlsx, "spreadsheetml", "sheet Costs", "Boiler | 1200"),
    "epub": (make_epub, "application/epub+zip", "chapter 1, The Cellar", "It was dark."),
    "pptx": (make_pptx, "presentationml", "slide 2", "Boiler costs\nSay 1,200"),
    "odt": (make_odt, ".text", "section Heating", "boiler is in the cellar.\nFilter | 12 euros"),
    "ods": (make_ods, ".spreadsheet", "sheet Costs", "Boiler | 1200"),
    "odp": (make_odp, ".presentation", "slide 2", "Costs"),
    "rtf": (make_rtf, "text/rtf", "line 1", "Котёл: old\n😀 Fine"),
    "csv": (b"thing;price\nboiler;1200\n", "text/csv", "line 1", "boiler | 1200"),
    "eml": (MAIL, "message/rfc822", "line 1", "It broke again."),
    "ics": (CALENDAR, "text/calendar", "line 1", "Chimney sweep"),
    "html": (
        b"<html><body><script>evil()</script><p>Warm water.</p></body></html>",
        "text/html",
        "line 1",
        "Warm water.",
    ),
    "py": (b"print('hi')\n" * 500, "text/plain", "line 334", "print('hi')"),
    "txt": ("Kesselprüfung".encode("cp1252"), "text/plain", "line 1", "Kesselprüfung"),
    "md": ("Im Café.".encode("cp1252"), "text/markdown", "line 1", "Im Café."),
    "log": (("a" * 4095 + "ü").encode(), "text/plain", "line 1", "aü"),
}


async def decode(folder: Path, content: Content, name: str, **limits: float) -> Decoded:
    path = folder / "file"
    path.write_bytes(content if isinstance(content, bytes) else content())
    decoder = Decoder(timeout_s=limits.get("timeout_s", 60.0))
    return await decoder.read(path, folder / "view", name)


@pytest.mark.parametrize(
    "suffix",
    list_cases(TEXTS, "pdf", "docx", "html", "eml"),
)
async def test_document_is_read_in_parts_with_their_place(tmp_path: Path, suffix: str) -> None:
    content, mime, label, text = TEXTS[suffix]
    decoded = await decode(tmp_path, content, f"file.{suffix}")
    assert mime in decoded.type
    texts = {part.label: part.text for part in decoded.parts}
    assert text in texts[label]
    assert "evil" not in str(texts)


@pytest.mark.parametrize(
    ("encoding", "text"),
    keep_first(
        9,
        [
            ("shift_jis", "契約書\n家賃は毎月五日に支払う。ボイラーの修理費は貸主が負担する。"),
            ("euc_jp", "契約書\n家賃は毎月五日に支払う。ボイラーの修理費は貸主が負担する。"),
            ("gbk", "合同\n租金每月五日支付。锅炉的维修费由房东承担。"),
            ("big5", "合約\n租金每月五日支付。鍋爐的維修費由房東承擔。"),
            ("euc_kr", "계약서\n월세는 매달 5일에 낸다. 보일러 수리비는 집주인이 부담한다."),
            ("cp1251", "Договор найма квартиры. Ремонт котла за счёт хозяина."),
            ("koi8_r", "Договор найма квартиры. Ремонт котла за счёт хозяина."),
            ("cp1254", "Bugün süt, şeker ve yoğurt"),
            ("cp1252", "Où est l'été à Nîmes ? Größe, Öl, Ärger: 100 €"),
            ("cp1252", "Viðgerð á katlinum"),
            ("cp1252", "20 °C"),
            ("cp1252", "price: 5 €, £4"),
            ("cp1252", "“hello” – don’t…"),
            ("big5", "你好"),
            ("cp1250", "Nájem se platí každý pátý den v měsíci"),
            ("cp1250", "Czynsz płatny piątego dnia, kocioł naprawia właściciel"),
            ("iso8859_2", "Kérjük, őrizze meg a szerződést"),
            ("cp1253", "Πληρώνεται κάθε μήνα"),
            ("koi8_r", "Привет"),
            ("shift_jis", "了解"),
            ("euc_kr", "보일러 고장"),
        ],
    ),
)
async def test_text_in_an_older_encoding_is_read_with_its_letters(
    tmp_path: Path, encoding: str, text: str
) -> None:
    decoded = await decode(tmp_path, text.encode(encoding), "contract.txt")
    assert [part.text for part in decoded.parts] == [text]


async def test_long_text_in_an_older_encoding_is_read_to_its_end(tmp_path: Path) -> None:
    text = "家賃は毎月五日に支払う。" * 2_000
    decoded = await decode(tmp_path, text.encode("shift_jis"), "contract.txt")
    assert decoded.parts[0].text == text


@pytest.mark.parametrize("head", ['<meta charset="windows-1251">', '<?xml encoding="koi8-r"?>'])
async def test_page_is_read_in_the_encoding_that_it_declares(tmp_path: Path, head: str) -> None:
    encoding = head.split('"')[1]
    content = f"<!doctype html>{head}<p>Котёл</p>" if "meta" in head else f"{head}<p>Котёл</p>"
    decoded = await decode(tmp_path, content.encode(encoding), "page.html")
    assert "Котёл" in decoded.parts[0].text


@pytest.mark.parametrize("charset", ["", "; charset=unknown-8bit"])
async def test_mail_without_a_known_encoding_is_read_with_its_letters(
    tmp_path: Path, charset: str
) -> None:
    text = "Nájem se platí každý pátý den v měsíci"
    head = f"From: ana@example.org\nSubject: Rent\nContent-Type: text/plain{charset}\n\n"
    decoded = await decode(tmp_path, head.encode() + text.encode("cp1250"), "rent.eml")
    assert decoded.parts[0].text.endswith(f"Subject: Rent\n\n{text}")


async def test_photo_gets_a_scaled_view_without_exif_data(tmp_path: Path) -> None:
    decoded = await decode(tmp_path, make_photo(4000, 3000, has_position=True), "p.jpg")
    assert (decoded.type, decoded.width, decoded.height) == ("image/jpeg", 4000, 3000)
    with Image.open(tmp_path / "view") as view:
        assert max(view.size) == VIEW_EDGE
        assert not view.getexif()


def make_noise(width: int, height: int) -> bytes:
    """A picture that hardly compresses."""
    image = Image.frombytes("RGB", (width, height), random.Random(7).randbytes(3 * width * height))
    buffer = io.BytesIO()
    image.save(buffer, "BMP")
    return buffer.getvalue()


@pytest.mark.parametrize(("width", "height"), [(1_600, 1_600), (9_000, 90)])
async def test_view_of_a_picture_fits_into_the_limits_of_the_api(
    tmp_path: Path, width: int, height: int
) -> None:
    await decode(tmp_path, make_noise(width, height), "p.bmp")
    view = (tmp_path / "view").read_bytes()
    assert VIEW_TYPE in API_LIMITS.picture_types
    assert 4 * len(view) / 3 < API_LIMITS.picture_bytes
    with Image.open(io.BytesIO(view)) as image:
        assert max(image.size) <= API_LIMITS.edge_of_many_px
    assert API_LIMITS.pictures >= MAX_PICTURES
    assert API_LIMITS.request_bytes > MAX_PICTURE_BYTES


async def test_view_of_the_same_photo_has_the_same_bytes(tmp_path: Path) -> None:
    await decode(tmp_path, make_photo(), "p.jpg")
    first = (tmp_path / "view").read_bytes()
    (tmp_path / "view").unlink()
    await decode(tmp_path, make_photo(), "p.jpg")
    assert (tmp_path / "view").read_bytes() == first


async def test_copy_that_leaves_has_no_position_but_the_other_data(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(make_photo(has_position=True))
    assert await Decoder().clean(path, tmp_path / "copy", "p.jpg")
    with Image.open(tmp_path / "copy") as copy:
        assert 0x8825 not in copy.getexif()
        assert copy.getexif()[0x010F] == "Camera"
    path.write_bytes(make_photo())
    assert not await Decoder().clean(path, tmp_path / "other", "p.jpg")


async def test_damaged_picture_that_may_have_a_position_is_not_sent(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(make_photo(has_position=True)[:400])

    with pytest.raises(Refused, match=r"I can't remove the location from “p\.jpg”"):
        await Decoder().clean(path, tmp_path / "copy", "p.jpg")

    assert not (tmp_path / "copy").exists()


async def test_scanned_pages_of_a_mixed_pdf_are_named_and_have_views(tmp_path: Path) -> None:
    decoded = await decode(tmp_path, make_mixed_pdf, "mixed.pdf")
    assert decoded.note == ""
    assert [part.label for part in decoded.parts] == ["page 1", "page 4"]
    assert list(decoded.scanned_pages) == [2, 3, 5], "the blank page isn't a scan"
    greys = [Image.open(path).getpixel((50, 50)) for path in list_views(tmp_path / "view")]
    assert greys == [(255,) * 3, (235,) * 3, (215,) * 3]


def make_long_table() -> bytes:
    workbook = openpyxl.Workbook(write_only=True)
    sheet = workbook.create_sheet("Costs")
    for number in range(MAX_ROWS + 5):
        sheet.append([number])
    buffer = io.BytesIO()
    workbook.save(buffer)
    return buffer.getvalue()


LONG_TEXTS: dict[str, Callable[[], bytes]] = {
    "line.txt": lambda: b"word " * (MAX_CHARS // 4),
    "lines.txt": lambda: b"a line of a long text\n" * (MAX_TEXT_BYTES // 20),
    "table.xlsx": make_long_table,
    "cell.csv": lambda: b"a,b\n1," + b"word " * 60_000,
}


@pytest.mark.parametrize("name", LONG_TEXTS)
async def test_text_that_is_not_read_to_its_end_has_a_mark_there(tmp_path: Path, name: str) -> None:
    decoded = await decode(tmp_path, LONG_TEXTS[name], name)
    text = "\n".join(part.text for part in decoded.parts)
    if name == "cell.csv":
        assert text.count("word") == 60_000, "a long cell is read as a whole"
    else:
        assert text.endswith(CUT_MARK)
        assert text.count(CUT_MARK) == 1


async def test_scanned_pdf_is_decoded_with_the_note_scan_and_an_image_of_its_page(
    tmp_path: Path,
) -> None:
    decoded = await decode(tmp_path, make_scan(), "scan.pdf")
    assert (decoded.note, decoded.pages) == ("scan", 1)
    assert (tmp_path / "view").exists()


async def test_pdf_with_a_short_text_and_no_picture_is_read_as_text(tmp_path: Path) -> None:
    decoded = await decode(tmp_path, lambda: make_pdf(["Blue whale", "Red kite"]), "label.pdf")
    assert decoded.note == ""
    assert [part.text for part in decoded.parts] == ["Blue whale", "Red kite"]


def big_picture() -> bytes:
    buffer = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(buffer, "PNG")
    return buffer.getvalue()


HOSTILE: dict[str, tuple[Content, str, str]] = {
    "locked PDF": (lambda: make_pdf(password="secret"), "a.pdf", "locked"),
    "cut PDF": (lambda: make_pdf()[:200], "a.pdf", "broken"),
    "PDF of garbage": (b"%PDF-1.4\n" + b"\xff\x00garbage" * 999, "a.pdf", "broken"),
    "zip bomb": (make_zip_bomb, "a.docx", "bomb"),
    "picture bomb": (big_picture, "a.png", "broken"),
    "cut picture": (lambda: make_photo()[:300], "a.jpg", "broken"),
    "broken archive": (lambda: make_docx()[:500], "a.docx", "unknown"),
    "empty document": (make_zip({"word/document.xml": ""}), "a.docx", "broken"),
    "empty table": (make_zip({"xl/workbook.xml": "<x/>"}), "a.xlsx", "broken"),
    "program": (b"\x7fELF" + bytes(200), "a.pdf", "unknown"),
    "picture named as text": (lambda: make_photo()[:100], "a.txt", "broken"),
}


@pytest.mark.parametrize(
    "case",
    list_cases(
        HOSTILE, "locked PDF", "PDF of garbage", "zip bomb", "picture bomb", "broken archive"
    ),
)
async def test_hostile_file_gets_a_note_instead_of_text(tmp_path: Path, case: str) -> None:
    content, name, note = HOSTILE[case]
    decoded = await decode(tmp_path, content, name)
    assert decoded.note == note
    assert not decoded.parts
    assert not (tmp_path / "view").exists()


async def test_picture_that_is_also_an_archive_is_only_a_picture(tmp_path: Path) -> None:
    polyglot = make_photo() + make_zip({"word/document.xml": "<evil/>"})
    decoded = await decode(tmp_path, polyglot, "a.docx")
    assert decoded.type == "image/jpeg"


async def test_svg_with_links_is_text_and_loads_nothing(tmp_path: Path) -> None:
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><image href="http://127.0.0.1:1/x"/></svg>'
    decoded = await decode(tmp_path, svg, "a.svg")
    assert decoded.type == "image/svg+xml"
    assert not (tmp_path / "view").exists()


async def test_worker_with_too_much_memory_is_killed_where_the_system_has_no_limit(
    tmp_path: Path,
) -> None:
    # The worker waits for the first byte until it's killed.
    path = tmp_path / "pipe"
    os.mkfifo(path)
    decoded = await Decoder(memory_mb=1, system="macos").read(path, tmp_path / "view", "a.txt")
    assert decoded.note == "bomb"
    path.unlink()
    path.write_text("The boiler")
    decoded = await Decoder(system="macos").read(path, tmp_path / "view", "a.txt")
    assert [part.text for part in decoded.parts] == ["The boiler"]


async def test_file_whose_decoding_exceeds_the_time_limit_is_given_up(tmp_path: Path) -> None:
    # No machine starts a worker within so short a time.
    decoded = await decode(tmp_path, make_pdf(["page"] * 5_000), "a.pdf", timeout_s=0.001)
    assert decoded.note == "bomb"
