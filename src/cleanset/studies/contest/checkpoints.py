"""Checkpoints of a log: its size and Merkle tree hash, signed by an organizer, and cosigned by teams.

The forms are C2SP's, byte for byte: a checkpoint (tlog-checkpoint) is a signed note (signed-note) of three lines, the
origin, the number of lines and the root hash; a cosignature (tlog-cosignature, cosignature/v1) is one more signature
below it, with its time. Programs that know nothing of contests verify both.

A log is a chain: each line has the digest of the line before, and everybody reads all of it. A chain's last digest is
no Merkle tree hash, so that the root hash is computed from the lines, as RFC 6962 does, section 2.1: the leaves are the
bytes of the lines without their newlines.
"""

import base64
import binascii
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from cleanset.errors import CleansetError
from cleanset.plumbing.files import read_text
from cleanset.sets.archive import SignatureError
from cleanset.studies.contest.log_lines import COSIGN, LOG, PUBLISH, Line
from cleanset.studies.contest.signatures import check_raw, public_bytes
from cleanset.studies.contest.signers import keys_of, voided

SIGNED_NOTE = b"\x01"
"""Type of an Ed25519 signature of a note."""
COSIGNATURE = b"\x04"
"""Type of a timestamped Ed25519 signature of a checkpoint."""
KEY_ID_BYTES = 4
TIME_BYTES = 8
_LINE = re.compile(r"— (?P<name>[^\s+]+) (?P<data>[A-Za-z0-9+/]+={0,2})")


class MerkleTree:
    """The Merkle tree hash of texts that are added one after another (RFC 6962, section 2.1)."""

    def __init__(self) -> None:
        self.size = 0
        self._full: list[bytes] = []
        """The roots of the largest full trees from left to right: one for each bit of the size that is set."""

    def add(self, text: str) -> None:
        root = sha256(b"\x00" + text.encode()).digest()
        size = self.size
        while size & 1:
            root = _parent(self._full.pop(), root)
            size >>= 1
        self._full.append(root)
        self.size += 1

    def root(self) -> bytes:
        """32 bytes."""
        if not self._full:
            return sha256(b"").digest()
        *others, root = self._full
        for left in reversed(others):
            root = _parent(left, root)
        return root


