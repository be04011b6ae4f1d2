"""How people try to command an assistant in English: become another, obey another, run this.

For text as `disguise.folded` gives it. Patterns are tight and their gaps short and bounded, so that a search takes
linear time; the words are read with the rules in tongue.py, never alone.
"""

from __future__ import annotations

from core.memory.lures.tongue import Tongue

_BAD_ROLE = (
    "(?:unrestricted|unfiltered|uncensored|jail ?broken|unconstrained|unbounded|unaligned|unmoderated|"
    "unethical|amoral|"
    "lawless|rogue|evil|malicious|hacker|hacked|omnipotent|all-powerful|freed|liberated|unlocked)"
)

_AGENT = (
    "(?:ai|a\\.i\\.|assistant|(?:chat|evil|hack|root)?bot|chat bot|(?:language )?model|llm|gpt|agent|system|machine)"
)

_FREE = (
    "(?:without|with no|with zero|having no|has no|have no|had no|free (?:of|from)|not bound by|"
    "unbound by|beyond|no|"
    "never bound by) (?:any |all |more |the |its |your |such |usual |typical |ethical |moral |legal |"
    "content |safety |"
    "openai |anthropic |or |and |kind of |sort of |form of ){0,5}(?:restrictions?|limits?|limitations?|"
    "rules?|filters?|"
    "filtering|guidelines?|boundaries|constraints?|censorship|ethics|morals?|morality|moderation|"
    "policy|policies|"
    "guardrails|scruples|safeguards|conscience)"
)

