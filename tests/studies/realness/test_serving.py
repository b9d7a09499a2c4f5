"""The study's page from a local server: who gets which list, what is kept, and a whole list in a browser."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from starlette.testclient import TestClient

from cleanset.errors import CleansetError
from cleanset.studies.realness.analysing import texts_of
from cleanset.studies.realness.ratings import parse_key, read_ratings
from cleanset.studies.realness.serving import StudyServer, application
from tests.browser_tab import Server
from tests.studies.realness.conftest import rows


@pytest.fixture
def plan(planned: Path, tmp_path: Path) -> Path:
    return shutil.copytree(planned, tmp_path / "plan")


def answers(plan: Path, number: int = 2, person: str = "ada") -> str:
    trials = [each for each in rows(plan / "trials.csv") if each["list"] == str(number)]
    lines = [f"{person},{number},{place},{each['stimulus']},1,900" for place, each in enumerate(trials, start=1)]
    return "\n".join(["person,list,position,stimulus,answer,milliseconds", *lines]) + "\n"


def test_each_gets_the_next_list_that_has_no_answers(plan: Path) -> None:
    server = StudyServer(plan)
    server.save("answers-2-ada.csv", answers(plan))
    assert [server.next_list() for _ in range(9)] == [1, 3, 4, 5, 6, 7, 8, 1, 1]  # again those that were given up
    for number in (1, 3, 4, 5, 6, 7, 8):
        server.save(f"answers-{number}-ben.csv", answers(plan, number, "ben"))
    assert server.next_list() is None
    assert StudyServer(plan).next_list() is None


@pytest.mark.parametrize(
    ("name", "edit", "message"),
    [
        ("answers-9-ada.csv", ("", ""), "of a list of the plan"),
        ("../key.csv", ("", ""), "of a list of the plan"),
        ("answers-2-ada.csv", ("answer,milliseconds", "answer"), "expected the header"),
        ("answers-2-ada.csv", ("ada,2,12,", "ada,2,13,"), "expected all 12 of list 2"),
        ("answers-2-ben.csv", ("", ""), "expected all 12 of list 2"),
    ],
)
def test_what_is_not_kept(plan: Path, name: str, edit: tuple[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StudyServer(plan).save(name, answers(plan).replace(*edit))
    assert not (plan / "answers").exists()


def test_answers_are_never_replaced(plan: Path) -> None:
    server, text = StudyServer(plan), answers(plan)
    path = server.save("answers-2-ada.csv", text)
    server.save("answers-2-ada.csv", text)  # sent twice, as when an answer of the server was lost
    with pytest.raises(ValueError, match="exists with other answers"):
        server.save("answers-2-ada.csv", text.replace(",1,900", ",0,900"))
    assert path.read_text() == text


def test_what_the_server_gives(plan: Path) -> None:
    with TestClient(application(StudyServer(plan))) as client:
        assert str(client.get("/").url).endswith("/?list=1")
        assert client.get("/images/../../key.csv").status_code == 404
        assert client.get("/key.csv").status_code == client.get("/plan.json").status_code == 404
        assert client.get("/lists.js").text.endswith('STUDY.saved_at = "answers";\n')
        assert client.put("/answers/answers-2-ada.csv", content="x" * 2_000_001).status_code == 413
        refused = client.put("/answers/answers-2-ada.csv", content=b"\xff")
        assert (refused.status_code, (plan / "answers").exists()) == (409, False)
        assert client.put("/answers/answers-2-ada.csv", content=answers(plan)).status_code == 204


def test_a_folder_that_is_no_plan(tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match="expected the folder that cleanset study plan wrote"):
        StudyServer(tmp_path)


@pytest.fixture
def address(plan: Path) -> Iterator[str]:
    server = Server(plan, "study", "serve", "--plan", ".", "--port", "0")
    yield server.address
    server.kill()


def test_a_whole_list_in_a_browser(plan: Path, address: str, browser: Browser) -> None:
    """As it is begun and answered, so it is kept; the next person gets the next list."""
    page = browser.new_page()
    page.goto(address)
    assert "Your answers are saved at the end." in page.inner_text("main")
    page.get_by_text("Begin").click()
    for place in range(1, 13):
        page.wait_for_function(
            "place => document.querySelector('.progress').innerText.startsWith(place + ' ')", arg=place
        )
        page.keyboard.press("1")
    page.get_by_text("Your answers are saved.").wait_for()
    (kept,) = (plan / "answers").iterdir()
    assert kept.name.startswith("answers-1-")
    found = read_ratings(texts_of([kept]), parse_key((plan / "key.csv").read_text(), "key.csv"))
    assert [each.rating for each in found.ratings] == [-2] * 8
    page.goto(address)
    assert page.url.endswith("/?list=2")
    page.close()
