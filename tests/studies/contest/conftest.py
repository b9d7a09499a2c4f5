"""A small contest on the disk, which most tests of files begin with."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from cleanset.sets.archive import signer
from tests.studies.contest.on_disk import OnDisk


@pytest.fixture
def made(tmp_path: Path) -> OnDisk:
    return OnDisk(tmp_path)


@pytest.fixture(scope="package", autouse=True)
def _signatures_checked_once() -> Iterator[None]:
    """Ask ssh-keygen once about each signature that is good, which many tests read: a third of their time was that."""

    @cache
    def found(data: bytes, signature: bytes, name: str, known: bytes, namespace: str) -> str:
        path = folder / name
        path.write_bytes(known)
        return signer(data, signature, path, namespace)

    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as temporary:
        folder = Path(temporary)
        patch.setattr(
            "cleanset.studies.contest.log.signer",
            lambda data, signature, signers, namespace: found(
                data, signature, signers.name, signers.read_bytes(), namespace
            ),
        )
        yield
