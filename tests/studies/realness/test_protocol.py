"""The protocol of a plan by name, and each of its parts: on the page, in the files, in the analysis."""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, Route

from cleanset.errors import CleansetError
from cleanset.studies.realness.edits import EDITS, is_visible, visibly_edited
from cleanset.studies.realness.participants import Participant
from cleanset.studies.realness.plan import PlanRequest, StudyImage, make_plan
from cleanset.studies.realness.protocol import PROTOCOLS, Protocol, protocol_in_words
from cleanset.studies.realness.ratings import IMAGE_KINDS, View, parse_key, read_ratings, texts_of
from cleanset.studies.realness.study_server import GivenAnswer, ServeSettings, StudyServer
from tests.browser_tab import PATIENCE, Server
from tests.report.pages import violations
from tests.studies.realness.conftest import ANSWERABLE, FITS, command, rows
from tests.studies.realness.test_serving import SEEN, give, opened, restarted

EXAMPLE = "https://example.org"
SMALL = "protocol=as_published,pairs=2,min_correct_pairs=0,plates=0"
Planned = Callable[[str], Path]


@pytest.fixture(scope="module")
def plans(export_folder: Path, attacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Planned:
    """The plan of these settings, made once; to be copied where it is changed."""
    folder = tmp_path_factory.mktemp("protocols")

    def planned(settings: str) -> Path:
        out = folder / f"plan {settings}"
        if not out.exists():
            sized = f"real=4,modified=4,attention=2,pairs=2,{settings}"
            arguments = ("--people", "8", "--seed", "3", "--settings", sized)
            command("plan", "--set", export_folder, "--attacked", attacked, "--out", out, *arguments)
        return out

    return planned


def test_a_protocol_in_words() -> None:
    for name, protocol in PROTOCOLS.items():
        assert protocol_in_words(protocol) == name
    assert protocol_in_words(replace(PROTOCOLS["as_published"], attention=9)) == "as_published, but attention=9"
    assert protocol_in_words(Protocol(attention=7)) == "own, but attention=7"


def test_a_plan_names_its_protocol(plans: Planned, export_folder: Path, attacked: Path, tmp_path: Path) -> None:
    own = json.loads((plans("") / "plan.json").read_text())["protocol"]
    assert (own["scale"], own["revision"], own["attention"], own["pairs"]) == ("surely", False, 2, 2)
    theirs = json.loads((plans(SMALL) / "plan.json").read_text())["protocol"]
    assert (theirs["scale"], theirs["revision"], theirs["pairs"]) == ("definitely", True, 2)
    mixed = json.loads((plans(f"revision=no,{SMALL}") / "plan.json").read_text())["protocol"]
    assert (mixed["scale"], mixed["revision"]) == ("definitely", False)
    with pytest.raises(CleansetError, match="unknown protocol 'theirs'; expected one of own, as_published"):
        command("plan", "--set", export_folder, "--attacked", attacked, "--out", tmp_path / "x", "--settings",
                "protocol=theirs")  # fmt: skip


def test_a_list_of_the_published_protocol() -> None:
    """Six plates, six pairs, and 106 trials, six of them checks that ask for both ends of the scale."""
    images = [StudyImage(kind, f"{kind}{number}", "") for kind in IMAGE_KINDS for number in range(60)]
    wish = PlanRequest(people=3, **asdict(PROTOCOLS["as_published"]))
    for trials in make_plan(images, wish).lists:
        kinds = [each.kind for each in trials]
        assert kinds[:6] == ["plate"] * 6
        kinds = kinds[6:]
        assert kinds[:6] == ["pair"] * 6
        assert Counter(kinds[6:]) == {"image": 100, "attention": 6}
        asked = Counter(each.choose for each in trials if each.kind == "attention")
        assert asked == {"definitely modified": 3, "definitely real": 3}


def test_more_than_one_failed_check_is_out(plans: Planned, tmp_path: Path) -> None:
    plan = shutil.copytree(plans("attention=3"), tmp_path / "plan")
    server = StudyServer(plan)
    for number in range(8):
        answer_all(server, f"p{number}", number, wrong_checks=number % 3)
    server.close()
    text = " ".join(command("analyse", *(plan / "answers").iterdir(), "--plan", plan).split())
    assert "excluded by rule: attention 2, comprehension 0, of 8 people" in text


def test_an_attention_check_has_the_words_of_the_scale(plans: Planned) -> None:
    for settings, words in (
        ("scale=surely", {"surely modified", "surely real"}),
        ("scale=definitely", {"definitely modified", "definitely real"}),
    ):
        trials = rows(plans(settings) / "trials.csv")
        assert {each["choose"] for each in trials if each["kind"] == "attention"} == words


@pytest.fixture
def revised(plans: Planned, tmp_path: Path) -> Path:
    """A plan whose answers may be changed."""
    return shutil.copytree(plans("revision=yes"), tmp_path / "plan")


def change(server: StudyServer, page: dict[str, Any], position: int, answer: str | int) -> None:
    trials = page["trials"]
    server.save(GivenAnswer(key=str(page["key"]), position=position, stimulus=trials[position - 1]["stimulus"],
                            answer=answer, milliseconds=900, view=View(**SEEN), revises=True))  # fmt: skip


def test_answers_that_may_be_changed(revised: Path) -> None:
    server = StudyServer(revised)
    page = opened(server, "ada")
    for position in range(1, 13):
        give(server, page, position)
    change(server, page, 3, 2)
    change(server, page, 3, 2)  # sent twice
    change(server, page, 12, -2)
    with pytest.raises(ValueError, match="Number 1 has already been answered"):
        change(server, page, 1, "left")  # a comprehension pair is not
    with pytest.raises(ValueError, match="answer '99'"):
        change(server, page, 3, 99)
    (file,) = (revised / "answers").iterdir()
    assert [row["position"] for row in rows(file)] == [*map(str, range(1, 13)), "3", "12"]
    again = restarted(server)
    (known,) = again._by_key.values()
    assert isinstance(known, Participant)
    assert (known.state, known.answers[2][1], known.answers[11][1]) == ("answered", "2", "-2")
    key = parse_key((revised / "key.csv").read_text(), "key.csv")
    found = read_ratings(texts_of([file]), key, revision=True)
    assert (len(found.trials), found.revised, found.invalid) == (12, 2, ())
    assert [each.rating for each in found.trials if each.position == "3" and each.kind != "attention"] in ([2], [])
    refused = read_ratings(texts_of([file]), key)
    assert len(refused.invalid) == 2
    assert "twice" in refused.invalid[0]


def test_without_revision_a_changed_answer_is_refused(plans: Planned, tmp_path: Path) -> None:
    server = StudyServer(shutil.copytree(plans(""), tmp_path / "plan"))
    page = opened(server, "ada")
    for position in (1, 2, 3):
        give(server, page, position)
    with pytest.raises(ValueError, match="Number 3 has already been answered"):
        change(server, page, 3, 2)
    server.close()


def test_a_file_of_answers_with_a_gap(revised: Path) -> None:
    server = StudyServer(revised)
    page = opened(server, "ada")
    for position in (1, 2, 3):
        give(server, page, position)
    (file,) = (revised / "answers").iterdir()
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines[:2], lines[3]]))
    with pytest.raises(CleansetError, match="position '3' after 1; restore the file"):
        restarted(server)


