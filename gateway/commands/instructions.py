"""/instructions: what the assistant keeps to in one chat, in the words of whose chat it is; in a room of the owner."""

from __future__ import annotations

from dataclasses import replace

from core.agent.context_files import ContextFiles
from core.errors import Refused
from core.guard.fence import typed_part
from core.guard.guard import cleaned, suspicion
from core.markup.markdown import escape
from core.review.pending import ANYWAY, doubt, insisting
from core.store.notes import INSTRUCTIONS, Operation
from core.types import Answer, Command
from gateway import texts
from gateway.commands.registry import CommandContext, announced, button
from gateway.services import Services


class InstructionCommands:
    specs = announced("instructions")

    def __init__(self, services: Services, context_files: ContextFiles) -> None:
        self._notebook = services.notebook
        self._context_files = context_files

    async def run(self, command: Command, context: CommandContext) -> Answer:
        if context.is_member:
            raise Refused(texts.INSTRUCTIONS_OWNER_ONLY)
        word, _, text = command.arguments.strip().partition(" ")
        match word.lower():
            case "" | "show":
                return await self._shown(context)
            case "set" if text.strip():
                return await self._set(text.strip(), context)
            case "clear":
                await self._replace("", context)
                return Answer(text=texts.INSTRUCTIONS_CLEARED)
        raise Refused(texts.INSTRUCTIONS_USAGE)

    async def _shown(self, context: CommandContext) -> Answer:
        own = await self._notebook.entries(frozenset((context.scope,)), INSTRUCTIONS)
        parts = [texts.INSTRUCTIONS, *map(_quote, own)] if own else []
        if words := self._context_files.words(context.scope, context.inbound.address):
            parts += [texts.INSTRUCTIONS_OF_FILE, _quote(words)]
        return Answer(text="\n\n".join(parts) or texts.NO_INSTRUCTIONS)

    async def _set(self, text: str, context: CommandContext) -> Answer:
        text, is_insisting = insisting(text)
        if not is_insisting:
            # What is pasted may be somebody else's words, and stands above everything that is said here.
            pasted = texts.PASTED if typed_part(text) != text else None
            if reason := suspicion(cleaned(text)) or pasted:
                keep = button("Keep it anyway", "instructions", f"set {ANYWAY} {text}")
                return Answer(text=doubt(reason), buttons=(keep,))
        await self._replace(text, context, is_insisting=is_insisting)
        return Answer(text=f"{texts.INSTRUCTIONS_SET}\n\n{_quote(text)}")

    async def _replace(self, text: str, context: CommandContext, *, is_insisting: bool = False) -> None:
        """Puts `text` in the place of what stood there."""
        before = await self._notebook.entries(frozenset((context.scope,)), INSTRUCTIONS)
        text = cleaned(text)
        wanted = [Operation(action="remove", old_text=entry) for entry in before if entry != text]
        wanted += [Operation(action="add", content=text)] if text and text not in before else []
        if wanted:
            author = replace(context.author, is_insisting=is_insisting)
            await self._notebook.apply(context.scope, frozenset((context.scope,)), INSTRUCTIONS, wanted, author)


def _quote(text: str) -> str:
    return "\n".join(f"> {escape(line)}" for line in text.split("\n"))
