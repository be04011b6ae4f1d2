"""/setup: admins say where the assistant listens and what it stores; nobody else does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.types import Account, Address, Command, Quote, Scope, Sender
from gateway.texts.catalog import ENGLISH as texts
from gateway.texts.catalog import load_texts
from gateway.texts.text_files import load_names
from gateway.upkeep.retention import RetentionKeeper
from tests.fixtures.forgetting import left_of
from tests.fixtures.gateway_harness import GatewayHarness, KeptReply, open_gateway
from tests.fixtures.scripted_model import ScriptedModel, says
from tests.gateway.commands.test_links import notices

pytestmark = pytest.mark.slow

ADMIN = "8"
MEMBER = "9"
GROUP: dict[str, Any] = {
    "address": Address(platform="telegram", chat_id="-5"),
    "scope": Scope.group("telegram", "-5"),
    "is_direct": False,
}
TOPIC = {**GROUP, "address": Address(platform="telegram", chat_id="-5", thread_id="7")}
CHANNEL: dict[str, Any] = {
    "address": Address(platform="discord", chat_id="900"),
    "scope": Scope.group("discord", "900"),
    "is_direct": False,
    "server_id": "55",
}
OVERHEARD = {**GROUP, "is_addressed": False}
MENTION = {**GROUP, "is_mention": True}
REPLY = {**GROUP, "quote": Quote(kind="reply", text="hi", is_ours=True)}


def gateway(home: Path, *answers: str) -> Any:
    """A gateway with a listed group of an admin and a member."""
    options = 'rooms = ["telegram:-5", "discord:900"]\n'
    model = ScriptedModel(*[says(answer) for answer in answers])
    return open_gateway(home, model, options)


async def say(harness: GatewayHarness, text: str, who: str, **place: Any) -> str:
    """Return the answer to a message in a group, or "" if there is none."""
    harness.platforms["telegram"].admins = {ADMIN}
    harness.platforms["discord"].admins = {ADMIN}
    reply = await harness.say(text, who, **{**GROUP, **place})
    return "" if reply.answer is None else reply.text


@pytest.mark.parametrize(
    ("listens", "answered"),
    [
        ("mention", ["mention", "slash"]),
        ("reply", ["reply"]),
        ("mention reply", ["mention", "reply", "slash"]),
        ("reply, mention", ["mention", "reply", "slash"]),
        ("always", ["mention", "reply", "overheard", "slash"]),
        ("commands", []),
        ("prefix mne", ["mention", "reply", "prefix", "slash"]),
    ],
)
async def test_group_admin_sets_which_messages_are_answered(
    home: Path, listens: str, answered: list[str]
) -> None:
    async with gateway(home, *["yes"] * 6) as harness:
        assert texts.SETUP_CHANGED in await say(harness, f"/setup listen {listens}", ADMIN)
        answers = {
            "mention": await say(harness, "hello", MEMBER, **MENTION),
            "reply": await say(harness, "hello", MEMBER, **REPLY),
            "overheard": await say(harness, "hello", MEMBER, **OVERHEARD),
            "prefix": await say(harness, "Mne, hello", MEMBER, **OVERHEARD),
            "other word": await say(harness, "mnemonic", MEMBER, **OVERHEARD),
            "other bot": await say(harness, "/weather@other", MEMBER, **OVERHEARD, command=None),
            "slash": await say(harness, "/facts about me", MEMBER, **MENTION, command=None),
        }
        if listens == "always":
            answered = [*answered, "prefix", "other word"]
        assert {name for name, answer in answers.items() if answer} == set(answered)
        assert "commands" not in answers
        assert await say(harness, "/facts", MEMBER)


async def test_call_word_of_a_group_is_removed_from_the_message_sent_to_the_model(
    home: Path,
) -> None:
    model = ScriptedModel(says("hello"))
    async with open_gateway(home, model, 'rooms = ["telegram:-5"]\n') as harness:
        await say(harness, "/setup prefix mne", ADMIN)
        await say(harness, "Mne, when does it leave?", MEMBER, **OVERHEARD)
        sent = str(model.requests[0].messages[-1])
        assert "when does it leave?" in sent
        assert "Mne," not in sent


async def test_topic_may_have_its_own_listening_rule_and_others_follow_the_group(
    home: Path,
) -> None:
    async with gateway(home, "one", "two") as harness:
        await say(harness, "/setup listen always", ADMIN, **TOPIC)
        other_topic = {**TOPIC, "address": replace(TOPIC["address"], thread_id="8")}
        assert await say(harness, "hello", MEMBER, **TOPIC, is_addressed=False) == "one"
        assert await say(harness, "hello", MEMBER, **other_topic, is_addressed=False) == ""
        await say(harness, "/setup for:all listen always", ADMIN, **TOPIC)
        assert await say(harness, "hello", MEMBER, **other_topic, is_addressed=False) == "two"


async def test_general_topic_has_its_own_rule_and_says_so(home: Path) -> None:
    general = {**GROUP, "is_in_general": True}
    places = texts.table("SETUP_PLACES")
    async with gateway(home, "one", "two") as harness:
        assert texts.SETUP_SHARED in await say(harness, "/setup", MEMBER, **general)
        answer = await say(harness, "/setup listen always", ADMIN, **general)
        assert places["general"] in answer
        assert texts.SETUP_OWN in answer
        assert texts.SETUP_SHARED in await say(harness, "/setup", MEMBER, **TOPIC)
        assert await say(harness, "hello", MEMBER, **TOPIC, is_addressed=False) == ""
        assert await say(harness, "hello", MEMBER, **general, is_addressed=False) == "one"
        answer = await say(harness, "/setup for:all listen always", ADMIN, **general)
        assert places["topics"] in answer
        assert await say(harness, "hello", MEMBER, **TOPIC, is_addressed=False) == "two"


@pytest.mark.parametrize(
    ("place", "change", "expected"),
    [
        (GROUP, "listen always", "group"),
        (TOPIC, "listen always", "topic"),
        (TOPIC, "for:all listen always", "topics"),
        (TOPIC, "retention 30", "group"),
        (TOPIC, "language en", "group"),
        (CHANNEL, "prefix mne", "channel"),
        (CHANNEL, "retention 30", "channel"),
        (CHANNEL, "for:all store all", "server"),
        ({**CHANNEL, "address": replace(CHANNEL["address"], thread_id="7")}, "store all", "thread"),
    ],
)
async def test_change_says_which_place_it_counts_for(
    home: Path, place: dict[str, Any], change: str, expected: str
) -> None:
    async with gateway(home) as harness:
        answer = await say(harness, f"/setup {change}", ADMIN, **place)
        assert answer.startswith(f"{texts.SETUP_CHANGED} {texts.table('SETUP_PLACES')[expected]}")


@pytest.mark.parametrize("change", ["store all", "listen always", "prefix mne"])
async def test_setup_says_if_discord_gives_only_messages_that_mention_the_bot(
    home: Path, change: str
) -> None:
    async with gateway(home) as harness:
        assert texts.SETUP_UNREADABLE not in await say(harness, "/setup", MEMBER, **CHANNEL)
        assert texts.SETUP_UNREADABLE in await say(harness, f"/setup {change}", ADMIN, **CHANNEL)
        assert texts.SETUP_UNREADABLE not in await say(harness, f"/setup {change}", ADMIN)
    options = 'rooms = ["discord:900"]\n[discord]\nmessage_content = true\n'
    async with open_gateway(home, ScriptedModel(), options) as harness:
        assert texts.SETUP_UNREADABLE not in await say(harness, "/setup", MEMBER, **CHANNEL)


async def test_discord_channel_may_have_its_own_listening_rule_and_others_follow_the_server(
    home: Path,
) -> None:
    async with gateway(home, "one") as harness:
        await say(harness, '/setup for:"all" listen commands', ADMIN, **CHANNEL)
        assert await say(harness, "hello", MEMBER, **CHANNEL, is_mention=True) == ""
        await say(harness, "/setup listen mention", ADMIN, **CHANNEL)
        assert await say(harness, "hello", MEMBER, **CHANNEL, is_mention=True) == "one"


async def test_group_setup_survives_a_restart_and_a_migration_of_the_chat_id(home: Path) -> None:
    async with gateway(home) as harness:
        await say(harness, "/setup listen always", ADMIN)
    async with gateway(home, "one", "two") as harness:
        assert await say(harness, "hello", MEMBER, **OVERHEARD, message_id="70") == "one"
        await harness.admission.migrate_group("telegram", "-5", "-1005")
        moved = {
            "address": Address(platform="telegram", chat_id="-1005"),
            "scope": Scope.group("telegram", "-1005"),
        }
        assert await say(harness, "hello", MEMBER, **{**OVERHEARD, **moved}) == "two"


async def test_topics_keep_their_rules_in_a_group_with_a_new_id(home: Path) -> None:
    options = 'rooms = ["telegram:-5"]\n'
    async with open_gateway(home, ScriptedModel(says("one")), options) as harness:
        await say(harness, "/setup listen commands", ADMIN)
        await say(harness, "/setup retention 30", ADMIN)
        await say(harness, "/setup listen always", ADMIN, **TOPIC)
        address = Address(platform="telegram", chat_id="-1005")
        moved_group = {"scope": Scope.group("telegram", "-1005"), "address": address}
        # The first message under the new id arrives before Telegram reports the new id.
        await harness.services.chat_rules.save(
            "telegram:-1005", introduced_at=harness.services.clock.now()
        )
        await harness.admission.migrate_group("telegram", "-5", "-1005")
        moved_topic = {**moved_group, "address": replace(address, thread_id="7")}
        assert await say(harness, "hello", MEMBER, **moved_group, is_mention=True) == ""
        assert await say(harness, "hello", MEMBER, **moved_topic, is_addressed=False) == "one"
        assert texts.SETUP_RETENTION.format(duration="30 days") in await say(
            harness, "/setup", MEMBER, **moved_topic
        )
        await say(harness, "/setup retention 9", ADMIN, **moved_topic)
        keeper = RetentionKeeper(harness.services, harness.services.clock)
        assert (await keeper._load_periods())[GROUP["scope"]].days == 9


async def test_unaddressed_group_messages_are_stored_only_while_an_admin_has_enabled_it(
    home: Path,
) -> None:
    async with gateway(home) as harness:
        await say(harness, "the ferry is blue", MEMBER, **OVERHEARD)
        await say(harness, "/setup store all", ADMIN)
        await say(harness, "the ferry is red", MEMBER, **OVERHEARD)
        await say(harness, "/setup store addressed", ADMIN)
        await say(harness, "the ferry is green", MEMBER, **OVERHEARD)
        recalled = await say(harness, "/recall ferry", MEMBER)
        assert ["blue" in recalled, "red" in recalled, "green" in recalled] == [False, True, False]


async def test_storing_of_a_group_returns_to_the_default(home: Path) -> None:
    stores = texts.table("SETUP_STORES")
    async with gateway(home) as harness:
        assert stores["all"] in await say(harness, "/setup store all", ADMIN)
        assert stores["addressed"] in await say(harness, "/setup store default", ADMIN)


@pytest.mark.parametrize("place", [GROUP, CHANNEL], ids=["telegram", "discord"])
async def test_group_is_told_what_is_stored_from_now_on_when_an_admin_changes_that(
    home: Path, place: dict[str, Any]
) -> None:
    async with gateway(home) as harness:
        changes = ("addressed", "all", "all", "default")
        for number, change in enumerate(changes):
            await say(harness, f"/setup store {change}", ADMIN, **place, message_id=f"8{number}")
        told = [(address, answer.text) for address, answer in await notices(harness)]
        expected = [texts.INTRODUCTION, texts.INTRODUCTION_ALL, texts.INTRODUCTION]
        assert told == [(place["address"], text) for text in expected]


async def test_only_members_with_a_role_are_answered(home: Path) -> None:
    role = "123456789012345678"
    async with gateway(home, "one", "two") as harness:
        await say(harness, f"/setup roles <@&{role}>", ADMIN, **CHANNEL)
        assert await say(harness, "hello", MEMBER, **CHANNEL) == ""
        sender = Sender(id=MEMBER, name="Nine", roles=(role,))
        assert await say(harness, "hello", MEMBER, **CHANNEL, sender=sender) == "one"
        await say(
            harness,
            "/setup roles off",
            "42",
            **CHANNEL,
            sender=Sender(id=ADMIN, name="A", roles=(role,)),
        )
        assert await say(harness, "hello", MEMBER, **CHANNEL) == "two"


@pytest.mark.parametrize("event", ["autocomplete", "press", "interaction"])
async def test_role_that_a_group_requires_still_applies_after_a_restart(
    home: Path, event: str
) -> None:
    slash = {**CHANNEL, "is_interaction": True}
    async with gateway(home) as harness:
        await say(harness, "/remember The safe code is 1234", ADMIN, **CHANNEL)
        await say(harness, "/setup roles <@&123456789012345678>", ADMIN, **CHANNEL)
    async with gateway(home) as harness:
        match event:
            case "autocomplete":
                inbound = harness.inbound("/memory", MEMBER, **CHANNEL)
                assert await harness.admission.autocomplete(inbound, "safe", "facts") == {}
            case "press":
                press = {**slash, "kind": "action", "command": Command(name="facts")}
                assert await say(harness, "x", MEMBER, **press) == texts.ROLE_NEEDED
            case _:
                inbound = harness.inbound("/facts", MEMBER, **slash)
                reply = KeptReply()
                assert not await harness.admission.answer_unstored(inbound, reply)
                assert reply.answer is None


async def test_member_without_the_required_role_may_still_forget_their_own_words(
    home: Path,
) -> None:
    slash = {**CHANNEL, "is_interaction": True}
    async with gateway(home, "ok", "ok") as harness:
        await say(harness, "my giraffe is blue", MEMBER, **CHANNEL)
        await say(harness, "my giraffe is red", ADMIN, **CHANNEL)
        await say(harness, "/setup roles <@&123456789012345678>", ADMIN, **CHANNEL)
        shown = await say(harness, "/forget giraffe", MEMBER, **slash)
        assert "blue" in shown
        assert "red" not in shown
        assert await say(harness, "yes", MEMBER, **CHANNEL)
        with_role = Sender(id="7", name="Seven", roles=("123456789012345678",))
        recalled = await say(harness, "/recall giraffe", "7", **CHANNEL, sender=with_role)
        assert "blue" not in recalled
        assert "red" in recalled
        assert await say(harness, "/recall giraffe", MEMBER, **slash) == texts.ROLE_NEEDED


async def test_member_of_a_group_that_is_no_longer_listed_may_still_forget_their_own_words(
    home: Path,
) -> None:
    async with gateway(home, "ok", "ok") as harness:
        await say(harness, "my giraffe is blue", MEMBER)
        await say(harness, "my giraffe is red", "42")
    async with open_gateway(home, ScriptedModel()) as harness:
        assert await say(harness, "hello", MEMBER) == texts.STRANGER_IN_GROUP
        shown = await say(harness, "/forget giraffe", MEMBER)
        assert "blue" in shown
        assert "red" not in shown
        assert (await say(harness, "yes", MEMBER)).startswith("Forgotten: ")
        recalled = await say(harness, "/recall giraffe", "42")
        assert "blue" not in recalled
        assert "red" in recalled
        other_group = Address(platform="telegram", chat_id="-99")
        elsewhere = {"address": other_group, "scope": Scope.group("telegram", "-99")}
        refusal = await say(harness, "/forget giraffe", MEMBER, **elsewhere)
        assert refusal == texts.STRANGER_IN_GROUP


async def test_manager_without_the_required_role_keeps_setup_and_a_member_is_told_why(
    home: Path,
) -> None:
    role = "123456789012345678"
    slash = {**CHANNEL, "is_interaction": True}
    async with gateway(home, "two") as harness:
        harness.platforms["discord"].role_names = {role: "Team"}
        shown = await say(harness, f"/setup roles <@&{role}>", ADMIN, **slash)
        assert texts.quote("Team") in shown
        reply = await harness.say("/facts", MEMBER, **slash)
        assert reply.answer is not None
        assert reply.answer.is_private
        assert reply.text == texts.ROLE_NEEDED
        assert await say(harness, "/setup roles off", MEMBER, **slash) == texts.ADMINS_ONLY
        assert texts.SETUP_CHANGED in await say(harness, "/setup roles off", ADMIN, **slash)
        assert await say(harness, "hello", MEMBER, **CHANNEL) == "two"


async def test_admin_without_access_sets_up_a_group_once_someone_with_access_uses_it(
    home: Path,
) -> None:
    model = ScriptedModel(says("hi"), says("hi"))
    async with open_gateway(home, model, discord_owner="42") as harness:
        for place, person in ((GROUP, "7"), (CHANNEL, "42")):
            key = place["address"].key
            refusal = texts.SETUP_NOT_SERVED.format(key=key)
            assert await say(harness, "/setup listen always", ADMIN, **place) == refusal
            await say(harness, "hello", person, **place)
            answer = await say(harness, "/setup listen commands", ADMIN, **place)
            assert texts.SETUP_CHANGED in answer
            assert await say(harness, "/setup listen always", "10", **place) == texts.ADMINS_ONLY
            assert await say(harness, "hello", person, **place) == ""
            asked = await say(harness, "/setup erase", ADMIN, **place)
            assert texts.SETUP_ERASE_ASKED in asked
            assert "Erased: " in await say(harness, "yes", ADMIN, **place, is_addressed=False)
        account = Account(platform="telegram", user_id=ADMIN)
        access = await harness.services.people.load_access(account, GROUP["scope"])
        assert not access.is_owner
        assert not access.is_approved


async def test_anonymous_admin_sets_up_the_group_but_gets_no_answer_of_the_model(
    home: Path,
) -> None:
    anonymous = {**GROUP, "sender": Sender(id="-5", name="The group", is_anonymous=True)}
    async with gateway(home) as harness:
        harness.platforms["telegram"].admins = {"-5"}
        reply = await harness.say("/setup listen mention", "-5", **anonymous)
        assert texts.SETUP_CHANGED in reply.text
        reply = await harness.say("hello", "-5", **{**anonymous, "is_mention": True})
        assert reply.text == texts.ANONYMOUS_ADMIN
        reply = await harness.say("hello", "-5", **{**anonymous, "is_addressed": False})
        assert reply.answer is None


async def test_anonymous_admin_of_an_unlisted_group_is_told_who_gets_answers(home: Path) -> None:
    sender = Sender(id="-5", name="The group", is_anonymous=True)
    anonymous = {**MENTION, "sender": sender}
    async with open_gateway(home, ScriptedModel(says("hi"))) as harness:
        harness.platforms["telegram"].admins = {"-5"}
        refusal = texts.SETUP_NOT_SERVED.format(key="telegram:-5")
        assert (await harness.say("hello", "-5", **anonymous)).text == refusal
        assert (await harness.say("/setup", "-5", **anonymous)).text == refusal
        await harness.say("hello", "7", **GROUP)
        reply = await harness.say("hello", "-5", **anonymous)
        assert reply.text == f"{texts.ANONYMOUS_ADMIN} {texts.SETUP_APPROVED_ONLY}"


async def test_person_without_access_is_told_so_in_the_language_of_the_group(home: Path) -> None:
    german = load_texts("de")
    anonymous = {**GROUP, "sender": Sender(id="-5", name="The group", is_anonymous=True)}
    async with open_gateway(home, ScriptedModel(says("hi"), says("hi"))) as harness:
        await say(harness, "hello", "7")
        await say(harness, "/setup language de", ADMIN)
        assert await say(harness, "hello", "11", **MENTION) == german.STRANGER_IN_GROUP
        harness.platforms["telegram"].admins = {"-5"}
        reply = await harness.say("hello", "-5", **{**anonymous, "is_mention": True})
        assert reply.text.startswith(german.ANONYMOUS_ADMIN)
        question = await harness.say("/setup erase", "-5", **anonymous)
        assert german.SETUP_ERASE_ASKED in question.text
        assert question.answer is not None
        button_id = question.answer.buttons[0].id
        press = {**anonymous, "kind": "action", "message_id": "p1"}
        assert (await harness.say(button_id, "-5", **press)).text.startswith("Gelöscht: ")


@pytest.mark.parametrize(("word", "expected"), [("yes", "Erased: "), ("no", "")])
async def test_plain_yes_or_no_answers_ones_own_question_without_a_mention(
    home: Path, word: str, expected: str
) -> None:
    async with gateway(home, "Nice.") as harness:
        await say(harness, "I moved to Zanzibar", MEMBER)
        await say(harness, "/setup erase", ADMIN)
        assert await say(harness, word, MEMBER, **OVERHEARD) == ""
        answer = await say(harness, word, ADMIN, **OVERHEARD)
        assert answer.startswith(expected or texts.QUESTION_CANCELLED)
        assert await say(harness, "yes", ADMIN, **OVERHEARD) == ""
        recalled = await say(harness, "/recall Zanzibar", MEMBER)
        assert ("moved" in recalled) == (word == "no")


async def test_yes_button_pressed_by_another_person_says_whom_it_is_for(home: Path) -> None:
    async with gateway(home) as harness:
        harness.platforms["telegram"].admins = {ADMIN}
        reply = await harness.say("/setup erase", ADMIN, **GROUP)
        assert reply.answer is not None
        button_id = reply.answer.buttons[0].id
        press = {**GROUP, "kind": "action"}
        assert await say(harness, button_id, MEMBER, **press) == texts.NOT_YOUR_BUTTON
        assert "Erased: " in await say(harness, button_id, ADMIN, **press)
        assert await say(harness, button_id, MEMBER, **press) == texts.BUTTON_EXPIRED


async def test_anonymous_admins_question_is_answered_by_the_button_of_any_admin(
    home: Path,
) -> None:
    anonymous = {**GROUP, "sender": Sender(id="-5", name="The group", is_anonymous=True)}
    async with gateway(home, "Nice.") as harness:
        await say(harness, "I moved to Zanzibar", MEMBER)
        harness.platforms["telegram"].admins = {"-5", ADMIN}
        reply = await harness.say("/setup erase", "-5", **anonymous)
        assert reply.answer is not None
        button_id = reply.answer.buttons[0].id
        press = {**GROUP, "kind": "action"}
        overheard = {**anonymous, "is_addressed": False}
        cancelled = await harness.say("no", "-5", **overheard)
        assert cancelled.text == texts.QUESTION_CANCELLED
        reply = await harness.say("/setup erase", "-5", **anonymous)
        assert reply.answer is not None
        button_id = reply.answer.buttons[0].id
        refused = await harness.say(button_id, MEMBER, **press, message_id="p1")
        assert refused.text == texts.NOT_YOUR_BUTTON
        pressed = await harness.say(button_id, ADMIN, **press, message_id="p2")
        assert pressed.text.startswith("Erased: ")
        recalled = await say(harness, "/recall Zanzibar", MEMBER)
        assert "moved" not in recalled


async def test_mention_without_a_question_is_told_how_to_ask_and_a_reply_is_answered(
    home: Path,
) -> None:
    async with gateway(home, "It leaves at nine.") as harness:
        assert await say(harness, "", MEMBER, **MENTION) == texts.ASK_USAGE
        quote = Quote(kind="reply", text="When does the boat leave?", name="Bo", user_id="10")
        assert await say(harness, "", MEMBER, **MENTION, quote=quote) == "It leaves at nine."
        await say(harness, "/setup listen reply", ADMIN)
        mention = {**MENTION, "is_addressed": True}
        assert await say(harness, "", MEMBER, **mention) == ""


async def test_language_is_that_of_the_group_or_the_server(home: Path) -> None:
    async with gateway(home) as harness:
        answer = await say(harness, "/setup language Deutsch", ADMIN)
        assert "Ich schreibe auf Deutsch." in answer
        await say(harness, "/setup for:all language fr", ADMIN, **CHANNEL)
        assert "J'écris" in await say(harness, "/setup", MEMBER, **CHANNEL)
        assert "en español" in await say(harness, "/language es", ADMIN)


async def test_messages_expire_as_the_admins_say_but_not_later_than_the_owner_says(
    home: Path,
) -> None:
    async with gateway(home) as harness:
        await say(harness, "the ferry is blue", MEMBER)
        await say(harness, "/setup retention 30", ADMIN)
        await say(harness, "/setup for:all retention 9", ADMIN, **CHANNEL)
        keeper = RetentionKeeper(harness.services, harness.services.clock)
        periods = await keeper._load_periods()
        days = {scope: period.days for scope, period in periods.items()}
        assert days == {GROUP["scope"]: 30, CHANNEL["scope"]: 9}
        await say(harness, "/setup retention off", ADMIN)
        assert GROUP["scope"] not in await keeper._load_periods()
    options = 'rooms = ["telegram:-5"]\n[retention]\ndays = 7\n'
    async with open_gateway(home, ScriptedModel(), options) as harness:
        await say(harness, "/setup retention 30", ADMIN)
        keeper = RetentionKeeper(harness.services, harness.services.clock)
        assert (await keeper._load_periods())[GROUP["scope"]].days == 7


async def test_admin_erases_everything_that_was_said_in_the_group(home: Path) -> None:
    async with gateway(home, "Zanzibar is lovely.", "Nice.") as harness:
        await say(harness, "I moved to Zanzibar", MEMBER)
        await harness.say("my own Zanzibar plans", "7")
        assert "can't be undone" in await say(harness, "/setup erase", ADMIN)
        assert "Erased: " in await say(harness, "yes", ADMIN)
        assert "moved" not in await say(harness, "/recall Zanzibar", MEMBER)
        while await harness.services.forgetting.maintain():
            pass
        assert left_of("moved to Zanzibar", harness.services.database.path) == []
        assert "plans" in (await harness.say("/recall Zanzibar", "7")).text


async def test_question_before_a_group_is_erased_names_what_stays(home: Path) -> None:
    async with gateway(home) as harness:
        await say(harness, "/remind tomorrow at 9:00 feed the zebra", MEMBER)
        await say(harness, "/instructions set always mention the zebra", "42")
        question = await say(harness, "/setup erase", ADMIN)
        assert "reminders and instructions stay" in question
        assert "Erased: " in await say(harness, "yes", ADMIN)
        assert "zebra" in await say(harness, "/cron list", "42")
        assert "zebra" in await say(harness, "/instructions", "42")


@pytest.mark.parametrize("heard", ["mentions", "replies", "none"])
async def test_question_says_how_to_answer_where_a_typed_yes_may_not_arrive(
    home: Path, heard: str
) -> None:
    async with gateway(home, "ok") as harness:
        await say(harness, "the ferry is blue", MEMBER)
        question = await say(harness, "/forget ferry", MEMBER, heard_replies=heard)
        assert question.endswith(f"\n\n{texts.table('HOW_TO_ANSWER')[heard]}")
        assert (await say(harness, "/forget ferry", MEMBER)).endswith(texts.CONFIRM_ERASURE)


async def test_group_admin_can_forget_messages_of_everybody_and_a_member_only_their_own(
    home: Path,
) -> None:
    async with gateway(home, "ok", "ok") as harness:
        await say(harness, "the ferry is blue", MEMBER)
        await say(harness, "the ferry is red", ADMIN)
        shown = await say(harness, "/forget ferry", MEMBER)
        assert "blue" in shown
        assert "red" not in shown
        shown = await say(harness, "/forget ferry", ADMIN)
        assert "blue" in shown
        assert "red" in shown


LANGUAGES = texts.join_list(list(load_names().values()))
SETTINGS = "listen, prefix, store, roles, language, retention and erase"
CHANGES = (
    "listen always",
    "prefix !",
    "store all",
    "roles off",
    "language de",
    "retention 30",
    "erase",
    "erase --confirmed",
    "listen always for:all",
    "erase for:all",
)


@pytest.mark.parametrize("change", CHANGES)
async def test_setup_of_a_group_is_refused_to_members(home: Path, change: str) -> None:
    async with gateway(home) as harness:
        assert await say(harness, f"/setup {change}", MEMBER, **CHANNEL) == texts.ADMINS_ONLY
        assert texts.table("SETUP_LISTENS")["mention reply"] in await say(
            harness, "/setup", MEMBER, **CHANNEL
        )


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ("listen loudly", texts.SETUP_LISTENS_UNKNOWN),
        ("listen always mention", texts.SETUP_LISTENS_UNKNOWN),
        ("listen", texts.SETUP_LISTENS_UNKNOWN),
        ("listen mention always", texts.SETUP_LISTENS_UNKNOWN),
        ("listen prefix", texts.SETUP_PREFIX_UNKNOWN.format(limit=20)),
        ("prefix /x", texts.SETUP_PREFIX_UNKNOWN.format(limit=20)),
        ("store some", texts.SETUP_STORES_UNKNOWN),
        ("roles <@&123456789012345678>", texts.SETUP_NO_ROLES),
        ("language klingon", texts.LANGUAGE_UNKNOWN.format(languages=LANGUAGES)),
        ("language", texts.LANGUAGE_UNKNOWN.format(languages=LANGUAGES)),
        ("retention soon", texts.SETUP_RETENTION_UNKNOWN.format(limit=3650)),
        ("volume 3", texts.SETUP_UNKNOWN.format(names=SETTINGS)),
        ("retention 99999", texts.SETUP_RETENTION_UNKNOWN.format(limit=3650)),
        # These could mean that nothing is kept, or that everything is.
        ("retention 0", texts.SETUP_RETENTION_UNKNOWN.format(limit=3650)),
        ("retention none", texts.SETUP_RETENTION_UNKNOWN.format(limit=3650)),
        ("store none", texts.SETUP_STORES_UNKNOWN),
        ("store off", texts.SETUP_STORES_UNKNOWN),
        ("listen off", texts.SETUP_LISTENS_UNKNOWN),
    ],
)
async def test_unknown_value_for_group_setup_is_refused_with_one_sentence(
    home: Path, change: str, refusal: str
) -> None:
    async with gateway(home) as harness:
        assert await say(harness, f"/setup {change}", ADMIN) == refusal


@pytest.mark.parametrize(
    "value", ["Team", "<@Team>", "everyone", "999999999999999999", "<@&555555555555555555>"]
)
async def test_roles_that_no_server_has_are_refused(home: Path, value: str) -> None:
    async with gateway(home, "hi") as harness:
        server = {**CHANNEL, "server_id": "555555555555555555"}
        harness.platforms["discord"].role_names["555555555555555555"] = "@everyone"
        reply = await say(harness, f"/setup roles {value}", ADMIN, **server)
        assert reply == texts.SETUP_ROLES_UNKNOWN
        assert await say(harness, "hello", MEMBER, **server) == "hi"


async def test_group_setup_is_still_shown_after_a_contradictory_listening_rule_was_stored(
    home: Path,
) -> None:
    async with gateway(home) as harness:
        await harness.services.chat_rules.save("telegram:-5", listens="mention always")
        assert texts.table("SETUP_LISTENS")["always"] in await say(harness, "/setup", MEMBER)


async def test_typed_marker_of_a_confirmation_erases_nothing(home: Path) -> None:
    async with gateway(home, "Nice.") as harness:
        await say(harness, "I moved to Zanzibar", MEMBER)
        assert texts.SETUP_ERASE_ASKED in await say(harness, "/setup erase --confirmed", ADMIN)
        assert "moved" in await say(harness, "/recall Zanzibar", MEMBER)


async def test_erasing_a_server_erases_all_its_channels_but_not_those_of_other_servers(
    home: Path,
) -> None:
    def channel(chat_id: str, server_id: str) -> dict[str, Any]:
        address = Address(platform="discord", chat_id=chat_id)
        scope = Scope.group("discord", chat_id)
        return {**CHANNEL, "address": address, "scope": scope, "server_id": server_id}

    channels = [CHANNEL, channel("901", "55"), channel("902", "56")]
    options = 'rooms = ["discord:900", "discord:901", "discord:902"]\n'
    model = ScriptedModel(*[says("Nice.")] * 3)
    async with open_gateway(home, model, options) as harness:
        for place in channels:
            await say(harness, "I moved to Zanzibar", MEMBER, **place)
        asked = await say(harness, "/setup erase for:all", ADMIN, **CHANNEL)
        assert texts.table("SETUP_ERASE_PLACES")["server"] in asked
        assert "Erased: " in await say(harness, "yes", ADMIN, **CHANNEL)
        recalled = [await say(harness, "/recall Zanzibar", MEMBER, **place) for place in channels]
        assert ["moved" in text for text in recalled] == [False, False, True]


IN_THREAD = {**CHANNEL, "address": replace(CHANNEL["address"], thread_id="77")}
OTHER_TOPIC = {**TOPIC, "address": replace(TOPIC["address"], thread_id="8")}
GENERAL = {**GROUP, "is_in_general": True}


@pytest.mark.parametrize(
    ("place", "command", "named", "erased"),
    [
        (TOPIC, "/setup erase", "topic", [TOPIC]),
        (GENERAL, "/setup erase", "general", [GENERAL]),
        (TOPIC, "/setup erase for:all", "topics", [TOPIC, OTHER_TOPIC, GENERAL]),
        (IN_THREAD, "/setup erase", "thread", [IN_THREAD]),
        (CHANNEL, "/setup erase", "channel", [IN_THREAD, CHANNEL]),
    ],
)
async def test_place_in_which_an_admin_types_setup_erase_is_erased_and_named(
    home: Path,
    place: dict[str, Any],
    command: str,
    named: str,
    erased: list[dict[str, Any]],
) -> None:
    places = {
        "one": TOPIC,
        "two": OTHER_TOPIC,
        "three": GENERAL,
        "four": IN_THREAD,
        "five": CHANNEL,
    }
    async with gateway(home, *["Nice."] * 5) as harness:
        for word, said_in in places.items():
            await say(harness, f"The heron is {word}", MEMBER, **said_in)
        asked = await say(harness, command, ADMIN, **place)
        assert texts.table("SETUP_ERASE_PLACES")[named] in asked
        # A button doesn't say whether it's in the topic General.
        answer = await say(harness, "yes", ADMIN, **{**place, "is_in_general": False})
        assert answer.startswith("Erased: ")
        rows = await harness.services.database.fetch_all(
            "SELECT text FROM messages WHERE role = 'user' AND text LIKE '%heron is%'"
        )
        remaining = {word for word in places if any(word in row["text"] for row in rows)}
        assert remaining == {word for word, said_in in places.items() if said_in not in erased}


@pytest.mark.parametrize(
    ("value", "duration"),
    [
        ("30", "30 days"),
        ("30days", "30 days"),
        ("2 years", "2 years"),
        ("1 month", "30 days"),
        ("6 weeks", "42 days"),
        ("6 Wochen", "42 days"),
        ("2 años", "2 years"),
        ("3 mois", "90 days"),
        ("2か月", "60 days"),
        ("2주", "14 days"),
        ("10 dias", "10 days"),
        ("2 недели", "14 days"),
        ("2 hafta", "14 days"),
        ("2周", "14 days"),
    ],
)
async def test_retention_of_a_group_is_read_with_its_unit(
    home: Path, value: str, duration: str
) -> None:
    async with gateway(home) as harness:
        answer = await say(harness, f"/setup retention {value}", ADMIN)
        assert texts.SETUP_RETENTION.format(duration=duration) in answer


async def test_retention_is_suggested_in_days_and_years(home: Path) -> None:
    async with gateway(home) as harness:
        inbound = harness.inbound("/setup", ADMIN, **CHANNEL)
        labels = await harness.admission.autocomplete(inbound, "retention ", "setup")
        assert labels["30"] == "30 days"
        assert labels["365"] == "1 year"


@pytest.mark.parametrize("change", ["retention 30", "language Deutsch", "listen always"])
async def test_channel_with_any_setting_of_its_own_says_so(home: Path, change: str) -> None:
    async with gateway(home) as harness:
        await say(harness, f"/setup {change}", ADMIN, **CHANNEL)
        german = load_texts("de")
        shown = await say(harness, "/setup", MEMBER, **CHANNEL)
        assert texts.SETUP_OWN in shown or german.SETUP_OWN in shown


async def test_setup_of_a_group_that_is_not_listed_says_that_it_answers_only_some(
    home: Path,
) -> None:
    async with open_gateway(home, ScriptedModel(says("hi"))) as harness:
        await say(harness, "hello", "7")
        shown = await say(harness, "/setup listen always", ADMIN)
        assert texts.SETUP_APPROVED_ONLY in shown
        overheard = await say(harness, "talk among members", MEMBER, **OVERHEARD)
        assert overheard == ""
        assert await say(harness, "hello", MEMBER, **MENTION) == texts.STRANGER_IN_GROUP
        assert texts.SETUP_STORES_ALLOWED in await say(harness, "/setup store all", ADMIN)
        assert [notice.text for _, notice in await notices(harness)] == [
            texts.INTRODUCTION,
            texts.INTRODUCTION_ALL_ALLOWED,
        ]
    async with gateway(home) as harness:
        assert texts.SETUP_APPROVED_ONLY not in await say(harness, "/setup", MEMBER)


async def test_setup_is_shown_only_to_the_person_who_types_it(home: Path) -> None:
    async with gateway(home) as harness:
        harness.platforms["discord"].admins = set()
        for command in ("/setup", "/setup listen always"):
            reply = await harness.say(command, MEMBER, **CHANNEL)
            assert reply.answer is not None
            assert reply.answer.is_private


@pytest.mark.parametrize("word", ["off", "default"])
async def test_group_without_a_language_of_its_own_uses_that_of_the_person_again(
    home: Path, word: str
) -> None:
    async with gateway(home) as harness:
        await say(harness, "/setup language Deutsch", ADMIN)
        assert texts.SETUP_CHANGED in await say(harness, f"/setup language {word}", ADMIN)
        assert texts.SETUP_SHOWN in await say(harness, "/setup", MEMBER)


async def test_setup_in_a_direct_chat_is_refused(home: Path) -> None:
    async with gateway(home) as harness:
        assert (await harness.say("/setup")).text == texts.SETUP_IN_GROUP


async def test_group_setup_is_refused_while_the_platform_cannot_confirm_the_admin(
    home: Path,
) -> None:
    async with gateway(home) as harness:
        harness.platforms["telegram"].admins = None
        reply = await harness.say("/setup listen always", ADMIN, **GROUP)
        assert reply.text == texts.ADMIN_UNKNOWN.format(platform="Telegram")


@pytest.mark.parametrize("command", ["/people", "/approve ABCDEFGH", "/memory add x", "/agenda"])
async def test_admin_of_a_group_gets_no_rights_of_the_owner(home: Path, command: str) -> None:
    async with gateway(home) as harness:
        await say(harness, "/setup listen always", ADMIN)
        member = await say(harness, command, MEMBER)
        assert await say(harness, command, ADMIN) == member
        account = Account(platform="telegram", user_id=ADMIN)
        access = await harness.services.people.load_access(account, GROUP["scope"])
        assert not access.is_owner
