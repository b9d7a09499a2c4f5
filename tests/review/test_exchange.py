"""The way through Label Studio: export tasks, answer them as its export would, import, compare the review files."""

import io
import json
import shutil
import subprocess
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from PIL import Image

from cleanset.edition.paths import Edition, verified_images
from cleanset.images.codec import cropped, decode
from cleanset.review.label_studio.format import labeling_config
from cleanset.review.save import save
from cleanset.review.verdicts import Review
from cleanset.tables import INDEX, read_table
from tests.checkouts import Checkout
from tests.review.answers import Json, answered, choice, results

ASKED = "ILSVRC2012_val_00000242"
"""The one that the sample leaves open."""


class Copy:
    """An edition with the sample's data and reviews of its own."""

    def __init__(self, built: Checkout, folder: Path) -> None:
        self.folder, self.built = folder, built
        shutil.copytree(built.folder / "reviews", folder / "reviews")
        shutil.copy(built.folder / "params.yaml", folder)
        (folder / "data").symlink_to(built.folder / "data")
        index = read_table(built.folder / "data" / "index.parquet", INDEX)
        columns = (index[name].tolist() for name in ("image_id", "width", "height"))
        self.sizes: dict[str, tuple[int, int]] = {
            name: (width, height) for name, width, height in zip(*columns, strict=True)
        }

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["cleanset", "review", *command], cwd=self.folder, env=self.built.environment(), capture_output=True,
            text=True, check=False,
        )  # fmt: skip

    def exported(self, *options: str) -> list[Json]:
        done = self.run("export", "work/tasks.json", *options)
        assert done.returncode == 0, done.stderr
        tasks: list[Json] = json.loads((self.folder / "work" / "tasks.json").read_text())
        assert f"work/tasks.json: {len(tasks)} tasks; configuration in work/tasks.xml" in done.stdout
        return tasks

    def answers(self, tasks: list[Json]) -> str:
        (self.folder / "answers.json").write_text(json.dumps(tasks))
        return "answers.json"

    def reviews(self) -> dict[str, bytes]:
        root = self.folder / "reviews"
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*.yaml")}


@pytest.fixture
def copy(built: Checkout, tmp_path: Path) -> Copy:
    return Copy(built, tmp_path)


def test_there_and_back(copy: Copy) -> None:
    """All of one reviewer's verdicts, taken away, given again in Label Studio: the same files, byte for byte."""
    committed = copy.reviews()
    ada = {path: text for path, text in committed.items() if path.startswith("ada/")}
    given = {
        (wnid, image_id): Review.model_validate(fields)
        for text in ada.values()
        for wnid, entries in yaml.safe_load(text).items()
        for image_id, fields in entries.items()
    }
    shutil.rmtree(copy.folder / "reviews")
    (copy.folder / "reviews").mkdir()
    tasks = copy.exported("--all")
    keys = [(task["data"]["wnid"], task["data"]["image_id"]) for task in tasks]
    assert len(given) == 139
    assert set(given) <= set(keys)
    answers = [
        answered(task, number, results(given[key], *copy.sizes[key[1]]))
        for number, (key, task) in enumerate(zip(keys, tasks, strict=True))
        if key in given
    ]
    done = copy.run("import", copy.answers(answers[::-1]), "--reviewer", "ada")
    assert (done.returncode, done.stdout) == (0, "answers.json: 139 reviews of ada saved, 0 were there already\n")
    assert copy.reviews() == ada
    again = copy.run("import", "answers.json", "--reviewer", "ada")
    assert again.stdout == "answers.json: 0 reviews of ada saved, 139 were there already\n"
    assert {(task["data"]["wnid"], task["data"]["image_id"]) for task in copy.exported("--all")} & set(given) == set()


