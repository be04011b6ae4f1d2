"""Decodes one file in a process with limits on its memory and time.

``python -m core.media.worker read PATH VIEW NAME LIMITS LANGUAGE`` prints the details of a file as
JSON (see `core.media.decoding.Decoded`). It writes the view of a picture, or those of a scan or
video, to VIEW. Instead of ``read VIEW``, other tasks are:

* ``page URL`` reads a download from URL. For a web page, it also prints the title and the date, and
  the text has links.
* ``clean COPY`` writes a copy of a file without the positions in it.
* ``speech SOUND`` writes the sound of a recording.

LIMITS are the megabytes of memory, the seconds of processor time and the system, such as
``1024,20,linux``. LANGUAGE is the language of the person who sent the file, or empty. If the
process fails or is killed, the file counts as unreadable.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from config.operating_system import System, limit_resources
from core.media.folder import MAX_VIEWS, number_view
from core.media.formats import kinds, texts
from core.media.formats.text_encoding import LANGUAGE, decode_text

if TYPE_CHECKING:
    from core.media.formats.document_position import CleanFile
    from core.media.formats.pdf import PdfFile

# The maximum number of characters and parts in the text of one file.
MAX_CHARS = 2_000_000
MAX_PARTS = 2_000
MAX_LABEL_CHARS = 100
# Only the beginning of a larger text file is read.
MAX_TEXT_BYTES = 8_000_000
_VIEWABLE = frozenset(
    {
        "image/jpeg",
        "image/png",
        "image/gif",
        "image/webp",
        "image/bmp",
        "image/tiff",
        "image/avif",
    }
)
_DOCUMENT_ARCHIVES = frozenset(
    {kinds.DOCX, kinds.XLSX, kinds.PPTX, kinds.EPUB, kinds.ODT, kinds.ODS, kinds.ODP}
)
_ARCHIVES = frozenset({"application/zip", *_DOCUMENT_ARCHIVES})
# Archives that Mneme can't look into, so that their files may have positions.
_CLOSED_ARCHIVES = frozenset(
    {
        *("application/x-7z-compressed", "application/vnd.rar", "application/x-xz"),
        *("application/x-bzip2", "application/zstd"),
    }
)
# Files in files in files are cleaned down to this depth.
MAX_DEPTH = 4

Result = dict[str, Any]


def read_file(path: Path, view_path: Path, name: str) -> Result:
    """Return the type, the size or number of pages, and the text of a file in parts."""
    mime = kinds.find_type(path, name)
    if mime in _VIEWABLE:
        return _read_picture(path, view_path, mime)
    if mime == "application/pdf":
        return _read_pdf(path, view_path)
    if mime in _DOCUMENT_ARCHIVES:
        return _read_archive(path, mime)
    if mime.startswith(("video/", "audio/")):
        return _read_recording(path, view_path, mime)
    reader = _find_text_reader(mime)
    if reader is None:
        return {"type": mime, "note": "unknown"}
    try:
        with path.open("rb") as file:
            content = file.read(MAX_TEXT_BYTES + 1)
        parts = reader(content[:MAX_TEXT_BYTES])
        return {"type": mime, "parts": _collect(parts, is_cut=len(content) > MAX_TEXT_BYTES)}
    except texts.ERRORS:
        return {"type": mime, "note": "broken"}


def read_page(path: Path, url: str, name: str) -> Result:
    """Return the text of a download in parts and, for a web page, the title and date."""
    if kinds.find_type(path, name) != "text/html":
        return read_file(path, path.with_suffix(".view"), name)
    from core.media.formats.web_page import read_article

    try:
        article = read_article(decode_text(path.read_bytes()[:MAX_TEXT_BYTES]) or "", url)
    except texts.ERRORS:
        return {"type": "text/html", "note": "broken"}
    parts = _collect([("", article.text)])
    return {"type": "text/html", "title": article.title, "date": article.date, "parts": parts}


def _read_picture(path: Path, view_path: Path, mime: str) -> Result:
    from core.media.formats import images

    try:
        size = images.make_view(path, view_path)
    except images.ERRORS:
        return {"type": mime, "note": "broken"}
    return {"type": mime, "width": size.width, "height": size.height}


def _read_pdf(path: Path, view_path: Path) -> Result:
    """Read a PDF. If it's a scan, write views of its first pages."""
    from core.media.formats import pdf

    try:
        document = pdf.PdfFile(path)
        result: Result = {"type": "application/pdf", "pages": document.pages}
        if document.is_locked:
            return {**result, "pages": None, "note": "locked"}
        pages = list(document.read_pages(MAX_CHARS))
    except pdf.ERRORS:
        return {"type": "application/pdf", "note": "broken"}
    parts = [(f"page {number}", text) for number, text in enumerate(pages, start=1)]
    if document.is_whole_scan(pages):
        result["note"] = "scan"
        numbers = range(min(len(pages), MAX_VIEWS))
        _write_views(map(document.read_scan, numbers), view_path)
    else:
        scans = [number for number, text in enumerate(pages) if document.is_scan(number, text)]
        result["scanned_pages"] = _write_scans(document, scans, view_path)
    return {**result, "parts": _collect(parts, is_cut=len(pages) < document.pages)}


