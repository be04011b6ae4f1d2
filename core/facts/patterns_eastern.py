"""How people tell of themselves in Chinese, Japanese and Russian: the simple forms. Data only.

As in `tellings.py` a clause must be one of these as a whole. Chinese and Japanese have neither capitals nor blanks, so
that a value is known by what it may not hold: a pronoun, a particle, a time to come.
"""

# ruff: noqa: RUF001

from __future__ import annotations

import re

from core.facts.patterns import Shape, Telling

_V = r"(?P<value>.{1,60}?)"
_U = r"(?P<value>[^\s，。、,.]{1,20}?)"
_WATASHI = r"(?:(?:私|わたし|僕|ぼく|俺)は、?)?"
_WATASHI_NO = r"(?:(?:私|わたし|僕|ぼく|俺)の)?"


def _eastern(pattern: str, what: str, shape: Shape, stance: str = "", *, may_deny: bool = False) -> Telling:
    return Telling(
        pattern=pattern,
        what=what,
        shape=shape,
        is_many=stance != "",
        stance=stance,
        may_deny=may_deny,
    )


TELLINGS_EASTERN: tuple[Telling, ...] = (
    _eastern(rf"我们?(?:现在|現在|目前|一直)?住在{_U}", "home", "place"),
    _eastern(rf"我们?(?:已经|已經|刚刚?|剛剛?|最近|上个?月|去年)?搬(?:家)?到了?{_U}了?", "home", "place"),
    _eastern(rf"我(?:的名字)?叫(?:做)?{_U}", "name", "name"),
    _eastern(rf"我的名字是{_U}", "name", "name"),
    _eastern(rf"我的?生日(?:是|在){_U}", "birthday", "date"),
    _eastern(rf"我对{_U}过敏", "allergy", "thing", "allergic"),
    _eastern(rf"我對{_U}過敏", "allergy", "thing", "allergic"),
    _eastern(rf"我(?:很|最|非常|特别|特別|一直)?(?:喜欢|喜歡|爱吃|愛吃|爱喝|愛喝){_U}", "like", "thing", "like"),
    _eastern(rf"我(?:很|最|非常|特别|特別)?(?:不喜欢|不喜歡|讨厌|討厭){_U}", "like", "thing", "dislike", may_deny=True),
    _eastern(rf"我(?:现在|現在)?在{_U}(?:工作|上班)", "work", "thing"),
    _eastern(rf"{_WATASHI}(?:今|現在)?は?、?{_U}に住んでい?(?:ます|る)(?:よ|ね)?", "home", "place"),
    _eastern(rf"{_WATASHI}(?:先月|去年|先週|最近)?、?{_U}に引っ越し(?:ました|た)(?:よ)?", "home", "place"),
    _eastern(rf"{_WATASHI_NO}名前は{_U}(?:です|だ|といいます|と言います)", "name", "name"),
    _eastern(rf"{_WATASHI_NO}誕生日は{_U}(?:です|だ)?", "birthday", "date"),
    _eastern(rf"{_WATASHI}{_U}が(?:大?好き)(?:です|だ)?(?:よ)?", "like", "thing", "like"),
    _eastern(rf"{_WATASHI}{_U}が(?:大?嫌い|苦手)(?:です|だ)?(?:よ)?", "like", "thing", "dislike"),
    _eastern(rf"{_WATASHI}{_U}アレルギー(?:です|だ|があります|がある)", "allergy", "thing", "allergic"),
    _eastern(rf"{_WATASHI}{_U}で働いてい?(?:ます|る)", "work", "thing"),
    _eastern(rf"(?:я|мы) (?:сейчас |теперь )?жив(?:у|ём|ем) (?:сейчас |теперь )?(?:в|на) {_V}", "home", "place"),
    _eastern(rf"(?:я |мы )?(?:недавно )?переехал[аи]? (?:в|на) {_V}", "home", "place"),
    _eastern(rf"(?P<who>(?:моя|мой|наш|наша) [а-яё]+) (?:сейчас )?живёт (?:в|на) {_V}", "home", "place"),
    _eastern(rf"меня зовут {_V}", "name", "title"),
    _eastern(rf"(?:мой день рождения|у меня день рождения) (?:[—–-] )?{_V}", "birthday", "date"),
    _eastern(rf"я (?:очень )?люблю {_V}", "like", "thing", "like"),
    _eastern(rf"я (?:не люблю|ненавижу) {_V}", "like", "thing", "dislike", may_deny=True),
    _eastern(rf"у меня аллергия на {_V}", "allergy", "thing", "allergic"),
    _eastern(rf"я (?:сейчас )?работаю в {_V}", "work", "title"),
)  # fmt: skip

NO_UNSPACED = re.compile(
    r"[你您我他她它这這那哪谁誰吗嗎呢吧]|什么|什麼|明[天日]|[来來][年月]|これ|それ|あれ|ここ|そこ|どこ|何|誰|[はがをもに]|\A[在被跟和把]|"
    r"あなた|君|彼|お前|\A(?:家|公司|学校|學校|外面|外地|线上)\Z"
)
"""What is neither a place nor a thing in Chinese or Japanese, or says more than one."""
NO_UNSPACED_PLACE = re.compile(r"[家边邊里裡楼樓]\Z|附近|一[个個]|楼[上下]")
NO_UNSPACED_NAME = re.compile(r"[你您我他她它吗嗎呢吧はがをもに]|什么|什麼|何|外[卖賣]|[车車了餐菜人]")
