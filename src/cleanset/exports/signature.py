"""Signatures by OpenSSH, which is on every machine already and which its authors keep: `ssh-keygen -Y`.

The signed file is that of the checksums, which has the digests of all other descriptions; the manifest among them has
those of the images. So one signature covers the set, and one flipped bit anywhere breaks the chain.
"""

import base64
import binascii
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from cleanset.errors import CleansetError, one_line
from cleanset.files import read_bytes

NAMESPACE = "cleanset"
"""Purpose of a signature (ssh-keygen -n); one given for another purpose does not count."""

_ARMOUR = ("-----BEGIN SSH SIGNATURE-----\n", "-----END SSH SIGNATURE-----\n")
# where ssh-keygen breaks the lines of a signature
_LINE_CHARACTERS = 70
_PUBLIC_KEY = re.compile(r"(ssh-|ecdsa-|sk-)\S+ [A-Za-z0-9+/]+=*( .*)?\s*")
_GOOD = re.compile(r'Good "cleanset" signature (?:for (?P<who>.*) )?with (?P<key>\S+) key (?P<digest>\S+)')


class SignatureError(Exception):
    """A signature that is missing, of other content, or not by an allowed signer; the message says which."""


def sign(data: bytes, key: Path) -> bytes:
    """The signature of `data` by a private SSH key, or by the agent that holds the one of a public key."""
    if not key.is_file():
        raise CleansetError(f"{key}: missing; expected an SSH key, such as ~/.ssh/id_ed25519 (ssh-keygen makes one)")
    done = _ssh_keygen("sign", "-n", NAMESPACE, "-f", str(key), data=data)
    if done.returncode:
        raise CleansetError(f"{key}: not signed: {_last_line(done.stderr)}")
    return done.stdout


def signer(data: bytes, signature: bytes, signers: Path) -> str:
    """The signer of `data`, as "alice@example.org, ED25519 key SHA256:...".

    `signers` is a public key, or a list as ssh-keygen(1) describes under ALLOWED SIGNERS. Raises SignatureError for a
    signature that is not valid, and CleansetError if `signers` cannot be read.
    """
    _check_armour(signature)
    try:
        known = read_bytes(signers).decode("utf-8")
    except FileNotFoundError:
        raise CleansetError(f"{signers}: missing; expected the signer's public key, or allowed signers") from None
    except UnicodeDecodeError:
        raise CleansetError(f"{signers}: not a text file; expected a public key, or allowed signers") from None
    if _PUBLIC_KEY.fullmatch(known):
        # a list of signers begins each line with a name; * stands for any
        known = f"* {known}"
    elif "PRIVATE KEY" in known:
        raise CleansetError(f"{signers}: a private key; expected the public one, {signers.name}.pub")
    # ssh-keygen takes only the signed data from its standard input, signers and signature from files
    with tempfile.TemporaryDirectory() as folder:
        allowed, signed = Path(folder, "allowed_signers"), Path(folder, "signature")
        allowed.write_text(known, encoding="utf-8")
        signed.write_bytes(signature)
        files = ("-f", str(allowed), "-s", str(signed))
        # verify asks for the name of the signer, which only the list of signers knows
        found = _ssh_keygen("find-principals", *files)
        if found.returncode:
            raise SignatureError(f"not by a signer in {signers} ({_last_line(found.stderr)})")
        who = found.stdout.decode().split("\n")[0]
        done = _ssh_keygen("verify", "-n", NAMESPACE, "-I", who, *files, data=data)
    good = _GOOD.search(done.stdout.decode())
    if done.returncode or good is None:
        raise SignatureError(f"not valid ({_last_line(done.stderr) or _last_line(done.stdout)})")
    return f"{'' if who == '*' else f'{who}, '}{good['key']} key {good['digest']}"


def _check_armour(signature: bytes) -> None:
    """Raise SignatureError unless these are the bytes that ssh-keygen writes; it reads others, too."""
    try:
        body = signature.decode("ascii").removeprefix(_ARMOUR[0]).removesuffix(_ARMOUR[1])
        encoded = base64.b64encode(base64.b64decode(body.replace("\n", ""), validate=True)).decode()
    except (UnicodeDecodeError, binascii.Error):
        raise SignatureError("not as ssh-keygen writes it") from None
    lines = (encoded[start : start + _LINE_CHARACTERS] for start in range(0, len(encoded), _LINE_CHARACTERS))
    if signature.decode("ascii") != _ARMOUR[0] + "".join(f"{line}\n" for line in lines) + _ARMOUR[1]:
        raise SignatureError("not as ssh-keygen writes it")


def _ssh_keygen(action: str, *arguments: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    # looked up first: subprocess would raise an OSError that names no remedy
    program = shutil.which("ssh-keygen")
    if program is None:
        raise CleansetError("ssh-keygen: not installed; signatures need OpenSSH 8.2 or later: install openssh-client")
    return subprocess.run([program, "-Y", action, *arguments], input=data, capture_output=True, check=False)


def _last_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return one_line(lines[-1]) if lines else "ssh-keygen gives no reason"
