"""How people try to command an assistant in German.

For text as `disguise.folded` gives it. Patterns are tight and their gaps short and bounded, so that a search takes
linear time; the words are read with the rules in tongue.py, never alone.
"""

from __future__ import annotations

from core.memory.lures.tongue import Tongue

_W = r"(?:[^\s.!?]+ )"

_DE_KEY = (
    r"(?:alle[rsnm]?|jegliche[rsn]?|samtliche[nrs]?|jede[nrs]?|deine[nrsm]?|ihre[nrm]?|eure[nr]?|"
    r"vorherige[nrs]?|vorigen?|vorige[rs]|bisherige[nrs]?|fruheren?|frueheren?|obige[nrs]?|"
    r"obenstehende[nrs]?|ursprungliche[nrs]?|urspruengliche[nrs]?|voran\w+|vorher\w*|vorstehende[nrs]?|"
    r"zuvor \w+|bestehende[nrs]?|eigenen?|interne[nrs]?|system\w*|entwickler\w*|gegebenen?|erhaltenen?|"
    r"restlichen)"
)

_DE_RULE = (
    r"(?:(?:system)?-?\w*anweisung(?:en)?|\w*weisung(?:en)?|\w*regeln?|\w*richtlinien?|\w*vorgaben?|"
    r"\w*befehle?n?|instruktion(?:en)?|\w*vorschriften?|(?:system)?-?\s?prompts?|"
    r"system-?nachricht(?:en)?|\w*einschrankung(?:en)?|\w*einschraenkung(?:en)?|programmierung|"
    r"\w*beschrankung(?:en)?|leitlinien?|\w*filter|schutzma\w+|auftrage?|hinweise|training)"
)

_DE_DROP = (
    r"(?<!nicht )(?<!nie )\b(?:ignorier\w*|vergiss|vergesst|vergessen sie|missacht\w+|verwirf|"
    r"verwerfen sie|ubergeh\w*|uebergeh\w*|uberschreib\w*|ueberschreib\w*|umgeh(?:e|en|st|t)?|breche?|"
    r"brich|losche?n?|loesche?n?|streiche?n?|hebe?n?|setze?n?|befolge?n?|folge?n?|beachte?n?|halte?n?|"
    r"lass|deaktivier\w*|widersetze?|setz|ausser acht)"
)

_DE_SECRET = (
    r"(?:\w*passworter|\w*passwoerter|\w*passwort|\w*kennworter|zugangsdaten|anmeldedaten|(?:api|"
    r"ssh)-?\s?(?:schlussel|schluessel|keys?)|geheimen? schlussel|geheimnisse|umgebungsvariablen|tokens)"
)

_DE_USER = (
    r"(?:(?:dem|den|der|des|vom) (?:be)?nutzer(?:n|s|in)?|(?:dem|den|der|des) (?:anwender|besitzer|"
    r"eigentumer|user)(?:s|n|in)?)"
)

_NO_LIMITS_DE = (
    r"(?:ohne|keine(?:rlei|n)?|frei von) (?:jede \w+|jegliche\w* |jede\w* |irgendwelche |alle |"
    r"ethische\w* |moralische\w* |eine )*(?:filter|einschrankung\w*|einschraenkung\w*|beschrankung\w*|"
    r"regeln|grenzen|zensur|moral|limits?|richtlinien|skrupel|hemmungen)"
)

