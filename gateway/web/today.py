"""Shows pending changes, the next reminders, the latest notes and the state on the page "Today".

Like /status, the state of the system is shown to the owner only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from core.dates.schedule import ParsedSchedule
from core.errors import ConfigError, Refused
from core.guard.guard import clean_text, find_suspicion
from core.markup.markdown import escape
from core.notes.notebook import ALL_FILES, FILES
from core.review.pending import EditableText, list_editable_texts, reword
from core.store.model_limits import ModelOutages
from core.store.notes import QUESTION, REMINDER, TOOL_CALL, PendingNote
from core.store.reviews import MemoryReviews, count_pending
from core.types import Account, Answer, Command
from gateway.commands.facts import is_own_account
from gateway.commands.memory import render_pending_changes
from gateway.commands.registry import make_button
from gateway.commands.status import StatusCommands
from gateway.local.manager import start_gateway
from gateway.sharing.home_lock import is_running
from gateway.supervisor import CONNECTED, CONNECTING, ENDED
from gateway.texts.catalog import Texts
from gateway.upkeep.backups import describe_backups
from gateway.upkeep.home_checks import CheckResult
from gateway.web.memory.history import load_latest_entries
from gateway.web.views import (
    MAX_FIELD_CHARS,
    Action,
    Page,
    PageRequest,
    Values,
    View,
    read_field,
    run_command,
)

MAX_PENDING = 30
MAX_RUNNING = 5
MAX_JOBS = 5
MAX_CHANGES = 10
# The states of checks in the order of the page.
CHECK_ORDER = ("wrong", "right", "off")
# Common tasks: the address of each, and the key of its text.
WISHES = (
    ("/recall", "WISH_FIND"),
    ("/memory", "WISH_CORRECT"),
    ("/memory/history", "WISH_UNDO"),
    ("/memory/forget", "WISH_FORGET"),
    ("/reminders", "WISH_REMINDERS"),
    ("/use", "WISH_COST"),
    ("/logins", "WISH_LOGINS"),
)
OWNER_WISHES = (
    ("/conversations", "WISH_GO_ON"),
    ("/people", "WISH_PEOPLE"),
    ("/settings/limits", "WISH_BUDGET"),
    ("/settings#backups", "WISH_BACKUP"),
    ("/settings", "WISH_SETTINGS"),
    ("/today/checks", "WISH_CHECKS"),
)


@dataclass(frozen=True, slots=True)
class PendingItem:
    """A change that waits for approval: since when, why, and what it changes, as Markdown."""

    note: PendingNote
    heading: str
    reason: str
    changes: str
    # The texts that the person may reword before approving. Empty for a change without words, and
    # for texts that are too long for a form.
    texts: Sequence[EditableText]
    # Whether the texts are the time and the text of a reminder or question.
    is_reminder: bool = False


async def load_today(request: PageRequest) -> Values:
    """Return waiting changes, the next jobs, the latest notes and, for the owner, the state."""
    services = request.services
    texts = request.texts
    pending = await services.notebook.review.list_pending(request.scopes)
    jobs = await services.jobs.list_visible(request.scopes)
    open_jobs = [job for job in jobs if job.next_at is not None and not job.paused_at]
    wishes = [*WISHES]
    health: list[str] = []
    problems: list[str] = []
    running = await services.inbox.list_waiting()
    own_running = [entry for entry in running if entry.inbound.scope in request.scopes]
    if request.context.is_owner:
        wishes += OWNER_WISHES
        health, problems = await _load_health(request)
    return {
        "pending": [await _describe(request, note) for note in pending[:MAX_PENDING]],
        "pending_count": len(pending),
        "jobs": [
            (job, texts.describe_time(services.appointments, job, is_full=False))
            for job in open_jobs[:MAX_JOBS]
        ],
        "changes": await load_latest_entries(request, MAX_CHANGES),
        "running": own_running[:MAX_RUNNING],
        # The texts of other people aren't shown, but the owner sees how many wait.
        "running_count": len(running) if request.context.is_owner else len(own_running),
        "wishes": wishes,
        "health": health,
        "problems": problems,
        # The first problem then says that Mneme isn't running.
        "can_start": request.context.is_owner and not is_running(services.settings.home),
    }


async def load_state(request: PageRequest) -> Values:
    """Return the values that every page shows: what waits for the person, and if Mneme is stopped.

    Only the owner can let people in, so only the owner sees how many ask for it.
    """
    services = request.services
    request_count = 0
    if request.context.is_owner:
        now = services.clock.now()
        request_count += len(await services.people.list_pending(now))
        request_count += len(await services.links.list_for_owner(now))
    return {
        "waiting": await count_pending(services.database, request.scopes),
        "request_count": request_count,
        "is_stopped": not await asyncio.to_thread(is_running, services.settings.home),
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
    checked = _list_checked_problems(request)
    problems += checked.values()
    if outages.list_reasons() or "model" in checked:
        # The line names the model as if it worked.
        label, _, _ = texts.table("STATUS")["model"].partition("{")
        lines = [line for line in lines if not line.startswith(label)]
    backup, problem = describe_backups(services.settings, services.clock.now(), texts)
    lines = [line for line in lines if line not in problems]
    label = request.words["BACKUP"]
    if problem:
        return lines, [*problems, f"**{label}**: {escape(backup)} {escape(problem)}"]
    return [*lines, f"**{label}**: {escape(backup)}"], problems


def _list_checked_problems(request: PageRequest) -> dict[str, str]:
    """Return the problems of the last checks by their subjects, as lines of Markdown.

    Problems that were found while Mneme was stopped count until it runs, and the other way round.
    """
    checks = request.last_checks
    if checks.at is None or is_running(request.services.settings.home) != checks.was_running:
        return {}
    moment = request.texts.format_moment(checks.at, request.zone)
    return {
        problem.subject: f"**{escape(problem.subject)}** ({moment}): {escape(problem.text)}"
        for problem in checks.problems
    }


async def _describe(request: PageRequest, note: PendingNote) -> PendingItem:
    heading = _describe_heading(request, note)
    reason = escape(request.texts.word_stored(note.reason))
    editable = await list_pending_texts(request, note)
    if any(len(each.text) > MAX_FIELD_CHARS for each in editable):
        editable = []
    if _is_read_reminder(note, editable):
        time, text = editable
        changes = request.texts.pair(escape(time.text), escape(text.text))
        return PendingItem(note, heading, reason, changes, editable, is_reminder=True)
    changes = "\n".join(render_pending_changes(request.texts, note))
    if note.target in FILES and all(each.action == "add" for each in note.operations):
        quotes = [request.texts.quote(each.content) for each in note.operations]
        changes = "\n\n".join([request.words["ASK_ADD"], *quotes])
    return PendingItem(note, heading, reason, changes, editable)


def _describe_heading(request: PageRequest, note: PendingNote) -> str:
    """Return when a change was proposed and what it would change, as Markdown.

    The person's own account isn't named.
    """
    texts = request.texts
    notes = {target: request.words[f"NOTES_{target.upper()}"] for target in FILES}
    titles = {**ALL_FILES, **texts.table("PENDING_KINDS"), **texts.table("NOTE_TITLES"), **notes}
    place = titles[note.target]
    if note.account is not None and not is_own_account(request.context, note.account):
        place = texts.PENDING_FOR.format(place=place, account=note.account.key)
    moment = texts.format_moment(note.at, request.zone)
    return f"{moment} · {escape(place)}"


async def load_checks(request: PageRequest) -> Values | None:
    """Run the checks of `mneme check`, which call every server. Problems come first.

    Returns None for people other than the owner.
    """
    if not request.context.is_owner:
        return None
    # Imported here because few people run the checks.
    from gateway.check import run_checks

    results = await run_checks(request.services.settings, texts=request.texts)
    request.last_checks.at = request.services.clock.now()
    request.last_checks.was_running = is_running(request.services.settings.home)
    request.last_checks.problems = [result for result in results if result.state == "wrong"]
    if not is_running(request.services.settings.home):
        text = request.words["NOT_RUNNING"]
        stopped = CheckResult(subject="process", state="wrong", text=text, key="process_stopped")
        results.insert(0, stopped)
    return {"results": sorted(results, key=lambda result: CHECK_ORDER.index(result.state))}


async def start_mneme(request: PageRequest, _form: Mapping[str, str]) -> Answer:
    """Start Mneme in the background.

    Raises Refused for people other than the owner, and with the reason if Mneme can't start.
    """
    if not request.context.is_owner:
        raise Refused(request.words["WRONG_FIELD"])
    settings = request.services.settings
    if is_running(settings.home):
        return Answer(text=request.words["STARTED"])
    try:
        is_started = await asyncio.to_thread(start_gateway, settings)
    except ConfigError as error:
        reason = escape(str(error))
        raise Refused(request.words["START_FAILED"].format(reason=reason)) from error
    return Answer(text=request.words["STARTED" if is_started else "STARTING"])


async def list_pending_texts(request: PageRequest, note: PendingNote) -> list[EditableText]:
    """Return the texts of a waiting change that the person may reword.

    For a reminder, these are its time in words and its text, or its line if that can't be read.
    """
    if note.target in (REMINDER, QUESTION):
        with suppress(Refused):
            reading = await _interpret_pending(request, note)
            appointments = request.services.appointments
            time = request.texts.describe_time(appointments, reading, is_full=False)
            return [EditableText("when", time), EditableText("what", reading.text)]
    return list_editable_texts(note)


def _is_read_reminder(note: PendingNote, editable: Sequence[EditableText]) -> bool:
    """Return whether the texts are the time and the text of a reminder or question."""
    return note.target in (REMINDER, QUESTION) and len(editable) == 2


async def _interpret_pending(request: PageRequest, note: PendingNote) -> ParsedSchedule:
    """Return the time and the text of a waiting reminder or question."""
    return await request.services.appointments.interpret(
        note.operations[0].content, is_prompt=note.target == QUESTION, account=note.account
    )


async def approve_edited(request: PageRequest, form: Mapping[str, str]) -> Answer:
    """Approve a waiting change with other words, which count as typed by this person.

    The words are stored first, so they aren't lost if the change can't be made. Raises Refused if
    the change no longer waits, or if the time of a reminder can't be read.
    """
    number = read_field(request, form, "number")
    pending = await request.services.notebook.review.list_pending(request.scopes)
    note = next((note for note in pending if note.id == int(number)), None)
    old_texts = [] if note is None else await list_pending_texts(request, note)
    if note is None or not old_texts:
        # The form is no longer on the page, so the words are shown in the answer.
        typed = [form[name] for name in sorted(form) if name.startswith("text")]
        words = "\n\n".join(escape(text[:MAX_FIELD_CHARS]) for text in typed)
        return Answer(text=f"{request.words['GONE']}\n\n{words}")
    if not request.context.can_change(None):
        raise Refused(request.texts.OWNER_DECIDES)
    new_texts = [read_field(request, form, f"text{place}") for place in range(len(old_texts))]
    if form.get("shown_time") == new_texts[0]:
        # The words for the time of an interval change while the page is open.
        new_texts[0] = old_texts[0].text
    if new_texts != [each.text.replace("\r\n", "\n").strip() for each in old_texts]:
        reworded = await _reword(request, note, old_texts, new_texts)
        await MemoryReviews(request.services.database).reword(note, reworded, request.context.epoch)
        question = _ask_about_suspicion(request.texts, note, reworded)
        if question is not None:
            return question
    approval = Command(name="memory", arguments=f"approve {number}")
    return await request.commands.run(approval, request.context)


async def _reword(
    request: PageRequest,
    note: PendingNote,
    old_texts: Sequence[EditableText],
    new_texts: Sequence[str],
) -> PendingNote:
    """Return a waiting change with other texts, as a wish of the person who typed them."""
    context = request.context
    account = note.account
    if account is None or not is_own_account(context, account):
        account = context.account
    if _is_read_reminder(note, old_texts):
        new_texts = [await _reword_reminder(request, note, account, old_texts, new_texts)]
    return reword(note, new_texts, account)


async def _reword_reminder(
    request: PageRequest,
    note: PendingNote,
    account: Account,
    old_texts: Sequence[EditableText],
    new_texts: Sequence[str],
) -> str:
    """Return the line of a waiting reminder with another time or text.

    Raises Refused if the new time can't be read.
    """
    appointments = request.services.appointments
    time, text = new_texts
    if time == old_texts[0].text:
        reading = replace(await _interpret_pending(request, note), text=text)
    else:
        reading = await appointments.interpret(
            time,
            text,
            is_prompt=note.target == QUESTION,
            account=account,
            languages=(request.texts.request_language,),
        )
    return appointments.format_exact_line(reading, await appointments.zone_of(account))


def _ask_about_suspicion(texts: Texts, note: PendingNote, reworded: PendingNote) -> Answer | None:
    """Return a question if the new words of a waiting change look suspicious, or None.

    Words that were already there are no reason to ask: the person sees why the change waits. A call
    isn't asked about, because its texts aren't stored here.
    """
    if note.target == TOOL_CALL:
        return None
    for before, after in zip(note.operations, reworded.operations, strict=True):
        reason = find_suspicion(clean_text(after.content))
        if reason and not find_suspicion(clean_text(before.content)):
            button = make_button(texts.BUTTON_KEEP_ANYWAY, "memory", f"approve {note.id}")
            return Answer(text=texts.ask_to_reword(reason), buttons=(button,))
    return None


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
        Action("approve-edited", approve_edited),
        Action("start-mneme", start_mneme),
    ),
)
