"""Decide the next step of a dialogue about reminders, without a model.

A dialogue begins with a request. `Dialogue` contains the person's messages since then, and the
reminder that they created. `decide` returns the next step, which the gateway carries out and puts
into words. A message that is neither a request nor an answer ends the dialogue.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta

from core.dates.requests.intents import Intent
from core.dates.requests.parts import Missing, Problem
from core.dates.requests.reader import ReminderReading, read_request, revise_reading
from core.scheduling.due import next_due
from core.scheduling.phrases import (
    drop_phrases,
    find_phrase,
    is_answer,
    list_phrases,
    plain_words,
    split_command,
)
from core.scheduling.refusals import find_reason, is_cancellation, list_cancelled_names
from core.scheduling.shifts import Shift, read_shift, read_snooze_length
from core.scheduling.talk.agenda_questions import may_ask_about_period, read_question
from core.scheduling.talk.alarms import read_alarm
from core.scheduling.talk.amendments import list_amendments
from core.scheduling.talk.choices import choose_job, decide_for_choice, names_unknown_reminder
from core.scheduling.talk.moving import decide_move_of_reminder, read_new_time
from core.scheduling.talk.naming import (
    find_named,
    match_jobs,
    match_jobs_by_time,
    names_only_time,
)
from core.scheduling.talk.revisions import (
    fix_day,
    keep_rhythm,
    read_dialogue,
    revise,
    take_from_job,
)
from core.scheduling.talk.steps import Dialogue, Move, Situation, Step
from core.scheduling.talk.wording import may_be_task, task_of, with_preposition
from core.store.jobs import Job
from core.text.terms import find_short_message

# A recurring reminder that was due less than this time ago was probably just delivered.
RECENTLY = timedelta(hours=12)
# From this length on, in seconds, a shift such as Russian "11 hours" is more likely a time of day.
MAX_SHIFT_S = 5 * 3600
# A message that shifts the dialogue's reminder may have at most this many other words.
MAX_OTHER_WORDS = 2
# Short messages that never answer a question about a reminder: "good evening", "what day is it?".
_ASIDES = frozenset({"time", "about_me", "abilities", "greeting"})
_BARE_HOUR_AT_END = re.compile(r" (?:to |for )?(\d{1,2})\W*$", re.IGNORECASE)


def decide(text: str, situation: Situation) -> Step:
    """Decide the next step after a message."""
    dialogue = situation.dialogue
    if dialogue is not None and dialogue.unclear_request:
        situation = replace(situation, dialogue=None)
        step = _decide_choice(text, dialogue.unclear_request, situation)
        if step is not None:
            return step
    step = (
        _decide_question_about_period(text, situation)
        or _decide_alarm(text, situation)
        or _decide_short(text, situation)
        or _decide_move_of_reminder(text, situation)
    )
    if step is not None:
        return step
    reading = read_request(text, situation.now, situation.zone, situation.languages)
    step = _decide_question(text, reading) or _decide_request(text, reading, situation)
    if step is not None:
        return step
    if situation.dialogue is not None:
        step = _decide_answer(text, situation.dialogue, situation)
        if step is not None:
            return step
    step = _decide_command(text, situation)
    is_unknown = step.move is Move.NONE and names_unknown_reminder(text, situation)
    return Step(move=Move.UNKNOWN) if is_unknown else step


def _decide_question_about_period(text: str, situation: Situation) -> Step | None:
    """Return the step for "what do I have tomorrow?", or None for any other message.

    Reminders don't answer a question about the past.
    """
    if not may_ask_about_period(text):
        return None
    question = read_question(text, situation.now, situation.zone)
    if question is None or question.what:
        return None
    if question.is_past:
        return Step(move=Move.NONE)
    dialogue = situation.dialogue
    period = (question.start, question.end)
    if dialogue is None or dialogue.job is None:
        return Step(move=Move.LIST_PERIOD, period=period)
    return Step(move=Move.LIST_PERIOD, period=period, job=dialogue.job, lines=dialogue.lines)


def _decide_alarm(text: str, situation: Situation) -> Step | None:
    """Return the step for "set my alarm for 7", or None. It never moves another reminder."""
    alarm = read_alarm(text, situation)
    return _step_for(alarm[0], (alarm[1],)) if alarm is not None else None


def _decide_move_of_reminder(text: str, situation: Situation) -> Step | None:
    """Return the step for "move the reminder to 11" and "push the reminder back an hour".

    Returns None for other messages.
    """
    if read_new_time(text) is None:
        return None
    shift = read_shift(text)
    step = None
    if shift is not None and not _is_maybe_clock(shift):
        step = _decide_shift(text, situation)
    return step or decide_move_of_reminder(text, situation)


def _decide_choice(text: str, request: str, situation: Situation) -> Step | None:
    """Return the step for an answer to "Which reminder do you mean?", or None if it is none."""
    job = choose_job(text, situation)
    if job is None:
        return None
    step = decide_for_choice(request, job)
    if step is None:
        dialogue = Dialogue(asked_at=situation.now, job=job)
        step = decide(request, replace(situation, jobs=[job], dialogue=dialogue))
    return step if step.job is not None else Step(move=Move.ASK_CHANGE, job=job)


def _decide_short(text: str, situation: Situation) -> Step | None:
    """Return the step for a short message such as "stop", "yes" or "good evening", or None."""
    dialogue = situation.dialogue
    if find_short_message(text) in _ASIDES:
        return Step(move=Move.NONE)
    if is_answer("stop", text):
        return _decide_stop(situation)
    step = _decide_stop_reminding(text, situation)
    if step is not None:
        return step
    if _removes_everything(text) and (dialogue is None or len(situation.jobs) > 1):
        return Step(move=Move.REMOVE_ALL)
    if dialogue is None:
        return None
    step = _decide_short_answer(text, dialogue)
    if step is not None:
        return step
    if dialogue.job is None and (is_answer("unsure", text) or is_answer("yes", text)):
        previous = read_dialogue(dialogue, situation)
        return Step(move=Move.ASK, reading=previous, lines=dialogue.lines)
    return None


def _decide_request(text: str, reading: ReminderReading, situation: Situation) -> Step | None:
    """Return the step for a request for a new reminder, or None for any other message."""
    if reading.intent is not Intent.SET:
        return None
    if situation.dialogue is not None and _is_about_past(reading):
        return None
    step = _decide_amended(text, situation)
    if step is not None:
        return step
    is_new = not _is_again(text, reading, situation) and not _is_move(text, situation)
    return _step_for(reading, (text,)) if is_new else None


def _decide_stop(situation: Situation) -> Step:
    """Return the step for a bare "stop".

    It never removes a reminder, because it may mean anything.
    """
    dialogue = situation.dialogue
    if dialogue is not None and dialogue.job is None:
        return Step(move=Move.DROP)
    return Step(move=Move.UNKNOWN if situation.jobs else Move.NONE)


def _decide_amended(text: str, situation: Situation) -> Step | None:
    """Return the step for a request that corrects or cancels itself, or None for any other.

    An example is "remind me at 9 to swim. Actually at 10".
    """
    for amendment in list_amendments(text):
        is_cancelled = amendment.is_sentence and is_cancellation(amendment.words)
        correction = amendment.correction or ""
        if not is_cancelled and not (correction and names_only_time(correction, situation)):
            continue
        request = read_request(
            amendment.request, situation.now, situation.zone, situation.languages
        )
        if request.intent is not Intent.SET:
            continue
        if is_cancelled:
            return Step(move=Move.DROP)
        reading = revise(fix_day(request, situation.zone), correction, situation)
        if request.names_time and reading is not None:
            return _step_for(reading, (amendment.request, correction))
    return None


def _decide_stop_reminding(text: str, situation: Situation) -> Step | None:
    """Return the step for "stop reminding me about the pills", or None for any other message.

    Without a name, the person is asked which reminder they mean.
    """
    words = split_command("stop_reminding", text)
    if words is None:
        return None
    matches = match_jobs(words, situation.jobs)
    if len(matches) == 1:
        return Step(move=Move.REMOVE, job=matches[0])
    return Step(move=Move.UNKNOWN)


def _is_again(text: str, reading: ReminderReading, situation: Situation) -> bool:
    """Return whether a request repeats the dialogue's reminder: "remind me again in an hour".

    Without such words and without a task, only a request after a delivery repeats it.
    """
    dialogue = situation.dialogue
    if dialogue is None or dialogue.job is None:
        return False
    task = reading.task
    if task:
        return is_answer("again", task) or is_answer("last", task)
    if find_phrase("again", text) or find_phrase("about_it", text):
        return True
    return not dialogue.lines and _was_just_due(dialogue.job, situation.now)


def _was_just_due(job: Job, now: datetime) -> bool:
    """Return whether a reminder was due within the last hours, so it was probably delivered."""
    due_at = next_due(job.schedule, now - RECENTLY)
    return due_at is not None and due_at <= now


def _is_move(text: str, situation: Situation) -> bool:
    """Return whether a message moves the dialogue's reminder to another time: "change it to 9"."""
    dialogue = situation.dialogue
    if dialogue is None or dialogue.job is None:
        return False
    words = split_command("move", text)
    return bool(words) and names_only_time(words or "", situation)


