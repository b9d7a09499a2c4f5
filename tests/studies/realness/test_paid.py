"""The study's page over the internet, as docs/study_people.md has it: nginx with TLS, browsers that come and go."""

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, StorageState

from tests.browser_tab import PATIENCE, SOURCE, Server
from tests.documents import block, blocks
from tests.forked_commands import forking
from tests.remotes.servers import breaking, free_port, nginx
from tests.report.pages import violations
from tests.studies.realness.conftest import ANSWERABLE, VIEW, rows

BROWSERS = int(os.environ.get("CLEANSET_BROWSERS", "3"))
SERVE = "cleanset study serve --plan build/study --port 8080 --no-browser --public-url https://study.example.org \\"
ANALYSE = "cleanset study analyse build/study/answers/*.csv --plan build/study --out build/analysis"
COMPLETION = "https://app.prolific.com/submissions/complete?cc=CODE"
TRIALS = 12


@dataclass
class Paid:
    """The folder of a study, and its server behind nginx at `origin`."""

    folder: Path
    origin: str
    command: list[str]
    server: Server | None = None

    def start(self) -> None:
        self.server = Server(self.folder, *self.command)
        assert self.server.address == f"{self.origin}/"

    def kill(self) -> None:
        assert self.server is not None
        self.server.kill()

    @property
    def study(self) -> Path:
        return self.folder / "build" / "study"

    def keys(self, number: int) -> list[str]:
        """The keys that a careful person presses, who is mostly right about the images."""
        key = {each["stimulus"]: each for each in rows(self.study / "key.csv")}
        (given,) = (each["list"] for each in rows(self.study / "people.csv") if each["id"] == f"pid{number}")
        keys = []
        for place, trial in enumerate(each for each in rows(self.study / "trials.csv") if each["list"] == given):
            stimulus = key[trial["stimulus"]]
            rating = (-1 if stimulus["kind"] == "modified" else 1) * ((number + place) % 3)
            expected = stimulus["expected"] or str(rating)
            keys.append(str(["left", "right"].index(expected) + 1 if trial["kind"] == "pair" else int(expected) + 3))
        return keys

    def pressed(self) -> dict[str, list[str]]:
        """The keys of the saved answers by the recruiter's id."""
        return {each["id"]: self._pressed(f"answers-{each['list']}-{each['person']}.csv")
                for each in rows(self.study / "people.csv")}  # fmt: skip

    def _pressed(self, name: str) -> list[str]:
        answers = [row["answer"] for row in rows(self.study / "answers" / name)]
        return [str(["left", "right"].index(each) + 1 if each.isalpha() else int(each) + 3) for each in answers]

    def counts(self) -> set[int]:
        """The numbers of answers that people have given."""
        return {len(keys) for keys in self.pressed().values()}


@pytest.fixture
def paid(repository: Path, plan: Path, tmp_path: Path) -> Iterator[Paid]:
    """The commands and the configuration of docs/study_people.md, with ports of this machine."""
    folder = tmp_path / "organiser"
    (folder / "build").mkdir(parents=True)
    shutil.copytree(plan, folder / "build" / "study")
    (folder / "consent.html").write_text("<h1>Consent</h1><p>I take part of my own free will.</p>")
    (configuration,) = blocks(repository, "nginx", "docs/study_people.md")
    port = free_port()
    assert configuration.count("443 ssl") == configuration.count("127.0.0.1:8080") == 1

    def server(public: int) -> str:
        return configuration.replace("443 ssl", f"127.0.0.1:{public} ssl").replace(":8080", f":{port}")

    with nginx(server, tmp_path / "nginx") as proxy:
        text = block(repository, SERVE).replace("8080", str(port)).replace("https://study.example.org", proxy.url)
        command = shlex.split(text.replace("\\\n", "").replace("people=90", f"people={BROWSERS}"))
        found = Paid(folder, proxy.url, command[1:])
        found.start()
        yield found
        found.kill()


class Person:
    """A person at a browser of their own, who rates by keyboard."""

    def __init__(self, browser: Browser, origin: str, number: int) -> None:
        self.browser, self.number, self.link = browser, number, f"{origin}/?PROLIFIC_PID=pid{number}"
        self.given = 0
        self.keys: list[str] = []
        self.kept: StorageState | None = None
        self.context: BrowserContext
        self.page: Page

    def open(self) -> None:
        self.context = self.browser.new_context(ignore_https_errors=True, storage_state=self.kept)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.goto(self.link)

    def close(self) -> None:
        """Close the browser, which keeps what belongs to the study."""
        self.kept = self.context.storage_state()
        self.context.close()

    def start(self, label: str) -> None:
        self.page.get_by_role("button", name=label).click()
        self.shown()

    def shown(self) -> None:
        """The trial after those answered is there."""
        text = f"{self.given + 1} of {TRIALS}"
        self.page.wait_for_function(
            f"document.querySelector('.progress')?.innerText.startsWith('{text} ')", timeout=PATIENCE
        )
        self.page.wait_for_selector(ANSWERABLE, timeout=PATIENCE)

    def press(self) -> None:
        self.page.keyboard.press(self.keys[self.given])
        self.given += 1

    def answer(self) -> None:
        self.press()
        if self.given < TRIALS:
            self.shown()

    def answer_all(self) -> None:
        while self.given < TRIALS:
            self.answer()


