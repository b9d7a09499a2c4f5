"""Signatures of a contest: ed25519 by OpenSSH keys, made by ssh-keygen and verified here, without starting a program.

The form is that of ssh-keygen -Y sign (PROTOCOL.sshsig of OpenSSH), byte for byte, so that a text has one form of its
signature; libsodium, which verifies in half of OpenSSL's time, refuses the second value (R, S + L) that ssh-keygen
takes for one of the same text.

Checkpoints are signed as they are, without that form, which ssh-keygen cannot do: by the key in a file, or by an agent.
What ssh-keygen and ssh sign begins with SSHSIG or with a length, no checkpoint does: a signature of one is none of the
other.
"""

import base64
import hashlib
import os
import socket
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cleanset.errors import CleansetError, reason
from cleanset.plumbing.files import read_bytes
from cleanset.sets.archive import SignatureError, sign

if TYPE_CHECKING:
    from nacl.signing import VerifyKey

NAMESPACE = "cleanset-contest"
"""Purpose of the signatures of a contest (ssh-keygen -n)."""
_HASH = b"sha512"
_KIND = b"ssh-ed25519"
_KEY_BYTES = 32
_SIGNATURE_BYTES = 64
_PRE = b"SSHSIG"
_SIGN_REQUEST = b"\x0d"
_SIGN_RESPONSE = b"\x0e"
_VERSION = (1).to_bytes(4, "big")
_LINE_CHARACTERS = 70


def signature_of(data: bytes, key: Path) -> str:
    """The signature by a private key, or by the agent that holds the one of a public key.

    Raises CleansetError for a key that is missing, or of another kind than ed25519.
    """
    found = sign(data, key, NAMESPACE).decode()
    if len(found) != len(armoured(bytes(_KEY_BYTES), bytes(_SIGNATURE_BYTES))):
        raise _other_kind(key)
    return found


def _other_kind(key: Path) -> CleansetError:
    return CleansetError(f"{key}: a key of another kind; expected an ed25519 key: ssh-keygen -t ed25519")


def check_signature(data: bytes, signature: str, key: str) -> None:
    """Raise SignatureError unless data are signed by a public key, one line as in ~/.ssh/id_ed25519.pub."""
    try:
        # what is not base64 is passed over here, and found by the comparison below
        body = base64.b64decode("".join(signature.split("\n")[1:-2]))
    except ValueError:
        raise SignatureError("not as ssh-keygen writes it") from None
    try:
        _, before = _of_key(key)
    except ValueError:
        raise SignatureError("not valid") from None
    raw = body[-_SIGNATURE_BYTES:]
    if signature != _armoured(before + raw):
        raise SignatureError("not by that key, or not as ssh-keygen writes it")
    check_raw(signed_text(data), raw, key)


def check_raw(data: bytes, raw: bytes, key: str) -> None:
    """Raise SignatureError unless the 64 bytes of a signature of data are by a public key, a line as above."""
    # imported here: the core does not bring it
    from nacl.exceptions import BadSignatureError

    try:
        _of_key(key)[0].verify(data, raw)
    except (BadSignatureError, ValueError):
        raise SignatureError("not valid") from None


def public_bytes(key: str) -> bytes:
    """The 32 bytes of a public key, one line as in ~/.ssh/id_ed25519.pub."""
    return bytes(_of_key(key)[0])


class RawSignature(NamedTuple):
    """A signature of data as they are, and the public key."""

    public: bytes
    signature: bytes


def raw_signature(data: bytes, key: Path) -> RawSignature:
    """Sign data as they are, by the private key in a file, or by the agent that holds the one of a public key.

    A private key with a passphrase has to be held by the agent, too. Raises CleansetError for a key that is missing, of
    another kind than ed25519, or not held by an agent.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    content = read_bytes(key)
    if content.startswith(_KIND):
        return _by_agent(data, key)
    try:
        private = load_ssh_private_key(content, None)
    except (ValueError, TypeError):
        # with a passphrase; the public key lies beside it
        return _by_agent(data, key.with_name(f"{key.name}.pub"))
    if not isinstance(private, Ed25519PrivateKey):
        raise _other_kind(key)
    return RawSignature(private.public_key().public_bytes_raw(), private.sign(data))


def _by_agent(data: bytes, key: Path) -> RawSignature:
    """A signature by the agent, in its protocol (draft-ietf-sshm-ssh-agent, section 3.6)."""
    remedy = f"expected one that an agent holds: ssh-add {key.with_name(key.name.removesuffix('.pub'))}"
    try:
        public = public_bytes(read_bytes(key).decode())
        request = _SIGN_REQUEST + _string(_string(_KIND) + _string(public)) + _string(data) + bytes(4)
        with socket.socket(socket.AF_UNIX) as agent:
            agent.connect(os.environ.get("SSH_AUTH_SOCK", ""))
            agent.sendall(_string(request))
            answer = agent.makefile("rb")
            found = answer.read(int.from_bytes(answer.read(4), "big"))
    except (OSError, ValueError, IndexError) as error:
        raise CleansetError(f"{key}: not signed by an agent ({reason(error)}); {remedy}") from None
    signed = _string(_string(_KIND) + _string(found[-_SIGNATURE_BYTES:]))
    if found != _SIGN_RESPONSE + signed:
        raise CleansetError(f"{key}: not held by the agent; {remedy}")
    return RawSignature(public, found[-_SIGNATURE_BYTES:])


def signed_text(data: bytes) -> bytes:
    """The text of which ssh-keygen makes the signature of some data."""
    return _SIGNED + _string(hashlib.sha512(data).digest())


def armoured(public: bytes, raw: bytes) -> str:
    """A signature of 64 bytes by a public key of 32 bytes, as ssh-keygen writes it."""
    return _armoured(_before(public) + raw)


@lru_cache(1000)
def _of_key(key: str) -> tuple["VerifyKey", bytes]:
    """A public key, and what comes before the last 64 bytes in its signatures. Raises ValueError for no key."""
    from nacl.signing import VerifyKey

    public = base64.b64decode(key.split()[1])[-_KEY_BYTES:]
    return VerifyKey(public), _before(public)


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