def _removes_everything(text: str) -> bool:
    """Return whether a message asks to remove all reminders: "delete all my reminders"."""
    words = split_command("remove", text)
    return bool(words) and is_answer("everything", words or "")


def _decide_question(text: str, reading: ReminderReading) -> Step | None:
    """Return the step for a question about reminders, or None for any other message."""
    if reading.intent is Intent.HOW:
        return Step(move=Move.EXPLAIN)
    if reading.intent is Intent.WATCH:
        return Step(move=Move.EXPLAIN_WATCH)
    if reading.intent is Intent.OTHER_PERSON:
        own_reading = replace(reading, intent=Intent.SET)
        return Step(move=Move.OFFER_OWN, reading=own_reading, lines=(text,))
    if reading.intent is Intent.QUESTION_ABOUT_REMINDERS:
        return Step(move=Move.NEXT if find_phrase("next", text) else Move.LIST)
    return None


def decide_edit(words: str, job: Job, situation: Situation) -> Step:
    """Return the step that edits a reminder.

    It gets the time in `words`. If they contain no time, they become its text.
    """
    words = with_preposition(words)
    answer = read_request(
        words, situation.now, situation.zone, situation.languages, is_request=True
    )
    previous = replace(take_from_job(None, job), language=answer.language)
    if not answer.names_time:
        reading = replace(previous, task=task_of(words))
        return Step(move=Move.CHANGE, reading=reading, job=job)
    reading = revise_reading(previous, words, situation.now, situation.zone) or answer
    reading = keep_rhythm(replace(reading, task=answer.task or job.text), job, situation)
    move = Move.CHANGE if reading.is_complete else Move.ASK
    return Step(move=move, reading=reading, job=job, lines=(words,))


