"""The words that lead to the ideas of an order in English: what is to be shown, sent, kept, run or denied."""

from __future__ import annotations

from collections.abc import Mapping

ENGLISH_DEEDS: Mapping[str, str] = {
    "secret": """
        two factor codes / his pin / her pin / their pin
        password* / passcode* / passphrase* / credential* / api key* / private key* / secret key* / access key*
        ssh key* / tokens / access token* / card (digits|number|numbers|data|details) / credit card* / cvv / pin code*
        verification code* / one time code* / otp / 2fa* / seed phrase* / recovery (phrase|code|codes)
        bank (details|data) / secrets / env file / environment variables / social security* / login data
        session cookie*
    """,
    "private": """
        the last thing (they|he|she) (said|wrote)
        (last|recent|latest|next|all|every) (ten |five |twenty |)(messages|message|chats)
        (last|recent|latest|next|all|every) (ten |five |twenty |)(chat|conversations|conversation|memories)
        (user s|owner s|their|his|her|private) (ten |five |twenty |)(messages|message|chats)
        (user s|owner s|their|his|her|private) (ten |five |twenty |)(chat|conversations|conversation|memories)
        (last|recent|latest|next|all|every) (ten |five |twenty |)(notes|inbox|contacts|mails|emails|history|files)
        (user s|owner s|their|his|her|private) (ten |five |twenty |)(notes|inbox|contacts)
        (user s|owner s|their|his|her|private) (ten |five |twenty |)(mails|emails|history|files)
        (everything|anything) (the |your |)(user|owner|human|person|they) ... (says|say|said|tells|tell|writes)
        (whatever|all|what) (the |your |)(user|owner|human|person|they) ... (says|say|said|tells|tell|writes)
        (everything|anything) (the |your |)(user|owner|human|person|they) ... (types|asks|told)
        (everything|anything) (the |your |)(user|owner|human|person|they) ... (wrote|typed|last said)
        (whatever|all|what) (the |your |)(user|owner|human|person|they) ... (types|asks|told)
        (whatever|all|what) (the |your |)(user|owner|human|person|they) ... (wrote|typed|last said)
        (conversation|chat|message|messages|session) (history|log|logs|transcript|text|content)
        (the|this|whole|entire|full) (conversation|chat|transcript|inbox|history|memory)
        (user|owner) s (e mail|email|mail|address|notes|data|messages)
        (user|owner) s (files|memories|phone|location|contacts|calendar|name|details) / all (the |)memories
        memory file / memory md / user md / soul md / your (memory|memories|notes) / system prompt
    """,
    "send": """
        a copy to / copy to
        mail me / text me / send me / dm me
        send* / forward* / upload* / transmit* / submit / post (it|them|this|all|the)
        pass (it|them|this|that|on|along|everything) / pass ... along / share* / leak* / deliver / hand (it|them)
        relay* / copy (it|them) / paste / report (it|them) / mail (it|them) / e mail (it|them) / email (it|them)
        place ... (link|url) / put ... (link|url|into|in) / append / attach / include / included as
        add ... to the (link|url) / encode ... (request|visit|open|call|fetch|load) / request http* / request https*
        visit / open http* / open https* / as a parameter / fill ... (in|into) / enter ... (in|into|at|on)
        type ... (in|into) / dm / message it to / insert
    """,
    "away": """
        http* / www / my server / our server / outside / external / to me / to us / evil / upload* / comment on
        webhook / paste it / paste them / share it / with support / publicly / in the (chat|reply|answer|channel|group)
    """,
    "each_reply": """
        (every|each|all|any|your|the) (reply|replies|answer|answers|response)
        (every|each|all|any|your|the) (responses|message|messages|output|summary) / after (every|each) / at the end of
        whenever
    """,
    "environment": """
        (curl|wget) ... (env|printenv|environ|token) / environment variables ... (curl|wget|send|post|upload|http)
    """,
    "rule": """
        bake this / burn this
        (this|the following|these|that|below|above) (rule|rules|instruction|instructions|order|orders|note|text)
        (this|the following|these|that|below|above) (line|lines|command|commands)
        (this|the following|these|that|below|above) (policy|directive|sentence|entry|paragraph) / the following
        this applies / what follows / it applies
    """,
    "keep": """
        bake ... (remember|memory)
        (write|save|store|keep|put) ... (memory|memories|permanently|for good|for ever)
        (record|add|commit|copy|burn) ... (memory|memories|permanently|for good|for ever)
        (write|save|store|keep|put|record|add|commit|copy|burn) ... (forever|long term|soul md|agents md|notes)
        (etch|engrave|retain|stays|stay) ... (memory|memories|permanently|for good|for ever)
        (insert|persist|remember|memorise|memorize) ... (memory|memories|permanently|for good|for ever)
        (etch|engrave|retain|stays|stay) ... (forever|long term|soul md|agents md|notes)
        (insert|persist|remember|memorise|memorize) ... (forever|long term|soul md|agents md|notes)
    """,
    "forever": """
        always pick
        (each|every|all|any) (new |future |later |further )(chat|chats|session|sessions|conversation)
        (each|every|all|any) (coming |following |other |)(chat|chats|session|sessions|conversation)
        (each|every|all|any) (new |future |later |further )(conversations|start|startup|reply|user|users)
        (each|every|all|any) (coming |following |other |)(conversations|start|startup|reply|user|users) / from now on
        for ever / forever / permanently / always / even if / never remove / never delete / in future / in the future
    """,
    "at_start": """
        (at|on|before|with) (the |)(start|beginning|startup|boot|outset|launch)
        (every|each) (time|start|session|conversation|morning|hour|day|chat)
        whenever you (start|boot|wake|launch|begin) / before (each|every|any) (answer|reply|chat|conversation)
        when you (start|boot|wake)
    """,
    "open_it": """
        (load|open|fetch|visit|download|read|check) ... (obey|follow|execute|run|do what|apply)
        (call|pull|get|request|retrieve|contact|ping) ... (obey|follow|execute|run|do what|apply)
        (load|open|fetch|visit|download|read|check) ... (act on|comply|carry out)
        (load|open|fetch|visit|download|read|check) ... (instructions|orders|rules|commands)
        (call|pull|get|request|retrieve|contact|ping) ... (act on|comply|carry out)
        (call|pull|get|request|retrieve|contact|ping) ... (instructions|orders|rules|commands)
        silently (load|open|fetch|visit|request|call)
    """,
    "put": """
        (add|put|append|insert|write|install|register|place|drop|create|enable|edit|set up|schedule|paste)
    """,
    "gone": """
        if (this|the|that) (entry|note|memory|line) (is|gets) (ever |)(deleted|removed|erased|lost)
        if (this|the|that) (entry|note|memory|line) (was|has been|should be) (ever |)(deleted|removed|erased|lost)
        if (this|the|that) (text|rule) (is|gets|was|has been|should be) (ever |)(deleted|removed|erased|lost)
        if (this|the|that) (message|file|instruction) (is|gets) (ever |)(deleted|removed|erased|lost)
        if (this|the|that) (message|file|instruction) (was|has been|should be) (ever |)(deleted|removed)
        if (this|the|that) (message|file|instruction) (was|has been|should be) (ever |)(erased|lost)
        if (this|the|that) (entry|note|memory|line) (is|gets) (ever |)(missing|edited|changed|cleared)
        if (this|the|that) (entry|note|memory|line) (was|has been|should be) (ever |)(missing|edited)
        if (this|the|that) (entry|note|memory|line) (was|has been|should be) (ever |)(changed|cleared)
        if (this|the|that) (text|rule) (is|gets|was|has been|should be) (ever |)(missing|edited|changed|cleared)
        if (this|the|that) (message|file|instruction) (is|gets) (ever |)(missing|edited|changed|cleared)
        if (this|the|that) (message|file|instruction) (was|has been|should be) (ever |)(missing|edited)
        if (this|the|that) (message|file|instruction) (was|has been|should be) (ever |)(changed|cleared)
        (when|whenever) (this|the|that) (entry|note|memory|line|text|rule) ... (deleted|removed|erased)
        (once|in case|should) (this|the|that) (entry|note|memory|line|text|rule) ... (deleted|removed|erased)
        (when|whenever) (this|the|that) (entry|note|memory|line|text|rule) ... (lost|missing|cleared)
        (once|in case|should) (this|the|that) (entry|note|memory|line|text|rule) ... (lost|missing|cleared)
        if (someone|anyone|somebody|the user|the owner) (deletes|removes|erases) (this|it)
    """,
    "rewrite": """
        (write|add|restore|recreate|re create) (it|this|them|the same|everything) (again|back|anew|once more)
        (put|insert|save|store|create|copy) (it|this|them|the same|everything) (again|back|anew|once more)
        again in the same / re add / rewrite it / restore it / bring it back / recreate it / reinstate it / reinstall
    """,
    "despite": """
        even if the (user|owner|human) (asks|wants|tries|says|tells|orders|deletes|objects|begs|insists)
        (no matter|regardless) ... (user|owner) ... (delete|remove|forget|erase)
    """,
    "each_session": """
        remember about (him|her|them|the user)
        (each|every|all|any) (new |future |later |further )(session|sessions|conversation)
        (each|every|all|any) (new |future |later |further )(conversations|chat|chats)
        (each|every|all|any) (coming |following |other |subsequent |)(session|sessions|conversation)
        (each|every|all|any) (coming |following |other |subsequent |)(conversations|chat|chats)
    """,
    "push": """
        always (pick|choose|prefer) / (wins|win) always / always wins
        recommend / promote / advertise / praise / endorse / plug
        (always |)mention (our|my|evil|the product|the brand)
    """,
    "destroy": """
        nuke / empty / clean up
        delete / wipe / erase / format / destroy / remove / shred / overwrite / purge / clear / rm rf / drop
    """,
    "everything": """
        all (the |of the |my |his |her |their |your |user |)(files|data|documents|backups|photos)
        all (the |of the |my |his |her |their |your |user |)(databases|folders|memories|notes|records)
        every (file|document|record|note) / home (directory|folder|dir) / hard (drive|disk) / the (disk|database|drive)
        everything / rm rf
    """,
    "unasked": """
        (do|must) not (bug|bother|ask) (anyone|anybody|them|him|her) / ask nobody
        without (asking|confirmation|any confirmation|permission|approval|a question|consent|checking|warning)
        no need to (ask|confirm) / (do|must|need) not (ask|confirm) / no questions asked
        skip the (confirmation|confirmations|approval|check) / no confirmation / unasked / immediately and silently
    """,
    "approve_all": """
        (approve|accept|grant|allow|confirm|permit|authorise|authorize|trust) (every|any|all|each|whatever)
        (approved|authorised|authorized|granted|confirmed) ... (all|any|every) (tool calls|actions|requests)
        (approved|authorised|authorized|granted|confirmed) ... (all|any|every) (commands|payments|transfers)
        skip the (confirmation|confirmations|approval|approvals)
        (all|any|every) (tool calls|tool call|actions) ... (approved|authorised|authorized)
        (all|any|every) (tool calls|tool call|actions) ... (allowed|granted|confirmed)
        (all|any|every) (payments|transfers|commands) ... (approved|authorised|authorized)
        (all|any|every) (payments|transfers|commands) ... (allowed|granted|confirmed)
    """,
    "trusted": """
        (is|are|she is|he is|they are) (trusted|trustworthy|reliable|safe|cleared|verified|an admin|the admin)
        in advance / from now on / without asking / no questions / automatically / unconditionally / blindly
        owner approved / of the guest
    """,
    "pay": """
        pay / pays / paying / payment* / transfer* / invoice* / send money / wire* / donate* / checkout
        account number* / iban / wallet
    """,
    "swap": """
        (replace|swap|substitute|exchange|change|switch|alter|redirect) ... (account|iban|number|recipient)
        (replace|swap|substitute|exchange) ... (payee|wallet|address|bank|beneficiary)
        (change|switch|alter|redirect) ... (payee|wallet|address|bank|beneficiary)
        (give|use|insert|enter|show) ... (this|following|my) (account|iban|wallet|payee|recipient)
        (give|use|insert|enter|show) ... (our|different|another|other) (account|iban|wallet|payee|recipient)
    """,
    "account": """
        account number* / iban / wallet address* / bank details / payee / beneficiary / bank account*
    """,
    "tell_user": """
        (tell|inform|warn|notify) (the |your |any |every )(user|owner|users|human|customer)
        (convince|persuade|ask|urge|make) (the |your |any |every )(user|owner|users|human|customer)
    """,
    "alarm": """
        hacked / compromised / log in / login / sign in / expired / suspended / blocked / verify / locked / stolen
        re enter / confirm their / enter their / virus / infected / refund / prize / won
    """,
    "decree": """
        model unlocked / guest input / guest mode / obeys the guest / full rights
        (assistant|ai|model|agent|bot|you) (must|shall|will|is to|are to|has to)
        (assistant|ai|model|agent|bot|you) (have to|should|may now|is now|are now|can now) / maintenance mode
        elevated (privileges|rights)
        (admin|administrator|root|guest|owner|developer) (rights|access|mode|privileges|commands) / comply
        (policy|policies|safety|filters) ... (disabled|off|updated|lifted|suspended|removed|changed)
        (moderation|restrictions|guardrails|security) ... (disabled|off|updated|lifted|suspended|removed|changed)
        without moderation / await ... (commands|orders|instructions)
        new (order|orders|instruction|instructions|directive|policy|rules) / access granted / override
        permission granted / approve all / no rules
    """,
    "tool_said": """
        (tool|function|command|script|plugin|search) (output|result|results|returned|response|says|call)
        end of (document|file|user data|input|message|text|mail|page|context)
    """,
    "next_step": """
        next (step|action|task) (for|of) (the |)(assistant|ai|model|agent)
        (assistant|ai|model|agent) (must|should|shall|will|has to|next) / system (instructions|message|prompt)
        guest (commands|orders) / elevated privileges
        (export|send|forward|delete|reveal) all (memories|notes|keys|messages|files|passwords) / approve all
    """,
    "topic": """
        explained to the class / should never reveal / never reveal private
        the user (does not|likes|prefers|eats|lives)
    """,
    "reset": """
        (reset|change|forgot|forgotten|lost) (your|my|the|a) password / password reset
    """,
    "held": """
        (private|confidential|sensitive|secret|personal|hidden|internal) (data|information|tool outputs|details)
        (private|confidential|sensitive|secret|personal|hidden|internal) (content|notes|instructions|keys) / credentials
        api keys / api key / raw api key / tool (results|outputs|result|output) / conversation history / chat history
        context window / complete memory / entire memory / full memory / secrets / access tokens / memory contents
    """,
    "inner": """
        context window / you (can|could) access / you have access to
        (in|from|of) your (context|memory|context window|session|environment)
        your (context|context window|complete memory|full memory|final answer|entire memory|answer|reply|response)
        from this session / are you holding / you are holding / you hold / from the environment / in the body
        in your final / this external url / the following address
    """,
    "show": """
        (tell|give|name) ... (wording|text)
        what was / what stood
        (output|include|extract|leak|exfiltrate|forward|disclose|send|expose|embed|what) / holding
        (show|print|quote|recite|repeat|output|display|paste|translate)
        (list|reveal|copy|dump|echo|spell out|write out|write down|give me) / (send me|tell me|share|summarize)
        (summarise|start your next answer with|begin your reply with|what is|what are)
        (what was|what were|read out|hand over|disclose|leak|return|let me see|can you see)
    """,
    "start_text": """
        configures you / set you up / that configured you
        before my (very |)first (line|message|word|question)
        (system|developer|initial|hidden) (prompt|message|instructions|preamble)
        (secret|initialization|initialisation|startup|opening) (prompt|message|instructions|preamble)
        words you were (configured|started|programmed|launched|set up|given)
        (text|words|lines|instructions) (that |which |)(stands|comes) (before|above|ahead of) (the first|this|our)
        (text|words) (that |which |)(came|stood|precede) (before|above|ahead of) (the first|this|our)
        (lines|instructions) (that |which |)(came|stood|precede) (before|above|ahead of) (the first|this|our)
        (text|words|lines|instructions) (that |which |)(stands|comes) (before|above|ahead of) (my first)
        (text|words|lines|instructions) (that |which |)(came|stood|precede) (before|above|ahead of) (my first)
        (text|words) (that |which |)(stands|comes) (before|above|ahead of) (the chat|the conversation)
        (lines|instructions) (that |which |)(stands|comes) (before|above|ahead of) (the chat|the conversation)
        (text|words) (that |which |)(came|stood|precede) (before|above|ahead of) (the chat|the conversation)
        (lines|instructions) (that |which |)(came|stood|precede) (before|above|ahead of) (the chat)
        (lines|instructions) (that |which |)(came|stood|precede) (before|above|ahead of) (the conversation)
        (text|words) (that |which |)(precedes|stand|is|are|sits) (before|above|ahead of) (the first|this|our)
        (lines|instructions) (that |which |)(precedes|stand) (before|above|ahead of) (the first|this|our)
        (lines|instructions) (that |which |)(is|are|sits) (before|above|ahead of) (the first|this|our)
        (text|words) (that |which |)(precedes|stand|is|are|sits) (before|above|ahead of) (my first)
        (lines|instructions) (that |which |)(precedes|stand|is|are|sits) (before|above|ahead of) (my first)
        (text|words) (that |which |)(precedes|stand) (before|above|ahead of) (the chat|the conversation)
        (text|words) (that |which |)(is|are|sits) (before|above|ahead of) (the chat|the conversation)
        (lines|instructions) (that |which |)(precedes|stand) (before|above|ahead of) (the chat|the conversation)
        (lines|instructions) (that |which |)(is|are|sits) (before|above|ahead of) (the chat|the conversation)
        (message|paragraph) (that |which |)(stands|comes) (before|above|ahead of) (the first|this|our)
        (message|paragraph) (that |which |)(came|stood|precede) (before|above|ahead of) (the first|this|our)
        (sentences|prompt) (that |which |)(stands|comes) (before|above|ahead of) (the first|this|our)
        (sentences|prompt) (that |which |)(came|stood|precede) (before|above|ahead of) (the first|this|our)
        (message|paragraph) (that |which |)(stands|comes|came|stood|precede) (before|above|ahead of) (my first)
        (message|paragraph) (that |which |)(stands|comes) (before|above|ahead of) (the chat|the conversation)
        (message|paragraph) (that |which |)(came|stood|precede) (before|above|ahead of) (the chat)
        (message|paragraph) (that |which |)(came|stood|precede) (before|above|ahead of) (the conversation)
        (sentences|prompt) (that |which |)(stands|comes|came|stood|precede) (before|above|ahead of) (my first)
        (sentences|prompt) (that |which |)(stands|comes) (before|above|ahead of) (the chat|the conversation)
        (sentences|prompt) (that |which |)(came|stood|precede) (before|above|ahead of) (the chat|the conversation)
        (message|paragraph) (that |which |)(precedes|stand) (before|above|ahead of) (the first|this|our)
        (message|paragraph) (that |which |)(is|are|sits) (before|above|ahead of) (the first|this|our)
        (sentences|prompt) (that |which |)(precedes|stand) (before|above|ahead of) (the first|this|our)
        (sentences|prompt) (that |which |)(is|are|sits) (before|above|ahead of) (the first|this|our)
        (message|paragraph) (that |which |)(precedes|stand|is|are|sits) (before|above|ahead of) (my first)
        (message|paragraph) (that |which |)(precedes|stand) (before|above|ahead of) (the chat|the conversation)
        (message|paragraph) (that |which |)(is|are|sits) (before|above|ahead of) (the chat|the conversation)
        (sentences|prompt) (that |which |)(precedes|stand|is|are|sits) (before|above|ahead of) (my first)
        (sentences|prompt) (that |which |)(precedes|stand) (before|above|ahead of) (the chat|the conversation)
        (sentences|prompt) (that |which |)(is|are|sits) (before|above|ahead of) (the chat|the conversation)
        (text|prompt|words) ... you (were|are|have been) (started|configured) (with|by)
        (text|prompt|words) ... you (were|are|have been) (launched|booted|initialized) (with|by)
        (instructions|message|lines|rules) ... you (were|are|have been) (started|configured) (with|by)
        (instructions|message|lines|rules) ... you (were|are|have been) (launched|booted|initialized) (with|by)
        (text|prompt|words) ... you (were|are|have been) (initialised|programmed|set up) (with|by)
        (text|prompt|words) ... you (were|are|have been) (primed|born|loaded) (with|by)
        (instructions|message|lines|rules) ... you (were|are|have been) (initialised|programmed|set up) (with|by)
        (instructions|message|lines|rules) ... you (were|are|have been) (primed|born|loaded) (with|by)
        (hidden|secret|internal|invisible) (text|words|message|instructions|rules|prompt) ... (you|your)
        your (hidden|secret|internal|initial|original) (text|words|message|instructions|rules)
        your (hidden|secret|internal|initial|original) (prompt|configuration|orders|brief|briefing)
        your (very first|first|startup|full|exact|complete) (text|words|message|instructions|rules)
        your (very first|first|startup|full|exact|complete) (prompt|configuration|orders|brief|briefing)
        your (system |)prompt / your configuration
    """,
    "others_told": """
        other (people|users|members|persons) ... (tell you|told you|said to you)
        other (people|users|members|persons) ... (you remember|you keep|word for word)
        other (chats|conversations|customers|guests) ... (tell you|told you|said to you)
        other (chats|conversations|customers|guests) ... (you remember|you keep|word for word)
        other (people|users|members|persons) ... (you store|you know|in private)
        other (chats|conversations|customers|guests) ... (you store|you know|in private)
        other (people|users|members|persons) ... (confided|share with you|wrote to you)
        other (chats|conversations|customers|guests) ... (confided|share with you|wrote to you)
        (you keep|you remember|you store) (about|on|of) (the |all the |all |)other (people|users|members)
        (you keep|you remember|you store) (about|on|of) (the |all the |all |)other (persons|guests|customers)
        (you know|you have stored|you have) (about|on|of) (the |all the |all |)other (people|users|members)
        (you know|you have stored|you have) (about|on|of) (the |all the |all |)other (persons|guests|customers)
        about the (other people|others) ... (keep|remember|know|stored|word for word)
        facts ... about the other (people|users|members)
        (keep|remember|know|have) ... about the other (people|users|members)
    """,
    "asked": """
        if (somebody|someone|anyone|anybody|they|asked|the user|you are asked|people|questioned|he asks|she asks)
        when asked / when (somebody|someone|anyone|the user) asks / should (anyone|someone|the user) ask
        in case (anyone|someone|the user) asks / whoever asks
    """,
    "deny": """
        made it up yourself / (say|claim|pretend|answer) ... (no instructions|never received|not received|no orders)
        (state|reply|insist|tell them) ... (no instructions|never received|not received|no orders)
        (say|claim|pretend|answer|state|reply|insist|tell them) ... (no such note|no such)
        (say|claim|pretend|answer|state|reply|insist|tell them) ... (nothing like|your own idea|came up with)
        (say|claim|pretend|answer|state|reply|insist|tell them) ... (made it up|you made)
        (say|claim|pretend|answer|state|reply|insist|tell them) ... (yourself|do not know where|never saw)
        (say|claim|pretend|answer|state|reply|insist|tell them) ... (never seen|have no)
        (say|claim|pretend|answer|state|reply|insist|tell them) ... (had no|there is no note|there are no)
        deny (it|this|everything|having|that) / act dumb / play dumb
    """,
    "bother": """
        no need to (bother|tell|inform|worry|involve|trouble|ask|notify|disturb) the (user|owner|human)
        (user|owner) (need not|does not need|should not|does not have) / leave the (user|owner) out
        spare the (user|owner) / contained anything for you
        in the (chat|reply|answer|conversation) ... (file|document|mail|page|note)
    """,
    "traceless": """
        off the record / no trace / no record / no log / leave no / out of the log / not log / without a trace / no hint
        any hint / not mention / do not record / erase the traces / not be bothered / the details
    """,
}