def expected(plan: Path) -> dict[str, str]:
    """The correct answer of each stimulus that has one."""
    return {row["stimulus"]: row["expected"] for row in rows(plan / "key.csv")}


def answer_all(
    server: StudyServer, person: str, seed: int, wrong_pairs: int = 0, wrong_checks: int = 0
) -> dict[str, Any]:
    """A person who passes all checks but some, and rates at random; the page that they had."""
    page = opened(server, person)
    right = expected(server.plan)
    ratings = np.random.default_rng(seed).integers(-2, 3, len(page["trials"]))
    for position, trial in enumerate(page["trials"], start=1):
        answer: str | int = int(ratings[position - 1])
        if trial["kind"] == "attention":
            answer = int(right[trial["stimulus"]]) if wrong_checks <= 0 else 0
            wrong_checks -= 1
        elif trial["kind"] == "pair":
            is_wrong = position <= wrong_pairs
            answer = (
                {"left": "right", "right": "left"}[right[trial["stimulus"]]] if is_wrong else right[trial["stimulus"]]
            )
        reply = server.save(GivenAnswer(key=page["key"], position=position, stimulus=trial["stimulus"], answer=answer,
                                        milliseconds=900, view=View(**SEEN)))  # fmt: skip
        if reply is not None:
            return page
    return page


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("", "protocol: own, but attention=2, pairs=2 excluded"),
        ("revision=yes", "protocol: own, but revision=True, attention=2, pairs=2; 1 answers were changed"),
    ],
)
def test_the_analysis_names_the_protocol(plans: Planned, tmp_path: Path, settings: str, words: str) -> None:
    plan = shutil.copytree(plans(settings), tmp_path / "plan")
    server = StudyServer(plan)
    for number in range(8):
        page = answer_all(server, f"p{number}", number)
    if settings:
        trials = page["trials"]
        place = next(place for place, trial in enumerate(trials, start=1) if trial["kind"] == "image")
        known = server._by_key[str(page["key"])]
        change(server, page, place, -2 if known.answers[place - 1][1] != "-2" else 2)
    server.close()
    command("analyse", *(plan / "answers").iterdir(), "--plan", plan, "--out", tmp_path / "out")
    text = " ".join(command("analyse", *(plan / "answers").iterdir(), "--plan", plan).split())
    found = json.loads((tmp_path / "out" / "analysis.json").read_text())
    assert f"protocol: {found['protocol']['name']}" in text
    assert found["revised_answers"]["replaced"] == bool(settings)
    assert words.removesuffix(" excluded") in text


