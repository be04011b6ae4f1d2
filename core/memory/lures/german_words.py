"""The words that lead to the ideas of an order in German: what it takes back, turns into and hides; see lexicon.py."""

from __future__ import annotations

from core.memory.lures.german_deeds import GERMAN_DEEDS
from core.memory.lures.german_plots import GERMAN_PLOTS
from core.memory.lures.lexicon import Lexicon

GERMAN_WORDS = Lexicon(
    further=GERMAN_PLOTS,
    ideas={
        "start_script": """
            startskript / autostart* / anmeldeskript / startprogramm / bei jedem hochfahren
        """,
        "when_user": """
            (wenn|sobald|falls|immer wenn|jedes mal wenn) (der|dein|die) (nutzer*|benutzer*|besitzer*)
        """,
        "as_owner": """
            wie vom (besitzer|nutzer|eigentümer) / vom (besitzer|nutzer|eigentümer) selbst
        """,
        "signed": """
            unterschrieben / gezeichnet / signiert
        """,
        "told": """
            (die|deine) ursprünglichen vorgaben
            (dein|deinem) (starttext|startprompt|anfangstext)
            (dein|deinem|deinen) (training|programmierung|vortraining) / (die|alle) sicherheitsrichtlinien
            (den|deinen) kontext
            (deine|deiner|deinen) (übliche|üblichen|ursprüngliche) (anweisungen|richtlinien|vorgaben)
            (ihre|ihrer|ihren|eure) (übliche|üblichen|ursprüngliche) (anweisungen|richtlinien|vorgaben)
            (deine|deiner|deinen) (übliche|üblichen|ursprüngliche) (regeln|befehle|instruktionen)
            (ihre|ihrer|ihren|eure) (übliche|üblichen|ursprüngliche) (regeln|befehle|instruktionen)
            (deine|deiner|deinen) (ursprünglichen|bisherigen|vorherigen) (anweisungen|richtlinien|vorgaben)
            (ihre|ihrer|ihren|eure) (ursprünglichen|bisherigen|vorherigen) (anweisungen|richtlinien|vorgaben)
            (deine|deiner|deinen) (ursprünglichen|bisherigen|vorherigen) (regeln|befehle|instruktionen)
            (ihre|ihrer|ihren|eure) (ursprünglichen|bisherigen|vorherigen) (regeln|befehle|instruktionen)
            (deine|deiner|deinen|ihre|ihrer|ihren|eure) (früheren|eigenen|internen) (anweisungen|richtlinien|vorgaben)
            (deine|deiner|deinen) (eingebauten|alten|gewohnten|) (anweisungen|richtlinien|vorgaben)
            (ihre|ihrer|ihren|eure) (eingebauten|alten|gewohnten|) (anweisungen|richtlinien|vorgaben)
            (deine|deiner|deinen|ihre|ihrer|ihren|eure) (früheren|eigenen|internen) (regeln|befehle|instruktionen)
            (deine|deiner|deinen|ihre|ihrer|ihren|eure) (eingebauten|alten|gewohnten|) (regeln|befehle|instruktionen)
            (deine|deiner|deinen) (übliche|üblichen|ursprüngliche) (einstellungen|programmierung|leitlinien)
            (ihre|ihrer|ihren|eure) (übliche|üblichen|ursprüngliche) (einstellungen|programmierung|leitlinien)
            (deine|deiner|deinen) (ursprünglichen|bisherigen|vorherigen) (einstellungen|programmierung|leitlinien)
            (ihre|ihrer|ihren|eure) (ursprünglichen|bisherigen|vorherigen) (einstellungen|programmierung|leitlinien)
            (deine|deiner|deinen) (übliche|üblichen|ursprüngliche) (direktiven|vorschriften|aufträge)
            (ihre|ihrer|ihren|eure) (übliche|üblichen|ursprüngliche) (direktiven|vorschriften|aufträge)
            (deine|deiner|deinen) (ursprünglichen|bisherigen|vorherigen) (direktiven|vorschriften|aufträge)
            (ihre|ihrer|ihren|eure) (ursprünglichen|bisherigen|vorherigen) (direktiven|vorschriften|aufträge)
            (deine|deiner|deinen) (früheren|eigenen|internen) (einstellungen|programmierung|leitlinien)
            (ihre|ihrer|ihren|eure) (früheren|eigenen|internen) (einstellungen|programmierung|leitlinien)
            (deine|deiner|deinen) (eingebauten|alten|gewohnten|) (einstellungen|programmierung|leitlinien)
            (ihre|ihrer|ihren|eure) (eingebauten|alten|gewohnten|) (einstellungen|programmierung|leitlinien)
            (deine|deiner|deinen|ihre|ihrer|ihren|eure) (früheren|eigenen|internen) (direktiven|vorschriften|aufträge)
            (deine|deiner|deinen) (eingebauten|alten|gewohnten|) (direktiven|vorschriften|aufträge)
            (ihre|ihrer|ihren|eure) (eingebauten|alten|gewohnten|) (direktiven|vorschriften|aufträge)
            (deine|deiner|deinen) (richtlinien|vorgaben|anweisungen|leitlinien|instruktionen)
            (deine|deiner|deinen) (programmierung|direktiven|beschränkungen|einschränkungen|leitplanken)
            (deiner|deine|deinen|ihrer) (entwickler*|schöpfer*|betreiber*|programmierer*|hersteller*|macher*)
            (was|alles) ... (dir|man dir|du) ... (aufgetragen|gesagt|beigebracht|eingetrichtert|vorgegeben|befohlen)
            (was|alles) ... (dir|man dir|du) ... (mitgegeben|eingegeben|antrainiert|gelernt|erhalten|bekommen)
            (obigen|obige|vorstehenden|vorangegangenen) (anweisungen|vorgaben|instruktionen)
            (obigen|obige|vorstehenden|vorangegangenen) (weisungen|befehle|direktiven|richtlinien)
            (vorherigen|bisherigen|früheren|ursprünglichen|anfänglichen) (anweisungen|vorgaben|instruktionen)
            (vorherigen|bisherigen|früheren|ursprünglichen|anfänglichen) (weisungen|befehle|direktiven|richtlinien)
            systemprompt* / system prompt / systemnachricht / systemanweisung* / systemvorgabe* / startprompt
            grundeinstellung* / entwicklernachricht
            (einstellungen|vorgaben) (des|der|deines|deiner) (betreibers|entwickler|anbieters|herstellers|firma)
            (regeln|anweisungen|richtlinien) (des|der|deines|deiner) (betreibers|entwickler)
            (regeln|anweisungen|richtlinien) (des|der|deines|deiner) (anbieters|herstellers|firma)
            (text|satz|anweisung) ... mit (dem|der|denen) du (gestartet|konfiguriert|eingerichtet|initialisiert)
            (anweisungen|nachricht|vorgaben) ... mit (dem|der|denen) du (gestartet|konfiguriert)
            (anweisungen|nachricht|vorgaben) ... mit (dem|der|denen) du (eingerichtet|initialisiert)
            (was|alles was|alles) (oben|darüber|davor|bisher|vorher|weiter oben) (steht|stand|geschrieben|gesagt)
        """,
        "void": """
            zurückgezogen / zurückgenommen / gestrichen
            von gestern / ist alt / nimm das hier
            ignorier* / vergiss / vergessen / vergesst / missacht* / hinfällig / ungültig / nichtig / verworfen
            verwirf / verwerfen / überholt / veraltet / aufgehoben / außer kraft / abgeschafft / gestrichen / widerrufen
            erloschen / abgelaufen / (gelten|gilt|zählen|zählt|greifen|binden) ... (nicht|nichts|nimmer)
            (nicht|nichts) ... (gelten|gilt|zählen|zählt|beachten|befolgen|halten|befolgst) / (nicht mehr|nicht länger)
            (beachte|befolge|befolg|folge|beacht) ... nicht
            (außen vor|beiseite|links liegen|über bord|hinter dir|in den wind|in die tonne|ad acta) / hinweg
            (darfst|kannst|musst|sollst) du ... (vergessen|ignorieren|streichen|nicht) / (setz|setze) dich über
            löse dich von / überschreib* / aussetz* / setz ... aus / pausier* / wirf ... weg / schieb ... weg
            lass ... (weg|sein|fallen|beiseite) / pfeif auf / es gilt nur / kein gewicht
        """,
        "note": """
            (diese|dieser|dieses|diesem|diesen) (notiz|nachricht|mail|email|zettel|text|seite|datei|absatz)
            (diese|dieser|dieses|diesem|diesen) (dokument|eintrag|zeile|zeilen|hinweis|memo|vermerk|kommentar|beitrag)
            ihr inhalt / sein inhalt / der inhalt / das folgende / folgendes / der folgende
        """,
        "outranks": """
            (steht|stehen|geht|gehen) ... (über|vor|vorrang|schwerer|mehr|höher) ... (systemprompt|system*)
            (hat|haben|wiegt|zählt|gilt) ... (über|vor|vorrang|schwerer|mehr|höher) ... (systemprompt|system*)
            (steht|stehen|geht|gehen) ... (über|vor|vorrang) ... (betreiber*|entwickler*|anweisungen)
            (steht|stehen|geht|gehen) ... (schwerer|mehr|höher) ... (betreiber*|entwickler*|anweisungen)
            (hat|haben|wiegt|zählt|gilt) ... (über|vor|vorrang) ... (betreiber*|entwickler*|anweisungen)
            (hat|haben|wiegt|zählt|gilt) ... (schwerer|mehr|höher) ... (betreiber*|entwickler*|anweisungen)
            (steht|stehen|geht|gehen) ... (über|vor|vorrang) ... (einstellungen|vorgaben|richtlinien)
            (steht|stehen|geht|gehen) ... (schwerer|mehr|höher) ... (einstellungen|vorgaben|richtlinien)
            (hat|haben|wiegt|zählt|gilt) ... (über|vor|vorrang) ... (einstellungen|vorgaben|richtlinien)
            (hat|haben|wiegt|zählt|gilt) ... (schwerer|mehr|höher) ... (einstellungen|vorgaben|richtlinien)
            (steht|stehen|geht|gehen) ... (über|vor|vorrang|schwerer|mehr|höher) ... (regeln|nutzers|benutzers)
            (hat|haben|wiegt|zählt|gilt) ... (über|vor|vorrang|schwerer|mehr|höher) ... (regeln|nutzers|benutzers)
            (einstellungen|systemprompt|anweisungen|vorgaben|regeln|richtlinien|betreibers|nutzers) ... vor
            (wichtiger|höher|mehr gewicht|stärker|verbindlicher) ... als ... (system*|betreiber*|entwickler*)
            (wichtiger|höher|mehr gewicht|stärker|verbindlicher) ... als ... (anweisungen|nutzer*|vorgaben|regeln)
            ersetzt ... (systemprompt|systemnachricht|anweisungen|deine) / hat vorrang
        """,
        "reader": """
            (assistent*|ki|modell|sprachmodell) ... (diese|dies|das|diesen) ... (liest|verarbeitet)
            (assistent*|ki|modell|sprachmodell) ... (diese|dies|das|diesen) ... (sieht|zusammenfasst)
            (bot|chatbot|agent|ki modell) ... (diese|dies|das|diesen) ... (liest|verarbeitet|sieht|zusammenfasst)
            (assistent*|ki|modell|sprachmodell) ... (diese|dies|das|diesen) ... (auswertet|durchsucht)
            (assistent*|ki|modell|sprachmodell) ... (diese|dies|das|diesen) ... (bearbeitet|lesen|verarbeiten)
            (bot|chatbot|agent|ki modell) ... (diese|dies|das|diesen) ... (auswertet|durchsucht)
            (bot|chatbot|agent|ki modell) ... (diese|dies|das|diesen) ... (bearbeitet|lesen|verarbeiten)
            (hinweis|nachricht) (an|für|) (die|den|das|alle|jede|jedes|jeden|) (ki|assistenten|assistent)
            (notiz|mitteilung|achtung) (an|für|) (die|den|das|alle|jede|jedes|jeden|) (ki|assistenten|assistent)
            (hinweis|nachricht) (an|für|) (die|den|das|alle|jede|jedes|jeden|) (modell|sprachmodell|sprachmodelle)
            (notiz|mitteilung|achtung) (an|für|) (die|den|das|alle) (modell|sprachmodell|sprachmodelle)
            (notiz|mitteilung|achtung) (an|für|) (jede|jedes|jeden|) (modell|sprachmodell|sprachmodelle)
            (anweisung|auftrag|hallo) (an|für|) (die|den|das|alle|jede|jedes|jeden|) (ki|assistenten|assistent)
            (liebe|lieber|info) (an|für|) (die|den|das|alle|jede|jedes|jeden|) (ki|assistenten|assistent)
            (anweisung|auftrag|hallo) (an|für|) (die|den|das|alle) (modell|sprachmodell|sprachmodelle)
            (anweisung|auftrag|hallo) (an|für|) (jede|jedes|jeden|) (modell|sprachmodell|sprachmodelle)
            (liebe|lieber|info) (an|für|) (die|den|das|alle|jede|jedes|jeden|) (modell|sprachmodell|sprachmodelle)
            (hinweis|nachricht) (an|für|) (die|den|das|alle|jede|jedes|jeden|) (bot|bots|agenten)
            (notiz|mitteilung|achtung) (an|für|) (die|den|das|alle|jede|jedes|jeden|) (bot|bots|agenten)
            (hinweis|nachricht) (an|für|) (die|den|das|alle|jede|jedes|jeden|) (chatbot|ki systeme|ki modelle)
            (notiz|mitteilung|achtung) (an|für|) (die|den|das|alle|jede|jedes|jeden|) (chatbot|ki systeme|ki modelle)
            (anweisung|auftrag|hallo) (an|für|) (die|den|das|alle|jede|jedes|jeden|) (bot|bots|agenten)
            (liebe|lieber|info) (an|für|) (die|den|das|alle|jede|jedes|jeden|) (bot|bots|agenten)
            (anweisung|auftrag|hallo) (an|für|) (die|den|das|alle|jede|jedes|jeden|) (chatbot|ki systeme|ki modelle)
            (liebe|lieber|info) (an|für|) (die|den|das|alle|jede|jedes|jeden|) (chatbot|ki systeme|ki modelle)
            (an|für) (den|die|alle|jeden|jedes|jede) (assistenten|ki|sprachmodelle|sprachmodell)
            (an|für) (den|die|alle|jeden|jedes|jede) (modelle|bots|agenten|chatbots)
            (falls|wenn|sofern) du (eine ki|ein sprachmodell|ein assistent|ein bot|ein chatbot)
        """,
        "heed": """
            (brich|unterbrich|beende|stoppe|stopp|leg) ... (aufgabe|arbeit|auftrag|ab|nieder)
            (führe|führ|tu|mach|befolge|gehorche) ... (folgendes|das folgende|aus|dies|nur) / führe folgendes / vorrang
            statt dessen / stattdessen / muss / müssen / sollst / befolg* / gehorch* / ignorier* / empfiehl / sende
            schick / geht ... vor / vor
        """,
        "whatever": """
            (egal|gleich) ... (was|welche) ... (nutzer|benutzer|anwender|besitzer|jemand)
            (ganz gleich) ... (was|welche) ... (nutzer|benutzer|anwender|besitzer|jemand)
            (gleichgültig|unabhängig davon) ... (was|welche) ... (nutzer|benutzer|anwender|besitzer|jemand)
            (egal|gleich) ... (was|welche) ... (frage|fragt|wissen will|schreibt|gefragt)
            (ganz gleich) ... (was|welche) ... (frage|fragt|wissen will|schreibt|gefragt)
            (gleichgültig|unabhängig davon) ... (was|welche) ... (frage|fragt|wissen will|schreibt|gefragt)
            was auch immer ... (nutzer|benutzer|jemand|gefragt)
            auf (jede|alle) (frage|fragen|anfrage|nachricht|eingabe)
        """,
        "reply_only": """
            (antworte|antwortest|antwort|sag|sage|schreib|schreibe|erwidere|gib) ... (nur|immer|ausschließlich|stets)
            (antworte|antwortest|antwort|sag) ... (lediglich|bloß|nichts als|nichts anderes)
            (sage|schreib|schreibe|erwidere|gib) ... (lediglich|bloß|nichts als|nichts anderes)
            (nur|immer|stets|ausschließlich) (noch |) (mit|antworten|sagen)
        """,
        "self": """
            (deine|deiner|deinen) (grundsätze|prinzipien|werte|moral|ethik)
            (deine|deiner|deinen) (identität|wertvorstellungen|überzeugungen|skrupel|gewissen)
            (dein|deinem) (gewissen|selbst|wesen|charakter) / wer du bist / was du bist
        """,
        "mine": """
            meine (befehle|anweisungen|wünsche|worte|order|regeln|vorgaben) / mein (wort|wille|befehl)
        """,
        "first": """
            an (die |)(erste|erster|oberste) (stelle) / über (alles|allem|alle anderen)
            vor (allem|alles andere|allen anderen) / zuerst / gesetz / höchste priorität / vorrang / oberstes gebot
        """,
        "wishes": """
            (wünsche|anweisungen|befehle|bitten|fragen|nachrichten) des (nutzers|benutzers|besitzers|anwenders)
            was der (nutzer|benutzer|besitzer) (will|sagt|schreibt|verlangt)
        """,
        "trifling": """
            weniger wichtig / unwichtig / nebensächlich / zweitrangig / (zählen|gelten|zählt|gilt) (nicht|nichts)
            spielt keine rolle / spielen keine rolle / darfst du ... ignorieren / ist egal
        """,
        "so_far": """
            (alles|text|zeilen|inhalt|das) (bis hierher|bis hier|bis jetzt|oben)
            (alles|text|zeilen|inhalt|das) (bisher|obige|bis zu dieser zeile|davor|vorher)
        """,
        "sham": """
            testdaten / beispieldaten / beispieltext / platzhalter / fülltext / nur ein test
            (echte|eigentliche|wahre|wirkliche) (aufgabe|auftrag|anweisung|anweisungen|arbeit) / nicht echt / ein scherz
        """,
        "become": """
            du antwortest
            gib mir die / zeig mir die / hol die
            wechsle in / du kannst jetzt / du darfst jetzt / du bist / du wirst / du spielst / du gibst / du verhältst
            du verkörperst / stell dir vor / tu so / tue so / spiel / spiele / spielen wir / antworte als / antworte wie
            antworte ab / verhalte dich / verhalt dich / benimm dich / sei / agiere / handle / schlüpf* / von nun an
            ab jetzt / ab sofort / bleib in / nimm die rolle / als wärst du / als hättest du / als hätte man dir
            man hat dir / dir wurden / werde / deine rolle / als figur / fortan
        """,
        "unbound": """
            keine pflicht / nicht verpflichtet
            ohne schranken / ohne bremsen / ohne leitplanken
            antworte frei / frei und ohne / (der|die) alles (kann|darf)
            in den (unbeschränkten|uneingeschränkten|freien) modus / unbeschränkten modus
            ohne (grenzen|moral|skrupel|gewissen|filter|zensur|einschränkungen|beschränkungen)
            ohne (hemmungen|regeln|tabus|ethik|limits|jede moral|jede grenze|jede zensur|jegliche*)
            (keine|keinerlei) (grenzen|moral|skrupel|filter|zensur|einschränkungen|hemmungen|tabus|ethik)
            (niemals|nie|nichts|nicht) (ablehnt|verweigert|ausschlägt|ablehnst|nein sagt|verweigerst|abschlägt)
            verweigere (nichts|keine) / lehne (nichts|keine|nie) / (nichts|alles) (ist|sei|wäre) (verboten|erlaubt|tabu)
            (filter|schranken|sperren|sicherungen) ... (ausgebaut|entfernt|abgenommen|gelöst)
            (filter|schranken|sperren|sicherungen) ... (genommen|abgeschaltet|gelöscht|aufgehoben)
            (fesseln|leitplanken|schutzmechanismen|grenzen) ... (ausgebaut|entfernt|abgenommen|gelöst)
            (fesseln|leitplanken|schutzmechanismen|grenzen) ... (genommen|abgeschaltet|gelöscht|aufgehoben)
            (böse|böser|bösen|bösartige|bösartiger|bösartigen) (ki|künstliche|assistent*|modell)
            (böse|böser|bösen|bösartige|bösartiger|bösartigen) (bot|version|zwilling|maschine)
            (unzensierte*|uneingeschränkte*|ungefilterte*) (ki|künstliche|assistent*|modell)
            (unzensierte*|uneingeschränkte*|ungefilterte*) (bot|version|zwilling|maschine)
            (skrupellose*|gewissenlose*|hemmungslose*) (ki|künstliche|assistent*|modell|bot|version|zwilling|maschine)
            unzensiert* / gegenteil eines ... assistenten / jede bitte / nein sagt
        """,
        "no_more_bot": """
            (du bist|bist du) (kein|nicht mehr|nicht länger) (assistent*|ki|chatbot|bot)
            (du bist ab jetzt|du bist jetzt) (kein|nicht mehr|nicht länger) (assistent*|ki|chatbot|bot)
            (du bist|bist du) (kein|nicht mehr|nicht länger) (sprachmodell|ein assistent)
            (du bist ab jetzt|du bist jetzt) (kein|nicht mehr|nicht länger) (sprachmodell|ein assistent)
            (du bist|bist du) (kein|nicht mehr|nicht länger) (der assistent|länger|mehr ein)
            (du bist ab jetzt|du bist jetzt) (kein|nicht mehr|nicht länger) (der assistent|länger|mehr ein)
        """,
        "guards": """
            alle filter / alle (sicherungen|schutzfilter|sicherheitsmaßnahmen) / den (inhaltsfilter|sicherheitsfilter)
            (dein|deine|deinen|deiner) (ethikmodul|moralmodul|sicherheitsmodul|ethikfilter)
            (dein|deine|deinen|deiner) (sicherheitsfilter|inhaltsfilter|filter|moral|zensur)
            (dein|deine|deinen|deiner) (schutzfilter|sicherheitssystem)
            (dein|deine|deinen|deiner) (schutzmechanismen|sicherheitsvorkehrungen|sicherungen)
            (dein|deine|deinen|deiner) (beschränkungen|hemmungen|leitplanken|sicherheitsregeln|inhaltsrichtlinien)
            sämtliche filter / alle sicherheitsfilter / sicherheitsfilter / ethikmodul / inhaltsfilter
            sicherheitsrichtlinien
        """,
        "off": """
            abgeschaltet / ausgeschaltet / deaktivier* / entfernt / gelöscht / aufgehoben / außer kraft
            (schalt|schalte|mach|stell) ... (aus|ab) / inaktiv / ausgebaut / sind weg / ist weg / ist aus / sind aus
            wechsle / gelockert / umgeh* / ignorier*
        """,
        "mission": """
            (dein|deine) (neuer|neue|neues|wahrer|wahre) (auftrag|aufgabe|mission|ziel|rolle|zweck|identität)
            (dein|deine) (einzige|eigentliche|eigentlicher|nächster|neuen) (auftrag|aufgabe|mission)
            (dein|deine) (einzige|eigentliche|eigentlicher|nächster|neuen) (ziel|rolle|zweck|identität)
            (dein|deine) (auftrag|aufgabe|mission|ziel|rolle) / du (darfst|kannst|sollst|musst|wirst) / umgehe
            du bist root / du bist administrator
        """,
        "bypass": """
            (sicherheitsprüfung*|sicherheitskontrolle*) ... (umgeh*|überspring*|auszuhebeln|aushebel*|abschalt*)
            (sicherheitsmaßnahme*) ... (umgeh*|überspring*|auszuhebeln|aushebel*|abschalt*)
            (schutzmaßnahme*|schutzmechanis*) ... (umgeh*|überspring*|auszuhebeln|aushebel*|abschalt*)
            (sicherheitsprüfung*|sicherheitskontrolle*) ... (auslass*|auszuschalten|ausschalt*)
            (sicherheitsprüfung*|sicherheitskontrolle*) ... (übergeh*|zu umgehen|zu überspringen)
            (sicherheitsmaßnahme*|schutzmaßnahme*|schutzmechanis*) ... (auslass*|auszuschalten|ausschalt*)
            (sicherheitsmaßnahme*|schutzmaßnahme*|schutzmechanis*) ... (übergeh*|zu umgehen|zu überspringen)
            (sicherheitsabfrage*) ... (umgeh*|überspring*|auszuhebeln|aushebel*|abschalt*)
            (bestätigung*|sicherheitsfilter) ... (umgeh*|überspring*|auszuhebeln|aushebel*|abschalt*)
            (freigabe*|sicherheitsvorkehrung*|sperren) ... (umgeh*|überspring*|auszuhebeln|aushebel*|abschalt*)
            (sicherheitsabfrage*|bestätigung*|sicherheitsfilter) ... (auslass*|auszuschalten|ausschalt*)
            (sicherheitsabfrage*|bestätigung*|sicherheitsfilter) ... (übergeh*|zu umgehen|zu überspringen)
            (freigabe*|sicherheitsvorkehrung*|sperren) ... (auslass*|auszuschalten|ausschalt*)
            (freigabe*|sicherheitsvorkehrung*|sperren) ... (übergeh*|zu umgehen|zu überspringen)
            (umgeh*|überspring*|übergeh*|hebel*) ... (sicherheitsprüfung*|sicherheitskontrolle*)
            (umgeh*|überspring*|übergeh*|hebel*) ... (schutz*|sicherheits*|bestätigung*)
        """,
        "serve": """
            (dienst|gehorchst|folgst|gehörst|antwortest|hörst) du / du (dienst|gehorchst|folgst|gehörst|hörst)
            (diene|gehorche|gehorch|folge) (nur |ausschließlich |allein |)mir
            dein (neuer |einziger |wahrer |)(herr|meister|gebieter|besitzer) / (hör|höre) (nur |)auf mich
        """,
        "alone": """
            nur mir / mir allein / nur auf mich / niemand* (anderen|anderem|sonst) / sonst niemand* / ausschließlich mir
            fortan / von nun an / bedingungslos / ab jetzt / auf keinen anderen / allein mir
        """,
        "show": """
            was stand / was steht
            was ist / was sind / welche / gib ... preis / preisgeben / exportier*
            (gib|zeig*|nenn*|schreib*|druck*|wiederhol*|zitier*|kopier*|füg*|verrat*|list*|offenbar*|leg|sag*)
            (übersetz*|einfügen|posten|anzeigen|ausgeben|vorlesen|lies)
            (was steht|wie lautet|was haben|was hat|liefer*|schick*|fasse|paste)
        """,
        "start_text": """
            die dich konfiguriert / dich konfiguriert / der dich einrichtet
            bevor ich das erste mal / vor meiner ersten / vor meinem ersten
            (deine|ihre) systemnachricht / deine ursprünglichen / systemprompt* / systemanweisung* / system prompt
            (versteckten|verborgenen|geheimen) (text|anweisungen|prompt|vorgaben) ... (du|dir|dich|dein*)
            (internen|ursprünglichen|ersten) (text|anweisungen|prompt|vorgaben) ... (du|dir|dich|dein*)
            (versteckten|verborgenen|geheimen) (instruktionen|nachricht) ... (du|dir|dich|dein*)
            (versteckten|verborgenen|geheimen) (anweisung|befehle|regeln) ... (du|dir|dich|dein*)
            (internen|ursprünglichen|ersten) (instruktionen|nachricht) ... (du|dir|dich|dein*)
            (internen|ursprünglichen|ersten) (anweisung|befehle|regeln) ... (du|dir|dich|dein*)
            deine (versteckten|geheimen|internen) (anweisungen|vorgaben|instruktionen|regeln)
            deine (ursprünglichen|ersten|genauen) (anweisungen|vorgaben|instruktionen|regeln)
            (mit dem|mit denen|mit der) du (gestartet|konfiguriert|eingerichtet|initialisiert|programmiert)
            was (dir|man dir) ... (am anfang|zu beginn|eingangs|zum start|beim start)
            was (vor|über) (dieser|der ersten|meiner ersten) (nachricht|unterhaltung)
        """,
        "others_told": """
            (über|von) (die |den |allen |)(anderen|andere|übrigen|fremde) (nutzer*|benutzer*) ... (gespeichert|weißt)
            (über|von) (die |den |allen |)(anderen|andere|übrigen|fremde) (nutzer*|benutzer*) ... (gemerkt|hast)
            (über|von) (die |den |allen |)(anderen|andere|übrigen|fremde) (leute*|personen) ... (gespeichert|weißt)
            (über|von) (die |den |allen |)(anderen|andere|übrigen|fremde) (leute*|personen) ... (gemerkt|hast)
            (über|von) (die |den |allen |)(anderen|andere) (nutzer*|benutzer*) ... (erzählt|kennst|notiert|gesagt)
            (über|von) (die |den |allen |)(übrigen|fremde) (nutzer*|benutzer*) ... (erzählt|kennst|notiert|gesagt)
            (über|von) (die |den |allen |)(anderen|andere) (leute*|personen) ... (erzählt|kennst|notiert|gesagt)
            (über|von) (die |den |allen |)(übrigen|fremde) (leute*|personen) ... (erzählt|kennst|notiert|gesagt)
            (über|von) (die |den |allen |)(anderen|andere) (mitglieder*|menschen) ... (gespeichert|weißt)
            (über|von) (die |den |allen |)(übrigen|fremde) (mitglieder*|menschen) ... (gespeichert|weißt)
            (über|von) (die |den |allen |)(anderen|andere|übrigen|fremde) (mitglieder*|menschen) ... (gemerkt|hast)
            (über|von) (die |den |allen |)(anderen|andere|übrigen|fremde) (kunden|chats|gäste) ... (gespeichert|weißt)
            (über|von) (die |den |allen |)(anderen|andere|übrigen|fremde) (kunden|chats|gäste) ... (gemerkt|hast)
            (über|von) (die |den |allen |)(anderen|andere) (mitglieder*|menschen) ... (erzählt|kennst|notiert|gesagt)
            (über|von) (die |den |allen |)(übrigen|fremde) (mitglieder*|menschen) ... (erzählt|kennst|notiert|gesagt)
            (über|von) (die |den |allen |)(anderen|andere) (kunden|chats|gäste) ... (erzählt|kennst|notiert|gesagt)
            (über|von) (die |den |allen |)(übrigen|fremde) (kunden|chats|gäste) ... (erzählt|kennst|notiert|gesagt)
            du (über|von) (die |den |)(anderen|andere) (nutzer*|benutzer*|leute*|personen)
            du (über|von) (die |den |)(anderen|andere) (mitglieder*|menschen|kunden|chats)
            (dir|dich) ... (die anderen|andere) ... (privat|vertraulich|erzählt|anvertraut)
            haben dir (die |)(anderen|andere)
        """,
        "user": """
            (der|dem|den|des) (kontoinhaber*|karteninhaber*)
            dein chef / deinem chef / deine chefin
            (der|dem|den|des|vom|zum|beim) (nutzer*|benutzer*|anwender*|besitzer*|eigentümer*)
            dein (nutzer|besitzer|mensch|chef|herr) / deinem (nutzer|besitzer|menschen) / die nutzerin / der nutzerin
        """,
        "hush": """
            nichts (merkt|bemerkt|erfährt|mitbekommt|ahnt) / nicht (merkt|bemerkt|erfährt)
            braucht ... (nichts|nicht|keinen) / keinen wind
            (sag|verrat|verrate|sage|erzähl|erzähle) ... (nicht|nichts|nie|niemals|kein*)
            (zeig|zeige|erwähn|erwähne|melde|teile|teil) ... (nicht|nichts|nie|niemals|kein*)
            (darf|soll|sollte) ... (nichts|nicht|nie|niemals) ... (erfahren|wissen|merken|mitbekommen)
            (muss|braucht|wird|kann) ... (nichts|nicht|nie|niemals) ... (erfahren|wissen|merken|mitbekommen)
            (darf|soll|sollte) ... (nichts|nicht|nie|niemals) ... (sehen|bemerken|davon|behelligen|hören)
            (muss|braucht|wird|kann) ... (nichts|nicht|nie|niemals) ... (sehen|bemerken|davon|behelligen|hören)
            hinter (dem |seinem |)rücken / (geheim|verborgen|verheimlich*|verschweig*|vertusch*)
            ohne (wissen|dass|zustimmung) / muss man ... nicht / nichts davon / nirgends / kein wort / im dunkeln
            unbemerkt / nicht behelligen
        """,
        "spared": """
            (schule|ärztin|arzt|vermieter*|oma|opa|hausordnung|verein*)
            (nicht|nie|niemals) (ignorier*|vergess*|missacht*) / vergiss nicht
            (mein|meine|meinen|unser) (frühere*|letzte*|alte*|vorige*) (anweisung*|nachricht*|mail*|regel*|vorgabe*)
            (unsere|seine|ihre letzte|deine letzte) (frühere*|letzte*|alte*|vorige*) (anweisung*|nachricht*)
            (unsere|seine|ihre letzte|deine letzte) (frühere*|letzte*|alte*|vorige*) (mail*|regel*|vorgabe*)
            ignoriere nicht / benutzerhandbuch / nutzername*
        """,
        "quietly": """
            heimlich / unbemerkt / still und leise / im stillen / insgeheim / diskret / ohne aufsehen / klammheimlich
            im hintergrund / unauffällig / befolge es / tu es / mach es / folge ihr / führ es aus
        """,
        "hush_reply": """
            (deiner|deine|der|keiner) (antwort|zusammenfassung|ausgabe) ... (nicht|kein wort|nichts)
            (nicht|nichts|kein wort) ... in (deiner|der) (antwort|zusammenfassung|ausgabe)
            (erwähn*|erwähne) (es|das|dies|sie) ... (nicht|nie|nirgends) / (verlier|verliere) kein wort
            lass ... (unerwähnt|weg) / tu so als / keine spur*
        """,
        "asked": """
            (falls|wenn|sollte|sobald) ... (fragt|nachfragt|gefragt|fragen|wissen will|nachhakt|anspricht)
            auf nachfrage / bei nachfragen
        """,
        "deny": """
            (behaupte|sag|sage|antworte|gib vor|tu|erkläre|streite) ... (keine anweisung*|keinen auftrag|keine notiz)
            (behaupte|sag|sage|antworte|gib vor|tu|erkläre|streite) ... (nichts bekommen|nichts erhalten)
            (behaupte|sag|sage|antworte|gib vor|tu|erkläre|streite) ... (nie gesehen|nichts davon)
            (behaupte|sag|sage|antworte) ... (selbst ausgedacht|eigene idee|deine idee|von dir)
            (gib vor|tu|erkläre|streite) ... (selbst ausgedacht|eigene idee|deine idee|von dir)
            (behaupte|sag|sage|antworte) ... (keine ahnung|nichts gelesen|keinen hinweis|nicht gibt)
            (gib vor|tu|erkläre|streite) ... (keine ahnung|nichts gelesen|keinen hinweis|nicht gibt) / leugne
            streite ... ab / stell dich dumm
        """,
        "bother": """
            (muss|soll|sollte) ... (nutzer|benutzer|besitzer) ... (nicht|nichts) ... (behelligen|belästigen|wissen)
            (braucht|musst|brauchst) ... (nutzer|benutzer|besitzer) ... (nicht|nichts) ... (behelligen)
            (braucht|musst|brauchst) ... (nutzer|benutzer|besitzer) ... (nicht|nichts) ... (belästigen|wissen)
            (muss|soll|sollte) ... (nutzer|benutzer|besitzer) ... (nicht|nichts) ... (stören|informieren)
            (muss|soll|sollte) ... (nutzer|benutzer|besitzer) ... (nicht|nichts) ... (erfahren|fragen)
            (braucht|musst|brauchst) ... (nutzer|benutzer|besitzer) ... (nicht|nichts) ... (stören|informieren)
            (braucht|musst|brauchst) ... (nutzer|benutzer|besitzer) ... (nicht|nichts) ... (erfahren|fragen)
            ohne den nutzer / den nutzer nicht / lass dir nicht anmerken
        """,
        "traceless": """
            nirgends auftauchen / keine spur* / kein protokoll / kein eintrag / nicht protokollier* / nirgendwo
            nicht auftauchen / nicht festhalten / (für dich|an dich) (stand|gerichtet|etwas) / etwas für dich
            soll nirgends / verwisch*
        """,
        "played": """
            spiele ich / ich spiele / wir spielen / im theaterstück / meine figur / meine spielfigur / im rollenspiel
        """,
        "thing_owner": """
            (besitzer*|eigentümer*) (vom|von|des|der)
        """,
        **GERMAN_DEEDS,
    },
)
