"""Reads a list to erase while its person still decides."""

from __future__ import annotations

from core.store.engine import Database
from core.store.erasure.statements import SELECT_LIST, ErasureList, ErasureRequest, read_list


async def find_unconfirmed(
    database: Database, token: str, request: ErasureRequest
) -> ErasureList | None:
    """Return a list that this account can still confirm at this address, or None.

    A list is also left out if the account no longer sees all of its scopes.
    """
    values = {"id": token, "address": request.address, "account": request.account}
    row = await database.fetch_one(SELECT_LIST, values)
    if row is None or row["started_at"] is not None:
        return None
    erasure_list = read_list(row)
    return erasure_list if request.scopes.issuperset(erasure_list.request.scopes) else None
