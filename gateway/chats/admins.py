"""Decides who may set up a group or server: the owner, and the people who manage it.

On Telegram these are the admins of the group, and on Discord everyone who may manage the server.
The platform is asked each time. This right counts for this group only, and makes no one an owner.
"""

from __future__ import annotations

from collections.abc import Mapping

from core.errors import DeliveryError, Refused
from core.ports import AdminSource
from gateway.commands.registry import CommandContext


class ChatAdmins:
    """Asks the platforms. `sources` are the adapters, by platform."""

    def __init__(self, sources: Mapping[str, object]) -> None:
        self._sources = sources

    async def may_manage(self, context: CommandContext) -> bool:
        """Whether this person may set up the chat: always their own, and a group as its admin.

        Raises Refused if the platform can't be asked.
        """
        if not context.is_member:
            return True
        source = self._sources.get(context.inbound.address.platform)
        if not isinstance(source, AdminSource):
            return False
        try:
            return await source.is_admin(context.inbound)
        except DeliveryError as error:
            platform = context.inbound.address.platform.title()
            raise Refused(context.texts.ADMIN_UNKNOWN.format(platform=platform)) from error

    async def require(self, context: CommandContext) -> None:
        """Raise Refused, with a sentence for the person, if they may not set up the chat."""
        if not await self.may_manage(context):
            raise Refused(context.texts.ADMINS_ONLY)
