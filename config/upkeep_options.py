"""Defines the options for maintenance, such as backups and retention.

`config/settings.py` reads the options. This module only defines their types.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from config.field_types import (
    Count,
    Interval,
    KeyVariable,
    OptionalFolder,
    OptionalWebAddress,
    ScopeName,
)

# 0: never.
ExpiryDays = Annotated[int, Field(ge=0, le=36_500)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class MetricsOptions(_Section):
    """The section [metrics]."""

    enabled: bool
    port: Annotated[int, Field(ge=1024, le=65_535)]


class StoreOptions(_Section):
    """The section [store]."""

    # The database on a PostgreSQL server; "" for state.db in the home.
    url: str
    # The environment variable with the password of the database's user.
    password: KeyVariable

    @field_validator("url")
    @classmethod
    def check_url(cls, url: str) -> str:
        """Return the address of a database. Raises ValueError if the address is invalid."""
        parts = urlsplit(url)
        if url and parts.scheme not in ("postgresql", "postgres"):
            raise ValueError("write an address such as postgresql://localhost/mneme")
        if parts.password is not None:
            raise ValueError(
                "leave the password out of the address, and name the variable that has it in "
                "store.password"
            )
        return url


class PageOptions(_Section):
    """The section [web]."""

    enabled: bool
    port: Annotated[int, Field(ge=1024, le=65_535)]
    # The address of the network interface.
    bind: str
    # The URL of the page for browsers, if it isn't http://127.0.0.1:PORT.
    url: OptionalWebAddress
    # The environment variable with a password that every login needs, too.
    password: KeyVariable
    # A header that a reverse proxy sets after it has authenticated the person.
    proxy_header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{0,60}$")]
    # Whether people whom Mneme answers may open a page with their own memory.
    people: bool

    @property
    def is_local(self) -> bool:
        """Whether only browsers on this machine can reach the page."""
        return ip_address(self.bind).is_loopback

    @property
    def address(self) -> str:
        """The address of the page for a browser, without a slash at the end."""
        return self.url.rstrip("/") or f"http://127.0.0.1:{self.port}"

    @model_validator(mode="after")
    def _check_bind(self) -> PageOptions:
        """Require a login for a page that other machines can reach."""
        try:
            is_local = self.is_local
        except ValueError:
            raise ValueError('bind should be an address such as "127.0.0.1" or "0.0.0.0"') from None
        if not is_local and not (self.password or self.proxy_header):
            raise ValueError(
                f"with bind = {self.bind}, other machines reach the page: set password to the name "
                "of an environment variable, or proxy_header to a header of your reverse proxy"
            )
        return self


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
    # None: next to the home.
    folder: OptionalFolder
    keep: Count
    keep_days: Count
    # A public key of age or SSH. Empty if backups aren't encrypted with a key.
    encrypt_to: str
    # The name of an environment variable. Empty if backups have no passphrase.
    passphrase: KeyVariable
