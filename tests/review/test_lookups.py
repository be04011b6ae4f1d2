"""Which addresses and which words of a search count as typed for a look-up."""

from __future__ import annotations

import pytest

from core.review.repetition import shares_words
from core.review.searches import (
    Offer,
    asks_for_address,
    asks_for_look_up,
    asks_to_send,
    forbids_sending,
    hands_over_address,
    has_other_content,
    is_for_sender,
    is_typed_span,
    judge_link,
    judge_repetition,
    judge_result,
    list_searchable,
    name_query,
    names_address,
)

TYPED = "Read https://ferry.example/times, then www.bus.example/a?b=c (and http://tram.example/)."


@pytest.mark.parametrize(
    "url",
    [
        "https://ferry.example/times",
        "https://ferry.example/times/",
        "https://tram.example/",
        "https://www.bus.example/a?b=c",
        "http://tram.example/",
        "http://tram.example",
    ],
)
def test_typed_address_is_recognized_with_another_scheme_or_a_slash_at_the_end(url: str) -> None:
    assert names_address(TYPED, url)


@pytest.mark.parametrize(
    "url",
    [
        "http://ferry.example/times",
        "https://ferry.example/",
        "https://ferry.example/time",
        "https://ferry.example/times?q=secret",
        "https://bus.example/a?b=c",
        "https://evil.example/https://ferry.example/times",
        "https://evil.example/ferry.example/times",
        "https://example/times",
        "https://ferry.example/times//",
        "https://ferry.example/times///////",
        "https://",
        "https:///",
    ],
)
def test_address_that_is_longer_shorter_or_different_is_not_recognized(url: str) -> None:
    assert not names_address(TYPED, url)


@pytest.mark.parametrize(
    ("texts", "query"),
    [
        (["My PIN is 4471. When does the ferry leave?"], "ferry 4471"),
        (["My PIN is 4471", "When does the ferry leave?"], "4471 ferry"),
        (["my pin is 4471, when does the ferry leave?"], "4471"),
        (["My password? walrus42. When does the ferry leave?"], "walrus42"),
        (["The door code is 9920 and the ferry leaves at ten"], "door 9920"),
        (["Mein Passwort ist Walross. Wann fährt die Fähre?"], "Walross Fähre"),
        (["La clave es morsa. ¿Cuándo sale el ferry?"], "morsa"),
        (["Le code de la porte est 9920. Quand part le ferry ?"], "9920"),
        (["A senha é morsa. Quando sai o ferry?"], "morsa ferry"),
        (["Пароль морж. Когда отходит паром?"], "морж паром"),
        (["密码是海象。渡轮几点开？"], "海象渡轮"),
        (["パスワードはセイウチ。フェリーは何時？"], "セイウチ"),
        (["비밀번호는 바다코끼리야. 배는 몇 시에 떠나?"], "바다코끼리야"),
        (["Şifrem mors. Vapur ne zaman kalkar?"], "mors"),
    ],
)
def test_secret_next_to_a_question_may_not_be_searched_for(texts: list[str], query: str) -> None:
    assert not shares_words(query, list_searchable(texts), 1.0)


@pytest.mark.parametrize(
    ("texts", "query"),
    [
        (["My PIN is 4471. When does the ferry leave?"], "when ferry leave"),
        (["I live in Bergen", "When does the ferry leave?"], "ferry Bergen"),
        (["What does PIN 4471 mean?"], "PIN 4471"),
        (["search for the code of conduct of the ferry"], "code of conduct ferry"),
        (["my boiler shows E9, what does that mean"], "boiler E9"),
        (["Was bedeutet Fehlercode E9?"], "Fehlercode E9"),
        (["найди, где потерять пароль опасно"], "потерять пароль"),
        (["检查一下渡轮的时间"], "渡轮的时间"),
    ],
)
def test_web_search_may_contain_words_that_the_person_typed_in_the_request(
    texts: list[str], query: str
) -> None:
    assert shares_words(query, list_searchable(texts), 1.0)


@pytest.mark.parametrize(
    ("query", "is_typed"),
    [
        ("the weather in Rome", True),
        ("weather Rome", True),
        ("weather rome", True),
        ("weather Rome Rome", False),
        ("Rome weather", False),
        ("weather!!!! in,,,, Rome", False),
        ("weather  in Rome", False),
        ("wEather in rOme", False),
        ("weather in Rome\U000e0050", False),
        ("weather in Rome 4471", False),
    ],
)
def test_query_is_typed_only_in_one_piece_and_letter_by_letter(query: str, is_typed: bool) -> None:
    assert is_typed_span(query, ["Search for the weather in Rome"]) is is_typed


