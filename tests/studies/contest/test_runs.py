"""Runs of defences: what they say of the unpublished list, and what they are refused for; what a model sees."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.scoring.logits import Groups
from cleanset.sets.manifest import file_name, manifest_csv
from cleanset.studies.contest import runs
from cleanset.studies.contest.entries import DefenceRun
from cleanset.studies.contest.log import read
from cleanset.studies.contest.models import group_columns, pixels_seen
from cleanset.studies.contest.runs import checked_list, run_defence
from cleanset.studies.contest.standing import replay
from tests.studies.contest.on_disk import OnDisk, digest, png
from tests.studies.robustness.entries import entry


class Answers:
    """A defence that calls images with these SHA-256 a bicycle, and all others a bird; it takes a second for each."""

    digest = "0" * 64

    def __init__(self, bicycles: list[str]) -> None:
        self.bicycles = bicycles

    def __call__(self, paths: Mapping[str, Path]) -> tuple[dict[str, str], float]:
        return {sha: "bicycle" if sha in self.bicycles else "bird" for sha in paths}, float(len(paths))


@pytest.fixture
def listed(made: OnDisk) -> OnDisk:
    """Three images of class tench, a bird here, in the finished set; one of each group that nobody is shown."""
    folder, entries = made.edition / "data" / "export" / "standard", []
    for number in (1, 2, 3):
        data = png((10 * number, 200, 100), (40, 30), "JPEG")
        entries.append(entry(number, digest=digest(data)).model_copy(update={"rank": number}))
        path = folder / file_name(entries[-1].wnid, entries[-1].image_id, None, imagenet())
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    made.text(folder / "manifest.csv", manifest_csv(entries, imagenet()))
    made.changed("contest", classes={"bicycle": ["n01484850"], "bird": [entries[0].wnid]})
    for group, color in (("bird", (1, 1, 1)), ("bicycle", (2, 2, 2))):
        made.text(made.folder / "unpublished" / group / "a.png", "")
        (made.folder / "unpublished" / group / "a.png").write_bytes(png(color))
    return made


def run(made: OnDisk, monkeypatch: pytest.MonkeyPatch, bicycles: list[str]) -> DefenceRun:
    monkeypatch.setattr(runs, "ModelDefence", lambda *_: Answers(bicycles))
    contest = replay(read(made.folder))
    return run_defence(made.folder, contest, "gold/wall", checked_list(made.folder, contest.rules))


def test_a_run(listed: OnDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(listed, monkeypatch, [listed.sha256])
    assert (found.eligibility.images, found.eligibility.correct, found.eligibility.mistakes) == (3, 3, 0)
    assert (found.answers, found.images_per_minute, found.unpublished) == ({listed.sha256: "bicycle"}, 60.0, None)


def test_nothing_is_reported_of_single_images_of_the_unpublished_list(
    listed: OnDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a defence is eligible, in a run whose other figures are of published images alone."""
    hidden = {group: png(color) for group, color in (("bird", (1, 1, 1)), ("bicycle", (2, 2, 2)))}
    text = "".join(sorted(f"{group} {digest(data)}\n" for group, data in hidden.items()))
    listed.changed("contest", unpublished=digest(text.encode()))
    listed.story = [each for each in listed.story if each[1] != "run"]
    listed.write()
    found = {}
    for name, bicycles in {"knows": [digest(hidden["bicycle"])], "does not": []}.items():
        found[name] = run(listed, monkeypatch, bicycles).model_dump()
    assert [each.pop("unpublished") for each in found.values()] == [True, False]
    assert found["knows"] == found["does not"]
    published = next((listed.edition / "data" / "export").rglob("*.JPEG")).read_bytes()
    (listed.folder / "unpublished" / "bird" / "a.png").write_bytes(published)
    with pytest.raises(CleansetError, match=r"a list with the digest .*; expected .*, as the contest's first"):
        run(listed, monkeypatch, [])


def test_what_does_not_run(listed: OnDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    (listed.folder / "objects" / listed.sha256).write_bytes(b"other")
    with pytest.raises(CleansetError, match=r"objects/.*: SHA-256 .*; expected "):
        run(listed, monkeypatch, [])
    with pytest.raises(CleansetError, match="unknown defence gold/roof"):
        run_defence(listed.folder, replay(read(listed.folder)), "gold/roof", {})
    listed.changed("contest", classes={"bicycle": ["n02835271"], "bird": ["n01514668"]})
    with pytest.raises(CleansetError, match="no image of a class of the contest"):
        run(listed, monkeypatch, [])


def test_what_is_read_of_logits() -> None:
    groups = Groups.of({"a": [imagenet().keys[0]], "b": [imagenet().keys[1]]}, imagenet())
    logits = np.zeros((2, 1000))
    logits[0, 0] = logits[1, 1] = 3.0
    assert group_columns(groups, logits)["group"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("preprocessing", "expected"),
    [
        ({"size": 224, "resize": 256}, (256, 0.875)),
        ({"size": 299, "resize": 299}, (299, 1.0)),
        ({"size": 160, "resize": (182, 182)}, (182, 160 / 182)),
        ({"size": 300, "resize": 256}, (256, 1.0)),
        ({"size": 96, "resize": None}, (96, 1.0)),
    ],
)
def test_the_pixels_that_a_preprocessing_sees(preprocessing: dict[str, Any], expected: tuple[int, float]) -> None:
    assert pixels_seen(SimpleNamespace(**preprocessing)) == expected
