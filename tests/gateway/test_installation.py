"""The package as a stranger installs it: built as a wheel, in an environment of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import pytest

from gateway.installation import (
    DATA_FILES,
    PACKAGES,
    ROOT,
    describe_update,
    find_origin,
    hide_packages,
    list_unreadable_files,
)
from tests.fixtures.sweeps import keep_first

BUILD = "import sys, setuptools.build_meta as backend; print(backend.build_{kind}(sys.argv[1]))"
NO_KEYS = {"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "TELEGRAM_BOT_TOKEN", "DISCORD_BOT_TOKEN"}


def list_data_files() -> set[str]:
    files = (path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.is_file())
    return {
        path.relative_to(ROOT).as_posix()
        for path in files
        if path.suffix not in (".py", ".pyc") and "__pycache__" not in path.parts
    }


def build(kind: str, checkout: Path, target: Path) -> Path:
    """Build a wheel or an sdist by the hooks of PEP 517, without a network."""
    done = subprocess.run(
        [sys.executable, "-c", BUILD.format(kind=kind), str(target)],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return target / done.stdout.split()[-1]


def copy_checkout(target: Path) -> Path:
    """Copy what a release is built from."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.splitlines():
        if (source := ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes(source.read_bytes())
    return target


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    checkout = copy_checkout(tmp_path_factory.mktemp("checkout"))
    return build("wheel", checkout, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `mneme` of an environment that has the wheel, and the packages it needs from here."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True, with_pip=True)
    install = [
        str(folder / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
    ]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    # A line of a .pth file adds a folder but none of the .pth files in it, so that the editable
    # installation of this checkout stays out.
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
    (packages / "needed.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return folder / "bin" / "mneme"


def run(
    mneme: Path, folder: Path, *words: str, typed: str = "", variables: Mapping[str, str] = {}
) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in NO_KEYS and not name.startswith("PYTHON")
    }
    environment = {**kept, "MNEME_HOME": str(folder / "home"), **variables}
    return subprocess.run(
        [str(mneme), *words],
        cwd=folder,
        env=environment,
        input=typed,
        capture_output=True,
        text=True,
        check=False,
    )


def test_list_of_data_files_is_complete() -> None:
    listed = {f"{folder}/{name}" for folder, names in DATA_FILES.items() for name in names}
    assert listed == list_data_files()


@pytest.mark.slow
def test_missing_and_broken_data_files_are_named(tmp_path: Path) -> None:
    for folder, names in DATA_FILES.items():
        for name in names:
            (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / name).write_bytes((ROOT / folder / name).read_bytes())
    assert list_unreadable_files(tmp_path) == []
    (tmp_path / "core/dates/data/period_words.toml").unlink()
    (tmp_path / "core/agent/offline.toml").write_text("= broken")
    broken, missing = list_unreadable_files(tmp_path)
    assert missing == "core/dates/data/period_words.toml (No such file or directory)"
    assert broken.startswith("core/agent/offline.toml (Invalid statement")


@pytest.mark.slow
def test_wheel_has_every_data_file_and_no_test(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert list_data_files() <= names
    assert not {name for name in names if name.startswith("tests/")}


@pytest.mark.sweep
@pytest.mark.slow
@pytest.mark.sweep
def test_sdist_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    checkout = copy_checkout(tmp_path / "checkout")
    sdist = build("sdist", checkout, tmp_path)
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    again = zipfile.ZipFile(build("wheel", unpacked, tmp_path))
    first = zipfile.ZipFile(wheel)
    assert sorted(again.namelist()) == sorted(first.namelist())
    for name in first.namelist():
        if not name.endswith("/RECORD"):
            assert again.read(name) == first.read(name), name


@pytest.mark.sweep
@pytest.mark.slow
def test_installed_wheel_chats_reminds_recalls_knows_and_checks_itself(
    installed: Path, tmp_path: Path
) -> None:
    said = "My sister Ana lives in Porto.\nremind me tomorrow at 9 to call Ana\n"
    chat = run(installed, tmp_path, "chat", typed=said)
    assert chat.returncode == 0, chat.stderr
    assert "Reminder 1" in chat.stdout
    recalled = run(installed, tmp_path, "recall", "Ana in Porto")
    assert recalled.returncode == 0, recalled.stderr
    assert "My sister Ana lives in Porto" in recalled.stdout
    assert "Porto" in run(installed, tmp_path, "facts").stdout
    check = run(installed, tmp_path, "check")
    assert "all data files can be read" in check.stdout
    assert "out of order" not in chat.stdout + chat.stderr + check.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "is_package"), keep_first(1, [("config", True), ("adapters", False)])
)
def test_start_with_a_foreign_package_of_the_same_name_fails_with_one_sentence(
    installed: Path, tmp_path: Path, name: str, is_package: bool
) -> None:
    foreign = tmp_path / "foreign"
    place = foreign / name / "__init__.py" if is_package else foreign / f"{name}.py"
    place.parent.mkdir(parents=True)
    place.write_text("raise RuntimeError('this is not ours')\n")
    result = run(installed, tmp_path, "recall", "Ana", variables={"PYTHONPATH": str(foreign)})
    assert result.returncode == 1
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"Mneme can't start: Python finds another `{name}` first, at {foreign}")
    assert "PYTHONPATH" in line


@pytest.mark.parametrize(
    ("prefix", "is_clone", "is_container", "kind", "command"),
    [
        ("/home/ana/mneme/.venv", True, False, "clone", "cd {root} && git pull && ./setup.sh"),
        ("/usr/local", False, True, "container", "git pull && docker compose up -d --build"),
        (
            "/home/ana/.local/pipx/venvs/mneme-gateway",
            False,
            False,
            "pipx",
            "pipx upgrade mneme-gateway",
        ),
        ("/home/ana/.local/share/uv/tools/mneme-gateway", False, False, "uv", "uv tool upgrade"),
        (
            "/home/ana/env",
            False,
            False,
            "pip",
            "/bin/python -m pip install --upgrade mneme-gateway",
        ),
    ],
)
def test_update_is_described_for_each_way_of_installation(
    tmp_path: Path, prefix: str, is_clone: bool, is_container: bool, kind: str, command: str
) -> None:
    mark = tmp_path / "container"
    if is_clone:
        (tmp_path / ".git").mkdir()
    if is_container:
        mark.touch()
    advice = describe_update(Path(prefix), "/bin/python", tmp_path, [mark])
    assert advice.kind == kind
    assert advice.command.startswith(command.format(root=tmp_path))


@pytest.mark.parametrize(
    ("prefix", "install", "repair"),
    [
        ("/home/ana/.local/pipx/venvs/mneme-gateway", "pipx install --force", ""),
        ("/home/ana/.local/share/uv/tools/m", "uv tool install --force --reinstall", ""),
        ("/home/ana/env", "/bin/python -m pip install", " --force-reinstall --no-deps"),
    ],
)
def test_installation_from_a_checkout_or_a_wheel_is_updated_and_repaired_from_there(
    tmp_path: Path, prefix: str, install: str, repair: str
) -> None:
    upgrade = " --upgrade" if repair else ""
    checkout = tmp_path / "my mneme"
    (checkout / ".git").mkdir(parents=True)
    place = Path(prefix)
    advice = describe_update(place, "/bin/python", tmp_path, [], str(checkout))
    assert advice.command == f"cd '{checkout}' && git pull && {install}{upgrade} ."
    assert advice.repair == f"cd '{checkout}' && {install}{repair} ."
    (checkout / ".git").rmdir()
    advice = describe_update(place, "/bin/python", tmp_path, [], str(checkout))
    assert advice.command == f"cd '{checkout}' && {install}{upgrade} ."
    wheel = "/disk/mneme_gateway-0.2.0-py3-none-any.whl"
    advice = describe_update(place, "/bin/python", tmp_path, [], wheel)
    newer = "/disk/mneme_gateway-VERSION-py3-none-any.whl"
    assert advice.command == f"{install}{upgrade} {newer}"
    assert advice.repair == f"{install}{repair} {wheel}"


@pytest.mark.parametrize(
    ("direct_url", "origin"),
    [
        ('{"url": "file:///disk/my%20mneme", "dir_info": {}}', "/disk/my mneme"),
        ('{"url": "https://x.org/m", "vcs_info": {"vcs": "git"}}', "git+https://x.org/m"),
        ('{"url": "https://x.org/m.whl", "archive_info": {}}', "https://x.org/m.whl"),
        ("", ""),
        ("damaged", ""),
    ],
)
def test_origin_of_the_installation_is_read_from_its_metadata(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, direct_url: str, origin: str
) -> None:
    metadata = tmp_path / "mneme_gateway-9.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: mneme-gateway\nVersion: 9\n")
    if direct_url:
        (metadata / "direct_url.json").write_text(direct_url)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert find_origin() == origin