CHECKED = "pairs=3,min_correct_pairs=2"


@pytest.fixture
def checked(plans: Planned, tmp_path: Path) -> Path:
    """A plan in which two of three pairs have to be right."""
    return shutil.copytree(plans(CHECKED), tmp_path / "plan")


def test_who_fails_the_comprehension_check_is_out_before_the_main_part(checked: Path) -> None:
    settings = ServeSettings(people=1, refused=f"{EXAMPLE}/no", screened_out=f"{EXAMPLE}/screened")
    server = StudyServer(checked, settings)
    page = answer_all(server, "ada", 0, wrong_pairs=2)
    known = server._by_key[str(page["key"])]
    assert (known.state, len(known.answers)) == ("refused", 3)
    end = {"state": "refused", "text": "screened_out", "address": f"{EXAMPLE}/screened", "id": "ada"}
    for served in (server, restarted(server)):
        assert opened(served, "ada") == end
        trial = page["trials"][2]["stimulus"]
        for position in (3, 4):  # an answer whose reply was lost, and one of another tab
            given = GivenAnswer(key=str(page["key"]), position=position, stimulus=trial, answer="left",
                                milliseconds=900, view=View(**SEEN))  # fmt: skip
            assert served.save(given) == end
    (file,) = (checked / "answers").iterdir()
    assert len(rows(file)) == 3
    answer_all(served, "ben", 1, wrong_pairs=1)  # the place is free again, and one mistake is allowed
    assert served.complete == 1


def test_the_analysis_allows_what_the_page_allows(checked: Path) -> None:
    server = StudyServer(checked)
    for number in range(8):
        answer_all(server, f"p{number}", number, wrong_pairs=number % 2)
    server.close()
    files = list((checked / "answers").iterdir())
    text = " ".join(command("analyse", *files, "--plan", checked).split())
    assert "comprehension 0, of 8 people" in text
    text = " ".join(command("analyse", *files, "--plan", checked, "--exclude", "comprehension=0").split())
    assert "comprehension 4, of 8 people" in text


def test_more_right_pairs_than_pairs(export_folder: Path, attacked: Path, tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match="min_correct_pairs: 3; expected at most the 2 pairs of a list"):
        command("plan", "--set", export_folder, "--attacked", attacked, "--out", tmp_path / "x", "--people", "8",
                "--settings", "real=4,modified=4,pairs=2,min_correct_pairs=3")  # fmt: skip


