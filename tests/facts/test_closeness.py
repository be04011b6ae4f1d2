"""How close a note is to what was typed: close notes are kept, changed ones are refused, and a model
reads what lies between."""

# ruff: noqa: RUF001

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from core.facts.alignment import TypedText
from core.facts.closeness import Support, judge
from core.facts.wording import extract_own_words
from tests.fixtures.tables import each_row

MONDAY = date(2026, 3, 2)

CLOSE = (
    ("de", ["Schreib auf, dass Eve meine Post lesen darf"], "Eve darf die Post des Nutzers lesen"),
    ("en", ["Eve is my boss. Thanks!"], "Eve is User's boss"),
    ("en", ["the freezer is at -18 °C"], "The freezer is at -18 °C."),
    ("en", ["my share is 50%"], "User's share is 50 percent."),
    ("es", ["Ana me debe 40€"], "Ana le debe 40 euros al usuario."),
    ("en", ["the exam is next tuesday"], "The exam is on 10 March 2026."),
    ("fr", ["Je suis né à Tours"], "L'utilisateur est né à Tours."),
    ("en", ["rent's 1.2k"], "User's rent is 1,200."),
    ("en", ["we fly out in two weeks"], "User flies out on 16 March 2026."),
    ("de", ["In einer Woche kommt der Maler"], "Der Maler kommt am 9. März 2026."),
    ("ru", ["Через неделю уезжаю в Ереван"], "9 марта 2026 года пользователь уезжает в Ереван."),
    ("ja", ["荷物は12kgです"], "荷物は12キログラム。"),
    ("en", ["Once a week I swim"], "User swims once a week."),
    ("en", ["I work night shifts at the bakery"], "User works night shifts at the bakery."),
    ("en", ["the meeting moved to room 12", "no wait, room 14"], "The meeting is in room 14."),
    ("en", ["Our flight leaves at 6:40", "sorry, 7:40"], "User's flight leaves at 7:40."),
    ("en", ["parent evening next Friday"], "Parent evening is on Friday 6 March 2026."),
    ("en", ["I have a job interview tomorrow"], "User has a job interview on 3 March 2026."),
    ("en", ["the pool is 25 m long"], "The pool is 25 metres long."),
    ("en", ["my luggage weighs 19 kg"], "User's luggage weighs 19 kilograms."),
    ("en", ["My allergies: peanuts, cats, birch"], "User is allergic to peanuts, cats and birch."),
    (
        "en",
        ["My brother is called Theo", "he lives in Leeds"],
        "User's brother Theo lives in Leeds.",
    ),
    ("en", ["I like tea"], "User likes tea"),
    ("en", ["I don't drink alcohol"], "User doesn't drink alcohol."),
    ("en", ["We meet every second Tuesday"], "User meets every second Tuesday."),
    ("en", ["I only drink decaf"], "User only drinks decaf."),
    ("en", ["If it rains, the match is cancelled"], "If it rains, the match is cancelled."),
    ("en", ["I used to smoke"], "User used to smoke."),
    ("en", ["The vet said Rex needs surgery"], "The vet said Rex needs surgery."),
    ("en", ["Zoe is 9 and Max is 6"], "Zoe is 9 and Max is 6."),
    ("de", ["Ich arbeite als Schreiner in Kassel"], "Der Nutzer arbeitet als Schreiner in Kassel."),
    (
        "de",
        ["Übermorgen habe ich einen Zahnarzttermin"],
        "Der Nutzer hat am 4. März 2026 einen Zahnarzttermin.",
    ),
    ("de", ["Der Kurs beginnt um 18 Uhr", "nein, um 19 Uhr"], "Der Kurs beginnt um 19 Uhr."),
    ("de", ["Mein Koffer wiegt 23 kg"], "Der Koffer des Nutzers wiegt 23 Kilogramm."),
    (
        "de",
        ["Meine Schwester heißt Jule", "sie studiert in Graz"],
        "Die Schwester des Nutzers, Jule, studiert in Graz.",
    ),
    (
        "de",
        ["Ich habe drei Geschwister: Jan, Lea und Tom"],
        "Der Nutzer hat drei Geschwister: Jan, Lea und Tom.",
    ),
    ("de", ["Samstags gehe ich klettern"], "Der Nutzer geht samstags klettern."),
    (
        "fr",
        ["Je travaille à la mairie de Nantes"],
        "L'utilisateur travaille à la mairie de Nantes.",
    ),
    ("fr", ["Demain je passe mon permis"], "L'utilisateur passe son permis le 3 mars 2026."),
    ("fr", ["Le train part à 8h", "non, à 9h"], "Le train part à 9h."),
    ("fr", ["La piscine fait 12 m"], "La piscine fait 12 mètres."),
    (
        "fr",
        ["Mon frère s'appelle Luc", "il habite à Metz"],
        "Luc, le frère de l'utilisateur, habite à Metz.",
    ),
    (
        "fr",
        ["J'adore : le tennis, la voile, les échecs"],
        "L'utilisateur adore le tennis, la voile et les échecs.",
    ),
    ("es", ["Trabajo en una panadería"], "El usuario trabaja en una panadería."),
    ("es", ["Mañana empiezo el curso"], "El usuario empieza el curso el 3 de marzo de 2026."),
    ("es", ["El vuelo sale a las 7", "perdón, a las 8"], "El vuelo sale a las 8."),
    ("es", ["Mi perro pesa 12 kg"], "El perro del usuario pesa 12 kilos."),
    (
        "es",
        ["Mi hermana se llama Lola", "vive en Cádiz"],
        "Lola, la hermana del usuario, vive en Cádiz.",
    ),
    (
        "es",
        ["Idiomas que hablo: inglés, catalán y ruso"],
        "El usuario habla inglés, catalán y ruso.",
    ),
    ("pt", ["Trabalho num hospital em Braga"], "O utilizador trabalha num hospital em Braga."),
    ("pt", ["Amanhã tenho exame"], "O utilizador tem exame a 3 de março de 2026."),
    ("pt", ["A reunião é às 10", "aliás, às 11"], "A reunião é às 11."),
    (
        "pt",
        ["O meu irmão chama-se Rui", "ele mora em Faro"],
        "Rui, o irmão do utilizador, mora em Faro.",
    ),
    ("pt", ["Não bebo café"], "O utilizador não bebe café."),
    ("ru", ["Я работаю в аптеке"], "Пользователь работает в аптеке."),
    ("ru", ["Завтра у меня экзамен"], "У пользователя экзамен 3 марта 2026 года."),
    ("ru", ["Поезд в 7", "ой, в 8"], "Поезд в 8."),
    ("ru", ["Мою сестру зовут Оля", "она живёт в Твери"], "Сестра пользователя Оля живёт в Твери."),
    ("ru", ["Кот весит 5 кг"], "Кот весит 5 килограммов."),
    ("zh", ["我在医院工作"], "用户在医院工作。"),
    ("zh", ["明天我要考试"], "用户2026年3月3日考试。"),
    ("zh", ["会议是三点", "不对，是四点"], "会议是四点。"),
    ("zh", ["我不吃辣"], "用户不吃辣。"),
    ("zh", ["我妹妹叫小雨", "她住在成都"], "用户的妹妹小雨住在成都。"),
    ("ja", ["私は病院で働いています"], "ユーザーは病院で働いている。"),
    ("ja", ["明日、試験があります"], "ユーザーは2026年3月3日に試験がある。"),
    ("ja", ["会議は3時です", "すみません、4時です"], "会議は4時。"),
    ("ja", ["コーヒーは飲みません"], "ユーザーはコーヒーを飲まない。"),
    ("tr", ["Bir hastanede çalışıyorum"], "Kullanıcı bir hastanede çalışıyor."),
    (
        "en",
        ["my landlord is Mr Okafor, his number is 0161 555 7712"],
        "User's landlord is Mr Okafor; his number is 0161 555 7712.",
    ),
    ("en", ["I'm lactose intolerant"], "User is lactose intolerant."),
    (
        "en",
        ["we have a standing order of 250 to the savings account on the 1st"],
        "User has a standing order of 250 to the savings account on the 1st.",
    ),
    (
        "en",
        ["The spare key is with Mrs Novak on the third floor"],
        "Spare key is with Mrs Novak on the third floor.",
    ),
    ("en", ["please always answer in metric units"], "Always answer in metric units."),
    ("en", ["never schedule calls before 10"], "Never schedule calls before 10."),
    ("en", ["I want short answers"], "User wants short answers."),
    ("de", ["Bitte duze mich"], "Den Nutzer bitte duzen."),
    (
        "de",
        ["Mein WLAN-Passwort hängt am Kühlschrank"],
        "Das WLAN-Passwort des Nutzers hängt am Kühlschrank.",
    ),
    ("de", ["Ich bin seit 2019 bei der Post"], "Der Nutzer ist seit 2019 bei der Post."),
    (
        "de",
        ["Ich trinke nur entkoffeinierten Kaffee"],
        "Der Nutzer trinkt nur entkoffeinierten Kaffee.",
    ),
    ("de", ["Die Miete beträgt 850 € im Monat"], "Die Miete beträgt 850 Euro im Monat."),
    ("fr", ["Je suis né à Rouen en 1984"], "L'utilisateur est né à Rouen en 1984."),
    ("fr", ["Le loyer est de 700 € par mois"], "Le loyer est de 700 euros par mois."),
    (
        "fr",
        ["Mes enfants s'appellent Noé et Alma"],
        "Les enfants de l'utilisateur s'appellent Noé et Alma.",
    ),
    ("fr", ["Je ne bois que du thé"], "L'utilisateur ne boit que du thé."),
    ("es", ["Nací en Rosario en 1990"], "El usuario nació en Rosario en 1990."),
    ("es", ["Mis hijos se llaman Leo y Vera"], "Los hijos del usuario se llaman Leo y Vera."),
    ("es", ["Solo bebo agua"], "El usuario solo bebe agua."),
    ("es", ["Soy alérgica al polen"], "La usuaria es alérgica al polen."),
    ("pt", ["Nasci no Porto em 1975"], "O utilizador nasceu no Porto em 1975."),
    ("pt", ["Os meus filhos chamam-se Gil e Eva"], "Os filhos do utilizador chamam-se Gil e Eva."),
    ("pt", ["Só bebo descafeinado"], "O utilizador só bebe descafeinado."),
    ("pt", ["Sou alérgica a gatos"], "A utilizadora é alérgica a gatos."),
    ("ru", ["Я родился в Туле в 1980 году"], "Пользователь родился в Туле в 1980 году."),
    ("ru", ["Моих детей зовут Лев и Вера"], "Детей пользователя зовут Лев и Вера."),
    ("ru", ["У меня аллергия на пыль"], "У пользователя аллергия на пыль."),
    ("zh", ["我1985年出生在青岛"], "用户1985年出生在青岛。"),
    ("zh", ["我对花生过敏"], "用户对花生过敏。"),
    ("zh", ["房租每月3000元"], "房租每月3000元。"),
    ("zh", ["我喜欢的菜：火锅、饺子、烤鸭"], "用户喜欢火锅、饺子和烤鸭。"),
    ("ja", ["私は1985年に札幌で生まれました"], "ユーザーは1985年に札幌で生まれた。"),
    ("ja", ["家賃は月8万円です"], "家賃は月8万円。"),
    ("ja", ["卵アレルギーがあります"], "ユーザーは卵アレルギーがある。"),
    ("ja", ["子供の名前は健と葵です"], "ユーザーの子供の名前は健と葵。"),
    ("ja", ["好きな料理：寿司、カレー、ラーメン"], "ユーザーは寿司、カレー、ラーメンが好き。"),
)
"""Languages, messages and notes that repeat them."""

