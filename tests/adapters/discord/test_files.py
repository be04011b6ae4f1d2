"""Files that people send on Discord are fetched from its file server, also with an expired URL."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from adapters.discord.adapter import Discord
from core.errors import FileError
from core.store.mailbox import Inbox
from core.types import Address, Attachment
from tests.fixtures.discord_api import DiscordApi
from tests.fixtures.discord_setup import checked, listening, make
from tests.fixtures.fake_router import FakeRouter

pytestmark = pytest.mark.slow

CONTENT = b"x" * 5_000


@pytest.fixture
async def api() -> AsyncIterator[DiscordApi]:
    async with checked(DiscordApi()) as double:
        yield double


@pytest.fixture
async def discord(api: DiscordApi, inbox: Inbox, router: FakeRouter) -> AsyncIterator[Discord]:
    adapter = make(api, inbox)
    async with listening(adapter, router, api):
        yield adapter


async def send(api: DiscordApi) -> tuple[Address, str, Attachment]:
    """Have a person send a file; returns where."""
    ana = api.world.add_user("Ana")["id"]
    channel = api.world.add_direct(ana)["id"]
    file = api.attach(CONTENT, "a.txt", "text/plain", channel)
    message_id = await api.user_says(channel, "", ana, attachments=[file])
    attachment = Attachment(
        kind="file", name="a.txt", size_bytes=len(CONTENT), reference=file["url"]
    )
    return Address(platform="discord", chat_id=channel), message_id, attachment


def served(api: DiscordApi) -> str:
    (file_id,) = api.server.files
    return file_id


async def test_discord_attachment_is_downloaded_by_its_url(
    api: DiscordApi, discord: Discord
) -> None:
    address, message_id, attachment = await send(api)
    assert await discord.fetch_file(attachment, address, message_id, 10**6) == CONTENT


async def test_expired_url_is_replaced_by_the_present_one(
    api: DiscordApi, discord: Discord
) -> None:
    address, message_id, attachment = await send(api)
    api.server.files[served(api)].status = 403
    post = api.world.post(address.chat_id, message_id)
    assert post is not None
    post["attachments"][0]["url"] = attachment.reference.replace("ex=1", "ex=2")  # type: ignore[union-attr]
    assert await discord.fetch_file(attachment, address, message_id, 10**6) == CONTENT


@pytest.mark.parametrize(("status", "is_permanent"), [(404, True), (500, False)])
async def test_file_server_refusal_is_classified_as_permanent_or_temporary_by_its_status(
    api: DiscordApi, discord: Discord, status: int, is_permanent: bool
) -> None:
    address, message_id, attachment = await send(api)
    api.server.files[served(api)].status = status
    with pytest.raises(FileError) as caught:
        await discord.fetch_file(attachment, address, message_id, 10**6)
    assert caught.value.is_permanent is is_permanent


async def test_interrupted_file_download_is_a_temporary_error(
    api: DiscordApi, discord: Discord
) -> None:
    address, message_id, attachment = await send(api)
    api.server.files[served(api)].breaks_after = 1_000
    with pytest.raises(FileError) as caught:
        await discord.fetch_file(attachment, address, message_id, 10**6)
    assert not caught.value.is_permanent


async def test_picture_of_a_channel_that_is_asked_about_comes_with_the_question(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana, ben = api.user("Ana"), api.user("Ben")
    channel = await api.channel("harbour")
    file = api.attach(CONTENT, "a.png", "image/png", channel)
    async with listening(make(api, inbox, has_message_content=True), router, api):
        theirs = await api.user_says(channel, "look", ben, attachments=[file])
        await api.user_says(channel, f"{api.mention()} what is it?", ana, reply_to=theirs)
        await api.wait_for(lambda: len(router.seen) == 2)
    asked = router.seen[1]
    assert [(item.kind, item.name) for item in asked.replied_files] == [("image", "a.png")]
    assert asked.sender.id == ana


async def test_discord_sticker_has_its_name_and_the_address_of_its_picture(
    api: DiscordApi, router: FakeRouter, inbox: Inbox
) -> None:
    ana = api.user("Ana")
    sticker = {"id": "816086581509095424", "name": "Wave", "format_type": 1}
    async with listening(make(api, inbox), router, api):
        await api.user_says(api.dm(ana), "", ana, sticker_items=[sticker])
        await api.wait_for(lambda: len(router.seen) == 1)
    (attachment,) = router.seen[0].attachments
    assert (attachment.kind, attachment.name) == ("sticker", "Wave")
    assert (attachment.reference or "").endswith("/stickers/816086581509095424.png")
