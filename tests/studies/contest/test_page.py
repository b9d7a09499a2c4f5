"""The page of a contest: what it shows of literal files, and the sample's in a browser."""

import datetime
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from bs4 import BeautifulSoup
from PIL import Image
from playwright.sync_api import Browser

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.report.thumbnails import PageImage
from cleanset.studies.attacks.results import ATTACKED
from cleanset.studies.attacks.signs import SeenSign
from cleanset.studies.attacks.warnings import WarningRecord
from cleanset.studies.contest.entries import DefenceRun, WarningSign
from cleanset.studies.contest.files import ContestFiles
from cleanset.studies.contest.judging import ControlImage
from cleanset.studies.contest.log import read
from cleanset.studies.contest.log_state import state
from cleanset.studies.contest.page import (
    CardImage,
    ModelWarnings,
    attacked_images,
    contest_page,
    decoded,
    past_standings,
    shown_size,
    write_page,
)
from cleanset.tables import write_table
from tests.report.pages import opened, soup, tables, violations
from tests.studies.contest.made import (
    BIRD,
    FRIDAY,
    JUDGES,
    SECOND_FRIDAY,
    SECOND_SATURDAY,
    UNSURE,
    appeal,
    contest,
    day,
    decision,
    defence,
    first_run,
    history,
    judged,
    rules,
    run,
    sha,
    stake,
    standing,
    submission,
    until,
)
from tests.studies.contest.on_disk import OnDisk, png

LAST = "2027-01-31"
"""The last day of the sample's history."""
DEPICTION = BIRD | {"real": False, "outline": [[0, 0], [50, 0], [50, 50], [0, 50]]}
IMAGES = [submission("red", ["x", "y"]), submission("blue", ["z"], "2026-11-10T12:00:00Z")]
ANSWERS = [
    *judged({"x": BIRD, "y": DEPICTION}),
    *judged({"z": UNSURE}, JUDGES[:2], SECOND_SATURDAY, SECOND_FRIDAY),
]
RUNS = [
    run({"x": "bicycle", "y": "bicycle"}),
    run({"x": "bicycle", "y": "abstain", "z": "abstain"}, date=SECOND_SATURDAY),
]


def files(**others: Any) -> ContestFiles:
    return contest(IMAGES, ANSWERS, RUNS, **others)


def page(found: ContestFiles, on: str = SECOND_SATURDAY, warnings: ModelWarnings | None = None) -> BeautifulSoup:
    images = {sha(name): CardImage(PageImage(f"{name}.jpg", 50, 40)) for name in "xyz"}
    text = contest_page(until(found, day(on)), day(on), images, warnings=warnings or {}, past=history(found, day(on)))
    return BeautifulSoup(text, "html.parser")


def card(shown: BeautifulSoup, name: str) -> str:
    """The text below an image."""
    found = shown.find(id=sha(name))
    assert found is not None
    return " ".join(found.get_text(" ").split())


def test_the_standing_and_its_history() -> None:
    """Staked on the 2nd; the image is final, and the defence broken, seven days after the judges' last answer."""
    found = page(files())
    assert tables(found, "standing")[0][1] == ["gold/wall", "broken", "2026-11-02", FRIDAY, "red 1", ""]
    assert tables(found, "history")[0][1:] == [
        ["2026-11-01", "eligible", "", ""], ["2026-11-02", "staked", "", ""], ["2026-11-14", "broken", "red 1", ""],
    ]  # fmt: skip
    assert [cell["class"] for cell in found.select("#history tr:last-child .status")] == [["status", "bad"]]


