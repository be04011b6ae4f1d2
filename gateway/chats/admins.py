"""Asks the platforms who may set up a group, and for the names of the group and its roles.

The owner and the group's admins may set it up.

On Telegram, these are the admins of the group. On Discord, they are all members who may manage the
server. The platform is asked each time. The right applies to this group only and makes no one an
owner.
"""

from __future__ import annotations

from collections.abc import Mapping

from core.errors import DeliveryError, Refused
from core.ports import AdminSource, HearingSource, PlaceSource, RoleSource
from core.types import Address, Inbound
from gateway.commands.registry import CommandContext


class ChatAdmins:
    """Asks the platforms who manages a chat, and for names in it.

    `sources` maps the name of a platform to its adapter.
    """

    def __init__(self, sources: Mapping[str, object]) -> None:
        self._sources = sources

    async def may_manage(self, context: CommandContext) -> bool:
        """Return whether this person may set up the chat.

        Everyone may set up their own direct chat. In a group, the owner and the admins may. Raises
        Refused if the platform can't be asked.
        """
        if not context.is_member:
            return True
        source = self._sources.get(context.inbound.address.platform)
        if not isinstance(source, AdminSource):
            return False
        try:
            return await source.is_admin(context.inbound)
        except DeliveryError as error:
            texts = context.texts
            platform = texts.name_platform(context.inbound.address.platform)
            raise Refused(texts.ADMIN_UNKNOWN.format(platform=platform)) from error

    async def is_admin(self, inbound: Inbound) -> bool:
        """Return whether the sender manages the group, or False if the platform can't be asked."""
        source = self._sources.get(inbound.address.platform)
        if not isinstance(source, AdminSource):
            return False
        try:
            return await source.is_admin(inbound)
        except DeliveryError:
            return False

    async def load_role_names(self, platform: str, server_id: str) -> Mapping[str, str]:
        """Return the names of a server's roles, by id.

        If the platform can't be asked, the result is empty.
        """
        source = self._sources.get(platform)
        if not isinstance(source, RoleSource):
            return {}
        try:
            return await source.load_role_names(server_id)
        except DeliveryError:
            return {}

    async def load_place_name(self, address: Address) -> str:
        """Return the name of a group and its topic, or "" if the platform doesn't report it."""
        source = self._sources.get(address.platform)
        if not isinstance(source, PlaceSource):
            return ""
        try:
            return await source.load_place_name(address)
        except DeliveryError:
            return ""

    async def hears_all(self, address: Address) -> bool:
        """Return whether Mneme gets all messages of a group.

        If the platform can't be asked, the result is True.
        """
        source = self._sources.get(address.platform)
        if not isinstance(source, HearingSource):
            return True
        try:
            return await source.hears_all(address)
        except DeliveryError:
            return True

    async def require(self, context: CommandContext) -> None:
        """Raise Refused if the person may not set up the chat.

        The error is worded for the person.
        """
        if not await self.may_manage(context):
            raise Refused(context.texts.ADMINS_ONLY)
