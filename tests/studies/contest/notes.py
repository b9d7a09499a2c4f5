"""Signed notes once more, read and written from C2SP's documents and RFC 6962, and from none of the code."""

import base64
import hashlib
import struct
from collections.abc import Mapping, Sequence

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


def root_hash(entries: Sequence[bytes]) -> bytes:
    """MTH(D[n]) of RFC 6962, section 2.1, as it is defined there."""
    if not entries:
        return hashlib.sha256().digest()
    if len(entries) == 1:
        return hashlib.sha256(b"\0" + entries[0]).digest()
    # the largest power of two smaller than n
    k = 1 << (len(entries) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + root_hash(entries[:k]) + root_hash(entries[k:])).digest()


def consistency_proof(entries: Sequence[bytes], first: int) -> list[bytes]:
    """PROOF(m, D[n]) of RFC 6962, section 2.1.2."""

    def sub(m: int, part: Sequence[bytes], *, is_whole: bool) -> list[bytes]:
        if m == len(part):
            return [] if is_whole else [root_hash(part)]
        k = 1 << (len(part) - 1).bit_length() - 1
        if m <= k:
            return [*sub(m, part[:k], is_whole=is_whole), root_hash(part[k:])]
        return [*sub(m - k, part[k:], is_whole=False), root_hash(part[:k])]

    return sub(first, entries, is_whole=True)


def is_consistent(first: tuple[int, bytes], second: tuple[int, bytes], proof: Sequence[bytes]) -> bool:
    """Whether a proof shows that a tree of some size and root grew into another (RFC 9162, section 2.1.4.2)."""
    (m, old), (n, new) = first, second
    path = [old, *proof] if m & (m - 1) == 0 else list(proof)
    if not path:
        return False
    fn, sn = m - 1, n - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    fr = sr = path[0]
    for c in path[1:]:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            fr = hashlib.sha256(b"\1" + c + fr).digest()
            sr = hashlib.sha256(b"\1" + c + sr).digest()
            while fn and not fn & 1:
                fn, sn = fn >> 1, sn >> 1
        else:
            sr = hashlib.sha256(b"\1" + sr + c).digest()
        fn, sn = fn >> 1, sn >> 1
    return fr == old and sr == new and sn == 0


def verified(note: bytes, vkeys: Sequence[str]) -> Mapping[str, int | None]:
    """By the name of each key that has signed a note, the time of its cosignature; None for a plain signature.

    Keys are in the form of verifier keys. Raises ValueError for a malformed note or key, and for a wrong signature by
    a known key.
    """
    known: dict[tuple[str, bytes], bytes] = {}
    for vkey in vkeys:
        name, given, encoded = vkey.split("+", 2)
        material = base64.b64decode(encoded)
        expected = hashlib.sha256(name.encode() + b"\n" + material).digest()[:4]
        if given != expected.hex() or material[0] not in (1, 4) or len(material) != 33:
            raise ValueError(vkey)
        known[name, expected] = material
    at = note.rindex(b"\n\n") + 1
    text, signatures = note[:at], note[at + 1 :].decode()
    if not signatures.endswith("\n"):
        raise ValueError("no newline at the end")
    found: dict[str, int | None] = {}
    for line in signatures[:-1].split("\n"):
        dash, name, encoded = line.split(" ")
        data = base64.b64decode(encoded, validate=True)
        if dash != "\N{EM DASH}":
            raise ValueError(line)
        key = known.get((name, data[:4]))
        if key is None:
            continue
        signed, time = text, None
        if key[0] == 4:
            (time,) = struct.unpack(">Q", data[4:12])
            signed = b"cosignature/v1\ntime %d\n" % time + text
        try:
            Ed25519PublicKey.from_public_bytes(key[1:]).verify(data[12 if key[0] == 4 else 4 :], signed)
        except InvalidSignature:
            raise ValueError(line) from None
        found[name] = time
    return found


def line_of(name: str, kind: int, key: Ed25519PrivateKey, text: bytes, time: int = 0) -> str:
    """The line of a signature below a note."""
    prefix = b"cosignature/v1\ntime %d\n" % time if kind == 4 else b""
    stamp = struct.pack(">Q", time) if kind == 4 else b""
    named = name.encode() + b"\n" + bytes([kind]) + key.public_key().public_bytes_raw()
    data = hashlib.sha256(named).digest()[:4] + stamp + key.sign(prefix + text)
    return f"\N{EM DASH} {name} {base64.b64encode(data).decode()}"


def checkpoint_of(lines: Sequence[str], key: Ed25519PrivateKey) -> str:
    """The checkpoint of a contest's lines, signed."""
    origin = f"cleanset-contest/{hashlib.sha256(lines[0].encode()).hexdigest()}" if lines else "cleanset-contest/none"
    root = base64.b64encode(root_hash([each.encode() for each in lines])).decode()
    text = f"{origin}\n{len(lines)}\n{root}\n"
    return f"{text}\n{line_of(origin, 1, key, text.encode())}\n"
