"""Where PostgreSQL is missing, its tests are skipped, unless they are required."""

from __future__ import annotations

import pytest

from tests.fixtures.postgres import MISSING, REQUIRED, leave_out


def test_missing_server_skips_a_test_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt install postgresql"):
        leave_out(MISSING)


def test_missing_server_fails_a_test_where_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REQUIRED, "1")
    with pytest.raises(pytest.fail.Exception, match="apt install postgresql"):
        leave_out(MISSING)
