"""What keeps the talk going and what is about something."""

# ruff: noqa: RUF001
from __future__ import annotations

import pytest

from core.text.terms import is_smalltalk

SMALL = """
ok|OK!|Okay, thanks a lot!!|thx|👍|👍🏽❤️|lol|danke|Vielen Dank!|¡Gracias!|merci beaucoup|да, спасибо|ありがとう
ありがとうございます！|はい|谢谢你！|好的，谢谢|감사합니다|شكراً|धन्यवाद|ขอบคุณครับ|Obrigada|grazie mille
teşekkürler|...|good morning|hahahaha|yesss|okkk|thaaanks|sounds good 👍|will do|You’re welcome|danke dir
alles klar, danke|D’accord merci|ça marche|muchísimas gracias|tá bom, valeu|va bene, grazie
хорошо, спасибо|понял, спс|ахахаха
好的谢谢|哈哈哈哈哈|嗯嗯嗯|了解しました、ありがとう|ㅋㅋㅋㅋ|네 감사합니다|شكرا جزيلا|cảm ơn bạn|terima kasih banyak
ขอบคุณมากครับ|köszönöm szépen|ok bye, see you later|ok, no problem, thanks
"""
ABOUT = """
where is the key?|key|Porto|ok, where is it|thanks for the soup|42|danke für die Suppe|где ключ|鍵はどこ|钥匙在哪里
the good harbour|why|what did I say yesterday?|/x|Ana|はいからさん
why?|Rex?|东京?|how?|when|Will?|May|港口|東京は？|好吃吗|谢谢餐厅在哪|why not?|and then?|PIN?|Tom|где?|почему?|wann|où ?
なぜ？|什么时候|対馬|早稲田|了解事项|哈尔滨|行李|对马|tomorrow?|大阪|안경|왜?|لماذا|क्यों|ทำไม|1984|k8s|笑点|will it do?
"""


@pytest.mark.parametrize("text", [*SMALL.strip().replace("\n", "|").split("|"), "", "  "])
def test_it_asks_nobody(text: str) -> None:
    assert is_smalltalk(text)


@pytest.mark.parametrize("text", ABOUT.strip().replace("\n", "|").split("|"))
def test_it_is_looked_up(text: str) -> None:
    assert not is_smalltalk(text)


def test_whoever_writes_much_says_something() -> None:
    assert is_smalltalk("ok " * 20)
    assert not is_smalltalk("ok " * 100)
