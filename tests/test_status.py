"""`cleanset status`: each change of an edition in a line with its command, and nothing is read that has not moved."""

import os
import shutil
from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from cleanset import status
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.user_model import check_code
from cleanset.images.preprocessing import timm_preprocessing
from cleanset.review.accepted import accept
from cleanset.scoring.ensemble import pin
from cleanset.scoring.fingerprints import sources_sha256
from cleanset.scoring.record import ScoreRecord, write_record
from tests import own_edition
from tests.evaluation.compare.command import cleanset, says
from tests.ten_images import drawn_image

pytestmark = pytest.mark.slow

ACCEPT = (
    "expected the images of images.sha256: restore them, or run cleanset edition --accept in the folder of the edition"
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """Two classes of four images with a table of labels; not to be changed."""
    folder = tmp_path_factory.mktemp("finished")
    rows = [f"{key}/{place:03d}.png,{key}" for key in ("cat", "dog") for place in range(4)]
    (folder / "labels.csv").write_text("\n".join(["file,class", *rows]) + "\n")
    return own_edition.finished(folder, keys=("cat", "dog"), options=("--labels", "labels.csv"))


@pytest.fixture
def edition(finished: Edition, tmp_path: Path) -> Edition:
    """A copy with its images, with the digests of a first look."""
    shutil.copytree(finished.folder.parent, tmp_path / "copy", symlinks=True)
    edition = Edition(tmp_path / "copy" / "own")
    first = status.run(edition)
    assert (first.unseen, first.pending, first.images, first.read) == ([], [], 8, 8)
    return edition


def image(edition: Edition, name: str) -> Path:
    return edition.folder.parent / "images" / name


def test_nothing_is_read_twice(edition: Edition) -> None:
    again = status.run(edition)
    assert (again.unseen, again.pending, again.images, again.read) == ([], [], 8, 0)
    assert (
        status.render(again) == "files of images compared with their digests: 8, of them read: 0; nothing has changed"
    )
    os.utime(image(edition, "cat/000.png"))
    assert status.run(edition).read == 1
    (edition.folder / ".dvc/tmp/cleanset-images.json").write_text("{")
    assert status.run(edition).read == 8


def test_an_image_rewritten_in_place_with_its_time_set_back(edition: Edition) -> None:
    path = image(edition, "cat/000.png")
    before = path.stat()
    content = path.read_bytes()
    with path.open("r+b") as file:
        file.write(content[:-1] + b"x")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)
    (line,) = status.run(edition).unseen
    assert line == f"{edition.path('../images')}: 1 changed: cat/000.png; {ACCEPT}"


def test_images_that_change_one_after_the_other(edition: Edition) -> None:
    """Each is reported until it is accepted; then all is well again, until the next one."""
    where = edition.path("../images")
    shutil.copy(image(edition, "dog/001.png"), image(edition, "cat/001.png"))
    found = status.run(edition)
    assert (found.unseen, found.read) == ([f"{where}: 1 changed: cat/001.png; {ACCEPT}"], 1)
    image(edition, "dog/003.png").unlink()
    (line,) = status.run(edition).unseen
    assert "dog/003.png" in line
    drawn_image(40, 40, seed=77).save(image(edition, "cat/001.png"))
    drawn_image(40, 40, seed=78).save(image(edition, "dog/003.png"))
    (line,) = status.run(edition).unseen
    assert line == f"{where}: 2 changed: cat/001.png, dog/003.png; {ACCEPT}"
    accept(edition, None)
    after = status.run(edition)
    assert (after.unseen, after.read) == ([], 0)
    assert after.pending == [
        f"{edition.export('images')}: made before a change of images.sha256, reviews: run dvc repro; after a merge "
        "remove dvc.lock first"
    ]
    drawn_image(40, 40, seed=79).save(image(edition, "cat/001.png"))
    assert status.run(edition).unseen == [f"{where}: 1 changed: cat/001.png; {ACCEPT}"]


