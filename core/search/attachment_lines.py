"""Names attachments for people: "📎 boat.jpg" for "[attached photo: boat.jpg (20 bytes)]".

Messages are stored with such a line for each attachment, because the model and the search read it.
Imports store lines such as "[photo: boat.jpg]" and "[voice message]".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from core.search.results import ELLIPSIS, MATCH_END, MATCH_START

# The words of imports for kinds that have another name here.
_KINDS: Mapping[str, str] = {
    "voice message": "voice",
    "video message": "video_note",
    "video note": "video_note",
    "audio file": "audio",
    "picture": "image",
    "attachment": "file",
}
_IMPORTED_KINDS = (
    "photo|image|picture|video|video message|voice message|animation|sticker|audio|audio file|file"
    "|attachment|contact|location|poll"
)
# Names that adapters give to files without one.
_DEFAULT_NAMES = frozenset(
    {"photo.jpg", "animation.mp4", "document", "voice.ogg", "audio", "video.mp4", "sticker"}
)
_SIGNS: Mapping[str, str] = {"contact": "👤", "location": "📍", "poll": "📊"}
_MARK = f"(?:{MATCH_START}|{MATCH_END})?"
# The end of a line. A title or a snippet may end within it.
_END = rf"(?:\]|(?={ELLIPSIS})|$)"
_ATTACHED = re.compile(
    rf"\[{_MARK}attached{_MARK} {_MARK}(?P<kind>[a-z]+(?: [a-z]+)?){_MARK}: (?P<name>[^\[\]\n]*?)"
    rf"(?: \([^()\[\]\n]*(?:\)(?={_END})|(?={ELLIPSIS})|$))?{_END}",
    re.MULTILINE,
)
_IMPORTED = re.compile(
    rf"^\[{_MARK}(?P<kind>{_IMPORTED_KINDS}){_MARK}(?:: (?P<name>[^\[\]\n]+?))?{_END}", re.MULTILINE
)
_FORWARDED = re.compile(
    rf"^\[{_MARK}forwarded{_MARK} {_MARK}from{_MARK} (?P<name>[^\[\]\n]+?){_END}", re.MULTILINE
)


def name_attachments(text: str, kinds: Mapping[str, str], forwarded_from: str) -> str:
    """Return a text with a sign and a name in place of each line for an attachment.

    A file without a name of its own is named by its kind. `kinds` has the words for kinds, and
    `forwarded_from` is a template such as "forwarded from {name}".
    """

    def name(match: re.Match[str]) -> str:
        kind = _KINDS.get(match["kind"], match["kind"])
        file_name = match["name"] or ""
        bare_name = file_name.replace(MATCH_START, "").replace(MATCH_END, "")
        if kind == "voice" or not bare_name or bare_name in _DEFAULT_NAMES:
            file_name = kinds.get(kind, kind.replace("_", " "))
        return f"{_SIGNS.get(kind, '📎')} {file_name}"

    def word_forward(match: re.Match[str]) -> str:
        return f"↪ {forwarded_from.format(name=match['name'])}"

    return _FORWARDED.sub(word_forward, _IMPORTED.sub(name, _ATTACHED.sub(name, text)))
