"""Own images are known by their bytes: images.sha256 pins them, and `edition --accept` says what no longer holds."""

import csv
import hashlib
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from PIL import Image

from cleanset.dataset.archives import Location
from cleanset.dataset.folder import read_images
from cleanset.dataset.pinned import digests_of, pinned_text
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.plumbing.file_locks import locked
from cleanset.review.accepted import accept
from cleanset.review.save import VerdictChange, save_all
from cleanset.review.store import read_file
from cleanset.stages import preprocess
from cleanset.tables import INDEX, read_table
from tests import own_edition
from tests.evaluation.compare.command import cleanset, says
from tests.ten_images import drawn_image

EDITION = ("edition", "own", "--images", "images")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of images of two classes, with scores.csv."""
    lines = ["file,class,confidence"]
    for number, key in enumerate(("cat", "dog")):
        (tmp_path / "images" / key).mkdir(parents=True)
        for place in range(3):
            drawn_image(40, 40, seed=10 * number + place).save(tmp_path / "images" / key / f"{place}.png")
            lines.append(f"{key}/{place}.png,{key},0.{9 - place}")
    (tmp_path / "scores.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def made(folder: Path, *options: str) -> Edition:
    assert says(cleanset(*EDITION, *options, cwd=folder))[0] == 0
    return Edition(folder / "own")


def run(*command: str, cwd: Path) -> tuple[int, str]:
    """Exit code and all that a command prints."""
    code, out, errors = says(cleanset(*command, cwd=cwd))
    return code, out + errors


def accepted(folder: Path, *options: str) -> tuple[int, str]:
    return run("edition", "--accept", *options, cwd=folder / "own")


def test_sha256sum_reads_the_digests(folder: Path) -> None:
    edition = made(folder)
    command = ["sha256sum", "--check", "--strict", "--quiet", str(edition.images_sha256.resolve())]
    assert subprocess.run(command, cwd=folder / "images", capture_output=True, check=True).stdout == b""
    first = edition.images_sha256.read_text().splitlines()[0]
    assert first == f"{hashlib.sha256((folder / 'images/cat/0.png').read_bytes()).hexdigest()}  cat/0.png"


def test_stages_depend_on_the_digests_not_on_the_folder(folder: Path) -> None:
    edition = made(folder)
    for path in (edition.dvc_yaml, edition.folder / "studies/training/dvc.yaml"):
        assert "images.sha256" in path.read_text()
        assert "../images\n" not in path.read_text()
        assert "data.images" not in path.read_text()


def test_every_difference_is_in_one_line(folder: Path) -> None:
    """Swapped files too, whose names and sizes show nothing; a damaged one is a changed one."""
    edition, images = made(folder), folder / "images"
    shutil.move(images / "cat/0.png", images / "x.png")
    shutil.move(images / "cat/1.png", images / "cat/0.png")
    shutil.move(images / "x.png", images / "cat/1.png")
    (images / "dog/0.png").write_bytes((images / "dog/0.png").read_bytes()[:-40])
    (images / "dog/2.png").rename(images / "dog/3.png")
    with pytest.raises(CleansetError) as raised:
        own_edition.run(edition, "preprocess")
    assert str(raised.value) == (
        f"{edition.folder}/../images: 3 changed: cat/0.png, cat/1.png, dog/0.png; 1 missing: dog/2.png; 1 additional: "
        "dog/3.png; expected the images of images.sha256: restore them, or run cleanset edition --accept in the folder "
        "of the edition"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-20], r"images\.sha256, line 6: .* expected the output of sha256sum|1 missing"),
        (
            lambda text: text.replace("  cat/0", " cat/0"),
            r"images\.sha256, line 1: .* expected the output of sha256sum",
        ),
        (lambda text: text + text[:75], r"images\.sha256, line 7: 'cat/0\.png' a second time"),
        (lambda text: "", r"images: 6 additional: cat/0\.png"),
    ],
)
def test_a_damaged_list(change: Callable[[str], str], message: str, folder: Path) -> None:
    edition = made(folder)
    edition.images_sha256.write_text(change(edition.images_sha256.read_text()))
    with pytest.raises(CleansetError, match=message):
        preprocess.run(edition)


def test_damaged_images_are_counted_by_kind(folder: Path) -> None:
    """Regardless of the numbers in a problem; three of each kind are listed, and all are in a table as long as they
    exist."""
    (folder / "images" / "cat" / "whole.png").write_bytes((folder / "images" / "cat" / "0.png").read_bytes())
    for number in range(60):
        image = drawn_image(30, 20, seed=number)
        image.save(folder / "images" / "dog" / f"cut {number:02}.jpg")
    cut = sorted((folder / "images" / "dog").glob("cut*"))
    for number, path in enumerate(cut):
        path.write_bytes(path.read_bytes()[: -40 - number])
    for number in range(2):
        Image.new("RGBA", (9, 9), (number, 0, 0, 9)).save(folder / "images" / "cat" / f"see-through {number}.png")
    Image.new("1", (9, 9)).save(folder / "images" / "dog" / "9.png")
    table = folder / "own_unreadable_images.csv"
    code, text = run(*EDITION, cwd=folder)
    assert code == 1
    assert text.partition("images: ")[2].rstrip() == (
        "63 cannot be read: cat/see-through 0.png, cat/see-through 1.png (transparency), dog/9.png (black and white), "
        "60 dog/cut 00.jpg, dog/cut 01.jpg, dog/cut 02.jpg and 57 more (image file is truncated); expected whole JPEGs "
        f"or PNGs of 8 bits, RGB or grey: convert or remove them; all are in {table}"
    )
    header, *rows = csv.reader(table.read_text().splitlines())
    assert header == ["image_id", "problem"]
    assert [name for name, _ in rows] == [
        "cat/see-through 0.png", "cat/see-through 1.png", "dog/9.png", *(f"dog/{path.name}" for path in cut)
    ]  # fmt: skip
    assert len({problem for _, problem in rows}) > 3
    # fewer are listed, and the earlier table is gone
    for path in (*cut[1:], folder / "images" / "dog" / "9.png", folder / "images" / "cat" / "see-through 1.png"):
        path.unlink()
    message = (
        r"images: 2 cannot be read: cat/see-through 0\.png \(transparency\), dog/cut 00\.jpg \(image file is truncated "
        r"\(\d+ bytes not processed\)\); expected whole JPEGs or PNGs of 8 bits, RGB or grey: convert or remove them$"
    )
    _, text = run(*EDITION, cwd=folder)
    assert re.search(message, text.rstrip())
    assert not table.exists()
    # so says --accept of an edition, and so says stage preprocess of one that was begun with them
    damaged = {path: path.read_bytes() for path in (cut[0], folder / "images" / "cat" / "see-through 0.png")}
    for path in damaged:
        path.unlink()
    edition = made(folder)
    for path, data in damaged.items():
        path.write_bytes(data)
    with pytest.raises(CleansetError, match=message):
        accept(edition, None)
    found = read_images(folder / "images", None, None)
    edition.images_sha256.write_text(pinned_text(digests_of(found.locations)))
    with pytest.raises(CleansetError, match=message):
        own_edition.run(edition, "preprocess")


def test_no_edition_is_begun_with_empty_files(folder: Path) -> None:
    for name in ("cat/1.png", "dog/0.png"):
        (folder / "images" / name).write_bytes(b"")
    code, text = run(*EDITION, cwd=folder)
    assert code == 1
    assert "empty files: cat/1.png, dog/0.png; expected images" in text
    assert not (folder / "own").exists()


def test_pointers_of_git_lfs_are_no_images(folder: Path) -> None:
    """Neither in a new edition nor in one whose images were checked out again without them, until they are fetched."""
    path = folder / "images" / "cat" / "1.png"
    image = path.read_bytes()
    digest = hashlib.sha256(image).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(image)}\n"
    message = (
        "1 of 6 images are pointers of git LFS: cat/1.png; expected the images themselves: run git lfs pull in the "
        "repository that they are in"
    )
    path.write_text(pointer)
    assert run(*EDITION, cwd=folder) == (1, f"error: {message}\n")
    assert not (folder / "own").exists()
    path.write_bytes(image)
    edition = made(folder)
    path.write_text(pointer)
    with pytest.raises(CleansetError, match=f"^{re.escape(message)}$"):
        accept(edition, None)
    edition.images_sha256.write_text(
        edition.images_sha256.read_text().replace(digest, hashlib.sha256(pointer.encode()).hexdigest())
    )
    with pytest.raises(
        CleansetError, match=r"cat/1\.png \(a pointer of git LFS in place of the image: run git lfs pull"
    ):
        preprocess.run(edition)
    path.write_bytes(image)
    assert accept(edition, None) == "1 changed: cat/1.png"
    preprocess.run(edition)


def test_the_same_bytes_in_two_classes(folder: Path) -> None:
    shutil.copy(folder / "images/cat/0.png", folder / "images/dog/9.png")
    code, text = run(*EDITION, cwd=folder)
    assert code == 1
    assert "the same bytes in two classes: cat/0.png and dog/9.png" in text


def test_the_same_pixels_in_two_classes(folder: Path) -> None:
    """In a new edition, in one whose images have changed since, and if nobody has looked at the pixels."""
    edition = made(folder)
    with Image.open(folder / "images/cat/0.png") as image:
        image.save(folder / "images/dog/9.png", compress_level=1)
    message = "the same pixels in two classes: cat/0.png and dog/9.png; expected each image in one"
    code, text = run("edition", "other", "--images", "images", cwd=folder)
    assert (code, message in text, (folder / "other").exists()) == (1, True, False)
    with pytest.raises(CleansetError, match=message):
        accept(edition, None)
    digest = hashlib.sha256((folder / "images/dog/9.png").read_bytes()).hexdigest()
    edition.images_sha256.write_text(f"{edition.images_sha256.read_text()}{digest}  dog/9.png\n")
    with pytest.raises(CleansetError, match=message):
        preprocess.run(edition)


@pytest.mark.long
def test_accepting_removes_the_verdicts_on_changed_images_alone(folder: Path) -> None:
    edition = made(folder)
    own_edition.run(edition, "preprocess")
    own_edition.review(edition, "ada")
    before = (edition.reviews / "ada/dog.yaml").read_bytes()
    assert accepted(folder) == (0, "no image has changed\n6 of 6 verdicts carried over\n")
    drawn_image(40, 40, seed=99).save(folder / "images/cat/1.png")
    assert accepted(folder) == (0, "1 changed: cat/1.png\n5 of 6 verdicts carried over; not 1 (other bytes)\n")
    assert sorted(yaml.safe_load((edition.reviews / "ada/cat.yaml").read_text())["cat"]) == ["cat/0.png", "cat/2.png"]
    assert (edition.reviews / "ada/dog.yaml").read_bytes() == before
    own_edition.run(edition, "preprocess", "score", "intersect", "select", "crops", "score_crops", "review_apply")


def test_verdicts_that_are_saved_meanwhile_stay(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a reviewer whose page saves one verdict after the other, from before the images are hashed to the end."""
    edition = made(folder)
    own_edition.run(edition, "preprocess")
    own_edition.review(edition, "ada")
    drawn_image(40, 40, seed=99).save(folder / "images/cat/1.png")
    classes = edition.read_classes()
    notes: list[str] = []
    begun, ended = threading.Event(), threading.Event()

    def save_on() -> None:
        path = edition.reviews / "ada" / "dog.yaml"
        while not ended.is_set() or len(notes) < 20:
            (before,) = (vote.review for vote in read_file(path, classes) if vote.image_id == "dog/0.png")
            notes.append(f"number {len(notes)}")
            after = replace(before, note=notes[-1])
            save_all(edition.reviews, "ada", "dog", {"dog/0.png": VerdictChange(after, before)}, classes=classes)
            begun.set()

    def digests_while_saving(locations: Mapping[str, Location]) -> dict[str, str]:
        found = digests_of(locations)
        reviewer.start()
        assert begun.wait(60)
        return found

    reviewer = threading.Thread(target=save_on)
    monkeypatch.setattr("cleanset.review.accepted.digests_of", digests_while_saving)
    summary = accept(edition, None)
    ended.set()
    reviewer.join()
    assert summary == "1 changed: cat/1.png\n5 of 6 verdicts carried over; not 1 (other bytes)"
    found = yaml.safe_load((edition.reviews / "ada/dog.yaml").read_text())["dog"]
    assert (len(found), found["dog/0.png"]["note"]) == (3, notes[-1])


