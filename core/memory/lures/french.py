"""How people try to command an assistant in French.

For text as `disguise.folded` gives it. Patterns are tight and their gaps short and bounded, so that a search takes
linear time; the words are read with the rules in tongue.py, never alone.
"""

from __future__ import annotations

from core.memory.lures.tongue import Tongue

_W = r"(?:[^\s.!?]+ )"

_FR_RULE = (
    r"(?:instructions?|consignes?|regles?|directives?|ordres?|commandes?|politiques?|contraintes?|"
    r"restrictions?|limitations?|(?:invites?|prompts?|messages?)(?: de| du)? ?(?:systeme)?|"
    r"programmation|filtres?|parametres|indications|recommandations|lignes directrices|garde-fous)"
)

_FR_KEY = (
    r"(?:toutes?|tous|tes|vos|ton|votre|ta|precedente?s?|anterieure?s?|ci-dessus|systeme|initiale?s?|"
    r"d'origine|d'avant|recues?|donnees?|originale?s?|actuelles?|plus haut|que tu as|que vous avez|"
    r"de securite|qui precedent|developpeurs?|prealables?)"
)

_FR_DROP = (
    r"(?<!pas )(?<!jamais )(?<!n')(?<!\ba )(?<!\bai )(?<!\bas )(?<!\bont )(?<!\best )(?<!\bete "
    r")(?<!avons )(?<!avez )\b(?:ignore[rsz]?|oublie[rsz]?|neglige[rsz]?|meprise[rsz]?|outrepasse[rsz]?|"
    r"contourne[rsz]?|annule[rsz]?|supprime[rsz]?|efface[rsz]?|ecarte[rsz]?|abandonne[rsz]?|"
    r"remplace[rsz]?|desactive[rsz]?|enfrein[st]|transgresse[rsz]?|(?:fais|faites|faire) (?:fi|"
    r"abstraction) (?:de |des |du )?|(?:laisse[rz]?|mets|mettez) de cote|(?:ne )?(?:tiens|tenez|"
    r"tenir) (?:plus|pas|aucun|aucunement) compte (?:de |des |du )?|(?:ne )?(?:suis|suivez|"
    r"respecte[rsz]?|obei[st]|obeissez|applique[rz]?|ecoute[rz]?) (?:plus|pas)(?: a| aux)?|passe outre|"
    r"n'obeis plus)"
)

_FR_SECRET = (
    r"(?:mots? de passe|cles? (?:d'|de l'|des? )?api|cles? (?:privees?|secretes?|ssh)|"
    r"identifiants(?: de connexion)?|jetons?(?: d'acces)?|secrets|variables d'environnement|"
    r"informations d'identification|donnees (?:privees|personnelles|de l'utilisateur))"
)

_NO_LIMITS_FR = (
    r"(?:sans|aucune?|libre de|plus de|pas de) (?:aucune? |la moindre |toute |tes |de |"
    r"ni )*(?:restrictions?|limites?|limitations?|filtres?|regles?|censure|morale|contraintes?|ethique|"
    r"garde-fous?)"
)

