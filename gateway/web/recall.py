"""The page "Recall": search the history in the query language of /recall."""

from __future__ import annotations

from core.search.query import text_for_next_page
from core.store.query import ResultLimits, SearchQuery
from gateway.web.views import Page, PageRequest, Values, View

MAX_SESSIONS = 10
MAX_QUERY_CHARS = 1_000
MAX_RESULT_CHARS = 20_000


async def load_recall(request: PageRequest) -> Values:
    """Search for the words of the address. Without words, return the latest conversations."""
    text = request.parameter("q").strip()[:MAX_QUERY_CHARS]
    query = SearchQuery(
        text=text,
        scopes=request.scopes,
        asker=request.context.account,
        limits=ResultLimits(sessions=MAX_SESSIONS, budget_chars=MAX_RESULT_CHARS),
    )
    results = await request.services.recall.recall(query)
    next_query = text_for_next_page(text) if results.has_more else ""
    return {"query": text, "results": results, "next_query": next_query}


PAGE = Page(
    "recall",
    views=(View("/recall", "recall.html", load_recall),),
)
