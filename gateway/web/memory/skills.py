"""Shows skills with their texts and changes, and changes them."""

from __future__ import annotations

from collections.abc import Mapping

from core.errors import Refused
from core.store.notes import Operation
from core.types import Answer, Button, Command
from gateway.commands.skills import describe_change
from gateway.web.memory.history import MAX_CHANGES_TRACED, fit_entries, make_entry
from gateway.web.memory.notes import ask_to_forget
from gateway.web.views import (
    MAX_FIELD_CHARS,
    PageRequest,
    Values,
    check_unchanged,
    fingerprint,
    read_field,
)

MAX_SKILLS = 200


async def load_skills(request: PageRequest) -> Values:
    """Return the skills, and the problems of folders that don't contain a valid skill."""
    skills, problems = await request.services.skills.list_skills(request.scopes)
    sentences = [request.texts.word(problem) for problem in problems]
    return {"skills": skills[:MAX_SKILLS], "problems": sentences}


async def load_skill(request: PageRequest) -> Values | None:
    """Return a skill with its text, or None if this person can't see it."""
    try:
        skill = await request.services.skills.find(request.parameter("skill"), request.scopes)
        text = await request.services.skills.read_text(skill)
    except Refused:
        return None
    changes = await request.services.skills.list_history(skill, request.scopes, MAX_CHANGES_TRACED)
    return {
        "skill": skill,
        "text": text,
        "shown": fingerprint(text),
        "can_edit": skill.is_own and len(text) <= MAX_FIELD_CHARS,
        "verdict": await request.services.skills.find_verdict(skill),
        "entries": fit_entries([make_entry(request, change, {}, {}) for change in changes]),
    }


async def edit_skill(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Replace the text of a skill. Raises Refused if it isn't a skill, or can't be stored."""
    context = request.context
    if context.is_member:
        raise Refused(request.texts.OWNER_OF_SKILLS)
    name = read_field(request, form, "skill")
    skills = request.services.skills
    operation = Operation(action="edit", path=name, content=read_field(request, form, "text"))
    skill = await skills.find(name, context.scopes)
    check_unchanged(request, form, await skills.read_text(skill))
    report = await skills.apply(context.scope, context.scopes, operation, context.author)
    return describe_change(request.texts, report)


async def forget_skill(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Ask whether to erase a skill and what was said about it, like `/forget`.

    A button of the question only removes the skill, which can be undone. Raises Refused if there is
    no such skill, or if it can't be removed.
    """
    name = read_field(request, form, "skill")
    command = Command(name="skills", arguments=f"remove {name}")
    removal = (await request.commands.run(command, request.context)).confirm_command
    buttons = [] if removal is None else [Button(label=request.words["TAKE_OUT"], command=removal)]
    return await ask_to_forget(request, name, *buttons)
