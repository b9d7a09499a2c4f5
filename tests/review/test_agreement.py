"""Agreement of reviewers: published examples, definitions written out pair by pair, the command on the sample."""

import json
import subprocess
from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cleanset.classes import imagenet
from cleanset.review.agreement import (
    Agreement,
    Difference,
    differences,
    observed_agreement,
    overall,
    pairs,
    verdict_agreement,
    verdict_counts,
    without_board,
)
from cleanset.review.agreement_report import AgreementReport, agreement_as_json, agreement_table
from cleanset.review.consensus import consensus
from cleanset.review.file_format import parse_review
from cleanset.review.store import Votes
from cleanset.review.verdicts import Cropped, Review, Vote
from cleanset.statistics.raters import ac1
from tests.checkouts import Checkout
from tests.properties import examples

# Fleiss 1971, table 1: 30 patients, 6 psychiatrists; depression, personality disorder, schizophrenia, neurosis, other
PATIENTS = """00060 03003 01401 00006 03030 20400 00402 20310 20040 00006 10050 11040 03300 10050 02031
00501 30012 51000 02040 10203 00006 01050 02013 20040 10041 05010 40002 02040 10500 00006"""
FLEISS = np.array([[int(count) for count in patient] for patient in PATIENTS.split()])

# Gwet 2014: 12 units, 4 raters; some did not rate all
GWET = np.array(
    [[3, 0, 0, 0, 0], [0, 3, 1, 0, 0], [0, 0, 4, 0, 0], [0, 0, 4, 0, 0], [0, 4, 0, 0, 0], [1, 1, 1, 1, 0],
     [0, 0, 0, 4, 0], [3, 1, 0, 0, 0], [0, 4, 0, 0, 0], [0, 0, 0, 0, 3], [2, 0, 0, 0, 0], [0, 0, 1, 0, 0]]
)  # fmt: skip


def rounded(found: Agreement) -> Agreement:
    agreement, kappa = (None if number is None else round(number, 9) for number in (found.agreement, found.kappa))
    return Agreement(found.images, agreement, kappa)


Counts = np.ndarray[tuple[int, int], np.dtype[np.int64]]


def kappa_of(counts: Counts) -> float | None:
    """With ten times the images, since fewer than ten give none: their number does not change it."""
    return overall(np.repeat(counts, 10, axis=0)).kappa


def with_single_raters(counts: Counts) -> float:
    """Gwet's kappa (Handbook of Inter-Rater Reliability, 4th ed. 2014, chapter 2), by its definition.

    A row of one rating counts in the agreement by chance, not in the observed one; `overall` leaves it out of both.
    """
    shares = (counts / counts.sum(axis=1, keepdims=True)).mean(axis=0)
    chance = float((shares**2).sum())
    return ((observed_agreement(counts) or 0) - chance) / (1 - chance)


def test_kappa_of_fleiss() -> None:
    """As published: kappa .430; for the five categories .245, .245, .520, .471, .566."""
    assert overall(FLEISS).kappa == pytest.approx(0.430, abs=5e-4)
    of_each = [verdict_agreement(FLEISS, column) for column in range(5)]
    assert [round(found.kappa or 0, 3) for found in of_each] == [0.245, 0.245, 0.52, 0.471, 0.566]
    assert [found.given for found in of_each] == [26, 26, 30, 55, 43]
    # of the 30 verdicts of schizophrenia, by hand: 12 pairs and 3 + 6 + 10 + 1 + 10 of 75
    assert of_each[2].agreement == pytest.approx((12 + 12 + 12 + 6 + 6 + 20 + 2 + 20) / (30 * 5))


def test_kappa_with_different_numbers_of_raters() -> None:
    """As published: .76117, from an agreement of 9/11."""
    assert with_single_raters(GWET) == pytest.approx(0.76117, abs=5e-6)
    assert overall(GWET).kappa == pytest.approx(with_single_raters(GWET[GWET.sum(axis=1) >= 2]))
    assert observed_agreement(GWET) == pytest.approx(9 / 11)
    # without the unit that only one rater saw, as computed with irrCAC 0.4.4
    assert rounded(overall(GWET)) == Agreement(11, round(9 / 11, 9), 0.762483131)


NOTHING = np.zeros((0, 4), dtype=np.int64)


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        (NOTHING, Agreement(0, None, None)),
        (np.array([[1, 0], [0, 1]]), Agreement(0, None, None)),
        (np.array([[2, 0], [3, 0]]), Agreement(2, 1.0, None)),  # all agree, but on one thing only
        (np.array([[2, 0], [0, 2]]), Agreement(2, 1.0, 1.0)),
        (np.array([[1, 1], [1, 1]]), Agreement(2, 0.0, -1.0)),
        (np.array([[1, 1], [2, 0], [0, 2], [0, 2]]), Agreement(4, 0.75, round(1 - 0.25 / (1 - 34 / 64), 9))),
    ],
)
def test_small_tables(counts: "np.ndarray[tuple[int, int], np.dtype[np.int64]]", found: Agreement) -> None:
    several = rounded(overall(np.repeat(counts, 10, axis=0)))
    assert several == replace(found, images=10 * found.images)
    # of fewer than ten images any kappa is possible
    assert rounded(overall(counts)) == replace(found, kappa=None)


