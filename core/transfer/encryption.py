"""Encrypts and decrypts backups in the format of age, with keys or a passphrase.

The programs `age` and `rage` can also decrypt the files.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyrage

from core.errors import ConfigError, HistoryError

AGE_START = b"age-encryption.org/v1"
# Shorter passphrases are guessed too fast.
MIN_PASSPHRASE_CHARS = 8
# Before the library decrypts with a passphrase, it measures for a few milliseconds whether that
# would take too long. On a busy machine, the measurement is often wrong, so it's repeated.
_MAX_TRIES = 12
_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptionKey:
    """The key of a backup: public keys or a passphrase."""

    # Public keys, such as "age1…".
    recipients: Sequence[str] = ()
    passphrase: str = ""


def check_recipient(text: str) -> str:
    """Return a public key without surrounding spaces. Raises ConfigError if the key is invalid."""
    _parse_recipient(text.strip())
    return text.strip()


def is_encrypted(path: Path) -> bool:
    """Return whether a file is encrypted with age. Raises OSError if it can't be read."""
    with path.open("rb") as file:
        return file.read(len(AGE_START)) == AGE_START


def encrypt_file(source: Path, target: Path, key: EncryptionKey, check_path: Path) -> None:
    """Encrypt a file, and decrypt the result into `check_path` so that the caller can compare.

    A file for a public key is also encrypted to a temporary key, because Mneme doesn't have the
    secret key to check it. A passphrase needs memory for the whole file. Raises HistoryError if the
    machine is too busy to decrypt the file in time.
    """
    if key.passphrase:
        target.write_bytes(pyrage.passphrase.encrypt(source.read_bytes(), key.passphrase))
        content = _decrypt_with_passphrase(target, key.passphrase)
        if content is None:
            raise HistoryError("backup_too_busy")
        check_path.write_bytes(content)
        return
    identity = pyrage.x25519.Identity.generate()
    recipients = [_parse_recipient(text) for text in key.recipients]
    recipients.append(identity.to_public())
    pyrage.encrypt_file(str(source), str(target), recipients)
    pyrage.decrypt_file(str(target), str(check_path), [identity])


def decrypt_file(source: Path, target: Path, secret: str) -> None:
    """Decrypt a file with a passphrase, or with the content of an age identity file.

    Raises HistoryError if the file can't be decrypted.
    """
    try:
        identities = _parse_identities(secret)
        if identities:
            pyrage.decrypt_file(str(source), str(target), identities)
            return
        content = _decrypt_with_passphrase(source, secret.strip())
    except (pyrage.DecryptError, OSError) as error:
        if getattr(error, "errno", None):
            # The disk is full, for example.
            raise
        raise HistoryError("backup_wrong_key", file=source.name) from error
    if content is None:
        raise HistoryError("backup_too_slow", file=source.name)
    target.write_bytes(content)


def _decrypt_with_passphrase(source: Path, passphrase: str) -> bytes | None:
    """Return the decrypted content of a file.

    Returns None if decrypting would take minutes, because the file was encrypted on a much faster
    machine or this one is very busy. Raises DecryptError if the passphrase is wrong.
    """
    encrypted = source.read_bytes()
    for number in range(_MAX_TRIES):
        try:
            content: bytes = pyrage.passphrase.decrypt(encrypted, passphrase)
        except pyrage.DecryptError as error:
            if "xcessive work" not in str(error):
                raise
            if number < _MAX_TRIES - 1:
                time.sleep(_PAUSE_S)
        else:
            return content
    return None


def _parse_recipient(text: str) -> Any:
    parse = pyrage.ssh.Recipient if text.startswith("ssh-") else pyrage.x25519.Recipient
    try:
        return parse.from_str(text)
    except pyrage.RecipientError as error:
        raise ConfigError("backup_key_invalid", key=repr(text[:40])) from error


def _parse_identities(text: str) -> list[Any]:
    """Return the secret keys in a text. The result is empty if the text is a passphrase.

    Raises HistoryError if a key is invalid.
    """
    try:
        if "PRIVATE KEY-----" in text:
            return [pyrage.ssh.Identity.from_buffer(text.encode())]
        lines = [line.strip() for line in text.splitlines()]
        return [
            pyrage.x25519.Identity.from_str(line)
            for line in lines
            if line.startswith("AGE-SECRET-KEY-")
        ]
    except pyrage.IdentityError as error:
        raise HistoryError("backup_key_unreadable") from error
