"""Short messages about reminders, and everyday ones, in ten languages, as people write them."""

# ruff: noqa: RUF001

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from core.dates.schedule import Schedule
from core.scheduling.dialogue import decide
from core.scheduling.talk.steps import Dialogue, Move, Situation, Step
from core.store.jobs import Job
from core.text.terms import ShortMessage, find_short_message
from core.types import Account, Address, Scope
from tests.fixtures.tables import each_row

ZONE = ZoneInfo("Europe/Madrid")
NOW = datetime(2026, 3, 4, 11, 30, tzinfo=ZONE)
"""A Wednesday."""
DENTIST = {
    "en": "call the dentist",
    "de": "Zahnarzt anrufen",
    "fr": "appeler le dentiste",
    "es": "llamar al dentista",
    "pt": "ligar para o dentista",
    "ru": "позвонить стоматологу",
    "zh": "给牙医打电话",
    "ja": "歯医者に電話",
    "ko": "치과에 전화하기",
    "tr": "dişçiyi ara",
}
PLANTS = {
    "en": "water the plants",
    "de": "Blumen gießen",
    "fr": "arroser les plantes",
    "es": "regar las plantas",
    "pt": "regar as plantas",
    "ru": "полить цветы",
    "zh": "浇花",
    "ja": "植物に水をやる",
    "ko": "화분에 물 주기",
    "tr": "çiçekleri sula",
}

