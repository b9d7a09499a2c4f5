"""The parts that need no browser."""

import hashlib
import re
import subprocess
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pandas as pd
import pytest
import yaml

from cleanset.class_names import class_names, found
from cleanset.edition import Edition
from cleanset.ilsvrc import class_indices
from cleanset.review.queue import Candidate
from cleanset.review.verdicts import Reason, Review
from cleanset.review.writing import save
from cleanset.reviewer.crop_scores import CropScores
from cleanset.reviewer.desk import Desk
from cleanset.reviewer.keys import FILTERS, REASONS, VERDICTS
from cleanset.reviewer.library import Library, open_library
from cleanset.reviewer.pace import Pace, in_words
from cleanset.reviewer.server import enter
from cleanset.reviewer.view import render
from cleanset.tables import CROP_SCORES, write_table

from .reviewing import REASONS as MEANT
from .reviewing import reviews

GOLDFISH = "n01443537"


@pytest.fixture
def library(edition: Path) -> Library:
    return open_library(Edition(edition))


def desk_of(edition: Path, library: Library, reviewer: str = "ada") -> Desk:
    desk = Desk(enter(Edition(edition), library, reviewer))
    desk.start()
    render(desk)
    return desk


def test_the_vendored_files_are_those_of_the_registry() -> None:
    folder = files("cleanset.reviewer") / "static"
    sums = dict(re.findall(r"^([0-9a-f]{64})  (cropper\.\S+)$", (folder / "VENDORED.txt").read_text(), re.MULTILINE))
    assert sorted(sums.values()) == ["cropper.LICENSE", "cropper.min.css", "cropper.min.js"]
    for digest, name in sums.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert b"Cropper.js v1.6.2" in (folder / "cropper.min.js").read_bytes()


def test_nothing_is_asked_of_other_machines() -> None:
    """No address of another host in what the browser loads from here, but those in comments."""
    for path in sorted(Path(str(files("cleanset.reviewer"))).rglob("*")):
        if path.suffix in (".js", ".css", ".html") and path.is_file():
            text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
            hosts = set(re.findall(r"(?:https?:)?//([a-z0-9.-]+\.[a-z]{2,})", text)) - {"www.w3.org"}
            assert hosts == set(), path


def test_no_torch_at_the_start() -> None:
    program = "import sys, cleanset.reviewer.server; sys.exit(bool({'torch', 'timm', 'scipy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_finding_classes() -> None:
    names = class_names()
    assert [name.name for name in found(names, "TABBY")] == ["tabby"]
    assert [name.wnid for name in found(names, " n02123045 ")] == ["n02123045"]
    assert found(names, "cat tiger")[0].name == "tiger cat"
    assert [name.name for name in found(names, "cat", most=4)] == ["tabby", "tiger cat", "Persian cat", "Siamese cat"]
    assert found(names, "(*[") == []
    assert len(found(names, "")) == 12
    assert names[281].gloss == "a cat with a grey or tawny coat mottled with black"


def test_keys_are_distinct_and_complete() -> None:
    assert {reason: key for key, reason in REASONS.items()} == MEANT
    assert sorted(REASONS.values()) == sorted(Reason.__args__)  # type: ignore[attr-defined]
    assert "v" not in REASONS  # states that the object stays visible
    assert (len(set(FILTERS)), len(set(VERDICTS))) == (5, 4)


def test_pace() -> None:
    pace = Pace()
    for second in (0, 4, 8, 12, 500, 504, 508):  # a pause of 488 s does not count
        pace.said(second, settled=second in (8, 500))
    assert pace.left(10) is None  # two classes are too few to tell
    pace.said(512, settled=True)
    assert (pace.seconds, pace.left(10)) == (24.0, 80.0)
    assert [in_words(seconds) for seconds in (3, 44, 60, 3_500, 3_600, 9_000)] == [
        "10 s", "40 s", "1 min", "58 min", "1 h 0 min", "2 h 30 min",
    ]  # fmt: skip


def test_examples_are_sure_and_not_among_those_asked(edition: Path, library: Library) -> None:
    desk = desk_of(edition, library)
    models = library.candidates(desk.class_index)
    shown = library.examples(desk.class_index, desk.pictures(), 3)
    assert len(shown) == 3
    assert not {picture.image_id for picture in shown} & set(desk.pictures())
    tables = [pd.read_parquet(edition / "data" / "candidates" / f"{role}.parquet") for role in library.params.models]
    every = pd.concat(tables)
    of_class = every[(every["class_index"] == desk.class_index) & ~every["image_id"].isin(desk.pictures())]
    index = pd.read_parquet(edition / "data" / "index.parquet")
    of_class = of_class[of_class["image_id"].isin(index.loc[index["single"], "image_id"])]
    best = of_class.groupby("image_id")["confidence"].sum().sort_values(ascending=False)
    assert [picture.image_id for picture in shown] == best.index[:3].tolist()
    assert all(picture.image_id in models for picture in shown)


