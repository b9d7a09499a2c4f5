"""A participant's states, each end's address, who is refused in which words, and where a browser keeps its key."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from playwright.sync_api import Browser, BrowserContext, Page

from cleanset.errors import CleansetError
from cleanset.studies.realness.participants import (
    EndAddresses,
    Refusal,
    id_refusal,
)
from cleanset.studies.realness.plan_files import USUAL_TEXTS
from cleanset.studies.realness.ratings import parse_key, read_ratings
from cleanset.studies.realness.study_server import PageVisit, ServeSettings, StudyServer
from tests.browser_tab import PATIENCE, Server
from tests.studies.realness.conftest import ANSWERABLE, rows
from tests.studies.realness.test_serving import complete, give, opened, restarted

EXAMPLE = "https://example.org"


def test_each_refusal_has_words() -> None:
    texts = yaml.safe_load(USUAL_TEXTS.read_text())
    for refusal in get_args(Refusal):
        title, message = texts[refusal]
        assert title
        assert message


def test_each_end_has_an_address(plan: Path) -> None:
    settings = ServeSettings(
        people=1,
        minutes=0.001,  # 60 ms
        completion=f"{EXAMPLE}/completion",
        expired=f"{EXAMPLE}/expired",
        refused=f"{EXAMPLE}/refused",
        declined=f"{EXAMPLE}/declined",
        full=f"{EXAMPLE}/full",
    )
    server = StudyServer(plan, settings)
    assert server.visit(PageVisit(id="{{%ID%}}"))["address"] == f"{EXAMPLE}/refused"
    assert "declined" not in server.visit(PageVisit())  # before they have declined
    assert server.visit(PageVisit(event="declines"))["address"] == f"{EXAMPLE}/declined"
    first = opened(server, "ada")
    give(server, first, 1)
    time.sleep(0.1)
    complete(server, "ben")
    assert opened(server, "ada") == {"state": "expired", "text": "expired", "address": f"{EXAMPLE}/expired"}
    assert opened(server, "ben")["address"] == f"{EXAMPLE}/completion"
    full = opened(server, "cy")
    assert (full["state"], full["text"], full["address"]) == ("refused", "full", f"{EXAMPLE}/full")


def test_addresses_of_refusals_that_have_none_of_their_own() -> None:
    some = EndAddresses(refused=f"{EXAMPLE}/no", full=f"{EXAMPLE}/full")
    found = {refusal: some.of_refusal(refusal) for refusal in get_args(Refusal)}
    assert found.pop("elsewhere") is None  # they may still finish there
    assert {found.pop("full"), found.pop("taken")} == {f"{EXAMPLE}/full"}
    assert set(found.values()) == {f"{EXAMPLE}/no"}


def test_who_looks_takes_no_place(plan: Path) -> None:
    server = StudyServer(plan, ServeSettings(people=2))
    for number in range(5):
        assert server.visit(PageVisit(id=f"looks{number}"))["state"] == "looking"
    assert [opened(server, name)["state"] for name in ("ada", "ben", "cy")] == ["begun", "begun", "refused"]


@pytest.mark.parametrize("identity", ["anna@uni.de", "José", "anna b", "अनिता", "-_.x", "x" * 64, "a+b"])
def test_ids_that_are_kept(plan: Path, identity: str) -> None:
    for settings in (ServeSettings(), ServeSettings(id_parameter="PROLIFIC_PID")):
        server = StudyServer(plan, settings)
        assert opened(server, identity)["state"] == "begun"
        assert {row["id"] for row in rows(plan / "people.csv")} == {identity}
        assert opened(restarted(server, settings), identity)["state"] == "begun"
        server.close()


def test_one_id_in_two_forms_is_one_person(plan: Path) -> None:
    server = StudyServer(plan)
    opened(server, "José")
    assert server.visit(PageVisit(id=" Jose\N{COMBINING ACUTE ACCENT} "))["text"] == "elsewhere"


@pytest.mark.parametrize(
    ("identity", "refusal"),
    [
        ("{{%PROLIFIC_PID%}}", "unfilled_id"),
        ("${e://Field/ID}", "unfilled_id"),
        ("[ID]", "unfilled_id"),
        ("<b>", "unfilled_id"),
        ("x" * 65, "unusable_id"),
        ("a/b", "unusable_id"),
        ("a\N{ZERO WIDTH SPACE}b", "unusable_id"),
        ("\N{GRINNING FACE}", "unusable_id"),
    ],
)
def test_ids_that_are_refused_in_words(plan: Path, identity: str, refusal: str) -> None:
    assert id_refusal(identity) == refusal
    for settings in (ServeSettings(), ServeSettings(id_parameter="PROLIFIC_PID")):
        server = StudyServer(plan, settings)
        for event in ("opens", "begins"):
            found = server.visit(PageVisit(id=identity, event=event))
            assert (found["state"], found["text"], found["id"]) == ("refused", refusal, identity)
        server.close()
    assert not (plan / "people.csv").read_text()


def test_a_list_of_ids_as_windows_writes_it(plan: Path, tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_bytes("\ufeffanna b\r\nJosé\r\n".encode())
    server = StudyServer(plan, ServeSettings(ids=tmp_path / "ids.txt"))
    assert [opened(server, name)["state"] for name in ("anna b", "José", "anna")] == ["begun", "begun", "refused"]


def test_one_key_in_two_studies_has_two_pseudonyms(planned: Path, plan: Path) -> None:
    """And a browser's place for its key is another one, even for a copy of the same plan."""
    server = StudyServer(plan)
    opened(server, "ada")
    (row,) = rows(plan / "people.csv")
    place = server.study_id
    assert restarted(server).study_id == place
    server.close()
    (plan / "people.csv").unlink()
    again = StudyServer(plan)
    opened(again, "ada")
    (other,) = rows(plan / "people.csv")
    assert (row["key"], row["id"], row["list"]) == (other["key"], other["id"], other["list"])
    assert row["person"] != other["person"]
    assert place != again.study_id
    again.close()
    (plan / "study_id").write_text("x")
    with pytest.raises(CleansetError, match=r"study_id: 'x'; expected 32 hexadecimal digits"):
        StudyServer(plan)


