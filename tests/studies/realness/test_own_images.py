"""A study of a set of images that are not ImageNet's, from the plan to the images that are looked at again."""

import shutil
from pathlib import Path

import pytest

from cleanset.edition.paths import Edition
from cleanset.review.opinions import read_look_again
from cleanset.sets.folder import read_entries
from cleanset.studies.realness.planning import source_of
from cleanset.studies.realness.study_server import ServeSettings, StudyServer
from tests.studies.realness.conftest import ANSWER_HEADER, VIEW, command, rows


@pytest.fixture
def attacked(own: Edition, tmp_path: Path) -> Path:
    """The images of the set under the names of an attack."""
    folder = tmp_path / "attacked"
    for entry in read_entries(own.export("images")):
        target = folder / "pgd" / f"{entry.file}.png"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(own.export("images") / entry.file, target)
    return folder


def test_from_the_plan_to_the_second_look(own: Edition, attacked: Path, tmp_path: Path) -> None:
    entries = read_entries(own.export("images"))
    sizes = ("--people", "6", "--settings", "real=4,modified=4,attention=0,pairs=0")
    command("plan", "--set", own.export("images"), "--attacked", attacked, "--out", tmp_path / "plan", *sizes)
    key = {row["stimulus"]: row for row in rows(tmp_path / "plan" / "key.csv")}
    assert {(row["image"], row["class"]) for row in key.values() if row["kind"] == "real"} == {
        (entry.file, entry.wnid) for entry in entries
    }
    StudyServer(tmp_path / "plan", ServeSettings())
    text, first = ANSWER_HEADER, entries[0]
    for row in rows(tmp_path / "plan" / "trials.csv"):
        stimulus = key[row["stimulus"]]
        is_doubted = stimulus["kind"] == "modified" or stimulus["image"] == first.file
        answer = (-1 if is_doubted else 1) * (1 + (int(row["list"]) + int(row["position"])) % 2)
        text += f"p{row['list']},{row['list']},{row['position']},{row['stimulus']},{answer},900,{VIEW}\n"
    (tmp_path / "answers.csv").write_text(text)
    options = ("--plan", tmp_path / "plan", "--settings", "min_ratings=1", "--out", tmp_path / "out")
    command("analyse", tmp_path / "answers.csv", *options)
    again = tmp_path / "out" / "look_again.csv"
    assert [(row["image_id"], row["class"]) for row in rows(again)] == [(first.file, first.wnid)]
    found = read_look_again(again, {entry.class_index: {first.image_id} for entry in entries}, own.read_classes())
    assert list(found[first.class_index]) == [first.image_id]


def test_attacked_images_are_traced_to_their_sources(own: Edition) -> None:
    entries = read_entries(own.export("images"))
    first = entries[0]
    for name in (first.file, f"pgd/{first.file}.png", f"x/{first.file.removesuffix('.png')}.JPEG"):
        assert source_of(name, own.read_classes(), entries) == first.image_id
    assert source_of("pgd/other.png", own.read_classes(), entries) == ""
