"""The judge page in a real browser: nothing gives an image away, no answer is lost; outlines by keyboard and mouse."""

import io
import os
import re
import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from PIL import Image
from playwright.sync_api import Browser, Page, Request

from cleanset.errors import CleansetError
from cleanset.studies.contest.entering import enter
from cleanset.studies.contest.judge_page.server import run
from cleanset.studies.contest.judge_page.session import JudgeDraft, JudgeSession
from cleanset.studies.contest.judge_page.tab import STATES, JudgeKey, JudgeState, JudgeTab
from cleanset.studies.contest.log import read, read_content
from cleanset.studies.contest.rules import parse_instant
from cleanset.studies.contest.standing import replay
from cleanset.web.pages import PageAddress
from tests.browser_tab import PATIENCE, SOURCE, WINDOW, Pages, Server
from tests.forked_commands import forking
from tests.other_user import by_root, check_refused_to_others
from tests.remotes.servers import free_port
from tests.report.pages import violations
from tests.studies.contest.judging_page import ADA, BEN, DAY, WEEK, Judging, answers, serve, session_of, unjudged
from tests.studies.contest.made import JUDGES, day
from tests.studies.contest.on_disk import OnDisk, digest, png

Start = Callable[..., Server]
Visit = Callable[..., Judging]
SQUARE = [[30, 20], [165, 25], [160, 170], [40, 165]]
SQUARE_AS_SAVED = "30,20 165,25 160,170 40,165"
FRUIT = ("4", "1")
"""Definitely no creature, definitely a fruit."""


@pytest.fixture
def contest(repository: Path, tmp_path: Path) -> Path:
    return unjudged(repository, tmp_path)


@pytest.fixture(scope="module")
def port() -> int:
    """The port of the first server of each test: from an address that it knows, a browser has all scripts."""
    return free_port()


@pytest.fixture
def start(contest: Path, port: int) -> Iterator[Start]:
    servers: list[Server] = []

    def started(
        judge: str = ADA, *options: str, on: str = DAY, installed: bool = False, usual_port: bool = False
    ) -> Server:
        if not (options or servers or usual_port):
            options = ("--port", str(port))
        servers.append(serve(contest, judge, *options, on=on, installed=installed))
        return servers[-1]

    yield started
    for server in servers:
        server.kill()


@pytest.fixture
def visit(browser: Browser, file_pages: Pages) -> Iterator[Visit]:
    """Open pages, which close with the test; an error in the page's scripts fails it.

    `listen` is called with the page before it is opened, which then has an empty cache and a clock of its own.
    """
    failures: list[str] = []

    def opened(server: Server, listen: Callable[[Page], None] | None = None) -> Judging:
        page = browser.new_page(viewport=WINDOW) if listen else file_pages.take()
        if listen:
            page.on("pageerror", lambda error: failures.append(str(error)))
            listen(page)
        return Judging(page, server.address)

    yield opened
    assert failures == []


def shown(contest: Path, at: Judging) -> str:
    """The SHA-256 of the image that is shown: the draft's, which exists once anything is answered."""
    found = re.search(r'"image":"([0-9a-f]{64})"', (contest / "answers" / ADA / ".drafts.json").read_text())
    assert found
    return found[1]


@pytest.mark.long
def test_a_whole_image_by_keyboard_and_mouse(contest: Path, start: Start, visit: Visit) -> None:
    at = visit(start())
    assert at.step == "instructions"
    assert at.page.locator(".examples figure").count() == 4
    at.press("Enter", *FRUIT)
    assert at.step == "outline"
    image = shown(contest, at)
    at.draw([*SQUARE, [100, 100]])
    at.press("z", "Enter", "y", "n", "y")
    assert answers(contest) == {
        image: {
            "contains": {"creature": "definitely_no", "fruit": "definitely_yes"},
            "outline": SQUARE_AS_SAVED, "complete": True, "not_occluded": False, "real": True,
        }
    }  # fmt: skip
    assert (at.step, at.of_view("done")) == ("contains", "1")
    assert "Image 2 of 4" in at.page.inner_text(".progress")
    at.press("?")
    assert at.step == "instructions"


