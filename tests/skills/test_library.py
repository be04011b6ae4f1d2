"""Skills on disk: who sees which, what a change makes of one, what is confined, what fits into a
prompt."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from core.errors import Refused, StaleReadError
from core.skills.library import DESCRIPTION_LENGTHS, Skills
from core.store.erasure import epoch
from core.store.notes import Author, Notes, Operation
from core.store.sqlite.database import Database
from core.store.visibility import scope_parameter
from core.types import LOCAL_SCOPE, ErasureEpoch, Scope
from tests.fixtures.clock import SteadyClock
from tests.fixtures.skill_folders import TYPED, keep, library, only, skill_text

ANA = Scope.account("telegram", "1")
ROOM = Scope.group("telegram", "-5")
OWNERS = frozenset((LOCAL_SCOPE, Scope.account("telegram", "42")))


@pytest.fixture
def skills(home: Path, database: Database, clock: SteadyClock) -> Skills:
    return library(home, database, clock)


def lay(folder: Path, name: str, description: str = "Sorts the mail.", **files: str) -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(skill_text(name, description))
    for path, text in files.items():
        file = folder / name / path.replace("__", "/")
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return folder / name


async def names(skills: Skills, scopes: frozenset[Scope]) -> list[str]:
    return [skill.name for skill in (await skills.list_skills(scopes))[0]]


async def test_owner_and_each_scope_have_separate_skill_collections(
    home: Path, skills: Skills
) -> None:
    await skills.apply(
        Scope.account("telegram", "42"),
        OWNERS,
        Operation(action="create", content=skill_text("owners"), path="owners"),
        TYPED,
    )
    await keep(skills, ANA, "anas")
    await keep(skills, ROOM, "rooms")
    assert (home / "skills" / "owners" / "SKILL.md").is_file()
    assert (home / "memories" / "account%3Atelegram%3A1" / "skills" / "anas" / "SKILL.md").is_file()
    seen = {scope.key: await names(skills, only(scope)) for scope in (LOCAL_SCOPE, ANA, ROOM)}
    assert seen == {LOCAL_SCOPE.key: ["owners"], ANA.key: ["anas"], ROOM.key: ["rooms"]}
    assert await names(skills, OWNERS) == ["owners"]
    with pytest.raises(Refused, match="There is no skill “owners” here"):
        await skills.find("owners", only(ANA))


async def test_folders_of_the_settings_are_the_owners_and_only_read(
    home: Path, tmp_path: Path, database: Database, clock: SteadyClock
) -> None:
    lay(tmp_path / "elsewhere", "shared")
    skills = library(home, database, clock, tmp_path / "elsewhere")
    assert await names(skills, OWNERS) == ["shared"]
    assert await names(skills, only(ANA)) == []
    with pytest.raises(Refused, match="is in a folder that I only read"):
        await skills.apply(LOCAL_SCOPE, OWNERS, Operation(action="delete", path="shared"), TYPED)
    await keep(skills, LOCAL_SCOPE, "own")


async def test_category_of_a_skill_is_its_parent_folder(home: Path, skills: Skills) -> None:
    lay(home / "skills" / "mail", "sort")
    lay(home / "skills", "alone", scripts__run_py="print(1)")
    assert await skills.render_index(only(LOCAL_SCOPE)) == (
        "- alone: Sorts the mail. (needs a shell, which is not here)\n### mail\n- sort: Sorts the mail."
    )
    assert (await skills.find("sort", only(LOCAL_SCOPE))).category == "mail"


async def test_folder_that_is_not_a_skill_is_reported_and_no_link_is_followed(
    home: Path, tmp_path: Path, skills: Skills
) -> None:
    lay(home / "skills", "good")
    (home / "skills" / "empty").mkdir()
    lay(home / "skills", "broken").joinpath("SKILL.md").write_text("no front matter")
    lay(tmp_path / "elsewhere", "linked")
    (home / "skills" / "linked").symlink_to(tmp_path / "elsewhere" / "linked")
    (home / "skills" / "inner").mkdir()
    (home / "skills" / "inner" / "SKILL.md").symlink_to(
        tmp_path / "elsewhere" / "linked" / "SKILL.md"
    )
    found, troubles = await skills.list_skills(only(LOCAL_SCOPE))
    assert [skill.name for skill in found] == ["good"]
    assert [str(trouble).partition(":")[0].partition(" is ")[0] for trouble in troubles] == [
        "skills/broken/SKILL.md, line 1",
        "skills/empty",
        "skills/inner/SKILL.md",
        "skills/linked/SKILL.md",
    ]
    with pytest.raises(Refused, match="is a link or is behind one"):
        await skills.find("linked", only(LOCAL_SCOPE))


@pytest.mark.parametrize(
    "path",
    [
        "../good/SKILL.md",
        "/etc/passwd",
        "references/../../x.md",
        "a\\b",
        ".hidden",
        "references//x",
        "",
        "x\0y",
    ],
)
async def test_skill_file_path_outside_its_folder_is_refused(
    home: Path, skills: Skills, path: str
) -> None:
    lay(home / "skills", "good")
    skill = await skills.find("good", only(LOCAL_SCOPE))
    if path:
        with pytest.raises(Refused, match="can't be a path in a skill"):
            await skills.read_text(skill, path)
    for action in ("write_file", "patch", "remove_file", "create", "delete"):
        done = Operation(action=action, content="x", path=f"good/{path}" if path else "../good")
        with pytest.raises(Refused):
            await skills.apply(LOCAL_SCOPE, only(LOCAL_SCOPE), done, TYPED)
    assert [one.name for one in (home / "skills").iterdir() if one.name != ".lock"] == ["good"]


async def test_a_link_in_a_skill_is_not_followed(
    home: Path, tmp_path: Path, skills: Skills
) -> None:
    (tmp_path / "secret.md").write_text("a secret")
    folder = lay(home / "skills", "good")
    (folder / "references").symlink_to(tmp_path)
    skill = await skills.find("good", only(LOCAL_SCOPE))
    assert list(skill.files) == ["SKILL.md"]
    with pytest.raises(Refused, match="is a link or is behind one"):
        await skills.read_text(skill, "references/secret.md")
    done = Operation(action="write_file", content="gone", path="good/references/secret.md")
    with pytest.raises(Refused, match="is a link"):
        await skills.apply(LOCAL_SCOPE, only(LOCAL_SCOPE), done, TYPED)
    assert (tmp_path / "secret.md").read_text() == "a secret"


async def test_skill_change_is_versioned_and_undone_unless_changed_since(
    home: Path, database: Database, skills: Skills, clock: SteadyClock
) -> None:
    folder, notes = home / "skills" / "sort", Notes(database)

    async def do(action: str, content: str = "", path: str = "sort", old: str = "") -> str:
        done = Operation(action=action, content=content, old_text=old, path=path)  # type: ignore[arg-type]
        return str(await skills.apply(LOCAL_SCOPE, only(LOCAL_SCOPE), done, TYPED))

    async def undo(number: int) -> str:
        change = await notes.find(only(LOCAL_SCOPE), number)
        assert change is not None
        return str(await skills.undo(change, TYPED))

    assert (
        await do("create", skill_text("sort"))
        == "The skill sort is kept. `/memory undo 1` takes that back."
    )
    with pytest.raises(Refused, match="There is already a skill sort"):
        await do("create", skill_text("sort"))
    await do("patch", "Sort them by sender.", old="Sort it.")
    with pytest.raises(Refused, match=r"The old text is in sort/SKILL\.md 0 times"):
        await do("patch", "x", old="Sort it.")
    with pytest.raises(Refused, match="2 times"):
        await do("patch", "x", old="Sort")
    with pytest.raises(Refused, match=r"\d+ times"):
        await do("patch", "x")
    with pytest.raises(Refused, match="would have 0 characters"):
        await do("edit")
    with pytest.raises(
        Refused,
        match="line 1: the first of the two lines of three dashes around the front matter is missing",
    ):
        await do("edit", "no front matter any more")
    with pytest.raises(Refused, match="over its limit of 50,000"):
        await do("edit", skill_text("sort", body="x" * 60_000))
    await do("write_file", "1. Look.\n", "sort/references/steps.md")
    with pytest.raises(
        Refused, match="the files of a skill are in references/, templates/, scripts/, assets/"
    ):
        await do("write_file", "x", "sort/steps.md")
    with pytest.raises(Refused, match="which edit and patch change"):
        await do("remove_file")
    with pytest.raises(Refused, match="There is no file sort/references/other"):
        await do("remove_file", "", "sort/references/other.md")
    assert (folder / "SKILL.md").read_text().endswith("Look at it.\n\nSort them by sender.\n")
    assert stat.S_IMODE((folder / "references").stat().st_mode) == 0o700
    await do("remove_file", "", "sort/references/steps.md")
    assert not (folder / "references").exists()
    assert await do("delete") == "The skill sort is removed. `/memory undo 5` takes that back."
    assert not folder.exists()
    history = await notes.list_changes(only(LOCAL_SCOPE))
    assert [change.action for change in history] == [
        "delete",
        "remove_file",
        "write_file",
        "patch",
        "create",
    ]
    assert await undo(5) == "Undone: change 5 of the skill sort."
    assert await undo(4) == "Undone: change 4 of the skill sort."
    assert (folder / "references" / "steps.md").read_text() == "1. Look.\n"
    await undo(2)
    assert (folder / "SKILL.md").read_text() == skill_text("sort")
    with pytest.raises(Refused, match="was changed since then, so change 2 cannot be undone"):
        await undo(2)


async def test_undo_restores_a_removed_skill_with_its_files_into_its_category_folder(
    home: Path, database: Database, skills: Skills
) -> None:
    folder = lay(home / "skills" / "work", "sort", references__steps="1. Look.")
    (folder / "logo.png").write_bytes(b"\x89PNG\0")
    await skills.apply(
        LOCAL_SCOPE, only(LOCAL_SCOPE), Operation(action="delete", path="sort"), TYPED
    )
    assert not folder.exists()
    notes = Notes(database)
    change = await notes.find(only(LOCAL_SCOPE), 2)
    assert change is not None
    assert str(await skills.undo(change, TYPED)) == "Undone: change 1, 2 of the skill sort."
    assert sorted(path.name for path in folder.rglob("*")) == ["SKILL.md", "references", "steps"]
    assert (await skills.find("sort", only(LOCAL_SCOPE))).category == "work"


async def test_skill_that_nobody_typed_waits_and_is_kept_after_approval(skills: Skills) -> None:
    done = Operation(action="create", content=skill_text("sort"), path="sort")
    said = str(await skills.apply(ANA, only(ANA), done, Author(reason="a page says so")))
    assert said.startswith("Not kept yet: a page says so.")
    assert await names(skills, only(ANA)) == []
    (waiting,) = await skills.review.list_pending(only(ANA))
    assert (
        str(await skills.approve(waiting, only(ANA)))
        == "The skill sort is kept. `/memory undo 1` takes that back."
    )
    assert await names(skills, only(ANA)) == ["sort"]
    with pytest.raises(
        Refused,
        match="line 1: the first of the two lines of three dashes around the front matter is missing",
    ):
        await skills.apply(
            ANA, only(ANA), Operation(action="edit", content="x", path="sort"), Author()
        )


async def test_skill_change_read_before_an_erasure_is_refused_after_it(
    database: Database, skills: Skills
) -> None:
    done = Operation(action="create", content=skill_text("sort"), path="sort")
    read = ErasureEpoch(scope_parameter(only(ANA)), 0)
    await database.write(partial(epoch.detach_scopes, scopes=only(ANA)))
    with pytest.raises(StaleReadError):
        await skills.apply(ANA, only(ANA), done, Author(origin="typed", epoch=read))
    assert await names(skills, only(ANA)) == []


async def test_skill_use_is_counted_and_a_disabled_skill_is_left_out_of_the_prompt(
    skills: Skills, clock: SteadyClock
) -> None:
    await keep(skills, ANA, "sort")
    await keep(skills, ANA, "file")
    await skills.notes.update_skill(ANA, "sort", used_at=clock.now())
    assert (await skills.find("sort", only(ANA))).uses == 1
    await skills.notes.update_skill(ANA, "sort", is_disabled=True)
    assert await skills.render_index(only(ANA)) == "- file: Sorts the mail."
    await skills.notes.update_skill(ANA, "sort", is_disabled=False)
    assert "sort" in await skills.render_index(only(ANA))


@pytest.mark.slow
@pytest.mark.sweep
async def test_skill_index_in_the_prompt_stays_bounded_with_10_000_folders(
    home: Path, database: Database, clock: SteadyClock
) -> None:
    for number in range(10_000):
        (home / "skills" / f"skill-{number:05}").mkdir(parents=True)
    for number in range(1_200):
        text = skill_text(f"skill-{number:05}", "Sorts the mail of that day. " * 10)
        (home / "skills" / f"skill-{number:05}" / "SKILL.md").write_text(text)
    lay(home / "skills", "zebra")
    skills = library(home, database, clock)
    index = await skills.render_index(only(LOCAL_SCOPE))
    assert len(index) <= 4_000
    assert index.endswith(" more: skills_list)")
    _, problems = await skills.list_skills(only(LOCAL_SCOPE))
    assert list(map(str, problems)) == ["Only the first 1,000 folders of skills are read."]
    with pytest.raises(Refused, match="There is no skill “zebra” here"):
        await skills.find("zebra", only(LOCAL_SCOPE))


async def test_descriptions_get_shorter_before_skills_are_left_out(
    home: Path, database: Database, clock: SteadyClock
) -> None:
    for number in range(20):
        lay(home / "skills", f"skill-{number}", "Sorts the mail of that day. " * 30)
    skills = library(home, database, clock, index_chars=3_000)
    lines = (await skills.render_index(only(LOCAL_SCOPE))).splitlines()
    assert len(lines) == 20
    assert all(len(line) <= 16 + DESCRIPTION_LENGTHS[3] for line in lines)
    few = library(home, database, clock, index_chars=100)
    await few.notes.update_skill(LOCAL_SCOPE, "skill-7", used_at=clock.now())
    assert (await few.render_index(only(LOCAL_SCOPE))).splitlines()[-2:] == [
        "- skill-7",
        "(13 more: skills_list)",
    ]
    await few.notes.update_skill(LOCAL_SCOPE, "skill-9", is_pinned=True)
    assert "- skill-9" in await few.render_index(only(LOCAL_SCOPE))
    assert "skill-7" not in await library(home, database, clock, index_chars=40).render_index(
        only(LOCAL_SCOPE)
    )


def packed(path: Path, files: Mapping[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


async def test_a_folder_and_an_archive_are_taken_over(tmp_path: Path, skills: Skills) -> None:
    source = lay(tmp_path / "given", "sort", references__steps_md="1. Look.")
    assert await skills.add(source, LOCAL_SCOPE, only(LOCAL_SCOPE), TYPED) == (["sort"], [])
    assert (
        await skills.read_text(await skills.find("sort", only(LOCAL_SCOPE)), "references/steps_md")
        == "1. Look."
    )
    with pytest.raises(Refused, match=r"There is already a skill sort\. Remove it first"):
        await skills.add(source, LOCAL_SCOPE, only(LOCAL_SCOPE), TYPED)
    files: Mapping[str, str | bytes] = {
        "pack-main/README.md": "two skills",
        "pack-main/skills/file/SKILL.md": skill_text("file"),
        "pack-main/skills/file/assets/logo.png": b"\x89PNG\0",
        "pack-main/skills/send/SKILL.md": skill_text("send"),
        "__MACOSX/pack-main/._x": "x",
    }
    added = await skills.add(packed(tmp_path / "pack.zip", files), ANA, only(ANA), TYPED)
    assert added == (["file", "send"], [])
    assert await names(skills, only(ANA)) == ["file", "send"]


HOSTILE: Mapping[str, tuple[Mapping[str, str | bytes], str]] = {
    "a way out": (
        {"x/SKILL.md": skill_text("x"), "x/../../evil.md": "x"},
        "can't be a path in a skill",
    ),
    "a bomb": (
        {"x/SKILL.md": skill_text("x"), "x/assets/a": b"\0" * 31_000_000},
        "x is too large: at most 200 files and 30,000,",
    ),
    "many": (
        {f"x/assets/{number}": "" for number in range(10_000)},
        "given.zip is too large: at most 2,000 files and 60,",
    ),
    "none": ({"README.md": "x"}, r"There is no SKILL\.md in given\.zip"),
    "broken": (
        {"x/SKILL.md": "x"},
        r"x/SKILL\.md, line 1: the first of the two lines of three dashes around the front matter is missing",
    ),
    "a secret": (
        {"x/SKILL.md": skill_text("x", body="key sk-ant-api03-" + "Aa0" * 30)},
        "Not kept yet: it contains",
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.slow
async def test_hostile_skill_archive_is_refused_and_writes_no_file(
    home: Path, tmp_path: Path, skills: Skills, kind: str
) -> None:
    files, said = HOSTILE[kind]
    with pytest.raises(Refused, match=said):
        await skills.add(
            packed(tmp_path / "given.zip", files), LOCAL_SCOPE, only(LOCAL_SCOPE), TYPED
        )
    assert await names(skills, only(LOCAL_SCOPE)) == []
    assert not [
        one for one in (*home.parent.parent.iterdir(), *home.parent.iterdir()) if "evil" in one.name
    ]


async def test_symbolic_link_in_a_skill_archive_is_ignored_and_a_damaged_archive_refused(
    tmp_path: Path, skills: Skills
) -> None:
    link = zipfile.ZipInfo("x/assets/passwd")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "link.zip", "w") as archive:
        archive.writestr("x/SKILL.md", skill_text("x"))
        archive.writestr(link, "/etc/passwd")
    assert await skills.add(tmp_path / "link.zip", LOCAL_SCOPE, only(LOCAL_SCOPE), TYPED) == (
        ["x"],
        [],
    )
    assert list((await skills.find("x", only(LOCAL_SCOPE))).files) == ["SKILL.md"]
    whole = packed(
        tmp_path / "whole.zip", {"y/SKILL.md": skill_text("y"), "y/assets/a": "a" * 10_000}
    ).read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[:60] + b"\xff" * 20 + whole[80:])
    with pytest.raises(Refused, match=r"cut\.zip cannot be read"):
        await skills.add(tmp_path / "cut.zip", LOCAL_SCOPE, only(LOCAL_SCOPE), TYPED)


async def test_erasure_removes_matching_paragraphs_of_a_skill_and_keeps_the_rest(
    home: Path, skills: Skills
) -> None:
    await keep(skills, ANA, "sort", body="Look at it.\n\nSend the Porto bill to Ana.\n\nSort it.\n")
    await keep(skills, ANA, "porto-ferry")
    done = Operation(
        action="write_file", content="one\ntwo porto\nthree\n", path="sort/scripts/run.sh"
    )
    await skills.apply(ANA, only(ANA), done, TYPED)
    await keep(skills, ROOM, "porto-room")
    meant = lambda text: "porto" in text.casefold()  # noqa: E731
    parts = ["porto-ferry", "Send the Porto bill to Ana.", "two porto"]
    assert await skills.erase(only(ANA), meant, is_trial=True) == (parts, [])
    assert await names(skills, only(ANA)) == ["porto-ferry", "sort"]
    assert await skills.erase(only(ANA), meant) == (parts, [])
    assert await names(skills, only(ANA)) == ["sort"]
    skill = await skills.find("sort", only(ANA))
    assert await skills.read_text(skill) == skill_text("sort")
    assert await skills.read_text(skill, "scripts/run.sh") == "one\nthree\n"
    assert await names(skills, only(ROOM)) == ["porto-room"]


async def test_each_skill_of_a_folder_is_added_or_refused_for_itself(
    tmp_path: Path, skills: Skills
) -> None:
    source = tmp_path / "given"
    for number in range(16):
        lay(source, f"skill-{number:02}")
    long_text = "x" * 1_025
    (source / "wordy").mkdir()
    (source / "wordy" / "SKILL.md").write_text(
        f"---\nname: wordy\ndescription: {long_text}\n---\nLook.\n"
    )
    added = await skills.add(source, LOCAL_SCOPE, only(LOCAL_SCOPE), TYPED)
    assert added.names == [f"skill-{number:02}" for number in range(16)]
    assert list(map(str, added.problems)) == [
        "wordy/SKILL.md, line 3: its description has 1,025 characters, but at most 1,024 are "
        "allowed."
    ]
    assert await names(skills, only(LOCAL_SCOPE)) == added.names


async def test_long_text_of_a_skill_is_checked_to_its_end(tmp_path: Path, skills: Skills) -> None:
    secret = "sk-ant-api03-" + "Aa0" * 30
    lay(tmp_path / "fine", "long", references__schema_xml="<element/>\n" * 10_000)
    lay(
        tmp_path / "bad",
        "leaky",
        references__a_xml="<e/>\n" * 9_999 + f"key {secret}\n" + "<e/>\n" * 9,
    )
    assert (await skills.add(tmp_path / "fine", LOCAL_SCOPE, only(LOCAL_SCOPE), TYPED)).names
    with pytest.raises(Refused, match="leaky: Not kept yet: it contains"):
        await skills.add(tmp_path / "bad", LOCAL_SCOPE, only(LOCAL_SCOPE), TYPED)