def test_kappa_and_ac1_have_intervals_for_ten_images_or_more() -> None:
    found = overall(FLEISS)
    low, high = found.kappa_interval or (0, 0)
    # the jackknife's standard error, of the 30 tables without an image
    without = [overall(np.delete(FLEISS, place, axis=0)).kappa or 0 for place in range(30)]
    error = np.sqrt(29 * np.var(without))
    assert (high - low) / (2 * 1.96) == pytest.approx(error, rel=0.15)
    assert low < 0.430 < high
    assert found.ac1_interval is not None
    of_ac1 = ac1(FLEISS)
    assert of_ac1 is not None
    assert (found.ac1, found.ac1_interval) == (of_ac1.value, of_ac1.interval)
    nine = overall(FLEISS[:9])
    assert (nine.images, nine.kappa, nine.kappa_interval, nine.ac1, nine.ac1_interval) == (9, None, None, None, None)
    assert nine.agreement is not None
    assert overall(FLEISS[:10]).kappa is not None
    of_verdict = verdict_agreement(FLEISS, 2)
    assert of_verdict.kappa_interval is not None
    assert of_verdict.kappa_interval[0] < 0.52 < of_verdict.kappa_interval[1]
    assert verdict_agreement(FLEISS[:9], 2).kappa is None


ROWS = st.lists(st.lists(st.sampled_from("abc"), min_size=2, max_size=5), min_size=1, max_size=6)


@examples(200)
@given(ROWS)
def test_against_the_definition_pair_by_pair(rows: list[list[str]]) -> None:
    counts = np.array([[row.count(letter) for letter in "abc"] for row in rows])
    same = [[a == b for a, b in combinations(row, 2)] for row in rows]
    observed = sum(sum(pairs) / len(pairs) for pairs in same) / len(rows)
    assert observed_agreement(counts) == pytest.approx(observed)
    # two verdicts drawn apart: each a random one of a random image
    share = {letter: sum(Counter(row)[letter] / len(row) for row in rows) / len(rows) for letter in "abc"}
    chance = sum(share[letter] ** 2 for letter in "abc")
    kappa = kappa_of(counts)
    if len({letter for row in rows for letter in row}) == 1:
        assert kappa is None
    else:
        assert kappa is not None
        assert kappa * (1 - chance) == pytest.approx(observed - chance)
    # where one verdict is a, the chance that another, drawn from the others, is too
    chances = [(row.count("a") - 1) / (len(row) - 1) for row in rows for verdict in row if verdict == "a"]
    agreement = verdict_agreement(counts, 0).agreement
    assert agreement == (pytest.approx(sum(chances) / len(chances)) if chances else None)


# Votes

SHA = "3f6c0a" + "0" * 58
IMAGES = [f"ILSVRC2012_val_0000000{number}" for number in range(1, 6)]


def review(word: str) -> Review:
    """ "clean", "unsure", "reject blur", "crop text" or "crop2 text"."""
    verdict, *reason = word.split()
    box = {"crop": [0, 0, 99, 99], "crop2": [0, 0, 98, 99]}.get(verdict)
    return parse_review(
        {
            "verdict": verdict.removesuffix("2"),
            "reason": reason[0] if reason else None,
            "crop": box,
            "object_fully_visible": True if box else None,
            "sha256": SHA,
            "note": "seen",
        },
        "here",
    )


def votes(*verdicts: dict[str, str]) -> Votes:
    return {
        (0, image_id): {name: Vote("n01440764", image_id, review(word), "f") for name, word in by_reviewer.items()}
        for image_id, by_reviewer in zip(IMAGES, verdicts, strict=False)
    }


VOTES = votes(
    {"bob": "clean", "ann": "clean", "eve": "reject blur", "board": "clean"},
    {"ann": "reject blur", "bob": "reject text"},
    {"ann": "crop text", "bob": "crop2 text"},
    {"ann": "clean", "board": "reject noise"},
    {"eve": "unsure"},
)


def test_the_board_is_no_rater() -> None:
    reviewed = without_board(VOTES)
    assert [list(by_reviewer) for by_reviewer in reviewed.values()] == [
        ["ann", "bob", "eve"], ["ann", "bob"], ["ann", "bob"], ["ann"], ["eve"],
    ]  # fmt: skip
    assert verdict_counts(reviewed.values()).tolist() == [
        [2, 0, 1, 0], [0, 0, 2, 0], [0, 2, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1],
    ]  # fmt: skip
    assert verdict_counts([]).shape == (0, 4)
    assert overall(verdict_counts(reviewed.values())).agreement == pytest.approx((1 / 3 + 1 + 1) / 3)


