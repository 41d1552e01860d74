"""The instance's Ed25519 key: made on first use, readable by the server's user alone."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from django.conf import settings


class SigningKeyError(Exception):
    """The key file cannot be made or read; the text names the file."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key pair and the short name by which checkpoints tell it."""

    private: Ed25519PrivateKey
    public_bytes: bytes
    key_id: str

    def sign(self, text: str) -> bytes:
        """Return the signature over the text's UTF-8 bytes."""
        return self.private.sign(text.encode())


def signing_key() -> SigningKey:
    """Return the key of `settings.SIGNING_KEY_FILE`, made when there is none."""
    return _load(Path(settings.SIGNING_KEY_FILE))


def known_keys() -> dict[str, bytes]:
    """Return key id -> public key: the one in use, and retired ones.

    A retired key stands in hex in a file `*.pub` beside the one in use.
    """
    key = signing_key()
    known = {key.key_id: key.public_bytes}
    for path in Path(settings.SIGNING_KEY_FILE).parent.glob("*.pub"):
        try:
            public = bytes.fromhex(path.read_text().strip())
        except ValueError as error:
            raise SigningKeyError(f"{path} holds no public key in hex.") from error
        known[key_id_of(public)] = public
    return known


def key_id_of(public_bytes: bytes) -> str:
    """Return the short name of a key, which checkpoints carry."""
    return hashlib.sha256(public_bytes).hexdigest()[:16]


def is_signed(public_bytes: bytes, signature: bytes, text: str) -> bool:
    """Return whether the signature over the text was made by that key."""
    try:
        Ed25519PublicKey.from_public_bytes(public_bytes).verify(
            signature, text.encode()
        )
    except (InvalidSignature, ValueError):
        return False
    return True


@cache
def _load(path: Path) -> SigningKey:
    try:
        if not path.exists():
            _make(path)
        private = load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError) as error:
        raise SigningKeyError(
            f"The signing key {path} cannot be used: {error}."
        ) from error
    if not isinstance(private, Ed25519PrivateKey):
        raise SigningKeyError(f"The signing key {path} is no Ed25519 key.")
    public = private.public_key().public_bytes_raw()
    return SigningKey(private, public, key_id_of(public))


def _make(path: Path) -> None:
    """Write a new key; whoever comes first wins, a half-written one is never seen."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    pem = Ed25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    draft = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(pem)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
