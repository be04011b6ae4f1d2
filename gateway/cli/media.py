"""Lists the files that people sent, shows one, or removes one: `mneme media`."""

from __future__ import annotations

from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer

from core.errors import Refused
from core.store.media.files import AttachedFile, FileFilter
from core.text.normalize import to_single_line
from gateway.cli import shell
from gateway.cli.shell import AsJson, InScope, Limit, Words, Yes
from gateway.commands.registry import CommandContext
from gateway.services import Services
from gateway.texts.catalog import SHELL as texts
from gateway.texts.files import describe_details, describe_part, format_size

Number = Annotated[int, typer.Argument(show_default=False)]


def add_commands(root: typer.Typer) -> None:
    """Add the commands of this module to the command line."""
    shell.add_group(
        root,
        "media",
        {
            "list": list_command,
            "show": show_command,
            "remove": remove_command,
            "usage": usage_command,
            "transcribe": transcribe_command,
        },
    )


def list_command(
    words: Words = None, limit: Limit = 20, scope: InScope = None, as_json: AsJson = False
) -> None:
    """List files, latest first. With words, it lists files whose text or name contains them."""

    async def work(services: Services, context: CommandContext) -> object:
        text = " ".join(words or [])
        matches = await services.files.search(text, context.scopes, FileFilter(), limit)
        if as_json:
            return [
                _to_json(match.file) | {"place": match.part.label if match.part else ""}
                for match in matches
            ]
        zone = services.zone_of(context.zone)
        lines = []
        for match in matches:
            lines.append(_render(match.file, zone, describe_part(texts, match.part)))
        if not lines:
            lines = [texts.NO_SUCH_MEDIA if text.strip() else texts.NO_FILES_YET]
        shell.print_text("\n".join(lines))
        return None

    shell.run_as_owner(work, scope)


def show_command(number: Number, scope: InScope = None, as_json: AsJson = False) -> None:
    """Show the details of a file: its path, and its text."""

    async def work(services: Services, context: CommandContext) -> object:
        file = await _find(number, services, context)
        parts = []
        path = ""
        if file.content is not None:
            parts = await services.files.load_parts(file.content.hash)
            path = str(services.media_folder.path_of(file.content.hash))
        if as_json:
            entries = [{"place": part.label, "text": part.text} for part in parts]
            return _to_json(file) | {"path": path, "parts": entries}
        problem = ""
        if file.problem:
            name = to_single_line(file.name)
            problem = texts.table("FILE_PROBLEMS")[file.problem].format(name=name)
        lines = [_render(file, services.zone_of(context.zone), ""), *filter(None, (path, problem))]
        lines += [f"\n— {describe_part(texts, part)} —\n{part.text}" for part in parts]
        shell.print_text("\n".join(lines))
        return None

    shell.run_as_owner(work, scope)


def remove_command(number: Number, scope: InScope = None, yes: Yes = False) -> None:
    """Remove a file: its bytes and its text. The message that it came with stays."""

    async def work(services: Services, context: CommandContext) -> object:
        file = await _find(number, services, context)
        name = to_single_line(file.name)
        if not yes:
            shell.require_yes(texts.REMOVE_FILE.format(name=name))
        await services.file_removal.remove(file, context.scopes)
        shell.print_text(texts.FILE_REMOVED.format(name=name))
        return None

    shell.run_as_owner(work, scope)


def usage_command(as_json: AsJson = False) -> None:
    """Show how much space all files take, and the limit."""

    async def work(services: Services, _: CommandContext) -> object:
        usage = await services.files.measure_usage()
        if as_json:
            return {"files": usage.files, "bytes": usage.size}
        limit = format_size(texts, int(services.settings.media.total_mb * 1_000_000))
        files = texts.format_count(usage.files, "file")
        line = texts.MEDIA_USAGE.format(
            files=files, size=format_size(texts, usage.size), limit=limit
        )
        shell.print_text(line)
        return None

    shell.run_as_owner(work)


def transcribe_command(scope: InScope = None) -> None:
    """Transcribe the voice notes that have no text yet, with the program for transcription in the
    settings.
    """

    async def work(services: Services, context: CommandContext) -> object:
        if services.transcriber is None:
            raise Refused(texts.NO_TRANSCRIBER)
        intake = services.create_intake({})
        transcribed_count = 0
        files = await services.files.list_untranscribed(context.scopes)
        for file in files:
            if await intake.transcribe(file):
                transcribed_count += 1
        notes = texts.format_count(transcribed_count, "voice note")
        shell.print_text(
            texts.TRANSCRIBED.format(done=notes, failed=len(files) - transcribed_count)
        )
        return None

    shell.run_as_owner(work, scope)


async def _find(number: int, services: Services, context: CommandContext) -> AttachedFile:
    file = await services.files.find(number, context.scopes)
    if file is None:
        raise Refused(texts.NO_SUCH_MEDIA)
    return file


def _render(file: AttachedFile, zone: ZoneInfo, place: str) -> str:
    name = to_single_line(file.name)
    name = texts.COMMA.join([name, place] if place else [name])
    line = texts.pair(file.id, texts.annotate(name, describe_details(texts, file)))
    return texts.COMMA.join([line, texts.format_day(file.at, zone)])


def _to_json(file: AttachedFile) -> dict[str, Any]:
    content = file.content
    return {
        "id": file.id,
        "name": file.name,
        "kind": file.kind,
        "type": content.type if content else file.mime,
        "size": file.size,
        "pages": content.pages if content else None,
        "sent_at": file.at.isoformat(),
        "message_id": file.message_id,
        "problem": file.problem,
    }