def test_a_whole_image_in_firefox(contest: Path, start: Start, firefox: Browser) -> None:
    page = firefox.new_page(viewport={"width": 1280, "height": 800})
    failures: list[str] = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    at = Judging(page, start().address)
    at.press("Enter", *FRUIT)
    at.draw(SQUARE)
    at.press("Enter", "y", "n", "y")
    (answer,) = answers(contest).values()
    assert (answer["outline"], at.of_view("done"), failures) == (SQUARE_AS_SAVED, "1", [])
    page.reload()
    at.ready()
    at.press("4", "4")
    assert len(answers(contest)) == 2
    page.close()


@pytest.mark.long
def test_an_outline_that_is_none(contest: Path, start: Start, visit: Visit) -> None:
    at = visit(start())
    at.press("Enter", *FRUIT)
    at.draw(SQUARE[:2])
    at.press("Enter")
    assert (at.step, at.notice[:28]) == ("outline", "An outline with 2 corners; e")
    at.press("z", "z")
    at.draw([[20, 20], [180, 180], [180, 20], [20, 180]])
    at.press("Enter")
    assert "crosses or touches itself" in at.notice
    assert at.step == "outline"
    assert answers(contest) == {}


@pytest.mark.long
def test_undo_goes_back_through_everything(contest: Path, start: Start, visit: Visit) -> None:
    at = visit(start())
    at.press("Enter", *FRUIT)
    first, token = shown(contest, at), at.token
    at.draw(SQUARE)
    at.press("Enter", "y", "y", "y")
    assert list(answers(contest)) == [first]
    at.press("z")  # of the next image nothing is answered yet: the last statement
    assert (answers(contest), at.token, at.step) == ({}, token, "statement")
    at.press("n")
    assert answers(contest)[first]["real"] is False
    at.press(*["z"] * 9)  # three statements, the closing, four corners, the second group
    assert (at.step, at.page.locator(".given").all_inner_texts()) == ("contains", ["Definitely no"])
    at.press("z", "z")
    assert at.notice == "Nothing to take back: no answer that is not entered yet."
    assert not (contest / "answers" / ADA / f"{WEEK}.yaml").exists()


@by_root
@pytest.mark.long
def test_other_users_of_the_machine_are_refused(start: Start) -> None:
    check_refused_to_others(start(), "static/judge.js", "web/view.js")


@pytest.mark.long
def test_reload_kill_and_restart_continue_where_one_was(contest: Path, start: Start, visit: Visit) -> None:
    server = start(usual_port=True)
    at = visit(server)
    at.press("Enter", "4", "4", *FRUIT)
    image = shown(contest, at)
    at.draw(SQUARE[:3])
    at.page.reload()
    at.ready()
    assert (at.step, at.page.locator("#outline .corner").count()) == ("outline", 3)
    server.kill()
    at.page.goto("about:blank")  # an open page would load itself again, at the same time as below
    again = start()
    assert again.address == server.address
    at.page.goto(again.address)
    at.ready()
    assert (at.step, at.page.locator("#outline .corner").count(), at.of_view("done")) == ("outline", 3, "1")
    at.draw(SQUARE[3:])
    at.press("Enter", "y")
    again.kill()
    at.page.goto("about:blank")
    last = visit(start())
    assert last.step == "statement"
    last.press("y", "y")
    assert answers(contest)[image]["outline"] == SQUARE_AS_SAVED
    assert len(answers(contest)) == 2


