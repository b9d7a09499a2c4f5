"""Digests that a record has of itself."""

from cleanset.plumbing.files import sha256
from cleanset.plumbing.json_files import DIGEST, with_digest


def test_a_digest_depends_on_no_order_of_keys() -> None:
    """It is that of the JSON with sorted keys, and without the digest itself."""
    expected = sha256(b'{"a": [1, 2], "b": 1}')
    assert with_digest({"b": 1, "a": (1, 2)})[DIGEST] == expected
    assert with_digest({"a": (1, 2), DIGEST: "old", "b": 1})[DIGEST] == expected
