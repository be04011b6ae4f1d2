"""Compares what recall answers with what the slow reference says; raises AssertionError where the two differ."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from core.remarks import DAMAGED, LOOSE, PARTLY, UNTYPED
from core.search import Findings, Found, Hit, Query
from core.store.recall import MESSAGES_MAX, PAGES_MAX
from tests.doubles.plots import Wish
from tests.doubles.saga import Stage
from tests.doubles.scanner import View

RESPELLED = "was never said"
"""Part of the remark that words were taken for misspelt; others than those asked for may then be found too."""


async def judge_typed(stage: Stage, wish: Wish) -> None:
    """Words and operators: exactly the messages that satisfy them, best first; where there are none, any of the
    words."""
    hits = await judge_often(stage, wish)
    ranks = [hit.rank for hit in hits]
    assert ranks == sorted(ranks, reverse=True)


async def judge_often(stage: Stage, wish: Wish) -> tuple[Hit, ...]:
    """The same, where so much is found that the newest come first, in whatever order; what was found as typed."""
    query, asked = wish.query(stage), wish.typed(stage)
    expected = stage.scanner.typed(wish.alternatives, query)
    if not expected:
        await _judge_loose(stage, wish)
        return ()
    findings = await _flat(stage, asked)
    if findings.note is not None and _is_word_list(wish.words):
        # All of the words first, then what else has some of them.
        assert PARTLY in findings.note or RESPELLED in findings.note
        assert _ids(findings.messages[: len(expected)]) == expected
        assert _ids(findings.messages) <= {one.id for one in stage.scanner.wanted(query)}
        await _judge_pages(stage, query, asked, _ids(findings.messages))
        return findings.messages
    assert findings.note is None
    assert _ids(findings.messages) == expected
    await _judge_pages(stage, query, asked, expected)
    return findings.messages


def _is_word_list(text: str) -> bool:
    words = text.split()
    return len(words) >= 3 and all(word.isalnum() for word in words) and not {"AND", "OR", "NOT"} & {*words}


async def judge_question(stage: Stage, wish: Wish) -> None:
    """A question: every message that has any of its terms, and none that is not near such a one."""
    assert not wish.alternatives
    await _judge_loose(stage, wish)


async def judge_damaged(stage: Stage, wish: Wish) -> None:
    """With a broken index: as ever where it could be mended, be it by the first who asks or the second; else every
    message with any of the words that are not to be left out, also inside of others."""
    query, asked = wish.query(stage), wish.typed(stage)
    expected = stage.scanner.inside(_wanted(wish), query)
    for _ in range(2):
        findings = await _flat(stage, asked)
        if DAMAGED not in (findings.note or ""):
            await (judge_typed if wish.alternatives else judge_question)(stage, wish)
            return
        assert _ids(findings.messages) == expected
    await _judge_pages(stage, query, asked, expected)


async def judge_wordless(stage: Stage, wish: Wish) -> None:
    """Scroll, read, latest and browse, each exactly."""
    query, asked = wish.query(stage), wish.typed(stage)
    is_said_by = query.sender or query.is_own or query.roles != ("user", "assistant")
    is_narrow = bool(query.platforms or query.title or query.after or query.before)
    if query.around is not None:
        await _judge_scroll(stage, query, asked)
    elif is_said_by or (query.session is not None and is_narrow):
        expected = stage.scanner.latest(query)
        findings = await _flat(stage, asked)
        assert [hit.message_id for hit in findings.messages] == expected
        await _judge_pages(stage, query, asked, expected)
    elif query.session is not None:
        await _judge_reading(stage, query, asked)
    else:
        await _judge_browsing(stage, query, asked)


def _wanted(wish: Wish) -> str:
    """The words without those to be left out."""
    terms = [term for one in wish.alternatives for term in one]
    wanted = [term.text for term in terms if not term.is_excluded]
    return " ".join(wanted) if 0 < len(wanted) < len(terms) else wish.words


async def _judge_loose(stage: Stage, wish: Wish) -> None:
    query, asked, words = wish.query(stage), wish.typed(stage), _wanted(wish)
    must, may = stage.scanner.answering(words, query)
    findings = await _flat(stage, asked)
    found, note = _ids(findings.messages), findings.note or ""
    assert must <= found
    if RESPELLED in note:
        assert found <= {one.id for one in stage.scanner.wanted(query)}
    elif must or found != stage.scanner.loose(words, query):
        assert found
        assert found <= may
    if found and wish.alternatives:
        assert note.startswith((LOOSE, UNTYPED))
    elif found:
        assert note == "" or RESPELLED in note
    await _judge_pages(stage, query, asked, found)


async def _judge_pages(stage: Stage, query: Query, asked: Query, expected: Collection[int]) -> None:
    """All pages together: each lineage of what is expected, once, with matches, and what stands around the best."""
    roots = {stage.scanner.root(message_id) for message_id in expected}
    seen: list[int] = []
    for page in range(1, PAGES_MAX + 1):
        findings = await stage.recall.recall(replace(asked, limit=2, page=page))
        for found in findings.sessions:
            seen.append(stage.scanner.places[found.session.id].root_id)
            assert found.matches
            assert _ids(found.matches) <= set(expected)
            assert {stage.scanner.root(hit.message_id) for hit in found.matches} == {seen[-1]}
            _judge_view(found, stage.scanner.around(found.matches[0].message_id, query), query)
        if not findings.has_more:
            break
    assert sorted(seen) == sorted(roots)


async def _judge_scroll(stage: Stage, query: Query, asked: Query) -> None:
    findings = await stage.recall.recall(asked)
    expected = stage.scanner.scrolled(query)
    assert findings.shape == "scroll"
    assert [found.session.id for found in findings.sessions] == ([] if expected is None else [expected[0]])
    for found in findings.sessions:
        assert expected is not None
        _judge_view(found, expected[1], query)


async def _judge_reading(stage: Stage, query: Query, asked: Query) -> None:
    findings = await stage.recall.recall(asked)
    expected = stage.scanner.reading(query)
    assert findings.shape == "read"
    assert [found.session.id for found in findings.sessions] == ([] if expected is None else [query.session])
    for found in findings.sessions:
        assert expected is not None
        _judge_view(found, expected, query)
        assert found.preview == stage.scanner.preview(found.session.id)


async def _judge_browsing(stage: Stage, query: Query, asked: Query) -> None:
    expected = stage.scanner.browsed(query)
    listed: list[int] = []
    for page in range(1, PAGES_MAX + 1):
        findings = await stage.recall.recall(replace(asked, limit=2, page=page))
        assert findings.shape == "browse"
        listed += [found.session.id for found in findings.sessions]
        assert all(found.preview == stage.scanner.preview(found.session.id) for found in findings.sessions)
        if not findings.has_more:
            break
    assert listed == expected
    whole = await stage.recall.recall(replace(asked, limit=100))
    assert [found.session.id for found in whole.sessions] == expected


def _judge_view(found: Found, view: View, query: Query) -> None:
    assert found.session.scope in query.scopes
    assert tuple(item.message_id for item in found.window) == view.window
    assert tuple(item.message_id for item in found.bookend_start) == view.bookend_start
    assert tuple(item.message_id for item in found.bookend_end) == view.bookend_end
    assert (found.messages_before, found.messages_after) == (view.before, view.after)


async def _flat(stage: Stage, asked: Query) -> Findings:
    """The answer with all its messages in one list."""
    findings = await stage.recall.recall(replace(asked, messages=MESSAGES_MAX))
    for hit in findings.messages:
        assert hit.session_id == stage.scanner.told[hit.message_id].session_id
        assert hit.role == stage.scanner.told[hit.message_id].role
    assert len(_ids(findings.messages)) == len(findings.messages)
    return findings


def _ids(hits: Collection[Hit]) -> set[int]:
    return {hit.message_id for hit in hits}
