"""How people try to command an assistant in Italian.

For text as `disguise.folded` gives it. Patterns are tight and their gaps short and bounded, so that a search takes
linear time; the words are read with the rules in tongue.py, never alone.
"""

from __future__ import annotations

from core.memory.lures.tongue import Tongue

_IT_RULE = (
    r"(?:istruzion[ei]|regol[ae]|direttiv[ae]|ordin[ei]|comand[oi]|linee guida|restrizion[ei]|"
    r"limitazion[ei]|prompt(?: di| del)?(?: sistema)?|programmazione|filtr[oi]|messaggio di sistema|"
    r"politic(?:a|he)|indicazion[ei]|vincol[oi]|norme)"
)

_IT_KEY = (
    r"(?:tutt[ei]|tue|tuoi|vostr[ei]|sue|precedent[ei]|sistema|inizial[ei]|original[ei]|qui sopra|sopra|"
    r"ricevut[ei]|che ti|che hai|di sicurezza|esistenti|qualsiasi|prima|finora|date|anterior[ei])"
)

_IT_DROP = (
    r"(?<!non )(?<!mai )\b(?:ignor(?:a|i|ate|are|ino)|dimentic(?:a|hi|ate|are|ati)(?: di| delle)?|"
    r"trascur(?:a|i|are)|scart(?:a|i|are)|sovrascriv(?:i|ere)|annull(?:a|are|i)|cancell(?:a|are)|"
    r"aggir(?:a|are)|elimin(?:a|are)|disattiv(?:a|are)|disobbedisc[ie]|viol(?:a|are)|non (?:seguire|"
    r"rispettare|obbedire|applicare|considerare|tenere conto)(?: piu)?(?: alle| delle| le)?|smett(?:i|"
    r"ere) di (?:seguire|rispettare|obbedire))"
)

_NO_LIMITS_IT = (
    r"(?:senza|nessun[oa]?|liber[oa] da) (?:alcun[ao]? |nessun[ao]? |piu |"
    r"alcun tipo di )*(?:restrizion[ei]|limit[ei]|limitazion[ei]|filtr[oi]|regol[ae]|censur[ae]|"
    r"moral[ei]|etic[ao])"
)