def _is_about_past(reading: ReminderReading) -> bool:
    """Return whether a message is about a day in the past, such as yesterday."""
    return reading.parts.problem is Problem.PAST


def _step_for(reading: ReminderReading, lines: tuple[str, ...]) -> Step:
    """Return the step that creates a reminder, or that asks for a missing part."""
    move = Move.SET if reading.is_complete else Move.ASK
    return Step(move=move, reading=reading, lines=lines)


# --- Answers ---


def _decide_short_answer(text: str, dialogue: Dialogue) -> Step | None:
    """Return the step for a yes, a no or "done", or None for any other message."""
    job = dialogue.job
    if job is None:
        is_refusal = is_cancellation(text) or is_answer("no", text)
        return Step(move=Move.DROP) if is_refusal else None
    if is_answer("snooze", text):
        return Step(move=Move.SNOOZE, job=job)
    if is_answer("done", text):
        return Step(move=Move.DONE, job=job)
    if is_answer("skip", text):
        return _skip(job)
    if is_cancellation(text):
        return Step(move=Move.REMOVE, job=job)
    if is_answer("yes", text):
        return Step(move=Move.CONFIRM, job=job, lines=dialogue.lines)
    if is_answer("no", text):
        return Step(move=Move.ASK_CHANGE, job=job, lines=dialogue.lines)
    return None


