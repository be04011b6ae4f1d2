"""The page "Logins": which browsers are logged in, and how to end that."""

from __future__ import annotations

from collections.abc import Mapping

from core.errors import Refused
from core.types import Answer
from gateway.web.views import Action, Page, PageRequest, Values, View, read_field


async def load_logins(request: PageRequest) -> Values:
    """Return the logins of this person."""
    return {"logins": request.logins.list_logins(request.context.account)}


async def end_login(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """End a login of this person. Raises Refused if there is none with this id."""
    login_id = read_field(request, form, "login")
    if not request.logins.end(login_id, request.context.account):
        raise Refused(request.words["NO_LOGIN"])
    return Answer(text=request.words["LOGIN_ENDED"])


PAGE = Page(
    "logins",
    views=(View("/logins", "logins.html", load_logins),),
    actions=(Action("end-login", end_login),),
)
