"""Asks for a model server, its key and a model, and tests them (`mneme setup model`)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from config.model_options import DEFAULT_SERVER
from config.settings import Settings, load_default_options
from core.models.abilities import ModelClient
from core.models.failures import ModelFailure
from gateway.cli.setup.dialog import Choice
from gateway.cli.setup.steps import Setup, StepFailed
from gateway.services import connect_model_server
from gateway.supervisor import WallClock

OWN_SERVER = "own"
NO_SERVER = "none"
OWN_KEY = "OWN_MODEL_KEY"
MAX_LISTED_MODELS = 12
_ADDRESS = re.compile(r"https?://[^\s/]+", re.IGNORECASE)
PROBE_TIMEOUT_S = 60.0
# Statuses of a server that doesn't list its models.
_NO_LIST_STATUSES = (404, 405, 501)
# If a server answers with one of these statuses, it may have the other form of API.
_OTHER_FORM_STATUSES = (400, 401, *_NO_LIST_STATUSES)
# A server's status if it doesn't have the model.
_UNKNOWN_MODEL_STATUS = 404
# The key of the error if a server can't be reached.
_UNREACHED = "model_unreached"


def choose_model(setup: Setup) -> None:
    """Ask for a server, its key and a model, call the model once, and set it in the draft.

    Raises StepFailed, ModelError or SettingsError if the model doesn't answer.
    """
    words = setup.words["model"]
    presets = load_default_options()["model"]["servers"]
    choices = [Choice(name, words.get(name, name)) for name in presets]
    choices += [
        Choice(OWN_SERVER, words[OWN_SERVER]),
        Choice(NO_SERVER, words[NO_SERVER]),
    ]
    server = setup.dialog.choose(words["question"], choices)
    if server == NO_SERVER:
        return
    if server == OWN_SERVER:
        url = setup.dialog.ask(words["url"])
        key = setup.dialog.ask_secret(words["own_key"], is_optional=True)
        _set_up_own_server(setup, url, key, setup.options.model)
        return
    _ask_for_key(setup, server, presets[server])
    names = _list_models(setup.draft.load(), server)
    default = _find_default_name(setup, server, names)
    while True:
        name = _ask_for_name(setup, names, default)
        try:
            _test_and_set(setup, server, name)
        except ModelFailure as error:
            if error.status != _UNKNOWN_MODEL_STATUS or setup.options.model:
                raise
            # Only the name is asked again, not the server and its key.
            setup.dialog.warn(setup.describe_failure(error))
        else:
            return


def _ask_for_key(setup: Setup, server: str, preset: Mapping[str, Any]) -> None:
    """Ask for the key of a server, if it needs one, and store it."""
    words = setup.words["model"]
    key_name = preset.get("key", "")
    if key_name:
        page = preset.get("key_page", "")
        page_words = words["key_page"].format(url=page) if page else ""
        question = words["key"].format(server=words[server], page=page_words)
        setup.set_secret(key_name, setup.ask_for_secret(key_name, question))


def set_model_from_options(setup: Setup, *, is_needed: bool = False) -> None:
    """Set up a model from the options or the keys in the environment, without questions.

    If neither names a model, nothing changes, or StepFailed is raised if `is_needed`. Raises
    StepFailed, ModelError or SettingsError if the model doesn't answer.
    """
    options = setup.options
    if options.url:
        _set_up_own_server(setup, options.url, setup.find_secret(OWN_KEY), options.model)
        return
    presets = load_default_options()["model"]["servers"]
    server, name = _find_preset(setup, presets)
    if not server:
        if is_needed:
            raise StepFailed(setup.words["option_missing"].format(option="--model"))
        return
    key_name = presets[server].get("key", "")
    if key_name:
        _store_key(setup, server, key_name)
    if not name:
        names = _list_models(setup.draft.load(), server)
        name = _find_default_name(setup, server, names)
    if not name:
        raise StepFailed(setup.words["model"]["no_name"])
    _test_and_set(setup, server, name)


def _find_preset(setup: Setup, presets: Mapping[str, Any]) -> tuple[str, str]:
    """Return the server and model of the options, or the first server whose key is set.

    The model is "" if the options don't name one. Both are "" if they name
    no model and no server's key is set.
    """
    model = setup.options.model
    if model:
        server, _, name = model.partition("/")
        return (server, name) if server in presets else (DEFAULT_SERVER, model)
    for server, preset in presets.items():
        if preset.get("key") and setup.find_secret(preset["key"]):
            return server, ""
    return "", ""


def _store_key(setup: Setup, server: str, key_name: str) -> None:
    """Store the key of a server. Raises StepFailed if the server needs a key and none is set."""
    key = setup.find_secret(key_name)
    if key:
        setup.set_secret(key_name, key)
    elif server != DEFAULT_SERVER or not setup.find_secret("ANTHROPIC_BASE_URL"):
        model = setup.options.model
        if server == DEFAULT_SERVER and model and not model.startswith((server, "claude")):
            words = setup.words["model"]["no_server_named"]
            raise StepFailed(words.format(model=model, name=key_name))
        raise StepFailed(setup.words["not_set"].format(name=key_name))


def _set_up_own_server(setup: Setup, url: str, key: str, name: str) -> None:
    """Detect which API a server has, and set it up with one of its models.

    Raises StepFailed if the address is malformed, or if the server can't be reached or offers no
    API for models. Raises ModelError if the model doesn't answer.
    """
    words = setup.words["model"]
    if not _ADDRESS.match(url):
        raise StepFailed(words["no_address"].format(url=url))
    if key:
        setup.set_secret(OWN_KEY, key)
    first_failure: ModelFailure | None = None
    for api, address in _list_apis(url):
        table = {"api": api, "url": address} | ({"key": OWN_KEY} if key else {})
        for option, value in table.items():
            # The table is complete only at the end, so it is checked then.
            path = f"model.servers.{OWN_SERVER}.{option}"
            setup.draft.text = setup.draft.with_option(path, value)
        try:
            # The person is asked for a name only once, even if several forms of API are tried.
            name = name or _find_name(setup)
            if name:
                _test_and_set(setup, OWN_SERVER, name)
                return
        except ModelFailure as error:
            first_failure = first_failure or error
            if error.status not in _OTHER_FORM_STATUSES:
                break
    if first_failure is None:
        raise StepFailed(words["no_list"].format(url=url))
    if first_failure.key == _UNREACHED:
        raise StepFailed(words["unreached"].format(url=url)) from first_failure
    if first_failure.status in _NO_LIST_STATUSES:
        raise StepFailed(words["no_server"].format(url=url))
    raise first_failure


def _find_name(setup: Setup) -> str:
    """Return the model to use from the person's own server.

    The person chooses it. In a script, it's the first model that the server lists, or "".
    """
    names = _list_models(setup.draft.load(), OWN_SERVER)
    first_name = names[0] if names else ""
    if setup.dialog.is_interactive:
        return _ask_for_name(setup, names, first_name)
    return first_name


def _list_apis(url: str) -> Iterator[tuple[str, str]]:
    """Yield the APIs that a server may have, each with the URL to use for that API."""
    address = url.rstrip("/")
    yield "chat-completions", address
    if not address.endswith("/v1"):
        yield "chat-completions", f"{address}/v1"
    yield "messages", address.removesuffix("/v1")


def _list_models(settings: Settings, server: str) -> Sequence[str]:
    """Return the names of the models that a server lists, which may be empty.

    Raises ModelError if the server can't be reached or rejects the key.
    """

    async def work() -> Sequence[str]:
        client = connect_model_server(settings, WallClock(), server)
        try:
            return await client.list_models()
        except ModelFailure as error:
            if error.status in _NO_LIST_STATUSES:
                return []
            raise
        finally:
            await client.close()

    return asyncio.run(work())


def _find_default_name(setup: Setup, server: str, names: Sequence[str]) -> str:
    """Return the model to suggest for a server.

    If the configured model belongs to this server, it's suggested, otherwise the server's
    recommended model. If the server doesn't list the recommended model, the first model in the list
    is suggested.
    """
    defaults: dict[str, Any] = load_default_options()["model"]
    current = setup.draft.own_options.get("model", {}).get("chat", "")
    if isinstance(current, str) and current.startswith(f"{server}/"):
        return current.partition("/")[2]
    if server == DEFAULT_SERVER:
        is_own = isinstance(current, str) and current and "/" not in current
        return current if is_own else str(defaults["chat"])
    first = str(defaults["servers"].get(server, {}).get("chat", ""))
    # Gemini lists "models/gemini-flash-latest".
    if first and (not names or any(name.removeprefix("models/") == first for name in names)):
        return first
    return names[0] if names else ""


def _ask_for_name(setup: Setup, names: Sequence[str], default: str) -> str:
    words = setup.words["model"]
    if names:
        listed = ", ".join(names[:MAX_LISTED_MODELS])
        if len(names) > MAX_LISTED_MODELS:
            listed += words["and_more"].format(count=len(names) - MAX_LISTED_MODELS)
        count = setup.texts.format_count(len(names), "model")
        setup.dialog.tell(words["listed"].format(count=count, names=listed))
    return setup.options.model or setup.dialog.ask(words["name"], default)


def _test_and_set(setup: Setup, server: str, name: str) -> None:
    """Call a model once, make it the chat model of the draft, and print its price.

    Raises ModelError if the model doesn't answer.
    """
    words = setup.words["model"]
    setup.dialog.tell(words["trying"].format(name=name))
    asyncio.run(_probe(setup, server, name))
    has_prefix = server != DEFAULT_SERVER or "/" in name
    full_name = f"{server}/{name}" if has_prefix else name
    current = setup.draft.own_options.get("model", {}).get("chat")
    others = current[1:] if isinstance(current, list) else []
    setup.set_option("model.chat", [full_name, *others] if others else full_name)
    settings = setup.draft.load()
    setup.dialog.tell(words["result"].format(name=name))
    price = settings.usage.prices.get(full_name)
    if price is None:
        setup.dialog.tell(words["no_price"].format(name=name))
    else:
        setup.dialog.tell(
            words["price"].format(
                name=name,
                currency=settings.usage.currency,
                input=setup.texts.format_number(_shorten(price.input)),
                output=setup.texts.format_number(_shorten(price.output)),
            )
        )


async def _probe(setup: Setup, server: str, name: str) -> None:
    """Call a model once. Raises StepFailed if it doesn't answer in time."""
    client: ModelClient = connect_model_server(setup.draft.load(), WallClock(), server)
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            await client.probe(name)
    except TimeoutError:
        words = setup.words["model"]["no_answer"]
        raise StepFailed(words.format(name=name, seconds=round(PROBE_TIMEOUT_S))) from None
    finally:
        await client.close()


def _shorten(price: float) -> float:
    """Return a price without trailing decimals if it's a whole number."""
    return int(price) if price == int(price) else price
