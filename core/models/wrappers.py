"""Sends each request to a model that can answer it, and logs the usage.

`MeteredModel` logs the usage. `FallbackModel` asks another model during an outage. `ModelRouter`
finds the server of a model, and removes the parts of a request that the model can't use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain
from operator import itemgetter
from typing import Protocol

import structlog

from config.model_options import CacheLife, ModelOptions
from core.errors import ModelError, Sentence, StoreError, TurnBudgetSpent
from core.models.abilities import (
    LackingModels,
    LearnedLimits,
    ModelClient,
    Route,
    add_prefix,
    repair_calls,
)
from core.models.failures import (
    ModelFailure,
    ServerNames,
    WordSentence,
    build_public_sentence,
    build_sentence,
    word_in_english,
)
from core.ports import Clock, Model, TextCallback
from core.store.model_limits import ModelOutages
from core.store.usage_limits import ModelCall, UsageLog
from core.types import BillingScope, CallKind, Completion, Request, Session, TurnBudget, Usage

# The kinds of model calls that tools make.
_TOOL_KINDS: frozenset[CallKind] = frozenset(
    {"delegation", "expansion", "rerank", "search", "summary"}
)

# The kinds of model calls to which the setting `model.effort` applies.
_THINKING_KINDS: frozenset[CallKind] = frozenset({"chat", "compression", "delegation"})


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

    `name` is the name of the model, `instruction` is the system prompt, and `texts` are the blocks
    of the user's message. Raises ModelError if the model doesn't answer.
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


def take_call(budget: TurnBudget) -> None:
    """Count a call before it's made. Raises TurnBudgetSpent if the turn has no call left."""
    if not budget.has_calls_left():
        raise TurnBudgetSpent(budget.calls, budget.tokens)
    budget.calls += 1


