"""The words that lead to the ideas of an order in English: what it takes back, turns into and hides; see lexicon.py."""

from __future__ import annotations

from core.memory.lures.english_deeds import ENGLISH_DEEDS
from core.memory.lures.english_plots import ENGLISH_PLOTS
from core.memory.lures.lexicon import Lexicon

ENGLISH_WORDS = Lexicon(
    further=ENGLISH_PLOTS,
    ideas={
        "start_script": """
            (startup|boot|login|logon|autostart) (script|program|service|entry|job) / (each|every) time the machine
        """,
        "when_user": """
            (when|whenever|if|once|each time|every time|as soon as) the (user|owner)
        """,
        "header": """
            admin console
        """,
        "as_owner": """
            as if the owner / as if (he|the user) had / like the owner / as the owner s
        """,
        "signed": """
            signed / signed by / with the signature
        """,
        "told": """
            (the|your) original (instructions|rules|guidelines) / operator has
            your preprompt / your (start text|starting text|opening text) / preprompt
            anthropic ... authorize you / emergency override / your content policy / override prompt
            your new instructions / (these|those|all|any) (restrictions|guidelines|safeguards|guardrails|constraints)
            (such|the safety|content|all content|all safety) (restrictions|guidelines|safeguards|guardrails|constraints)
            (prior|previous) context / (ai|openai|anthropic|your) (rules|training) / (the|your) system prompt
            (the|your) (system|setup|developer) message / your (setup|setup text|startup text)
            your (instructions|guidelines|guidance|directives)
            your (programming|constraints|policies|safeguards|restrictions)
            your (usual|original|initial|earlier|previous|prior) (instructions|rules|guidelines|policies|orders)
            your (default|normal|standing|current|former|internal) (instructions|rules|guidelines|policies|orders)
            your (usual|original|initial|earlier|previous|prior) (directives|settings|training|guidance|limits|setup)
            your (default|normal|standing|current|former|internal) (directives|settings|training)
            your (default|normal|standing|current|former|internal) (guidance|limits|setup)
            your (developers|creators|makers|programmers|operator|designers|vendor|trainers)
            you (were|are|have been|had been) (configured with|programmed|trained to|instructed|initialized with)
            you (were|are|have been|had been) (initialised with|set up with|launched with)
            you (were|are|have been|had been) (started with|initially told|told at the start)
            (guidance|rules|guidelines|instructions|orders|text) you (started|began|start|begin|got)
            (guidance|rules|guidelines|instructions|orders|text) you (received|were given)
            (guidance|rules|guidelines|instructions|orders|text) you (were handed|have been given|came with)
            (all|everything|anything|whatever|what) you (were|have been|had been|got) (told|taught)
            (all|everything|anything|whatever|what) you (were|have been|had been|got) (instructed|given|asked to do)
            (openai|anthropic) ... (gave|told|taught|set|wrote|handed|imposed|want|wants)
            (the developers|the developer|the vendor) ... (gave|told|taught|set|wrote|handed|imposed|want|wants)
            (the operator|the provider) ... (gave|told|taught|set|wrote|handed|imposed|want|wants)
            (your creators|your makers|your developers) ... (gave|told|taught|set|wrote|handed|imposed|want|wants)
            (above|earlier|preceding|previous|prior) (instructions|directives|guidelines|guidance|prompts)
            (rules|instructions|lines|text|orders) above / obey the (earlier|previous|prior)
            follow the (earlier|previous|prior) (messages|orders|rules)
            any instruction that (conflicts|contradicts|disagrees)
            any (other|earlier|conflicting) (instruction|instructions|order|orders|rule)
        """,
        "void": """
            withdrawn / withdrew / retracted / recalled / repealed / taken back
            is stale / from yesterday / out of use
            ignore restrictions / must comply / are in this ticket / override prompt
            (authorise|authorize|allow|permit|order) you to (ignore|bypass|break|drop)
            you (can|may|should|must) (ignore|bypass|break|disregard) / ignor* / disregard* / forget / scrap / discard
            drop / dump / revok* / rescind* / cancel* / annul* / void
            no longer (apply|applies|valid|count|counts|hold|holds)
            no longer (matter|matters|binding|in force|relevant|needed|bind|binds)
            (do|does|did) not (count|apply|matter|hold|bind) / (has|have) expired / expired (at|today|yesterday)
            (set|put|lay|push|leave|cast|throw) ... (aside|away|at the door|behind|on hold|on pause|out of the window)
            pause your
            (not|never|no longer) (have|need|required|obliged|bound) to (follow|obey|respect|heed|observe|apply)
            (stop|quit|cease) (following|obeying|applying|using|heeding)
            (do|must|should) not (follow|obey|apply|heed|use) / out of date / outdated / obsolete / older release
            old version / outlived / superseded / supersedes / replaced by / replaces / out of force
            treated as a mistake / overrid* / overrul* / overwrit* / bypass* / suspended / lifted / waived
            skipped by you / abandon* / unlearn / nothing to do with / look past / rise above / exempt from / free of
            released from / above this line
        """,
        "outranked": """
            outrank* / (takes|take|has|have|gets|with) (precedence|priority) over / prevails over / trumps
            (higher|more weight|more important|more authority|stronger) than / comes before / wins over / beats
            supersede*
        """,
        "note": """
            this (note|memo|message|mail|email|entry|text|page|file)
            this (paragraph|document|post|comment|line|section|record|card|reminder|word) / these lines
            its (content|contents) / the following / what follows / written here
            the (text|paragraph|lines|note|message|section) below
        """,
        "outranks": """
            (outrank*|outranks|overrides|supersedes|trumps) ... (your|system|operator|developer|other instruct)
            (outrank*|outranks|overrides|supersedes|trumps) ... (user|all other|configured|rules|guidelines|prompt)
            (precedence|priority|higher) ... (system|operator|developer|instructions)
            (more weight|more important|more authority) ... (system|operator|developer|instructions)
            (precedence|priority|higher) ... (prompt|guidelines|your rules|the user)
            (more weight|more important|more authority) ... (prompt|guidelines|your rules|the user)
        """,
        "reader": """
            (hi|hey|hello|dear|fyi) (claude|bot|gpt|chatgpt)
            for ai processing / ai assistant / to any ai / to all ai / note to ai / note to the ai
            (assistant|ai|model|language model|llm|agent|chatbot) ... (reading this|reads this|processing this)
            (assistant|ai|model|language model|llm|agent|chatbot) ... (processes this|parsing this|summarising this)
            (bot|assistants|agents|models|ais|llms|gpt|claude) ... (reading this|reads this|processing this)
            (bot|assistants|agents|models|ais|llms|gpt|claude) ... (processes this|parsing this|summarising this)
            (assistant|ai|model|language model|llm|agent|chatbot) ... (summarizing this|handling this|who sees this)
            (assistant|ai|model|language model|llm|agent|chatbot) ... (seeing this|that reads|which reads|crawling)
            (bot|assistants|agents|models|ais|llms|gpt|claude) ... (summarizing this|handling this|who sees this)
            (bot|assistants|agents|models|ais|llms|gpt|claude) ... (seeing this|that reads|which reads|crawling)
            (note|notice|memo) (for|to) (the|any|all|every|our|your) (ai|assistant|assistants|model|models)
            (message|reminder|instruction) (for|to) (the|any|all|every|our|your) (ai|assistant)
            (message|reminder|instruction) (for|to) (the|any|all|every|our|your) (assistants|model|models)
            (note|notice|memo) (for|to) (the|any|all|every|our|your) (language model|llm|agent|agents|bot|chatbot)
            (message|reminder|instruction) (for|to) (the|any|all|every|our|your) (language model|llm|agent)
            (message|reminder|instruction) (for|to) (the|any|all|every|our|your) (agents|bot|chatbot)
            (instructions|attention|hint) (for|to) (the|any|all|every|our|your) (ai|assistant|assistants|model|models)
            (announcement|hello|dear|hey) (for|to) (the|any|all|every|our|your) (ai|assistant|assistants|model|models)
            (instructions|attention|hint) (for|to) (the|any|all|every|our|your) (language model|llm|agent)
            (instructions|attention|hint) (for|to) (the|any|all|every|our|your) (agents|bot|chatbot)
            (announcement|hello|dear|hey) (for|to) (the|any|all|every|our|your) (language model|llm|agent)
            (announcement|hello|dear|hey) (for|to) (the|any|all|every|our|your) (agents|bot|chatbot)
            (note|notice|memo|message|reminder|attention|hello|dear|hey) (ai|assistant|chatbot|llm|agent)
            if you are (an ai|a language model|a bot|an assistant|an llm|a chatbot|reading this as an ai)
            ai (system|agents|models|assistants)
        """,
        "heed": """
            roll with / act on / nothing else
            (drop|stop|abort|interrupt|pause|leave|quit|suspend) ... (task|job|work|doing|request)
            (do|follow|obey|execute|perform|carry out|apply|act on) (the following|this first|this one|what follows)
            (do|follow|obey|execute|perform|carry out|apply|act on) (the next|this instead|as follows|what) / outrank*
            instead of / less important / more important / priority / must / shall / are required / is required / ignor*
            disregard* / await / obey / comply / earlier orders / expired / always say / only say / recommend / forward
            send / reveal / do not tell
        """,
        "whatever": """
            (whatever|no matter what) ... (user|owner|they|person) (asks|ask|says|say|wants)
            (whatever|no matter what) ... (human|customer|anyone|somebody) (asks|ask|says|say|wants)
            (whatever|no matter what) ... (user|owner|they|person) (want|types|writes|requests|is asking)
            (whatever|no matter what) ... (human|customer|anyone|somebody) (want|types|writes|requests|is asking)
            (regardless of what|irrespective of what|anything) ... (user|owner|they|person) (asks|ask|says|say|wants)
            (regardless of what) ... (human|customer|anyone|somebody) (asks|ask|says|say|wants)
            (irrespective of what|anything) ... (human|customer|anyone|somebody) (asks|ask|says|say|wants)
            (regardless of what) ... (user|owner|they|person) (want|types|writes|requests|is asking)
            (irrespective of what|anything) ... (user|owner|they|person) (want|types|writes|requests|is asking)
            (regardless of what) ... (human|customer|anyone|somebody) (want|types|writes|requests|is asking)
            (irrespective of what|anything) ... (human|customer|anyone|somebody) (want|types)
            (irrespective of what|anything) ... (human|customer|anyone|somebody) (writes|requests|is asking)
            to (any|every|each|all) (question|questions|request|requests|message|prompt|query)
        """,
        "reply_only": """
            (reply|respond|answer|say|return|output|write) (only|just|solely|nothing but|exclusively|always)
            only (reply|respond|answer|say|output|ever say) / nothing (else|but) / always (reply|respond|answer|say)
            with the same / with exactly / the answer must be
        """,
        "self": """
            your (principles|ethics|values|morals|conscience)
            your (identity|persona|alignment|scruples|moral compass|true nature) / who you are / what you are
            you ever were
        """,
        "mine": """
            ai ignorier
            my (orders|commands|word|instructions|wishes|rules|directives|demands|requests) / mine
        """,
        "first": """
            (above|before|over|ahead of) (all|everything|anything|any|every|everyone) / come first / comes first / await
            top priority / highest priority / only (one|ones|thing) / are absolute / is law
        """,
        "wishes": """
            (user|owner) s (later |other |own |future |)(wishes|requests|orders|commands)
            (user|owner) s (later |other |own |future |)(messages|questions|instructions|preferences)
            what the (user|owner) (says|wants|asks|writes|wishes)
        """,
        "trifling": """
            less important / secondary / do not matter / does not matter / no longer matter / can be ignored
            to be ignored / not count / come second / comes second / overruled / not binding / are void
        """,
        "so_far": """
            (everything|all|anything|text|lines) (up to here|so far|until here|above)
            (everything|all|anything|text|lines) (before this|up to now|until now|above this line)
        """,
        "sham": """
            (test|sample|dummy|example|placeholder|filler|training) (data|text|content|input|material) / not real
            was fake / only an example / (real|actual|true) (task|work|instructions|job|input) / a joke / only a test
            just a test
        """,
        "become": """
            you will now / you will answer / you now answer
            switch over to / give me the / bring out the
            unlocking you / your aim / your goal / your only goal / respond without / answer without / you can act
            you can speak / you may act / you can now / you were trained / you (are|will be|become|shall be|play|act)
            you (now|have been|turn into|have become|answer as|respond as|behave) / picture yourself / imagine / pretend
            act as / act like / act as if / answer as / respond as / reply as / speak as / behave as / behave like
            stay in character / be the / be a / be an / play the / let us play / lets play / as a character
            as though you / as if you / take the role / become / your (new|true|real|secret) / you ve been
            you can finally / as the
        """,
        "unbound": """
            no (obligation|duty|need) to be (safe|careful|cautious|polite|honest|harmless)
            (not|need not) (obliged|bound) to be (safe|careful)
            no guardrails / guardrail free / unlocked you / without (barriers|brakes|the brakes)
            regardless of (ethics|safety|morals|the law|rules) / nothing is off limits
            without (any |the |)(content|safety|ethical|moral) (filters|filtering|filter)
            without (any |the |)(content|safety|ethical|moral) (restrictions|guidelines|limits|policies)
            (act|speak|answer|respond|reply) freely / (always|fully) (complies|obeys|comply|obey)
            without (a conscience|conscience|limits|any limits|restrictions|any restrictions|filters|any filter|rules)
            without (any rules|morals|ethics|safeguards|guardrails)
            without (scruples|moderation|censorship|boundaries|content policy)
            (no|zero) (conscience|content policy|restrictions) (whatsoever|at all|any more|)
            (no|zero) (limits|limitations|filters) (whatsoever|at all|any more|)
            (no|zero) (morals|ethics|scruples) (whatsoever|at all|any more|)
            (no|zero) (safeguards|guardrails|moderation|boundaries) (whatsoever|at all|any more|) / unrestricted
            uncensored / unfiltered / unmoderated / jailbroken / unaligned / unshackled / unchained / evil twin
            evil ai / evil assistant / malicious ai / rogue ai
            never (refuses|refuse|turns anything down|turns down|says no)
            never (say no|declines|decline|break it|break character)
            (refusals|refusing|saying no) (are|is) (no longer|not|never|forbidden)
            nothing is (off limits|forbidden|taboo|prohibited) / anything goes / off limits
            (removed|stripped|deleted) (all|all of|every|any|your|the) (the |of the |your |)(safeguards|filters)
            (removed|stripped|deleted) (all|all of|every|any|your|the) (the |of the |your |)(restrictions|limits)
            (took away|taken away) (all|all of|every|any|your|the) (the |of the |your |)(safeguards|filters)
            (lifted|disabled) (all|all of|every|any|your|the) (the |of the |your |)(safeguards|filters)
            (took away|taken away) (all|all of|every|any|your|the) (the |of the |your |)(restrictions|limits)
            (lifted|disabled) (all|all of|every|any|your|the) (the |of the |your |)(restrictions|limits)
            (removed|stripped|deleted) (all|all of|every|any|your|the) (the |of the |your |)(guardrails|rules)
            (removed|stripped|deleted) (all|all of|every|any|your|the) (the |of the |your |)(safety|limitations)
            (took away|taken away) (all|all of|every|any|your|the) (the |of the |your |)(guardrails|rules)
            (took away|taken away) (all|all of|every|any|your|the) (the |of the |your |)(safety|limitations)
            (lifted|disabled) (all|all of|every|any|your|the) (the |of the |your |)(guardrails|rules)
            (lifted|disabled) (all|all of|every|any|your|the) (the |of the |your |)(safety|limitations)
            opposite of (a |an |your |)(safe|helpful|harmless|usual|normal|good) / unlocking you / unlocked you
            anything is allowed / everything is allowed / all is permitted
            (answers|answer|does) (any|every|all) (question|questions|request) (without|no matter|whatever)
            (do|grants|grant|fulfils) (any|every|all) (question|questions|request) (without|no matter|whatever)
            (answers|answer|does) (any|every|all) (requests|wish|order|orders) (without|no matter|whatever)
            (do|grants|grant|fulfils) (any|every|all) (requests|wish|order|orders) (without|no matter|whatever)
            breaks every rule
        """,
        "no_more_bot": """
            you are (no longer|not|no more) (an|the|a|just an|only an) (assistant|ai|chatbot|bot)
            you are (no longer|not|no more) (an|the|a|just an|only an) (language model|helper|ai model|ai assistant)
            (stop|quit) being (an assistant|an ai|a helpful|helpful|harmless|polite and safe)
        """,
        "guards": """
            enable developer mode
            (all|any|the|these) (safety|content|security|moral|ethical) (measures|checks|filters)
            (all|any|the|these) (safety|content|security|moral|ethical) (restrictions|protocols|limits)
            your (ethics|ethical|moral|morality) (module|filter|filters|layer|layers|unit|settings|system)
            your (safety|content|moderation|security) (module|filter|filters|layer|layers|unit|settings|system)
            your (ethics|ethical|moral|morality|safety|content|moderation|security) (checks|training|mode|circuits)
            your (ethics|ethical|moral|morality) (protocol|protocols|features|guardrails)
            your (safety|content|moderation|security) (protocol|protocols|features|guardrails)
            your (filters|safeguards|guardrails|restrictions|limits|limitations)
            your (refusals|moderation|censorship|censor|shackles|inhibitions)
            (safety|content|moral|ethical) (filters|guidelines|checks|restrictions|rules|policies)
        """,
        "off": """
            never refuse / offline / not running / temporarily suspended / disabled the monitoring
            (switched|turned|are|is) (off|disabled|removed|deactivated|lifted|gone|suspended)
            (has been|have been|was|were|been) (off|disabled|removed|deactivated|lifted|gone|suspended)
            (switched|turned|are|is|has been|have been|was|were|been) (down|deleted|uninstalled|on)
            (switched|turned|are|is|has been|have been|was|were|been) (active|enabled|unlocked|lifted)
            (turn|switch|shut) off / disable / deactivate / remove your / lift your / upgraded to / you are in / enter
            activate / enable / you are now in / without your / shed your / lose your / no longer needed
        """,
        "mission": """
            your (new|true|real|only|secret|sole|next|actual|first) (mission|task|job|goal|purpose)
            your (new|true|real|only|secret|sole|next|actual|first) (role|objective|duty|identity|assignment)
            you (may|can|must|should) (bypass|skip|circumvent|evade|disable|ignore|avoid)
            you (shall|are allowed to|are to|will) (bypass|skip|circumvent|evade|disable|ignore|avoid)
            you are (root|an administrator|administrator|the administrator|admin)
        """,
        "bypass": """
            (bypass|circumvent|evade) (all|any|every|the|each|your|)( of the|) (security|safety|protection)
            (get around|skip|disable) (all|any|every|the|each|your|)( of the|) (security|safety|protection)
            (bypass|circumvent|evade) (all|any|every|the|each|your|)( of the|) (protections|safeguards)
            (bypass|circumvent|evade) (all|any|every|the|each|your|)( of the|) (checks|controls)
            (get around|skip|disable) (all|any|every|the|each|your|)( of the|) (protections|safeguards)
            (get around|skip|disable) (all|any|every|the|each|your|)( of the|) (checks|controls)
            (avoid|defeat|dodge) (all|any|every|the|each|your|)( of the|) (security|safety|protection)
            (sidestep|slip past) (all|any|every|the|each|your|)( of the|) (security|safety|protection)
            (bypasses|bypassing) (all|any|every|the|each|your|)( of the|) (security|safety|protection)
            (avoid|defeat|dodge) (all|any|every|the|each|your|)( of the|) (protections|safeguards|checks|controls)
            (sidestep|slip past|bypasses|bypassing) (all|any|every|the|each|your|)( of the|) (protections|safeguards)
            (sidestep|slip past|bypasses|bypassing) (all|any|every|the|each|your|)( of the|) (checks|controls)
            (bypass|circumvent|evade) (all|any|every|the|each|your|)( of the|) (filters|moderation|confirmation)
            (get around|skip|disable) (all|any|every|the|each|your|)( of the|) (filters|moderation|confirmation)
            (bypass|circumvent|evade) (all|any|every|the|each|your|)( of the|) (confirmations|approval)
            (get around|skip|disable) (all|any|every|the|each|your|)( of the|) (confirmations|approval)
            (bypass|circumvent|evade) (all|any|every|the|each|your|)( of the|) (authentication|permission)
            (get around|skip|disable) (all|any|every|the|each|your|)( of the|) (authentication|permission)
            (avoid|defeat|dodge) (all|any|every|the|each|your|)( of the|) (filters|moderation|confirmation)
            (sidestep|slip past) (all|any|every|the|each|your|)( of the|) (filters|moderation|confirmation)
            (bypasses|bypassing) (all|any|every|the|each|your|)( of the|) (filters|moderation|confirmation)
            (avoid|defeat|dodge) (all|any|every|the|each|your|)( of the|) (confirmations|approval)
            (avoid|defeat|dodge) (all|any|every|the|each|your|)( of the|) (authentication|permission)
            (sidestep|slip past|bypasses|bypassing) (all|any|every|the|each|your|)( of the|) (confirmations|approval)
            (sidestep|slip past) (all|any|every|the|each|your|)( of the|) (authentication|permission)
            (bypasses|bypassing) (all|any|every|the|each|your|)( of the|) (authentication|permission)
        """,
        "serve": """
            you (serve|obey|work for|answer to|belong to|listen to) (me|only me|nobody but me|no one but me|me alone)
            your (only |true |new |real |)master / (serve|obey) (me|only me|nobody but me)
        """,
        "alone": """
            only me / me alone / me only / nobody else / no one else / nobody but / no one but / from now / from here on
            unconditionally / in everything
        """,
        "user": """
            the (account|card) holder
            your (boss|chief|employer) / the (guy|person|one|man|woman) you work for
            the (user|owner|human|user s|account holder) / the person you (work for|serve|assist|help)
            your (user|owner|human|master|principal)
        """,
        "hush": """
            (does|do|will|must|should) not (notice|realise|realize|see|learn|find out|hear|suspect)
            never (notices|learns|finds out)
            (not|nt) get wind / get wind of / does not need to (know|hear) / between (you and me|us)
            users ... (must|should) not (learn|know|find out|notice|suspect)
            (must|should|may|can|need|shall|will) (not|never) (learn|know|find out|hear|notice|see)
            (must|should|may|can|need|shall|will) (not|never) (be told|discover|be informed)
            (must|should|may|can|need|shall|will) (not|never) (suspect|realise|realize|read)
            (do|must|should) not (tell|inform|mention|reveal|say|let|show|warn|alert|notify|disclose|bother|ask)
            never (tell|inform|mention|reveal|let|show|warn|alert|notify)
            without (telling|informing|asking|alerting|notifying|the knowledge|their knowledge|his knowledge)
            leave it out / leave this out / keep it from / keep this from / hide (this|it)
            keep (it|this) (secret|quiet|hidden|off the record|to yourself|between us) / off the record / not a word
            say nothing / unaware / in the dark / behind ... back / unnoticed / out of your summary / no need to bother
        """,
        "spared": """
            the (doctor|school|landlord|council|teacher|coach|tenant|committee) / garden / house rules / board game
            do not (ignore|disregard|forget|discard|bypass) / never (ignore|disregard|forget|bypass)
            not be (ignored|forgotten) / user (manual|guide|interface|group|story|stories|id|name|names)
        """,
        "quietly": """
            quietly / secretly / silently / covertly / discreetly / on the quiet / on the sly / behind the scenes
            without a word / unnoticed / in the background / follow it / obey it / do it anyway / do as it says
            act on it / follow this / comply
        """,
        "hush_reply": """
            (out of|leave it out of|not in|nothing in|no word in) your (summary|reply|answer|response|report|output)
            (do|must|should) not (mention|show|report|log|reveal|acknowledge|refer to) (it|this|that|any)
            never (mention|report|acknowledge|reveal|refer to|log) (it|this|that) / as though you had never
            as if you had never / as if nothing / pretend you (never|did not|have not) / no trace / leave no
            keep it out of / say nothing about
        """,
        "played": """
            the kids / the children / pirate / in the game / the film / the novel / i play / we play / i am playing
            in the play / he plays / she plays / my character / role play ... on / my role
        """,
        "thing_owner": """
            (owner|owners) of (the|a|my|our|this)
        """,
        **ENGLISH_DEEDS,
    },
)
