"""Commands, forms, menus and personal installs on Discord, from the real client to the gateway."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from core.types import Scope
from gateway.texts.catalog import ENGLISH as texts
from tests.end_to_end.test_media import pictures_of, texts_of
from tests.fixtures.discord_scene import open_scene
from tests.fixtures.live_system import LiveSystem
from tests.fixtures.media_samples import make_pdf, make_photo
from tests.fixtures.scripted_model import ScriptedModel, calls, says

pytestmark = pytest.mark.slow

EPHEMERAL = 64
Json = dict[str, Any]


async def test_every_action_of_memory_is_a_sub_command(home: Path) -> None:
    async with open_scene(home) as scene:
        (memory,) = [command for command in scene.api.commands if command["name"] == "memory"]
        assert [option["name"] for option in memory["options"]] == [
            "list", "add", "replace", "remove", "undo", "restore", "approve", "reject", "pending",
            "history", "why", "facts", "pin", "unpin", "right", "wrong", "correct", "forget",
        ]  # fmt: skip
        assert {option["type"] for option in memory["options"]} == {1}


async def test_note_is_added_found_while_typing_replaced_and_removed(home: Path) -> None:
    async with open_scene(home) as scene:
        api, direct, ana = scene.api, scene.direct, scene.ana
        call = await api.slash(direct, ana, "memory", action="add", text="The boiler is a Vaillant")
        assert "The boiler is a Vaillant" in await scene.read_text(call)
        typed = await api.types(direct, ana, "memory", "note", "boiler", "replace")
        choices = await scene.read_choices(typed)
        assert choices == {"The boiler is a Vaillant": "The boiler is a Vaillant"}
        (note,) = choices
        call = await api.slash(
            direct, ana, "memory", action="replace", note=note, text="The boiler is a Bosch"
        )
        assert "The boiler is a Bosch" in await scene.read_text(call)
        call = await api.slash(direct, ana, "memory", action="remove", note="The boiler is a Bosch")
        await scene.read(call)
        call = await api.slash(direct, ana, "memory", action="list")
        assert "Bosch" not in await scene.read_text(call)


async def test_facts_jobs_zones_commands_and_entries_are_suggested(home: Path) -> None:
    async with open_scene(home) as scene:
        api, direct, ana = scene.api, scene.direct, scene.ana
        await scene.read(await api.slash(direct, ana, "remember", what="Ana's car is red"))
        call = await api.slash(direct, ana, "remind", when="tomorrow at 9:00", text="Water plants")
        await scene.read(call)
        facts = await scene.read_choices(
            await api.types(direct, ana, "memory", "fact", "car", "correct")
        )
        assert facts == {"f1": "Ana's car is red"}
        entries = await api.types(direct, ana, "memory", "entry", "red car", "pin")
        assert list(await scene.read_choices(entries)) == ["f1"]
        jobs = await scene.read_choices(
            await api.types(direct, ana, "cron", "number", "plants", "pause")
        )
        assert list(jobs) == ["1"]
        assert "Water plants" in jobs["1"]
        zones = await api.types(direct, ana, "timezone", "city", "sao paulo")
        assert next(iter(await scene.read_choices(zones))) == "America/Sao_Paulo"
        zones = await api.types(direct, ana, "timezone", "city", "東京")
        assert await scene.read_choices(zones) == {"Asia/Tokyo": "東京 (Asia/Tokyo)"}
        languages = await api.types(direct, ana, "language", "name", "german")
        assert await scene.read_choices(languages) == {"Deutsch": "Deutsch (German)"}
        commands = await api.types(direct, ana, "help", "command", "remind")
        assert "remind" in await scene.read_choices(commands)
        nothing = await api.types(direct, ana, "memory", "fact", "xyzzy", "correct")
        assert await scene.read_choices(nothing) == {}


async def test_removed_reminders_chats_and_linked_accounts_are_suggested(home: Path) -> None:
    async with open_scene(home) as scene:
        api, direct, ana = scene.api, scene.direct, scene.ana
        for text in ("Water plants", "Feed the cat"):
            await scene.read(
                await api.slash(direct, ana, "remind", when="tomorrow at 9", text=text)
            )
        chats = await api.types_after(direct, ana, "cron", {"number": "1", "chat": ""}, "target")
        assert list(await scene.read_choices(chats)) == ["here", f"discord:{direct}"]
        await scene.read(await api.slash(direct, ana, "cron", action="remove", number="1"))
        removed = await api.types(direct, ana, "cron", "number", "", "restore")
        choices = await scene.read_choices(removed)
        assert list(choices) == ["1"]
        assert "Water plants" in choices["1"]
        theirs = await api.types(scene.channel, scene.bo, "cron", "number", "", "restore")
        assert await scene.read_choices(theirs) == {}
        accounts = await scene.read_choices(await api.types(direct, ana, "unlink", "account", ""))
        assert "telegram:42" in accounts
        assert f"discord:{ana}" not in accounts


async def test_suggestions_show_a_stranger_and_a_member_nothing_of_the_owner(home: Path) -> None:
    async with open_scene(home) as scene:
        api = scene.api
        note = "The safe's code is 1234"
        await scene.read(
            await api.slash(scene.direct, scene.ana, "memory", action="add", text=note)
        )
        for channel, person in ((scene.channel, scene.bo), (api.dm(scene.bo), scene.bo)):
            typed = await api.types(channel, person, "memory", "note", "", "remove")
            assert await scene.read_choices(typed) == {}


async def test_question_about_a_file_goes_to_the_model_with_the_file(home: Path) -> None:
    model = ScriptedModel(says("The rent is 900."))
    async with open_scene(home, model) as scene:
        file = scene.api.attach(make_pdf(), "contract.pdf", "application/pdf", scene.direct)
        call = await scene.api.slash(
            scene.direct, scene.ana, "ask", question="What is the rent?", files={"file": file}
        )
        assert await scene.read_text(call) == "The rent is 900."
        assert "What is the rent?" in model.sent()
        assert "contract.pdf" in model.sent()


async def test_message_menu_asks_for_the_time_and_sets_a_reminder(home: Path) -> None:
    async with open_scene(home) as scene:
        api = scene.api
        message = await api.user_says(scene.channel, "I bring the ladder on Friday", scene.bo)
        call = await api.choose(scene.channel, scene.ana, message, "Remind me about this")
        form = await scene.read_form(call)
        assert form["title"] == "Remind me about this"
        assert [label["component"]["custom_id"] for label in form["components"]] == ["when"]
        submitted = await api.fill(call, scene.ana, when="tomorrow at 9:00")
        text = await scene.read_text(submitted)
        assert "Bo: I bring the ladder on Friday" in text
        assert "09:00" in text


async def test_message_menu_reads_no_time_from_the_message_itself(home: Path) -> None:
    async with open_scene(home) as scene:
        api = scene.api
        message = await api.user_says(scene.channel, "See you tomorrow at 9:00", scene.bo)
        for when in ("no", "cancel", "next blursday", "blorp", "tomorrow at 8 or so blorp"):
            call = await api.choose(scene.channel, scene.ana, message, "Remind me about this")
            await scene.read_form(call)
            submitted = await api.fill(call, scene.ana, when=when)
            assert "I " in await scene.read_text(submitted)
        assert await scene.harness.services.jobs.list_active() == []


async def test_message_menu_asks_a_question_about_the_message(home: Path) -> None:
    model = ScriptedModel(says("In the shed."))
    async with open_scene(home, model) as scene:
        api = scene.api
        message = await api.user_says(scene.channel, "I bring the ladder", scene.bo)
        call = await api.choose(scene.channel, scene.ana, message, "Ask about this")
        await scene.read_form(call)
        submitted = await api.fill(call, scene.ana, question="Where is it now?")
        assert await scene.read_text(submitted) == "In the shed."
        assert "Where is it now?" in model.sent()
        assert "> I bring the ladder" in model.sent()


async def test_message_menu_recalls_similar_messages(home: Path) -> None:
    async with open_scene(home) as scene:
        api = scene.api
        await api.user_says(scene.channel, f"{api.mention()} the ferry leaves at nine", scene.ana)
        await api.wait_for(lambda: api.said(scene.channel))
        message = await api.user_says(scene.channel, 'from:"nobody" ferry?', scene.bo)
        call = await api.choose(scene.channel, scene.ana, message, "Recall similar")
        (answer,) = await scene.read(call)
        assert "ferry" in str(answer)
        assert answer["flags"] & EPHEMERAL


async def test_command_without_its_long_text_opens_a_form_for_several_lines(home: Path) -> None:
    model = ScriptedModel(says("At nine."))
    async with open_scene(home, model) as scene:
        api, direct, ana = scene.api, scene.direct, scene.ana
        call = await api.slash(direct, ana, "ask")
        form = await scene.read_form(call)
        (field,) = [label["component"] for label in form["components"]]
        assert (field["custom_id"], field["style"], field["required"]) == ("question", 2, True)
        answer = await api.fill(call, ana, question="When does the ferry leave?\nOn Sunday.")
        assert await scene.read_text(answer) == "At nine."
        assert "On Sunday." in str(model.requests[0].messages[-1]["content"])

        call = await api.slash(direct, ana, "memory", action="add")
        await scene.read_form(call)
        await scene.read(await api.fill(call, ana, text="The boiler is a Vaillant"))
        call = await api.slash(
            direct, ana, "memory", action="replace", note="The boiler is a Vaillant"
        )
        form = await scene.read_form(call)
        note, text = [label["component"] for label in form["components"]]
        assert note["value"] == "The boiler is a Vaillant"
        assert "value" not in text
        answer = await api.fill(call, ana, text="The boiler is a Bosch")
        assert "The boiler is a Bosch" in await scene.read_text(answer)

        call = await api.slash(direct, ana, "instructions", action="set")
        await scene.read_form(call)
        answer = await api.fill(call, ana, text="Be brief.\nUse metric units.")
        assert "Use metric units." in await scene.read_text(answer)

        call = await api.slash(direct, ana, "remind", when="tomorrow at 9")
        await scene.read_form(call)
        answer = await api.fill(call, ana, text="Water the plants\nand the herbs")
        assert "Water the plants" in await scene.read_text(answer)


async def test_values_of_setup_are_suggested_for_the_setting(home: Path) -> None:
    async with open_scene(home) as scene:
        api, channel, ana = scene.api, scene.channel, scene.ana
        await scene.read(await api.slash(channel, ana, "setup"))

        async def suggest(what: str, typed: str) -> list[str]:
            options = {"what": what, "value": typed}
            call = await api.types_after(channel, ana, "setup", options)
            return list(await scene.read_choices(call))

        assert await suggest("listen", "al") == ["always"]
        assert await suggest("listen", "de") == ["default"]
        assert await suggest("store", "") == ["all", "addressed", "default"]
        assert await suggest("language", "deu") == ["Deutsch"]
        assert await suggest("retention", "30") == ["30"]
        assert (await suggest("roles", ""))[-1] == "off"
        assert await suggest("erase", "") == []


async def test_form_that_is_unknown_after_a_restart_says_that_it_has_expired(home: Path) -> None:
    async with open_scene(home) as scene:
        api = scene.api
        message = await api.user_says(scene.channel, "The ladder", scene.bo)
        call = await api.choose(scene.channel, scene.ana, message, "Remind me about this")
        form = await scene.read_form(call)
        form["custom_id"] = "menu:1"
        submitted = await api.fill(call, scene.ana, when="tomorrow")
        assert "expired" in await scene.read_text(submitted)


async def test_bot_that_only_the_person_has_installed_answers_them_alone(home: Path) -> None:
    model = ScriptedModel(says("At nine."))
    async with open_scene(home, model) as scene:
        api = scene.api
        elsewhere = await api.channel("elsewhere")
        api.hide(elsewhere)
        await scene.read(
            await api.slash(scene.direct, scene.ana, "memory", action="add", text="Ferry at nine")
        )
        call = await api.slash(
            elsewhere, scene.ana, "ask", is_personal=True, question="When is the ferry?"
        )
        (answer,) = await scene.read(call)
        assert (answer["content"], answer["flags"] & EPHEMERAL) == ("At nine.", EPHEMERAL)
        call = await api.slash(elsewhere, scene.ana, "memory", is_personal=True, action="list")
        assert "Ferry at nine" in await scene.read_text(call)
        assert api.said(elsewhere, viewer=scene.bo) == []
        assert not api.sent("GET", f"/channels/{elsewhere}")
        assert not api.sent("POST", f"/channels/{elsewhere}")


async def test_question_says_how_to_answer_where_discord_withholds_a_typed_yes(home: Path) -> None:
    async with open_scene(home) as scene:
        api, ana = scene.api, scene.ana
        await api.user_says(scene.channel, f"{api.mention()} the ferry is blue", ana)
        await scene.said(scene.channel, "ok")
        await api.user_says(scene.direct, "the ferry is blue", ana)
        await scene.said(scene.direct, "ok")
        places = {scene.channel: False, scene.direct: False, await api.channel("else"): True}
        endings, notes = [], texts.table("HOW_TO_ANSWER")
        for place, is_personal in places.items():
            call = await api.slash(place, ana, "forget", is_personal=is_personal, what="ferry")
            endings.append((await scene.read_text(call)).rpartition("\n\n")[2])
        assert endings == [notes["mentions"], texts.CONFIRM_ERASURE, notes["none"]]
        await api.user_says(scene.channel, f"{api.mention()} yes", ana)
        await scene.said(scene.channel, "Forgotten: 1 message")


async def test_question_on_discord_with_message_content_can_be_answered_by_a_typed_yes(
    home: Path,
) -> None:
    async with open_scene(home, has_message_content=True) as scene:
        api, ana = scene.api, scene.ana
        await api.user_says(scene.channel, f"{api.mention()} the ferry is blue", ana)
        await scene.said(scene.channel, "ok")
        call = await api.slash(scene.channel, ana, "forget", what="ferry")
        assert (await scene.read_text(call)).endswith(texts.CONFIRM_ERASURE)
        await api.user_says(scene.channel, "yes", ana)
        await scene.said(scene.channel, "Forgotten: 1 message")


async def test_personal_install_works_between_other_people_and_on_their_messages(
    home: Path,
) -> None:
    async with open_scene(home) as scene:
        api = scene.api
        group = api.dm(scene.ana, scene.bo)
        message = await api.user_says(group, "My new address is Rua 5", scene.bo, is_told=False)
        call = await api.choose(group, scene.ana, message, "Remember this", is_personal=True)
        assert "Rua 5" in await scene.read_text(call)
        assert api.said(group, viewer=scene.bo) == []


async def test_stranger_with_a_personal_install_gets_a_code_for_themselves_alone(
    home: Path,
) -> None:
    async with open_scene(home) as scene:
        api = scene.api
        cleo = api.user("Cleo")
        elsewhere = await api.channel("elsewhere")
        call = await api.slash(elsewhere, cleo, "memory", is_personal=True, action="list")
        (answer,) = await scene.read(call)
        assert answer["flags"] & EPHEMERAL
        assert api.said(elsewhere) == []


@pytest.mark.parametrize("action", ["list", "pause"])
async def test_list_of_reminders_in_a_channel_is_for_the_caller(home: Path, action: str) -> None:
    async with open_scene(home) as scene:
        api = scene.api
        call = await api.slash(
            scene.channel, scene.ana, "remind", when="tomorrow at 9:00", text="Pay the rent"
        )
        (answer,) = await scene.read(call)
        assert not answer["flags"] & EPHEMERAL
        values = {} if action == "list" else {"number": "1"}
        call = await api.slash(scene.channel, scene.ana, "cron", values, action=action)
        (answer,) = await scene.read(call)
        assert bool(answer["flags"] & EPHEMERAL) == (action == "list")


async def test_discord_recall_results_are_cards_and_paging_replaces_them_in_place(
    home: Path,
) -> None:
    async with open_scene(home) as scene:
        api, direct, ana = scene.api, scene.direct, scene.ana
        for number in range(7):
            await api.user_says(direct, f"the ferry number {number}", ana)
            await scene.read(await api.slash(direct, ana, "new"))
        call = await api.slash(direct, ana, "recall", query="ferry")
        (first,) = await scene.read(call)
        assert first["content"] == "🔎 **ferry**"
        assert len(first["embeds"]) == 5
        before = len(api.messages(direct, viewer=ana))
        press = await api.press(direct, ana, first["id"], "More")
        await api.wait_for(lambda: len(first["embeds"]) == 2)
        assert api.interactions.calls[press].callbacks[0]["type"] == 7
        await scene.harness.turns.drain(20)
        await api.press(direct, ana, first["id"], "Back")
        await api.wait_for(lambda: len(first["embeds"]) == 5)
        assert len(api.messages(direct, viewer=ana)) == before
        assert "page:1" in first["content"]


async def test_fact_is_chosen_from_a_list_and_corrected_in_a_form(home: Path) -> None:
    async with open_scene(home) as scene:
        api, direct, ana = scene.api, scene.direct, scene.ana
        for sentence in ("Ana's car is red", "Ana's boat is blue"):
            await scene.read(await api.slash(direct, ana, "remember", what=sentence))
        (facts,) = await scene.read(await api.slash(direct, ana, "facts"))
        (menu,) = [item for row in facts["components"] for item in row["components"]]
        assert (menu["placeholder"], {option["label"] for option in menu["options"]}) == (
            "Show a fact",
            {"f1", "f2"},
        )
        (shown,) = await scene.read(await api.select(direct, ana, facts["id"], "f1"))
        assert "Ana's car is red" in shown["content"]
        press = await api.press(direct, ana, shown["id"], "Correct")
        form = await scene.read_form(press)
        assert form["components"][0]["component"]["value"] == "Ana's car is red"
        (corrected,) = await scene.read(await api.fill(press, ana, text="Ana's car is green"))
        assert "Ana's car is green" in corrected["content"]


async def test_note_reminder_and_instructions_are_changed_in_forms(home: Path) -> None:
    async with open_scene(home) as scene:
        api, direct, ana = scene.api, scene.direct, scene.ana
        for note in ("The boiler is a Vaillant", "The key is under the pot"):
            await scene.read(await api.slash(direct, ana, "memory", action="add", text=note))
        (notes,) = await scene.read(await api.slash(direct, ana, "memory", action="list"))
        chosen = await api.select(direct, ana, notes["id"], "The boiler is a Vaillant")
        await scene.read_form(chosen)
        (changed,) = await scene.read(await api.fill(chosen, ana, text="The boiler is a Bosch"))
        assert "The boiler is a Bosch" in changed["content"]

        for text in ("Water plants", "Pay the rent"):
            await scene.read(
                await api.slash(direct, ana, "remind", when="tomorrow at 9:00", text=text)
            )
        (jobs,) = await scene.read(await api.slash(direct, ana, "cron", action="list"))
        chosen = await api.select(direct, ana, jobs["id"], "1: Water plants")
        await scene.read_form(chosen)
        (changed,) = await scene.read(await api.fill(chosen, ana, text="at 10:30"))
        assert "10:30" in changed["content"]

        (shown,) = await scene.read(await api.slash(direct, ana, "instructions", action="show"))
        press = await api.press(direct, ana, shown["id"], "Change the instructions")
        await scene.read_form(press)
        (changed,) = await scene.read(await api.fill(press, ana, text="Answer briefly.\nBe kind."))
        assert "> Be kind." in changed["content"]


async def test_summary_of_a_channel_is_of_what_its_admins_have_stored(home: Path) -> None:
    model = ScriptedModel(says("I was given nothing else."), says("Boat, quay, fog."))
    async with open_scene(home, model, has_message_content=True) as scene:
        api, channel = scene.api, scene.channel
        ask = f"{api.mention()} summarise the last 50 messages"
        await api.user_says(channel, "the boat leaks", scene.bo)
        await api.user_says(channel, ask, scene.ana)
        await scene.said(channel, "nothing else")
        assert "the boat leaks" not in str(model.requests[-1].messages)
        assert "`/setup store all`" in model.requests[-1].system[0]["text"]

        await scene.read(await api.slash(channel, scene.ana, "setup", what="store", value="all"))
        for text in ("the quay is closed", "fog until noon"):
            await api.user_says(channel, text, scene.bo)
        await api.user_says(channel, ask, scene.ana)
        await scene.said(channel, "Boat, quay, fog.")
        sent = str(model.requests[-1].messages)
        assert "the boat leaks" not in sent
        assert sent.index("the quay is closed") < sent.index("fog until noon")


async def test_channel_is_read_from_discord_only_after_its_admins_have_allowed_it(
    home: Path,
) -> None:
    read = calls(("read_channel", {"limit": 20}))
    model = ScriptedModel(read, says("Not allowed."), read, says("The boat leaks."))
    async with open_scene(home, model, has_message_content=True) as scene:
        api, channel = scene.api, scene.channel
        ask = f"{api.mention()} summarise what was said today"
        await api.user_says(channel, "the boat leaks", scene.bo)
        await api.user_says(channel, ask, scene.ana)
        await scene.said(channel, "Not allowed.")
        assert "`/setup store all`" in str(model.requests[-1].messages[-1])
        assert "the boat leaks" not in str(model.requests[-1].messages)

        await scene.read(await api.slash(channel, scene.ana, "setup", what="store", value="all"))
        await api.user_says(channel, ask, scene.ana)
        await scene.said(channel, "The boat leaks.")
        assert "Bo: the boat leaks" in str(model.requests[-1].messages[-1])


async def test_messages_read_from_a_channel_are_erased_with_what_a_member_forgets(
    home: Path,
) -> None:
    read = calls(("read_channel", {"limit": 20}))
    model = ScriptedModel(read, says("Read."), says("Done."))
    async with open_scene(home, model, has_message_content=True) as scene:
        api, channel = scene.api, scene.channel
        await api.user_says(channel, "my boat leaks", scene.bo)
        await scene.read(await api.slash(channel, scene.ana, "setup", what="store", value="all"))
        await api.user_says(channel, f"{api.mention()} what was said?", scene.ana)
        await scene.said(channel, "Read.")
        assert "leaks" in str(model.requests[-1].messages[-1])
        (question,) = await scene.read(await api.slash(channel, scene.bo, "forget", what="leaks"))
        await scene.read(await api.press(channel, scene.bo, question["id"], "Yes"))
        await api.user_says(channel, f"{api.mention()} and now?", scene.ana)
        await scene.said(channel, "Done.")
        assert "leaks" not in str(model.requests[-1].messages)


async def test_only_groups_of_discord_have_the_tool_that_reads_a_channel(home: Path) -> None:
    model = ScriptedModel()
    async with open_scene(home, model, has_message_content=True) as scene:
        await scene.api.user_says(scene.direct, "hello", scene.ana)
        await scene.said(scene.direct, "ok")
        await scene.api.user_says(scene.channel, f"{scene.api.mention()} hello", scene.ana)
        await scene.said(scene.channel, "ok")
        has_tool = ["read_channel" in str(request.tools) for request in model.requests]
        assert has_tool == [False, True]


async def test_buttons_choices_and_pages_that_are_older_than_a_restart_work(home: Path) -> None:
    async with LiveSystem.open(home) as live:
        api, direct, ana = live.discord, live.channel, live.discord_person
        api.interactions.is_strict_on_time = False

        async def read(interaction_id: str) -> Json:
            await live.until(lambda: any(post["content"] for post in api.answers(interaction_id)))
            return next(post for post in api.answers(interaction_id) if post["content"])

        async def read_form(interaction_id: str) -> Json:
            call = api.interactions.calls[interaction_id]
            await live.until(lambda: bool(call.callbacks))
            form: Json = call.callbacks[0]["data"]
            return form

        await live.start()
        for note in ("The boiler is a Vaillant", "The key is under the pot"):
            await read(await api.slash(direct, ana, "memory", action="add", text=note))
        boats = [f"Boat {number} is blue" for number in range(8)]
        for statement in ("Ana's car is red", *boats):
            await read(await api.slash(direct, ana, "remember", what=statement))
        facts = await read(await api.slash(direct, ana, "facts"))
        notes = await read(await api.slash(direct, ana, "memory", action="list"))
        fact = await read(await api.slash(direct, ana, "memory", action="why", entry="f1"))
        await live.kill()
        await live.start()

        await api.press(direct, ana, facts["id"], "More")
        await live.until(lambda: "Ana's car is red" in facts["content"])

        chosen = await api.select(direct, ana, notes["id"], "The boiler is a Vaillant")
        form = await read_form(chosen)
        assert form["title"] == "Change a note"
        assert form["components"][0]["component"]["placeholder"] == "The boiler is a Vaillant"
        changed = await read(await api.fill(chosen, ana, text="The boiler is a Bosch"))
        assert "The boiler is a Bosch" in changed["content"]

        press = await api.press(direct, ana, fact["id"], "Correct")
        assert (await read_form(press))["title"] == "Correct"
        corrected = await read(await api.fill(press, ana, text="Ana's car is green"))
        assert "Ana's car is green" in corrected["content"]


async def test_conversations_have_pages_and_a_list_to_continue_them(home: Path) -> None:
    async with open_scene(home) as scene:
        api, direct, ana = scene.api, scene.direct, scene.ana
        for number in range(12):
            await api.user_says(direct, f"line {number}", ana)
            await scene.read(await api.slash(direct, ana, "new"))
        (first,) = await scene.read(await api.slash(direct, ana, "sessions"))
        assert first["content"].count("\n- ") == 9
        await api.press(direct, ana, first["id"], "More")
        await api.wait_for(lambda: "- **1**" in first["content"])
        await scene.harness.turns.drain(20)
        (resumed,) = await scene.read(await api.select(direct, ana, first["id"], "Continue 1"))
        assert "Continuing conversation 1" in resumed["content"]


async def test_pages_of_a_list_in_a_channel_stay_with_the_person_who_asked(home: Path) -> None:
    async with open_scene(home) as scene:
        api = scene.api
        for number in range(9):
            await scene.read(
                await api.slash(scene.channel, scene.ana, "remember", what=f"Boat {number} is blue")
            )
        (facts,) = await scene.read(await api.slash(scene.channel, scene.ana, "facts"))
        assert facts["flags"] & EPHEMERAL
        await api.press(scene.channel, scene.ana, facts["id"], "More")
        await api.wait_for(lambda: "Boat 0 is blue" in facts["content"])
        assert "Boat 8 is blue" not in facts["content"]
        assert api.said(scene.channel, viewer=scene.bo) == []


async def test_mention_begins_a_thread_in_which_mneme_answers_without_a_mention(home: Path) -> None:
    model = ScriptedModel(says("At nine."), says("At ten."))
    async with open_scene(home, model, opens_threads=True, has_message_content=True) as scene:
        api = scene.api
        mention = f"{api.mention()} when does the ferry leave?"
        asked = await api.user_says(scene.channel, mention, scene.bo)
        await api.wait_for(lambda: asked in api.world.channels)
        assert await scene.said(asked, "At nine.") == "At nine."
        assert api.world.channels[asked]["name"] == "when does the ferry leave?"
        assert api.said(scene.channel) == []
        await api.user_says(asked, "and on Sundays?", scene.bo)
        assert await scene.said(asked, "At ten.") == "At ten."
        sessions = await scene.harness.services.conversations.list_recent(
            frozenset({Scope.group("discord", scene.channel)}), 5
        )
        assert len(sessions) == 1
        assert len(api.sent("POST", "/threads")) == 1


async def test_mention_without_text_begins_no_thread_and_says_how_to_ask(home: Path) -> None:
    async with open_scene(home, ScriptedModel(), opens_threads=True) as scene:
        await scene.api.user_says(scene.channel, scene.api.mention(), scene.bo)
        assert await scene.said(scene.channel, texts.ASK_USAGE)
        assert scene.api.sent("POST", "/threads") == []


async def test_answer_to_an_edited_question_replaces_the_first_answer_on_the_screen(
    home: Path,
) -> None:
    model = ScriptedModel(says("At nine."), says("At ten."), says("At eleven."))
    async with open_scene(home, model) as scene:
        api, channel = scene.api, scene.channel
        asked = await api.user_says(channel, f"{api.mention()} boat to Capri?", scene.bo)
        await scene.said(channel, "At nine.")
        await api.edit(channel, asked, f"{api.mention()} boat to Ischia?")
        await scene.said(channel, "At ten.")
        await api.edit(channel, asked, f"{api.mention()} boat to Procida?")
        await scene.said(channel, "At eleven.")
        answers = [post["content"] for post in api.messages(channel) if "At" in post["content"]]
        assert answers == ["At eleven."]
        assert api.sent("DELETE", "/messages/") == []


async def test_answer_to_a_mention_that_an_edit_adds_is_a_reply_to_the_message(home: Path) -> None:
    async with open_scene(home, ScriptedModel(says("At nine."))) as scene:
        api = scene.api
        message = await api.user_says(scene.channel, "when is it?", scene.bo)
        await api.edit(scene.channel, message, f"{api.mention()} when is it?")
        await scene.said(scene.channel, "At nine.")
        answer = api.messages(scene.channel)[-1]
        assert answer["message_reference"]["message_id"] == message


async def test_question_with_files_is_answered_again_after_each_edit(home: Path) -> None:
    model = ScriptedModel(says("Answer 1."), says("Answer 2."), says("Answer 3."))
    async with open_scene(home, model) as scene:
        api, channel = scene.api, scene.channel
        files = [
            api.attach(make_photo(colour=colour), f"{colour}.jpg", "image/jpeg", channel)
            for colour in ("blue", "red")
        ]
        question = f"{api.mention()} which colours?"
        asked = await api.user_says(channel, question, scene.bo, attachments=files)
        await scene.said(channel, "Answer 1.")
        await api.edit(channel, asked, f"{api.mention()} which shapes?")
        await scene.said(channel, "Answer 2.")
        await api.edit(channel, asked, f"{api.mention()} which shapes?", attachments=files[1:])
        await scene.said(channel, "Answer 3.")
        sent = [str(request.messages) for request in model.requests]
        assert ["which shapes?" in text for text in sent] == [False, True, True]
        assert ["blue.jpg" in text for text in sent] == [True, True, False]
        assert ["red.jpg" in text for text in sent] == [True, True, True]
        assert [len(pictures_of(request)) for request in model.requests] == [2, 2, 1]
        answers = [post["content"] for post in api.messages(channel) if "Answer" in post["content"]]
        assert answers == ["Answer 3."]


async def test_files_with_a_command_as_their_text_are_kept_and_the_command_carried_out(
    home: Path,
) -> None:
    async with open_scene(home) as scene:
        api, direct = scene.api, scene.direct
        files = [
            api.attach(make_photo(), "boiler.jpg", "image/jpeg", direct),
            api.attach(make_pdf(), "contract.pdf", "application/pdf", direct),
        ]
        await api.user_says(direct, "/memory add Our boiler", scene.ana, attachments=files)
        answer = await scene.said(direct, "I've kept boiler.jpg and contract.pdf.")
        assert "Our boiler (file 1) (file 2)" in answer


async def test_thread_that_cannot_be_created_leaves_the_answer_in_the_channel(home: Path) -> None:
    async with open_scene(home, ScriptedModel(says("At nine.")), opens_threads=True) as scene:
        api = scene.api
        api.rest.fail("POST", "/threads", 403, 50013)
        asked = await api.user_says(scene.channel, f"{api.mention()} ferry?", scene.bo)
        await scene.said(scene.channel, "At nine.")
        (answer,) = [post for post in api.messages(scene.channel) if post["content"] == "At nine."]
        assert answer["message_reference"]["message_id"] == asked


async def test_profile_shows_the_text_of_the_settings(home: Path) -> None:
    async with open_scene(home, presence="Ask me with /ask") as scene:
        activity = scene.api.gateway.identifies[0]["presence"]["game"]
        assert (activity["type"], activity["state"]) == (4, "Ask me with /ask")


async def test_answer_with_many_lines_is_sent_as_several_messages(home: Path) -> None:
    lines = "\n".join(f"- line {number}" for number in range(12))
    async with open_scene(home, ScriptedModel(says(lines)), max_lines=5) as scene:
        api = scene.api
        await api.user_says(scene.direct, "A list, please", scene.ana)
        await scene.said(scene.direct, "line 11")
        parts = api.said(scene.direct)
        assert len(parts) == 3
        assert all(part.count("\n") < 5 for part in parts)


async def test_discord_role_gives_a_member_access_until_it_is_removed(home: Path) -> None:
    options = 'roles = ["discord:123456789"]\n'
    async with open_scene(home, ScriptedModel(says("Hello Cleo.")), options) as scene:
        api = scene.api
        api.world.guild_roles.append("123456789")
        cleo, other = api.user("Cleo"), str(api.world.add_channel("other")["id"])
        await api.gateway.dispatch("GUILD_CREATE", api.world.guild())
        await api.user_says(other, f"{api.mention()} hello?", cleo)
        api.world.roles[cleo] = ["123456789"]
        await api.user_says(other, f"{api.mention()} hello!", cleo)
        assert await scene.said(other, "Hello") == "Hello Cleo."
        api.world.roles[cleo] = []
        await api.user_says(other, f"{api.mention()} still there?", cleo)
        call = await api.slash(other, cleo, "status")
        await api.wait_for(lambda: api.interactions.calls[call].callbacks)
        assert api.said(other).count("Hello Cleo.") == 1
        assert "ok" not in api.said(other)


async def test_reactions_of_a_member_with_a_role_count_and_leave_their_access(home: Path) -> None:
    role = "123456789"
    async with open_scene(
        home, ScriptedModel(says("Hello Cleo.")), f'roles = ["discord:{role}"]\n'
    ) as scene:
        api, harness = scene.api, scene.harness
        api.world.guild_roles.append(role)
        cleo, other = api.user("Cleo"), str(api.world.add_channel("other")["id"])
        api.world.roles[cleo] = [role]
        await api.gateway.dispatch("GUILD_CREATE", api.world.guild())
        await api.user_says(other, f"{api.mention()} hello!", cleo)
        await scene.said(other, "Hello Cleo.")
        answer = api.messages(other)[-1]["id"]
        await scene.read(await api.slash(other, cleo, "remind", when="tomorrow at 9", text="tea"))
        await harness.turns.drain(60)
        (job,) = await harness.services.jobs.list_active()

        async def wait_for_verdict(verdict: int) -> None:
            query = "SELECT * FROM thumbs WHERE verdict = :verdict"
            while not await harness.services.database.fetch_all(query, {"verdict": verdict}):  # noqa: ASYNC110  The store has no signal.
                await asyncio.sleep(0.01)

        await api.react(other, answer, "👍", cleo)
        await wait_for_verdict(1)
        await harness.access.load_job_view(job)
        await api.react(other, answer, "👍", cleo, is_removal=True)
        await wait_for_verdict(0)
        await harness.access.load_job_view(job)


@pytest.mark.parametrize(
    ("thumb", "answer"), [("👍", "Forgotten: 1 message"), ("👎", "I won't do it")]
)
async def test_thumb_on_an_open_question_answers_it(home: Path, thumb: str, answer: str) -> None:
    async with open_scene(home, ScriptedModel(says("Noted."))) as scene:
        api, direct, ana = scene.api, scene.direct, scene.ana
        await api.user_says(direct, "The ferry leaves at nine.", ana)
        await scene.said(direct, "Noted.")
        await api.user_says(direct, "/forget ferry", ana)
        await scene.said(direct, "I'd forget 1 message")
        question = api.messages(direct)[-1]
        # A person doesn't react before the id of the message is stored.
        while (await scene.harness.services.outbox.count_items()).held:  # noqa: ASYNC110  The outbox has no signal.
            await asyncio.sleep(0.01)
        await api.react(direct, question["id"], thumb, ana)
        await scene.said(direct, answer)


async def test_discord_sticker_is_downloaded_and_shown_to_the_model(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ScriptedModel(says("It waves."))
    async with open_scene(home, model) as scene:
        monkeypatch.setattr("discord.asset.Asset.BASE", scene.api.cdn_url)
        sticker = scene.api.sticker("Wave", make_photo(320, 320))
        await scene.api.user_says(scene.direct, "", scene.ana, sticker_items=[sticker])
        await scene.said(scene.direct, "It waves.")
        (picture,) = pictures_of(model.requests[0])
        assert picture.size == (320, 320)
        assert "[attached sticker: Wave]" in texts_of(model.requests[0])
        assert scene.api.server.fetches == [sticker["id"]]