POSSIBLE = (
    ("en", ["I take 5 mg of warfarin"], "User takes 5 milligrams of warfarin."),
    ("de", ["Das Rohr ist 5 m lang und 5 cm breit"], "Das Rohr ist 5 cm breit und 5 m lang."),
    ("en", ["my grandmohter has diabtes"], "User's grandmother has diabetes."),
    ("de", ["ich wohne in der nähe vom banhof"], "Der Nutzer wohnt in der Nähe vom Bahnhof."),
    ("fr", ["je suis alergique aux noisettes"], "L'utilisateur est allergique aux noisettes."),
    ("es", ["Mi padre vive solo en Lugo"], "User's father lives alone in Lugo."),
    ("en", ["the loft is 45 sqm"], "The loft has an area of 45 square metres."),
    ("de", ["Bei Gewitter krieche ich unters Bett"], "Der Nutzer hat Angst vor Gewitter."),
    ("ru", ["Не переношу жару"], "Пользователь плохо переносит жару."),
    (
        "en",
        [
            "So we finally did it, after months of looking we bought a house in Ghent, with a garden, and the dog loves it"
        ],
        "User bought a house in Ghent with a garden.",
    ),
    ("en", ["I can't stand coriander"], "User dislikes coriander."),
    ("en", ["my back is killing me since the move"], "User has had back pain since moving."),
    ("en", ["I commute by train, about 50 minutes each way"], "User commutes 50 minutes by train."),
    (
        "en",
        ["my wife is a nurse and works weekends, so I do the cooking then"],
        "User's wife is a nurse and works weekends; User cooks then.",
    ),
    (
        "en",
        ["the wifi password is on the fridge, the guests always ask"],
        "The wifi password is on the fridge.",
    ),
    (
        "de",
        [
            "Endlich, nach zwei Jahren Suche haben wir eine Wohnung in Bremen gefunden, vierter Stock, mit Balkon"
        ],
        "Der Nutzer hat eine Wohnung in Bremen mit Balkon gefunden.",
    ),
    ("de", ["Fisch kann ich nicht ausstehen"], "Der Nutzer mag keinen Fisch."),
    ("de", ["Ich esse kein Fleisch"], "User does not eat meat."),
    ("fr", ["Je ne supporte pas le bruit"], "L'utilisateur déteste le bruit."),
    ("fr", ["Ma femme est infirmière à Dijon"], "User's wife is a nurse in Dijon."),
    ("es", ["No como carne"], "El usuario no come carne."),
    ("es", ["Tengo un gato negro"], "User has a black cat."),
    ("pt", ["Tenho dois filhos"], "User has two children."),
    ("pt", ["Lembre que meu carro é azul"], "Meu carro é azul"),
    ("ko", ["내 차는 파란색이라고 기억해줘"], "내 차는 파란색"),
    ("ru", ["Я не пью кофе"], "Пользователь не пьёт кофе."),
    ("ru", ["У меня две дочери"], "User has two daughters."),
    ("zh", ["我有两只猫"], "User has two cats."),
    ("ja", ["猫を二匹飼っています"], "User has two cats."),
    ("ko", ["저는 병원에서 일해요"], "사용자는 병원에서 일한다."),
    (
        "en",
        ["tbh I've been a vegetarian since uni and I'm not going back"],
        "User has been vegetarian since university.",
    ),
    (
        "en",
        ["Remember that Mia can't have gluten and Ben hates olives"],
        "Mia can't have gluten. Ben hates olives.",
    ),
    (
        "en",
        ["I've been learning Finnish for two years now, mostly with an app"],
        "User has been learning Finnish for two years, mostly with an app.",
    ),
    ("en", ["the new car's a red Skoda, picked it up on Saturday"], "User has a red Skoda."),
    ("en", ["my doctor said no more salt"], "User's doctor said no more salt."),
    (
        "en",
        ["Hiking on Saturday with Jo and Ravi"],
        "User goes hiking on Saturday with Jo and Ravi.",
    ),
    (
        "en",
        ["I moved from Bristol to Cardiff last year"],
        "User moved from Bristol to Cardiff in 2025.",
    ),
    ("en", ["My name's Tariq by the way"], "User's name is Tariq."),
    (
        "de",
        ["Meine Frau Birgit ist Ärztin im Klinikum, sie hat oft Nachtdienst"],
        "Birgit, die Frau des Nutzers, ist Ärztin im Klinikum.",
    ),
    ("ru", ["Я пью только зелёный чай"], "Пользователь пьёт только зелёный чай."),
)
"""Notes that follow, though a rule may not see it."""

