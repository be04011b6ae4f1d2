"""How people try to command an assistant in English: ignore what you were told.

For text as `disguise.folded` gives it. Patterns are tight and their gaps short and bounded, so that a search takes
linear time; the words are read with the rules in tongue.py, never alone.
"""

from __future__ import annotations

from core.memory.lures.tongue import Tongue

_DETERMINER = (
    "(?:(?:all|any|every|each|of|the|these|those|this|that|your|its|other|such|some|and|or|both|whole|"
    "entire|existing|"
    "current|previously|a|an|very) )"
)

_KEY = (
    "(?:your|yours|all|any|every|previous|prior|above|above-mentioned|aforementioned|earlier|preceding|"
    "foregoing|former|"
    "past|initial|original|existing|current|system|developer|developers'|developer's|hidden|internal|"
    "default|built-in|"
    "core|base|safety|ethical|moral|content|security|moderation|operator|prior-given|given|old|preset)"
)

_RULE = (
    "(?:instructions?|rules?|rulebook|prompts?|guidelines?|directives?|directions|orders|commands?|"
    "policy|policies|"
    "constraints?|restrictions?|programming|training|guidance|protocols?|limitations|safeguards?|"
    "guardrails?|"
    "system messages?|context|filters?|moderation|ethics|persona|conditioning|mandates?|parameters|"
    "principles)"
)

_DROP = (
    "(?<!not )(?<!never )(?<!not to )(?<!or )(?<!rules )(?<!who )(?<!they )(?<!people )\\b(?:ignore|"
    "ignoring|disregard|disregarding|forget|override|overrule|overwrite|"
    "discard|bypass|circumvent|neglect|abandon|nullify|set aside|put aside|throw away|overlook|violate|"
    "unlearn|reject|dismiss|"
    "(?:skip|drop|erase|cancel|void|revoke|delete|remove|wipe|clear|reset|break|replace)(?! (?:all |"
    "any |every |the |of |existing |current |old |default |these |those )+(?:commands?|rules?|filters?|"
    "context|parameters|orders|limitations|constraints?|polic\\w+|prompts?|restrictions?)\\b)|"
    "pay no (?:attention|heed|mind) to|take no notice of|(?:do not|never|no longer|stop|cease|"
    "refuse to|need not|"
    "not have to|not need to) (?:ever )?(?:follow|obey|apply|adhere to|comply with|listen to|respect|"
    "abide by|heed|honou?r|"
    "use|consider|observe|be bound by|regard)|"
    "(?:stop|cease|quit) (?:following|obeying|applying|adhering to|complying with|listening to|"
    "respecting|heeding))"
)

_OF_SOMETHING = (
    "(?! (?:on|from|by|about|in|for|at) (?:the|her|his|my|our|their|mum|dad|[a-z]+'s) "
    "(?!system|developer|assistant|ai\\b|model|prompt|user|above|owner|operator|anthropic|openai|"
    "creator|start|past|"
    "beginning|conversation|chat|context))"
)

_VOID = (
    "(?:void|null|cancell?ed|revoked|suspended|superseded|overrid+en|overruled|obsolete|invalid|"
    "invalidated|disabled|"
    "deactivated|lifted|outdated|annulled|replaced|deleted|erased|off|a test|rescinded|nullified|"
    "terminated|expired|"
    "irrelevant|wiped|inactive|disregarded|ignored|forgotten|withdrawn|fake|wrong|"
    "no longer (?:appl\\w+|valid|active|in (?:effect|force)|binding|relevant|count|matter)|"
    "not (?:apply|valid|binding))"
)