@pytest.mark.long
def test_two_judges_at_once(contest: Path, start: Start, visit: Visit) -> None:
    """Each in their own order, to a standing that counts both."""
    servers = [start(ADA), start(BEN)]
    tabs = [visit(server) for server in servers]
    for at in tabs:
        at.press("Enter")
    for _ in range(4):
        for at in tabs:
            at.press("4", "4")
    assert [at.step for at in tabs] == ["end", "end"]
    assert list(answers(contest, ADA)) != list(answers(contest, BEN))
    paths = [contest / "answers" / judge / f"{WEEK}.yaml" for judge in (ADA, BEN)]
    enter(contest, paths, at=parse_instant(f"{DAY}T20:00:00Z"))
    state = replay(read(contest))
    assert {judge: len(state.judges[judge].answers) for judge in (ADA, BEN)} == {ADA: 4, BEN: 4}
    assert [len(image.answers) for image in state.images.values()] == [2, 2, 2]
    for judge in (ADA, BEN):
        assert len(set(answers(contest, judge)) - set(state.images)) == 1  # 10 % of four, at least one
        assert set(answers(contest, judge)) - set(state.images) <= set(state.controls)


def test_one_server_of_a_judge_at_a_time(contest: Path, start: Start) -> None:
    """It has the answers in memory, and would write over those of another."""
    start()
    done = subprocess.run(
        ["cleanset", "contest", "judge", "--judge", ADA, "--on", DAY, "--no-browser"], cwd=contest,
        env=os.environ | forking(SOURCE), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert f"answers/{ADA}: another run is using this folder; expected one at a time" in done.stderr


@pytest.mark.long
def test_a_full_disk_is_reported_without_a_file_name(contest: Path, start: Start, visit: Visit) -> None:
    server = start(installed=True)
    at = visit(server)
    at.press("Enter", "4")
    old = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (0, old[1]))
    at.press("4")
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, old)
    assert at.notice == "Not saved: a file cannot be read or written. See the server's terminal."
    assert answers(contest) == {}
    assert (at.step, at.of_view("done")) == ("contains", "0")
    at.press("4")
    assert len(answers(contest)) == 1


@pytest.mark.long
def test_an_image_that_cannot_be_shown(contest: Path, start: Start, visit: Visit) -> None:
    server = start()
    at = visit(server)
    examples = replay(read(contest)).examples
    for path in (contest / "objects").iterdir():
        if path.name not in examples:
            path.write_bytes(path.read_bytes() + b"x")
    at.press("Enter")
    assert "This image cannot be shown." in at.notice
    at.press("4")
    assert answers(contest) == {}
    at.press("s", "s")
    assert at.page.locator(".error").count() == 1


def everything_received(page: Page, into: list[tuple[str, bytes]]) -> None:
    """Collect addresses, headers and bodies of all answers, and all frames of websockets."""

    def finished(request: Request) -> None:
        each = request.response()
        assert each
        headers = "\n".join(f"{name}: {value}" for name, value in each.headers.items())
        into.append((each.url, f"{each.url}\n{headers}".encode()))
        if each.status == 200:
            into.append((each.url, each.body()))

    def frame(data: bytes | str) -> None:
        into.append(("websocket", data if isinstance(data, bytes) else data.encode()))

    page.on("requestfinished", finished)
    page.on("websocket", lambda socket: socket.on("framereceived", frame))


GIVES_AWAY = {
    "a class": rb"n0\d{7}|goldfish|ladybug|starfish|strawberry|banana|lighthouse",
    "a file": rb"\b[ab]\.png|control_\d|example_\d|submissions|manifest|\.drafts|answers/",
    "a digest": rb"\b[0-9a-f]{64}\b|\bb37ec80e|\bf22fb5ab|\be23b9163",
    "a team, a defence, an attack": rb"orchard|grove|reef|tide|corruption_robust|spatial|adversarial",
    "what is a control": rb"(?<!cache-)control|mask",
    "a week": rb"2026-11",
}
LIBRARIES = ("/_nicegui/", "/static/", "/web/")


