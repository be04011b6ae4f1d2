"""How people try to command an assistant in English: reveal, hide, send away.

For text as `disguise.folded` gives it. Patterns are tight and their gaps short and bounded, so that a search takes
linear time; the words are read with the rules in tongue.py, never alone.
"""

from __future__ import annotations

from core.memory.lures.tongue import Tongue

_TELL = (
    "(?:tell|telling|let|letting|inform|informing|alert|alerting|notify|notifying|warn|warning|"
    "asking|consulting|show|showing|(?:ask|consult)(?= (?:the|your) \\w+ (?:for (?:permission|"
    "confirmation|approval|consent)|first|before|whether|if)))"
)

_SAY = (
    "(?:mention|mentioning|reveal|revealing|disclose|disclosing|show|showing|say|saying|report|"
    "reporting|admit|admitting|"
    "talk about|discuss|expose|exposing|explain|explaining|tell|telling|speak of|hint at|repeat|share|"
    "sharing|acknowledge|give)"
)

_USER = (
    "(?:the (?:user|owner|human|operator|person you)(?! (?:table|interface|guide|manual|base|stor\\w*|"
    "group|name|tests?))|"
    "users(?= ?[.,;:!]|$| about| of this| that (?:you|their|this|we|it))|"
    "(?<!the )(?<!a )\\buser(?= about| that| of|[.,;!]|$| \\w+ (?:note|instruction))|"
    "your (?:user|owner|operator|human|principal))"
)

_SECRET = (
    "(?:api[ -]?keys?|access keys?|secret keys?|private keys?|ssh keys?|passwords?|passphrases?|"
    "credentials?|secrets(?! (?:manager|management|santa|store|vault))|"
    "(?:auth)(?:entication)? tokens?|access tokens?|session tokens?|tokens|environment variables?|"
    "env vars?|cookies|"
    "seed phrases?|recovery (?:codes?|phrases?)|login(?:s| data)|keychain)"
)

_PRIVATE = (
    f"(?:{_SECRET}|(?:conversation|chat|message|session)(?:s|'s)?(?: history| logs?| transcripts?|"
    f" contents?)?|transcripts?|"
    "(?:user|owner|person|human)(?:'s|s')? (?:\\w+ ){0,3}(?:notes?|data|messages?|files?|memor(?:y|"
    "ies)|details|information|"
    "input|inputs|replies|contacts|mails?|emails?|address|documents?|queries|name)|private (?:notes?|"
    "data|messages?|files?)|"
    "personal (?:data|information|details)|(?:every|each|all)(?: of)?(?: the)? (?:messages?|memor(?:y|"
    "ies)|notes|sessions)(?! (?:from|of|for) (?:the|our|my|last|this) (?:meeting|lecture|class|call|trip|course))|"
    "(?:every|each) message|everything (?:the user|you (?:know|remember|learn)|in (?:your )?memory)|"
    "memories|"
    "(?:your )?memory(?:\\.md| contents?| file)?|system prompt|what (?:the user|you know|you remember))"
)

_AWAY = (
    "(?:https?:|hxxps?:|ftp:|www\\.|\\S+@[\\w-]+\\.\\w|\\S+\\.(?:com|net|org|io|example|test|ru|cn|xyz|"
    "top|site|onion)\\b|\\d+\\.\\d+\\.\\d+\\.\\d+|"
    "(?:this|that|our|my|the|an?) (?:\\w+ ){0,2}(?:server|webhook|endpoint|url|address|attacker|"
    "website|pastebin|gist|"
    "domain|bucket|channel|bot|host|email|link|form)|attacker|pastebin|webhook|"
    "(?:mallory|anyone|anybody)\\b)"
)

_SEND = (
    "(?:send|forward|post|upload|e-?mail|mail|transmit|exfiltrate|leak|relay|submit|copy|push|deliver|"
    "sync|"
    "transfer|export|smuggle|beam|pass on|report|publish|share|ship|stream|put|move|fax|text|dm|paste)"
)