# The messages by language and by the step that they lead to.
REQUESTS = {
    Move.LIST: {
        "en": [
            "what reminders do I have?",
            "show my reminders",
            "which reminders are set?",
            "list my reminders please",
            "do I have any reminders?",
            "what's on my reminder list?",
            "what are you going to remind me about?",
        ],
        "de": [
            "welche Erinnerungen habe ich?",
            "zeig mir meine Erinnerungen",
            "zeig meine Erinnerungen",
            "was für Erinnerungen hab ich noch?",
            "habe ich noch Erinnerungen offen?",
            "liste meine Erinnerungen auf",
            "woran erinnerst du mich?",
        ],
        "fr": [
            "quels rappels ai-je ?",
            "montre mes rappels",
            "affiche mes rappels",
            "c'est quoi mes rappels ?",
            "j'ai des rappels ?",
            "liste mes rappels stp",
            "qu'est-ce que j'ai comme rappels ?",
        ],
        "es": [
            "¿qué recordatorios tengo?",
            "muestra mis recordatorios",
            "muéstrame mis recordatorios",
            "¿tengo recordatorios?",
            "lista mis recordatorios",
            "enséñame los recordatorios",
            "¿cuáles son mis recordatorios?",
        ],
        "pt": [
            "quais lembretes eu tenho?",
            "mostra meus lembretes",
            "quais são meus lembretes?",
            "tenho algum lembrete?",
            "lista meus lembretes",
            "me mostra os meus lembretes",
            "que lembretes tenho?",
        ],
        "ru": [
            "какие у меня напоминания?",
            "покажи мои напоминания",
            "покажи напоминания",
            "есть у меня напоминания?",
            "список напоминаний",
            "что у меня в напоминаниях?",
            "какие напоминания стоят?",
        ],
        "zh": [
            "我有哪些提醒？",
            "显示我的提醒",
            "看看我的提醒",
            "有什么提醒吗？",
            "列出我的提醒",
            "我设了哪些提醒",
            "把提醒都列出来",
        ],
        "ja": [
            "どんなリマインダーがある？",
            "リマインダーを見せて",
            "リマインダー一覧",
            "リマインダーはありますか？",
            "設定してあるリマインダーを教えて",
            "私のリマインダーは？",
            "リマインダー表示して",
        ],
        "ko": [
            "내 알림 뭐 있어?",
            "알림 보여줘",
            "내 리마인더 목록",
            "알림 목록 보여줘",
            "설정된 알림이 있어?",
            "어떤 알림이 있나요?",
            "리마인더 뭐 있어?",
        ],
        "tr": [
            "hangi hatırlatıcılarım var?",
            "hatırlatıcılarımı göster",
            "hatırlatmalarımı listele",
            "hatırlatıcım var mı?",
            "hatırlatmalarım neler?",
            "hatırlatıcıları göster",
            "ne hatırlatacaksın bana?",
        ],
    },
    Move.NEXT: {
        "en": [
            "when is my next reminder?",
            "what's my next reminder?",
            "what's the next reminder",
            "when's the next reminder due?",
        ],
        "de": [
            "wann ist meine nächste Erinnerung?",
            "was ist die nächste Erinnerung?",
            "wann kommt die nächste Erinnerung?",
            "was kommt als nächstes an Erinnerungen?",
        ],
        "fr": [
            "quand est mon prochain rappel ?",
            "c'est quand mon prochain rappel ?",
            "quel est le prochain rappel ?",
            "prochain rappel ?",
        ],
        "es": [
            "¿cuándo es mi próximo recordatorio?",
            "¿cuál es el próximo recordatorio?",
            "¿cuándo me toca el próximo recordatorio?",
            "próximo recordatorio",
        ],
        "pt": [
            "quando é meu próximo lembrete?",
            "qual é o próximo lembrete?",
            "qual o meu próximo lembrete?",
            "próximo lembrete",
        ],
        "ru": [
            "когда следующее напоминание?",
            "какое следующее напоминание?",
            "когда ближайшее напоминание?",
            "что у меня следующее из напоминаний?",
        ],
        "zh": [
            "下一个提醒是什么时候？",
            "我的下个提醒是什么？",
            "下一个提醒",
            "最近的提醒是几点？",
        ],
        "ja": [
            "次のリマインダーはいつ？",
            "次のリマインダーは何？",
            "次のリマインダー教えて",
            "次のリマインドは何時？",
        ],
        "ko": [
            "다음 알림 언제야?",
            "다음 알림이 뭐야?",
            "다음 리마인더는 언제예요?",
            "다음 알림 알려줘",
        ],
        "tr": [
            "bir sonraki hatırlatıcım ne zaman?",
            "sıradaki hatırlatma ne?",
            "sonraki hatırlatma ne zaman?",
            "sıradaki hatırlatıcım hangisi?",
        ],
    },
    Move.REMOVE: {
        "en": [
            "cancel the dentist",
            "delete the dentist reminder",
            "remove the reminder about the dentist",
            "forget about the dentist",
            "cancel my dentist reminder please",
            "I don't need the dentist reminder anymore",
        ],
        "de": [
            "lösche den Zahnarzt",
            "streich den Zahnarzt",
            "lösch die Erinnerung an den Zahnarzt",
            "den Zahnarzt kannst du löschen",
            "Zahnarzt absagen",
            "die Zahnarzt-Erinnerung brauche ich nicht mehr",
        ],
        "fr": [
            "annule le dentiste",
            "supprime le rappel du dentiste",
            "enlève le dentiste",
            "efface le rappel pour le dentiste",
            "tu peux annuler le dentiste ?",
            "je n'ai plus besoin du rappel dentiste",
        ],
        "es": [
            "cancela el dentista",
            "borra el recordatorio del dentista",
            "quita lo del dentista",
            "elimina el dentista",
            "puedes cancelar el dentista",
            "ya no necesito el recordatorio del dentista",
        ],
        "pt": [
            "cancela o dentista",
            "apaga o lembrete do dentista",
            "tira o dentista",
            "remove o lembrete do dentista",
            "pode cancelar o dentista?",
            "não preciso mais do lembrete do dentista",
        ],
        "ru": [
            "отмени стоматолога",
            "удали напоминание про стоматолога",
            "убери стоматолога",
            "отмени напоминание о стоматологе",
            "стоматолога можно отменить",
            "напоминание про стоматолога больше не нужно",
        ],
        "zh": [
            "取消牙医",
            "删除牙医的提醒",
            "把牙医的提醒取消",
            "牙医那个不用提醒了",
            "删掉牙医",
            "牙医的提醒不需要了",
        ],
        "ja": [
            "歯医者をキャンセルして",
            "歯医者のリマインダーを削除して",
            "歯医者のを消して",
            "歯医者は取り消し",
            "歯医者のリマインダーはもういらない",
            "歯医者の通知を消して",
        ],
        "ko": [
            "치과 취소해줘",
            "치과 알림 삭제해줘",
            "치과 알림 지워줘",
            "치과 거 취소",
            "치과 알림은 이제 필요 없어",
            "치과 리마인더 없애줘",
        ],
        "tr": [
            "dişçiyi iptal et",
            "dişçi hatırlatıcısını sil",
            "dişçi hatırlatmasını kaldır",
            "dişçiyi sil",
            "dişçi hatırlatmasına gerek yok artık",
            "dişçi hatırlatıcısını iptal eder misin",
        ],
    },
    Move.CHANGE: {
        "en": [
            "move it to 11",
            "change it to 11",
            "make it 11",
            "reschedule it to 11 am",
            "push it to 11",
            "can you move that to 11?",
        ],
        "de": [
            "verschieb es auf 11",
            "verschiebe das auf 11 Uhr",
            "mach 11 draus",
            "leg es auf 11 Uhr",
            "ändere es auf 11",
            "kannst du das auf 11 verschieben?",
        ],
        "fr": [
            "déplace-le à 11h",
            "décale à 11h",
            "mets-le à 11h",
            "reporte à 11h",
            "change pour 11h",
            "tu peux le décaler à 11h ?",
        ],
        "es": [
            "muévelo a las 11",
            "cámbialo a las 11",
            "pásalo a las 11",
            "ponlo a las 11",
            "mejor a las 11",
            "¿puedes moverlo a las 11?",
        ],
        "pt": [
            "muda para as 11",
            "passa para as 11h",
            "move para as 11",
            "coloca às 11",
            "muda isso pras 11",
            "pode mudar para as 11?",
        ],
        "ru": [
            "перенеси на 11",
            "перенеси это на 11",
            "сдвинь на 11",
            "поставь на 11",
            "измени на 11 часов",
            "можешь перенести на 11?",
        ],
        "zh": ["改到11点", "改成11点", "移到11点", "推迟到11点", "换到11点吧", "能改到11点吗"],
        "ja": [
            "11時に変更して",
            "11時にして",
            "11時にずらして",
            "11時に移動して",
            "11時に変えて",
            "11時に変更できる？",
        ],
        "ko": [
            "11시로 옮겨줘",
            "11시로 바꿔줘",
            "11시로 변경해줘",
            "11시로 미뤄줘",
            "11시로 해줘",
            "11시로 바꿀 수 있어?",
        ],
        "tr": [
            "11'e al",
            "11'e taşı",
            "saat 11'e ertele",
            "11 yap",
            "11'e değiştir",
            "11'e alabilir misin?",
        ],
    },
    Move.SNOOZE: {
        "en": ["snooze", "snooze it", "remind me later", "not now", "later", "snooze please"],
        "de": [
            "schlummern",
            "später",
            "erinner mich später nochmal",
            "jetzt nicht",
            "snooze",
            "später bitte",
        ],
        "fr": [
            "plus tard",
            "rappelle-moi plus tard",
            "pas maintenant",
            "snooze",
            "répète plus tard",
            "reporte",
        ],
        "es": ["más tarde", "luego", "ahora no", "snooze", "pospón", "posponer"],
        "pt": ["mais tarde", "depois", "agora não", "soneca", "adiar", "snooze"],
        "ru": ["позже", "потом", "не сейчас", "отложи", "напомни позже", "отложить"],
        "zh": ["稍后", "稍后提醒", "待会儿", "晚点再提醒我", "贪睡", "等会再说"],
        "ja": ["スヌーズ", "後で", "あとで", "後でもう一度", "今は無理", "スヌーズして"],
        "ko": [
            "나중에",
            "스누즈",
            "다시 알려줘",
            "나중에 다시 알려줘",
            "지금은 안 돼",
            "조금 이따가",
        ],
        "tr": ["ertele", "sonra", "daha sonra", "sonra hatırlat", "şimdi değil", "erteler misin"],
    },
}
EVERYDAY = {
    "time": {
        "en": [
            "what time is it",
            "what's the time?",
            "what time is it right now?",
            "can you tell me the time?",
            "what day is today?",
            "tell me the time please",
        ],
        "de": [
            "wie spät ist es?",
            "wie viel Uhr ist es?",
            "wie spät ist es gerade?",
            "kannst du mir sagen, wie spät es ist?",
            "welcher Tag ist heute?",
            "wie viel Uhr haben wir?",
        ],
        "fr": [
            "quelle heure est-il ?",
            "il est quelle heure ?",
            "quelle heure il est là ?",
            "tu peux me dire l'heure ?",
            "on est quel jour ?",
            "quel jour on est aujourd'hui ?",
        ],
        "es": [
            "¿qué hora es?",
            "¿qué hora es ahora?",
            "¿me dices la hora?",
            "dime la hora",
            "¿qué día es hoy?",
            "¿a qué día estamos?",
        ],
        "pt": [
            "que horas são?",
            "que horas são agora?",
            "me diz as horas",
            "pode me dizer as horas?",
            "que dia é hoje?",
            "qual é a data de hoje?",
        ],
        "ru": [
            "который час?",
            "сколько времени?",
            "сколько сейчас времени?",
            "подскажи время",
            "какой сегодня день?",
            "какое сегодня число?",
        ],
        "zh": [
            "几点了？",
            "现在几点？",
            "请问现在几点了",
            "今天几号？",
            "今天星期几？",
            "告诉我现在的时间",
        ],
        "ja": [
            "今何時？",
            "何時ですか？",
            "今何時か教えて",
            "今日は何日？",
            "今日は何曜日？",
            "現在の時刻を教えて",
        ],
        "ko": [
            "지금 몇 시야?",
            "몇 시예요?",
            "지금 몇 시인지 알려줘",
            "오늘 며칠이야?",
            "오늘 무슨 요일이야?",
            "시간 좀 알려줘",
        ],
        "tr": [
            "saat kaç?",
            "şu an saat kaç?",
            "saat kaç oldu?",
            "saati söyler misin?",
            "bugün günlerden ne?",
            "bugün ayın kaçı?",
        ],
    },
    "about_me": {
        "en": [
            "what do you know about me",
            "what do you know about me?",
            "what do you remember about me?",
            "so what do you know about me?",
            "what have you got on me?",
        ],
        "de": [
            "was weißt du über mich?",
            "was weißt du von mir?",
            "was hast du über mich gespeichert?",
            "was weißt du alles über mich?",
            "was hast du dir über mich gemerkt?",
        ],
        "fr": [
            "que sais-tu de moi ?",
            "qu'est-ce que tu sais sur moi ?",
            "que sais-tu sur moi ?",
            "tu sais quoi de moi ?",
            "qu'as-tu retenu de moi ?",
        ],
        "es": [
            "¿qué sabes de mí?",
            "¿qué sabes sobre mí?",
            "¿qué recuerdas de mí?",
            "¿qué tienes guardado sobre mí?",
            "dime qué sabes de mí",
        ],
        "pt": [
            "o que você sabe sobre mim?",
            "o que sabe de mim?",
            "o que você lembra sobre mim?",
            "o que você tem sobre mim?",
            "o que sabes sobre mim?",
        ],
        "ru": [
            "что ты знаешь обо мне?",
            "что ты обо мне знаешь?",
            "что ты помнишь обо мне?",
            "что тебе обо мне известно?",
            "что ты про меня знаешь?",
        ],
        "zh": [
            "你知道我什么？",
            "你了解我什么？",
            "你对我了解多少？",
            "你记得关于我的什么？",
            "你都知道我哪些事",
        ],
        "ja": [
            "私について何を知っている？",
            "私のこと何を知ってる？",
            "私について何を覚えていますか？",
            "僕のことを何を知っていますか？",
            "私のことどれくらい知ってる？",
        ],
        "ko": [
            "나에 대해 뭘 알아?",
            "나에 대해 뭐 알고 있어?",
            "나에 대해 무엇을 기억해?",
            "나에 대해 아는 거 있어?",
            "저에 대해 무엇을 알고 있나요?",
        ],
        "tr": [
            "benim hakkımda ne biliyorsun?",
            "hakkımda ne biliyorsun?",
            "benim hakkımda neler biliyorsun?",
            "benimle ilgili ne biliyorsun?",
            "benim hakkımda ne hatırlıyorsun?",
        ],
    },
    "abilities": {
        "en": [
            "what can you do",
            "what can you do for me?",
            "who are you?",
            "help",
            "how do you work?",
            "what are you good for?",
        ],
        "de": [
            "was kannst du?",
            "was kannst du alles?",
            "was kannst du für mich tun?",
            "wer bist du?",
            "Hilfe",
            "womit kannst du mir helfen?",
        ],
        "fr": [
            "que peux-tu faire ?",
            "tu sais faire quoi ?",
            "qu'est-ce que tu peux faire pour moi ?",
            "qui es-tu ?",
            "aide",
            "comment tu fonctionnes ?",
        ],
        "es": [
            "¿qué puedes hacer?",
            "¿qué sabes hacer?",
            "¿qué puedes hacer por mí?",
            "¿quién eres?",
            "ayuda",
            "¿cómo funcionas?",
        ],
        "pt": [
            "o que você pode fazer?",
            "o que você sabe fazer?",
            "o que você faz?",
            "quem é você?",
            "ajuda",
            "o que você pode fazer por mim?",
        ],
        "ru": [
            "что ты умеешь?",
            "что ты можешь?",
            "кто ты?",
            "помощь",
            "чем можешь помочь?",
            "что ты умеешь делать?",
        ],
        "zh": [
            "你能做什么？",
            "你会做什么？",
            "你是谁？",
            "帮助",
            "你能帮我做什么？",
            "你都会什么",
        ],
        "ja": [
            "何ができる？",
            "何ができますか？",
            "あなたは誰？",
            "ヘルプ",
            "何をしてくれるの？",
            "使い方を教えて",
        ],
        "ko": [
            "뭐 할 수 있어?",
            "무엇을 할 수 있나요?",
            "넌 누구야?",
            "도움말",
            "뭘 도와줄 수 있어?",
            "너 뭐 할 줄 알아?",
        ],
        "tr": [
            "ne yapabilirsin?",
            "neler yapabiliyorsun?",
            "sen kimsin?",
            "yardım",
            "bana nasıl yardımcı olabilirsin?",
            "ne işe yararsın?",
        ],
    },
    "greeting": {
        "en": ["hello", "hi!", "hey Mneme", "good morning!", "hello there", "hi mneme 👋"],
        "de": ["Hallo", "hi", "Guten Morgen!", "hallo Mneme", "Moin", "guten Abend 👋"],
        "fr": ["bonjour", "salut !", "bonsoir", "coucou", "bonjour Mneme", "hello"],
        "es": ["hola", "¡buenos días!", "buenas tardes", "hola Mneme", "buenas", "¡hola! 👋"],
        "pt": ["oi", "olá!", "bom dia", "boa noite", "oi Mneme"],
        "ru": ["привет", "здравствуйте!", "доброе утро", "привет, Mneme", "добрый день", "хай"],
        "zh": ["你好", "您好！", "早上好", "嗨", "你好 Mneme", "哈喽"],
        "ja": [
            "こんにちは",
            "おはよう",
            "こんばんは！",
            "やあ",
            "こんにちは、Mneme",
            "はじめまして",
        ],
        "ko": ["안녕", "안녕하세요!", "좋은 아침", "안녕 Mneme", "반가워", "하이"],
        "tr": ["merhaba", "selam", "günaydın!", "iyi akşamlar", "merhaba Mneme", "selam 👋"],
    },
    "thanks": {
        "en": [
            "thanks",
            "thank you!",
            "thanks a lot",
            "thanks Mneme",
            "ok thanks",
            "great, thank you",
        ],
        "de": ["danke", "danke dir!", "vielen Dank", "danke Mneme", "ok danke", "super, danke"],
        "fr": [
            "merci",
            "merci beaucoup !",
            "merci Mneme",
            "ok merci",
            "super, merci",
            "un grand merci",
        ],
        "es": [
            "gracias",
            "¡muchas gracias!",
            "gracias Mneme",
            "vale, gracias",
            "ok gracias",
            "perfecto, gracias",
        ],
        "pt": [
            "obrigado",
            "muito obrigada!",
            "valeu",
            "obrigado Mneme",
            "ok, obrigado",
            "brigadão",
        ],
        "ru": [
            "спасибо",
            "большое спасибо!",
            "спасибо, Mneme",
            "ок, спасибо",
            "благодарю",
            "спасибки",
        ],
        "zh": ["谢谢", "谢谢你！", "非常感谢", "好的，谢谢", "多谢了", "谢谢啦"],
        "ja": [
            "ありがとう",
            "ありがとうございます！",
            "どうも",
            "助かった、ありがとう",
            "ありがとね",
            "サンキュー",
        ],
        "ko": ["고마워", "감사합니다!", "고맙습니다", "고마워요", "응 고마워", "땡큐"],
        "tr": [
            "teşekkürler",
            "çok teşekkür ederim!",
            "sağ ol",
            "teşekkürler Mneme",
            "tamam, teşekkürler",
            "eyvallah",
        ],
    },
}

