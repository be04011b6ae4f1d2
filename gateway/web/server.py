"""Runs the web server of the local page: checks every request, and calls its view or action.

By default, only browsers on this machine can reach it. A request is rejected unless its `Host`
header names this server, so another website can't reach it through a domain that points here. A
browser that has used a key gets a cookie. A form must be sent from this server and contain the form
token of the login.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import structlog
from aiohttp import web

from config.settings import SettingsError
from config.upkeep_options import PageOptions
from core.errors import ConfigError, MnemeError, StoreError
from core.markup.markdown import escape
from core.store.ownership.people import TERMINAL, EpochGuard
from core.types import LOCAL_SCOPE, Address, Answer, File, Inbound, Sender, Session
from gateway.commands.facts import is_own_account
from gateway.commands.registry import CommandContext, CommandRegistry
from gateway.local.ports import page_port
from gateway.services import Services
from gateway.texts.catalog import ENGLISH as texts
from gateway.texts.catalog import Texts, load_texts
from gateway.texts.settings_problems import word_settings_error
from gateway.texts.text_files import match_language
from gateway.upkeep.spending import SpendingHistory
from gateway.web.chat import PAGE as CHAT
from gateway.web.chat import ChatEvent, format_event, link_files, send_message, wait_for_answer
from gateway.web.logins import (
    ANSWER,
    Draft,
    Login,
    Outcome,
    Visitor,
    add_answer,
    answer_once,
    drop_answer,
    find_outcome,
    list_commands,
    list_typed,
)
from gateway.web.memory.forgetting import find_erasure_token
from gateway.web.pages import ACTIONS, PAGES, find_link
from gateway.web.rendering import STATIC_FOLDER, Moments, create_environment
from gateway.web.today import load_state
from gateway.web.views import (
    LOCAL_NAMES,
    LastChecks,
    Page,
    PageRequest,
    Values,
    View,
    fingerprint,
    is_local,
    is_picture,
    load_words,
)

MAX_ADDRESS_CHARS = 60
# Longer results of an approved look-up are cut.
MAX_RESULT_CHARS = 4_000
# The port follows, because browsers send a cookie to all ports of a machine.
COOKIE = "mneme_login"
# The maximum that browsers allow, 400 days. The server ends the login earlier.
COOKIE_MAX_AGE_S = 400 * 86_400
# A form with more bytes is refused.
MAX_FORM_BYTES = 1_000_000
# Random bytes of a form's id.
FORM_ID_BYTES = 9
SHUTDOWN_S = 1.0
# If the port is in use, the server tries again after this many seconds.
RETRY_S = 10.0
# Rendering pauses after this many seconds, so that the answers of chats aren't delayed.
RENDER_STEP_S = 0.002
# The beginning of a page, which is sent first, ends with this template.
OPENING = "opening.html"
MAIN = '<main id="content"'
# A request that is refused for one of these reasons isn't looked into.
UNREAD = frozenset({"WRONG_HOST", "NO_PROXY", "WRONG_ORIGIN", "TOO_LARGE"})
_HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # With "no-referrer", a browser would send a form without its origin.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_TYPES: Mapping[str, str] = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_log = structlog.get_logger("page")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
RunAction = Callable[[], Awaitable[Answer | None]]


class _Denied(Exception):
    """Raised if a request is rejected. `reason` is a key in the text table `[page]`."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class PageServer:
    """Serves the page on a port of the loopback interface, or of another one in the settings."""

    def __init__(self, services: Services, commands: CommandRegistry) -> None:
        self._services = services
        self._commands = commands
        self._logins = services.page_logins
        self._spending = SpendingHistory(services.usage_log, services.clock)
        self._last_checks = LastChecks()
        self._options = services.settings.web
        # Whether another program used the port when the page was last to be served.
        self.is_port_taken = False
        self._hosts = _list_hosts(self._options)
        self.cookie = f"{COOKIE}_{self._options.port}"
        caches = [services.conversations.invalidate, self._logins.forget_answers]
        self._epochs = EpochGuard(services.database, caches)
        self._environment = create_environment()
        self._static = {path.name: path.read_bytes() for path in STATIC_FOLDER.iterdir()}

    async def run(self) -> None:
        """Serve until cancelled. If the port is in use, log that and try again and again."""
        is_logged = False
        while True:
            try:
                async with self.serve():
                    await asyncio.Future()
            except ConfigError as error:
                if not is_logged:
                    _log.error(str(error))
                is_logged = True
            await asyncio.sleep(RETRY_S)

    @contextlib.asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Serve until the end of the `async with` block.

        Raises ConfigError if the port can't be used.
        """
        if not self._services.languages.is_loaded:
            await self._services.languages.load()
        people = await self._services.people.list_accounts(self._services.settings.access.people)
        self._logins.load({person.account: person.name for person in people})
        runner = web.AppRunner(self._create_app(), access_log=None, shutdown_timeout=SHUTDOWN_S)
        await runner.setup()
        try:
            try:
                await web.TCPSite(runner, self._options.bind, self._options.port).start()
            except OSError as error:
                self.is_port_taken = error.errno == errno.EADDRINUSE
                port = page_port(self._services.settings)
                raise ConfigError(port.describe_page_fault(texts, error)) from error
            self.is_port_taken = False
            _log.info("the page is served", address=self.address)
            self._logins.is_page_served = True
            yield
        finally:
            self._logins.is_page_served = False
            await runner.cleanup()

    @property
    def address(self) -> str:
        return self._options.address

    def create_owner_link(self) -> str:
        """Return a URL that opens the owner's page once."""
        visitor = Visitor(
            account=TERMINAL,
            address=Address(platform=TERMINAL.platform, chat_id=TERMINAL.user_id),
            scope=LOCAL_SCOPE,
            name="",
        )
        return f"{self.address}/login?key={self._logins.create_key(visitor)}"

    def _create_app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard], client_max_size=MAX_FORM_BYTES)
        app.router.add_get("/static/{name}", self._serve_static)
        app.router.add_get("/login", self._open_link)
        app.router.add_post("/login", self._log_in)
        app.router.add_post("/do/{action}", self._run_action)
        app.router.add_post("/press/{question}", self._press_button)
        app.router.add_post("/chat/send", self._chat)
        for page in PAGES:
            for view in page.views:
                app.router.add_get(view.path, self._make_handler(view, page))
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Reject requests that don't come from a page of this server, and render all errors."""
        try:
            self._check_origin(request)
            response = await handler(request)
        except _Denied as denial:
            response = await self._render_error(request, denial.status, denial.reason)
        except web.HTTPRequestEntityTooLarge:
            response = await self._render_error(request, 413, "TOO_LARGE")
        except web.HTTPException as error:
            reason = "NOT_FOUND" if error.status in (404, 405) else "WRONG_FIELD"
            response = await self._render_error(request, error.status, reason)
        except StoreError as error:
            sentence = self._load_texts(request).word(error)
            response = await self._render_error(request, 503, "", sentence)
        except MnemeError as error:
            sentence = self._load_texts(request).word(error)
            response = await self._render_error(request, 422, "", sentence)
        except SettingsError as error:
            # The owner has edited mneme.toml and made a mistake.
            sentence = word_settings_error(self._load_texts(request), error)
            response = await self._render_error(request, 422, "", sentence)
        except ConnectionError:
            # The browser has gone.
            raise
        except Exception:
            _log.exception("a request to the page failed", path=request.path)
            response = await self._render_error(request, 500, "UNEXPECTED")
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    def _check_origin(self, request: web.Request) -> None:
        """Raise _Denied if the request's host is wrong or another website sent its form."""
        if request.headers.get("Host", "").lower() not in self._hosts:
            raise _Denied(421, "WRONG_HOST")
        proxy_header = self._options.proxy_header
        if proxy_header and not request.headers.get(proxy_header):
            raise _Denied(403, "NO_PROXY")
        if request.method in ("GET", "HEAD"):
            return
        origin = urlsplit(request.headers.get("Origin", ""))
        is_same = origin.scheme in ("http", "https") and origin.netloc == request.headers["Host"]
        if request.method != "POST" or not is_same:
            raise _Denied(403, "WRONG_ORIGIN")

    def _find_address(self, request: web.Request) -> str:
        """Return the network address of the browser.

        Behind a reverse proxy, it's the one that the proxy added last to `X-Forwarded-For`.
        """
        forwarded = ""
        if self._options.proxy_header:
            forwarded = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
        return (forwarded or request.remote or "")[:MAX_ADDRESS_CHARS]

    async def _serve_static(self, request: web.Request) -> web.Response:
        """Serve a static file. Its URL changes with its content, so browsers may cache it."""
        name = request.match_info["name"]
        content = self._static.get(name)
        if content is None:
            raise _Denied(404, "NOT_FOUND")
        headers = {"Cache-Control": "public, max-age=31536000, immutable"}
        media_type = _TYPES[f".{name.rpartition('.')[2]}"]
        return web.Response(body=content, content_type=media_type, charset="utf-8", headers=headers)

    async def _open_link(self, request: web.Request) -> web.Response:
        """Show a button that logs the browser in with the key in the URL.

        Previews and prefetches open a link, too, so opening it doesn't use up its key.
        """
        key = request.query.get("key", "")
        values = {"key": key, "needs_password": bool(self._options.password)}
        return await self._render_template("login.html", load_request_texts(request), values)

    async def _log_in(self, request: web.Request) -> web.Response:
        """Exchange a key for a cookie, and open the first view.

        A wrong password doesn't use up the key.
        """
        form = await request.post()
        if self._logins.is_locked:
            raise _Denied(429, "MANY_KEYS")
        if self._options.password and not self._is_password(str(form.get("password", ""))):
            self._logins.record_wrong_key()
            raise _Denied(401, "WRONG_PASSWORD")
        response = web.Response(status=303, headers={"Location": "/"})
        browser = request.headers.get("User-Agent", "")
        address = self._find_address(request)
        redeemed = self._logins.redeem(str(form.get("key", "")), browser, address)
        if redeemed is not None:
            self._set_cookie(response, redeemed[0])
        elif self._logins.find(request.cookies.get(self.cookie, ""), address) is None:
            # After a double click on the button, the browser is already logged in.
            raise _Denied(401, "WRONG_KEY")
        return response

    def _is_password(self, typed: str) -> bool:
        """Return whether a text is the password in the settings."""
        secret = self._services.settings.variables.get(self._options.password)
        expected = secret.get_secret_value() if secret else ""
        is_same = secrets.compare_digest(typed.encode("utf-8", "replace"), expected.encode())
        return bool(expected) and is_same

    def _set_cookie(self, response: web.Response, cookie: str) -> None:
        is_encrypted = self._options.url.startswith("https:")
        response.set_cookie(
            self.cookie,
            cookie,
            httponly=True,
            samesite="Strict",
            path="/",
            secure=is_encrypted,
            max_age=COOKIE_MAX_AGE_S,
        )

    def _make_handler(self, view: View, page: Page) -> Handler:
        """Return the function that serves a view of a page."""

        async def serve_view(request: web.Request) -> web.StreamResponse:
            page_request = await self._prepare(request, page)
            if view.is_streamed and request.method == "GET":
                return await self._stream_view(request, view, page_request)
            values = await view.load(page_request)
            top = page.views[0].path
            answer_id = request.query.get(ANSWER, "")
            if values is None and answer_id and request.path != top:
                # An action has just erased what was shown here. Its answer is on the page above.
                return web.Response(status=303, headers={"Location": add_answer(top, answer_id)})
            if values is None:
                raise _Denied(404, "NOT_FOUND")
            if isinstance(values, File):
                return _send_file(values)
            if isinstance(values, Path):
                name = _make_file_name(values.name)
                headers = {"Content-Disposition": f'attachment; filename="{name}"'}
                return web.FileResponse(values, headers=headers)
            return await self._render_view(view, page_request, values)

        return serve_view

    async def _run_action(self, request: web.Request) -> web.Response:
        """Run an action once, and return to the page of its form with the answer."""
        page, action = ACTIONS.get(request.match_info["action"], (None, None))
        if page is None or action is None:
            raise _Denied(404, "NOT_FOUND")
        page_request, form = await self._read_form(request, page)
        run = partial(action.run, page_request, form)
        return await self._show_answer(page_request, form, run, Draft(action.name, form))

    async def _press_button(self, request: web.Request) -> web.Response:
        """Run the command of a button in an answer."""
        page_request, form = await self._read_form(request, PAGES[0])

        async def run() -> Answer:
            command = self._logins.take(page_request.login, request.match_info["question"])
            if command is None:
                raise _Denied(410, "BUTTON_EXPIRED")
            return await self._commands.run(command, page_request.context)

        return await self._show_answer(page_request, form, run)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        """Send a message to the running gateway, and stream the answer as JSON lines.

        A browser without scripts gets a page with the complete answer.
        """
        page_request, form = await self._read_form(request, CHAT)
        events = send_message(page_request, form)
        if "application/x-ndjson" not in request.headers.get("Accept", ""):
            run = partial(wait_for_answer, events)
            return await self._show_answer(page_request, form, run, Draft("send", form))
        response = web.StreamResponse(headers={**_HEADERS, "Content-Type": "application/x-ndjson"})
        await response.prepare(request)
        try:
            async for event in events:
                await response.write(format_event(event, page_request.login))
        except ConnectionError:
            # The browser has gone.
            raise
        except Exception as error:
            sentence = ChatEvent("refused", self._word_failure(page_request, error))
            await response.write(format_event(sentence, page_request.login))
        await response.write_eof()
        return response

    async def _show_answer(
        self,
        page_request: PageRequest,
        form: Mapping[str, str],
        run: RunAction,
        draft: Draft | None = None,
    ) -> web.Response:
        """Run an action, and send the browser to the page that shows its answer.

        The id of the answer is in the address, so each tab shows its own. A form that is sent
        twice, such as by a double click, acts once and gets the same answer. If the action isn't
        done, that page shows the `draft` in its form again.
        """
        login = page_request.login
        run_worded = partial(_word_refusal, run, page_request.texts, draft)

        async def run_fresh() -> Outcome:
            """Run the action. If it has erased data, forget the earlier answers."""
            outcome = await run_worded()
            await self._epochs.view(login.visitor.scope, login.visitor.account)
            return outcome

        answer_id, outcome = answer_once(login, page_request.path, form, run_fresh)
        await asyncio.shield(outcome)
        back = form.get("back", "/")
        is_local = (
            back.startswith("/") and not back.startswith(("//", "/\\")) and back.isprintable()
        )
        location = add_answer(back if is_local else "/", answer_id)
        return web.Response(status=303, headers={"Location": location})

    async def _read_form(
        self, request: web.Request, page: Page
    ) -> tuple[PageRequest, Mapping[str, str]]:
        """Return the request and its form fields. Raises _Denied if the form token is wrong."""
        fields = await request.post()
        form = {name: value for name, value in fields.items() if isinstance(value, str)}
        page_request = await self._prepare(request, page)
        if not self._logins.has_form_token(page_request.login, form.get("token", "")):
            raise _Denied(403, "WRONG_TOKEN")
        return page_request, form

    async def _prepare(self, request: web.Request, page: Page) -> PageRequest:
        """Return the request with the person and their rights.

        Raises _Denied if the browser isn't logged in, or if the person has lost access.
        """
        cookie = request.cookies.get(self.cookie, "")
        login = self._logins.find(cookie, self._find_address(request))
        if login is None:
            raise _Denied(401, "NO_LOGIN_YET")
        visitor = login.visitor
        access = await self._services.people.load_access(visitor.account, visitor.scope)
        if not access.has_access(visitor.account, self._services.settings.access.people):
            self._logins.end(login.id, visitor.account)
            raise _Denied(403, "NO_ACCESS")
        context = await self._make_context(request, visitor)
        if page.is_for_owner and not context.is_owner:
            raise _Denied(404, "NOT_FOUND")
        return PageRequest(
            services=self._services,
            commands=self._commands,
            logins=self._logins,
            login=login,
            spending=self._spending,
            last_checks=self._last_checks,
            context=context,
            page=page.name,
            path=drop_answer(request.path_qs),
            answer_id=request.query.get(ANSWER, ""),
            parameters={**request.query, **request.match_info},
            is_local=is_local(request.headers, request.remote),
        )

    async def _make_context(self, request: web.Request, visitor: Visitor) -> CommandContext:
        """Return the rights that this person currently has in their direct chat."""
        view = await self._epochs.view(visitor.scope, visitor.account)
        language = self._services.languages.codes.get(visitor.account.key)
        now = self._services.clock.now()
        request_id = secrets.token_hex(16)
        inbound = Inbound(
            kind="action",
            address=visitor.address,
            scope=view.scope,
            sender=Sender(id=visitor.account.user_id, name=visitor.name),
            text=f"page:{request_id}",
            message_id=request_id,
            sent_at=now,
            is_direct=True,
            language=load_request_texts(request, language).language,
        )
        return CommandContext(
            inbound=inbound,
            scope=view.scope,
            scopes=view.scopes,
            session=Session(address=visitor.address, scope=view.scope, started_at=now),
            is_owner=view.is_owner,
            # A person who opened the page with a shell command acts as in a shell: later deliveries
            # go to the chat that they used last.
            is_shell=visitor.account == TERMINAL,
            epoch=view.epoch,
            zone=view.zone,
        )

    async def _stream_view(
        self, request: web.Request, view: View, page_request: PageRequest
    ) -> web.StreamResponse:
        """Send the head of a page at once, so the browser can load the styles, then the rest."""
        layout = await self._describe_layout(page_request)
        opening = await self._render(OPENING, page_request.texts, layout, page_request.page)
        headers = {**_HEADERS, "Content-Type": "text/html; charset=utf-8"}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        await response.write(opening.partition(MAIN)[0].encode())
        try:
            values = await view.load(page_request)
            assert isinstance(values, Mapping)
            page_values = {**layout, **values, "is_top_sent": True}
            content = await self._render(
                view.template, page_request.texts, page_values, page_request.page
            )
        except ConnectionError:
            # The browser has gone.
            raise
        except Exception as error:
            sentence = self._word_failure(page_request, error)
            page_values = {"sentence": sentence, "typed": (), "is_top_sent": True}
            content = await self._render("error.html", page_request.texts, page_values)
        await response.write(content.encode())
        await response.write_eof()
        return response

    def _word_failure(self, page_request: PageRequest, error: Exception) -> str:
        """Return a sentence about an error, and log it if it's unexpected."""
        if isinstance(error, MnemeError):
            return page_request.texts.word(error)
        _log.error("a request to the page failed", path=page_request.path, exc_info=error)
        return page_request.words["UNEXPECTED"]

    async def _render_view(
        self, view: View, page_request: PageRequest, values: Values
    ) -> web.Response:
        """Render a view, with the answer to the last action above it."""
        layout = await self._describe_layout(page_request)
        texts = page_request.texts
        page_values = {**layout, **values}
        return await self._render_template(view.template, texts, page_values, page_request.page)

    async def _describe_layout(self, page_request: PageRequest) -> dict[str, object]:
        """Return the template values that all pages share, with the answer to the last action."""
        login = page_request.login
        outcome = find_outcome(login, page_request.answer_id)
        notice = outcome.answer if outcome is not None else None
        buttons = self._list_buttons(login, outcome)
        waits = notice is not None and notice.confirm_command is not None
        if waits and not any(button["label"] == "" for button in buttons):
            # Its question has been answered.
            notice, buttons = None, []
        return {
            "active": page_request.page,
            "fingerprint": fingerprint,
            "create_form_id": partial(secrets.token_urlsafe, FORM_ID_BYTES),
            "is_own": partial(is_own_account, page_request.context),
            "is_owner": page_request.context.is_owner,
            "login": login,
            "draft": _copy_draft(outcome),
            "notice": notice,
            "notice_buttons": buttons,
            "has_whole_list": bool(find_erasure_token(notice)),
            "answer_id": page_request.answer_id,
            "notice_files": [] if notice is None else link_files(login, notice.files),
            # The chat is the one in a terminal of this machine, which is the owner's.
            "pages": [
                page
                for page in PAGES
                if page_request.context.is_owner or not (page.is_for_owner or page is CHAT)
            ],
            "path": page_request.path,
            **await load_state(page_request),
            "texts": page_request.texts,
            "when": Moments(page_request.texts, page_request.zone),
        }

    def _list_buttons(self, login: Login, outcome: Outcome | None) -> list[dict[str, str]]:
        """Return the buttons of an answer: links if a page shows the same, otherwise forms.

        A button that was used or has expired is left out.
        """
        if outcome is None or outcome.answer is None:
            return []
        buttons = []
        for label, command in list_commands(outcome.answer):
            link = (find_link(command) or "") if label else ""
            question = "" if link else self._logins.ask_once(login, outcome, label, command)
            if link or question:
                buttons.append({"label": label, "question": question, "link": link})
        return buttons

    async def _render_error(
        self, request: web.Request, status: int, reason: str, sentence: str = ""
    ) -> web.Response:
        texts = self._load_texts(request)
        values = {
            "sentence": sentence or load_words(texts)[reason],
            "typed": [] if reason in UNREAD else await _read_typed(request),
        }
        response = await self._render_template("error.html", texts, values)
        response.set_status(status)
        return response

    def _load_texts(self, request: web.Request) -> Texts:
        """Return the texts of the person who is logged in, or those of the browser's language."""
        login = self._logins.find(request.cookies.get(self.cookie, ""), self._find_address(request))
        language = None
        if login is not None:
            language = self._services.languages.codes.get(login.visitor.account.key)
        return load_request_texts(request, language)

    async def _render_template(
        self, name: str, texts: Texts, values: Values, page: str = ""
    ) -> web.Response:
        content = await self._render(name, texts, values, page)
        return web.Response(text=content, content_type="text/html", charset="utf-8")

    async def _render(self, name: str, texts: Texts, values: Values, page: str = "") -> str:
        """Render a template in short steps, so a long page doesn't delay the answers of chats."""
        page_values = {"is_top_sent": False, **values}
        words = load_words(texts, page)
        template = self._environment.get_template(name)
        pieces = []
        begun_s = time.perf_counter()
        for piece in template.generate(t=words, language=texts.language, **page_values):
            pieces.append(piece)
            if time.perf_counter() - begun_s > RENDER_STEP_S:
                await asyncio.sleep(0)
                begun_s = time.perf_counter()
        return "".join(pieces)


