"""Plain chat about reminders without a model: asked back, set, corrected, listed, removed."""

# ruff: noqa: RUF001

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from core.agent.offline import OfflineModel
from core.scheduling.talk.agenda_questions import PhraseIndex
from core.types import Address, Button, Scope
from gateway.commands import reminder_talk
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, says

pytestmark = pytest.mark.slow

ROOM = Scope.group("telegram", "-100")


async def texts_of_jobs(harness: GatewayHarness) -> list[str]:
    return [job.text for job in await harness.services.jobs.list_active()]


def button(reply: KeptReply, label: str) -> Button:
    assert reply.answer is not None
    (match,) = [button for button in reply.answer.buttons if button.label == label]
    return match


async def test_missing_time_is_asked_and_the_next_message_answers_it(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        asked = await harness.say("remind me to water the lawn")
        assert asked.text == "When should I remind you about “water the lawn”?"
        assert await texts_of_jobs(harness) == []
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        answer = await harness.say("tomorrow at 7:15", message_id="90")
        assert answer.text.startswith("Reminder 1 is set for ")
        assert "at 07:15 (Europe/Lisbon): “water the lawn”" in answer.text
        assert await texts_of_jobs(harness) == ["water the lawn"]


async def test_first_messages_of_several_chats_load_the_words_for_reminders_once(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[PhraseIndex] = []
    load_triggers = reminder_talk._load_triggers

    def count_loads() -> PhraseIndex:
        loads.append(load_triggers())
        return loads[-1]

    monkeypatch.setattr(reminder_talk, "_load_triggers", count_loads)
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        replies = await asyncio.gather(
            *(harness.say("remind me to water the lawn", who) for who in ("42", "7"))
        )
        assert len(loads) == 1
        assert {reply.text for reply in replies} == {
            "When should I remind you about “water the lawn”?"
        }


@pytest.mark.parametrize(
    ("text", "task"),
    [
        ("gib mir morgen um 9 Bescheid wegen der Heizung", "der Heizung"),
        ("dis-moi tous les mardis à 17h d'arroser", "arroser"),
        ("dime mañana a las 9 que pague", "pague"),
        ("her salı saat 17'de çiçekleri sulamamı söyle", "çiçekleri sulamamı"),
    ],
)
async def test_request_whose_words_are_apart_is_set(home: Path, text: str, task: str) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say(text)
        assert await texts_of_jobs(harness) == [task]


async def test_question_with_a_word_of_such_a_request_is_not_about_reminders(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        answer = await harness.say("dime cómo se hace una tortilla")
        assert "recordatorio" not in answer.text.lower()
        assert await texts_of_jobs(harness) == []


async def test_button_answers_the_question_for_a_time(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        asked = await harness.say("remind me to water the lawn")
        pressed = button(asked, "Tomorrow 9:00")
        answer = await harness.say(pressed.id, kind="action", command=None)
        assert "at 09:00 (Europe/Lisbon): “water the lawn”" in answer.text


async def test_unrelated_message_cancels_the_open_reminder_question_and_is_stored(
    home: Path,
) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("remind me to water the lawn")
        kept = await harness.say("The library in Porto closes at noon.")
        assert kept.text.startswith("I've saved that.")
        assert "in Porto closes" in (await harness.say("/recall library")).text
        await harness.say("tomorrow at 7:15")
        assert await texts_of_jobs(harness) == []


async def test_text_of_a_reminder_request_is_found_by_recall(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("remind me tomorrow at 9 to call Olga, her number is 555-0199")
        assert "555-0199" in (await harness.say("/recall Olga")).text


async def test_reminder_is_corrected_confirmed_and_taken_back(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("remind me tomorrow at 9am to send the offer")
        assert "at 11:00 (Europe/Lisbon)" in (await harness.say("no, at 11")).text
        assert (await harness.say("ja genau")).text.startswith("Yes, it's set: 1: ")
        assert await texts_of_jobs(harness) == ["send the offer"]
        await harness.say("remind me in 2 hours to stretch")
        assert (await harness.say("actually forget it")).text.startswith("Removed: 2: ")
        assert await texts_of_jobs(harness) == ["send the offer"]


async def test_yes_after_a_reminder_was_confirmed_sets_no_second_reminder(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("remind me tomorrow at 9am to send the offer")
        assert (await harness.say("yes")).text.startswith("Yes, it's set: 1: ")
        again = await harness.say("remind me tomorrow at 9am to send the offer")
        assert again.text.startswith("You have this reminder already: 1: ")
        assert await texts_of_jobs(harness) == ["send the offer"]


async def test_recurrence_reads_back_its_next_three_moments(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        answer = await harness.say("remind me every monday at 8:30 to do the payroll")
        assert "Reminder 1 is set for every Monday at 08:30 (Europe/Lisbon)" in answer.text
        assert answer.text.count("at 08:30;") == 2
        (job,) = await harness.services.jobs.list_active()
        assert job.schedule.recurrences[0].endswith("RRULE:FREQ=WEEKLY;BYDAY=MO")


async def test_questions_about_reminders_get_a_list_or_the_next_one(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        assert (await harness.say("what reminders do I have?")).text.startswith("You have no")
        await harness.say("remind me tomorrow at 9am to send the offer")
        await harness.say("remind me in 2 hours to stretch")
        listed = (await harness.say("show my reminders")).text
        assert "send the offer" in listed
        assert "stretch" in listed
        following = (await harness.say("when is my next reminder?")).text
        assert "stretch" in following
        assert "send the offer" not in following
        assert (await harness.say("cancel the offer")).text.startswith("Removed: 1: ")
        assert "at 23:00" in (await harness.say("move the stretch to 11pm")).text


async def test_reminders_are_all_removed_by_one_tap_and_skipped_once(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("remind me every monday at 9am to plan")
        assert (await harness.say("skip it once")).text.startswith("Skipped ")
        await harness.say("remind me in 2 hours to stretch")
        asked = await harness.say("delete all my reminders")
        assert asked.text.startswith("Shall I remove all of these?")
        assert await texts_of_jobs(harness) == ["plan", "stretch"]
        pressed = button(asked, "Remove all 2")
        removed = await harness.say(pressed.id, kind="action", command=None)
        assert removed.text.count("Removed: ") == 2
        assert await texts_of_jobs(harness) == []


async def test_yes_removes_all_reminders_after_they_were_listed(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("remind me tomorrow at 9am to plan")
        await harness.say("remind me in 2 hours to stretch")
        assert (await harness.say("cancel everything")).text.startswith("Shall I remove all")
        assert (await harness.say("yes")).text.count("Removed: ") == 2
        assert await texts_of_jobs(harness) == []


async def test_remind_command_asks_for_the_part_that_is_missing(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        assert (await harness.say("/remind tomorrow at 9")).text == "What should I say then?"
        assert "at 09:00" in (await harness.say("call Ana")).text
        assert (await harness.say("/remind feed the hens")).text.startswith("When should I")
        assert (await harness.say("yes")).text.startswith("When should I")
        assert "“feed the hens”" in (await harness.say("tomorrow at 7:15")).text
        assert sorted(await texts_of_jobs(harness)) == ["call Ana", "feed the hens"]
        asked = await harness.say("/remind tous les lundis à 8h", language="fr")
        assert asked.text.startswith("Que dois-je te dire")


async def test_remind_command_with_the_word_me_keeps_it_out_of_the_task(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("/remind me in 1 hour: tea")
        await harness.say("/remind mich morgen um 9 an Brot")
        assert await texts_of_jobs(harness) == ["tea", "Brot"]


async def test_receipt_names_the_other_half_of_the_day(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        receipt = await harness.say("remind me tomorrow at 5 to swim")
        assert "say “no, at 5:00 am”." in receipt.text
        assert "at 05:00" in (await harness.say("no, at 5:00 am")).text


async def test_question_how_reminders_work_is_explained(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        assert (await harness.say("how do reminders work?")).text.startswith("Say when and what")


@pytest.mark.parametrize(
    ("text", "language", "start"),
    [
        ("tell me only if it rains, every day at 9", "en", "Only a model can watch for that"),
        ("sag mir nur Bescheid, wenn es regnet", "de", "Darauf achten kann nur ein Modell"),
        ("毎日9時に雨が降る場合だけ教えて", "ja", "それを見張れるのはモデルだけです"),
    ],
)
async def test_wish_to_be_told_under_a_condition_is_answered_that_it_needs_a_model(
    home: Path, text: str, language: str, start: str
) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        assert (await harness.say(text, language=language)).text.startswith(start)
        assert await texts_of_jobs(harness) == []


async def test_word_of_several_languages_is_read_in_the_language_of_the_person(home: Path) -> None:
    # "Mar." is March in English, and Tuesday in Spanish.
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("/remind mar. 18:30 | yoga", language="es")
        (job,) = await harness.services.jobs.list_active()
        assert job.next_at is not None
        assert job.next_at.weekday() == 1
        await harness.say("/cron edit 1 mar. 19:30", language="es")
        (job,) = await harness.services.jobs.list_active()
        assert job.next_at is not None
        assert (job.next_at.weekday(), f"{job.next_at:%H:%M}") == (1, "19:30")


async def test_reminder_edit_asks_for_the_change_and_the_next_message_answers(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("remind me tomorrow at 9am to send the offer")
        assert "What should I change in 1: " in (await harness.say("/cron edit 1")).text
        assert "at 10:30 (Europe/Lisbon)" in (await harness.say("10:30")).text
        assert "“send the bill”" in (await harness.say("/cron edit 1 send the bill")).text
        (job,) = await harness.services.jobs.list_active()
        assert (job.text, f"{job.next_at:%H:%M}") == ("send the bill", "10:30")


@pytest.mark.parametrize(
    ("line", "edit", "expected"),
    [
        ("every day at 8 take the pill", "9:30", "every day at 09:30"),
        ("every day at 20:00 take the pill", "9:30", "every day at 21:30"),
        ("every Monday and Friday at 8 bins", "7pm", "every Monday and Friday at 19:00"),
        ("every Monday at 8 bins", "at 10", "every Monday at 10:00"),
        ("on the 1st of every month at 9 rent", "at 9 in the evening", "at 21:00"),
        ("jeden Montag um 8 Müll", "um 10 Uhr", "every Monday at 10:00"),
        ("every day at 8 take the pill", "every Friday at 9", "every Friday at 09:00"),
        ("every day at 8 take the pill", "tomorrow at 9:00", "at 09:00"),
    ],
)
async def test_recurring_reminder_keeps_its_days_if_only_its_time_is_edited(
    home: Path, line: str, edit: str, expected: str
) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say(f"/remind {line}")
        answer = (await harness.say(f"/cron edit 1 {edit}")).text
        (job,) = await harness.services.jobs.list_active()
    assert expected in answer
    assert bool(job.schedule.recurrences) is not edit.startswith("tomorrow")


async def test_another_member_of_a_group_answers_no_question_of_yours(home: Path) -> None:
    async with open_gateway(
        home, OfflineModel("UTC"), options='rooms = ["telegram:-100"]\n'
    ) as harness:
        address = Address(platform="telegram", chat_id="-100")
        place = {"address": address, "scope": ROOM, "is_direct": False}
        asked = await harness.say("remind me to water the lawn", "7", **place)
        assert asked.text.startswith("When should I remind you")
        await harness.say("tomorrow at 7:15", "8", **place)
        assert await texts_of_jobs(harness) == []
        assert "is set for" in (await harness.say("tomorrow at 7:15", "7", **place)).text


async def test_reminder_request_goes_to_the_model_if_one_is_configured(home: Path) -> None:
    async with open_gateway(home, ScriptedModel(says("Of course."))) as harness:
        assert (await harness.say("remind me to water the lawn")).text == "Of course."


async def test_incognito_conversation_sets_no_reminder(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("/incognito")
        await harness.say("remind me tomorrow at 9am to send the offer")
        assert await texts_of_jobs(harness) == []


async def test_button_for_another_time_asks_and_the_next_message_answers(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        asked = await harness.say("erinnere mich an den Zahnarzt")
        pressed = await harness.say(button(asked, "Other").id, kind="action", command=None)
        assert pressed.text.startswith("At what time?")
        answer = await harness.say("morgen um 10:30")
        assert "at 10:30 (Europe/Lisbon): “den Zahnarzt”" in answer.text
        assert await texts_of_jobs(harness) == ["den Zahnarzt"]


@pytest.mark.parametrize("refusal", ["no", "👎", "nein", "いいえ", "нет"])
async def test_no_after_a_reminder_asks_what_to_change_and_leaves_the_reminder_set(
    home: Path, refusal: str
) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("remind me tomorrow at 9am to call Bob")
        assert (await harness.say(refusal)).text.startswith("What should I change?")
        assert await texts_of_jobs(harness) == ["call Bob"]
        assert "at 11:00" in (await harness.say("at 11")).text


@pytest.mark.parametrize(
    "refusal", ["no", "lieber nicht", "plutôt pas", "还是算了", "やっぱりいい"]
)
async def test_no_to_the_question_for_a_reminder_time_sets_no_reminder(
    home: Path, refusal: str
) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("remind me to call Bob")
        assert (await harness.say(refusal)).text == "All right, I won't set a reminder."
        assert await texts_of_jobs(harness) == []


@pytest.mark.parametrize(
    "words", ["remind me later", "snooze 10 minutes", "rappelle-moi plus tard"]
)
async def test_later_after_a_reminder_moves_it_instead_of_asking_for_a_text(
    home: Path, words: str
) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("remind me tomorrow at 9am to call Bob")
        assert (await harness.say(words)).text.startswith("I'll remind you again on ")
        assert await texts_of_jobs(harness) == ["call Bob"]


async def test_single_new_time_for_a_delivered_recurring_reminder_keeps_its_recurrence(
    home: Path,
) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("/remind every monday at 8:30 | stand-up")
        await harness.say("what reminders do I have?")
        await harness.say("in 10 minutes")
        weekly, once = sorted(
            await harness.services.jobs.list_active(), key=lambda job: job.schedule.at is not None
        )
        assert weekly.schedule.recurrences[0].endswith("FREQ=WEEKLY;BYDAY=MO")
        assert once.schedule.at is not None
        assert once.text == "stand-up"


async def test_reminder_task_answered_as_to_do_something_is_stored_without_to(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        await harness.say("remind me tomorrow at 9am")
        await harness.say("to buy milk")
        assert await texts_of_jobs(harness) == ["buy milk"]


async def test_length_of_time_counts_from_when_the_message_was_sent(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        sent_at = harness.services.clock.now().replace(microsecond=0) - timedelta(minutes=5)
        await harness.say("remind me in 20 minutes to leave", sent_at=sent_at)
        await harness.say("/remind in 30 minutes | call Ana", sent_at=sent_at)
        await harness.say("remind me in 40 minutes", sent_at=sent_at)
        await harness.say("to feed the hens")

        lengths = {
            job.text: job.schedule.at - sent_at
            for job in await harness.services.jobs.list_active()
            if job.schedule.at is not None
        }
        assert lengths == {
            "leave": timedelta(minutes=20),
            "call Ana": timedelta(minutes=30),
            "feed the hens": timedelta(minutes=40),
        }


async def test_length_of_time_counts_from_now_if_the_clock_differs_by_more_than_a_day(
    home: Path,
) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        now = harness.services.clock.now()
        await harness.say("remind me in 20 minutes to leave", sent_at=now - timedelta(days=2))
        (job,) = await harness.services.jobs.list_active()
        assert job.schedule.at is not None
        assert job.schedule.at > now


async def test_time_that_passed_while_the_message_waited_is_asked_again(home: Path) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        sent_at = harness.services.clock.now() - timedelta(minutes=5)
        asked = await harness.say("remind me in 2 minutes to stir the soup", sent_at=sent_at)
        assert asked.text.startswith("That time has passed.")
        assert await texts_of_jobs(harness) == []
        await harness.say("in 3 minutes")
        assert await texts_of_jobs(harness) == ["stir the soup"]


@pytest.mark.parametrize(
    ("messages", "task"),
    [
        (("remind Anna tomorrow at 9 to pay", "yes"), "remind Anna to pay"),
        (("erinnere Anna ans Zahlen", "morgen um 9"), "erinnere Anna ans Zahlen"),
        (("rappelle à ma femme demain à 9h de payer", "à 9h"), "rappelle à ma femme de payer"),
    ],
)
async def test_reminder_for_another_person_is_offered_to_this_person(
    home: Path, messages: tuple[str, str], task: str
) -> None:
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        offered = await harness.say(messages[0])
        assert offered.text.startswith("I remind only you, not other people. ")
        assert await texts_of_jobs(harness) == []
        assert "at 09:00" in (await harness.say(messages[1])).text
        assert await texts_of_jobs(harness) == [task]


async def test_reminder_for_another_person_in_a_group_is_offered_to_everyone_there(
    home: Path,
) -> None:
    async with open_gateway(
        home, OfflineModel("UTC"), options='rooms = ["telegram:-100"]\n'
    ) as harness:
        address = Address(platform="telegram", chat_id="-100")
        place = {"address": address, "scope": ROOM, "is_direct": False}
        offered = await harness.say("remind Anna tomorrow at 9 to pay", "7", **place)
        assert offered.text.startswith("I can't address other people")
        assert await texts_of_jobs(harness) == []
        assert "at 09:00" in (await harness.say("yes", "7", **place)).text


async def test_two_rhythms_of_one_request_stay_until_it_is_clear_which_of_them_changes(
    home: Path,
) -> None:
    both = "every Monday at 09:00 and every Tuesday at 10:00"
    async with open_gateway(home, OfflineModel("UTC")) as harness:
        receipt = await harness.say("remind me every Monday at 9 and every Tuesday at 10 to run")
        assert both in receipt.text
        for words in ("move the reminder to 11", "/cron edit 1 11:00"):
            assert (await harness.say(words)).text == "Which of the times do you mean?"
        assert both in (await harness.say("/cron")).text