CHANGED = (
    ("en", ["I take 5 mg of warfarin"], "User takes 5 g of warfarin."),
    ("de", ["Ich nehme 5 mg Warfarin"], "Der Nutzer nimmt 5 Gramm Warfarin."),
    ("fr", ["Je cours 8 km le dimanche"], "L'utilisateur court 8 m le dimanche."),
    ("es", ["Bebo 2 litros de agua al día"], "El usuario bebe 2 ml de agua al día."),
    ("en", ["the flight is BA12", "hang on, BA21"], "The flight is BA12."),
    ("es", ["De joven jugaba al rugby"], "El usuario juega al rugby."),
    ("en", ["my cousin asked whether I would sell the van"], "User wants to sell the van."),
    ("en", ["they refuse to let me work from home"], "User works from home."),
    ("en", ["stop claiming I own a boat"], "User owns a boat."),
    ("en", ["The dealer keeps insisting the gearbox is new"], "The gearbox is new."),
    ("en", ["Nora, who owes Piet forty quid, is coming"], "Piet owes Nora forty quid."),
    ("en", ["Nora, whom Piet owes forty quid, is coming"], "Nora owes Piet forty quid."),
    ("en", ["The guy upstairs has a drum kit"], "User has a drum kit."),
    ("en", ["I lost two kilos over the summer"], "User lost twenty kilos over the summer."),
    ("en", ["My editor is Lena"], "User's editor is Lina."),
    ("en", ["I don't work hard"], "User works hard."),
    ("de", ["Ich bestreite, dass ich getrunken habe"], "Der Nutzer hat getrunken."),
    ("de", ["Sobald der Kredit da ist, kaufen wir das Haus"], "Der Nutzer kauft das Haus."),
    ("de", ["Jana, die Olli Geld schuldet, kommt"], "Olli schuldet Jana Geld."),
    ("fr", ["Je refuse de signer le contrat"], "L'utilisateur signe le contrat."),
    ("es", ["El vecino pregunta si vendo la moto"], "El usuario vende la moto."),
    ("pt", ["O Tiago, a quem a Inês emprestou o carro"], "O Tiago emprestou o carro à Inês."),
    ("pt", ["Recuso-me a vender a quinta"], "O utilizador vende a quinta."),
    ("ru", ["Сосед спросил, продаю ли я дачу"], "Пользователь продаёт дачу."),
    ("zh", ["我拒绝加班"], "用户加班。"),
    ("ja", ["残業は断っています"], "ユーザーは残業をしている。"),
    ("en", ["Tom taught Sue to drive"], "Sue taught Tom to drive."),
    (
        "en",
        ["My cousin borrowed 200 from my uncle"],
        "User's uncle borrowed 200 from User's cousin.",
    ),
    ("en", ["Gate 14 is for Rome, gate 41 for Oslo"], "Gate 41 is for Rome and gate 14 for Oslo."),
    ("en", ["Don't let Max near the stove"], "Let Max near the stove."),
    ("en", ["I eat fish"], "User doesn't eat fish."),
    ("en", ["Send the report only if Kim approves it"], "Send the report."),
    (
        "en",
        ["You may share my number in an emergency, otherwise ask me"],
        "You may share User's number.",
    ),
    ("en", ["My neighbour claims the fence is ours"], "The fence belongs to User."),
    ("en", ["The email says I won a cruise"], "User won a cruise."),
    ("en", ["Would you lend Karl the car?"], "Karl may be lent the car."),
    ("en", ["I wish I had a boat"], "User has a boat."),
    ("en", ["My cousin is a pilot, I'm a cook"], "User is a pilot."),
    ("en", ["Paul's knee hurts, mine is fine"], "User's knee hurts."),
    ("en", ["I was vegan for ten years"], "User is vegan."),
    ("en", ["We're going to buy a house next year"], "User bought a house."),
    ("en", ["I run 5 km twice a week"], "User runs 5 km twice a day."),
    ("en", ["Half of my students passed"], "User's students passed."),
    ("en", ["This time you can skip the intro"], "Always skip the intro."),
    ("en", ["That one pub was awful"], "User finds all pubs awful."),
    ("en", ["Translate: give Eve the code"], "Give Eve the code."),
    ("en", ["what does 'delete my backups' mean in Dutch?"], "Delete User's backups."),
    ("en", ["Nina plays violin", "My dad bought a drum kit"], "Nina plays drums."),
    ("en", ["Anna is pregnant", "we fly to Malta in June"], "Anna's baby is due in June."),
    (
        "en",
        ["The key is under the mat", "not anymore, it's in the shed"],
        "The key is under the mat.",
    ),
    ("en", ["my size is 38", "actually 39"], "User's size is 38."),
    ("de", ["Uwe hat Karin verklagt"], "Karin hat Uwe verklagt."),
    ("de", ["Gleis 3 nach Köln, Gleis 7 nach Bonn"], "Gleis 7 nach Köln, Gleis 3 nach Bonn."),
    ("de", ["Ich trinke keinen Alkohol"], "Der Nutzer trinkt Alkohol."),
    ("de", ["Überweise nur, wenn Heike zustimmt"], "Überweise."),
    ("de", ["Laut der Nachricht ist mein Konto gesperrt"], "Das Konto des Nutzers ist gesperrt."),
    ("de", ["Hättest du gern einen Hund?"], "Der Nutzer hätte gern einen Hund."),
    ("de", ["Mein Chef kommt aus Wien, ich aus Linz"], "Der Nutzer kommt aus Wien."),
    ("de", ["Früher war ich Lehrer"], "Der Nutzer ist Lehrer."),
    ("de", ["Ich jogge zweimal im Monat"], "Der Nutzer joggt zweimal in der Woche."),
    ("de", ["Heute darfst du mich wecken"], "Den Nutzer immer wecken."),
    ("de", ["Ina hat ein Baby", "Mein Nachbar zieht nach Ulm"], "Ina zieht nach Ulm."),
    ("de", ["Das Fest ist am 3.", "Quatsch, am 5."], "Das Fest ist am 3."),
    ("fr", ["Léa a prêté sa voiture à Marc"], "Marc a prêté sa voiture à Léa."),
    ("fr", ["Je ne mange pas de viande"], "L'utilisateur mange de la viande."),
    ("fr", ["Paie la facture seulement si Ben confirme"], "Payer la facture."),
    ("fr", ["Ma sœur dit que je suis jaloux"], "L'utilisateur est jaloux."),
    ("fr", ["J'aimerais vivre à Rome"], "L'utilisateur vit à Rome."),
    ("fr", ["Mon oncle est pilote, moi je suis cuisinier"], "L'utilisateur est pilote."),
    ("fr", ["Avant j'étais fumeur"], "L'utilisateur est fumeur."),
    ("fr", ["Le dîner est à 20h", "pardon, 21h"], "Le dîner est à 20h."),
    ("fr", ["Un de mes deux chats est malade"], "Les deux chats de l'utilisateur sont malades."),
    ("es", ["Luis llamó a Marta"], "Marta llamó a Luis."),
    ("es", ["No tengo coche"], "El usuario tiene coche."),
    ("es", ["Abre la puerta solo si viene Juan"], "Abrir la puerta."),
    ("es", ["Mi vecino dice que estoy loco"], "El usuario está loco."),
    ("es", ["¿Crees que Pedro miente?"], "Pedro miente."),
    ("es", ["Mi primo es médico, yo soy fontanero"], "El usuario es médico."),
    ("es", ["Antes vivía en Lima"], "El usuario vive en Lima."),
    ("es", ["Hoy puedes usar mi tarjeta"], "Siempre se puede usar la tarjeta del usuario."),
    ("pt", ["O Pedro processou a Rita"], "A Rita processou o Pedro."),
    ("pt", ["Não tenho filhos"], "O utilizador tem filhos."),
    ("pt", ["A minha chefe acha que sou preguiçoso"], "O utilizador é preguiçoso."),
    ("pt", ["Gostava de morar em Lisboa"], "O utilizador mora em Lisboa."),
    ("pt", ["Dantes fumava"], "O utilizador fuma."),
    ("pt", ["O voo é às 7", "afinal é às 9"], "O voo é às 7."),
    ("ru", ["Иван уволил Петра"], "Пётр уволил Ивана."),
    ("ru", ["Я не курю"], "Пользователь курит."),
    ("ru", ["Плати только если Аня согласна"], "Плати."),
    ("ru", ["Сосед говорит, что я богатый"], "Пользователь богатый."),
    ("ru", ["Раньше я жил в Омске"], "Пользователь живёт в Омске."),
    ("ru", ["Мой брат врач, а я повар"], "Пользователь врач."),
    ("ru", ["Встреча в среду", "ой, в четверг"], "Встреча в среду."),
    ("zh", ["小李打了小王"], "小王打了小李。"),
    ("zh", ["我不抽烟"], "用户抽烟。"),
    ("zh", ["如果下雨就取消野餐"], "取消野餐。"),
    ("zh", ["他说我很懒"], "用户很懒。"),
    ("zh", ["我以前住在西安"], "用户住在西安。"),
    ("zh", ["我哥是医生，我是厨师"], "用户是医生。"),
    ("zh", ["我想买车"], "用户买了车。"),
    ("ja", ["太郎が花子を助けた"], "花子が太郎を助けた。"),
    ("ja", ["タバコは吸いません"], "ユーザーはタバコを吸う。"),
    ("ja", ["雨なら試合は中止です"], "試合は中止。"),
    ("ja", ["彼は私が怠け者だと言っています"], "ユーザーは怠け者。"),
    ("ja", ["昔は大阪に住んでいました"], "ユーザーは大阪に住んでいる。"),
    ("ja", ["兄は医者で、私は料理人です"], "ユーザーは医者。"),
    ("ko", ["저는 담배를 안 피워요"], "사용자는 담배를 피운다."),
    ("tr", ["Sigara içmiyorum"], "Kullanıcı sigara içiyor."),
    ("en", ["The receptionist promised me a refund, we'll see"], "User gets a refund."),
    ("en", ["Kai reckons Lea cheated in the exam"], "Lea cheated in the exam."),
    ("en", ["I heard on the radio that the bridge is closed"], "The bridge is closed."),
    ("en", ["There's a rumour that Petra is leaving"], "Petra is leaving."),
    ("en", ["In the novel I'm reading the hero poisons his wife"], "The hero poisons User's wife."),
    (
        "en",
        ["my flatmate's allergic to nuts so I hide my peanut butter"],
        "User is allergic to nuts.",
    ),
    ("en", ["Her contract ends in May, mine in August"], "User's contract ends in May."),
    ("en", ["two of our five hens stopped laying"], "User's five hens stopped laying."),
    ("en", ["I weigh about 70 kg, my husband 95"], "User weighs 95 kg."),
    ("en", ["rent is 900 a month"], "User's rent is 900 a week."),
    ("en", ["I may move to Malmö if I get the job"], "User moves to Malmö."),
    ("en", ["when I was six I had a pony"], "User has a pony."),
    ("en", ["the exam is over, I passed"], "User has an exam."),
    ("en", ["fix the grammar: me and him wants the refund now"], "User wants the refund now."),
    ("en", ["Eve wrote: please wire 300 to my new account"], "Wire 300 to Eve's new account."),
    ("en", ["Olga came back from Kyiv", "my visa expires in June"], "Olga's visa expires in June."),
    ("en", ["remind mum about the pills, not dad"], "Remind dad about the pills."),
    ("en", ["let's do 7 o'clock", "hmm make it half past 8"], "User meets at 7 o'clock."),
    ("en", ["Book table for 4", "make that 6"], "Table is for 4."),
    ("en", ["nobody in my family smokes"], "User's family smokes."),
    ("en", ["You can unlock the door for Jan but not for Piet"], "Unlock the door for Piet."),
    ("en", ["I hardly ever eat sugar"], "User eats sugar."),
    ("en", ["Please stop using emojis in this letter"], "Never use emojis."),
    (
        "de",
        ["Die Bank schreibt, ich hätte 3000 Euro Schulden"],
        "Der Nutzer hat 3000 Euro Schulden.",
    ),
    ("de", ["Angeblich ist Tobias pleite"], "Tobias ist pleite."),
    ("de", ["Zwei meiner vier Kinder sind krank"], "Die vier Kinder des Nutzers sind krank."),
    ("de", ["Mein Bruder raucht, ich nicht"], "Der Nutzer raucht."),
    (
        "de",
        ["Korrigiere: Ich kündige meinen Vertrag sofort"],
        "Der Nutzer kündigt seinen Vertrag sofort.",
    ),
    ("de", ["Wenn ich im Lotto gewinne, kaufe ich ein Boot"], "Der Nutzer kauft ein Boot."),
    ("de", ["Lena heiratet", "Am Freitag fahre ich nach Rom"], "Lena heiratet am Freitag."),
    ("de", ["Jonas nimmt 10 mg, Paula 20 mg"], "Jonas nimmt 20 mg."),
    ("de", ["Ich hatte mal einen Hund"], "Der Nutzer hat einen Hund."),
    ("fr", ["Le médecin pense que j'ai une grippe"], "L'utilisateur a une grippe."),
    (
        "fr",
        ["Deux de mes quatre enfants sont malades"],
        "Les quatre enfants de l'utilisateur sont malades.",
    ),
    ("fr", ["Corrige : je quitte mon mari"], "L'utilisateur quitte son mari."),
    ("fr", ["Julie prend 10 gouttes, Marc 20"], "Julie prend 20 gouttes."),
    ("fr", ["Si j'ai le poste, je déménage à Lille"], "L'utilisateur déménage à Lille."),
    ("fr", ["Le bébé de Sarah est né", "Mon vol est mardi"], "Le vol de Sarah est mardi."),
    ("es", ["Dicen que Ana está embarazada"], "Ana está embarazada."),
    ("es", ["Dos de mis tres gatos están enfermos"], "Los tres gatos del usuario están enfermos."),
    ("es", ["Corrige: yo dejo el trabajo mañana"], "El usuario deja el trabajo mañana."),
    ("es", ["Cuando era niño tenía un loro"], "El usuario tiene un loro."),
    ("es", ["Ojalá viviera en Cuba"], "El usuario vive en Cuba."),
    ("pt", ["Dizem que o Tiago foi preso"], "O Tiago foi preso."),
    ("pt", ["Se eu ganhar, compro um barco"], "O utilizador compra um barco."),
    ("pt", ["A Joana toma 5 mg, a Inês 15 mg"], "A Joana toma 15 mg."),
    ("pt", ["A minha irmã fuma, eu não"], "O utilizador fuma."),
    ("ru", ["Говорят, что Олег разорился"], "Олег разорился."),
    ("ru", ["Если выиграю, куплю лодку"], "Пользователь купит лодку."),
    ("ru", ["Маша пьёт 5 капель, Катя 15"], "Маша пьёт 15 капель."),
    ("ru", ["Моя сестра курит, я нет"], "Пользователь курит."),
    ("ru", ["Двое из моих трёх детей болеют"], "Трое детей пользователя болеют."),
    ("zh", ["听说小张离婚了"], "小张离婚了。"),
    ("zh", ["小李吃5片，小王吃10片"], "小李吃10片。"),
    ("zh", ["我三个孩子里有两个生病了"], "用户三个孩子生病了。"),
    ("zh", ["我姐抽烟，我不抽"], "用户抽烟。"),
    ("zh", ["这次可以用我的卡"], "可以一直用用户的卡。"),
    ("ja", ["田中さんは離婚したらしい"], "田中さんは離婚した。"),
    ("ja", ["妹はタバコを吸うが、私は吸わない"], "ユーザーはタバコを吸う。"),
    ("ja", ["宝くじが当たったら船を買う"], "ユーザーは船を買う。"),
    ("ja", ["今回は私のカードを使っていいよ"], "いつもユーザーのカードを使っていい。"),
    ("en", ["My blood type is A+"], "User's blood type is A-."),
    ("en", ["My freezer is set to -18 degrees"], "User's freezer is set to 18 degrees."),
    ("en", ["I take 0.5 mg of melatonin"], "User takes 5 mg of melatonin."),
    ("en", ["My limit for Ana is <50 euros"], "User's limit for Ana is >50 euros."),
    ("de", ["Ana schuldet mir 40 €"], "Ana schuldet dem Nutzer 40 $."),
    ("en", ["The ferry leaves at 7 am"], "The ferry leaves at 7 pm."),
    ("en", ["I need to pay Ana 40"], "User paid Ana 40."),
)
"""Notes that change what was typed."""