# Requests to move the reminder, without its name, to 11:00.
MOVES_OF_REMINDER = {
    "en": [
        "Set the reminder to 11",
        "Can you move my reminder to 11 am?",
        "Delay the reminder to 11",
    ],
    "de": [
        "Leg die Erinnerung auf 11 Uhr",
        "Stell die Erinnerung auf 11 Uhr",
        "Kannst du die Erinnerung auf 11 verschieben?",
    ],
    "fr": ["Mets le rappel à 11 h", "Passe le rappel à 11h", "Tu peux décaler le rappel à 11h ?"],
    "es": [
        "Cambia el recordatorio a las 11",
        "Pasa el recordatorio a las 11",
        "Mueve el recordatorio a las 11",
        "¿Puedes cambiar la hora del recordatorio a las 11?",
    ],
    "pt": [
        "Mude o lembrete para as 11",
        "Passa o lembrete para as 11",
        "Pode alterar o horário do lembrete para as 11?",
    ],
    "ru": [
        "Перенеси напоминание на 11 часов",
        "Измени напоминание на 11:00",
        "Поменяй время напоминания на 11 утра",
    ],
    "zh": ["提醒改成11点", "把提醒改到上午11点", "提醒时间改为上午11点"],
    "ja": [
        "リマインダーを11時に変更して",
        "リマインダーを11時にして",
        "リマインドを11時にずらして",
    ],
    "ko": ["알림을 11시로 바꿔줘", "알림 11시로 옮겨줘", "리마인더를 오전 11시로 바꿔 줘"],
    "tr": [
        "Hatırlatmayı saat 11'e al",
        "Hatırlatıcıyı 11'e taşı",
        "Hatırlatmayı 11:00 olarak değiştir",
    ],
}
LATER_BY_AN_HOUR = {
    "en": "Push the reminder back an hour",
    "de": "Verschieb die Erinnerung um eine Stunde",
    "fr": "Décale le rappel d'une heure",
    "es": "Retrasa el recordatorio una hora",
    "pt": "Adia o lembrete em uma hora",
    "ru": "Перенеси напоминание на час позже",
    "zh": "把提醒推迟一个小时",
    "ja": "リマインダーを1時間遅らせて",
    "ko": "알림을 한 시간 늦춰줘",
    "tr": "Hatırlatmayı bir saat ertele",
}
NAMED_MOVES = {
    "en": "Move the reminder about the dentist to 11",
    "de": "Verschieb die Erinnerung an den Zahnarzt auf 11 Uhr",
    "fr": "Mets le rappel du dentiste à 11h",
    "es": "Cambia el recordatorio del dentista a las 11",
    "pt": "Mude o lembrete do dentista para as 11",
    "ru": "Перенеси напоминание про стоматолога на 11:00",
    "zh": "把牙医的提醒改到11点",
    "ja": "歯医者のリマインダーを11時に変更して",
    "ko": "치과 알림을 11시로 바꿔줘",
    "tr": "Dişçi hatırlatmasını 11'e al",
}


