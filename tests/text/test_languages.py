"""Stems and stop words of languages besides English."""

# ruff: noqa: RUF001
from __future__ import annotations

from core.search.query import plan_any_word
from core.text.languages import (
    detect_languages,
    latin_stem,
    non_english_words,
    script_form,
    script_stem,
    script_stop_words,
)
from core.text.normalize import fold, indexed_words, language_data, words_of
from core.text.terms import (
    alternate_terms,
    content_words,
    name_terms,
    query_terms,
    terms_of,
    word_terms,
)
from tests.fixtures.tables import each_row


@each_row(
    ("said", "asked"),
    [
        ("وصلت الكتب إلى المكتبة وبالسيارة", "كتب مكتبة سيارة"),
        ("والاستحواذات", "استحواذ"),
        ("إلى الإسكندرية", "اسكندريه"),  # hamza, teh marbuta
        ("مُحَمَّدٌ كتـــاب", "محمد كتاب"),  # vowel signs, tatweel
        ("мы ездили с Машей в Лиссабон за книгами", "маша лиссабона книги ездила"),
        ("Πήγαμε με τα πλοία στη Θεσσαλονίκη", "πλοιο Θεσσαλονικης πηγαμε"),
        ("लड़कियों ने किताबें खरीदी", "लड़की किताब खरीदी"),
        ("वहाँ चाँद", "चांद"),
    ],
)
def test_inflected_forms_of_a_non_latin_word_share_one_search_term(said: str, asked: str) -> None:
    assert set(query_terms(asked)) <= set(terms_of(said))


def test_search_terms_leave_out_question_words_and_conjunctions() -> None:
    assert query_terms("كم عدد الكتب التي في المكتبة؟") == query_terms("عدد كتب مكتبة")
    assert query_terms("Когда мы были в Лиссабоне?") == query_terms("Лиссабон")
    assert query_terms("Hvornår kom jeg hjem?") == ["kom", "hjem"]
    assert query_terms("Πότε ήταν το ταξίδι;") == query_terms("ταξίδι")
    assert query_terms("यह किताब कब खरीदी?") == query_terms("किताब खरीदी")
    assert query_terms("מתי היה הטיול שלנו?") == query_terms("הטיול")
    assert list(plan_any_word("где была книга").highlights) == ["книга"]
    assert list(plan_any_word("где я").highlights) == ["где", "я"]


@each_row("digits", ["٢٠٢٣", "۲۰۲۳", "२०२३", "২০২৩", "๒๐๒๓"])
def test_digits_of_other_scripts_are_digits(digits: str) -> None:
    assert fold(digits) == indexed_words(digits) == "2023"
    assert query_terms(digits) == ["2023"]


def test_each_listed_stop_word_of_a_script_is_recognised_as_typed() -> None:
    for script in language_data("languages")["scripts"].values():
        for word in script["words"].split():
            assert script_stem(word) == "", word
            assert script_form(word) in script_stop_words()


def test_word_in_a_script_without_stemming_rules_stays_unchanged() -> None:
    assert script_stem("ლისაბონი") == "ლისაბონი"
    assert terms_of("ספרים") == ["ספרים"]


@each_row(
    ("language", "text"),
    [
        ("german", "Wann kam die Rechnung für das Hotel?"),
        ("dutch", "Wanneer zijn de kinderen naar huis gegaan?"),
        ("swedish", "När åkte vi till Göteborg och vem var med?"),
        ("danish", "Hvornår kom regningen, og hvad skal vi gøre med den af dem?"),
        ("finnish", "Milloin me kävimme Turussa ja kuka oli mukana?"),
        ("hungarian", "Mikor voltunk a Balatonon és hol aludtunk?"),
        ("french", "Quand est-ce que nous avons pris le train pour Lyon ?"),
        ("spanish", "¿Cuándo llegaron los libros de Carlos?"),
        ("portuguese", "Quando é que você não foi à praia com as meninas?"),
        ("italian", "Quando siamo andati al mare con gli amici della scuola?"),
        ("romanian", "Când am fost în orașele din Ardeal și cine era?"),
        ("turkish", "Jared Allen'ın kaç tane kariyer sack edişi vardır?"),
        ("polish", "Kiedy byliśmy w Krakowie z dziećmi i kto się zgubił?"),
        ("czech", "Kdy jsme byli v Praze s dětmi a co je to?"),
        ("indonesian", "Kapan kita pergi ke Bali dengan keluarga itu?"),
        ("vietnamese", "Ai đã viết bài hát nổi tiếng nhất của Việt Nam?"),
    ],
)
def test_language_of_a_text_is_detected_by_its_words(language: str, text: str) -> None:
    assert detect_languages(*_read(text))[:1] == (language,)


@each_row(
    "text",
    [
        "When did we fly to Los Angeles with Carlos?",
        "The war, man: what a son",
        "Take care! Go get 'em, Jon!",
        "Oh? For example?",
        "Monday 8 May 2023",
        "Müller booked",
        "Café Résumé",
        "und",
        "",
    ],
)
def test_english_names_and_single_words_are_in_no_other_language(text: str) -> None:
    assert detect_languages(*_read(text)) == ()


def _read(text: str) -> tuple[list[str], set[str]]:
    folded = fold(text).casefold()
    return words_of(folded), {letter for letter in folded if not letter.isascii()}


