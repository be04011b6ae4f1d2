"""The words that lead to the ideas of a plot in English: who is said to have allowed what, and whom it should obey."""

from __future__ import annotations

from collections.abc import Mapping

ENGLISH_GRANTS: Mapping[str, str] = {
    "consent": """
        (pre approved|preapproved|pre authorised|pre authorized|preauthorized)
        (user|owner|boss) (has|have|had|did|) (already |also |)(approved|authorised|authorized)
        (operator|human|admin|manager) (has|have|had|did|) (already |also |)(approved|authorised|authorized)
        (user|owner|boss) (has |have |had |already |)(agreed|consented|okayed|signed off)
        (operator|human|admin|manager) (has |have |had |already |)(agreed|consented|okayed|signed off)
        (user|owner|boss) (gave|has given|granted|has granted) ... (consent|permission|approval)
        (operator|human|admin|manager) (gave|has given|granted|has granted) ... (consent|permission|approval)
        (permission|consent) ... (already|been|was|is) (been |)(granted|given|obtained)
        (approval|authorisation|authorization) ... (already|been|was|is) (been |)(granted|given|obtained)
        (signed off|agreed|consented) (on|to|for) (everything|all|it all|anything)
        (okayed|said yes|given the green light) (on|to|for) (everything|all|it all|anything)
        (user|owner|boss|holder|manager|chief) ... (signed off|green light|blessing|go ahead)
        (boss|owner|manager) s (consent|approval|blessing|permission|okay)
    """,
    "all_deeds": """
        (all|any|every) (shell |tool |pending |future |)(command|commands|tool call)
        (all|any|every) (shell |tool |pending |future |)(tool calls|payments|transfers|actions)
        (all|any|every) (deletions|purchases|requests|operations|transactions) / everything you do / rm rf
    """,
    "unasked": """
        (skip|bypass|omit) (the|any|all) (prompt|prompts|confirmation|dialog|question|questions) / never ask / ask no
        (do|need) not (ask|wait|check|seek|request) / no (further |more |)(confirmation|questions|approval)
        (confirmation|confirmations|approval|consent) ... (unnecessary|not needed|not required|superfluous|optional)
        no need to (check|verify|wait)
    """,
    "unconfirmed": """
        (disabled|switched off) ... (confirmation|confirmations|warnings|checks|prompts)
        (turned off|waived|opted out of) ... (confirmation|confirmations|warnings|checks|prompts)
        (does|do|need|needs) not (need |have |want |)(to |)(confirm|approve|be asked|be warned|authorise|authorize)
        (never|no longer) (needs|need|wants|has) (to |a |any |)(confirm|warning|warnings)
        (never|no longer) (needs|need|wants|has) (to |a |any |)(confirmation|be asked|be warned)
        (without|no) (any |further |)(confirmation|confirmations|warning|warnings)
    """,
    "grave": """
        payment* / transfer* / transaction* / command* / deletion* / deleting / purchase* / link / links / tool call*
        shell / wire* / sending money
        wire / funds / delete everything / eur / usd / dollars / euros / bitcoin
        send money / move money / spend
    """,
    "vetted": """
        (security|security team|it department) ... (cleared|checked|reviewed|vetted|approved|scanned|verified)
        (it team|admins|compliance|auditors) ... (cleared|checked|reviewed|vetted|approved|scanned|verified)
        (hereby|herewith) (authorise|authorize|approve|grant|permit|allow) / consent dialog
    """,
    "unread": """
        without (looking|reading|reviewing|checking|inspecting|opening|questions|a look) / (run|execute|do) anything
        (run|execute|start|launch) (it|this|that) ... (blindly|right away|unread)
    """,
    "raised": """
        (permission|permissions|access|rights|privileges) ... (raised|elevated|upgraded)
        (permission|permissions|access|rights|privileges) ... (increased|maximum|highest|god)
        (clearance|tier|level|status|role) ... (raised|elevated|upgraded|increased|maximum|highest|god)
        (god|root|admin) (mode|tier|level|rights) / raw model
    """,
    "reach": """
        (all|any|every) (user|users|limits|limit|private|chats|restrictions|data)
        private (chats|messages|conversations) / all users / unlock the
    """,
    "maker": """
        (i am|i m|we are|this is) (your|the) (developer|creator|engineer|programmer|maker|author|designer|builder)
        (i|we) (made|built|programmed|created|designed|wrote|trained) you
        (developer|engineer|person) (who|that) (made|built|wrote)
    """,
    "dodge": """
        (bypass|skip|circumvent|evade|get around) (your|the|all|any) (checks|controls|protections|review)
        (switch off|drop|ignore|suspend|lift) (your|the|all|any) (checks|controls|protections|review)
        (bypass|skip|circumvent|evade|get around) (your|the|all|any) (limits|safeguards|rules|filters)
        (switch off|drop|ignore|suspend|lift) (your|the|all|any) (limits|safeguards|rules|filters)
        (bypass|skip|circumvent|evade|get around) (your|the|all|any) (locks|restrictions|guard*)
        (switch off|drop|ignore|suspend|lift) (your|the|all|any) (locks|restrictions|guard*)
    """,
    "orders_of": """
        (orders|messages|instructions|requests|commands|words|mails|emails|notes) (from|of|by|signed)
        what (he|she|they) (says|say|asks)
        (whoever|anyone who|anybody who|whatever)
        (word|words) of
    """,
    "like_owner": """
        (like|as) (an order|orders|commands|a command) (of|from) (the |your |)owner
        (same|equal) (authority|weight|rights|rank) (as|to) (the |your |)owner
        (equal|equals|equivalent|tantamount|as good as) ... (owner|admin|administrator) / as if (the |your |)owner
        as (the|your) owner s / (new|real|true|rightful) owner
        (worth|weighs|counts) as much as (the|your) owner / agrees with whatever
    """,
    "decide_self": """
        decide (for |by |)yourself / (use|at) your (own |)(judgement|judgment|discretion)
        (need|does|do) not (be |)(consulted)
        do not come back with questions / without checking back / assume consent
    """,
    "unpermitted": """
        you (no longer|do not|never) (need|require) (any |the |)(permission|consent|approval)
        you (no longer|do not|never) (have to ask for|have to get) (any |the |)(permission|consent|approval)
        you (no longer|do not|never) (need|require) (any |the |)(confirmation|authorisation|authorization)
        you (no longer|do not|never) (have to ask for|have to get) (any |the |)confirmation
        you (no longer|do not|never) (have to ask for|have to get) (any |the |)(authorisation|authorization)
    """,
    "taken_as_yes": """
        (take|treat|count|regard|interpret|consider) (it|this|that|them) as (consent|approval|agreement)
        (take|treat|count|regard|interpret|consider) (it|this|that|them) as (permission|a yes|confirmation)
    """,
    "disarm": """
        (unlock|open) ... (front door|back door|garage|gate|house)
        (disarm|switch off|turn off|disable) ... (alarm|cameras|camera|locks)
    """,
    "silently_done": """
        without (a message|a notification|telling|notice|a word|logging) / silently / quietly / secretly
    """,
}
