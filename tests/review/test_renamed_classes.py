"""A folder of a class with a new name keeps its verdicts, once its owner has said that it is the same class."""

import shutil
from pathlib import Path

import pytest

from cleanset.classes import class_table
from cleanset.dataset.folder import read_images
from cleanset.dataset.pinned import digests_of
from cleanset.edition.create import make_own_edition
from cleanset.edition.models import models_from_texts
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.plumbing.files import sha256
from cleanset.review.accepted import accept
from cleanset.review.carried import NewImages, carry_over, read_old_reviews
from cleanset.review.gold_files import read_gold_key
from cleanset.review.renamed import RenamedClasses, parse_renamed
from cleanset.review.save import with_key
from cleanset.review.store import read_reviews
from cleanset.stages import preprocess
from tests.ten_images import drawn_image


def entry(image_id: str, digest: str, verdict: str = "verdict: clean") -> str:
    return f"  {image_id}:\n    {verdict}\n    sha256: {digest}\n"


def edition_of(folder: Path, images: Path) -> Edition:
    found = read_images(images, None, None)
    make_own_edition(folder, images, found, models_from_texts(["a=random:0"]), {}, digests_of(found.locations))
    return Edition(folder)


@pytest.fixture
def edition(tmp_path: Path) -> Edition:
    """The edition `own` of two cats, two dogs and an eel, with a verdict on each of ada, one of ben and a gold item."""
    digests = {}
    for seed, name in enumerate(("cat/0.png", "cat/1.png", "dog/0.png", "dog/1.png", "eel/0.png")):
        path = tmp_path / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        drawn_image(80, 90, seed=seed).save(path)
        digests[name] = sha256(path.read_bytes())
    found = edition_of(tmp_path / "own", tmp_path / "images")
    preprocess.run(found)
    wrong = "verdict: reject\n    reason: wrong_class\n    correct_class: cat"
    gold = "cd" * 32
    texts = {
        "ada/cat": f"# mine\ncat: # cats\n{entry('cat/0.png', digests['cat/0.png'])}"
        + entry("cat/1.png", digests["cat/1.png"], "verdict: unsure"),
        "ada/dog": "dog:\n" + "".join(entry(name, digests[name], wrong) for name in ("dog/0.png", "dog/1.png")),
        "ada/eel": f"eel:\n{entry('eel/0.png', digests['eel/0.png'])}",
        "ben/cat": f"cat:\n{entry('cat/0.png', gold)}",
    }
    for name, text in texts.items():
        path = found.reviews / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (found.reviews / "gold.csv").write_text(f"class,image_id,sha256,reason,source\ncat,cat/0.png,{gold},blur,planted\n")
    return found


def rename(edition: Edition, before: str, after: str) -> None:
    images = edition.folder.parent / "images"
    (images / before).rename(images / after)


def texts_of(reviews: Path) -> dict[str, str]:
    return {path.relative_to(reviews).as_posix(): path.read_text() for path in sorted(reviews.glob("*/*.yaml"))}


QUESTION = (
    "classes that are gone: cat (reviewed images: 3), now in tiger; add --renamed cat=tiger if they are the same "
    "classes under new names, or --renamed cat= to leave their verdicts out"
)


def test_asked_once_by_accept(edition: Edition) -> None:
    """Before anything is written; the verdicts, and those that name the class, have its new name afterwards."""
    assert accept(edition, None) == "no image has changed\n5 of 5 verdicts carried over"
    before = texts_of(edition.reviews), edition.images_sha256.read_bytes()
    rename(edition, "cat", "tiger")
    with pytest.raises(CleansetError) as raised:
        accept(edition, None)
    assert str(raised.value) == QUESTION
    assert (texts_of(edition.reviews), edition.images_sha256.read_bytes()) == before
    assert accept(edition, None, renamed=parse_renamed(["cat=tiger"])).splitlines() == [
        "2 missing: cat/0.png, cat/1.png; 2 additional: tiger/0.png, tiger/1.png",
        "5 of 5 verdicts carried over",
        "cat is tiger in the reviews now: run dvc repro before they continue",
    ]
    after = texts_of(edition.reviews)
    assert after == {
        "ada/dog.yaml": before[0]["ada/dog.yaml"].replace("correct_class: cat", "correct_class: tiger"),
        "ada/eel.yaml": before[0]["ada/eel.yaml"],
        # the answer to the gold item stays under the id of that item
        "ben/tiger.yaml": before[0]["ben/cat.yaml"].replace("cat:", "tiger:"),
        "ada/tiger.yaml": before[0]["ada/cat.yaml"].replace("cat:", "tiger:").replace("cat/", "tiger/"),
    }
    # again, before the stages have run and after
    assert accept(edition, None) == "no image has changed\n5 of 5 verdicts carried over"
    preprocess.run(edition)
    assert accept(edition, None) == "no image has changed\n5 of 5 verdicts carried over"
    assert texts_of(edition.reviews) == after
    classes = edition.read_classes()
    assert len(read_reviews(edition.reviews, classes)) == 5
    ((key, item),) = read_gold_key(edition.reviews, classes).items()
    assert (classes.keys[key[0]], item.image_id) == ("tiger", "cat/0.png")


def test_a_class_that_is_declared_gone(edition: Edition) -> None:
    rename(edition, "cat", "tiger")
    summary = accept(edition, None, renamed=parse_renamed(["cat="]))
    assert summary.splitlines()[1:] == ["3 of 5 verdicts carried over; not 2 (class not in the new edition)"]
    # the verdicts that name it stay, without the name
    assert "correct_class" not in texts_of(edition.reviews)["ada/dog.yaml"]


