"""The exceptions of this project, which have one root. Their messages say what a person can do."""

from config.masking import mask_secrets


class MnemeError(Exception):
    """The root of the tree. Secrets in the message are masked."""

    def __init__(self, message: str = "") -> None:
        super().__init__(mask_secrets(message))
        # The message for logs. It leaves out the words of a service, which may quote people.
        self.log_message = str(self)


class ConfigError(MnemeError):
    """Settings are missing, unknown or of the wrong type.

    The message lists all problems, each with the dotted path of its setting.
    """


class StoreError(MnemeError):
    """state.db is unreadable, read-only, full, damaged, or written by a newer version."""


class StaleReadError(StoreError):
    """Data was erased after it was read. Nothing is stored, and the operation can be repeated."""


class HistoryError(MnemeError):
    """A file to import has an unknown format, can't be read, or is damaged."""


class ModelError(MnemeError):
    """The model didn't answer."""

    def __init__(
        self,
        message: str,
        *,
        is_retryable: bool = False,
        retry_after_s: float | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        # The HTTP status, for example 413 if the conversation is too long.
        self.status = status
        # Whether another try may succeed.
        self.is_retryable = is_retryable
        # How long the server asked to wait before the next try.
        self.retry_after_s = retry_after_s


class ToolError(MnemeError):
    """A tool call failed. The message tells the model what to do instead."""


class DeliveryError(MnemeError):
    """A platform didn't accept a message."""

    def __init__(
        self,
        message: str,
        *,
        words: str = "",
        is_permanent: bool = False,
        retry_after_s: float | None = None,
        is_missing: bool = False,
        is_uncertain: bool = False,
        is_unreachable: bool = False,
    ) -> None:
        """Create the error. `words` is the service's explanation, which isn't logged."""
        super().__init__(f"{message}: {words}" if words else message)
        self.log_message = mask_secrets(message)
        # Whether the message may have arrived, for example because the connection broke.
        self.is_uncertain = is_uncertain
        # Whether no retry can succeed: the chat is gone, the bot is blocked or the token expired.
        self.is_permanent = is_permanent
        self.retry_after_s = retry_after_s
        # Whether the platform couldn't be reached, or didn't let us in, so that the message waits.
        self.is_unreachable = is_unreachable
        # Whether the message to edit is gone, so that it must be posted again.
        self.is_missing = is_missing


class Refused(MnemeError):
    """Something isn't allowed or is over a limit. The message is shown to the person.

    Secrets in the message aren't masked. The message contains no words of a service, so a secret in
    it can only be the person's own.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.args = (message,)


class LimitReached(ModelError, Refused):
    """A person or group has reached a daily limit. The caller continues without a model."""