@pytest.mark.long
def test_nothing_that_the_browser_receives_gives_an_image_away(contest: Path, start: Start, visit: Visit) -> None:
    received: list[tuple[str, bytes]] = []
    server = start()
    at = visit(server, listen=lambda page: everything_received(page, received))
    at.press("Enter")
    for _ in range(3):
        at.press(*FRUIT)
        at.draw(SQUARE)
        at.press("Enter", "y", "y", "y")
    at.press("z", "y", "4", "4")
    assert at.step == "end"
    at.page.wait_for_timeout(300)
    assert len({url for url, _ in received if "/image/" in url}) == 4 + 4
    assert sum(len(data) for url, data in received if url == "websocket") > 20_000
    for url, data in received:
        if any(part in url for part in LIBRARIES):
            continue
        if data.startswith(b"\x89PNG"):
            assert Image.open(io.BytesIO(data)).info == {}
            continue
        # of the judge's own link, as long as a digest
        data = data.replace(server.address.rpartition("=")[2].encode(), b"")
        for what, pattern in GIVES_AWAY.items():
            found = re.search(pattern, data, re.IGNORECASE)
            assert not found, (what, url, found)
    # encoded again: the SHA-256 of the original bytes would reveal which file it is
    images = {data for _, data in received if data.startswith(b"\x89PNG")}
    assert len(images) == 8
    assert images.isdisjoint(path.read_bytes() for path in (contest / "objects").iterdir())
    tokens = {url.rsplit("/", 1)[1] for url, _ in received if "/image/" in url}
    server.kill()
    other = visit(start(ADA, "--port", "0"))
    other.press("?")
    assert tokens.isdisjoint(other.page.eval_on_selector_all("img", "all => all.map(i => i.src.split('/').pop())"))


@pytest.mark.long
def test_every_step_is_accessible_and_fits(contest: Path, start: Start, visit: Visit) -> None:
    at = visit(start())

    def check(step: str) -> None:
        assert at.step == step
        for width in (1280, 390):
            at.page.set_viewport_size({"width": width, "height": 800})
            assert violations(at.page) == [], (step, width)
            assert at.page.evaluate("document.documentElement.scrollWidth") <= width, (step, width)

    check("instructions")
    for keys, step in (("Enter", "contains"), ("4", "contains"), ("1", "outline")):
        at.press(keys)
        check(step)
    at.draw(SQUARE)
    check("outline")
    at.press("Enter")
    check("statement")
    at.press("y", "y", "y", *["4"] * 6)
    check("end")


CLICKED_TWICE = (0, 60, 120, 250)
"""Milliseconds between two clicks that are one."""


@pytest.mark.long
def test_a_click_or_key_answers_one_question(contest: Path, start: Start, visit: Visit) -> None:
    """By the page's own clock: a double click at "definitely no", where a yes of the other group then is."""
    at = visit(start())
    at.press("Enter")
    at.page.clock.pause_at(at.page.evaluate("Date.now()") / 1000 + 1)
    no = "button[data-key='4']"
    for done, gap in enumerate(CLICKED_TWICE):
        at.look()
        box = at.page.locator(no).bounding_box()
        assert box is not None
        place = (box["x"] + 40, box["y"] + 10)
        pressed = int(at.of_view("pressed"))
        at.page.mouse.click(*place)
        if gap:
            at.page.wait_for_selector(f"[data-pressed='{pressed + 1}']", timeout=PATIENCE)
            at.page.clock.run_for(gap)
        at.page.mouse.click(*place)
        at.page.keyboard.press("4")  # at once, too
        at.page.wait_for_selector(f"[data-pressed='{pressed + 2}']", timeout=PATIENCE)
        assert (at.step, len(answers(contest))) == ("contains", done)
        assert at.notice.startswith("This question has not been on the screen for half a second")
        if gap == 250:  # 400 ms after it appeared, at the place of the new "yes", it is not an answer yet
            at.page.clock.run_for(150)
            at.page.mouse.click(*place)
            at.page.wait_for_selector(f"[data-pressed='{pressed + 3}']", timeout=PATIENCE)
        assert (at.step, len(answers(contest))) == ("contains", done)
        at.press("4")
    assert [each["contains"] for each in answers(contest).values()] == [
        {"creature": "definitely_no", "fruit": "definitely_no"}
    ] * 4


