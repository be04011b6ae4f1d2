"""secrets.env: private, read beside mneme.toml, changed line by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.secrets_file import SECRETS_FILE, change_secrets, read_secrets
from config.settings import Settings, SettingsError


def write(home: Path, text: str) -> Path:
    file = home / SECRETS_FILE
    file.write_text(text, encoding="utf-8")
    file.chmod(0o600)
    return file


def load(home: Path, **environ: str) -> Settings:
    return Settings.load({"MNEME_HOME": str(home), **environ})


def test_secret_in_the_file_is_read_and_the_environment_overrides_it(home: Path) -> None:
    write(home, "# keys\nTELEGRAM_BOT_TOKEN = '12:abc'\nexport ANTHROPIC_API_KEY=sk-file\n\n")
    settings = load(home, ANTHROPIC_API_KEY="sk-environment", TELEGRAM_BOT_TOKEN="")
    assert settings.platform_tokens == {"telegram": "12:abc"}
    assert settings.anthropic_api_key is not None
    assert settings.anthropic_api_key.get_secret_value() == "sk-environment"


def test_key_of_another_model_server_is_read_from_the_file(home: Path) -> None:
    write(home, "OPENAI_API_KEY=sk-openai-key\n")
    (home / "mneme.toml").write_text('[model]\nchat = "openai/gpt-6-astra"\n')
    settings = load(home)
    assert settings.has_model
    assert "sk-openai-key" in settings.secret_values()
    assert "sk-openai-key" not in repr(settings)


def test_file_that_others_can_read_becomes_private_when_it_is_read(home: Path) -> None:
    file = write(home, "A_KEY=1\n")
    file.chmod(0o644)
    load(home)
    assert file.stat().st_mode & 0o777 == 0o600


def test_broken_line_is_named_by_its_number_and_never_repeated(home: Path) -> None:
    write(home, "A_KEY=1\nsk-ant-very-secret\nMNEME_HOME=/tmp/x\n")
    with pytest.raises(SettingsError) as caught:
        load(home)
    first, second = caught.value.problems
    assert "line 2" in first
    assert "very-secret" not in str(caught.value)
    assert "line 3 sets MNEME_HOME" in second


def test_changing_the_secrets_file_keeps_its_comments_and_other_lines(home: Path) -> None:
    file = write(home, "# mine\nA_KEY=1\n\nB_KEY=2\nB_KEY=3\n#C_KEY=old\n")
    change_secrets(file, {"B_KEY": "new", "A_KEY": None, "C_KEY": '"q"'})
    assert file.read_text() == '# mine\n\nB_KEY=new\n#C_KEY=old\nC_KEY=""q""\n'
    assert read_secrets(file)[0] == {"B_KEY": "new", "C_KEY": '"q"'}
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("value", ["", "  ", "two\nlines"])
def test_secret_of_several_lines_is_refused_and_the_secrets_file_not_written(
    home: Path, value: str
) -> None:
    with pytest.raises(ValueError, match="A_KEY should be one line"):
        change_secrets(home / SECRETS_FILE, {"A_KEY": value})
    assert not (home / SECRETS_FILE).exists()


def test_misspelt_setting_is_reported_with_its_line_number_and_the_similar_option(
    home: Path,
) -> None:
    (home / "mneme.toml").write_text(
        "# mine\n[model]\ntrys = 3\n[limits.day]\nanswers = -1\n[limit]\njobs = 3\n"
    )
    with pytest.raises(SettingsError) as caught:
        load(home)
    problems = dict(problem.split(": ", 1) for problem in caught.value.located_problems)
    assert problems["model.trys"] == "isn't a known option; did you mean model.tries? (line 3)"
    assert problems["limits.day.answers"].endswith("(line 5)")
    assert problems["limit"] == "isn't a known option; did you mean limits? (line 6)"