async def _word_refusal(run: RunAction, texts: Texts, draft: Draft | None) -> Outcome:
    """Run an action. If it is refused, the answer is the reason."""
    try:
        answer = await run()
    except StoreError:
        raise
    except MnemeError as error:
        return Outcome(Answer(text=texts.word(error)), draft)
    if answer is not None and answer.asks_again is not None:
        # In a chat, the model answers the result of an approved look-up. Here it is shown.
        answer = Answer(text=escape(answer.asks_again.text[:MAX_RESULT_CHARS]))
    return Outcome(answer, draft if answer is not None and _is_question(texts, answer) else None)


async def _read_typed(request: web.Request) -> list[str]:
    """Return the texts in the form of a request that failed, so that its page can show them."""
    if request.method != "POST":
        return []
    try:
        fields = await request.post()
    except (web.HTTPException, ValueError):
        return []
    return list_typed({name: value for name, value in fields.items() if isinstance(value, str)})


def _copy_draft(outcome: Outcome | None) -> Draft:
    """Return the form that an action didn't accept, for one rendering of its page."""
    draft = outcome.draft if outcome is not None else None
    return Draft("", {}) if draft is None else Draft(draft.action, draft.fields)


def _is_question(texts: Texts, answer: Answer) -> bool:
    """Return whether an answer asks a question before the action is done."""
    labels = [button.label for button in answer.buttons]
    return answer.confirm_command is not None or texts.BUTTON_KEEP_ANYWAY in labels


