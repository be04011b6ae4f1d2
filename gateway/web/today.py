"""The page "Today": waiting changes, the next reminders, the latest notes, and the system's state.

Like /status, the state of the system is shown to the owner only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from core.errors import Refused
from core.markup.markdown import escape
from core.notes.notebook import ALL_FILES, FILES
from core.store.facts.history import list_latest_facts
from core.store.model_limits import ModelOutages
from core.store.notes import PendingNote
from core.types import Answer, Command
from gateway.commands.facts import is_own_account
from gateway.commands.memory import (
    MemoryCommands,
    NoteEdit,
    render_pending_changes,
)
from gateway.commands.status import StatusCommands
from gateway.services import is_running
from gateway.supervisor import CONNECTED, CONNECTING, ENDED
from gateway.upkeep.backups import describe_backups
from gateway.web.memory import ChangedWords, can_undo_note, diff_words, load_current_notes
from gateway.web.views import Action, Page, PageRequest, Values, View, read_field, run_command

MAX_PENDING = 30
MAX_JOBS = 5
MAX_CHANGES = 8
MAX_FACTS = 6
# Some of the latest facts no longer hold, so more are read than are shown.
FACTS_READ = 30
# Common tasks: the address of each, and the key of its text.
WISHES = (
    ("/recall", "WISH_FIND"),
    ("/conversations", "WISH_GO_ON"),
    ("/memory", "WISH_CORRECT"),
    ("/memory/history", "WISH_UNDO"),
    ("/memory/forget", "WISH_FORGET"),
    ("/reminders", "WISH_REMINDERS"),
    ("/use", "WISH_COST"),
    ("/logins", "WISH_LOGINS"),
)
OWNER_WISHES = (
    ("/people", "WISH_PEOPLE"),
    ("/settings#backups", "WISH_BACKUP"),
    ("/today/checks", "WISH_CHECKS"),
)


@dataclass(frozen=True, slots=True)
class PendingItem:
    """A change that waits for approval: since when, why, and what it changes, as Markdown."""

    note: PendingNote
    heading: str
    changes: str
    # The new text of a single note, which the person may edit; empty for anything else.
    text: str


async def load_today(request: PageRequest) -> Values:
    """Return waiting changes, the next jobs, the latest notes and, for the owner, the state."""
    services = request.services
    texts = request.texts
    pending = await services.notebook.review.list_pending(request.scopes)
    jobs = await services.jobs.list_visible(request.scopes)
    open_jobs = [job for job in jobs if job.next_at is not None and not job.paused_at]
    changes = await services.notebook.history(request.scopes, MAX_CHANGES)
    facts = await list_latest_facts(services.database, request.scopes, FACTS_READ)
    notes_now = await load_current_notes(request)
    wishes = [*WISHES]
    health: list[str] = []
    problems: list[str] = []
    running_count = 0
    if request.context.is_owner:
        wishes += OWNER_WISHES
        health, problems = await _load_health(request)
        running_count = len(await services.inbox.list_waiting())
    return {
        "pending": [_describe(request, note) for note in pending[:MAX_PENDING]],
        "pending_count": len(pending),
        "jobs": [
            (job, texts.describe_time(services.appointments, job, is_full=False))
            for job in open_jobs[:MAX_JOBS]
        ],
        "changes": [
            (change, _diff(change.before, change.after), can_undo_note(change, notes_now))
            for change in changes
        ],
        "facts": [fact for fact in facts if fact.is_open][:MAX_FACTS],
        "running": running_count,
        "wishes": wishes,
        "health": health,
        "problems": problems,
    }


async def _load_health(request: PageRequest) -> tuple[list[str], list[str]]:
    """Return the status and the known problems as lines of Markdown, without calling any server."""
    services = request.services
    texts = request.texts
    problems = []
    if not is_running(services.settings.home):
        problems.append(request.words["NOT_RUNNING"])
    for name, state in (await services.load_platform_states()).items():
        if state not in (CONNECTED, CONNECTING, ENDED):
            problems.append(f"**{escape(name)}**: {escape(texts.word_state(state))}")
    outages = ModelOutages(services.database)
    await outages.load()
    for name, reason in outages.list_reasons().items():
        problems.append(f"**{escape(name)}**: {escape(texts.word(reason))}")
    lines = await StatusCommands(services, None).render_lines(texts)
    backup, problem = describe_backups(services.settings, services.clock.now(), texts)
    lines = [line for line in lines if line not in problems]
    label = request.words["BACKUP"]
    if problem:
        return lines, [*problems, f"**{label}**: {escape(backup)} {escape(problem)}"]
    return [*lines, f"**{label}**: {escape(backup)}"], problems


def _describe(request: PageRequest, note: PendingNote) -> PendingItem:
    texts = request.texts
    changes = "\n".join(render_pending_changes(texts, note))
    text = ""
    if note.target in FILES and not note.is_draft and len(note.operations) == 1:
        operation = note.operations[0]
        text = operation.content if operation.action in ("add", "replace") else ""
    return PendingItem(note, _describe_heading(request, note), changes, text)


def _describe_heading(request: PageRequest, note: PendingNote) -> str:
    """Return when a change was proposed, what it would change, and why it waits, as Markdown.

    The person's own account isn't named.
    """
    texts = request.texts
    titles = {**ALL_FILES, **texts.table("PENDING_KINDS"), **texts.table("NOTE_TITLES")}
    place = titles[note.target]
    if note.account is not None and not is_own_account(request.context, note.account):
        place = texts.PENDING_FOR.format(place=place, account=note.account.key)
    moment = texts.format_moment(note.at, request.zone)
    return f"{moment} · {escape(place)} · {escape(texts.word_stored(note.reason))}"


def _diff(before: str | None, after: str | None) -> Sequence[ChangedWords]:
    return diff_words(before or "", after or "")


async def load_checks(request: PageRequest) -> Values | None:
    """Run the checks of `mneme check`, which call every server. Only the owner may do this."""
    if not request.context.is_owner:
        return None
    # Imported here because few people look at this.
    from gateway.check import run_checks

    return {"results": await run_checks(request.services.settings, texts=request.texts)}


async def edit_pending(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Store a waiting note with another text, and drop the original.

    Raises Refused if the note is no longer waiting, or if the new text can't be stored.
    """
    number = read_field(request, form, "number")
    text = read_field(request, form, "text")
    pending = await request.services.notebook.review.list_pending(request.scopes)
    note = next((note for note in pending if note.id == int(number)), None)
    if note is None or not _describe(request, note).text:
        raise Refused(request.texts.NO_PENDING_NUMBER.format(number=number))
    if not request.context.can_change(None):
        raise Refused(request.texts.OWNER_DECIDES)
    operation = replace(note.operations[0], content=text)
    edit = NoteEdit(operation, note.target, is_insisting=False)
    answer = await MemoryCommands(request.services).change(edit, request.context)
    await request.commands.run(
        Command(name="memory", arguments=f"reject {number}"), request.context
    )
    return answer


PAGE = Page(
    "today",
    views=(
        View("/", "today.html", load_today, is_streamed=True),
        View("/today", "today.html", load_today, is_streamed=True),
        View("/today/checks", "checks.html", load_checks),
    ),
    actions=(
        Action("approve-change", run_command("memory", "approve {number}")),
        Action("reject-change", run_command("memory", "reject {number}")),
        Action("edit-pending", edit_pending),
    ),
)
