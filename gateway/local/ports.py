"""Finds the ports of the settings that another program uses, and suggests free ones."""

from __future__ import annotations

import errno
import os
import socket
from dataclasses import dataclass
from ipaddress import ip_address

from config.settings import Settings
from gateway.texts.catalog import Texts

# The interface of the metrics.
METRICS_HOST = "127.0.0.1"
# How many ports after a taken one are tried.
MAX_TRIES = 100


@dataclass(frozen=True, slots=True)
class ServedPort:
    """A port that the gateway serves, and the option that sets it, such as "web.port"."""

    option: str
    host: str
    number: int

    def is_free(self) -> bool:
        """Return whether no program uses this port.

        An address that this machine doesn't have counts as free, because its port isn't the fault.
        """
        family = socket.AF_INET6 if ip_address(self.host).version == 6 else socket.AF_INET
        with socket.socket(family) as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                server.bind((self.host, self.number))
            except OSError as error:
                return error.errno != errno.EADDRINUSE
        return True

    def find_free_number(self) -> int:
        """Return the next free port, or this one if none of the next `MAX_TRIES` is free."""
        for number in range(self.number + 1, min(self.number + MAX_TRIES, 65_535) + 1):
            if ServedPort(self.option, self.host, number).is_free():
                return number
        return self.number

    def describe_taken(self, texts: Texts) -> str:
        """Return sentences that say that the port is in use, and which one to choose instead."""
        taken = texts.compose("port_taken", port=self.number)
        choice = texts.compose("port_choose", option=self.option, free=self.find_free_number())
        return f"{taken} {choice}"

    def describe_page_fault(self, texts: Texts, error: OSError) -> str:
        """Return sentences that say why the page can't be served at this port, and what to do."""
        if error.errno == errno.EADDRINUSE:
            free = self.find_free_number()
            return str(texts.PAGE_PORT_TAKEN.format(port=self.number, free=free))
        reason = texts.word_stored(os.strerror(error.errno) if error.errno else str(error))
        return texts.compose("port_unusable", port=self.number, reason=reason)


def list_served_ports(settings: Settings) -> list[ServedPort]:
    """Return the ports that a gateway with these settings serves."""
    ports = []
    if settings.web.enabled:
        ports.append(page_port(settings))
    if settings.metrics.enabled:
        ports.append(ServedPort("metrics.port", METRICS_HOST, settings.metrics.port))
    return ports


def page_port(settings: Settings) -> ServedPort:
    """Return the port of the page, even if the page is off."""
    return ServedPort("web.port", settings.web.bind, settings.web.port)


def find_taken_port(settings: Settings, own: list[ServedPort]) -> ServedPort | None:
    """Return the first port of the settings that is in use, or None.

    Ports in `own` aren't tried, because the running gateway may serve them.
    """
    for port in list_served_ports(settings):
        if port not in own and not port.is_free():
            return port
    return None
