"""Every number of the sample edition's report, against the tables and reviews it comes from, counted again."""

import csv
import json
import math
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml
from bs4 import BeautifulSoup

from cleanset.report.figures import ClassState, histograms
from cleanset.report.pages import sheets
from cleanset.selection.fill import Filled
from tests.checkouts import Checkout

from .pages import cells, numbers, rows_under, soup, tables

ROLES = ["standard", "norm_robust", "corruption_robust"]
TIERS = ["top5", "reserve", "relaxed"]
CLASSES = 12

Rows = list[dict[str, Any]]


def test_confidences_by_twentieth() -> None:
    """Known ones alone; 1 is in the last twentieth."""
    table = pd.DataFrame({"class_index": 0, "image_id": list("abcd"), "tier": "top5", "rank": range(4)})
    kept, others = table.assign(confidence=[0.0, 0.05, 0.999, 1.0]), table.assign(confidence=[0.5, *[math.nan] * 3])
    top5, reserve, _ = histograms({"a": Filled(kept, others)})
    assert top5.kept == (1, 1, *[0] * 17, 2)
    assert top5.candidates == (1, 1, *[0] * 8, 1, *[0] * 8, 2)
    assert (reserve.role, reserve.tier, sum(reserve.candidates)) == ("a", "reserve", 0)


@pytest.fixture(scope="module")
def data(built: Checkout) -> Path:
    return built.folder / "data"


def rows(path: Path) -> Rows:
    found: Rows = pq.read_table(path).to_pylist()
    return found


@pytest.fixture(scope="module")
def kept(data: Path) -> dict[str, Rows]:
    return {role: rows(data / "selection" / f"{role}.parquet") for role in ROLES}


@pytest.fixture(scope="module")
def rejected(data: Path) -> dict[str, Rows]:
    return {role: rows(data / "rejected" / f"{role}.parquet") for role in ROLES}


@pytest.fixture(scope="module")
def candidates(data: Path) -> dict[str, Rows]:
    """As stage select wrote them: the report reads other tables."""
    return {role: rows(data / "candidates" / f"{role}.parquet") for role in ROLES}


@pytest.fixture(scope="module")
def verdicts(built: Checkout) -> list[tuple[str, str, str, str]]:
    """Reviewer, wnid, image id, verdict."""
    return [
        (path.parent.name, path.stem, image_id, review["verdict"])
        for path in (built.folder / "reviews").glob("*/*.yaml")
        for image_id, review in yaml.safe_load(path.read_text())[path.stem].items()
    ]


@pytest.fixture(scope="module")
def wnid_of(data: Path) -> dict[int, str]:
    """From the manifest of a set that has images of every class."""
    with (data / "export" / "standard" / "manifest.csv").open() as file:
        found = {int(row["class_index"]): row["wnid"] for row in csv.DictReader(file)}
    assert len(found) == CLASSES
    return found


def test_the_sets(index_page: BeautifulSoup, kept: dict[str, Rows], rejected: dict[str, Rows]) -> None:
    (table,) = tables(index_page, "sets")
    assert table[0][2] == f"images kept, of {3 * CLASSES}"
    expected = {}
    for role in ROLES:
        full = sum(count == 3 for count in Counter(row["class_index"] for row in kept[role]).values())
        unsettled = {row["class_index"] for row in rejected[role] if row["open"]}
        cropped = [row for row in kept[role] if row["crop"]]
        expected[role] = [len(kept[role]), len(cropped), full, CLASSES - full, len(unsettled)]
    assert {role: list(map(int, numbers)) for role, _, *numbers in table[1:]} == expected
    assert len({tuple(row) for row in expected.values()}) > 1
    assert [row[1] for row in table[1:]] == [
        "timm test_efficientnet (own weights)", "timm test_byobnet (own weights)", "timm test_vit (own weights)",
    ]  # fmt: skip


def test_the_funnel(
    index_page: BeautifulSoup, data: Path, candidates: dict[str, Rows], kept: dict[str, Rows],
    verdicts: list[tuple[str, str, str, str]], wnid_of: dict[int, str],
) -> None:  # fmt: skip
    index = rows(data / "index.parquet")
    reviewed = {(wnid, image_id) for _, wnid, image_id, _ in verdicts}
    expected = {
        "all images": [len(index)] * 3,
        "with one label": [sum(len(row["real_classes"]) == 1 for row in index)] * 3,
        "correct for all models": [len(rows(data / "shared.parquet"))] * 3,
    }
    for tier in TIERS:
        expected[f"candidates, {tier}"] = [sum(row["tier"] == tier for row in candidates[role]) for role in ROLES]
    expected["all candidates"] = [len(candidates[role]) for role in ROLES]
    expected["reviewed"] = [
        sum((wnid_of[row["class_index"]], row["image_id"]) in reviewed for row in candidates[role]) for role in ROLES
    ]
    expected["kept"] = [len(kept[role]) for role in ROLES]
    (table,) = tables(index_page, "funnel")
    assert table[0] == ["step", *ROLES]
    assert numbers(table) == expected
    assert list(numbers(table)) == list(expected)


