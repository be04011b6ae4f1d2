"""Variables inside of a value of the settings."""

from __future__ import annotations

import pytest

from config.field_types import fill_placeholders


def test_value_with_variables_is_filled_and_other_text_stays() -> None:
    filled = fill_placeholders("Bearer ${KEY}, ${KEY}${TWO} $KEY ${key}", {"KEY": "a", "TWO": "b"})
    assert filled == "Bearer a, ab $KEY ${key}"


def test_value_of_a_variable_that_looks_like_a_variable_is_inserted_as_it_is() -> None:
    assert fill_placeholders("${KEY}", {"KEY": "p${TWO}", "TWO": "b"}) == "p${TWO}"
    assert fill_placeholders("${KEY}", {"KEY": "${KEY}"}) == "${KEY}"


def test_variable_that_is_not_set_is_named_in_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"^TWO isn't set\. Put it into secrets\.env\.$"):
        fill_placeholders("${KEY} ${TWO}", {"KEY": "a"})
