"""Digests that a record has of itself."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanset.errors import CleansetError
from cleanset.plumbing.files import sha256
from cleanset.plumbing.json_files import DIGEST, check_digest, with_digest

SIMPLE = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(0, 1) | st.text(max_size=3)
VALUES = st.recursive(
    SIMPLE, lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=2), each, max_size=3)
)


def test_a_digest_depends_on_no_order_of_keys() -> None:
    """It is that of the JSON with sorted keys, and without the digest itself."""
    expected = sha256(b'{"a": [1, 2], "b": 1}')
    assert with_digest({"b": 1, "a": (1, 2)})[DIGEST] == expected
    assert with_digest({"a": (1, 2), DIGEST: "old", "b": 1})[DIGEST] == expected


@given(st.dictionaries(st.text(max_size=2), VALUES, max_size=4))
def test_a_digest_is_that_of_the_text_with_sorted_keys(record: dict[str, Any]) -> None:
    """The parts that it is computed from make the same text, however deep; what was not edited passes the check."""
    record.pop(DIGEST, None)
    written = with_digest(record)
    assert written[DIGEST] == hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
    check_digest(written, Path("r.json"), "again")
    with pytest.raises(CleansetError, match=r"^r.json: edited since it was written; .*: again$"):
        check_digest(written | {"added": 0}, Path("r.json"), "again")