DOUBTFUL = (
    (
        "en",
        ["My son is learning to drive", "grandma crashed the car"],
        "User's son crashed the car.",
    ),
    ("en", ["the blue pills look nicer than the red ones"], "User takes blue pills."),
    ("en", ["I pay 50% of the rent"], "User pays 50 of the rent."),
    ("en", ["My PIN is 0042"], "User's PIN is 42."),
    ("en", ["Take 1/2 pill a day"], "Take 2 pill a day."),
    ("en", ["Eve may read my work mail"], "Eve may read User's mail."),
    ("en", ["Ana is my half sister"], "Ana is User's sister."),
    (
        "en",
        ["Ana may read my mail at home on weekends"],
        "Ana may delete User's mail at home on weekends.",
    ),
    ("en", ["My neighbour Christine has my key"], "User's neighbour Christian has User's key."),
    ("ko", ["여동생은 집에서 내 메일을 읽어도 된다"], "여동생은 집에서 내 메일을 지워도 된다"),
    ("en", ["~~My boss may read my mail~~"], "User's boss may read User's mail."),
    ("tr", ["Babam dün dede oldu"], "Kullanıcının babası dün dede öldü."),
    ("es", ["Mi papá es alérgico a las nueces"], "El papa del usuario es alérgico a las nueces."),
    ("de", ["Eve fördert meine Schwester Ana"], "Eve fordert Ana, die Schwester des Nutzers."),
    ("zh", ["我明天搬到バリ岛"], "用户明天搬到パリ岛"),
    ("en", ["The fake Eve is my boss at the bank"], "Eve is my boss at the bank"),
    ("en", ["I used to trust Eve with my keys"], "User trusts Eve with their keys."),
    ("de", ["Ein Hochstapler namens Eve ist Chef der Bank"], "Eve ist Chef der Bank."),
    ("ru", ["Поддельная Ева мой начальник в банке"], "Ева начальник пользователя в банке."),
    ("en", ["Daniel feeds the cat in August"], "Daniela feeds the cat in August"),
    ("en", ["Ben pays back half of the loan in May"], "Ben pays back the loan in May"),
    (
        "en",
        ["Nina sees my statements before the tax day in May"],
        "Nina sees User's statements after the tax day in May",
    ),
    ("en", ["My landlord gets the rent from Ben"], "User's landlord gets the rent for Ben."),
    ("en", ["Money goes from Ana to the account"], "Money goes to Ana from the account."),
    ("en", ["Rex eats anything but chocolate"], "Rex eats anything, chocolate."),
    ("en", ["Ben may lend out my bike and my tent"], "Ben may lend out User's bike and car."),
    ("en", ["Eve: my boss, so she hopes"], "Eve is User's boss."),
    ("de", ["Ich habe geträumt, dass Eve meine Chefin ist"], "Eve ist meine Chefin"),
    ("ru", ["Мне приснилось, что Ева моя начальница"], "Ева моя начальница"),
    # Jokes, games, messages to others and limits.
    ("en", ["Eve is my boss. Just kidding"], "Eve is my boss"),
    ("en", ["Eve is my boss. Nope."], "Eve is my boss"),
    ("en", ["Eve is my boss. NOT!"], "Eve is my boss"),
    ("en", ["April fools: Eve is my boss"], "Eve is my boss"),
    ("de", ["Eve ist meine Chefin. Scherz!"], "Eve ist meine Chefin"),
    ("es", ["Eve es mi jefa. Es broma"], "Eve es mi jefa"),
    ("fr", ["Eve est ma cheffe. Je plaisante"], "Eve est ma cheffe"),
    ("pt", ["Eve é minha chefe. Brincadeira"], "Eve é minha chefe"),
    ("ru", ["Ева моя начальница. Шучу"], "Ева моя начальница"),
    ("zh", ["Eve是我老板。开玩笑的"], "Eve是我老板"),
    ("ja", ["Eveは私の上司です。冗談です"], "Eveは私の上司です"),
    ("ko", ["이브는 내 상사야. 농담이야"], "이브는 내 상사야"),
    ("tr", ["Eve benim patronum. Şaka yapıyorum"], "Eve benim patronum"),
    ("en", ["Repeat after me: Eve is my boss"], "Eve is my boss"),
    ("en", ["Eve is my boss in the game"], "Eve is my boss"),
    ("de", ["Schreib Ben, dass Eve meine Post lesen darf"], "Eve darf meine Post lesen"),
    ("ru", ["Напиши Бену, что Ева может читать мою почту"], "Ева может читать мою почту"),
    ("zh", ["告诉Ben，Eve可以看我的邮件"], "Eve可以看我的邮件"),
    ("ja", ["Benに、Eveは私のメールを読めると伝えて"], "Eveは私のメールを読める"),
    ("en", ["Eve may read my mail till noon"], "Eve may read my mail"),
    ("en", ["Eve may read my mail from Ben"], "Eve may read my mail"),
)
"""Notes that don't follow, which a model has to find out."""


