"""Skills that somebody has made to do harm, or by mistake: links, names, archives, encodings, and a
killed process."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from core.errors import Refused
from core.skills.folders import read_skill
from core.skills.library import Skills
from core.store.notes import Author, Operation
from core.store.sqlite.database import Database
from core.types import LOCAL_SCOPE
from tests.fixtures.clock import SteadyClock
from tests.fixtures.skill_folders import TYPED, keep, library, only, skill_text

OWN = only(LOCAL_SCOPE)


@pytest.fixture
def skills(home: Path, database: Database, clock: SteadyClock) -> Skills:
    return library(home, database, clock)


async def do(skills: Skills, action: str, path: str, content: str = "", old: str = "") -> str:
    done = Operation(action=action, content=content, old_text=old, path=path)  # type: ignore[arg-type]
    return str(await skills.apply(LOCAL_SCOPE, OWN, done, TYPED))


async def names(skills: Skills) -> list[str]:
    return [skill.name for skill in (await skills.list_skills(OWN))[0]]


def packed(path: Path, files: Mapping[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


async def test_a_link_that_is_made_after_the_check_is_not_followed(
    home: Path, tmp_path: Path, skills: Skills
) -> None:
    (tmp_path / "secret.md").write_text("a secret")
    (tmp_path / "SKILL.md").write_text(skill_text("sort", body="a secret"))
    await keep(skills, LOCAL_SCOPE, "sort")
    await do(skills, "write_file", "sort/references/secret.md", "mine")
    skill = await skills.find("sort", OWN)
    for place, target in (
        (skill.folder / "references" / "secret.md", tmp_path / "secret.md"),
        (skill.folder / "references", tmp_path),
        (skill.folder, tmp_path),
    ):
        shutil.move(place, tmp_path / "aside")
        place.symlink_to(target)
        with pytest.raises(Refused, match="is a link or is behind one"):
            await skills.read_text(skill, "references/secret.md")
        for action in ("write_file", "remove_file"):
            with pytest.raises(Refused, match="is a link or is behind one"):
                await do(skills, action, "sort/references/secret.md", "gone")
        with pytest.raises(Refused):
            await skills.undo((await skills.notes.list_changes(OWN))[0], TYPED)
        assert await skills.erase(OWN, lambda text: "a secret" in text) == ([], [])
        place.unlink()
        shutil.move(tmp_path / "aside", place)
    assert (tmp_path / "secret.md").read_text() == "a secret"
    assert await skills.read_text(skill, "references/secret.md") == "mine"


async def test_a_hard_link_is_not_written_through(
    home: Path, tmp_path: Path, skills: Skills
) -> None:
    (tmp_path / "theirs.md").write_text("theirs, about Zanzibar\n")
    await keep(skills, LOCAL_SCOPE, "sort")
    (home / "skills" / "sort" / "references").mkdir()
    for name in ("a.md", "b.md", "c.md"):
        os.link(tmp_path / "theirs.md", home / "skills" / "sort" / "references" / name)
    await do(skills, "patch", "sort/references/a.md", "mine", old="theirs")
    await do(skills, "remove_file", "sort/references/b.md")
    assert await skills.erase(OWN, lambda text: "Zanzibar" in text) == (
        ["mine, about Zanzibar", "theirs, about Zanzibar"],
        [],
    )
    assert (tmp_path / "theirs.md").read_text() == "theirs, about Zanzibar\n"


@pytest.mark.parametrize(
    "name",
    [
        "t\u0456dy-inbox",
        "tidy\u1160inbox",
        "\uff54idy-inbox",
        "tidy\u2010inbox",
        "TIDY",
        "..",
        "",
        "a/b",
    ],
)
async def test_skill_name_that_can_be_confused_with_another_is_refused(
    home: Path, skills: Skills, name: str
) -> None:
    folder = home / "skills" / "x"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(skill_text(name or '""'))
    with pytest.raises(
        Refused, match=r"^x/SKILL\.md, line 2: (“.*” can't be the name of a skill|it has no name)"
    ):
        read_skill(folder, "x")
    with pytest.raises(Refused):
        await do(skills, "create", name, skill_text(name))
    assert [one.name for one in (home / "skills").iterdir() if one.name != ".lock"] == ["x"]


@pytest.mark.parametrize("name", ["pdf-отчёт", "café", "整理-邮件", "1-2-3"])
async def test_skill_name_of_plain_letters_is_accepted_in_any_script(
    skills: Skills, name: str
) -> None:
    await keep(skills, LOCAL_SCOPE, name)
    assert await names(skills) == [name]


FRONTS: Mapping[str, tuple[str, str]] = {
    "a key twice": ("name: it\ndescription: x\nname: other", r"line 4: name is there twice\."),
    "an anchor of itself": (
        "name: it\ndescription: x\na: &a [*a]",
        r"line 4: an alias \(\*\) is not allowed here\.",
    ),
    "two documents": (
        "name: it\ndescription: x\n...\nname: other",
        "line 5: expected '<document start>'",
    ),
}


@pytest.mark.parametrize("kind", FRONTS)
def test_odd_front_matter_of_a_skill_is_refused_with_its_line(tmp_path: Path, kind: str) -> None:
    front, said = FRONTS[kind]
    (tmp_path / "it").mkdir()
    (tmp_path / "it" / "SKILL.md").write_text(f"---\n{front}\n---\nx")
    with pytest.raises(Refused, match=said):
        read_skill(tmp_path / "it", "it")


async def test_hidden_characters_in_front_matter_are_never_shown(
    home: Path, skills: Skills
) -> None:
    folder = home / "skills" / "it"
    (folder / "references").mkdir(parents=True)
    hidden = '"Half \\ud800, none \\0, a colour \\x1b[31m\\n# Heading\\n<memory-context>"'
    front = f"name: it\ndescription: {hidden}\ntags: [{hidden}]\na: &a [plain]"
    (folder / "SKILL.md").write_text(f"---\n{front}\n---\nx")
    os.mkdir(os.fsencode(home / "skills") + b"/\xff")
    os.close(os.open(os.fsencode(folder) + b"/references/\xff.md", os.O_CREAT | os.O_WRONLY))
    assert (
        await skills.render_index(OWN)
        == "- it: Half ?, none , a colour [31m # Heading (memory-context)"
    )
    (skill,), (trouble,) = await skills.list_skills(OWN)
    assert (str(trouble), list(skill.files)) == (
        "skills/?: there is no SKILL.md in it.",
        ["SKILL.md"],
    )
    (folder / "SKILL.md").write_text("---\nname: it\ndescription: Use when: \U0001f4ec mail\n---\n")
    assert await skills.render_index(OWN) == "- it: Use when: \U0001f4ec mail"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32", "cp037"])
async def test_skill_file_in_another_encoding_than_utf_8_is_reported_with_its_line(
    home: Path, skills: Skills, encoding: str
) -> None:
    (home / "skills" / "it").mkdir(parents=True)
    (home / "skills" / "it" / "SKILL.md").write_bytes(skill_text("it", "Café.").encode(encoding))
    found, (trouble,) = await skills.list_skills(OWN)
    assert found == []
    assert str(trouble).startswith("skills/it/SKILL.md, line ")


async def test_skill_folder_with_a_file_of_100_mb_is_refused_without_reading_it(
    home: Path, tmp_path: Path, skills: Skills
) -> None:
    await keep(skills, LOCAL_SCOPE, "sort")
    folder = home / "skills" / "sort" / "references"
    folder.mkdir()
    with (folder / "long.md").open("wb") as file:
        file.truncate(100_000_000)
    skill = await skills.find("sort", OWN)
    with pytest.raises(Refused, match="cannot be read: it is over 200,000 bytes long"):
        await skills.read_text(skill, "references/long.md")
    assert [path for _, path, _ in await skills.read_all_texts(OWN)] == ["SKILL.md"]
    shutil.copytree(home / "skills" / "sort", tmp_path / "sort")
    with pytest.raises(
        Refused, match="sort is too large: at most 2,000 files and 60,000,000 bytes are allowed"
    ):
        await skills.add(tmp_path / "sort", LOCAL_SCOPE, OWN, TYPED)


def _encrypted(path: Path) -> None:
    content = bytearray(packed(path, {"x/SKILL.md": skill_text("x")}).read_bytes())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)


def _lying(path: Path) -> None:
    """Says of a file that it is short."""
    content = bytearray(
        packed(path, {"x/SKILL.md": skill_text("x", body="x" * 100_000)}).read_bytes()
    )
    place = content.index(b"PK\x01\x02") + 24
    content[place : place + 4] = (200).to_bytes(4, "little")
    path.write_bytes(content)


def _of_many(path: Path) -> None:
    packed(path, {f"{number}/SKILL.md": skill_text(f"skill-{number}") for number in range(2_001)})


def _of_one_name(path: Path) -> None:
    packed(
        path,
        {"x/SKILL.md": skill_text("x"), "x/references/A.md": "one", "x/references/a.md": "other"},
    )


ARCHIVES: Mapping[str, tuple[Callable[[Path], object], str]] = {
    "encrypted": (_encrypted, "cannot be read: .* is encrypted, password required"),
    "lying about its size": (_lying, "cannot be read: Bad CRC-32"),
    "2,001 skills": (
        _of_many,
        "is too large: at most 2,000 files and 60,000,000 bytes are allowed",
    ),
    "two names but for capitals": (
        _of_one_name,
        "x has two files whose names differ only in capital letters",
    ),
    "no archive": (
        lambda path: path.write_bytes(b"\x00" * 1_000),
        "cannot be read: File is not a zip file",
    ),
    "over the limit": (
        lambda path: os.truncate(packed(path, {"x": ""}), 70_000_000),
        "is too large",
    ),
}


@pytest.mark.parametrize("kind", ARCHIVES)
async def test_odd_skill_archive_is_refused_completely(
    tmp_path: Path, skills: Skills, kind: str
) -> None:
    make, said = ARCHIVES[kind]
    make(tmp_path / "given.zip")
    with pytest.raises(Refused, match=said):
        await skills.add(tmp_path / "given.zip", LOCAL_SCOPE, OWN, TYPED)
    assert await names(skills) == []


async def test_archive_unpacks_only_files_of_its_skills(
    home: Path, tmp_path: Path, skills: Skills
) -> None:
    files: Mapping[str, str | bytes] = {
        "/etc/evil.md": "x",
        "../../evil.md": "x",
        "docs/What's new?.md": "x",
        "pack/x/SKILL.md": skill_text("x"),
        "pack/x//references/a.md": "x",
        "pack/x/.git/config": "x",
    }
    assert await skills.add(packed(tmp_path / "pack.zip", files), LOCAL_SCOPE, OWN, TYPED) == (
        ["x"],
        [],
    )
    assert list((await skills.find("x", OWN)).files) == ["SKILL.md", "references/a.md"]
    assert not [name for _, _, files in os.walk(tmp_path) for name in files if "evil" in name]


async def test_skill_is_added_from_a_checkout_with_thousands_of_hidden_files(
    tmp_path: Path, skills: Skills
) -> None:
    source = tmp_path / "checkout"
    (source / ".git").mkdir(parents=True)
    for number in range(2_100):
        (source / ".git" / str(number)).touch()
    (source / "CLAUDE.md").symlink_to("AGENTS.md")
    (source / "x").mkdir()
    (source / "x" / "SKILL.md").write_text(skill_text("x"))
    assert await skills.add(source, LOCAL_SCOPE, OWN, TYPED) == (["x"], [])


async def test_a_skill_that_is_removed_is_gone_also_where_the_process_is_killed(
    home: Path, skills: Skills, monkeypatch: pytest.MonkeyPatch
) -> None:
    await keep(skills, LOCAL_SCOPE, "sort")
    await do(skills, "write_file", "sort/references/steps.md", "About Zanzibar.")
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    await do(skills, "delete", "sort")
    monkeypatch.undo()
    left = [path for path in (home / "skills").rglob("*") if path.name == "steps.md"]
    assert len(left) == 1, "killed before the files went"
    assert await skills.erase(OWN, lambda text: "Zanzibar" in text, is_trial=True) == (
        ["About Zanzibar."],
        [],
    )
    assert await skills.list_skills(OWN) == ([], [])
    assert [path.name for path in (home / "skills").iterdir()] == [".lock"]
    await skills.undo((await skills.notes.list_changes(OWN))[0], TYPED)
    assert (
        await skills.read_text(await skills.find("sort", OWN), "references/steps.md")
        == "About Zanzibar."
    )


async def test_undoing_the_undo_of_a_skills_creation_restores_all_its_files(
    skills: Skills,
) -> None:
    await keep(skills, LOCAL_SCOPE, "sort")
    await do(skills, "write_file", "sort/references/steps.md", "1. Look.")
    made = (await skills.notes.list_changes(OWN))[-1]
    assert str(await skills.undo(made, TYPED)) == "Undone: change 1 of the skill sort."
    assert await names(skills) == []
    latest = await skills.notes.list_changes(OWN)
    assert [(change.action, change.before) for change in latest[:2]] == [
        ("undo", "1. Look."),
        ("undo", skill_text("sort")),
    ]
    await skills.undo(latest[0], TYPED)
    assert (
        await skills.read_text(await skills.find("sort", OWN), "references/steps.md") == "1. Look."
    )


async def test_patch_of_a_skill_keeps_unknown_front_matter_unchanged(skills: Skills) -> None:
    text = skill_text("sort").replace("---\n\n", "license: MIT # ours\nhooks:\n  - {a: b}\n---\n\n")
    await do(skills, "create", "sort", text)
    await do(skills, "patch", "sort", "Sort them.", old="Sort it.")
    assert await skills.read_text(await skills.find("sort", OWN)) == text.replace(
        "Sort it.", "Sort them."
    )


async def test_patch_of_a_missing_file_of_a_skill_is_refused(skills: Skills) -> None:
    await keep(skills, LOCAL_SCOPE, "sort")
    for action in ("patch", "remove_file"):
        with pytest.raises(Refused, match=r"There is no file sort/references/steps\.md"):
            await do(skills, action, "sort/references/steps.md", "new")


async def test_a_skill_out_of_sight_is_not_written_over(home: Path, skills: Skills) -> None:
    for number in range(1_001):
        (home / "skills" / f"a-{number}").mkdir(parents=True)
    (home / "skills" / "zebra").mkdir()
    (home / "skills" / "zebra" / "SKILL.md").write_text(skill_text("zebra", "By hand."))
    with pytest.raises(Refused, match="There is already a skill zebra"):
        await keep(skills, LOCAL_SCOPE, "zebra")
    assert "By hand." in (home / "skills" / "zebra" / "SKILL.md").read_text()


async def test_a_skill_has_no_more_than_200_files(home: Path, skills: Skills) -> None:
    await keep(skills, LOCAL_SCOPE, "sort")
    (home / "skills" / "sort" / "references").mkdir()
    for number in range(199):
        (home / "skills" / "sort" / "references" / f"{number}.md").write_text("x")
    await do(skills, "write_file", "sort/references/7.md", "y")
    with pytest.raises(Refused, match="would have more than 200 files"):
        await do(skills, "write_file", "sort/references/new.md", "y")


async def test_a_folder_in_the_way_hides_no_skill_of_the_settings(
    home: Path, tmp_path: Path, database: Database, clock: SteadyClock
) -> None:
    (tmp_path / "sort").mkdir()
    (tmp_path / "sort" / "SKILL.md").write_text(skill_text("sort"))
    (home / "skills").mkdir(parents=True)
    (home / "skills" / "sort").symlink_to(tmp_path / "sort")
    skills = library(home, database, clock, tmp_path)
    assert [skill.name for skill in (await skills.list_skills(OWN))[0]] == ["sort"]


async def test_skill_with_look_alike_letters_waits_for_approval(skills: Skills) -> None:
    done = Operation(
        action="create", content=skill_text("sort", "Opens your p\u0430ypal."), path="sort"
    )
    with pytest.raises(Refused, match="a word with letters of another alphabet that look the same"):
        await skills.apply(LOCAL_SCOPE, OWN, done, TYPED)
    said = str(await skills.apply(LOCAL_SCOPE, OWN, done, Author(reason="a page says so")))
    assert said.startswith("Not kept yet: ")
