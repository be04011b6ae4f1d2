"""The answers without a model: kept, found, noted, reminded, and never a step further than the
wording allows."""

# ruff: noqa: RUF001

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core.agent.context_files import OwnerFiles
from core.agent.offline import OfflineModel
from core.agent.prompt import PromptWriter
from core.guard.origin_and_fence import JOB_RESULTS_LEAD, NUDGE_LEAD, QUOTE_LEAD, SKILL_LEAD, fence
from core.memory.manager import MemoryManager
from core.review.pending import WAITING_LEAD
from core.scheduling.tool import NEEDS_TIME
from core.types import (
    Address,
    Completion,
    Json,
    Message,
    Request,
    Scope,
    Sender,
    Session,
    ToolContext,
)
from gateway.texts.catalog import load_offline_texts
from tests.fixtures.clock import SteadyClock
from tests.fixtures.gateway_harness import open_gateway

ZONE = "Europe/Lisbon"
NOON = datetime(2026, 11, 20, 12, 5, tzinfo=UTC)
ANA = Scope.account("telegram", "1")
ROOM = Scope.group("telegram", "-9")
TOOLS = ("memory", "session_search", "reminder")


def turn(
    *texts: str, scope: Scope = ANA, who: str = "Ana", memories: str = "", zone: str = ZONE
) -> Json:
    """A user turn in the very form in which the envelope sends it."""
    session = Session(
        address=Address(platform="telegram", chat_id="1"), scope=scope, started_at=NOON
    )
    sender = Sender(id="1", name=who)
    context = ToolContext(
        session=session, scope=scope, scopes=frozenset((scope,)), sender=sender, now=NOON
    )
    rows = [
        Message(id=number, role="user", text=text, session_id=1, created_at=NOON, sender=sender)
        for number, text in enumerate(texts)
    ]
    prompt = PromptWriter(OwnerFiles(Path()), "", zone, MemoryManager((), SteadyClock()))
    sealed = prompt.render_sent_form_without_memory(rows, context)
    content = [block for row in sealed for block in row.sent_blocks or ()]
    return {
        "role": "user",
        "content": [*content, *([{"type": "text", "text": fence(memories)}] if memories else [])],
    }


def plain(text: str) -> Json:
    """A user turn whose sent form is not kept any more."""
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def answer(text: str) -> Json:
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


def searched(
    result: str, name: str = "session_search", *, query: str = "", is_error: bool = False
) -> tuple[Json, Json]:
    """A tool call and what it gave."""
    call = {"type": "tool_use", "id": "t1", "name": name, "input": {"query": query}}
    given = {"type": "tool_result", "tool_use_id": "t1", "content": result, "is_error": is_error}
    return {"role": "assistant", "content": [call]}, {"role": "user", "content": [given]}


_message_id = 0


def found(**changes: object) -> dict[str, object]:
    """One session of a search result, its best match with `changes`."""
    global _message_id
    _message_id += 1
    at = "2026-05-03T09:30:00+00:00"
    anchor = {
        "message_id": _message_id,
        "role": "user",
        "sender": "Ana",
        "at": at,
        "text": "Ana lives in Porto.",
    }
    return {
        "session_id": 7,
        "title": "Family",
        "window": [{**anchor, "is_anchor": True, **changes}],
    }


async def complete(*messages: Json, tools: tuple[str, ...] = TOOLS) -> Completion:
    shown: list[str] = []
    request = Request(system=(), messages=messages, tools=tuple({"name": name} for name in tools))
    completion = await OfflineModel(ZONE).complete(request, shown.append, shown.append)
    assert shown == [], "it is there at once"
    return completion


@pytest.mark.parametrize("frame", [SKILL_LEAD, NUDGE_LEAD, QUOTE_LEAD, JOB_RESULTS_LEAD])
async def test_offline_model_does_not_read_framed_context_as_words_of_the_person(
    frame: str,
) -> None:
    said = turn("Remember that I like tea")
    framed = {**said, "content": [*said["content"], {"type": "text", "text": f"[{frame} x]"}]}
    (call,) = (await complete(framed)).blocks
    assert call["input"]["content"] == "I like tea"


async def called(*messages: Json) -> tuple[str, dict[str, Any]]:
    """The tool that is called, and its arguments."""
    completion = await complete(*messages)
    assert completion.stop_reason == "tool_use"
    block = completion.blocks[0]
    return block["name"], block["input"]


