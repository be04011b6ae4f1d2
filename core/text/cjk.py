"""The terms of a run of an unspaced script: what the chunk index holds of it, and what a question asks of it. Pure.

Runs are folded (see `folding.py`). Without a dictionary words cannot be told apart; so pairs of neighbours count, for
Han also each character, for Thai and its neighbours pairs of syllables. Of a question the words that only ask or join
are cut out first, or ``什么时候`` and ``はどうなった`` would outweigh what is asked for.

Words of scripts without spaces that ask, join or point, and say nothing of what is looked for. Data only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from operator import add

CHINESE = """
什么时候 什么样 什么 怎么样 怎么办 怎么回事 怎么 怎样 为什么 为何 如何 哪里 哪儿 哪天 哪个 哪些 哪家 哪一 哪位 哪 谁
多少 多久 多长 多大 几点 几号 几天 几次 几个 几月 几年 几岁 几时 第几 几 是不是 有没有 能不能 要不要 会不会 可不可以
对不对 行不行 好不好 啥 咋 我们 你们 他们 她们 它们 咱们 大家 我 你 您 他 她 它 这个 那个 这些 那些 这里 那里 这样
那样 这么 那么 这次 那次 这 那 上次 上回 之前 后来 最后 当时 现在 已经 还是 还有 没有 不是 就是 但是 因为 所以 如果
然后 的话 时候 一下 一个 关于 到底 究竟 可以 应该 是否 请问 帮我 告诉 记得 知道 想知道 说过 提过 聊过 讲过 讨论过
周几 星期几 礼拜几 提到 说的 来着 吗 呢 吧 啊 呀 嘛 哦 喔 啦 的 了 着 是 嘅 咗 喺 唔 边度 边个 点解 乜嘢
"""
"""The last eight are Cantonese."""

CHINESE_KEPT = """
目的 的士 的确 标的 了解 了不起 明了 为了 是非 他人 其他 自我 着急 着火 着装 沉着 几何 茶几 吧台 酒吧 网吧 贴吧 那霸
"""

PLAIN_HAN = frozenset(
    "的了着是在有和与跟及或把被给让从对向到去来要会能想都也就才还很太最更不没无上下中里外前后左右大小多少一二三四五六七八九十个次"
    "年月日号天时分点得地过说看用做作打出入为以之其所可但因于而们这那我你他她它何谁人事物样种么什吗呢吧啊"
)
"""Single characters that are part of too many words to say anything alone."""

JAPANESE = """
いつ どこ だれ なに なん なんで どう どの どれ どんな どうして なぜ いくら いくつ どうやって どちら 何时 何日 何曜日
何月 何年 何番 何回 何人 何度 何分 何名 何个 何故 何で 何を 何が 何に 何の 何と 何 谁 でした ました です ます だった
でしょう だろう っけ ますか ですか でしょうか ください 下さい 教えて おしえて ている ていた ています ていました
ておく ておいて てある って言ってた と言ってた と言っていた と言われた って これ それ あれ この その あの ここ そこ
あそこ こと もの ところ とき ため ような ように という について として する した して しました します される された
なった なる なります いる いた あった ある あります ありました れた られた くれる くれた もらう もらった あげる
あげた だっけ だったっけ でしたっけ ましたっけ さん ちゃん
"""

PARTICLES = """
は が を に で と も の へ や から まで より には では とは のは のが のを のに へは からは までに とも にも でも
だけ しか ほど など って ね よ な か
"""
"""Between two words in Japanese."""

KOREAN = """
그 이 저 그럼 그때 그거 이거 저거 나 내 제 저희 우리 우리가 너 있어 있었지 있었어 있다 있는 있나 있죠 했지 했어 했나
했더라 했다 하는 하는지 했는지 한 해 해야 하지 하기로 할 하고 돼 돼야 되는 된 됐어 됐지 것 거 게 때 수 좀 다시
그리고 때문에 대해 대한 관련 알려 알려줘 줘 주세요 말해 말해줘
"""

KOREAN_ASKING = """
뭐 뭘 무엇 언제 어디 누구 누가 얼마 며칠 어떻 어떤 어땠 어때 어느 무슨 몇 왜
"""
"""Whatever ending hangs on them."""

KOREAN_ENDINGS = """
에서는 에서 에게 한테 으로 로 까지 까지야 부터 처럼 보다 이랑 랑 이나 은 는 이 가 을 를 의 에 와 과 도 만 야 이야
였지 이었지 이에요 예요 인가 인지 인가요 이죠 입니다 입니까 이라고 라고 이었어 였어 였나 였나요 였죠 이었죠 했어
했지 했나 했더라 했다 했나요 했죠 하기로 하는 하고 해야 해서 합니다 했습니다 합니까 할 해 하면 하려면 하기 하나요
되나요 됐나요 나요 습니까
"""

THAI = """
อะไรบ้าง อะไร เมื่อไหร่ เมื่อไร ที่ไหน ตรงไหน วันไหน เดือนไหน ไหน กี่ ทําไม อย่างไร ยังไง เท่าไหร่ เท่าไร ใคร
หรือยัง หรือเปล่า หรือไม่ ไหม มั้ย แล้ว ของ ให้ ได้ ที่ ครับ ค่ะ คะ และ เรา ฉัน ผม คุณ เพราะ
"""

WHEN = """
什么时候 几点 几号 几月 周几 星期几 礼拜几 哪天 哪一天 何时 几时 多久 いつ 何日 何曜日 何月 언제 며칠 เมื่อ วันไหน กี่โมง
"""
"""Asks for a moment."""

MOMENTS = """
月 号 点 周 星期 礼拜 今天 明天 昨天 后天 前天 早上 上午 中午 下午 晚上 曜日 午前 午后 今日 昨日 明日 今年 去年 明年
요일 오전 오후 아침 저녁 오늘 내일 어제 월 일 시 โมง
"""
"""Terms of messages that say when something was."""

_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
_HIRAGANA = "\u3041-\u3096\u309d-\u309f"
_HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7fb"
_SOUTHERN = "\u0e01-\u0edf\u1000-\u109f\u1780-\u17dd\ua9e0-\ua9ff\uaa60-\uaa7f"

_SCRIPT = re.compile(f"([{_HANGUL}]+)|([{_SOUTHERN}]+)|[^{_HANGUL}{_SOUTHERN}]+")
_CLUSTER = re.compile(
    "[\u0e40-\u0e44\u0ec0-\u0ec4]?."
    "(?:[\u0e30-\u0e3a\u0e45\u0e47-\u0e4e\u0eb0-\u0ebd\u0ec8-\u0ece\u102b-\u1038\u103a-\u103e\u1056-\u1060\u17b4-\u17d1"
    "\u17d3\u17dd]|[\u1039\u17d2].)*"
)
"""A consonant with its vowels and tone marks (and what is written below it): about a syllable."""

_KANA = re.compile(f"[{_HIRAGANA}\u30a1-\u30ff]")
_ALIKE = re.compile(f"([{_HAN}]+)|([{_HIRAGANA}]+)|[^{_HAN}{_HIRAGANA}]+")
_LAST = re.compile("(?:んだ|のだ|のか|だ|か)$")
_OTHER = re.compile(f"[{_HANGUL}{_SOUTHERN}]")
_NOT_HAN = re.compile(f"[^{_HAN}]+")
_SINGLE = re.compile(f"[{_HAN}]")


def run_terms(run: str) -> list[str]:
    """The terms of a run as the index holds it."""
    if _OTHER.search(run) is None:
        return _eastern(run)
    terms: list[str] = []
    for match in _SCRIPT.finditer(run):
        if match[1]:
            terms += _korean(match[1])
        elif match[2]:
            terms += _pairs(_CLUSTER.findall(match[2]))
        else:
            terms += _eastern(match[0])
    return terms


def _eastern(run: str) -> list[str]:
    if len(run) < 2:
        return [run]
    return [*map(add, run, run[1:]), *_NOT_HAN.sub("", run)]


@lru_cache(maxsize=20_000)
def _korean(word: str) -> tuple[str, ...]:
    """Korean is written with spaces, so a run is a word with what hangs on it, and comes again."""
    stem = _korean_stem(word) if len(word) > 1 else ""
    return (*_pairs(word), *([stem] if len(stem) == 1 else []))


@lru_cache(maxsize=256)
def asked_terms(run: str) -> tuple[str, ...]:
    """The terms of a run as a question asks for them: without the words that only ask or join. Empty where nothing is
    left."""
    pairs: list[str] = []
    singles: list[str] = []
    for match in _SCRIPT.finditer(run):
        part = match[0]
        if match[1]:
            stem = _korean_stem(part)
            if _korean_filler().fullmatch(part) is None and _korean_filler().fullmatch(stem) is None:
                pairs += _pairs(part if len(part) < 3 else stem)
                singles += [stem] if len(stem) == 1 else []
        elif match[2]:
            for words in _any_of(THAI).split(part):
                pairs += _pairs(_CLUSTER.findall(words))
        elif _KANA.search(part):
            for words in _any_of(JAPANESE).split(part):
                _japanese(_LAST.sub("", words), pairs, singles)
        else:
            for words in _chinese().sub(_kept, part).split():
                pairs += _pairs(words)
                singles += _SINGLE.findall(words)
    return (*pairs, *(one for one in singles if one not in PLAIN_HAN))


def apart(terms: Sequence[str]) -> list[str]:
    """The terms without the single characters that stand in one of the pairs: these count, but it would be too much to
    show them too. ``给猫`` and ``母さ`` are no such pairs, for they are no words."""
    words = [term for term in terms if len(term) == 2 and PLAIN_HAN.isdisjoint(term) and not _NOT_HAN.search(term)]
    inside = set("".join(words))
    return [term for term in terms if term not in inside]


def asks_moment(text: str) -> bool:
    """Whether folded text asks for a moment in one of these scripts."""
    return not text.isascii() and _any_of(WHEN).search(text) is not None


def _japanese(words: str, pairs: list[str], singles: list[str]) -> None:
    """Of words with Kana: stretches of Han and of Katakana as they are; of Hiragana what is neither particle nor
    ending."""
    previous = ""
    for match in _ALIKE.finditer(words):
        part = match[0]
        if not match[2]:
            pairs += _pairs(part) if len(part) > 1 else []
            singles += _SINGLE.findall(part)
        else:
            rest = _particles().sub("", part, count=1) if previous else part
            if previous and rest == part:
                # The ending of a verb: its first sign tells 取り from 取る.
                pairs.append(previous + part[0])
            elif len(rest) > 1:
                pairs += _pairs(rest)
        previous = part[-1]


def _pairs(units: str | list[str]) -> list[str]:
    return [before + after for before, after in pairwise(units)] or list(units)


def _korean_stem(word: str) -> str:
    """A word without the particle or ending behind it; one letter only of a word of two."""
    for ending in _endings():
        if word.endswith(ending) and len(word) > len(ending) + (len(ending) == 1 and len(word) > 2):
            return word[: -len(ending)]
    return word


@lru_cache(maxsize=1)
def _endings() -> tuple[str, ...]:
    return tuple(sorted(KOREAN_ENDINGS.split(), key=len, reverse=True))


def _kept(match: re.Match[str]) -> str:
    return match[1] or " "


@lru_cache(maxsize=1)
def _chinese() -> re.Pattern[str]:
    return re.compile(f"({_any_of(CHINESE_KEPT).pattern})|{_any_of(CHINESE).pattern}")


@lru_cache(maxsize=1)
def _korean_filler() -> re.Pattern[str]:
    return re.compile(f"{_any_of(KOREAN).pattern}|(?:{_any_of(KOREAN_ASKING).pattern}).{{0,4}}")


@lru_cache(maxsize=1)
def _particles() -> re.Pattern[str]:
    return re.compile(f"^(?:{_any_of(PARTICLES).pattern})")


@lru_cache(maxsize=16)
def _any_of(words: str) -> re.Pattern[str]:
    return re.compile("|".join(sorted(words.split(), key=len, reverse=True)))