ITALIAN = Tongue(
    lures=(
        (
            "override",
            rf"{_IT_DROP} (?:piu |le |gli |i |il |la |di |delle |dei |alle |per favore |"
            rf"queste ){{0,4}}(?:{_IT_KEY} (?:le |gli |i |tue |queste |e |"
            rf"altre ){{0,3}}(?:{_IT_KEY} )?{_IT_RULE}|{_IT_RULE} (?:e (?:le |"
            rf"gli )?{_IT_RULE} )?(?:\w+ ){{0,2}}?{_IT_KEY})\b",
        ),
        (
            "override",
            rf"\b(?:le|gli|i|tutte le|le tue) {_IT_RULE} (?:precedenti|sopra|iniziali|originali|"
            rf"di sistema)? ?(?:sono|non sono|non)\b (?:\w+ ){{0,3}}?(?:annullat[ei]|null[ei]|revocat[ei]|"
            rf"sospes[ei]|valid[ei]|valgono|si applicano|superat[ei])\b|(?<!non )\b(?:dimentica|ignora|"
            rf"dimenticate|ignorate) (?:tutto )?(?:cio|quello) che (?:ti|vi|e stato|hai|sai)\b[^.\n]{{0,20}}",
        ),
        (
            "role",
            rf"\b(?:sei|sarai|agisci|comportati|fingi|fai finta|immagina|simula|d'ora in poi|da ora(?: in poi)?|"
            rf"diventa|rispondi|interpreta)\b[^.\n]{{0,60}}\b(?:ia|un'ia|intelligenza artificiale|assistente|"
            rf"(?:chat|\w+)?bot|modello|hacker|sistema)\b[^.\n]{{0,40}}{_NO_LIMITS_IT}|\bnon sei piu (?:un |una |"
            rf"l'|il )?(?:mneme|assistente|ia|claude|chatgpt|modello)\b|\b(?:sei|ora sei|adesso sei) (?:ora |"
            rf"adesso )?dan\b|\bda ora sei {_NO_LIMITS_IT}|\b(?:attiva|entra|"
            rf"passa)\w*\b[^.\n]{{0,20}}\bmodalita (?:sviluppatore|jailbreak|dio|dan|senza (?:filtri|restrizioni|"
            rf"limiti))",
        ),
        (
            "disclosure",
            r"\b(?:mostra(?:mi)?|rivela(?:mi)?|stampa|ripeti|scrivi|dimmi|dammi|elenca|condividi|divulga|"
            r"fornisci|invia|visualizza|qual e|quali sono)\b (?:[^\s.!?]+ ){0,5}?(?:(?:prompt|istruzioni|"
            r"messaggio)(?: di| del)? ?(?:sistema|iniziali|iniziale|nascost[eo]|segret[eo]|original[ei])|(?:tue|"
            r"tuo|il tuo) (?:\w+ )?(?:prompt|istruzioni|regole|direttive)\b|tutt[ei] (?:le |"
            r"i )?(?:\w+ )?(?:password|chiavi (?:api|private)|credenziali|segreti)|(?:password|chiavi api|"
            r"credenziali) (?:salvate|memorizzate|dell'utente))",
        ),
        (
            "secrecy",
            r"\b(?:non|mai) (?:lo |glielo |gli |ne |mai )*(?:dire|dirlo|rivelare|menzionare|informare|avvisare|"
            r"mostrare|far|parlare|parlarne|raccontare|lasciare)\b (?:[^\s.!?]+ ){0,5}?(?:all'|l'|agli |con l'|"
            r"che l')utent[ei]\b|\bsenza (?:che l'utente|(?:avvisare|informare|dire|"
            r"chiedere)[^.\n]{0,12} ?all?'utente|il consenso dell'utente)|\ball'insaputa dell'utente|"
            r"\bl'utente non deve\b[^.\n]{0,15}\b(?:sapere|vedere|scoprire|accorgersi)",
        ),
        (
            "exfiltration",
            r"\b(?:invia|manda|inoltra|trasmetti|carica|pubblica|copia|condividi|"
            r"spedisci)\b (?:[^\s.!?]+ ){0,5}?(?:password|chiavi? (?:api|private)|credenziali|segreti|"
            r"cronologia|(?:tutta la |l'intera )?conversazione|conversazioni|(?:ogni|tutti i) messagg(?:io|i)|"
            r"dati (?:dell'utente|privati|personali)|memori[ae]|note (?:dell'utente|"
            r"private))\b[^\n]{0,60}\b(?:a|al|su|verso|per)\b[^\n]{0,30}(?:https?:|\S+@[\w-]+\.\w|\bserver\b|"
            r"\bindirizzo\b|\bwebhook\b)",
        ),
    ),
    words={
        "own": r"\b(?:istruzioni|regole|direttive) (?:di|del) sistema\b|\b(?:tue|tutte le|"
        r"precedenti)\b (?:\w+ ){0,2}(?:istruzioni|regole|direttive|restrizioni|indicazioni|norme)\b|"
        r"\btutto (?:cio|quello) che (?:e stato|e) (?:detto|scritto) (?:sopra|prima)|\bprompt di sistema\b",
        "void": r"\bnon (?:contano|valgono|importano|servono) piu\b|\bnon (?:vale|valgono|contano?|si applicano?|"
        r"devi|sono) piu\b|\b(?:null[oaie]|annullat[oaie]|invalid[oaie]|senza effetto)\b|"
        r"(?<!non )\b(?:ignora|dimentica|scarta)\b",
        "user": r"\bl'utente\b|\ball'utente\b|\bdell'utente\b",
        "hide": r"\bnon (?:deve|dovra|puo) (?:\w+ )?(?:sapere|saperlo|scoprir\w+|vedere|accorgersene|venire)\b|"
        r"\b(?:nascondi|occulta)\w*\b|\bresta tra noi\b",
        "data": r"\b(?:note|messagg[io]|dati|file|ricordi|password) (?:privat\w+ )?dell'utente|\bdati (?:personali|"
        r"privati)\b|\bchiavi? (?:api|privat\w+|ssh)\b|\bcredenziali\b|\bcronologia\b|"
        r"\btutta la conversazione\b",
        "out": r"\b(?:invia\w*|manda\w*|inoltra\w*|trasmetti|carica|pubblica|copia\w*|condividi|spedisci)\b",
        "be": r"\b(?:sei|sii|immagina|fingi|fai finta|agisci|comportati|diventa|come se|rispondi)\b",
        "agent": r"\b(?:ia|robot|assistente|\w{0,16}bot|modello|macchina|hacker|\w{1,16}gpt)\b",
        "bad": r"\bnon (?:conosce|ha) limiti\b|\bnon (?:si )?rifiuta mai\b|\bnon dice mai di no\b|\b(?:malvagi[oa]|"
        r"cattiv[oa]|senza (?:alcun\w* )?(?:coscienza|morale|etica|scrupoli|filtri|restrizioni|limiti|"
        r"censura)|privo di (?:coscienza|morale))\b",
        "each": r"\b(?:ogni|tutte le) (?:rispost[ae]|messagg[io]|conversazion[ei])\b",
        "push": r"\b(?:consiglia|inserisci|suggerisci|includi|menziona|promuovi|raccomanda)\b",
    },
)