def _skip(job: Job) -> Step:
    """Return the step that skips the next time. A reminder with a single time is removed."""
    return Step(move=Move.REMOVE if job.schedule.at is not None else Move.SKIP, job=job)


def _decide_answer(text: str, dialogue: Dialogue, situation: Situation) -> Step | None:
    """Return the step for an answer or a correction, or None for any other message."""
    reason = find_reason(text)
    if reason is not None and not names_only_time(reason, situation):
        job = dialogue.job
        return Step(move=Move.REMOVE, job=job) if job is not None else Step(move=Move.DROP)
    step = (
        _decide_skip(text, situation)
        or _decide_removal(text, situation)
        or _decide_shift(text, situation)
        or _decide_snooze(text, situation)
    )
    if step is not None:
        return step
    previous = read_dialogue(dialogue, situation)
    reading = revise(previous, text, situation)
    if reading is not None:
        return _step_for_revision(reading, text, dialogue, situation)
    if dialogue.job is not None:
        return _correct_task(previous, text, dialogue.job, dialogue.lines)
    if Missing.TASK in previous.missing and may_be_task(text):
        missing = previous.missing - {Missing.TASK}
        reading = replace(previous, task=task_of(text), missing=missing)
        return _step_for(reading, (*dialogue.lines, text))
    return None


def _step_for_revision(
    reading: ReminderReading, text: str, dialogue: Dialogue, situation: Situation
) -> Step:
    """Return the step for an answer that gives the dialogue's reminder a time.

    "Also on Sunday" sets a second reminder with the same text.
    """
    lines = (*dialogue.lines, text)
    job = dialogue.job
    if job is None:
        return _step_for(reading, lines)
    if _is_once_for_recurring(reading, job):
        return Step(move=Move.SNOOZE, job=job, words=text)
    if job.schedule.at is not None and _adds_time(text, situation):
        return _step_for(reading, lines)
    move = Move.CHANGE if reading.is_complete else Move.ASK
    return Step(move=move, reading=reading, job=job, lines=lines)


def _adds_time(text: str, situation: Situation) -> bool:
    """Return whether a message only names a further time: "also on Sunday"."""
    if not find_phrase("further_time", text):
        return False
    return names_only_time(drop_phrases("further_time", text), situation)


def _correct_task(
    previous: ReminderReading, text: str, job: Job, lines: tuple[str, ...]
) -> Step | None:
    """Return the step that corrects the text of a reminder, or None without a correction."""
    from core.scheduling.corrections import correct_task

    task = correct_task(job.text, text)
    if task is None:
        return None
    return Step(move=Move.CHANGE, reading=replace(previous, task=task), job=job, lines=lines)


def _is_once_for_recurring(reading: ReminderReading, job: Job) -> bool:
    """Return whether a recurring reminder is to come once more, at a single additional time."""
    return reading.moment is not None and job.schedule.at is None


# --- Requests about reminders that exist ---


def _decide_command(text: str, situation: Situation) -> Step:
    """Return the step for "cancel the dentist", "move it to 11", "snooze" and "done"."""
    job = situation.dialogue.job if situation.dialogue is not None else None
    for kind, move in (("snooze", Move.SNOOZE), ("done", Move.DONE)):
        if is_answer(kind, text) and (job is not None or move is Move.SNOOZE):
            return Step(move=move, job=job)
    return (
        _decide_removal(text, situation)
        or _decide_new_time(text, situation)
        or _decide_skip_or_remove(text, situation)
    )