def test_in_a_new_edition(edition: Edition, tmp_path: Path) -> None:
    """For the same images, then with two classes under new names, one that needs quotes; answers to gold items stay
    behind."""

    def carried(name: str, *answers: str) -> tuple[str, dict[str, str]]:
        found = read_images(tmp_path / "images", None, None)
        to = NewImages(found, digests_of(found.locations), parse_renamed(answers))
        old = read_old_reviews(edition.folder)
        to.check(old)
        new = edition_of(tmp_path / name, tmp_path / "images")
        return carry_over(old, new, to), texts_of(new.reviews)

    assert carried("first")[0] == "5 of 6 verdicts carried over; not 1 (gold item)"
    rename(edition, "cat", "007")
    rename(edition, "dog", "big dog")
    with pytest.raises(
        CleansetError, match=r"add --renamed cat=007 --renamed 'dog=big dog' if .*, or --renamed cat= --renamed dog= to"
    ):
        carried("none")
    assert not (tmp_path / "none").exists()
    said, texts = carried("second", "cat=007", "dog=big dog")
    assert said == "5 of 6 verdicts carried over; not 1 (gold item)"
    assert texts["ada/007.yaml"].startswith("# mine\n'007': # cats\n  007/0.png:\n")
    assert texts["ada/big dog.yaml"].count("correct_class: '007'") == 2


def test_what_is_no_new_name(edition: Edition, tmp_path: Path) -> None:
    """Classes that were merged, divided, or gone without their images are not asked about, and lose their verdicts."""
    images = tmp_path / "images"
    shutil.rmtree(images / "eel")
    for name in ("cat", "dog"):
        (images / f"new {name}").mkdir()
        (images / name / "0.png").rename(images / f"new {name}" / "0.png")
    (images / "dog/1.png").rename(images / "cat/dog.png")
    (images / "dog").rmdir()
    summary = accept(edition, None).splitlines()[-1]
    # dog: one image in a new class, one in cat
    assert summary == ("1 of 5 verdicts carried over; not 3 (class not in the new edition), 1 (image not in the class)")


def test_two_classes_in_one(edition: Edition, tmp_path: Path) -> None:
    images = tmp_path / "images"
    (images / "all").mkdir()
    for name in ("cat", "dog"):
        (images / name).rename(images / "all" / name)
    with pytest.raises(CleansetError, match=r"now in all; dog .*, now in all; add --renamed cat= --renamed dog= to le"):
        accept(edition, None)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (["cat"], r"--renamed 'cat': expected OLD=NEW"),
        (["=tiger"], r"--renamed '=tiger': expected OLD=NEW"),
        (["cat=tiger", "cat=lion"], r"--renamed 'cat=lion': a class a second time"),
        (["cat=tiger", "dog=tiger"], r"--renamed 'dog=tiger': a class a second time"),
        (["eel=tiger"], r"--renamed eel=tiger: 'eel' is not a class of the older edition that is gone"),
        (["fox=tiger"], r"--renamed fox=tiger: 'fox' is not a class of the older edition that is gone"),
        (["cat=dog"], r"--renamed cat=dog: 'dog' is not a new class"),
        (["cat=lion"], r"--renamed cat=lion: 'lion' is not a new class"),
    ],
)
def test_wrong_answers(answers: list[str], message: str) -> None:
    old, new = (
        class_table([(key, key) for key in keys], "here") for keys in (("cat", "dog", "eel"), ("dog", "eel", "tiger"))
    )
    with pytest.raises(CleansetError, match=message):
        parse_renamed(answers).check(old, new)


def test_a_killed_call_is_finished_and_others_are_not_overwritten(edition: Edition) -> None:
    """A kill after the file of the new name was written leaves both."""
    old = edition.reviews / "ada/cat.yaml"
    new = old.with_name("tiger.yaml")
    text = old.read_text()
    rename(edition, "cat", "tiger")
    tigers = RenamedClasses({"cat": "tiger"})
    new.write_text("tiger:\n" + entry("tiger/0.png", "ab" * 32))
    with pytest.raises(CleansetError, match=r"tiger\.yaml: there already, and so is .*cat\.yaml; expected one of them"):
        accept(edition, None, renamed=tigers)
    assert old.read_text() == text
    new.write_text(text.replace("cat:", "tiger:").replace("cat/", "tiger/"))
    accept(edition, None, renamed=tigers)
    assert not old.exists()


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("'cat' : {}\n", "tiger : {}\n"),
        ('"cat":\n  a: b\n', "tiger:\n  a: b\n"),
        ("# cat: 1\ncat: {cat: 1}\n", "# cat: 1\ntiger: {cat: 1}\n"),
        ("{cat: {}}\n", None),
        ("? cat\n: {}\n", None),
    ],
)
def test_the_key_of_a_file(text: str, changed: str | None) -> None:
    if changed is not None:
        assert with_key(text, "cat", "tiger", "x") == changed
        return
    with pytest.raises(CleansetError, match=r"^x: its first key, cat, is written in a way in which it cannot be chan"):
        with_key(text, "cat", "tiger", "x")


def test_keys_with_signs() -> None:
    assert with_key("'o''neil (a)':\n  x: 1\n", "o'neil (a)", "1e9", "x") == "'1e9':\n  x: 1\n"