@pytest.mark.exhaustive
def test_a_study_with_closed_tabs_and_a_killed_server(paid: Paid, browser: Browser, repository: Path) -> None:
    people = [Person(browser, paid.origin, number) for number in range(BROWSERS)]
    for each in people:
        each.open()
        each.page.get_by_text("of my own free will").wait_for()
        each.page.get_by_role("button", name="I agree").click()
        each.start("Begin")
        each.keys = paid.keys(each.number)
    leaving, staying = people[: max(BROWSERS // 3, 1)], people[max(BROWSERS // 3, 1) :]
    for _ in range(5):
        for each in people:
            each.answer()
    for each in leaving:
        each.close()
    assert paid.counts() == {5}
    paid.kill()
    for each in staying:
        each.press()
    staying[0].page.get_by_text("No connection.").wait_for()
    paid.start()
    for each in staying:
        each.shown()
        each.page.reload()
        each.start("Continue")
    assert paid.counts() == {5, 6}
    for each in leaving:
        each.open()
        each.start("Continue")  # the sixth trial, without another consent
    for each in people:
        each.answer_all()
        assert each.page.get_by_text("Return and complete the study").get_attribute("href") == COMPLETION
    assert violations(people[0].page) == []
    for each in people:
        each.close()
    late = Person(browser, paid.origin, BROWSERS)
    late.open()
    late.page.get_by_text("The study is complete").wait_for()
    late.close()
    assert paid.pressed() == {f"pid{each.number}": each.keys for each in people}
    analyse(paid, block(repository, ANALYSE))


def analyse(paid: Paid, commands: str) -> None:
    """All answers are analysed, despite one damaged row."""
    first = min((paid.study / "answers").iterdir())
    with first.open("a") as damaged:
        damaged.write(f"x,1,3,{rows(first)[2]['stimulus']},99,5,{VIEW}\n")
    done = subprocess.run(
        ["bash", "-e"], input=commands, capture_output=True, text=True, check=False,
        cwd=paid.folder, env=os.environ | forking(SOURCE),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    text = " ".join(done.stdout.split())
    assert f"{BROWSERS} people, 12 images, {8 * BROWSERS} ratings" in text
    assert "rows left out because they are not valid: 1; the first: answers-" in text
    assert "answer: '99'; expected one of" in text


def test_made_up_ids_do_not_fill_the_places_at_once(paid: Paid, browser: Browser) -> None:
    """By the limit of nginx: 20 at once, then one in three seconds; the page asks again meanwhile."""
    context = browser.new_context(ignore_https_errors=True)
    began = time.monotonic()
    status = [
        context.request.post(f"{paid.origin}/visit", data={"id": f"made-up-{number}", "event": "begins"}).status
        for number in range(60)
    ]
    assert status.count(200) <= 22 + (time.monotonic() - began) / 3
    assert set(status) == {200, 503}
    context.close()


@pytest.mark.long
def test_a_forwarded_port(plan: Path, browser: Browser) -> None:
    """As `ssh -L` brings the page to another port; a page elsewhere cannot take part in somebody's name."""
    port = free_port()
    with breaking(port, after=10**9) as forwarded:
        url = f"http://localhost:{forwarded}"
        server = Server(plan, "study", "serve", "--plan", ".", "--port", str(port), "--public-url", url)
        assert server.address == f"{url}/"
        page = browser.new_page()
        page.goto(url)
        page.get_by_role("button", name="Begin").click()
        page.wait_for_selector(ANSWERABLE)
        page.keyboard.press("2")
        page.locator(".progress", has_text="2 of 12").wait_for()
        for headers in ({"Origin": "https://evil.example"}, {"Host": f"evil.example:{forwarded}"}):
            assert page.request.post(f"{url}/visit", data={"event": "begins"}, headers=headers).status == 403
        page.close()
        server.kill()
    (file,) = (plan / "answers").iterdir()
    assert [row["answer"] for row in rows(file)] == ["right"]