@pytest.mark.long
def test_the_code_of_a_custom_model(edition: Edition) -> None:
    """A module, and what it imports in the edition's folder; named until its scores are of it."""
    (edition.folder / "nets.py").write_text("import parts\nimport torch\n")
    (edition.folder / "parts.py").write_text("FACTOR = 1\n")
    params = yaml.safe_load(edition.params_yaml.read_text())
    params["models"] = {"mine": {"source": "module", "name": "nets:make", "sha256": "0" * 64}}
    edition.params_yaml.write_text(yaml.safe_dump(params))

    def computed() -> None:
        record = ScoreRecord(
            role="mine",
            source="module",
            name="nets:make",
            preprocessing=timm_preprocessing(160, 0.875, "bicubic", "center"),
            weights_sha256="0" * 64,
            precision="float64",
            images=8,
            against_float64=None,
            versions={},
            code="2",
            module_sha256=sources_sha256("nets", edition.folder),
        )
        write_record(edition.scored_with("mine"), record)

    def seen() -> list[str]:
        return [line for line in status.run(edition).unseen if "nets" in line]

    assert seen() == []
    for name in ("parts.py", "nets.py"):
        computed()
        assert seen() == []
        with (edition.folder / name).open("a") as file:
            file.write("CHANGED = True\n")
        (line,) = seen()
        assert line == (
            "nets: it, or a module that it imports here, is not what computed the scores of mine: run "
            "dvc repro --single-item --force score@mine, then dvc repro"
        )
    computed()
    assert seen() == []
    pin(edition)
    with (edition.folder / "parts.py").open("a") as file:
        file.write("CHANGED = 2\n")
    assert seen() == [
        "nets: it, or a module that it imports here, is not what params.yaml pins for mine: restore it, or run "
        "cleanset models --pin, then dvc repro"
    ]
    pin(edition)
    # dvc repro notices, since the pin is among the params of stage score
    assert seen() == []


def test_weights_that_a_custom_network_opens_by_name(edition: Edition) -> None:
    """They are found by loading it, pinned, and a dependency of stage score; what it does not open is not."""
    for name in ("big.pt", "other.pt"):
        (edition.folder / name).write_text("1")
    (edition.folder / "nets.py").write_text("def make():\n    return open('big' + '.pt').read(), open('params.yaml')\n")
    params = yaml.safe_load(edition.params_yaml.read_text())
    params["models"] = {"mine": {"source": "module", "name": "nets:make"}}
    edition.params_yaml.write_text(yaml.safe_dump(params))

    def deps() -> list[str]:
        return list(yaml.safe_load(edition.dvc_yaml.read_text())["stages"]["score"]["deps"])

    before = deps()
    pin(edition)
    assert read_params(edition.folder).models["mine"].files == {"big.pt": sha256(b"1").hexdigest()}
    assert deps() == [*before, "big.pt"]
    (edition.folder / "other.pt").write_text("2")
    unseen = status.run(edition).unseen
    (edition.folder / "big.pt").write_text("2")
    line = (
        "big.pt: not what params.yaml pins of what nets:make opens: restore it, or run cleanset models --pin, then dvc "
        "repro"
    )
    assert status.run(edition).unseen == [*unseen, line]
    with pytest.raises(CleansetError, match=r"^nets:make: big\.pt in .*, which it opens, with another SHA-256 than in"):
        check_code(read_params(edition.folder).models["mine"], edition.folder)
    pin(edition)
    assert status.run(edition).unseen == unseen
    (edition.folder / "nets.py").write_text("def make(): pass\n")
    pin(edition)
    assert (deps(), read_params(edition.folder).models["mine"].files) == (before, None)


