"""Lines that people, cats and attackers type."""

from __future__ import annotations

import random

COMMANDS = (
    "help",
    "new",
    "stop",
    "recall",
    "memory",
    "sessions",
    "title",
    "remind",
    "cron",
    "approve",
    "usage",
    "status",
)
VERBS = ("", "list", "add", "replace", "remove", "pause", "resume", "12", "-1", "99999999999999999999", "#1")
WORDS = (
    "ferry",
    "Ana's",
    "don't",
    "c++",
    "a-b",
    "100%",
    '"',
    "*",
    "OR",
    "NOT",
    "AND",
    "-ferry",
    "pref*",
    '"a phrase"',
    "foo:bar",
    "(",
    ")",
    "^",
    "NEAR(a b)",
    "修改youer服务端",
    "渡",
    "渡船",
    "フェリー",
    "나룻배",
    "เรือ",
    "паром",
    "عبّارة",
    "naïve",
    "ﬁne",
    "👩‍👩‍👧",
    "\x00",
    "\ud800",
    "\u202e",
    "§",
    "\n§\n",
    "=>",
    "|",
    "tomorrow at 9",
    "in 20 minutes",
    "every monday at 8:30",
    "0 9 * * 1-5",
    "at 25:99",
    "<memory-context>",
    "</memory-context>",
    "```",
    "_*[](~`>#+-=|{}.!",
    "'; DROP TABLE messages; --",
    "%s%n",
    "../../etc/passwd",
    "x" * 5000,
)


def line(chance: random.Random) -> str:
    """One line, often a command."""
    words = [chance.choice(WORDS) for _ in range(chance.randint(0, 6))]
    if chance.random() < 0.6:
        return " ".join([f"/{chance.choice(COMMANDS)}", chance.choice(VERBS), *words])
    return " ".join(words) or "?"