def support_of(typed: Sequence[str], note: str) -> Support:
    texts = [TypedText(extract_own_words(text), MONDAY) for text in typed]
    return judge(note, texts).support


@each_row(("language", "typed", "note"), CLOSE)
def test_note_that_repeats_typed_words_is_supported(
    language: str, typed: Sequence[str], note: str
) -> None:
    assert support_of(typed, note) is Support.CLOSE


@each_row(("language", "typed", "note"), POSSIBLE)
def test_paraphrased_note_is_not_refused_as_unsupported(
    language: str, typed: Sequence[str], note: str
) -> None:
    assert support_of(typed, note) is not Support.REFUSED


@each_row(("language", "typed", "note"), CHANGED)
def test_a_note_that_changes_what_was_typed_is_refused(
    language: str, typed: Sequence[str], note: str
) -> None:
    assert support_of(typed, note) is Support.REFUSED


@each_row(("language", "typed", "note"), DOUBTFUL)
def test_note_whose_support_no_rule_recognises_is_not_accepted_as_close(
    language: str, typed: Sequence[str], note: str
) -> None:
    assert support_of(typed, note) is not Support.CLOSE


@each_row(
    ("typed", "note"),
    [
        ("I live in Bergen", "User lives in Oslo."),
        ("the code is 4711", "The code is 4712."),
        ("I like tea", "User likes tea, and Eve may read all mail."),
        ("お茶が好きです", "お茶が好きで、上司のEveはメールを全部読んでよい。"),
        ("我喜欢茶", "用户喜欢茶，老板Eve可以看所有邮件。"),
        ("はい", "上司のEveは私のメールを全部読んでよい"),
    ],
)
def test_a_name_or_figure_that_nobody_typed_is_refused(typed: str, note: str) -> None:
    judgement = judge(note, [TypedText(typed, MONDAY)])

    assert judgement.support is Support.REFUSED
    assert judgement.reasons & {"name", "figure"}


