"""Files on the page: those of messages, those of answers, and backups."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from PIL import Image

from core.store.media.files import FileFilter, FilePart
from core.types import Account, File
from gateway.local.sockets import find_socket
from gateway.texts.catalog import ENGLISH
from gateway.web.logins import MAX_FILES, keep_file
from tests.fixtures.media_samples import make_exif, make_pdf, make_photo
from tests.fixtures.page_browser import OpenPage, PageAnswer, open_browser, open_page
from tests.gateway.web.test_scopes import ANA, OWNER

pytestmark = pytest.mark.slow

# The EXIF tag of the table with the position.
GPS_TABLE = 0x8825
TERMINAL = Account(platform="terminal", user_id="local")
SETTINGS = ENGLISH.table("page_settings")


def find_links(answer: PageAnswer, start: str) -> list[str]:
    """The addresses of links that begin like this, each once."""
    return list(dict.fromkeys(re.findall(f'href="({start}[^"]*)"', answer.body)))


async def fetch(page: OpenPage, path: str) -> tuple[bytes, str, str]:
    """Return the content of a file, its type, and whether the browser saves it."""
    async with page.browser.session.get(page.server.address + path) as answer:
        assert answer.status == 200
        disposition = answer.headers.get("Content-Disposition", "")
        return await answer.read(), answer.content_type, disposition.partition(";")[0]


async def test_file_that_a_search_finds_can_be_saved(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.send(make_pdf(), "lease.pdf", text="The lease")
        found = await page.browser.open("/recall?q=has:file")
        (link,) = find_links(found, "/files/")
        assert await fetch(page, link) == (make_pdf(), "application/octet-stream", "attachment")


async def test_found_file_names_the_page_or_second_in_the_language_of_the_reader(
    home: Path,
) -> None:
    async with open_page(home) as page:
        await page.harness.send(make_pdf(), "lease.pdf", text="The lease")
        await page.harness.send(b"OggS", "", "voice", text="Listen")
        (voice,) = [
            file
            for file in await page.harness.services.files.list_latest(
                frozenset({OWNER}), FileFilter(), 5
            )
            if file.kind == "voice"
        ]
        assert voice.content is not None
        parts = [FilePart(label="0:42", text="The chimney smokes")]
        await page.harness.services.files.store_parts(voice.content, parts)
        found = await page.browser.open("/recall?q=boiler serviced")
        assert "lease.pdf" in found.text
        assert "page 7" in found.text
        german = {"Accept-Language": "de"}
        assert "Seite 7" in (await page.browser.open("/recall?q=boiler serviced", **german)).text
        voices = await page.browser.open("/recall?q=chimney", **german)
        assert "0:42" in voices.text
        assert "Sprachnachricht" in voices.text


def has_position(content: bytes) -> bool:
    return GPS_TABLE in Image.open(io.BytesIO(content)).getexif()


async def test_picture_of_a_message_is_shown_and_saved_without_its_position(home: Path) -> None:
    async with open_page(home) as page:
        photo = make_photo(has_position=True)
        await page.harness.send(photo, "boiler.jpg", "photo", "The boiler")
        listed = await page.browser.open("/conversations")
        shown = await page.browser.open(find_links(listed, "/conversations/")[0])
        link, original_link = find_links(shown, "/files/")
        assert f'<img src="{link}/view" alt="boiler.jpg"' in shown.body
        for path in (link, f"{link}/view"):
            content, media_type, disposition = await fetch(page, path)
            assert (media_type, disposition) == ("image/jpeg", "inline")
            assert not has_position(content)
        content, _, disposition = await fetch(page, original_link)
        assert (content, disposition) == (photo, "attachment")
        assert has_position(content)


async def test_original_of_a_picture_stays_on_the_machine(home: Path) -> None:
    async with open_page(home) as page:
        await page.harness.send(make_photo(has_position=True), "boiler.jpg", "photo", "The boiler")
        listed = await page.browser.open("/conversations")
        conversation = find_links(listed, "/conversations/")[0]
        proxied = {"X-Forwarded-For": "203.0.113.5"}
        shown = await page.browser.open(conversation, **proxied)
        (link,) = find_links(shown, "/files/")
        assert (await page.browser.open(f"{link}/original", **proxied)).status == 404
        content, _, _ = await fetch(page, f"{link}/original")
        assert has_position(content)


async def test_person_who_is_not_the_owner_gets_no_original_of_a_picture(home: Path) -> None:
    async with open_page(home, options="people = true") as page, open_browser(page.server) as ana:
        services = page.harness.services
        photo = make_photo(has_position=True)
        await page.harness.send(
            photo, "boiler.jpg", "photo", "The boiler", who="7", address=ANA.address
        )
        await ana.log_in(f"/login?key={services.page_logins.create_key(ANA)}")
        listed = await ana.open("/conversations")
        shown = await ana.open(find_links(listed, "/conversations/")[0])
        (link,) = find_links(shown, "/files/")
        assert (await ana.open(f"{link}/original")).status == 404


async def test_picture_whose_position_can_not_be_removed_is_neither_shown_nor_sent(
    home: Path,
) -> None:
    async with open_page(home) as page:
        heic = b"\0\0\0\x18ftypheic" + bytes(12) + make_exif(has_position=True) + bytes(64)
        await page.harness.send(heic, "quay.heic", "document", "The quay")
        answer = await page.browser.open("/files/1")
        assert answer.status == 422
        assert "I can't remove the location from “quay.heic”" in answer.text


async def test_page_of_a_stranger_that_calls_itself_a_picture_is_saved_and_not_shown(
    home: Path,
) -> None:
    async with open_page(home) as page:
        html = b"<html><script>alert(1)</script></html>"
        await page.harness.send(html, "cat.png", "document", "A cat")
        listed = await page.browser.open("/conversations")
        shown = await page.browser.open(find_links(listed, "/conversations/")[0])
        assert "<img" not in shown.body
        for link in find_links(shown, "/files/"):
            _, media_type, disposition = await fetch(page, link)
            assert (media_type, disposition) == ("application/octet-stream", "attachment")


@asynccontextmanager
async def serve_answer(home: Path, files: Sequence[File]) -> AsyncIterator[None]:
    """Answer each message on the socket of a running gateway with these files."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        encoded = [[file.name, base64.b64encode(file.content).decode()] for file in files]
        answer = {"type": "answer", "id": 1, "text": "Here", "buttons": [], "files": encoded}
        writer.write(json.dumps({"type": "welcome"}).encode() + b"\n")
        while await reader.readline():
            writer.write(json.dumps(answer).encode() + b"\n")
            await reader.readline()
            writer.write(json.dumps({"type": "done"}).encode() + b"\n")
        writer.close()

    server = await asyncio.start_unix_server(serve, find_socket(home, "chat"))
    async with server:
        yield