def _write_scans(document: PdfFile, scans: Sequence[int], view_path: Path) -> list[int]:
    """Write views of the first scanned pages of a PDF, and return the numbers of all such pages.

    Pages with a view come first, in the order of the views. `scans` counts pages from 0, and the
    result from 1.
    """
    written = _write_views(map(document.read_scan, scans[:MAX_VIEWS]), view_path)
    shown = [scans[position] for position in written]
    others = [number for number in scans if number not in shown]
    return [number + 1 for number in (*shown, *others)]


def _write_views(pictures: Iterable[bytes | None], view_path: Path) -> list[int]:
    """Write a view of each picture. Missing and broken pictures are left out.

    Returns the positions of the pictures that have a view.
    """
    from core.media.formats import images

    written: list[int] = []
    for position, picture in enumerate(pictures):
        if picture is None:
            continue
        path = number_view(view_path, len(written))
        try:
            images.make_view(picture, path)
            written.append(position)
        except images.ERRORS:
            path.unlink(missing_ok=True)
    return written


def _read_recording(path: Path, view_path: Path, mime: str) -> Result:
    """Read the length of a recording and, if PyAV is installed, frames of a video."""
    try:
        from core.media.formats import recordings
    except ImportError:
        return {"type": mime, "note": "no_video" if mime.startswith("video/") else "unknown"}
    try:
        video = recordings.read_info(path)
        if video is None:
            duration = recordings.read_duration(path)
            mime = f"audio/{mime.partition('/')[2]}"
            return {"type": mime, "note": "unknown", "duration_s": duration}
        if mime.startswith("audio/"):
            # Music files may contain a picture of the cover.
            return {"type": mime, "note": "unknown", "duration_s": video.duration_s}
        _write_views(recordings.read_frames(path), view_path)
    except recordings.ERRORS:
        return {"type": mime, "note": "broken" if mime.startswith("video/") else "unknown"}
    return {"type": mime, **asdict(video)}


def write_speech(path: Path, sound_path: Path, name: str) -> Result:
    """Write the sound of a recording as OGG with Opus or, for ".wav", as WAV.

    If that fails, the result has `clean` false.
    """
    try:
        from core.media.formats import recordings
    except ImportError:
        return {"clean": False}
    try:
        return {"clean": recordings.write_speech(path, sound_path)}
    except recordings.ERRORS:
        sound_path.unlink(missing_ok=True)
        return {"clean": False}


def _read_archive(path: Path, mime: str) -> Result:
    """Read an office document or a book, unless unpacking would exceed the limits."""
    try:
        if not texts.is_archive_safe(path):
            return {"type": mime, "note": "bomb"}
        return {"type": mime, "parts": _collect(_read_document(path, mime))}
    except texts.ERRORS:
        return {"type": mime, "note": "broken"}


def _read_document(path: Path, mime: str) -> Iterable[texts.Part]:
    """Read a document that is an archive, with the library for its type.

    Raises one of `texts.ERRORS` if it's broken.
    """
    if mime == kinds.EPUB:
        return texts.read_book(path)
    if mime == kinds.PPTX:
        from core.media.formats.powerpoint import read_pptx

        return read_pptx(path)
    if mime in (kinds.ODT, kinds.ODS, kinds.ODP):
        from core.media.formats.open_document import read_open_document

        return read_open_document(path, mime)
    from core.media.formats import office

    return office.read_docx(path) if mime == kinds.DOCX else office.read_xlsx(path)


