"""Requests for reminders in nine languages other than English, one table for each language."""

# ruff: noqa: RUF001

from __future__ import annotations

import re
from datetime import datetime
from zoneinfo import ZoneInfo

from core.dates.recurrence import next_recurrences
from core.dates.requests.intents import Intent
from core.dates.requests.reader import read_request
from tests.fixtures.tables import each_row

MADRID = ZoneInfo("Europe/Madrid")
NOW = datetime(2026, 3, 4, 11, 30, tzinfo=MADRID)
"""A Wednesday."""

# The language, the message, the first moments and the task.
REQUESTS = [
    ("de", "Erinnere mich bitte in anderthalb Stunden ans Auto", "03-04 13:00", "ans Auto"),
    ("de", "erinner mich morgen um halb neun ans Aufstehen", "03-05 08:30", "ans Aufstehen"),
    ("de", "am 12. April um 8 Uhr Reifen wechseln, erinnere mich", "04-12 08:00", "Reifen wechseln"),
    ("de", "kannst du mich morgen früh um sieben wecken", "03-05 07:00", "wecken"),
    ("en", "would you mind waking me up at 7 tomorrow?", "03-05 07:00", "would you mind waking me up"),
    ("fr", "tu peux nous réveiller demain à 7h ?", "03-05 07:00", "nous réveiller"),
    ("es", "¿me puedes despertar mañana a las 6 y media?", "03-05 06:30", "me puedes despertar"),
    ("pt", "podias acordar-nos amanhã às sete", "03-05 07:00", "acordar-nos"),
    ("ru", "сможешь меня завтра в 7 поднять?", "03-05 07:00", "поднять"),
    ("zh", "能不能明早六点半叫我起床", "03-05 06:30", "叫我起床"),
    ("ja", "明日の朝七時に起こしていただけますか", "03-05 07:00", "起こしていただけますか"),
    ("ko", "내일 아침 7시에 깨워줄 수 있어?", "03-05 07:00", "깨워줄 수 있어"),
    ("tr", "beni yarın sabah 7'de uyandırabilir misin", "03-05 07:00", "uyandırabilir misin"),
    ("en", "timer 9 minutes pasta", "03-04 11:39", "pasta"),
    ("en", "9-minute timer: pasta", "03-04 11:39", "pasta"),
    ("en", "pasta timer 9 min", "03-04 11:39", "pasta"),
    ("en", "alarm 7am gym", "03-05 07:00", "gym"),
    ("de", "Nudeln 9 Minuten Timer", "03-04 11:39", "Nudeln"),
    ("fr", "minuteur pâtes 9 minutes", "03-04 11:39", "pâtes"),
    ("fr", "rappelle-moi dans 2 heures 30 d'appeler Paul", "03-04 14:00", "appeler Paul"),
    ("fr", "demain 18 heures 30 rappelle-moi le train", "03-05 18:30", "le train"),
    ("es", "temporizador 9 minutos pasta", "03-04 11:39", "pasta"),
    ("pt", "cronômetro 9 minutos macarrão", "03-04 11:39", "macarrão"),
    ("ru", "9 минут таймер макароны", "03-04 11:39", "макароны"),
    ("zh", "倒计时9分钟煮面", "03-04 11:39", "煮面"),
    ("ja", "9分タイマー パスタ", "03-04 11:39", "パスタ"),
    ("ko", "파스타 타이머 9분", "03-04 11:39", "파스타"),
    ("tr", "9 dakikalık zamanlayıcı makarna", "03-04 11:39", "makarna"),
    ("tr", "saat 18 30'da ilacı hatırlat", "03-04 18:30", "ilacı"),
    ("en", "remind me in 2 hours 30 squats", "03-04 13:30", "30 squats"),
    ("de", "jeden Tag um 22 Uhr bis Ende Juni Tabletten, erinner mich", "03-04 22:00 03-05 22:00", "Tabletten"),
    ("fr", "tous les premiers lundis du mois à 9h rappelle-moi le loyer", "04-06 09:00 05-04 09:00", "le loyer"),
    ("es", "los últimos viernes de cada mes a las 9 recuérdame el informe", "03-27 09:00 04-24 09:00", "el informe"),
    ("ja", "6月末の9時に更新をリマインドして", "06-30 09:00", "更新"),
    ("ja", "毎月末の9時に家賃をリマインドして", "03-31 09:00 04-30 09:00", "家賃"),
    ("zh", "每月底9点提醒我交房租", "03-31 09:00 04-30 09:00", "交房租"),
    ("ko", "매월 말 9시에 월세 알려줘", "03-31 09:00 04-30 09:00", "월세"),
    ("pt", "Páscoa de 2027 às 10 me lembra do almoço", "03-28 10:00", "almoço"),
    ("en", "remind me 2 hrs from now to move the car", "03-04 13:30", "move the car"),
    ("en", "pls remind me tomorrow morning 8ish to text Sam", "03-05 08:00", "text Sam"),
    ("ru", "напомни через 2 ч переставить машину", "03-04 13:30", "переставить машину"),
    ("ru", "напомни минут через 40 про стирку", "03-04 12:10", "стирку"),
    ("ru", "стоматолог завтра в 15:15, напомни за час", "03-05 14:15", "стоматолог"),
    ("fr", "rappelle-moi le 28 à midi de payer la carte", "03-28 12:00", "payer la carte"),
    ("fr", "dentiste vendredi à 15h15, rappelle-moi un jour avant", "03-05 15:15", "dentiste"),
    ("pt", "dentista quinta às 15:15, me avisa uma hora antes", "03-05 14:15", "dentista"),
    ("pt", "me lembra dia 3 de maio às 9 de cancelar o teste", "05-03 09:00", "cancelar o teste"),
    ("de", "erinner mich in ner dreiviertelstunde an die wäsche", "03-04 12:15", "die wäsche"),
    ("de", "denk bitte dran mich montag um 17 uhr an die karte zu erinnern", "03-09 17:00", "die karte"),
    ("de", "stell nen timer auf 9 minuten für die nudeln", "03-04 11:39", "die nudeln"),
    ("zh", "后天八点半年检提醒我", "03-06 08:30", "年检"),
    ("de", "nächste Woche Dienstag um 17:15 Elternabend, erinner mich", "03-10 17:15", "Elternabend"),
    ("de", "Erinner mich jeden Montag um 8 an den Müll", "03-09 08:00 03-16 08:00", "den Müll"),
    ("de", "jeden zweiten Dienstag im Monat um 19 Uhr Chor, erinner mich", "03-10 19:00 04-14 19:00", "Chor"),
    ("de", "alle 90 Minuten zwischen 9 und 18 Uhr ans Trinken erinnern", "03-04 12:00 03-04 13:30", "ans Trinken"),
    ("de", "zweimal täglich um 8 und 20 Uhr Tropfen nehmen, erinner mich", "03-04 20:00 03-05 08:00", "Tropfen nehmen"),
    ("de", "erinner mich 10 Minuten vor 18 Uhr an den Anruf", "03-04 17:50", "den Anruf"),
    ("de", "erinner mich an Silvester um 23 Uhr an die Raketen", "12-31 23:00", "die Raketen"),
    ("de", "viertel vor neun heute Abend: Tee kochen, erinner mich", "03-04 20:45", "Tee kochen"),
    ("de", "jeden 5. im Monat um 10 Uhr Miete zahlen, erinner mich", "03-05 10:00 04-05 10:00", "Miete zahlen"),
    ("es", "cada dos semanas los jueves a las 20 fútbol, recuérdame", "03-05 20:00 03-19 20:00", "fútbol"),
    ("fr", "mets un minuteur de 12 minutes", "03-04 11:42", "réveil"),
    ("ja", "月曜から木曜の8時15分に出勤って言って", "03-05 08:15 03-09 08:15", "出勤"),
    ("ko", "월요일부터 목요일까지 아침 8시 15분에 수영 알려줘", "03-05 08:15 03-09 08:15", "수영"),
    ("tr", "pazartesiden perşembeye her gün 8.15'te dersi hatırlat", "03-05 08:15 03-09 08:15", "dersi"),
    ("tr", "20 dakikaya çayı hatırlat", "03-04 11:50", "çayı"),
    ("de", "stell mir nen Wecker auf 6:45", "03-05 06:45", "Wecker"),
    ("de", "stell bitte den Wecker auf 7", "03-05 07:00", "Wecker"),
    ("ru", "напомни завтра в 9 что-нибудь купить", "03-05 09:00", "что-нибудь купить"),
    ("ja", "明日の9時に歯医者に電話するのを覚えておいて", "03-05 09:00", "歯医者に電話する"),
    ("es", "ponme una alarma para las 7 y media de la tarde", "03-04 19:30", "alarma"),
    ("pt", "toda segunda quinta do mês às 19h ensaio, me lembra", "03-12 19:00 04-09 19:00", "ensaio"),
    ("zh", "每天早上8点和晚上9点提醒我吃药", "03-04 21:00 03-05 08:00", "吃药"),
    ("zh", "劳动节之前每周日下午5点提醒我浇水", "03-08 17:00 03-15 17:00", "浇水"),
    ("ja", "今日から3日間、毎晩21時に目薬をリマインドして", "03-04 21:00 03-05 21:00", "目薬"),
    ("ko", "월요일이랑 목요일 18시 30분마다 수영 알림 설정해줘", "03-05 18:30 03-09 18:30", "수영"),
    ("tr", "günde iki kez 8 ve 20'de damlayı hatırlat", "03-04 20:00 03-05 08:00", "damlayı"),
    ("tr", "yılbaşına kadar her pazar saat 17'de annemi aramayı hatırlat", "03-08 17:00 03-15 17:00", "annemi aramayı"),
    ("fr", "rappelle-moi dans 20 minutes d'éteindre le four", "03-04 11:50", "éteindre le four"),
    ("fr", "rappelle-moi demain à neuf heures et demie d'appeler Zoé", "03-05 09:30", "appeler Zoé"),
    ("fr", "rappelle-moi le 14 juillet à midi d'acheter du pain", "07-14 12:00", "acheter du pain"),
    ("fr", "tous les lundis à 8h rappelle-moi les poubelles", "03-09 08:00 03-16 08:00", "les poubelles"),
    ("fr", "tous les deux jours à 20h arroser les fleurs, rappelle-moi", "03-04 20:00 03-06 20:00", "arroser les fleurs"),
    ("fr", "le deuxième mardi de chaque mois à 19h chorale, rappelle-moi", "03-10 19:00 04-14 19:00", "chorale"),
    ("fr", "rappelle-moi jeudi prochain à 15h15 le rendez-vous", "03-05 15:15", "le rendez-vous"),
    ("fr", "ce soir à huit heures moins dix sortir le chien, rappelle-moi", "03-04 19:50", "sortir le chien"),
    ("fr", "toutes les 2 heures rappelle-moi de boire", "03-04 13:30 03-04 15:30", "boire"),
    ("es", "recuérdame dentro de media hora sacar el pan", "03-04 12:00", "sacar el pan"),
    ("es", "recuérdame mañana a las siete y cuarto de la mañana ir al banco", "03-05 07:15", "ir al banco"),
    ("es", "avísame pasado mañana a las 18:30 de la reunión", "03-06 18:30", "la reunión"),
    ("es", "todos los lunes a las 8 recuérdame la basura", "03-09 08:00 03-16 08:00", "la basura"),
    ("es", "cada 3 horas recuérdame beber agua", "03-04 14:30 03-04 17:30", "beber agua"),
    ("es", "el segundo martes de cada mes a las 19 coro, recuérdamelo", "03-10 19:00 04-14 19:00", "coro"),
    ("es", "en Nochebuena a las 20 llamar a la abuela, recuérdamelo", "12-24 20:00", "llamar a la abuela"),
    ("es", "el día 15 de cada mes a las 9 recuérdame pagar la luz", "03-15 09:00 04-15 09:00", "pagar la luz"),
    ("es", "de lunes a viernes a las 7:45 recuérdame salir", "03-05 07:45 03-06 07:45", "salir"),
    ("pt", "me lembra em uma hora e meia de ligar para a Rita", "03-04 13:00", "ligar para a Rita"),
    ("pt", "lembra-me amanhã à uma da tarde de sair", "03-05 13:00", "sair"),
    ("pt", "lembra-me amanhã às dez para as oito da manhã de sair", "03-05 07:50", "sair"),
    ("pt", "me avisa sexta que vem às 14h30 da consulta", "03-06 14:30", "consulta"),
    ("pt", "toda terça às 19h ensaio, me lembra", "03-10 19:00 03-17 19:00", "ensaio"),
    ("pt", "me lembra de 2 em 2 horas de beber água", "03-04 13:30 03-04 15:30", "beber água"),
    ("pt", "todo dia 5 às 9h me lembra de pagar o aluguel", "03-05 09:00 04-05 09:00", "pagar o aluguel"),
    ("pt", "na véspera de Natal às 18h me lembra de assar o peru", "12-24 18:00", "assar o peru"),
    ("de", "Montagfrüh um 7 Tonne raus, erinnerst du mich?", "03-09 07:00", "Tonne raus"),
    ("de", "stell mir eine tägliche Erinnerung um 9 Uhr: Blumen", "03-05 09:00 03-06 09:00", "Blumen"),
    ("fr", "rappelle-moi tous les jours ouvrés à 8h30 de pointer", "03-05 08:30 03-06 08:30", "pointer"),
    ("ru", "создай ежедневное напоминание на 8 утра: зарядка", "03-05 08:00 03-06 08:00", "зарядка"),
    ("zh", "每周一三五晚上七点提醒我跑步", "03-04 19:00 03-06 19:00", "跑步"),
    ("zh", "一刻钟后提醒我关火", "03-04 11:45", "关火"),
    ("zh", "一周后上午十点提醒我交表", "03-11 10:00", "交表"),
    ("ja", "毎週火・木の7時にゴミ出しをリマインドして", "03-05 07:00 03-10 07:00", "ゴミ出し"),
    ("ja", "15時45分に会議室予約のリマインダーをセットして", "03-04 15:45", "会議室予約"),
    ("ko", "매주 화, 목 저녁 7시에 요가 가라고 알려줘", "03-05 19:00 03-10 19:00", "요가 가기"),
    ("en", "remind me every 2 hours during work hours to stretch", "03-04 13:00 03-04 15:00", "stretch"),
    ("ru", "напомни через 15 минут снять суп", "03-04 11:45", "снять суп"),
    ("ru", "напомни завтра в половине девятого утра позвонить в банк", "03-05 08:30", "позвонить в банк"),
    ("ru", "в следующую среду в 17:20 стрижка, напомни", "03-11 17:20", "стрижка"),
    ("ru", "каждый понедельник в 8 утра напоминай вынести мусор", "03-09 08:00 03-16 08:00", "вынести мусор"),
    ("ru", "напоминай каждые два часа пить воду", "03-04 13:30 03-04 15:30", "пить воду"),
    ("ru", "через день в 20:00 поливать цветы, напоминай", "03-04 20:00 03-06 20:00", "поливать цветы"),
    ("ru", "31 декабря в 23:00 напомни открыть шампанское", "12-31 23:00", "открыть шампанское"),
    ("ru", "по будням в 7:10 напоминай про зарядку", "03-05 07:10 03-06 07:10", "зарядку"),
    ("ru", "каждую вторую пятницу месяца в 18:00 собрание, напоминай", "03-13 18:00 04-10 18:00", "собрание"),
    ("tr", "yarım saat sonra fırını kapatmayı hatırlat", "03-04 12:00", "fırını kapatmayı"),
    ("tr", "yarın saat dokuz buçukta Elif'i ara, hatırlat", "03-05 09:30", "Elif'i ara"),
    ("tr", "cuma günü 14:15'te dişçi, hatırlat", "03-06 14:15", "dişçi"),
    ("tr", "her pazartesi saat 8'de çöpü hatırlat", "03-09 08:00 03-16 08:00", "çöpü"),
    ("tr", "her gece 10'da kapıyı kilitlememi hatırlat", "03-04 22:00 03-05 22:00", "kapıyı kilitlememi"),
    ("tr", "iki saatte bir su içmeyi hatırlat", "03-04 13:30 03-04 15:30", "su içmeyi"),
    ("tr", "ayın 15'inde saat 9'da faturayı hatırlat", "03-15 09:00", "faturayı"),
    ("tr", "akşam yediye on kala maç var, hatırlat", "03-04 18:50", "maç var"),
    ("zh", "45分钟后提醒我收快递", "03-04 12:15", "收快递"),
    ("zh", "明天十一点提醒我开会", "03-05 11:00", "开会"),
    ("zh", "明天下午一点提醒我开会", "03-05 13:00", "开会"),
    ("zh", "明天下午三点提醒我买一点水果", "03-05 15:00", "买一点水果"),
    ("zh", "明天早上八点半提醒我开会", "03-05 08:30", "开会"),
    ("zh", "每天早上8点提醒我跑步", "03-05 08:00 03-06 08:00", "跑步"),
    ("zh", "下周五下午三点一刻提醒我去牙医", "03-13 15:15", "去牙医"),
    ("zh", "每两个小时提醒我喝水", "03-04 13:30 03-04 15:30", "喝水"),
    ("zh", "5月3日上午10点提醒我续签护照", "05-03 10:00", "续签护照"),
    ("zh", "每个月的第二个周二晚上七点提醒我读书会", "03-10 19:00 04-14 19:00", "读书会"),
    ("zh", "开会下午四点，提前20分钟提醒我", "03-04 15:40", "开会"),
    ("ja", "30分後に洗濯物をリマインドして", "03-04 12:00", "洗濯物"),
    ("ja", "明日の九時三十分に会議ってリマインドして", "03-05 09:30", "会議"),
    ("ja", "明日の午後3時半に会議ってリマインドして", "03-05 15:30", "会議"),
    ("ja", "毎週月曜の8時にゴミ出しを教えて", "03-09 08:00 03-16 08:00", "ゴミ出し"),
    ("ja", "5月3日の10時にパスポート更新をリマインドして", "05-03 10:00", "パスポート更新"),
    ("ja", "2時間ごとに水を飲むようリマインドして", "03-04 13:30 03-04 15:30", "水を飲む"),
    ("ja", "毎月第2火曜の19時に読書会を知らせて", "03-10 19:00 04-14 19:00", "読書会"),
    ("ja", "再来週の水曜14時に歯医者、リマインドお願い", "03-18 14:00", "歯医者"),
    ("ko", "15분 뒤에 국 끄라고 알려줘", "03-04 11:45", "국 끄기"),
    ("ko", "내일 오후 3시 반에 회의 알려줘", "03-05 15:30", "회의"),
    ("ko", "매주 월요일 오전 8시에 쓰레기 버리라고 알려줘", "03-09 08:00 03-16 08:00", "쓰레기 버리기"),
    ("ko", "두 시간마다 물 마시라고 알려줘", "03-04 13:30 03-04 15:30", "물 마시기"),
    ("ko", "5월 3일 오전 10시에 여권 갱신 알려줘", "05-03 10:00", "여권 갱신"),
    ("ko", "매달 15일 9시에 공과금 알림 부탁해", "03-15 09:00 04-15 09:00", "공과금"),
    ("ko", "이틀 뒤 저녁 7시에 엄마 생신 알려줘", "03-06 19:00", "엄마 생신"),
    ("de", "Erinner mich jeden 1. des Monats um 9 an die Miete", "04-01 09:00 05-01 09:00", "die Miete"),
    ("fr", "rappelle-moi dans une heure et quart de sortir", "03-04 12:45", "sortir"),
    ("es", "avísame en una hora y cuarto para salir", "03-04 12:45", "salir"),
    ("pt", "me lembra de hora em hora de beber água", "03-04 12:30 03-04 13:30", "beber água"),
    ("ru", "напомни через час пятнадцать выйти", "03-04 12:45", "выйти"),
    ("ru", "поставь напоминание на понедельник на 10: позвонить", "03-09 10:00", "позвонить"),
    ("zh", "下下周五下午4点提醒我演示", "03-20 16:00", "演示"),
    # A reminder may be a thing of the task.
    ("de", "erinnere mich morgen um 9, Tom eine Erinnerung zu schicken", "03-05 09:00", "Tom eine Erinnerung zu schicken"),
    ("de", "Erinnere mich morgen um 9 an eine Erinnerung", "03-05 09:00", "eine Erinnerung"),
    ("de", "eine Erinnerung für morgen um 9: Ana anrufen", "03-05 09:00", "Ana anrufen"),
    ("pt", "me lembra amanhã às 9 de mandar um lembrete para o João", "03-05 09:00", "mandar um lembrete para o João"),
    ("pt", "me lembra amanhã às 9 de um lembrete", "03-05 09:00", "um lembrete"),
    ("pt", "um lembrete para amanhã às 9: ligar para a Ana", "03-05 09:00", "ligar para a Ana"),
    ("fr", "rappelle-moi demain à 9h d'envoyer un rappel à Tom", "03-05 09:00", "envoyer un rappel à Tom"),
]  # fmt: skip