def test_bars_are_as_long_as_their_numbers(index_page: BeautifulSoup) -> None:
    for row in index_page.select("#funnel tbody tr"):
        for cell in row.select("td.bar"):
            count = int(cell.get_text().replace(",", ""))
            bar = cell.select_one(".track span")
            assert bar is not None
            assert float(re.findall(r"width:([0-9.]+)%", str(bar["style"]))[0]) == pytest.approx(count / 4.80, abs=0.01)


def test_classes_by_size(index_page: BeautifulSoup, kept: dict[str, Rows]) -> None:
    sizes = {role: Counter(Counter(row["class_index"] for row in kept[role]).values()) for role in ROLES}
    expected = {str(size): [sizes[role][size] for role in ROLES] for size in (3, 2, 1)}
    expected["0"] = [CLASSES - sum(sizes[role].values()) for role in ROLES]
    assert numbers(tables(index_page, "classes")[0]) == expected


def test_short_classes_with_their_reasons(index_page: BeautifulSoup, data: Path) -> None:
    """As stage count lists them."""
    lines = (data / "short_classes.csv").read_text().splitlines()[1:]
    expected = []
    for line in lines:
        role, wnid, in_set, _, reasons = re.fullmatch(r'(\w+),(\w+),(\d+),(\d+),"?(.*?)"?', line).groups()  # type: ignore[union-attr]
        expected.append((wnid, role, in_set, reasons.replace("_", " ")))
    found, wnid = [], ""
    for row in tables(index_page, "classes")[2][1:]:
        if len(row) == 4:
            wnid = row.pop(0).split()[-1]
        found.append((wnid, *row))
    assert found == expected
    assert len(found) == 3


def test_confidences(
    index_page: BeautifulSoup, candidates: dict[str, Rows], kept: dict[str, Rows]
) -> None:  # fmt: skip
    figures = index_page.select("#confidence figure")
    wanted = [(role, tier) for role in ROLES for tier in TIERS]
    assert len(figures) == len(wanted)
    for figure, (role, tier) in zip(figures, wanted, strict=True):
        svg = figure.select_one("svg")
        assert svg is not None
        assert svg["aria-label"] == f"{role}, {tier}: histogram of confidence"
        every, ours = (
            Counter(min(19, int(row["confidence"] * 20)) for row in table[role] if row["tier"] == tier)
            for table in (candidates, kept)
        )
        titles = [title.get_text() for title in figure("title")]
        assert titles == [
            f"{place / 20:.2f} to {(place + 1) / 20:.2f}: {every[place]} candidates, {ours[place]} kept"
            for place in range(20)
        ]
        most = max(every.values())
        for group, place in zip(figure("g"), range(20), strict=True):
            heights = {rect["class"][0]: float(str(rect["height"])) for rect in group("rect")}
            counts = {"candidates": every[place], "kept": ours[place]}
            assert heights == pytest.approx(
                {kind: 66 * count / most for kind, count in counts.items() if count}, abs=0.01
            )
        caption = figure.figcaption
        assert caption is not None
        assert f"{every.total()} candidates, {ours.total()} kept; highest bar {most}" in caption.get_text()


def test_overlap(index_page: BeautifulSoup, kept: dict[str, Rows]) -> None:
    sets = {role: {(row["class_index"], row["image_id"]) for row in kept[role]} for role in ROLES}
    exactly, common = tables(index_page, "overlap")
    found = {}
    for *marks, count in exactly[1:]:
        found[tuple(role for role, mark in zip(ROLES, marks, strict=True) if mark == "●")] = int(count)
    expected = {}
    for bits in range(1, 8):
        members = tuple(role for place, role in enumerate(ROLES) if bits >> place & 1)
        others = [sets[role] for role in ROLES if role not in members]
        inside = set.intersection(*(sets[role] for role in members)).difference(*others)
        if inside:
            expected[members] = len(inside)
    assert found == expected
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert numbers(common) == {a: [len(sets[a] & sets[b]) for b in ROLES] for a in ROLES}
    different = {image_id for of_model in sets.values() for _, image_id in of_model}
    assert f"hold {len(different)} different images" in index_page.select("#overlap p")[0].get_text()


def test_rejects_by_reason(index_page: BeautifulSoup, rejected: dict[str, Rows]) -> None:
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    different: dict[str, set[str]] = defaultdict(set)
    for place, role in enumerate(ROLES):
        for row in rejected[role]:
            reason = row["reason"].replace("_", " ")
            counts[reason][place] += 1
            different[reason].add(row["image_id"])
    (table,) = tables(index_page, "rejected")
    assert numbers(table) == {reason: [*counts[reason], len(different[reason])] for reason in counts}