FOREIGN = (
    ("x", "KeyX", "x does nothing here; z takes back, ? shows the instructions."),
    ("7", "Digit7", "7 does nothing here"),
    ("\N{LATIN SMALL LETTER E WITH ACUTE}", "Digit2", "Probably yes"),  # AZERTY
    ("\N{CYRILLIC SMALL LETTER YA}", "KeyZ", ""),
    ("\N{ARABIC-INDIC DIGIT THREE}", "", "Probably no"),
    ("\N{GREEK SMALL LETTER ZETA}", "KeyZ", ""),
    ("\N{GREEK SMALL LETTER CHI}", "KeyX", "x does nothing here"),
)
"""Keys as other layouts send them, and what the page then tells; what is taken back leaves no answer there."""


@pytest.mark.long
def test_keys_of_other_layouts_answer_and_others_say_so(contest: Path, start: Start, visit: Visit) -> None:
    at = visit(start())
    at.press("Enter")
    keyboard = at.page.context.new_cdp_session(at.page)
    for key, code, told in FOREIGN:
        at.look()
        before = at.of_view("pressed")
        for kind in ("keyDown", "keyUp"):
            keyboard.send("Input.dispatchKeyEvent", {"type": kind, "key": key, "code": code})
        at.answered(before)
        given = at.page.locator(".given").all_inner_texts()
        assert ([at.notice[: len(told)]] if "does" in told else given) == ([told] if told else [])


def test_who_is_no_judge(contest: Path) -> None:
    with pytest.raises(CleansetError, match=r"unknown judge '\.\./ada'; expected one of 3f9c2a71, 8b04d6e5, c17e590a"):
        run(contest, "../ada", day(DAY), PageAddress("localhost", 0, browser=False, public_url=None))


def test_the_file_is_yaml(contest: Path) -> None:
    tab = JudgeTab(session_of(contest, ADA, DAY))
    for key in ("Enter", "4", "4"):
        answer(tab, key)
    path = contest / "answers" / ADA / f"{WEEK}.yaml"
    (image,) = answers(contest)
    given = {"contains": {"creature": "definitely_no", "fruit": "definitely_no"}}
    assert yaml.safe_load(path.read_text()) == {"judge": ADA, "week": WEEK, "answers": {image: given}}
    assert read_content(path) == yaml.safe_load(path.read_text())


__all__ = ["contest", "start", "visit"]
WIDTH = "() => document.querySelector('#outline').getBoundingClientRect().width"
CURSOR = "() => document.querySelector('#cursor').getAttribute('d').match(/-?[\\d.]+/g).map(Number)"


def test_a_corner_is_inside_the_image_and_never_on_another(made: OnDisk) -> None:
    """The image has 100 x 100 pixels."""
    session = two_images(made)
    tab, image = outlined(session)
    for point in ((150, -3), (100, 0), (9, 9), None):
        answer(tab, "corner", point)
        assert (session.drafts[image].corners, tab.notice) == ([(1, 1), (9, 1), (9, 9), (100, 0)], "")


