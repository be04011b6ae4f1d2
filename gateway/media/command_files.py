"""Keeps the files of messages whose caption is a command, such as a photo with "/remind …".

The command runs after the files are stored. A note that the command adds names the file, and a
reminder offers to send it when it's due.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

from core.agent.sessions import Turn
from core.agent.turn import Agent
from core.markup.markdown import escape
from core.media.intake import Reception
from core.store.actions import ButtonAction
from core.store.jobs import TALK_ORIGIN, TOOL_ORIGIN, Job
from core.store.media.files import AttachedFile, Files
from core.text.normalize import to_single_line
from core.types import Address, Answer, Command
from gateway.answers.notices import describe_files
from gateway.commands.registry import CommandContext, CommandRegistry, split_action
from gateway.queues import find_edited_id
from gateway.texts.catalog import Texts


async def run_with_files(
    agent: Agent, commands: CommandRegistry, command: Command, context: CommandContext, turn: Turn
) -> tuple[Answer, Sequence[ButtonAction]]:
    """Store the files of a command's message, run the command, and name the files in its answer."""
    if find_edited_id(context.inbound):
        # The files of an edited question are fetched when the model answers it again.
        return await commands.answer(command, context)
    names = [to_single_line(attachment.name) for attachment in context.inbound.attachments]
    texts = context.texts
    if context.session.is_incognito:
        sentences = [texts.FILES_NOT_KEPT.format(names=texts.join_list(list(map(escape, names))))]
    else:
        # The other parts of an album are entries of the turn, too. The command has their files.
        own_turn = replace(turn, entries=turn.entries[-1:])
        _, receptions = await agent.receive_files(own_turn)
        files = [file for reception in receptions for file in reception.files]
        command = _name_files(texts, command, files)
        sentences = _describe_receptions(texts, receptions)
    answer, actions = await commands.answer(command, context)
    return _begin_with(sentences, answer), actions


def _name_files(texts: Texts, command: Command, files: Sequence[AttachedFile]) -> Command:
    """Return a command that adds a note with the numbers of the files in the note."""
    action, note = split_action(command.arguments)
    if command.name != "memory" or action != "add" or not note:
        return command
    numbers = sorted(file.id for file in files if file.content is not None)
    marks = [texts.FILE_MARK.format(number=number) for number in numbers]
    return replace(command, arguments=" ".join([command.arguments, *marks]))


def _describe_receptions(texts: Texts, receptions: Sequence[Reception]) -> list[str]:
    """Return a sentence about the stored files, and one about each file with a problem."""
    names: list[str] = []
    for reception in receptions:
        for file in reception.files:
            if file.content is not None and file.content.size and not file.content.note:
                names.append(escape(to_single_line(file.name)))
    sentences = describe_files(texts, receptions, sees_pictures=True)
    if names:
        sentences.insert(0, texts.FILES_KEPT.format(names=texts.join_list(names)))
    return sentences


def _begin_with(sentences: Sequence[str], answer: Answer) -> Answer:
    """Put sentences before an answer, because a question must stay at its end."""
    answer = replace(answer, text="\n\n".join([*sentences, answer.text]))
    if answer.cards:
        answer = replace(answer, cards_title="\n\n".join([*sentences, answer.cards_title]))
    if answer.stored_text is not None:
        answer = replace(answer, stored_text="\n\n".join([*sentences, answer.stored_text]))
    return answer


async def list_job_files(files: Files, job: Job) -> list[AttachedFile]:
    """Return the stored files of the message that set a job.

    The job's origin names the message: by its address and the platform's id, or by its number.
    """
    origin = job.origin or ""
    found: list[AttachedFile] = []
    if origin.startswith(TOOL_ORIGIN):
        number = origin.removeprefix(TOOL_ORIGIN).partition(":")[0]
        found = await files.load_by_message_id(int(number), frozenset({job.scope}))
    else:
        key, _, message_id = origin.removeprefix(TALK_ORIGIN).partition("#")
        with contextlib.suppress(ValueError):
            # The origin of an imported job is no address.
            found = await files.load_of_messages(Address.parse(key), [message_id])
    return [file for file in found if file.content is not None and file.scope == job.scope]
