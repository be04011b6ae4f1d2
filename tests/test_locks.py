"""The lock files of the release path: every package has a hash, and the versions fit pyproject."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
RUNTIME_LOCK = "requirements.lock"
TEST_LOCK = "requirements-test.lock"
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def read_lock(name: str) -> dict[str, list[tuple[Requirement, int]]]:
    """Return the requirements of a lock file with the number of their hashes, by package."""
    text = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")
    packages: dict[str, list[tuple[Requirement, int]]] = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        requirement = Requirement(line.partition("--hash")[0].strip())
        entry = (requirement, len(_HASH.findall(line)))
        packages.setdefault(canonicalize_name(requirement.name), []).append(entry)
    return packages


def read_pins() -> dict[str, str]:
    """Return the versions in constraints.txt, by package."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(pin.name): str(pin.specifier) for pin in pins}


@pytest.mark.parametrize("name", [RUNTIME_LOCK, TEST_LOCK])
def test_every_package_of_a_lock_file_has_an_exact_version_and_a_hash(name: str) -> None:
    lock = read_lock(name)
    assert len(lock) > 40
    for package, entries in lock.items():
        for requirement, hashes in entries:
            assert re.fullmatch(r"==[^,*]+", str(requirement.specifier)), package
            assert hashes, package


@pytest.mark.parametrize("name", [RUNTIME_LOCK, TEST_LOCK])
def test_lock_file_names_no_place_to_download_from(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^\s*(-i|-f|--index|--extra-index|--find-links|--trusted)", text, re.M)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (RUNTIME_LOCK, _PROJECT["dependencies"]),
        (TEST_LOCK, _PROJECT["dependencies"] + _PROJECT["optional-dependencies"]["test"]),
    ],
)
def test_versions_of_a_lock_file_are_within_the_ranges_of_pyproject(
    name: str, wanted: list[str]
) -> None:
    lock = read_lock(name)
    for text in wanted:
        requirement = Requirement(text)
        entries = lock.get(canonicalize_name(requirement.name))
        assert entries, f"{requirement.name} isn't in {name}: run make locks"
        for locked, _ in entries:
            version = str(locked.specifier).removeprefix("==")
            assert version in requirement.specifier, f"{name}: {locked}: run make locks"


@pytest.mark.parametrize("name", [RUNTIME_LOCK, TEST_LOCK])
def test_lock_file_has_the_versions_that_the_checks_ran_with(name: str) -> None:
    pins = read_pins()
    for package, entries in read_lock(name).items():
        if package in pins and len(entries) == 1:
            assert str(entries[0][0].specifier) == pins[package], f"{package}: run make locks"


@pytest.mark.parametrize("extra", sorted(_PROJECT["optional-dependencies"]))
def test_each_extra_has_the_versions_that_the_checks_ran_with(extra: str) -> None:
    pins = read_pins()
    for text in _PROJECT["optional-dependencies"][extra]:
        requirement = Requirement(text)
        pin = pins.get(canonicalize_name(requirement.name), "")
        assert pin.startswith("=="), f"{requirement.name} has no line in constraints.txt"
        assert pin.removeprefix("==") in requirement.specifier, requirement.name


def test_runtime_lock_has_no_package_that_only_tests_need() -> None:
    runtime, everything = read_lock(RUNTIME_LOCK), read_lock(TEST_LOCK)
    assert not {"pytest", "mypy", "ruff", "hypothesis"} & runtime.keys()
    for package, entries in runtime.items():
        versions = {str(requirement.specifier) for requirement, _ in entries}
        assert versions <= {str(locked.specifier) for locked, _ in everything[package]}, package
