"""What sources say about the class of an image, and how far they agree."""

import pytest

from cleanset.dataset.label_findings import (
    Finding,
    SourceAgreement,
    agreements,
    counts_by_source,
    finding,
    findings_of,
)
from cleanset.dataset.label_sources import ImageLabels


def labels(*classes: int, unclear: tuple[int, ...] = ()) -> ImageLabels:
    return ImageLabels(classes=classes, unclear=unclear)


@pytest.mark.parametrize(
    ("of_image", "expected"),
    [
        (labels(5), "same"),
        (labels(5, 7), "among"),
        (labels(7, unclear=(5,)), "unclear"),
        (labels(unclear=(5,)), "unclear"),
        (labels(7), "other"),
        (labels(unclear=(7,)), "none"),
        (labels(), "none"),
        (None, "absent"),
    ],
)
def test_findings(of_image: ImageLabels | None, expected: Finding) -> None:
    assert finding(of_image, 5) == expected


SOURCES = {
    "one": {"a": labels(1), "b": labels(2), "c": labels(), "d": labels(4)},
    "two": {"a": labels(1), "b": labels(2, 3), "c": labels(5), "d": labels(6), "e": labels(7)},
}


def test_denials_are_of_each_source() -> None:
    found = findings_of([("a", 1), ("b", 3), ("c", 5), ("e", 8)], SOURCES)
    assert [image.denied_by for image in found] == [(), ("one",), ("one",), ("two",)]
    assert counts_by_source(found) == {
        "one": {"same": 1, "among": 0, "unclear": 0, "other": 1, "none": 1, "absent": 1},
        "two": {"same": 2, "among": 1, "unclear": 0, "other": 1, "none": 0, "absent": 0},
    }


def test_agreement_of_pairs_on_the_images() -> None:
    everything = agreements(SOURCES, "abcdef")
    assert everything == [
        SourceAgreement(first="one", second="two", images=4, same=1, overlapping=1, disjoint=1, one_names_none=1)
    ]
    assert agreements(SOURCES, "ae")[0].images == 1
