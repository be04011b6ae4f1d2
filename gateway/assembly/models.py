"""Creates the models, and wraps them for usage, limits and pictures."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from core.agent.compression import ContextWindows
from core.agent.offline import NO_MODEL, OUT_OF_REACH, OfflineModel
from core.media.blocks import MediaBlocks
from core.models.wrappers import FallbackModel, HelperModel, MeteredModel
from core.ports import Model
from gateway.services import Services, create_model_client
from gateway.texts.catalog import load_offline_texts, word_sentence
from gateway.texts.files import word_details


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """Contains the models that answer, and data about pictures and window sizes."""

    chat: MeteredModel
    # Writes titles and summaries, and searches. None if no model is configured.
    helper: MeteredModel | None
    media: MediaBlocks
    windows: ContextWindows
    # False if rules answer messages, because no model is configured.
    has_model: bool


def create_models(services: Services, stack: AsyncExitStack) -> tuple[Model, Model | None]:
    """Create the chat model, and the helper model for titles, summaries and searches.

    Without a configured model, the chat model is `OfflineModel`, which answers from the history,
    and the helper is None.
    """
    zone = services.settings.general.zone
    on_retired = partial(services.owner_notices.notify_retired_model, services.settings.model)
    client = create_model_client(
        services.settings, services.clock, services.model_limits, on_retired
    )
    if client is None:
        return OfflineModel(zone, NO_MODEL, load_offline_texts, word_details), None
    stack.push_async_callback(client.close)
    fallback = OfflineModel(zone, OUT_OF_REACH, load_offline_texts, word_details)
    names = services.settings.model.chat_models
    model = FallbackModel(
        client, fallback, services.clock, names, services.model_outages, word_sentence
    )
    return model, client


async def wrap_models(
    services: Services, chat: Model, helper: Model | None, media: MediaBlocks
) -> Models:
    """Wrap the models for a message's path. `media` adds pictures to their requests."""
    options = services.settings.model
    helper_model = None
    if helper is not None:
        await services.helper_choices.load()
        chosen = HelperModel(helper, options, services.helper_choices, services.clock)
        helper_model = _meter(services, chosen, media)
    # Only a client of a server can fetch window sizes. `getattr` recognizes such a client without
    # importing its class. The import would load 40 MB even without a model.
    windows = ContextWindows(options, getattr(helper, "fetch_window_tokens", None))
    return Models(
        chat=_meter(services, chat, media),
        helper=helper_model,
        media=media,
        windows=windows,
        has_model=not isinstance(chat, OfflineModel),
    )


def _meter(services: Services, model: Model, media: MediaBlocks) -> MeteredModel:
    """Wrap a model so that its usage is logged and limited, and pictures are added to requests."""
    return MeteredModel(
        model,
        services.usage_log,
        services.clock,
        services.settings.model.cache,
        media.fill,
        media.collect_descriptions,
    )