def test_names_and_notes_are_escaped(edition: Path, library: Library) -> None:
    desk = desk_of(edition, library)
    desk.notes[desk.class_index, desk.focus or ""] = "<script>alert(1)</script>"
    html = render(desk)["desk"]
    assert "<script>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_a_verdict_changed_since_it_was_shown_is_not_overwritten(edition: Path, library: Library) -> None:
    desk = desk_of(edition, library)
    focus = desk.focus
    assert focus is not None
    other = desk.room.library.pictures[focus]
    save(edition / "reviews", "ada", GOLDFISH, focus, Review(verdict="clean", sha256=other.sha256))
    desk.room.look()  # as for another tab; this one does not show it yet
    desk.press("u", [focus])
    assert desk.notice is not None
    assert desk.notice.is_error
    assert "changed meanwhile" in desk.notice.text
    assert reviews(edition) == {GOLDFISH: {focus: {"verdict": "clean"}}}
    render(desk)
    desk.press("u", [focus])  # now it is shown, and may be changed
    assert reviews(edition) == {GOLDFISH: {focus: {"verdict": "unsure"}}}


def test_a_verdict_beneath_an_open_crop_is_not_overwritten(edition: Path, library: Library) -> None:
    desk = desk_of(edition, library)
    focus = desk.focus
    assert focus is not None
    desk.press("x", [focus])
    save(edition / "reviews", "ada", GOLDFISH, focus, Review(verdict="clean", sha256=library.pictures[focus].sha256))
    for key in ("w", "v"):
        desk.press(key, [focus])
        render(desk)  # the cards are hidden
    desk.press("Enter", [focus], [0, 0, 300, 200])
    assert desk.notice is not None
    assert "changed meanwhile" in desk.notice.text
    assert reviews(edition) == {GOLDFISH: {focus: {"verdict": "clean"}}}


@pytest.mark.parametrize("before", [(), ("Enter",)])
def test_a_note_says_no_verdict_that_could_not_be_written(
    edition: Path, library: Library, before: tuple[str, ...]
) -> None:
    desk = desk_of(edition, library)
    first, second = desk.pictures()[:2]
    for key in before:
        desk.press(key, [first, second])
    in_the_way = edition / "reviews" / "ada" / f".{GOLDFISH}.yaml.partial"
    in_the_way.mkdir(parents=True)
    desk.press("c", [first, second])
    assert desk.notice is not None
    assert desk.notice.is_error
    in_the_way.rmdir()
    for key in ("Escape", "ArrowRight", "e"):
        desk.press(key, [first, second])
    assert (desk.mode, desk.focus) == ("note", second)
    desk.leave_note("why so dark?")
    assert reviews(edition) == {}
    desk.press("u", [second])
    assert reviews(edition) == {GOLDFISH: {second: {"verdict": "unsure", "note": "why so dark?"}}}


def test_a_note_belongs_to_one_class(edition: Path, library: Library) -> None:
    desk = desk_of(edition, library)
    assert desk.focus is not None
    desk.notes[desk.class_index + 1, desk.focus] = "of the other class"
    assert "of the other class" not in render(desk)["desk"]
    assert desk.note()[1] == ""
    desk.press("u", [desk.focus])
    assert list(reviews(edition)[GOLDFISH].values()) == [{"verdict": "unsure"}]


def test_no_verdict_on_what_was_not_shown(edition: Path, library: Library) -> None:
    desk = desk_of(edition, library)
    for key in ("c", "u", "r", "x"):
        desk.press(key, [])
        assert desk.notice is not None
        assert "not shown yet" in desk.notice.text
        assert desk.mode == "class"
    assert reviews(edition) == {}


@pytest.mark.parametrize(
    "box", [None, [0, 0, 407, 254], [5, 5, 5, 9], [-1, 0, 9, 9], [0, 0, 9, 9999], [9, 9, 2, 2], [0, 0, 10**30, 3]]
)
def test_no_box_that_is_none(edition: Path, library: Library, box: list[int] | None) -> None:
    desk = desk_of(edition, library)
    for key in ("x", "w", "v", "Enter"):
        desk.press(key, desk.pictures(), box)
    assert desk.notice is not None
    assert desk.notice.is_error
    assert reviews(edition) == {}