def test_examples_of_each_reason(report: Path, rejected: dict[str, Rows], wnid_of: dict[int, str]) -> None:
    """Every image once, each rejected for this reason; first those of the best rank."""
    page = soup(report / "rejected.html")
    best: dict[str, dict[str, tuple[int, str]]] = defaultdict(dict)
    for table in rejected.values():
        for row in table:
            found = (row["rank"], wnid_of[row["class_index"]])
            image = row["image_id"][-8:]
            best[row["reason"]][image] = min(best[row["reason"]].get(image, found), found)
    sections = page.select(".reason")
    assert {section["id"] for section in sections} == set(best) - {"not_needed", "unreviewed"}
    for section in sections:
        images = best[str(section["id"])]
        keys = [
            (str(caption.small.string), str(caption.a.string))  # type: ignore[union-attr]
            for caption in section("figcaption")
        ]
        assert len({image for _, image in keys}) == len(keys) == len(images)
        assert all(images[image][1] == wnid for wnid, image in keys)
        ranks = [images[image][0] for _, image in keys]
        assert ranks == sorted(rank for rank, _ in images.values())[: len(ranks)]
        heading = section.h2
        assert heading is not None
        assert f"{len(images)} image" in heading.get_text()


def test_reviewers(index_page: BeautifulSoup, verdicts: list[tuple[str, str, str, str]]) -> None:
    counts = Counter((reviewer, verdict) for reviewer, _, _, verdict in verdicts)
    names = sorted({reviewer for reviewer, *_ in verdicts})
    table, *_ = tables(index_page, "reviewers")
    assert table[0] == ["reviewer", "clean", "crop", "reject", "unsure", "total"]
    given = {name: [counts[name, verdict] for verdict in table[0][1:5]] for name in names}
    assert numbers(table) == {name: [*each, sum(each)] for name, each in given.items()}


def test_agreement(index_page: BeautifulSoup, verdicts: list[tuple[str, str, str, str]]) -> None:
    """In the sample ada and ben have five balloons in common and agree on four; the board does not count.

    For five images, fewer than ten, no coefficient is printed.
    """
    given = {
        name: {(wnid, image): verdict for who, wnid, image, verdict in verdicts if who == name}
        for name in ("ada", "ben")
    }
    common = given["ada"].keys() & given["ben"].keys()
    assert sorted((given["ada"][key], given["ben"][key]) for key in common) == [("clean", "clean")] * 4 + [
        ("clean", "reject")
    ]
    _, pairs, by_verdict = tables(index_page, "reviewers")
    assert pairs[1:] == [["ada, ben", "5", "80 %", "–", "–"], ["all", "5", "80 %", "–", "–"]]
    assert by_verdict[1:] == [
        ["clean", "9", "88.89 %", "–"],
        ["crop", "0", "–", "–"],
        ["reject", "1", "0 %", "–"],
        ["unsure", "0", "–", "–"],
    ]
    text = " ".join(index_page.select("#reviewers")[0].get_text().split())
    assert "5 images were judged by two or more reviewers, the board not counted; on 1 of them they differ" in text


def test_accuracy_and_margins(index_page: BeautifulSoup, built: Checkout) -> None:
    names = {
        "top-1 accuracy, %": "accuracy_top1",
        "top-5 accuracy, %": "accuracy_top5",
        "ReaL accuracy, %": "accuracy_real",
        "correct on images with one label": "correct_of_one_label",
        "smallest margin, in millionths": "margin_smallest_ppm",
        "smallest margin in log-odds, in millionths": "log_odds_margin_smallest_ppm",
        "classes with a margin below 0.00001": "margins_below_1e-5",
    }
    (table,) = tables(index_page, "accuracy")
    found = {first: [float(cell) for cell in others] for first, *others in table[1:]}
    totals = built.folder / "metrics" / "totals"
    assert found == {
        text: [json.loads((totals / f"{name}.json").read_text())[role] for role in ROLES]
        for text, name in names.items()
    }