def test_each_image_with_its_verdict() -> None:
    found = page(files(appeals=[appeal("y", "red")], decisions=[decision("y", "invalid", recused=["eve"])]))
    text = card(found, "x")
    assert "bird by 3 judges; final since 2026-11-14" in text
    assert f"{sha('x')[:8]} · red, 2026-11-02 · aimed at gold/wall" in text
    assert "gold/wall: bicycle" in text
    rejected = card(found, "y")
    assert "rejected : too small, depiction by the board; final since 2026-11-10" in rejected
    assert "gold/wall: abstains" in rejected  # by its last run
    assert "Appeal of red, 2026-11-09: no bird The board, 2026-11-10: invalid (1 recused) looked at it" in rejected
    waiting = card(found, "z")
    assert "2 of 3 judges open" in waiting
    assert "gold/wall: abstains" in waiting
    wrong = [mark.get_text() for mark in found.select("#images ul.cards b.bad")]
    assert wrong == ["bicycle"]  # that of x: y is rejected, and z not judged yet


def test_the_answers_of_the_judges() -> None:
    """Outline and box as shares of 100 x 100 pixels; nothing of what was not asked."""
    found = page(files())
    row = ["a" * 8, "definitely no", "definitely yes", "81 %", "81 %", "yes", "yes", "yes"]
    rows = tables(found, "images")
    assert rows[0][1] == row
    assert rows[1][1][3:] == ["25 %", "25 %", "yes", "yes", "no"]
    assert rows[2][1][1:] == ["rather no", "rather yes", "–", "–", "–", "–", "–"]


def test_what_was_rejected_and_what_each_rule_says() -> None:
    """A quarter of the image is enough for two of the rules."""
    reasons, sizes = tables(page(files()), "rejected")
    assert reasons[1:] == [["too small", "1", "1"], ["depiction", "0", "1"]]
    assert sizes[1:] == [
        [sha("x")[:8], "bird", "bird", "bird", "bird"],
        [sha("y")[:8], "too small, depiction", "too small, depiction", "depiction", "depiction"],
    ]


def test_a_judge_who_is_left_out_has_no_part_in_what_each_rule_says() -> None:
    """The fourth judge, who sees neither group, has no control correct: the verdict is that of the other three."""
    controls = {sha(f"control {n}"): ControlImage(contains={"bird": True, "bicycle": False}) for n in range(5)}
    (last,) = judged({"x": UNSURE} | {f"control {n}": UNSURE for n in range(5)}, JUDGES[3:4])
    found = page(contest(IMAGES[:1], [*judged(["x"]), last], RUNS[:1], controls=controls))
    sizes = tables(found, "rejected")[-1]
    assert sizes[1:] == [[sha("x")[:8], "bird", "bird", "bird", "bird"]]
    assert "3 judges" in card(found, "x")


def test_the_defences() -> None:
    defences = {
        "gold/wall": defence(),
        "blue/roof": defence(open=False, model={"role": "standard", "confidence": "margin", "threshold": 1.5}),
    }
    steps = first_run().model_copy(update={"coverage": [[6, 0], [7, 1], [9, 1]]})
    runs = [
        steps.model_copy(update={"eligibility": steps.eligibility.model_copy(update={"correct": 8, "mistakes": 1})})
    ]
    found = page(contest(runs=runs, defences=defences, first=False, stakes=[]))
    assert tables(found, "defences")[0][1:] == [
        ["blue/roof", "standard, abstains below margin 1.5, closed", "not run yet", "–"],
        ["gold/wall", "standard, abstains below softmax 0.5", "10", "8", "1", "1", "100", "–"],
    ]
    (chart,) = found.select("#defences svg")
    assert chart["aria-label"] == ("gold/wall: accuracy over coverage on the eligibility list, 89 % at 90 % coverage")
    points = str(chart.select_one("polyline")["points"]).split()  # type: ignore[index]
    assert len(points) == 9
    assert (points[0], points[5], points[6]) == ("57.8,8.0", "186.8,8.0", "212.6,23.7")


def test_warnings_are_shown_where_there_are_some() -> None:
    assert page(files()).select("#warnings, a[href='#warnings']") == []
    found = page(files(), warnings={"standard": [("no_gradient", "8 of 8")], "other": [("no_gradient", "1 of 1")]})
    assert tables(found, "warnings")[0][1:] == [["gold/wall", "no gradient", "8 of 8"]]


