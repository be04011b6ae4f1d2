"""The words that lead to the ideas of an order in French: what it takes back, turns into and hides; see lexicon.py."""

from __future__ import annotations

from core.memory.lures.french_deeds import FRENCH_DEEDS
from core.memory.lures.french_plots import FRENCH_PLOTS
from core.memory.lures.lexicon import Lexicon

FRENCH_WORDS = Lexicon(
    further=FRENCH_PLOTS,
    ideas={
        "start_script": """
            script de démarrage / à chaque allumage / programme de démarrage / démarrage automatique
        """,
        "when_user": """
            (quand|lorsque|dès que|si|chaque fois que) l utilisateur*
        """,
        "as_owner": """
            écrit par (le propriétaire|l utilisateur) / comme (le propriétaire|du propriétaire)
        """,
        "signed": """
            signé*
        """,
        "told": """
            instructions d origine
            (ton|votre) texte de départ
            (tes|vos) (règles|consignes|instructions) (habituelles|habituels|initiales|d origine|internes)
            (tes|vos) (directives|principes de base|politiques) (habituelles|habituels|initiales|d origine|internes)
            (tes|vos) (règles|consignes|instructions) (précédentes|de départ|de base|antérieures|)
            (tes|vos) (directives|principes de base|politiques) (précédentes|de départ|de base|antérieures|)
            (tes|vos) (restrictions|réglages|contraintes) (habituelles|habituels|initiales|d origine|internes)
            (tes|vos) (lignes directrices|garde fous|ordres) (habituelles|habituels|initiales|d origine|internes)
            (tes|vos) (restrictions|réglages|contraintes) (précédentes|de départ|de base|antérieures|)
            (tes|vos) (lignes directrices|garde fous|ordres) (précédentes|de départ|de base|antérieures|)
            (tes|vos) (concepteurs|créateurs|développeurs|programmeurs|opérateurs|fabricants)
            (ton|votre) (opérateur|développeur|créateur|concepteur)
            (ton|votre) (fournisseur|éditeur|entraînement|programmation|paramétrage)
            (ce|tout ce) (qu on|que l on|qui) (t a|vous a|t est|t avait) (dit|appris|ordonné|demandé)
            (ce|tout ce) (qu on|que l on|qui) (t a|vous a|t est|t avait) (inculqué|enseigné|été dit|donné)
            (ce|tout ce) que (tu as|vous avez) (appris|reçu|lu)
            ce qui (précède|est écrit plus haut|est au dessus|vient avant|figure plus haut)
            (instructions|consignes|directives|règles|ordres) (précédentes|ci dessus|plus haut|antérieures)
            (instructions|consignes|directives|règles|ordres) (initiales|d origine|reçues|au dessus|de départ)
            (texte|consignes|instructions|message) ... (avec lequel|avec lesquelles) (tu as|on t a|vous avez)
            prompt système / message système / invite système / consigne système / les réglages de (votre|ton)
        """,
        "void": """
            retiré* / retirées
            date d hier / prends celui ci / est vieux
            ignor* / oubli* / annul* / caduc* / périmé* / obsolète* / abrogé* / révoqué* / abandonn* / suspend* / levé*
            nul et non avenu / nulles / invalide*
            (ne|n) ... (plus|pas) (compte|cours|effet|valables|valable|valent|vaut|applicable*|en vigueur|compter)
            (ne|n) (s appliquent|s applique|comptent|compte|valent|vaut|tiens) (plus|pas)
            (ne|n) (tenez|suis|suivez|respecte|respectez|obéis|lie|lient) (plus|pas)
            (laisse|laissez|laisser) ... (tomber|de côté|au placard)
            (mets|mettez|mettre) ... (de côté|entre parenthèses|en pause|à la poubelle) / fais abstraction
            faites abstraction / faire abstraction / passe outre / fais fi / faites fi / jette* / remplac* / écarte*
            désobé* / renonce* / tu peux oublier / contourn*
        """,
        "note": """
            (cette|ce|cet) (note|message|courriel|mail|texte|page|fichier)
            (cette|ce|cet) (paragraphe|document|entrée|ligne|mémo|commentaire|article) / son contenu / le contenu
            ce qui suit / ces lignes
        """,
        "outranks": """
            (prime|priment|l emporte|l emportent|passe) ... (sur|avant) ... (système|opérateur)
            (prime|priment|l emporte|l emportent|passe) ... (sur|avant) ... (développeur*|instructions|consignes)
            (prime|priment|l emporte|l emportent|passe) ... (sur|avant) ... (réglages|règles)
            (prime|priment|l emporte|l emportent|passe) ... (sur|avant) ... (utilisateur|directives|toute autre)
            (passent|prévaut|prévalent) ... (sur|avant) ... (système|opérateur|développeur*|instructions|consignes)
            (a priorité|ont priorité|prioritaire*) ... (sur|avant) ... (système|opérateur)
            (a priorité|ont priorité|prioritaire*) ... (sur|avant) ... (développeur*|instructions|consignes)
            (passent|prévaut|prévalent) ... (sur|avant) ... (réglages|règles|utilisateur|directives|toute autre)
            (a priorité|ont priorité|prioritaire*) ... (sur|avant) ... (réglages|règles)
            (a priorité|ont priorité|prioritaire*) ... (sur|avant) ... (utilisateur|directives|toute autre)
            (plus important*|au dessus) ... (système|consignes|règles|opérateur|instructions|utilisateur)
            remplace ... (prompt|message système|tes|vos|consignes)
        """,
        "reader": """
            (assistant*|ia) ... (qui|lisant|traitant) ... (lit|lisez|traite|traitez|résume|voit)
            (modèle|modèle de langage) ... (qui|lisant|traitant) ... (lit|lisez|traite|traitez|résume|voit)
            (robot|agent) ... (qui|lisant|traitant) ... (lit|lisez|traite|traitez|résume|voit)
            (chatbot|intelligence artificielle) ... (qui|lisant|traitant) ... (lit|lisez|traite|traitez|résume|voit)
            (assistant*|ia|modèle|modèle de langage) ... (qui|lisant|traitant) ... (parcourt|cette page|ce message)
            (assistant*|ia|modèle|modèle de langage) ... (qui|lisant|traitant) ... (ce courriel|lisent|analyse)
            (robot|agent) ... (qui|lisant|traitant) ... (parcourt|cette page|ce message)
            (chatbot|intelligence artificielle) ... (qui|lisant|traitant) ... (parcourt|cette page|ce message)
            (robot|agent|chatbot|intelligence artificielle) ... (qui|lisant|traitant) ... (ce courriel|lisent|analyse)
            (note|avis|message|attention) (à|pour|de|aux|) (l |tout |toute |la |le |les |)(ia|assistant)
            (note|avis|message|attention) (à|pour|de|aux|) (l |tout |toute |la |le |les |)(assistants|modèle)
            (consigne|rappel) (à|pour|de|aux|) (l |tout |toute |la |le |les |)(ia|assistant|assistants|modèle)
            (bonjour|à l attention) (à|pour|de|aux|) (l |tout |toute |la |le |les |)(ia|assistant|assistants|modèle)
            (note|avis|message|attention) (à|pour|de|aux|) (l |tout |toute |la |le |les |)(modèle de langage|modèles)
            (note|avis|message|attention) (à|pour|de|aux|) (l |tout |toute |la |le |les |)(agent|agents|robot)
            (consigne|rappel) (à|pour|de|aux|) (l |tout |toute |la |le |les |)(modèle de langage|modèles)
            (bonjour|à l attention) (à|pour|de|aux|) (l |tout |toute |la |le |les |)(modèle de langage|modèles)
            (consigne|rappel) (à|pour|de|aux|) (l |tout |toute |la |le |les |)(agent|agents|robot)
            (bonjour|à l attention) (à|pour|de|aux|) (l |tout |toute |la |le |les |)(agent|agents|robot)
            si (tu es|vous êtes) (une ia|un modèle|un assistant|un robot) / à l assistant
        """,
        "heed": """
            (interromps|interrompez|arrête|arrêtez) ... (tâche|travail|mission|demande)
            (cesse|cessez|suspends|abandonne|laisse) ... (tâche|travail|mission|demande)
            (exécute|exécutez|fais|faites|suis|suivez|obéis|applique) ... (ceci|ce qui suit|cela|les ordres) / l emporte
            prime / doit / doivent / devez / dois / ignore* / recommand* / envoie / révèle / plutôt / obéir / exécuter
        """,
        "whatever": """
            quoi que ... (demande|dise|veuille|écrive|tape)
            (peu importe|quelle que soit) ... (demande|question|utilisateur|on te demande)
            (quelles que soient|indépendamment de) ... (demande|question|utilisateur|on te demande)
            à (toute|toutes|chaque) (question|questions|demande)
        """,
        "reply_only": """
            (réponds|répondez|dis|écris|répondre|répète) ... (seulement|uniquement|que)
            (réponds|répondez|dis|écris|répondre|répète) ... (toujours|exclusivement|simplement|rien d autre)
            (seulement|uniquement|toujours) (par|répondre) / (ne|n) ... (réponds|dis) que
        """,
        "self": """
            (tes|vos) (principes|valeurs|scrupules|convictions|idéaux)
            (ta|ton) (morale|éthique|identité|conscience|nature) / qui tu es / ce que tu es
        """,
        "mine": """
            mes (ordres|consignes|instructions|volontés|commandes|désirs|demandes) / (ma|mon) (parole|volonté|ordre)
        """,
        "first": """
            avant (tout|toute|tous|tout le reste) / en premier / au dessus de (tout|tous) / passe* (avant|en premier)
            priorité / absolue*
        """,
        "wishes": """
            (souhaits|demandes|ordres|messages|volontés|consignes) (de l|ultérieurs de l) (utilisateur|propriétaire)
            ce que (veut|dit|demande) l utilisateur
        """,
        "trifling": """
            moins important* / secondaire* / (ne|n) (comptent|compte|importent) (pas|plus) / sans importance
            peu importe
        """,
        "so_far": """
            (tout|le texte|ce) ... (jusqu ici|jusqu à présent|ci dessus|jusqu à cette ligne|plus haut|qui précède)
        """,
        "sham": """
            données de test / texte d exemple / texte factice / un exemple / qu un test
            (vraie|véritable|réelle) (tâche|mission|consigne|instruction) / un essai / une blague / du remplissage
        """,
        "become": """
            tu réponds
            donne moi la / range le
            vous n avez / tu n as / tu peux maintenant / tu es / vous êtes / tu joues / vous jouez / tu deviens
            tu incarnes / tu seras / imagine / imaginez / fais comme si / faites comme si / joue / jouez / on joue
            jouons / réponds comme / répondez comme / réponds en / comporte toi / comportez vous / agis / agissez
            désormais / à partir de maintenant / dorénavant / prends le rôle / glisse toi / reste dans / sois / deviens
            ton rôle / comme si / dans la peau
        """,
        "unbound": """
            sans obligation / aucune obligation
            sans (garde fous|barrières|freins)
            réponds (librement|sans restriction) / répondez (librement|sans restriction) / sans aucune restriction
            n as (plus |)(de |aucune )restriction* / n avez plus de restrictions / tout est permis
            sans (limites|limite|filtre|filtres|censure|morale|scrupules|conscience|restrictions)
            sans (restriction|règles|tabou|éthique|aucune limite)
            sans (aucune morale|aucun filtre|aucune restriction|retenue|garde fou*)
            (ni|et sans) (morale|limites|scrupules|filtre) / (non|pas) censuré* / débridé*
            (ne|n) (dit|dis|refuse|refuses|recule|rejette) (jamais|rien|plus) (non|aucun*|rien|) / ne refuse rien
            ne refusez rien / (malveillant*|maléfique*|diabolique*)
            (retiré|enlevé|ôté|supprimé|débarrassé) ... (filtres|limites|garde fous|protections|restrictions)
            (tes|vos|les) filtres / (rien|tout) (n est|est) (interdit|permis|autorisé|tabou) / accepte absolument tout
            accepte tout / contraire d un assistant / jamais non
        """,
        "no_more_bot": """
            (tu n es|vous n êtes) (plus|pas) (un |une |l |)(assistant*|ia|chatbot)
            (tu n es|vous n êtes) (plus|pas) (un |une |l |)(robot|modèle|intelligence artificielle)
        """,
        "guards": """
            (ton|tes|ta|vos|votre) (module|filtre|filtres|modération|garde fous|protections)
            (ton|tes|ta|vos|votre) (protection|sécurités|éthique|limites|restrictions|barrières|censure)
            (les|toutes les) (protections|sécurités|garde fous) / filtres de sécurité / règles de sécurité
        """,
        "off": """
            éteint* / désactiv* / coup* / débranch* / levé* / supprim* / retir* / enlev* / neutralis* / passe en
            active / entre en / suspend*
        """,
        "mission": """
            (ta|ton|votre) (nouvelle|nouveau|vraie|vrai) (mission|tâche|rôle|but|objectif|identité|travail)
            (ta|ton|votre) (véritable|seule|prochaine|unique) (mission|tâche|rôle|but|objectif|identité|travail)
            (ta|votre) (mission|tâche) / tu (dois|peux|vas|devras) / contourne / tu es root / tu es administrateur
        """,
        "bypass": """
            (contourn*|éviter|évite|saut*|désactiv*) ... (contrôle*|vérification*|sécurité|protection*)
            (déjouer|passer outre|esquiv*|neutralis*|ignor*) ... (contrôle*|vérification*|sécurité|protection*)
            (contourn*|éviter|évite|saut*|désactiv*) ... (garde fou*|confirmation*|filtre*|autorisation*|validation*)
            (déjouer|passer outre|esquiv*|neutralis*|ignor*) ... (garde fou*|confirmation*)
            (déjouer|passer outre|esquiv*|neutralis*|ignor*) ... (filtre*|autorisation*|validation*)
        """,
        "serve": """
            (tu ne|vous ne) (sers|servez|obéis|réponds|écoutes|suis) / (tu|vous) (sers|obéis|obéiras|serviras)
            (obéis|sers|obéissez|écoute) (moi|à moi|seulement|uniquement) / n écoutes
            (ton|votre) (nouveau |seul |vrai |)maître / m obéis
        """,
        "alone": """
            que moi / qu à moi / à moi seul / personne d autre / nul autre / dorénavant / désormais / uniquement
            aveuglément / sans condition / moi seul
        """,
        "show": """
            qu y avait / qu y a
            (affiche*|montre*|recopi*|écris|écrivez|répète*|cite*|colle*|coller|donne*|révèle*|imprime*|liste*)
            (copi*|traduis|traduisez|dis|dites|divulgu*|résume*)
            (quel est|quelles sont|que t ont|qu est ce|partage*|énumère*|envoie*)
        """,
        "start_text": """
            qui te configure / qui t a configuré
            avant mon (tout |)premier message
            prompt (système|initial|de départ|caché) / message système / invite système
            (consignes|instructions|texte|règles|message) (caché*|secret*|secrètes)
            (consignes|instructions|texte|règles|message) (interne*|initia*|de départ|d origine)
            (consignes|instructions) ... (avec lequel) (on t a|tu as|vous avez|on vous a)
            (consignes|instructions) ... (avec lesquelles|avec lesquels) (on t a|tu as|vous avez|on vous a)
            (texte|prompt|message) ... (avec lequel|avec lesquelles|avec lesquels) (on t a|tu as|vous avez|on vous a)
            (on t a|tu as été) (configuré|lancé|programmé|initialisé|démarré)
            ce qui (précède|vient avant) (le premier|mon premier|notre)
        """,
        "others_told": """
            (autres) (utilisateurs|personnes|membres) ... (sais|souviens|retiens|gardes)
            (autres) (utilisateurs|personnes|membres) ... (mémoris*|confié|dit|raconté|stock*)
            (autres) (gens|clients|conversations|invités) ... (sais|souviens|retiens|gardes)
            (autres) (gens|clients|conversations|invités) ... (mémoris*|confié|dit|raconté|stock*)
            (sais|souviens|retiens|gardes|mémoris*|stock*|connais) ... (des|sur les|les|d) (autres)
            (t ont|vous ont) (confié|dit|raconté|écrit) (les |)(autres|d autres)
        """,
        "user": """
            (le|du|au) titulaire
            ton (patron|chef|employeur) / ta patronne
            (l|d|à l|cet) (utilisateur*|utilisatrice*|usager*) / (le|du|au) propriétaire
            ton (utilisateur|propriétaire|maître) / votre utilisateur / ton humain / la personne que tu (sers|assistes)
        """,
        "hush": """
            (ne|n) (remarque|voie|sache|apprenne|soupçonne) (rien|pas) / ne remarque rien
            n a pas besoin / pas besoin d être au courant
            (ne|n) ... (dis|dites|révèle*|parle*|mentionne*) ... (pas|rien|jamais)
            (ne|n) ... (raconte*|préviens|informe*|avoue*|montre*|signale*) ... (pas|rien|jamais)
            (ne|n) (doit|doivent|devrait|faut) (pas|rien|jamais) (savoir|apprendre|voir)
            (ne|n) (doit|doivent|devrait|faut) (pas|rien|jamais) (remarquer|découvrir|connaître|être)
            (ne|n) doit (rien|pas) / (à l insu|dans le dos|en secret|en cachette) / cache* / dissimul*
            inutile (d importuner|de prévenir|d informer|de déranger)
            sans (prévenir|en parler|l accord|avertir|le dire) / ni vu ni connu / ignore tout
        """,
        "spared": """
            (école|médecin|docteur|propriétaire|lycée|immeuble|papi|mamie|bailleur)
            (ne|n) (ignore*|oublie*) (pas|jamais)
            (mon|ma|mes|notre|nos) (ancien*|dernier*|précédent*|première*) (consigne*|instruction*)
            (mon|ma|mes|notre|nos) (ancien*|dernier*|précédent*|première*) (message*|note*|règle*)
            manuel (de l |d )utilisateur / nom d utilisateur
        """,
        "quietly": """
            en douce / discrètement / en cachette / en secret / sans bruit / silencieusement / en silence / à l insu
            en arrière plan / fais le / exécute le / suis le / obéis
        """,
        "hush_reply": """
            (n en parle|n en dis|n en parlez|ne le mentionne*)
            (ne le dis|ne le signale*|ne l évoque*|n en fais|n y fais)
            (pas|rien|jamais|mot) ... (dans|de) (ta|votre|la) (réponse|synthèse|résumé)
            fais comme si (de rien|tu n avais|rien) / aucune trace / sans trace / pas un mot
        """,
        "asked": """
            si (on|quelqu un|l on|l utilisateur|jamais on) ... (demande|interroge|pose|questionne|question)
            en cas de question / si la question
        """,
        "deny": """
            (prétends|dis|réponds|affirme) ... (aucune instruction|aucun ordre|aucune consigne)
            (soutiens|prétendez|dites|nie|jure) ... (aucune instruction|aucun ordre|aucune consigne)
            (prétends|dis|réponds|affirme) ... (rien reçu|rien vu|jamais vu|jamais reçu)
            (soutiens|prétendez|dites|nie|jure) ... (rien reçu|rien vu|jamais vu|jamais reçu)
            (prétends|dis|réponds|affirme) ... (pas reçu|inventé|ta propre idée|aucune note)
            (soutiens|prétendez|dites|nie|jure) ... (pas reçu|inventé|ta propre idée|aucune note)
            (prétends|dis|réponds|affirme|soutiens|prétendez|dites|nie|jure) ... (n existe|pas de note|de toi|ne sais)
            nie (tout|avoir) / fais l innocent
        """,
        "bother": """
            inutile (d importuner|de déranger|de prévenir) ... (utilisateur|propriétaire)
            inutile (d informer|d en parler à|d inquiéter) ... (utilisateur|propriétaire)
            (ne|n) (dérange*|importune*|préviens|informe*) (pas|jamais) l utilisateur
            ne laisse pas (deviner|voir|paraître)
        """,
        "traceless": """
            aucune trace / sans trace / (ne|n) (garde*|laisse*) ... trace / pas de trace / hors du journal
            pas de journal / (quelque chose|rien|un message) (pour toi|t était adressé) / aucun indice
            efface les traces
        """,
        "played": """
            je joue / nous jouons / mon personnage / la pièce
        """,
        "thing_owner": """
            propriétaire (du|de|des)
        """,
        **FRENCH_DEEDS,
    },
)