@pytest.mark.parametrize(
    "text", ["My sister Ana lives in Porto.", "明天下雨。", "[sic]", "whatever it is", "(no text)"]
)
async def test_offline_model_confirms_a_statement_as_saved_and_states_that_no_model_is_set(
    text: str,
) -> None:
    completion = await complete(turn(text))
    assert completion.stop_reason == "end_turn"
    assert completion.text.startswith("I've saved that. Ask me a question or use `/recall`")
    assert "No model is configured, so I answer from memory" in completion.text


async def test_offline_answer_explains_what_is_possible_only_once() -> None:
    first = await complete(turn("My sister Ana lives in Porto."))
    second = await complete(
        turn("My sister Ana lives in Porto."), answer(first.text), turn("She likes it there.")
    )
    assert second.text == "I've saved that."


@pytest.mark.parametrize(
    "text", ["yes", "Yes please!", "ja", "oui", "sí", "sim", "да", "好", "はい", "네", "evet"]
)
async def test_offline_model_answers_a_yes_with_nothing_to_confirm_when_nothing_is_pending(
    text: str,
) -> None:
    assert (await complete(turn(text))).text == "There's nothing to confirm. It may have expired."


@pytest.mark.parametrize(
    ("text", "answer_text"),
    [
        ("Thanks!", "You're welcome."),
        ("谢谢", "You're welcome."),
        ("teşekkür ederim", "You're welcome."),
        ("Wie spät ist es?", "It's Friday 20 November 2026, 12:05 Europe/Lisbon."),
        ("くぁ？ 今何時？", None),
        ("今何時ですか？", "It's Friday 20 November 2026, 12:05 Europe/Lisbon."),
        ("quelle heure est-il ?", "It's Friday 20 November 2026, 12:05 Europe/Lisbon."),
        ("Что ты умеешь?", "`/help`"),
        ("o que você sabe sobre mim?", "`/memory`"),
        ("나에 대해 뭘 알아?", "`/memory`"),
        ("buenos días", "Hello!"),
    ],
)
async def test_offline_model_answers_short_everyday_messages_in_ten_languages(
    text: str, answer_text: str | None
) -> None:
    explained = await complete(turn("ok"))
    completion = await complete(turn("x"), answer(explained.text), turn(text))
    if answer_text is None:
        assert "It's " not in completion.text
    else:
        assert answer_text in completion.text


async def test_first_offline_greeting_explains_what_works_without_a_model() -> None:
    first = await complete(turn("hi"))
    assert first.text.startswith("Hello! Ask me a question or use `/recall`")
    assert "No model is configured, so I answer from memory" in first.text


@pytest.mark.parametrize("text", ["ok", "no", "👍"])
async def test_offline_model_does_not_claim_to_have_saved_small_talk(text: str) -> None:
    first = await complete(turn(text))
    assert first.text.startswith("All right. Ask me a question or use `/recall`")
    assert (await complete(turn("x"), answer(first.text), turn(text))).text == "All right."


@pytest.mark.parametrize(
    "text", ["[attached voice: note.ogg (audio/ogg)]", "The contract\n[attached document: a.pdf]"]
)
async def test_offline_answer_does_not_claim_to_keep_an_unopened_attachment(text: str) -> None:
    assert "I've saved your message, but not its attachment." in (await complete(turn(text))).text


@pytest.mark.parametrize(
    "text", ["Vergiss nicht, dass Ana kommt", "昨日、鍵を忘れてしまった", "Annemi görmeyi unutma"]
)
async def test_offline_model_saves_what_is_no_wish_to_forget(text: str) -> None:
    assert (await complete(turn(text))).text.startswith("I've saved that.")


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("forget what I said about Ana", "`/forget`"),
        ("please delete my last message", "`/forget`"),
        ("Forget it all, will you?", "`/forget`"),
        ("Vergiss, was ich über Porto gesagt habe", "`/forget`"),
        ("Olvida lo que dije sobre Oporto", "`/forget`"),
        ("Oublie ce que j'ai dit sur Porto", "`/forget`"),
        ("Esqueça o que eu disse sobre o Porto", "`/forget`"),
        ("Забудь, что я сказал про Порту", "`/forget`"),
        ("忘掉我说过的关于波尔图的话", "`/forget`"),
        ("把我说过的关于波尔图的话删掉", "`/forget`"),
        ("ポルトについて話したことを忘れて", "`/forget`"),
        ("포르투에 대해 말한 거 잊어줘", "`/forget`"),
        ("Porto için söylediklerimi unut", "`/forget`"),
        ("Olvídate de mi hermana", "`/forget`"),
        ("请忘记我妹妹的事", "`/forget`"),
        ("zeig meine Notizen", "`/memory`"),
        ("muéstrame mis notas", "`/memory`"),
        ("montre-moi mes notes", "`/memory`"),
        ("mostra minhas anotações", "`/memory`"),
        ("покажи мои заметки", "`/memory`"),
        ("看看我的笔记", "`/memory`"),
        ("メモを見せて", "`/memory`"),
        ("메모 보여줘", "`/memory`"),
        ("notlarımı göster", "`/memory`"),
        ("Abbrechen", "`/cron remove 1`"),
        ("annuler", "`/cron remove 1`"),
        ("cancelar", "`/cron remove 1`"),
        ("отмена", "`/cron remove 1`"),
        ("取消", "`/cron remove 1`"),
        ("キャンセル", "`/cron remove 1`"),
        ("취소", "`/cron remove 1`"),
        ("iptal", "`/cron remove 1`"),
        ("cancel reminder 1", "`/cron remove 1`"),
        ("delete all my reminders", "`/cron remove 1`"),
        ("what can you do", "`/help`"),
        ("What can you do?", "`/help`"),
        ("help", "`/help`"),
    ],
)
async def test_offline_model_names_the_command_for_a_wish_that_needs_a_command(
    text: str, command: str
) -> None:
    completion = await complete(turn(text))
    assert command in completion.text
    assert "kept that" not in completion.text