@pytest.mark.parametrize("change", ["tiles", "edits"])
def test_one_image_of_a_pair_is_visibly_modified(plans: Planned, change: str) -> None:
    plan = plans(f"pairs=3,pair_change={change}")
    right = expected(plan)
    pairs = {row["stimulus"]: row for row in rows(plan / "trials.csv") if row["kind"] == "pair"}
    assert len(pairs) >= 5
    for stimulus, row in pairs.items():
        left, right_one = (Image.open(plan / "page" / "images" / row[name]) for name in ("file", "file_right"))
        plain, modified = (right_one, left) if right[stimulus] == "left" else (left, right_one)
        assert is_visible(plain, modified)
        # tiles with negatives move whole areas; an edit leaves the scene unchanged
        moved = np.corrcoef(np.asarray(plain.convert("L")).ravel(), np.asarray(modified.convert("L")).ravel())[0, 1]
        assert (moved > 0.6) == (change == "edits")


def test_edits_show_in_grey_and_even_images() -> None:
    """If one does not, the next one is taken."""
    ramp = Image.fromarray(np.tile(np.arange(64, dtype=np.uint8) * 2 + 60, (64, 1))).convert("RGB")
    assert not is_visible(ramp, EDITS["grey"](ramp, 0))
    for image in (ramp, Image.new("RGB", (64, 64), (120, 120, 120)), Image.new("RGB", (40, 40), (250, 10, 10))):
        for number in range(len(EDITS)):
            edited = visibly_edited(image, number, seed=5)
            assert is_visible(image, edited)
            assert edited.tobytes() == visibly_edited(image, number, seed=5).tobytes()


def test_examples_explain_what_modified_means(plans: Planned) -> None:
    plan = plans("explanation=examples,real=3")
    names = json.loads((plan / "plan.json").read_text())["examples"]
    plain, *edited = (Image.open(plan / "page" / "images" / name) for name in names)
    for name, image in zip(EDITS, edited, strict=True):
        assert image.tobytes() == EDITS[name](plain, 3).tobytes()
    assert json.loads((plans("") / "plan.json").read_text())["examples"] == []


def test_the_image_of_the_examples_is_one_that_nobody_rates() -> None:
    images = [StudyImage(kind, f"{kind}{number}", "") for kind in IMAGE_KINDS for number in range(40)]
    wish = PlanRequest(people=3, real=10, modified=10, explanation="examples", pairs=2)
    made = make_plan(images, wish)
    assert made.example is not None
    shown = {each.stimulus for trials in made.lists for each in trials}
    assert made.stimulus(made.example) not in shown
    assert made.example not in [pair.image for pair in made.pairs]


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    window = browser.new_page(viewport={"width": 1280, "height": 800})
    window.set_default_timeout(PATIENCE)
    yield window
    window.close()


def at(page: Page, position: int) -> None:
    page.locator(".progress", has_text=f"{position} of 12").wait_for()
    page.wait_for_selector(ANSWERABLE)


def answer(page: Page, position: int, key: str) -> None:
    at(page, position)
    page.keyboard.press(key)


def begun(page: Page, plan: Path, answered: int = 0) -> Server:
    """A server of the plan, and its page at the trial after those that are answered."""
    server = Server(plan, "study", "serve", "--plan", ".", "--port", "0")
    page.goto(server.address)
    page.get_by_role("button", name="Begin").click()
    for position in range(1, answered + 1):
        answer(page, position, "2")
    return server