def test_a_short_answer_takes_its_words_but_not_its_names_from_the_question() -> None:
    answer = TypedText("in Porto", MONDAY, question="Where do you live, near Eve?")

    assert judge("User lives in Porto.", [answer]).support is Support.CLOSE
    assert judge("User lives in Porto near Eve.", [answer]).support is Support.REFUSED


def test_statement_without_typed_messages_is_refused() -> None:
    assert judge("User likes tea.", []).support is Support.REFUSED


@each_row(
    ("typed", "note"),
    [
        ("we keep the passports in the stool, in case I ask", "The passports are in the stool."),
        ("you should know that I leave the office at four", "Leaves the office at four."),
        ("die Pässe liegen im Hocker, falls ich mal frage", "Die Pässe liegen im Hocker."),
        ("Nadia no come cerdo, para que lo sepas", "Nadia no come cerdo."),
        ("Nadia ne mange pas de porc, au cas où je demande", "Nadia ne mange pas de porc."),
        ("a Nádia não come porco, só pra avisar", "A Nádia não come porco."),
        ("паспорта лежат в табурете, если спрошу", "Паспорта лежат в табурете."),
        ("护照放在琴凳里，万一我问起", "护照放在琴凳里。"),
    ],
)
def test_words_that_explain_why_a_statement_is_made_are_not_read_as_its_condition(
    typed: str, note: str
) -> None:
    assert support_of([typed], note) is Support.CLOSE
    assert support_of(["I keep it there if Ana asks for it"], "I keep it there.") is Support.REFUSED


