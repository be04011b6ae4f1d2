"""Models that wrap other models: `MeteredModel` logs usage, `FallbackModel` bridges outages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import structlog

from config.settings import CacheLife
from core.errors import ModelError, StoreError
from core.ports import Clock, Model, TextCallback
from core.store.usage_and_limits import ModelCall, UsageLog
from core.types import BillingScope, CallKind, Completion, Request


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


class MeteredModel:
    """A `Model` that checks daily limits and logs the usage of each call.

    A turn checks its limits once, before it begins, so it uses `complete_unlogged`. All other calls
    use `complete`. `life` is how long the server keeps a cached prefix.
    """

    def __init__(
        self, model: Model, usage_log: UsageLog, clock: Clock, life: CacheLife = "5m"
    ) -> None:
        self._model = model
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

        Raises LimitReached if a daily limit is used up, and ModelError if the model doesn't answer.
        """
        await self.check_limits(request.billing)
        completion, call = await self.complete_unlogged(request, on_text, on_wait)
        if call is not None:
            await self.log_call(call)
        return completion

    async def complete_unlogged(
        self, request: Request, on_text: TextCallback, on_wait: TextCallback
    ) -> tuple[Completion, ModelCall | None]:
        """Ask the model; return the completion, and the call for the caller to log.

        The call is None if no tokens were counted, as with an offline model and some servers.
        """
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


class FallbackModel:
    """A `Model` that asks the model `first`, and uses the model `second` while `first` fails.

    If `first` fails, `second` answers the rest of that turn. After `MAX_FAILED_TURNS` failed turns
    in a row, all turns use `second`, without waiting for `first`. Every `RETRY_PAUSE`, one call
    tries `first` again. When `first` answers, it's used for all turns again.
    """

    def __init__(self, first: Model, second: Model, clock: Clock) -> None:
        self._first = first
        self._second = second
        self._clock = clock
        # The failures of `first` since its last answer, by the key of the turn, latest last.
        self._failures: dict[str, _Failure] = {}
        self._retry_at = clock.now()
        self._is_trial_running = False
        self._log = structlog.get_logger("model")

    async def complete(
        self, request: Request, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        """Ask the first model, or the second model if the first model fails.

        An answer of the second model begins with a sentence about the failure of the first model.
        Raises ModelError if the conversation is too long, or if the second model fails, too.
        """
        sentence = self._known_failure(request.turn_key)
        if sentence is None:
            try:
                return await self._ask_first(request, on_text, on_wait)
            except ModelError as error:
                if error.status == TOO_LONG_STATUS:
                    raise
                self._log.warning("the model is out of reach", error=error.log_message)
                self._record_failure(request.turn_key, error)
                sentence = str(error)
        return await self._ask_second(request, sentence, on_text, on_wait)

    @property
    def _is_out_of_reach(self) -> bool:
        return len(self._failures) >= MAX_FAILED_TURNS

    def _known_failure(self, turn_key: str) -> str | None:
        """Return why this turn doesn't ask the first model, or None if it should ask.

        The reason is that the first model has already failed in this turn, or that it counts as
        unreachable and it isn't time for another trial.
        """
        own_failure = self._failures.get(turn_key)
        if own_failure is not None:
            return own_failure.sentence
        if not self._is_out_of_reach:
            return None
        if not self._is_trial_running and self._clock.now() >= self._retry_at:
            return None
        latest = list(self._failures.values())[-1]
        return latest.log_message

    async def _ask_first(
        self, request: Request, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        """Ask the first model. If it counts as unreachable, this is a trial without retries.

        Raises ModelError if the model doesn't answer.
        """
        is_trial = self._is_out_of_reach
        self._is_trial_running = is_trial
        try:
            completion = await self._first.complete(
                replace(request, is_single_attempt=is_trial), on_text, on_wait
            )
        finally:
            self._is_trial_running = False
        self._failures.clear()
        return completion

    def _record_failure(self, turn_key: str, error: ModelError) -> None:
        """Record a failure of the first model, unless the failure concerns only this request."""
        if not error.is_retryable and error.status not in REFUSED_STATUSES:
            return
        self._retry_at = self._clock.now() + RETRY_PAUSE
        failure = _Failure(str(error), error.log_message)
        failures = [*self._failures.items(), (turn_key, failure)]
        self._failures = dict(failures[-MAX_FAILED_TURNS:])

    async def _ask_second(
        self, request: Request, sentence: str, on_text: TextCallback, on_wait: TextCallback
    ) -> Completion:
        """Ask the second model, and put the sentence above the text of its answer."""
        prefix = f"_{sentence}_\n\n"
        completion = await self._second.complete(
            request, lambda text: on_text(prefix + text), on_wait
        )
        if not completion.text:
            return completion
        text = prefix + completion.text
        return replace(completion, text=text, blocks=({"type": "text", "text": text},))
