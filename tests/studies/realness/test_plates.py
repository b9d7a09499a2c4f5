"""Plates of colour vision: read by those who see all colours, and not by those whom they are to detect.

Checked against simulations that the plates were not drawn by, too: linear RGB of Machado, Oliveira and Fernandes,
"A Physiologically-based Model for Simulation of Color Vision Deficiency" (2009), severity 1.0, and of Vienot, Brettel
and Mollon, "Digital video colourmaps for checking the legibility of displays by dichromats" (1999), for sRGB.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Browser

from cleanset.errors import CleansetError
from cleanset.studies.realness.exclusions import ExclusionLimits, exclusions
from cleanset.studies.realness.plates import DEFICIENCIES, PLATE_DIGITS, Deficiency, on_digit, plate, plate_dots
from cleanset.studies.realness.protocol import PROTOCOLS
from cleanset.studies.realness.ratings import View, parse_key, read_ratings
from cleanset.studies.realness.study_server import GivenAnswer, ServeSettings, StudyServer
from tests.browser_tab import PATIENCE, Server
from tests.report.pages import violations
from tests.studies.realness.conftest import ANSWER_HEADER, ANSWERABLE, FITS, VIEW, command, rows
from tests.studies.realness.test_serving import SEEN, opened, restarted

Matrix = NDArray[np.float64]
EXAMPLE = "https://example.org"
NORMAL = np.eye(3)
MACHADO: dict[Deficiency, Matrix] = {
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}
VIENOT: dict[Deficiency, Matrix] = {
    "protan": np.array([[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]]),
    "deutan": np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]]),
}


def lab(colours: NDArray[np.float64], matrix: Matrix) -> NDArray[np.float64]:
    """CIELAB (D65) of sRGB colours, 0 to 255, as somebody with this matrix sees them."""
    encoded = colours / 255
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    seen = (linear @ matrix.T).clip(0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    relative = seen @ to_xyz.T / np.array([0.9505, 1.0, 1.089])
    root = np.where(relative > 0.008856, np.cbrt(relative), 7.787 * relative + 16 / 116)
    light = 116 * root[:, 1] - 16
    return np.stack([light, 500 * (root[:, 0] - root[:, 1]), 200 * (root[:, 1] - root[:, 2])], axis=1)


def contrast(digit: str, deficiency: Deficiency, seed: int, matrix: Matrix) -> float:
    """The difference between the mean colours of digit and ground, in their common standard deviations."""
    dots = plate_dots(digit, deficiency, seed)
    colours = lab(np.array([each.colour for each in dots], np.float64), matrix)
    on = np.array([each.is_digit for each in dots])
    spread = np.sqrt((colours[on].var(axis=0) + colours[~on].var(axis=0)) / 2) + 1
    return float(np.linalg.norm((colours[on].mean(axis=0) - colours[~on].mean(axis=0)) / spread))


@pytest.mark.long
@pytest.mark.parametrize("deficiency", DEFICIENCIES)
@pytest.mark.parametrize("digit", PLATE_DIGITS)
def test_a_plate_separates(digit: str, deficiency: Deficiency) -> None:
    for seed in range(5):
        assert contrast(digit, deficiency, seed, NORMAL) > 5
        assert contrast(digit, deficiency, seed, MACHADO[deficiency]) < 1
        assert contrast(digit, deficiency, seed, VIENOT[deficiency]) < 1


@pytest.mark.long
@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_the_image_of_a_plate_is_read_by_its_colours_alone(deficiency: Deficiency) -> None:
    """A reader that compares each digit's strokes with the ground finds the digit; one who sees less finds nothing."""
    side = 224
    places = (np.arange(side) + 0.5) / side
    across, down = np.meshgrid((places - 0.5) / 0.48, (0.5 - places) / 0.48)
    masks = {
        each: np.array(
            [[on_digit(each, x, y) for x, y in zip(*line, strict=True)] for line in zip(across, down, strict=True)]
        )
        for each in PLATE_DIGITS
    }
    for digit in PLATE_DIGITS:
        pixels = np.asarray(plate(digit, deficiency, (side, side), seed=1)).astype(np.float64)
        is_dot = (np.hypot(across, down) < 0.97) & (pixels.min(axis=2) < 200)
        found = {}
        for who, matrix in (("all", NORMAL), ("few", MACHADO[deficiency])):
            seen = lab(pixels.reshape(-1, 3), matrix).reshape(side, side, 3)
            seen[~is_dot] = 0
            # the hues, without the brightness that each dot has of its own
            scores = {
                each: float(np.linalg.norm(seen[mask & is_dot][:, 1:].mean(0) - seen[~mask & is_dot][:, 1:].mean(0)))
                for each, mask in masks.items()
            }
            found[who] = max(scores, key=lambda each: scores[each]), max(scores.values())
        assert found["all"][0] == digit
        assert found["all"][1] > 30
        assert found["few"][1] < 5


def test_a_plate_is_the_same_for_the_same_seed() -> None:
    assert plate("3", "protan", (128, 96), 4).tobytes() == plate("3", "protan", (128, 96), 4).tobytes()
    assert plate("3", "protan", (128, 96), 4).tobytes() != plate("3", "protan", (128, 96), 5).tobytes()


PLATES = 3


