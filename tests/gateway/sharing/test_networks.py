"""Gateways in two network namespaces with one PostgreSQL server, over TCP with TLS."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.fixtures.forked import ROOT
from tests.fixtures.forwarding import offer
from tests.fixtures.gateways import Gateways, Storm, open_gateways
from tests.fixtures.kill_storm import answer_all, choose_seed
from tests.fixtures.live_system import KEY
from tests.fixtures.messages_api import MessagesApi
from tests.fixtures.networks import SERVER, Network, can_create_networks, open_networks
from tests.fixtures.postgres import MISSING, USER, PostgresServer, find_programs, leave_out

pytestmark = [
    pytest.mark.sweep,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not can_create_networks() or shutil.which("openssl") is None,
        reason="needs Linux, root, network namespaces (iproute2) and openssl",
    ),
]

PEOPLE = [5000, 5001, 5002, 5003]
PASSWORD = "a pass word: ü"
# How long the cable is cut. The server ends the connection after 25 seconds without packets.
CUT_S = 40.0


@pytest.fixture
def networks() -> Iterator[list[Network]]:
    with open_networks(2) as networks:
        yield networks


@pytest.fixture
def server(networks: list[Network]) -> Iterator[PostgresServer]:
    """A server that only accepts TLS with a password."""
    programs = find_programs()
    if programs is None:
        leave_out(MISSING)
        return
    settings = {"listen_addresses": SERVER, "ssl": "on"}
    server = PostgresServer(programs, folder=Path(tempfile.gettempdir()), settings=settings)
    try:
        settings.update(create_certificate(server.folder))
        server.start()
        allow_tls_only(server)
        yield server
    finally:
        server.close()


def create_certificate(folder: Path) -> dict[str, str]:
    """Create a certificate for `SERVER`, and return the server's settings for it."""
    certificate, key = folder / "server.crt", folder / "server.key"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=mneme test", "-addext", f"subjectAltName=IP:{SERVER}"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    # The server refuses a key that others can read.
    shutil.chown(key, "postgres")
    key.chmod(0o600)
    folder.chmod(0o755)
    return {"ssl_cert_file": str(certificate), "ssl_key_file": str(key)}


def allow_tls_only(server: PostgresServer) -> None:
    """Set the user's password, and refuse other connections over the network."""
    (server.folder / "data" / "pg_hba.conf").write_text(
        "local all all trust\nhostssl all all all scram-sha-256\n"
    )
    with psycopg.connect(server.url_of("postgres"), autocommit=True) as connection:
        connection.execute(f"ALTER USER {USER} PASSWORD '{PASSWORD}'")
        connection.execute("SELECT pg_reload_conf()")


class Machines:
    """A gateway in each network, with the same home. The platforms are reached past the cables."""

    def __init__(self, gateways: Gateways, networks: Sequence[Network]) -> None:
        self.gateways = gateways
        self._networks = networks
        self._processes: list[subprocess.Popen[bytes]] = []

    async def start(self, network: Network) -> None:
        """Start a gateway in a network, and wait until it has joined the others."""
        gateways = self.gateways
        ports = [urlsplit(url).port for url in (gateways.telegram.url, gateways.model.url)]
        pairs = [str(part) for port in ports for part in (gateways.home / f"port-{port}", port)]
        await self._run(network, "tests.fixtures.forwarding", *pairs)
        await self._run(network, "gateway.cli.main", "run")
        started = len(self._processes) // 2
        while await asyncio.to_thread(gateways.count_together) < started:
            assert self._processes[-1].poll() is None, gateways.read_logs()
            await asyncio.sleep(0.1)

    async def _run(self, network: Network, *command: str) -> None:
        environment = self.gateways.environment | {"MNEME_STORE_PASSWORD": PASSWORD}
        with (self.gateways.home / f"{network.name}.log").open("ab") as log:
            process = await asyncio.to_thread(
                subprocess.Popen,
                network.enter(sys.executable, "-m", *command),
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._processes.append(process)

    async def destroy(self, network: Network) -> None:
        """End a machine at once, so that no packet says so."""
        network.cut()
        await self._kill(self._processes[2 * self._networks.index(network) + 1])

    async def close(self) -> None:
        for process in self._processes:
            await self._kill(process)

    @staticmethod
    async def _kill(process: subprocess.Popen[bytes]) -> None:
        process.kill()
        await asyncio.to_thread(process.wait)


@pytest.fixture
async def machines(
    home: Path, networks: list[Network], server: PostgresServer
) -> AsyncIterator[Machines]:
    database = server.create_database()
    url = (
        f"postgresql://{USER}@{SERVER}/{database}"
        f"?sslmode=verify-full&sslrootcert={server.folder / 'server.crt'}"
    )
    model = MessagesApi(answer_all, key=KEY)
    async with AsyncExitStack() as stack:
        gateways = await stack.enter_async_context(
            open_gateways(home, url, model, len(PEOPLE), password="MNEME_STORE_PASSWORD")
        )
        # The test itself asks the server through its socket.
        gateways.url = server.url_of(database)
        for address in (gateways.telegram.url, gateways.model.url):
            port = urlsplit(address).port
            assert port is not None
            forwarder = await offer(str(home / f"port-{port}"), port)
            stack.callback(forwarder.close)
        machines = Machines(gateways, networks)
        stack.push_async_callback(machines.close)
        for network in networks:
            await machines.start(network)
        yield machines


async def test_gateways_in_two_networks_outlast_a_cut_cable_and_a_lost_machine(
    machines: Machines, networks: list[Network], server: PostgresServer
) -> None:
    gateways = machines.gateways
    storm = Storm(gateways, PEOPLE, choose_seed())
    for person in PEOPLE:
        storm.say(person)
    await storm.settle()
    assert len(set(gateways.list_owners().values())) == 2
    encrypted = gateways.query(
        "SELECT ssl.ssl FROM pg_stat_ssl AS ssl JOIN pg_stat_activity AS activity USING (pid) "
        "WHERE activity.client_addr IS NOT NULL"
    )
    assert set(encrypted) == {(True,)}

    # The other gateway works for the front, which runs in the first network.
    networks[1].cut()
    storm.say_something()
    await asyncio.sleep(CUT_S)
    networks[1].mend()
    await storm.settle()
    assert storm.list_damage() == []

    storm.say_something()
    await machines.destroy(networks[1])
    for person in PEOPLE:
        storm.say(person)
    await storm.settle()
    assert storm.list_damage() == []
    assert len(set(gateways.list_owners().values())) == 1
