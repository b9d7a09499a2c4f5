"""The states of a participant: every event in every state, and what people find by reload, Back, and in another tab."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from playwright.sync_api import Browser, Page

from cleanset.studies.realness.participants import MOVES, STATES, Event, Participant, State
from cleanset.studies.realness.study_server import PageVisit, ServeSettings, StudyServer
from tests.browser_tab import PATIENCE, Server
from tests.studies.realness.conftest import ANSWERABLE, command, rows
from tests.studies.realness.test_serving import give, key_of, opened, restarted

EXAMPLE = "https://example.org"
ENDS = ("completion", "expired", "refused", "declined", "screened_out")
SETTINGS = ",".join(f"{name}={EXAMPLE}/{name}" for name in ENDS)
ADDRESSED = ServeSettings(
    completion=f"{EXAMPLE}/completion",
    expired=f"{EXAMPLE}/expired",
    refused=f"{EXAMPLE}/refused",
    declined=f"{EXAMPLE}/declined",
    screened_out=f"{EXAMPLE}/screened_out",
)
PARTS = "revision=yes,min_correct_pairs=1,real=1,modified=1,attention=0,pairs=1"
TRIALS = 3


@pytest.fixture(scope="module")
def revisable(export_folder: Path, attacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan of three trials with a screening, in which people change their answers until they finish."""
    out = tmp_path_factory.mktemp("revisable") / "plan"
    plan = ("plan", "--set", export_folder, "--attacked", attacked, "--out", out, "--people", "40")
    command(*plan, "--settings", PARTS, "--seed", "3")
    return out


@pytest.fixture
def plan(revisable: Path, tmp_path: Path) -> Path:
    return shutil.copytree(revisable, tmp_path / "plan")


def in_state(state: State) -> Participant:
    return Participant("ada", "key", "person", number=1, active=0.0, state=state)


def test_an_event_that_a_state_does_not_know_changes_nothing() -> None:
    assert set(STATES) == set(get_args(State))
    assert {state for state, _ in MOVES} | set(MOVES.values()) == set(STATES)  # each is left, or reached
    for state in STATES:
        for event in get_args(Event):
            one = in_state(state)
            one.move(event)
            assert one.state == MOVES.get((state, event), state)
    assert {state for state, rule in STATES.items() if rule.page == "end"} == {"complete", "expired", "refused"}


def correct(plan: Path, page: dict[str, Any]) -> int:
    """The choice that passes the pair."""
    expected = {row["stimulus"]: row["expected"] for row in rows(plan / "key.csv")}
    return ("left", "right").index(expected[page["trials"][0]["stimulus"]])


def reach(server: StudyServer, state: State) -> dict[str, Any]:
    """What ada is given when she begins; then she comes into a state."""
    page = opened(server, "ada")
    choice = correct(server.plan, page)
    given = {"begun": 1, "expired": 1, "refused": 1, "answered": TRIALS, "complete": TRIALS}[state]
    for position in range(1, given + 1):
        give(server, page, position, choice if position == 1 and state != "refused" else 1 - choice)
    if state == "complete":
        server.visit(PageVisit(id="ada", key=key_of("ada"), event="finishes"))
    if state == "expired":
        server._by_key[page["key"]].active -= 3600 * 2
        for name in map(str, range(40)):
            opened(server, name)
    return page


@pytest.mark.parametrize("state", ["begun", "answered", "complete", "expired", "refused"])
def test_each_way_back_and_late_answers_keep_the_state(plan: Path, state: State) -> None:
    """Opened again, from another tab that has not heard of it, finished from there, and after a restart."""
    server = StudyServer(plan, ADDRESSED)
    page = reach(server, state)
    rule = STATES[state]
    saved = {path: path.read_bytes() for path in (plan / "answers").iterdir()}
    again: list[dict[str, Any]] = [opened(server, "ada"), server.visit(PageVisit(key=page["key"]))]
    if state != "answered":
        again.append(server.visit(PageVisit(id="ada", key=page["key"], event="finishes")))
    if rule.page == "end":
        late = give(server, page, 2, 2)
        assert late is not None
        again.append(late)
        assert {path: path.read_bytes() for path in (plan / "answers").iterdir()} == saved
    if state != "expired":  # after a restart the time of absence begins by the files' times
        again.append(opened(restarted(server), "ada"))
    assert {each["state"] for each in again} == {state}
    address = {"complete": "completion", "expired": "expired", "refused": "screened_out"}.get(state)
    assert {each.get("address") for each in again} == {address and f"{EXAMPLE}/{address}"}


