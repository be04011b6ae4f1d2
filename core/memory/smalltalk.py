"""Tells a message that is about something from one that only keeps the talk going: "ok", "thanks!", "👍", "ありがとう".

Nothing needs to be remembered for the latter, and none of the budget should be spent on it.
"""

# ruff: noqa: RUF001
from __future__ import annotations

import unicodedata

_LONGEST_CHARS = 80
"""Whoever writes more has something to say."""

_WORDS = """
ok okay okey k kk okej yes yeah yep yup yea no nope nah thanks thank thx ty tysm you so much very a lot again hello
hi hey
good great nice cool sure please fine perfect super awesome amazing wow bye goodbye morning evening night afternoon
lol
haha hahaha hehe go on more right alright got it i see understood done cheers welcome
ja jep jo nein danke dank vielen schön schoen sehr gut prima toll klar genau bitte hallo tschüss morgen abend guten
tag
alles verstanden passt
oui ouais non merci beaucoup bien parfait génial salut bonjour bonsoir accord d daccord s'il te plaît
sí si no gracias muchas mil vale bueno perfecto genial hola adiós claro por favor buenas buenos días noches
sim não nao obrigado obrigada muito valeu beleza certo ótimo olá oi tchau bom dia boa noite por
sì grazie mille bene perfetto ottimo ciao prego va certo
да нет спасибо большое хорошо ок окей ладно понятно ясно отлично привет пока пожалуйста здравствуйте ага угу
так ні дякую добре привіт tak nie dziękuję dzięki dobrze cześć
bedankt nee goed prima dankjewel dankuwel hoi doei tack nej bra hej takk nei bra hei kiitos joo ei hyvä tak nej godt
evet hayır teşekkürler teşekkür ederim tamam sağol merhaba selam
نعم لا شكرا شكراً جزيلا حسنا تمام طيب اوكي مرحبا بله نه ممنون مرسی باشه خوب سلام
हाँ हां नहीं धन्यवाद शुक्रिया ठीक है अच्छा नमस्ते ओके
ευχαριστώ ναι όχι εντάξει γεια כן לא תודה רבה בסדר שלום
네 예 아니요 응 감사합니다 고마워 고마워요 좋아 좋아요 알겠습니다 알겠어 안녕 안녕하세요 오케이
cảm ơn vâng dạ không được terima kasih iya tidak baik oke asante ndiyo hapana sawa
"""
_RUNS = """
はい うん いいえ ありがとう ありがとうございます ありがとうございました どうも どうもありがとう
どうもありがとうございます 了解 了解です わかった わかりました 分かりました
なるほど おはよう おはようございます こんにちは こんばんは おやすみ おやすみなさい オーケー いいね よし お願いします
すごい
好 好的 好吧 是 是的 对 对的 不 不是 谢谢 谢谢你 多谢 感谢 谢谢您 收到 明白 明白了 知道了 了解了 可以 行 嗯 嗯嗯 哦
哈哈 哈哈哈 你好 您好 再见 早上好 晚安 太好了 不错 没问题
好啊 謝謝 謝謝你 多謝 對 沒問題 早安 ขอบคุณ ขอบคุณครับ ขอบคุณค่ะ ครับ ค่ะ โอเค สวัสดี
"""
_KNOWN = frozenset((_WORDS + _RUNS).casefold().split())


def is_smalltalk(text: str) -> bool:
    """Whether `text` says nothing that could be looked up, in whatever case and punctuation; also when it is empty."""
    if len(text) > _LONGEST_CHARS:
        return False
    folded = unicodedata.normalize("NFKC", text).casefold()
    kept = "".join(sign if unicodedata.category(sign)[0] in "LMN" or sign == "'" else " " for sign in folded)
    # What is left of an emoji is a mark without a letter.
    return all(word.strip("'") in _KNOWN for word in kept.split() if any(map(str.isalnum, word)))
