"""Shows and changes the standing instructions for the assistant in one chat: /instructions.

In a direct chat, the person sets the instructions. In a group, the owner does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.agent.context_files import ContextFiles
from core.errors import Refused
from core.guard.guard import clean_text, find_suspicion
from core.guard.origin_and_fence import is_partly_pasted
from core.markup.markdown import escape
from core.review.pending import ANYWAY, split_anyway
from core.store.notes import INSTRUCTIONS, Operation
from core.types import Answer, Command, Form
from gateway.commands.registry import CommandContext, load_specs, make_button, split_action
from gateway.services import Services


class InstructionCommands:
    specs = load_specs("instructions")

    def __init__(self, services: Services, context_files: ContextFiles) -> None:
        self._notebook = services.notebook
        self._context_files = context_files

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """Show, set, clear, judge or pin the instructions of this chat.

        Raises Refused if a group member other than the owner runs this, or if the arguments are
        wrong.
        """
        texts = context.texts
        if context.is_member:
            raise Refused(texts.INSTRUCTIONS_OWNER_ONLY)
        action, text = split_action(command.arguments)
        if action in ("", "show"):
            return await self._show(context)
        if action == "set" and text:
            return await self._set(text, context)
        if action == "clear":
            await self._replace("", context, is_insisting=False)
            return Answer(text=texts.INSTRUCTIONS_CLEARED)
        if action in ("right", "wrong"):
            return await self._judge(context, is_right=action == "right")
        if action in ("pin", "unpin"):
            return await self._pin(context, is_pinned=action == "pin")
        raise Refused(texts.INSTRUCTIONS_USAGE)

    async def _show(self, context: CommandContext) -> Answer:
        """Show the instructions of this chat and the instructions in the settings file."""
        texts = context.texts
        paragraphs = []
        entries = await self._notebook.entries(frozenset((context.scope,)), INSTRUCTIONS)
        if entries:
            paragraphs.append(texts.INSTRUCTIONS)
            paragraphs += [_render_quote(entry) for entry in entries]
        file_text = self._context_files.configured_instructions(
            context.scope, context.inbound.address
        )
        if file_text:
            paragraphs += [texts.INSTRUCTIONS_OF_FILE, _render_quote(file_text)]
        form = Form(title=texts.CHANGE_INSTRUCTIONS, value="\n".join(entries), is_needed=True)
        change = replace(make_button(texts.CHANGE_INSTRUCTIONS, "instructions", "set"), form=form)
        text = "\n\n".join(paragraphs) or texts.NO_INSTRUCTIONS
        return Answer(text=text, buttons=(change,))

    async def _set(self, text: str, context: CommandContext) -> Answer:
        """Set the instructions. If they look suspicious or pasted, ask for confirmation first."""
        texts = context.texts
        text, is_insisting = split_anyway(text)
        if not is_insisting:
            reason = find_suspicion(clean_text(text))
            if not reason and is_partly_pasted(text):
                # A pasted text may come from another person, and instructions have priority over
                # all messages.
                reason = texts.PASTED
            if reason:
                keep = make_button(texts.BUTTON_KEEP_ANYWAY, "instructions", f"set {ANYWAY} {text}")
                return Answer(text=texts.ask_to_reword(reason), buttons=(keep,))
        await self._replace(text, context, is_insisting=is_insisting)
        return Answer(text=f"{texts.INSTRUCTIONS_SET}\n\n{_render_quote(text)}")

    async def _judge(self, context: CommandContext, *, is_right: bool) -> Answer:
        """Record that the instructions are right or wrong. Mneme doesn't follow wrong ones.

        Raises Refused if this chat has no instructions.
        """
        scopes = frozenset((context.scope,))
        for entry in await self._list_entries(context):
            await self._notebook.judge(
                scopes, entry, context.author, is_right=is_right, targets=(INSTRUCTIONS,)
            )
        texts = context.texts
        return Answer(text=texts.INSTRUCTIONS_RIGHT if is_right else texts.INSTRUCTIONS_WRONG)

    async def _pin(self, context: CommandContext, *, is_pinned: bool) -> Answer:
        """Pin or unpin the instructions. Raises Refused if this chat has none."""
        scopes = frozenset((context.scope,))
        for entry in await self._list_entries(context):
            await self._notebook.pin(scopes, entry, is_pinned=is_pinned, targets=(INSTRUCTIONS,))
        texts = context.texts
        return Answer(text=texts.INSTRUCTIONS_PINNED if is_pinned else texts.INSTRUCTIONS_UNPINNED)

    async def _list_entries(self, context: CommandContext) -> Sequence[str]:
        """Return the instructions of this chat. Raises Refused if it has none."""
        entries = await self._notebook.entries(frozenset((context.scope,)), INSTRUCTIONS)
        if not entries:
            raise Refused(context.texts.NO_INSTRUCTIONS)
        return entries

    async def _replace(self, text: str, context: CommandContext, *, is_insisting: bool) -> None:
        """Replace the instructions of this chat with `text`. An empty text removes them.

        Raises Refused if the text can't be stored.
        """
        scopes = frozenset((context.scope,))
        entries = await self._notebook.entries(scopes, INSTRUCTIONS)
        text = clean_text(text)
        operations = []
        if len(entries) == 1 and text not in ("", *entries):
            # A replaced text keeps its pin, and its history shows the difference.
            operations.append(Operation(action="replace", old_text=entries[0], content=text))
            entries = [text]
        for entry in entries:
            if entry != text:
                operations.append(Operation(action="remove", old_text=entry))
        if text and text not in entries:
            operations.append(Operation(action="add", content=text))
        if operations:
            author = replace(context.author, is_insisting=is_insisting)
            await self._notebook.apply(context.scope, scopes, INSTRUCTIONS, operations, author)


def _render_quote(text: str) -> str:
    """Render text as a Markdown block quote."""
    return "\n".join(f"> {escape(line)}" for line in text.split("\n"))