@pytest.mark.long
def test_people_go_back_and_change_an_answer(page: Page, revised: Path) -> None:
    server = begun(page, revised, answered=5)
    at(page, 6)
    page.get_by_role("button", name="Back").click()
    at(page, 5)
    assert page.locator(f"{ANSWERABLE}[aria-pressed=true]").inner_text().startswith("probably modified")
    page.get_by_role("button", name="Back").click()
    answer(page, 4, "5")
    at(page, 5)
    page.get_by_role("button", name="Next").click()
    answer(page, 6, "2")
    page.reload()  # what was given is shown in another visit, too
    page.get_by_role("button", name="Continue").click()
    for position in (7, 6, 5):
        at(page, position)
        page.get_by_role("button", name="Back").click()
    at(page, 4)
    assert page.locator(f"{ANSWERABLE}[aria-pressed=true]").inner_text().startswith("surely real")
    page.get_by_role("button", name="Back").click()
    at(page, 3)
    assert page.get_by_role("button", name="Back").count() == 0  # the pairs are not changed
    for position in range(3, 7):
        at(page, position)
        page.get_by_role("button", name="Next").click()
    for position in range(7, 13):
        answer(page, position, "2")
    page.get_by_role("heading", name="All images are rated").wait_for()
    page.get_by_role("button", name="Back").click()
    answer(page, 12, "1")
    page.get_by_role("button", name="Finish").click()
    page.get_by_role("heading", name="Thank you").wait_for()
    server.kill()
    (file,) = (revised / "answers").iterdir()
    found = [(row["position"], row["answer"]) for row in rows(file)]
    assert found[5] == ("4", "2")
    assert found[-1] == ("12", "-2")
    assert len(found) == 14


WAITING = "#jspsych-html-button-response-btngroup button:disabled"
"""The answers of a trial that was not seen for long enough."""


@pytest.mark.long
def test_who_goes_back_before_an_image_was_seen_answers_the_one_before(page: Page, revised: Path) -> None:
    """Neither the wait of the image that was left counts for it, nor do the two waits begin each other again."""
    server = begun(page, revised, answered=5)
    at(page, 6)
    page.reload()  # so that no trial has been seen
    held: list[Route] = []
    page.route("**/images/*", lambda route: held.append(route))
    page.get_by_role("button", name="Continue").click()
    page.locator(".progress", has_text="6 of 12").wait_for()
    page.wait_for_selector(WAITING)
    page.wait_for_timeout(200)
    first, late = list(held), list[Route]()
    page.get_by_role("button", name="Back").click()
    page.locator(".progress", has_text="5 of 12").wait_for()
    page.wait_for_timeout(200)
    for route in held:
        if route not in first:
            late.append(route)
        else:
            route.continue_()
    page.wait_for_timeout(800)  # the image that was left has arrived, and is there for long enough
    assert late
    assert page.locator(WAITING).count() > 0
    for route in late:
        route.continue_()
    page.unroute("**/images/*")
    answer(page, 5, "4")
    at(page, 6)
    server.kill()
    (file,) = (revised / "answers").iterdir()
    given = rows(file)[-1]
    assert (given["position"], given["answer"]) == ("5", "1")
    assert 300 <= int(given["milliseconds"]) < 60_000


PRESS_AGAIN = """() => new MutationObserver(() => {
  if (window.pressedAgain || !document.querySelector("h1")?.textContent.startsWith("All images")) return;
  window.pressedAgain = true;
  setTimeout(() => dispatchEvent(new KeyboardEvent("keydown", { key: "1", code: "Digit1" })), 50);
}).observe(document.body, { childList: true, subtree: true })"""
"""Presses 1 a moment after the last page has come."""


@pytest.mark.long
def test_a_key_pressed_twice_does_not_finish(page: Page, revised: Path) -> None:
    server = begun(page, revised, answered=11)
    at(page, 12)
    page.evaluate(PRESS_AGAIN)
    page.keyboard.press("1")
    page.get_by_role("heading", name="All images are rated").wait_for()
    page.wait_for_timeout(200)
    assert page.evaluate("window.pressedAgain")
    assert page.get_by_role("button", name="Back").count() == 1
    page.wait_for_selector(ANSWERABLE)
    page.keyboard.press("1")
    page.get_by_role("heading", name="Thank you").wait_for()
    server.kill()


@pytest.mark.long
def test_arrows_of_the_number_pad_answer_nothing(page: Page, revised: Path) -> None:
    """They scroll, without Num Lock; the same keys with it answer."""
    server = begun(page, revised)
    at(page, 1)
    press = "key => dispatchEvent(new KeyboardEvent('keydown', { key, code: 'Numpad2' }))"
    page.evaluate(press, "ArrowDown")
    page.wait_for_timeout(200)
    assert page.locator(".progress", has_text="1 of 12").count() == 1
    page.evaluate(press, "2")
    at(page, 2)
    server.kill()


