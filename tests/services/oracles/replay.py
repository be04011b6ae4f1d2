"""Repeats our provider's requests with a vendor's client.

The interpreter of the environment with that client runs it.

Arguments: which client, and the address of a double. It reads requests of ours, a list of method,
path, parameters and body, and makes of each the call that a user of the client would write, with
the same values. It writes, for each, what the client made of the answer; a request that has no call
of the client is an error."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

Asked = tuple[str, str, dict[str, str], dict[str, Any]]
Calls = dict[str, Callable[..., Any]]


def honcho(url: str, key: str) -> Calls:
    """Naming a peer or a session sends no request."""
    library = import_module("honcho")
    client = library.Honcho(api_key=key, base_url=url, workspace_id="mneme", max_retries=0)
    peer_config, message = (
        import_module("honcho.api_types").SessionPeerConfig,
        library.MessageCreateParams,
    )

    def peer(name: str) -> Any:
        return import_module("honcho.peer").Peer(name, client)

    def session(name: str) -> Any:
        return import_module("honcho.session").Session(name, client)

    def paged(query: dict[str, str], body: dict[str, Any]) -> dict[str, Any]:
        return {"page": int(query["page"]), "size": int(query["size"]), **body}

    def conclusions_of(filters: dict[str, str]) -> Any:
        return peer(filters["observer_id"]).conclusions_of(filters["observed_id"])

    def concluded(query: dict[str, str], body: dict[str, Any]) -> Any:
        (one,) = body["conclusions"]
        given = {name: one[name] for name in ("content", "session_id")}
        return conclusions_of(one).create([given])

    root = "/v3/workspaces/mneme"
    return {
        "POST /v3/workspaces": lambda query, body: client.get_metadata(),
        f"POST {root}/peers": lambda query, body: client.peer(**body),
        f"POST {root}/peers/(.+)/search": lambda name, query, body: peer(name).search(**body),
        f"POST {root}/peers/(.+)/chat": lambda name, query, body: peer(name).chat(
            body["query"], reasoning_level=body["reasoning_level"]
        ),
        f"POST {root}/peers/(.+)/sessions": lambda name, query, body: (
            peer(name).sessions(**paged(query, body)).items
        ),
        f"GET {root}/peers/(.+)/card": lambda name, query, body: peer(name).get_card(),
        f"PUT {root}/peers/(.+)/card": lambda name, query, body: peer(name).set_card(
            body["peer_card"]
        ),
        f"GET {root}/peers/(.+)/context": lambda name, query, body: peer(name).context(**query),
        f"POST {root}/sessions": lambda query, body: client.session(
            body["id"],
            metadata=body["metadata"],
            peers=[(name, peer_config(**config)) for name, config in body["peers"].items()],
        ),
        f"POST {root}/sessions/list": lambda query, body: (
            client.sessions(**paged(query, body)).items
        ),
        f"DELETE {root}/sessions/([^/]+)": lambda name, query, body: session(name).delete(),
        f"POST {root}/sessions/(.+)/messages": lambda name, query, body: session(name).add_messages(
            [message(**one) for one in body["messages"]]
        ),
        f"POST {root}/sessions/(.+)/messages/list": lambda name, query, body: (
            session(name).messages(**paged(query, body)).items
        ),
        f"POST {root}/conclusions": concluded,
        f"POST {root}/conclusions/list": lambda query, body: (
            conclusions_of(body["filters"]).list(int(query["page"]), int(query["size"])).items
        ),
        f"POST {root}/conclusions/query": lambda query, body: conclusions_of(body["filters"]).query(
            body["query"], body["top_k"]
        ),
        f"DELETE {root}/conclusions/(.+)": lambda number, query, body: peer(
            "any"
        ).conclusions.delete(number),
    }


def supermemory(url: str, key: str) -> Calls:
    client = import_module("supermemory").Supermemory(api_key=key, base_url=url, max_retries=0)
    return {
        "GET /ns": lambda query, body: client.namespaces.list(limit=int(query["limit"])),
        "POST /ns/(.+)/document": lambda space, query, body: client.add(space, **snake(body)),
        "GET /ns/(.+)/document/(.+)": lambda space, number, query, body: client.documents.get(
            space, number
        ),
        "DELETE /ns/(.+)/document": lambda space, query, body: client.documents.delete(
            space, ids=body["ids"]
        ),
        "POST /ns/(.+)/search": lambda space, query, body: client.search(space, **snake(body)),
        "POST /ns/(.+)/profile": lambda space, query, body: client.profile(space),
        "DELETE /ns/(.+)/memories": lambda space, query, body: client.memories.forget(
            space, ids=body["ids"]
        ),
    }


def supermemory_v4(url: str, key: str) -> Calls:
    client = import_module("supermemory").Supermemory(api_key=key, base_url=url, max_retries=0)
    return {
        "POST /v3/documents": lambda query, body: client.documents.add(**snake(body)),
        "POST /v3/documents/list": lambda query, body: client.documents.list(**snake(body)),
        "GET /v3/documents/(.+)": lambda number, query, body: client.documents.get(number),
        "DELETE /v3/documents/(.+)": lambda number, query, body: client.documents.delete(number),
        "POST /v4/search": lambda query, body: client.search.memories(**snake(body)),
        "POST /v4/profile": lambda query, body: client.profile(**snake(body)),
        "DELETE /v4/memories": lambda query, body: client.memories.forget(**snake(body)),
    }


def zep(url: str, key: str) -> Calls:
    client = import_module("zep_cloud").Zep(api_key=key, base_url=url)
    graph = client.graph

    def paged(query: dict[str, str]) -> dict[str, Any]:
        return {name: int(value) if name == "page_size" else value for name, value in query.items()}

    episode, edge = "/graphs/(.+)/episodes/([^/]+)", "/graphs/(.+)/edges/([^/]+)"
    return {
        "GET /project": lambda query, body: client.project.get(),
        "POST /users/lookup": lambda query, body: client.user.lookup(**body),
        "POST /users": lambda query, body: client.user.create(**body),
        "POST /graphs/(.+)/search/edges": lambda uuid, query, body: (
            graph.search_edges(uuid, **paged(query), **body).items
        ),
        "POST /graphs/(.+)/episodes/list": lambda uuid, query, body: (
            graph.episode.list(uuid, **paged(query), **body).items
        ),
        "POST /graphs/(.+)/edges/list": lambda uuid, query, body: (
            graph.edge.list(uuid, **paged(query), **body).items
        ),
        "POST /graphs/(.+)/episodes": lambda uuid, query, body: graph.episode.add(uuid, **body),
        f"GET {episode}": lambda uuid, name, query, body: graph.episode.get(uuid, name),
        f"DELETE {episode}": lambda uuid, name, query, body: graph.episode.delete(uuid, name),
        f"GET {edge}": lambda uuid, name, query, body: graph.edge.get(uuid, name),
        f"PATCH {edge}": lambda uuid, name, query, body: graph.edge.update(uuid, name, **body),
        f"DELETE {edge}": lambda uuid, name, query, body: graph.edge.delete(uuid, name),
    }


def letta(url: str, key: str) -> Calls:
    client = import_module("letta_client").Letta(api_key=key, base_url=url, max_retries=0)
    archives, blocks = client.archives, client.blocks

    def listed(query: dict[str, str]) -> dict[str, Any]:
        return {name: int(value) if name == "limit" else value for name, value in query.items()}

    return {
        "GET /v1/health/": lambda query, body: client.health(),
        "GET /v1/archives/": lambda query, body: list(archives.list(**listed(query)).items),
        "POST /v1/archives/": lambda query, body: archives.create(**body),
        "POST /v1/archives/(.+)/passages": lambda archive, query, body: archives.passages.create(
            archive, **body
        ),
        "DELETE /v1/archives/(.+)/passages/(.+)": lambda archive, passage, query, body: (
            archives.passages.delete(passage, archive_id=archive)
        ),
        "POST /v1/passages/search": lambda query, body: client.passages.search(**body),
        "GET /v1/blocks/": lambda query, body: list(blocks.list(**listed(query)).items),
        "POST /v1/blocks/": lambda query, body: blocks.create(**body),
        "PATCH /v1/blocks/(.+)": lambda block, query, body: blocks.update(block, **body),
    }


def shown(value: Any) -> Any:
    """Return a printable form.

    A client accepts an answer with missing fields, but this raises an error."""
    if isinstance(value, list | tuple):
        return [shown(one) for one in value]
    fields = getattr(type(value), "model_fields", {})
    for name, field in fields.items():
        if field.is_required() and name not in value.model_fields_set:
            raise ValueError(f"{type(value).__name__} needs {name}")
    if fields:
        return {name: shown(getattr(value, name)) for name in fields}
    return getattr(value, "content", None if value is None else str(value))


def snake(body: dict[str, Any]) -> dict[str, Any]:
    """Return the name of a field as the clients write it."""
    return {re.sub("([A-Z])", r"_\1", name).lower(): value for name, value in body.items()}


def replayed(calls: Calls, asked: Asked) -> Any:
    method, path, query, body = asked
    for pattern, call in calls.items():
        if found := re.fullmatch(pattern, f"{method} {path}"):
            try:
                return shown(call(*found.groups(), query, body))
            except Exception as error:
                # A missing item is a valid answer, too.
                if getattr(error, "status_code", getattr(error, "status", None)) == 404:
                    return None
                raise
    raise LookupError(f"there is no call for {method} {path}")


def main() -> None:
    calls = {
        "honcho": honcho,
        "supermemory": supermemory,
        "supermemory-v4": supermemory_v4,
        "zep": zep,
        "letta": letta,
    }[sys.argv[1]]
    made = calls(sys.argv[2], os.environ["SERVICE_KEY"])
    said = [replayed(made, tuple(one)) for one in json.load(sys.stdin)]
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main()