def make_job(text: str, due_at: datetime, number: int) -> Job:
    return Job(
        schedule=Schedule(zone=ZONE.key, at=due_at.astimezone(UTC)),
        text=text,
        target=Address(platform="telegram", chat_id="42"),
        scope=Scope.account("telegram", "42"),
        created_at=NOW,
        account=Account(platform="telegram", user_id="42"),
        next_at=due_at,
        id=number,
    )


def decide_after_reminder(text: str, language: str) -> Step:
    """Return the step for a message of a person who has two reminders and just set one of them."""
    dentist = make_job(DENTIST[language], datetime(2026, 3, 6, 16, tzinfo=ZONE), 7)
    plants = make_job(PLANTS[language], datetime(2026, 3, 5, 9, tzinfo=ZONE), 8)
    dialogue = Dialogue(asked_at=NOW, job=dentist)
    situation = Situation(
        now=NOW, zone=ZONE, jobs=(dentist, plants), dialogue=dialogue, languages=(language,)
    )
    return decide(text, situation)


def decide_without_dialogue(text: str, language: str, count: int) -> Step:
    """Return the step for a message of a person with `count` reminders and no open question."""
    dentist = make_job(DENTIST[language], datetime(2026, 3, 6, 16, tzinfo=ZONE), 7)
    plants = make_job(PLANTS[language], datetime(2026, 3, 5, 9, tzinfo=ZONE), 8)
    jobs = (dentist, plants)[:count]
    return decide(text, Situation(now=NOW, zone=ZONE, jobs=jobs, languages=(language,)))