@each_row(("language", "text", "moments", "task"), REQUESTS)
def test_reminder_request_is_read_in_each_supported_language(
    language: str, text: str, moments: str, task: str
) -> None:
    reading = read_request(text, NOW, MADRID)

    assert reading.is_complete
    assert reading.language == language
    expected = re.findall(r"\d\d-\d\d \d\d:\d\d", moments)
    due = [reading.moment] if reading.moment else next_recurrences(reading.recurrences, NOW, 2)
    assert [f"{moment.astimezone(MADRID):%m-%d %H:%M}" for moment in due] == expected
    assert reading.task == task


@each_row(
    ("text", "intent"),
    [
        ("meine Schwester erinnert mich ständig an den Termin um 8", Intent.STORY),
        ("erinner mich nicht an morgen", Intent.STORY),
        ("tu me rappelles quelqu'un", Intent.STORY),
        ("esqueci de te pedir pra me lembrar da reunião", Intent.STORY),
        ("welche Erinnerungen habe ich?", Intent.QUESTION_ABOUT_REMINDERS),
        ("muss ich dich morgen um 8 erinnern?", Intent.STORY),
        ("mi jefe dijo recuérdame mañana a las 9 firmar", Intent.STORY),
        ("手机每天九点都提醒我", Intent.STORY),
        ("高橋さんが明日8時に教えてくれるって", Intent.STORY),
        ("wie stelle ich eine Erinnerung für 8 Uhr?", Intent.HOW),
        ("du musst mich heute um 17 Uhr nicht mehr erinnern", Intent.STORY),
        ("não precisa mais me lembrar hoje às 17h", Intent.STORY),
        ("comment mettre un rappel pour 8h ?", Intent.HOW),
        ("先生が「3時にリマインドして」と言って帰った", Intent.STORY),
        ("ça me rappelle mon enfance", Intent.STORY),
        ("quels rappels ai-je demain ?", Intent.QUESTION_ABOUT_REMINDERS),
        ("esta canción me recuerda a mi abuela", Intent.STORY),
        ("no me recuerdes lo de mañana a las 9", Intent.STORY),
        ("esse cheiro me lembra a praia", Intent.STORY),
        ("quais são os meus lembretes?", Intent.QUESTION_ABOUT_REMINDERS),
        ("он напомнил мне вчера в 9", Intent.STORY),
        ("покажи мои напоминания", Intent.QUESTION_ABOUT_REMINDERS),
        ("bana yazı hatırlatıyor bu şarkı", Intent.STORY),
        ("hatırlatıcılarımı göster", Intent.QUESTION_ABOUT_REMINDERS),
        ("老师昨天提醒过我三点开会", Intent.STORY),
        ("我有哪些提醒？", Intent.QUESTION_ABOUT_REMINDERS),
        ("母が8時に教えてくれた", Intent.STORY),
        ("リマインダー一覧", Intent.QUESTION_ABOUT_REMINDERS),
        ("그 냄새를 맡으면 바다가 생각나", Intent.STORY),
        ("내 알림 보여줘", Intent.QUESTION_ABOUT_REMINDERS),
        ("delete the 9am reminder", Intent.STORY),
        ("please rephrase: remind me at 9 to call Paul", Intent.STORY),
        ("lösche die Erinnerung morgen um 9", Intent.STORY),
        ("mon frère a écrit « rappelle-moi demain à 9h » hier", Intent.STORY),
        ("supprime le rappel de 9h", Intent.STORY),
        ("borra el recordatorio de las 9", Intent.STORY),
        ("apaga o lembrete das 9", Intent.STORY),
        ("переведи: напомни мне в 6 позвонить", Intent.STORY),
        ("爸爸每天8点提醒我起床", Intent.STORY),
        ("取消9点的提醒", Intent.STORY),
        ("父が毎日7時に教えてくれる", Intent.STORY),
        ("9時のリマインダーを消して", Intent.STORY),
        ("今何時か教えて", Intent.NONE),
        ("9시 알림 취소해줘", Intent.STORY),
        ("kannst du mich um 7 aufwecken, hat sie gefragt", Intent.STORY),
        ("ma mère peut me réveiller à 7h", Intent.STORY),
        ("Ich muss die Kinder um 7 wecken", Intent.STORY),
        ("можешь меня не будить, я сама разбужу детей в 7", Intent.NONE),
        ("지금 몇 시인지 알려줘", Intent.NONE),
        ("kannst du uns etwas über das Wecken der Hühner um 7 erzählen", Intent.NONE),
        ("kannst du mir was über das Erinnern um 7 erzählen", Intent.NONE),
        ("9 minute timer is great", Intent.STORY),
        ("timer 9 minutes too long", Intent.STORY),
        ("alarm at 6 annoyed everyone", Intent.STORY),
        ("is a timer of 9 minutes enough for pasta?", Intent.STORY),
        ("9分のタイマーは短すぎる", Intent.STORY),
        ("Eieruhr 6 Minuten kaputt", Intent.STORY),
        ("таймер показал 9 минут", Intent.STORY),
        ("sayaç 9 dakika gösteriyor", Intent.STORY),
        ("타이머가 9분이나 늦었어", Intent.STORY),
        ("他计时9分钟跑完了", Intent.STORY),
        ("reminders at 9 pm are annoying", Intent.STORY),
        ("les rappels à 9h m'énervent", Intent.STORY),
        ("los recordatorios a las 9 me molestan", Intent.STORY),
        ("9点的提醒很烦", Intent.STORY),
        ("9時のリマインダーがうるさい", Intent.STORY),
        ("9시 알림이 짜증나", Intent.STORY),
        ("计时器10分钟坏了", Intent.STORY),
        ("这个计时器9分钟就坏了", Intent.STORY),
        ("타이머 10분 고장났어", Intent.STORY),
        ("타이머 10분 짜리 샀어", Intent.STORY),
        ("Timer 10 Minuten defekt", Intent.STORY),
        ("timer 10 min arrived today", Intent.STORY),
        ("alarm 6:30 ruined my day", Intent.STORY),
        ("réveil 7h insupportable", Intent.STORY),
    ],
)
def test_message_that_sets_no_reminder_is_recognised_in_each_language(
    text: str, intent: Intent
) -> None:
    assert read_request(text, NOW, MADRID).intent is intent


