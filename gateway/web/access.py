"""Gives access to the page: /web sends a person the link, and the page "Logins" lists browsers.

The gateway imports this module at startup, so it doesn't import the web server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from core.errors import Refused
from core.store.ownership.people import TERMINAL
from core.types import Answer, Command
from gateway.commands.facts import is_own_account
from gateway.commands.registry import CommandContext, load_specs
from gateway.local.ports import page_port
from gateway.services import Services
from gateway.web.logins import Login, Visitor
from gateway.web.views import Action, Page, PageRequest, Values, View, read_field

# Parts of user agents, and the names of the browsers. The first match counts, because most browsers
# also contain the names of the browsers that they descend from.
BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser", "Samsung Internet"),
    ("Firefox", "Firefox"),
    ("FxiOS", "Firefox"),
    ("CriOS", "Chrome"),
    ("Chrome", "Chrome"),
    ("Safari", "Safari"),
    ("curl", "curl"),
)
SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Macintosh", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


class WebCommands:
    specs = load_specs("web")

    def __init__(self, services: Services) -> None:
        self._services = services

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """Create a link that opens this person's page once, within ten minutes.

        Raises Refused in a group, if the page is off or its port is in use, and for people other
        than the owner unless the settings allow it.
        """
        texts = context.texts
        options = self._services.settings.web
        if not context.inbound.is_direct:
            raise Refused(texts.PAGE_IN_PRIVATE)
        if not context.is_owner and not (options.people and options.enabled):
            raise Refused(texts.PAGE_OWNER_ONLY)
        if not options.enabled:
            raise Refused(texts.PAGE_OFF)
        if not self._services.page_logins.is_page_served:
            free = page_port(self._services.settings).find_free_number()
            raise Refused(texts.PAGE_PORT_TAKEN.format(port=options.port, free=free))
        visitor = Visitor(
            account=context.account,
            address=context.inbound.address,
            scope=context.scope,
            name=context.inbound.sender.name,
        )
        key = self._services.page_logins.create_key(visitor)
        link = f"{options.address}/login?key={key}"
        return Answer(text=texts.PAGE_LINK.format(link=link), is_private=True)


async def load_logins(request: PageRequest) -> Values:
    """Return the browsers that this person is logged in with, by all of their accounts."""
    return {
        "logins": _list_own_logins(request),
        "name_address": lambda address: name_address(request.words, address),
        "name_browser": lambda browser: name_browser(request.words, browser),
        "name_link": lambda login: _name_link(request, login),
    }


def _list_own_logins(request: PageRequest) -> list[Login]:
    return [
        login
        for login in request.logins.list_all()
        if is_own_account(request.context, login.visitor.account)
    ]


def _name_link(request: PageRequest, login: Login) -> str:
    """Return where the link of a login came from: the shell, or a chat."""
    account = login.visitor.account
    if account == TERMINAL:
        return request.words["LINK_SHELL"]
    return request.words["LINK_CHAT"].format(platform=request.texts.name_platform(account.platform))


def name_browser(words: Mapping[str, str], user_agent: str) -> str:
    """Return a name such as "Firefox 151 on Windows" for a browser's user agent."""
    mark, browser = next((entry for entry in BROWSERS if entry[0] in user_agent), ("", ""))
    version = re.search(rf"(?:Version|{mark}\w*)/(\d{{1,4}})", user_agent) if mark else None
    if version is not None:
        browser = f"{browser} {version[1]}"
    system = next((name for mark, name in SYSTEMS if mark in user_agent), "")
    if browser and system:
        return words["BROWSER_ON"].format(browser=browser, system=system)
    return browser or system or words["OTHER_BROWSER"]


def name_address(words: Mapping[str, str], address: str) -> str:
    """Return the address of a browser as ", 192.0.2.7", or "" if it isn't known."""
    if not address:
        return ""
    if address in ("127.0.0.1", "::1"):
        return f", {words['THIS_MACHINE']}"
    return f", {address}"


async def end_login(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """End a login of this person. Raises Refused if there is no login with this id."""
    login_id = read_field(request, form, "login")
    login = next((each for each in _list_own_logins(request) if each.id == login_id), None)
    if login is None:
        raise Refused(request.words["NO_LOGIN"])
    request.logins.end(login.id, login.visitor.account)
    return Answer(text=request.words["LOGIN_ENDED"])


async def end_other_logins(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """End all logins of this person except the current login."""
    for login in _list_own_logins(request):
        if login.id != request.login.id:
            request.logins.end(login.id, login.visitor.account)
    return Answer(text=request.words["OTHERS_ENDED"])


PAGE = Page(
    "logins",
    views=(View("/logins", "logins.html", load_logins),),
    actions=(
        Action("end-login", end_login),
        Action("end-other-logins", end_other_logins),
    ),
)
