"""`mneme web` as a real process, alone and beside a gateway that serves the page."""

from __future__ import annotations

import asyncio
import contextlib
import html
import json
import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest
from aiohttp import ClientSession, CookieJar

from gateway.texts.catalog import load_texts
from tests.fixtures.bot_api import BotApi
from tests.fixtures.command_line import good
from tests.fixtures.forked import ROOT, ForkedProcess
from tests.fixtures.page_browser import find_free_port
from tests.gateway.local.running import open_gateway

pytestmark = pytest.mark.slow

WORDS = load_texts("en").table("page_today")


async def log_in(session: ClientSession, link: str) -> str:
    """Press the button of a link, and return the address of the page."""
    address, _, key = link.partition("/login?key=")
    fields = {"key": key}
    async with session.post(f"{address}/login", data=fields, headers={"Origin": address}) as answer:
        assert answer.status == 200, await answer.text()
    return address


async def read_memory(link: str) -> str:
    """Log a new browser in with the link, and return the page Memory."""
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
        address = await log_in(session, link)
        async with session.get(f"{address}/memory") as answer:
            return await answer.text()


def start_web(home: Path, output: int, variables: Mapping[str, str] | None = None) -> ForkedProcess:
    environ = {"PATH": os.environ["PATH"], "MNEME_HOME": str(home), **(variables or {})}
    with open(os.devnull, "rb") as nothing:
        streams = (nothing.fileno(), output, output)
        return ForkedProcess(("web",), environ, ROOT, streams)


async def test_page_without_a_gateway_is_there_until_ctrl_c(home: Path) -> None:
    port = find_free_port()
    (home / "mneme.toml").write_text(f"[web]\nport = {port}\n")
    good(home, "remember", "My", "cat", "is", "called", "Nero")
    output = home / "web.txt"
    with output.open("wb") as printed:
        process = await asyncio.to_thread(start_web, home, printed.fileno())
    try:
        async with asyncio.timeout(90):
            while (link := re.search(r"http://\S+", output.read_text())) is None:
                assert process.poll() is None, output.read_text()
                await asyncio.sleep(0.05)
        assert f"127.0.0.1:{port}/login?key=" in link[0]
        assert "My cat is called Nero" in await read_memory(link[0])
        with (home / "second.txt").open("wb") as printed:
            second = await asyncio.to_thread(start_web, home, printed.fileno())
        assert await asyncio.to_thread(second.wait, 90.0) == 1
        assert f"Port {port} is in use" in (home / "second.txt").read_text()
    finally:
        process.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(process.wait, 60.0) == 130
    assert "Traceback" not in output.read_text()


def find_gateway(home: Path) -> int | None:
    """Return the process id of the gateway of a home, or None."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            environ = (folder / "environ").read_bytes().split(b"\0")
            arguments = (folder / "cmdline").read_bytes().split(b"\0")
            if f"MNEME_HOME={home}".encode() in environ and arguments[-2:] == [b"run", b""]:
                return int(folder.name)
    return None


async def test_button_of_the_page_starts_mneme_or_says_why_it_cannot(home: Path) -> None:
    port = find_free_port()
    settings = f"[web]\nport = {port}\n[owner]\ntelegram = [4242]\n"
    (home / "mneme.toml").write_text(settings)
    output = home / "web.txt"
    async with BotApi() as telegram:
        variables = {"MNEME_TELEGRAM_API_URL": telegram.url}
        with output.open("wb") as printed:
            process = await asyncio.to_thread(start_web, home, printed.fileno(), variables)
        try:
            async with asyncio.timeout(90):
                while (link := re.search(r"http://\S+", output.read_text())) is None:
                    assert process.poll() is None, output.read_text()
                    await asyncio.sleep(0.05)
            async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
                address = await log_in(session, link[0])

                async def start() -> str:
                    async with session.get(f"{address}/today") as page:
                        token = re.search(r'name="token" value="([^"]+)"', await page.text())
                    assert token is not None
                    fields = {"token": token[1], "back": "/today"}
                    url = f"{address}/do/start-mneme"
                    async with session.post(
                        url, data=fields, headers={"Origin": address}
                    ) as answer:
                        return html.unescape(await answer.text())

                (home / "mneme.toml").write_text(f"{settings}tele = 1\n")
                assert WORDS["START_FAILED"].partition("{")[0] in await start()
                (home / "mneme.toml").write_text(settings)
                (home / "secrets.env").write_text(f"TELEGRAM_BOT_TOKEN={telegram.token}\n")
                assert WORDS["STARTED"] in await start()
                await telegram.wait_for(lambda: bool(telegram.called("getUpdates")), 90.0)
        finally:
            if (gateway := find_gateway(home)) is not None:
                os.kill(gateway, signal.SIGKILL)
            process.send_signal(signal.SIGINT)
            assert await asyncio.to_thread(process.wait, 60.0) == 130


async def test_running_gateway_serves_the_page_and_gives_new_links(home: Path) -> None:
    port = find_free_port()
    async with open_gateway(home, options=f"[web]\nenabled = true\nport = {port}\n") as gateway:
        gateway.telegram.user_says(4242, "/remember My cat is called Nero")
        await gateway.telegram.wait_for(lambda: len(gateway.telegram.texts(4242)) == 1)
        printed = await asyncio.to_thread(good, home, "web")
        link = re.search(r"http://\S+", printed)
        assert link is not None
        assert "My cat is called Nero" in await read_memory(link[0])
        gateway.telegram.user_says(4242, "/web")
        await gateway.telegram.wait_for(lambda: len(gateway.telegram.texts(4242)) == 2)
        link = re.search(r"http://[\w.:/?=-]+", gateway.telegram.texts(4242)[1])
        assert link is not None
        assert "My cat is called Nero" in await read_memory(link[0])


async def test_chat_of_the_page_streams_the_answer_over_the_socket_of_the_gateway(
    home: Path,
) -> None:
    port = find_free_port()
    async with open_gateway(home, options=f"[web]\nenabled = true\nport = {port}\n"):
        link = re.search(r"http://\S+", await asyncio.to_thread(good, home, "web"))
        assert link is not None
        async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
            address = await log_in(session, link[0])

            async def send(text: str, **headers: str) -> str:
                async with session.get(f"{address}/chat") as page:
                    token = re.search(r'name="token" value="([^"]+)"', await page.text())
                assert token is not None
                fields = {"token": token[1], "back": "/chat", "text": text}
                sent = {"Origin": address, **headers}
                url = f"{address}/chat/send"
                async with session.post(url, data=fields, headers=sent) as answer:
                    assert answer.status == 200
                    return await answer.text()

            lines = (await send("hello **you**", Accept="application/x-ndjson")).splitlines()
            events = [json.loads(line) for line in lines]
            assert events[-1]["kind"] == "answer"
            assert "You said: hello <b>you</b>" in events[-1]["html"]
            # A browser without scripts gets the page with the whole answer.
            page = await send("/title <i>Harbour</i>")
            assert "&lt;i&gt;Harbour&lt;/i&gt;" in page
            assert "<i>Harbour" not in page
            again = await send("and again")
            assert "You said: and again" in again