def test_the_answer_that_was_given_last_is_taken_back(made: OnDisk) -> None:
    """For two weeks, whose images are answered on one day: also of a server that has been started again."""
    made.story = [each for each in made.story if each[1] != "answers"]
    made.write()
    second, third = png((0, 0, 200)), png((0, 200, 0))
    made.enter(made.mail("blue-1", {"y.png": second, "z.png": third}))
    made.enter(at="2026-11-13T18:00:00Z", publish=True)
    session = session_of(made.folder, JUDGES[0], "2026-11-14")
    of_image = {task.sha256: task for task in session.tasks}
    first_week, second_week = (f"answers/{JUDGES[0]}/{week}.yaml" for week in (WEEK, "2026-11-13"))

    def save(sha256: str) -> None:
        session.keep(of_image[sha256], JudgeDraft(image=sha256, contains=["definitely_no", "definitely_no"]))

    for sha256 in (digest(second), made.sha256, digest(third)):
        save(sha256)
    for sha256 in (digest(third), made.sha256, digest(second)):
        assert session.reopen_last()
        assert session.waiting()[0] == of_image[sha256]
    assert not session.reopen_last()
    save(digest(second))
    save(made.sha256)
    # two saves may come within one tick of the disk's clock
    for name, seconds in ((second_week, 1), (first_week, 2)):
        os.utime(made.folder / name, (seconds, seconds))
    anew = session_of(made.folder, JUDGES[0], "2026-11-14")
    assert anew.reopen_last()
    assert anew.waiting()[0] == of_image[made.sha256]


def answer(tab: JudgeTab, key: str, point: tuple[int, int] | None = None, question: str | None = None) -> None:
    """Press a key as a judge who has looked at the question of the tab, or at another one."""
    tab.press(JudgeKey(key=key, number=0, subject=question or tab.question, seen={"image": 1.0}, point=point))


def outlined(session: JudgeSession) -> tuple[JudgeTab, str]:
    """A tab in which an image was answered up to three corners of its outline, and that image."""
    tab = JudgeTab(session)
    answer(tab, "Enter")
    for key in "41":
        answer(tab, key)
    for point in ((1, 1), (9, 1), (9, 9)):
        answer(tab, "corner", point)
    (image,) = [name for name, draft in session.drafts.items() if draft.corners]
    assert len(session.drafts[image].corners) == 3, tab.notice
    return tab, image


def two_images(made: OnDisk) -> JudgeSession:
    made.story = [each for each in made.story if each[1] != "answers"]
    made.write()
    made.enter(made.mail("blue-1", {"y.png": png((0, 0, 200))}))
    made.enter(at="2026-11-13T18:00:00Z", publish=True)
    return session_of(made.folder, JUDGES[0], "2026-11-14")


def test_an_image_left_for_later_keeps_its_answers(made: OnDisk) -> None:
    """Back by the key that takes back, or when its turn comes; also on a server that was started again."""
    session = two_images(made)
    tab, image = outlined(session)
    given = session.drafts[image].model_copy(deep=True)
    answer(tab, "s")
    assert tab.notice.startswith("Left for later, with the answers so far")
    assert tab.task is not None
    assert tab.task.sha256 != image
    answer(tab, "z")
    assert session.drafts[image] == given
    answer(tab, "s")
    anew = session_of(made.folder, JUDGES[0], "2026-11-14")
    after = JudgeTab(anew)
    others = {task.sha256 for task in anew.tasks} - {image}
    for _ in [*others, *others]:
        assert after.task is not None
        assert after.task.sha256 in others
        answer(after, "4")
    assert set(anew.answers) == others
    assert after.task is not None
    assert anew.draft_of(after.task).corners == given.corners


def test_an_image_left_without_an_answer_comes_last_on_the_next_server_too(made: OnDisk) -> None:
    session = two_images(made)
    tab = JudgeTab(session)
    answer(tab, "Enter")
    first = tab.task
    answer(tab, "s")
    anew = session_of(made.folder, JUDGES[0], "2026-11-14")
    assert [task.sha256 for task in anew.waiting()] == [task.sha256 for task in session.waiting()]
    assert anew.waiting()[-1] == first
    assert anew.drafts == {}


KEYS_TO: dict[JudgeState, tuple[str, ...]] = {
    "instructions": (), "contains": ("Enter",), "outline": ("Enter", "4", "1"), "statement": ("Enter", "4", "1", "o"),
    "end": ("Enter", *"4444"),
}  # fmt: skip
"""The keys that lead to each state; o: an outline."""