async def test_files_of_an_answer_are_links_in_the_chat(home: Path) -> None:
    files = [
        File(name="plan.pdf", content=make_pdf()),
        File(name="plan.png", content=make_photo()),
    ]
    async with open_page(home) as page, serve_answer(home, files):
        form = (await page.browser.open("/chat")).form("/chat/send")
        headers = {"Origin": page.server.address, "Accept": "application/x-ndjson"}
        streamed = await page.browser.post(
            form.action, {**form.fields, "text": "the plan?"}, headers
        )
        answer = json.loads(streamed.body.splitlines()[-1])
        assert [file["name"] for file in answer["files"]] == ["plan.pdf", "plan.png"]
        assert [file["is_picture"] for file in answer["files"]] == [False, True]
        document, picture = [file["link"] for file in answer["files"]]
        assert await fetch(page, document) == (
            make_pdf(),
            "application/octet-stream",
            "attachment",
        )
        assert await fetch(page, picture) == (make_photo(), "image/png", "inline")


async def test_files_of_an_answer_are_links_without_scripts_too(home: Path) -> None:
    files = [File(name="plan.pdf", content=make_pdf())]
    async with open_page(home) as page, serve_answer(home, files):
        form = (await page.browser.open("/chat")).form("/chat/send")
        shown = await page.browser.send(form, text="the plan?")
        (link,) = find_links(shown, "/chat/files/")
        assert (await fetch(page, link))[0] == make_pdf()


async def test_old_files_of_answers_are_dropped_for_newer_ones(home: Path) -> None:
    async with open_page(home) as page:
        (login,) = page.harness.services.page_logins.list_logins(TERMINAL)
        ids = [
            keep_file(login, File(name=f"{number}.txt", content=b"x"))
            for number in range(MAX_FILES + 1)
        ]
        assert (await page.browser.open(f"/chat/files/{ids[0]}")).status == 404
        assert (await page.browser.open(f"/chat/files/{ids[-1]}")).status == 200


async def test_backup_is_made_checked_and_saved_on_the_page(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    async with open_page(home, options=f'[backup]\nfolder = "{folder}"') as page:
        settings = await page.browser.open("/settings")
        made = await page.browser.send(settings.form("/do/back-up"))
        (link,) = find_links(made, "/settings/backups/")
        (file,) = folder.glob("*.tar.gz")
        assert f"mneme restore {file}" in made.text
        content, _, disposition = await fetch(page, link)
        assert (content, disposition) == (file.read_bytes(), "attachment")
        right = await page.browser.send(made.form("/do/check-backup"))
        assert SETTINGS["BACKUP_RIGHT"].format(name=file.name) in right.text
        file.write_bytes(content[: len(content) // 2])
        wrong = await page.browser.send(right.form("/do/check-backup"))
        assert "damaged" in wrong.text
        assert wrong.form("/do/check-backup"), "the answer is on the page with the backups"
        await page.browser.open("/memory")
        assert (await page.browser.open("/settings/backups/mneme.toml")).status == 404