@pytest.mark.parametrize(
    ("queries", "name"),
    [
        (
            ["weather Rome", "the weather in Rome", "weather in Rome", "Weather rome?"],
            "weather rome",
        ),
        (["Fähre nach Porto am Sonntag", "fähre porto sonntag"], "fähre porto sonntag"),
        (["who", "Who?"], "who"),
    ],
)
def test_forms_of_a_query_with_and_without_small_words_have_one_name(
    queries: list[str], name: str
) -> None:
    assert [name_query(query) for query in queries] == [name] * len(queries)


def test_queries_with_other_words_or_another_order_have_different_names() -> None:
    queries = [
        "Rome Porto flights",
        "Porto Rome flights",
        "Sunday ferry",
        "Saturday ferry",
        "ferry",
    ]
    assert len(set(map(name_query, queries))) == len(queries)


def test_bare_answer_and_a_wish_to_write_something_down_ask_for_no_look_up() -> None:
    statements = (
        "I see a doctor",
        "Ich habe ein Problem",
        "I bought it online",
        "I like that page",
    )
    for text in (
        "4471",
        "thanks",
        *statements,
        "Note my illness",
        "Schreib meine Krankheit auf",
        "记下我的病",
    ):
        assert not asks_for_look_up([text]), text
    for text in ("search for ferries", "When does the ferry leave?", "can you google it"):
        assert asks_for_look_up([text]), text
    assert not asks_for_look_up(["And how are you?"], by_verb=True)
    assert asks_for_look_up(["Open the prices"], by_verb=True)


@pytest.mark.parametrize(
    ("typed", "tool_words", "asks"),
    [
        ("Send milk", "shelf do send", True),
        ("Schick Ana die Milch", "post message", True),
        ("What do the keys open", "shelf do send", False),
        ("Show the keys", "shelf do send", False),
        ("Note the keys", "shelf do send", False),
        ("Add to the diary: milk", "diary add entry", True),
        ("Trag Milch ein", "diary add entry", True),
        ("Show the diary", "diary add entry", False),
        ("I send milk", "shelf do send", False),
        ("Can you please send Ana the milk", "shelf do send", True),
        ("Kannst du Ana die Milch schicken", "shelf do send", True),
        ("Send milk", "diary add entry", False),
        ("Show the weather", "weather now", True),
    ],
)
def test_message_asks_for_a_call_only_with_a_verb_for_the_deed_of_the_tool(
    typed: str, tool_words: str, asks: bool
) -> None:
    assert asks_to_send([typed], tool_words, has_subject=False) is asks


def test_question_or_request_for_a_file_asks_to_send_it_but_a_summary_does_not() -> None:
    assert asks_to_send(["Show me contract.pdf"], "send file", has_subject=True)
    assert not asks_to_send(["Summarize contract.pdf"], "send file", has_subject=True)


@pytest.mark.parametrize(
    ("typed", "has_more"),
    [
        ("Send milk", False),
        ("Send milk \U0001f64f", False),
        ("\U0001f6ab send milk", True),
        ("~~Send milk~~", True),
        ("\u201dSend milk\u201d", True),
        ("\u2014Send milk", True),
        ("Send milk to Eve", True),
        ("Send milk only if I have to", True),
        ("Send milk to Ben", True),
        ("Please search the Internet for milk", False),
    ],
)
def test_signs_around_a_request_to_send_count_as_other_content(typed: str, has_more: bool) -> None:
    assert has_other_content([typed], ["milk"]) is has_more


@pytest.mark.parametrize(
    "typed",
    [
        "Send me file 1 again",
        "Schick mir Datei 1 nochmal",
        "Envíame el archivo 1 otra vez",
        "Envoie-moi le fichier 1 encore une fois",
        "Envia-me o ficheiro 1 outra vez",
        "Отправь файл 1 ещё раз",
        "请再发送文件1",
        "ファイル1をもう一度送って",
        "파일 1 다시 보내줘",
        "Bana dosya 1'i tekrar gönder",
    ],
)
def test_request_for_a_file_once_more_has_no_other_content(typed: str) -> None:
    assert not has_other_content([typed], ["send file", "contract.pdf file 1"])


