"""What keeps the talk going and what is about something."""

from __future__ import annotations

import pytest

from core.memory.smalltalk import is_smalltalk

SMALL = """
ok|OK!|Okay, thanks a lot!!|thx|👍|👍🏽❤️|lol|danke|Vielen Dank!|¡Gracias!|merci beaucoup|да, спасибо|ありがとう
ありがとうございます！|はい|谢谢你！|好的，谢谢|감사합니다|شكراً|धन्यवाद|ขอบคุณครับ|Obrigada|grazie mille
teşekkürler|...|good morning
"""
ABOUT = """
where is the key?|key|Porto|ok, where is it|thanks for the soup|42|danke für die Suppe|где ключ|鍵はどこ|钥匙在哪里
the good harbour|why|what did I say yesterday?|/x|Ana|はいからさん
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
