"""The page of scenarios: tests by image and the published regression, and the notes of its tables."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cleanset.evaluation.measures import measures_frame
from cleanset.studies.robustness import pages
from cleanset.studies.robustness.families import StudyParams, family_named
from cleanset.studies.robustness.family import PagesData
from cleanset.studies.robustness.measuring import NOTE_COLUMNS
from cleanset.studies.robustness.results import DIFFERENCE_COLUMNS, LINE_COLUMNS
from cleanset.studies.robustness.scenarios.measures import ScenarioStudy
from tests.evaluation.notes_read import notes_on_page
from tests.studies.robustness.scenarios.test_measures import CLASSES, study


def shown_page(whole: ScenarioStudy, monkeypatch: pytest.MonkeyPatch) -> tuple[str, dict[str, pd.DataFrame]]:
    """The page of a study whose models all saw all images, with its tables."""
    whole = replace(whole, images=replace(whole.images, is_whole=True))
    tables = {
        "scenarios": measures_frame(list(whole.lines()), LINE_COLUMNS),
        "scenario_differences": measures_frame(list(whole.differences()), DIFFERENCE_COLUMNS),
        "models": pd.DataFrame([(role, 5) for role in whole.answers], columns=["model", "parameters"]),
        "notes": pd.DataFrame(
            [("scenarios", each, "set", f"{each} & more") for each in whole.images.selections], columns=NOTE_COLUMNS
        ),
        **whole.tables(),
    }
    data = PagesData(
        roles=list(whole.answers),
        classes=whole.images.classes,
        params=StudyParams.model_validate({"scenarios": {"names": list(whole.wanted.names)}}),
        tables=tables,
        sheets={},
        notices={"scenarios": "A notice."},
        masks=pd.DataFrame({"left_out": [None], "origin": ["person"]}),
        published_top1={},
    )
    monkeypatch.setattr(pages, "families_in", lambda _: [family_named("scenarios")])
    return pages.pages(data)["scenarios.html"], tables


def test_the_page_has_tests_by_image_and_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    page, tables = shown_page(study(), monkeypatch)
    by_image, published = page.split("<h3>As published</h3>")
    row = tables["scenario_by_image_anova"].set_index("source").loc["class_index"]
    assert f'<td class="n">{row["f"]:.2f}</td><td class="n">{row["p"]:.4f}</td>' in by_image
    assert "Its p-values mean nothing" in published
    assert "tars" not in page.partition("<script>")[0]
    assert notes_on_page(page) == {"set": "union & more"}


def test_tests_by_image_without_the_published_regression(monkeypatch: pytest.MonkeyPatch) -> None:
    """One model and one class: only scenarios are compared, by image alone."""
    two = study(classes=np.full(len(CLASSES), 3))
    images = replace(two.images, roles=["a"], sets=[["a"]] * len(CLASSES))
    page, tables = shown_page(replace(two, images=images, answers={"a": two.answers["a"]}), monkeypatch)
    assert "scenario_regression" not in tables
    row = tables["scenario_by_image_anova"].set_index("source").loc["scenario"]
    assert f'<td class="n">{row["f"]:.2f}</td>' in page
    assert "differences from a, unchanged, " in page
    assert "As published</h3>" not in page


def test_how_low_score_is_appears_in_the_notice_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    page, _ = shown_page(study(), monkeypatch)
    assert "In classes with few images, chance adds to the spread, so Score is too low." in page
    assert "simulations" not in page
