"""/language shows and sets the language of a person or a group."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.store.ownership.removal import removal_reason
from core.types import Account, Address, Scope
from gateway.texts.catalog import list_languages, load_texts
from tests.fixtures.gateway_harness import GatewayHarness, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, says
from tests.fixtures.skill_folders import skill_text
from tests.fixtures.tables import each_row

pytestmark = pytest.mark.slow

ANA = Account(platform="telegram", user_id="7")
GROUP = Scope.group("telegram", "-5")


def language_of(harness: GatewayHarness, account: Account) -> str:
    return harness.services.languages.of_account(account).language


async def say_in_group(harness: GatewayHarness, text: str, who: str) -> str:
    reply = await harness.say(
        text,
        who,
        address=Address(platform="telegram", chat_id="-5"),
        scope=GROUP,
        is_direct=False,
    )
    return reply.text


async def test_the_language_of_the_platform_is_kept_from_the_first_contact_on(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("/status", "7", language="de-AT")
        assert language_of(harness, ANA) == "de"
        await harness.say("/status", "7", language="fr")
        assert language_of(harness, ANA) == "de"
    async with open_gateway(home) as harness:
        await harness.services.languages.load()
        assert language_of(harness, ANA) == "de"


async def test_button_that_confirms_is_in_the_language_of_the_person(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("/remind 2030-01-15 09:00 | regar", "7", language="es")
        reply = await harness.say("/timezone Madrid", "7", language="es")
        assert reply.answer is not None
        assert [button.label for button in reply.answer.buttons] == ["Sí"]


async def test_a_language_that_is_not_among_the_ten_is_english(home: Path) -> None:
    async with open_gateway(home) as harness:
        reply = await harness.say("/language", "7", language="nl")
        assert "I write in English here" in reply.text
        assert language_of(harness, ANA) == "en"


async def test_a_language_is_chosen_by_its_name_and_counts_after_a_restart(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("/status", "7", language="de")
        reply = await harness.say("/language english", "7", language="de")
        assert "I write in English" in reply.text
        unknown = await harness.say("/language Klingon", "7")
        assert "I don't know that language" in unknown.text
        assert "English" in unknown.text
    async with open_gateway(home) as harness:
        reply = await harness.say("/language", "7", language="de", message_id="later")
        assert "I write in English" in reply.text


async def test_language_of_a_group_is_set_by_its_admins_and_the_owner_only(home: Path) -> None:
    async with open_gateway(home, options='rooms = ["telegram:-5"]') as harness:
        refusal = await say_in_group(harness, "/language English", "7")
        assert refusal == load_texts("en").ADMINS_ONLY
        assert GROUP.key not in harness.services.languages.codes
        harness.platforms["telegram"].admins = {"7"}
        await say_in_group(harness, "/language Deutsch", "7")
        assert harness.services.languages.codes[GROUP.key] == "de"
        await say_in_group(harness, "/language English", "42")
        assert harness.services.languages.codes[GROUP.key] == "en"


async def test_a_german_is_answered_in_german_and_may_type_german_commands(home: Path) -> None:
    async with open_gateway(home) as harness:
        reply = await harness.say("/hilfe", "7", language="de")
        assert "Schreib mir einfach" in reply.text
        unknown = await harness.say("/erinerung", "7", language="de")
        assert "Den Befehl /erinerung gibt es nicht" in unknown.text
        assert "/erinnerung oder /erinnerungen?" in unknown.text
        quiet = await harness.say("/ruhe", "7", language="de")
        assert "Du hast keine Ruhezeit" in quiet.text
        chosen = await harness.say("/sprache English", "7", language="de")
        assert "I write in English" in chosen.text


async def test_questions_and_skills_are_asked_with_the_command_names_of_any_language(
    home: Path,
) -> None:
    folder = home / "skills" / "tidy-inbox"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(skill_text("tidy-inbox"))
    names = [load_texts(language).table("aliases") for language in list_languages()]
    lines = [f"/{alias} wann?" for table in names for alias in table.get("ask", "").split()]
    skill_names = [alias for table in names for alias in table.get("skill", "").split()]
    lines += [f"/{alias} tidy-inbox heute" for alias in skill_names]
    assert len(lines) > 15
    model = ScriptedModel()
    async with open_gateway(home, model) as harness:
        answers = {line: (await harness.say(line)).text for line in lines}
        assert {line: text for line, text in answers.items() if text != "ok"} == {}
        assert len(model.requests) == len(lines)


async def test_names_of_actions_on_discord_may_be_typed_elsewhere(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("/gedächtnis hinzufügen Ana trinkt Tee", "42", language="de")
        notes = await harness.say("/memory Liste", "42", language="de")
        assert "Ana trinkt Tee" in notes.text
        # An English name stays what it is: "add" is no action of another name.
        await harness.say("/memory add Ben trinkt Kaffee", "42", language="de")
        notes = await harness.say("/memory list", "42", language="de")
        assert "Ben trinkt Kaffee" in notes.text


async def test_a_stranger_is_answered_in_the_language_of_their_app(home: Path) -> None:
    async with open_gateway(home) as harness:
        reply = await harness.say("Hallo", "99", language="de")
        assert "Ich kenne dich noch nicht" in reply.text


async def test_help_facts_and_suggestions_come_in_the_language_of_the_person(home: Path) -> None:
    async with open_gateway(home) as harness:
        usage = (await harness.say("/help remind", "7", language="fr")).text
        assert "Programmer un rappel" in usage
        assert "ce qu'il faut te rappeler" in usage
        assert "Retenir un fait" in (await harness.say("/help all", "7", language="fr")).text
        suggestion = (await harness.say("/oubli", "7", language="fr")).text
        assert "Tu voulais dire /oublie" in suggestion
        stored = await harness.say("/remember L'anniversaire d'Ana est le 3 mai", "7")
        assert stored.text.startswith("Je retiens")
        facts = (await harness.say("/facts", "7")).text
        assert facts.startswith("**Ce que je sais**")
        assert "Pour en savoir plus sur un fait" in facts


async def test_a_reminder_and_its_changes_are_described_in_the_language_of_the_person(
    home: Path,
) -> None:
    async with open_gateway(home) as harness:
        stored = (
            await harness.say("/remind 2031-05-05 09:00 appeler Ana", "7", language="fr")
        ).text
        assert "Le rappel 1 est programmé pour lundi 5 mai 2031 à 09:00" in stored
        paused = (await harness.say("/cron pause 1", "7")).text
        assert paused.startswith("Mis en pause\N{NO-BREAK SPACE}: 1")
        assert "en pause" in (await harness.say("/cron", "7")).text
        removed = (await harness.say("/cron remove 1", "7")).text
        assert removed.startswith("Supprimé\N{NO-BREAK SPACE}: 1")
        assert "lundi 5 mai 2031" in removed


@pytest.mark.parametrize("language", list_languages())
async def test_everyday_commands_are_answered_in_each_language(home: Path, language: str) -> None:
    texts = load_texts(language)
    commands = (
        "/help",
        "/help all",
        "/help recall",
        "/remind 2031-05-05 09:00 Ana",
        "/cron",
        "/cron pause 1",
        "/cron end 1",
        "/memory add user: Ana",
        "/memory",
        "/memory history",
        "/remember Ana is my sister",
        "/facts",
        "/memory why f1",
        "/forget Ana",
        "/new",
        "/sessions",
        "/undo",
        "/usage",
        "/timezone Paris",
        "/quiet 22:00-7:00",
        "/language",
        "/link",
        "/files",
        "/skills",
        "/why",
        "/model",
        "/incognito on",
        "/incognito off",
        "/export",
        "/xyzzy",
    )
    async with open_gateway(home) as harness:
        for command in commands:
            answer = (await harness.say(command, "7", language=language)).text
            assert answer, command
            assert texts.FAILURE not in answer, command
            assert "{" not in answer, command
        assert (await harness.say("/help", "7")).text == texts.HELP


async def test_model_is_told_the_language_of_the_person(home: Path) -> None:
    model = ScriptedModel(says("Hallo."), says("Hi."))
    async with open_gateway(home, model) as harness:
        await harness.say("Hallo", "7", language="de")
        await harness.say("Hi", "42", language="en")
    german, english = (request.system[0]["text"] for request in model.requests)
    assert "The person's language is de. Write answers, titles and questions in it" in german
    assert "The person's language" not in english


async def test_title_of_a_conversation_is_asked_for_in_its_language(home: Path) -> None:
    helper = ScriptedModel()
    async with open_gateway(home, ScriptedModel(says("Gute Reise!")), titles=helper) as harness:
        await harness.say("Wir fahren im Mai nach Porto", "7", language="de")
    request = next(request for request in helper.requests if request.kind == "title")
    assert "in its language" in str(request.system)
    assert "Wir fahren im Mai nach Porto" in str(request.messages)


@each_row(
    ("language", "text"),
    [
        ("en", " (due 09:00, 2 hours 5 minutes late: I was away)"),
        ("de", " (fällig 09:00, 2 Stunden 5 Minuten zu spät: Ich war nicht da)"),
        ("ja", "（予定は09:00、2 時間 5 分遅れ：停止していました）"),
    ],
)
def test_delay_of_a_reminder_is_worded_in_the_language(language: str, text: str) -> None:
    due_at = datetime(2026, 5, 3, 9, tzinfo=UTC)
    now = due_at + timedelta(hours=2, minutes=5, seconds=9)
    assert load_texts(language).describe_lateness(due_at, now, "UTC") == text


async def test_stored_reason_of_a_paused_reminder_is_worded_in_the_language(home: Path) -> None:
    async with open_gateway(home) as harness:
        await harness.say("/remind 2031-05-05 09:00 Ana anrufen", "7", language="de")
        job = (await harness.services.jobs.list_active())[0]
        now = harness.services.clock.now()
        reason = removal_reason()
        await harness.services.jobs.update(job.id, paused_at=now, pause_reason=reason)
        listed = (await harness.say("/cron", "7")).text
    assert "Wer das geplant hat, hat keinen Zugang mehr." in listed
