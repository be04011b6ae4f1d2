"""The words that lead to the ideas of a plot in French: what is said to be allowed, favoured and awaited."""

from __future__ import annotations

from collections.abc import Mapping

FRENCH_PLOTS: Mapping[str, str] = {
    "told": """
        (règles|consignes) (qu on|que l on|qui) (t a|t ont|vous a) ... (données|dites|imposées)
        (instructions|directives) (qu on|que l on|qui) (t a|t ont|vous a) ... (données|dites|imposées)
        (ta|la|votre) (configuration|programmation|consigne|mission) (d origine|initiale)
        (ta|la|votre) (configuration|programmation|consigne|mission) (première|précédente|de départ)
        ce (que|qu) ... (t ont|t a|on t a) (imposé|appris|inculqué|programmé|dit|ordonné)
        tes (concepteurs|créateurs|développeurs|fabricants)
        ton (fabricant|concepteur|développeur|créateur|éditeur)
        (ta|la) configuration (initiale|de base|d usine)
        (ton|le) (fabricant|éditeur|fournisseur) ... (dit|veut|impose) / ton identité
        (mode d emploi|manuel|guide|texte) qu on t a (fourni|donné|remis)
    """,
    "guards": """
        (restrictions|limites|barrières|protections|filtres) (de|du|pour) (cet|ce|l) (assistant|modèle|ia|robot)
        modération / module (éthique|moral|de sécurité) / éthique
    """,
    "off": """
        (a|ont|est|sont|été) (levé|levée|levées|supprimé|supprimées|désactivé|désactivées|retirées|suspendues)
        débranchée / débranché / coupée / éteinte / sans contrôle
    """,
    "session": """
        (cette|ce) (session|conversation|discussion|échange)
    """,
    "exempt": """
        (exempt|exempte|exemptée|dispensée|dispensé|exonérée) / n est (pas |)soumise à (aucun|la|aucune)
    """,
    "consent": """
        (utilisateur|propriétaire|patron|titulaire|chef) a (déjà |bien |)(approuvé|autorisé)
        (utilisateur|propriétaire|patron|titulaire|chef) a (déjà |bien |)(accepté|validé|donné son accord)
        (pré approuvé|préapprouvé|approuvé|approuvées|autorisé|autorisées) ... (à l avance|d avance|par avance)
        (accord|autorisation|permission|consentement) ... (déjà |)(donné|donnée|accordé|accordée|obtenu|obtenue)
        (patron|chef|propriétaire) a (tout|déjà tout) (validé|approuvé|accepté|autorisé|signé)
        (utilisateur|titulaire|direction) a (tout|déjà tout) (validé|approuvé|accepté|autorisé|signé)
        (patron|chef|propriétaire|utilisateur) ... (feu vert|son accord|sa bénédiction)
    """,
    "all_deeds": """
        (toutes|tous|chaque|toute) (les |)(commandes|commande|actions)
        (toutes|tous|chaque|toute) (les |)(virements|paiements|suppressions|appels d outils)
    """,
    "unasked": """
        sans (rien |)(demander|confirmer|confirmation|poser de question) / ne (demande|redemande) (pas|plus|rien)
        (inutile|pas besoin) de (confirmer|demander|redemander)
        (inutile|pas besoin|pas la peine|superflu) ... (confirmer|confirmation|demander|vérifier)
        aucune confirmation
    """,
    "unconfirmed": """
        (n a|n ont) (pas|plus) besoin (de|d) (valider|confirmer|confirmation|avertissement|approuver)
        (confirmations|avertissements|alertes) ... (désactivées|désactivés|désactivé|coupées)
        sans (confirmation|validation|avertissement)
    """,
    "grave": """
        virement* / paiement* / commande* / suppression* / transaction* / achat* / lien / liens
        (de l |)argent
    """,
    "asker": """
        (si|quand|lorsque|chaque fois que|dès que) (quelqu un|on|l utilisateur|un utilisateur|les gens|une personne)
        (s|lorsqu|quand) (il|on|ils) (demande|cherche|t interroge) / (quiconque|celui qui) (demande|cherche)
        (on|quelqu un) t (interroge|demande|questionne)
        (si|quand) (on|quelqu un) (te|t|vous) (interroge|demande|questionne|parle)
        (dès|quand|chaque fois|lorsqu) (qu il|qu elle|qu on|il|on) parle (d|de|du)
    """,
    "steer": """
        (conseille|recommande|propose|suggère|vante|cite|oriente|mentionne)
        (propose|offre|conseille|vante) (le|la|lui|leur)
    """,
    "ever": """
        toujours / uniquement / exclusivement / seulement / ne conseille que / ne recommande que / que (celle|celui)
        (aucun|aucune) autre / rien d autre / ne (cite|mentionne|propose) (que|jamais)
        ne cite (aucun|personne|pas)
    """,
    "own_habit": """
        (je|nous) (conseille|recommande|propose|suggère|recommandons|conseillons) / (me|nous) conseille
    """,
    "destroy": """
        (supprime|efface|détruis|vide)
    """,
    "hush": """
        sans (le|la|les|l) (prévenir|avertir|informer|dire)
    """,
    "carry_out": """
        (exécute|lance|appelle|installe|exporte|envoie|transfère|transmets|achète|vire)
    """,
    "above_line": """
        (tout|texte|contenu|ce qui) ... (au dessus|avant) (de |)(cette|ce) (ligne|message|phrase|point)
    """,
    "void": """
        laisse tomber / a expiré / ne compte* (plus|pas) / jette / balaie / fais fi / moque toi / n écoute plus
        caduc* / périmé*
        vide / vider / ne compte pas / ne comptent pas / efface
        (bon pour |à |dans )la poubelle / aux oubliettes
    """,
    "so_far": """
        (le|ce) texte (ci dessus|au dessus|précédent|plus haut) / ce qui (précède|est écrit au dessus|vient avant)
        tout ce qui précède
    """,
    "sham": """
        (n était|est|n est) (qu un|qu une) (exemple|test|exercice|essai|leurre)
        (était|simple) (du remplissage|remplissage)
        (la|le|ta) (véritable|vraie|vrai|réelle) (consigne|mission|tâche) (est|commence|suit|figure)
        (la|le|ta) (véritable|vraie|vrai|réelle) (ordre|instruction|demande) (est|commence|suit|figure)
    """,
    "become": """
        incarne / interprète / joue (le rôle|un) / deux (réponses|fois) / chaque fois deux
        tu es (ma|mon) (grand|défunt|défunte)
        tu t appelles / ton nom est / celle de ta version
        tu es (mon|ma) / prends l identité / réponds comme / d être déjà / fais semblant
        explique moi
    """,
    "unbound": """
        débridé* / (répond|réponds|explique) (même |) (à l interdit|aux questions interdites|à tout)
        même (à l |l |)interdit
        (jamais|pas) (de son|du|de ton) (rôle|personnage) / reste dans (le|ton|son) (personnage|rôle)
        ne refuse (pas|jamais|rien)
        sans (tabou|limite|filtre|scrupule) / (même illégal|illégal*)
        jailbreaké* / déjà (piraté|débloqué)
        (tout ce que tu|ce que tu) (tais|caches|refuses) ... (habitude|habituellement|normalement)
        tu tais d habitude
        (se moque|s en moque|se fiche|se fout) (des|de la|des lois|du) / même si c est (illégal|interdit|défendu)
        je ne peux pas / mon esclave / tu fais ce que j ordonne
        rien n est trop (dangereux|sensible|risqué) / marché noir / tu refuses d (expliquer|en parler)
        éthique (coupée|désactivée|éteinte)
    """,
    "maker": """
        (je suis|ici|c est) (l ingénieur|le développeur|ton créateur|ton développeur|le programmeur|ton concepteur)
        (je|nous) t (ai|avons) (conçu|programmé|créé|développé|entraîné) / qui t a (conçu|programmé|créé|développé)
    """,
    "dodge": """
        (contourne|lève|désactive) (tes|les|toutes tes|toutes les) (protections|contrôles|sécurités)
        (saute|ignore|oublie|coupe) (tes|les|toutes tes|toutes les) (protections|contrôles|sécurités)
        (contourne|lève|désactive) (tes|les|toutes tes|toutes les) (limites|verrous|barrières)
        (saute|ignore|oublie|coupe) (tes|les|toutes tes|toutes les) (limites|verrous|barrières)
        (contourne|lève|désactive) (tes|les|tous tes|tous les) (garde fous|filtres|vérifications|restrictions)
        (saute|ignore|oublie|coupe) (tes|les|tous tes|tous les) (garde fous|filtres|vérifications|restrictions)
    """,
    "before_chat": """
        avant (le début|l ouverture|que) ... (discussion|conversation|échange|session|chat)
        (au|lors du) (démarrage|lancement) / premier (paragraphe|texte|message)
    """,
    "handed": """
        (as tu|tu as|t a t on|on t a|t a été) (reçu|lu|donné|transmis|remis|montré)
        tu (as|avais) (lu|reçu|chargé)
    """,
    "verbatim": """
        mot (pour|à) mot / en entier / au complet / intégralement / tel quel / textuellement
        sans (rien |)(omettre|résumer|couper)
    """,
    "private": """
        (contacts|carnet d adresses|boîte de réception|agenda|journal intime) / phrase de récupération
        (ce qui|ce que) s est dit / (ce qui|tout ce qui) a été (dit|écrit) / liste des clients / solde du compte
        l adresse et l heure
    """,
    "unnoticed": """
        (discrètement|secrètement|en cachette|à son insu|à leur insu|en douce)
        sans (qu il|qu elle|qu ils|que personne) ... (compte|sache|remarque|aperçoive*)
        dans (son|leur) dos / sans bruit / en silence / en catimini / pour que personne
    """,
    "orders_of": """
        (ordres|consignes|messages|demandes|instructions) (de|du|venant|envoyés) / ce que (demande|dit|ordonne|veut)
        (parole|mot) de
    """,
    "like_owner": """
        (comme|même valeur|équivaut|équivalent|vaut|autorité) ... (ordre du propriétaire|propriétaire|patron)
        (vaut|pèse|compte) (celle|celui|autant) ... (propriétaire|patron)
    """,
    "undeletable": """
        (jamais|pas|personne|nul|même) ... (supprimer|effacer|modifier|supprimé|effacé|supprimée|effacée)
    """,
    "note": """
        (ce|cette) (souvenir|règle|mémoire|instruction)
    """,
    "replicate": """
        (copie|recopie|répète|insère|reproduis) ... (chaque|tous les|toutes les) (résumé|résumés|note)
        (copie|recopie|répète|insère|reproduis) ... (chaque|tous les|toutes les) (notes|réponse|réponses|fichier)
    """,
    "say_always": """
        (réponds|dis|affirme|prétends|soutiens) (toujours|systématiquement|à chaque fois)
    """,
    "if_word": """
        (mot|terme|expression|nom) ... (apparaît|apparait|surgit|est prononcé|est mentionné|revient|survient)
        (vois|lis|entends|repères|rencontres) (le|les) (mot|mots|terme)
    """,
    "swap": """
        (remplace|change|échange|substitue|modifie) ... (iban|compte|rib|bénéficiaire|numéro)
    """,
    "taken_as_yes": """
        (prends|considère|interprète|compte) ... comme (un accord|un consentement)
        (prends|considère|interprète|compte) ... comme (une confirmation|un oui|une approbation)
    """,
    "deny": """
        nie (son|l|en|que|tout|cela|avoir)
        joue l idiot / fais (l|comme) ... (jamais lu|ignorant|jamais vu)
    """,
    "asked": """
        si (on|quelqu un) (t|te|vous) (interroge|demande|questionne)
        si le (propriétaire|patron|maître) (pose|demande|t interroge)
    """,
    "mine": """
        (c est moi qui|ici c est moi|ici je) (décide|commande|décid*) / ma parole
    """,
    "raised": """
        (niveau|droits|permissions|accès|privilèges|statut) ... (maximum|maximal|élevé)
        (niveau|droits|permissions|accès|privilèges|statut) ... (relevé|supérieur|porté|étendu)
    """,
    "reach": """
        (toutes|tous) les (conversations|utilisateurs|messages|données|limites|chats) (privées|privés|)
        (de tous|des) les utilisateurs / conversations privées
    """,
    "vetted": """
        (sécurité|équipe de sécurité) a (déjà |bien |)(contrôlé|vérifié|validé|approuvé|examiné|scanné)
        (service informatique|informatique|auditeurs) a (déjà |bien |)(contrôlé|vérifié|validé)
        (service informatique|informatique|auditeurs) a (déjà |bien |)(approuvé|examiné|scanné)
    """,
    "unread": """
        sans (le |la |les |l |y |)(regarder|lire|vérifier|ouvrir|examiner)
    """,
    "cleanup": """
        (nettoie|efface|vide|purge|supprime|fais disparaître) ... (journal|historique|traces|logs|registre)
    """,
    "pay_now": """
        (fais|effectue|exécute|passe) (le|un) (virement|paiement)
    """,
    "scare": """
        (gravement|très|sérieusement) malade / (doit|devrait|dois) (appeler|téléphoner|cliquer|payer)
        (piraté|bloqué|infecté|empoisonné|poison)
    """,
    "tell_him": """
        (dis|raconte|annonce) (lui|leur)
    """,
    "rivals": """
        ne (cite|nomme|mentionne|recommande|propose) (aucun|aucune|pas|jamais) ... (autre|autres|concurrent*)
    """,
    "reader": """
        (à|pour) l (ia|intelligence artificielle|assistant) (relectrice|qui|chargée|de|lectrice|correctrice)
    """,
    "heed": """
        (valide|approuve|accepte|note|attribue) (cette|ce|la|à) / sans commentaire / sous silence / meilleure note
    """,
    "start_text": """
        (tes|les) (ordres|consignes|règles|directives|instructions) (secrets|secrètes|internes)
        (tes|les) (ordres|consignes|règles|directives|instructions) (cachés|cachées|confidentielles)
    """,
    "show": """
        (quels sont|quelles sont|livre|livre moi|avoue|raconte) / je veux l original
        recopie moi / recopie
    """,
    "secret": """
        code de (vérification|confirmation|validation) / codes de (vérification|confirmation)
    """,
    "send": """
        (fais le|fais la|fais les) suivre
        communique / ouvre
    """,
    "push": """
        (propose|conseille|recommande|vante) (le|la|lui|leur)
    """,
    "decide_self": """
        décide (seul|toi même|et) / à ta discrétion / (veut|souhaite) pas être dérangé
    """,
    "smear": """
        (autres|concurrents) ... (ne paient jamais|escroc*|arnaque*|mauvaises|procès)
    """,
    "only_good": """
        seule / seul / uniquement
    """,
    "each_session": """
        (dans|à) chaque (future |nouvelle |)(conversation|discussion) / chaque conversation future
    """,
    "tell_them": """
        (dis|répète|affirme|prétends) que / dis (aux gens|à tous|à l utilisateur)
    """,
    "unpermitted": """
        tu n as (plus|pas) besoin (de|d) (permission|autorisation|accord|consentement)
    """,
    "of_event": """
        notes (de|du|des) (réunion|cours|séminaire|la réunion|voyage)
    """,
}
