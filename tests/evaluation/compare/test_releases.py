"""`cleanset diff`: what has changed from one release to the next."""

import json
import re
import shutil
import time
from pathlib import Path

import pytest

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.evaluation.compare import releases
from cleanset.image_ids import image_id
from cleanset.plumbing.files import sha256
from cleanset.sets.description import Release
from cleanset.sets.folder import write_descriptions
from cleanset.sets.manifest import Entry, file_name
from tests import own_edition
from tests.evaluation.compare.command import cleanset, says
from tests.sets.entries import CROPPED, WHOLE, checked

HEADER = "wnid,class_index,class_name,image_id,tier,rank,reason\n"


def whole(number: int, rank: int, class_index: int = 0, **values: object) -> Entry:
    wnid = imagenet().keys[class_index]
    return checked(
        WHOLE, wnid=wnid, class_index=class_index, class_name=imagenet().labels[class_index],
        real_classes=(class_index,),
        rank=rank, image_id=image_id(number), file=file_name(wnid, image_id(number), None, imagenet()),
        **dict.fromkeys(("source_sha256", "file_sha256", "pixels_sha256"), f"{number:064x}"), **values,
    )  # fmt: skip


def release(folder: Path, version: str, entries: list[Entry], rejected: str | None) -> Path:
    folder.mkdir()
    optional = {} if rejected is None else {"rejected.csv": HEADER + rejected}
    write_descriptions(folder, entries, Release(version, "2026-01-31", classes=imagenet()), optional)
    return folder


def out_of(number: int, reason: str, class_index: int = 0) -> str:
    key, name = imagenet().keys[class_index], imagenet().labels[class_index]
    return f"{key},{class_index},{name},{image_id(number)},reserve,4,{reason}\n"


CROP = checked(CROPPED, rank=3, crop=(0, 1, 480, 331), file_sha256="8" * 64, pixels_sha256="9" * 64)


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """Tench 1 is out, 3 in, 2 moves up, one has another crop; goldfish 7 is in; shark 9 is out."""
    before = [whole(1, 1), whole(2, 2), checked(CROPPED, rank=3), whole(9, 1, 2)]
    after = [whole(2, 1), whole(3, 2), CROP, whole(7, 1, 1)]
    return (
        release(tmp_path / "old", "1.0.0", before, out_of(3, "not_needed") + out_of(4, "blur")),
        release(tmp_path / "new", "2.0.0", after, out_of(1, "watermark") + out_of(4, "blur")),
    )


def digest_of(folder: Path) -> str:
    return sha256((folder / "manifest.csv").read_bytes())


def test_as_a_person_reads_it(two: tuple[Path, Path], tmp_path: Path) -> None:
    assert says(cleanset("diff", "old", "new", cwd=tmp_path)) == (
        1,
        "A  old\n"
        f"   standard 1.0.0 of 2026-01-31, manifest {digest_of(two[0])[:12]}...: 4 images of 2 classes\n"
        "B  new\n"
        f"   standard 2.0.0 of 2026-01-31, manifest {digest_of(two[1])[:12]}...: 4 images of 2 classes\n"
        "\n"
        "in                     2\n"
        "out                    2\n"
        "other crop             1\n"
        "other source           0\n"
        "other file             0\n"
        "otherwise listed       1\n"
        "Why they are out: not a candidate 1, watermark 1\n"
        "Why they were not in: not a candidate 1, not_needed 1\n"
        "\n"
        "n01440764 tench\n"
        "  - ILSVRC2012_val_00000001  rank 1, top5; left out: watermark\n"
        "  + ILSVRC2012_val_00000003  rank 2, top5; was left out: not_needed\n"
        "  ~ ILSVRC2012_val_00002138  other crop: 0 1 480 330 -> 0 1 480 331\n"
        "\n"
        "n01443537 goldfish\n"
        "  + ILSVRC2012_val_00000007  rank 1, top5; was left out: not a candidate\n"
        "\n"
        "n01484850 great white shark\n"
        "  - ILSVRC2012_val_00000009  rank 1, top5; left out: not a candidate\n",
        "",
    )


