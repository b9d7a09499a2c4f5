"""The rates of the hints that the docs state are those that were measured, with the rules of today."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cleanset.review.hints.kinds import HINTS

KINDS = {
    "text or watermark": "text",
    "border": "border",
    "artificial background": "artificial_background",
    "filter": "filter",
    "collage": "collage",
}


@pytest.fixture(scope="module")
def rates(repository: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((repository / "bench" / "hint_rates.yaml").read_text())
    return found


def page(repository: Path, name: str) -> str:
    """The text of a page of the docs, each line end as a blank."""
    return " ".join((repository / "docs" / name).read_text().split())


def test_rates_are_of_the_rules_of_today(rates: dict[str, Any], repository: Path) -> None:
    """Each hint separately: a new one is not yet measured, and the rates of the others stay."""
    today = {hint.kind: hint.rules_of.isoformat() for hint in HINTS.values()}
    measured = {kind: flaw["rules_of"] for kind, flaw in rates["half_of_500"]["flaws"].items()}
    measured |= {"duplicate": rates["copies"]["rules_of"], **rates["network"]["rules_of"]}
    changed = [kind for kind, day in measured.items() if day != today[kind]]
    assert not changed, "run make bench NAME=hints, and change the docs"
    # what cannot be measured again is said to be of earlier rules
    assert rates["unseen"]["rules_of"] == "2026-11-28"
    assert "by the rules of 28 November 2026" in page(repository, "review_figures.md")


def test_the_table_of_rates(rates: dict[str, Any], repository: Path) -> None:
    text = (repository / "docs" / "review_figures.md").read_text()
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines() if line[:2] == "| "]
    table = {KINDS[cells[0]]: list(map(int, cells[1:])) for cells in rows if cells[0] in KINDS}
    assert table == {
        kind: [
            rates["unseen"]["flaws"][kind]["flawed"],
            rates["unseen"]["flaws"][kind]["found"],
            *(rates["half_of_500"]["flaws"][kind][name] for name in ("flawed", "found", "false")),
        ]
        for kind in KINDS.values()
    }


def test_the_table_of_planted_flaws(rates: dict[str, Any], repository: Path) -> None:
    planted = rates["planted"]
    text = (repository / "docs" / "review_figures.md").read_text()
    rows = re.findall(r"^\| (.+) \| (\d+) of (\d+) \|$", text, re.MULTILINE)
    assert {name: int(found) for name, found, _ in rows} == planted["found"]
    assert {int(count) for _, _, count in rows} == {planted["photographs"]} == {25}


def test_the_rates_in_sentences(rates: dict[str, Any], repository: Path) -> None:
    unseen = rates["unseen"]
    half = rates["half_of_500"]
    copies = rates["copies"]
    flaws = {kind: f"{each['found']} of {each['flawed']}" for kind, each in unseen["flaws"].items()}
    figures = page(repository, "review_figures.md")
    assert f"Of {unseen['clean']} unseen photographs without a flaw {unseen['clean_hinted']} had a hint" in figures
    assert f"{half['clean_hinted']} of {half['clean']} in that half" in figures
    assert f"of {copies['pairs']:,} pairs of different photographs it takes {copies['wrong']} for one image" in figures
    for name in ("hints.md", "../README.md"):
        text = page(repository, name)
        assert f"hints found {flaws['text']} texts, {flaws['border']} borders and {flaws['collage']} collages" in text
    assert f"marked {unseen['clean_hinted']} of {unseen['clean']} without a flaw" in page(repository, "../README.md")
    network = rates["network"]
    filters, collages = (network["flaws"][kind] for kind in ("filter", "collage"))
    by_rules = network["found_by_rules"]
    assert (
        f"finds {filters['found']} of {filters['flawed']} filters and {collages['found']} of {collages['flawed']} "
        f"collages, the rules {by_rules['filter']} and {by_rules['collage']} "
    ) in figures


def test_the_table_next_to_other_tools(rates: dict[str, Any], repository: Path) -> None:
    parts = [rates["copies"], rates["peers"]["fastdup"], rates["peers"]["imagededup"]]
    assert rates["copies"]["photographs"] == rates["peers"]["photographs"] == 500
    assert [each["wrong"] for each in parts] == [0, 0, 0]
    expected = [
        f"| {share} % of each side{words} | {' | '.join(str(each[key][name]) for each in parts)} |"
        for key, words in (("found_by_share", ""), ("mirrored_by_share", ", mirrored"))
        for share, name in ((5, "0.05"), (12, "0.12"), (20, "0.2"))
    ]
    text = (repository / "docs" / "other_tools.md").read_text()
    assert re.findall(r"^\| \d+ % of each side.*$", text, re.MULTILINE) == expected
    text = (repository / "README.md").read_text()
    rows = [each.replace(" of each side", "") for each in (*expected[:3], expected[4])]
    assert re.findall(r"^\| \d+ %.*$", text, re.MULTILINE) == rows