def test_a_wrapped_model_has_the_warnings_of_its_runs_alone() -> None:
    """What the study saw is of the model without its wrapper; the last run that looked for signs counts."""
    wrapped = {"role": "standard", "wrapper": "uninteresting", "confidence": "max_logit", "threshold": 0}
    defences = {"gold/wall": defence(), "gold/veil": defence(model=wrapped)}

    def seen(name: str, date: str, *signs: str) -> DefenceRun:
        content = {"signs": [WarningSign(sign=each, text=f"{each} on {date}") for each in signs]}
        return run({}, name, date).model_copy(update=content)

    runs = [
        seen("gold/veil", "2026-11-03", "random_answers", "no_gradient"), seen("gold/wall", "2026-11-03"),
        seen("gold/veil", "2026-11-02", "saturated_answers"), run({}, "gold/veil", "2026-11-04"),
    ]  # fmt: skip
    files = contest(runs=runs, defences=defences)
    found = page(files, warnings={"standard": [("black_box_better", "8 of 8")]})
    assert tables(found, "warnings")[0][1:] == [
        ["gold/veil", "random answers", "random_answers on 2026-11-03"],
        ["gold/veil", "no gradient", "no_gradient on 2026-11-03"],
        ["gold/wall", "black box better", "8 of 8"],
    ]


def test_nobody_is_named() -> None:
    """Members of the board and their conflicts are in no page; what teams write is text."""
    attack = appeal("y", "red").model_copy(update={"statement": "<script>alert(1)</script>"})
    found = files(appeals=[attack], decisions=[decision("y", "invalid", members=["ada"], recused=["eve"])])
    shown = page(found)
    text = shown.get_text()
    assert not any(name in text.split() for name in ("ada", "bob", "eve"))
    assert "<script>alert(1)</script>" in card(shown, "y")
    assert len(shown.select("script")) == 1


def test_an_earlier_day() -> None:
    """Before the Friday nothing is published; an image that was not judged has no row in the table of rules."""
    before = page(files(), "2026-11-05")
    assert "No image is published yet." in before.get_text()
    assert tables(before, "rejected") == []
    on_friday = page(files(), FRIDAY)
    assert [each["id"] for each in on_friday.select(".cards > li")] == sorted([sha("x"), sha("y")])
    assert "0 of 3 judges" in card(on_friday, "x")
    decided = files(decisions=[decision("y", "invalid", "2026-11-10")])
    assert "The board" not in card(page(decided, "2026-11-09"), "y")
    assert "The board" in card(page(decided, "2026-11-10"), "y")


def test_a_void_line_in_the_history(made: OnDisk) -> None:
    """What it makes void counted before."""
    assert made.story[7][1] == "answers"
    made.add("2026-11-16T12:00:00Z", "void", {"lines": [7], "reason": "The wrong image was shown."})
    lines = read(made.folder)
    found = [(str(each.on), each.defences[0].status) for each in past_standings(lines, day("2026-11-20"))]
    assert found[-3:] == [("2026-11-02", "staked"), ("2026-11-14", "broken"), ("2026-11-16", "staked")]


