"""The README's commands run, and its examples are valid."""

import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from cleanset.edition.params import Model
from cleanset.review.verdicts import parse_reviews
from tests.checkouts import Checkout
from tests.readme import block, blocks, shell

BUILT = {"keras256": (480, 224, 224, 3), "standard": (34, 160, 160, 3)}
COMPARE = "cleanset compare data/scores/standard.parquet data/scores/norm_robust.parquet --edition . --model standard"
EVALUATE = "cleanset evaluate standard --model standard --model norm_robust --model corruption_robust"
SHA256 = "0123456789abcdef" * 4


@pytest.fixture(scope="module")
def checkout(built: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A clone with DVC's cache filled and this environment as its .venv."""
    clone = built.clone_with_data(tmp_path_factory.mktemp("readme") / "cleanset")
    environment = clone.folder / ".venv"
    environment.mkdir()
    for name in ("bin", "lib", "pyvenv.cfg"):
        (environment / name).symlink_to(Path(sys.prefix) / name)
    (environment / ".ready").touch()
    return clone


def test_the_readme_has_these_blocks(repository: Path) -> None:
    first_lines = [block.splitlines()[0] for block in blocks(repository, "sh")]
    assert first_lines == [
        "make repro",
        ". .venv/bin/activate",
        "dvc repro",
        "dvc pull export@standard",
        "dvc pull",
        "mkdir -p imagenet/data/raw",
        "make edition DIR=editions/mine",
        "dvc pull export",
        'dvc remote modify --local origin url "$REMOTE"',
        'cd "$SERVED/files/md5"',
        "make remote URL=https://your.server/dvc",
        "dvc repro --pull --allow-missing",
        "make from-scores",
        "python - <<'END'",
        COMPARE,
        "cleanset verify data/export/standard",
        EVALUATE,
        'ssh-keygen -q -t ed25519 -N "" -f build/key',
        "cleanset arrays --preprocessing keras256 build/keras256",
    ]


def test_make_repro_ends_with_the_metrics(repository: Path, checkout: Checkout) -> None:
    two_commands = block(repository, "make repro").splitlines()
    assert two_commands == ["make repro", "make test"]  # the second is what runs here
    done = shell(checkout, two_commands[0])
    assert done.returncode == 0, done.stderr
    assert re.search(r"^metrics/totals/images.json +\d+ +\d+ +\d+ *$", done.stdout, re.MULTILINE)


def test_the_commands_after_activation(repository: Path, checkout: Checkout) -> None:
    done = shell(checkout, "set -o pipefail\n" + block(repository, ". .venv/bin/activate"))
    assert done.returncode == 0, done.stderr
    assert "review_apply" in done.stdout
    assert "metrics/classes/n02782093.json" in done.stdout


def test_the_way_to_imagenet(repository: Path, checkout: Checkout, tmp_path: Path) -> None:
    """Without the archives it ends with one line that says so."""
    done = shell(checkout, block(repository, "mkdir -p imagenet/data/raw"), ARCHIVES=str(tmp_path))
    assert done.returncode != 0
    assert f"error: data/raw/ILSVRC2012_img_val.tar: a link to {tmp_path}" in done.stderr


def test_an_edition_of_ones_own(repository: Path, checkout: Checkout) -> None:
    done = shell(checkout, block(repository, "make edition DIR=editions/mine"))
    assert done.returncode == 0, done.stderr
    assert (checkout.folder / "editions" / "mine" / "params.yaml").is_file()


def test_what_is_left_to_review(repository: Path, checkout: Checkout) -> None:
    done = shell(checkout, block(repository, "python - <<'END'"))
    assert done.returncode == 0, done.stderr
    assert re.search(r"^ *ILSVRC2012_val_00000242 +301 +[0-9a-f]{64}$", done.stdout, re.MULTILINE)
    assert re.search(r"^ *all models +10 +1 +1 +0 +1 +1 *$", done.stdout, re.MULTILINE)


def test_comparing(repository: Path, checkout: Checkout) -> None:
    scores, exports = block(repository, COMPARE).splitlines()
    of_scores, of_exports = shell(checkout, scores), shell(checkout, exports)
    assert (of_scores.returncode, of_scores.stderr) == (of_exports.returncode, of_exports.stderr) == (1, "")
    assert re.search(r"^standard: \d+$", of_scores.stdout, re.MULTILINE)
    assert json.loads(of_exports.stdout)["same"] is False


def test_using_a_set(repository: Path, checkout: Checkout) -> None:
    done = shell(checkout, block(repository, "cleanset verify data/export/standard"), COLUMNS="80")
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "data/export/standard: 34 of 34 images are good\n"
        "build/rebuilt: 34 images; source, file and pixels of each are those of the manifest\n"
        "build/shards: 34 images in shards: 1\n",
        "",
    )
    done = shell(checkout, block(repository, "ssh-keygen -q -t ed25519"), COLUMNS="80")
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[0] == "build/published/cleanset-standard-1.0.0: 34 images, published without its images, signed"
    assert lines[2].startswith(
        "build/published/cleanset-standard-1.0.0.tar: published without its 34 images; signed: ED25519 key SHA256:"
    )
    assert lines[-1] == "otherwise listed       0"
    load, others = blocks(repository, "python")
    shown = (
        "print(len(images), image.mode, class_index, record['rank'], len(table))\n"
        "print(names[labels[0]], rows.features['label'].names[rows[0]['label']])\n"
        "print(len(folders), len(folders.classes), len(rows), rows[0]['image_id'], len(list(shard)))\n"
    )
    offline = {"HF_DATASETS_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "HF_HOME": str(checkout.folder / "build" / "hf")}
    done = shell(checkout, f"python - <<'END'\n{load}{others}{shown}END\n", **offline)
    assert done.stdout == "34 RGB 1 1 34\ngoldfish goldfish\n34 12 34 ILSVRC2012_val_00000065 34\n", done.stderr
    shutil.rmtree(checkout.folder / "build")


def test_measuring_models(repository: Path, checkout: Checkout) -> None:
    done = shell(checkout, block(repository, EVALUATE), COLUMNS="80")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[0] == "standard: 34 images, 12 classes"
    assert lines[1] == "SHA-256 of every image as in the manifest"
    (own,) = [line for line in lines if line.startswith("1 standard ")]
    assert own.startswith("1 standard 100.00 % 89.85 – 100.00 ")
    assert own.endswith(" 100.0 100.0 100.0")
    written = sorted(path.name for path in (checkout.folder / "build" / "evaluated").iterdir())
    name = "sample_weights_standard.safetensors"
    assert written == ["results.json", f"{name}.json", f"{name}.parquet"]
    shutil.rmtree(checkout.folder / "build")


def test_arrays(repository: Path, checkout: Checkout) -> None:
    done = shell(checkout, block(repository, "cleanset arrays --preprocessing keras256 build/keras256"))
    assert done.returncode == 0, done.stderr
    shapes = {name: np.load(checkout.folder / "build" / name / "images.npy", mmap_mode="r").shape for name in BUILT}
    assert shapes == BUILT
    shutil.rmtree(checkout.folder / "build")


def test_make_alone_lists_the_targets(checkout: Checkout) -> None:
    listed = shell(checkout, "make").stdout
    for target in ("repro", "test", "real", "edition", "bench"):
        assert re.search(rf"^make {target} ", listed, re.MULTILINE)


def test_the_example_review_is_valid(repository: Path) -> None:
    text = blocks(repository, "yaml")[0].replace("3f6c0a…", SHA256)
    (vote,) = parse_reviews(text, "n02782093", "README.md")
    assert vote.review.box == (0, 0, 480, 330)


def test_the_example_model_is_valid(repository: Path) -> None:
    content = yaml.safe_load(blocks(repository, "yaml")[1].replace("5c106c…", SHA256))
    assert Model.model_validate(content["models"]["mine"]).name == "resnet50"


def test_every_path_of_the_tree_is_there(repository: Path) -> None:
    tree = next(block for block in blocks(repository, "") if block.startswith("dvc.yaml"))
    names = [name for line in tree.splitlines() for name in re.findall(r"^(\S+)|(?<=/  )(\S+/)", line)]
    for name in (first or second for first, second in names):
        assert name in ("data/", "report/") or (repository / name).exists(), name
