"""Repeats failed calls of a model, logs their usage, and asks another model during an outage.

`Retries` repeats a failed call, `ModelRouter` finds the server of a model, `FallbackModel` asks
another model, and `MeteredModel` logs the usage.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import random
from typing import Any, Protocol

import structlog

from config.settings import CacheLife, ModelOptions
from core.errors import ModelError, StoreError, TurnBudgetSpent
from core.models.failures import ModelFailure, ServerNames
from core.ports import Clock, Model, TextCallback
from core.store.usage_and_limits import ModelCall, UsageLog
from core.text.normalize import make_json_safe
from core.types import BillingScope, CallKind, Completion, Request, Session, TurnBudget, Usage

# The kinds of model calls that tools make.
_TOOL_KINDS: frozenset[CallKind] = frozenset({"delegation", "expansion", "rerank", "summary"})

# The longest pause between two attempts, unless the server asks for a longer one.
MAX_PAUSE_S = 30.0
# The shortest pause after the first attempt, even if the server asks for a shorter pause. The
# shortest pause doubles with each attempt.
MIN_PAUSE_S = 0.5
# The first attempt may take this share of the timeout. If it hangs, time for another one is left.
FIRST_ATTEMPT_SHARE = 1 / 3
# Reading events that have already arrived may block the event loop for this long.
MAX_BURST_S = 0.01
# A text up to this length is shown after every piece.
OFTEN_SHOWN_CHARS = 10_000
# A longer text is shown again once its new piece is at least this fraction of it.
MIN_SHOWN_FRACTION = 1 / 50


async def ask_model(
    model: Model,
    name: str,
    kind: CallKind,
    instruction: str,
    texts: Sequence[str],
    *,
    max_tokens: int,
    billing: BillingScope,
) -> Completion:
    """Send a single request outside of any conversation, and return the answer.

    `name` is the name of the model, `instruction` the system prompt, and `texts` are the blocks of
    the user's message. Raises ModelError if the model doesn't answer.
    """
    request = Request(
        system=({"type": "text", "text": instruction},),
        messages=({"role": "user", "content": [{"type": "text", "text": text} for text in texts]},),
        model=name,
        max_tokens=max_tokens,
        kind=kind,
        billing=billing,
    )
    return await model.complete(request, lambda _: None, lambda _: None)


class Attempt(Protocol):
    """Sends a request once. A model client implements it."""

    async def __call__(
        self, request: Request, on_piece: TextCallback, silence_s: float
    ) -> Completion:
        """Send the request, and return the answer.

        `on_piece` receives each piece of the answer's text as it arrives. The attempt fails if the
        server sends nothing for `silence_s`. Raises ModelFailure.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """Repeats a request after a temporary failure."""

    clock: Clock
    # The maximum number of attempts of a call.
    tries: int = 5
    # No attempt starts later than this after the first attempt. The first attempt fails if the
    # server sends nothing for `first_silence_s`. A later attempt may use the remaining time.
    timeout_s: float = 120.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    @property
    def first_silence_s(self) -> float:
        """How long the server may send nothing in the first attempt."""
        return self.timeout_s * FIRST_ATTEMPT_SHARE if self.tries > 1 else self.timeout_s

    async def complete(
        self, attempt: Attempt, request: Request, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        """Ask the model, as `Model.complete` does. Raises ModelError if the last attempt fails.

        If an answer breaks off, the request is repeated only once.
        """
        ends_at = self.clock.now() + timedelta(seconds=self.timeout_s)
        max_attempts = 1 if request.is_single_attempt else self.tries
        attempts = 0
        broken_answers = 0
        silence_s = self.first_silence_s
        while True:
            attempts += 1
            if attempts > 1:
                remaining_s = (ends_at - self.clock.now()).total_seconds()
                silence_s = max(self.first_silence_s, remaining_s)
            try:
                return await attempt(request, GrowingText(on_text).add, silence_s)
            except ModelFailure as failure:
                if failure.has_begun:
                    broken_answers += 1
                pause_s = _pause_after(attempts, failure.retry_after_s)
                is_too_late = self.clock.now() + timedelta(seconds=pause_s) > ends_at
                if not failure.is_retryable or attempts >= max_attempts or is_too_late:
                    raise
                if broken_answers > 1:
                    raise
                shown_s = max(1, math.ceil(pause_s))
                structlog.get_logger("model").info(
                    "the model is asked again",
                    why=failure.log_message,
                    pause_s=shown_s,
                    tried=attempts,
                )
                on_wait(
                    f"{failure.clause}; trying again in {shown_s} s "
                    f"({attempts + 1} of {max_attempts})."
                )
            await self.sleep(pause_s)


def _pause_after(attempts: int, requested_s: float | None) -> float:
    """Return the pause after this many attempts.

    If the server requested a pause, that one is used, unless it's very short.
    """
    backoff_s: float = 2.0 ** (attempts - 1)
    if requested_s is not None:
        return max(requested_s, MIN_PAUSE_S * backoff_s)
    return min(backoff_s + random(), MAX_PAUSE_S)


async def read_stream(
    events: AsyncIterable[Any], add_event: Callable[[Any], str], on_piece: TextCallback
) -> None:
    """Pass each event of a stream to `add_event`, and the text that it returns to `on_piece`.

    Events that have already arrived are read without a pause for other tasks, so there is a pause
    after `MAX_BURST_S`.
    """
    paused_at_s = time.monotonic()
    async for event in events:
        piece = add_event(event)
        if piece:
            on_piece(piece)
        if time.monotonic() - paused_at_s > MAX_BURST_S:
            await asyncio.sleep(0)
            paused_at_s = time.monotonic()


class GrowingText:
    """Shows a text while its pieces arrive.

    A long text is shown only after it has grown by a fiftieth, so that all shown texts together
    take linear time.
    """

    def __init__(self, on_text: TextCallback) -> None:
        self._on_text = on_text
        self._text = ""
        self._shown_chars = 0

    def add(self, piece: str) -> None:
        """Add a piece, and show the whole text if it has grown enough."""
        self._text += piece
        if len(self._text) > OFTEN_SHOWN_CHARS:
            new_chars = len(self._text) - self._shown_chars
            if new_chars < len(self._text) * MIN_SHOWN_FRACTION:
                return
        self._shown_chars = len(self._text)
        text = self._text
        if "\ud800" <= text[-1:] <= "\udbff":
            # The next piece has the other half of this surrogate pair.
            text = text[:-1]
        if text.strip():
            self._on_text(str(make_json_safe(text)))


def take_call(budget: TurnBudget) -> None:
    """Count a call before it's made. Raises TurnBudgetSpent if the turn has no call left."""
    if not budget.has_calls_left():
        raise TurnBudgetSpent(budget.calls, budget.tokens)
    budget.calls += 1


class MeteredModel:
    """A `Model` that checks daily limits and logs the usage of each call.

    A turn checks its limits once, before it begins, so it uses `complete_unlogged`. All other calls
    use `complete`. `life` is how long the server keeps a cached prefix. `fill_pictures` replaces
    the hashes of pictures in a request with their bytes.
    """

    def __init__(
        self,
        model: Model,
        usage_log: UsageLog,
        clock: Clock,
        life: CacheLife = "5m",
        fill_pictures: Callable[[Request], Awaitable[Request]] | None = None,
    ) -> None:
        self._model = model
        self._fill_pictures = fill_pictures
        # An offline model costs nothing.
        self.is_free: bool = getattr(model, "is_free", False)
        self._usage_log = usage_log
        self._clock = clock
        self._cache_lifetime = timedelta(minutes=5) if life == "5m" else timedelta(hours=1)
        self._log = structlog.get_logger("usage")

    async def check_limits(self, billing: BillingScope) -> None:
        """Raise LimitReached if a daily limit is used up."""
        await self._usage_log.check_limits(billing, self._clock.now())

    async def complete(
        self, request: Request, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        """Check the limits, ask the model and log the call.

        Raises LimitReached if a daily limit is used up, TurnBudgetSpent if the budget of the turn
        is, and ModelError if the model doesn't answer.
        """
        await self.check_limits(request.billing)
        budget = request.billing.budget
        if budget is not None:
            take_call(budget)
        completion, call = await self.complete_unlogged(request, on_text, on_wait)
        if budget is not None:
            budget.tokens += completion.usage.total_input + completion.usage.output
        if call is not None:
            await self.log_call(call)
        return completion

    async def open_turn_budget(
        self, options: ModelOptions, session: Session, since: datetime | None
    ) -> TurnBudget:
        """Return the budget for the helpers of a turn.

        `since` is when the turn first called tools, if an earlier process began it. What the turn
        has spent since then is counted.
        """
        budget = TurnBudget(
            max_calls=options.max_helper_calls, max_tokens=options.max_helper_tokens
        )
        if since is None or session.is_incognito:
            return budget
        spending = await self._usage_log.load_spending(
            frozenset((session.scope,)), since=since, session_id=session.id
        )
        for kind, part in spending.by_kind:
            if kind in _TOOL_KINDS:
                budget.calls += part.calls
                budget.tokens += part.usage.total_input + part.usage.output
        return budget

    async def complete_unlogged(
        self, request: Request, on_text: TextCallback, on_wait: TextCallback
    ) -> tuple[Completion, ModelCall | None]:
        """Ask the model, and return its answer and the call, which the caller must log.

        The call is None if no tokens were counted, as with an offline model and some servers.
        Raises ModelError if the model doesn't answer.
        """
        if self._fill_pictures is not None and _has_pictures(request):
            request = await self._fill_pictures(request)
        cached_from = self._clock.now() - self._cache_lifetime
        completion = await self._model.complete(request, on_text, on_wait)
        if not (completion.usage.total_input or completion.usage.output):
            return completion, None
        return completion, ModelCall(
            kind=request.kind,
            model=completion.model,
            usage=completion.usage,
            at=self._clock.now(),
            billing=request.billing,
            cached_from=cached_from,
        )

    async def log_call(self, call: ModelCall) -> None:
        """Store a call in the usage log. If that fails, log a warning, so the answer isn't lost."""
        try:
            await self._usage_log.log(call)
        except StoreError as error:
            self._log.warning("a call was not logged", error=str(error))


def _has_pictures(request: Request) -> bool:
    for message in request.messages:
        for block in message["content"]:
            if block["type"] == "image":
                return True
    return False


# The pause between two attempts to reach an unreachable model.
RETRY_PAUSE = timedelta(seconds=5)
# After this many failed turns in a row, the model counts as unreachable for all turns.
MAX_FAILED_TURNS = 2
# The status of a request that is too long. The model itself works.
TOO_LONG_STATUS = 413
# With these statuses, the server refuses all requests until the owner corrects the key, the credit
# or the model's name. Any other refusal concerns only one request.
REFUSED_STATUSES = (401, 402, 403, 404)


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why the first model failed in a turn."""

    # Shown in the turn that failed. The sentence may repeat what the person wrote.
    sentence: str
    # Shown in all other turns.
    log_message: str


class _Breaker:
    """Decides whether to ask a model, by its latest failures.

    A model that failed in a turn isn't asked again in that turn. After `MAX_FAILED_TURNS` failed
    turns in a row, no turn waits for it. From then on, one call in each `RETRY_PAUSE` tries it
    again. As soon as it answers, all turns use it again.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # The failures since the last answer, by the key of the turn, latest last.
        self._failures: dict[str, _Failure] = {}
        self._retry_at = clock.now()
        self._is_trial_running = False

    @property
    def is_open(self) -> bool:
        """True if the model counts as unreachable."""
        return len(self._failures) >= MAX_FAILED_TURNS

    def find_failure(self, turn_key: str) -> str | None:
        """Return why this turn doesn't ask the model, or None if it should ask.

        The reason is that the model has already failed in this turn, or that it counts as
        unreachable and it isn't time for another trial.
        """
        own_failure = self._failures.get(turn_key)
        if own_failure is not None:
            return own_failure.sentence
        if not self.is_open:
            return None
        if not self._is_trial_running and self._clock.now() >= self._retry_at:
            return None
        latest = list(self._failures.values())[-1]
        return latest.log_message

    async def ask(
        self, model: Model, request: Request, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        """Ask the model. If it counts as unreachable, this is a trial without retries.

        Raises ModelError if the model doesn't answer.
        """
        is_trial = self.is_open
        self._is_trial_running = is_trial
        try:
            completion = await model.complete(
                replace(request, is_single_attempt=is_trial), on_text, on_wait
            )
        except ModelError as error:
            self._record_failure(request.turn_key, error)
            raise
        finally:
            self._is_trial_running = False
        self._failures.clear()
        return completion

    def _record_failure(self, turn_key: str, error: ModelError) -> None:
        """Record a failure, unless it concerns only this request."""
        if error.status == TOO_LONG_STATUS:
            return
        if not error.is_retryable and error.status not in REFUSED_STATUSES:
            return
        self._retry_at = self._clock.now() + RETRY_PAUSE
        failure = _Failure(str(error), error.log_message)
        failures = [*self._failures.items(), (turn_key, failure)]
        self._failures = dict(failures[-MAX_FAILED_TURNS:])


class FallbackModel:
    """A `Model` that asks a request's model, then the fallbacks, and at last `last_resort`.

    `model` sends requests to all models except `last_resort`. `fallbacks` are the names of the
    models to ask, in this order. Each model has its own breaker. An answer of `last_resort` begins
    with a sentence about the failure of the first model.
    """

    def __init__(
        self, model: Model, last_resort: Model, clock: Clock, fallbacks: Sequence[str] = ()
    ) -> None:
        self._model = model
        self._last_resort = last_resort
        self._clock = clock
        self._fallbacks = fallbacks
        self._breakers: dict[str, _Breaker] = {}
        # The conversations in which an answer has mentioned the present outage.
        self._informed_sessions: set[int | None] = set()
        self._log = structlog.get_logger("model")

    async def complete(
        self, request: Request, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        """Ask the model of the request, and then its fallbacks in order.

        A model that fails or counts as unreachable is passed over.

        Raises ModelError if the conversation is too long, or if no model answers and the request
        has no fallback.
        """
        reasons: list[str] = []
        for name in dict.fromkeys((request.model, *self._fallbacks)):
            reason = None
            if request.has_fallback:
                reason = self._breaker(name).find_failure(request.turn_key)
            if reason is None:
                try:
                    return await self._ask(name, request, on_text, on_wait)
                except ModelError as error:
                    if error.status == TOO_LONG_STATUS:
                        raise
                    self._log.warning(
                        "the model is out of reach", model=name, error=error.log_message
                    )
                    reason = str(error)
                    latest_error = error
            reasons.append(reason)
        if not request.has_fallback:
            raise latest_error
        return await self._ask_last_resort(request, reasons[0], on_text, on_wait)

    def _breaker(self, name: str) -> _Breaker:
        """Return the breaker of a model."""
        return self._breakers.setdefault(name, _Breaker(self._clock))

    async def _ask(
        self, name: str, request: Request, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        """Ask a model, and put a line above its answer if it is a fallback.

        Raises ModelError if the model doesn't answer.
        """
        prefix = self._fallback_notice(request, name)
        completion = await self._breaker(name).ask(
            self._model,
            replace(request, model=name),
            lambda text: on_text(prefix + text),
            on_wait,
        )
        return self._finish(request, name, completion, prefix)

    def _fallback_notice(self, request: Request, name: str) -> str:
        """Return the line above a fallback's answer. In each outage, a conversation has one."""
        if name == request.model or request.billing.session_id in self._informed_sessions:
            return ""
        return f"_{request.model} is out of reach, so {name} answers._\n\n"

    def _finish(
        self, request: Request, name: str, completion: Completion, prefix: str
    ) -> Completion:
        """Return the answer with `prefix` above its text, and note who knows of the outage."""
        if name == request.model:
            self._informed_sessions.clear()
        if not prefix or not completion.text:
            return completion
        self._informed_sessions.add(request.billing.session_id)
        notice = {"type": "text", "text": prefix}
        return replace(
            completion, text=prefix + completion.text, blocks=(notice, *completion.blocks)
        )

    async def _ask_last_resort(
        self, request: Request, sentence: str, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        """Ask the last resort, and put the sentence above the text of its answer."""
        prefix = f"_{sentence}_\n\n"
        completion = await self._last_resort.complete(
            request, lambda text: on_text(prefix + text), on_wait
        )
        if not completion.text:
            return completion
        text = prefix + completion.text
        return replace(completion, text=text, blocks=({"type": "text", "text": text},))


class ModelClient(Model, Protocol):
    """A connection to a model's server."""

    async def probe(self, model: str) -> str:
        """Ask a model for a short answer; return a sentence that says where it answers."""

    async def list_models(self) -> list[str]:
        """Return the names of the server's models."""

    async def fetch_window_tokens(self, model: str) -> int | None:
        """Return the size of a model's window, or None if the server doesn't report it."""

    async def close(self) -> None:
        """Close all connections."""


@dataclass(slots=True)
class ModelTally:
    """How many calls were made and tokens used since the process began."""

    # By the model's name in the settings, and "answered", "out_of_reach" or "refused".
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    # By "input", "output", "cache_read" and "cache_write".
    tokens: Counter[str] = field(default_factory=Counter)

    def count_failure(self, model: str, error: ModelError) -> None:
        outcome = "out_of_reach" if error.is_retryable else "refused"
        self.outcomes[model, outcome] += 1

    def count_answer(self, model: str, usage: Usage) -> None:
        self.outcomes[model, "answered"] += 1
        self.tokens["input"] += usage.input
        self.tokens["output"] += usage.output
        self.tokens["cache_read"] += usage.cache_read
        self.tokens["cache_write"] += usage.cache_write


class ModelRouter:
    """A `ModelClient` that sends each request to the server of its model.

    `clients` are the servers that can be asked, by name. `missing_keys` are the environment
    variables that the other servers lack. `split_name` returns the server of a model and the
    model's name on that server.
    """

    def __init__(
        self,
        clients: Mapping[str, ModelClient],
        missing_keys: Mapping[str, str],
        split_name: Callable[[str], tuple[str, str]],
    ) -> None:
        self._clients = clients
        self._missing_keys = missing_keys
        self._split_name = split_name
        self.tally = ModelTally()
        # The client of each model that was asked before, and the model's name there.
        self._routes: dict[str, tuple[ModelClient, str]] = {}

    async def complete(
        self, request: Request, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        """Ask the model of the request. Raises ModelError if the model doesn't answer."""
        try:
            client, model = self._find(request.model)
            completion = await client.complete(replace(request, model=model), on_text, on_wait)
        except ModelError as error:
            self.tally.count_failure(request.model, error)
            raise
        self.tally.count_answer(request.model, completion.usage)
        return completion

    async def probe(self, model: str) -> str:
        client, name = self._find(model)
        return await client.probe(name)

    async def fetch_window_tokens(self, model: str) -> int | None:
        try:
            client, name = self._find(model)
        except ModelFailure:
            return None
        return await client.fetch_window_tokens(name)

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()

    def _find(self, model: str) -> tuple[ModelClient, str]:
        """Return the client for a model, and the model's name there.

        Raises ModelFailure if the key of its server is missing.
        """
        if model not in self._routes:
            server, name = self._split_name(model)
            client = self._clients.get(server)
            if client is None:
                names = ServerNames(key=self._missing_keys.get(server, ""))
                raise ModelFailure("no_key", names=names, status=401, model=model)
            self._routes[model] = (client, name)
        return self._routes[model]