def test_installation_with_a_lost_data_file_names_it_and_the_command_that_brings_it_back(
    tmp_path: Path,
) -> None:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("*.pyc"))
    (tmp_path / ".git").mkdir()
    environment = {"PATH": os.environ["PATH"], "MNEME_HOME": str(tmp_path / "home"), "LANG": "C"}

    def check() -> str:
        done = subprocess.run(
            [sys.executable, "-m", "gateway.cli.main", "check"],
            cwd=tmp_path,
            env=environment | {"PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        return done.stdout + done.stderr

    for name in ("config/default.toml", "gateway/texts/en.toml", "core/agent/data/prompts.toml"):
        content = (tmp_path / name).read_text()
        (tmp_path / name).unlink()
        said = check()
        assert f"{name} (No such file or directory)" in said
        assert f": cd {tmp_path} && git restore {name}\n" in said
        has_texts = name != "gateway/texts/en.toml"
        assert ("These files of Mneme can't be read: " in said) == has_texts
        assert "Traceback" not in said
        (tmp_path / name).write_text(content)


def test_folder_with_characters_of_the_shell_is_quoted_in_the_command(tmp_path: Path) -> None:
    folder = tmp_path / "my $(mneme)"
    (folder / ".git").mkdir(parents=True)
    clone = describe_update(tmp_path, "/bin/python", folder, [])
    assert clone.command == f"cd '{folder}' && git pull && ./setup.sh"
    pip = describe_update(tmp_path, f"{folder}/python", tmp_path, [])
    assert pip.command.startswith(f"'{folder}/python' -m pip install")


def test_environment_that_somebody_made_in_a_container_is_updated_with_pip(tmp_path: Path) -> None:
    mark = tmp_path / "container"
    mark.touch()
    (tmp_path / "pyvenv.cfg").touch()
    advice = describe_update(tmp_path, "/bin/python", tmp_path, [mark])
    assert advice.command.startswith("/bin/python -m pip install --upgrade")


def test_hidden_package_cannot_be_imported_until_it_is_shown_again() -> None:
    sys.modules.pop("colorsys", None)
    with hide_packages("colorsys"), pytest.raises(ImportError):
        import_module("colorsys")
    assert import_module("colorsys").rgb_to_hsv
    with hide_packages("colorsys"):
        assert import_module("colorsys").rgb_to_hsv, "what is loaded already stays"
