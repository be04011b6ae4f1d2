"""Erases all messages about a subject, and all data derived from them: /forget.

The person first sees a list. No data is erased before they confirm it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import tzinfo

from config.settings import Settings
from core.errors import Refused
from core.markup.markdown import escape
from core.store.erasure.statements import ErasureItem, ErasureList, ErasureRequest
from core.store.visibility import epoch_number
from core.text.normalize import join_sentences, shorten, to_single_line
from core.types import Answer, Command
from gateway.chats.admins import ChatAdmins
from gateway.commands.registry import CommandContext, load_specs
from gateway.services import STATE_FILE, Services
from gateway.sharing.home_lock import is_running
from gateway.texts.catalog import Texts

# The confirmed command has these arguments, followed by the token of the list. Only the person who
# was asked knows the token.
CONFIRMED_PREFIX = "--confirmed "
_MAX_ITEM_CHARS = 160
_QUOTATION_MARKS = re.compile('["“”„″]')


class ForgetCommands:
    specs = load_specs("forget")

    def __init__(self, services: Services, admins: ChatAdmins | None = None) -> None:
        self._services = services
        # In a shell, there are no admins, because the owner uses it.
        self._admins = admins or ChatAdmins({})
        self._forgetting = services.forgetting

    async def run(self, command: Command, context: CommandContext) -> Answer:
        """List what would be erased and ask for confirmation, or erase a confirmed list.

        In a group, admins and the owner can erase all messages. Members can erase the messages that
        they wrote.
        """
        texts = context.texts
        request = context.erasure_request
        if context.is_member and await self._admins.may_manage(context):
            request = replace(request, is_owner=True)
        if command.arguments.startswith(CONFIRMED_PREFIX):
            if context.is_typed_command:
                # Only "yes" and the button below the list confirm it.
                raise Refused("forget_question_expired")
            token = command.arguments.removeprefix(CONFIRMED_PREFIX).strip()
            return await self._erase(token, request, context)

        erasure_list = await self._forgetting.prepare(command.arguments, request)
        if not erasure_list.token:
            sentence = texts.FORGET_NOTHING
            if request.is_limited:
                sentence = texts.FORGET_NOTHING_OF_YOURS
            remains = _describe_remains(texts, erasure_list, self._services.settings)
            return Answer(text=join_sentences([sentence, *remains]))
        zone = self._services.zone_of(context.zone)
        rendered = render_erasure_list(texts, erasure_list, zone)
        return Answer(
            text=f"{rendered}\n\n{texts.CONFIRM_ERASURE}",
            confirm_command=Command(name="forget", arguments=CONFIRMED_PREFIX + erasure_list.token),
        )

    async def _erase(self, token: str, request: ErasureRequest, context: CommandContext) -> Answer:
        """Erase the confirmed list that `token` identifies, and return the receipt."""
        texts = context.texts
        try:
            receipt = await self._forgetting.erase(token, request)
            is_owner = is_owner_alone(context)
            copies = await describe_copies(texts, self._services, receipt, is_owner=is_owner)
            text = render_receipt(texts, receipt, self._services.settings, copies)
        except Refused as refusal:
            text = texts.word(refusal)
        return Answer(text=text, has_erased_data=True)


def render_erasure_list(texts: Texts, erasure_list: ErasureList, zone: tzinfo) -> str:
    """Return a list of what an erasure would remove, for the person to confirm."""
    counts = _describe_counts(texts, erasure_list, "copy")
    end = texts.COLON.rstrip() if erasure_list.items else "."
    lines = [f"{texts.FORGET_QUESTION.format(things=counts)}{end}", ""]
    lines += [render_item(texts, item, zone) for item in erasure_list.items]
    unlisted_count = sum(erasure_list.counts.values()) - len(erasure_list.items)
    if unlisted_count > 0:
        lines.append(texts.LIST_MORE.format(count=texts.format_number(unlisted_count)))
    if erasure_list.derived:
        lines += ["", *_list_repeats(texts, erasure_list)]
    if erasure_list.equal_files:
        lines += ["", describe_equal_files(texts, erasure_list.equal_files)]
    return "\n".join(lines)


def _list_repeats(texts: Texts, erasure_list: ErasureList) -> list[str]:
    """Return the lines about what repeats the items: the first repetitions, and how many follow."""
    if not erasure_list.repeats:
        return [texts.DERIVED]
    lines = [texts.DERIVED_LIST]
    lines += [render_repeat(texts, kind, text) for kind, text in erasure_list.repeats]
    unlisted_count = erasure_list.derived - len(erasure_list.repeats)
    if unlisted_count > 0:
        lines.append(texts.LIST_MORE.format(count=texts.format_number(unlisted_count)))
    return lines


def render_repeat(texts: Texts, kind: str, text: str, max_chars: int = _MAX_ITEM_CHARS) -> str:
    """Return the line of a list about a text that repeats an item, as Markdown."""
    # An answer is Markdown, whose marks of lists and bold words would be shown.
    plain_text = texts.result_words.word_text(text.replace("**", "").lstrip("-> "))
    kinds = texts.table("REPEAT_KINDS")
    label = kinds[kind] if text else kinds[kind].rstrip(" :：\u00a0")
    return f"- {label}{escape(shorten(plain_text, max_chars))}"


def render_item(
    texts: Texts, item: ErasureItem, zone: tzinfo, max_chars: int = _MAX_ITEM_CHARS
) -> str:
    """Return the line of a list about an item that would be erased, as Markdown."""
    text = escape(shorten(texts.result_words.word_text(item.text), max_chars))
    if item.kind == "message":
        author = f"{escape(item.author)}{texts.COMMA}" if item.author else ""
        return "- " + texts.pair(f"{author}{texts.format_day(item.at, zone)}", text)
    return f"- {texts.table('TRACE_KINDS').get(item.kind, '')}{text}"


def quote_phrase(text: str) -> str:
    """Return the request of /forget that searches for a text as a phrase."""
    # The phrase is in quotation marks, so it can't contain such marks.
    return f'"{" ".join(_QUOTATION_MARKS.sub(" ", text).split())}"'


def is_owner_alone(context: CommandContext) -> bool:
    """Return whether the owner asks in a place where no one else can read the answer."""
    return context.is_owner and not context.is_answer_public


async def describe_copies(
    texts: Texts, services: Services, receipt: ErasureList, *, is_owner: bool
) -> Sequence[str]:
    """Return sentences about the backups that may still contain the erased texts."""
    # Imported here because most commands don't need it.
    from gateway.upkeep.backups import describe_remaining_copies

    epoch = await services.database.read(epoch_number)
    return await asyncio.to_thread(
        describe_remaining_copies,
        texts,
        services.settings,
        epoch,
        now=services.clock.now(),
        first_said_at=receipt.first_said_at,
        is_owner=is_owner,
    )


def render_receipt(
    texts: Texts, receipt: ErasureList, settings: Settings, copies: Sequence[str] = ()
) -> str:
    """Return a text that says how much was erased, and where the erased words remain.

    `copies` contains the sentences of `describe_copies`.
    """
    counts = _describe_counts(texts, receipt, "copied")
    sentences = [texts.FORGOTTEN_THINGS.format(things=counts)]
    sentences += _describe_remains(texts, receipt, settings)
    if receipt.described_files:
        names = texts.join_list(list(map(escape, receipt.described_files)))
        sentences.append(texts.DESCRIBED_FILES.format(names=names))
    if not receipt.is_clean:
        sentences.append(texts.NOT_YET_ERASED)
    sentences += _describe_services(texts, receipt, settings)
    for name in receipt.unwritable_files:
        sentences.append(texts.FILE_UNWRITABLE.format(name=name))
    sentences += copies
    is_recorded = receipt.is_journaled or receipt.is_done
    sentences.append(texts.LEFT_TO_YOU if is_recorded else texts.NOT_NOTED)
    return join_sentences(sentences)


def _describe_services(texts: Texts, receipt: ErasureList, settings: Settings) -> Sequence[str]:
    """Return sentences about the memory services that are asked to erase their copies.

    A service that is off, or any service while Mneme isn't running, is asked later.
    """
    asked_now = [
        name
        for name in receipt.services
        if name in settings.memory.providers and settings.memory.providers[name].enabled
    ]
    if asked_now and not is_running(settings.home):
        asked_now = []
    asked_later = [name for name in receipt.services if name not in asked_now]
    return [
        template.format(services=texts.join_list(names))
        for template, names in ((texts.ASKED, asked_now), (texts.ASKED_LATER, asked_later))
        if names
    ]


def describe_equal_files(texts: Texts, equal_files: Sequence[tuple[int, str]]) -> str:
    """Return a sentence about the equal files of other messages, with the command for each.

    `equal_files` contains their ids and names.
    """
    files = [
        texts.annotate(escape(to_single_line(name)), f"`/files remove {number}`")
        for number, name in equal_files
    ]
    return texts.EQUAL_FILES.format(files=texts.join_list(files))


def _describe_remains(texts: Texts, receipt: ErasureList, settings: Settings) -> Sequence[str]:
    """Return sentences about texts that still contain the words of the request.

    The list is empty if an earlier call carried out this erasure, because the words were deleted
    with it.
    """
    if receipt.remaining_counts is None:
        return []
    sentences = []
    remains = []
    for name, count in receipt.remaining_counts.items():
        if name != "name":
            remains.append(texts.format_count(count, name))
    if remains:
        template = texts.table("LEFT")[_find_remains_key(receipt)]
        sentences.append(template.format(things=texts.join_list(remains)))
    elif receipt.equal_files:
        sentences.append(describe_equal_files(texts, receipt.equal_files))
    elif receipt.token and {*(receipt.remaining_files or ())} <= {STATE_FILE}:
        sentences.append(texts.ERASED)
    if "name" in receipt.remaining_counts:
        sentences.append(texts.NAMES_STAY)

    return [*sentences, *_describe_home_files(texts, receipt, settings)]


def _describe_home_files(texts: Texts, receipt: ErasureList, settings: Settings) -> Sequence[str]:
    """Return sentences about the files in the home that still contain the words, or about none."""
    if receipt.remaining_files is None:
        return []
    sentences = []
    files = texts.join_list([f"`{name}`" for name in receipt.remaining_files])
    if files:
        sentences.append(texts.IN_HOME.format(files=files))
    elif not receipt.equal_files:
        sentences.append(texts.NOT_IN_HOME)
    if receipt.is_clean and STATE_FILE in receipt.remaining_files:
        # A file next to a store on PostgreSQL is the one that was copied to the server.
        sentences.append(texts.OLD_STATE if settings.store.url else texts.IN_STATE)
    return sentences


def _find_remains_key(receipt: ErasureList) -> str:
    """Return the key in the text table ``LEFT`` for the reason why something remains."""
    if receipt.request.is_limited:
        return "limited"
    return "narrowed" if receipt.is_narrowed else "other"


def _describe_counts(texts: Texts, erasure_list: ErasureList, copies: str) -> str:
    """Render the counts of an erasure: ``3 messages and 1 reminder, and 2 things that repeat it``.

    `copies` is the noun for texts that repeat the words: "copy" before the erasure, "copied" after
    it.
    """
    nouns = {"job": "reminder", "room": "thing"}
    counts = [
        texts.format_count(count, nouns.get(kind, kind))
        for kind, count in erasure_list.counts.items()
    ]
    if "room" in erasure_list.counts:
        # The count of items in groups is always the last count.
        counts[-1] = texts.FORGET_IN_GROUPS.format(things=counts[-1])
    things = texts.join_list(counts)
    if counts and copies == "copy" and erasure_list.request.is_limited:
        things = texts.FORGET_OF_YOURS.format(things=things)
    if not erasure_list.derived:
        return things
    repeated = texts.format_count(erasure_list.derived, copies)
    return texts.FORGET_AND.format(things=things, copies=repeated) if things else repeated
