"""Tells a message that is about something from one that only keeps the talk going: "ok", "thanks!", "👍", "ありがとう".

Nothing needs to be remembered for the latter, and none of the budget should be spent on it. A word that may also be
somebody's name, or a question, is no small talk: looking it up for nothing costs less than not looking it up.

Which sessions a memory hears of. The one place that decides it.
"""

# ruff: noqa: RUF001
from __future__ import annotations

import re
import unicodedata

from core.types import Session

_LONGEST_CHARS = 80
"""Whoever writes more has something to say."""
_LONGEST_PHRASE = 4
_LONGEST_PIECE_CHARS = 20

_WORDS = """
ok okay okey k kk okej yes yeah yep yup yea no nope nah thanks thank thx tnx ty tysm u you so much very a lot again
hello hi hey hiya yo np gotcha noted agreed indeed thanx cool
good great nice sure please fine perfect super awesome amazing wow bye goodbye morning evening night afternoon
lol lmao rofl xd omg yay hmm hm mhm uh oh ah aha ahh
go on more right alright got it i see understood done cheers welcome
ja jep jo nein danke dank vielen herzlichen lieben dir ihnen schön schoen sehr gut prima toll klar genau bitte hallo
tschüss morgen abend guten tag
alles verstanden passt super servus
oui ouais non merci beaucoup bien parfait génial salut bonjour bonsoir accord d daccord d'accord s'il te plaît ouf
sí si no gracias muchas muchísimas mil vale bueno perfecto genial hola adiós por favor buenas buenos días noches
entendido tranquilo
sim não nao obrigado obrigada obrigadão muito valeu beleza certo ótimo olá oi tchau bom dia boa noite por entendi
sì grazie mille bene perfetto ottimo ciao prego va certo capito
да нет спасибо спс пасиб большое хорошо ок окей оке ладно понятно понял поняла ясно отлично супер круто привет пока
пожалуйста здравствуйте ага угу добрый день вечер утро доброе
так ні дякую добре привіт гаразд tak nie dziękuję dzięki dobrze cześć jasne spoko
bedankt nee goed prima dankjewel dankuwel dank je wel hoi doei tack tusen takk mange nej bra hej nei hei kiitos joo ei
hyvä godt selvä
evet hayır teşekkürler teşekkür ederim tamam sağol sağ ol merhaba selam peki
díky děkuji ahoj ano jo dobře köszönöm szépen köszi igen nem szia jó mulțumesc mersi bine da nu
hvala dobro važi благодаря добре aitäh jah ačiū taip paldies jā faleminderit
نعم لا شكرا شكراً جزيلا حسنا تمام طيب اوكي أوكي مرحبا السلام عليكم بله نه ممنون مرسی باشه خوب سلام متشکرم
हाँ हां जी नहीं धन्यवाद शुक्रिया ठीक है अच्छा नमस्ते ओके ধন্যবাদ হ্যাঁ ঠিক আছে நன்றி సరే ధన్యవాదాలు shukriya dhanyavaad
ευχαριστώ ναι όχι εντάξει γεια οκ כן לא תודה רבה בסדר שלום אוקיי
네 넵 넹 예 아니요 응 감사합니다 감사해요 고마워 고마워요 좋아 좋아요 알겠습니다 알겠어요 알겠어 안녕 안녕하세요 오케이
cảm ơn bạn vâng dạ không được terima kasih makasih banyak iya tidak baik oke siap asante sana ndiyo hapana sawa salamat
po opo
"""
_PHRASES = """
will do|sounds good|no problem|no worries|never mind|you're welcome|you are welcome|makes sense|well done|not bad
of course|for sure|see you|see you later|take care|talk to you later|have a nice day|have a good one
alles klar|kein problem|gern geschehen|mach ich|passt schon|bis dann|bis morgen
pas de problème|de rien|ça marche|ça va|très bien|à demain|à bientôt|bonne nuit|bonne journée
de nada|no hay problema|está bien|muy bien|hasta luego|hasta mañana|claro que sí
tudo bem|tá bom|ta bom|de nada|até logo|até amanhã|sem problema
va bene|di niente|nessun problema|a domani|d'accordo|tutto bene
не за что|всё понятно|все понятно|до завтра|до свидания|без проблем|доброе утро|спокойной ночи
nie ma sprawy|graag gedaan|geen probleem|tot morgen|ingen fara|varsågod|så bra
"""
_RUNS = """
はい ええ うん うんうん いいえ いや ありがとう ありがと ありがとうございます ありがとうございました どうも
どうもありがとう ね よ どうもありがとうございます 了解 了解です 了解しました りょ 承知 承知しました わかった
わかりました 分かった 分かりました です なるほど おはよう おはようございます こんにちは こんばんは おやすみ
おやすみなさい オーケー いいね いいですね よし お願いします すごい OK 助かりました お疲れ様 お疲れ様です 大丈夫
大丈夫です 好 好的 好吧 好呀 好啊 好哒 是 是的 对 对的 对啊 不 不是 不用 没 没有 没事 没关系 谢谢 谢谢啦 谢谢你
多谢 感谢 谢谢您 谢啦 谢了 收到 明白 明白了 知道 知道了 了解 了解了 可以 行 行吧 嗯 哦 噢 啊 呀 吧 了 的 呢 啦
哈 呵 嘿 嘻 你好 您好 再见 拜拜 早 早上好 晚上好 晚安 太好了 太棒了 真棒 不错 没问题 辛苦了 加油 赞 早安 很好
非常 谢 懂了 懂 好啊 謝謝 謝謝你 謝謝您 謝啦 多謝 對 對啊 沒問題 沒事 沒關係 知道囉 瞭解 嗯嗯 ขอบคุณ ขอบคุณมาก
ขอบคุณครับ ขอบคุณค่ะ ครับ ครับผม ค่ะ คะ จ้า โอเค สวัสดี ได้ ได้เลย เข้าใจแล้ว ดี ดีมาก ใช่ ไม่ มาก
"""
_KNOWN = frozenset((_WORDS + _RUNS).casefold().split())
_SAID_TOGETHER = frozenset(tuple(phrase.split()) for line in _PHRASES.split("\n") for phrase in line.split("|"))
_PIECES = frozenset(_RUNS.casefold().split())
_LAUGHTER = re.compile(
    r"a?(?:h[aeiou]){2,}h?|(?:j[aeiou]){2,}|а?(?:х[аеи]){2,}х?|(?:rs)+|k{3,}|w{2,}|笑+|lo+l|xd+"
    "|[\u110b\u110f\u1112\u116e\u1172]+"
)
"""The last are single letters of Korean, as NFKC leaves them."""
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
_DRAWN_OUT = re.compile(r"(.)\1{2,}")


