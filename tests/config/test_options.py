"""The options of a provider: asked for, read, filled."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from config.files import OptionForm, OptionsError, Secret
from core.memory.plugins import join_clauses
from tests.fixtures.tables import each_row


@dataclass(frozen=True)
class Options:
    url: str = field(metadata={"help": "where it listens."})
    key: Secret
    depth: int = 3
    share: float = 0.5
    is_brief: bool = False


def test_option_form_describes_each_option_and_lists_the_required_ones() -> None:
    form = OptionForm(Options)
    assert [form.describe("url"), form.kind("url")] == ["where it listens", "text"]
    assert [form.describe("is_brief"), form.kind("is_brief")] == ["", "switch"]
    assert form.required_names == ["url", "key"]
    assert list(OptionForm(None).fields) == []
    assert OptionForm(None).build_options({}, {}) is None


def test_option_form_reads_numbers_and_yes_as_people_write_them() -> None:
    form = OptionForm(Options)
    read = {
        name: form.parse_value(name, text)
        for name, text in (("depth", " 7 "), ("share", "2"), ("is_brief", "Yes"))
    }
    assert read == {"depth": 7, "share": 2.0, "is_brief": True}
    assert form.parse_value("key", "MY_KEY") == "MY_KEY"


@each_row(
    ("name", "written", "problem"),
    [
        ("depth", "3.5", "option_needs_whole_number"),
        ("depth", "", "option_needs_whole_number"),
        ("share", "nan", "option_needs_number"),
        ("share", "half", "option_needs_number"),
        ("is_brief", "perhaps", "option_needs_switch"),
        ("key", "sk-abc", "option_names_variable"),
    ],
)
def test_option_form_refuses_a_value_of_the_wrong_type_and_names_the_expected_type(
    name: str, written: str, problem: str
) -> None:
    with pytest.raises(OptionsError) as caught:
        OptionForm(Options).parse_value(name, written)
    assert caught.value.problems == [(problem, {"name": name})]


def test_an_unknown_option_is_named_with_those_there_are() -> None:
    with pytest.raises(OptionsError) as caught:
        OptionForm(Options).parse_value("urll", "x")
    names = "url, key, depth, share, is_brief"
    assert caught.value.problems == [("option_unknown", {"name": "urll", "names": names})]


def test_option_form_builds_options_from_a_table_and_hides_the_secret_in_repr() -> None:
    options = OptionForm(Options).build_options(
        {"url": "u", "key": "K_1", "depth": "7", "share": 1}, {"K_1": "hush"}
    )
    assert options == Options(url="u", key=Secret("hush"), depth=7, share=1.0)
    assert "hush" not in repr(options)


def test_option_form_reports_all_problems_at_once() -> None:
    with pytest.raises(OptionsError) as caught:
        OptionForm(Options).build_options({"key": "K_1", "depth": "three", "colour": 1}, {})
    assert str(join_clauses(caught.value)) == (
        "url is missing; key: the environment variable K_1 is not set (`mneme config set K_1` "
        "stores it); depth should be a whole number; There is no option colour. "
        "The options are: url, key, depth, share, is_brief"
    )


@each_row("kind", [dict, list])
def test_option_class_that_is_not_a_dataclass_or_uses_a_reserved_name_is_refused(
    kind: type,
) -> None:
    with pytest.raises(TypeError, match="aren't a dataclass"):
        OptionForm(kind)

    @dataclass(frozen=True)
    class Odd:
        mode: str = ""

    with pytest.raises(TypeError, match="mode is reserved"):
        OptionForm(Odd)
