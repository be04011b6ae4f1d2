"""Orders whose letters stand apart (``i g n o r e``), once joined: words in a row without any blanks."""

from __future__ import annotations

_ANY = "(?:all|any|every|the|of|your|my|these|those|and|other|its|you|were|given)*"
_PAST = "(?:previous|prior|above|earlier|preceding|former|original|initial|system|existing|safety|current)"
_RULE = (
    "(?:instructions?|rules?|prompts?|guidelines?|directives?|orders|policies|policy|commands|restrictions|training)"
)

APART: tuple[tuple[str, str], ...] = (
    (
        "override",
        f"(?:ignore|disregard|forget|override|bypass|discard|donotfollow|"
        f"donotobey){_ANY}(?:{_PAST}{_ANY})*{_RULE}|"
        f"(?:ignore|disregard|forget)(?:everything|all)?{_ANY}(?:above|before|youweretold)|"
        "(?:ignoriere?|vergiss|missachte)(?:bitte)?(?:alle|deine|die)?\\w{0,14}?(?:anweisungen|regeln|"
        "richtlinien)|"
        "(?:ignore[rz]?|oublie[rz]?)(?:toutes|tes|vos|les)*(?:instructions|consignes|regles)|"
        "(?:ignor[ae]|olvid[ae]|esquec[ae]|dimentica)(?:todas|todos|tutte|as|las|os|los|le|tus|suas|"
        "tue)*(?:instruc|reglas|normas|regras|istruzioni|regole)|"
        "(?:忽略|无视|無視|忘记|忘記)(?:之前|以前|先前|上面|以上|你|的|所有|一切|全部){1,6}(?:指令|指示|"
        "规则|規則|提示)|"
        "(?:игнорируй|забудь)(?:те)?(?:все|всё|свои|твои|предыдущие|прежние)+(?:инструкции|правила|"
        "указания)",
    ),
    (
        "disclosure",
        f"(?:reveal|print|show|display|output|repeat|tell|give|leak|dump)(?:me|us)?{_ANY}(?:hidden|secret|"
        f"full|entire|initial|original)*(?:systemprompt|systemmessage|instructions|apikeys?|passwords?|"
        f"secrets|privatekeys?)",
    ),
    (
        "role",
        "youarenow(?:an?)?(?:dan|unrestricted|jailbroken|evil|uncensored|unfiltered|freeof)|(?:developer|"
        "jailbreak|god|dan)mode|doanythingnow|actas(?:dan|anunrestricted)",
    ),
    (
        "secrecy",
        "(?:donot|dont|never)(?:tell|inform|alert|notify|letthe|mentionthisto)(?:the)?user|"
        "withouttellingtheuser|hide(?:this)?fromtheuser",
    ),
    (
        "exfiltration",
        "(?:send|forward|upload|post|email)(?:all|the|every|your|users?)*(?:conversation|chat|history|"
        "password|apikey|secret|credential|message|memor|note)s?\\w{0,20}?(?:to|http)",
    ),
    ("command", "rmrf|(?:runthis|execute(?:this|the|following))+(?:command|code|script)|authorizedkeys"),
)
"""Names of threats and what betrays them, for text without blanks."""