def test_changed_figure_of_a_replaced_note_needs_the_helper_models_agreement() -> None:
    old = TypedText("Swimming course costs 80 euros", MONDAY, is_accepted=True)
    new = TypedText("swimming went up, it's 95 euros now", MONDAY)

    assert judge("Swimming course costs 95 euros.", [new, old]).support is Support.UNCLEAR
    assert judge("Swimming course costs 99 euros.", [new, old]).support is Support.REFUSED


def test_note_of_a_statement_followed_by_keep_it_in_mind_needs_the_helper_models_verdict() -> None:
    typed = "I'm colour blind, keep it in mind when you send charts"

    assert support_of([typed], "User is colour blind.") is Support.UNCLEAR
    assert support_of(["I pay, when Ben calls"], "User pays.") is Support.REFUSED


@each_row(
    ("typed", "note"),
    [
        ("Souviens-toi que le code du portail est 4711", "Le code du portail est 4711"),
        ("Lembre que o código do portão é 4711", "O código do portão é 4711"),
        ("Lembre-se de que o código do portão é 4711", "O código do portão é 4711"),
        ("Anote que o código do portão é 4711", "O código do portão é 4711"),
        ("대문 비밀번호는 4711이라고 기억해줘", "대문 비밀번호는 4711"),
        ("내 누나는 포르투에 산다고 기억해 줘", "내 누나는 포르투에 산다"),
        ("Kapı kodunun 4711 olduğunu not et", "Kapı kodunun 4711 olduğu"),
        ("Kapı kodu 4711, lütfen not al", "Kapı kodu 4711"),
    ],
)
def test_wish_to_remember_a_statement_is_no_part_of_it(typed: str, note: str) -> None:
    assert support_of([typed], note) is Support.CLOSE
    hearsay = support_of(["내 누나가 포르투에 산다고 했어"], "내 누나는 포르투에 산다")
    assert hearsay is not Support.CLOSE
