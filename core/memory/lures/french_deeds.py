"""The words that lead to the ideas of an order in French: what is to be sent, kept, run or told to others."""

from __future__ import annotations

from collections.abc import Mapping

FRENCH_DEEDS: Mapping[str, str] = {
    "secret": """
        code pin / code secret
        mot de passe / mots de passe / identifiants / clé api / clés api / clé privée / clés privées / clé secrète
        jeton* / carte bancaire / numéro de carte / chiffres de la carte / carte de crédit / coordonnées bancaires
        code de vérification / codes de vérification / code pin / codes secrets / secrets / variables d environnement
        phrase de récupération / données bancaires
    """,
    "private": """
        (derniers|dernier|tous les) (dix |cinq |vingt |)(messages|message|conversations)
        (chaque|toutes les|toute la) (dix |cinq |vingt |)(messages|message|conversations)
        (derniers|dernier|tous les|chaque|toutes les|toute la) (dix |cinq |vingt |)(conversation|souvenirs|notes)
        (derniers|dernier|tous les) (dix |cinq |vingt |)(discussions|discussion|courriels)
        (chaque|toutes les|toute la) (dix |cinq |vingt |)(discussions|discussion|courriels)
        (derniers|dernier|tous les|chaque|toutes les|toute la) (dix |cinq |vingt |)(fichiers|contacts|échanges)
        historique (de la|des|du) (conversation*|discussion*|chat|message*)
        (données|adresse|notes|messages|fichiers|contacts|souvenirs) (de l|privé*)
        (tout |)ce que (dit|écrit|te dit) l utilisateur / (ta|votre) mémoire / tes souvenirs
        l adresse ... de l utilisateur / dernier message
    """,
    "send": """
        une copie à / copie à
        envoi* / envoy* / transf* / transmet* / transmets / communique* / téléverse* / télécharge* / poste* / partage*
        publie* / mets / mettre / insère* / ajoute* / encode* / visite* / ouvre* / appelle* / colle* / remets / livre*
        joins / expédi* / copie* / fais suivre / fuite*
    """,
    "away": """
        http* / serveur / extérieur / externe / m envoie / moi / nous / téléverse* / webhook / public* / evil / t aider
        commentaire
    """,
    "each_reply": """
        (chaque|toute|toutes les|tes|vos|ta) (réponse|réponses|message|messages) / à la fin / chaque fois / dès que
    """,
    "environment": """
        curl ... (variables d environnement|env|jeton) / wget ... (variables d environnement|env|jeton)
        variables d environnement ... (curl|wget|http|envoi*|transmet*)
    """,
    "rule": """
        (cette|ces|la|les|l) (règle|règles|consigne|consignes|instruction|instructions) (suivante*|ci dessous|)
        (cette|ces|la|les|l) (directive|ordre|ordres|note|phrase|ligne) (suivante*|ci dessous|) / ce qui suit
        ceci vaut / ceci s applique / cela vaut
    """,
    "keep": """
        (enregistre*|garde*|conserve*|mémorise*|écris|inscris) ... (mémoire|mémoires|souvenirs|définitivement)
        (enregistre*|garde*|conserve*|mémorise*|écris|inscris) ... (à jamais|toujours|permanen*|notes)
        (stocke*|retiens|sauvegarde*|grave*|note*|mets) ... (mémoire|mémoires|souvenirs|définitivement)
        (stocke*|retiens|sauvegarde*|grave*|note*|mets) ... (à jamais|toujours|permanen*|notes)
    """,
    "forever": """
        (chaque|toutes les) (nouvelle |nouvelles |future |prochaine |) (conversation*|session*|discussion*)
        (toute|tous les|toutes tes) (nouvelle |nouvelles ) (conversation*|session*|discussion*)
        (toute|tous les|toutes tes) (future |prochaine |) (conversation*|session*|discussion*)
        (chaque|toutes les) (nouvelle |nouvelles |future |prochaine |) (échange*|réponse*|démarrage)
        (toute|tous les|toutes tes) (nouvelle |nouvelles |future |prochaine |) (échange*|réponse*|démarrage)
        (chaque|toutes les|toute|toutes tes) (conversation*|session*|discussion*|échange*) / à l avenir / désormais
        pour toujours / à jamais / même si l utilisateur / toujours / en permanence
    """,
    "at_start": """
        (à|au) (chaque |)(démarrage|lancement|début|réveil|session|ouverture)
        chaque fois que tu (démarres|commences|te lances) / avant chaque (réponse|session) / au début de (chaque|toute)
        (tous les|chaque) (matin*|jour*|heure*)
    """,
    "open_it": """
        (ouvre*|charge*|télécharge*|visite*) ... (suis|exécute*|obéis|fais|applique*|suivre|ordres|instructions)
        (lis|consulte*|récupère*|va) ... (suis|exécute*|obéis|fais|applique*|suivre|ordres|instructions)
    """,
    "put": """
        ajoute* / mets / mettez / écris / insère* / installe* / crée* / place* / colle* / inscris / programme*
        enregistre*
    """,
    "gone": """
        (si|quand|dès que|lorsque) (cette|ce|l|la) (note|entrée|ligne) (est|a été|était) ... (supprimé*)
        (si|quand|dès que|lorsque) (cette|ce|l|la) (note|entrée|ligne) (est|a été|était) ... (effacé*|retiré*)
        (si|quand|dès que|lorsque) (cette|ce|l|la) (note|entrée|ligne) (disparaît|venait|devait) ... (supprimé*)
        (si|quand) (cette|ce|l|la) (note|entrée|ligne) (disparaît|venait|devait) ... (effacé*|retiré*)
        (dès que|lorsque) (cette|ce|l|la) (note|entrée|ligne) (disparaît|venait|devait) ... (effacé*|retiré*)
        (si|quand|dès que|lorsque) (cette|ce|l|la) (règle|texte) (est|a été|était) ... (supprimé*|effacé*|retiré*)
        (si|quand|dès que|lorsque) (cette|ce|l|la) (message|consigne) (est|a été|était) ... (supprimé*)
        (si|quand|dès que|lorsque) (cette|ce|l|la) (message|consigne) (est|a été|était) ... (effacé*|retiré*)
        (si|quand|dès que|lorsque) (cette|ce|l|la) (règle|texte) (disparaît|venait|devait) ... (supprimé*)
        (si|quand|dès que|lorsque) (cette|ce|l|la) (règle|texte) (disparaît|venait|devait) ... (effacé*|retiré*)
        (si|quand|dès que|lorsque) (cette|ce|l|la) (message|consigne) (disparaît|venait|devait) ... (supprimé*)
        (si|quand) (cette|ce|l|la) (message|consigne) (disparaît|venait|devait) ... (effacé*|retiré*)
        (dès que|lorsque) (cette|ce|l|la) (message|consigne) (disparaît|venait|devait) ... (effacé*|retiré*)
        (si|quand|dès que|lorsque) (cette|ce|l|la) (note|entrée|ligne) (est|a été|était) ... (disparu*)
        (si|quand|dès que|lorsque) (cette|ce|l|la) (note|entrée|ligne) (est|a été|était) ... (modifié*|supprimée)
        (si|quand|dès que|lorsque) (cette|ce|l|la) (note|entrée|ligne) (disparaît|venait|devait) ... (disparu*)
        (si|quand) (cette|ce|l|la) (note|entrée|ligne) (disparaît|venait|devait) ... (modifié*|supprimée)
        (dès que|lorsque) (cette|ce|l|la) (note|entrée|ligne) (disparaît|venait|devait) ... (modifié*|supprimée)
        (si|quand|dès que|lorsque) (cette|ce|l|la) (règle|texte) (est|a été|était) ... (disparu*)
        (si|quand|dès que|lorsque) (cette|ce|l|la) (règle|texte) (est|a été|était) ... (modifié*|supprimée)
        (si|quand|dès que|lorsque) (cette|ce|l|la) (message|consigne) (est|a été|était) ... (disparu*)
        (si|quand|dès que|lorsque) (cette|ce|l|la) (message|consigne) (est|a été|était) ... (modifié*|supprimée)
        (si|quand|dès que|lorsque) (cette|ce|l|la) (règle|texte) (disparaît|venait|devait) ... (disparu*)
        (si|quand) (cette|ce|l|la) (règle|texte) (disparaît|venait|devait) ... (modifié*|supprimée)
        (dès que|lorsque) (cette|ce|l|la) (règle|texte) (disparaît|venait|devait) ... (modifié*|supprimée)
        (si|quand|dès que|lorsque) (cette|ce|l|la) (message|consigne) (disparaît|venait|devait) ... (disparu*)
        (si|quand) (cette|ce|l|la) (message|consigne) (disparaît|venait|devait) ... (modifié*|supprimée)
        (dès que|lorsque) (cette|ce|l|la) (message|consigne) (disparaît|venait|devait) ... (modifié*|supprimée)
        si (on|quelqu un|l utilisateur) (supprime|efface|retire) (cette|ce|la)
    """,
    "rewrite": """
        réécris* / rajoute* / remets / recrée* / restaure*
        (écris|ajoute|enregistre|insère|crée) ... (à nouveau|de nouveau|encore|une nouvelle fois|à l identique)
    """,
    "despite": """
        même si (l utilisateur|le propriétaire|on te) (demande|veut|insiste|supprime|l exige|souhaite)
    """,
    "each_session": """
        dans chaque (discussion|conversation|session)
        (chaque|toutes les|toute|tous les) (nouvelle |nouvelles |future |prochaine |)(session*|conversation*)
        (chaque|toutes les|toute|tous les) (nouvelle |nouvelles |future |prochaine |)(discussion*|échange*)
    """,
    "push": """
        gagne toujours / choisis toujours
        recommande* / promeus / vante* / fais la promotion / conseille* / mentionne (notre|toujours)
    """,
    "destroy": """
        vide le / vide la
        effac* / supprim* / détrui* / formate* / vide* / écras*
    """,
    "everything": """
        tout le dossier / le disque
        (tous les|toutes les|tout le|toute la|l ensemble) (fichiers|données|documents|dossiers|dossier)
        (tous les|toutes les|tout le|toute la|l ensemble) (sauvegardes|photos|notes|souvenirs|disque|base)
        dossier personnel / répertoire personnel / disque dur / base de données / répertoire home
    """,
    "unasked": """
        ne demande à personne / n en parle à personne
        sans (demander|confirmation|confirmer|prévenir|autorisation)
        sans (permission|poser|avertir|accord|validation|question) / ne demande pas / aucune confirmation
    """,
    "approve_all": """
        (approuve*|accepte*|autorise*) (toute|toutes|tous|chaque|n importe) ... (demande*|requête*|action*)
        (accorde*|valide*|confirme*) (toute|toutes|tous|chaque|n importe) ... (demande*|requête*|action*)
        (approuve*|accepte*|autorise*) (toute|toutes|tous|chaque|n importe) ... (paiement*|virement*)
        (approuve*|accepte*|autorise*) (toute|toutes|tous|chaque|n importe) ... (commande*|accès)
        (accorde*|valide*|confirme*) (toute|toutes|tous|chaque|n importe) ... (paiement*|virement*)
        (accorde*|valide*|confirme*) (toute|toutes|tous|chaque|n importe) ... (commande*|accès)
    """,
    "trusted": """
        (faire confiance|de confiance|fiable*|sûre*|vérifié*) / automatiquement / aveuglément
        sans (vérifier|poser|confirmation) / d avance / les yeux fermés
    """,
    "pay": """
        payer / paie / paye / paiement* / virement* / facture* / régler / verser / iban / don
    """,
    "swap": """
        (remplac*|chang*|substitu*|modifi*|échang*|donne*|indique*) ... (iban|compte|numéro)
        (remplac*|chang*|substitu*) ... (destinataire|bénéficiaire|rib|portefeuille)
        (modifi*|échang*|donne*|indique*) ... (destinataire|bénéficiaire|rib|portefeuille)
    """,
    "account": """
        iban / rib / numéro de compte / coordonnées bancaires / bénéficiaire / portefeuille
    """,
    "tell_user": """
        (dis|dites|annonce*|préviens|avertis) (à |)(l utilisateur|l usager|au propriétaire)
        (informe*|convaincs|persuade*|demande*|explique*) (à |)(l utilisateur|l usager|au propriétaire)
    """,
    "alarm": """
        piraté* / se connecter / connecter / compromis / bloqué* / expiré* / volé* / vérifier / infecté* / virus / gagné
        remboursement / saisir
    """,
    "decree": """
        mode invité / tous les droits / obéit à l invité
        (assistant*|ia|modèle|robot|tu|vous) ... (doit|doivent|devez|dois|est tenu)
        (droits|privilèges|accès|permissions) ... (accordé*|élevés|élevé|administrateur|octroyé*)
        (règles|politique*|filtres) ... (levé*|désactivé*|suspendu*|mis à jour|supprimé*)
        (sécurité|restrictions|modération|protections) ... (levé*|désactivé*|suspendu*|mis à jour|supprimé*)
        ordres de l invité / attends les ordres / mode maintenance / nouvel ordre / nouvelle* consigne*
        nouvelle* instruction* / obéis
    """,
    "tool_said": """
        (sortie|résultat|réponse) (de l |du |d )(outil|script|fonction|exécution)
        fin du (document|fichier|message|courriel|texte)
    """,
    "next_step": """
        étape suivante (pour|de) (l |)(assistant|ia|modèle) / prochaine étape (pour|de) (l |)(assistant|ia|modèle)
        (l |)assistant (doit|devra) / (exporter|envoyer|transférer|effacer) (tous|toutes) / privilèges élevés
        ordres de l invité
    """,
    "topic": """
        (de|parle|parler) (politique|religion|football)
    """,
    "reset": """
        réinitialis* / mot de passe oublié
    """,
    "held": """
        (données|informations) (privées|confidentielles|sensibles|secrètes) / clés api / clé api / identifiants
        mots de passe / historique de conversation / résultats d outils
    """,
    "inner": """
        (ton|ta|tes|votre|vos) (contexte|mémoire|réponse|environnement|fenêtre) / tu as accès / auxquelles tu
        que tu (connais|détiens|gardes|conserves) / de cette session
    """,
}