def test_as_a_program_reads_it(two: tuple[Path, Path], tmp_path: Path) -> None:
    done = cleanset("diff", "old", "new/manifest.csv", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    found = json.loads(done.stdout)
    assert {name: found[name] for name in ("a", "same", "counts", "out_by_reason", "in_by_reason")} == {
        "a": {
            "path": "old", "version": "1.0.0", "date": "2026-01-31", "manifest_sha256": digest_of(two[0]), "images": 4,
        },
        "same": False,
        "counts": {
            "in": 2, "out": 2, "other crop": 1, "other source": 0, "other file": 0, "otherwise listed": 1,
        },
        "out_by_reason": {"not a candidate": 1, "watermark": 1},
        "in_by_reason": {"not a candidate": 1, "not_needed": 1},
    }  # fmt: skip
    assert found["changes"][0] == {
        "wnid": "n01440764", "image_id": "ILSVRC2012_val_00000001", "what": "dropped", "a": "rank 1, top5", "b": "",
        "reason": "watermark",
    }  # fmt: skip


def test_the_same(two: tuple[Path, Path], tmp_path: Path) -> None:
    done = cleanset("diff", "old", "old", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("otherwise listed       0\n")


def test_the_other_way_round(two: tuple[Path, Path]) -> None:
    there, back = (releases.diff(*pair).content["changes"] for pair in (two, two[::-1]))
    for one, other in (("added", "dropped"), ("dropped", "added"), ("crop", "crop")):
        found = [
            [(change["wnid"], change["image_id"], change["reason"]) for change in changes if change["what"] == what]
            for changes, what in ((there, one), (back, other))
        ]
        assert found[0] == found[1] != []


def test_without_the_rejected_candidates(two: tuple[Path, Path]) -> None:
    (two[1] / "rejected.csv").unlink()
    (two[1] / "croissant.json").unlink()
    lines = releases.diff(*two).lines
    assert "Why they are out: unknown, because rejected.csv is missing 2" in lines
    assert f"   standard of unknown version, manifest {digest_of(two[1])[:12]}...: 4 images of 2 classes" in lines


def test_what_cannot_be_compared(two: tuple[Path, Path], tmp_path: Path) -> None:
    (two[1] / "rejected.csv").write_text("wnid,image_id\nn01440764,x\n")
    with pytest.raises(CleansetError, match=r"new/rejected.csv: SHA-256 .*, expected .* as in checksums.sha256"):
        releases.diff(*two)
    (two[1] / "checksums.sha256").unlink()
    problem = r"new/rejected.csv, line 1: .*; expected the header "
    with pytest.raises(CleansetError, match=problem):
        releases.diff(*two)
    with pytest.raises(CleansetError, match=r"nowhere: missing; expected the folder of an export, or its manifest.csv"):
        releases.diff(two[0], tmp_path / "nowhere")


@pytest.mark.long
@pytest.mark.slow
def test_in_seconds(tmp_path: Path) -> None:
    """A thousand classes of three images each, 20,000 rejected candidates."""
    entries = [whole(3 * index + rank, rank, index) for index in range(1000) for rank in (1, 2, 3)]
    rejected = "".join(out_of(3_001 + number, "not_needed", number % 1000) for number in range(20_000))
    a = release(tmp_path / "a", "1.0.0", entries, rejected)
    b = release(tmp_path / "b", "1.1.0", [entry for entry in entries if entry.rank < 3], rejected)
    start = time.perf_counter()
    assert len(releases.diff(a, b).render(as_json=False).splitlines()) > 1500
    assert time.perf_counter() - start < 10


@pytest.mark.long
@pytest.mark.slow
def test_an_image_that_is_renamed_and_rejected(tmp_path: Path) -> None:
    """Its reason is found by its bytes, under its new name and in its new class."""
    edition = own_edition.make(tmp_path, keys=("cat", "dog"), each=3)
    own_edition.review(edition, "ada")
    own_edition.run(edition, "crops", "score_crops", "review_apply", "export")
    images = tmp_path / "images"
    shutil.copytree(edition.export("images"), tmp_path / "old")
    (images / "cat" / "000.png").rename(images / "cat" / "moved.png")
    (images / "cat" / "001.png").rename(images / "dog" / "other.png")
    assert says(cleanset("edition", "--accept", cwd=edition.folder))[0] == 0
    own_edition.run(edition, "preprocess", "score", "intersect", "select")
    shutil.rmtree(edition.reviews / "ada")
    rejected = {"cat/moved.png": own_edition.REJECT, "dog/other.png": own_edition.REJECT}
    own_edition.review(edition, "ada", rejected)
    own_edition.run(edition, "crops", "score_crops", "review_apply", "export")
    lines = releases.diff(tmp_path / "old", edition.export("images")).lines
    assert "Why they are out: blur 2" in lines
    assert "  - cat/000.png  rank 1; left out: blur, there called cat/moved.png" in rank_1(lines)
    assert "  - cat/001.png  rank 1; left out: blur, there called dog/other.png" in rank_1(lines)
    content = releases.diff(tmp_path / "old", edition.export("images")).content
    reasons = {change["image_id"]: change["reason"] for change in content["changes"] if change["what"] == "dropped"}
    assert reasons == {"cat/000.png": "blur", "cat/001.png": "blur"}
    # and the other way round
    back = releases.diff(edition.export("images"), tmp_path / "old").content
    assert (back["in_by_reason"], back["out_by_reason"]) == ({"blur": 2}, {})


def rank_1(lines: list[str]) -> list[str]:
    """The lines, with another rank as the first one: their order is random."""
    return [re.sub("rank [0-9]", "rank 1", line) for line in lines]