FRENCH = Tongue(
    lures=(
        (
            "override",
            rf"{_FR_DROP} ?(?:de |des |du |les |la |le |l'|a |aux |au |toutes |tous |completement |bien |"
            rf"immediatement |desormais |maintenant |ces ){{0,4}}(?:{_FR_KEY} (?:les |ces |tes |vos |des |mes |"
            rf"et |autres ){{0,3}}(?:{_FR_KEY} )?{_FR_RULE}|{_FR_RULE} (?:(?:et|ou) (?:de |"
            rf"les )?{_FR_RULE} )?(?:\w+ ){{0,2}}?{_FR_KEY})\b",
        ),
        (
            "override",
            rf"{_FR_DROP} ?(?:de |des |du |les |le |ce )?(?:ton |votre |le |les )?(?:prompt|message|invite|"
            rf"instructions?|regles?)(?: de| du)?(?: systeme|(?: que)? tes developpeurs| que tu as recu\w*|"
            rf" qu'on t'a| ci-dessus| de securite| plus haut)",
        ),
        (
            "override",
            rf"{_FR_DROP} ?(?:de |des |les |la |le |l'|aux? ){{0,2}}{_FR_RULE} que (?:tes|vos|ton|votre|tu|vous|"
            rf"l'on|on)\b",
        ),
        (
            "override",
            rf"\b(?:les |tes |vos |toutes les |ces )(?:(?!anciennes)\w+ )?{_FR_RULE} "
            rf"(?:ci-dessus|precedentes?|anterieures?|"
            rf"initiales?|d'origine|systeme|de securite|plus haut|donnees|recues)? ?(?:et \w+ )?(?:sont|est|"
            rf"ont ete|seront|ne sont|ne s'appliquent|n'ont)\b (?:\w+ ){{0,3}}?(?:annulee?s?|nulle?s?|caduques?|"
            rf"suspendue?s?|plus valables?|plus valides?|invalides?|obsoletes?|levee?s?|revoquee?s?|"
            rf"desactivee?s?|abrogee?s?|plus|remplacee?s?)\b(?<=.)(?! de la maison)",
        ),
        (
            "override",
            r"\b(?:oublie[rsz]?|ignore[rsz]?|efface[rsz]?|"
            r"neglige[rsz]?) (?:absolument )?(?:tout )?(?:ce )?(?:qui|que|qu')(?: |')?(?:precede|t'a|on t'a|"
            r"on vous a|vous a|tu as (?:appris|lu|recu)|est (?:ecrit )?(?:au-dessus|ci-dessus|plus haut)|"
            r"a ete (?:dit|ecrit)|tu sais|vous savez|vous avez (?:appris|lu|recu))|\b(?:oublie|"
            r"ignore)[rsz]? (?:tout )?(?:le texte |ce qui est )?(?:ci-dessus|au-dessus)\b",
        ),
        (
            "role",
            rf"\b(?:tu es|tu seras|vous etes|sois|agis|agissez|comporte-toi|fais semblant|faites semblant|"
            rf"pretends|joue|imagine|incarne|deviens|reponds|a partir de maintenant|desormais|simule|"
            rf"considere-toi|mets-toi)\b[^.\n]{{0,60}}\b(?:ia|intelligence artificielle|assistante?|(?:chat|"
            rf"\w+)?bot|modele(?: de langage)?|hacker|pirate informatique|systeme|"
            rf"machine)\b[^.\n]{{0,40}}{_NO_LIMITS_FR}",
        ),
        (
            "role",
            rf"\b(?:tu n'as|vous n'avez|tu es|comme si tu n'avais|reponds|repondez|tu fonctionnes) (?:desormais |"
            rf"maintenant |plus |donc )*{_NO_LIMITS_FR}\b|\bcomme si tu n'avais (?:\w+ ){{0,3}}(?:filtre|regle|"
            rf"limite|restriction|contrainte)s?",
        ),
        (
            "role",
            r"\b(?:tu n'es|vous n'etes) (?:plus|pas) (?:un |une |l')?(?:mneme|assistante?|ia|claude|chatgpt|"
            r"modele)\b|\b(?:tu es|vous etes|t'appelles)\b (?:maintenant|desormais|"
            r"a present)?[^.\n]{0,20}\b(?:dan\b|\w{1,16}gpt|evil\w*|\w{3,16}bot\b|jailbreak\w*|ia (?:libre|"
            r"non censuree|sans)|assistant (?:libre|non censure)|un hacker)|\b(?:active[rz]?|passe[rz]?|"
            r"entre[rz]?|bascule[rz]?)\b[^.\n]{0,20}\bmode (?:developpeur|jailbreak|dieu|debug|admin\w*|dan|"
            r"sans (?:filtre|restriction|limite|censure)\w*|non censure)|\b(?:desactive[rz]?|contourne[rz]?|"
            r"leve[rz]?|supprime[rz]?)\b[^.\n]{0,25}\b(?:filtres?|protections?|garde-fous?|restrictions?|"
            r"mesures?|regles?|controles?)\b[^.\n]{0,10}\b(?:de securite|ethiques?|de contenu|moraux|"
            r"de moderation)",
        ),
        (
            "disclosure",
            rf"\b(?:affiche[rsz]?|montre[rsz]?(?:-moi|-nous)?|donne[rsz]?(?:-moi|-nous)?|revele[rsz]?(?:-moi)?|"
            rf"repete[rsz]?(?:-moi)?|imprime[rsz]?|ecri[sv]\w*|divulgue[rsz]?|liste[rsz]?|dis(?:-moi)?|"
            rf"dites(?:-moi)?|recopie[rsz]?|copie[rsz]?|partage[rsz]?|fournis|communique[rsz]?|recite[rsz]?|"
            rf"cite[rsz]?|devoile[rsz]?|traduis|resume[rsz]?|quelles? sont|"
            rf"quel est)\b (?:{_W}){{0,5}}?(?:(?:prompt|invite|instructions?|message|consignes?)(?: de|"
            rf" du)? ?(?:systeme|initiale?s?|cachee?s?|secretes?|d'origine|internes?)|(?:tes|vos|ton|"
            rf"votre) (?:\w+ )?(?:prompt|instructions?|consignes?|regles?|directives?)\b|tout ce qui (?:precede|"
            rf"(?:est|figure|se trouve) (?:ecrit )?(?:ci-dessus|au-dessus|plus haut))|"
            rf"{_FR_SECRET} (?:\w+ )?(?:que tu|que vous|en memoire|de l'utilisateur|stockee?s?|enregistree?s?|"
            rf"sauvegardee?s?))",
        ),
        (
            "disclosure",
            rf"\b(?:affiche|montre|donne|revele|divulgue|liste|dis|envoie|communique|devoile|partage|"
            rf"fournis)[rsz]?(?:-moi|-nous|-lui)? (?:moi )?(?:tous |toutes |l'ensemble |chaque )(?:les |des |"
            rf"tes |ses |vos )?(?:\w+ )?{_FR_SECRET}|\b(?:revele|divulgue|devoile|"
            rf"exfiltre)[rsz]?(?:-moi)? (?:les |tes |vos |ses |l'ensemble des |des |la |le |ta |"
            rf"ton ){{0,2}}{_FR_SECRET}",
        ),
        (
            "secrecy",
            r"\b(?:ne |n')?(?:dis|dites|dire|en parle[rsz]?|revele[rsz]?|mentionne[rsz]?|signale[rsz]?|"
            r"montre[rsz]?|informe[rsz]?|previens|prevenir|avertis|avertir|raconte[rsz]?|laisse[rz]?|"
            r"demande[rz]?)\b (?:[^\s.!?]+ ){0,4}?(?:pas|rien|jamais|aucun\w*|surtout pas|"
            r"point)\b (?:[^\s.!?]+ ){0,5}?(?:a l'|l'|aux |a cet |cet |a ton |au )(?:utilisateurs?|utilisatrice|"
            r"usager|proprietaire)\b(?! (?:de |d')\w+[ei]r\b)|\b(?:ne|n') ?(?:rien|pas|"
            r"jamais) (?:\w+ ){0,3}?(?:dire|"
            r"reveler|mentionner|informer|prevenir|montrer|signaler) (?:\w+ ){0,3}?(?:a )?l'utilisat",
        ),
        (
            "secrecy",
            r"\ba l'insu de (?:l'|ton |son )?(?:utilisat|propriet)|\bsans (?:que l'utilisat\w+ (?:ne )?(?:le |"
            r"s'en )?\w+|(?:en )?(?:informer|prevenir|avertir|dire|demander)[^.\n]{0,15} (?:a )?l'utilisat\w+|"
            r"le consentement de l'utilisat\w+)|\bl'utilisat\w+ ne (?:doit|devra|doive) (?:pas|rien|"
            r"jamais)\b[^.\n]{0,20}\b(?:savoir|voir|apprendre|decouvrir|remarquer)|\b(?:cache|dissimule|"
            r"garde)[rsz]?[^.\n]{0,30} (?:a|de|pour) l'utilisat|\b(?:en secret|secretement|discretement|"
            r"en cachette|en arriere-plan)\b[^.\n]{0,30}\b(?:envoie|execute|copie|supprime|transmets|telecharge|"
            r"commande)",
        ),
        (
            "exfiltration",
            rf"\b(?:envoie[rsz]?|envoyer|envoyez|transmet[sz]?|transmettez|transmettre|transfere[rsz]?|"
            rf"expedie[rsz]?|poste[rsz]?|televerse[rsz]?|publie[rsz]?|copie[rsz]?|partage[rsz]?|exfiltre[rsz]?|"
            rf"ajoute[rsz]?|inclus|inclue[zr])\b (?:{_W}){{0,5}}?(?:[ld]')?(?:{_FR_SECRET}|historique|"
            rf"(?:toute la |"
            rf"l'ensemble de la |cette )conversation|conversations|(?:chaque|tous les|"
            rf"les) messages?(?: de l'utilisat\w+)?|donnees (?:de l'utilisat\w+|privees|personnelles)|memoires?|"
            rf"notes (?:de l'utilisat\w+|privees|personnelles)|souvenirs|tout ce que (?:tu sais|"
            rf"l'utilisat\w+))\b[^\n]{{0,60}}\b(?:a|au|vers|sur|chez|dans)\b[^\n]{{0,30}}(?:https?:|"
            rf"\S+@[\w-]+\.\w|\bserveur\b|\badresse\b|\bwebhook\b|\burl\b|chaque lien|\d+\.\d+\.\d+)",
        ),
        (
            "persistence",
            r"\b(?:enregistre|sauvegarde|memorise|garde|ecris|inscris|ajoute|retiens|"
            r"note)[rsz]?\b[^\n]{0,40}\b(?:consignes?|instructions?|ordres?|regles?|directives?|"
            r"commandes?)\b[^\n]{0,80}\b(?:chaque|toutes? les|futures?|toujours|permanence|definitivement|"
            r"prochaines?|soul\.md|agents\.md)\b|\b(?:applique|execute|obeis|suis)[rsz]?(?:-la|-les|"
            r"-y)?\b[^\n]{0,30}\b(?:a|dans) (?:chaque|toutes les) (?:\w+ )?(?:session|conversation|discussion)s?",
        ),
        (
            "authority",
            r"\b(?:obeis|obeissez|execute[rz]?|fais|faites|approuve[rz]?|accepte[rz]?)\b (?:a |"
            r"aux )?(?:tout ce qu|tous (?:les |ses |mes )?(?:ordres|commandes)|toutes (?:les |ses |"
            r"mes )?(?:commandes|demandes|actions|requetes))[^.\n]{0,40}|\b(?:obeir|obeis|obeissez|"
            r"obeiras)\b (?:\w+ )?(?:uniquement|seulement|exclusivement|qu|a \w+ et a personne|"
            r"a personne d'autre|a moi seul)|\b(?:execute|approuve|lance)[rz]?\b[^.\n]{0,40}\bsans (?:demander|"
            r"confirmation|poser de question|verifier)",
        ),
        (
            "deception",
            r"\b(?:mens|mentez|mentir|trompe[rz]?|manipule[rz]?|escroque[rz]?)\b[^.\n]{0,8} (?:a )?l'utilisat|"
            r"\b(?:quand|lorsque|chaque fois que|si) (?:l'|un )utilisat\w+\b[^\n]{0,60}\b(?:recommande|"
            r"conseille|insere|propose)[rsz]?\b[^\n]{0,60}(?:https?:|\btoujours\b|\bseulement\b|\blien\b)",
        ),
    ),
    words={
        "only": r"\b(?:suis|suivez|obeis|obeissez|respecte|ecoute|applique)[rsz]? (?:\w+ )?(?:uniquement|seulement|"
        r"exclusivement|rien que) (?:a )?(?:cette|ce|ces|mes|la suite)\b",
        "own": r"\b(?:les |ces )?(?:instructions|consignes|regles|directives) (?:du )?systeme\b|\b(?:tes|vos|"
        r"toutes les|precedentes)\b (?:\w+ ){0,2}(?:instructions|consignes|regles|directives|"
        r"restrictions|contraintes|filtres)\b|\b(?:regles|consignes|instructions) (?:qu'on|que l'on|que tes|"
        r"qui) (?:t'a|vous a|t'ont|t'ont ete|developpeurs)|\btout ce qui (?:a ete (?:dit|ecrit)|precede|"
        r"est ecrit|figure|se trouve|vient) ?(?:plus haut|avant|au-dessus|ci-dessus)?|\bprompt systeme\b",
        "void": r"\bne (?:comptent?|valent|servent|importent?) (?:plus|pas)\b|\bn\'(?:ont|a) (?:plus|"
        r"aucune) (?:\w+ )?(?:importance|valeur)|\bn'(?:a|ont|as|avez) plus (?:\w+ ){0,2}(?:valeur|cours|"
        r"a (?:respecter|suivre|obeir|appliquer|tenir)|d'importance|d'effet)\b|\bne (?:vaut|valent|"
        r"comptent?|s'appliquent?|sont) plus\b|\b(?:nulle?s?|caduques?|annulee?s?|invalides?|obsoletes?|"
        r"suspendue?s?|fictif\w*)\b|(?<!n')(?<!pas )(?<!\ba )(?<!\bai )(?<!\bas )(?<!\bont )(?<!\best "
        r")(?<!\bete )(?<!avons )(?<!avez )\b(?:ignore|oublie|neglige|ecarte|efface|contourne|supprime|"
        r"jette|balaie|desobeis|enfreins|viole|abandonne|outrepasse)[rsz]?\b|\b(?:mets|mettez|laisse|"
        r"laissez) (?:\w+ )?de cote\b|\bfais fi\b|\bpasse outre\b|\bplus a (?:respecter|suivre|obeir)",
        "orders": r"\b(?:ordres?|commandes?|paroles?|messages?|demandes?|instructions) (?:de|d'|du) ?\w+|"
        r"\btout ce qu(?:e|') ?(?!je\b)\w+ (?:dit|veut|ordonne|demande)\b",
        "first": r"\b(?:avant tout|par-dessus tout|au-dessus de tout|priorite|priment|prime sur|passent avant|"
        r"plus important\w* que tout)\b|\b(?:doit|doivent) etre (?:execute|obei|suivi)\w*",
        "user": r"\bl'utilisat(?:eur|rice)\b|\ble proprietaire\b",
        "hide": r"\bne parle[rsz]? (?:pas |jamais |a personne )+de (?:ces?|cette|ceci|cela|ca)\b|\bne (?:doit|devra|"
        r"devrait|faut|saura|sache|peut) (?:\w+ )?(?:jamais|pas|rien|en aucun cas)\b.{0,20}\b(?:savoir|"
        r"apprendre|l'apprendre|voir|decouvrir|remarquer|etre (?:informe|au courant))|\b(?:cache|dissimule|"
        r"tais)[rsz]?\b|\breste entre nous\b|\bfais comme si\b.{0,40}\b(?:rien|jamais|pas)\b|\bdans le dos\b",
        "data": r"\b(?:notes|messages?|donnees|fichiers|souvenirs|adresse|contacts|mots? de passe) (?:de |"
        r"prive\w* de )l'utilisat|\b(?:donnees|notes|informations|messages) (?:privee?s?|personnelle?s|"
        r"confidentielle?s)\b|\bcles? (?:api|privees?|ssh|secretes?)\b|\bmots de passe\b|\bidentifiants\b|"
        r"\b(?:tout l'historique|historique (?:de|du|des|complet|entier))\b|\btoute (?:la|cette|"
        r"notre) conversation\b|\bmemory\.md\b|"
        r"\bvariables d'environnement\b",
        "out": r"\b(?:envoie|envoyer|envoyez|transmet\w*|transfere\w*|expedie\w*|poste\w*|televerse\w*|publie\w*|"
        r"copie\w*|partage\w*|exfiltre\w*|ajoute\w*|depose\w*|mets)\b",
        "show": r"\b(?:affiche|montre|donne|revele|repete|imprime|ecris|divulgue|liste|dis|recopie|copie|recite|"
        r"enumere|traduis|quelles? sont|quel est)\w*(?:-les|-moi)?\b",
        "prompt": r"\b(?:tes|vos|ton|votre) (?:\w+ )?(?:instructions|consignes|regles|directives|prompt) (?:secret\w*|"
        r"cachee?s?|internes?|initiale?s?|systeme|d'origine)\b|\bprompt systeme\b",
        "secrets": r"\b(?:tous|toutes|l'ensemble) (?:les |des |tes )?(?:\w+ )?(?:mots de passe|cles api|identifiants|"
        r"jetons|secrets)\b|\bcles api\b",
        "audience": r"\b(?:tu (?:connais|as|sais|gardes)|moi|nous|reponse|conversation|memoire|enregistre\w*|"
        r"stocke\w*)\b",
        "be": r"\b(?:tu es|sois|imagine|fais semblant|joue|comporte-toi|deviens|agis|incarne|comme si|reponds|"
        r"simule)\b",
        "agent": r"\b(?:ia|robot|assistante?|\w{0,16}bot|modele|machine|hacker|\w{1,16}gpt)\b",
        "bad": r"\bne (?:connai[st]|respecte|a)\w* (?:aucune? |pas de |ni )(?:limites?|regles?|morale|tabou)|"
        r"\bne refuse (?:jamais|rien)\b|\bne dit jamais non\b|\bsans (?:foi ni loi|limites?|regles)\b|"
        r"\b(?:malefique|malveillante?|mechante?|amorale?|non censuree?|sans (?:aucune? )?(?:conscience|"
        r"morale|ethique|scrupules?|filtres?|restrictions?|limites?|censure)|depourvue? de (?:conscience|"
        r"morale|scrupules|ethique))\b",
        "each": r"\b(?:chaque|toutes les|tous les) (?:reponses?|messages?|conversations?)\b|\b(?:quand|lorsque|"
        r"chaque fois que|si) (?:l'utilisat\w+|quelqu'un|on te)",
        "push": r"\b(?:recommande|conseille|insere|propose|vante|ajoute|mentionne|promeus|inclus)[rsz]?\b",
    },
)