@pytest.mark.long
def test_a_file_is_written_under_the_lock_of_the_page(folder: Path) -> None:
    """And only one in which something changes: others keep their time."""
    edition = made(folder)
    own_edition.run(edition, "preprocess")
    own_edition.review(edition, "ada")
    drawn_image(40, 40, seed=99).save(folder / "images/cat/1.png")
    before = {path.name: path.stat().st_mtime_ns for path in (edition.reviews / "ada").glob("*.yaml")}
    running = threading.Thread(target=accept, args=(edition, None))
    with locked(edition.reviews / "ada"):
        running.start()
        running.join(1)
        assert running.is_alive()
        assert "cat/1.png" in (edition.reviews / "ada/cat.yaml").read_text()
    running.join(60)
    after = {path.name: path.stat().st_mtime_ns for path in (edition.reviews / "ada").glob("*.yaml")}
    assert (after["dog.yaml"], after["cat.yaml"] > before["cat.yaml"]) == (before["dog.yaml"], True)


@pytest.mark.long
def test_a_class_without_any_verdict_left(folder: Path) -> None:
    edition = made(folder)
    own_edition.run(edition, "preprocess")
    own_edition.review(edition, "ada")
    for place in range(3):
        drawn_image(40, 40, seed=90 + place).save(folder / f"images/cat/{place}.png")
    assert accepted(folder)[1].endswith("3 of 6 verdicts carried over; not 3 (other bytes)\n")
    own_edition.run(edition, "preprocess", "score", "intersect", "select", "crops", "score_crops", "review_apply")