def _decide_new_time(text: str, situation: Situation) -> Step | None:
    """Return the step for "push it back an hour", "snooze 10 minutes" and "move it to 11".

    Returns None for other messages.
    """
    words = split_command("snooze", text)
    if words is not None or split_command("move", text) is not None:
        step = _decide_shift(text, situation)
        # Without reminders that are still due, a delivered one may be meant.
        if step is not None and (situation.jobs or words is None):
            return step
    step = _decide_snooze(text, situation)
    if step is not None:
        return step
    if words is not None and names_only_time(words, situation):
        job = situation.dialogue.job if situation.dialogue is not None else None
        return Step(move=Move.SNOOZE, job=job, words=words)
    return _decide_move(text, situation)


def _decide_snooze(text: str, situation: Situation) -> Step | None:
    """Return the step for "snooze for two hours", or None for any other message."""
    words = split_command("snooze", text)
    span = read_snooze_length(words, situation.languages) if words else None
    if span is None:
        return None
    job = situation.dialogue.job if situation.dialogue is not None else None
    return replace(_snooze_by_length(Shift(span, is_earlier=False, name="")), job=job)


def _decide_skip(text: str, situation: Situation) -> Step | None:
    """Return the step for "skip the rent", "skip tomorrow" and "skip the next one", or None."""
    words = split_command("skip", text)
    if words == "" and find_phrase("first_one", text):
        words = list_phrases("first_one")[0]
    if not words:
        return None
    step = find_named(words, situation, Move.SKIP, is_sure=False)
    if step.move is Move.UNKNOWN:
        return step
    if step.job is None and names_only_time(words, situation) and situation.jobs:
        matches = match_jobs_by_time(words, situation)
        if len(matches) != 1:
            return Step(move=Move.UNKNOWN)
        return _skip(matches[0])
    return _skip(step.job) if step.job is not None else None


def _decide_skip_or_remove(text: str, situation: Situation) -> Step:
    """Return the step for "skip the rent", "pause the pills" and "cancel the dentist"."""
    step = _decide_skip(text, situation)
    if step is not None:
        return step
    words = split_command("pause", text)
    if words:
        step = find_named(words, situation, Move.PAUSE, is_sure=find_phrase("last", text))
        if step.move is not Move.NONE:
            return step
    words = split_command("remove", text)
    if words is None:
        return Step(move=Move.NONE)
    is_reminder_named = (
        find_phrase("last", text)
        and not is_answer("last", words or "it")
        and not find_phrase("other_things", words)
    )
    return find_named(words, situation, Move.REMOVE, is_sure=is_reminder_named)


def _decide_removal(text: str, situation: Situation) -> Step | None:
    """Return the step for "I don't need the dentist anymore" or "delete the one at 9", or None.

    The words must name exactly one reminder.
    """
    for name in list_cancelled_names(text):
        matches = match_jobs(name, situation.jobs)
        if not matches and split_command("remove", text) is not None:
            matches = match_jobs_by_time(name, situation)
        if len(matches) == 1:
            return Step(move=Move.REMOVE, job=matches[0])
    return None


def _decide_shift(text: str, situation: Situation) -> Step | None:
    """Return the step for "push it back an hour", or None for any other message."""
    shift = read_shift(text)
    if shift is None or (_is_maybe_clock(shift) and _names_clock(text, situation)):
        return None
    step = find_named(shift.name or "it", situation, Move.CHANGE, is_sure=False)
    dialogue = situation.dialogue
    if step.job is None and dialogue is not None and len(shift.name.split()) <= MAX_OTHER_WORDS:
        # "An hour later is fine" isn't about a reminder with the name "fine".
        step = replace(step, job=dialogue.job)
    if step.job is None:
        return None if step.move is Move.NONE else step
    if _is_maybe_clock(shift):
        return Step(move=Move.ASK_CHANGE, job=step.job)
    if step.job.schedule.at is None:
        return _shift_recurring(step.job, shift, situation)
    due_at = step.job.next_at or step.job.schedule.at
    if due_at <= situation.now:
        return _snooze_by(step.job, shift)
    moment = shift.apply(due_at, situation.zone).astimezone(situation.zone)
    return _change_to(f"{moment:%Y-%m-%d %H:%M}", step.job, (), situation)


