"""How people tell of themselves in Portuguese, Spanish, German and French: the simple forms. Data only.

As in `tellings.py` a clause must be one of these as a whole.
"""

from __future__ import annotations

from core.facts.patterns import Shape, Telling

_V = r"(?P<value>.{1,60}?)"
_PT_WHEN = r"(?P<when>,? (?:em|desde|no|na|há|ontem|hoje|com|perto)\b.{0,40})?"
_ES_WHEN = r"(?P<when>,? (?:en|desde|el|hace|ayer|hoy|con|cerca)\b.{0,40})?"
_DE_WHEN = r"(?P<when> (?:im|seit|am|letzten?|letztes|vor|gestern|heute)\b.{0,40}?)?"
_FR_WHEN = r"(?P<when>,? (?:en|depuis|le|au mois|il y a|hier|avec)\b.{0,40})?"


def _abroad(pattern: str, what: str, shape: Shape, stance: str = "", *, may_deny: bool = False) -> Telling:
    return Telling(
        pattern=pattern,
        what=what,
        shape=shape,
        is_many=stance != "",
        stance=stance,
        may_deny=may_deny,
    )


TELLINGS_ABROAD: tuple[Telling, ...] = (
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