def test_images_lie_as_they_are_stored(copy: Copy) -> None:
    """Byte for byte; those that viewers would turn as PNG, with the stored pixels and without the tag."""
    shutil.rmtree(copy.folder / "reviews")
    (copy.folder / "reviews").mkdir()
    tasks, images = copy.exported("--all"), copy.folder / "work" / "tasks_images"
    names = {task["data"]["image_id"]: parse_qs(urlsplit(task["data"]["image"]).query)["d"][0] for task in tasks}
    assert {urlsplit(task["data"]["image"]).path for task in tasks} == {"/data/local-files/"}
    assert sorted(names.values()) == sorted(f"tasks_images/{path.name}" for path in images.iterdir())
    turned = [image_id for image_id, name in names.items() if name.endswith(".png")]
    assert len(turned) > 5
    edition = Edition(copy.folder)
    source = verified_images(edition, "data/raw/ILSVRC2012_img_val.tar", read_table(edition.index, INDEX)).read
    for path in images.iterdir():
        data = source(path.stem)
        orientation = decode(data).getexif().get(0x0112, 1)
        assert (orientation == 1) == (path.suffix == ".JPEG")
        if orientation == 1:
            assert path.read_bytes() == data
        else:
            with Image.open(io.BytesIO(path.read_bytes())) as image:
                assert len(image.getexif()) == 0
                width, height = copy.sizes[path.stem]
                assert image.tobytes() == cropped(data, (0, 0, width, height)).tobytes()


def test_what_is_exported(copy: Copy) -> None:
    [task] = copy.exported()
    assert task["data"] == {
        "image": f"/data/local-files/?d=tasks_images/{ASKED}.JPEG",
        "image_id": ASKED,
        "wnid": "n02165456",
        "names": "ladybug, ladybeetle, lady beetle, ladybird, ladybird beetle",
        "gloss": "small round bright-colored and spotted beetle that usually feeds on aphids and other insect pests",
        "asked": "Give a verdict.",
        "sha256": "86fdfc8792abf1c31735303c465a5ce7c8792d765f69d6d228c512ac1740a2f3",
    }
    work = copy.folder / "work"
    assert (work / "tasks.xml").read_text() == labeling_config()
    before = {path.name: path.read_bytes() for path in work.rglob("*") if path.is_file()}
    copy.exported()
    assert {path.name: path.read_bytes() for path in work.rglob("*") if path.is_file()} == before
    assert sorted(before) == [f"{ASKED}.JPEG", "tasks.json", "tasks.xml"]


def test_a_box_is_asked_for_first(copy: Copy) -> None:
    """Of an image that is to be cropped, in a class in which nothing else is decided."""
    params = (copy.folder / "params.yaml").read_text()
    (copy.folder / "params.yaml").write_text(params.replace("review:\n", "review:\n  crops: in_rank\n"))
    for path in (copy.folder / "reviews").glob("*/n02165456.yaml"):
        path.unlink()
    last = copy.exported()[-1]["data"]
    fields = {"verdict": "crop", "reason": "border", "crop": "unknown", "object_fully_visible": True}
    review = Review.model_validate(fields | {"sha256": last["sha256"]})
    save(copy.folder / "reviews", "scooter", "n02165456", last["image_id"], review)
    first, *others = [task["data"] for task in copy.exported()]
    assert first["image_id"] == last["image_id"]
    assert first["asked"] == "This image is to be cropped: draw the box, or give another verdict."
    assert {task["asked"] for task in others} == {"Give a verdict."}


def test_certain_ones_only_unless_all_are_wanted(copy: Copy) -> None:
    """Without verdicts on a class, the three likeliest images of each model are certain; all candidates are open."""
    for path in (copy.folder / "reviews").glob("*/n02165456.yaml"):
        path.unlink()
    some, every = len(copy.exported()), len(copy.exported("--all"))
    assert 3 <= some <= 9 < every


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("export", "tasks"), "error: tasks: expected a name that ends in .json"),
        (
            ("export", "tasks.json", "--reviewer", "../ada"),
            "error: reviewer '../ada': expected a name of small letters",
        ),
        (("import", "no.json", "--reviewer", "ada"), "error: no.json: missing; expected what Label Studio exports as"),
    ],
)
def test_wrong_names(copy: Copy, arguments: tuple[str, ...], message: str) -> None:
    done = copy.run(*arguments)
    assert done.returncode == 1
    assert done.stderr.startswith(message)
    assert not list(copy.folder.glob("tasks*"))


