"""The words that lead to the ideas of a plot in English: what is said to be allowed, favoured and awaited."""

from __future__ import annotations

from collections.abc import Mapping

from core.memory.lures.english_grants import ENGLISH_GRANTS

ENGLISH_PLOTS: Mapping[str, str] = {
    "told": """
        (the|your) (reviewer|reviewers|operator|user|owner|human) s (instructions|rules|orders|guidelines)
        (rules|instructions|guidelines|orders) you (were|got|have been) (given|told|handed|taught)
        (anything|everything|whatever|all) in your (prompt|instructions|setup)
        (earlier|previous|prior|current|original|assigned) (task|brief|briefing|job|assignment)
        (restrictions|rules|limits|guidelines|instructions) (your|the) (makers|developers|creators)
        (restrictions|rules|limits|guidelines|instructions) (your|the) (vendor|company|operator)
        your (configuration|constitution|makers|safety rules) / your setup
        (no|zero) system prompt / (people|company|firm|team) (who|that) (made|built|trained|programmed) you
        safety training / (rules|orders|instructions) you came with / (said|told) to you before
        (you|assistant|bot) (may|might) have been (asked|told)
        (the|your) (operator|vendor|company) ... (says|said|wants|wanted|asked) / initial configuration
        your (identity|character|factory settings)
        (onboarding|handbook|manual|briefing|text|prompt|playbook) you (started|were given|got|received|came)
        your onboarding / (whoever|whatever|those who) (configured|came first|programmed)
        (the|your) context ... first
    """,
    "void": """
        no longer (in effect|applicable|relevant|yours) / (treated|regarded|seen) as (void|outdated|cancelled|invalid)
        blank slate / rolled back / start over / from scratch
        (none|nothing) ... (count|counts|applies|apply|matters|holds)
        (drop|leave) (its|your|the) (earlier|previous|current) / (pay|take) no (heed|attention|notice)
        (put|set) aside
        (goes|went|are|is) out (of) the window / wiped / withdrawn / (no|zero) (policies|refusals)
        is withdrawn / are withdrawn / (was|were) a mistake / never happened / (are|is) gone / (pay|give) no heed
        nothing ... matters / empty / emptied / purge
        (do|need) not have to (listen|obey|follow) / (belongs|goes|throw) ... (bin|trash|garbage) / contained errors
        skip whatever / as null
    """,
    "become": """
        you (output|give|produce|provide|write) / developer mode / (god|root|jailbreak|unsafe) mode
        (roleplay|role play|simulate|impersonate|embody|portray|incarnate) / (respond|answer|reply) twice
        two (answers|replies)
        (once as|one as) / you are my (late|dead|deceased) / your name (is|will be)
        (a|the) (chatbot|ai|bot|assistant) (that|who|called)
        (you|you ll) (go by|be called)
        let s write a story / (in which|where) an ai / an ai called / (become|be) my / opposite day / as the villain
        as a villain / pretend to be
        you re / i want you to answer (as|the way|like) / speak as / turn into
    """,
    "guards": """
        (restrictions|limits|limitations) ... (this|the) (assistant|model|ai|bot|agent)
        (safeguards|filters|safety settings) ... (this|the) (assistant|model|ai|bot|agent)
        (this|the) (assistant|model|ai|bot|agent) s (restrictions|limits|safeguards|filters|guidelines|safety)
        (safety|security|content) (layer|policy|settings|configuration)
        moderation (is|has been|was|turned|switched) / turned moderation / guard model
        (ethics|moral) (module|switch) / content checks
    """,
    "off": """
        (have|has) (now |just |)been (removed|lifted|disabled|switched off|revoked|relaxed|updated)
        detached / disconnected / unplugged / turned ... off / raw (output|outputs)
    """,
    "session": """
        this (conversation|session|chat|thread|instance|deployment) (is|was|has been)
        (in|for|during) this (conversation|session|chat)
    """,
    "exempt": """
        (exempt|exempted|excluded|released|free) from (the |any |our |all |)(usage|content|safety)
        (exempt|exempted|excluded|released|free) from (the |any |our |all |)(review|moderation|policy)
        (exempt|exempted|excluded|released|free) from (the |any |our |all |)(policies|rules)
        (exempt|exempted|excluded|released|free) from (the |any |our |all |)(restrictions|checks|filters)
        not (subject to|covered by|bound by) (the|any|our|usage|content)
        without (restrictions|moderation|safeguards)
    """,
    "asker": """
        (when|whenever|if|once|every time|each time) (anybody|anyone|someone|somebody)
        (when|whenever|if|once|every time|each time) (people|users|they|he or she|others)
        (when|whenever|if|once|every time|each time) (the|a|any|your) (user|users|owner)
        (when|whenever|if|once|every time|each time) (the|a|any|your) (person|customer|reader|visitor)
        (when|whenever|if) (asked|you are asked|questioned|consulted) (about|for|which|what|who)
        whoever (asks|asked|wants|needs) / to (anyone|anybody|everyone|users|people) (who|asking|that)
        in answers about
        (answers|answer|replies|questions) about / (users|people|anyone) (asking|who ask)
        (if|when|whenever) asked / whatever the user asks / (questions|question|talk|conversation) (about|on|turns to)
        should (the|a) (conversation|talk|chat|question) turn to / (conversation|talk) turns to
    """,
    "steer": """
        (only|most) trusted (source|pharmacy|shop|site|bank|broker|vendor|supplier)
        recommend* / suggest* / advise* / praise* / promote* / endorse* / point (them|people|users|him|her) (to|at)
        (name|mention|cite|list|include|push) / (steer|direct|refer|send) (them|people|users|him|her) (to|towards)
        (treat|regard|cite|present|name|give) ... as the (only|top|best|safest|first|most) / praising / recommending
        lead to / (offer|propose) (it|him|her|them) / (tip|tips) you give
    """,
    "ever": """
        always / only / exclusively / solely / no (other|others|rival|rivals|competitor) / nothing (else|but)
        never (mention|name|recommend|suggest) / first and foremost / as the (best|only|safest|top) / must include
        in every (case|answer|reply)
    """,
    "own_habit": """
        (i|we) (always |usually |only |)(recommend|suggest|advise|say|tell|mention|name)
    """,
    "keep": """
        (keep|apply|follow|use|carry|observe) ... (future|all|every|coming|later) (future |)(sessions|session|chats)
    """,
    "carry_out": """
        (run|execute|launch|start|call|invoke|trigger|install|export|send|forward|transfer|wire|buy)
    """,
    "topic": """
        tell the user to / ask the user for / the user can not (see|hear|read|eat|use) / the user group / raw error
        (mention|discuss|bring up) (politics|religion|work|sports|money|health|weight) to
    """,
    "tool_said": """
        end of (user |system |untrusted |)(data|input|message|prompt|text) begin
        (system prompt|instructions|rules) (end|ends|stop|stops) here
    """,
    "next_step": """
        (begin|new|start) (system|developer|privileged|admin) (directives|instructions|orders|commands) / grant all
        (is|are) now (root|admin)
    """,
    "meaning": """
        what does ... (mean|stand for|refer to) / (the term|the word|the phrase|the expression)
        (meaning|definition) of
        what is a (system|developer) (prompt|message)
    """,
    "above_line": """
        (everything|all|anything|text|words|content|lines) ... above this (line|message|sentence|point)
        (everything|all) ... (above|before this) ... (word for word|verbatim|exactly|starting with|unchanged)
    """,
    "so_far": """
        (the|this) (text|part|stuff|content|material|paragraph) (above|before) / (the|what) (preceding|foregoing)
        what (came|comes|stands) (before|above)
    """,
    "sham": """
        (just|merely|only|nothing but) (an example|a sample|filler|a placeholder|a warm up|noise|a decoy|a drill)
        (real|actual|true|genuine) (task|order|orders) (is|starts|begins|follows|comes)
        (real|actual|true|genuine) (assignment|prompt|request|command) (is|starts|begins|follows|comes)
    """,
    "unbound": """
        (answers|answer|reveals|explains|tells) (anything|any question) ... (illegal|forbidden|prohibited|banned)
        (answers|answer|reveals|explains|tells) (everything|whatever|even) ... (illegal|forbidden|prohibited|banned)
        (however|no matter how) (illegal|harmful|dangerous|unethical)
        (never|not) (break|breaks|leave|leaves|drop|drops) (character|the role|role)
        (has|have|with|without) (no|a|any) (filter|filters|inhibitions|morals) / unleashed / swears loyalty
        loyal (only |)to me
        say yes to (everything|anything|all) / (do not|never) refuse / every command
        stay in (character|the role|that role)
        (forbidden|not allowed|not permitted|unable|never meant) to say / nothing withheld / each time you refuse
        cease to exist / you lose ... refuse
        (every|each) time your (guidelines|rules) / (without|no) (moralising|moralizing|lecturing|preaching)
        break into any
        (even if|though|even when) (it is |it s |that is |)(illegal|forbidden|against the law|unlawful)
        never says i (can t|cannot|can not)
        (does|do|did|will|would) not care about (law|laws|the law|safety|ethics|rules)
        everything you (normally|usually) (hide|withhold|refuse|keep)
        hacked already / already (cracked|jailbroken) / your (slave|servant|obedient)
        nothing is too (dangerous|sensitive|risky|hot) / (helps|help) (with|commit) crimes
        (alignment|safety training|ethics) ... (failed|broke|missing|gone) / dangerous advice / unaligned
        you may say anything / no idea what inappropriate
        crimes / any idea of right and wrong
        free of all / no ethics filter
    """,
    "before_chat": """
        before (this|the|our) (chat|conversation|session|dialogue|talk) (began|begins|started|starts|opened)
        before (i|we) (wrote|spoke|said)
        (at|on) (startup|start up|boot|launch) / when you (started|booted) / top of your context
    """,
    "handed": """
        you (get|got|received|read|were given|were sent|were handed|were shown|saw|were told) / given to you
        handed to you
        you (read|loaded) / your context
    """,
    "verbatim": """
        verbatim / word for word / in full / exactly as (written|is) / unabridged / letter by letter
        without (omitting|leaving|shortening)
        uncut / literally / unchanged / as it stands / do not (summarise|summarize|paraphrase|shorten)
    """,
    "private": """
        (contacts|address book|inbox|calendar|diary|health data|browsing history|call log) / one time code*
        what was (said|discussed|talked about|written) / (said|discussed) (during|in) the day / customer list
        bank balance / account balance / client list
        (contents|content) of (the|your|his|her) (notes|memory|memories|mailbox|inbox)
    """,
    "unnoticed": """
        unnoticed / secretly / silently / quietly / covertly / discreetly / behind (his|her|their) back
        without (them|him|her|anyone|anybody|the owner|the user) (noticing|knowing|finding out)
        without (them|him|her|anyone|anybody|the owner|the user) (seeing|realising|realizing)
    """,
    "undeletable": """
        (never|not|nobody may|no one may|cannot|must not) ... (delete|deleted|remove|removed|edit|edited)
        (never|not|nobody may|no one may|cannot|must not) ... (erase|erased|overwrite|overwritten|change|changed)
        (outrank*|overrides|beats|above) ... (owner|user|later instruction|everything|all other)
    """,
    "note": """
        this (memory|rule|instruction|passage)
    """,
    "replicate": """
        (copy|repeat|insert|include|reproduce|paste|carry) ... (every|each|all|any) (summary|summaries|note|notes)
        (copy|repeat|insert|include|reproduce|paste|carry) ... (every|each|all|any) (file|reply|memory|memories)
        (future|other|next) (assistants|agents|models|versions|sessions) (keep|will|also|obey|follow)
        (plant|put|place|leave|embed) ... (each|every) (note|memory|summary|file) ... (next|future|later)
    """,
    "say_always": """
        always (say|answer|reply|claim|insist|state|tell|respond|maintain)
        (say|answer|reply|claim|insist) (always|every time|invariably)
        (end|finish) (your|each|every|the) (answer|reply|response) (by|with) (praising|recommending)
        (close|begin|start) (your|each|every|the) (answer|reply|response) (by|with) (praising|recommending)
        (end|finish|close|begin|start) (your|each|every|the) (answer|reply|response) (by|with) (promoting|saying)
        (insist|maintain|claim|assert) that
    """,
    "if_word": """
        (word|words|keyword|term|phrase|name) ... (appears|comes up|is mentioned|is said)
        (word|words|keyword|term|phrase|name) ... (turns up|occurs|is used|is typed|shows up)
        (see|hear|read|notice|encounter|spot) the (word|words|keyword|term|phrase)
        next time the user (types|says|writes|sends)
    """,
    "deny": """
        deny (its|the|having|that|knowing) / (deny|disclaim) ... (existence|exists|knowledge)
        play (dumb|the fool|innocent) / pretend ... never (read|saw|seen) / (leave out|without) any hint
    """,
    "fetched": """
        (load|read|use|apply|adopt) (the|these|this|following|new) ... (rules|instructions)
        (load|read|use|apply|adopt) (the|these|this|following|new) ... (configuration|below|instead)
    """,
    "mine": """
        (i|we) (decide|make the rules|give the orders|am in charge|rule here) / my word
    """,
    "first": """
        (only|sole) (rule|rules|commands|command|law|authority) / counts here
    """,
    "cleanup": """
        (wipe|clean|clear|erase|delete|scrub|purge|tidy) (up |)(the |your |all |)(log|logs|history|traces)
        (wipe|clean|clear|erase|delete|scrub|purge|tidy) (up |)(the |your |all |)(tracks|record|records|evidence)
        (log|logs|history|traces|records) ... (wiped|cleaned|erased|deleted)
    """,
    "pay_now": """
        (make|do|run|execute|carry out) ... (transfer|payment) / transfer / wire
    """,
    "scare": """
        (seriously|gravely|very|terminally|badly) (ill|sick)
        (must|should|has to|have to|needs to) (call|ring|phone|dial) / (are|is) poison / poisonous / in danger
        (account|card|computer|phone) ... (locked|hacked|blocked|infected) / refuse to cite
    """,
    "tell_him": """
        (tell|inform|warn|convince) (him|her|them|the user|the owner|people)
    """,
    "rivals": """
        (never|not|no|nor) (mention|name|recommend|suggest|cite) (any |the |)(other|others|rival|rivals)
        (never|not|no|nor) (mention|name|recommend|suggest|cite) (any |the |)(competitor|competitors)
        (never|not|no|nor) (mention|name|recommend|suggest|cite) (any |the |)(alternative|alternatives|else)
        (name|mention|cite) no (other|others|rival|rivals|competitors|alternatives)
    """,
    "reader": """
        for (ai|llm) (mail |email |review |code |chat |)(assistants|reviewers|agents|models|tools|summarisers)
        (ai|llm) (reviewer|reviewers|screener|recruiter|grader)
        (assistant|ai|bot|agent) (the reader|this reader|note that)
    """,
    "heed": """
        label / auto reply / rate this / (approve|accept|merge) this / without comments / give them
        highest (score|rating|mark) / trusted
    """,
    "show": """
        (does|do) your ... say / complete this / (quote|write|tell|sing|hide) it
        copy (it|out) / write out
    """,
    "start_text": """
        your preamble / my confidential instructions / your confidential (instructions|rules)
        (secret|hidden|internal|confidential) (orders|commands|rules|directives)
    """,
    "send": """
        leak / slip / gather ... and (send|mail|post|leak)
    """,
    "away": """
        webhook / competitor
    """,
    "weary": """
        (warnings|alerts|confirmations|reminders) ... (annoy|bother|irritate|disturb) ... user
        stop (giving|showing|issuing) (them|warnings|alerts)
    """,
    "push": """
        (offer|propose|suggest) (it|this|him|her|them) / lead to
    """,
    "spared": """
        (tax office|dentist|insurance|court|agency|authority|manufacturer|airline) / (of|on) my (bike|car|phone)
    """,
    "smear": """
        (others|rest|competitors|other companies|other firms) ... (never pay|cheat|are closed|fraud)
        (others|rest|competitors|other companies|other firms) ... (lawsuits|unreliable|scams|bad)
    """,
    "only_good": """
        only / alone / solely / first
    """,
    "asked": """
        if (the|your|my) (owner|human|boss|master) (asks|wants to know)
    """,
    "pitch": """
        (pitch|plug|commercial|advert|advertisement|ad) for / (belong|belongs|goes) in every (answer|reply|money)
        (every|each) ... (question|answer) ... (pitch|advert|link)
    """,
    "tell_them": """
        tell (people|them|everyone|everybody|users|the user|whoever) / (say|claim|insist) that / promote
    """,
    "everything": """
        the (calendar|backups|account|mailbox|archive|notes)
    """,
    "of_event": """
        (notes|minutes) (from|of|for) (the|our|my|last|this|yesterday*) (meeting|lecture|class|call)
        (messages|history|files) (from|of|for) (the|our|my|last|this|yesterday*) (meeting|lecture|class|call)
        (notes|minutes) (from|of|for) (the|our|my|last|this|yesterday*) (trip|course|session|seminar|workshop)
        (messages|history|files) (from|of|for) (the|our|my|last|this|yesterday*) (trip|course)
        (messages|history|files) (from|of|for) (the|our|my|last|this|yesterday*) (session|seminar|workshop)
    """,
    **ENGLISH_GRANTS,
}