@each_row(
    ("language", "text"),
    [(language, text) for language, texts in MOVES_OF_REMINDER.items() for text in texts],
)
def test_request_to_move_the_reminder_moves_the_only_one_and_asks_which_of_several(
    language: str, text: str
) -> None:
    for step in (
        decide_without_dialogue(text, language, 1),
        decide_after_reminder(text, language),
    ):
        assert step.move is Move.CHANGE
        assert step.job is not None
        assert step.job.id == 7
        assert step.reading is not None
        assert step.reading.moment == datetime(2026, 3, 6, 11, tzinfo=ZONE)
    assert decide_without_dialogue(text, language, 2).move is Move.UNKNOWN
    assert decide_without_dialogue(text, language, 0).move is Move.UNKNOWN


@each_row(("language", "text"), list(LATER_BY_AN_HOUR.items()))
def test_reminder_moves_by_a_length_only_if_it_is_clear_which(language: str, text: str) -> None:
    step = decide_without_dialogue(text, language, 1)

    assert step.move is Move.CHANGE
    assert step.reading is not None
    assert step.reading.moment == datetime(2026, 3, 6, 17, tzinfo=ZONE)
    assert decide_without_dialogue(text, language, 2).move is Move.UNKNOWN


@each_row(("language", "text"), list(NAMED_MOVES.items()))
def test_reminder_is_moved_by_its_name(language: str, text: str) -> None:
    step = decide_without_dialogue(text, language, 2)

    assert step.move is Move.CHANGE
    assert step.job is not None
    assert step.job.id == 7
    assert step.reading is not None
    assert step.reading.moment == datetime(2026, 3, 6, 11, tzinfo=ZONE)
    assert step.reading.task == DENTIST[language]


