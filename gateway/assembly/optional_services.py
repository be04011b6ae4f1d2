"""Creates the services that the settings switch on: the web, MCP servers, calendars and speech."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from config.model_options import DEFAULT_SERVER
from config.settings import Settings
from core.media.decoding import Decoder
from core.media.speech import ProgramLimits, ProgramTranscriber, ServerTranscriber, Transcriber
from core.types import ToolContext

if TYPE_CHECKING:
    from core.media.speaking import Speaker
    from core.tools.calendars import Calendars
    from core.tools.mcp_tools import KeepFile, McpServers
    from core.tools.web import WebAccess

# A function that returns whether a tool runs on behalf of the owner.
OwnerCheck = Callable[[ToolContext], Awaitable[bool]]


def create_web(settings: Settings, decoder: Decoder) -> WebAccess | None:
    """Create the access to the web, or return None if it's switched off."""
    options = settings.web_tools
    if not options.fetch and not options.search:
        return None
    # Imported here because it is needed only if the web is switched on.
    from core.tools.page_reader import PageReader
    from core.tools.web import WebAccess

    secret = settings.variables.get(options.key)
    key = secret.get_secret_value() if secret else ""
    return WebAccess(options, PageReader(decoder).read, key, _find_claude(settings))


def _find_claude(settings: Settings) -> str:
    """Return the first model on Anthropic's server whose key is set.

    The helper model comes first.
    """
    options = settings.model
    for name in (options.helper, *options.chat_models):
        server, _ = options.split_name(name)
        if server == DEFAULT_SERVER and not settings.missing_key(server):
            return name
    return ""


def create_mcp(
    settings: Settings, check_owner: OwnerCheck, keep_file: KeepFile
) -> McpServers | None:
    """Create the MCP servers of the settings, or return None if there are none."""
    if not settings.mcp:
        return None
    from core.tools.mcp_tools import McpServers

    variables = {name: secret.get_secret_value() for name, secret in settings.variables.items()}
    return McpServers(settings.mcp, variables, settings.home, check_owner, keep_file)


def create_calendars(settings: Settings) -> Calendars | None:
    """Create the calendars of the settings, or return None if there are none."""
    if not settings.calendar:
        return None
    from core.tools.calendars import Calendars

    variables = {name: secret.get_secret_value() for name, secret in settings.variables.items()}
    return Calendars(settings.calendar, variables)


def create_transcriber(settings: Settings, decoder: Decoder) -> Transcriber | None:
    """Create the configured transcriber of voice notes, or return None if there is none."""
    options = settings.media.transcriber
    if options.command:
        limits = ProgramLimits(options.timeout_s, settings.media.program_memory_mb)
        return ProgramTranscriber(options.command, decoder, limits)
    if not options.url:
        return None
    secret = settings.variables.get(options.key)
    key = secret.get_secret_value() if secret else ""
    return ServerTranscriber(options.url, options.model, key, options.timeout_s)


def create_speaker(settings: Settings, decoder: Decoder) -> Speaker | None:
    """Create the configured text-to-speech client, or return None if there is none."""
    options = settings.media.speaker
    if not options.command and not options.url:
        return None
    # Imported here because few people use speech.
    from core.media.speaking import ProgramSpeaker, ServerSpeaker

    if options.command:
        limits = ProgramLimits(options.timeout_s, settings.media.program_memory_mb)
        return ProgramSpeaker(options.command, decoder, limits)
    secret = settings.variables.get(options.key)
    key = secret.get_secret_value() if secret else ""
    return ServerSpeaker(options.url, options.model, options.voice, key, options.timeout_s)