@pytest.fixture(scope="module")
def planned_with_plates(export_folder: Path, attacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("plates") / "plan"
    settings = f"real=4,modified=4,attention=2,pairs=2,plates={PLATES},revision=yes"
    command("plan", "--set", export_folder, "--attacked", attacked, "--out", out, "--people", "8", "--seed", "3",
            "--side", "128", "--settings", settings)  # fmt: skip
    return out


@pytest.fixture
def plan(planned_with_plates: Path, tmp_path: Path) -> Path:
    return shutil.copytree(planned_with_plates, tmp_path / "plan")


def digits(plan: Path) -> dict[str, str]:
    return {row["stimulus"]: row["expected"] for row in rows(plan / "key.csv") if row["kind"] == "plate"}


def test_the_published_protocol_has_plates_for_both_deficiencies(plan: Path) -> None:
    assert PROTOCOLS["as_published"].plates >= 2
    assert len(digits(plan)) == PLATES
    lists = [row for row in rows(plan / "trials.csv") if row["position"] in ("1", "2", "3")]
    assert {row["kind"] for row in lists} == {"plate"}
    assert {row["file"] for row in lists} == {f"{name}.png" for name in digits(plan)}


def test_small_images_have_no_plates(export_folder: Path, attacked: Path, tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match="plates: images of 40 x 40 pixels; expected 96 a side or more"):
        command("plan", "--set", export_folder, "--attacked", attacked, "--out", tmp_path / "x", "--people", "8",
                "--settings", "real=4,modified=4,pairs=2,plates=2")  # fmt: skip


@pytest.mark.parametrize(("wrong", "state"), [(0, "begun"), (1, "refused")])
def test_all_plates_have_to_be_read(plan: Path, wrong: int, state: str) -> None:
    server = StudyServer(plan, ServeSettings(screened_out=f"{EXAMPLE}/screened"))
    page = opened(server, "ada")
    right = digits(plan)

    def read(position: int, *, revises: bool = False) -> dict[str, object] | None:
        stimulus = page["trials"][position - 1]["stimulus"]
        digit = "none" if position <= wrong else right[stimulus]
        return server.save(GivenAnswer(key=page["key"], position=position, stimulus=stimulus, answer=digit,
                                       milliseconds=900, view=View(**SEEN), revises=revises))  # fmt: skip

    replies = [read(position) for position in range(1, PLATES + 1)]
    assert replies[:-1] == [None] * (PLATES - 1)
    found = opened(restarted(server), "ada")
    assert found["state"] == state
    if wrong:
        assert replies[-1] == found
        assert (found["text"], found["address"]) == ("colour_vision", f"{EXAMPLE}/screened")


def test_the_analysis_excludes_who_misreads_a_plate(plan: Path) -> None:
    """As from the page that is opened from the disk, which lets everybody continue."""
    right = digits(plan)
    key = parse_key((plan / "key.csv").read_text(), "key.csv")
    (ada, ben) = (
        "".join(
            f"{who},1,{place},{stimulus},{answer},900,{VIEW}\n"
            for place, (stimulus, answer) in enumerate((right | changed).items(), start=1)
        )
        for who, changed in (("ada", {}), ("ben", {next(iter(right)): "none"}))
    )
    found = exclusions(read_ratings({"answers": ANSWER_HEADER + ada + ben}, key))
    assert found.by_rule["colour_vision"] == ("ben",)
    allowed = exclusions(read_ratings({"answers": ANSWER_HEADER + ada + ben}, key), ExclusionLimits(colour_vision=1))
    assert allowed.by_rule["colour_vision"] == ()


def test_a_plate_is_not_read_again(plan: Path) -> None:
    server = StudyServer(plan)
    page = opened(server, "ada")
    first = page["trials"][0]["stimulus"]
    given = GivenAnswer(key=page["key"], position=1, stimulus=first, answer="none", milliseconds=900,
                        view=View(**SEEN))  # fmt: skip
    server.save(given)
    with pytest.raises(ValueError, match="Number 1 has already been answered"):
        server.save(given.model_copy(update={"answer": "5", "revises": True}))
    with pytest.raises(ValueError, match="answer '0'; expected one of 1, 2"):
        server.save(given.model_copy(update={"answer": "0", "position": 2, "stimulus": page["trials"][1]["stimulus"]}))


@pytest.mark.long
def test_the_page_asks_for_digits_and_tells_who_misses_one(plan: Path, browser: Browser) -> None:
    server = Server(plan, "study", "serve", "--plan", ".", "--port", "0", "--settings", f"refused={EXAMPLE}/no")
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(PATIENCE)
    page.goto(server.address)
    page.get_by_text(f"First you will see {PLATES} plates of dots").wait_for()
    page.get_by_role("button", name="Begin").click()
    page.locator(".progress").wait_for()
    (person,) = rows(plan / "people.csv")
    trials = [row for row in rows(plan / "trials.csv") if row["list"] == person["list"]]
    right = digits(plan)
    for position in range(1, PLATES + 1):
        page.locator(".progress", has_text=f"{position} of 15").wait_for()
        page.wait_for_selector(ANSWERABLE)
        if position == 1:
            for width in (1280, 390):
                page.set_viewport_size({"width": width, "height": 844})
                page.wait_for_function(FITS)
                assert violations(page) == []
                boxes = page.locator(ANSWERABLE).evaluate_all("all => all.map(e => e.getBoundingClientRect().toJSON())")
                assert len(boxes) == 10
                assert min(min(box["width"], box["height"]) for box in boxes) >= 44
        if position < PLATES:
            page.keyboard.press(right[trials[position - 1]["stimulus"]])
        else:
            page.get_by_role("button", name="I see no digit").click()
    page.get_by_role("heading", name="You cannot continue to the main part").wait_for()
    page.get_by_text("This is not a medical diagnosis.").wait_for()
    assert page.get_by_role("link").get_attribute("href") == f"{EXAMPLE}/no"
    server.kill()
    (file,) = (plan / "answers").iterdir()
    assert [row["answer"] for row in rows(file)][-1] == "none"
    page.close()