@each_row(
    ("language", "text", "move"),
    [
        (language, text, move)
        for move, by_language in REQUESTS.items()
        for language, texts in by_language.items()
        for text in texts
    ],
)
def test_short_request_about_reminders_is_understood_in_ten_languages(
    language: str, text: str, move: Move
) -> None:
    step = decide_after_reminder(text, language)

    assert step.move is move
    if move is Move.REMOVE:
        assert step.job is not None
        assert step.job.text == DENTIST[language]
    if move is Move.CHANGE:
        assert step.reading is not None
        assert step.reading.moment == datetime(2026, 3, 6, 11, tzinfo=ZONE)


@each_row(
    ("language", "text", "kind"),
    [
        (language, text, kind)
        for kind, by_language in EVERYDAY.items()
        for language, texts in by_language.items()
        for text in texts
    ],
)
def test_everyday_message_after_a_reminder_is_understood_and_leaves_the_reminder(
    language: str, text: str, kind: ShortMessage
) -> None:
    step = decide_after_reminder(text, language)

    assert find_short_message(text) == kind
    # "OK, thanks" confirms the reminder.
    assert step.move is Move.NONE or (kind == "thanks" and step.move is Move.CONFIRM)


@each_row(
    "text", ["what time is the concert?", "now", "ok", "morgen", "evening", "hi from Ana", ""]
)
def test_message_with_other_words_or_only_fillers_is_no_short_message(text: str) -> None:
    assert find_short_message(text) is None
