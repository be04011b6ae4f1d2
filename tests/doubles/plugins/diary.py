"""Keeps what people say in a text file for each scope, and finds the lines that have a word of the question."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from core.memory.forgotten import Forgotten
from core.memory.provider import MemoryProvider
from core.types import Message, Scope, Session, ToolContext


class Diary(MemoryProvider):
    name = "diary"

    async def is_available(self) -> bool:
        return True

    async def initialize(self, folder: Path) -> None:
        self.folder = folder

    async def prefetch(self, text: str, context: ToolContext) -> Sequence[str]:
        words = {word.strip(".,!?").casefold() for word in text.split() if len(word) > 3}
        lines = [line for scope in sorted(context.scopes) for line in self.lines(scope)]
        return [line for line in lines if any(word in line.casefold() for word in words)][:5]

    async def sync_turn(self, session: Session, messages: Sequence[Message], key: str) -> None:
        known = set(self.lines(session.scope))
        said = [f"d{row.id} {row.text!r}" for row in messages if row.role == "user"]
        with self.file(session.scope).open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in said if line not in known)

    async def on_forget(self, forgotten: Forgotten) -> None:
        gone = {f"d{number}" for number in forgotten.messages}
        lines = [line for line in self.lines(forgotten.scope) if line.split(" ")[0] not in gone]
        self.file(forgotten.scope).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def lines(self, scope: Scope) -> list[str]:
        file = self.file(scope)
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    def file(self, scope: Scope) -> Path:
        return self.folder / f"{quote(scope.key, safe='')}.txt"