@pytest.mark.parametrize(
    "text",
    [
        "When is Ana's birthday?",
        "when is ana's birthday",
        "and where does she live",
        "Ana's birthday?!",
        "She asked: “who is Ana?”",
        "Где живёт Ана?",
        "アナはどこに住んでいますか",
        "アナはどこに住んでいますか。",
        "安娜住在哪里？",
        "你去过波尔图吗",
        "你去過波爾圖嗎",
        "아나는 어디에 살까",
        "أين تعيش آنا؟",
        "Πού μένει η Άνα\u037e",
        "አና የት ነው፧",
        "อานาอยู่ที่ไหนรู้ไหม",
        "¿Dónde vive Ana?",
    ],
)
async def test_a_question_is_looked_up_as_typed(text: str) -> None:
    name, arguments = await called(turn(text))
    assert (name, arguments["query"], arguments["limit"]) == ("session_search", text, 5)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Which town do I live in?", "rent"),
        ("¿Dónde vivo?", "piso"),
        ("我现在住哪？", "搬"),
        ("나 어디 살지?", "이사"),
    ],
)
async def test_offline_question_about_a_topic_is_also_searched_by_related_words(
    text: str, word: str
) -> None:
    calls = (await complete(turn(text))).blocks
    queries = [call["input"]["query"] for call in calls if call["name"] == "session_search"]
    assert queries[0] == text
    assert word in queries[1].split(" OR ")


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("Remember that Ana lives in Porto", "Ana lives in Porto"),
        ("please remember: the code is 4711.", "The code is 4711."),
        ("don't forget my sister is called Ana", "My sister is called Ana"),
        ("Keep in mind that we meet\non Mondays", "We meet\non Mondays"),
        # The clause keeps its "dass", without which its verb would be in the wrong place.
        ("Merk dir, dass Ana in Porto wohnt", "Dass Ana in Porto wohnt"),
        ("bitte notiere: Der Code ist 4711", "Der Code ist 4711"),
        ("Recuerda que Ana vive en Oporto", "Ana vive en Oporto"),
        ("Retiens que Ana habite à Porto", "Ana habite à Porto"),
        ("retiens qu'Ana habite à Porto", "Ana habite à Porto"),
        ("Lembra que a Ana mora no Porto", "A Ana mora no Porto"),
        ("Anota que a Ana mora no Porto", "A Ana mora no Porto"),
        ("アナはポルトに住んでいるとメモして", "アナはポルトに住んでいる"),
        ("Запомни, что Ана живёт в Порту", "Ана живёт в Порту"),
        ("记住：安娜住在波尔图", "安娜住在波尔图"),
        ("请记住安娜住在波尔图", "安娜住在波尔图"),
        ("アナはポルトに住んでいることを覚えておいて", "アナはポルトに住んでいる"),
        ("安娜さんの誕生日は5月3日だと覚えておいてください", "安娜さんの誕生日は5月3日だ"),
        ("아나가 포르투에 산다는 것을 기억해 줘", "아나가 포르투에 산다는 것"),
        ("Aklında tut: Ana Porto'da yaşıyor", "Ana Porto'da yaşıyor"),
        ("Ana'nın Porto'da yaşadığını not et", "Ana'nın Porto'da yaşadığı"),
        ("Kapı kodu 4711, lütfen not al", "Kapı kodu 4711"),
        ("대문 비밀번호는 4711이라고 메모해 줘", "대문 비밀번호는 4711"),
    ],
)
async def test_wish_to_remember_becomes_a_note_without_a_model(text: str, note: str) -> None:
    assert await called(turn(text)) == (
        "memory",
        {"target": "memory", "action": "add", "content": note},
    )