def _send_file(file: File) -> web.Response:
    """Return a response with a file. Browsers show pictures and save other files."""
    media_type = file.mime if is_picture(file.mime) else "application/octet-stream"
    disposition = "inline" if is_picture(file.mime) else "attachment"
    headers = {"Content-Disposition": f'{disposition}; filename="{_make_file_name(file.name)}"'}
    return web.Response(body=file.content, content_type=media_type, headers=headers)


def _make_file_name(name: str) -> str:
    """Return a file name that is valid in an HTTP header."""
    return re.sub(r"[^\w.-]+", "_", name, flags=re.ASCII)


def _list_hosts(options: PageOptions) -> frozenset[str]:
    """Return the values of the `Host` header that are accepted."""
    hosts = {f"{name}:{options.port}" for name in (*LOCAL_NAMES, options.bind)}
    return frozenset({*hosts, urlsplit(options.url).netloc.lower()} - {""})


def load_request_texts(request: web.Request, language: str | None = None) -> Texts:
    """Return the texts in a person's language, or in the browser's language if that is empty."""
    if language is not None:
        return load_texts(language)
    for entry in request.headers.get("Accept-Language", "").split(",")[:20]:
        code = match_language(entry.partition(";")[0].strip())
        if code is not None:
            return load_texts(code)
    return load_texts("en")
