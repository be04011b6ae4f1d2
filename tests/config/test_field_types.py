"""Values of the settings: variables inside of a text, and names of models."""

from __future__ import annotations

import pytest

from config.field_types import check_model_name, fill_placeholders


def test_value_with_variables_is_filled_and_other_text_stays() -> None:
    filled = fill_placeholders("Bearer ${KEY}, ${KEY}${TWO} $KEY ${key}", {"KEY": "a", "TWO": "b"})
    assert filled == "Bearer a, ab $KEY ${key}"


def test_value_of_a_variable_that_looks_like_a_variable_is_inserted_as_it_is() -> None:
    assert fill_placeholders("${KEY}", {"KEY": "p${TWO}", "TWO": "b"}) == "p${TWO}"
    assert fill_placeholders("${KEY}", {"KEY": "${KEY}"}) == "${KEY}"


def test_variable_that_is_not_set_is_named_in_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"^TWO isn't set\. Put it into secrets\.env\.$"):
        fill_placeholders("${KEY} ${TWO}", {"KEY": "a"})


@pytest.mark.parametrize(
    "name", ["", "claude-sonnet-5-5", "anthropic/claude-3:free", "/models/my model.gguf", "米"]
)
def test_name_that_a_server_may_give_a_model_is_accepted(name: str) -> None:
    assert check_model_name(name) == name


@pytest.mark.parametrize(
    "name", ["[", "{}", '"claude', "'x'", "a, b", "a\nb", "\x07x", " x", "x ", "-", "...", "<m>"]
)
def test_name_that_is_left_over_from_another_notation_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="isn't the name of a model"):
        check_model_name(name)