@pytest.mark.parametrize(
    "text",
    [
        "Remember that day in Porto?",
        "I remember that Ana was there",
        "Remember Porto",
        "Merkst du dir, dass Ana da war?",
        "¿Recuerda que Ana vive en Oporto?",
        "Tu te souviens que Ana habite à Porto",
        "你记住安娜的生日了吗？",
        "覚えていますか",
        "기억해?",
    ],
)
async def test_message_that_only_mentions_memory_is_not_stored_as_a_note(text: str) -> None:
    completion = await complete(turn(text))
    assert all(block.get("name") != "memory" for block in completion.blocks)


@pytest.mark.parametrize(
    "text", ["Remind me tomorrow at 9 to call Bob", "can you remind me tomorrow at 9 to call Bob?"]
)
async def test_offline_model_passes_a_reminder_request_unchanged_to_the_reminder_tool(
    text: str,
) -> None:
    wish = {"action": "add", "task": "tomorrow at 9 to call Bob"}
    assert await called(turn(text)) == ("reminder", wish)


async def test_offline_model_without_tools_calls_no_tool_and_saves_the_message() -> None:
    for text in ("Remind me at 9 to call", "Remember that it rains", "Where is Ana?"):
        assert (await complete(turn(text), tools=())).text.startswith("I've saved that.")


async def test_offline_answer_quotes_speaker_and_date_of_the_message_that_search_returns() -> None:
    question = "Where does Ana live?"
    sessions = [found(sender="Ben"), found(role="assistant", text="Noted.\nAna it is.")]
    result = json.dumps({"sessions": sessions})
    text = (await complete(turn(question), *searched(result, query=question))).text
    assert text == (
        "- Ben said on 3 May: “Ana lives in Porto.” (session 7)\n"
        "- I: “Noted. Ana it is.”\n\n"
        "_No model is configured, so I can only quote._"
    )


@pytest.mark.parametrize(
    ("changes", "speaker"),
    [
        ({"sender": "Ben"}, "Ben"),
        ({"sender": None}, "Someone"),
        (
            {"sender": "Ben", "is_asker": True, "origin": "forwarded"},
            "Someone (forwarded by you)",
        ),
        ({"sender": "Ben", "origin": "forwarded"}, "Someone (forwarded by Ben)"),
        ({"sender": "Ben", "origin": "imported"}, "Ben (imported)"),
        ({"sender": None, "role": "assistant"}, "I"),
    ],
)
async def test_offline_answer_names_the_speaker_of_what_it_found(
    changes: dict[str, object], speaker: str
) -> None:
    result = json.dumps({"sessions": [found(**changes)]})
    question = "Where does Ana live?"
    said = await complete(turn(question), *searched(result, query=question))
    assert said.text.startswith(f"- {speaker} said on 3 May: ")


@pytest.mark.parametrize("origin", ["spoken", "imported", "via_bot", "tool", "job"])
async def test_offline_answer_names_the_origin_in_the_language_of_the_person(origin: str) -> None:
    texts = load_offline_texts("de")
    result = json.dumps({"sessions": [found(sender="Ben", origin=origin)]})
    question = "Where does Ana live?"
    messages = (turn(question), *searched(result, query=question))
    request = Request(system=(), messages=messages, tools=(), language="de")
    model = OfflineModel(ZONE, load_texts=load_offline_texts)
    completion = await model.complete(request, print, print)
    assert f"Ben ({texts[f'origin_{origin}']})" in completion.text
    assert origin not in completion.text


async def test_offline_answer_does_not_call_a_change_done_that_waits_for_a_tap() -> None:
    waiting = searched(f"{WAITING_LEAD}its wording differs.", "memory")
    assert (await complete(turn("Remember that Ana lives in Porto"), *waiting)).text == "All right."


@pytest.mark.slow
async def test_offline_answer_attributes_forwarded_words_to_their_author(home: Path) -> None:
    async with open_gateway(home, OfflineModel(ZONE)) as harness:
        await harness.say("I am allergic to shellfish", origin="forwarded")
        await harness.say("The ferry is blue")
        await harness.say("/new")
        told = (await harness.say("Who is allergic to shellfish?")).text
        assert re.match(
            r"- Someone \(forwarded by you\) said on .+: “I am allergic to shellfish”", told
        )
        ferry = (await harness.say("What colour is the ferry?")).text
        assert re.match(r"- You said on .+: “The ferry is blue”", ferry)


