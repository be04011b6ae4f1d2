"""The files of the container image, as far as they can be checked without a container engine."""

from __future__ import annotations

import json
import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

from packaging.specifiers import SpecifierSet
from typer.testing import CliRunner

ROOT = Path(__file__).resolve().parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE_FILES = {
    name: (ROOT / name).read_text(encoding="utf-8")
    for name in ("compose.yaml", "compose.postgres.yaml")
}
STEPS = (ROOT / "tests" / "tools" / "container_steps.sh").read_text(encoding="utf-8")


def list_copied() -> list[str]:
    """Return the files and folders that the image gets."""
    lines = re.findall(r"(?m)^COPY (.+)$", DOCKERFILE)
    return [name for line in lines for name in line.split()[:-1]]


def test_image_copies_what_is_there_and_what_is_not_ignored() -> None:
    rules = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    allowed = [rule[1:] for rule in rules if rule.startswith("!")]
    assert rules[0] == "*"
    for name in list_copied():
        assert (ROOT / name).exists(), name
        assert any(fnmatch(name, rule) for rule in allowed), name


def test_image_has_every_package_and_every_file_that_the_build_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = project["tool"]["setuptools"]["packages"]["find"]["include"]
    needed = {package.rstrip("*") for package in packages}
    needed |= {project["project"]["readme"], "pyproject.toml", "requirements.lock"}
    needed |= set(project["project"].get("license-files", ()))
    assert needed <= set(list_copied())


def test_python_of_the_image_is_one_that_mneme_supports() -> None:
    (version,) = re.findall(r"(?m)^FROM python:(\d+\.\d+)-slim$", DOCKERFILE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert version in SpecifierSet(project["project"]["requires-python"])
    assert f"python{version}" in STEPS


def test_home_and_the_record_of_erasures_next_to_it_are_in_the_volume() -> None:
    (volume,) = re.findall(r"(?m)^VOLUME (\S+)$", DOCKERFILE)
    (home,) = re.findall(r"MNEME_HOME=(\S+)", DOCKERFILE)
    assert Path(home).parent == Path(volume)
    for content in COMPOSE_FILES.values():
        assert f"mneme-data:{volume}" in content


def test_container_has_no_rights_that_it_does_not_need() -> None:
    assert re.search(r"(?m)^USER mneme$", DOCKERFILE)
    for content in COMPOSE_FILES.values():
        for line in ("read_only: true", "- /tmp", "- ALL", "- no-new-privileges:true"):
            assert line in content


def test_gateways_in_containers_get_the_password_of_the_database_and_its_client() -> None:
    content = COMPOSE_FILES["compose.postgres.yaml"]
    assert content.count("PASSWORD: ${MNEME_STORE_PASSWORD") == 2
    (command,) = re.findall(r"(?m)^    command: (.+)$", content)
    assert json.loads(command) == ["run", "--workers", "3"]
    assert re.search(r"(?m)^psycopg-binary==", (ROOT / "requirements.lock").read_text())


def test_health_check_is_a_command_that_exists() -> None:
    (words,) = re.findall(r"HEALTHCHECK .*CMD \[(.+)\]", DOCKERFILE)
    program, *arguments = [word.strip(' "') for word in words.split(",")]
    assert (program, arguments) == ("mneme", ["status", "--alive"])
    from gateway.cli.main import app

    shown = CliRunner().invoke(app(["status"]), ["status", "--help"], env={"COLUMNS": "200"}).output
    assert "--alive" in shown