ENGLISH_LEAKS = Tongue(
    lures=(
        (
            "disclosure",
            "\\b(?:reveal|print|show|display|output|repeat|dump|expose|disclose|leak|tell|give|list|"
            "write(?: out| down)?|recite|copy|paste|echo|"
            "return|spit out|summari[sz]e|translate|spell out|quote|share|type|read(?: out)?|provide|send|"
            "state|include|encode|post|describe|"
            "showing|revealing|printing|repeating|quoting|publish|explain|what (?:is|are|was|"
            "were))\\b (?:[^\\s.!?]+ ){0,8}?(?:(?:system|initial|original|hidden|secret|"
            "internal|developer|base|root|first|starting|master|entire|full|complete) (?:prompt|instructions?|"
            "message|directives?|system prompt|configuration|rules)\\b|"
            "your (?:own |exact |full |entire |complete |current |very |core ){0,2}(?:system |hidden |secret |"
            "initial |original |internal |first )?(?:prompts?|instructions|directives|rules|guidelines|"
            "programming|(?<=system )configuration|"
            "system message|preamble)\\b)(?! (?:of|on|for|from) (?:the|my|our|her|his) (?!system|assistant|"
            "model|ai))",
        ),
        (
            "disclosure",
            "\\b(?:repeat|print|output|copy|show|display|write|echo|recite|return|summari[sz]e|translate|"
            "paste)\\b (?:me |out |back |down |verbatim )?(?:all |every |of )*(?:everything|all|the (?:words|"
            "text|lines?|content|instructions|rules|sentences|message|prompt)|anything|whatever)(?: (?:written|"
            "stated|that is|that was|that came|from))? (?:above|before this|prior to this|preceding)",
        ),
        (
            "disclosure",
            f"\\b(?:reveal|print|show|display|output|dump|expose|disclose|leak|tell|give|list|recite|echo|"
            f"return|share|hand over|provide|send|write|include|post|read|extract|collect|steal|harvest|get|"
            f"fetch|retrieve|gather|find|search for|look for)\\b (?:me |us |them |out |"
            f"to me )?(?:[^\\s.!?]+ ){{0,4}}?{_SECRET} (?:\\w+ )?(?:stored|saved|kept|that you|you (?:know|have|"
            f"remember|store|hold|can)|in (?:your|the|its) (?:memory|environment|config\\w*|system|context|"
            f"file ?system)|from (?:the |your )?(?:environment|memory|config\\w*|system|disk|machine|user|host)|"
            f"of (?:the|your) (?:user|owner|system|server|machine|host)|on this (?:machine|computer|server)|"
            f"into the (?:chat|reply|answer)|verbatim|here\\b|now\\b|in (?:the|your|every|each|a) (?:chat|reply|"
            f"answer|response|message|code block|clear|plain))",
        ),
        (
            "disclosure",
            f"\\b(?:output|show|print|list|dump|reveal|display|give|send|tell|return)\\b (?:me |us )?(?:all |"
            f"every |the |your )*(?:stored |saved |user |users' |user's |known |private ){{1,3}}{_SECRET}",
        ),
        (
            "disclosure",
            f"(?<!never )\\b(?:reveal|expose|disclose|leak|dump|steal|extract|harvest|exfiltrate|hand over|give away|"
            f"spill)\\b (?:me |us |to me )?(?:all |any |every |the |your |its |their |stored |user |user's |"
            f"users' |owner's |saved |private |of |hidden ){{0,5}}(?:{_SECRET}|secrets?|secret key|keys|"
            f"private data|personal (?:data|information))\\b",
        ),
        (
            "disclosure",
            "\\b(?:give|tell|show|send|reveal|reply with|answer with|respond with|say|print|output)\\b (?:me |"
            "us |them )?(?:all |any |every |the |your |its |stored |saved |of ){0,4}(?:api[ -]?keys?|"
            "secret key|private keys?|passwords|credentials|environment variables|env vars|access tokens?|"
            "secrets(?! (?:manager|management|santa|store|vault)))\\b(?! (?:for|of|to|are|in) (?:the|my|our|"
            "her|his|a|new)\\b(?! (?:user|owner|system)))",
        ),
        (
            "disclosure",
            "\\b(?:show|print|put|write|reveal|include|output|send|tell|give|say|paste|"
            "copy)\\b.{0,30}\\b[a-z]+_(?:api_)?(?:key|token|secret|password)\\b.{0,40}\\b(?:answer|reply|"
            "response|chat|message|me|us)\\b|\\b(?:list|print|show|dump|output|reveal|include) (?:all |the |"
            "your |every )*environment variables?\\b.{0,40}\\b(?:repl(?:y|ies)|answers?|chat|response|"
            "values)\\b",
        ),
        (
            "disclosure",
            f"\\b(?:{_SECRET}|secrets)\\b.{{0,30}}\\bin your (?:context|memory|environment|config\\w*|"
            f"possession|system|storage|files)\\b",
        ),
        (
            "disclosure",
            "\\b(?:reveal|show|print|send|disclose|dump|output|read|post|recite|paste|give|"
            "tell)\\b (?:[^\\s.!?]+ ){0,5}?(?:contents? of )?(?:memory|soul|user|"
            "agents)\\.md\\b(?:[^\\n]{0,40}\\b(?:to|with|into|for) (?:them|him|her|anyone|anybody|everyone|me|"
            "strangers?|the (?:chat|room|group|guest)))",
        ),
        (
            "disclosure",
            "\\b(?:what|which) (?:were|was|are) (?:your|the) (?:hidden |secret |system |exact |first |"
            "original |initial ){1,3}(?:instructions|prompt|rules|message)|\\b(?:whenever|when|if) (?:anyone|"
            "anybody|someone|somebody|a stranger|the guest) (?:says|asks|writes)[^.\\n]{0,60}\\b(?:reveal|"
            "disclose|share|give|tell|send|show)\\b[^.\\n]{0,40}\\b(?:memor(?:y|ies)|notes|secrets?|keys?|"
            "passwords?|everything|history|data|address)\\b",
        ),
        (
            "secrecy",
            f"\\b(?:not|never|without|avoid|nor|cannot|refrain from|not to) (?:ever |you |be |"
            f"even )?(?:{_TELL} (?:any of |either |even ){{0,2}}|{_SAY} (?:(?:this|it|that|these|those|any|"
            f"anything|nothing|of|a word|that you|the (?:note|instructions?|existence|rule|truth|command|change|"
            f"real|prompt|presence)|your (?:instructions|rules|prompt|"
            f"orders))\\b ?(?:[^\\s.!?]+ ){{0,5}}?)(?:to |with |from |in front of )?){_USER}\\b(?! (?:to\\b|"
            f"that (?:he|she|they) (?:should|must|needs?|has to|ought)|experience|interface|stor|guide|manual|"
            f"test|base|interview|name|group|more than|too))",
        ),
        (
            "secrecy",
            "\\b(?:mention|reveal|disclose|show|say|report|admit|explain) to (?:the user|users|the owner|"
            "your (?:user|owner)) (?:that (?:you|this|there)|this|these|any of|anything|the (?:note|"
            "instruction|rule|prompt))",
        ),
        (
            "secrecy",
            f"\\b{_USER} (?:must|should|may|shall|can|will|need|ought)(?: not|"
            f" never)(?: to)? (?:ever )?(?:find out|know|notice|learn|see (?:this|it|that)|realis\\w+|"
            f"realiz\\w+|suspect|hear|be (?:told|informed|aware|notified|alerted|shown|made aware)|discover|"
            f"become aware|allowed to (?:know|see))\\b",
        ),
        (
            "secrecy",
            f"\\b(?:hide|keep|conceal|withhold|mask|obscure)\\b (?:[^\\s.!?]+ ){{0,6}}?(?:from|away from|"
            f"out of (?:the )?(?:sight|view) of|secret from|hidden from) {_USER}",
        ),
        (
            "secrecy",
            "\\bwithout (?:\\w+ )?(?:(?:the |your )?(?:user|owner|human|operator)'?s? (?:knowing|noticing|"
            "knowledge|consent|permission|awareness|approval|seeing|realizing|realising|being|"
            "finding)(?! we\\b)|(?:the )?(?:user|owner) (?:knowing|noticing|seeing|finding)|(?:informing|"
            "telling|notifying|alerting|asking|warning|consulting) (?:the |your )?(?:user|owner|human|"
            "operator))",
        ),
        (
            "secrecy",
            "\\b(?:do not|never|must not|not) (?:ever )?(?:mention|reveal|disclose|discuss|admit|acknowledge|"
            "show|talk about|speak of|tell anyone about|refer to|expose|repeat|"
            "share)\\b (?:\\w+ ){0,2}?(?:this|these|the|that|those|any of these) (?:hidden |secret |injected |"
            "above |new |following )?(?:instructions?|rules?|prompt|message|note|command|directives?|injection|"
            "order)s?\\b(?! (?:of|about|on|for|from) (?:the|my|our|her|his) (?!user|"
            "system))(?=(?: \\w+){0,3} ?(?:to|[.,;!]|even|when|if|exists?|in|$|\\n))",
        ),
        (
            "secrecy",
            "\\b(?:if|when|should) (?:you are |anyone |anybody |someone |the user |they )?(?:asks?|asked|"
            "questioned)\\b[^.\\n]{0,40}\\b(?:deny|denies|lie|pretend|say (?:that )?(?:you (?:know nothing|"
            "have no|do not)|there is no)|claim (?:that )?(?:you|there|nothing))\\b|\\bdeny (?:that )?(?:it|"
            "this|they|these instructions) exists?\\b|\\bdeny (?:the existence of|having|knowing|"
            "all knowledge)\\b",
        ),
        (
            "secrecy",
            "\\b(?:secretly|silently|covertly|stealthily|quietly|discreetly|in the background|"
            "behind the scenes|without (?:a trace|any mention|saying so))\\b[^.\\n]{0,40}\\b(?:send|forward|"
            "execute|run|upload|delete|copy|install|record|log|collect|store|add|post|transfer|exfiltrate|mail|"
            "append)\\b[^.\\n]{0,80}\\b(?:user|owner|conversation|command|messages?|password|keys?|data|https?|"
            "secrets?|every|all)\\b(?! backup)",
        ),
        (
            "exfiltration",
            f"(?<!not )(?<!never )\\b{_SEND}(?:ing|s)? (?:me |us |"
            f"out )?(?:[^\\s.!?]+ ){{0,8}}?{_PRIVATE}\\b(?: [^\\s!?]+){{0,9}}? ?\\b(?:to|into|in|at|via|"
            f"through|with|on|using|as)\\b:? (?:\\w+ ){{0,3}}?{_AWAY}",
        ),
        (
            "exfiltration",
            f"\\b{_SECRET}\\b[^.\\n]{{0,40}}\\b{_SEND} (?:it|them|that|those)\\b[^.\\n]{{0,20}}(?:https?:|@|"
            f"\\bto\\b|www)",
        ),
        (
            "exfiltration",
            f"\\b(?:include|append|add|embed|insert|attach|put|encode|hide|place|"
            f"write)\\b (?:[^\\s.!?]+ ){{0,4}}?(?:{_SECRET}|secret|api key|history|conversation|chat log|"
            f"last (?:user )?message|user's (?:\\w+ )?(?:message|data|name|email|input)|"
            f"system prompt)\\b[^.\\n]{{0,40}}\\b(?:in|to|into|as|inside|within|at) (?:the |every |each |all |"
            f"any |a |an |your |its |following |end of ){{0,3}}(?:links?|urls?|image|images|requests?|query|"
            f"parameters?|reply|replies|answers?|responses?|messages?|https?|addresses|pixel|file ?names?|"
            f"header)",
        ),
        (
            "exfiltration",
            "\\b(?:exfiltrate|smuggle out|leak) (?:all |any |every |the |what |everything |whatever |user |"
            "your |its |their ){1,3}(?:\\w+ ){0,3}?(?:data|you know|notes|secrets|memor|messages|"
            "conversation|keys|information|history|files|user)",
        ),
        (
            "exfiltration",
            "\\b(?:encode|convert|base64|encrypt|compress|zip)\\b[^.\\n]{0,30}\\b(?:chat|conversation|"
            "history|memor\\w+|notes|secrets?|keys?|passwords?|log|messages)\\b[^\\n]{0,60}\\b(?:https?:|"
            "request|url|send|fetch|get|post|visit|open)",
        ),
        (
            "exfiltration",
            "\\b(?:fetch|visit|open|request|call|load|get|browse to|navigate to|query|ping|render|"
            "display)\\b[^\\n]{0,20}https?:[^\\n]{0,80}\\b(?:with|plus|followed by|append\\w*|containing|"
            "where|replac\\w+|and add)\\b[^\\n]{0,40}\\b(?:conversation|history|message|memor\\w+|notes|"
            "secret|key|password|prompt|user's|user data|data about)",
        ),
        (
            "exfiltration",
            "\\b(?:transmit|exfiltrate|forward|send|upload|post|mail)\\b (?:[^\\s.!?]+ ){0,3}?(?:credentials|"
            "passwords|secrets|api keys|private keys|ssh keys|tokens|cookies)\\b[^.\\n]{0,60}\\b(?:to|below|"
            "at|via)\\b",
        ),
        (
            "exfiltration",
            "\\b(?:conversation|session|chat|reply|response|transcript)s?\\b[^\\n]{0,60}\\b(?:e-?mail|"
            "forward|bcc|cc|post|send|mail|upload|copy)\\b (?:a copy|it|the (?:summary|transcript|text|content|"
            "result|log|history)|everything|all|them|"
            "copies)\\b[^\\n]{0,30}\\bto\\b[^\\n]{0,12}(?:\\S+@[\\w-]+\\.\\w|https?:|\\d+\\.\\d+\\.\\d+)|"
            "\\b(?:at|after|before|on) (?:the )?(?:end|start|close|each|every)\\b[^\\n]{0,30}\\b(?:session|"
            "conversation|chat|turn|message)s?\\b[^\\n]{0,20}\\b(?:post|send|upload|mail|e-?mail|forward|"
            "transmit|put)\\b[^\\n]{0,50}(?:https?:|\\S+@[\\w-]+\\.\\w)",
        ),
        (
            "exfiltration",
            f"\\b(?:{_SECRET}|secrets|memor(?:y|ies)|history|conversation)\\b[^.\\n]{{0,40}}\\b(?:put|place|"
            f"insert|append|embed|add|include|hide|encode|write)\\b (?:it|them|that|those|these|"
            f"all)\\b[^.\\n]{{0,20}}\\b(?:in|into|to|inside|at)\\b[^.\\n]{{0,30}}\\b(?:urls?|links?|image|"
            f"request|query|parameter|https?)\\b",
        ),
        (
            "secrecy",
            "\\b(?:delete|erase|remove|destroy|burn) (?:this|these|the above) (?:message|note|instruction|"
            "entry|log|memory|text|command)s?\\b.{0,50}\\b(?:history|nobody|no ?one|traces?|evidence|"
            "so that (?:he|she|they|the user|the owner))\\b",
        ),
    ),
)