class MeteredModel:
    """A `Model` that checks daily limits and logs the usage of each call.

    A turn checks its limits once, before it begins, so it uses `complete_unlogged`. All other calls
    use `complete`. `life` is how long the server keeps a cached prefix. `fill_pictures` replaces
    the hashes of pictures in a request with their bytes, and `on_pictures` gets the answer to that
    request.
    """

    def __init__(
        self,
        model: Model,
        usage_log: UsageLog,
        clock: Clock,
        life: CacheLife = "5m",
        fill_pictures: Callable[[Request], Awaitable[Request]] | None = None,
        on_pictures: Callable[[Request, Completion], Awaitable[None]] | None = None,
    ) -> None:
        self._on_pictures = on_pictures
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
        is used up, and ModelError if the model doesn't answer.
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
        """Return the budget for the tools and tasks of a turn.

        If an earlier process began the turn, `since` is the time when it first called tools. The
        usage since then counts.
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
        """Ask the model. Returns its answer and the call, which the caller must log.

        The call is None if no tokens were used, as with an offline model. Raises ModelError if the
        model doesn't answer.
        """
        hash_request = request
        if self._fill_pictures is not None and _has_pictures(request):
            request = await self._fill_pictures(request)
        cached_from = self._clock.now() - self._cache_lifetime
        completion = await self._model.complete(request, on_text, on_wait)
        if self._on_pictures is not None and request is not hash_request:
            await self._on_pictures(hash_request, completion)
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
        """Store a call in the usage log.

        A failure is only logged, so that the answer isn't lost.
        """
        try:
            await self._usage_log.log(call)
        except StoreError as error:
            self._log.warning("a call was not logged", error=str(error))


def _has_pictures(request: Request) -> bool:
    if request.has_pictures is not None:
        return request.has_pictures
    # A loop over the blocks of a long conversation takes four times as long.
    blocks = chain.from_iterable(map(itemgetter("content"), request.messages))
    return "image" in map(itemgetter("type"), blocks)


# The pause between two attempts to reach an unreachable model.
RETRY_PAUSE = timedelta(seconds=5)
# After this many failed turns in a row, the model counts as unreachable for all turns.
MAX_FAILED_TURNS = 2
# The status of a request that is too long. The model itself works.
TOO_LONG_STATUS = 413
# With these statuses, the server refuses all requests until the owner corrects the key, the credit
# or the model's name. Any other refusal concerns only one request.
REFUSED_STATUSES = (401, 402, 403, 404)
# These kinds of failures have no such status, but also last until the owner corrects them.
_LASTING_KINDS = ("illegal_key", "spend_limit")


def concerns_one_request(error: ModelError) -> bool:
    """Return whether a model refused only this request and will probably answer the next one."""
    kind = getattr(error, "kind", "")
    if error.is_retryable or kind in _LASTING_KINDS:
        return False
    is_flagged = error.status == 403 and kind == "refused"
    return is_flagged or error.status not in REFUSED_STATUSES


class _Breaker:
    """Decides whether to ask a model, based on its latest failures.

    A model that failed in a turn isn't asked again in that turn. After `MAX_FAILED_TURNS` failed
    turns in a row, the model counts as unreachable, and turns no longer wait for it. From then on,
    one call per `RETRY_PAUSE` tries the model again. If it answers, all turns use it again.
    """

    def __init__(self, clock: Clock, outage: Sentence | None = None) -> None:
        """Create the breaker. `outage` says why the model was unreachable before a restart."""
        self._clock = clock
        # Why the model counts as unreachable. None if it is asked as usual.
        self._outage = outage
        # Why the model failed since its last answer, by the key of the turn, latest last. The
        # sentences may repeat what the person wrote in the turn.
        self._failures: dict[str, Sentence] = {}
        self._retry_at = clock.now()
        self._is_trial_running = False
        # How many calls outside of turns have failed.
        self._calls = 0

    def find_failure(self, turn_key: str) -> Sentence | None:
        """Return the reason why this turn must not ask the model, or None if it may.

        The reason is that the model has already failed in this turn, or that it counts as
        unreachable and the next trial isn't due.
        """
        own_failure = self._failures.get(turn_key)
        if own_failure is not None:
            return own_failure
        if not self._is_trial_running and self._clock.now() >= self._retry_at:
            return None
        return self._outage

    async def ask(
        self, model: Model, request: Request, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        """Ask the model. If it counts as unreachable, this is a trial without retries.

        Raises ModelError if the model doesn't answer.
        """
        is_out = self._outage is not None
        # Only the call that began the trial ends it. Other calls may run meanwhile.
        is_trial = is_out and not self._is_trial_running
        if is_trial:
            self._is_trial_running = True
        try:
            completion = await model.complete(
                replace(request, is_single_attempt=is_out), on_text, on_wait
            )
        except ModelError as error:
            self._record_failure(request.turn_key, error)
            raise
        finally:
            if is_trial:
                self._is_trial_running = False
        self._outage = None
        self._failures.clear()
        return completion

    def _record_failure(self, turn_key: str, error: ModelError) -> None:
        """Record a failure, unless it concerns only this request."""
        self._retry_at = self._clock.now() + RETRY_PAUSE
        if concerns_one_request(error):
            return
        if not turn_key:
            # Each call outside of a turn counts as a turn.
            self._calls += 1
            turn_key = f"call {self._calls}"
        failures = [*self._failures.items(), (turn_key, build_sentence(error))]
        self._failures = dict(failures[-MAX_FAILED_TURNS:])
        if self._outage is not None or len(self._failures) >= MAX_FAILED_TURNS:
            self._outage = build_public_sentence(error)


class FallbackModel:
    """A `Model` that asks the requested model, then the fallbacks, and finally `last_resort`.

    `model` sends requests to all models except `last_resort`. `fallbacks` are the names of the
    models to ask, in this order. Each model has its own breaker. An answer of `last_resort` begins
    with a sentence about the failure of the first model. `outages` are the outages that an earlier
    process recorded. `word` returns these sentences in the language of a request.
    """

    def __init__(
        self,
        model: Model,
        last_resort: Model,
        clock: Clock,
        fallbacks: Sequence[str] = (),
        outages: ModelOutages | None = None,
        word: WordSentence = word_in_english,
    ) -> None:
        self._model = model
        self._last_resort = last_resort
        self._fallbacks = fallbacks
        self._outages = outages or ModelOutages()
        self._word = word
        self._breakers = _Breakers(clock, self._outages.list_reasons())
        self._log = structlog.get_logger("model")

    async def complete(
        self, request: Request, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        """Ask the model of the request, and then its fallbacks in order.

        A model that fails or counts as unreachable is skipped. Once a fallback has answered in a
        turn, it's used until the end of the turn, so that no other model continues its tool calls.

        Raises ModelError if the conversation is too long,
        or if no model answers and the request excludes the last resort.
        """
        reasons: list[Sentence] = []
        names = list(dict.fromkeys((request.model, *self._fallbacks)))
        fallback = self._outages.turns.get(request.turn_key)
        if fallback in names:
            names = names[names.index(fallback) :]
        for name in names:
            reason = None
            if request.has_fallback:
                reason = self._breakers.find(name).find_failure(request.turn_key)
            if reason is None:
                try:
                    return await self._ask(name, request, on_text, on_wait)
                except ModelError as error:
                    if error.status == TOO_LONG_STATUS:
                        raise
                    reason = build_sentence(error)
                    latest_error = error
                    await self._note_failure(request, name, error)
            reasons.append(reason)
        if not request.has_fallback:
            raise latest_error
        return await self._ask_last_resort(request, reasons[0], on_text, on_wait)

    async def _note_failure(self, request: Request, name: str, error: ModelError) -> None:
        """Log a failure. If the chosen model failed, remember the reason for the conversations."""
        is_refusal = concerns_one_request(error)
        event = "the model refuses a request" if is_refusal else "the model is out of reach"
        self._log.warning(event, model=name, error=error.log_message)
        if name != request.model:
            return
        if is_refusal:
            self._outages.note_refusal(request, build_public_sentence(error))
        else:
            await self._outages.begin(name, build_public_sentence(error))

    async def _ask(
        self, name: str, request: Request, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        """Ask a model. If it's a fallback, put a line above its answer.

        Raises ModelError if the model doesn't answer.
        """
        prefix = self._fallback_notice(request, name)
        completion = await self._breakers.find(name).ask(
            self._model,
            replace(request, model=name),
            lambda text: on_text(prefix + text),
            on_wait,
        )
        if name in self._outages.by_model:
            await self._outages.end(name)
        if name != request.model:
            has_notice = not prefix or bool(completion.text)
            await self._outages.note_answer(request, name, has_notice=has_notice)
        elif self._outages.refusals:
            await self._outages.forget_refusal(request)
        return add_prefix(prefix, completion) if prefix else completion

    def _fallback_notice(self, request: Request, name: str) -> str:
        """Return the line above a fallback's answer, at most once per conversation and outage.

        If the model refuses only a conversation's requests, the line appears once until the model
        answers there.
        """
        if name == request.model or self._outages.is_known_in(request):
            return ""
        key = "model_refused_fallback" if self._outages.is_refused(request) else "model_fallback"
        sentence = Sentence(key, {"model": request.model, "fallback": name})
        return f"_{self._word(request.language, sentence)}_\n\n"

    async def _ask_last_resort(
        self, request: Request, sentence: Sentence, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        """Ask the last resort, and put the sentence above the text of its answer."""
        prefix = f"_{self._word(request.language, sentence)}_\n\n"
        completion = await self._last_resort.complete(
            request, lambda text: on_text(prefix + text), on_wait
        )
        if not completion.text:
            return completion
        text = prefix + completion.text
        return replace(completion, text=text, blocks=({"type": "text", "text": text},))


class _Breakers:
    """The breakers of models, by name. `outages` are the reasons of earlier outages."""

    def __init__(self, clock: Clock, outages: Mapping[str, Sentence] | None = None) -> None:
        self._clock = clock
        self._by_model = {name: _Breaker(clock, reason) for name, reason in (outages or {}).items()}

    def find(self, name: str) -> _Breaker:
        """Return the breaker of a model."""
        return self._by_model.setdefault(name, _Breaker(self._clock))


class ChosenHelper(Protocol):
    """Returns the helper model that people have chosen. `core.store.model_limits` implements it."""

    names: dict[int, str]

    async def find(self, session_id: int | None) -> str | None:
        """Return the helper model that was chosen for the conversation of a session, or None."""


class HelperModel:
    """A `Model` that asks the helper model that was chosen for the conversation of a request.

    `options` has the configured helper model, the models to choose from, and the fallbacks. A
    chosen model that is no longer offered is ignored.
    """

    def __init__(
        self, model: Model, options: ModelOptions, choices: ChosenHelper, clock: Clock
    ) -> None:
        self._model = model
        self._options = options
        self._choices = choices
        self._breakers = _Breakers(clock)

    async def complete(
        self, request: Request, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        """Ask the helper model, and then its fallbacks.

        Raises ModelError if the request is too long, or if none of them answers.
        """
        if request.model != self._options.helper or not request.has_fallback:
            return await self._model.complete(request, on_text, on_wait)
        name = request.model
        if self._choices.names:
            chosen = await self._choices.find(request.billing.session_id)
            if chosen in self._options.offered_helpers:
                name = chosen or name
        names = list(dict.fromkeys((name, *self._options.helper_fallbacks)))
        is_any_usable = any(map(self._is_usable, names))
        first_error: ModelError | None = None
        for name in names:
            if is_any_usable and not self._is_usable(name):
                continue
            try:
                return await self._breakers.find(name).ask(
                    self._model, replace(request, model=name), on_text, on_wait
                )
            except ModelError as error:
                if error.status == TOO_LONG_STATUS:
                    raise
                structlog.get_logger("model").warning(
                    "the helper model doesn't answer", model=name, error=error.log_message
                )
                first_error = first_error or error
        raise first_error or ModelError("No helper model answers.", is_retryable=True)

    def _is_usable(self, name: str) -> bool:
        return self._breakers.find(name).find_failure("") is None


@dataclass(slots=True)
class ModelTally:
    """The number of calls and tokens since the process started."""

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

    `clients` maps the name of each usable server to its client. `missing_keys` are the environment
    variables that are missing for the other servers. `limits` stores the limits of models.
    `on_retired` is called with a model that its server no longer has, and the successor or "".
    `word` returns the sentence about missing abilities in the language of a request.
    """

    def __init__(
        self,
        clients: Mapping[str, ModelClient],
        missing_keys: Mapping[str, str],
        options: ModelOptions,
        limits: LearnedLimits | None = None,
        on_retired: Callable[[str, str], Awaitable[None]] | None = None,
        word: WordSentence = word_in_english,
    ) -> None:
        self._clients = clients
        self._missing_keys = missing_keys
        self._options = options
        self._limits = limits
        self._on_retired = on_retired
        self.tally = ModelTally()
        self._lacking = LackingModels(limits, word)
        self._routes: dict[str, Route] = {}
        # The models whose servers count no tokens, by the names that these servers give them.
        self._uncounted: set[str] = set()

    async def complete(
        self, request: Request, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        """Ask the model of the request, and count the call.

        Raises ModelError if the model doesn't answer.
        """
        try:
            completion = await self._ask(request, on_text, on_wait)
        except ModelError as error:
            self.tally.count_failure(request.model, error)
            raise
        if not (completion.usage.total_input or completion.usage.output):
            completion = await self._estimate_usage(request, completion)
        self.tally.count_answer(request.model, completion.usage)
        # An answer that was cut off may have calls, too.
        if any(block["type"] == "tool_use" for block in completion.blocks):
            return repair_calls(request, completion)
        return completion

    async def _ask(
        self, request: Request, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        """Ask the model of the request, without the parts that the model can't use.

        If its server refuses another such part, the request is sent again without that. Raises
        ModelError if the model doesn't answer.
        """
        route = await self._find_route(request.model)
        plain_request = request
        while True:
            request = plain_request
            if route.effort and request.kind in _THINKING_KINDS:
                request = replace(request, effort=route.effort)
            try:
                if route.lacks:
                    return await self._lacking.complete(route, request, on_text, on_wait)
                return await route.client.complete(
                    replace(request, model=route.model), on_text, on_wait
                )
            except ModelFailure as failure:
                if not await self._learn(route, request, failure):
                    raise

    async def _learn(self, route: Route, request: Request, failure: ModelFailure) -> bool:
        """Learn a limit of a model from a failure. Returns whether another request may succeed.

        The owner is informed of a retired model, and a window size that the failure states is
        stored.
        """
        name = request.model
        is_gone = failure.kind == "no_model" and not failure.refused_abilities
        if is_gone and self._on_retired is not None:
            successor = failure.successor or self._options.find_successor(name)
            await self._on_retired(name, successor)
        if failure.window_tokens and self._limits is not None:
            await self._limits.save_window(name, failure.window_tokens)
        if not failure.refused_abilities or failure.has_begun:
            return False
        return await self._lacking.learn(route, request, failure)

    async def _estimate_usage(self, request: Request, completion: Completion) -> Completion:
        """Return the answer with an estimated usage, because its server doesn't count tokens."""
        from core.models.estimates import estimate_usage

        if completion.model not in self._uncounted:
            self._uncounted.add(completion.model)
            if self._limits is not None:
                await self._limits.save_uncounted(completion.model)
        return replace(completion, usage=estimate_usage(request, completion))

    async def probe(self, model: str) -> Sentence:
        route = await self._find_route(model)
        return await route.client.probe(route.model)

    async def fetch_window_tokens(self, model: str) -> int | None:
        try:
            route = await self._find_route(model)
        except ModelFailure:
            return None
        sizes = [await route.client.fetch_window_tokens(route.model)]
        if self._limits is not None:
            sizes.append(await self._limits.load_window(model))
        return min((size for size in sizes if size), default=None)

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()

    async def _find_route(self, name: str) -> Route:
        """Return the route to a model. Raises ModelFailure if the key of its server is missing."""
        if name in self._routes:
            return self._routes[name]
        server, model = self._options.split_name(name)
        client = self._clients.get(server)
        if client is None:
            names = ServerNames(key=self._missing_keys.get(server, ""))
            raise ModelFailure("no_key", names=names, status=401, model=name)
        lacks = self._options.known_lacks(name)
        if self._limits is not None:
            if self._options.has_all_abilities(name):
                await self._limits.forget_lacks(name)
            lacks |= await self._limits.load_lacks(name)
        effort = await self._lacking.find_effort(name, self._options.effort_of(name))
        route = Route(client=client, model=model, effort=effort, lacks=lacks)
        return self._routes.setdefault(name, route)
