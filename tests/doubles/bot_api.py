"""A Bot API server on loopback that behaves as the public one documents, for the methods that the gateway uses.

Every request and every response is held against the published description; what is wrong is refused with 400 and noted
in `violations`. The state outlives its clients: what a killed one did not confirm is delivered again.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

from tests.doubles.bot_chats import BotChats, Object, utf16

Method = Callable[[Object], Awaitable[Any]]
TEXT_LIMIT = 4096
CAPTION_LIMIT = 1024
ENTITY_LIMIT = 100


class _Refusal(Exception):
    def __init__(self, code: int, description: str, **parameters: int) -> None:
        super().__init__(description)
        self.code = code
        self.parameters = parameters


@dataclass(slots=True, kw_only=True)
class _Fault:
    """What the next calls meet instead of their answer; code 0 closes the connection without one."""

    code: int
    description: str
    method: str | None
    times: int
    parameters: dict[str, int] = field(default_factory=dict)


class BotApi(BotChats):
    """``async with BotApi() as api``: then `api.url` is the root to give to a client, `api.token` its token."""

    def __init__(self, username: str = "mneme_bot", bot_id: int = 110201543) -> None:
        super().__init__(username, bot_id)
        self.token = f"{bot_id}:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
        self.url = ""
        self.calls: list[tuple[str, Object]] = []
        """Every call that was understood, with its parameters (files as bytes), in order."""
        self.commands: list[Object] = []
        self.files: dict[str, bytes] = {}
        self.webhook_url = ""
        self._port = 0
        self._faults: list[_Fault] = []
        self._poll = 0
        self._is_open = False
        self._runner: web.AppRunner | None = None
        self._methods: dict[str, Method] = {
            "getMe": self._get_me,
            "getUpdates": self._get_updates,
            "deleteWebhook": self._delete_webhook,
            "setMyCommands": self._set_my_commands,
            "sendChatAction": self._send_chat_action,
            "sendMessage": self._send_message,
            "editMessageText": self._edit_message_text,
            "deleteMessage": self._delete_message,
            "answerCallbackQuery": self._answer_callback_query,
            "sendDocument": self._send_document,
        }

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listens; after a `stop` again on the same port."""
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/bot{token:[^/]+}/{method}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self._port}"
        self._is_open = True

    async def stop(self) -> None:
        """Goes off the net; chats and unconfirmed updates stay."""
        self._is_open = False
        self.changed()
        if self._runner:
            await self._runner.cleanup()

    def fail(
        self, code: int, description: str, *, method: str | None = None, times: int = 1, **parameters: int
    ) -> None:
        """The next calls (of one method) are answered with this error."""
        self._faults.append(
            _Fault(code=code, description=description, method=method, times=times, parameters=parameters)
        )

    def flood(self, retry_after: int, *, method: str | None = None, times: int = 1) -> None:
        """The next calls are answered with 429."""
        description = f"Too Many Requests: retry after {retry_after}"
        self.fail(429, description, method=method, times=times, retry_after=retry_after)

    def drop(self, *, method: str | None = None, times: int = 1) -> None:
        """The next calls get no answer, the connection is closed."""
        self.fail(0, "", method=method, times=times)

    def called(self, method: str) -> list[Object]:
        """The parameters of all calls of a method."""
        return [values for name, values in self.calls if name == method]

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        if request.match_info["token"] != self.token:
            return _error(401, "Unauthorized")
        if method not in self._methods:
            return _error(404, "Not Found")
        values, problems = await self._values(request, method)
        problems += self.contract.request(method, values)
        self.violations += problems
        if problems:
            return _error(400, f"Bad Request: {problems[0]}")
        self.calls.append((method, values))
        try:
            fault = self._fault(method)
            if fault and fault.code == 0:
                if request.transport:
                    request.transport.close()
                return web.Response()
            if fault:
                raise _Refusal(fault.code, fault.description, **fault.parameters)
            result = await self._methods[method](values)
        except _Refusal as refusal:
            return _error(refusal.code, str(refusal), **refusal.parameters)
        finally:
            self.changed()
        if method != "getUpdates":  # updates are judged when they are made; some are wrong on purpose
            self.violations += self.contract.response(method, result)
        return web.json_response({"ok": True, "result": result})

    async def _values(self, request: web.Request, method: str) -> tuple[Object, list[str]]:
        """Parameters may come in the query, as a form, as multipart with files, or as JSON."""
        form = {name: str(text) for name, text in request.query.items()}
        if request.content_type == "application/json":
            return form | await request.json(), []
        files: dict[str, web.FileField] = {}
        for name, part in (await request.post()).items():
            if isinstance(part, web.FileField):
                files[name] = part
            else:
                form[name] = str(part)
        values, problems = self.contract.decode(method, form)
        for name, value in [*values.items()]:
            if isinstance(value, str) and value.startswith("attach://"):
                files[name] = files.pop(value.removeprefix("attach://"))
        for name, part in files.items():
            values[name] = part.file.read()
            self.files[part.filename] = values[name]
        return values, problems

    def _fault(self, method: str) -> _Fault | None:
        for fault in self._faults:
            if fault.method in (None, method):
                fault.times -= 1
                if not fault.times:
                    self._faults.remove(fault)
                return fault
        return None

    async def _get_me(self, values: Object) -> Object:
        return self.bot | {"can_join_groups": True, "can_read_all_group_messages": False}

    async def _get_updates(self, values: Object) -> list[Object]:
        """A later poll ends an earlier one, as on the public server: the earlier is told that there are two."""
        if self.webhook_url:
            raise _Refusal(
                409,
                "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete it first",
            )
        self._poll += 1
        mine = self._poll
        self.changed()
        offset = values.get("offset", 0)
        if offset < 0:
            self.updates = self.updates[offset:]
        self.updates = [update for update in self.updates if update["update_id"] >= offset]
        if "allowed_updates" in values:
            self.allowed = frozenset(values["allowed_updates"])
        try:
            await self.wait_for(
                lambda: self.updates or self._poll != mine or not self._is_open, values.get("timeout", 0) or 0.001
            )
        except TimeoutError:
            return []
        if self._poll != mine:
            raise _Refusal(
                409,
                "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
            )
        return self.updates[: values.get("limit", 100)]

    async def _delete_webhook(self, values: Object) -> bool:
        self.webhook_url = ""
        return True

    async def _set_my_commands(self, values: Object) -> bool:
        for command in values["commands"]:
            if not re.fullmatch(r"[a-z0-9_]{1,32}", command["command"]):
                raise _Refusal(400, "Bad Request: BOT_COMMAND_INVALID")
            if not 1 <= len(command["description"]) <= 256:
                raise _Refusal(400, "Bad Request: BOT_COMMAND_DESCRIPTION_INVALID")
        self.commands = values["commands"]
        return True

    async def _send_chat_action(self, values: Object) -> bool:
        self._place(values)
        return True

    async def _send_message(self, values: Object) -> Object:
        self._place(values)
        body = _body(values, "text", "entities", TEXT_LIMIT)
        return self._enter(values, **body)

    async def _edit_message_text(self, values: Object) -> Object:
        message = self._message(values, "message to edit not found")
        if message["from"]["id"] != self.bot["id"] or "text" not in message:
            raise _Refusal(400, "Bad Request: message can't be edited")
        body = _body(values, "text", "entities", TEXT_LIMIT)
        if body == {name: message[name] for name in ("text", "entities", "reply_markup") if name in message}:
            raise _Refusal(
                400,
                "Bad Request: message is not modified: specified new message content and reply markup are exactly "
                "the same as a current content and reply markup of the message",
            )
        for name in ("entities", "reply_markup"):
            message.pop(name, None)
        message |= body | {"edit_date": self.now()}
        return dict(message)

    async def _delete_message(self, values: Object) -> bool:
        message = self._message(values, "message to delete not found")
        del self.history[values["chat_id"]][message["message_id"]]
        return True

    async def _answer_callback_query(self, values: Object) -> bool:
        if values["callback_query_id"] not in self.presses:
            raise _Refusal(400, "Bad Request: query is too old and response timeout expired or query ID is invalid")
        self.presses.remove(values["callback_query_id"])
        return True

    async def _send_document(self, values: Object) -> Object:
        self._place(values)
        content: bytes = values["document"]
        if not content:
            raise _Refusal(400, "Bad Request: file must be non-empty")
        name = next(name for name, data in reversed(self.files.items()) if data is content)
        document = {"file_id": name, "file_unique_id": name, "file_name": name, "file_size": len(content)}
        body = _body(values, "caption", "caption_entities", CAPTION_LIMIT)
        return self._enter(values, **body, document=document)

    def _place(self, values: Object) -> None:
        """Whether the bot may write there."""
        chat_id = values["chat_id"]
        chat = self.chats.get(chat_id) if chat_id < 0 else self.people.get(chat_id)
        if chat is None:
            raise _Refusal(400, "Bad Request: chat not found")
        if chat_id in self.blocked and chat_id > 0:
            raise _Refusal(403, "Forbidden: bot was blocked by the user")
        if chat_id in self.blocked:
            raise _Refusal(403, f"Forbidden: bot was kicked from the {chat['type']} chat")
        if "moved_to" in chat:
            raise _Refusal(
                400,
                "Bad Request: group chat was upgraded to a supergroup chat",
                migrate_to_chat_id=chat["moved_to"],
            )
        thread_id = values.get("message_thread_id")
        if thread_id is not None and thread_id not in self.topics.get(chat_id, ()):
            raise _Refusal(400, "Bad Request: message thread not found")

    def _enter(self, values: Object, **fields: Any) -> Object:
        """The new message's place: in its thread, under the message it answers."""
        reply = values.get("reply_parameters", {})
        reply_to = reply.get("message_id")
        if reply_to not in self.history.get(values["chat_id"], {}) and reply_to is not None:
            if not reply.get("allow_sending_without_reply"):
                raise _Refusal(400, "Bad Request: message to be replied not found")
            reply_to = None
        return self.enter(
            values["chat_id"], self.bot, thread_id=values.get("message_thread_id"), reply_to=reply_to, **fields
        )

    def _message(self, values: Object, complaint: str) -> Object:
        self._place({"chat_id": values["chat_id"]})
        message = self.history.get(values["chat_id"], {}).get(values["message_id"])
        if message is None:
            raise _Refusal(400, f"Bad Request: {complaint}")
        return message


