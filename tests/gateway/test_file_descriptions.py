"""Files that people sent, described in the language of the reader."""

from __future__ import annotations

from datetime import UTC, datetime

from core.search.rendering import word_place
from core.store.media.files import AttachedFile, FileContent
from core.types import LOCAL_SCOPE, Address
from gateway.texts.catalog import Texts, list_languages
from gateway.texts.files import describe_details, format_size, word_details
from tests.fixtures.tables import each_row


def make_file(content: FileContent | None, kind: str = "document") -> AttachedFile:
    return AttachedFile(
        scope=LOCAL_SCOPE,
        address=Address(platform="telegram", chat_id="1"),
        external_id="1",
        position=0,
        kind=kind,
        name="a.pdf",
        at=datetime(2026, 11, 30, tzinfo=UTC),
        content=content,
    )


PDF = FileContent(hash="0" * 64, size=1_234_567, type="application/pdf", pages=12)
DETAILS = {
    "en": "pdf, 12 pages, 1.2 MB",
    "de": "pdf, 12 Seiten, 1,2 MB",
    "fr": "pdf, 12 pages, 1,2 Mo",
    "ru": "pdf, 12 страниц, 1,2 МБ",
    "ja": "pdf、12ページ、1.2 MB",
}


@each_row("language", DETAILS)
def test_pages_and_size_of_a_file_are_in_the_language_of_the_reader(language: str) -> None:
    assert describe_details(Texts(language), make_file(PDF)) == DETAILS[language]
    assert word_details("pdf, 12 pages, 1.2 MB", language) == DETAILS[language]


@each_row(("language", "name"), [("en", "text"), ("de", "Text"), ("ru", "текст"), ("ko", "텍스트")])
def test_plain_text_is_named_in_the_language_of_the_reader(language: str, name: str) -> None:
    notes = FileContent(hash="0" * 64, size=2_000, type="text/plain", pages=0)
    assert describe_details(Texts(language), make_file(notes)).startswith(f"{name}")
    assert word_details("plain, 2 kB", language).startswith(f"{name}")


# Lines of messages as they are stored, and as a German reads them.
ATTACHMENT_LINES = {
    "The boat\n[attached photo: photo.jpg (image/jpeg, 5,473 bytes)]": "The boat\n📎 Foto",
    "[attached document: >>>lease<<< (1).pdf (application/pdf, 20 bytes)]": (
        "📎 >>>lease<<< (1).pdf"
    ),
    "Here: [attached document: lease.pdf (applicati…": "Here: 📎 lease.pdf",
    "Hi\n[attached voice: voice-message.ogg (audio/ogg)]": "Hi\n📎 Sprachnachricht",
    "[attached video note: video.mp4]": "📎 Videonachricht",
    "[voice message]": "📎 Sprachnachricht",
    "[photo: boat.png]\nOur boat": "📎 boat.png\nOur boat",
    "[forwarded from Ana]\n[contact: Bo 123]": "↪ weitergeleitet von Ana\n👤 Bo 123",
    "cp [file] [video]": "cp [file] [video]",
}


@each_row("stored", ATTACHMENT_LINES)
def test_line_of_an_attachment_is_shown_as_its_name_or_its_kind(stored: str) -> None:
    assert Texts("de").result_words.word_text(stored) == ATTACHMENT_LINES[stored]


@each_row("language", dict.fromkeys(list_languages()))
def test_line_of_an_attachment_has_no_english_word_in_another_language(language: str) -> None:
    texts = Texts(language)
    line = texts.result_words.word_text("[attached photo: photo.jpg (image/jpeg, 5 bytes)]")
    assert line == f"📎 {texts.table('FILE_KINDS')['photo']}"


def test_file_that_is_not_stored_is_described_by_its_kind() -> None:
    german = describe_details(Texts("de"), make_file(None, "voice"))
    assert german == "Sprachnachricht, nicht behalten"
    turkish = describe_details(Texts("tr"), make_file(None, "video note"))
    assert turkish.startswith("görüntülü mesaj, sakla")
    korean = describe_details(Texts("ko"), make_file(None, "an unknown kind"))
    assert korean == "an unknown kind, 보관하지 않음"


def test_small_sizes_have_the_unit_of_the_language() -> None:
    sizes = [format_size(Texts("fr"), size) for size in (312, 312_000)]
    assert sizes == ["312 octets", "312 ko"]


def test_numbered_part_is_worded_and_a_heading_stays() -> None:
    words = Texts("de").result_words
    labels = ("page 7", "line 121", "chapter 2, The ferry", "Page 7 of it", "Tabelle1", "0:12", "")
    assert [word_place(label, words) for label in labels] == [
        "Seite 7",
        "Zeile 121",
        "Kapitel 2, The ferry",
        "Page 7 of it",
        "Tabelle1",
        "0:12",
        "",
    ]
    assert word_place("page 7", Texts("ja").result_words) == "7ページ"


def test_japanese_and_chinese_join_notes_with_their_own_parentheses() -> None:
    notes = {code: Texts(code).annotate("09:00", "Etc/UTC") for code in ("de", "ja", "zh")}
    wide = "09:00\N{FULLWIDTH LEFT PARENTHESIS}Etc/UTC\N{FULLWIDTH RIGHT PARENTHESIS}"
    assert notes == {"de": "09:00 (Etc/UTC)", "ja": wide, "zh": wide}
