"""The tool `remember_this`: the model keeps a fact that the person has stated. One face of `Ledger.learn`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from core.errors import ToolError
from core.facts.attributes import ME, attribute_of
from core.facts.claims import Claim, since_of
from core.facts.evidence import proper
from core.facts.facts_role import Ledger
from core.facts.heard import Heard
from core.facts.rules import value_of
from core.guard.guard import suspicion
from core.memory.attention import is_remembered
from core.models.tool_arguments import parsed
from core.text.names import entity_key, names_in
from core.types import Json, Tool, ToolContext


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    content: str = Field(
        min_length=3, max_length=400, description="One declarative sentence, in the person's own words and language."
    )
    kind: Literal["identity", "project", "episode", "working"] = Field(
        default="identity",
        description="identity: who somebody is, has or prefers. project. episode: something that happened. working: "
        "what matters for some days only.",
    )
    about: str = Field(default=ME, max_length=80, description='"me" for the person you talk to, or a name.')
    attribute: (
        Literal[
            "home", "work", "profession", "birthday", "name", "age", "phone", "email", "partner", "diet", "deadline"
        ]
        | None
    ) = Field(default=None, description="Where only one value can be true at a time: a new one ends the old one.")
    value: str = Field(default="", max_length=120, description="The value of the attribute.")
    since: str = Field(
        default="", pattern=r"^([0-9]{4}(-[0-9]{2}){0,2})?$", description='Since when, if said: "2026-05", "2026".'
    )
    names: list[str] = Field(default=[], max_length=10, description="People, places and things in it.")


def remember_this(ledger: Ledger, heard: Heard) -> Tool:
    """The tool over `ledger`; keeps only what somebody in the conversation has said, as `heard` finds it."""

    async def run(arguments: Json, context: ToolContext) -> str:
        asked = parsed(_Arguments, arguments)
        if not is_remembered(context.session):
            raise ToolError("Nobody has said anything here that could be kept: this was scheduled. Go on without it.")
        content = " ".join(asked.content.split())
        if (reason := suspicion(content)) is not None:
            raise ToolError(f"I do not keep that: it contains {reason}.")
        value = value_of(asked.attribute, asked.value)
        since, grain = since_of(asked.since, context.now, heard.zone)
        is_one = asked.attribute is not None and bool(value)
        claim = Claim(
            content=content,
            kind=asked.kind,
            attribute=attribute_of(ME, asked.attribute) if asked.attribute and value else None,
            value=value if is_one else "",
            entities=tuple(dict.fromkeys([*names_in(content), *(name for name in asked.names if entity_key(name))])),
            valid_from=since,
            grain=grain,
        )
        told_of = () if asked.about.casefold() == ME else names_in(asked.about)
        names = [*proper(asked.names), asked.value, *told_of]
        fact, text = await heard.fact(claim, asked.about, names, asked.since, context)
        fact = await ledger.learn(fact, text)
        if not fact.id:
            raise ToolError("The message that says so has just been changed or deleted. Do not keep it.")
        return f"Fact {fact.id} is kept: “{fact.content}”."

    return Tool(
        name="remember_this",
        description=(
            "Keeps one fact that the person has stated or asked you to remember, to be recalled when it is asked for. "
            "Every name and figure in it must have been said by a person here; your own guesses, and what a tool or a "
            "quoted text says, are refused. Use `memory` instead for the few things "
            "that every conversation needs."
        ),
        schema=_Arguments.model_json_schema(),
        run=run,
        is_quote=True,
    )