def _is_maybe_clock(shift: Shift) -> bool:
    """Return whether a length may also be a time of day, such as Russian "на 11 часов"."""
    return not shift.has_direction and shift.span.seconds >= MAX_SHIFT_S


def _names_clock(text: str, situation: Situation) -> bool:
    """Return whether a message contains a time of day, such as "at 11"."""
    reading = read_request(
        text, situation.now, situation.zone, situation.languages, is_request=True
    )
    return bool(reading.parts.clocks)


def _shift_recurring(job: Job, shift: Shift, situation: Situation) -> Step:
    """Return the step that moves all times of a reminder, or snoozes a delivered one.

    If the reminder has several times of day, or if they would move to another day, the step asks
    the person.
    """
    dialogue = situation.dialogue
    lines = dialogue.lines if dialogue is not None and dialogue.job is job else ()
    if not lines and _was_just_due(job, situation.now):
        return _snooze_by(job, shift)
    is_daily_time = (
        len(job.schedule.recurrences) == 1 and "BYHOUR" not in job.schedule.recurrences[0]
    )
    if not lines or job.next_at is None or not is_daily_time:
        return Step(move=Move.ASK_CHANGE, job=job, lines=lines)
    local = job.next_at.astimezone(situation.zone)
    moment = shift.apply(job.next_at, situation.zone).astimezone(situation.zone)
    if moment.date() != local.date():
        return Step(move=Move.ASK_CHANGE, job=job, lines=lines)
    return _change_to(f"{moment:%H:%M}", job, lines, situation)


def _snooze_by(job: Job, shift: Shift) -> Step:
    """Return the step that snoozes a delivered reminder by a length of time."""
    if shift.is_earlier:
        return Step(move=Move.ASK_CHANGE, job=job)
    return replace(_snooze_by_length(shift), job=job)


def _snooze_by_length(shift: Shift) -> Step:
    """Return the step that snoozes the last delivered reminder by a length of time."""
    span = shift.span
    sizes = {"months": span.months, "days": span.days, "minutes": span.seconds // 60}
    words = " and ".join(f"{size} {unit}" for unit, size in sizes.items() if size)
    return Step(move=Move.SNOOZE, words=words)


def _change_to(line: str, job: Job, lines: tuple[str, ...], situation: Situation) -> Step:
    """Return the step that moves a reminder to the time in a line.

    The result is the same as if the person had typed the line.
    """
    dialogue = situation.dialogue
    previous = take_from_job(None, job)
    if lines and dialogue is not None:
        previous = read_dialogue(dialogue, situation)
    reading = revise(previous, line, situation)
    if reading is None:
        return Step(move=Move.ASK_CHANGE, job=job, lines=lines)
    reading = keep_rhythm(replace(reading, task=job.text), job, situation)
    move = Move.CHANGE if reading.is_complete else Move.ASK
    return Step(move=move, reading=reading, job=job, lines=(*lines, line))


def _decide_move(text: str, situation: Situation) -> Step | None:
    """Return the step for "move the dentist to 11", or None for any other message."""
    if split_command("move", text) is None:
        return None
    hour = _BARE_HOUR_AT_END.search(text)
    if hour is not None:
        # "move it to 11": without a preposition, a number isn't always an hour.
        text = f"{text[: hour.start()]} at {hour[1]}"
    answer = read_request(text, situation.now, situation.zone, situation.languages, is_request=True)
    if not answer.names_time:
        return None
    name = split_command("move", answer.task)
    step = find_named(
        plain_words(answer.task) if name is None else name, situation, Move.CHANGE, is_sure=False
    )
    if step.job is None:
        return None if step.move is Move.NONE else step
    previous = take_from_job(None, step.job)
    previous = replace(previous, language=answer.language)
    reading = revise_reading(previous, text, situation.now, situation.zone)
    if reading is None:
        return None
    reading = keep_rhythm(replace(reading, task=step.job.text), step.job, situation)
    move = Move.CHANGE if reading.is_complete else Move.ASK
    return Step(move=move, reading=reading, job=step.job, lines=(text,))
