"""Fifty folders shaped as the published format has them: thirty that are skills, twenty that go
wrong as they do."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from core.errors import Refused
from core.skills.folders import FILE_BYTES, read_skill
from core.skills.format import SKILL_FILE, Skill

BODY = "\n# Steps\n\n1. Look.\n2. Do it.\n"


def front(*lines: str, name: str = "tidy-inbox", body: str = BODY) -> str:
    about = (
        []
        if any(line.startswith("description:") for line in lines)
        else ["description: Sorts mail."]
    )
    return "\n".join(["---", f"name: {name}", *about, *lines, "---", body])


GOOD: Mapping[str, tuple[str, Callable[[Skill], bool]]] = {
    "plain": (front(), lambda one: (one.name, one.description) == ("tidy-inbox", "Sorts mail.")),
    "license": (front("license: Apache-2.0"), lambda one: one.front["license"] == "Apache-2.0"),
    "compatibility": (
        front("compatibility: Needs git"),
        lambda one: one.front["compatibility"] == "Needs git",
    ),
    "allowed tools": (
        front("allowed-tools: Bash(git:*) Read"),
        lambda one: one.front["allowed-tools"] == "Bash(git:*) Read",
    ),
    "tools, commas": (
        front("allowed-tools: Read, Grep"),
        lambda one: one.front["allowed-tools"] == "Read, Grep",
    ),
    "tools, a list": (
        front("allowed-tools:", "  - Read", "  - Grep"),
        lambda one: one.front["allowed-tools"] == ["Read", "Grep"],
    ),
    "metadata": (
        front("metadata:", "  author: ana"),
        lambda one: one.front["metadata"] == {"author": "ana"},
    ),
    "version inside": (
        front("metadata:", '  version: "1.0"'),
        lambda one: one.front_value("version") == "1.0",
    ),
    "version outside": (front("version: 1.10"), lambda one: one.front_value("version") == "1.10"),
    "tags inside": (
        front("metadata:", "  tags: [mail, order]"),
        lambda one: one.front_value("tags") == "mail, order",
    ),
    "tags outside": (
        front("tags: mail, order"),
        lambda one: one.front_value("tags") == "mail, order",
    ),
    "of a program's own": (
        front("metadata:", "  other:", "    tags: [mail]"),
        lambda one: one.front_value("tags") == "mail",
    ),
    "platforms": (
        front("platforms: [macos, linux]"),
        lambda one: one.front_value("platforms") == "macos, linux",
    ),
    "category": (
        front("metadata:", "  category: mail"),
        lambda one: one.front_value("category") == "mail",
    ),
    "unknown keys": (
        front("model: big", "hooks: {a: [b]}"),
        lambda one: (one.front["model"], one.front["hooks"]) == ("big", {"a": ["b"]}),
    ),
    "quoted": (
        front('description: "Sorts: mail, #1"'),
        lambda one: one.description == "Sorts: mail, #1",
    ),
    "folded": (
        front("description: >-", "  Sorts", "  mail."),
        lambda one: one.description == "Sorts mail.",
    ),
    "literal": (
        front("description: |", "  Sorts", "  mail."),
        lambda one: one.description == "Sorts mail.",
    ),
    "over two lines": (
        front("description: Sorts", "  mail."),
        lambda one: one.description == "Sorts mail.",
    ),
    "a colon, unquoted": (
        front("description: Use when: mail piles up"),
        lambda one: one.description == "Use when: mail piles up",
    ),
    "words that YAML takes for others": (
        front("license: no", "compatibility: 2026-13-45"),
        lambda one: (one.front["license"], one.front["compatibility"]) == ("no", "2026-13-45"),
    ),
    "a comment": (
        front("# by Ana", "license: MIT # really"),
        lambda one: one.front["license"] == "MIT",
    ),
    "byte order mark": ("\ufeff" + front(), lambda one: one.name == "tidy-inbox"),
    "lines of Windows": (
        front().replace("\n", "\r\n"),
        lambda one: one.description == "Sorts mail.",
    ),
    "no body": (front(body=""), lambda one: one.name == "tidy-inbox"),
    "dashes in the body": (
        front(body="\nabove\n\n---\n\nbelow\n"),
        lambda one: one.name == "tidy-inbox",
    ),
    "blanks behind the dashes": (
        front().replace("---\n", "--- \n"),
        lambda one: one.name == "tidy-inbox",
    ),
    "a tag, which is nothing to us": (
        front("license: !!python/object/apply:os.system [ls]", "version: !!int 1.10"),
        lambda one: (one.front["license"], one.front_value("version")) == (["ls"], "1.10"),
    ),
    "another script": (front(name="整理-邮件"), lambda one: one.name == "整理-邮件"),
    "the longest": (
        front(f"description: {'d' * 1024}", name="n" * 64),
        lambda one: len(one.description) == 1024,
    ),
}
BAD: Mapping[str, tuple[str | bytes, str]] = {
    "empty": (
        "",
        "line 1: the first of the two lines of three dashes around the front matter is missing",
    ),
    "no front matter": ("# Tidy\n\nLook.\n", "line 1: the first of .* is missing"),
    "a line above it": ("\n" + front(), "line 1: the first of .* is missing"),
    "never ended": (front().replace("\n---\n", "\n"), "line 1: the second of .* is missing"),
    "no name": (front().replace("name: tidy-inbox\n", ""), "line 1: it has no name"),
    "no description": (
        front().replace("description: Sorts mail.\n", ""),
        "line 1: it has no description",
    ),
    "empty description": (front("description:"), "line 3: it has no description"),
    "a list as description": (front("description: [a, b]"), "line 3: it has no description"),
    "description too long": (
        front(f"description: {'d' * 1025}"),
        "line 3: its description has 1,025 characters",
    ),
    "name too long": (front(name="n" * 65), "line 2: .* can't be the name of a skill"),
    "capitals": (
        front(name="Tidy-Inbox"),
        "line 2: “Tidy-Inbox” can't be the name of a skill: use small letters",
    ),
    "blanks in the name": (front(name="tidy inbox"), "line 2: “tidy inbox” can't be the name"),
    "hyphens at the end": (front(name="tidy--inbox-"), "line 2: .* single hyphens"),
    "another folder": (
        front(),
        "line 2: its name is tidy-inbox, but its folder is other: both must be the same",
    ),
    "tabs": (front("metadata:", "\tversion: 1"), "line 5: found character '\\\\t'"),
    "a quote never closed": (front('license: "MIT'), r"line \d+: found unexpected"),
    "no mapping": ("---\njust words\n---\n", "line 2: the front matter has no lines such as"),
    "UTF-16": (front().encode("utf-16"), "line 1: it is not UTF-8 text. Save it as UTF-8"),
    "Latin-1": (front("description: Sorts café").encode("latin-1"), "line 3: it is not UTF-8 text"),
    "a control character": (
        front("license: M\x07IT"),
        "line 4: it has an invisible character",
    ),
}


def written(folder: Path, content: str | bytes) -> Path:
    folder.mkdir(parents=True)
    (folder / SKILL_FILE).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def test_samples_of_skill_folders_are_thirty_good_and_twenty_bad() -> None:
    assert (len(GOOD), len(BAD)) == (30, 20)


@pytest.mark.parametrize("shape", GOOD)
def test_a_skill_of_the_format_is_read(tmp_path: Path, shape: str) -> None:
    content, is_right = GOOD[shape]
    name = (
        next(line for line in content.splitlines() if "name: " in line)
        .removeprefix("name: ")
        .strip()
    )
    skill = read_skill(written(tmp_path / name, content), "skills/it")
    assert is_right(skill), skill


@pytest.mark.parametrize("shape", BAD)
def test_invalid_skill_file_is_refused_with_its_path_and_line(tmp_path: Path, shape: str) -> None:
    content, said = BAD[shape]
    folder = "other" if shape == "another folder" else "tidy-inbox"
    with pytest.raises(Refused, match=f"^skills/it/SKILL.md, {said}"):
        read_skill(written(tmp_path / folder, content), "skills/it")


BOMBS = {
    "aliases": front("a: &a [x, x]", "b: &b [*a, *a]", "c: &c [*b, *b]", "d: [*c, *c]"),
    "depth": front("a: " + "[" * 7_000 + "]" * 7_000),
    "long": front("a: " + "x" * 20_000),
    "a key": front("? [a, b]", ": x"),
    "a merge": front("<<: *a"),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_front_matter_that_would_grow_is_a_sentence_at_once(tmp_path: Path, bomb: str) -> None:
    folder = written(tmp_path / "tidy-inbox", BOMBS[bomb])
    with pytest.raises(Refused, match=r"^it/SKILL.md, line \d+: .*\.$") as refusal:
        read_skill(folder, "it")
    assert len(str(refusal.value)) < 200


def test_a_file_of_100_mb_is_not_read(tmp_path: Path) -> None:
    folder = written(tmp_path / "tidy-inbox", front())
    with (folder / SKILL_FILE).open("r+b") as file:
        file.truncate(100_000_000)
    with pytest.raises(Refused, match=f"cannot be read: it is over {FILE_BYTES:,} bytes long"):
        read_skill(folder, "it")


def test_skill_file_that_is_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "tidy-inbox").mkdir()
    os.mkfifo(tmp_path / "tidy-inbox" / SKILL_FILE)
    with pytest.raises(Refused, match=r"SKILL\.md cannot be read: it isn't a regular file"):
        read_skill(tmp_path / "tidy-inbox", "it")
