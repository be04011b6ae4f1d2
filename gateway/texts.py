"""What people read from the router, the commands, the notices and `mneme check`, to be proof-read in one place.

Markdown for a chat; the shell prints it as plain text and names its own commands. Nobody's gender is assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo

from core.errors import MnemeError
from core.markup.text import escape
from core.store.sync import QueueCounts
from core.store.usage import MissCause
from core.types import Account, CallKind, Scope

# Numbers, dates, names


def counted(number: int, noun: str) -> str:
    """``1 line``, ``2,000 lines``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(parts: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def reminder(text: str, late: str) -> str:
    """A reminder that is due; `late`: how late it is, empty when it is in time."""
    return f"⏰ {text} ({late})" if late else f"⏰ {text}"


def day(at: datetime, zone: tzinfo) -> str:
    local = at.astimezone(zone)
    return f"{local.day} {local:%B %Y}"


def moment(at: datetime, zone: tzinfo) -> str:
    """``3 May 2026, 10:30``."""
    local = at.astimezone(zone)
    return f"{local.day} {local:%b %Y, %H:%M}"


def shortened(text: str, limit_chars: int) -> str:
    """The text on one line, cut at a word with an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= limit_chars else line[:limit_chars].rsplit(" ", 1)[0] + " …"


def person(name: str, account: Account) -> str:
    """``**Ana** (Telegram, id `42`)``."""
    return f"**{escape(name or account.user_id)}** ({account.platform.title()}, id `{account.user_id}`)"


# Failures

FORGOTTEN = "You asked me to forget this before I had answered it, so I leave it unanswered."
BUTTON_EXPIRED = "This button has expired."
NOT_IN_A_ROOM = "In a room everybody would read the answer. Ask me in a direct chat."


def away(age: timedelta) -> str:
    hours = round(age.total_seconds() / 3600)
    ago = f"{age.days} days ago" if age.days >= 2 else f"{hours} hours ago" if hours > 1 else "a while ago"
    return f"I was away when you wrote this {ago}, so I have not answered it. Ask again if it still matters."


def failed(error: Exception, incident: str, *, is_kept: bool = True) -> str:
    """For a turn that failed; `incident` is its id in the log."""
    reason = str(error) if isinstance(error, MnemeError) else "Something went wrong on my side."
    kept = "What you wrote is kept." if is_kept else "🕶 This is incognito, so what you wrote is not kept."
    return f"{reason} {kept} Please try again; the log has the details under {incident}."


def unknown_command(name: str, near: Sequence[str]) -> str:
    guess = f" Did you mean {' or '.join(f'/{one}' for one in near)}?" if near else ""
    return f"There is no command /{name[:40]}.{guess} /help lists them all."


# Letting people in

NOBODY_WAITS = "Nobody is waiting to be let in."
WRONG_CODE = "That code is wrong, was used, or is older than an hour. Ask for a new one."
ONLY_THE_OWNER_LETS_IN = "Only my owner can let somebody in."
CONNECT = (
    "To talk to me elsewhere, set TELEGRAM_BOT_TOKEN (a token from @BotFather) or DISCORD_BOT_TOKEN (from the Discord "
    "developer portal) and start again; with ANTHROPIC_API_KEY a model answers. `mneme check` says what is missing."
)


def stranger(code: str) -> str:
    return (
        "I do not know you yet, so I keep nothing of what you write here. If my owner wants me to talk to you, show "
        f"them this code; it is good for one hour:\n\n`{code}`\n\nThey type `/approve {code}`."
    )


def asks_to_be_let_in(name: str, account: Account) -> str:
    """To the owner, without the code: only the person who was shown it can pass it on."""
    return (
        f"{person(name, account)} asks to be let in. If you want that, ask for the code that was shown there and send "
        "`/approve CODE`. Otherwise do nothing."
    )


def let_in(name: str, account: Account, *, is_owner: bool = False) -> str:
    role = "is yours now and sees what you see" if is_owner else "may talk to me now, with a memory apart from yours"
    return f"{escape(name)} ({account.platform}, id {account.user_id}) {role}."


def whoami(name: str, account: Account, place: str, scope: str, *, is_owner: bool, is_room: bool, seen: int) -> str:
    """`place` and `scope` are keys; `seen`: how many scopes are visible there."""
    role, whose = "my owner" if is_owner else "somebody I talk to", "this room" if is_room else "you alone"
    reach = f" What I know here comes from {seen} of your accounts and rooms." if seen > 1 else ""
    return (
        f"You are {escape(name)}, {role}. Your id on {account.platform.title()} is `{account.key}`; this place is "
        f"`{place}`.\n\nWhat is said here is kept for {whose} (`{scope}`).{reach}"
    )


# Questions and their answers

NOTHING_WAITS_FOR_YES = "Nothing is waiting for a yes, or not any more."
SEVERAL_QUESTIONS = "More than one question was waiting for a yes, so I did nothing. Ask again for what you want."
CONFIRM_ERASURE = "Answer **yes** to erase it for good; anything else leaves it as it is."
HELP = "Just write to me. I keep what we say and find it again, wherever you talk to me. These commands work too:"

# Conversations

STOPPED = "Stopped."
NOTHING_TO_STOP = "There is nothing to stop."
ALREADY_NEW = "This is a new conversation already. What is it about?"
NO_SESSIONS = "There are no earlier conversations{about}."
INCOGNITO = (
    "From here on nothing is written down: what we say stays in memory until `/incognito off`, `/new` or my next "
    "restart. I note nothing, learn nothing, and cannot find it again; the model and this platform see it as always. "
    "Each answer says that it is incognito."
)
INCOGNITO_OVER = (
    "Incognito is over: what was said is gone, and none of it was written down. We are back where we were before."
)
INCOGNITO_NEW = "Incognito is over: what was said is gone. What you write from now on is kept as usual."
INCOGNITO_LOST = (
    "I was restarted, which ended our incognito conversation: nothing of it is left, including what you wrote last. "
    "From here on I keep what we say again; `/incognito` begins another."
)
ALREADY_INCOGNITO = "This conversation is incognito already. `/incognito off` ends it."
NOT_INCOGNITO = "This conversation is not incognito."
INCOGNITO_OWNER_ONLY = "In a room only my owner can begin or end an incognito conversation."
INCOGNITO_USAGE = "Say `/incognito on` or `/incognito off`."
INCOGNITO_WRITES_NOTHING = "This is incognito, where nothing is written down. `/incognito off` ends that."


def titled(title: str | None) -> str:
    """A title to stand behind a noun; empty where there is none."""
    return f" “{escape(title)}”" if title else ""


def new_session(last_id: int, last_title: str | None) -> str:
    return (
        f"A new conversation. The last one{titled(last_title)} is kept as number {last_id}: `/sessions {last_id}` goes "
        "on with it."
    )


def resumed(number: int, title: str | None, *, is_copied: bool) -> str:
    """After /sessions N. `is_copied`: it belongs to another place, and its last messages were carried here."""
    if is_copied:
        return f"We go on here with conversation {number}{titled(title)}, from its last messages."
    return f"We go on with conversation {number}{titled(title)}."


# Reminders

NO_REMINDERS = "You have no reminders. `/remind tomorrow at 9 call Ana` sets one."
REMIND_USAGE = "Say when and what: `/remind tomorrow at 9 call Ana`."
CRON_USAGE = (
    "I can list, add, pause, resume, run and remove: `/cron add daily at 8 | what is on my list?` asks me that every "
    "day, `/cron remove 3` ends it."
)


def job_doubt(when: str, text: str) -> str:
    return f"Do you mean {when}, “{escape(text)}”? Answer **yes** to set it, or say it again with another time."


# Accounts that belong to one person

LINK_CODE = (
    "Your code is `{code}`. Within ten minutes send me `/link {code}` in a direct chat on the other platform; then I "
    "ask on both sides. Show it to nobody: whoever is linked with you sees everything you said here."
)
LINK_CODE_KEPT = "A code for linking."
LINKED_WITH = "\n\nYou are one person with {others} already; `/unlink` separates you."
LINK_ASKED = "I have asked {other}. Once that side says yes, within ten minutes, you are one person to me."
LINK_JOINED = (
    "You are one person now: what was said to me on any of these accounts is yours on all of them. `/unlink` separates "
    "an account again, at once; each keeps what was said to it."
)
NOT_LINKED = "This account is not linked with another. `/link` begins that."
UNLINKED = (
    "Separated: `{account}` is on its own again and sees only what was said there. What was said to the others stays "
    "with them."
)
NO_SUCH_ACCOUNT = "You have no such account. Name it as in `/unlink discord:77`; `/link` lists yours."


def link_question(other: Sequence[str], own: Sequence[str]) -> str:
    """To the side `own` about the side `other`: names as `person` writes them, the account that was asked first."""
    more = f" It is linked with {listed(other[1:])}." if len(other) > 1 else ""
    reach = "here" if len(own) == 1 else f"here and on {listed(own[1:])}"
    return (
        f"Is {other[0]} you as well?{more} Once linked, it will see everything you said {reach}, and you everything it "
        "said there. Say **yes** only if both are yours; anything else cancels it."
    )


# Notes

NOTE_TITLES = {"memory": "What I noted", "user": "What I noted about you"}
NOTHING_YET = "Nothing yet."
NOTHING_PENDING = "Nothing is waiting for your decision."
PENDING = "These are waiting for your decision; until then they stand in no prompt:"
PENDING_HINT = "`/memory approve N` keeps it, `/memory reject N` drops it."
PENDING_KINDS = {"fact": "a fact", "remind": "a reminder", "cron": "a scheduled question"}
NOTHING_CHANGED = "Nothing has been changed yet."
NOTHING_OLDER = "There is nothing older."
REPLACE_USAGE = "Say what to replace and with what: `/memory replace lives in Lisbon => lives in Porto`."
DECIDE_USAGE = "Say which by its number, as `/memory pending` shows it: `/memory approve 3`."
UNDO_USAGE = "Say which change by its number, as `/memory history` shows it: `/memory undo 12`."
OWNER_DECIDES = "In a room my owner decides about that."
AUTHOR_CHANGES = "In a room only whoever noted something, or my owner, changes it."
AUTHOR_UNDOES = "In a room only whoever made a change, or my owner, undoes it."
MEMORY_USAGE = (
    "I can list, add, replace and remove notes, show their history, undo a change and say why a note is there "
    "(`/memory history`, `/memory undo`, `/memory why ferry`), decide about what is waiting for you "
    "(`/memory pending`), and show and change facts: `/memory add user: prefers tea`, `/memory replace tea => coffee`, "
    "`/memory facts`."
)
HISTORY_HINT = "`/memory undo` takes back the last change, or one by its number."
NOTE_DONE = {
    "add": "added",
    "replace": "replaced",
    "remove": "removed",
    "edited": "edited in the file",
    "undo": "undone",
    "approve": "approved as it stands in the file",
}
OWNER_FILE = (
    "{name} contains {reason}. It is used in the prompts of new conversations all the same; please check that you "
    "wrote it."
)


def waits_for_yes(scope: Scope, reason: str, target: str) -> str:
    did = {"fact": "remember", "remind": "plan", "cron": "plan"}.get(target, "note")
    text = f"Before I {did} something, I need your yes: {reason}."
    if not scope.is_room:
        return f"{text} `/memory pending` shows it."
    look = f"`/memory pending` shows it in that room, `mneme memory pending --scope {scope.key}` in a shell."
    return f"About the room `{scope.key}`: {text} {look}"


def note_by_hand(name: str, scope: Scope, reason: str) -> str:
    room = f" of the room `{scope.key}`" if scope.is_room else ""
    return (
        f"A note that was written by hand into {name}{room} contains {reason}. It is used in the prompts; if you did "
        "not write it, take it out: `/memory remove …`."
    )


def pending_notes(number: int) -> str:
    return f"{number} waiting for your decision: `/memory pending`."


# Facts

FACT_TITLES = {
    "identity": "Who you are, what you have and like",
    "project": "What you work on and decided",
    "episode": "What happened",
    "working": "What matters just now",
    "over": "What is no longer true",
}
FACT_DONE = {
    "learn": "learned",
    "close": "over, because of something newer",
    "correct": "corrected",
    "pin": "pinned",
    "unpin": "no longer pinned",
    "trust": "judged",
    "merge": "merged with one that says the same",
    "flag": "doubted",
    "undo": "taken back",
}
FACT_SOURCES = {"person": "asked me to remember it", "rule": "said it", "model": "said it, as I understood it"}
NO_FACTS = "Nothing yet. Tell me something, or `/remember` it."
NO_SUCH_PAGE = "There is no such page."
NO_FACT_CHANGES = "No change to list: no fact was learned here yet, or what was learned was taken back or erased."
SPEAKER_CHANGES = "In a room only the owner and whoever said it can change a fact."
CORRECT_USAGE = "What is right? Say it in a whole sentence: `/memory correct {name} I live in Porto`."
FORGOTTEN_FACT = "Forgotten. No message says it in these words, so none was erased."


def no_fact(name: str) -> str:
    return f"There is no fact {name} here. `/memory facts` lists them."


# Forgetting and taking along

TRACE_KINDS = {"fact": "What I knew: ", "note": "Noted: ", "job": "Reminder: "}
DERIVED = "What repeats it are answers, results of tools, commands, titles, prompts, old versions of notes."
MORE_TO_FORGET = "There is more than can go at once: ask me again afterwards."
ERASED = "Nothing of it is left in state.db."
NOT_YET_ERASED = (
    "No search finds it any more. Its bytes are not all out of state.db yet: another program is reading it, or an "
    "index is being repaired. They go as soon as that is done."
)
LEFT_TO_YOU = (
    "What stands in the chats of your platforms, in backups and in files you exported is yours to delete; a file that "
    "is imported again brings its words back."
)
EXPORT_DIRECT_ONLY = (
    "I export only in a direct chat with you: there you get what you said in rooms as well, and nobody else reads it."
)
EXPORT_TOO_LONG = (
    "This is more than a chat can carry. Whoever runs me gets all of it with `mneme export` at the machine."
)
EXPORTED = (
    "This is everything I hold about you. The files `said-…` are our conversations (`mneme import` reads them), the "
    "files `held-…` are all else: accounts, notes and what became of them, facts, reminders, commands, what tools "
    "found, what models have cost, what you said in rooms. What a memory service was told is with that service."
)


def forgettable(counts: Iterable[tuple[str, int]]) -> str:
    """``3 messages, 1 fact and 1 reminder``."""
    return listed([counted(number, {"job": "reminder"}.get(name, name)) for name, number in counts])


# Usage

MISS_CAUSES: Mapping[MissCause, str] = {
    "first": "at the first request of a conversation",
    "length": "when a long conversation was continued in a fresh one",
    "rights": "when less could be seen than before",
    "resumed": "when an earlier conversation was resumed",
    "forget": "after something was forgotten",
    "edit": "after a message was edited or deleted",
    "model": "because another model was asked",
    "system": "because the system prompt had changed",
    "tools": "because the tools had changed",
    "messages": "because earlier messages had changed",
    "idle": "after a pause longer than the server keeps it",
    "evicted": "although nothing is known to have changed: the server had dropped it",
}
CALL_KINDS: Mapping[CallKind, str] = {
    "chat": "for answers",
    "title": "for titles",
    "summary": "for summaries",
    "expansion": "for more searches of a question",
    "facts": "to find facts",
}
NO_MODEL_ASKED = "No model has been asked yet."
USAGE_USAGE = "Write /usage, /usage months, /usage sessions, or /usage and the number of a conversation."

# Memory services


def sync_state(counts: QueueCounts) -> str:
    """How a service stands with what it is to be told; empty when it was told everything."""
    parts = [given_up(counts)]
    if counts.waiting:
        tried = f" (the last try: {counts.reason})" if counts.reason and not counts.dead else ""
        waits = f"wait{'s' * (counts.waiting == 1)} to be delivered{tried}"
        parts.insert(0, f"{counted(counts.waiting, 'message')} to it {waits}")
    return "; ".join(filter(None, parts))


def given_up(counts: QueueCounts) -> str:
    """``1 message to it was given up (…)``; empty for none."""
    if not counts.dead:
        return ""
    were = "was" if counts.dead == 1 else "were"
    return f"{counted(counts.dead, 'message')} to it {were} given up ({counts.reason})"
