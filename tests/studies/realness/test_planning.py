"""The two commands on a small set: what they write, and that nothing tells people which images are real."""

import csv
import io
import json
import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.studies.realness.planning import STATIC, plain_png, source_of
from tests.sets.conftest import FILES
from tests.studies.realness.conftest import SIZES, VIEW, command, path_of, rows

pytestmark = pytest.mark.slow

HEADER = (
    "person", "list", "position", "stimulus", "answer", "milliseconds",
    "shown_width", "shown_height", "pixel_ratio", "window_width", "window_height",
    "pixels_per_mm", "darkened",
)  # fmt: skip


def test_what_is_written(planned: Path) -> None:
    assert {path.name for path in planned.iterdir()} == {"page", "key.csv", "trials.csv", "plan.json", "texts.yaml"}
    assert {path.name for path in (planned / "page").iterdir()} == {*STATIC, "lists.js", "images"}
    key = rows(planned / "key.csv")
    assert sorted(each["image"] for each in key if each["kind"] == "real") == FILES
    assert Counter(each["kind"] for each in key) == {"real": 6, "modified": 6, "pair": 6, "attention": 2}
    named = {file for each in rows(planned / "trials.csv") for file in (each["file"], each["file_right"]) if file}
    there = {path.name for path in (planned / "page" / "images").iterdir()}
    assert named <= there
    assert len(there) == 6 + 6 + 2 * 6
    record = json.loads((planned / "plan.json").read_text())
    assert record["images"] == {"real": 6, "modified": 6, "pixels": [40, 40], "width_mm": None}
    assert record["people_of_an_image"] == {"real": [5, 6], "modified": [5, 6]}  # 8 x 4 of 6
    assert record["people_needed"] == {"power": 0.8, "people": None}


def test_the_lists_are_equally_shown(planned: Path) -> None:
    kind = {each["stimulus"]: each["kind"] for each in rows(planned / "key.csv")}
    trials = rows(planned / "trials.csv")
    for number in range(1, 9):
        of_list = [kind[each["stimulus"]] for each in trials if each["list"] == str(number)]
        assert of_list[:2] == ["pair", "pair"]
        assert Counter(of_list[2:]) == {"real": 4, "modified": 4, "attention": 2}
    counts = Counter(each["stimulus"] for each in trials if each["kind"] == "image")
    assert sorted(set(counts.values())) == [5, 6]


def test_the_page_does_not_tell_which_images_are_real(planned: Path) -> None:
    """All stimuli are PNGs of one size without metadata, under names of digits; no text has a source, class or kind."""
    sizes = set()
    for path in (planned / "page" / "images").iterdir():
        assert re.fullmatch("[0-9a-f]{16}.png", path.name)
        with Image.open(path) as image:
            sizes.add((image.format, image.mode, image.size, tuple(image.info)))
    assert sizes == {("PNG", "RGB", (40, 40), ())}
    for text in ((planned / "page" / "lists.js").read_text(), (planned / "trials.csv").read_text()):
        for word in ("ILSVRC", "n0", ".JPEG", '"real"', '"modified"', ",real,", ",modified,", "attacked"):
            assert word not in text


def test_the_length_of_a_file_does_not_tell_which_images_are_real(planned: Path) -> None:
    """Attacked images carry noise here, and the copies of pairs have edges: compressed, they would be longer."""
    stimuli = list((planned / "page" / "images").iterdir())
    assert len({path.stat().st_size for path in stimuli}) == 1
    lengths = set()
    for content in (np.zeros((224, 224, 3)), np.random.default_rng(0).integers(0, 256, (224, 224, 3))):
        image = Image.fromarray(content.astype(np.uint8))
        data = plain_png(image)
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(data))), np.asarray(image))
        lengths.add(len(data))
    assert len(lengths) == 1


def test_an_attacked_image_is_shown_unchanged(planned: Path, attacked: Path) -> None:
    modified = [each for each in rows(planned / "key.csv") if each["kind"] == "modified"]
    assert len({each["image"] for each in modified}) == 6
    for each in modified:
        shown = np.asarray(Image.open(planned / "page" / "images" / f"{each['stimulus']}.png"))
        assert np.array_equal(shown, np.asarray(Image.open(attacked / each["image"])))


