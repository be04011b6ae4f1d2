"""The client of the model's server, as the settings describe it; none where they name neither key nor server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from config.settings import Settings
from core.ports import Clock

if TYPE_CHECKING:
    from core.models.claude import Claude


def client(settings: Settings, clock: Clock) -> Claude | None:
    """A client that the caller closes. It serves any model of that server, by the name in the request."""
    if settings.anthropic_api_key is None and settings.anthropic_base_url is None:
        return None
    # The vendor's package takes a second or two to load: only who needs it waits.
    from core.models.claude import Claude

    key = settings.anthropic_api_key
    return Claude(
        api_key=key.get_secret_value() if key else None,
        base_url=settings.anthropic_base_url,
        clock=clock,
        tries=settings.model.tries,
        patience_s=settings.model.patience_s,
    )