@pytest.fixture(scope="module")
def served(revisable: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Server]]:
    plan = shutil.copytree(revisable, tmp_path_factory.mktemp("states") / "plan")
    (plan.parent / "consent.html").write_text("<h1>Consent</h1>")
    settings = f"consent=../consent.html,people=30,{SETTINGS}"
    server = Server(plan, "study", "serve", "--plan", ".", "--port", "0", "--settings", settings)
    yield plan, server
    server.kill()


def press(page: Page, choice: int) -> None:
    page.wait_for_selector(ANSWERABLE)
    before = page.inner_text("main")
    page.keyboard.press(str(choice + 1))
    page.wait_for_function("before => document.querySelector('main').innerText !== before", arg=before)


def walk(page: Page, plan: Path, state: str) -> None:
    """Come into a state as a person does."""
    if state == "looking":
        return
    page.get_by_role("button", name="I do not agree" if state == "declined" else "I agree", exact=True).click()
    if state == "declined":
        return
    page.get_by_role("button", name="Begin").click()
    page.locator(".progress").wait_for()
    *_, person = rows(plan / "people.csv")
    pair = next(row for row in rows(plan / "trials.csv") if (row["list"], row["position"]) == (person["list"], "1"))
    expected = {row["stimulus"]: row["expected"] for row in rows(plan / "key.csv")}
    right = ("left", "right").index(expected[pair["stimulus"]])
    press(page, 1 - right if state == "refused" else right)
    for _ in range({"answered": 2, "complete": 2}.get(state, 0)):
        press(page, 1)
    if state == "complete":
        page.get_by_role("button", name="Finish").click()


FOUND = {
    "looking": "Consent",
    "declined": "You are not taking part",
    "begun": "Which images are real?",
    "answered": "Which images are real?",
    "complete": "Thank you",
    "refused": "You cannot continue to the main part",
}
AT_ONCE = {**FOUND, "begun": "Was this image modified?", "answered": "All images are rated"}
ADDRESSES = {"complete": "completion", "refused": "screened_out", "declined": "declined"}


@pytest.mark.long
@pytest.mark.parametrize("state", FOUND)
def test_reload_back_and_another_tab(served: tuple[Path, Server], browser: Browser, state: str) -> None:
    plan, server = served
    page = browser.new_context().new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(server.address)
    walk(page, plan, state)
    page.get_by_role("heading", name=AT_ONCE[state]).wait_for()

    def found(at: Page) -> None:
        # nothing is kept of those who decline: they may look again
        at.get_by_role("heading", name="Consent" if state == "declined" else FOUND[state]).wait_for()
        if state in ("begun", "answered"):
            at.get_by_role("button", name="Continue").click()
            at.get_by_role("heading", name=AT_ONCE[state]).wait_for()
        if state == "answered":
            at.get_by_role("button", name="Back").wait_for()
        links = at.locator("main a").evaluate_all("all => all.map(each => each.href)")
        expected = [] if state == "declined" else [f"{EXAMPLE}/{ADDRESSES[state]}"] if state in ADDRESSES else []
        assert links == expected

    page.reload()
    found(page)
    page.goto("about:blank")
    page.go_back()
    found(page)
    other = page.context.new_page()
    other.goto(server.address)
    found(other)


@pytest.mark.long
def test_an_answer_finds_out_that_the_time_is_over(revisable: Path, tmp_path: Path, browser: Browser) -> None:
    plan = shutil.copytree(revisable, tmp_path / "plan")
    (tmp_path / "consent.html").write_text("<h1>Consent</h1>")
    settings = f"consent=../consent.html,people=1,minutes=0.05,{SETTINGS}"
    server = Server(plan, "study", "serve", "--plan", ".", "--port", "0", "--settings", settings)
    try:
        one, other = (browser.new_context().new_page() for _ in range(2))
        one.goto(server.address)
        walk(one, plan, "begun")
        one.wait_for_selector(ANSWERABLE)
        one.wait_for_timeout(3500)
        other.goto(server.address)
        other.get_by_role("button", name="I agree").click()
        other.get_by_role("button", name="Begin").click()
        other.locator(".progress").wait_for()
        one.keyboard.press("2")

        def is_expired(at: Page) -> None:
            at.get_by_role("heading", name="Your time has run out").wait_for()
            assert at.locator("main a").get_attribute("href") == f"{EXAMPLE}/expired"
            assert at.locator("main a").count() == 1
            assert not at.locator(".error").count()

        is_expired(one)
        one.reload()
        is_expired(one)
        one.goto("about:blank")
        one.go_back()
        is_expired(one)
        again = one.context.new_page()
        again.goto(server.address)
        is_expired(again)
    finally:
        server.kill()
