"""Checks web addresses, so that a page can't make Mneme call a machine on the local network.

An address passes if it is a plain http or https URL and its host resolves only to public IP
addresses. The caller then connects to one of the checked IP addresses. It must not resolve the name
again, because the answer may have changed (DNS rebinding).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import SplitResult, urlsplit

from core.errors import Refused

IPAddress = IPv4Address | IPv6Address
Resolver = Callable[[str, int], Awaitable[list[str]]]
"""Returns the IP addresses of a host and port. Raises OSError if there are none."""

MAX_URL_CHARS = 2_000
DEFAULT_PORTS = {"http": 80, "https": 443}
# For lower port numbers, only the default ports are allowed, because other services use the other
# ports.
_FIRST_FREE_PORT = 1024
# IPv6 networks with an IPv4 address in the last 32 bits: NAT64 (RFC 6052) and IPv4-compatible
# addresses.
_EMBEDDING_NETWORKS = (IPv6Network("64:ff9b::/96"), IPv6Network("::/96"))
# NAT64 of a local network. The IPv4 address may be at another place (RFC 8215).
_LOCAL_TRANSLATION = IPv6Network("64:ff9b:1::/48")
# Public addresses that reach a service of the machine's own host (Azure).
_LOCAL_SERVICES = frozenset({IPv4Address("168.63.129.16")})
# Networks without public machines that some versions of Python count as global: protocol
# assignments with the metadata service of Oracle Cloud, the former relays of 6to4, and examples in
# documents (https://www.iana.org/assignments/iana-ipv4-special-registry and -ipv6-).
_SPECIAL_NETWORKS = (
    IPv4Network("192.0.0.0/24"),
    IPv4Network("192.88.99.0/24"),
    IPv6Network("3fff::/20"),
)
# All public IPv6 addresses are in this network.
_PUBLIC_IPV6 = IPv6Network("2000::/3")
# The upper half of an ISATAP interface identifier, without the two bits that it may choose (RFC
# 5214). The lower half is an IPv4 address.
_ISATAP_MARK = 0x0000_5EFE
_ISATAP_FREE_BITS = 0x0300_0000


@dataclass(frozen=True, slots=True)
class Target:
    """A web address with a resolved and checked host."""

    scheme: str
    host: str
    port: int
    # Path and query in the form in which they are sent: "/timetable?day=sunday".
    path: str
    ip: IPAddress

    @property
    def origin(self) -> str:
        """The beginning of the URL, up to the name of the host: ``https://example.org``."""
        return f"{self.scheme}://{self.netloc}"

    @property
    def netloc(self) -> str:
        """The value of the Host header: the host, with the port unless it's the default."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        is_default = self.port == DEFAULT_PORTS[self.scheme]
        return host if is_default else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return self.origin + self.path

    @property
    def connect_url(self) -> str:
        """The URL with the IP address in place of the host name."""
        host = f"[{self.ip}]" if self.ip.version == 6 else str(self.ip)
        return f"{self.scheme}://{host}:{self.port}{self.path}"


def is_public(ip: IPAddress) -> bool:
    """Return whether an IP address belongs to a machine on the public internet.

    An IPv6 address that contains an IPv4 address is public if the IPv4 address is.
    """
    if ip in _LOCAL_SERVICES or ip in _LOCAL_TRANSLATION:
        return False
    if any(ip in network for network in _SPECIAL_NETWORKS):
        return False
    if isinstance(ip, IPv6Address):
        embedded = _find_embedded(ip)
        if embedded is not None:
            return is_public(embedded)
        if ip not in _PUBLIC_IPV6:
            return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


def _find_embedded(ip: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address contains, or None."""
    if ip.ipv4_mapped is not None:
        return ip.ipv4_mapped
    if ip.sixtofour is not None:
        return ip.sixtofour
    if ip.teredo is not None:
        return ip.teredo[1]
    is_isatap = (int(ip) >> 32) & 0xFFFF_FFFF & ~_ISATAP_FREE_BITS == _ISATAP_MARK
    if is_isatap or any(ip in network for network in _EMBEDDING_NETWORKS):
        return IPv4Address(int(ip) & 0xFFFF_FFFF)
    return None


async def resolve_host(host: str, port: int) -> list[str]:
    """Return the IP addresses of a host. Raises OSError if it has none."""
    loop = asyncio.get_running_loop()
    entries = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in entries]


async def check_address(
    url: str,
    resolve: Resolver = resolve_host,
    is_allowed: Callable[[IPAddress], bool] = is_public,
    *,
    may_use_any_port: bool = False,
) -> Target:
    """Resolve the host of a web address, and check all its IP addresses.

    Raises Refused if the address isn't a web address, or if one of the IP addresses isn't allowed.
    By default, it must also have a port on which web pages are common.
    """
    parts, port = _parse_url(url)
    is_low = port not in DEFAULT_PORTS.values() and port < _FIRST_FREE_PORT
    if is_low and not may_use_any_port:
        raise Refused("address_bad_port", port=str(port))
    host = parts.hostname or ""
    try:
        # "idna" is also what getaddrinfo would use. Here it raises an error with a clear cause.
        ascii_host = host if host.isascii() else host.encode("idna").decode()
        texts = await resolve(ascii_host, port)
        addresses = [ip_address(text.partition("%")[0]) for text in texts]
    except (OSError, UnicodeError, ValueError) as error:
        raise Refused("address_unknown_host", host=host[:100]) from error
    if not addresses or not all(is_allowed(address) for address in addresses):
        raise Refused("address_local", host=host[:100])
    path = parts.path or "/"
    if parts.query:
        path += f"?{parts.query}"
    return Target(parts.scheme, ascii_host, port, path, addresses[0])


def _parse_url(url: str) -> tuple[SplitResult, int]:
    """Return the parts of a web address and its port. Raises Refused if the address is invalid."""
    text = url.strip()
    if len(text) > MAX_URL_CHARS:
        raise Refused("address_too_long", limit=MAX_URL_CHARS)
    try:
        parts = urlsplit(text)
        port = parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
    except ValueError as error:
        raise Refused("address_invalid", text=text[:100]) from error
    has_odd_character = any(
        character.isspace() or not character.isprintable() for character in text
    )
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname or has_odd_character:
        raise Refused("address_needs_form", text=text[:100])
    if parts.username is not None or parts.password is not None:
        raise Refused("address_with_login")
    return parts, port