def _find_text_reader(mime: str) -> Callable[[bytes], Iterable[texts.Part]] | None:
    """Return the function that reads a type of text, or None for other types."""
    if mime == "text/html":
        return _read_html
    if mime == "message/rfc822":
        return texts.read_mail
    if mime == kinds.RTF:
        return texts.read_rtf
    if mime == "text/csv":
        return lambda content: texts.read_table(content, ",")
    if mime == "text/tab-separated-values":
        return lambda content: texts.read_table(content, "\t")
    if kinds.is_text(mime):
        return texts.read_text
    return None


def _read_html(content: bytes) -> Iterable[texts.Part]:
    from core.media.formats.web_page import read_html

    return texts.split_lines(read_html(decode_text(content) or ""))


def _collect(parts: Iterable[texts.Part], *, is_cut: bool = False) -> list[Mapping[str, str]]:
    """Return the parts that have text, up to the limits.

    If text is left out, or if `is_cut` because the file was cut before, the last part is a mark.
    """
    collected: list[Mapping[str, str]] = []
    remaining_chars = MAX_CHARS
    for label, text in parts:
        # Some documents write a character as two halves. Half a character can't be stored.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        # SQLite cuts a text at a NUL.
        text = text.replace("\0", " ").strip()
        if not text:
            continue
        is_cut = is_cut or len(text) > remaining_chars or len(collected) == MAX_PARTS
        text = text[:remaining_chars]
        if not text or len(collected) == MAX_PARTS:
            break
        collected.append({"label": texts.shorten_label(label, MAX_LABEL_CHARS), "text": text})
        remaining_chars -= len(text)
    if is_cut and collected and collected[-1]["text"] != kinds.CUT_MARK:
        collected.append({"label": "", "text": kinds.CUT_MARK})
    return collected


def clean_file(path: Path, copy_path: Path, name: str, depth: int = 0) -> Result:
    """Write a copy of a file without the positions in its metadata and in the files inside it.

    If the file has no position, the result has `clean` false. A file counts as broken if it may
    have a position that can't be removed. `depth` is the number of files around this one.
    """
    mime = kinds.find_type(path, name)
    result: Result = {"type": mime, "clean": False}
    if depth > MAX_DEPTH or mime in _CLOSED_ARCHIVES:
        return {**result, "note": "broken"}
    if mime.startswith(("video/", "audio/")):
        return _clean_recording(path, copy_path, mime)
    if mime.startswith("image/") and mime != kinds.SVG:
        return _clean_picture(path, copy_path, mime, is_embedded=depth > 0)

    def clean_embedded(content: bytes, name: str) -> bytes:
        return _clean_embedded(content, name, copy_path.parent, depth + 1)

    if mime == "application/pdf":
        return _clean_pdf(path, copy_path, clean_embedded)
    if mime in _ARCHIVES:
        return _clean_archive(path, copy_path, mime, clean_embedded)
    return _clean_other(path, copy_path, mime, clean_embedded)


def _clean_embedded(content: bytes, name: str, folder: Path, depth: int) -> bytes:
    """Return a file inside another file without its position.

    `folder` gets temporary files. Raises ValueError if the position can't be removed.
    """
    path, copy_path = folder / f"file-{depth}", folder / f"copy-{depth}"
    path.write_bytes(content)
    try:
        result = clean_file(path, copy_path, name, depth)
        if result.get("note"):
            raise ValueError("a file inside it may have a position")
        return copy_path.read_bytes() if result["clean"] else content
    finally:
        path.unlink()
        copy_path.unlink(missing_ok=True)


def _clean_picture(path: Path, copy_path: Path, mime: str, *, is_embedded: bool) -> Result:
    """Write a copy of a picture without its position.

    A damaged picture inside a document counts as broken only if it may have a position, so that
    the document can be sent.
    """
    from core.media.formats import images

    result: Result = {"type": mime, "clean": False}
    if mime not in _VIEWABLE:
        return {**result, "note": "broken" if images.may_have_position(path.read_bytes()) else ""}
    try:
        return {**result, "clean": images.remove_position(path, copy_path)}
    except images.ERRORS:
        may_be_sent = is_embedded and not images.may_have_position(path.read_bytes())
        return {**result, "note": "" if may_be_sent else "broken"}