@pytest.fixture
def serving(plan: Path) -> Iterator[Server]:
    found = Server(plan, "study", "serve", "--plan", ".", "--port", "0", "--settings", "people=3")
    yield found
    found.kill()


@pytest.fixture
def browsers(browser: Browser) -> Iterator[list[BrowserContext]]:
    """Two people's."""
    found = [browser.new_context(), browser.new_context()]
    yield found
    for each in found:
        each.close()


def visit(context: BrowserContext, address: str) -> Page:
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(address)
    return page


def answer(page: Page, trials: int, start: str = "Begin") -> None:
    page.get_by_role("button", name=start).click()
    for _ in range(trials):
        page.wait_for_selector(ANSWERABLE)
        before = page.inner_text(".progress").split(" ")[0]
        page.keyboard.press("1")
        page.locator(".progress", has_text=f"{int(before) + 1} of 12").wait_for()


def counts(plan: Path) -> list[int]:
    return sorted(len(rows(file)) for file in (plan / "answers").iterdir())


@pytest.mark.long
def test_a_copied_address_begins_again(serving: Server, plan: Path, browsers: list[BrowserContext]) -> None:
    mine, friends = browsers
    page = visit(mine, serving.address)
    answer(page, 3)
    friend = visit(friends, serving.address)
    friend.goto(page.url)
    answer(friend, 2)
    assert counts(plan) == [2, 3]
    assert len({row["person"] for row in rows(plan / "people.csv")}) == 2
    again = visit(mine, serving.address)
    answer(again, 1, "Continue")
    assert counts(plan) == [2, 4]


@pytest.mark.long
def test_two_people_at_one_browser(serving: Server, plan: Path, browsers: list[BrowserContext]) -> None:
    page = visit(browsers[0], serving.address)
    answer(page, 2)
    page.reload()
    page.get_by_role("button", name="I am someone else").click()
    answer(page, 1)
    assert counts(plan) == [1, 2]


@pytest.mark.long
def test_a_browser_that_keeps_nothing(serving: Server, plan: Path, browsers: list[BrowserContext]) -> None:
    browsers[0].add_init_script(
        "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('no', 'SecurityError'); }})"
    )
    page = visit(browsers[0], serving.address)
    answer(page, 2)
    page.reload()
    answer(page, 1, "Continue")
    assert counts(plan) == [3]
    assert "key" not in page.url


@pytest.mark.long
def test_a_link_of_the_organizers_with_a_key(serving: Server, plan: Path, browsers: list[BrowserContext]) -> None:
    mine, others = browsers
    answer(visit(mine, serving.link("person=anna@uni.de")), 2)
    (row,) = rows(plan / "people.csv")
    assert row["id"] == "anna@uni.de"
    page = visit(others, serving.link(f"person=anna@uni.de&key={row['key']}"))
    answer(page, 1, "Continue")
    assert counts(plan) == [3]
    assert page.url.endswith("?person=anna%40uni.de")


@pytest.mark.long
def test_a_key_that_the_study_does_not_know_is_nobodys(
    serving: Server, plan: Path, browsers: list[BrowserContext]
) -> None:
    """Such as that of an earlier study, in a link that several people have."""
    for each in browsers:
        answer(visit(each, serving.link(f"key={'0' * 32}")), 1)
    assert counts(plan) == [1, 1]
    assert "0" * 32 not in (plan / "people.csv").read_text()


