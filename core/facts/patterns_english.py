"""How people tell of themselves in English. Data only; `rules.py` reads with it.

A clause must be one of these from its first word to its last: a sentence that says more is left to a model.
"""

from __future__ import annotations

import re

from core.facts.patterns import Shape, Telling
from core.records import FactKind

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
) -> Telling:
    """A telling without regard to case; with a `stance`, one of many."""
    return Telling(
        pattern=pattern,
        what=what,
        shape=shape,
        kind=kind,
        is_many=stance != "",
        stance=stance,
        may_deny=may_deny,
    )


TELLINGS: tuple[Telling, ...] = (
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