def _clean_other(path: Path, copy_path: Path, mime: str, clean_embedded: CleanFile) -> Result:
    """Write a copy of a text without the positions of the files in it.

    Files of other types count as broken if they may have a position.
    """
    from core.media.formats import document_position, images

    result: Result = {"type": mime, "clean": False}
    content = path.read_bytes()
    clean_content = content
    try:
        if mime == "application/gzip":
            document_position.check_packed(path, clean_embedded)
        elif mime == kinds.TAR:
            document_position.check_tar(content, clean_embedded)
        elif not kinds.is_text(mime):
            may_have_position = images.may_have_position(content)
            # A text in UTF-16 without its mark counts as unknown.
            wide_text = content.replace(b"\0", b"")
            if document_position.clean_text(wide_text, clean_embedded) != wide_text:
                may_have_position = True
            return {**result, "note": "broken" if may_have_position else ""}
        else:
            clean_content = document_position.clean_text(content, clean_embedded)
            if mime in (kinds.SVG, "text/xml"):
                clean_content = document_position.clean_properties(clean_content)
    except document_position.ERRORS:
        return {**result, "note": "broken"}
    if clean_content == content:
        return result
    copy_path.write_bytes(clean_content)
    return {**result, "clean": True}


def _clean_pdf(path: Path, copy_path: Path, clean_embedded: CleanFile) -> Result:
    """Write a copy of a PDF whose pictures have no position.

    A damaged PDF counts as broken only if it may have a position.
    """
    from core.media.formats import images, pdf

    result: Result = {"type": "application/pdf", "clean": False}
    try:
        return {**result, "clean": pdf.clean_pdf(path, copy_path, clean_embedded)}
    except pdf.LockedError:
        return {**result, "note": "broken"}
    except pdf.ERRORS:
        may_have_position = images.may_have_position(path.read_bytes())
        return {**result, "note": "broken" if may_have_position else ""}


def _clean_archive(path: Path, copy_path: Path, mime: str, clean_embedded: CleanFile) -> Result:
    """Write a copy of an archive, such as a Word document, whose files have no position."""
    from core.media.formats import document_position

    result: Result = {"type": mime, "clean": False}
    try:
        if not texts.is_archive_safe(path):
            return {**result, "note": "bomb"}
        return {
            **result,
            "clean": document_position.clean_archive(path, copy_path, clean_embedded),
        }
    except (*texts.ERRORS, *document_position.ERRORS):
        return {**result, "note": "broken"}


def _clean_recording(path: Path, copy_path: Path, mime: str) -> Result:
    """Write a copy of a video or sound file without positions, including those in its subtitles."""
    from core.media.formats import recording_position

    result: Result = {"type": mime, "clean": False}
    data = bytearray(path.read_bytes())
    has_changed = False
    try:
        if mime.endswith("/mp4"):
            has_changed = recording_position.remove_position(data)
        has_changed |= recording_position.clear_subtitles(data)
    except ValueError:
        return {**result, "note": "broken"}
    if not mime.endswith("/mp4") and recording_position.may_have_position(bytes(data)):
        return {**result, "note": "broken"}
    copy_path.write_bytes(data)
    if mime.startswith("video/") and _has_subtitle_position(copy_path):
        copy_path.unlink()
        return {**result, "note": "broken"}
    if not has_changed:
        copy_path.unlink()
    return {**result, "clean": has_changed}


def _has_subtitle_position(path: Path) -> bool:
    """Return whether a subtitle still states a position, for example because it's compressed.

    Without PyAV, and for a video that it can't read, the result is False.
    """
    from core.media.formats import recording_position

    try:
        from core.media.formats import recordings
    except ImportError:
        return False
    try:
        subtitles = recordings.read_subtitles(path)
        return any(map(recording_position.has_subtitle_position, subtitles))
    except recordings.ERRORS:
        return False


_TASKS: Mapping[str, Callable[[Path, Path, str], Result]] = {
    "read": read_file,
    "clean": clean_file,
    "speech": write_speech,
}


def main(arguments: list[str]) -> None:
    """Run one task, and print its result as JSON."""
    task, path, target, name, limits, language = arguments
    memory_mb, seconds, system = limits.split(",")
    limit_resources(int(memory_mb), int(seconds), cast("System", system))
    LANGUAGE.set(language)
    try:
        if task == "page":
            result = read_page(Path(path), target, name)
        else:
            result = _TASKS[task](Path(path), Path(target), name)
    except (MemoryError, RecursionError):
        result = {"type": kinds.UNKNOWN, "note": "bomb"}
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1:])
