"""A new family of changes is one object and one line in FAMILIES."""

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cleanset.classes import imagenet
from cleanset.evaluation.comparability import images_digest
from cleanset.evaluation.compare.result_files import headlines_of
from cleanset.evaluation.sets import ImageFile
from cleanset.plumbing.validation import Section
from cleanset.scoring.scorer import Scored, to_table
from cleanset.statistics.bootstrap import Resamples
from cleanset.studies.robustness import families
from cleanset.studies.robustness.answer_arrays import Answers, Chosen
from cleanset.studies.robustness.answers import ReadAnswers, predictions_table
from cleanset.studies.robustness.families import FAMILIES, change_plan, families_in, notice, with_sections
from cleanset.studies.robustness.family import Changing, Family, PagesData, SheetLayout
from cleanset.studies.robustness.images import AnswerFiles, ChangeName, Sources, base_pixels, images_sha256
from cleanset.studies.robustness.measuring import measure
from cleanset.studies.robustness.params import CommonParams
from cleanset.studies.robustness.results import FamilyStudy, StudiedImages
from cleanset.studies.robustness.sampled import Sampled, sampled_means
from cleanset.studies.robustness.sections import CLEAN, UNCHANGED, FamilySection
from cleanset.tables import read_table, write_table
from tests.studies.robustness.sources import opened_of, sources_of

pytestmark = pytest.mark.slow


class Fades(FamilySection):
    """A section with one change."""

    def changes(self) -> list[tuple[str, int]]:
        return [(name, 0) for name in self.names]


class FadeMeasures(Section):
    """A section of `measures` with one key."""

    threshold: float = 0.5


class FadeStudy(FamilyStudy):
    """The answers to one change: whether the top-1 class is the image's."""

    compared = ("accuracy",)

    def measured(self, role: str, chosen: Chosen, resamples: Resamples) -> Iterator[Sampled]:
        yield sampled_means(self.answers[role]["fade"][chosen], ["fade"], resamples, role)["fade"].named("accuracy")

    def tables(self) -> dict[str, pd.DataFrame]:
        return {}


class FadeFamily(Family):
    """Images with half the contrast."""

    def make_images(self, sources: Sources, images: pd.DataFrame, params: CommonParams) -> Changing:
        return Changing(lambda file, *_: base_pixels(file) // 2, {})

    def read_images(self, folder: Path, images: Sequence[ImageFile], params: CommonParams) -> Changing:
        raise NotImplementedError

    def read(self, answers: pd.DataFrame, params: CommonParams) -> np.ndarray:
        return np.asarray(answers["top5_class"].str[0] == answers["class_index"])

    def study(self, images: StudiedImages, answers: Mapping[str, Answers], params: CommonParams) -> FamilyStudy:
        return FadeStudy(images, answers)

    def page_context(self, data: PagesData) -> dict[str, Any]:
        return {}


FADES = FadeFamily(
    name="fades",
    section=Fades,
    measures_section=FadeMeasures,
    layout="<fade>/<wnid>/<image>",
    notice_if_made="Faded here.",
    with_intervals=("accuracy",),
    summary={"accuracy": "accuracy"},
    unit="percent",
    page="fades.html",
    headlines={"accuracy": "accuracy"},
    shown_differences=("accuracy",),
    sheet=SheetLayout(1, has_unchanged=False, is_tiled=False),
)


def test_a_new_family_runs_through_images_answers_and_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "FAMILIES", (*FAMILIES, FADES))
    params = with_sections(families.FAMILIES).model_validate(
        {"corruptions": {}, "fades": {"names": ["fade"]}, "measures": {"fades": {"threshold": 0.25}}, "jpeg": None}
    )
    assert params.section(FadeMeasures).threshold == 0.25
    assert [family.name for family in families_in(params)] == ["corruptions", "fades"]

    sources = sources_of(tmp_path, [0, 1, 0, 1])
    images, files = sources.images, sources.files
    plan = change_plan(FADES, sources, params)
    assert [tuple(name) for name in replace(plan, images=images[::-2]).names()] == [
        ("2.png", "fade", 0), ("2.png", "unchanged", 0), ("4.png", "fade", 0), ("4.png", "unchanged", 0),
    ]  # fmt: skip
    changed = plan.changed_images()(ChangeName("1.png", "fade", 0))
    assert np.array_equal(np.array(changed), base_pixels(files["1.png"]) // 2)

    logits = np.full((4, 1000), -9.0)
    logits[[0, 1, 2, 3], [0, 1, 0, 5]] = 9.0  # the last is misclassified
    class_of = dict(zip(images["file"], images["class_index"], strict=True))
    table = predictions_table(FADES)
    assert table.key == ("file", "change")
    parts = []
    for change in (CLEAN, UNCHANGED, "fade"):
        names = [ChangeName(file, change, 0) for file in images["file"]]
        parts.append(to_table([Scored(names, ReadAnswers([0, 1, 5], class_of)(logits, names))]))
    stored = AnswerFiles(tmp_path / "data")
    write_table(stored.predictions("fades", "standard"), pd.concat(parts, ignore_index=True), table, imagenet())
    assert len(read_table(stored.predictions("fades", "standard"), table, imagenet())) == 12
    record = {"images_sha256": images_sha256(images), "seed": 0, "jpeg": None, "parameters": 1}
    stored.record("fades", "standard").write_text(json.dumps(record))

    opened = opened_of(sources, params, "standard", limits=("Drawn by a test.",))
    notices = {"fades": notice(FADES, params, images, imagenet())}
    lines, _ = measure(opened, notices, tmp_path / "measures", tmp_path / "metrics")["fades"]
    assert [(line.measure, line.value) for line in lines] == [("accuracy", 0.75)]
    assert (tmp_path / "measures" / "notices.csv").read_text() == "family,notice\nfades,Faded here.\n"
    lines_of_notes = (tmp_path / "measures" / "notes.csv").read_text().splitlines()
    digest = images_digest(zip(images["class_index"].tolist(), images["file_sha256"], strict=True))
    assert lines_of_notes == [
        "family,selection,note,text",
        "fades,union,set,drawn",
        "fades,union,version,no release",
        f"fades,union,digest,images {digest[:12]}",
        "fades,union,number of images,4",
        'fades,union,selection,"the sets of all models, each chosen among the images that its model classifies '
        'correctly"',
        'fades,union,settings,"fades: fade; jpeg none; seed 0; predictions among 1,000 classes"',
        'fades,union,intervals,"95 %, bootstrap within classes, one fewer drawn than there are, with pseudo-images, '
        '1,000 draws"',
        "fades,union,limits,Drawn by a test. Faded here.",
    ]
    assert pd.read_csv(tmp_path / "measures" / "fades.csv")["official"].tolist() == ["no"]
    assert json.loads((tmp_path / "metrics" / "fades" / "accuracy.json").read_text()) == {"standard": 0.75}


def test_no_other_module_names_a_family(repository: Path) -> None:
    """Their folders do, and the commands that are called like them; which are in the pipelines."""
    package = repository / "src" / "cleanset" / "studies" / "robustness"
    names = {family.name for family in FAMILIES}
    own = [package / family.name for family in FAMILIES]
    found = {
        path.relative_to(package).as_posix()
        for path in sorted(package.rglob("*.py"))
        if not any(path.is_relative_to(folder) for folder in own)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in names
    }
    assert found == {"commands.py"}


def test_results_of_every_family_can_be_compared() -> None:
    """By measures that the family has over all changes."""
    for family in FAMILIES:
        names = {each.name for each in headlines_of(family.name)}
        assert names
        assert names <= family.headlines.keys()
