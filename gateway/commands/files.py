"""Lists, sends and removes files that people sent, and sends an answer as a file: /files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import tzinfo

from core.errors import Refused
from core.markup.markdown import escape
from core.media.outgoing import clean_document_name
from core.store.media.files import AttachedFile, FileFilter, FileMatch
from core.store.rows import split_turns
from core.text.normalize import join_sentences, shorten, to_single_line
from core.types import Answer, Command, Message
from gateway.answers.documents import build_document
from gateway.commands.privacy import describe_equal_files
from gateway.commands.registry import (
    CommandContext,
    load_specs,
    make_button,
    parse_number,
    split_action,
)
from gateway.services import Services
from gateway.texts.catalog import Texts
from gateway.texts.files import describe_details, describe_part, format_size

MAX_FILES = 10
MAX_BUTTONS = 5
LABEL_CHARS = 24


class FileCommands:
    specs = load_specs("files")

    def __init__(self, services: Services) -> None:
        self._services = services

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """List files, send or remove the file with a number, or send an answer as a file.

        Raises Refused if the file or answer doesn't exist, or if this person may not remove it.
        """
        action, parameters = split_action(command.arguments)
        number = parse_number(parameters)
        if action == "answer":
            return await self._send_answer(parameters, context)
        if action == "send" and number is not None:
            return await self._send(number, context)
        if action == "remove" and number is not None:
            return await self._remove(number, context)
        if action in ("send", "remove"):
            if not parameters:
                raise Refused(context.texts.FILES_USAGE.format(action=action))
            return await self._act_on_name(action, parameters, context)
        if action == "list":
            return await self._list(parameters, context)
        return await self._list(command.arguments.strip(), context)

    async def _send(self, number: int, context: CommandContext) -> Answer:
        texts = context.texts
        file = await self._find(number, context)
        content = await self._services.load_file(number, context.scopes)
        if content is None:
            raise Refused(texts.FILE_BYTES_GONE)
        day = texts.format_day(file.at, self._services.zone_of(context.zone))
        text = texts.FILE_SENT.format(name=_name(file), day=day)
        return Answer(text=text, files=(content,))

    async def _send_answer(self, parameters: str, context: CommandContext) -> Answer:
        """Send an answer as a file.

        `parameters` may contain the id of a message and a file name. Without an id, the last answer
        of the conversation is sent.
        """
        first, _, name = parameters.partition(" ")
        number = parse_number(first)
        if number is None:
            name = parameters
        rows = await self._load_turn(number, context)
        answers = [row.text for row in rows if row.role == "assistant" and row.text.strip()]
        if not answers:
            raise Refused(context.texts.WHY_NO_ANSWER)
        file = await build_document(
            self._services, context.texts, clean_document_name(name), answers[-1], context.account
        )
        text = context.texts.DOCUMENT_SENT.format(name=escape(file.name))
        return Answer(text=text, files=(file,))

    async def _load_turn(
        self, message_id: int | None, context: CommandContext
    ) -> Sequence[Message]:
        """Return the messages of the turn that contains a message.

        Without a `message_id`, returns all messages of this conversation.
        """
        conversations = self._services.conversations
        if message_id is None:
            return await conversations.load_history(context.session, context.scopes)
        session = await conversations.find_by_message(message_id, context.scopes)
        if session is None:
            return ()
        for turn in split_turns(await conversations.load_history(session, context.scopes)):
            if any(row.id == message_id for row in turn):
                return turn
        return ()

    async def _remove(self, number: int, context: CommandContext) -> Answer:
        texts = context.texts
        file = await self._find(number, context)
        if context.is_member and file.account != context.account.key:
            raise Refused(texts.FILES_OF_OTHERS)
        equal_files = await self._describe_equal_files(file, context)
        await self._services.file_removal.remove(file, context.scopes)
        text = texts.FILE_REMOVED.format(name=_name(file))
        return Answer(text=join_sentences([text, *equal_files]))

    async def _describe_equal_files(
        self, file: AttachedFile, context: CommandContext
    ) -> Sequence[str]:
        """Return a sentence about the files of other messages with the same bytes, if any."""
        equal_files = await self._services.file_removal.list_equal_files(file, context.scopes)
        return [describe_equal_files(context.texts, equal_files)] if equal_files else []

    async def _act_on_name(self, action: str, words: str, context: CommandContext) -> Answer:
        """Send the only file whose name contains the words, or ask whether to remove it.

        If several match, they are listed. Raises Refused if none matches.
        """
        texts = context.texts
        named = FileFilter(name=words)
        files = await self._services.files.list_latest(context.scopes, named, MAX_FILES)
        if not files and not re.search(r"[^\W\d]", words):
            # Several numbers, or a sign: there is no file with such a name.
            raise Refused(texts.FILES_USAGE.format(action=action))
        if len(files) != 1:
            return await self._list(words, context)
        if action == "send":
            return await self._send(files[0].id, context)
        question = texts.REMOVE_FILE.format(name=_name(files[0]))
        equal_files = await self._describe_equal_files(files[0], context)
        return Answer(
            text=join_sentences([question, *equal_files]),
            confirm_command=Command(name="files", arguments=f"remove {files[0].id}"),
        )

    async def _find(self, number: int, context: CommandContext) -> AttachedFile:
        texts = context.texts
        file = await self._services.files.find(number, context.scopes)
        if file is None:
            raise Refused(texts.NO_SUCH_FILE)
        return file

    async def _list(self, words: str, context: CommandContext) -> Answer:
        """List the files that match the words, or the latest files, each with a send button."""
        texts = context.texts
        matches = await self._services.files.search(words, context.scopes, FileFilter(), MAX_FILES)
        if not matches:
            raise Refused(texts.NO_FILES_MATCH if words else texts.NO_FILES_YET)
        zone = self._services.zone_of(context.zone)
        lines = [_render(texts, match, zone) for match in matches]
        if not context.scope.is_group:
            usage = await self._services.files.measure_usage([context.account.key])
            files = texts.format_count(usage.files, "file")
            lines.append(texts.FILE_USAGE.format(files=files, size=format_size(texts, usage.size)))
        buttons = []
        stored_matches = [match for match in matches if match.file.content is not None]
        for match in stored_matches[:MAX_BUTTONS]:
            label = texts.FILE_SEND.format(name=shorten(match.file.name, LABEL_CHARS))
            buttons.append(make_button(label, "files", f"send {match.file.id}"))
        return Answer(text="\n".join(lines), buttons=tuple(buttons))


def _render(texts: Texts, match: FileMatch, zone: tzinfo) -> str:
    """Render a file as a list item with its number, name, location, details and date."""
    file = match.file
    place = escape(describe_part(texts, match.part))
    name = texts.COMMA.join([_name(file), place] if place else [_name(file)])
    line = texts.pair(file.id, texts.annotate(name, describe_details(texts, file)))
    return "- " + texts.COMMA.join([line, texts.format_day(file.at, zone)])


def _name(file: AttachedFile) -> str:
    return escape(to_single_line(file.name))