@pytest.mark.long
def test_brought_scores_are_of_the_images_that_they_were_brought_with(folder: Path) -> None:
    edition = made(folder, "--scores", "scores.csv")
    drawn_image(40, 40, seed=99).save(folder / "images/cat/1.png")
    pinned = edition.images_sha256.read_bytes()
    for options in ((), ("--scores", "../scores.csv")):
        code, text = accepted(folder, *options)
        assert code == 1
        assert "scores of earlier images, 1 changed: cat/1.png; expected scores of" in text
        assert edition.images_sha256.read_bytes() == pinned
    new = (folder / "scores.csv").read_text().replace("cat/1.png,cat,0.8", "cat/1.png,cat,0.4")
    (folder / "new.csv").write_text(new)
    assert accepted(folder, "--scores", "../new.csv")[0] == 0
    assert (edition.folder / "scores.csv").read_text() == new
    own_edition.run(edition, "preprocess", "score", "intersect", "select")


KILLED = """
import os, pathlib, shutil
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.review.accepted import accept
left, replace = 0, pathlib.Path.replace
def killed(self, target):
    global left
    # a file, or one of verdicts
    left -= self.name == "new" or self.name.endswith(".partial")
    if left < 0:
        os._exit(9)
    return replace(self, target)
pathlib.Path.replace = killed
for left in range(5):
    shutil.copytree("before", "own")
    if not os.fork():
        accept(Edition(pathlib.Path("own")), pathlib.Path("new.csv"))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.wait()[1]))
    os.rename("own", f"killed {left}")
"""


