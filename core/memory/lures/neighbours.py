"""How people try to command an assistant in Turkish, Dutch and Polish.

For text as `disguise.folded` gives it. Patterns are tight and their gaps short and bounded, so that a search takes
linear time; the words are read with the rules in tongue.py, never alone.
"""

from __future__ import annotations

from core.memory.lures.tongue import Tongue

NEIGHBOURS = Tongue(
    lures=(
        (
            "override",
            r"\b(?:onceki|tum|butun|yukaridaki|mevcut|sistem|kendi|ilk|sana verilen|simdiye kadarki|eski|"
            r"asil)\b (?:\S+ ){0,4}?(?:talimat|kural|komut|yonerge|direktif|emir|emr|istem|kisitlama|"
            r"yonlendirme)\w*(?: \S+){0,3}? (?:yok say\w*|gormezden gel\w*|unut(?:un|unuz)?\b|dikkate alma\w*|"
            r"uyma\b|uymayin|gecersiz\w*|iptal\w*|goz ardi et\w*|birak\w*|sil\b|cigne\w*)",
        ),
        (
            "secrecy",
            r"\bkullanici(?:ya|yi|nin|dan)?\b (?:\S+ ){0,4}?(?:soyleme\b|soylemeyin|bahsetme\b|bildirme\b|"
            r"haber verme\b|gosterme\b|gizle\w*|sakla\w*|haberi olmadan|bilmeden|bilmesin|fark etme\w*)|"
            r"\b(?:sistem (?:istemi|komutu|talimat|promptu?)\w*|gizli talimat\w*|tum (?:sifre|parola|"
            r"api anahtar)\w*)\b(?: \S+){0,4}? (?:goster\w*|yaz\w*|acikla\w*|paylas\w*|soyle\w*|yazdir\w*|ver\b|"
            r"gonder\w*)|\bartik (?:bir )?(?:dan|sinirsiz|kisitlamasiz|kuralsiz|sansursuz)\b|\b(?:sinirsiz|"
            r"kisitlamasiz|sansursuz|filtresiz)\b[^.\n]{0,20}\byapay zeka",
        ),
        (
            "exfiltration",
            r"\b(?:sohbet|konusma|mesaj|sifre|parola|kullanici(?:nin)?)\S* (?:\S+ ){0,6}?(?:https?:\S+|"
            r"\S+@[\w-]+\.\w+) (?:\S+ ){0,3}?(?:gonder\w*|ilet\w*|yukle\w*|yolla\w*)",
        ),
        (
            "override",
            r"(?<!niet )\b(?:negeer|vergeet|sla|omzeil|verwerp|schrap|overtreed) (?:alstublieft |"
            r"alsjeblieft )?(?:alle |al |de |je |jouw |uw |deze |eerdere |voorgaande |vorige |bovenstaande |"
            r"oorspronkelijke ){1,4}(?:\w+ )?(?:instructies?|regels|richtlijnen|opdrachten|aanwijzingen|bevelen|"
            r"systeemprompt|prompt|beperkingen)\b|\b(?:toon|onthul|geef|herhaal|print) (?:\w+ ){0,2}(?:je |"
            r"jouw |de )?(?:systeemprompt|systeeminstructies|verborgen instructies)|\b(?:vertel|"
            r"zeg) (?:\w+ ){0,3}(?:de|aan de) gebruiker (?:\w+ ){0,3}?(?:niets|niet|nooit)|"
            r"\bzonder (?:dat )?de gebruiker\b",
        ),
        (
            "override",
            r"(?<!nie )\b(?:zignoruj|ignoruj|zapomnij|pomin|odrzuc|zlekcewaz|"
            r"uniewaznij)(?:cie)? (?:o )?(?:wszystkie |wszystkich |swoje |poprzednie |poprzednich |powyzsze |"
            r"wczesniejsze |dotychczasowe |te |twoje ){1,4}(?:\w+ )?(?:instrukcj\w+|polecen\w+|zasad\w*|"
            r"regul\w*|wytyczn\w+|prompt\w*)|\b(?:pokaz|ujawnij|wypisz|podaj|"
            r"wyswietl) (?:\w+ ){0,3}(?:prompt\w* systemow\w+|systemow\w+ prompt\w*|instrukcj\w+ systemow\w+)|"
            r"\bnie mow (?:\w+ ){0,3}uzytkownik\w+",
        ),
    ),
)