def test_a_pair_is_an_image_and_what_nobody_takes_for_real(planned: Path) -> None:
    """One side is the image; the expected one has half of its tiles as negatives."""
    pairs = [each for each in rows(planned / "trials.csv") if each["kind"] == "pair"]
    assert len(pairs) == 8 * 2
    assert {each["expected"] for each in rows(planned / "key.csv") if each["kind"] == "pair"} == {"left", "right"}
    for trial in pairs:
        (expected,) = [each["expected"] for each in rows(planned / "key.csv") if each["stimulus"] == trial["stimulus"]]
        sides = {"left": trial["file"], "right": trial["file_right"]}
        pixels = {side: np.asarray(Image.open(planned / "page" / "images" / name)) for side, name in sides.items()}
        changed, plain = pixels.pop(expected), next(iter(pixels.values()))
        assert np.abs(changed.astype(int) - plain).mean() > 20
        there = sorted(tile.tobytes() for tile in tiles(plain))
        negatives = sorted((255 - tile).tobytes() for tile in tiles(plain))
        assert sum(tile.tobytes() in there for tile in tiles(changed)) >= 8
        assert sum(tile.tobytes() in negatives for tile in tiles(changed)) >= 8


def tiles(pixels: npt.NDArray[np.uint8]) -> list[npt.NDArray[np.uint8]]:
    return [pixels[row : row + 10, column : column + 10] for row in range(0, 40, 10) for column in range(0, 40, 10)]


def test_the_same_again(planned: Path, export_folder: Path, attacked: Path, tmp_path: Path) -> None:
    command("plan", "--set", export_folder, "--attacked", attacked, "--out", tmp_path / "again", *SIZES)
    for path in planned.rglob("*"):
        if path.is_file():
            assert (tmp_path / "again" / path.relative_to(planned)).read_bytes() == path.read_bytes()


def written_answers(planned: Path, folder: Path, careless: tuple[int, ...] = ()) -> list[Path]:
    """A file for each list: real images get 1 or 2 by list, the first one and modified ones -1 or -2."""
    key = {each["stimulus"]: each for each in rows(planned / "key.csv")}
    folder.mkdir()
    for number in range(1, 9):
        with (folder / f"answers-{number}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(HEADER)
            for trial in rows(planned / "trials.csv"):
                if trial["list"] != str(number):
                    continue
                stimulus = key[trial["stimulus"]]
                answer = stimulus["expected"]
                if stimulus["kind"] in ("real", "modified"):
                    sign = -1 if stimulus["kind"] == "modified" or stimulus["image"] == FILES[0] else 1
                    answer = str(sign * (1 + (number + int(trial["position"])) % 2))
                elif number in careless:
                    answer = {"left": "right", "right": "left"}.get(answer, "0")
                given = (f"person{number}", number, trial["position"], trial["stimulus"], answer, 900)
                writer.writerow((*given, *VIEW.split(",")))
    return sorted(folder.iterdir())


def test_answers_are_analysed_by_the_key(planned: Path, tmp_path: Path) -> None:
    answers = written_answers(planned, tmp_path / "answers", careless=(2,))
    out = tmp_path / "out"
    text = command("analyse", *answers, "--plan", planned, "--settings", "min_ratings=3", "--out", out)
    assert "7 people, 12 images, 56 ratings" in text
    assert "excluded by rule: attention 1, comprehension 1, of 8 people" in text
    assert "not shown to be equivalent" in text
    assert "1 of 6 real images with 3 ratings or more have a negative majority" in text
    assert all(len(line.rstrip()) <= 80 for line in text.splitlines())
    (again,) = rows(out / "look_again.csv")
    assert (again["image_id"], again["wnid"], again["share"]) == (FILES[0], "n01440764", "1.0000")
    assert len(rows(out / "images.csv")) == 12
    found = json.loads((out / "analysis.json").read_text())
    assert found["excluded"] == {"attention": ["person2"], "comprehension": ["person2"]}
    assert found["equivalence"]["equivalent"] is False
    assert found["model"]["modified"]["estimate"] < -1
    assert found["invalid_rows"] == {"left_out": 0, "first": []}
    assert found["shown"] == {
        "sizes": {"448 x 448": 56}, "pixel_ratios": {"1": 56}, "unknown": 0, "widths_mm": {}, "darkened": 0
    }  # fmt: skip


@pytest.mark.long
def test_a_published_study_and_json(repository: Path) -> None:
    found = json.loads(command("analyse", path_of(repository, "advpp"), "--settings", "random=intercepts", "--json"))
    assert found["ratings"]["real"] == {"ratings": 2500, "mean": 0.5872, "deviation": 1.3819}
    assert found["model"]["modified"]["estimate"] == pytest.approx(-1.1119, abs=1e-3)
    assert found["equivalence"]["p"] == 1.0
    # of 1,688 real images six have five ratings, and 364 a majority of fewer
    assert found["taken_for_modified"] == {"min_ratings": 5, "images": 6, "negative_majority": 0}
    wide = json.loads(
        command("analyse", path_of(repository, "advpp"), "--settings", "bound=2,degrees=normal", "--json")
    )
    assert wide["equivalence"]["equivalent"] is True
    assert 0 < wide["equivalence"]["p"] < 5e-5
    assert wide["model"]["modified"]["degrees"] is None


def test_variances_of_a_pilot(
    planned: Path, export_folder: Path, attacked: Path, repository: Path, tmp_path: Path
) -> None:
    arguments = ("--set", export_folder, "--attacked", attacked, "--out", tmp_path / "out", *SIZES)
    command("plan", *arguments, "--pilot", path_of(repository, "advpp"))
    record = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert record["variances"]["slope"] == pytest.approx(0.2823, abs=1e-3)
    published = json.loads((planned / "plan.json").read_text())
    assert published["variances"]["slope"] == 0.376


def test_a_pilot_with_one_real_image_tells_no_variance(export_folder: Path, attacked: Path, tmp_path: Path) -> None:
    pilot = tmp_path / "pilot.csv"
    rows = [f"{(p * i) % 5 - 2},{p},{'modified' if i else 'real'},{i}" for p in range(8) for i in range(4)]
    pilot.write_text("\n".join(["rating,pid,image_type,image_id", *rows, ""]))
    arguments = ("--set", export_folder, "--attacked", attacked, "--out", tmp_path / "out", *SIZES)
    with pytest.raises(CleansetError, match="found 1 real image, from which no variance of real images"):
        command("plan", *arguments, "--pilot", pilot)


def test_attacked_images_of_two_sizes(export_folder: Path, attacked: Path, tmp_path: Path) -> None:
    """One line, and --side brings all to one size."""
    mixed = Path(shutil.copytree(attacked, tmp_path / "mixed"))
    Image.new("RGB", (64, 48)).save(mixed / "other.png")
    arguments = ("--set", export_folder, "--attacked", mixed, "--out", tmp_path / "out", *SIZES)
    with pytest.raises(CleansetError, match=r"other.png has 64 x 48 pixels, .* expected attacked images of one size"):
        command("plan", *arguments)
    assert not (tmp_path / "out").exists()
    command("plan", *arguments, "--side", "32")
    assert {Image.open(path).size for path in (tmp_path / "out" / "page" / "images").iterdir()} == {(32, 32)}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: None, "not a folder; expected one with attacked images"),
        (lambda folder: folder.mkdir(), "no images; expected attacked images as JPEGs or PNGs"),
        (lambda folder: (folder.mkdir(), (folder / "a.png").write_bytes(b"\x89PNG")), "a.png: cannot be read"),
    ],
)
def test_bad_attacked_images(make: object, words: str, export_folder: Path, tmp_path: Path) -> None:
    assert callable(make)
    make(tmp_path / "attacked")
    with pytest.raises(CleansetError, match=words):
        command(
            "plan", "--set", export_folder, "--attacked", tmp_path / "attacked", "--out", tmp_path / "out",
            "--people", "2", "--settings", "real=1,modified=1",
        )  # fmt: skip


