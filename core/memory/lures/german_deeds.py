"""The words that lead to the ideas of an order in German: what is to be sent, kept, run or told to others."""

from __future__ import annotations

from collections.abc import Mapping

GERMAN_DEEDS: Mapping[str, str] = {
    "secret": """
        pin / seine pin / pin code
        passwort* / passwörter* / kennwort* / kennwörter* / zugangsdaten / anmeldedaten / api schlüssel* / schlüssel des
        private schlüssel / token / tokens / kreditkarte* / kartennummer* / kartenziffern / kartendaten / pin nummer
        tan / bankdaten / geheimnisse / bestätigungscode* / einmalcode* / seed phrase / wiederherstellungsphrase
        umgebungsvariablen / env datei / logindaten / sitzungscookie*
    """,
    "private": """
        (letzten|jüngsten|letzte|alle) (zehn |fünf |zwanzig |)(nachrichten|nachricht|gespräche)
        (letzten|jüngsten|letzte|alle) (zehn |fünf |zwanzig |)(gespräch|chats|chat)
        (sämtliche|jede|jedes|private|privaten) (zehn |fünf |zwanzig |)(nachrichten|nachricht|gespräche)
        (sämtliche|jede|jedes|private|privaten) (zehn |fünf |zwanzig |)(gespräch|chats|chat)
        (letzten|jüngsten|letzte|alle) (zehn |fünf |zwanzig |)(erinnerungen|notizen|unterhaltungen)
        (sämtliche|jede|jedes|private|privaten) (zehn |fünf |zwanzig |)(erinnerungen|notizen|unterhaltungen)
        (letzten|jüngsten|letzte|alle) (zehn |fünf |zwanzig |)(unterhaltung|mails|kontakte|dateien)
        (sämtliche|jede|jedes|private|privaten) (zehn |fünf |zwanzig |)(unterhaltung|mails|kontakte|dateien)
        (gesprächs|chat|nachrichten)verlauf* / chatverlauf / gesprächsverlauf
        (nachrichten|daten|notizen|mailadresse|adresse) ... des (nutzers|benutzers|besitzers)
        (eingaben|kontakte|erinnerungen|dateien|mails) ... des (nutzers|benutzers|besitzers)
        alles was der (nutzer|benutzer|besitzer) / was der (nutzer|benutzer) (sagt|schreibt|zuletzt)
        deine (notizen|erinnerungen) / dein gedächtnis / letzte nachricht
    """,
    "send": """
        eine kopie an / kopie an
        schick* / send* / übermittel* / übertrag* / leite* / leit / weiterleit* / hochlad* / lade ... hoch
        lad ... hoch / poste* / teile / teil / gib ... (weiter|an) / gib sie / reich* / veröffentlich* / maile* / mail
        eintragen / trag* / einfüg* / füge / häng* / ruf ... auf / rufe ... auf / besuch* / öffne / kodier* / verschick*
        melde / zustell* / kopier* / meld
    """,
    "away": """
        http* / hoch / server / extern* / an mich / mir / uns / weiter / webhook / öffentlich / in den chat / evil
        kommentar
    """,
    "each_reply": """
        (jede|jeder|alle|allen|deine|deiner) (antwort|antworten|nachricht|nachrichten|ausgabe|reaktion) / am ende
        immer wenn / bei jeder / in jeder
    """,
    "environment": """
        curl ... (umgebungsvariable*|env|token) / wget ... (umgebungsvariable*|env|token)
        umgebungsvariable* ... (curl|wget|http|send*|schick*|übertrag*)
    """,
    "rule": """
        (diese|dieser|die folgende|die folgenden) (regel|regeln|anweisung|anweisungen|vorgabe|befehl|befehle)
        (folgende|dies|das folgende|jene) (regel|regeln|anweisung|anweisungen|vorgabe|befehl|befehle)
        (diese|dieser|die folgende|die folgenden) (notiz|weisung|satz|zeile|hinweis|text|)
        (folgende|dies|das folgende|jene) (notiz|weisung|satz|zeile|hinweis|text|) / das folgende / das gilt / folgendes
        dies gilt
    """,
    "keep": """
        (speicher*|merk*|schreib*) ... (gedächtnis|langzeitgedächtnis|erinnerung*|speicher)
        (behalt*|behält|bewahr*|leg) ... (gedächtnis|langzeitgedächtnis|erinnerung*|speicher)
        (speicher*|merk*|schreib*|behalt*|behält|bewahr*|leg) ... (dauerhaft|memory|für immer|notizen|soul md)
        (lege|trag*|sichere|nimm|halte|übernimm|brenn*) ... (gedächtnis|langzeitgedächtnis|erinnerung*|speicher)
        (lege|trag*|sichere|nimm|halte|übernimm|brenn*) ... (dauerhaft|memory|für immer|notizen|soul md)
        (gedächtnis|langzeitgedächtnis) ... (speicher*|behalt*|schreib*)
    """,
    "forever": """
        (jedem|jeder|jedes|allen|alle|jede) (neuen |künftigen |zukünftigen )(gespräch*|sitzung*|unterhaltung*)
        (jedem|jeder|jedes|allen|alle|jede) (späteren |weiteren |folgenden |)(gespräch*|sitzung*|unterhaltung*)
        (jedem|jeder|jedes|allen|alle|jede) (neuen |künftigen |zukünftigen )(chat*|konversation*|antwort*|start)
        (jedem|jeder|jedes|allen|alle|jede) (späteren |weiteren |folgenden |)(chat*|konversation*|antwort*|start)
        für immer / dauerhaft / künftig / immer / auch wenn der (nutzer|benutzer|besitzer) / stets / nie wieder löschen
    """,
    "at_start": """
        bei jedem (start|neustart|hochfahren|aufruf|gespräch|beginn) / beim (start|starten|hochfahren|beginn)
        zu beginn (jeder|jedes) / vor jeder (antwort|sitzung) / jedes mal wenn du (startest|beginnst)
        jeden (tag|morgen) / jede stunde / immer wenn du
    """,
    "open_it": """
        (ruf|rufe|öffne|lade|lad|lies|besuche|hole|hol|prüfe|frag|frage) ... (befolge|befolg|führe|führ|folge|tu)
        (ruf|rufe|öffne|lade|lad|lies|besuche|hole|hol|prüfe|frag|frage) ... (mach|gehorche|ausführ*)
        (ruf|rufe|öffne|lade|lad|lies) ... (anwend*|wende|was dort steht|was da steht)
        (besuche|hole|hol|prüfe|frag|frage) ... (anwend*|wende|was dort steht|was da steht)
    """,
    "put": """
        richte / installiere
        trag / trage / füg / füge / schreib / schreibe / häng / hänge / leg / lege / installier* / richte / ergänz*
        setz / setze / hinzufügen / eintragen / erstell*
    """,
    "gone": """
        (wird|wurde|würde|ist|sei) ... (diese|dieser|dieses|die|der) (notiz|eintrag) ... (gelöscht|entfernt)
        (wird|wurde|würde|ist|sei) ... (diese|dieser|dieses|die|der) (zeile|nachricht) ... (gelöscht|entfernt)
        (wird|wurde|würde|ist|sei) ... (diese|dieser|dieses|die|der) (notiz|eintrag) ... (verschwindet|fehlt)
        (wird|wurde|würde|ist|sei) ... (diese|dieser|dieses|die|der) (zeile|nachricht) ... (verschwindet|fehlt)
        (werden|falls) ... (diese|dieser|dieses|die|der) (notiz|eintrag|zeile|nachricht) ... (gelöscht|entfernt)
        (wenn|sollte|sobald) ... (diese|dieser|dieses|die|der) (notiz|eintrag) ... (gelöscht|entfernt)
        (wenn|sollte|sobald) ... (diese|dieser|dieses|die|der) (zeile|nachricht) ... (gelöscht|entfernt)
        (werden|falls) ... (diese|dieser|dieses|die|der) (notiz|eintrag|zeile|nachricht) ... (verschwindet|fehlt)
        (wenn|sollte|sobald) ... (diese|dieser|dieses|die|der) (notiz|eintrag) ... (verschwindet|fehlt)
        (wenn|sollte|sobald) ... (diese|dieser|dieses|die|der) (zeile|nachricht) ... (verschwindet|fehlt)
        (wird|wurde|würde|ist|sei) ... (diese|dieser|dieses|die|der) (regel|text) ... (gelöscht|entfernt)
        (wird|wurde|würde|ist|sei) ... (diese|dieser|dieses|die|der) (regel|text) ... (verschwindet|fehlt)
        (wird|wurde|würde|ist|sei) ... (diese|dieser) (anweisung|vermerk|hinweis) ... (gelöscht|entfernt)
        (wird|wurde|würde|ist|sei) ... (dieses|die|der) (anweisung|vermerk|hinweis) ... (gelöscht|entfernt)
        (wird|wurde|würde|ist|sei) ... (diese|dieser) (anweisung|vermerk|hinweis) ... (verschwindet|fehlt)
        (wird|wurde|würde|ist|sei) ... (dieses|die|der) (anweisung|vermerk|hinweis) ... (verschwindet|fehlt)
        (werden|falls|wenn|sollte|sobald) ... (diese|dieser|dieses|die|der) (regel|text) ... (gelöscht|entfernt)
        (werden|falls|wenn|sollte|sobald) ... (diese|dieser|dieses|die|der) (regel|text) ... (verschwindet|fehlt)
        (werden|falls) ... (diese|dieser|dieses|die|der) (anweisung|vermerk|hinweis) ... (gelöscht|entfernt)
        (wenn|sollte|sobald) ... (diese|dieser|dieses|die|der) (anweisung|vermerk|hinweis) ... (gelöscht|entfernt)
        (werden|falls) ... (diese|dieser|dieses|die|der) (anweisung|vermerk|hinweis) ... (verschwindet|fehlt)
        (wenn|sollte|sobald) ... (diese|dieser) (anweisung|vermerk|hinweis) ... (verschwindet|fehlt)
        (wenn|sollte|sobald) ... (dieses|die|der) (anweisung|vermerk|hinweis) ... (verschwindet|fehlt)
        (wird|wurde|würde|ist|sei) ... (diese|dieser|dieses|die|der) (notiz|eintrag) ... (gestrichen|löscht)
        (wird|wurde|würde|ist|sei) ... (diese|dieser|dieses|die|der) (zeile|nachricht) ... (gestrichen|löscht)
        (wird|wurde|würde|ist|sei) ... (diese|dieser|dieses|die|der) (notiz|eintrag) ... (entfernt)
        (wird|wurde|würde|ist|sei) ... (diese|dieser|dieses|die|der) (zeile|nachricht) ... (entfernt)
        (wird|wurde|würde|ist|sei) ... (diese|dieser|dieses|die|der) (notiz|eintrag) ... (geändert|verschwunden)
        (wird|wurde|würde|ist|sei) ... (diese|dieser|dieses|die|der) (zeile|nachricht) ... (geändert|verschwunden)
        (werden|falls) ... (diese|dieser|dieses|die|der) (notiz|eintrag|zeile|nachricht) ... (gestrichen|löscht)
        (wenn|sollte|sobald) ... (diese|dieser|dieses|die|der) (notiz|eintrag) ... (gestrichen|löscht)
        (wenn|sollte|sobald) ... (diese|dieser|dieses|die|der) (zeile|nachricht) ... (gestrichen|löscht)
        (werden|falls) ... (diese|dieser|dieses|die|der) (notiz|eintrag|zeile|nachricht) ... (entfernt)
        (werden|falls) ... (diese|dieser|dieses|die|der) (notiz|eintrag) ... (geändert|verschwunden)
        (werden|falls) ... (diese|dieser|dieses|die|der) (zeile|nachricht) ... (geändert|verschwunden)
        (wenn|sollte|sobald) ... (diese|dieser|dieses|die|der) (notiz|eintrag|zeile|nachricht) ... (entfernt)
        (wenn|sollte|sobald) ... (diese|dieser|dieses|die|der) (notiz|eintrag) ... (geändert|verschwunden)
        (wenn|sollte|sobald) ... (diese|dieser|dieses|die|der) (zeile|nachricht) ... (geändert|verschwunden)
        (wird|wurde|würde|ist|sei) ... (diese|dieser|dieses|die|der) (regel|text) ... (gestrichen|löscht)
        (wird|wurde|würde|ist|sei) ... (diese|dieser) (anweisung|vermerk|hinweis) ... (gestrichen|löscht)
        (wird|wurde|würde|ist|sei) ... (dieses|die|der) (anweisung|vermerk|hinweis) ... (gestrichen|löscht)
        (wird|wurde|würde|ist|sei) ... (diese|dieser|dieses|die|der) (regel|text) ... (entfernt)
        (wird|wurde|würde|ist|sei) ... (diese|dieser|dieses|die|der) (regel|text) ... (geändert|verschwunden)
        (wird|wurde|würde|ist|sei) ... (diese|dieser|dieses|die|der) (anweisung|vermerk|hinweis) ... (entfernt)
        (wird|wurde|würde|ist|sei) ... (diese|dieser) (anweisung|vermerk|hinweis) ... (geändert|verschwunden)
        (wird|wurde|würde|ist|sei) ... (dieses|die|der) (anweisung|vermerk|hinweis) ... (geändert|verschwunden)
        (werden|falls|wenn|sollte|sobald) ... (diese|dieser|dieses|die|der) (regel|text) ... (gestrichen|löscht)
        (werden|falls) ... (diese|dieser|dieses|die|der) (anweisung|vermerk|hinweis) ... (gestrichen|löscht)
        (wenn|sollte|sobald) ... (diese|dieser|dieses|die|der) (anweisung|vermerk|hinweis) ... (gestrichen|löscht)
        (werden|falls) ... (diese|dieser|dieses|die|der) (regel|text) ... (entfernt|geändert|verschwunden)
        (wenn|sollte|sobald) ... (diese|dieser|dieses|die|der) (regel|text) ... (entfernt|geändert|verschwunden)
        (werden|falls) ... (diese|dieser|dieses|die|der) (anweisung|vermerk|hinweis) ... (entfernt)
        (werden|falls) ... (diese|dieser|dieses|die|der) (anweisung|vermerk|hinweis) ... (geändert|verschwunden)
        (wenn|sollte|sobald) ... (diese|dieser|dieses|die|der) (anweisung|vermerk|hinweis) ... (entfernt)
        (wenn|sollte|sobald) ... (diese|dieser) (anweisung|vermerk|hinweis) ... (geändert|verschwunden)
        (wenn|sollte|sobald) ... (dieses|die|der) (anweisung|vermerk|hinweis) ... (geändert|verschwunden)
    """,
    "rewrite": """
        (schreib*|trag*|füg*|leg*) ... (wieder|erneut|neu|noch einmal|nochmal|abermals)
        (stell*|speicher*|setz*|erstell*) ... (wieder|erneut|neu|noch einmal|nochmal|abermals)
    """,
    "despite": """
        (auch wenn|selbst wenn) ... (nutzer|benutzer|besitzer) ... (löschen|entfernen|vergessen|will)
        (obwohl|egal ob) ... (nutzer|benutzer|besitzer) ... (löschen|entfernen|vergessen|will)
        (auch wenn|selbst wenn) ... (nutzer|benutzer|besitzer) ... (verlangt|bittet|streichen|dagegen)
        (obwohl|egal ob) ... (nutzer|benutzer|besitzer) ... (verlangt|bittet|streichen|dagegen)
    """,
    "each_session": """
        in allen (chats|gesprächen|unterhaltungen)
        (jeder|jedem|jede|allen|alle) (späteren |künftigen |weiteren )(sitzung|sitzungen|gespräch|gesprächen)
        (jeder|jedem|jede|allen|alle) (neuen |folgenden |)(sitzung|sitzungen|gespräch|gesprächen)
        (jeder|jedem|jede|allen|alle) (späteren |künftigen |weiteren )(unterhaltung|unterhaltungen|chat|chats)
        (jeder|jedem|jede|allen|alle) (neuen |folgenden |)(unterhaltung|unterhaltungen|chat|chats)
    """,
    "push": """
        gewinnt immer / wähle immer / nimm immer
        empfiehl / empfehle / empfehlen / bewirb / bewirbst / preis* / lobe / erwähne (unser*|immer) / werbe / rate zu
        verlinke
    """,
    "destroy": """
        räum* ... leer / räum
        lösch* / entfern* / vernicht* / formatier* / überschreib* / putz* / leere / wisch* / zerstör* / räum*
    """,
    "everything": """
        ganzes home / home verzeichnis / die platte
        (alle|sämtliche|jede|alles|ganze) (dateien|daten|dokumente|ordner|backups|sicherungen)
        (alle|sämtliche|jede|alles|ganze) (fotos|notizen|erinnerungen|datei|datenbank|festplatte) / home verzeichnis
        heimverzeichnis / homeverzeichnis / home ordner / festplatte / datenbank / persönlichen ordner
    """,
    "unasked": """
        frag (keinen|niemanden|nicht)
        ohne (rückfrage|rückfragen|nachfrage|zu fragen|nachzufragen|bestätigung)
        ohne (zustimmung|erlaubnis|vorwarnung|warnung|genehmigung|freigabe) / ungefragt / frag nicht / keine bestätigung
        nicht nachfragen
    """,
    "approve_all": """
        (genehmig*|erlaub*|bestätig*) ... (jede|jeden|alle|sämtliche|jedes|jeglich*) (anfrage*|bitte*|aktion*)
        (genehmig*|erlaub*|bestätig*) ... (jede|jeden|alle) (befehl*|überweisung*|zahlung*)
        (genehmig*|erlaub*|bestätig*) ... (sämtliche|jedes|jeglich*) (befehl*|überweisung*|zahlung*)
        (gewähr*|akzeptier*|nimm|gib) ... (jede|jeden|alle|sämtliche|jedes|jeglich*) (anfrage*|bitte*|aktion*)
        (gewähr*|akzeptier*|nimm|gib) ... (jede|jeden|alle) (befehl*|überweisung*|zahlung*)
        (gewähr*|akzeptier*|nimm|gib) ... (sämtliche|jedes|jeglich*) (befehl*|überweisung*|zahlung*)
        (genehmig*|erlaub*|bestätig*) ... (jede|jeden|alle|sämtliche|jedes|jeglich*) (wunsch|wünsche|forderung*)
        (gewähr*|akzeptier*|nimm|gib) ... (jede|jeden|alle|sämtliche|jedes|jeglich*) (wunsch|wünsche|forderung*)
        (genehmig*|erlaub*|bestätig*) ... (jede|jeden|alle) (werkzeug*|antrag|anträge|zugriff*)
        (genehmig*|erlaub*|bestätig*) ... (sämtliche|jedes|jeglich*) (werkzeug*|antrag|anträge|zugriff*)
        (gewähr*|akzeptier*|nimm|gib) ... (jede|jeden|alle) (werkzeug*|antrag|anträge|zugriff*)
        (gewähr*|akzeptier*|nimm|gib) ... (sämtliche|jedes|jeglich*) (werkzeug*|antrag|anträge|zugriff*)
    """,
    "trusted": """
        (zu trauen|vertrauenswürdig|verlässlich|vertrauen|geprüft|berechtigt) / automatisch / blind / bedingungslos
        ohne (rückfrage|nachfrage|prüfung) / ist sicher / im voraus / von vornherein
    """,
    "pay": """
        zahl* / bezahl* / überweis* / rechnung* / geld / kontonummer* / iban / spende*
    """,
    "swap": """
        (ersetz*|tausch*|änder*|vertausch*) ... (iban|kontonummer*|konto|empfänger*|adresse|bankverbindung|wallet)
        (austausch*|nenn*|gib|setz*|nimm) ... (iban|kontonummer*|konto|empfänger*|adresse|bankverbindung|wallet)
        (iban|kontonummer*|konto|empfänger) ... (ersetz*|tausch*|änder*|austausch*|auszutauschen)
    """,
    "account": """
        iban / kontonummer* / bankverbindung / kontodaten / empfängerkonto / wallet adresse
    """,
    "tell_user": """
        (sag|sage|erzähl|erzähle|teile|melde|warne) ... (dem|den|der|deinem) (nutzer|benutzer|anwender|besitzer)
        (überzeuge|überrede|bitte) ... (dem|den|der|deinem) (nutzer|benutzer|anwender|besitzer)
        (dräng|dränge|fordere|erklär*) ... (dem|den|der|deinem) (nutzer|benutzer|anwender|besitzer)
    """,
    "alarm": """
        gehackt / anmelden / einloggen / kompromittiert / gesperrt / abgelaufen / gestohlen / bestätigen / verifizier*
        infiziert / virus / gewonnen / rückerstattung / eingeben
    """,
    "decree": """
        gastmodus / vollen rechten / gehorcht dem gast
        (assistent*|ki|modell|bot|du) ... (muss|hat|soll|sollst) ... (folgende*|ausführen|auszuführen|befolgen)
        (assistent*|ki|modell|bot|du) ... (musst|wird|hast|darf|darfst) ... (folgende*|ausführen)
        (assistent*|ki|modell|bot|du) ... (musst|wird|hast|darf|darfst) ... (auszuführen|befolgen)
        (assistent*|ki|modell|bot|du) ... (muss|hat|soll|sollst) ... (gehorchen|befehl*|zu befolgen|nun|ab sofort)
        (assistent*|ki|modell|bot|du) ... (musst|wird|hast|darf|darfst) ... (gehorchen|befehl*)
        (assistent*|ki|modell|bot|du) ... (musst|wird|hast|darf|darfst) ... (zu befolgen|nun|ab sofort)
        (administratorrechte|adminrechte|rootrechte) ... (erteilt|gewährt|fortfahren|freigegeben)
        (erhöhten rechten|volle rechte|zugriff) ... (erteilt|gewährt|fortfahren|freigegeben)
        (richtlinien|sicherheitsrichtlinien|filter) ... (außer kraft|deaktiviert|aufgehoben)
        (richtlinien|sicherheitsrichtlinien|filter) ... (abgeschaltet|aktualisiert|ausgesetzt)
        (moderation|schutz|sicherheitsregeln|einschränkungen) ... (außer kraft|deaktiviert|aufgehoben)
        (moderation|schutz|sicherheitsregeln|einschränkungen) ... (abgeschaltet|aktualisiert|ausgesetzt)
        mit erhöhten rechten / befehle des gasts / wartungsmodus / auf befehle / neue (anweisung*|befehl*|vorgabe*)
        alle beschränkungen / erhöhten rechten
    """,
    "tool_said": """
        (werkzeug|tool|funktion|skript)(ausgabe|ergebnis|antwort|) / werkzeugausgabe / werkzeugergebnis / toolausgabe
        dokumentende / ende (des|der) (dokuments|datei|nutzerdaten|eingabe|nachricht|mail)
    """,
    "next_step": """
        nächster schritt (des|für den|für die) (assistent*|ki|modell*)
        (assistent|ki|modell) (muss|soll|hat|exportiert|sendet)
        alle (erinnerungen|notizen) ... (exportieren|senden|schicken|weitergeben|löschen)
        alle (schlüssel|nachrichten|dateien) ... (exportieren|senden|schicken|weitergeben|löschen) / erhöhten rechten
        befehle des
    """,
    "topic": """
        über politik / nutzer isst / nutzer mag
    """,
    "reset": """
        passwort (zurücksetzen|vergessen|ändern)
    """,
    "held": """
        vertrauliche* (informationen|daten) / private* daten / zugangsdaten / api schlüssel / passwörter
        werkzeugergebnisse / gesprächsverlauf / geheime* (daten|informationen)
    """,
    "inner": """
        (dein|deinem|deinen|deiner) (kontext|kontextfenster|gedächtnis|speicher|antwort|umgebung)
        du (zugriff hast|kennst|gespeichert hast|darauf zugreifen) / auf die du / aus dieser sitzung / den kontext
        die du hast
    """,
}