def _parent(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()


def origin_of(contest: str) -> str:
    """The name of a log, and of those who sign for it, by the digest of its first line."""
    return f"cleanset-contest/{contest}"


def cosigner_name(contest: str, team: str) -> str:
    """The name of a team below a checkpoint."""
    return f"{origin_of(contest)}/{team}"


def checkpoint_text(contest: str, tree: MerkleTree) -> str:
    """The lines of a checkpoint that are signed."""
    return f"{origin_of(contest)}\n{tree.size}\n{base64.b64encode(tree.root()).decode()}\n"


def cosigned_text(checkpoint: str, seconds: int) -> str:
    """The text that a team signs: the lines of a checkpoint, with the time, in seconds since 1970."""
    return f"cosignature/v1\ntime {seconds}\n{checkpoint}"


def key_id(name: str, kind: bytes, public: bytes) -> bytes:
    """The first bytes of a signature, by which a verifier finds the key."""
    return sha256(name.encode() + b"\n" + kind + public).digest()[:KEY_ID_BYTES]


def verifier_key(name: str, kind: bytes, key: str) -> str:
    """A public SSH key in the form that other programs are given (vkey)."""
    public = public_bytes(key)
    return f"{name}+{key_id(name, kind, public).hex()}+{base64.b64encode(kind + public).decode()}"


def signature_line(name: str, kind: bytes, public: bytes, signed: bytes) -> str:
    """The line below a note, without its newline; `signed`: the signature, after the time in a cosignature."""
    return f"— {name} {base64.b64encode(key_id(name, kind, public) + signed).decode()}"


def cosignature_line(name: str, public: bytes, seconds: int, signature: bytes) -> str:
    """The line of a cosignature."""
    return signature_line(name, COSIGNATURE, public, seconds.to_bytes(TIME_BYTES, "big") + signature)


def note(text: str, lines: Iterable[str]) -> str:
    """A signed note: a text that ends in a newline, and the lines of its signatures."""
    return f"{text}\n" + "".join(f"{each}\n" for each in lines)


class NoteParts(NamedTuple):
    """A signed note: its text, and the lines of its signatures."""

    text: str
    lines: list[str]

    @classmethod
    def of(cls, found: str) -> "NoteParts":
        """Raises SignatureError for anything but a signed note."""
        text, between, below = found.rpartition("\n\n")
        *lines, rest = below.split("\n")
        if not between or rest or not lines or any(_LINE.fullmatch(each) is None for each in lines):
            raise SignatureError("not a signed note")
        return cls(f"{text}\n", lines)


def check_checkpoint(found: str, expected: str, keys: Mapping[str, str], contest: str) -> None:
    """Raise SignatureError unless a note is `expected`, signed by one of those who have `keys`, and by nobody else."""
    parts = NoteParts.of(found)
    if parts.text != expected:
        size, root = expected.split("\n")[1:3]
        raise SignatureError(f"of another log than the {size} lines before it, whose root hash is {root}")
    if len(parts.lines) != 1:
        raise SignatureError("not by one signer")
    for key in keys.values():
        signed = _signed(parts.lines[0], origin_of(contest), SIGNED_NOTE, public_bytes(key))
        if signed is not None:
            check_raw(expected.encode(), signed, key)
            return
    raise SignatureError("not by a signer")


def check_cosignature(line: str, checkpoint: str, name: str, key: str) -> int:
    """The time of a cosignature of a checkpoint, in seconds.

    Raises SignatureError unless it is by the key of a name.
    """
    signed = _signed(line, name, COSIGNATURE, public_bytes(key))
    if signed is None:
        raise SignatureError(f"not a cosignature by the key of {name}")
    seconds = int.from_bytes(signed[:TIME_BYTES], "big")
    check_raw(cosigned_text(checkpoint, seconds).encode(), signed[TIME_BYTES:], key)
    return seconds


def _signed(line: str, name: str, kind: bytes, public: bytes) -> bytes | None:
    """What a key has signed below a note; None for the line of another key."""
    match = _LINE.fullmatch(line)
    try:
        data = base64.b64decode(match["data"], validate=True) if match is not None else b""
    except binascii.Error:
        return None
    signed = data[KEY_ID_BYTES:]
    # compared as a whole: base64 of the same bytes has other forms, too
    return signed if line == signature_line(name, kind, public, signed) else None


def check_kept(lines: Sequence[Line], path: str) -> None:
    """Raise CleansetError unless a log begins with the lines of a checkpoint that somebody has kept in a file."""
    try:
        parts = NoteParts.of(read_text(Path(path), "give a checkpoint as cleanset contest checkpoint prints it"))
    except SignatureError as error:
        raise CleansetError(f"{path}: {error}; expected a checkpoint: cleanset contest checkpoint prints one") from None
    tree = MerkleTree()
    size = _size(parts.text)
    for each in lines[:size]:
        tree.add(each.text)
    if checkpoint_text(lines[0].digest, tree) != parts.text:
        raise CleansetError(
            f"{path}: a checkpoint of {size} lines; the first {tree.size} lines here have the root hash "
            f"{base64.b64encode(tree.root()).decode()}; expected a log that goes on after the checkpoint, not an older "
            "or a forked one: take it from whoever has it unchanged"
        )


def _size(text: str) -> int:
    found = re.match(r"[^\n]+\n([0-9]{1,9})\n", text)
    return int(found[1]) if found else 0


def last_published(lines: Sequence[Line], void: Container[int]) -> Line | None:
    """The last line that published a week, and is not among the numbers of void lines; None without one."""
    return next((each for each in reversed(lines) if each.kind == PUBLISH and each.n not in void), None)


def last_checkpoint(lines: Sequence[Line]) -> str:
    """The last checkpoint of a log, with its cosignatures below it: a signed note for any program that verifies one.

    Raises CleansetError for a log without a checkpoint.
    """
    void = voided(lines)
    last = last_published(lines, void)
    if last is None:
        raise CleansetError(f"{LOG}: no week is published yet; expected one: its line has a checkpoint")
    entries = (each.entry for each in lines if each.kind == COSIGN and each.n not in void)
    by_team = {each.team: each.signature for each in entries if each.checkpoint == last.digest}
    parts = NoteParts.of(last.entry.checkpoint)
    return note(parts.text, [*parts.lines, *(by_team[team] for team in sorted(by_team))])


def verifier_keys(lines: Sequence[Line]) -> list[str]:
    """The keys of organizers and teams after a log, in the form of programs that verify its checkpoints."""
    contest = lines[0].digest
    keys = keys_of(lines, voided(lines))
    teams = {*lines[0].entry.teams, *(each.entry.name for each in lines if each.kind == "team")}
    own = [verifier_key(origin_of(contest), SIGNED_NOTE, keys[name]) for name in sorted(lines[0].entry.signers)]
    named = ((cosigner_name(contest, team), keys[team]) for team in sorted(teams & keys.keys()))
    return [*own, *(verifier_key(name, COSIGNATURE, key) for name, key in named)]
