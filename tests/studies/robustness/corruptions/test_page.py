"""The page of corruptions: when mCE is compared with that of published models."""

from dataclasses import replace

import pandas as pd
import pytest

from cleanset.classes import ClassTable, class_table, imagenet
from cleanset.evaluation.measures import measures_frame
from cleanset.studies.robustness import pages
from cleanset.studies.robustness.families import StudyParams, family_named
from cleanset.studies.robustness.family import PagesData
from cleanset.studies.robustness.measuring import NOTE_COLUMNS
from cleanset.studies.robustness.results import DIFFERENCE_COLUMNS, LINE_COLUMNS
from tests.studies.robustness.corruptions.test_measures import study


@pytest.mark.parametrize(
    ("reference", "classes", "is_shown"),
    [
        ("alexnet", imagenet(), True),
        ("a", imagenet(), False),
        ("alexnet", class_table([("cat", "cat"), ("dog", "dog"), ("owl", "owl")], "here"), False),
    ],
)
def test_published_models_are_shown_next_to_mce_to_alexnet_on_imagenet(
    monkeypatch: pytest.MonkeyPatch, reference: str, classes: ClassTable, *, is_shown: bool
) -> None:
    whole = study(reference)
    whole = replace(whole, images=replace(whole.images, classes=classes))
    tables = {
        "corruptions": measures_frame(list(whole.lines()), LINE_COLUMNS),
        "corruption_differences": measures_frame(list(whole.differences()), DIFFERENCE_COLUMNS),
        "notes": pd.DataFrame(columns=NOTE_COLUMNS),
        **whole.tables(),
    }
    params = {"corruptions": {"names": list(whole.wanted.names)}, "measures": {"corruptions": {"reference": reference}}}
    data = PagesData(
        roles=list(whole.answers),
        classes=classes,
        params=StudyParams.model_validate(params),
        tables=tables,
        sheets={},
        notices={"corruptions": "A notice."},
        masks=pd.DataFrame({"left_out": [], "origin": []}),
        published_top1={},
    )
    monkeypatch.setattr(pages, "families_in", lambda _: [family_named("corruptions")])
    page = pages.pages(data)["index.html"]
    assert ("<h2>Compared with published models</h2>" in page) == is_shown
    assert "<b>mCE</b>" in page
