"""Options written into mneme.toml beside what a person wrote there."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path

import pytest

from config.files import set_options

TABLE = ("memory", "providers", "jotter")
WRITTEN = """\
# my settings
[general]
zone = "UTC"  # for travelling

[memory.providers.jotter] # the service at home
url = "old"   # will move
# that was all

[owner]
telegram = [
    42,
]
"""


def test_writing_options_to_the_settings_file_keeps_its_other_lines_and_comments(
    tmp_path: Path,
) -> None:
    file = tmp_path / "mneme.toml"
    file.write_text(WRITTEN)
    set_options(file, TABLE, {"url": "new", "is_brief": True, "depth": 3})
    changed = file.read_text()
    assert changed.startswith(
        WRITTEN[: WRITTEN.index("url =")] + 'url = "new"   # will move\n# that was all\n'
    )
    assert changed.endswith(WRITTEN[WRITTEN.index("[owner]") :])
    assert tomllib.loads(changed)["memory"]["providers"]["jotter"] == {
        "url": "new",
        "is_brief": True,
        "depth": 3,
    }


@pytest.mark.parametrize(
    "value", ['with "quotes" \\ and 雨\n\t\x7f', "", "[x]", -3, 2.5, 1e300, False]
)
def test_every_value_is_read_back_as_it_was(
    tmp_path: Path, value: str | int | float | bool
) -> None:
    file = tmp_path / "mneme.toml"
    set_options(file, TABLE, {"value": value})
    set_options(file, TABLE, {"value": value, "other": 1})
    assert tomllib.loads(file.read_text())["memory"]["providers"]["jotter"] == {
        "value": value,
        "other": 1,
    }
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["mneme.toml"]


@pytest.mark.parametrize(
    "text",
    [
        "[memory]\nproviders = {jotter = {url = 'a'}}\n",
        "[memory]\nproviders.jotter.url = 'a'\n",
        "[memory.providers.jotter]\nurl = '''\nurl = 1\n'''\n",
    ],
)
def test_option_of_a_table_is_set_in_each_layout_of_the_file(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mneme.toml"
    file.write_text(text)
    set_options(file, TABLE, {"url": "b"})
    assert tomllib.loads(file.read_text())["memory"]["providers"]["jotter"] == {"url": "b"}


@pytest.mark.parametrize("text", ["memory = 3\n", "[memory\n"])
def test_file_without_a_usable_table_is_left_unchanged_with_advice(
    tmp_path: Path, text: str
) -> None:
    file = tmp_path / "mneme.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match="Add these lines yourself") as caught:
        set_options(file, TABLE, {"url": "b"})
    assert str(caught.value).endswith('yourself:\n[memory.providers.jotter]\nurl = "b"')
    assert file.read_text() == text


def test_settings_file_that_is_a_symbolic_link_stays_a_link_when_changed(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("[general]\n")
    link = tmp_path / "mneme.toml"
    link.symlink_to(real)
    set_options(link, TABLE, {"url": "b"})
    assert link.is_symlink()
    assert "jotter" in real.read_text()
