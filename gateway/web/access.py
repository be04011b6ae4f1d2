"""Gives access to the page: /web sends a person the link, and the page "Logins" lists browsers.

The gateway imports this module at startup, so it doesn't import the web server.
"""

from __future__ import annotations

from collections.abc import Mapping

from core.errors import Refused
from core.types import Answer, Command
from gateway.commands.registry import CommandContext, load_specs
from gateway.services import Services
from gateway.web.logins import Visitor
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
        options = self._services.settings.page
        if not context.inbound.is_direct:
            raise Refused(texts.PAGE_IN_PRIVATE)
        if not context.is_owner and not (options.people and options.enabled):
            raise Refused(texts.PAGE_OWNER_ONLY)
        if not options.enabled:
            raise Refused(texts.PAGE_OFF)
        if not self._services.page_logins.is_page_served:
            raise Refused(texts.PAGE_PORT_TAKEN.format(port=options.port))
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
    """Return the browsers that this person is logged in with."""
    return {
        "logins": request.logins.list_logins(request.context.account),
        "name_address": lambda address: name_address(request.words, address),
        "name_browser": lambda browser: name_browser(request.words, browser),
    }


def name_browser(words: Mapping[str, str], user_agent: str) -> str:
    """Return a name such as "Firefox on Windows" for a browser's user agent."""
    browser = next((name for mark, name in BROWSERS if mark in user_agent), "")
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
    if not request.logins.end(login_id, request.context.account):
        raise Refused(request.words["NO_LOGIN"])
    return Answer(text=request.words["LOGIN_ENDED"])


async def end_other_logins(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """End all logins of this person except the current login."""
    account = request.context.account
    for login in request.logins.list_logins(account):
        if login.id != request.login.id:
            request.logins.end(login.id, account)
    return Answer(text=request.words["OTHERS_ENDED"])


PAGE = Page(
    "logins",
    views=(View("/logins", "logins.html", load_logins),),
    actions=(
        Action("end-login", end_login),
        Action("end-other-logins", end_other_logins),
    ),
)