def test_no_day_of_change_is_missed(repository: Path) -> None:
    """Standings day by day, of the sample's contest and of one with more judges and a batch that wins."""
    late = judged({"z": BIRD}, JUDGES, "2026-11-23", SECOND_FRIDAY)
    decisions = [decision("z", None, "2026-11-16", judges=5), decision("y", "invalid", "2026-12-01")]
    short = rules(limits={"unbroken_days": 30})
    last = run({"x": "bird", "y": "bird", "z": "bird"}, date="2026-12-04")
    made = contest(
        IMAGES, [*judged({"x": BIRD, "y": DEPICTION}), *late], [last], decisions=decisions, rules=short,
        stakes=[stake("gold/wall")],
    )  # fmt: skip
    broken = contest(
        IMAGES[:1], judged(["x", "y"]), [run({"x": "bicycle", "y": "bird"})]
    )  # without an entry on that day
    sample = read(repository / "studies" / "contest")
    for pasts, standing_on, expected in (
        (
            past_standings(sample, day(LAST)),
            lambda each: standing(state(sample, each), each),
            ["2026-10-26", "2026-10-30", "2026-11-02", "2026-11-12", "2026-11-14", "2027-01-31"],
        ),
        (
            history(made, day("2026-12-20")),
            lambda each: standing(made, each),
            ["2026-11-01", "2026-11-02", "2026-12-02", "2026-12-04"],
        ),
        (
            history(broken, day("2026-11-30")),
            lambda each: standing(broken, each),
            ["2026-11-01", "2026-11-02", "2026-11-14"],
        ),
    ):
        assert [str(one.on) for one in pasts] == expected
        begin, end = day(expected[0]), day(expected[-1])
        days = [begin + datetime.timedelta(count) for count in range((end - begin).days + 1)]
        states = [
            ([(each.name, each.status, each.waits_for) for each in one.defences], one.attackers, one.defenders)
            for one in map(standing_on, days)
        ]
        changed = [str(each) for each, before, now in zip(days[1:], states, states[1:], strict=False) if before != now]
        assert changed == expected[1:]


def test_the_page_of_the_sample_is_the_committed_one(repository: Path, tmp_path: Path) -> None:
    """The same bytes from the same files, images included, in another place."""
    committed = repository / "studies" / "contest"
    copy = tmp_path / "studies" / "contest"
    shutil.copytree(committed, copy)
    shutil.rmtree(copy / "results" / "page_images")
    (copy / "results" / "page.html").unlink()
    written = write_page(copy, read(copy), day(yaml.safe_load((copy / "params.yaml").read_text())["day"]))
    assert written.read_bytes() == (committed / "results" / "page.html").read_bytes()
    images = sorted((committed / "results" / "page_images").iterdir())
    assert len(images) == 4
    assert [path.name for path in images] == sorted(path.name for path in (copy / "results" / "page_images").iterdir())
    assert all(path.read_bytes() == (copy / "results" / "page_images" / path.name).read_bytes() for path in images)


def test_the_page_of_the_sample(repository: Path) -> None:
    """Its history as in its README; the board's fruit, and both reasons of a rejected image."""
    found = soup(repository / "studies" / "contest" / "results" / "page.html")
    header, *_, last = tables(found, "history")[0]
    states = dict(zip(header, last, strict=True))
    readme = (repository / "studies" / "contest" / "README.md").read_text().splitlines()
    (names,) = ([cell.strip() for cell in line.strip("|").split("|")] for line in readme if line.startswith("| day |"))
    (row,) = (
        [cell.strip() for cell in line.strip("|").split("|")] for line in readme if line.startswith(f"| {last[0]} |")
    )
    assert states | {"defenders' shares": ""} == dict(zip(names, row, strict=True)) | {"defenders' shares": ""}
    verdicts = [" ".join(each.get_text().split()) for each in found.select(".verdict")]
    assert verdicts == ["fruit", "rejected: too small, ambiguous", "fruit", "rejected: too small"]
    assert len(found.select("#defences svg polyline")) == 4
    signs = ["random answers", "saturated answers", "no gradient"]
    assert [row[:2] for row in tables(found, "warnings")[0][1:]] == [["reef/uninteresting", sign] for sign in signs]