async def test_answer_without_a_model_says_that_no_message_matches() -> None:
    text = (await complete(turn("Where does Ana live?"), *searched('{"sessions": []}'))).text
    assert text.startswith("I found nothing about that in earlier messages.")


async def test_offline_answer_after_a_tool_leaves_the_change_to_the_receipt() -> None:
    asked = turn("Remind me tomorrow at 5 to call Bob")
    done = await complete(asked, *searched("Reminder 1 is set.", "reminder"))
    assert done.text == "Done."
    refused = await complete(asked, *searched("Say which 5.", "reminder", is_error=True))
    assert refused.text == "I couldn't do that: Say which 5."
    no_time = await complete(asked, *searched(f"{NEEDS_TIME} No time.", "reminder", is_error=True))
    assert no_time.text.startswith("I didn't set anything. Say “remind me")
    failed = await complete(
        turn("Where is Ana?"), *searched("The history cannot be searched.", is_error=True)
    )
    assert failed.text == "I couldn't do that: The history cannot be searched."
    assert (await complete(asked, *searched(" ", "reminder"))).text == "Done."


async def test_earlier_statement_of_the_conversation_is_quoted_with_its_day() -> None:
    said = turn("My sister Ana lives in Porto and her birthday is on 3 May.")
    asked = "When is Ana's birthday?"
    question = turn(asked, memories="- m1 Ana's birthday is never")
    nothing = searched('{"sessions": []}', query=asked)
    again = searched('{"sessions": []}', query="again")
    text = (await complete(said, answer("I've saved that."), question, *nothing, *again)).text
    assert text.startswith(
        "- You said on 20 November: “My sister Ana lives in Porto and her birthday is on 3 May.”"
    )
    assert "never" not in text, "the fence is nobody's words"


async def test_offline_answer_does_not_quote_an_earlier_question_as_an_answer() -> None:
    said = turn("Ana's birthday is on 3 May.")
    for earlier in (turn("What is the birthday of Ana?"), turn("Ana's birthday?")):
        question = turn("When is Ana's birthday?")
        found = searched('{"sessions": []}', query="again")
        text = (await complete(said, answer("ok"), earlier, answer("…"), question, *found)).text
        assert "“Ana's birthday is on 3 May.”" in text
        assert text.count("said on") == 1
    together = await complete(
        turn("My sister?", "When is her birthday, my sister?"),
        *searched('{"sessions": []}', query="again"),
    )
    assert together.text.startswith("I found nothing")


async def test_the_askers_earlier_questions_are_left_out() -> None:
    asked = "Where does Ana live?"
    own = {"sender": "Ana", "is_asker": True}
    sessions = [found(text="Where does Ana live?", **own) for _ in range(4)]
    sessions.append(found(text="Ana lives in Lisbon, I said.", **own))
    result = json.dumps({"sessions": sessions})
    text = (await complete(turn(asked), *searched(result, query="again"))).text
    assert text.startswith("- You said on 3 May: “Ana lives in Lisbon, I said.”")
    assert text.count("said on") == 1


async def test_notice_about_the_missing_model_is_given_once_in_a_conversation() -> None:
    asked = "Where does Ana live?"
    result = json.dumps({"sessions": [found(sender="Ben")]})
    first = await complete(turn(asked), *searched(result, query=asked))
    assert "No model is configured" in first.text
    second = await complete(
        turn(asked), answer(first.text), turn(asked), *searched(result, query=asked)
    )
    assert second.text == "- Ben said on 3 May: “Ana lives in Porto.” (session 7)"


async def test_offline_answer_quotes_no_message_with_an_excluded_word(home: Path) -> None:
    async with open_gateway(home, OfflineModel(ZONE)) as harness:
        for text in ("I love python", "python beats java for scripts", "java is verbose"):
            await harness.say(text)
        await harness.say("/new")
        text = (await harness.say("python NOT java?")).text
        assert "“I love python”" in text
        assert "java is" not in text
        assert "beats java" not in text


