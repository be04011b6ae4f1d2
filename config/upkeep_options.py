"""The options of what keeps a home safe for years, such as backups.

`config/settings.py` reads them; this module only has their types.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from config.field_types import Count, Interval, KeyVariable, OptionalFolder


class BackupOptions(BaseModel):
    """The section [backup]."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    every: Interval
    # None means next to the home.
    folder: OptionalFolder
    keep: Count
    keep_days: Count
    # A public key of age or SSH; empty if backups aren't encrypted with a key.
    encrypt_to: str
    # The name of an environment variable; empty if backups have no passphrase.
    passphrase: KeyVariable
