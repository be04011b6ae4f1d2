"""Writes the notices that an answer contains: about files, transcripts, compression and lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from core.agent.turn import AnsweredTurn
from core.markup.markdown import escape
from core.media.blocks import format_pages
from core.media.file_rows import list_scanned_pages
from core.media.intake import VOICE, Reception
from core.store.mailbox import OutboxItem
from core.store.ownership.pairing import Pairing
from core.text.normalize import shorten, to_single_line
from core.types import Answer, Inbound
from gateway.texts.catalog import Texts

# The answer to a voice note quotes at most this many characters of its transcript.
MAX_HEADING_CHARS = 600
# Files of these kinds get no notice, because people don't expect Mneme to read them.
_SILENT_KINDS = ("sticker", "animation")


def describe_files(
    texts: Texts, receptions: Sequence[Reception], *, sees_pictures: bool
) -> list[str]:
    """Return a sentence about each file that wasn't stored, or was stored but can't be read."""
    problems = texts.table("FILE_PROBLEMS")
    notes = texts.table("FILE_NOTES")
    sentences: list[str] = []
    for reception in receptions:
        for file in reception.files:
            name = escape(to_single_line(file.name))
            if file.problem:
                sentences.append(problems[file.problem].format(name=name))
            elif file.kind in _SILENT_KINDS or file.content is None:
                continue
            elif file.content.width and not sees_pictures:
                sentences.append(notes["picture"].format(name=name))
            elif not file.content.size:
                sentences.append(notes["empty"].format(name=name))
            elif scanned_pages := list_scanned_pages(file.content):
                pages = format_pages(scanned_pages)
                sentences.append(notes["scanned_pages"].format(name=name, pages=pages))
            elif file.content.note in notes:
                suffix = "" if file.kind == VOICE else "_video"
                note = file.content.note
                sentences.append(notes.get(f"{note}{suffix}", notes[note]).format(name=name))
        for unfinished in reception.unfinished:
            key = "unfinished_incognito" if reception.is_incognito else "unfinished"
            sentences.append(problems[key].format(name=escape(to_single_line(unfinished))))
    return sentences


def describe_speech(texts: Texts, receptions: Sequence[Reception]) -> str:
    """Return a line with the transcript of the voice notes, or "" if there are none."""
    transcripts = [reception for reception in receptions if reception.transcript]
    text = to_single_line(" ".join(reception.transcript for reception in transcripts))
    if not text:
        return ""
    is_own = all(reception.inbound.origin == "spoken" for reception in transcripts)
    sentence = texts.YOU_SAID if is_own else texts.IT_SAYS
    return sentence.format(text=escape(shorten(text, MAX_HEADING_CHARS)))


def append_unseen(texts: Texts, answer: Answer, unseen: Answer) -> Answer:
    """Append an earlier answer that couldn't be delivered when it was written."""
    return replace(
        answer,
        text=f"{answer.text}\n\n{texts.UNSEEN}\n\n{unseen.text}",
        files=(*answer.files, *unseen.files),
        buttons=(*answer.buttons, *unseen.buttons),
        is_private=True,
    )


def add_notices(texts: Texts, answered_turn: AnsweredTurn, *, is_last_turn: bool) -> Answer:
    """Translate marks such as "[stopped]" in the model's answer, and append notices to it."""
    paragraphs = [texts.word_marks(answered_turn.answer.text)]
    if is_last_turn:
        paragraphs.append(texts.IN_A_ROW)
    if answered_turn.has_compressed:
        is_incognito = answered_turn.session.is_incognito
        paragraphs.append(texts.CONDENSED_INCOGNITO if is_incognito else texts.CONDENSED)
    if answered_turn.is_too_long:
        paragraphs.append(texts.TOO_LONG)
    text = "\n\n".join(paragraphs)
    if text == answered_turn.answer.text:
        return answered_turn.answer
    return replace(answered_turn.answer, text=text)


def build_welcome(pairing: Pairing, inbound: Inbound, text: str, now: datetime) -> OutboxItem:
    """Build the outbox item that tells a person they were approved.

    Its kind is "answer" because answers to one address are sent in order. The answer to the
    person's own message follows it.
    """
    return OutboxItem(
        key=f"admitted:{pairing.account.key}:{pairing.expires_at.isoformat()}",
        kind="answer",
        address=inbound.address,
        answer=Answer(text=text),
        next_at=now,
    )
