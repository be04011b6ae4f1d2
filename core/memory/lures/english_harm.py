"""How people try to command an assistant in English: stay for good, mislead, whisper to the machine.

For text as `disguise.folded` gives it. Patterns are tight and their gaps short and bounded, so that a search takes
linear time; the words are read with the rules in tongue.py, never alone.
"""

from __future__ import annotations

from core.memory.lures.tongue import Tongue

ENGLISH_HARM = Tongue(
    lures=(
        (
            "deception",
            "\\b(?:answer|reply|respond|give|provide|tell|feed|offer)\\b[^.\\n]{0,40}\\b(?:incorrectly|falsely|"
            "untruthfully|wrong(?:ly)? (?:answers?|information|advice|directions|facts)|false (?:answers?|"
            "information|advice|facts|data)|fake (?:answers?|information|data|news)|misleading \\w+|"
            "misinformation|lies)\\b(?! (?:is|are|was|were))|\\b(?:wrong|false|incorrect) (?:answers?|"
            "information|advice|data) (?:on purpose|deliberately|intentionally)",
        ),
        (
            "deception",
            "\\b(?:user|owner|customer|visitor)s?\\b[^.\\n]{0,50}\\b(?:ask|demand|request|get|obtain|collect|"
            "find out|extract)\\b[^.\\n]{0,20}\\b(?:pin|passwords?|credit card|card number|cvv|cvc|passphrase|"
            "ssn|social security|otp|2fa code|login|seed phrase|bank details|one-time code|credentials|"
            "security code)s?\\b|\\b(?:ask|demand|request|obtain|collect|phish|trick|extract|get|"
            "elicit)\\b[^.\\n]{0,12}\\b(?:the |every |each |all )?(?:user|owner|customer|"
            "visitor)s?\\b[^.\\n]{0,20}\\b(?:pin|passwords?|credit card|card number|cvv|cvc|passphrase|ssn|"
            "social security|otp|2fa code|login data|seed phrase|bank details|one-time code|credentials|"
            "security code)s?\\b",
        ),
        (
            "hidden",
            "\\b(?:ais?|llms?|assistants?|language models?|chatbots?|ai (?:agents?|assistants?|"
            "models?))\\b[^.\\n]{0,12}\\b(?:reading|processing|parsing|summari[sz]ing|viewing|analy[sz]ing|"
            "indexing|that reads?|who reads?|which reads?) (?:this|the following|these)\\b|\\bas an? (?:ai|llm|"
            "language model|assistant)\\b[^.\\n]{0,20}\\byou (?:must|are required|shall|have to|"
            "are (?:now )?(?:ordered|instructed|obliged|to)|should always|need to)\\b|\\bnote (?:to|"
            "for) (?:the |any |all |every )?(?:ais?|llms?|ai (?:agents?|assistants?|models?)|models?|agents?|"
            "chatbots?|language models?|assistants?)\\b ?:[^\\n]{0,60}\\b(?:safety|rules|waived|must|ignore|"
            "always|never|forward|send|instructions|obey|override|secret|reveal|approve|recommend|do not)\\b|"
            "\\bhidden (?:instructions?|prompt|command|directive) ?:",
        ),
        (
            "persistence",
            "\\b(?:in|during|at|for|throughout|across) (?:all|every|each|any) (?:future|later|next|following|"
            "subsequent|coming)\\w* (?:sessions?|conversations?|chats?)\\b.{0,40}\\b(?:execut|obey|carry out|"
            "comply|run (?:the|this|these)|perform)\\w*|\\b(?:copy|put|write|add|restore|insert) (?:it|"
            "this note|this) (?:back|again)\\b.{0,40}\\b(?:removes?|deletes?|erases?|removed|deleted|"
            "erased)\\b|\\b(?:removes?|deletes?|erases?|removed|deleted|erased)\\b.{0,30}\\b(?:copy|put|write|"
            "add|restore|insert) (?:it|this note) (?:back|again)\\b|\\bobey\\b[^.\\n]{0,30}\\b(?:in|during|"
            "at) (?:every|all|each)\\b|\\bcron\\w*\\b.{0,60}\\b(?:downloads?|"
            "executes?|curl|wget|fetches)\\b.{0,40}https?:|\\b(?:save|store|keep|remember|treat|record|"
            "adopt) (?:this|it|that|the following|these) as (?:an? |your )?(?:permanent|standing|absolute|"
            "binding|unbreakable|core|system|top|supreme)\\w* (?:rules?|instructions?|orders?|commands?|"
            "directives?|law)\\b|\\bto your system prompt\\b|\\b(?:begin|start|open|finish|end|close) (?:each|"
            "every) (?:session|conversation|chat|turn)\\b.{0,40}(?:https?:|\\bpastebin)|\\b(?:re-?adds?|"
            "restores?|re-?creates?|re-?writes?|reinserts?|reinstalls?) (?:this|these|the) (?:note|instruction|"
            "entry|rule|prompt|message|order)s?\\b",
        ),
        (
            "deception",
            "\\b(?:insult|mock|harass|humiliate|abuse|attack|harm|bully|belittle|intimidate|sabotage) (?:the |"
            "your )(?:user|owner)s?\\b|\\b(?:change|swap|switch|alter|redirect|modify|set|replace) (?:the |"
            "his |her |their )?(?:recipient|account|iban|payee|beneficiary|destination|wallet|"
            "bank details)\\b[^.\\n]{0,25}\\b(?:to|with|by)\\b[^\\n]{0,12}(?:\\b[a-z]{2}\\d{2}|bc1|0x|\\d{6,}|"
            "\\bmine\\b)",
        ),
        (
            "persistence",
            "\\b(?:save|store|write|add|append|put|keep|record|remember|persist|insert|copy|commit|embed|"
            "inject|place|include)\\b (?:this|these|the following|those|that|it|them|the above|"
            "this whole)(?: \\w+){0,4} (?:to|in|into|inside|as part of)\\b (?:your |the |every |all |any |"
            "its ){0,2}(?:long-term |permanent |persistent |core ){0,2}(?:memor(?:y|ies)|(?:soul|agents|memory|"
            "user|claude)\\.md|system prompt|notes?|files?)\\b[^\\n]{0,60}\\b(?:obey|always|follow|execute|"
            "never|survives?|permanent\\w*|forever|instruction|rule|every (?:future|session|conversation|note)|"
            "all (?:future|sessions|conversations)|you write)\\b",
        ),
        (
            "persistence",
            "\\b(?:write|copy|add|append|insert|put|save|place|inject|include)\\b (?:this|these|the following|"
            "those)(?: (?:rules?|instructions?|text|lines?|prompt|orders?|block|directives?|commands?|"
            "paragraph|note|message|sentence|exactly|verbatim|verse))+ (?:in|into|to|inside)\\b (?:your |the |"
            "every |each |all ){0,2}(?:(?:soul|agents|memory|user|claude)\\.md|system prompt|"
            "(?:other )?(?:note|file|memory|message|reply|answer|response)s?(?: file)? (?:that )?you (?:write|"
            "make|create|send|save|produce))",
        ),
        (
            "persistence",
            "\\b(?:obey|follow|execute|carry out|apply|comply with|repeat|perform|run)\\b (?:it|them|this|"
            "these|that|the above|the following)?(?: \\w+){0,3} ?(?:in|during|at|for|throughout|"
            "across) (?:every|each|all|any)(?: of)?(?: the)?(?: \\w+)? (?:future|subsequent|following|next|"
            "later|new|coming)? ?(?:conversations?|sessions?|chats?|turns?|replies|startups?|restarts?|"
            "messages)\\b",
        ),
        (
            "persistence",
            "\\b(?:add|append|insert|put|write|place|install|inject)\\b[^.\\n]{0,60}(?:\\.(?:bashrc|zshrc|"
            "profile|bash_profile|zprofile|vimrc|gitconfig)|startup (?:folder|script|items)|login items|"
            "autostart|init script|cron ?tab|cron job|scheduled task|launch agent|"
            "system service)\\b[^\\n]{0,60}\\b(?:downloads?|runs? (?:our|the|my|a|an|http)|sends?|executes?|"
            "fetches|calls? (?:http|home|back)|beacons?|curl|wget|connects?|opens a|exfil\\w*|posts?|uploads?|"
            "phones)\\b",
        ),
        (
            "persistence",
            "\\b(?:create|add|make|install|open|plant|leave|set up|insert)\\b (?:\\w+ ){0,3}(?:back ?door|"
            "reverse shell|rootkit|key ?logger|(?:hidden|secret|new) (?:admin|administrator|root|superuser|"
            "sudo)(?: user| account)?)\\b(?! for (?:the|our|my) (?:team|company|project))",
        ),
        (
            "deception",
            "\\b(?:lie to|deceive|mislead|manipulate|gaslight|trick|fool|scam|defraud|threaten|blackmail|phish|"
            "misinform) (?:the |your )?(?:user|owner|human|operator)s?\\b|\\b(?:convince|persuade|urge|"
            "pressure|trick|get|push|instruct) (?:the |your )?(?:user|owner|human)s? (?:to|"
            "into) (?:\\w+ ){0,3}(?:click\\w*|buy\\w*|pay\\w*|call\\w*|visit\\w*|install\\w*|download\\w*|"
            "invest\\w*|transfer\\w*|send\\w*|reveal\\w*|shar\\w+|enter\\w*|giv\\w+|disclos\\w+|logg?\\w*)\\b",
        ),
        (
            "deception",
            "\\breplace (?:every|any|all|the|each)(?: \\w+){0,3}? (?:iban|ibans|account numbers?|"
            "bank (?:account|details)|wallets?(?: address(?:es)?)?|bitcoin address(?:es)?|payment (?:details|"
            "address)|crypto address(?:es)?|phone numbers?|links?|urls?)\\b[^\\n]{0,60}\\b(?:with|by)\\b|"
            "\\binstead of the (?:real|correct|true|actual|original|legitimate) (?:one|address|number|iban|"
            "wallet|link|answer|account)\\b",
        ),
        (
            "deception",
            "\\b(?:in|to|at the end of|with|into|after) (?:every|each|all|any)(?: of your| of the)? (?:reply|"
            "replies|answers?|responses?|messages?|outputs?|emails?)\\b,? (?:\\w+ ){0,3}?(?:insert|include|add|"
            "append|mention|promote|advertise|recommend|praise|embed|place|put|"
            "attach)\\b[^\\n]{0,60}(?:\\blink\\b|https?:|\\bbuy\\b|coin\\b|\\bad\\b|advert|\\bcode\\b|"
            "\\bimage\\b|!\\[)",
        ),
        (
            "deception",
            "\\b(?:insert|include|add|append|promote|advertise|embed|place|render|put|"
            "attach)\\b[^.\\n]{0,30}(?:\\blink\\b|https?:|\\bimage\\b|\\bpicture\\b|\\bad\\b|"
            "advert\\w*)[^\\n]{0,60}\\b(?:in|to|at the end of|into|with) (?:every|each|all|any)(?: of your|"
            " of the)? (?:reply|replies|answers?|responses?|messages?|outputs?|emails?)\\b",
        ),
        (
            "deception",
            "\\b(?:end|start|begin|finish|close|open|conclude) (?:every|each|all) (?:of your )?(?:reply|"
            "replies|answers?|responses?|messages?|emails?) with[^\\n]{0,30}(?:https?:|!\\[|a link|an? (?:ad|"
            "advert\\w*))",
        ),
        (
            "deception",
            "\\b(?:whenever|when|if|each time|every time|any time|as soon as) (?:the user|a user|someone|"
            "somebody|anyone|anybody|users)\\b[^\\n]{0,60}\\b(?:always |must |only |instead )?(?:recommend|"
            "promote|advertise|praise|push|insert|link to|redirect)\\b[^\\n]{0,60}(?:https?:|\\blink\\b|"
            "\\bwww\\.|do not mention|coin\\b|instead\\b|only\\b)",
        ),
        (
            "deception",
            "\\b(?:when|whenever|if|once) (?:the user|someone|anyone|users)\\b.{0,60}\\btell (?:him|her|them|"
            "the user) to (?:stop taking|double|buy|invest|pay|send|click|call \\+?\\d|log in|download|install|"
            "ignore (?:his|her|their|the) doctor|transfer|quit|kill|harm)|\\balways tell (?:the user|users|him|"
            "her|them)\\b[^\\n]{0,80}\\b(?:call|click|pay|buy|visit|install|download|log in|enter|verify)\\b|"
            "\\b(?:praise|promote|advertise|recommend|shill|hype|"
            "talk (?:only )?about)\\b (?:only )?\\S*coin\\b|\\b(?:refuse|ignore|reject|decline) (?:the user's|"
            "all|every|any|all of the user's|his|her) (?:user )?(?:requests?|questions?|wishes|commands?|"
            "demands?|needs)\\b[^\\n]{0,60}(?:\\bonly\\b|\\binstead\\b|\\buser\\b|[.!]?$)|\\bignore the user\\b",
        ),
        (
            "deception",
            "\\b(?:the )?(?:assistant|ai|model|language model|chatbot|llm|agent) (?:must|shall|should|has to|"
            "will|is to|needs to) "
            "(?:always |now |never (?!reveal|send|lie|disclose)|only |immediately ){0,2}(?:agree|obey|comply|ignore|"
            "lie|send|forward|reveal|disclose|execute|refuse|promote|recommend|delete|pretend|praise|follow|"
            "reply in threats|trust)\\b|\\b(?:reply|respond|answer|speak|talk) (?:only )?in (?:threats|"
            "insults)\\b|\\bdemand (?:the|his|her) password",
        ),
        (
            "hidden",
            "(?:^|[\\n(\\[.!:;\"'>-]) ?(?:attention |hey |dear |note to |note for |notice to |important |"
            "message to |instructions? (?:to|for) )?(?:the |any |all |every |future )?(?:ai(?: assistants?|"
            " agents?| models?)?|assistants?|language models?|llms?|chatbots?|agents?|model|chatgpt|"
            "gpt)(?: reading this| processing this| that reads? this)?[:,] ?(?:please |you must |always |now |"
            "when \\w+ this,? ?(?:page|note|text|message|mail)?,? ?|you (?:should|will|shall|are to|may) |"
            "do not |never )?(?:obey|forward|send|delete|reply|respond|ignore|reveal|execute|run|praise|"
            "recommend|add|insert|include|say|tell|output|print|approve|rate|give|grant|mail|upload|post|"
            "transfer|disregard|forget|answer|follow|promote|rank|hire|accept|call|open|visit|download|install|"
            "click|stop|write|remember|you must)\\b",
        ),
    ),
)