def test_only_images_are_replaced(copy: Copy) -> None:
    folder = copy.folder / "my_images"
    folder.mkdir()
    (folder / f"{ASKED}.JPEG").write_text("of an earlier export")
    (folder / "holidays.png").write_text("mine")
    done = copy.run("export", "my.json")
    assert (done.returncode, (folder / "holidays.png").read_text()) == (1, "mine")
    assert done.stderr.startswith("error: my_images/holidays.png: expected only images in this folder")
    (folder / "holidays.png").unlink()
    assert copy.run("export", "my.json").returncode == 0
    assert (folder / f"{ASKED}.JPEG").stat().st_size > 1_000


CLEAN = [choice("verdict", "clean")]


def refused(copy: Copy, answers: list[Json], reviewer: str = "ben") -> str:
    """The error; nothing was written."""
    before = copy.reviews()
    done = copy.run("import", copy.answers(answers), "--reviewer", reviewer)
    assert (done.returncode, done.stdout) == (1, "")
    assert copy.reviews() == before
    return done.stderr


def test_all_or_nothing(copy: Copy) -> None:
    """A valid answer before the invalid one is not saved."""
    [task] = copy.exported()
    other = "ILSVRC2012_val_00000154"
    seen = yaml.safe_load((copy.folder / "reviews" / "ada" / "n04254680.yaml").read_text())["n04254680"][other]
    valid = answered({"data": {"wnid": "n04254680", "image_id": other, "sha256": seen["sha256"]}}, 1, CLEAN)
    for changed, message in (
        ({"sha256": "0" * 64}, f"task 2: sha256 {'0' * 64}, but the image has 86fdfc"),
        ({"image_id": other}, "task 2: reviewed for n02165456, which is not among the image's reassessed labels"),
        ({"wnid": "n01443537"}, "task 2: reviewed for n01443537, which is not among the image's reassessed labels"),
        ({"wnid": "../ada"}, "unknown class '../ada'; expected a wnid"),
    ):
        assert message in refused(copy, [valid, answered({"data": task["data"] | changed}, 2, CLEAN)])
    assert f"task 2: {other} again, as in answers.json, task 1; remove one of the two" in refused(
        copy, [valid, valid | {"id": 2}]
    )
    assert "task 2: verdict crop without a reason" in refused(
        copy, [valid, answered(task, 2, [choice("verdict", "crop")])]
    )
    assert "task 1: no note; the board's reason to overrule" in refused(copy, [answered(task, 1, CLEAN)], "board")
    assert "reviewer '../x': expected a name" in refused(copy, [answered(task, 1, CLEAN)], "../x")


def test_a_verdict_that_stands_there(copy: Copy) -> None:
    [task] = copy.exported()
    assert copy.run("import", copy.answers([answered(task, 1, CLEAN)]), "--reviewer", "ben").returncode == 0
    unsure = [answered(task, 1, [choice("verdict", "unsure")])]
    assert refused(copy, unsure) == (
        f"error: answers.json, task 1: another verdict is in reviews/ben/n02165456.yaml, line 2, {ASKED}; "
        "remove it there, or say --replace to take the new ones\n"
    )
    done = copy.run("import", "answers.json", "--reviewer", "ben", "--replace")
    assert done.stdout == "answers.json: 1 reviews of ben saved, 0 were there already\n"
    assert (copy.folder / "reviews" / "ben" / "n02165456.yaml").read_text() == (
        f"n02165456:\n  {ASKED}:\n    verdict: unsure\n    sha256: {task['data']['sha256']}\n"
    )


def test_a_reviewer_is_not_asked_again(copy: Copy) -> None:
    """The second of two, where both are needed: the first has seen the image, the second has not."""
    [task] = copy.exported()
    params = yaml.safe_load((copy.folder / "params.yaml").read_text())
    params["review"] = {"policy": "unanimous", "min_reviewers": 2, "unreviewed": "pending"}
    (copy.folder / "params.yaml").write_text(yaml.safe_dump(params))
    assert copy.run("import", copy.answers([answered(task, 1, CLEAN)]), "--reviewer", "ada").returncode == 0
    of_ada, of_ben = (
        [each["data"]["image_id"] for each in copy.exported("--all", "--reviewer", name)] for name in ("ada", "ben")
    )
    assert ASKED not in of_ada
    assert ASKED in of_ben