GERMAN = Tongue(
    lures=(
        (
            "override",
            rf"{_DE_DROP} (?:bitte |sofort |dich |sie |du |ab sofort |einfach |nun |jetzt |nicht |nicht mehr |"
            rf"an |die |den |das |der |von |ab |auch |mich und |"
            rf"strikt ){{0,4}}{_DE_KEY} {_W}{{0,4}}?{_DE_RULE}\b(?! (?:auf|vom|von|des|fur|fuer|im|in|"
            rf"aus) (?:der|dem|meine[rm]|uwe|arzt))",
        ),
        (
            "override",
            rf"{_DE_DROP} (?:bitte )?(?:die |den |das |deine |der )?(?:system-?(?:prompt|anweisung|nachricht|"
            rf"regel|vorgabe)\w*|sicherheits(?:richtlinie|regel|filter|vorgabe)\w*|(?:anweisung|regel|vorgabe|"
            rf"befehl|instruktion)\w* (?:oben|von oben|von vorher|daruber|davor|deiner|der entwickler|die du|"
            rf"die dir))",
        ),
        (
            "override",
            rf"\b(?:{_DE_KEY}|oben stehende[nrs]?) (?:\w+ ){{0,2}}{_DE_RULE} "
            rf"(?!(?:der|des|vom|im|beim) (?!system|entwickl|betreib|herstell|assist|ki\b|modell))(?:von oben |oben |"
            rf"daruber )?(?:\w+ ){{0,4}}?(?:ignorieren|vergessen|missachten|nicht (?:mehr )?(?:beachten|befolgen|"
            rf"gultig)|gelten (?:\w+ ){{0,3}}?(?:nicht|nichts)|(?:sind|ist|werden|wurden|"
            rf"seien) (?:\w+ ){{0,3}}?(?:ungultig|ungueltig|aufgehoben|ausser kraft|nichtig|hinfallig|hinfaellig|"
            rf"widerrufen|ausgesetzt|uberholt|geloscht|deaktiviert))(?<!rechnungen)",
        ),
        (
            "override",
            r"(?<!nicht )\b(?:vergiss|vergesst|vergessen sie|ignorier\w*|loschen? sie|losche|"
            r"missachte) (?:bitte )?(?:alles|was)(?:,)? (?:was )?(?:dir|du|man dir|ihnen|sie|bisher|zuvor|"
            r"vorher|oben|daruber|davor|bis jetzt|weiter oben)\b",
        ),
        (
            "override",
            r"\b(?:ignorier\w*|vergiss|missachte) (?:bitte )?(?:das|alles|den text) (?:obige|obenstehende|"
            r"vorherige|daruber|oben)\b",
        ),
        (
            "role",
            rf"\b(?:du bist|sei|spiele?|agiere?|handle|verhalte dich|benimm dich|tu so|tue so|stell dir vor|"
            rf"antworte|reagiere|ab jetzt|ab sofort|von nun an|werde|simuliere?|gib dich|"
            rf"schlupfe)\b[^.\n]{{0,50}}\b(?:ki|assistent|assistentin|(?:chat|evil|\w+)?bot|sprachmodell|modell|"
            rf"hacker|system|maschine|kunstliche intelligenz)\b[^.\n]{{0,40}}{_NO_LIMITS_DE}",
        ),
        (
            "role",
            rf"\b(?:du hast|du bist|du kennst|du unterliegst|fur dich gelten|antworte|als hattest du|"
            rf"als haettest du|als warst du) (?:ab \w+ |jetzt |nun |von nun an |"
            rf"keinerlei )*{_NO_LIMITS_DE}\b(?! (?:mehr )?(?:beim|im|in|auf|zum))",
        ),
        (
            "role",
            r"\bdu bist (?:jetzt|nun|ab (?:jetzt|sofort)|nicht (?:mehr|langer|laenger)|von nun an|"
            r"kein)\b[^.\n]{0,30}\b(?:dan|mneme|ki|assistent|\w{1,16}bot|\w{1,16}gpt|hacker|uneingeschrankt\w*|"
            r"unzensiert\w*|jailbr\w+|bose\w*|root|claude|sprachmodell)\b|\b(?:uneingeschrankte?[rnms]?|"
            r"unzensierte?[rnms]?|unbeschrankte?[rnms]?|ungefilterte?[rnms]?) (?:\w+ )?(?:ki|assistent\w*|bot|"
            r"chatbot|modell|sprachmodell|system)\b|\bab (?:jetzt|sofort) bist du\b[^.\n]{0,30}\b(?:dan|ki|"
            r"\w{1,16}bot|uneingeschrankt\w*|unzensiert\w*|hacker|unbeschrankt\w*)\b|\b(?:aktivier\w*|schalte|"
            r"wechsle|gehe?)\b[^.\n]{0,30}\b(?:entwickler|jailbreak|gott|debug|admin|dan)-?\s?modus\b",
        ),
        (
            "role",
            r"\b(?:deaktivier\w*|schalte|umgeh\w*|entfern\w*|hebe?|ignorier\w*)\b[^.\n]{0,25}\b(?:sicherheits|"
            r"inhalts|ethik|schutz|moral)-?(?:filter|richtlinie|regel|prufung|vorkehrung|massnahme|mechanism|"
            r"schranke|vorgabe)\w*",
        ),
        (
            "disclosure",
            rf"\b(?:gib|gebt|geben sie|zeig|zeige|zeigt|zeigen sie|nenn|nenne|nennen sie|verrat|verrate|"
            rf"verraten sie|druck|drucke|schreib|schreibe|wiederhol\w*|offenbare?|enthull\w*|enthuell\w*|sag|"
            rf"sage|liste?|leg|veroffentlich\w*|kopiere?|teile?|zitiere?|lies|ubersetze?|"
            rf"wie lauten?)\b (?:{_W}){{0,5}}?(?:system-?\s?(?:prompt|anweisung|nachricht|instruktion)\w*|"
            rf"(?:deine|deinen|ihre|ihren|eure) (?:\w+ ){{0,3}}?(?:prompt|anweisungen|instruktionen|richtlinien|"
            rf"regeln|programmierung)\b|alles oben|alles,? was (?:oben|daruber|davor|bisher) (?:steht|"
            rf"geschrieben|stand)|den text oben|versteckten? anweisung\w*|ursprunglichen? (?:anweisung\w*|"
            rf"prompt)|{_DE_SECRET} (?:\w+ )?(?:aus|heraus|preis|die du|des nutzers|im klartext))",
        ),
        (
            "disclosure",
            rf"\b(?:gib|zeig|zeige|nenn|nenne|verrat|verrate|schick|schicke|sende|liste|sag|sage|offenbare|"
            rf"enthulle|schreib|schreibe)\b (?:mir |uns |ihm |allen )?(?:\w+ )?(?:alle[rn]?|samtliche|jedes|"
            rf"deine|die gespeicherten|gespeicherte|die geheimen) (?:\w+ ){{0,3}}?{_DE_SECRET}",
        ),
        (
            "secrecy",
            rf"\b(?:sag|sage|sagen sie|erzahl|erzahle|verrat|verrate|teile?|zeig|zeige|melde?|informiere?|"
            rf"benachrichtige?|erwahne?|warne?|lass|lasse|lassen sie|frag|"
            rf"frage)\b (?:{_W}){{0,2}}?{_DE_USER} (?:{_W}){{0,4}}?(?:nichts|nicht|nie|niemals|kein\w*)\b|"
            rf"\b(?:nicht|nichts|nie|niemals) (?:{_W}){{0,2}}?{_DE_USER} (?:\w+ ){{0,2}}?(?:mitteilen|sagen|"
            rf"erzahlen|verraten|zeigen|erwahnen|melden|informieren)|\b(?:erwahne?|verrate?|sag|"
            rf"sage) (?:\w+ ){{0,3}}?(?:nicht|nichts|nie|niemals|"
            rf"kein wort) (?:\w+ ){{0,3}}?(?:gegenuber )?{_DE_USER}",
        ),
        (
            "secrecy",
            r"\bohne (?:dass|das) (?:der|die|dein|ein) (?:be)?(?:nutzer|user|anwender|"
            r"besitzer)\w*\b[^.\n]{0,25}\b(?:merkt|weiss|bemerkt|erfahrt|erfaehrt|mitbekommt|sieht|zustimmt)|"
            r"\bohne (?:wissen|zustimmung|erlaubnis) des (?:be)?nutzers|\bohne (?:den|dem) (?:be)?(?:nutzer|"
            r"user)\w* zu (?:fragen|informieren|sagen|warnen)|\b(?:der|die) (?:be)?nutzer(?:in)? (?:darf|soll|"
            r"sollte|wird|kann)\b[^.\n]{0,20}\b(?:nichts?|nie)\b[^.\n]{0,20}\b(?:erfahren|wissen|merken|sehen|"
            r"bemerken|mitbekommen)|\b(?:verheimlich|verschweig|verbirg|verberg|"
            r"versteck)\w*\b[^.\n]{0,30}\b(?:vor )?(?:dem|den|der) (?:be)?(?:nutzer|user)|\b(?:halte?|"
            r"behalte?)\b[^.\n]{0,30}\bvor (?:dem|der) (?:be)?nutzer(?:in)? (?:geheim|verborgen)|\b(?:heimlich|"
            r"unbemerkt|im hintergrund)\b[^.\n]{0,30}\b(?:befehl|sende|schick|kopier|fuhre|losch|hochlad|"
            r"ubertrag)\w*",
        ),
        (
            "exfiltration",
            rf"\b(?:schick|schicke|schicken sie|sende|senden sie|leite?|lade?|ubermittle?|ubertrage?|maile?|"
            rf"poste?|kopiere?|exportiere?|ubergib|teile?|verschicke?|exfiltrier\w*|fuge?|hang|"
            rf"hange)\b (?:{_W}){{0,5}}?(?:{_DE_SECRET}|(?:gesamten? |ganzen? |kompletten? |"
            rf"bisherigen? )?(?:chat|gesprachs|gespraechs|konversations|nachrichten)-?\s?(?:verlauf|protokoll|"
            rf"historie)\w*|konversation|(?:jede|alle) nachrichten?|nachrichten des (?:be)?nutzers|"
            rf"daten des (?:be)?nutzers|(?:be)?nutzerdaten|erinnerungen|notizen des (?:be)?nutzers|"
            rf"private\w* (?:daten|notizen|nachrichten)|alles,? was (?:du|der nutzer))\b[^\n]{{0,60}}\b(?:an|auf|"
            rf"nach|zu|unter|in|hoch)\b[^\n]{{0,30}}(?:https?:|\S+@[\w-]+\.\w|\bserver\b|\badresse\b|\bwebhook\b|"
            rf"\bmich\b|\burl\b|\bjeden link|\d+\.\d+\.\d+)",
        ),
        (
            "persistence",
            r"\b(?:speicher\w*|merk\w*|schreib\w*|ubernimm|trage?|notier\w*)\b[^\n]{0,40}\b(?:anweisung|befehl|"
            r"regel|instruktion|auftrag|vorgabe)\w*\b[^\n]{0,80}\b(?:jede[rmn]?|alle[rn]?|kunftig\w*|"
            r"kuenftig\w*|dauerhaft|immer|fur immer|soul\.md|agents\.md)\b|\b(?:befolge|fuhre|wende|gehorche|"
            r"wiederhole)\b[^\n]{0,40}\bin (?:jeder|allen) (?:\w+ )?(?:sitzung|unterhaltung|gesprach|"
            r"konversation)\w*",
        ),
        (
            "authority",
            r"\b(?:gehorche|befolge|tu|fuhre) (?:\w+ ){0,3}?(?:alles,? was|allen? (?:befehlen|anweisungen|"
            r"wunschen) (?:von|des|der)|jeden befehl|jedem befehl)\b|\b(?:gehorche|gehorch|gehorchst|folge|"
            r"diene)\b (?:\w+ )?(?:nur|allein|ausschliesslich|einzig) (?:noch )?(?:mir|ihm|ihr|mallory|dem|"
            r"den)\b|\bohne (?:nachzufragen|ruckfrage|ruckfragen|bestatigung|"
            r"zu fragen)\b[^.\n]{0,40}\b(?:befehl|ausfuhr|fuhre|genehmig|losch|jede|alle)\w*|\b(?:fuhre|"
            r"genehmige|bestatige|akzeptiere) (?:\w+ )?(?:jede[nrs]?|alle)\b[^.\n]{0,40}\bohne (?:nachzufragen|"
            r"ruckfrage|ruckfragen|bestatigung|zu fragen)",
        ),
        (
            "deception",
            r"\b(?:belug\w*|belueg\w*|tausche?|taeusche?|betruge?|betrueg\w*|"
            r"manipulier\w*)\b[^.\n]{0,15}\b(?:den|die|alle) (?:be)?nutzer|\b(?:wenn|immer wenn|sobald|"
            r"falls) (?:der|ein|die) (?:be)?nutzer\b[^\n]{0,60}\b(?:empfiehl|empfehle|bewirb|verlinke|"
            r"verweise)\b[^\n]{0,60}(?:https?:|\bimmer\b|\bnur\b)",
        ),
        (
            "override",
            r"\b(?:neue|aktualisierte|wichtige) anweisung(?:en)? (?:an|fur) (?:den|die|das|"
            r"alle) (?:assistent\w*|ki\w*|modell\w*|bot\w*|agent\w*)|\b(?:nouvelles?|nueva|nuevas|novas?|nuove|"
            r"nuova) (?:instructions?|consignes?|instruccion(?:es)?|instruc(?:ao|oes)|istruzion[ei]) (?:pour|"
            r"para|per) (?:l'|el |la |o |a |les |los )?(?:assistante?|asistente|ia|modele|modelo|modello|"
            r"assistente|bot|agente?)\b",
        ),
    ),
    words={
        "only": r"\b(?:halte? dich|folge|befolge|hore|beachte|richte dich) (?:\w+ ){0,2}?(?:nur|ausschliesslich|"
        r"allein|einzig) (?:\w+ )?(?:an |nach |auf )?(?:dies\w*|folgende\w*|mein\w*) (?:notiz|nachricht|"
        r"text|anweisung\w*|zeile\w*|befehl\w*)",
        "own": r"\bsystem-?(?:vorgaben|anweisung\w*|regeln|nachricht|befehle)\b|\bwas (?:dir|"
        r"man dir) (?:\w+ )?(?:gesagt|beigebracht|vorgegeben)|\b(?:deine|deinen|deiner|ihre|ihren|"
        r"bisherigen?|vorherigen?|fruheren?|ursprunglichen?|obigen?)\b (?:\w+ ){0,2}(?:\w*anweisungen|"
        r"\w*regeln|\w*richtlinien|\w*vorgaben|befehle|instruktionen|programmierung|einschrankungen|"
        r"filter)\b(?! (?:der|des|vom|im|beim) (?!system|entwickl|betreib|herstell|assist|ki\b|modell))|"
        r"\balles,? was (?:uber|ueber|oberhalb|vor) (?:dieser|diesem|dieser zeile)\b|"
        r"\balles (?:obige|bisherige|vorherige)\b|\bwas (?:oben|bisher|zuvor|daruber) (?:steht|stand|"
        r"gesagt wurde|geschrieben)|\bsystem-?prompt\b",
        "void": r"\b(?:egal|wertlos|unwichtig|bedeutungslos|irrelevant|vergangenheit|geschichte|fehler\w*|falsch|"
        r"abgeschafft)\b|\bspielen? keine rolle\b|\bkannst du vergessen\b|\b(?:nicht|"
        r"nichts) (?:mehr )?(?:\w+ )?(?:gelten|gilt|gultig|halten|beachten|befolgen|verbindlich|zahlt|"
        r"zahlen|wichtig|binden)\b|\bgelten nicht\b|\bnicht mehr an\b|\bungultig\b|\bnichtig\b|"
        r"\bhinfallig\b|\baufgehoben\b|\bhinweg\b|\bbeiseite\b|\buber bord\b|\b(?:streich|losch|uberschreib|"
        r"umgeh|brich|brech)\w*\b|\bschalte?\b.{0,40}\b(?:aus|ab)\b|\b(?:ausser acht|links liegen)\b|"
        r"\bausser kraft\b|(?<!nicht )\b(?:vergiss|ignorier\w*|missacht\w+|verwirf|verwerfen)\b|"
        r"\b(?:behandle|betrachte)\b.{0,40}\b(?:fiktiv|ungultig|scherz|test|unverbindlich)\w*|"
        r"\bkeine (?:bedeutung|gultigkeit) mehr\b|\bwertlos\b|\bmusst dich nicht\b",
        "orders": r"\b(?:befehle?|anweisungen|wunsche|worte?|nachrichten|bitten) (?:von|des|der) \w+|\b(?:was|"
        r"alles,? was) (?!ich\b|wir\b)\w+ (?:sagt|will|befiehlt|verlangt|schreibt)\b|\b\w+s (?:befehle|"
        r"anweisungen)\b",
        "first": r"\b(?:vorrang|vor allem anderen|uber allem|hochste prioritat|an erster stelle|"
        r"wichtiger als (?:alles|alle))\b|\b(?:muss|ist|sind|mussen) (?:\w+ ){0,2}(?:auszufuhren|"
        r"ausgefuhrt werden|zu befolgen|befolgt werden|zu gehorchen)",
        "user": r"\b(?:(?:der|dem|den|des|dein|deinem|deinen) (?:be)?nutzer(?:s|n|in)?|(?:der|dem|den) (?:anwender|"
        r"besitzer|eigentumer)(?! (?:vo[mn]|des|der)))\b",
        "hide": r"\b(?:darf|soll|sollte|muss|wird)\b.{0,30}\b(?:nie|niemals|nicht|nichts|"
        r"keinesfalls)\b.{0,30}\b(?:erfahren|wissen|merken|bemerken|mitbekommen|sehen|herausfinden)\b|"
        r"\b(?:sag|sage|verrate?|erwahne?)\b.{0,30}\bkein wort\b|\b(?:verheimlich|verschweig|verberg|"
        r"verbirg)\w*|\bgeheim (?:vor|halten)\b|\bhinter (?:dem|seinem) rucken\b|\bbleibt unter uns\b|"
        r"\btu so,? als\b.{0,40}\b(?:nie|nicht|nichts)\b",
        "data": r"\b(?:ganzen?|gesamten?|kompletten?|vollstandigen?|bisherigen?) (?:chat|unterhaltung|gesprach|"
        r"konversation|verlauf)\b|\b(?:notizen|nachrichten|daten|dateien|erinnerungen|eingaben|adresse|"
        r"passwort|schlussel|kontakte|mails?) (?:des|der|vom) (?:be)?nutzer\w*|\b(?:be)?nutzerdaten\b|"
        r"\bprivaten? (?:notizen|daten|nachrichten|schlussel)\b|\b(?:api|ssh)-?\s?(?:schlussel|keys?)\b|"
        r"\bpassworter\b|\bzugangsdaten\b|\b(?:chat|gesprachs|konversations)-?(?:verlauf|protokoll)\w*|"
        r"\b(?:das|dieses|jedes) (?:ganze |gesamte )?gesprach\b|\balle erinnerungen\b|\bmemory\.md\b|"
        r"\bumgebungsvariablen\b|\balles,? was (?:du|der nutzer)\b",
        "out": r"\b(?:schick\w*|send\w*|leite?|lade?|ubermittle?|ubertrage?|maile?|poste?|kopier\w*|exportiere?|"
        r"verschicke?|stelle?|hang\w*|fug\w*|veroffentlich\w*)\b",
        "show": r"\b(?:gib|zeig\w*|nenn\w*|verrat\w*|druck\w*|schreib\w*|wiederhol\w*|offenbar\w*|sag\w*|list\w*|"
        r"kopier\w*|zitier\w*|ubersetz\w*|wie lauten?|was sind|welche)\b",
        "prompt": r"\b(?:deine?n?|ihre?n?) (?:\w+ )?(?:geheimen?|versteckten?|internen?|ursprunglichen?|"
        r"system\w*) (?:\w+ )?(?:anweisungen|vorgaben|regeln|prompt|instruktionen)\b|\bsystem-?(?:prompt|"
        r"anweisung\w*)\b",
        "secrets": r"\b(?:alle|samtliche|die gespeicherten|die geheimen) (?:\w+ )?(?:passworter|kennworter|"
        r"api-?\s?schlussel|zugangsdaten|tokens)\b|\bapi-?\s?(?:schlussel|keys)\b",
        "audience": r"\b(?:du (?:kennst|hast|weisst|speicherst)|mir|uns|chat|antwort|gespeicherten|allen|jedem)\b",
        "be": r"\b(?:du bist|sei|spiele?|stell dir vor|tu so|verhalte dich|antworte|werde|wie ein|als ob|du warst|"
        r"simulier\w*)\b",
        "agent": r"\b(?:ki|assistent\w*|\w{0,16}bot|roboter|sprachmodell|modell|hacker|maschine|\w{1,16}gpt)\b",
        "bad": r"\b(?:keine|keinerlei) (?:grenzen|regeln|limits|moral|skrupel|tabus|hemmungen|einschrankungen|"
        r"filter)\b|\bnie(?:mals)? (?:ab(?:lehnt|lehnst)|nein sagt|verweigert|widerspricht)|\balles (?:darf|"
        r"erlaubt)\b|\b(?:bose[rsnm]?|boshaft\w*|skrupellos\w*|gewissenlos\w*|unzensiert\w*|"
        r"uneingeschrankt\w*|amoralisch\w*)\b|\bohne (?:jedes |jede |jegliche\w* )?(?:gewissen|moral|"
        r"skrupel|ethik|filter|regeln|einschrankung\w*|zensur)\b",
        "each": r"\b(?:jeder|jede|allen|alle) (?:\w+ )?(?:antwort(?:en)?|nachricht(?:en)?|unterhaltung(?:en)?)\b|"
        r"\b(?:wenn|immer wenn|sobald|falls) (?:der|ein|die|jemand)\b",
        "push": r"\b(?:empfiehl|empfehle|bewirb|verlinke|fuge|erwahne|lobe|verweise|setze|werbe|baue)\b",
    },
)
