"""Digests of bytes and files. That writing is whole or not at all is tested where stages and reviews are killed."""

import hashlib
from pathlib import Path

import pytest

from cleanset.files import BLOCK_BYTES, blocks_of, md5


@pytest.mark.parametrize(
    ("blocks", "digest"),
    [
        ([], "d41d8cd98f00b204e9800998ecf8427e"),
        ([b"abc"], "900150983cd24fb0d6963f7d28e17f72"),
        ([b"message", b"", b" digest"], "f96b697d7cb7938d525a2f31aaf161d0"),
    ],
)
def test_md5_of_rfc_1321(blocks: list[bytes], digest: str) -> None:
    assert md5(blocks) == digest


@pytest.mark.parametrize("size", [0, 1, BLOCK_BYTES, BLOCK_BYTES + 1])
def test_a_file_in_blocks(tmp_path: Path, size: int) -> None:
    data = bytes(range(256)) * (size // 256) + b"\1" * (size % 256)
    (tmp_path / "file").write_bytes(data)
    blocks = list(blocks_of(tmp_path / "file"))
    assert (b"".join(blocks) == data, len(blocks)) == (True, -(-size // BLOCK_BYTES))
    assert md5(blocks) == hashlib.md5(data).hexdigest()
