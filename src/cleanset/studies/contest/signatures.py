"""Signatures of a contest: ed25519 by OpenSSH keys, made by ssh-keygen and verified here, without starting a program.

The form is that of ssh-keygen -Y sign (PROTOCOL.sshsig of OpenSSH), byte for byte, so that a text has one form of its
signature; OpenSSL refuses the second value (R, S + L) that ssh-keygen takes for one of the same text.
"""

import base64
import hashlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from cleanset.errors import CleansetError
from cleanset.sets.archive import SignatureError, sign

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

NAMESPACE = "cleanset-contest"
"""Purpose of the signatures of a contest (ssh-keygen -n)."""
_HASH = b"sha512"
_KIND = b"ssh-ed25519"
_KEY_BYTES = 32
_SIGNATURE_BYTES = 64
_PRE = b"SSHSIG"
_VERSION = (1).to_bytes(4, "big")
_LINE_CHARACTERS = 70


def signature_of(data: bytes, key: Path) -> str:
    """The signature by a private key, or by the agent that holds the one of a public key.

    Raises CleansetError for a key that is missing, or of another kind than ed25519.
    """
    found = sign(data, key, NAMESPACE).decode()
    if len(found) != len(armoured(bytes(_KEY_BYTES), bytes(_SIGNATURE_BYTES))):
        raise CleansetError(f"{key}: a key of another kind; expected an ed25519 key: ssh-keygen -t ed25519")
    return found


def check_signature(data: bytes, signature: str, key: str) -> None:
    """Raise SignatureError unless data are signed by a public key, one line as in ~/.ssh/id_ed25519.pub."""
    # imported here: the core does not bring it
    from cryptography.exceptions import InvalidSignature

    try:
        body = base64.b64decode("".join(signature.split("\n")[1:-2]), validate=True)
    except ValueError:
        raise SignatureError("not as ssh-keygen writes it") from None
    try:
        public, before = _of_key(key)
    except ValueError:
        raise SignatureError("not valid") from None
    raw = body[-_SIGNATURE_BYTES:]
    if body != before + raw or signature != _armoured(body):
        raise SignatureError("not by that key, or not as ssh-keygen writes it")
    try:
        public.verify(raw, signed_text(data))
    except InvalidSignature:
        raise SignatureError("not valid") from None


def signed_text(data: bytes) -> bytes:
    """The text of which ssh-keygen makes the signature of some data."""
    return _SIGNED + _string(hashlib.sha512(data).digest())


def armoured(public: bytes, raw: bytes) -> str:
    """A signature of 64 bytes by a public key of 32 bytes, as ssh-keygen writes it."""
    return _armoured(_before(public) + raw)


@lru_cache(1000)
def _of_key(key: str) -> tuple["Ed25519PublicKey", bytes]:
    """A public key, and what comes before the last 64 bytes in its signatures. Raises ValueError for no key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    public = base64.b64decode(key.split()[1])[-_KEY_BYTES:]
    return Ed25519PublicKey.from_public_bytes(public), _before(public)


def _before(public: bytes) -> bytes:
    key = _string(_KIND) + _string(public)
    of_key = _string(_string(_KIND) + _string(bytes(_SIGNATURE_BYTES)))[:-_SIGNATURE_BYTES]
    return _PRE + _VERSION + _string(key) + _string(NAMESPACE.encode()) + _string(b"") + _string(_HASH) + of_key


def _armoured(body: bytes) -> str:
    text = base64.b64encode(body).decode()
    lines = [text[start : start + _LINE_CHARACTERS] for start in range(0, len(text), _LINE_CHARACTERS)]
    return "\n".join(("-----BEGIN SSH SIGNATURE-----", *lines, "-----END SSH SIGNATURE-----", ""))


def _string(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


_SIGNED = _PRE + _string(NAMESPACE.encode()) + _string(b"") + _string(_HASH)