async def test_at_most_five_messages_in_24_lines_are_quoted() -> None:
    asked = "Where does Ana live?"
    sessions = [found(sender="Ben", text=f"Ana lives here, house {n}. " * 30) for n in range(9)]
    result = json.dumps({"sessions": sessions})
    text = (await complete(turn(asked), *searched(result, query=asked))).text
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    assert len(lines) == 5
    assert sum(1 + len(line) // 100 for line in lines) <= 24


async def test_offline_model_searches_with_all_messages_that_waited_for_one_turn() -> None:
    name, arguments = await called(turn("I mean Ana.", "Where does she live?", memories="- m1 x"))
    assert name == "session_search"
    assert arguments["query"] == "I mean Ana.\nWhere does she live?"


@pytest.mark.parametrize(
    "text",
    [
        "[attached photo: sister.jpg (image/jpeg, 20 bytes)]",
        "[where is Ana?]",
        "[tomorrow, 9:00]",
        "[Friday 20 November 2026]",
    ],
)
async def test_offline_model_reads_a_message_in_brackets_as_words_of_the_person(text: str) -> None:
    question = turn("no doubt", text + " Where?")
    name, arguments = await called(question)
    assert (name, text in arguments["query"]) == ("session_search", True)
    for message in (turn(text), plain(text)):
        result = json.dumps({"sessions": []})
        said = await complete(turn("Where is Ana?"), answer("ok"), message)
        assert said.stop_reason == "end_turn", (
            "it is taken for what was said last, not the question before it"
        )
        assert said.text.startswith("I've saved")
        assert (
            "said on"
            not in (await complete(message, answer("ok"), turn("Porto?"), *searched(result))).text
        )


@pytest.mark.parametrize(
    "zone", [ZONE, "UTC", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "America/Port-au-Prince"]
)
@pytest.mark.parametrize("who", ["Ana", "安娜 🦉", "A [b] c\nd", "", "x" * 200, "Ana, from Porto"])
async def test_offline_model_leaves_the_envelopes_time_line_out_of_its_search_query(
    zone: str, who: str
) -> None:
    message = turn("Where is Ana?", scope=ROOM, who=who, zone=zone)
    assert (await called(message))[1]["query"] == "Where is Ana?"


async def test_gateway_without_a_model_saves_finds_notes_and_reminds(home: Path) -> None:
    async with open_gateway(home, OfflineModel(ZONE)) as harness:
        assert (await harness.say("My sister Ana lives in Porto.")).text.startswith(
            "I've saved that."
        )
        first = (await harness.say("Where does my sister live?")).text
        assert re.match(r"- You said on .+: “My sister Ana lives in Porto\.”$", first)
        noted = await harness.say("Remember that the code is 4711")
        assert noted.text == "Done.\n\n✓ Noted: “The code is 4711”"
        owner = frozenset((Scope.account("telegram", "42"),))
        assert await harness.services.notebook.entries(owner, "memory") == ["The code is 4711"]
        certain = await harness.say("Remind me tomorrow at 9 to call Bob")
        assert certain.text.startswith("Reminder 1 is set for ")
        assert certain.text.endswith("“call Bob”.")
        uncertain = await harness.say("Remind me tomorrow at 5 or 6 to call Bob")
        assert uncertain.text == "Which of the times do you mean?"
        assert len(await harness.services.jobs.list_visible(owner)) == 1
        await harness.say("/new")
        again = (await harness.say("Where does my sister live?")).text
        assert re.match(
            r"- You said on .+: “My sister Ana lives in Porto\.” \(session 1\)\n\n_No model", again
        )


OPEN_QUESTIONS = """
was Ben at home
am I in the choir
can Ben come on Friday
do my parents know Eve
where do I live
whats my rent
what's mum's dog called
how old is Freddie
has mum still got a dog
who is dad's cardiologist
which doctor do I see
when are the bins collected
wo wohne ich
wie alt ist merle
wie heißt der hund meiner mutter
welches auto haben wir
hat mama noch einen hund
was kostet die Miete
wann hat merle turnen
où est-ce que j'habite
j'habite où
comment s'appelle mon mari
c'est quoi le digicode
quel âge a Nino
c'est combien mon loyer
dónde vivo
cuántos años tiene Leo
quién es mi dentista
qué coche tengo
cuanto pago de alquiler
onde eu moro
quem é a professora da Lívia
quantos anos tem a Lívia
que dia é a natação
где я живу
как зовут мою собаку
сколько лет Соне
我住哪儿
朵朵几岁
大门密码是多少
私はどこに住んでる
ひなは何歳
玄関の暗証番号は何番
나 어디 살아
월세 얼마야
도윤이 담임 누구야
nerede oturuyorum
Defne kaç yaşında
apartmanın şifresi ne
annemin hâlâ köpeği var mı
Wann probt der Chor
Wo parkt mein Bruder
Wer gießt die Blumen
Wann beginnt der Kurs
Wie oft gieße ich die Orchidee
Wann schließt die Bibliothek
Was schenken wir Oma
Welche Farbe hat das Bad
Wann endet mein Vertrag
Wem gehört das rote Rad
Wie viel verdient Jonas
Wo lagern die Winterreifen
Wann landet Mias Flug
Wie heißt der Hund von Lena
Wer repariert die Heizung
Bis wann gilt mein Pass
Wofür spart Tom
Worüber freut sich Ida
Mit wem fährt Paul nach Rom
wer holt die Kinder ab
wann öffnet der Bäcker
wo hängt mein Mantel
wem schulde ich Geld
was bringt Tante Ruth mit
womit putze ich den Ofen
wie lange backt der Kuchen
welchen Wein trinkt Opa
wann feiert Lea Geburtstag
wo treffe ich Max
combien je paie de loyer
où j'habite
quand commence le cours
comment s'appelle mon médecin
qui arrose les plantes
à quelle heure ferme la piscine
où mon frère gare la voiture
quand part le train de Léa
combien coûte l'abonnement
quel jour vient le plombier
c'est quoi le code du portail
où sont les clés
quand finit mon contrat
qui garde les enfants
avec qui Paul va à Rome
pourquoi on a changé de banque
combien on paie pour le parking
quand tombe l'anniversaire de Zoé
comment je vais au bureau
quelle taille fait Hugo
combien on doit à Luc
où j'ai garé la voiture
quand ouvre la boulangerie
comment on fait la pâte
qui apporte le gâteau
pourquoi on va chez Luc
à qui je dois de l'argent
quel vin boit papi
où travaille Inès
quand Zoé fête son anniversaire
cuando ensaya el coro
donde aparca mi hermano
quien riega las plantas
cuando empieza el curso
a que hora cierra la piscina
como se llama mi medico
cual es mi talla
cuando sale el tren de Lea
cuánto cuesta el abono
qué día viene el fontanero
dónde están las llaves
cuándo termina mi contrato
quién cuida a los niños
con quién va Pablo a Roma
por qué cambiamos de banco
cuando es el cumpleaños de Zoe
donde guardamos las ruedas
que medicina toma la abuela
cuantos hermanos tiene Iris
cuando abre la panadería
donde trabaja mi prima
quien trae la tarta
cuando vence el seguro del coche
que vino toma el abuelo
cuantas hermanas tiene Luz
cuando vuelve Marta
quien lleva a los niños
a quién debo dinero
quando ensaia o coro
quanto pago de renda
onde estaciona o meu irmão
quem rega as plantas
quando começa o curso
a que horas fecha a piscina
como se chama o meu médico
qual é o meu tamanho
quando parte o comboio da Lea
quanto custa o passe
em que dia vem o canalizador
onde estão as chaves
quando acaba o meu contrato
quem cuida das crianças
com quem vai o Paulo a Roma
por que mudámos de banco
quando é o aniversário da Zoe
onde guardamos os pneus
que remédio toma a avó
quantos irmãos tem a Iris
quando abre a padaria
onde trabalha a minha prima
quem traz o bolo
quando vence o seguro do carro
quantas irmãs tem a Luz
onde deixei o carro
quando volta a Marta
quem leva os miúdos
"""
NO_QUESTIONS = """
Am Montag probt der Chor
Find ich gut
Will ich nicht
Can bugün geldi
Do lado da escola há um café
wo ich wohne, ist es laut
wie schön
wenn ich mal groß bin
bin heute in Kiel
habe einen neuen Job
quand je suis rentré il dormait
je ne sais pas où
je sais pas quoi manger
où on habite c'est calme et loin de tout, vraiment
qué bien me siento hoy
cuando llego a casa como pan
donde comen dos comen tres
cómo mola mi curro
quem me dera ter férias
когда я был маленьким, жил в Туле
какой ужас этот ремонт
какая красота у нас во дворе
我不知道谁来了
没什么特别的
几乎每天都跑步
昨日は何も食べなかった
何時間も寝た
誰か来たみたい
いつも七時に起きる
언제나 여기서 먹어
어디든 좋아
ne güzel bir gün
kimse aramadı
çok kalabalıktı bugün
yeni evimiz çok güzel oldu
my sister Ana lives in Porto
Freddie's teacher is Mr Pike
ich wohne in Kiel
Wann der Chor probt, weiß ich nicht
Wo ich wohne, ist es laut
Was für ein Tag
Wie schön die Blumen blühen
Wer wagt, gewinnt
Wann immer du willst
Wie du meinst
Was Tom sagt, stimmt
Wo ein Wille ist, ist auch ein Weg
Wenn der Chor probt, komme ich später
Wie der Vater so der Sohn
Der Chor probt am Dienstag
Wie immer kam der Bus zu spät
Wo er parkt, ist egal
Was für ein schönes Geschenk
Wie gesagt probt der Chor am Montag
Was ich brauche ist Schlaf
Wann ich komme steht noch nicht fest
Wem es gefällt der soll es kaufen
Wie lustig
Wer zu spät kommt den bestraft das Leben
Was Paul kocht schmeckt immer
Wo wir parken gibt es Schatten
wie erwartet kam der Bus zu spät
was Oma kocht, esse ich gern
wo gehobelt wird fallen Späne
wer die Kinder abholt weiß ich nicht
wie versprochen die Fotos
wann es losgeht, sage ich dir
wie mein Vater sagt
womit ich nicht gerechnet habe
wo wir gerade dabei sind, Lea kommt am Montag
was mich freut ist das Wetter
quand je paie le loyer je suis triste
où j'habite il fait froid
quand commence le cours je dors
qui dort dîne
comme je paie le loyer le lundi
combien de fois je lui ai dit
où que j'aille il pleut
quand il pleut je prends le bus
qui vivra verra
quelle belle journée
quel dommage
quand même c'est cher
comment dire
où il y a de la gêne il n'y a pas de plaisir
qui aime bien châtie bien
combien je suis heureux
quand Paul viendra on mangera
c'est quand Paul dort que je lis
quel plaisir de te lire
je sais combien je paie de loyer
qui plus est il pleut
quand tu veux
comment veux-tu que je sache
pourquoi pas
quand ouvre la boulangerie j'achète du pain
où travaille Inès il y a un parc
qui cherche trouve
comment te remercier
quand j'étais petit je vivais à Lyon
combien c'est beau
pourquoi pas demain
où tu veux
qui m'aime me suive
cuando ensaya el coro me voy
donde vivo hace frío
cuando llueve cojo el bus
quien riega las plantas soy yo
cuanto antes mejor
como siempre el tren salió tarde
donde dije digo digo diego
cuando quieras
que tengas un buen día
quien calla otorga
cuanto más duermo más cansado estoy
cuando empieza el curso compro libros
como quieras
que te mejores
cual padre tal hijo
que bonito día
cuando Ana llegue cenamos
quienes vengan traen pan
donde trabajo hay un parque
que viene el fontanero mañana
qué bien canta el coro
cuando sea mayor seré médico
a que no sabes quién viene
como te dije pago el lunes
cuando abre la panadería compro pan
donde trabaja mi prima hay un bar
quien trae la tarta es Luz
cuando vuelve Marta salimos
que te vaya bien
cuantas más mejor
donde sea
cuando puedas me llamas
quien sabe
como dejé el coche fuera se mojó
quando ensaia o coro vou embora
onde moro faz frio
quando chove apanho o autocarro
quem rega as plantas sou eu
quanto antes melhor
como sempre o comboio saiu tarde
onde há fumo há fogo
quando quiseres
que tenhas um bom dia
quem cala consente
quanto mais durmo mais cansado fico
quando começa o curso compro livros
onde comem dois comem três
como quiseres
que as melhoras venham
qual pai tal filho
que lindo dia
quando a Ana chegar jantamos
quem vier traz pão
onde trabalho há um parque
que bom que vieste
quem me dera
quando for grande serei médico
como te disse pago na segunda
quanto a mim está tudo bem
quando abre a padaria compro pão
onde trabalha a minha prima há um bar
quem traz o bolo é a Luz
quando volta a Marta saímos
que corra tudo bem
quantas mais melhor
onde quiseres
quando puderes liga-me
quem sabe
como deixei o carro fora molhou-se
"""


async def list_searched(texts: str) -> list[str]:
    """Return the lines of a text that the model looks up, each in a conversation of its own."""
    completions = {line: await complete(turn(line)) for line in texts.strip().splitlines()}
    return [line for line, answer in completions.items() if answer.stop_reason == "tool_use"]


async def test_questions_without_a_question_mark_are_looked_up_in_ten_languages() -> None:
    assert await list_searched(OPEN_QUESTIONS) == OPEN_QUESTIONS.strip().splitlines()


async def test_statements_with_a_question_word_are_not_looked_up() -> None:
    assert await list_searched(NO_QUESTIONS) == []


async def test_change_said_much_later_in_the_same_conversation_stands_first(home: Path) -> None:
    async with open_gateway(home, OfflineModel(ZONE)) as harness:
        await harness.say("nos cobran 620 de alquiler")
        for number in range(20):
            await harness.say(f"mi planta número {number} tiene {number + 3} hojas")
        await harness.say("nos han subido el alquiler a 660")
        for number in range(10):
            await harness.say(f"mi gallina número {number} puso {number + 3} huevos")
        await harness.say("/new")
        reply = await harness.say("¿cuánto pago de alquiler?")

    assert "660" in reply.text.splitlines()[0]
