"""Shows the overview of the page "Memory", and lists its views and actions."""

from __future__ import annotations

from core.notes.notebook import FILES
from core.store.facts.history import (
    count_changes,
    list_first_facts,
)
from gateway.commands.facts import group_facts
from gateway.web.memory.facts import (
    FACT_ACTIONS,
    FACTS_PER_PAGE,
    MAX_FACTS_BYTES,
    correct_fact,
    load_fact,
    load_facts,
    measure_fact,
    undo_fact,
    unlearn_fact,
)
from gateway.web.memory.forgetting import forget_words, load_forget
from gateway.web.memory.history import load_history
from gateway.web.memory.notes import (
    add_note,
    forget_instructions,
    forget_note,
    load_instructions,
    load_note,
    load_note_file,
    replace_note,
    run_in_chat,
    set_instructions,
)
from gateway.web.memory.prompt import load_prompt
from gateway.web.memory.skills import edit_skill, forget_skill, load_skill, load_skills
from gateway.web.rendering import count_fitting
from gateway.web.views import (
    Action,
    Page,
    PageRequest,
    Values,
    View,
    run_command,
)


async def load_memory(request: PageRequest) -> Values:
    """Return the notes, the changes that wait for approval, and contradictory facts."""
    notebook = request.services.notebook
    files = [await load_note_file(request, target) for target in FILES]
    problems = await notebook.list_problems(request.scopes)
    pending = await notebook.review.list_pending(request.scopes)
    conflicts = await request.services.facts.list_conflicts(request.scopes)
    group_sizes = [sum(map(measure_fact, group)) for group in conflicts]
    conflicts = conflicts[: count_fitting(group_sizes, MAX_FACTS_BYTES // 2)]
    in_conflict = [fact for group in conflicts for fact in group]
    database = request.services.database
    facts = await list_first_facts(database, request.scopes, FACTS_PER_PAGE + 1)
    rest_bytes = MAX_FACTS_BYTES - sum(map(measure_fact, in_conflict))
    count = count_fitting(map(measure_fact, facts[:FACTS_PER_PAGE]), rest_bytes)
    shown_facts = [*facts[:count], *in_conflict]
    return {
        "files": files,
        "instructions": await load_instructions(request),
        "pending_count": len(pending),
        "problems": [request.texts.word(problem) for problem in problems],
        "conflicts": conflicts,
        "groups": group_facts(request.texts, facts[:count]),
        "changes_of": await count_changes(database, request.scopes, shown_facts),
        "has_more": len(facts) > count,
    }


def _facts(name: str, arguments: str) -> Action:
    return Action(f"fact-{name}", run_command("memory", arguments))


PAGE = Page(
    "memory",
    views=(
        View("/memory", "memory.html", load_memory, is_streamed=True),
        View("/memory/facts", "facts.html", load_facts),
        View("/memory/facts/{fact}", "fact.html", load_fact),
        View("/memory/history", "history.html", load_history),
        View("/memory/notes/{number}", "note.html", load_note),
        View("/memory/forget", "forget.html", load_forget),
        View("/memory/skills", "skills.html", load_skills),
        View("/memory/skills/{skill}", "skill.html", load_skill),
        View("/memory/prompt", "prompt.html", load_prompt),
    ),
    actions=(
        Action("remember", run_command("remember", "{text}")),
        *(_facts(name, f"{name} f{{fact}}") for name in FACT_ACTIONS),
        Action("fact-correct", correct_fact),
        Action("fact-undo", undo_fact),
        Action("fact-unlearn", unlearn_fact),
        Action("note-add", add_note),
        Action("note-replace", replace_note),
        Action("note-forget", forget_note),
        Action("note-right", run_command("memory", "right {number}")),
        Action("note-wrong", run_command("memory", "wrong {number}")),
        Action("note-pin", run_command("memory", "pin {number}")),
        Action("note-unpin", run_command("memory", "unpin {number}")),
        Action("change-undo", run_command("memory", "undo {number}")),
        Action("instructions-set", set_instructions),
        Action("instructions-forget", forget_instructions),
        Action("instructions-right", run_in_chat("right")),
        Action("instructions-wrong", run_in_chat("wrong")),
        Action("instructions-pin", run_in_chat("pin")),
        Action("instructions-unpin", run_in_chat("unpin")),
        Action("skill-enable", run_command("skills", "enable {skill}")),
        Action("skill-disable", run_command("skills", "disable {skill}")),
        Action("skill-right", run_command("skills", "right {skill}")),
        Action("skill-wrong", run_command("skills", "wrong {skill}")),
        Action("skill-pin", run_command("skills", "pin {skill}")),
        Action("skill-unpin", run_command("skills", "unpin {skill}")),
        Action("skill-edit", edit_skill),
        Action("skill-forget", forget_skill),
        Action("forget-words", forget_words),
    ),
)