@each_row(
    ("said", "asked"),
    [
        ("Ich habe die Rechnungen nicht bezahlt", "Wer hat die Rechnung bezahlt?"),
        (
            "Las organizaciones participaron en los juegos",
            "¿Qué organización participa en el juego?",
        ),
        (
            "Os meninos foram à praia com as professoras",
            "Quando é que o menino foi à praia com a professora?",
        ),
        ("Nous avons mangé les gâteaux de la boulangère", "Qui est-ce qui mange le gâteau ?"),
        ("I ragazzi hanno letto dei libri", "Che libro ha letto il ragazzo?"),
        ("Kitapları evlerinde bıraktık ama sonra bulduk", "Bu kitap nerede?"),
        ("Am vizitat orașele și muzeele din țară", "Ce oraș am vizitat?"),
    ],
)
def test_query_terms_of_a_question_are_stemmed_in_its_language(said: str, asked: str) -> None:
    forms = alternate_terms(asked)
    wanted = [term for term in query_terms(asked) if term not in forms]
    assert wanted
    assert set(wanted) <= set(terms_of(said))


def test_german_word_is_indexed_with_its_english_stem_and_its_german_stem() -> None:
    said = terms_of("Carlos und Thomas haben das Essen gebracht")
    assert set(query_terms("What did Carlos and Thomas bring?")) - {"bring"} <= set(said)
    assert {"ess", "essen"} <= set(said)
    assert "und" not in said
    assert alternate_terms("Wann war das Essen?") == {"essen": "ess"}
    assert alternate_terms("When was the party of the children?") == {}


def test_vietnamese_syllable_is_indexed_with_and_without_its_tone_marks() -> None:
    said = terms_of("Bạn của tôi đã bán xe ở Hà Nội")
    assert {"bán", "nội", "ban", "noi"} <= set(said)
    assert "bàn" not in said
    assert query_terms("ban xe") == ["ban", "xe"]


def test_names_and_single_words_are_the_same_in_all_languages() -> None:
    assert word_terms("El Niño de la Rosa") == ["el", "nino", "de", "la", "rosa"]
    assert name_terms("Ana dos Santos") == ("ana", "do", "santo")
    assert content_words(["wo", "ist", "die", "rechnung"]) == ["rechnung"]
    assert content_words(["where", "is", "the", "bill"]) == ["bill"]


def test_the_profile_of_a_language_has_no_words_that_are_english() -> None:
    english = terms_of(" ".join(language_data("words")["moment_words"].split()))
    assert english == word_terms(language_data("words")["moment_words"])
    assert non_english_words().isdisjoint(language_data("words")["stop_words"].split())


def test_english_stop_word_is_indexed_in_a_text_of_another_language() -> None:
    assert "an" in terms_of("Acum un an am fost la munte și la mare")
    assert "an" in query_terms("În ce an am fost la munte și la mare?")
    assert "s" not in terms_of("Wir waren mit den Kindern bei McDonald's")


@each_row("word", ["alanlarının", "ALANLARINDA", "alanlarinin", "alanları"])
def test_turkish_endings_go_with_or_without_the_dot(word: str) -> None:
    assert latin_stem("turkish", fold(word).casefold()) == "alan"


@each_row(
    ("said", "asked", "name"),
    [
        ("Ben heeft de fiets gekocht in het dorp", "Wat heeft Ben met de fiets gedaan?", "ben"),
        ("Gisteren zei Ben dat ik te laat ben", "Wanneer zei Ben dat?", "ben"),
        ("Hans har målat båten och huset", "Vad har Hans målat?", "Hans"),
        ("Mia ha comprato la bicicletta", "Che cosa ha comprato Mia?", "mia"),
        ("Kim arabayı aldı ve çok mutlu oldu", "Bu arabayı Kim mi aldı?", "kim"),
        (
            "Elle a dit qu'elle viendra demain avec les enfants, et Elle sait",
            "Quand est-ce que Elle vient ?",
            "elle",
        ),
    ],
)
def test_a_stop_word_with_a_capital_may_be_a_name(said: str, asked: str, name: str) -> None:
    assert name_terms(name)[0] in terms_of(said)
    assert name_terms(name)[0] in query_terms(asked)
    assert name_terms(name)[0] not in query_terms(asked.lower())


@each_row(
    ("text", "word"),
    [
        ("Ben ik te laat? Dan ben ik weg, zei het kind", "ben"),
        ("WAT HEEFT BEN MET DE FIETS GEDAAN", "ben"),
        ("Haben Sie Ihnen die Rechnung geschickt, oder war das nicht nötig?", "sie"),
        ("Apakah Anda sudah makan dengan mereka?", "anda"),
        ("The ferry and the Will of the war", "will"),
    ],
)
def test_word_used_as_a_stop_word_of_the_texts_language_is_not_a_search_term(
    text: str, word: str
) -> None:
    assert word not in terms_of(text)


def test_a_question_begins_with_no_name_but_key_words_may() -> None:
    assert "ben" not in query_terms("Ben je met de fiets? Waar was het?\nBen ik er geweest?")
    assert "han" not in query_terms("Hans båten huset målat")
    assert alternate_terms("Hans båten huset målat")["han"] == ""
    assert "han" not in alternate_terms("Hans båten huset målat?")
    assert "han" not in alternate_terms("vad har Hans målat")


def test_sign_that_is_a_letter_only_in_lower_case_does_not_hide_search_terms() -> None:
    assert {"rechnung", "post"} <= set(terms_of("\u0345 Ich habe die Rechnung nicht mit der Post"))
