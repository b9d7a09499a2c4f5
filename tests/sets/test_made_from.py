"""A set knows what it was made from: its edition, `review status` and `publish` tell when that has changed."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.sets import publish, verify
from cleanset.sets.made_from import outdated, outdated_sets
from tests import own_edition
from tests.edition.test_stage_inputs import lock
from tests.evaluation.compare.command import cleanset, says
from tests.sets.conftest import make_edition
from tests.ten_images import DEVKIT, TAR

pytestmark = pytest.mark.slow

REMEDY = "run dvc repro; after a merge remove dvc.lock first"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """Two classes of four images, two of them needed; not to be changed."""
    folder = tmp_path_factory.mktemp("finished")
    rows = [f"{key}/{place:03d}.png,{key},g{place}" for key in ("cat", "dog") for place in range(4)]
    (folder / "labels.csv").write_text("\n".join(["file,class,group", *rows]) + "\n")
    (folder / "names.csv").write_text("class,name\ncat,Katze\ndog,Hund\n")
    tables = ("--labels", "labels.csv", "--names", "names.csv")
    edition = own_edition.make(folder, keys=("cat", "dog"), options=tables)
    own_edition.change_params(edition, export={"images_per_class": 2})
    own_edition.run(edition, "select")
    own_edition.review(edition, "ada")
    own_edition.run(edition, "crops", "score_crops", "review_apply", "export")
    return edition


@pytest.fixture
def edition(finished: Edition, tmp_path: Path) -> Edition:
    """A copy with its images."""
    shutil.copytree(finished.folder.parent, tmp_path / "copy", symlinks=True)
    return Edition(tmp_path / "copy" / finished.folder.name)


def verdicts(edition: Edition, key: str, chosen: Callable[[str], bool]) -> None:
    """Reject the images of a class that are chosen."""
    path = edition.reviews / "ada" / f"{key}.yaml"
    content = yaml.safe_load(path.read_text())
    for image_id, entry in content[key].items():
        if chosen(image_id):
            entry |= own_edition.REJECT
    path.write_text(yaml.safe_dump(content))


def in_the_set(edition: Edition) -> set[str]:
    text = (edition.export("images") / "manifest.csv").read_text()
    header, *rows = (line.split(",") for line in text.splitlines())
    return {row[header.index("image_id")] for row in rows}


def change_params(edition: Edition) -> None:
    own_edition.change_params(edition, export={"images_per_class": 1})


def reject_one(edition: Edition) -> None:
    verdicts(edition, "cat", lambda image_id: image_id == min(in_the_set(edition)))


def pin_another(edition: Edition) -> None:
    lines = edition.images_sha256.read_text().splitlines()
    edition.images_sha256.write_text("\n".join(["0" * 64 + lines[0][64:], *lines[1:]]) + "\n")


def write_guidelines(edition: Edition) -> None:
    (edition.reviews / "GUIDELINES.md").write_text("Ours.\n")


def touch_selection(edition: Edition) -> None:
    with edition.selection("images").open("ab") as file:
        file.write(b" ")


def edit(name: str, before: str, after: str) -> Callable[[Edition], None]:
    def change(edition: Edition) -> None:
        text = edition.path(name).read_text()
        assert before in text
        edition.path(name).write_text(text.replace(before, after, 1))

    return change


ABOUT = {"title": "T", "authors": [{"name": "A"}], "licence": "CC-BY-4.0"}
IMAGES = {"source": "Drawn", "licence": "CC0-1.0", "people": "none"}
CHANGES: list[tuple[str, Callable[[Edition], None]]] = [
    ("params.yaml", change_params),
    ("params.yaml", lambda edition: own_edition.change_params(edition, export={"version": "1.1.0"})),
    ("params.yaml", lambda edition: own_edition.change_params(edition, export={"date": "2026-02-01"})),
    ("params.yaml", lambda edition: own_edition.change_params(edition, export={"about": ABOUT | {"images": IMAGES}})),
    ("reviews", reject_one),
    ("images.sha256", pin_another),
    ("reviews/GUIDELINES.md", write_guidelines),
    ("data/selection/images.parquet", touch_selection),
    ("labels.csv, names.csv", edit("names.csv", "Katze", "Kater")),
    ("labels.csv, names.csv", edit("labels.csv", "cat/003.png,cat,", "cat/003.png,dog,")),
    ("labels.csv, names.csv", edit("labels.csv", ",g3", ",g9")),
]


@pytest.mark.parametrize(("name", "change"), CHANGES)
def test_each_change_is_reported(name: str, change: Callable[[Edition], None], edition: Edition) -> None:
    """Before it all is well; a copy elsewhere is a set of its own."""
    folder = edition.export("images")
    assert outdated(folder) == []
    assert verify.run(folder, decode=False).problems == []
    change(edition)
    assert outdated(folder) == name.split(", ")
    (problem,) = verify.run(folder, decode=False).problems
    assert str(problem) == (
        f"outdated     manifest.csv: made before a change of {name}; expected today's set: {REMEDY}"
    )
    with pytest.raises(CleansetError, match=f"outdated .*change of {name}; .*run dvc repro"):
        publish.run(folder, edition.folder / "out", with_images=True, key=None)
    shutil.copytree(folder, edition.folder / "copy")
    assert verify.run(edition.folder / "copy", decode=False).problems == []


def test_verdicts_that_change_nothing_in_the_set(edition: Edition) -> None:
    """On images that are good enough, but not needed: DVC does not export again for them either."""
    needed = in_the_set(edition)
    assert len(needed) == 4
    for key in ("cat", "dog"):
        path = edition.reviews / "ada" / f"{key}.yaml"
        content = yaml.safe_load(path.read_text())
        content[key] = {name: entry for name, entry in content[key].items() if name in needed}
        path.write_text(yaml.safe_dump(content))
    assert outdated(edition.export("images")) == []


def test_a_rejected_image_that_was_not_needed_is_in_another_line_of_the_rejected(edition: Edition) -> None:
    needed = in_the_set(edition)
    verdicts(edition, "cat", lambda image_id: image_id not in needed)
    assert outdated(edition.export("images")) == ["reviews"]


def test_after_the_stages_it_is_up_to_date_again(edition: Edition) -> None:
    reject_one(edition)
    change_params(edition)
    assert outdated(edition.export("images")) == ["params.yaml", "reviews"]
    own_edition.run(edition, "select", "crops", "score_crops", "review_apply", "export")
    assert outdated(edition.export("images")) == []


def test_review_status_is_reported(edition: Edition) -> None:
    assert outdated_sets(edition) == []
    assert "made before" not in says(cleanset("review", "status", cwd=edition.folder))[1]
    reject_one(edition)
    line = f"data/export/images: made before a change of reviews: {REMEDY}"
    code, printed, _ = says(cleanset("review", "status", cwd=edition.folder))
    assert (code, printed.splitlines()[-1]) == (0, line)
    assert line in says(cleanset("review", "status", "--json", cwd=edition.folder))[1]


def test_another_archive_of_imagenet(tmp_path: Path) -> None:
    """The archive is known by its MD5, which is in raw.md5; its devkit is not what an image is made from."""
    edition = make_edition(tmp_path)
    folder = edition.export("standard")
    assert outdated(folder) == []
    lines = edition.raw_md5.read_text().splitlines(keepends=True)
    for name, expected in ((DEVKIT, []), (TAR, ["raw.md5"])):
        changed = ["0" * 32 + line[32:] if line.rstrip().endswith(name) else line for line in lines]
        assert changed != lines
        edition.raw_md5.write_text("".join(changed))
        assert outdated(folder) == expected


def test_labels_of_imagenet_are_those_that_preprocess_has_read(tmp_path: Path) -> None:
    """What DVC has locked with the index covers the devkit, the reassessed labels, and how they are read."""
    edition = make_edition(tmp_path)
    shutil.copy(Path(__file__).parents[2] / "dvc.yaml", edition.dvc_yaml)
    folder = edition.export("standard")
    lock(edition.folder, "preprocess")
    assert outdated(folder) == []
    own_edition.change_params(edition, dataset={"reassessed": "timm"})
    assert outdated(folder) == ["dataset.reassessed in params.yaml"]
    lock(edition.folder, "preprocess")
    lines = edition.raw_md5.read_text().splitlines(keepends=True)
    changed = ["0" * 32 + line[32:] if line.rstrip().endswith(DEVKIT) else line for line in lines]
    edition.raw_md5.write_text("".join(changed))
    assert outdated(folder) == ["raw.md5"]
