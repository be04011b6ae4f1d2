"""Everything of ours that can go wrong, as one tree. Messages are sentences a person can act on."""

from config.masking import masked


class MnemeError(Exception):
    """The root: catch this to catch all of ours and nothing else. Secrets in what a vendor said are masked here, before
    anybody shows, stores or logs it. `logged`: without what a service said, who may repeat what people say."""

    def __init__(self, message: str = "") -> None:
        super().__init__(masked(message))
        self.logged = str(self)


class ConfigError(MnemeError):
    """Settings are missing, unknown or of the wrong type: all problems in one message, each with its dotted path."""


class StoreError(MnemeError):
    """state.db is unreadable, read-only, full, of a newer version, or damaged."""


class StaleReadError(StoreError):
    """Something was forgotten since the work began to read: what it made is not kept. It can be begun anew."""


class HistoryError(MnemeError):
    """A file to import is of no known kind, cannot be read, or is broken from some place on."""


class ModelError(MnemeError):
    """The model did not answer. `is_retryable`: trying again can help, after `retry_after_s` as the server asked;
    `status` as HTTP has it (413: the conversation is too long)."""

    def __init__(
        self, message: str, *, is_retryable: bool = False, retry_after_s: float | None = None, status: int | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.is_retryable = is_retryable
        self.retry_after_s = retry_after_s


class ToolError(MnemeError):
    """A tool could not do what was asked; the message tells the model what to do instead."""


class DeliveryError(MnemeError):
    """A platform did not take a message. Permanent: chat gone, bot blocked, token expired. Missing: the message to edit
    is gone, so it is posted anew. Uncertain: the connection broke, so it may have arrived. `words`: of a service."""

    def __init__(
        self,
        message: str,
        *,
        words: str = "",
        is_permanent: bool = False,
        retry_after_s: float | None = None,
        is_missing: bool = False,
        is_uncertain: bool = False,
    ) -> None:
        super().__init__(f"{message}: {words}" if words else message)
        self.logged = masked(message)
        self.is_uncertain = is_uncertain
        self.is_permanent = is_permanent
        self.retry_after_s = retry_after_s
        self.is_missing = is_missing


class Refused(MnemeError):
    """Not allowed, or over a limit; the message is shown to the person as it stands, also where it quotes a secret of
    theirs: nothing in it is a vendor's."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.args = (message,)


class LimitReached(ModelError, Refused):
    """A person or a room has used up what they may in a day; who wanted to ask a model goes on without one."""
