"""Clients of search engines: a SearXNG server, and the Brave Search API.

* SearXNG: ``GET /search?q=…&format=json`` (https://docs.searxng.org/dev/search_api.html). The
  server must allow the format `json` in its settings.
* Brave: ``GET /res/v1/web/search?q=…&count=…`` with the header ``X-Subscription-Token``
  (https://api-dashboard.search.brave.com/app/documentation/web-search/query).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any, Protocol

from core.errors import DeliveryError, Refused, ToolError
from core.memory.http import JsonService, text_of

BRAVE_URL = "https://api.search.brave.com"
MAX_RESULTS = 8
MAX_EXTRACT_CHARS = 400
_SEARXNG = "The SearXNG server"
_BRAVE = "Brave Search"
_ADVICE = {
    _SEARXNG: "Its settings.yml must list json under search: formats.",
    _BRAVE: "Check the key of Brave Search in secrets.env.",
}
_TAG = re.compile(r"</?[a-z][^<>]{0,100}>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One page that a search engine found."""

    title: str
    url: str
    extract: str
    # As the engine writes it, such as "2026-11-20" or "3 days ago"; empty if unknown.
    date: str


class SearchEngine(Protocol):
    """A search engine of the web."""

    async def search(self, query: str) -> list[SearchResult]:
        """Return up to `MAX_RESULTS` pages, best first. Raises ToolError if the search fails."""

    async def close(self) -> None:
        """Close the connection."""


class SearxngEngine:
    """A SearXNG server, usually one of the owner."""

    def __init__(self, url: str) -> None:
        self._service = JsonService("search", url)

    async def search(self, query: str) -> list[SearchResult]:
        params = {"q": query, "format": "json"}
        answer = await _call(self._service, "/search", params, _SEARXNG)
        return _read_results(_get(answer, "results"), "content", "publishedDate")

    async def close(self) -> None:
        await self._service.close()


class BraveEngine:
    """The Brave Search API."""

    def __init__(self, key: str, url: str = BRAVE_URL) -> None:
        self._service = JsonService("search", url, {"X-Subscription-Token": key})

    async def search(self, query: str) -> list[SearchResult]:
        params: dict[str, str | int] = {"q": query, "count": MAX_RESULTS}
        answer = await _call(self._service, "/res/v1/web/search", params, _BRAVE)
        results = _get(_get(answer, "web"), "results")
        return _read_results(results, "description", "page_age")

    async def close(self) -> None:
        await self._service.close()


async def _call(service: JsonService, path: str, params: Mapping[str, str | int], name: str) -> Any:
    """Call a search engine. Raises ToolError with a sentence for the person if that fails."""
    try:
        return await service.call("GET", path, params=params)
    except DeliveryError as error:
        if not error.is_permanent:
            raise ToolError(f"{name} can't be reached right now. Try again later.") from error
        raise _refuse(name) from error
    except Refused as error:
        raise _refuse(name) from error


def _refuse(name: str) -> ToolError:
    return ToolError(f"{name} refuses searches. {_ADVICE[name]}")


def _read_results(entries: object, extract_key: str, date_key: str) -> list[SearchResult]:
    """Read the results of an engine. Results without an address are left out."""
    results = []
    for entry in entries if isinstance(entries, list) else []:
        url = text_of(entry, "url")
        if url.startswith(("http://", "https://")):
            extract = _clean(text_of(entry, extract_key))[:MAX_EXTRACT_CHARS]
            title = _clean(text_of(entry, "title")) or url
            results.append(SearchResult(title, url, extract, text_of(entry, date_key)[:40]))
    return results[:MAX_RESULTS]


def _get(answer: object, name: str) -> object:
    return answer.get(name) if isinstance(answer, Mapping) else None


def _clean(text: str) -> str:
    """Return a text without tags and entities of HTML, on one line."""
    return " ".join(unescape(_TAG.sub("", text)).split())