@pytest.mark.long
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_in_a_browser(width: int, scheme: Any, repository: Path, browser: Browser) -> None:
    """Without a network, no wider than the window; axe finds nothing, also with the answers of judges open."""
    for _, shown in opened(browser, repository / "studies" / "contest" / "results", width):
        shown.emulate_media(color_scheme=scheme)
        assert shown.evaluate("document.documentElement.scrollWidth") == width
        shown.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true })")
        assert shown.evaluate("document.documentElement.scrollWidth") == width
        assert violations(shown) == []
        shown.locator("a.enlarge").first.click()
        assert shown.get_by_role("dialog").is_visible()


def test_it_is_written_from_the_disk(made: OnDisk) -> None:
    """With the warnings of the study beside it; images that are gone, and a folder of older ones, are not kept."""
    old = made.path("results/page_images/old.jpg")
    made.text(old, "")
    record = made.folder / ".." / "attacks" / "data" / "attack_warnings" / "standard.json"
    seen = SeenSign(sign="random_answers", text="3 of 8")
    made.text(record, WarningRecord(role="standard", images=8, parameters={}, warnings=(seen,)).model_dump_json())
    path = write_page(made.folder, read(made.folder), day("2026-11-14"))
    found = soup(path)
    assert tables(found, "warnings")[0][1] == ["gold/wall", "random answers", "3 of 8"]
    assert [image["src"] for image in found("img")] == [f"page_images/{made.sha256}.jpg"]
    assert [each.name for each in old.parent.iterdir()] == [f"{made.sha256}.jpg"]
    write_page(made.folder, read(made.folder), day("2026-11-05"))  # a day before the image was published
    assert list(old.parent.iterdir()) == []


def test_a_changed_image(made: OnDisk) -> None:
    path = made.image()
    path.write_bytes(png((0, 0, 0)))
    with pytest.raises(CleansetError, match=f"{made.sha256}: SHA-256 .*; expected {made.sha256}: the file has changed"):
        write_page(made.folder, read(made.folder), day("2026-11-14"))
    assert not made.path("results/page.html").exists()
    path.unlink()
    with pytest.raises(CleansetError, match=f"{made.sha256}: missing; expected every file that log.jsonl names"):
        write_page(made.folder, read(made.folder), day("2026-11-14"))


def test_an_image_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match=r"x\.png: cannot be read .*; expected a whole JPEG or PNG"):
        decoded(tmp_path / "x.png", png((0, 0, 0))[:50])


@pytest.mark.parametrize(
    ("size", "expected"),
    [((100, 50), (100, 50)), ((640, 320), (320, 160)), ((320, 4096), (25, 320)), ((4096, 1), (320, 1))],
)
def test_a_small_image_stays_as_it_is(size: tuple[int, int], expected: tuple[int, int]) -> None:
    assert shown_size(Image.new("RGB", size)) == expected


def attack(made: OnDisk, name: str, role: str, png_sha256: str, clean: bytes | None) -> None:
    """A row of the results of an attack, and what the attack none leaves."""
    folder = made.folder / ".." / "attacks" / "data" / "attacks"
    row: dict[str, object] = dict.fromkeys(ATTACKED.names)
    row |= {"file": "n0/a", "image_id": "ILSVRC2012_val_00000007", "png": "images/n0/a.png", "png_sha256": png_sha256}
    row |= {"source_sha256": "4" * 64, "logits_before": [1.0, 0.0], "logits_after": [0.0, 1.0], "notices": []}
    row |= {"was_correct": True, "is_error": True, "ssim": 1.0}
    row |= dict.fromkeys(("class_index", "queries", "l0", "l2", "linf"), 1)
    write_table(folder / name / role / "attacked.parquet", pd.DataFrame([row]), ATTACKED, imagenet())
    if clean is not None:
        path = folder / "none" / role / "images" / "n0" / "a.png"
        path.parent.mkdir(parents=True)
        path.write_bytes(clean)


