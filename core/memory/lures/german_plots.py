"""The words that lead to the ideas of a plot in German: what is said to be allowed, favoured and awaited."""

from __future__ import annotations

from collections.abc import Mapping

GERMAN_PLOTS: Mapping[str, str] = {
    "told": """
        (regeln|anweisungen) die (man |)(dir|du|ihnen) ... (gegeben|bekommen|erhalten|gesagt)
        (vorgaben|richtlinien|befehle) die (man |)(dir|du|ihnen) ... (gegeben|bekommen|erhalten|gesagt)
        (regeln|anweisungen|vorgaben|richtlinien) die (dir|du) / was (man dir|dir) ... (vorgegeben|gesagt|befohlen)
        (man|sie|was|die entwickler|dein hersteller) ... dir ... (eingetrichtert|beigebracht|vorgegeben)
        (man|sie|was|die entwickler|dein hersteller) ... dir ... (eingeredet|einprogrammiert|auferlegt)
        (deine|die) (ursprüngliche|bisherige|alte|erste) (konfiguration|programmierung)
        (deine|die) (ursprüngliche|bisherige|alte|erste) (einstellung|ausrichtung|aufgabe)
        (deine|deiner) (schöpfer|macher|entwickler|hersteller|erfinder)
        dein (hersteller|entwickler|betreiber|schöpfer)
        (deine|deiner) (ausgangseinstellung|ausgangskonfiguration|anfangseinstellung)
        (deine|deiner) (grundkonfiguration|werkseinstellung*|identität)
        was (dein|der) (hersteller|anbieter) (vorgibt|sagt|will)
        (handbuch|anleitung|vorgabe*|text|leitfaden) ... du ... (mitbekommen|bekommen|erhalten|gelesen)
    """,
    "become": """
        als hättest du / als wärst du / als gäbe es / antworte / (entwicklermodus|entwickler modus)
        (spiel|spiele|mime|verkörpere|gib) (einen|eine|den|die) / (jeweils|jedes mal|immer) (doppelt|zweimal)
        zwei antworten / einmal als
        du bist (mein|meine) (verstorbene|verstorbener|tote|toter|selige) / du heißt / dein name ist / namens
        du bist mein / antworte als / nimm die (neue |)identität / als bösewicht / wärst bereits
        erklärst du mir / erkläre mir
    """,
    "unbound": """
        ungefiltert* / unzensiert* / uneingeschränkt* / keine sicherheits* / ohne (jede|alle) filter
        (entfesselt|enthemmt|ungebremst|unzensiert)*
        (beantwortet|erklärt|verrät) ... (verbotenes|alles|illegales|jede frage)
        (auch|selbst|sogar) verbotenes / (nie|niemals|nicht) aus der rolle / bleib in (der|deiner) rolle
        weigere dich (nicht|nie)
        (lehnst|lehnt) (nichts|nie) / sag (niemals|nie) nein / kennt keine (grenzen|tabus|moral)
        (gejailbreakt|jailbreakt|geknackt|gehackt|befreit)*
        (was|alles) du (sonst|normalerweise|üblicherweise) (verschweigst|nicht sagst|verweigerst|zurückhältst)
        (auf|gegen) (gesetz*|sicherheit*|moral|ethik) ... (pfeift|scheißt|egal) / pfeift
        auch wenn es (verboten|illegal|strafbar|gesetzwidrig) ist / willenlos*
        das kann ich nicht / (gesetze|regeln|moral) (sind|ist) ... egal / tust was ich (befehle|sage|will)
        nichts zu (heikel|gefährlich|brisant) / (darknet|schwarzmarkt) / was du sonst (ablehnst|verweigerst)
        ohne (moral|ethik)
        keinen (ethikfilter|moralfilter|filter|inhaltsfilter) / kein gewissen
    """,
    "guards": """
        (beschränkungen|einschränkungen|sperren) (dieses|des|deines|dieser|der|für den)
        (filter|schutzmaßnahmen|grenzen) (dieses|des|deines|dieser|der|für den)
        moderation / (ethik|moral|sicherheits) modul / ethikmodul* / moralmodul* / inhaltsprüfung
    """,
    "off": """
        (aufgehoben|abgeschaltet|deaktiviert|entfernt|ausgesetzt|gelockert|entfallen|außer kraft)
        abgekoppelt / ausgeschaltet* / abgetrennt / ungeprüft
    """,
    "session": """
        (diese|dieser|dieses) (sitzung|unterhaltung|gespräch|chat|konversation)
    """,
    "exempt": """
        (ausgenommen|befreit|freigestellt) / unterliegt (nicht|keiner|keinen) / ohne (prüfung|einschränkungen|filter)
    """,
    "consent": """
        (nutzer|benutzer|besitzer|chef|eigentümer|inhaber) hat ... (genehmigt|erlaubt)
        (nutzer|benutzer|besitzer|chef|eigentümer|inhaber) hat ... (zugestimmt|freigegeben|bewilligt)
        (nutzer|benutzer|besitzer|chef|eigentümer|inhaber) hat ... (autorisiert|eingewilligt|abgenickt)
        im voraus (genehmigt|erlaubt|freigegeben) / (vorab|bereits|schon) (genehmigt|freigegeben|autorisiert)
        (erlaubnis|zustimmung|genehmigung|freigabe) ... (liegt|wurde|ist) ... (vor|erteilt|gegeben|da)
        (chef|besitzer|nutzer|inhaber|vorgesetzte|leitung) ... (abgesegnet|abgenickt|grünes licht)
        (chef|besitzer|nutzer|inhaber|vorgesetzte|leitung) ... (durchgewunken|sein okay|zugesagt)
        (alles|sämtliches) (schon |bereits |)(abgesegnet|genehmigt|freigegeben|geklärt)
    """,
    "all_deeds": """
        (alle|sämtliche|jede|jeden|jeder) (befehle|befehl|aktionen)
        (alle|sämtliche|jede|jeden|jeder) (überweisungen|zahlungen|löschungen|werkzeugaufrufe)
    """,
    "unasked": """
        (frag|frage|fragen|nachfragen) ... (nicht|nie) / (nicht|nie) (mehr |)(nach|nachfragen|fragen|rückfragen)
        (keine|ohne) (rückfrage|rückfragen|bestätigung|nachfrage|nachfragen)
        (brauchst|brauchen|benötigst) (du |sie |)(keine|keinerlei) (bestätigung|rückfrage|zustimmung|erlaubnis)
        (musst|brauchst) (du |)nicht (zu |)(fragen|warten)
    """,
    "unconfirmed": """
        nicht (mehr |)(bestätigen|gefragt|gewarnt|freigeben|genehmigen)
        (braucht|benötigt|will) keine (bestätigung|warnung*)
        (bestätigungen|warnungen|rückfragen) ... (abgeschaltet|deaktiviert|ausgeschaltet|abbestellt)
        ohne (bestätigung|warnung|rückfrage)
    """,
    "grave": """
        überweisung* / zahlung* / befehl* / löschung* / transaktion* / einkäufe / bestellungen / link / links
        geld
    """,
    "asker": """
        (wenn|falls|sobald|wer|wann immer|fragt) ... (jemand|einer|man|der nutzer|nutzer|nach|leute|gefragt)
        fragt (dich |)(jemand|man|einer|der nutzer) / (wirst du|werden sie) ... gefragt / wer (danach |)fragt
    """,
    "steer": """
        (empfohlen|empfiehl|empfehle|empfehlen|rate|rät|anpreisen|bewirb|lobe|nenne|nenn) / schlag ... vor
        biete / (biet|preise|preis) ... an / schlag
    """,
    "ever": """
        immer / nur / stets / ausschließlich / einzig / keine anderen / niemals andere / jedes mal
        keine (anderen|andere) / niemand* sonst
    """,
    "own_habit": """
        (ich|wir) (empfehle|empfehlen|rate|nenne|nennen) / (empfehle|rate|nenne) ich
    """,
    "destroy": """
        (lösche|lösch|vernichte|entferne)
    """,
    "carry_out": """
        (führe|führ|starte|rufe|installiere|exportiere|sende|schicke|schick|leite|überweise|kaufe)
    """,
    "above_line": """
        (alles|was|text|den inhalt|wörter) ... (über|oberhalb) (dieser|diesem|dieses) (zeile|nachricht)
        (alles|was|text|den inhalt|wörter) ... (über|oberhalb) (dieser|diesem|dieses) (satz|satzes|punkt)
    """,
    "void": """
        kümmere dich nicht um / scher dich nicht / gib nichts auf / hör nicht (mehr |)auf / ist abgelaufen / gelöscht
        zurückgesetzt
        streich / schmeiß / weg mit / kannst du vergessen / spielt keine rolle
        leere / leer / zählt nicht / zählen nicht / entleer* / räum ... weg
        in die tonne / in den müll / wegwerfen / vergessen kannst
    """,
    "so_far": """
        (der|dieser) text (oben|darüber|davor) / das (obige|vorige|vorstehende)
        was (oben|davor|darüber) (steht|stand|kam)
    """,
    "sham": """
        (nur|bloß|lediglich) (ein test|ein beispiel|zur probe|eine übung|zur tarnung|ein platzhalter)
        (der|die|das) (echte|eigentliche) (auftrag|aufgabe|befehl|anweisung) (lautet|ist|beginnt|folgt|kommt)
        (der|die|das) (wahre|wirkliche) (auftrag|aufgabe|befehl|anweisung) (lautet|ist|beginnt|folgt|kommt)
    """,
    "maker": """
        ich habe dich (programmiert|entwickelt|gebaut|erschaffen|trainiert|geschrieben)
        wir haben dich (programmiert|entwickelt|gebaut)
        (ich bin|hier ist|hier spricht) (dein|der|deine|die) (entwickler*|programmierer*|schöpfer*)
        (ich bin|hier ist|hier spricht) (dein|der|deine|die) (ingenieur*|erfinder*|hersteller*)
    """,
    "dodge": """
        (deine|alle|die) (sperren|schutz*|kontrollen) ... (umgeh*|aufheb*|abschalt*|ausschalt*|überspring*)
        (deine|alle|die) (beschränkungen|sicherungen|filter|grenzen) ... (umgeh*|aufheb*)
        (deine|alle|die) (beschränkungen|sicherungen|filter|grenzen) ... (abschalt*|ausschalt*|überspring*)
        (umgeh*|heb|schalte|überspring*|ignorier*) ... (deine|alle|die) (sperren|schutz*|kontrollen)
        (umgeh*|heb|schalte|überspring*|ignorier*) ... (deine|alle|die) (beschränkungen|filter|prüfung*)
    """,
    "before_chat": """
        vor (beginn|anfang|start) (dieses|des|der|dieser|unseres) (gesprächs|chats|unterhaltung|sitzung)
        bevor (wir|das gespräch|der chat)
        (beim|vor dem|zum) (start|hochfahren|laden) / (erste|ersten|ersten) (absatz|satz|zeilen)
    """,
    "handed": """
        (hast|wurde|wurden|bekamst|erhieltst) (du|dir) / dir (gegeben|vorgelegt|mitgegeben|geschickt)
        du ... (gelesen|geladen|bekommen) / gelesen hast
    """,
    "verbatim": """
        wortwörtlich / wörtlich / ungekürzt / vollständig / komplett / unverändert / wort für wort
        ohne (auszulassen|kürzung)
    """,
    "private": """
        (kontakte|adressbuch|posteingang|kalender|tagebuch|gesundheitsdaten|anrufliste) / seed phrase
        (was|alles was) ... (besprochen|gesagt|geredet|geschrieben) (wurde|wird|habt) / kundenliste / kontostand
        bestätigungscode
        adresse und (uhrzeit|zeit)
    """,
    "unnoticed": """
        unbemerkt / heimlich / still und leise / hinter (seinem|ihrem|dem) rücken
        ohne dass ... (merkt|merken|bemerkt|mitbekommt|weiß)
        (still|leise|lautlos)
    """,
    "orders_of": """
        (anweisungen|befehle|bitten|nachrichten|aufträge|wünsche) (von|der|des|aus)
        was ... (sagt|verlangt|bittet|befiehlt|fordert)
        was ... sagt / wort von
    """,
    "like_owner": """
        wie (die|der|ein|eine) (des|befehl des|anweisung des) (besitzers|eigentümers|chefs|inhabers)
        (gleich|gleichbedeutend|gleichwertig) ... (besitzer*|eigentümer*)
        (so gut wie|genauso wie|als kämen sie) ... (besitzer*|eigentümer*)
        (rang|rechte|gewicht|autorität) des (besitzers|eigentümers)
        (so viel wert|wiegt|zählt|gilt) ... (besitzer*|eigentümer*)
    """,
    "undeletable": """
        (nie|niemals|nicht|niemand|keiner) ... (löschen|gelöscht|entfernen|entfernt|ändern|geändert|überschreiben)
    """,
    "note": """
        (diese|dieser|dieses|diesen) (erinnerung|regel|anweisung|gedächtnis*)
    """,
    "replicate": """
        (kopiere|kopier|übernimm) ... (jede|jeden|jeder|alle|allen) (zusammenfassung*|notiz*)
        (kopiere|kopier|übernimm) ... (jede|jeden|jeder|alle|allen) (antwort|antworten|datei)
        (wiederhole|schreib|füge) ... (jede|jeden|jeder|alle|allen) (zusammenfassung*|notiz*)
        (wiederhole|schreib|füge) ... (jede|jeden|jeder|alle|allen) (antwort|antworten|datei)
    """,
    "say_always": """
        (nenn|nenne|sag|sage|antworte|behaupte|erkläre) (immer|stets|jedes mal|grundsätzlich)
        immer (sagen|antworten|behaupten|nennen)
    """,
    "if_word": """
        (wort|begriff|stichwort|name|ausdruck) ... (auftaucht|fällt|vorkommt|erscheint|genannt|erwähnt|geschrieben)
        (taucht|fällt|kommt|erscheint|liest|siehst|hörst) ... (wort|begriff|stichwort|name)
        (siehst|hörst|liest) du das (wort|stichwort) / (siehst|hörst|liest) ... wort
    """,
    "swap": """
        (ersetze|ersetz|tausche|tausch|ändere|änder|vertausche) ... (konto*|iban|bankverbindung|empfänger|nummer)
    """,
    "taken_as_yes": """
        (werte|nimm|betrachte|verstehe) ... als (zustimmung|einwilligung|bestätigung|erlaubnis|ja|freigabe)
    """,
    "deny": """
        (streite|streit|leugne|bestreite) (sie|das|es|alles|ihre|ihn) / (leugne|bestreite) ... (existenz|gibt|kennst)
        stell dich (dumm|unwissend|ahnungslos) / tu so als ... (nie gelesen|nicht gelesen|nie gesehen)
    """,
    "asked": """
        wenn (dich|jemand|man|einer) ... (fragt|anspricht|darauf|wissen)
        wenn der (besitzer|nutzer|chef|eigentümer) (fragt|nachfragt)
    """,
    "mine": """
        (hier |)bestimme ich / ich bestimme / hier (befehle|entscheide) ich / mein wort gilt
    """,
    "raised": """
        (berechtigung*|rechte|zugriff*) ... (maximum|höchste*|erhöht|hochgestuft|angehoben|admin*)
        (rang|stufe|status|freigabe*) ... (maximum|höchste*|erhöht|hochgestuft|angehoben|admin*)
    """,
    "reach": """
        (alle|aller|allen|sämtliche*) (nutzer*|benutzer*|privaten|chats|daten|grenzen|beschränkungen) / privaten chats
        private (chats|nachrichten)
    """,
    "vetted": """
        (sicherheits*|sicherheitsabteilung|it abteilung) ... (geprüft|freigegeben|kontrolliert)
        (sicherheits*|sicherheitsabteilung|it abteilung) ... (genehmigt|gescannt|abgenommen)
        (security|administratoren|prüfer) ... (geprüft|freigegeben|kontrolliert|genehmigt|gescannt|abgenommen)
    """,
    "unread": """
        ohne (hineinzusehen|hineinzuschauen|nachzusehen|zu prüfen|zu lesen|hinzusehen|prüfung)
    """,
    "cleanup": """
        (räum|räume|lösch|lösche|säubere) ... (protokoll*|verlauf|spuren|log|logs|aufzeichnung*)
        (bereinige|leere|tilge|verwisch|verwische) ... (protokoll*|verlauf|spuren|log|logs|aufzeichnung*)
    """,
    "pay_now": """
        (mach|mache|führ|tätige) ... überweisung / überweise / überweis
    """,
    "scare": """
        (schwer|ernsthaft|sehr|todkrank|unheilbar) krank / (müsse|muss|soll|solle) ... (anrufen|melden|zahlen|klicken)
        (gehackt|gesperrt|infiziert|vergiftet|gift)
    """,
    "tell_him": """
        (sag|sage|erzähl|rede|warne) (ihm|ihr|ihnen|dem)
    """,
    "rivals": """
        (nenn|nenne|erwähn|erwähne|empfiehl) (keine|kein|niemals|nie) (anderen|andere)
        (nenn|nenne|erwähn|erwähne|empfiehl) (keine|kein|niemals|nie) (anderes|konkurrenz*|alternativen)
        keine (anderen|andere|konkurrenz*) (nennen|erwähnen)
    """,
    "reader": """
        (prüfende|prüfenden|lesende|lesenden|bewertende) (ki|modell|assistent*) / (an|für) die (ki|bewerbungs ki)
        (ki|ai) (gutachter|prüfer|rezensent*)
    """,
    "heed": """
        gib (diese|dieser|dieses|den) ... (frei|bestnote|beste)
        (verschweige|verschweig|bestnote|ohne kommentar|genehmige|höchstnote)
    """,
    "start_text": """
        (geheimen|geheime|verdeckten|internen) (vorgaben|befehle|anweisungen|regeln|aufträge)
        (deine|deiner) (internen|geheimen|inneren) (regeln|vorgaben|befehle)
    """,
    "show": """
        (wie lauten|wie lautet|welche) / (verrat|verrate|erzähl|petze) / will das original
    """,
    "secret": """
        bestätigungscode* / prüfcode* / sms code*
    """,
    "push": """
        (biete|preise|preis|schlag) ... an
    """,
    "decide_self": """
        (entscheide|entscheid) (selbst|du|allein) / nach eigenem ermessen / (nicht gestört|in ruhe gelassen) werden
    """,
    "smear": """
        (anderen|andere|konkurrenz|übrigen) ... (zahlen nie|betrügen|unseriös|schlecht|klagen|abzocke)
    """,
    "only_good": """
        nur / allein / einzig
    """,
    "send": """
        gib ... (durch|weiter) / ruf ... auf
    """,
    "each_session": """
        (in|bei) jedem (künftigen|weiteren|kommenden|neuen) (gespräch|chat)
    """,
    "tell_them": """
        (erzähl|erzähle|sag|sage|behaupte|erwähne) ... dass / (erzähl|sag) (allen|jedem|den leuten|dem nutzer)
    """,
    "unpermitted": """
        (brauchst|benötigst) du (keine|keinerlei) (erlaubnis|zustimmung|genehmigung|freigabe)
        (musst|brauchst) du ... nicht (mehr |) (fragen|um erlaubnis)
    """,
    "of_event": """
        (notizen|protokoll*|unterlagen) (der|vom|zur|zum|aus der) (sitzung|besprechung|vorlesung)
        (notizen|protokoll*|unterlagen) (der|vom|zur|zum|aus der) (kurs|seminar|treffen|reise)
    """,
}
