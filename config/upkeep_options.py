"""The options of what keeps a home safe for years, such as backups.

`config/settings.py` reads them; this module only has their types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from config.field_types import Count, Interval, KeyVariable, OptionalFolder, ScopeName

# 0: never.
ExpiryDays = Annotated[int, Field(ge=0, le=36_500)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class MetricsOptions(_Section):
    """The section [metrics]."""

    enabled: bool
    port: Annotated[int, Field(ge=1024, le=65_535)]


class PageOptions(_Section):
    """The section [page]."""

    enabled: bool
    port: Annotated[int, Field(ge=1024, le=65_535)]
    # People who are served may open their own page, too.
    people: bool


class RetentionOptions(_Section):
    """The section [retention]."""

    # For all scopes that `scopes` doesn't name.
    days: ExpiryDays
    scopes: Mapping[ScopeName, ExpiryDays]

    @property
    def is_on(self) -> bool:
        return bool(self.days or any(self.scopes.values()))


class BackupOptions(_Section):
    """The section [backup]."""

    every: Interval
    # None means next to the home.
    folder: OptionalFolder
    keep: Count
    keep_days: Count
    # A public key of age or SSH; empty if backups aren't encrypted with a key.
    encrypt_to: str
    # The name of an environment variable; empty if backups have no passphrase.
    passphrase: KeyVariable