@pytest.mark.long
@pytest.mark.parametrize("source", ["disk", "server", "own instructions"])
def test_the_first_page_shows_the_examples(page: Page, plans: Planned, tmp_path: Path, source: str) -> None:
    plan = shutil.copytree(plans("explanation=examples"), tmp_path / "plan")
    (tmp_path / "own.html").write_text("<h1>Our own</h1>")
    settings = f"instructions={tmp_path / 'own.html'}" if source == "own instructions" else "people=8"
    server = Server(plan, "study", "serve", "--plan", ".", "--port", "0", "--settings", settings)
    disk = (plan / "page" / "index.html").resolve().as_uri() + "?list=1"
    page.goto(disk if source == "disk" else server.address)
    page.get_by_role("button", name="Begin").wait_for()
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        captions = page.locator(".examples figcaption").all_inner_texts()
        assert captions[0] == "as it was taken"
        assert len(captions) == 5
        page.wait_for_function("[...document.images].every(image => image.complete && image.naturalWidth === 40)")
        boxes = page.locator(".examples img, .examples figcaption").evaluate_all(
            "all => all.map(e => e.getBoundingClientRect()).map(box => [box.top, box.bottom, box.left, box.right])"
        )
        for place, (top, bottom, left, right) in enumerate(boxes):
            others = boxes[place + 1 :]
            assert all(b <= top or t >= bottom or r <= left or x >= right for t, b, x, r in others)
        page.wait_for_function(FITS)
        if source != "disk":  # axe asks for the style sheet again, which a browser refuses of a file
            assert violations(page) == []
    page.get_by_role("button", name="Begin").click()
    page.wait_for_selector(ANSWERABLE)
    assert page.locator(".examples").count() == 0
    server.kill()


@pytest.mark.long
def test_the_page_tells_who_is_screened_out(page: Page, checked: Path) -> None:
    server = Server(checked, "study", "serve", "--plan", ".", "--port", "0", "--settings", f"refused={EXAMPLE}/no")
    right = expected(checked)
    page.goto(server.address)
    page.get_by_text("To continue, you need to get 2 of them right.").wait_for()
    page.get_by_text("paid for your time").wait_for()
    page.get_by_role("button", name="Begin").click()
    page.locator(".progress").wait_for()
    (person,) = rows(checked / "people.csv")
    trials = [row for row in rows(checked / "trials.csv") if row["list"] == person["list"]]
    for position in (1, 2, 3):
        page.locator(".progress", has_text=f"{position} of 13").wait_for()
        page.wait_for_selector(ANSWERABLE)
        page.keyboard.press({"left": "2", "right": "1"}[right[trials[position - 1]["stimulus"]]])
    page.get_by_role("heading", name="You cannot continue to the main part").wait_for()
    page.get_by_text("You will be paid for your time").wait_for()
    assert page.get_by_role("link").get_attribute("href") == f"{EXAMPLE}/no"
    assert violations(page) == []
    page.reload()
    page.get_by_role("heading", name="You cannot continue to the main part").wait_for()
    server.kill()


@pytest.mark.long
def test_the_words_of_the_published_scale(page: Page, plans: Planned) -> None:
    """On the page that is opened from the disk, to the file of answers."""
    plan = plans(f"{SMALL},revision=no")
    page.goto((plan / "page" / "index.html").resolve().as_uri() + "?list=1&person=ada")
    page.get_by_role("button", name="Begin").click()
    for position in (1, 2):
        answer(page, position, "1")
    at(page, 3)
    # on a phone, too, no word of it is broken
    page.add_style_tag(content="button { overflow-wrap: normal !important; hyphens: manual !important; }")
    for width in (1280, 390, 360):
        page.set_viewport_size({"width": width, "height": 844})
        page.wait_for_function(FITS)
        assert page.locator(ANSWERABLE).evaluate_all("all => all.every(e => e.scrollWidth <= e.clientWidth)")
    words = [each.split("\n")[0] for each in page.locator(ANSWERABLE).all_inner_texts()]
    assert words == ["definitely modified", "probably modified", "unsure", "probably real", "definitely real"]