def is_smalltalk(text: str) -> bool:
    """Whether `text` says nothing that could be looked up, in whatever case and punctuation; also when it is empty."""
    if len(text) > _LONGEST_CHARS:
        return False
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    kept = "".join(sign if unicodedata.category(sign)[0] in "LMN" or sign == "'" else " " for sign in folded)
    # What is left of an emoji is a mark without a letter.
    words = [word.strip("'") for word in kept.split() if any(map(str.isalnum, word))]
    reached = {0}
    for start in range(len(words)):
        if start in reached:
            ends = range(start + 1, start + 1 + _LONGEST_PHRASE)
            reached.update(end for end in ends if tuple(words[start:end]) in _SAID_TOGETHER)
            reached.update({start + 1} if _is_filler(words[start]) else ())
    return len(words) in reached


def _is_filler(word: str) -> bool:
    if word in _KNOWN or _LAUGHTER.fullmatch(word):
        return True
    if _UNSPACED.search(word):
        return _is_made_of_pieces(word)
    return _DRAWN_OUT.sub(r"\1", word) in _KNOWN


def _is_made_of_pieces(run: str) -> bool:
    """Whether writing without spaces is nothing but such words in a row."""
    reached = {0}
    for start in range(len(run)):
        if start in reached:
            ends = range(start + 1, min(start + _LONGEST_PIECE_CHARS, len(run)) + 1)
            reached.update(end for end in ends if run[start:end] in _PIECES)
    return len(run) in reached


def is_remembered(session: Session) -> bool:
    """Whether memories may keep anything of the session: not of what was scheduled, nor of what is incognito."""
    return session.address.platform != "cron" and not session.is_incognito


def may_consult(session: Session) -> bool:
    """Whether a service outside may be asked on behalf of the session: it learns the question. Its tools may also keep
    something, so that they need more: `is_remembered`."""
    return not session.is_incognito
