"""The rules of robots.txt, as RFC 9309 defines them."""

from __future__ import annotations

import pytest

from core.tools.robots import parse_robots


@pytest.mark.parametrize(
    ("text", "path", "is_allowed"),
    [
        ("User-agent: *\nDisallow: /*.pdf$", "/a/b.pdf", False),
        ("User-agent: *\nDisallow: /*.pdf$", "/a/b.pdf?x", True),
        ("User-agent: *\nDisallow: /private/*", "/private/x", False),
        ("User-agent: *\nDisallow: /a*b*c", "/a1b2", True),
        ("\ufeffUser-agent: *\r\nDisallow: /private", "/private", False),
        ("User-agent: *\nDisallow: /x\n\nUser-agent: *\nDisallow: /private", "/private", False),
        ("User-agent: *\nAllow: /\nDisallow: /private", "/private", False),
        ("User-agent: *\nDisallow: /\nAllow: /public", "/public/x", True),
        ("User-agent: *\nDisallow: /page\nAllow: /page", "/page", True),
        ("User-agent: other\nuser-AGENT: mneme/2\nDisallow: /x # no", "/x", False),
        ("User-agent: Mneme\nDisallow:\n\nUser-agent: *\nDisallow: /", "/x", True),
        ("User-agent: *\nDisallow: /\n\nUser-agent: Mnemes\nAllow: /", "/x", False),
        ("User-agent: *\nDisallow: /é", "/%c3%a9t%C3%A9", False),
        ("User-agent: *\nDisallow: /%7Ejoe", "/~joe/", False),
        ("User-agent: *\nDisallow: /a%2Fb", "/a/b", True),
        ("User-agent: *\n\nSitemap: /s\nDisallow: /x", "/x", False),
        ("User-agent: *\nDisallow: /", "/robots.txt", True),
        ("Disallow: /", "/x", True),
    ],
)
def test_longest_rule_of_the_groups_for_mneme_decides(
    text: str, path: str, *, is_allowed: bool
) -> None:
    assert parse_robots(text, "Mneme").allows(path) is is_allowed