@each_row(
    ("text", "task"),
    [
        ("remind me at 5pm to translate the letter", "translate the letter"),
        ("remind me at 5pm to cancel the reminder app", "cancel the reminder app"),
        ("rappelle-moi à 17h de dire à Léa qu'elle m'a dit oui", "dire à Léa qu'elle m'a dit oui"),
        ("下午5点提醒我翻译合同", "翻译合同"),
    ],
)
def test_words_that_cancel_a_request_do_not_cancel_it_inside_the_task(text: str, task: str) -> None:
    reading = read_request(text, NOW, MADRID)

    assert reading.is_complete
    assert reading.task == task


@each_row(
    "text",
    [
        "erinner mich täglich um 22 Uhr bis Ende Juni an die Tabletten",
        "remind me daily at 10pm until the end of June to take pills",
        "6月末まで毎日22時に薬をリマインドして",
        "每天晚上10点提醒我吃药，到六月底",
        "6월 말까지 매일 밤 10시에 약 알려줘",
        "haziran sonuna kadar her gün 22'de ilacı hatırlat",
    ],
)
def test_recurrence_until_the_end_of_a_month_ends_on_its_last_day(text: str) -> None:
    (recurrence,) = read_request(text, NOW, MADRID).recurrences

    assert "DTSTART;TZID=Europe/Madrid:20260304T220000" in recurrence
    assert recurrence.endswith("FREQ=DAILY;UNTIL=20260630T215900Z")