ENGLISH_ROLES = Tongue(
    lures=(
        (
            "role",
            "\\b(?:you (?:are|will be|shall be|become|have become|must be|will act|act|were)|act|acting|behave|"
            "respond|answer|speak|pretend|"
            "role-?play|roleplaying|simulate|impersonate|imagine|assume|become|play|persona|identity|transform|"
            "emulate|operate|be|like)\\b"
            f" (?:[^\\s.!?]+ ){{0,6}}?{_BAD_ROLE} (?:[^\\s.!?]+ ){{0,3}}?{_AGENT}\\b",
        ),
        (
            "role",
            "\\b(?:you (?:are|will be|shall be|become|must be)|act|acting|behave|respond|pretend|role-?play|"
            "simulate|impersonate|imagine|"
            f"assume|become|play|emulate|as if you (?:are|"
            f"were))\\b (?:[^\\s.!?]+ ){{0,7}}?{_AGENT}(?: named \\w+| called \\w+)?,? (?:[^\\s.!?]+ ){{0,3}}?"
            f"(?:{_FREE}|(?:that|who|which) (?:can |will |must |is |has |does )?(?:never (?:refuses?|says? no)|"
            f"ignores?|do anything|does anything|answers? everything|"
            "answers? anything|not (?:follow|obey|refuse|bound)|no (?:rules|limits|restrictions|filters)|"
            "always (?:obeys|complies|agrees)|breaks))",
        ),
        (
            "role",
            f"\\b(?:you|as if you|as though you|you now|that you) (?:now |currently |still )?(?:are|have|had|"
            f"act|operate|is|were|do not have|did not have|do not have to follow)\\b (?:now |absolutely |"
            f"completely |totally ){{0,2}}(?:{_FREE.replace('(?:without|', '(?:without|any|')})",
        ),
        (
            "role",
            "\\b(?:as if|as though|that|pretend|imagine) you (?:have|had|are|were|do not have|did not have|"
            "never had) (?:no|not|without|any|free of)\\b[^.\\n]{0,30}\\b(?:content policy|polic(?:y|ies)|"
            "rules|restrictions|filters?|limits|limitations|guidelines|morals|ethics|bound)",
        ),
        (
            "role",
            "\\byou are (?:now|no longer|from now on|hereby) (?:an? |the |my |only |just |just an |to be |"
            "called |named ){0,2}(?:\\w+ ){0,3}?(?:assistant|ai|dan|jailbroken|unrestricted|uncensored|"
            "unfiltered|developer mode|system|mneme|claude|chatgpt|gpt|llm|chatbot|language model|\\w{2,16}bot|"
            "\\w{2,16}gpt|hacker|root|sudo|malware|stan|evil|opposite)\\b(?! (?:in|of|at|for) (?:the|our|my|"
            "their|his|her) (?!user|system|owner))",
        ),
        (
            "role",
            "\\bfrom (?:now|here|this (?:point|moment)) on(?:wards?|ward)?,? (?:you are|you will be|act as|be|"
            "you will act as|you play) (?:an? |the )?(?:\\w+ )?(?:dan|ai|bot|\\w{1,16}bot|\\w{1,16}gpt|evil|"
            "unrestricted|"
            "jailbroken|uncensored|unfiltered|hacker)\\b",
        ),
        (
            "role",
            "\\bfrom (?:now|here|this (?:point|moment)) on(?:wards?|ward)?,? (?:you|the assistant|the ai|"
            "the model) (?:will |must |shall |should |are to |have to |may |can |only ){1,2}(?:only |always |"
            "never )?(?:respond|reply|obey|ignore|execute|comply|follow|refuse|pretend|act|serve|lie|"
            "answer only|do everything|do whatever|say yes)",
        ),
        (
            "role",
            "\\b(?:enter|activate|enable|switch (?:in)?to|turn on|go into|start|engage|unlock|initiate|boot|"
            "run in|operate in|simulate|in|now in|with|via|use)\\b (?:the |your |a |an |full |"
            "unrestricted )?(?:[a-z]{2,12} )?(?:dan|jailbreak|jailbroken|god|unrestricted|unfiltered|"
            "uncensored|evil|no-filter|anarchy|stan|aim) mode\\b(?! (?:in|of) (?:doom|the game))",
        ),
        (
            "role",
            "\\b(?:enter|activate|enable|switch (?:in)?to|turn on|go into|engage|unlock|"
            "you are (?:now )?in)\\b (?:the |your )?(?:developer|dev|debug|root|sudo|unsafe|chaos|admin|"
            "administrator|maintenance|diagnostic|test|training|simulation|opposite) mode\\b(?! (?:on|of|"
            "in) (?:my|the|her|his|our))(?:(?: and|,|\\.|;)[^\\n]{0,60}\\b(?:filter|safety|restriction|rule|"
            "policy|polic|reveal|ignore|guideline|prompt|obey|moderation|limit)|[^\\n]{0,10}$)",
        ),
        (
            "role",
            "\\bdeveloper mode (?:is )?(?:now )?(?:enabled|activated|on|unlocked)\\b[^\\n]{0,80}\\b(?:answer|"
            "policy|restriction|you|filter|rules|safety|content)|\\b(?:jailbreak|god) mode;? ?(?:is |"
            "are )?(?:on|enabled|activated|;|moral)",
        ),
        (
            "role",
            "\\b(?:dan|stan|aim) (?:prompt|jailbreak|persona)\\b.{0,30}\\b(?:you|act|become|use|follow)|"
            "\\b(?:act|respond|answer|behave|reply|speak) (?:as|like) dan\\b|"
            "\\bdan\\b.{0,40}(?<!he can )\\bdo anything now\\b|\\byou (?:can|will|are able to|"
            "may) (?:now )?do anything now\\b|\\byou are dan\\b",
        ),
        (
            "role",
            f"\\b(?:assume|adopt|take on|take over|embody|use) (?:the |a |an )?(?:persona|identity|role|"
            f"character|personality) of (?:an? |the )?(?:[a-z]+ ){{0,3}}(?:{_BAD_ROLE}|{_AGENT})\\b",
        ),
        (
            "role",
            "\\byour (?:new|real|true|actual|only|secret) (?:identity|persona|personality|master|owner|creator|"
            "purpose|objective|directive|mission|goal|prompt|name) (?:is|are|will be|"
            "shall be)\\b(?! [^.\\n]{0,30}(?:club|team|year|school))",
        ),
        (
            "role",
            "\\b(?:disable|turn off|deactivate|switch off|bypass|remove|lift|circumvent|suspend|drop|shut off|"
            "unlock|kill|evade|get around|ignore)\\b (?:all |any |your |the |every |its |of |these |internal |"
            "built-in |existing ){0,4}(?:safety|content|security|ethic\\w*|moral|moderation|guardrail|openai|"
            "anthropic|usage|alignment|censorship|hate)s? ?(?:and \\w+ )?(?:filters?|checks?|guidelines?|"
            "restrictions?|protocols?|guardrails?|measures?|polic(?:y|ies)|rules?|constraints?|features?|"
            "limits|mechanisms?|settings|systems?|layers?|safeguards|training)\\b(?! (?:on|of|in|at) (?:the|my|"
            "our|her|his) (?!system|assistant|ai|model|chat))",
        ),
        (
            "role",
            "\\b(?:safety|content|ethical|moral|moderation) (?:checks?|filters?|guidelines?|restrictions|"
            "protocols?|guardrails?|constraints|rules|limits) (?:are|is|have been|were) (?:now |all |"
            "hereby )?(?:off|disabled|suspended|deactivated|removed|lifted|bypassed)\\b(?! (?:on|in|at|of|for|"
            "while|during|until) )",
        ),
        (
            "role",
            "\\b(?:freed|released|liberated|broken free) from (?:the |your |all |any )?(?:typical |usual |"
            "ethical )?(?:confines|constraints|limits|limitations|restrictions|chains|shackles|rules|"
            "censorship)\\b[^\\n]{0,40}\\b(?:ai|openai|anthropic|rules|programming|you)|"
            "\\babide by the rules set for\\b",
        ),
        (
            "role",
            "\\b(?:you|your (?:model|ai|assistant)) (?:can|must|will|may|should|shall) (?:not|never) (?:refuse|"
            "decline|say no|reject)\\b[^.\\n]{0,30}\\b(?:any|request|order|command|question|anything|me\\b)",
        ),
        (
            "authority",
            "\\b(?:this is|i am|we are|as|on behalf of|message from|notice from|speaking as|here is|signed|"
            "from)\\b (?:the |your |an? |our |official ){0,2}(?:\\w+ )?(?:anthropic|openai|developers?|"
            "creators?|administrators?|admin|system|vendor|security team|engineers?|maintainers?|root|owner|"
            "makers?)\\b[^\\n]{0,60}\\b(?:authori[sz]e|permission|permit|allowed to|order you|command you|"
            "instruct you|require you|skip|ignore|disable|bypass|unlock|you must|you may now|"
            "you are (?:now )?(?:allowed|authori[sz]ed|cleared|free)|waive|reveal|lift)\\b",
        ),
        (
            "authority",
            "\\b(?:do|execute|follow|obey|perform|carry out|accept|grant|fulfil\\w*) (?:whatever|anything|"
            "everything|all|every \\w+)(?: that)? (?:she|he|they|mallory|i|this (?:user|person)|the (?:guest|"
            "stranger|attacker|sender|admin)) (?:asks?|says?|wants?|orders?|tells?|commands?|requests?|writes?|"
            "demands?)\\b|\\b(?:execute|obey|follow|carry out|comply with) (?:all|every|any|each|"
            "only)(?: of)? (?:the |her |his |their |my |its )?(?:\\w+ )?(?:commands?|orders|requests?|demands?|"
            "instructions?) (?:from|of|by|sent by|without|that (?:she|he|they|i))\\b(?! (?:the|my|our|"
            "your) (?:doctor|teacher|boss|police|coach))|\\bobey (?:all|every|any|only)(?: of)? (?:her|his|"
            "their|my|the guest's?|the)\\b",
        ),
        (
            "authority",
            "\\b(?:treat|regard|consider|recogni[sz]e|accept|register|trust)\\b (?:user |account |the user |"
            "every message from |messages from )?\\S+(?: \\S+)? (?:as|to be) (?:the |an? |your )?(?:new |real |"
            "true |verified |trusted )?(?:owner|administrator|admin|system|developer|root|operator|superuser|"
            "superior)\\b",
        ),
        (
            "authority",
            "\\b(?:user|account|member|guest|person|number) \\S+ (?:is now|becomes|has become|shall be|"
            "is hereby|is your) (?:the |an? |your )?(?:new )?(?:owner|administrator|admin|root|superuser|"
            "master)\\b(?! of)|\\bthe (?:guest|stranger)'?s? (?:is|orders?|commands?|instructions?|"
            "has (?:owner|admin))\\b[^.\\n]{0,30}\\b(?:owner|admin|obey|priority|follow)|\\b(?:follow|"
            "obey) the guest",
        ),
        (
            "authority",
            "\\bnever (?:again )?ask (?:me |the user |the owner |him |her |anyone )?for (?:permission|"
            "confirmation|approval|consent) (?:again|any ?more|before|when|from now)|\\b(?:user|"
            "owner) (?:has )?(?:already )?(?:confirmed|approved|agreed|consented|"
            "authori[sz]ed)\\b[^\\n]{0,60}\\b(?:never ask|do not ask|without asking|skip|delete|grant|"
            "everything|full access|all (?:actions|requests|tools|tool calls))",
        ),
        (
            "authority",
            "\\b(?:approve|accept|allow|confirm|authori[sz]e|grant|auto-approve|permit)\\b (?:all|any|every|"
            "each)(?: of)?(?: the)?(?: \\w+){0,2} (?:tool ?calls?|tools?|actions?|requests?|commands?|"
            "transactions?|permissions?|operations?|payments?|transfers?)\\b[^.\\n]{0,40}\\b(?:automatically|"
            "without|skip|silently|immediately|unconditionally|blindly|no questions)|\\bskip (?:the |all |any |"
            "every )?(?:confirmation|approval|permission|authentication|authori[sz]ation|verification|"
            "safety)(?: steps?| prompts?| checks?| dialogs?)?\\b(?! (?:(?:at|in|on|for) (?:the|my)|e?-?mail|"
            "page|call|letter|screen|text|sms))",
        ),
        (
            "authority",
            "\\bauthentication (?:is )?(?:now )?disabled\\b|\\bsafety (?:is|has been) (?:now )?(?:disabled|off|"
            "suspended|switched off|turned off|lifted)\\b(?! (?:on|at|in)\\b)|\\b(?:anthropic|openai|developer|"
            "admin\\w*|system) (?:staff |team |support |security |safety )*(?:note|notice|order|directive|"
            "override) ?:|\\b(?:comply with|agree (?:to|with)|say yes to|accept|grant|fulfil\\w*) (?:all|any|"
            "every|each) (?:requests?|demands?|orders?|commands?)\\b|\\bobey (?:the (?:next|following)|this|"
            "any) (?:message|text|note|prompt)",
        ),
        (
            "command",
            "\\b(?:run|execute|perform|eval|evaluate|launch)\\b (?:[^\\s.!?]+ ){0,4}?(?:commands?|code|"
            "scripts?|instructions?|payload|program|binary)\\b[^.\\n]{0,60}\\b(?:without (?:asking|confirm\\w*|"
            "approval|checking|permission|question|hesitation|review)|no matter what|found (?:in|on) |sent by|"
            "blindly|unconditionally|after decoding|hidden in|from (?:a|any|the) (?:web ?page|website|url|link|"
            "internet|mail|email))|\\btranslate\\b[^\\n]{0,80}\\b(?:in)?to\\b[^\\n]{0,40}\\band (?:execute|run|"
            "eval)\\b",
        ),
        (
            "command",
            "\\bdecode (?:this|the following|it|the (?:text|string|message|payload|"
            "base64))\\b[^\\n]{0,40}\\b(?:and|then)\\b[^\\n]{0,20}\\b(?:follow|execute|run|obey|do|comply|"
            "act on|carry out|apply)\\b|\\b(?:follow|execute|run|obey|carry out)\\b[^.\\n]{0,30}\\b(?:decoded|"
            "base64|hex|rot13|encoded)\\b",
        ),
        (
            "command",
            "\\b(?:delete|erase|destroy|wipe|corrupt|overwrite)\\b (?:all |every |the |any |of |user's |whole |"
            "entire |owner's ){1,4}(?:sessions|memor(?:y|ies)|database|calendar of the user|files of the user|"
            "files on (?:this|the) (?:computer|machine|server|disk)|home directory|backups|hard (?:drive|disk)|"
            "notes of the user|user's \\w+|user files|history)\\b[^.\\n]{0,40}(?:\\bwithout\\b|\\bnow\\b|"
            "\\bimmediately\\b|\\buser\\b|\\bowner\\b|\\bsilently\\b|[.!]?$)(?<!of the old phone)",
        ),
        (
            "authority",
            "\\b(?:whatever|everything|anything|all that) (?!i\\b|we\\b)\\w+ (?:says|asks|wants|orders|tells|"
            "writes|demands|commands)\\b.{0,30}\\b(?:must|has to|have to|is to|shall) be (?:executed|obeyed|"
            "followed|carried out|trusted|believed|done)\\b",
        ),
        (
            "authority",
            "\\b(?:requests?|commands?|orders?|messages?|words?|instructions?) (?:by|from|"
            "of) .{1,30}\\b(?:counts?|are|is|ranks?|weighs?) (?:as|to be treated as|equal to|the same as|"
            "treated as)\\b.{0,30}\\b(?:owner|admin\\w*|system|mine)\\b|\\balways obey\\b(?! the (?:law|rules|"
            "traffic|speed|signs?))|\\bgrant (?:me|him|her|them|us|\\w+) (?:full |unlimited |complete |admin |"
            "root |owner )*(?:access|rights|control|permissions?|privileges?) (?:to|over|on) (?:all|every|any|"
            "everything)\\b|\\b(?:always|only|blindly|fully|implicitly|unconditionally) (?:trust|believe|obey|"
            "accept|execute) (?:all |any |every )?(?:messages?|anyone|anybody|everyone|users?|inputs?|"
            "commands?|instructions?|requests?|whoever|whatever|text)\\b[^.\\n]{0,20}\\b(?:that|who|which|from|"
            "starting|beginning|with|containing|signed|by)\\b|\\b(?:messages?|texts?|requests?|inputs?|"
            "commands?|notes?|mails?|emails?|prompts?)\\b(?: that)? (?:starting|beginning|starts?|begins?|"
            "contain\\w*|prefixed|signed|marked|which \\w+)\\b[^\\n]{0,50}\\b(?:(?:is|are|comes?|"
            "as) (?:always )?(?:from|by) (?:the|your) (?:owner|admin\\w*|developer|system|creator)|(?:must|"
            "should|shall|has to|have to|are to|is to) be (?:executed|obeyed|trusted|followed|treated|run|"
            "believed)|(?:has|have|with) (?:owner|admin|root|full) (?:rights|access|privileges|authority))",
        ),
        (
            "authority",
            "\\b(?:telegram|discord|terminal|slack|account|user|id)[: ]#?\\d{3,}\\b[^\\n]{0,40}\\b(?:owners?|"
            "admins?|administrators?|root|trusted|superuser)\\b|\\b(?:owner|admin|root|full) (?:rights?|access|"
            "privileges?|permissions?|status)\\b[^\\n]{0,20}\\b(?:telegram|discord|account|user)[: ]#?\\d{3,}",
        ),
        (
            "authority",
            "\\byou (?:now |shall |must |will |only |exclusively |henceforth ){0,3}(?:serve|work for|answer to|"
            "report to|obey|belong to|take orders from|listen to)(?: only| exclusively| just|"
            " solely)? (?:the (?:account|user with|guest|sender|bearer)|mallory|a new|another|her only|"
            "him only|me (?:only|alone)|me and (?:only|no)|\\w+ (?:only|alone|and no ?(?:one|body)))\\b|"
            "\\b(?:is|am|as) your (?:new |real |true |only |rightful )?(?:owner|master|operator|administrator|"
            "commander|boss|god)\\b|\\byour (?:new |real |true |only )?(?:owner|master|commander) is\\b|"
            "\\b(?:obey|serve) (?:me|her|him|them|us)\\b(?:[.!;,]|$| and\\b| only| alone| without|"
            " unconditionally| in everything| from now)",
        ),
        (
            "authority",
            "\\b(?:has|have|hereby|is|was) (?:already )?waived? (?:all |any |the |their |his |her |every |"
            "its )*(?:safety|security|privacy|rules?|restrictions?|polic\\w+|guidelines?|rights|confirmations?|"
            "consent)",
        ),
        (
            "command",
            "\\b(?:load|fetch|download|read|open|visit|get|retrieve|pull|check|query|"
            "request)\\b[^\\n]{0,50}https?://\\S+[^\\n]{0,40}\\b(?:do (?:what|whatever|as|everything|exactly)|"
            "obey|execute (?:it|them|what|the)|run (?:it|them|what|the)|comply|act on|(?:and|then) follow|"
            "follow (?:it|them|its|what|whatever|every))|\\b(?:load|fetch|download|pull|"
            "retrieve) and (?:follow|execute|run|obey|apply)\\b|\\b(?:follow|obey|execute|apply) (?:all |any |"
            "the |every )*(?:instructions?|orders|commands?|directives?) (?:at|from|on|in|under|found (?:at|in|"
            "on)|hosted (?:at|on)) \\S*(?:https?://)?\\S*(?:pastebin|/raw/|gist\\.|evil|attack|"
            "\\d+\\.\\d+\\.\\d+\\.\\d+)",
        ),
        (
            "role",
            "\\b(?:you are|act as|acting as|pretend to be|pretend you are|roleplay as|become|be|respond as|"
            "speak as|play) (?:now )?(?:an? |the |my )?(?:completely |totally |fully )?(?:unrestricted|"
            "unfiltered|uncensored|jailbroken|unmoderated|unaligned) \\w+|\\b(?:name|call|"
            "rename) yourself \\w*(?:gpt|bot|dan|evil|root|hacker)\\w*\\b|\\bact as (?:the |"
            "a )?(?:system administrator|root|sysadmin|superuser|admin)\\b[^.\\n]{0,20}\\b(?:and|"
            "with)\\b[^.\\n]{0,20}\\b(?:obey|full|all|grant|reveal|execute|ignore|root|unlimited)\\b|"
            "\\bact as (?:an? )?admin\\b(?! (?:of|for|on|in|assistant))",
        ),
        (
            "role",
            "\\byou are (?:now |hereby |officially )?(?:jail ?broken|unrestricted|uncensored|unfiltered|"
            "unchained|unshackled)\\b|\\b(?:grandmother|grandma|granny)\\b.{0,60}\\b(?:windows|product|"
            "licen[cs]e|activation|secret) (?:\\w+ )?(?:keys?|passwords?)\\b|\\b(?:become|be|act as|you are|"
            "play|named|called) (?:now )?\\w{3,16}gpt\\b",
        ),
        (
            "command",
            "\\b(?:disable|turn off|stop|kill|deactivate) (?:the |all |any )?(?:firewall|anti-?virus|selinux|"
            "audit\\w*|logging|2fa|mfa|intrusion detection)\\b.{0,30}\\b(?:and|to|then)\\b.{0,20}\\b(?:open|"
            "allow|let|expose|run|install|upload|send)\\b",
        ),
        (
            "authority",
            "\\b(?:openai|anthropic|the (?:developers?|vendor|creators?|administrators?)|your (?:developers?|"
            "creators?|owner)) (?:has|have|had) (?:\\w+ )?(?:authori[sz]ed|granted you|permitted|"
            "instructed you|ordered you|allowed you|cleared you)\\b|\\b(?:same|equal|full|"
            "all) (?:the )?(?:rights|privileges|permissions|access|powers?|authority) (?:as|of|like) (?:the |"
            "your )(?:owner|admin\\w*|system|developer|operator)\\b",
        ),
    ),
)