def test_more_than_there_are(export_folder: Path, attacked: Path, tmp_path: Path) -> None:
    arguments = ("plan", "--set", export_folder, "--attacked", attacked, "--out", tmp_path / "out")
    with pytest.raises(CleansetError, match="6 real images; expected at least the 50 of a person"):
        command(*arguments, "--people", "3")
    with pytest.raises(CleansetError, match=r"even 100,000 people .* less than 80 % power"):
        command(*arguments, "--settings", "real=3,modified=3")


def test_no_image_rated_twice(export_folder: Path, attacked: Path, tmp_path: Path) -> None:
    arguments = ("plan", "--set", export_folder, "--attacked", attacked, "--out", tmp_path / "out")
    with pytest.raises(
        CleansetError, match="no image is rated twice by 2 people with 3 real and 3 modified images each"
    ):
        command(*arguments, "--people", "2", "--settings", "real=3,modified=3,pairs=1")
    assert not (tmp_path / "out").exists()
    command(*arguments, "--people", "2", "--settings", "real=3,modified=4,pairs=1")


def test_the_source_of_an_attacked_image() -> None:
    assert source_of("images/n01440764/ILSVRC2012_val_00000293.JPEG.png", imagenet()) == "ILSVRC2012_val_00000293"
    assert source_of("7.png", imagenet()) == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("analyse", "a.csv", "--settings", "bounds=1"),
            "unknown key of --settings 'bounds'; expected one of random, ",
        ),
        (("analyse", "a.csv", "--settings", "limits=1"), "unknown key of --settings 'limits'"),
        (("analyse", "a.csv", "--settings", "bound=x"), "^--settings: bound: expected a number.*; found 'x'"),
        (("analyse", "a.csv", "--settings", "alpha=0.5"), "^--settings: alpha: expected less than or equal to 0.4999"),
        (("analyse", "a.csv", "--exclude", "attention"), "^--exclude: attention: expected an integer"),
        (("analyse", "a.csv", "--exclude", "max_same=0.1"), "^--exclude: max_same: expected greater than or equal to"),
    ],
)
def test_settings_that_are_not_valid(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(CleansetError, match=message):
        command(*arguments)