@pytest.mark.long
def test_the_page_says_what_is_wrong_with_an_id(serving: Server, browsers: list[BrowserContext]) -> None:
    for query, words in (
        ("{{%25PROLIFIC_PID%25}}", 'The link has "{{%PROLIFIC_PID%}}" where your id should be'),
        ("%3Cb%3E", 'The link has "<b>" where your id should be'),
        ("x" * 300, "This participant id cannot be used"),
    ):
        page = visit(browsers[0], serving.link(f"person={query}"))
        page.get_by_text(words).wait_for()
        assert page.locator("main b").count() == 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("identity", "expected", "cell"),
    [
        pytest.param("anna@uni.de", "anna@uni.de", "anna@uni.de", marks=pytest.mark.exhaustive),
        pytest.param("Jose%CC%81 b", "José b", "José b", marks=pytest.mark.exhaustive),
        ("%40anna", "@anna", "'@anna"),
        ("-1", "-1", "-1"),
    ],
)
def test_a_page_from_the_disk_keeps_ids(
    planned: Path, browsers: list[BrowserContext], identity: str, expected: str, cell: str
) -> None:
    """In the file, no id begins as a formula does."""
    page = visit(browsers[0], (planned / "page" / "index.html").resolve().as_uri() + f"?list=1&person={identity}")
    with page.expect_download() as download:
        answer(page, 11)
        page.wait_for_selector(ANSWERABLE)
        page.keyboard.press("1")
    assert download.value.suggested_filename == f"answers-1-{expected}.csv"
    text = Path(download.value.path()).read_text()
    assert {line.partition(",")[0] for line in text.splitlines()} == {"person", cell}
    key = parse_key((planned / "key.csv").read_text(), "key.csv")
    assert {each.person for each in read_ratings({f"answers-1-{expected}": text}, key).answers} == {expected}


def test_a_page_from_the_disk_refuses_ids(planned: Path, browsers: list[BrowserContext]) -> None:
    for identity, words in (("{{%25ID%25}}", '"{{%ID%}}" where your id should be'), ("a/b", 'The link has "a/b".')):
        address = (planned / "page" / "index.html").resolve().as_uri() + f"?list=1&person={identity}"
        visit(browsers[0], address).get_by_text(words).wait_for()


def _replies(page: Page, status: int) -> dict[str, Any]:
    return {"status": status, "content_type": "text/html", "body": "<html><h1>nginx</h1></html>"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("status", "words"), [(429, "The study is busy"), (503, "The study is busy"), (502, "No connection to the study.")]
)
def test_a_newcomer_hears_what_a_proxy_says(
    serving: Server, browsers: list[BrowserContext], status: int, words: str
) -> None:
    page = browsers[0].new_page()
    page.route("**/visit", lambda route: route.fulfill(**_replies(page, status)))
    page.goto(serving.address)
    page.get_by_text(words).wait_for()
    assert "answer" not in page.inner_text("main")
    page.unroute_all()
    page.get_by_role("button", name="Begin").wait_for(timeout=PATIENCE)
    page.route("**/visit", lambda route: route.fulfill(**_replies(page, 404)))
    page.get_by_role("button", name="Begin").click()
    page.get_by_text("HTTP 404").wait_for()
    assert page.inner_text("h1") == "The study could not be opened"


@pytest.mark.parametrize("name", ["people.csv", "answers", "study_id"])
def test_links_of_a_plan(name: str, plan: Path, tmp_path: Path) -> None:
    """Whoever packed it may have put them there, and the files of the user that they lead to would be written to."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "token").write_text("without an end of the line")
    (plan / name).symlink_to(mine if name == "answers" else mine / "token")
    with pytest.raises(CleansetError, match=f"{name}: a symbolic link; expected none where something is written"):
        StudyServer(plan)
    assert (mine / "token").read_text() == "without an end of the line"
    assert [path.name for path in mine.iterdir()] == ["token"]


def test_a_link_in_place_of_answers(plan: Path, tmp_path: Path) -> None:
    mine = tmp_path / "token"
    mine.write_text("a line\nwithout an end")
    (plan / "people.csv").write_text(f"began,id,key,person,list\n1,a,{'0' * 32},{'0' * 16},1\n")
    (plan / "answers").mkdir()
    (plan / "answers" / f"answers-1-{'0' * 16}.csv").symlink_to(mine)
    with pytest.raises(CleansetError, match=r"answers-1-0+\.csv: a symbolic link"):
        StudyServer(plan)
    assert mine.read_text() == "a line\nwithout an end"
