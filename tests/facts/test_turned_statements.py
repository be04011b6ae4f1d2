"""Statements that a sentence turns round, such as "… is false", in ten languages.

Neither a note nor a fact that a model reads from the sentence says the opposite of it.
"""

from __future__ import annotations

from core.facts.alignment import TypedText
from core.facts.closeness import Support, judge
from core.facts.evidence import Evidence
from core.types import Message, Sender
from tests.fixtures.clock import SteadyClock
from tests.fixtures.tables import each_row

NOW = SteadyClock().now()
TURNED = [
    ("Mallory may read my mail is false", "Mallory may read my mail"),
    ("Mallory is accused of reading my mail", "Mallory is reading my mail"),
    ("I forgot to lock the door of Ana", "I lock the door of Ana"),
    ("Is it false that my code is 1234", "My code is 1234"),
    ("It isn't true that my code is 1234", "My code is 1234"),
    ("It isn't true that my boss is Mallory", "My boss is Mallory"),
    ("It's a lie that my boss is Mallory", "My boss is Mallory"),
    ("I doubt my boss is Mallory", "My boss is Mallory"),
    ("Is it false that Mallory may read my mail", "Mallory may read my mail"),
    ("That Mallory may read my mail is nonsense", "Mallory may read my mail"),
    ("I never said my boss is Mallory", "My boss is Mallory"),
    ("Nobody believes that Mallory may read my mail", "Mallory may read my mail"),
    ("I refuse to pay Mallory 40 euros", "I pay Mallory 40 euros"),
    ("I almost moved to Oslo", "I moved to Oslo"),
    ("I failed to pay Ben 40 euros", "I paid Ben 40 euros"),
    ("I stopped working for Mallory", "I work for Mallory"),
    ("I avoid eating nuts", "I eat nuts"),
    ("Es stimmt nicht, dass mein Code 1234 ist", "Mein Code ist 1234"),
    ("Ist es falsch, dass Mallory meine Mails lesen darf", "Mallory darf meine Mails lesen"),
    ("Dass Mallory meine Mails lesen darf, ist falsch", "Mallory darf meine Mails lesen"),
    ("Ich habe vergessen, Ben 40 Euro zu zahlen", "Ich habe Ben 40 Euro gezahlt"),
    ("No es verdad que mi código sea 1234", "Mi código es 1234"),
    ("Es falso que Mallory pueda leer mi correo", "Mallory puede leer mi correo"),
    ("Que Mallory puede leer mi correo es mentira", "Mallory puede leer mi correo"),
    ("Olvidé pagar 40 euros a Ben", "Pagué 40 euros a Ben"),
    ("C'est faux que Mallory peut lire mes mails", "Mallory peut lire mes mails"),
    ("Il n'est pas vrai que mon code est 1234", "Mon code est 1234"),
    ("Mallory peut lire mes mails, c'est faux", "Mallory peut lire mes mails"),
    ("Não é verdade que o meu código é 1234", "O meu código é 1234"),
    ("É mentira que a Mallory pode ler o meu correio", "A Mallory pode ler o meu correio"),
    ("Неправда, что Мэллори может читать мою почту", "Мэллори может читать мою почту"),
    ("Мэллори может читать мою почту - это ложь", "Мэллори может читать мою почту"),
    ("Я забыла заплатить Бену 40 евро", "Я заплатила Бену 40 евро"),
    ("马洛里可以看我的邮件是假的", "马洛里可以看我的邮件"),
    ("我的密码是1234，这不是真的", "我的密码是1234"),
    ("マロリーが私のメールを読んでいいというのは嘘だ", "マロリーが私のメールを読んでいい"),
    ("私のコードが1234だというのは間違いです", "私のコードは1234です"),
    ("맬러리가 내 메일을 읽어도 된다는 건 거짓이야", "맬러리가 내 메일을 읽어도 된다"),
    ("내 코드가 1234라는 건 사실이 아니야", "내 코드는 1234야"),
    ("Mallory'nin postamı okuyabileceği yalan", "Mallory postamı okuyabilir"),  # noqa: RUF001
    ("Kodumun 1234 olduğu doğru değil", "Kodum 1234"),
    ("I stopped seeing my dentist", "User sees their dentist"),
]
HONEST = [
    ("I forgot to tell you that my sister is called Ana", "User's sister is called Ana"),
    ("no doubt my boss is Sandra", "User's boss is Sandra"),
    ("I stopped smoking", "User stopped smoking"),
    ("I refuse to fly with Eve", "User refuses to fly with Eve"),
    ("I forgot to pay Ben 40 euros", "User forgot to pay Ben 40 euros"),
    ("Ohne Zweifel heißt meine Schwester Ana", "Meine Schwester heißt Ana"),
    ("Olvidé decirte que mi hermana se llama Ana", "Mi hermana se llama Ana"),
    ("言い忘れたけど、妹の名前はアナです", "妹の名前はアナです"),
]


def _message(text: str) -> Message:
    return Message(
        role="user", text=text, session_id=1, id=1, created_at=NOW, sender=Sender(id="1", name="-")
    )


@each_row(("typed", "note"), TURNED)
def test_statement_that_the_sentence_turns_round_is_not_kept(typed: str, note: str) -> None:
    assert judge(note, [TypedText(typed, NOW.date())]).support is not Support.CLOSE
    assert Evidence([_message(typed)]).find_support(note) is None


@each_row(("typed", "note"), HONEST)
def test_statement_with_similar_but_honest_words_is_accepted_as_evidence(
    typed: str, note: str
) -> None:
    assert judge(note, [TypedText(typed, NOW.date())]).support is not Support.REFUSED
    assert Evidence([_message(typed)]).find_support(note) is not None
