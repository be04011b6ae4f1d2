"""Words search results in a language other than English.

Adapters and imports store some texts in English, because the model and the search read them:
messages such as "Group: {Ana joined}", and names such as "Saved Messages". People read them in
their own language.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache

from core.errors import Sentence, load_sentences
from core.search.rendering import name_attachments
from core.search.results import ELLIPSIS, MARKED_MATCH, MATCH_END, MATCH_START
from gateway.texts import dates
from gateway.texts.stored_errors import compile_patterns

# The names that imports give to chats and senders without one.
_IMPORT_NAMES = ("import_saved_messages", "import_replies", "import_deleted_account")
# The text that a platform inserted. A title or a snippet may end within it.
_CONTENT = re.compile(rf"\{{.+(?:\}}|{ELLIPSIS})")
# The tasks of a checklist come after its title. A task is the rest up to the state of the next one.
_TASKS = re.compile(r"(?P<title>(?:.*?\. )??)(?P<tasks>(?:added|done|open|open again): .*)")
_NEXT_TASK = re.compile(r"(; (?=(?:done|open): )|\. (?=open again: ))")


class BabelResultWords:
    """The words for search results in one language."""

    def __init__(
        self,
        templates: Mapping[str, str],
        sentences: Mapping[str, str],
        kinds: Mapping[str, str],
        locale: str,
        word: Callable[[Sentence], str],
    ) -> None:
        """Create the words from the tables recall, errors and FILE_KINDS of the language.

        `word` returns a sentence of core in the language, and `locale` is Babel's name for it.
        """
        self._templates = templates
        self._sentences = sentences
        self._kinds = kinds
        self._locale = locale
        self._word = word

    @property
    def templates(self) -> Mapping[str, str]:
        return self._templates

    def word(self, sentence: Sentence) -> str:
        return self._word(sentence)

    def word_name(self, name: str) -> str:
        """Return the name of a sender or the title of a conversation.

        It's translated if an import gave it, or if the title is a message of a platform.
        """
        key = _load_keys().get(name)
        return self._sentences[key] if key in _IMPORT_NAMES else self.word_text(name)

    def word_text(self, text: str) -> str:
        """Return the text of a message, or a snippet of it, with the lines of platforms translated.

        The marks of matches stay around the words that are still there.
        """
        if "[" in text:
            text = name_attachments(text, self._kinds, self._templates["forwarded_from"])
        if ": " not in text or "{" not in text:
            return text
        bare_text = text.replace(MATCH_START, "").replace(MATCH_END, "")
        translated = "\n".join(map(self._word_line, bare_text.split("\n")))
        if translated == bare_text:
            return text
        matches = sorted(set(MARKED_MATCH.findall(text)), key=len, reverse=True)
        if not matches:
            return translated
        words = "|".join(map(re.escape, matches))
        return re.sub(rf"(?<!\w)(?:{words})(?!\w)", rf"{MATCH_START}\g<0>{MATCH_END}", translated)

    def format_time(self, at: datetime) -> str:
        return f"{dates.format_parts(at, 'yMMMEd', self._locale)}, {at:%H:%M}"

    def format_day(self, at: datetime) -> str:
        return dates.format_parts(at, "yMMMd", self._locale)

    def format_short_day(self, at: datetime) -> str:
        return dates.format_parts(at, "MMMd", self._locale)

    def _word_line(self, line: str) -> str:
        """Translate a line such as "Group: {Ana joined}". Other lines are returned unchanged."""
        for key, pattern in compile_patterns("inserted_").items():
            match = pattern.fullmatch(line)
            if match is not None and _CONTENT.fullmatch(match["content"]):
                content = match["content"][1:].removesuffix("}")
                if key == "inserted_checklist":
                    content = self._word_tasks(content)
                else:
                    content = self._word_event(content)
                return self._sentences[key].format(content=content)
        return line

    def _word_tasks(self, content: str) -> str:
        """Translate the states of tasks: "Trip. open: passports; done: tickets"."""
        match = _TASKS.fullmatch(content)
        if match is None:
            return content
        parts = _NEXT_TASK.split(match["tasks"])
        parts[::2] = map(self._word_event, parts[::2])
        return match["title"] + "".join(parts)

    def _word_event(self, event: str) -> str:
        """Translate an event such as "Ana joined". Other texts are returned unchanged."""
        for key, pattern in compile_patterns("event_").items():
            match = pattern.fullmatch(event)
            if match is not None:
                values = {
                    name: self._word_value(name, text) for name, text in match.groupdict().items()
                }
                return self._sentences[key].format(**values)
        return event

    def _word_value(self, name: str, text: str) -> str:
        if name == "kind":
            key = _load_keys().get(text, "")
            return self._sentences[key] if key.startswith("unreadable_") else text
        if name == "at":
            # The time of a planned video chat, as in "20 November 2026 09:00 UTC".
            moment, _, zone = text.rpartition(" ")
            try:
                at = datetime.strptime(f"{moment} +0000", "%d %B %Y %H:%M %z")
            except ValueError:
                return text
            return f"{self.format_day(at)}, {at:%H:%M} {zone}"
        return text


@cache
def _load_keys() -> Mapping[str, str]:
    """Return the keys of the English sentences of core."""
    return {sentence: key for key, sentence in load_sentences().items()}
