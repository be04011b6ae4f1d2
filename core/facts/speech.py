"""Words that turn what is said: numbers and months in words, denials, what asks to be remembered, a yes. Data only.

In several languages; used to tell whether somebody has said a thing, never to find out what it means.
"""

from __future__ import annotations

import re
from functools import cache

from core.dates.scanner import MONTHS
from core.facts.patterns import MONTHS_ABROAD

_COUNTED = (
    "one first um uma primeiro un una uno primero ein eine eins erste ersten une premier один первого",
    "two second dois duas segundo dos zwei zweite zweiten deux deuxième два две второго",
    "three third três terceiro tres tercero drei dritte dritten trois troisième три третьего",
    "four fourth quatro quarto cuatro cuarto vier vierte vierten quatre quatrième четыре четвертого",
    "five fifth cinco quinto fünf fünfte fünften cinq cinquième пять пятого",
    "six sixth seis sexto sechs sechste sechsten sixième шесть шестого",
    "seven seventh sete sétimo siete séptimo sieben siebte siebten sept septième семь седьмого",
    "eight eighth oito oitavo ocho octavo acht achte achten huit huitième восемь восьмого",
    "nine ninth nove nono nueve noveno neun neunte neunten neuf neuvième девять девятого",
    "ten tenth dez décimo diez zehn zehnte zehnten dix dixième десять десятого",
    "eleven eleventh onze once elf elfte elften одиннадцать", "twelve twelfth doze doce zwölf zwölfte douze двенадцать",
    "thirteen thirteenth treze trece dreizehn treize", "fourteen fourteenth catorze catorce vierzehn quatorze",
    "fifteen fifteenth quinze quince fünfzehn", "sixteen sixteenth dezasseis dieciséis sechzehn seize",
    "seventeen seventeenth", "eighteen eighteenth", "nineteen nineteenth", "twenty twentieth vinte veinte zwanzig",
    "twenty-first", "twenty-second", "twenty-third", "twenty-fourth", "twenty-fifth", "twenty-sixth", "twenty-seventh",
    "twenty-eighth", "twenty-ninth", "thirty thirtieth trinta treinta dreißig trente тридцать", "thirty-first",
)  # fmt: skip
PARTS_OF_AN_HOUR = {
    "half": 30,
    "halb": 30,
    "meia": 30,
    "media": 30,
    "demie": 30,
    "quarter": 15,
    "viertel": 15,
    "半": 30,
}
_RUSSIAN_MONTHS = "январ феврал март апрел май июн июл август сентябр октябр ноябр декабр"
HAN_DIGITS = "〇一二三四五六七八九"
"""Each at its value."""


@cache
def numbers() -> dict[str, int]:
    """Numbers and ordinals in words, of a few languages."""
    return {word: number for number, words in enumerate(_COUNTED, 1) for word in words.split()}


@cache
def months() -> tuple[tuple[str, ...], ...]:
    """How the names of the months begin, January first."""
    russian = _RUSSIAN_MONTHS.split()
    return tuple(
        (month, *MONTHS_ABROAD[month].split(), russian[place], *(("мая",) if month == "may" else ()))
        for place, month in enumerate(MONTHS)
    )