def test_labels_that_change_twice(edition: Edition) -> None:
    path = edition.folder / "labels.csv"
    before = path.read_text()
    line = (
        f"{edition.export('images')}: made before a change of labels.csv: run dvc repro; after a merge remove dvc.lock "
        "first"
    )
    for old, new in (("cat/000.png,cat", "cat/000.png,dog"), ("dog/000.png,dog", "dog/000.png,cat")):
        path.write_text(before.replace(old, new))
        assert status.run(edition).pending == [line]
        path.write_text(before)
        assert status.run(edition).pending == []


def test_images_of_a_set_that_are_missing_or_changed(edition: Edition) -> None:
    folder = edition.export("images")
    first, second, *_ = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.png"))
    (folder / first).unlink()
    line = f"{folder}: missing, or not as in its manifest: {first}; run cleanset doctor, then dvc repro"
    assert status.run(edition).pending == [line]
    (folder / second).write_bytes(b"")
    (line,) = status.run(edition).pending
    assert line.endswith(f": {first}, {second}; run cleanset doctor, then dvc repro")


def test_a_verdict_on_other_bytes(edition: Edition) -> None:
    path = edition.reviews / "ada" / "cat.yaml"
    content = yaml.safe_load(path.read_text())
    content["cat"]["cat/002.png"]["sha256"] = "ab" * 32
    path.write_text(yaml.safe_dump(content))
    (line,) = status.run(edition).unseen
    assert line.endswith("other bytes were reviewed; look at the image again")


def test_a_broken_lock(edition: Edition) -> None:
    (edition.folder / "dvc.lock").write_text("schema: '2.0'\nstages:\n  preprocess:\n<<<<<<< ours\n")
    assert status.run(edition).unseen == [
        f"{edition.folder}/dvc.lock: cut off, or a merge in conflict; run cleanset doctor"
    ]


def test_the_command(edition: Edition) -> None:
    """Exit code 1 for what dvc repro would not notice, not for what it brings up to date."""
    assert says(cleanset("status", cwd=edition.folder))[0] == 0
    shutil.rmtree(edition.export("images"))
    code, printed, _ = says(cleanset("status", cwd=edition.folder))
    assert (code, printed.splitlines()[0]) == (
        0, "data/export/images: no set yet; run dvc repro, or dvc pull export@images",
    )  # fmt: skip
    image(edition, "cat/001.png").write_bytes(b"other")
    code, printed, _ = says(cleanset("status", cwd=edition.folder))
    assert (code, printed.splitlines()[0]) == (1, f"../images: 1 changed: cat/001.png; {ACCEPT}")


def test_a_moment_without_the_images_forgets_no_digest(edition: Edition) -> None:
    """As when a disk is not mounted."""
    images = edition.folder.parent / "images"
    images.rename(images.with_name("away"))
    assert status.run(edition).unseen != []
    images.with_name("away").rename(images)
    again = status.run(edition)
    assert (again.unseen, again.images, again.read) == ([], 8, 0)


def test_brought_scores(tmp_path: Path) -> None:
    rows = []
    for number, key in enumerate(("cat", "dog")):
        (tmp_path / "images" / key).mkdir(parents=True)
        for place in range(2):
            drawn_image(40, 40, seed=place + 10 * number).save(tmp_path / "images" / key / f"{place}.png")
            rows.append(f"{key}/{place}.png,{key},0.{9 - place}")
    (tmp_path / "scores.csv").write_text("\n".join(["file,class,confidence", *rows]) + "\n")
    assert says(cleanset("edition", "own", "--images", "images", "--scores", "scores.csv", cwd=tmp_path))[0] == 0
    edition = Edition(tmp_path / "own")
    path = edition.folder / "scores.csv"
    assert status.run(edition).unseen == []
    before = path.read_text()
    for after in (before.replace("0.9", "0.7"), before.replace("0.8", "0.6")):
        path.write_text(after)
        (line,) = status.run(edition).unseen
        assert line.startswith(f"{path}: ")
        assert line.endswith("run cleanset edition --accept --scores FILE with a new table")
        path.write_text(before)
        assert status.run(edition).unseen == []
