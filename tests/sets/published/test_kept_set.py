"""The published set in the cache: `cleanset.load("scooter", images=...)`."""

import shutil
import threading
from pathlib import Path

import pytest

import cleanset
from cleanset.errors import CleansetError
from cleanset.sets.folder import read_entries
from tests.sets.published.conftest import Drawn


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLEANSET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.long
@pytest.mark.slow
def test_made_once(few: Drawn, cache: Path, tmp_path: Path) -> None:
    """Afterwards the archive need only be there; a lost image is made again."""
    archive = Path(shutil.copy(few.archive, tmp_path / "val.tar"))
    images = cleanset.load("scooter", images=archive, digests=few.digests)
    assert images.entries == read_entries(few.out)
    assert images.folder.is_relative_to(cache / "published")
    assert images[0][1] == 0
    size = archive.stat().st_size
    archive.write_bytes(b"")
    assert cleanset.load("scooter", images=str(archive), digests=few.digests).folder == images.folder
    (images.folder / images.entries[3].file).unlink()
    with pytest.raises(CleansetError, match=r"val\.tar: not an uncompressed tar \(empty file\)"):
        cleanset.load("scooter", images=archive, digests=few.digests)
    shutil.copy(few.archive, archive)
    assert archive.stat().st_size == size
    again = cleanset.load("scooter", images=archive, digests=few.digests)
    assert [record["file"] for _, _, record in again][3] == images.entries[3].file
    key = images.folder.parent.name
    assert sorted(path.name for path in images.folder.parent.iterdir()) == ["lock", f"norm_robust-{key}"]


@pytest.mark.long
@pytest.mark.slow
def test_force_makes_it_again(few: Drawn, cache: Path) -> None:
    """Also if no file is missing, as with a damaged image."""
    images = cleanset.load("scooter", images=few.archive, digests=few.digests)
    file = images.entries[0].file
    (images.folder / file).write_bytes(b"damaged")
    with pytest.raises(CleansetError, match="SHA-256"):
        cleanset.load("scooter", images=few.archive, digests=few.digests)[0]
    again = cleanset.load("scooter", images=few.archive, digests=few.digests, force=True)
    assert again.folder == images.folder
    assert (again.folder / file).read_bytes() == (few.out / file).read_bytes()


@pytest.mark.slow
def test_two_at_once(few: Drawn, cache: Path) -> None:
    found: list[Path] = []

    def load() -> None:
        found.append(cleanset.load("scooter", images=few.archive, digests=few.digests).folder)

    threads = [threading.Thread(target=load) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert len(set(found)) == 1
    assert found[0].is_relative_to(cache)


def test_what_it_needs(few: Drawn, cache: Path, tmp_path: Path) -> None:
    cache.touch()
    with pytest.raises(CleansetError, match=r'your own copy of ImageNet: .* cleanset\.load\("scooter", images='):
        cleanset.load("scooter", tmp_path)
    with pytest.raises(CleansetError, match=r"images= goes with 'scooter', the set .*, not with 'standard'"):
        cleanset.load("standard", images=few.archive)
    with pytest.raises(CleansetError, match=r"none\.tar: missing; expected ImageNet's validation images"):
        cleanset.load("scooter", images=tmp_path / "none.tar")
    with pytest.raises(CleansetError, match="unknown model 'resnet'; expected one of norm_robust"):
        cleanset.load("scooter", images=few.archive, role="resnet")
    with pytest.raises(
        CleansetError,
        match=r"expected a folder for sets, with room.*or set CLEANSET_CACHE",
    ):
        cleanset.load("scooter", images=few.archive, digests=few.digests)