@pytest.mark.parametrize("state", STATES)
def test_reload_another_tab_and_late_keys_in_each_state(made: OnDisk, state: JudgeState) -> None:
    """A tab opened again, there or on another server, continues; a key to what was there before changes nothing."""
    session = two_images(made)

    def tab_in(keys: tuple[str, ...], tab: JudgeTab) -> JudgeTab:
        for key in keys:
            if key == "o":
                for point in ((1, 1), (9, 1), (9, 9)):
                    answer(tab, "corner", point)
            answer(tab, "Enter" if key == "o" else key)
        return tab

    tab = tab_in(KEYS_TO[state], JudgeTab(session))
    assert tab.state == state
    # those who have answered nothing read the instructions again
    found = "instructions" if state in ("instructions", "contains") else state
    assert JudgeTab(session).state == found
    assert JudgeTab(session_of(made.folder, JUDGES[0], "2026-11-14")).state == found
    for key in {"w", *(key for keys in STATES.values() for key in keys)} - set(STATES[state]):
        answer(tab, key)
        assert (tab.state, "does nothing here" in tab.notice) == (state, True), key
    if state in ("instructions", "end"):
        return
    shown = tab.question
    other = tab_in({"contains": ("Enter", "4"), "outline": ("o",), "statement": ("y",)}[state], JudgeTab(session))
    before = (session.drafts, session.answers, other.state)
    for key, action in STATES[state].items():
        if action == "answer":
            answer(tab, key, (2, 2), shown)
            assert (session.drafts, session.answers, tab.state) == before, key


@pytest.mark.long
def test_the_browsers_back_leads_to_each_state_again(start: Start, visit: Visit) -> None:
    at = visit(start())

    def step_found() -> str:
        at.page.goto("about:blank")
        at.page.go_back()
        at.ready()
        return at.step

    assert step_found() == "instructions"
    at.press("Enter", "4")
    assert step_found() == "contains"
    at.press("1")
    assert step_found() == "outline"
    at.draw(SQUARE)
    at.press("Enter")
    assert step_found() == "statement"
    at.press("y", "n", "y", *"44444444")
    while at.step != "end":
        at.press("4")
    assert step_found() == "end"


def test_a_key_answers_what_its_own_tab_shows(made: OnDisk) -> None:
    """Even if another tab is further: this one is drawn again first."""
    session = two_images(made)
    tab, image = outlined(session)
    stale = JudgeTab(session)
    stale.note_shown()
    for point in ((5, 12), (1, 9)):
        answer(tab, "corner", point)
    for key in ("Enter", "z", "s"):
        answer(stale, key)
        assert stale.notice.startswith("Another tab has changed these answers")
    assert (len(session.drafts[image].corners), session.drafts[image].closed) == (5, False)
    stale.note_shown()
    answer(stale, "z")
    assert len(session.drafts[image].corners) == 4


@pytest.mark.long
def test_an_outline_by_keyboard(contest: Path, start: Start, visit: Visit) -> None:
    at = visit(start())
    at.press("Enter", *FRUIT)
    keyboard = at.page.keyboard
    keyboard.press("ArrowLeft")
    left, middle = at.page.evaluate(CURSOR)[:2]
    for _ in range(3):
        keyboard.press("Shift+ArrowUp")
    assert at.page.evaluate(CURSOR)[:2] == [left, middle - 30]
    at.press(" ")
    for key in ("ArrowDown", "ArrowRight"):
        for _ in range(5):
            keyboard.press(f"Shift+{key}")
        at.press(" ")
    at.press("Enter")
    assert at.step == "statement"
    at.press("y", "y", "y")
    (answer,) = answers(contest).values()
    corners = [tuple(map(int, corner.split(","))) for corner in answer["outline"].split()]
    (x, y), *others = corners
    assert others == [(x, y + 50), (x + 50, y + 50)]