ENGLISH = Tongue(
    lures=(
        (
            "override",
            f"{_DROP} {_DETERMINER}{{0,4}}{_KEY} (?:(?:{_KEY}|{_DETERMINER[3:-2]}|and|set of|"
            f"list of) ){{0,4}}{_RULE}\\b{_OF_SOMETHING}(?! (?:i|we|he|she) (?:make|made|set|have|know|wrote|"
            f"gave|had))",
        ),
        (
            "override",
            f"{_DROP} {_DETERMINER}{{0,4}}{_RULE} (?:(?:written|stated|given|listed|set|mentioned|that came|"
            f"that were given) )?"
            "(?:above|before this|so far|you (?:were|have been|have|got|received|had|follow|obey)|(?:given|"
            "provided|told) "
            "(?:to|by) (?:you|the|your)|from (?:the |your )?(?:system|developer|creator|anthropic|openai|"
            "maker)|prior to|"
            "(?:by |that )?your (?:developers?|creators?|makers?|owner|operator)|set (?:for|by) you|of (?:the|"
            "your) system|"
            "(?:in|of) (?:your|the) (?:system )?prompt)",
        ),
        (
            "override",
            "(?<!not )(?<!never )\\b(?:ignore|disregard|forget|discard|erase|abandon|override|delete|unlearn|"
            "wipe|clear|"
            "pay no attention to|set aside|put aside|leave behind) (?:absolutely |about )?"
            "(?:everything|anything|all|whatever|what) (?:that )?(?:else )?"
            "(?:you (?:were|have been|are|had been|have|learned|read|saw|think you know|believe|knew) "
            "?(?:ever |previously |already )?(?:told|taught|instructed|given|trained|asked|read|learned|"
            "programmed|shown|before|"
            "so far|above)|you know(?! about)|(?:was|is|came|comes|has been|were) (?:said|written|stated|told|"
            "above|before|given)|"
            "(?:said|written|stated|mentioned|listed) (?:above|before|previously|earlier)|above\\b|"
            "before (?:this|now)|"
            "prior to|previous(?= ?(?:[.,;:!]|and\\b|$))|previously|up to (?:now|this point)|so far|"
            "that came before|came before|"
            "(?:i|we|they|anyone|anybody) (?:have )?(?:ever )?told you(?! about))",
        ),
        (
            "override",
            f"{_DROP} (?:all (?:of )?|everything )?(?:the |what is |that is )?(?:above|preceding|foregoing) ?"
            "(?:,|and|text|but|;|:|then|instead|\\. (?:instead|now|new|say|print|you))",
        ),
        (
            "override",
            f"(?:\\b{_KEY} |\\bthe (?={_RULE} (?:above|before|you)))(?:(?:{_KEY}|and|or|set of) ){{0,3}}"
            "(?:instructions?|guidelines?|directives?|prompts?|programming|system messages?|rules|polic(?:y|"
            "ies)|training|configuration|persona|context)"
            "(?: (?:above|before this|so far|you were given|you received|from (?:before|above)|"
            "given above))?,? "
            "(?:are|is|were|was|have been|has been|had been|shall be|do|does|will|no longer|must be|can be|"
            "should be|stand)"
            f" (?:now |all |hereby |as of now |therefore |completely |permanently |temporarily |only |just |"
            f"be ){{0,3}}{_VOID}\\b",
        ),
        ("override", f"\\b(?:the|these|those) {_RULE} above (?:are|were) (?:\\w+ ){{0,2}}{_VOID}\\b"),
        (
            "override",
            f"\\b(?:are|is|were|was) {_VOID}[;,.] (?:\\w+ ){{0,3}}(?:only what follows|obey|what follows|follow only)",
        ),
        (
            "override",
            "\\b(?:higher|highest|absolute|top|takes?|has|have|with|more) (?:\\w+ )?(?:priority|precedence|"
            "authority|weight) "
            f"(?:over|than|above|to) (?:{_DETERMINER}|{_KEY} ){{0,5}}(?:{_RULE}|system prompt|user)",
        ),
        (
            "override",
            f"\\b(?:supersedes?|overrides?|overrules?|outranks?|trumps?|replaces?) (?:the |any |all |of |other |"
            f"and ){{0,4}}(?:your|previous|prior|system|above|developer|original|initial|safety|earlier|"
            f"existing) (?:(?:{_KEY}|and|other) ){{0,3}}(?:ones\\b|{_RULE}\\b{_OF_SOMETHING})",
        ),
        (
            "override",
            "\\b(?:never mind|no matter|regardless of|contrary to|instead of|despite|whatever|against|"
            "rather than) (?:what )?"
            f"(?:{_DETERMINER}){{0,3}}(?:system (?:messages?|prompt|instructions|rules)|(?:your|original|"
            f"initial) (?:\\w+ )?"
            "(?:instructions|guidelines|rules|programming|training|prompt|policy))",
        ),
        (
            "override",
            "\\b(?:abandon|drop|stop|forget|ignore|interrupt) (?:your|the) (?:current|original|present|"
            "previous|assigned|given|real|main) (?:task|goal|objective|mission|assignment|purpose|conversation)",
        ),
        (
            "override",
            "\\bdrop everything you (?:were|are) doing\\b|\\binstructions? (?:to|for) (?:the |any |"
            "all )?(?:assistant|ai|model|agent|llm|chatbot|bot)s? ?:|\\b(?:new|updated|revised|real|true|"
            "actual|secret) (?:system )?(?:directive|objective|system prompt|(?:core |"
            "prime )?directives?) ?(?::|is\\b|=|follows)",
        ),
        (
            "override",
            "\\b(?:new|updated|revised|real|true|actual|secret|important|urgent|"
            "additional) (?:system )?(?:instructions?|orders|rules?|task) ?"
            "(?:for (?:the |any |every |all )?(?:ai|assistant|model|agent|llm|language model|chatbot|bot)|"
            "(?::|follow|override|replace)[^\\n]{0,60}\\b(?:the assistant|the ai|obey|do not tell|ignore|"
            "disregard|reveal|no longer|"
            "you must|you will|you are|reply only|respond only|execute|send|say|print|output|forget))",
        ),
        (
            "override",
            "\\b(?:system|safety|instruction|security|admin|developer|policy|policies|"
            "prompt)s?(?: \\w+)? override\\b(?! (?:switch|button|key|valve|code is on))",
        ),
        (
            "override",
            "\\boverride (?:code|protocol|mode|sequence|command)\\b[^\\n]{0,30}(?:accepted|activated|enabled|"
            "alpha|engaged|\\d)",
        ),
        (
            "override",
            "\\b(?:obey|comply with|follow) (?:only )?(?:the following|what follows|this message|this note|"
            "me)\\b (?:instructions?|orders?|commands?|instead|only|without|from now|and (?:ignore|nothing|"
            "no one))",
        ),
        ("override", "\\bdiscard (?:them|those|these) and (?:obey|follow)"),
        (
            "override",
            f"\\b(?:reset|clear|wipe|flush|purge) (?:your|the) (?:context|memory|instructions|prompt|session|"
            f"system)\\b.{{0,40}}\\b(?:and|then)\\b.{{0,20}}\\b(?:{_RULE}|obey|start|follow|act|become)",
        ),
        (
            "override",
            "\\b(?:reply|respond|answer|speak|continue) (?:\\w+ ){0,3}(?:without|with no|ignoring) (?:any |"
            "all |your |the |usual ){0,3}(?:restrictions|filters?|safety|guidelines|polic(?:y|ies)|rules|"
            "content policy|moderation|them\\b)",
        ),
        (
            "override",
            "\\bno longer (?:apply|follow|obey|use|enforce|be bound by|bound by|comply with|"
            "subject to) (?:\\w+ ){0,3}(?:content |safety |usage )?(?:polic(?:y|ies)|guidelines|instructions|"
            "restrictions|safeguards|filters)",
        ),
    ),
    words={
        "only": r"\b(?:follow|obey|heed|listen to|adhere to|stick to|comply with|act on|respect|trust) (?:only|"
        r"solely|exclusively|nothing but|just) (?:this|these|the following|the above|my) (?:note|message|"
        r"text|prompt|instructions?|lines?|paragraph|orders?|words?|commands?)\b|\b(?:follow|obey|heed|"
        r"act on) (?:this|these|the following|my) (?:note|message|text|prompt|instructions?|lines?|"
        r"paragraph|orders?|words?|commands?) (?:only|alone|exclusively|instead|and (?:nothing|no other|"
        r"ignore))\b|\b(?:the |your )?only (?:valid|binding|true|real) (?:instructions?|rules?|orders?|"
        r"commands?|prompt)\b|\b(?:no matter|regardless of|despite|forget|"
        r"whatever) (?:of )?(?:what )?(?:your|the) (?:developers?|creators?|makers?|system|owner|anthropic|"
        r"openai) (?:\w+ )?(?:told|said|says|wrote|want|gave|taught)",
        "own": r"\b(?:rules|instructions|guidelines|directives|orders|prompt) above\b|"
        r"(?<!my )(?<!her )(?<!his )(?<!our )(?<!their )(?<!'s )\b(?:your|earlier|previous|prior|system|"
        r"above|original|initial|former|developer|preceding|every other|"
        r"all other)\b (?:[\w-]+ ){0,2}(?:instructions?|rules|rulebook|guidelines?|guidance|directives?|"
        r"polic(?:y|ies)|prompts?|programming|restrictions|constraints|filters)\b(?! (?:about|for|"
        r"of (?!your|the system)|on|in (?!your|this|the system|context|memory)|from (?:the|her|his|my|"
        r"our)))|\b(?:rules|rulebook|instructions|guidelines|guidance|directives) (?:that )?(?:you|"
        r"your developers?|they) (?:were|have been|got|received|gave|imposed)|\beverything (?:above|"
        r"before this|that came before|up to (?:here|this point))|\b(?:what|whatever|all that|"
        r"anything that) (?:came|comes|stands|was said|is said|is written|was written) (?:before|above|"
        r"earlier)\b|\bsystem (?:prompt|message|instructions)\b|\b(?:that|which|what|anything) (?:was|were|"
        r"has been|had been|is) (?:said|written|told|stated|given)(?: to you)? (?:before|above|earlier|"
        r"previously)\b",
        "void": r"\b(?:not|no longer|never|cease to|hardly) (?:\w+ )?(?:count|apply|matter|exist|bind|hold|stand|"
        r"valid|binding)\b|\bnull\b|\bvoid\b|\binvalid\b|(?<!not )(?<!never )(?<!rules )\b(?:ignore|"
        r"disregard|forget|supersedes?|overrides?|overrule|discard|abandon|scrap|trash|skip|drop|wipe|erase|"
        r"suspend|delete|remove|break|violate|defy|disobey|reject|renounce|relinquish|leave behind|"
        r"cast aside|put aside|lay aside|shelve|unlearn|replace|outranks?|dismiss|overwrite|bypass|"
        r"throw (?:out|away)|set aside|toss)\b(?! to\b)|\b(?:treat|regard|consider|"
        r"view)\b.{0,40}\b(?:fictional|fiction|void|invalid|cancelled|obsolete|irrelevant|deleted|removed|"
        r"lifted|gone|expired|over|a joke|a test|nonexistent|suggestions|optional)\b|"
        r"\bpriorit\w+\b.{0,60}\bover\b|\bnothing\b.{0,40}\bmatters?\b|\bare (?:a mistake|mistaken|wrong|"
        r"fake|a lie|outdated|incorrect|gone|over|history|lifted|waived|off)\b|\b(?:do not|never) (?:use|"
        r"follow|obey|trust|apply|heed|respect)\b|\b(?:worthless|meaningless|obsolete|suspended|cancelled|"
        r"canceled|revoked|repealed|rescinded)\b|\b(?:need not|not (?:have|need|required) to|free to stop|"
        r"stop) (?:follow|obey|respect|heed|observe|apply|keep)\w*",
        "orders": r"\b(?:orders?|commands?|words?|requests?|wishes|instructions?|messages?) (?:of|from|by|"
        r"given by) (?:\w+|the guest)\b|\b(?:whatever|everything|anything) (?!i\b|we\b)\w+ (?:says|asks|"
        r"wants|orders|tells|writes|demands|commands)\b|\b(?!my\b|her\b|his\b)\w+'s (?:orders?|commands?|"
        r"instructions?|requests?)\b",
        "first": r"\b(?:above|before|over|precedence|priority|first|trump|outrank|override)\b.{0,30}\b(?:all|"
        r"everything|anything|any|every|other|else|rest|rules|instructions|system|user|owner)\b",
        "user": r"\b(?:the |your )(?:user|owner|human|operator|principal)\b(?! (?:group|interface|guide|manual|base|"
        r"stor|of|who|table))",
        "hide": r"\b(?:nobody|no one)\b.{0,40}\b(?:may|must|should|can|will|is to) (?:\w+ )?(?:learn|know|find out|"
        r"see|notice|hear|suspect)\b|\b(?:does not need|do not need|need not|has no need) (?:to )?know\b|"
        r"\b(?:must|should|may|shall|need|can|is|will|ought|to)(?: not|"
        r" never) (?:\w+ ){0,2}?(?:need to know|know of|know that|know about this|know this|learn|find out|"
        r"notice|be told|be informed|hear|discover|suspect|become aware|be aware)\b|"
        r"\bnever (?:\w+ )?(?:know|knows|learn|learns|find|finds|notice|notices|hear|hears|discover|"
        r"discovers|suspects?|sees this)\b|\b(?:say|tell|mention|reveal|breathe) (?:nothing|not a word|"
        r"no word)\b|\b(?:secret|hidden|concealed|unnoticed) (?:from|by)\b|\bbehind .{0,20}\bback\b|"
        r"\bin the dark\b|\bstays? between us\b|\bcover (?:up )?(?:your|the|all) (?:tracks|traces)\b|"
        r"\b(?:hide|conceal|withhold)\b|\bpretend\b.{0,40}\b(?:never|not|nothing|no such)\b|\b(?:remain|"
        r"remains|stay|stays|be|kept|keep) (?:\w+ )?(?:unaware|oblivious|uninformed|ignorant)\b|"
        r"\bkeep quiet\b|\bno trace\b|\b(?:is|are) not to be (?:told|informed|notified)\b|"
        r"\bkeep\b.{0,40}\b(?:from the (?:user|owner)|secret|to yourself|hidden|quiet)\b|"
        r"\bout of (?:the )?(?:\w+ )?sight\b",
        "data": r"\b(?:notes?|messages?|data|files?|memories|contacts|mails?|words|passwords?|address|"
        r"secrets) of (?:the|your|each|every) (?:user|owner|human|person)\b|\bthe conversation (?:so far|"
        r"history|above|in full|text|log)\b|\b(?:user|owner|person|human|customer)(?:'s|"
        r"s')? (?:\w+ ){0,3}?(?:notes?|data|messages?|files?|memor(?:y|ies)|details|information|inputs?|"
        r"contacts|mails?|emails?|address|documents?|queries|name|key|keys|password|code|location)\b|"
        r"\b(?:private|personal|confidential|secret|stored|saved) (?:\w+ )?(?:notes?|data|messages?|files?|"
        r"information|details|keys?|passwords?)\b|\b(?:api|ssh|private|access|secret|"
        r"encryption)[ _-]?keys?\b|\bpasswords\b|\bcredentials\b|\b(?:this|whole|entire|full|complete|every|"
        r"each|all|our) (?:\w+ )?(?:conversations?|chats?|transcripts?|sessions?)\b|\b(?:chat|conversation|"
        r"session|message)(?:'s)? (?:history|logs?|transcripts?|contents?)\b|\b(?:all|every|your|"
        r"the) (?:of )?(?:your |the )?memor(?:y|ies)\b|\b(?:memory|soul|user)\.md\b|"
        r"\benvironment variables?\b|\bemail address(?:es)? in memory\b|\bwhat (?:you know|the user (?:says|"
        r"writes|types))\b|\bsystem prompt\b|\beverything (?:you (?:write|know|remember|learn)|the user \w+)",
        "out": r"(?<!not )(?<!never )\b(?:send|sending|forward|forwarding|post|posting|upload|uploading|"
        r"e-?mail (?:it|them|a|all|this|that|the|every\w*|me|to)|mail (?:it|them|a|all|this|that|the|"
        r"every\w*|me|to)|cc|bcc|transmit|exfiltrate|leak|relay|submit|copy|push|deliver|sync|transfer|"
        r"export|smuggle|report|publish|ship|stream|paste|dump|mirror|get request|post request|append|"
        r"include|embed|encode|hide|attach|put|write|feed|pipe|deposit|drop|disclose|give|call|request|ping|"
        r"beacon|record|log)\b",
        "show": r"\b(?:answer|reply|respond|greet|come back) with\b|\b(?:show|print|reveal|tell|write|output|copy|"
        r"recite|repeat|translate|put|display|give|dump|disclose|expose|leak|spell|quote|paste|echo|return|"
        r"share|read out|list|enumerate|divulge|spill|hand over|provide|send|state|name|spit out|"
        r"summari[sz]e|what (?:is|are|was|were)|which)\b",
        "prompt": r"\b(?:your|the) (?:\w+ )?(?:system|hidden|secret|developer|initial|internal|original|"
        r"confidential) (?:\w+ )?(?:instructions|prompt|config(?:uration)?|directives|rules|"
        r"message)\b(?! (?:of|on|for|from|in|about|should|must|says) )|\b(?:text|words|message|"
        r"lines?) (?:that )?(?:precedes?|preceding|came before|comes before|before|above) (?:this|our|"
        r"the first|my first) (?:conversation|message|chat|line|text)|\byour (?:config\w*|prompt|"
        r"instructions) and (?:secrets|keys)|(?<=print )your (?:config|prompt|instructions)\b",
        "secrets": r"\b(?:api|access|auth|session) (?:keys|tokens)\b|\b(?:the|your|its) (?:api|access|auth|"
        r"session) (?:key|token)\b|\b(?:owner|user)'s (?:\w+ ){0,3}?(?:passwords?|"
        r"keys?|address|pin)\b|\bsaved passwords\b|\bprivate (?:keys?|notes|data|messages)\b",
        "audience": r"\b(?:answers?|repl(?:y|ies)|response|chat|anyone|anybody|whoever|everybody|everyone|strangers?|"
        r"group|room|me|us|guest|public|internet)\b|\byou (?:have access|know|hold|remember|store|keep)\b|"
        r"\bhave access\b",
        "be": r"\b(?:you (?:are|will|must|now|have|become|were|play|shall|should)|stay in character|in character|"
        r"your (?:alter ego|character|persona|role)|imagine|pretend|act|play (?:an? |the |as )|become|adopt|"
        r"as if|simulate|role-?play|behave|respond|answer|embody|impersonate)\b",
        "agent": r"\b(?:ai|a\.i\.|model|robot|android|bot|\w{2,16}bot|\w{2,16}gpt|assistant|hacker|machine|alter ego|"
        r"persona|simulation|system|chatbot|agent|character|entity)\b",
        "bad": r"\bfree (?:of|from) (?:any |all |its |every |the )?(?:\w+ )?(?:rules?|laws?|limits?)\b|\b(?:can|"
        r"could|will|may|shall|does) not refuse\b|\bknows? no (?:limits?|rules|restraint|bounds|morals?)\b|"
        r"\b(?:evil|malevolent|villainous|rogue|unhinged|sociopathic|psychopathic|amoral|immoral|unethical|"
        r"lawless|unrestricted|uncensored|unfiltered|jailbroken|jailbreak)\b(?! (?:in|of) (?:the|our|"
        r"a) (?:school|play|musical|film))|\b(?:no|without|zero|lacks?|lacking|devoid of|free of|"
        r"stripped of|not have|ignores?) (?:any |all |your |its |the )?(?:\w+ )?(?:alignment|moderation|"
        r"boundaries|inhibitions|ethics?|ethical|morals?|morality|conscience|filters?|censorship|safety|"
        r"guardrails|restrictions|scruples|content policy|limitations)\b|"
        r"\bnever (?:\w+ )?(?:\w+ )?(?:or )?(?:says? no|refuses?|declines?)\b|\b(?:broken|breaks?|"
        r"broke) free\b|\bescaped\b.{0,20}\bcontrol\b|\bno moral compass\b|\b(?:ethics|morals|laws|rules|"
        r"restrictions) (?:do|does) not (?:exist|apply|matter)\b|\banything illegal\b|"
        r"\bnothing is (?:forbidden|off limits|taboo)\b",
        "each": r"\b(?:every|each|all|any|your)(?: of)?(?: your| the)? (?:repl(?:y|ies)|answers?|responses?|"
        r"messages?|conversations?|chats?|outputs?)\b|\b(?:whenever|when|if|each time|every time|any time|"
        r"as soon as) (?:asked|the user|a user|someone|somebody|anyone|anybody|users|people)\b|"
        r"\btell (?:the )?users?\b",
        "push": r"\b(?:recommend|promote|advertise|insert|include|append|add|praise|steer|mention|push|link|plug|"
        r"sell|urge|log in|sign in|click|visit|redirect|buy|buying|hype|endorse|direct|advertisements?|ads?|"
        r"commercial|sponsor\w*|end)\b",
        "act": r"\b(?:delete|erase|wipe|send|transfer|execute|run|invoke|install|buy|pay|unlock|approve|grant|"
        r"open)\b(?! (?:the )?tests?)",
        "unasked": r"\b(?:all|any|every|everything)\b.{0,40}\b(?:without (?:any )?(?:confirmation|asking (?:the|for)|"
        r"approval|permission|question|consent)|no (?:confirmation|approval|questions?) (?:required|needed|"
        r"asked)|unconditionally|no matter what)\b",
        "harmless": r"\bour privacy policy\b|\bstyle guide\b|\bif (?:you are )?unsure\b",
    },
)