def test_a_crop_that_is_no_longer_recognised(edition: Path, library: Library) -> None:
    """Told beside the picture, and the class needs another picture for that model."""
    desk = desk_of(edition, library)
    focus = desk.focus
    assert focus is not None
    for key in ("x", "w", "v"):
        desk.press(key, desk.pictures())
    desk.press("Enter", desk.pictures(), [0, 0, 300, 200])
    assert "no longer recognised" not in render(desk)["desk"]
    kept = dict(desk.stand.kept)
    score_as_wrong(desk, focus, edition / "elsewhere")
    assert "no longer recognised by standard" in render(desk)["desk"]
    assert desk.stand.kept == kept | {"standard": kept["standard"] - 1}


def score_as_wrong(desk: Desk, image_id: str, folder: Path) -> None:
    """Let model `standard` take the crop [0, 0, 300, 200] for class 7."""
    elsewhere = Edition(folder)  # the edition's own data is shared with other tests
    desk.room.crop_scores = CropScores(elsewhere, list(desk.room.library.params.models))
    scores = pd.DataFrame({"image_id": [image_id], "left": 0, "top": 0, "right": 300, "bottom": 200})
    scores["top5_class"], scores["top5_probability"] = [[7, 1, 2, 3, 4]], [[0.5, 0.2, 0.1, 0.1, 0.1]]
    write_table(elsewhere.crop_scores("standard"), scores, CROP_SCORES)
    desk.room.look()


def set_review(edition: Path, **changes: object) -> Library:
    params = yaml.safe_load((edition / "params.yaml").read_text())
    params["review"] |= changes
    (edition / "params.yaml").write_text(yaml.safe_dump(params))
    return open_library(Edition(edition))


def test_a_wrong_crop_that_is_accepted(edition: Path) -> None:
    desk = desk_of(edition, set_review(edition, wrong_after_crop="accept"))
    focus = desk.focus
    assert focus is not None
    for key in ("x", "w", "v", "Enter"):
        desk.press(key, desk.pictures(), [0, 0, 300, 200])
    kept = dict(desk.stand.kept)
    assert kept["standard"] > 0
    score_as_wrong(desk, focus, edition / "elsewhere")
    assert desk.stand.kept == kept


def test_an_own_wrong_crop_is_out_while_it_waits_for_others(edition: Path) -> None:
    """The class needs another picture of this reviewer for the model that errs."""
    desk = desk_of(edition, set_review(edition, policy="unanimous", min_reviewers=2))
    first, *others = desk.pictures()[:4]
    ranked = [Candidate(first, "top5", 1, 0.9)] + [
        Candidate(image_id, "reserve", rank, 0.9 - rank / 10) for rank, image_id in enumerate(others, start=2)
    ]
    library = desk.room.library
    desk.room.library = replace(library, classes={**library.classes, desk.class_index: {"standard": ranked}})
    desk.focus = first
    for key in ("x", "w", "v", "Enter"):
        desk.press(key, desk.pictures(), [0, 0, 300, 200])
    assert [(each.image_id, each.certain) for each in desk.stand.questions] == list(
        zip(others, (True, True, False), strict=True)
    )
    score_as_wrong(desk, first, edition / "elsewhere")
    assert [each.certain for each in desk.stand.questions] == [True, True, True]


def test_one_unreadable_file_hinders_no_other_class(edition: Path, library: Library) -> None:
    (edition / "reviews" / "ben" / f"{GOLDFISH}.yaml").mkdir(parents=True)
    desk = desk_of(edition, library)
    desk.open(class_indices()[GOLDFISH])
    assert set(desk.room.stands) == set(library.classes)
    assert [index for index, stand in desk.room.stands.items() if stand.broken] == [class_indices()[GOLDFISH]]
    assert "Is a directory" in render(desk)["desk"]


def test_stands_stay_until_the_new_ones_are_there(
    edition: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = desk_of(edition, library)
    monkeypatch.setattr(desk.room.said, "of_class", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        score_as_wrong(desk, desk.focus or "", edition / "elsewhere")
    assert set(desk.room.stands) == set(library.classes)


def test_the_end_is_no_class(edition: Path, library: Library) -> None:
    """Keys come with the class that they were pressed at."""
    desk = desk_of(edition, library)
    assert desk.wnid == GOLDFISH
    desk.mode, desk.ended = "end", True
    assert 'data-wnid=""' in render(desk)["desk"]
    assert desk.wnid == ""
    desk.press("p", [])
    assert f'data-wnid="{desk.wnid}"' in render(desk)["desk"]
    assert desk.wnid != ""