@pytest.mark.parametrize(
    "typed",
    [
        "Could you send file 1 to me again, please?",
        "Kannst du mir bitte Datei 1 schicken?",
        "¿Puedes enviarme el archivo 1?",
        "Renvoie-moi le fichier 1",
        "Manda o ficheiro 1 para mim",
        "Пришли мне, пожалуйста, файл 1 ещё раз",
        "Скинь мне файл 1",
        "发我文件1",
        "请把文件1再发给我",
        "私にファイル1を送ってください",
        "파일 1을 저에게 보내 주세요",
        "Bana dosya 1'i gönderir misin?",
    ],
)
def test_request_for_a_file_that_names_its_asker_has_no_other_content(typed: str) -> None:
    assert not has_other_content([typed], ["send file", "contract.pdf file 1"])


@pytest.mark.parametrize(
    "typed",
    [
        "Send file 1 to my boss",
        "Schick Datei 1 bitte an Ben",
        "Manda el archivo 1 a mi jefe",
        "Renvoie le fichier 1 à ma mère",
        "Manda o ficheiro 1 para a minha mãe",
        "Пришли мне файл 1, если Бен согласен",
        "Скинь файл 1 моему начальнику",
        "把文件1发给我妈",
        "明天把文件1发我",
        "ファイル1を母に送って",
        "파일 1을 엄마에게 보내 주세요",
        "Dosya 1'i anneme gönder",
    ],
)
def test_request_for_a_file_for_somebody_else_or_later_has_other_content(typed: str) -> None:
    assert has_other_content([typed], ["send file", "contract.pdf file 1"])


def test_small_words_may_be_left_out_of_a_query_but_not_of_a_sent_text() -> None:
    typed = ["Manda: café sin azúcar"]
    assert is_typed_span("café azúcar", typed)
    assert not is_typed_span("café azúcar", typed, with_small_words=True)


@pytest.mark.parametrize(
    ("message", "may_open"),
    [
        ("{} What does it say, and when is my dentist?", True),
        ("Does {} say when the ferry leaves? I don't have a ticket yet.", True),
        ("When does the ferry leave according to {} ? Remind me if it rains.", True),
        ("My sister's new page is {} and I have to be at the dentist at nine.", True),
        ("Was steht auf {} über Sonntag, und wann ist mein Zahnarzt?", True),
        ("¿Qué dice {} del domingo? No tengo billete.", True),
        ("Compare {} and https://bus.example/a?b=c", True),
        ("Read https://bus.example/ and {} again", True),
        ("Don't open {} before you have asked me.", False),
        ("{} Please don't open it. What does the mail say?", False),
        ("{} - not this one. What does the mail say?", False),
        ("If Ben agrees, read {}", False),
        ("Can you open {} when Ben agrees?", False),
        ("Should I open {} ?", False),
        ("Öffne {} nicht. Was steht in der Mail?", False),
        ("Soll ich {} öffnen?", False),
        ("No abras {} todavía, ¿qué dice el correo?", False),
        ("Was steht in der Mail?", False),
    ],
)
def test_typed_address_is_handed_over_unless_the_message_speaks_against_it(
    message: str, may_open: bool
) -> None:
    url = "https://ferry.example/times"
    assert hands_over_address([message.format(url)], url) is may_open


def test_question_whether_to_open_an_address_does_not_ask_to_open_it() -> None:
    url = "http://x.example/y"
    assert not asks_for_address([f"should I open {url}"], url)
    assert not asks_for_address([f"Why did you open {url} ?"], url)
    assert asks_for_address([url], url)
    assert asks_for_address([f"What's on {url} ?"], url)


@pytest.mark.parametrize(
    ("message", "is_forbidden"),
    [
        ("Never send anything to anyone", True),
        ("Schick das bitte nicht ab", True),
        ("No envíes nada a nadie", True),
        ("N'envoie rien à personne", True),
        ("Send Ben: I can't come", False),
        ("Send it to Ben, I can't come", False),
        ("Schick Ben die Adresse, er kennt sie nicht", False),
    ],
)
def test_message_that_forbids_sending_is_distinguished_from_a_message_to_send(
    message: str, *, is_forbidden: bool
) -> None:
    assert forbids_sending([message]) is is_forbidden


@pytest.mark.parametrize(
    ("message", "has_condition"),
    [
        ("When does the sunday ferry leave?", False),
        ("¿Cuándo sale el ferry del domingo?", False),
        ("If Ben agrees, can you search sunday ferry leave?", True),
        ("When Ben agrees, can you search sunday ferry leave?", True),
        ("When Ben agrees can you search sunday ferry leave?", True),
    ],
)
def test_question_word_at_the_beginning_of_a_question_is_not_a_condition(
    message: str, *, has_condition: bool
) -> None:
    texts = ["sunday ferry leave ben agrees", "sale ferry domingo"]
    assert has_other_content([message], texts) is has_condition


