"""A way in which people tell something of themselves, as a pattern, and what it says then. Pure.

How people tell of themselves in English. Data only; `rules.py` reads with it.
How people tell of themselves in Portuguese, Spanish, German and French: the simple forms. Data only.
How people tell of themselves in Chinese, Japanese and Russian: the simple forms. Data only.
"""

# ruff: noqa: RUF001
from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from core.store.facts import FactKind

Shape = Literal["place", "name", "title", "thing", "date", "number", "free"]
"""What the value must look like: a place or a name has a capital (unless nothing has); a thing is neither a pronoun nor
a whole story; a date is read; a number has digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactPattern:
    """`pattern`, without regard to case, fits a whole clause without its full stop; its groups: ``value``, perhaps
    ``who`` and ``when``.

    `what` names the attribute; empty: it contradicts nothing. `is_many`: several are true side by side, and what
    contradicts is another `stance` to the same thing.
    """

    pattern: str
    what: str
    shape: Shape
    kind: FactKind = "identity"
    is_many: bool = False
    stance: str = ""
    may_deny: bool = False


@cache
def fitting(pattern: str) -> re.Pattern[str]:
    """The pattern of a telling, made when it is first needed: a command that learns nothing need not wait for all."""
    return re.compile(pattern, re.IGNORECASE)


_WHEN = (
    r"(?P<when>[ ,]+(?:(?:in|on|since|during|at|last|this|yesterday|today|for|with|as|because|near|a|an|one|two|"
    r"three|four|five|six|[0-9]+ (?:day|week|month|year)s?|some|few|couple)\b.{0,60}))?"
)
"""What may follow a place; what of it is no time is passed over."""
KIN = (
    "sister|brother|mother|mom|mum|father|dad|daughter|son|wife|husband|partner|girlfriend|boyfriend|fiancée|fiancé|aunt|"
    "uncle|cousin|niece|nephew|grandmother|grandma|grandfather|grandpa|boss|manager|colleague|neighbour|neighbor|friend|"
    "best friend|flatmate|roommate|doctor|dentist|landlord|teacher|therapist|dog|cat|baby|kid|child"
)
KINDS_OF_KIN = tuple(KIN.split("|"))
_NAME = r"[A-ZÀ-ÖØ-Þ][\w’'-]*(?: [A-ZÀ-ÖØ-Þ][\w’'-]*){0,2}"
_OTHER = rf"(?P<who>(?:[Mm]y|[Oo]ur) (?:{KIN})(?: (?-i:{_NAME}))?|(?-i:{_NAME}))"
_OWNER = (
    rf"(?P<who>(?:[Mm]y|[Oo]ur) (?:{KIN})(?: (?-i:[A-ZÀ-ÖØ-Þ][\w-]*))?(?=[’']s )|"
    r"(?-i:[A-ZÀ-ÖØ-Þ][\w-]*)(?=[’']s )|[Mm]y)(?:[’']s)?"
)
_SELF = r"(?:I|we)"
_AM = r"(?:I am|I'm|I’m|im|we are|we're)"
_HAVE = r"(?:[’']ve| have)?"
_NOW = r"(?: now| currently| still| actually| just| recently| finally| also| both)?"
_VERY = r"(?: really| absolutely| just| always| actually| also| generally| usually| do| truly)*"
_VALUE = r"(?P<value>.{1,80}?)"
_NO_STATE = (
    r"(?!(?:in|at|on|out|with|under|none|wrong|broken|gone|dead|lost|stolen|fine|great|changed|different|secret|private|"
    r"being|getting|going|too|so|very|really)\b)"
)
_NO_MANNER = r"(?!(?:lot|bit|little|hard|tough|long|whole)\b)"
_SORT = r"(?!thing|part|one\b)[\w-]{2,20}(?: (?!about|of|in|at|with|to)[\w-]{2,20})?"
_TONGUE = (
    r"(?:(?-i:[A-Z][\w-]+)|english|german|french|spanish|portuguese|italian|dutch|russian|chinese|mandarin|cantonese|"
    r"japanese|korean|arabic|hindi|polish|turkish|swedish|greek|hebrew)"
)
_PROFESSION = (
    r"(?P<value>(?:[\w-]+ ){0,2}(?:engineer|developer|teacher|nurse|doctor|lawyer|student|designer|architect|chef|cook|"
    r"writer|journalist|musician|electrician|plumber|scientist|researcher|professor|accountant|pilot|photographer|"
    r"programmer|dentist|farmer|consultant|translator|baker|carpenter|mechanic|therapist|psychologist|artist|actor|"
    r"actress|freelancer|entrepreneur|librarian|pharmacist|veterinarian|vet|surgeon|midwife|economist|biologist|"
    r"physicist|chemist|mathematician|historian|firefighter|police officer|soldier|sailor|barista|waiter|waitress))"
)


def _telling(
    pattern: str, what: str, shape: Shape, kind: FactKind = "identity", stance: str = "", *, may_deny: bool = False
) -> FactPattern:
    """A telling without regard to case; with a `stance`, one of many."""
    return FactPattern(
        pattern=pattern,
        what=what,
        shape=shape,
        kind=kind,
        is_many=stance != "",
        stance=stance,
        may_deny=may_deny,
    )


TELLINGS: tuple[FactPattern, ...] = (
    _telling(
        rf"(?:{_SELF}{_HAVE}{_NOW}|just) (?:moved|relocated)(?: house)?(?: back)?(?: from .{{1,40}}?)? to {_VALUE}"
        rf"{_WHEN}", "home", "place",
    ),
    _telling(rf"{_SELF}{_NOW} (?:live|reside){_NOW} in {_VALUE}{_WHEN}", "home", "place"),
    _telling(rf"{_SELF}(?: have|'ve|’ve) (?:lived|been living) in {_VALUE}(?P<when> (?:since|for) .{{1,40}})", "home",
             "place"),
    _telling(rf"{_AM}{_NOW} (?:living|based) in {_VALUE}{_WHEN}", "home", "place"),
    _telling(rf"{_OTHER}(?:{_NOW} lives{_NOW} in|{_NOW} moved(?: back)? to) {_VALUE}{_WHEN}", "home", "place"),
    _telling(rf"{_AM} (?:originally )?from {_VALUE}", "from", "place"),
    _telling(rf"{_SELF} grew up in {_VALUE}", "from", "place"),
    _telling(r"my (?:first |full |real )?name(?:[’']s| is) (?P<value>.{1,60})", "name", "name"),
    _telling(r"(?:please |you can |just |everybody |everyone |people |friends )*calls? me (?P<value>.{1,40})",
             "name", "title"),
    _telling(rf"{_AM} called (?P<value>.{{1,40}})", "name", "name"),
    _telling(rf"(?:my|our) (?P<what>{KIN})(?:[’']s name)?(?:[’']s| is) (?:called|named) (?P<value>.{{1,40}})",
             "{what}", "name"),
    _telling(rf"(?:my|our) (?P<what>{KIN})(?:[’']s name)? is (?P<value>.{{1,40}})", "{what}", "title"),
    _telling(rf"{_OWNER} b(?:irth)?day(?:[’']s| is)(?: on)?(?: the)? (?P<value>.{{3,30}})", "birthday", "date"),
    _telling(r"I was born(?: on)?(?: the)? (?P<value>.{3,30})", "birthday", "date"),
    _telling(rf"{_OTHER} was born(?: on)?(?: the)? (?P<value>.{{3,30}})", "birthday", "date"),
    _telling(r"I was born in (?P<value>.{3,40})", "from", "place"),
    _telling(rf"{_AM} (?P<value>[0-9]{{1,3}})(?: years old)?", "age", "number"),
    _telling(rf"{_AM} (?:severely |very |highly |badly )?allergic to {_VALUE}", "allergy", "thing", stance="allergic"),
    _telling(rf"{_OTHER} is (?:severely |very )?allergic to {_VALUE}", "allergy", "thing", stance="allergic"),
    _telling(rf"{_AM} (?:an? )?(?P<value>vegan|vegetarian|pescatarian|lactose[- ]intolerant|gluten[- ]intolerant|"
             r"c(?:o?)eliac|diabetic|teetotal(?:ler)?)", "diet", "free"),
    _telling(r"I (?:don[’']?t|do not|never) (?:eat|drink) (?P<value>.{2,60})", "diet", "thing", stance="never",
             may_deny=True),
    _telling(rf"{_SELF}{_VERY} prefer {_VALUE} (?:over|to|rather than) .{{2,60}}", "like", "thing", stance="like"),
    _telling(rf"{_SELF}{_VERY} (?:like|love|enjoy|adore|prefer) {_VALUE}", "like", "thing", stance="like"),
    _telling(rf"{_SELF}{_VERY} (?:hate|dislike|detest|can[’']?t stand|cannot stand) {_VALUE}", "like", "thing",
             stance="dislike", may_deny=True),
    _telling(rf"{_SELF} (?:don[’']?t|do not) (?:really |much )?(?:like|enjoy|love) {_VALUE}(?: any ?more| anymore)?",
             "like", "thing", stance="dislike", may_deny=True),
    _telling(rf"{_OTHER} (?:really )?(?:likes|loves|enjoys|adores|prefers) {_VALUE}", "like", "thing", stance="like"),
    _telling(rf"{_OTHER} (?:really )?(?:hates|dislikes|detests) {_VALUE}", "like", "thing", stance="dislike"),
    _telling(rf"my (?:all-time )?favou?rite (?P<what>{_SORT}) (?:is|are) (?P<value>.{{2,60}})",
             "favourite|{what}", "thing"),
    _telling(rf"{_SELF}{_NOW} work (?:at|for) {_VALUE}{_WHEN}", "work", "thing"),
    _telling(rf"{_SELF}{_HAVE}{_NOW} started (?:working |work |a job )?(?:at|for) {_VALUE}{_WHEN}", "work", "thing"),
    _telling(rf"I(?:[’']ve| have)? (?:got|found|have)(?: an?| my)?(?: new)? job (?:at|with) {_VALUE}{_WHEN}", "work",
             "thing"),
    _telling(rf"{_SELF}{_NOW} work as (?:an? )?{_VALUE}{_WHEN}", "profession", "thing"),
    _telling(rf"{_AM}{_NOW} (?:working as )?(?:an? ){_PROFESSION}{_WHEN}", "profession", "free"),
    _telling(rf"{_OTHER} works (?:at|for) {_VALUE}{_WHEN}", "work", "thing"),
    _telling(rf"{_OTHER} (?:works as|is) (?:an? ){_PROFESSION}", "profession", "free"),
    _telling(r"my (?P<what>phone|mobile)(?: number)? is (?P<value>[0-9+() /-]{5,25})", "phone", "number"),
    _telling(r"my e-?mail(?: address)? is (?P<value>\S{3,80})", "email", "free"),
    _telling(rf"my (?P<what>address|shoe size|blood type|car|native language|nationality|hometown|postcode|employer|"
             rf"time ?zone|licence plate|license plate|height|hobby) is {_NO_STATE}(?P<value>.{{1,80}})", "{what}",
             "thing"),
    _telling(r"(?:I|we)(?: have|[’']ve got| have got) (?P<value>an?|one|two|three|four|five|six|[0-9]{1,2}) "
             r"(?P<what>kids?|children|child|sons?|daughters?|brothers?|sisters?|siblings?|dogs?|cats?|cars?)",
             "have|{what}", "free"),
    _telling(rf"I(?: now)? drive an? {_NO_MANNER}(?P<value>.{{2,40}}?)(?: now)?", "car", "thing"),
    _telling(rf"{_AM} (?:married to|engaged to|dating) {_VALUE}", "partner", "name"),
    _telling(rf"I(?: can)? speak (?P<value>{_TONGUE}(?:(?:,| and|,? and| &) {_TONGUE}){{0,4}})", "language", "free",
             stance="speaks"),
    _telling(rf"(?:we|I){_HAVE}{_NOW} (?:decided|agreed|settled)(?: not)?"
             r"(?: to| on| that| for| against| upon) (?P<value>.{3,200})", "", "free", "project", may_deny=True),
)  # fmt: skip

APPOSED = re.compile(
    rf"\b(?:[Mm]y|[Oo]ur) (?P<what>{KIN}),? (?P<value>[A-ZÀ-ÖØ-Þ][\w-]*(?: [A-ZÀ-ÖØ-Þ][\w-]*){{0,2}})"
    r"(?=,|[’']s\b| [a-z]|$)"
)
"""``my sister Ana``, wherever it stands."""

_SEVERAL = """
sister brother daughter son aunt uncle cousin niece nephew grandmother grandma grandfather grandpa colleague neighbour
neighbor friend flatmate roommate teacher dog cat baby kid child doctor
"""
MANY_KIN = frozenset(_SEVERAL.split())

_V = r"(?P<value>.{1,60}?)"
_PT_WHEN = r"(?P<when>,? (?:em|desde|no|na|há|ontem|hoje|com|perto)\b.{0,40})?"
_ES_WHEN = r"(?P<when>,? (?:en|desde|el|hace|ayer|hoy|con|cerca)\b.{0,40})?"
_DE_WHEN = r"(?P<when> (?:im|seit|am|letzten?|letztes|vor|gestern|heute)\b.{0,40}?)?"
_FR_WHEN = r"(?P<when>,? (?:en|depuis|le|au mois|il y a|hier|avec)\b.{0,40})?"


def _abroad(pattern: str, what: str, shape: Shape, stance: str = "", *, may_deny: bool = False) -> FactPattern:
    return FactPattern(
        pattern=pattern,
        what=what,
        shape=shape,
        is_many=stance != "",
        stance=stance,
        may_deny=may_deny,
    )


TELLINGS_ABROAD: tuple[FactPattern, ...] = (
    _abroad(rf"(?:eu )?(?:agora )?(?:moro|vivo|resido)(?: agora)? (?:em|no|na|nos|nas) {_V}{_PT_WHEN}", "home",
            "place"),
    _abroad(rf"(?P<who>(?:o meu|a minha|meu|minha) [a-zà-ü]+) (?:mora|vive) (?:em|n[oa]s?) {_V}{_PT_WHEN}", "home",
            "place"),
    _abroad(r"(?:eu )?faço anos (?:a|em|no dia|dia) (?P<value>.{3,30})", "birthday", "date"),
    _abroad(r"(?:eu )?sou (?P<value>vegetarian[oa]|vegan[oa]|celíac[oa])", "diet", "free"),
    _abroad(rf"(?:eu )?mudei(?:-me)? (?:para|pra) (?:o |a |os |as )?{_V}{_PT_WHEN}", "home", "place"),
    _abroad(r"(?:eu )?(?:chamo-me|me chamo)(?: de)? (?P<value>.{1,40})", "name", "title"),
    _abroad(r"(?:o )?meu nome é (?P<value>.{1,40})", "name", "title"),
    _abroad(r"(?:o )?meu aniversário é (?:a|em|no dia|dia)? ?(?P<value>.{3,30})", "birthday", "date"),
    _abroad(rf"(?:eu )?(?:gosto|adoro)(?: muito)?(?: de| do| da)? {_V}", "like", "thing", "like"),
    _abroad(rf"(?:eu )?(?:não gosto|nao gosto|odeio|detesto)(?: de| do| da)? {_V}", "like", "thing", "dislike",
            may_deny=True),
    _abroad(rf"(?:eu )?sou alérgic[oa] (?:a|ao|à|aos|às) {_V}", "allergy", "thing", "allergic"),
    _abroad(rf"(?:eu )?trabalho (?:na|no|para a|para o|para) {_V}{_PT_WHEN}", "work", "title"),
    _abroad(rf"(?:eu )?trabalho como {_V}", "profession", "thing"),
    _abroad(rf"(?:yo )?(?:ahora )?vivo(?: ahora)? en {_V}{_ES_WHEN}", "home", "place"),
    _abroad(rf"(?P<who>mi [a-záéíóúñ]+) vive(?: ahora)? en {_V}{_ES_WHEN}", "home", "place"),
    _abroad(r"soy (?P<value>vegetarian[oa]|vegan[oa]|celíac[oa])", "diet", "free"),
    _abroad(rf"(?:yo )?me mudé a {_V}{_ES_WHEN}", "home", "place"),
    _abroad(r"(?:yo )?me llamo (?P<value>.{1,40})", "name", "title"),
    _abroad(r"mi nombre es (?P<value>.{1,40})", "name", "title"),
    _abroad(r"mi cumpleaños es (?:el )?(?:día )?(?P<value>.{3,30})", "birthday", "date"),
    _abroad(rf"me (?:gustan?|encantan?)(?: mucho)? {_V}", "like", "thing", "like"),
    _abroad(rf"no me gustan? {_V}", "like", "thing", "dislike", may_deny=True),
    _abroad(rf"odio {_V}", "like", "thing", "dislike"),
    _abroad(rf"soy alérgic[oa] (?:a la|a los|a las|al|a) {_V}", "allergy", "thing", "allergic"),
    _abroad(rf"(?:yo )?trabajo (?:en|para) {_V}{_ES_WHEN}", "work", "title"),
    _abroad(rf"(?:yo )?trabajo como {_V}", "profession", "thing"),
    _abroad(rf"(?:ich (?:wohne|lebe)|wir (?:wohnen|leben))(?: jetzt| nun)?(?P<when> seit .{{2,20}}?)? in {_V}", "home",
            "place"),
    _abroad(rf"(?:ich (?:wohne|lebe)|wir (?:wohnen|leben))(?: jetzt| nun)? in {_V}{_DE_WHEN}", "home", "place"),
    _abroad(rf"(?P<who>(?:meine?|unsere?) [a-zäöüß]+) (?:wohnt|lebt)(?: jetzt)? in {_V}{_DE_WHEN}", "home", "place"),
    _abroad(r"ich habe am (?P<value>.{3,30}) geburtstag", "birthday", "date"),
    _abroad(r"ich (?:bin|wurde) am (?P<value>.{3,30}) geboren", "birthday", "date"),
    _abroad(r"ich bin (?P<value>vegetarier(?:in)?|veganer(?:in)?|vegan|vegetarisch)", "diet", "free"),
    _abroad(rf"ich bin{_DE_WHEN} nach {_V} (?:um)?gezogen", "home", "place"),
    _abroad(r"ich heiße (?P<value>.{1,40})", "name", "title"),
    _abroad(r"mein name ist (?P<value>.{1,40})", "name", "title"),
    _abroad(r"mein geburtstag ist (?:am )?(?P<value>.{3,30})", "birthday", "date"),
    _abroad(r"ich (?:mag|liebe)(?: sehr)? (?!kein|nicht)(?P<value>.{2,60})", "like", "thing", "like"),
    _abroad(rf"ich (?:mag keine?n?|hasse) {_V}", "like", "thing", "dislike", may_deny=True),
    _abroad(rf"ich bin allergisch (?:gegen|auf) {_V}", "allergy", "thing", "allergic"),
    _abroad(rf"ich arbeite (?:bei|für) {_V}{_DE_WHEN}", "work", "title"),
    _abroad(rf"ich arbeite als {_V}{_DE_WHEN}", "profession", "thing"),
    _abroad(rf"(?:j[’']habite|je vis)(?: maintenant)? (?:à|en|au|aux|dans le|dans la) {_V}{_FR_WHEN}", "home", "place"),
    _abroad(rf"(?P<who>(?:mon|ma) [a-zà-üœ]+) (?:habite|vit)(?: maintenant)? (?:à|en|au|aux) {_V}{_FR_WHEN}", "home",
            "place"),
    _abroad(r"je suis (?P<value>végétarien(?:ne)?|végane?|cœliaque)", "diet", "free"),
    _abroad(rf"j[’']ai déménagé (?:à|en|au) {_V}{_FR_WHEN}", "home", "place"),
    _abroad(r"je m[’']appelle (?P<value>.{1,40})", "name", "title"),
    _abroad(r"mon (?:pré)?nom est (?P<value>.{1,40})", "name", "title"),
    _abroad(r"mon anniversaire est (?:le )?(?P<value>.{3,30})", "birthday", "date"),
    _abroad(rf"(?:j[’']aime|j[’']adore)(?: beaucoup| bien)? (?:le |la |les |l[’'])?{_V}", "like", "thing", "like"),
    _abroad(rf"j(?:e n)?[’']aime pas (?:le |la |les |l[’'])?{_V}", "like", "thing", "dislike", may_deny=True),
    _abroad(rf"je déteste (?:le |la |les |l[’'])?{_V}", "like", "thing", "dislike"),
    _abroad(rf"je suis allergique (?:à la|à l[’']|aux|au|à) ?{_V}", "allergy", "thing", "allergic"),
    _abroad(rf"je travaille (?:chez|pour) {_V}{_FR_WHEN}", "work", "title"),
    _abroad(rf"je travaille comme {_V}", "profession", "thing"),
)  # fmt: skip

MONTHS_ABROAD = {
    "january": "janeiro enero januar janvier января", "february": "fevereiro febrero februar février февраля",
    "march": "março marzo märz mars марта", "april": "abril avril апреля", "may": "maio mayo mai мая",
    "june": "junho junio juni juin июня", "july": "julho julio juli juillet июля", "august": "agosto août августа",
    "september": "setembro septiembre septembre сентября", "october": "outubro octubre oktober octobre октября",
    "november": "novembro noviembre novembre ноября", "december": "dezembro diciembre dezember décembre декабря",
}  # fmt: skip
"""By their English names."""

LEADS_ABROAD = {
    "since": "desde seit depuis",
    "in": "em en no im",
    "on": "am el le",
    "yesterday": "ontem ayer gestern hier",
    "today": "hoje hoy heute",
}
"""What stands before a time, and days, by their English words."""

_ANY = r"(?P<value>.{1,60}?)"
_U = r"(?P<value>[^\s，。、,.]{1,20}?)"
_WATASHI = r"(?:(?:私|わたし|僕|ぼく|俺)は、?)?"
_WATASHI_NO = r"(?:(?:私|わたし|僕|ぼく|俺)の)?"


def _eastern(pattern: str, what: str, shape: Shape, stance: str = "", *, may_deny: bool = False) -> FactPattern:
    return FactPattern(
        pattern=pattern,
        what=what,
        shape=shape,
        is_many=stance != "",
        stance=stance,
        may_deny=may_deny,
    )


TELLINGS_EASTERN: tuple[FactPattern, ...] = (
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
    _eastern(rf"(?:я|мы) (?:сейчас |теперь )?жив(?:у|ём|ем) (?:сейчас |теперь )?(?:в|на) {_ANY}", "home", "place"),
    _eastern(rf"(?:я |мы )?(?:недавно )?переехал[аи]? (?:в|на) {_ANY}", "home", "place"),
    _eastern(rf"(?P<who>(?:моя|мой|наш|наша) [а-яё]+) (?:сейчас )?живёт (?:в|на) {_ANY}", "home", "place"),
    _eastern(rf"меня зовут {_ANY}", "name", "title"),
    _eastern(rf"(?:мой день рождения|у меня день рождения) (?:[—–-] )?{_ANY}", "birthday", "date"),
    _eastern(rf"я (?:очень )?люблю {_ANY}", "like", "thing", "like"),
    _eastern(rf"я (?:не люблю|ненавижу) {_ANY}", "like", "thing", "dislike", may_deny=True),
    _eastern(rf"у меня аллергия на {_ANY}", "allergy", "thing", "allergic"),
    _eastern(rf"я (?:сейчас )?работаю в {_ANY}", "work", "title"),
)  # fmt: skip

NO_UNSPACED = re.compile(
    r"[你您我他她它这這那哪谁誰吗嗎呢吧]|什么|什麼|明[天日]|[来來][年月]|これ|それ|あれ|ここ|そこ|どこ|何|誰|[はがをもに]|\A[在被跟和把]|"
    r"あなた|君|彼|お前|\A(?:家|公司|学校|學校|外面|外地|线上)\Z"
)
"""What is neither a place nor a thing in Chinese or Japanese, or says more than one."""
NO_UNSPACED_PLACE = re.compile(r"[家边邊里裡楼樓]\Z|附近|一[个個]|楼[上下]")
NO_UNSPACED_NAME = re.compile(r"[你您我他她它吗嗎呢吧はがをもに]|什么|什麼|何|外[卖賣]|[车車了餐菜人]")