def test_pairs_of_reviewers() -> None:
    found = pairs(without_board(VOTES).values())
    assert {names: rounded(agreement) for names, agreement in found.items()} == {
        ("ann", "bob"): Agreement(3, 1.0, None),
        ("ann", "eve"): Agreement(1, 0.0, None),
        ("bob", "eve"): Agreement(1, 0.0, None),
    }


def test_differences_in_verdict_and_box_but_not_in_reason() -> None:
    found = differences(VOTES)
    assert [(each.image_id, list(each.reviews), each.board) for each in found] == [
        (IMAGES[0], ["ann", "bob", "eve"], review("clean")),
        (IMAGES[2], ["ann", "bob"], None),
    ]


def test_the_report_says_which_of_several_boxes_was_taken(capsys: pytest.CaptureFixture[str]) -> None:
    boxes = {"ann": (0, 0, 90, 80), "bob": (0, 0, 90, 81)}
    reviewed = {name: Review(verdict=Cropped("text", box), sha256="0" * 64) for name, box in boxes.items()}
    difference = Difference(0, IMAGES[0], reviewed, None)
    decision = consensus([review.verdict for review in reviewed.values()], None, "single", 1, 0.02)
    report = AgreementReport(
        classes=imagenet(),
        reviewers={"ann": 1, "bob": 1},
        overall=Agreement(1, 1.0, None),
        verdicts={},
        pairs={},
        differences=[(difference, decision)],
    )
    Console(width=200).print(agreement_table(report), highlight=False)
    assert "crop text [0, 0, 90, 80] (the smallest of boxes within review.box_tolerance)" in capsys.readouterr().out
    assert json.loads(agreement_as_json(report))["differences"][0]["decision"]["crop"] == [0, 0, 90, 80]


# The command and the metrics


def run(built: Checkout, *options: str, width: int = 80) -> str:
    environment = built.environment() | {"COLUMNS": str(width)}
    return subprocess.run(
        ["cleanset", "agreement", *options],
        cwd=built.folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.long
@pytest.mark.parametrize("width", [80, 120])
def test_the_sample_for_people(built: Checkout, width: int) -> None:
    shown = [" ".join(line.split()) for line in run(built, width=width).splitlines()]
    assert max(len(line) for line in run(built, width=width).splitlines()) <= width
    for line in (
        "Images reviewed by each: ada 139, ben 5. By two or more: 5.",
        "clean 9 88.9 % –",
        "crop 0 – –",
        "all 10 80.0 % – –",
        "ada, ben 5 80.0 % – –",
        "n02782093 ILSVRC2012_val_00000308 ada: clean board: clean",
        "balloon ben: reject filter",
    ):
        assert line in shown


def test_the_sample_for_programs(built: Checkout) -> None:
    found = json.loads(run(built, "--json"))
    none = {"kappa": None, "kappa_interval": None, "ac1": None, "ac1_interval": None}
    assert found["pairs"] == [{"a": "ada", "b": "ben", "images": 5, "agreement": 0.8, **none}]
    assert (found["images"], found["agreement"]) == (5, 0.8)
    assert {name: found[name] for name in none} == none
    [difference] = found["differences"]
    assert (difference["wnid"], difference["image_id"]) == ("n02782093", "ILSVRC2012_val_00000308")
    assert {name: vote["verdict"] for name, vote in difference["votes"].items()} == {"ada": "clean", "ben": "reject"}
    assert difference["decision"] == {"verdict": "clean", "reason": None, "crop": None, "box_unknown": False}


def test_the_metrics_of_the_sample(built: Checkout) -> None:
    names = ("reviewed_by_several", "reviewers_differ", "reviewers_agreement")
    texts = [(built.folder / "metrics" / "totals" / f"{name}.json").read_text() for name in names]
    assert [set(json.loads(text).values()) for text in texts] == [{5}, {1}, {80.0}]
    # no kappa for five images
    assert not (built.folder / "metrics" / "totals" / "reviewers_kappa.json").exists()


@pytest.mark.long
def test_without_reviews(built: Checkout, tmp_path: Path) -> None:
    (tmp_path / "reviews").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "params.yaml").write_bytes((built.folder / "params.yaml").read_bytes())
    (tmp_path / "data" / "index.parquet").write_bytes((built.folder / "data" / "index.parquet").read_bytes())
    assert run(built, "--edition", str(tmp_path)) == "Images reviewed by each: nobody yet. By two or more: 0.\n"
    assert json.loads(run(built, "--edition", str(tmp_path), "--json"))["agreement"] is None