def test_the_page_of_all_classes(
    report: Path, kept: dict[str, Rows], rejected: dict[str, Rows], wnid_of: dict[int, str]
) -> None:
    found = soup(report / "classes.html").select("#classes tr")
    classes = sorted({row["class_index"] for table in rejected.values() for row in table})
    assert len(found) == len(classes) == CLASSES
    for row, class_index in zip(found, classes, strict=True):
        name, *counts, flawed, text = cells(row)
        assert name.endswith(wnid_of[class_index])
        in_sets = [sum(each["class_index"] == class_index for each in kept[role]) for role in ROLES]
        assert list(map(int, counts)) == in_sets
        in_class = {each["image_id"] for role in ROLES for each in kept[role] if each["class_index"] == class_index}
        of_flaws = {
            each["image_id"]
            for role in ROLES
            for each in rejected[role]
            if each["class_index"] == class_index and each["reason"] not in ("not_needed", "unreviewed")
        }
        assert int(flawed) == len(of_flaws - in_class)
        for role, count in zip(ROLES, in_sets, strict=True):
            of_class = [each for each in rejected[role] if each["class_index"] == class_index]
            still_open = sum(each["open"] for each in of_class)
            reasons = re.search(rf"{role}: (.*?)(?= \w+_?\w+:|$)", text)
            assert (reasons is not None) == (count < 3 or still_open > 0)
            assert (f"{still_open} open" in text) == (still_open > 0)


def test_the_contact_sheet(report: Path, data: Path, kept: dict[str, Rows], wnid_of: dict[int, str]) -> None:
    """Every kept image once in its class, a line for each model, two thumbnails and confidences where it is cropped."""
    of_crops = {
        (role, row["image_id"], tuple(row["crop"])): dict(zip(row["top5_class"], row["top5_probability"], strict=True))
        for role in ROLES
        for row in rows(data / "crop_scores" / f"{role}.parquet")
    }
    expected: dict[tuple[str, str, int], list[list[str]]] = {}
    for role in ROLES:
        for row in kept[role]:
            key = (wnid_of[row["class_index"]], row["image_id"][-8:], 2 if row["crop"] else 1)
            tier = "" if row["tier"] == "top5" else f" {row['tier']}"
            confidences = [f"{row['confidence']:.3f}"]
            if row["crop"]:
                of_crop = of_crops[role, row["image_id"], tuple(row["crop"])][row["class_index"]]
                confidences.insert(0, f"{of_crop:.3f}")
            line = [str(row["place"]), role + tier, *confidences]
            expected.setdefault(key, []).append(line)
    found = {}
    for section in soup(report / "sheet-1.html").select("section.class"):
        for figure in section("figure"):
            caption = figure.figcaption
            assert caption is not None
            image_id = caption.get_text().split()[0]
            found[section["id"], image_id, len(figure("img"))] = rows_under(figure)
            of_whole = ["on the whole"] if len(figure("img")) == 2 else []
            assert cells(caption.tr) == ["place", "model", "confidence", *of_whole]  # type: ignore[arg-type]
    assert found == expected
    for wnid in wnid_of.values():
        first = [min(int(place) for place, *_ in lines) for (of, *_), lines in found.items() if of == wnid]
        assert first == sorted(first)
    assert any(len(lines) == 3 for lines in found.values())
    assert any(images == 2 for _, _, images in found)


def test_plots_hold_the_numbers_of_the_pages(
    report: Path, index_page: BeautifulSoup, candidates: dict[str, Rows], kept: dict[str, Rows]
) -> None:
    (funnel,) = tables(index_page, "funnel")
    for place, role in enumerate(ROLES):
        steps = json.loads((report / "plots" / "funnel" / f"{role}.json").read_text())
        assert [(row["name"], row["images"]) for row in steps] == [
            (step, counts[place]) for step, counts in numbers(funnel).items()
        ]
        by_class = Counter(row["class_index"] for row in kept[role])
        classes = json.loads((report / "plots" / "classes" / f"{role}.json").read_text())
        assert {row["class_index"]: row["images"] for row in classes if row["images"]} == by_class
        assert len(classes) == CLASSES
        for tier in TIERS:
            bins = json.loads((report / "plots" / "confidence" / f"{role}_{tier}.json").read_text())
            assert [row["confidence"] for row in bins] == [place / 20 for place in range(20)]
            for name, table in (("candidates", candidates), ("kept", kept)):
                places = Counter(min(19, int(row["confidence"] * 20)) for row in table[role] if row["tier"] == tier)
                assert [row[name] for row in bins] == [places[place] for place in range(20)]


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ([3] * 120, [50, 50, 20]),
        ([50] * 60, [50, 10]),
        ([800] * 7, [3, 3, 1]),
        # a class is on one page
        ([4_000, 10, 2_490, 1, 9_000, 1], [1, 2, 1, 1, 1]),
        ([], []),
    ],
)
def test_sheets_of_few_classes_or_of_few_images(kept: list[int], expected: list[int]) -> None:
    states = [
        ClassState(class_index=index, kept={"a": count, "b": 1}, open={}, short={}, is_full=True)
        for index, count in enumerate(kept)
    ]
    found = sheets(states)
    assert [len(each.classes) for each in found] == expected
    assert [state for each in found for state in each.classes] == states
    assert [each.file for each in found] == [f"sheet-{place}.html" for place in range(1, len(expected) + 1)]