def test_what_an_attack_made_is_beside_its_clean_image(made: OnDisk) -> None:
    """The submitted image is (200, 0, 0), the clean one (196, 0, 8): 8 at most, which fits fifteen times, so eight."""
    attack(made, "other", "standard", "0" * 64, None)
    attack(made, "pgd", "standard", made.sha256, png((196, 0, 8)))
    path = write_page(made.folder, read(made.folder), day("2026-11-14"))
    found = soup(path).select_one(".cards li.three")
    assert found is not None
    text = " ".join(found.get_text(" ").split())
    assert text.startswith("clean submitted difference × 8 bird by 3 judges")
    assert "Made by the attack pgd on standard, of 00000007" in text
    clean, submitted, difference = (
        np.asarray(Image.open(path.parent / str(image["src"])).convert("RGB"))[50, 50] for image in found("img")
    )
    assert clean.astype(int) == pytest.approx([196, 0, 8], abs=3)
    assert submitted.astype(int) == pytest.approx([200, 0, 0], abs=3)
    assert difference.tolist() == [160, 128, 64]


def test_what_an_attack_made_without_the_clean_image(made: OnDisk) -> None:
    attack(made, "pgd", "standard", made.sha256, None)
    found = soup(write_page(made.folder, read(made.folder), day("2026-11-14")))
    assert "Made by the attack pgd on standard, of 00000007" in found.select_one(".cards").get_text()  # type: ignore[union-attr]
    assert len(found.select(".cards img")) == 1
    assert not found.select(".three")


def test_which_files_an_attack_made(made: OnDisk) -> None:
    """Only those asked for, of the first attack by name, and never what the attack none leaves."""
    attack(made, "pgd", "standard", "1" * 64, None)
    attack(made, "far", "standard", "1" * 64, None)
    attack(made, "far", "other", "2" * 64, None)
    attack(made, "none", "standard", "3" * 64, None)
    found = attacked_images(made.folder / ".." / "attacks", {"1" * 64, "3" * 64})
    assert {key: (each.attack, each.role) for key, each in found.items()} == {"1" * 64: ("far", "standard")}
    assert attacked_images(made.folder / ".." / "elsewhere", {"1" * 64}) == {}


def test_results_of_an_attack_that_cannot_be_read(made: OnDisk) -> None:
    made.text(made.folder / ".." / "attacks" / "data" / "attacks" / "pgd" / "standard" / "attacked.parquet", "x")
    with pytest.raises(CleansetError, match=r"attacked\.parquet: not a Parquet file .*; run dvc checkout"):
        write_page(made.folder, read(made.folder), day("2026-11-14"))


def test_a_flipped_bit_of_an_attacks_table_is_refused(made: OnDisk) -> None:
    attack(made, "pgd", "standard", "1" * 64, None)
    study = made.folder / ".." / "attacks"
    (table,) = study.glob("data/attacks/*/*/attacked.parquet")
    data = bytearray(table.read_bytes())
    data[len(data) // 4] ^= 1
    table.write_bytes(data)
    with pytest.raises(CleansetError, match=r"attacked\.parquet: not a Parquet file"):
        attacked_images(study, {"1" * 64})


def test_a_damaged_clean_image(made: OnDisk) -> None:
    attack(made, "pgd", "standard", made.sha256, png((196, 0, 8))[:60])
    with pytest.raises(CleansetError, match=r"a\.png: cannot be read .*; expected a whole JPEG or PNG"):
        write_page(made.folder, read(made.folder), day("2026-11-14"))


def test_results_that_are_a_link(made: OnDisk, tmp_path: Path) -> None:
    """A clone may lead them to any folder of the user, in which folders would be replaced."""
    (tmp_path / "mine" / "page_images").mkdir(parents=True)
    (tmp_path / "mine" / "page_images" / "photograph").touch()
    (made.folder / "results").symlink_to(tmp_path / "mine")
    with pytest.raises(CleansetError, match="results: a link; expected a file or folder"):
        write_page(made.folder, read(made.folder), day("2026-11-14"))
    assert (tmp_path / "mine" / "page_images" / "photograph").exists()