def _error(code: int, description: str, **parameters: int) -> web.Response:
    answer: Object = {"ok": False, "error_code": code, "description": description}
    if parameters:
        answer["parameters"] = parameters
    return web.json_response(answer, status=code)


def _body(values: Object, name: str, entities_name: str, limit: int) -> Object:
    """Text, entities and buttons as the server keeps them; refuses what it refuses."""
    if "parse_mode" in values:
        raise _Refusal(400, "Bad Request: can't parse entities: this server takes them ready made")
    body: Object = {}
    text = values.get(name, "")
    entities = values.get(entities_name, [])
    for entity in entities:
        _check_entity(text, entity)
    lead = utf16(text) - utf16(text.lstrip())
    text = text.strip()
    if not text and name == "text":
        raise _Refusal(400, "Bad Request: message text is empty")
    if utf16(text) > limit:
        raise _Refusal(400, f"Bad Request: {'message' if name == 'text' else 'message caption'} is too long")
    if text:
        body[name] = text
    kept = [entity | {"offset": max(entity["offset"] - lead, 0)} for entity in entities[:ENTITY_LIMIT]]
    if kept:
        body[entities_name] = kept
    markup = values.get("reply_markup")
    if markup:
        for row in markup["inline_keyboard"]:
            for button in row:
                if not 1 <= len(button.get("callback_data", "").encode()) <= 64:
                    raise _Refusal(400, "Bad Request: BUTTON_DATA_INVALID")
        body["reply_markup"] = markup
    return body


def _check_entity(text: str, entity: Object) -> None:
    start, end = entity["offset"], entity["offset"] + entity["length"]
    length = utf16(text)
    which = f"Bad Request: entity beginning at UTF-16 offset {start}"
    if start < 0 or start > length:
        raise _Refusal(400, "Bad Request: receive an entity with incorrect offset")
    if end > length or entity["length"] < 0:
        raise _Refusal(400, f"{which} ends after the end of the text at UTF-16 offset {end}")
    units = text.encode("utf-16-le", "surrogatepass")
    for place in (start, end):
        unit = int.from_bytes(units[2 * place : 2 * place + 2], "little")
        if 0xDC00 <= unit <= 0xDFFF:
            raise _Refusal(400, f"{which} ends in a middle of a UTF-16 symbol at UTF-16 offset {place}")
