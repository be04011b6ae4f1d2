"""Downloads of web pages: redirects, limits, robots.txt and errors, against servers on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from core.errors import Refused, ToolError
from core.tools.web_client import MAX_PAGE_BYTES, MAX_REDIRECTS
from tests.fixtures.web_pages import PageServer, loopback_client, serve_pages


@pytest.fixture
async def server() -> AsyncIterator[PageServer]:
    async with serve_pages() as pages:
        yield pages


async def test_page_is_downloaded_with_its_type_under_the_name_of_its_host(
    server: PageServer,
) -> None:
    server.add("/ferry", "<p>10:40</p>", "text/html; charset=utf-8")
    download = await loopback_client().download(server.url("/ferry?day=sunday#top"))
    assert (download.body, download.content_type) == (b"<p>10:40</p>", "text/html")
    assert download.url == server.url("/ferry?day=sunday")
    assert server.requests == [(f"pages.example:{server.port}", "/ferry?day=sunday")]


async def test_redirects_are_followed_and_each_address_is_checked(server: PageServer) -> None:
    server.redirect("/old", "/new")
    server.redirect("/new", server.url("/newest", "other.example"))
    server.add("/newest", "here")
    server.redirect("/trap", f"http://inside:{server.port}/admin")
    client = loopback_client()
    assert (await client.download(server.url("/old"))).url.endswith("/newest")
    with pytest.raises(Refused, match="local network"):
        await client.download(server.url("/trap"))


async def test_endless_redirects_end_with_a_sentence(server: PageServer) -> None:
    server.redirect("/loop", "/loop")
    with pytest.raises(ToolError, match=f"more than {MAX_REDIRECTS}"):
        await loopback_client().download(server.url("/loop"))
    assert len(server.requests) == MAX_REDIRECTS + 1


async def test_page_that_robots_txt_forbids_is_not_read(server: PageServer) -> None:
    server.add("/robots.txt", "User-agent: *\nDisallow: /private/", "text/plain")
    server.add("/private/a", "a")
    server.add("/open", "b")
    client = loopback_client()
    with pytest.raises(Refused, match="doesn't allow programs"):
        await client.download(server.url("/private/a"))
    assert (await client.download(server.url("/open"))).body == b"b"
    assert [path for _, path in server.requests] == ["/open"]


async def test_page_of_a_host_whose_robots_txt_fails_is_not_read(server: PageServer) -> None:
    server.add("/robots.txt", "", status=503)
    server.add("/open", "b")
    with pytest.raises(Refused, match="doesn't allow programs"):
        await loopback_client().download(server.url("/open"))


async def test_long_page_is_cut_and_marked(server: PageServer) -> None:
    server.add("/long", b"x" * (MAX_PAGE_BYTES + 1), "text/plain")
    download = await loopback_client().download(server.url("/long"))
    assert (len(download.body), download.is_cut) == (MAX_PAGE_BYTES, True)


async def test_compressed_page_is_refused_because_it_could_be_a_bomb(server: PageServer) -> None:
    server.add("/bomb", b"\x1f\x8b", headers={"Content-Encoding": "gzip"})
    with pytest.raises(ToolError, match="compressed"):
        await loopback_client().download(server.url("/bomb"))


@pytest.mark.parametrize("content_type", ["image/png", "video/mp4", "application/x-msdownload"])
async def test_download_of_a_type_without_text_is_refused(
    server: PageServer, content_type: str
) -> None:
    server.add("/file", b"\0", content_type)
    with pytest.raises(Refused, match=f"type {content_type}"):
        await loopback_client().download(server.url("/file"))


async def test_web_download_errors_and_timeouts_are_reported_with_sentences(
    server: PageServer,
) -> None:
    client = loopback_client()
    with pytest.raises(ToolError, match="error 404"):
        await client.download(server.url("/missing"))
    with pytest.raises(ToolError, match="can't be reached"):
        await client.download("http://pages.example:1024/")
    with pytest.raises(Refused, match=r"There is no host nowhere\.example"):
        await client.download("http://nowhere.example/")


async def test_server_that_never_answers_costs_the_timeout_only(server: PageServer) -> None:
    from asyncio import Event

    from aiohttp import web

    async def hang(request: web.Request) -> web.StreamResponse:
        await Event().wait()
        raise AssertionError

    server.pages["/hang"] = hang
    with pytest.raises(ToolError, match=r"within 0\.3 s"):
        await loopback_client(timeout_s=0.3).download(server.url("/hang"))