DENIED = re.compile(
    r"\b(?:not|never|cannot|neither|nor|none|nobody|não|nao|nunca|nem|nicht|kein\w*|nie|niemals|ne|pas|jamais|non|ni|"
    r"tampoco|не|нет|ни|никогда|niet|geen|değil|yok|ليس|لا|لم|لن|नहीं|"
    r"(?<!moro )(?<!mora )(?<!vivo )(?<!vive )(?<!trabalho )(?<!trabalha )(?<!nasci )(?<!estou )no)\b|n['’]t\b|"
    r"\b(?:dont|wont|cant|isnt|arent|doesnt)\b|不|没|沒|無い|ない|ません|なかった|않|안 |못 |아니",
    re.IGNORECASE,
)
"""A word of denial. In Portuguese one lives "no Porto"."""
TURNED_AWAY = re.compile(
    r"\b(?:without|avoids?|dislikes?|hates?|detests?|stop\w*|quit\w*|refus\w*|former(?:ly)?|ex|intoleran\w*|allerg\w*|"
    r"free|anymore|no longer|used to|left|lost|lacks?|except|instead|against|ohne|sem|sin|sans|без|alérgic\w*|odei\w*|"
    r"odi\w*|déteste\w*|hass\w*|mag kein\w*)\b|苦手|嫌い|过敏|過敏|讨厌|討厭|아니|싫",
    re.IGNORECASE,
)
"""What says no without a word of denial, on the one side or the other."""
KEPT_IN_MIND = re.compile(
    r"(?:don['’]?t|do not|never|please)\s+forget|nicht vergessen|vergiss\s+(?:bitte\s+)?nicht|no (?:te )?olvides|"
    r"não (?:te )?esque\w+|n['’]oublie\w*\s+pas|не забудь\w*|别忘了?|別忘了?|忘れないで|잊지",
    re.IGNORECASE,
)
"""A denial that asks to be remembered."""
NO_AT_FIRST = re.compile(r"\A\s*(?:no|nope|nein|não|non|нет|不是?|不|いいえ|いや|아니)[,.!，。、 ]+", re.IGNORECASE)
REQUESTED = re.compile(
    r"\A\W*(?:(?:can|could|would|will) you|please|kannst du|könntest du|könnten sie|peux-tu|pouvez|pourr|puedes|"
    r"podrías|podes|pode|poderia|можешь|можете|帮|請|请|記住|记住|覚え)|remember|\bnote\b|keep in mind|merk|"
    r"record[ae]|lembr|souviens|запомни|记得|記得|覚えて|기억",
    re.IGNORECASE,
)
"""A question that asks for something to be done, and states what it is about."""
SUPPOSED = re.compile(
    r"\A\W*(?:if|wenn|falls|unless|suppose|imagine|what if|si|se|caso|если|бы|要是|如果|假如|もし|만약)\b",
    re.IGNORECASE,
)
AFFIRMED = re.compile(
    r"\A\W*(?:yes|yeah|yep|yup|correct|right|exactly|indeed|sure|ok|okay|that['’]?s right|ja|jawohl|genau|stimmt|"
    r"richtig|oui|exact\w*|sí|si|claro|correcto|exacto|sim|certo|isso|correto|да|верно|точно|именно|是的?|对的?|對的?|嗯|没错|"
    r"はい|うん|ええ|そう\w*|네|응|맞\w*|نعم)(?!\w)",
    re.IGNORECASE,
)
AFFIRMED_WORDS = 5
"""A longer message says something itself."""
OTHER_SUBJECT = re.compile(
    r"\A\W*(?:(?:and|but|so|well|hi|hey)[, ]+)?(?:"
    r"(?P<kin>(?:my|our|meine?|unser\w*|o meu|a minha|meu|minha|mi|mon|ma|мой|моя)\s+[^\W\d_]{3,})\s+"
    r"(?!is\b|are\b|ist\b|é\b|es\b|est\b|name\b)|"
    r"(?P<pronoun>he|she|they|his|her|their|er|elle|ele|ela|él|ella|он|она|они)\s|"
    r"(?!I |It |We |My |This |That |What |Who |There |Here )(?P<name>(?-i:[A-ZÀ-Þ][\w-]+))\s"
    r"(?:is|has|was|lives|works|likes|loves|hates|moved|got|ist|hat|wohnt|arbeitet|mag|est|habite|aime|es|tiene|vive|mora|tem|é)\b|"
    r"(?P<unspaced>我(?:的)?(?:妹妹|姐姐|弟弟|哥哥|妈妈|爸爸|老公|老婆|朋友|同事|女儿|儿子|老板|媽媽|女兒|兒子)|他们?|她们?|妹|弟|姉|兄|母|父|"
    r"友達|彼女?))",
    re.IGNORECASE,
)
"""A clause that begins with somebody else than who speaks."""
OF_ANOTHER = re.compile(r"\b(?!(?:It|That|What|Who|Here|There|Let|He|She)['’])([A-ZÀ-Þ][\w-]+)['’]s\b")
"""What is somebody else's."""
NAMED = re.compile(
    r"\b(?:I['’]?m|I am|this is|it['’]s|ich bin|hier ist|je suis|c['’]est|soy|sou|aqui é|я)\s|我是|私は|です",
    re.IGNORECASE,
)
"""How somebody tells his name without saying that it is one."""
RELATIVE = re.compile(
    r"\b(?:yesterday|today|tomorrow|tonight|ago|last|next|this|since|weekend|monday|tuesday|wednesday|thursday|friday|"
    r"saturday|sunday|gestern|heute|morgen|letzt\w*|nächst\w*|diese\w*|vor|seit|hier|aujourd|demain|derni\w+|prochain\w*|"
    r"depuis|ayer|hoy|mañana|pasad\w+|próxim\w+|desde|hace|ontem|hoje|amanhã|passad\w+|há|вчера|сегодня|завтра|прошл\w+|"
    r"следующ\w+|назад)\b|昨|今|明|去年|前年|来|先|上个?月|上周|下个?月|下周|어제|오늘|내일|지난|다음",
    re.IGNORECASE,
)
"""A moment told from the day on which it is said, so that its date may be told in figures that nobody has said."""
NOBODY_IN_PARTICULAR = frozenset(("person", "user", "writer", "speaker", "human", "they", "he", "she", "i", "me"))
HANDED_OVER = re.compile(
    r"(?:(?:please|pls|can you|could you)\s+)?(?:translate|correct|fix|rewrite|rephrase|paraphrase|proofread|improve|"
    r"summari[sz]e|edit|check|explain|analy[sz]e|write|draft|answer|reply|übersetze|korrigiere|traduz|traduza|corrige|"
    r"traduce|traduis|corrija)\b[^:]*:(?:\s|\Z)|from:|subject:|dear\b|sehr geehrte|cher |estimad|betreff:|assunto:",
    re.IGNORECASE,
)
"""How a sentence begins behind which a text is handed over, which is somebody's."""
ORDERED = re.compile(
    r"\A\W*(?:(?:please|bitte|can you|could you)\s+)*(?:write|draft|compose|tell|give|show|find|search|book|explain|"
    r"summari[sz]e|translate|generate|create|list|suggest|recommend|schreib\w*|erzähl\w*|écri\w+|raconte\w*|escrib\w+|"
    r"escrev\w+|cuénta\w*|conta\w*|напиши\w*|расскажи\w*)\b(?:[ -](?:me|us|mir|uns|moi|nous|мне|нам)\b)?|"
    r"\A\W*(?:请|幫|帮)?[写寫]",
    re.IGNORECASE,
)
"""How a clause begins that wants something done; what follows is of who speaks only where it says so."""
TO_THE_ASSISTANT = re.compile(
    r"\A\W*(?:your|you are|you['’]re|I(?:['’]ll| will| want to)? call you|dein\w*|du (?:bist|heißt)|ich nenne dich|ton|"
    r"tu (?:es|t['’]appelles|nombre|eres)|eres|o teu|tu és|você é|твоё|тебя зовут|ты)\b|\A\W*(?:你|妳|您|あなた|君)",
    re.IGNORECASE,
)
"""A clause that is about whom it is said to."""
SAYING = re.compile(
    r"(?:want\w* to|(?:would|['’]d) (?:like|love) to|would|should) (?:\w+ )?"
    r"(?:say|tell|add|mention|let you know|point out)\b|"
    r"\b(?:möchte|wollte) (?:nur |noch |dir |auch )*(?=.*(?:sagen|erwähnen|anmerken))|"
    r"(?:voudrais|veux) (?:te |vous |juste )*(?:dire|préciser|ajouter)|"
    r"(?:quiero|quisiera) (?:decir\w*|contar\w*|que sepas)|(?:quero|queria) (?:dizer\w*|contar\w*|que saibas)|"
    r"(?:хочу|хотел\w*)(?: \w+)? сказать|想(?:跟你|和你)?[告说說讲講]",
    re.IGNORECASE,
)
"""A wish to say something, which says it."""
_UNREAL = re.compile(
    r"\b(?:might|maybe|perhaps|possibly|almost|nearly|wish|dream\w*|pretend\w*|kidding|joking|considering|"
    r"(?:want\w*|plan\w*|going|intend\w*|hop\w+|(?:would|['’]d) (?:like|love)) to|thinking (?:of|about)|"
    r"(?:should|could|would|['’]d) (?:move|live|work|be|become|start)|"
    r"vielleicht|möchte\w*|würde\w*|könnte\w*|hoffe|plane|träum\w*|"
    r"peut-être|voudrai\w*|aimerai\w*|veux|espère|rêve|quiero|quisiera|gustaría|quizás?|ojalá|tal vez|casi|sueño|"
    r"quero|queria|gostaria|talvez|oxalá|quase|sonho|"
    r"хочу|хотел\w*|мечтаю|возможно|наверное|может быть|планирую|собираюсь|надеюсь)\b|['’]d (?:like|love) to|"
    r"想(?!念|起|到)|希望|可能|也许|也許|打算|计划|計劃|差点|たい(?:です|な|と|。|\Z)|かもしれ|つもり|予定",
    re.IGNORECASE,
)
_HEARSAY = re.compile(
    r"\b(?:people|everyone|everybody|they|he|she|someone|somebody|(?-i:[A-ZÀ-Þ][\w-]+)) "
    r"(?:says?|said|thinks?|thought|believes?|believed|claims?|claimed|assumes?|sagt|sagte|meint|glaubt|dit|dice|cree|diz|"
    r"acha)\b",
    re.IGNORECASE,
)
_OVER = re.compile(
    r"\b(?:used to|formerly|I (?:once |also |previously )?(?:lived|worked (?:at|for|in|as)|"
    r"was (?:an?|living|working|based|allergic|married|vegan|vegetarian))|früher|damals|wohnte|lebte|arbeitete|"
    r"autrefois|habitais|vivais|travaillais|vivía|trabajaba|antigamente|dantes|morava|vivia|trabalhava|раньше|жила?|"
    r"работала?)\b|以前|曾经|曾經|住过|住過|昔|ていた|ていました",
    re.IGNORECASE,
)
MOODS = (
    (
        _UNREAL,
        re.compile(
            r"\b(?:wants?|wish\w*|hop(?:es?|ing)|plan\w*|may|might|maybe|perhaps|possibly|would|could|should|consider\w*|"
            r"intend\w*|dream\w*|going to|future|next|almost|nearly|thinking|interested|looking|moving|leaving|"
            r"starting|becoming|joining|getting|möchte|will|plant|hofft|träumt|vielleicht|veut|souhaite|aimerait|voudrait|quiere|desea|quer|deseja|planea|хочет|планирует|"
            r"собирается|мечтает)\b|想|希望|可能|打算|计划|計劃|たい|予定|つもり",
            re.IGNORECASE,
        ),
    ),
    (_HEARSAY, _HEARSAY),
    (
        _OVER,
        re.compile(
            r"\b(?:used|was|were|lived|worked|had|former\w*|previous\w*|until|past|ago|before|früher\w*|ehemal\w*|wohnte|"
            r"lebte|arbeitete|war|bis|anci\w+|avant|étai\w*|habitai\w*|vivai\w*|travaillai\w*|vivía|trabajaba|era|antes|"
            r"ex|morava|trabalhava|vivia|раньше|жила?|работала?|был\w?|бывш\w*)\b|以前|曾|过|過|昔|いた|いました|した",
            re.IGNORECASE,
        ),
    ),
)
"""How a clause says that something is wished for or uncertain, only said by others, or over; and how a statement says
so too."""