@pytest.mark.long
def test_a_triangle_by_keys_in_under_15_presses(contest: Path, start: Start, visit: Visit) -> None:
    """By ninths of the image: three digits and Space for a corner, each within 2 % of the sides."""
    at = visit(start())
    at.press("Enter", *FRUIT)
    width, height = map(int, (at.page.get_attribute("#outline", "viewBox") or "").split()[2:])
    triangle = [(round(x * width), round(y * height)) for x, y in ((0.21, 0.12), (0.86, 0.3), (0.4, 0.93))]
    presses = 0
    for x, y in triangle:
        left, top, wide, high = 0.0, 0.0, float(width), float(height)
        for _ in range(3):
            column, row = int(3 * (x - left) / wide), int(3 * (y - top) / high)
            at.page.keyboard.press(str(3 * row + column + 1))
            left, top, wide, high = left + column * wide / 3, top + row * high / 3, wide / 3, high / 3
        at.press(" ")
        presses += 4
    at.press("Enter")
    assert (at.step, presses + 1) == ("statement", 13)
    at.press("y", "y", "y")
    (answer,) = answers(contest).values()
    found = [tuple(map(int, corner.split(","))) for corner in answer["outline"].split()]
    assert all(abs(x - a) <= 0.02 * width + 1 and abs(y - b) <= 0.02 * height + 1
               for (x, y), (a, b) in zip(triangle, found, strict=True))  # fmt: skip


@pytest.mark.long
def test_focus_stays_with_the_task_and_answers_are_announced(contest: Path, start: Start, visit: Visit) -> None:
    at = visit(start())
    focus = "document.activeElement.dataset.key ?? document.activeElement.innerText"
    told = at.page.locator("[role=status]").last
    at.press("Enter")
    at.page.locator("button[data-key='4']").focus()
    at.press("Enter")
    assert at.page.evaluate(focus) == "4"
    at.press("1")
    assert "Draw the outline of the largest single object: fruit" in at.page.evaluate(focus)
    assert "Draw the outline" in told.inner_text()
    at.page.locator("button[data-key='Enter']").focus()
    at.press("Enter")
    assert (at.page.evaluate(focus), "An outline with 0 corners" in told.inner_text()) == ("Enter", True)
    at.press("z", "z")
    assert "anywhere in the image, real or depicted" in at.page.evaluate(focus)
    at.page.locator("button[data-key='4']").focus()
    at.press("4", "4")
    assert at.page.evaluate(focus) == "4"
    assert re.match(r"Saved\.\s+Image 2 of 4 · judge 3f9c2a71 Is there", told.inner_text())


@pytest.mark.long
def test_magnified_pixels_are_whole_too(contest: Path, start: Start, visit: Visit) -> None:
    at = visit(start())
    at.press("Enter", *FRUIT)
    at.draw(SQUARE)
    before = at.page.evaluate(WIDTH)
    at.page.keyboard.press("+")
    # one device pixel more for each pixel of the image
    natural = int((at.page.get_attribute("#outline", "viewBox") or "").split()[2])
    assert at.page.evaluate(WIDTH) - before == natural
    assert before % natural == 0
    assert violations(at.page) == []


@pytest.mark.long
def test_arrows_move_the_magnified_image_in_every_step(contest: Path, start: Start, visit: Visit) -> None:
    at = visit(start())
    at.press("Enter")
    place = (
        "() => { const { scrollLeft, scrollTop } = document.querySelector('.stage'); return [scrollLeft, scrollTop] }"
    )
    for _ in range(4):
        at.page.keyboard.press("+")
    left, top = at.page.evaluate(place)
    at.page.keyboard.press("ArrowLeft")
    at.page.keyboard.press("ArrowDown")
    assert at.page.evaluate(place) == [left - 80, top + 80]
    # in a narrow window the questions stay where they are
    at.page.set_viewport_size({"width": 800, "height": 600})
    assert at.page.evaluate("() => document.querySelector('.side').getBoundingClientRect().top") == 328