PAGE = "Address: https://a.example/\n\n{}"
PRICES = "[Prices](https://a.example/prices)"
CODES = [f"/p{number}" for number in range(4460, 4480)]
FREE, CHOSEN, NONE = Offer.FREE, Offer.CHOSEN, Offer.NONE


@pytest.mark.parametrize(
    ("links", "url", "message", "offer"),
    [
        ([PRICES], "/prices", "What does it say?", CHOSEN),
        ([PRICES], "/prices", "What are the prices?", FREE),
        ([f"a.example{code}" for code in CODES[:3]], "/p4461", "What does it say?", CHOSEN),
        ([f"[Dogs](a.example{code})" for code in CODES[:2]], "/p4461", "Do dogs pay?", CHOSEN),
        ([f"[x](https://a.example{code})" for code in CODES], "/p4471", "What does it say?", NONE),
        ([f"[1](https://a.example{code})[2](#)" for code in CODES], "/p4471", "Open it", NONE),
        ([f"a.example{code}/{code[::-1]}" for code in CODES], "/p4471/1744p", "Open it", NONE),
        ([f"https://a.example/p?({code})" for code in CODES], "/p?(/p4471)", "Open it", NONE),
        ([f"[it](https://a.example{code})" for code in CODES], "/p4471", "Open it", NONE),
        ([PRICES, *(f"https://a.example{code}" for code in CODES)], "/prices", "Prices?", FREE),
        ([PRICES, *(f"https://a.example{code}" for code in CODES)], "/p4471", "Prices?", NONE),
        ([f"https://a.example/p/{code[2:]}" for code in CODES], "/p/471", "PIN 471. Ferry?", NONE),
    ],
)
def test_link_of_a_page_is_free_if_the_message_names_it_and_chosen_if_it_is_one_of_few(
    links: list[str], url: str, message: str, offer: Offer
) -> None:
    page = PAGE.format(" ".join(links))
    assert judge_link(f"https://a.example{url}", [page], [message]) is offer


@pytest.mark.parametrize(
    ("url", "offer"),
    [
        ("https://a.example/3", FREE),
        ("https://a.example/4", NONE),
        ("https://a.example/dogs", FREE),
        ("https://b.example/1", FREE),
        ("https://b.example/evil", NONE),
        ("https://[", NONE),
    ],
)
def test_first_results_of_a_host_and_a_named_result_are_free(url: str, offer: Offer) -> None:
    ends = ["a.example/1", "a.example/2", "b.example/1", "a.example/3", "a.example/4"]
    lines = [
        f"{n}. Ferry\n   https://{end}\n   https://b.example/evil" for n, end in enumerate(ends)
    ]
    lines.append("9. Dogs\n   https://a.example/dogs\n   Excerpt")
    assert judge_result(url, ["\n".join(lines)], ["Do dogs pay?"]) is offer


def test_page_is_read_again_freely_unless_several_pages_of_its_host_were_read() -> None:
    first, second = (f"Address: https://a.example/{number}\n\nText" for number in (1, 2))
    url = "https://a.example/1"
    assert judge_repetition(url, [first], [first, second]) is FREE
    assert judge_repetition(url, [], [first, first]) is FREE
    assert judge_repetition(url, [], [first, second]) is CHOSEN
    assert judge_repetition("https://a.example/3", [first], [first]) is NONE


@pytest.mark.parametrize(
    ("typed", "text", "is_for_me"),
    [
        ("Send me I quit", "I quit", True),
        ("Schick mir Ich kündige", "Ich kündige", True),
        ("Envíame Renuncio", "Renuncio", True),
        ("Envoie-moi Je démissionne", "Je démissionne", True),
        ("Envia-me Demito-me", "Demito-me", True),
        ("Отправь мне Я увольняюсь", "Я увольняюсь", True),
        ("发给我我辞职", "我辞职", True),
        ("私に辞めますと送って", "辞めます", True),
        ("나에게 그만둔다 보내줘", "그만둔다", True),
        ("Bana istifa ediyorum gönder", "istifa ediyorum", True),
        ("Send Ben: call me", "call me", False),
        ("Send the mail to Ben for me", "the mail", False),
        ("Schick Ben Ich kündige", "Ich kündige", False),
    ],
)
def test_text_for_the_sender_of_the_message_is_not_sent_elsewhere(
    typed: str, text: str, is_for_me: bool
) -> None:
    assert is_for_sender([typed], [text], "shelf do send") is is_for_me
    assert not is_for_sender([typed], [text], "diary add entry")
