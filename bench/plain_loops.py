"""Plain loops that full_size.py measures against: what somebody writes without this project."""

import hashlib
import io
import sys
import tarfile

from PIL import Image

BLOCK_BYTES = 2**22


def main() -> None:
    {"decode": decode, "md5": md5}[sys.argv[1]](sys.argv[2])


def decode(archive: str) -> None:
    """Read, hash and decode each image."""
    with tarfile.open(archive) as tar:
        for member in tar:
            data = tar.extractfile(member).read()  # type: ignore[union-attr]
            hashlib.sha256(data).hexdigest()
            Image.open(io.BytesIO(data)).convert("RGB").load()


def md5(archive: str) -> None:
    """Read and hash the archive, as `md5sum` does."""
    digest = hashlib.md5(usedforsecurity=False)
    with open(archive, "rb") as file:  # noqa: PTH123
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    print(digest.hexdigest())


if __name__ == "__main__":
    main()