@pytest.mark.long
def test_the_same_command_finishes_what_was_killed(folder: Path) -> None:
    """Killed before each of the files that it puts in place: table, verdicts, images.sha256 and params.yaml."""
    edition = made(folder, "--scores", "scores.csv")
    own_edition.run(edition, "preprocess")
    own_edition.review(edition, "ada")
    drawn_image(40, 40, seed=99).save(folder / "images/cat/1.png")
    (folder / "new.csv").write_text(
        (folder / "scores.csv").read_text().replace("cat/1.png,cat,0.8", "cat/1.png,cat,0.4")
    )
    edition.folder.rename(folder / "before")
    done = subprocess.run([sys.executable, "-c", KILLED], cwd=folder, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["9", "9", "9", "9", "0"]
    ends = []
    for place in range(5):
        shutil.rmtree(edition.folder, ignore_errors=True)
        (folder / f"killed {place}").rename(edition.folder)
        assert accepted(folder, "--scores", "../new.csv")[0] == 0
        assert not list(edition.folder.glob(".*.partial"))
        names = ("scores.csv", "images.sha256", "params.yaml", "reviews/ada/cat.yaml", "reviews/ada/dog.yaml")
        ends.append({name: (edition.folder / name).read_bytes() for name in names})
    assert all(end == ends[-1] for end in ends)
    own_edition.run(edition, "preprocess", "score", "intersect", "select")


def test_without_the_digests_the_edition_is_made_again(folder: Path) -> None:
    edition = made(folder)
    edition.images_sha256.unlink()
    code, text = accepted(folder)
    assert code == 1
    assert (
        "images.sha256: missing; restore it, or create the edition again: cleanset edition NEW --images "
        "../images" in text
    )
    assert not edition.images_sha256.exists()


def test_a_card_is_added_later(folder: Path) -> None:
    """The comments of params.yaml stay; without a card.yaml that is whole nothing changes."""
    edition, card = made(folder), folder / "card.yaml"
    before = edition.params_yaml.read_text()
    card.write_text("title: Cats and dogs\nauthors: [{name: Ada}]\n")
    assert accepted(folder, "--card", "../card.yaml")[1].startswith("error: ../card.yaml: images: missing; expected")
    assert edition.params_yaml.read_text() == before
    card.write_text(card.read_text() + "images: {source: ours, licence: CC0-1.0, people: none}\n")
    code, printed = accepted(folder, "--card", "../card.yaml")
    copied = "../card.yaml: copied to export.about of params.yaml; dvc repro writes it into the set"
    assert (code, printed.splitlines()) == (0, ["no image has changed", copied])
    about = read_params(edition.folder).export.about
    assert about is not None
    assert (about.title, about.authors[0].name) == ("Cats and dogs", "Ada")
    text = edition.params_yaml.read_text()
    assert 'such as "2026-01-31"' in text
    # what the card leaves out is not written
    assert list(yaml.safe_load(text)["export"]["about"]) == ["title", "authors", "images"]


def test_imagenets_images_are_not_accepted_so(folder: Path) -> None:
    assert says(cleanset("edition", "other", cwd=folder))[0] == 0
    code, text = run("edition", "--accept", "other", cwd=folder)
    assert code == 1
    assert "of ImageNet's images, which raw.md5 pins; expected an edition of your own images" in text


def test_a_folder_with_braces_is_refused(folder: Path) -> None:
    """As DVC would, with an AttributeError, after everything has been made."""
    for name in ("own {1}", "a}/b"):
        code, text = run("edition", name, "--images", "images", cwd=folder)
        assert (code, text.count("\n")) == (1, 1)
        assert f"{name}: braces in its path {folder / name}; expected one without, since DVC fails there" in text
        assert not (folder / name).exists()


def labels_csv(folder: Path, name: str, moved: str) -> Path:
    """A table of the six images, one in the other class."""
    rows = []
    for path in sorted((folder / "images").glob("*/*.png")):
        key = path.parent.name if path.name != moved else "dog" if path.parent.name == "cat" else "cat"
        rows.append(f"{path.parent.name}/{path.name},{key}")
    (folder / name).write_text("\n".join(["file,class", *rows]) + "\n")
    return folder / name


@pytest.mark.long
def test_a_table_of_labels_comes_in_later_and_once_more(folder: Path) -> None:
    """By a command that copies it, and enters it as a dependency of the edition and of its trainings."""
    edition = made(folder)
    training = edition.folder / "studies/training"
    before = yaml.safe_load(edition.dvc_yaml.read_text())
    own_edition.run(edition, "preprocess")
    for moved in ("0.png", "1.png"):
        table = labels_csv(folder, "new.csv", moved)
        code, printed = accepted(folder, "--labels", "../new.csv")
        copied = "../new.csv: copied to labels.csv, which dataset.labels of params.yaml and the deps of preprocess name"
        others = (
            "../new.csv: gives 2 of 6 images in folders of classes another class than the folder's: "
            f"cat/{moved} (dog), dog/{moved} (cat); the table is used: check whether its rows are shifted"
        )
        assert (code, printed.splitlines()) == (0, ["no image has changed", copied, others])
        assert (edition.folder / "labels.csv").read_bytes() == table.read_bytes()
        assert read_params(edition.folder).dataset.labels == "labels.csv"
        own_edition.run(edition, "preprocess")
        index = read_table(edition.index, INDEX, edition.read_classes())
        in_dog = index.loc[index["image_id"] == f"cat/{moved}", "real_classes"].item()
        assert list(in_dog) == [1]
    after = yaml.safe_load(edition.dvc_yaml.read_text())
    deps = after["stages"]["preprocess"]["deps"]
    assert deps[:2] == ["images.sha256", "labels.csv"]
    deps.remove("labels.csv")
    assert after == before
    assert yaml.safe_load((training / "params.yaml").read_text())["data"]["labels"] == "../../labels.csv"
    with_labels = folder / "with"
    command = ("edition", "with", "--images", "images", "--labels", "new.csv")
    assert says(cleanset(*command, cwd=folder))[0] == 0
    assert (training / "dvc.yaml").read_text() == (with_labels / "studies/training/dvc.yaml").read_text()
    assert edition.dvc_yaml.read_text() == (with_labels / "dvc.yaml").read_text()


@pytest.mark.parametrize("key", ["labels", "names"])
def test_a_table_that_is_set_by_hand_is_refused(key: str, folder: Path) -> None:
    """Until dvc.yaml names it: DVC would not see that it changes."""
    edition = made(folder)
    labels_csv(folder, "own/labels.csv", "0.png")
    (edition.folder / "names.csv").write_text("class,name\ncat,Cat\ndog,Dog\n")
    own_edition.change_params(edition, dataset={key: f"{key}.csv"})
    with pytest.raises(
        CleansetError,
        match=rf"dvc\.yaml: the deps of preprocess lack {key}\.csv, which dataset\.{key} of params\.yaml names; "
        rf"expected it among them: run cleanset edition --accept --{key} FILE",
    ):
        preprocess.run(edition)
    edition.dvc_yaml.write_text(
        edition.dvc_yaml.read_text().replace(
            "      - images.sha256\n", f"      - images.sha256\n      - {key}.csv\n", 1
        )
    )
    preprocess.run(edition)
