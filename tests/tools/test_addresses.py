"""Web addresses that lead into a local network, in every form, are refused."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from core.errors import Refused
from core.tools.addresses import check_address, is_public, resolve_host
from tests.fixtures.tables import each_row
from tests.fixtures.web_pages import resolver

LOCAL_URLS = [
    "http://127.0.0.1/", "http://127.1/", "http://127.0.0.1:8080/", "http://2130706433/",
    "http://0x7f000001/", "http://0x7f.1/", "http://0177.0.0.1/", "http://017700000001/",
    "http://0/", "http://0.0.0.0/", "http://localhost/", "http://LOCALHOST/",
    "http://10.0.0.1/", "http://10.255.255.255/", "http://172.16.0.1/", "http://172.31.255.254/",
    "http://192.168.0.1/", "http://192.168.1.254/admin", "http://169.254.169.254/latest/meta-data/",
    "http://169.254.0.1/", "http://100.64.0.1/", "http://100.127.255.254/", "http://192.0.0.1/",
    "http://198.18.0.1/", "http://198.19.255.255/", "http://224.0.0.1/", "http://239.255.255.250/",
    "http://240.0.0.1/", "http://255.255.255.255/", "http://[::1]/", "http://[::]/",
    "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::ffff:10.0.0.1]/",
    "http://[::ffff:a9fe:a9fe]/", "http://[::127.0.0.1]/", "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b::10.0.0.1]/", "http://[64:ff9b:1::a00:1]/",
    "http://[64:ff9b:1:a00:1:0:808:808]/", "http://168.63.129.16/", "http://[2002:7f00:1::]/",
    "http://[2002:a00:1::1]/", "http://[2002:c0a8:101::1]/",
    "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/", "http://[fe80::1]/", "http://[febf::1]/",
    "http://[fc00::1]/", "http://[fd12:3456:789a::1]/", "http://[fec0::1]/", "http://[ff02::1]/",
    "http://[ff0e::1]/", "http://[100::1]/", "http://[2001:db8::1]/",
    "http://192.0.0.192/", "http://192.88.99.1/", "http://100.100.100.200/",
    "http://0xa9fea9fe/", "http://0251.0376.0251.0376/", "http://169.254.43518/",
    "http://192.168.257/", "http://127.65535/", "http://127.0.0.1./", "http://localhost./",
    "http://0177.0x0.1/", "http://[fd00:ec2::254]/", "http://[::ffff:0:7f00:1]/",
    "http://[3fff::1]/", "http://[4000::1]/", "http://[200::1]/", "http://[::1%25lo]/",
    "http://[2606:4700::5efe:127.0.0.1]/", "http://[2606:4700::200:5efe:192.168.1.1]/",
    "http://[2606:4700::100:5efe:192.168.1.1]/", "http://[2606:4700::300:5efe:127.0.0.1]/",
    "http://[2002:a9fe:a9fe::1]/", "http://[64:ff9b::a9fe:a9fe]/", "http://①②⑦.⓪.⓪.①/",
    "http://127。0。0。1/", "http://\uff4cocalhost/", "http://127.0.0.1#@example.org/",
    "http://127.0.0.1?@example.org/", "http://127.0.0.1:080/", "http://%31%32%37.0.0.1/",
]  # fmt: skip
ODD_URLS = [
    "ftp://example.org/", "file:///etc/passwd", "gopher://example.org/", "javascript:alert(1)",
    "data:text/html,hi", "//example.org/", "example.org", "", "http://", "http:///path",
    "http://user@example.org/", "http://user:secret@example.org/", "http://example.org:22/",
    "http://example.org:25/", "http://example.org:99999/", "http://exam ple.org/",
    "http://example.org@127.0.0.1/", "http://127.0.0.1%2f@example.org/",
    "http://example.org\\@127.0.0.1/", "http:127.0.0.1/", "http:/127.0.0.1/",
    "http:\\\\127.0.0.1\\",
    "http://127.0.0.1%00.example.org/", "http://[127.0.0.1]/", "http://example.org:80:80/",
    "http://example.org/\r\nHost: inside", "http://example.org/\x00", "http://[::1",
]  # fmt: skip


@pytest.mark.parametrize("url", LOCAL_URLS)
async def test_address_of_a_local_network_is_refused_in_every_form(url: str) -> None:
    with pytest.raises(Refused):
        await check_address(url, resolve_host, is_public)


@pytest.mark.parametrize("url", ODD_URLS)
async def test_odd_web_address_is_refused_before_any_request(url: str) -> None:
    with pytest.raises(Refused):
        await check_address(url, resolver({"example.org": "93.184.216.34"}))


@pytest.mark.parametrize("ip", ["127.0.0.1", "192.168.1.1", "::1", "fd00::1", "::ffff:10.1.2.3"])
async def test_public_name_that_resolves_to_a_local_address_is_refused(ip: str) -> None:
    with pytest.raises(Refused, match="local network"):
        await check_address("https://evil.example/", resolver({"evil.example": ip}))


async def test_host_with_a_public_and_a_local_address_is_refused() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["93.184.216.34", "127.0.0.1"]

    with pytest.raises(Refused, match="local network"):
        await check_address("https://evil.example/", resolve)


async def test_checked_address_keeps_the_name_for_the_host_header_and_connects_to_the_ip() -> None:
    names = {"example.org": "93.184.216.34"}
    target = await check_address("https://example.org/a?b=c#d", resolver(names))
    assert target.url == "https://example.org/a?b=c"
    assert target.netloc == "example.org"
    assert target.connect_url == "https://93.184.216.34:443/a?b=c"


async def test_host_outside_of_ascii_is_resolved_by_its_encoded_name() -> None:
    names = {"xn--bcher-kva.example": "93.184.216.34"}
    target = await check_address("http://bücher.example:8080", resolver(names))
    assert target.origin == "http://xn--bcher-kva.example:8080"


@each_row(
    "text", ["93.184.216.34", "2606:2800:220:1::1", "::ffff:8.8.8.8", "2606:4700::5efe:8.8.8.8"]
)
def test_address_on_the_internet_is_public(text: str) -> None:
    assert is_public(ip_address(text))


async def test_low_port_is_refused_unless_the_owner_chose_the_address() -> None:
    names = {"nas.example": "93.184.216.34"}
    url = "http://nas.example:81/feed.ics"
    with pytest.raises(Refused, match="Port 81"):
        await check_address(url, resolver(names))
    target = await check_address(url, resolver(names), may_use_any_port=True)
    assert target.connect_url == "http://93.184.216.34:81/feed.ics"
