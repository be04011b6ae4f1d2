"""Turns on the local page and sets its port: the step "page" of `mneme setup`."""

from __future__ import annotations

from gateway.cli.setup.steps import Setup, StepFailed
from gateway.local.ports import list_served_ports, page_port
from gateway.sharing.home_lock import is_running

# A longer number is no port.
MAX_PORT_DIGITS = 5


def set_up_page(setup: Setup) -> None:
    """Ask for the port of the page, and turn the page on.

    Raises StepFailed if the port isn't valid, or if another program uses it.
    """
    words = setup.words["page"]
    old_settings = setup.draft.load()
    own_ports = list_served_ports(old_settings) if is_running(setup.draft.home) else []
    typed = setup.options.page
    if not typed:
        port = page_port(old_settings)
        is_usable = port in own_ports or port.is_free()
        typed = str(port.number if is_usable else port.find_free_number())
        if setup.dialog.is_interactive:
            typed = setup.dialog.ask(words["question"], typed)
    is_number = typed.isdecimal() and len(typed) <= MAX_PORT_DIGITS
    number = int(typed) if is_number else typed
    if number != old_settings.web.port:
        setup.set_option("web.port", number)
    setup.set_option("web.enabled", True)
    settings = setup.draft.load()
    port = page_port(settings)
    if port not in own_ports and not port.is_free():
        raise StepFailed(port.describe_taken(setup.texts))
    setup.dialog.tell(words["result"].format(address=settings.web.address))
