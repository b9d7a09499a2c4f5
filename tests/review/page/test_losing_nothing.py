"""Kills, full disks, other people's edits, two tabs, two servers: no verdict is lost, none shown that is not saved."""

import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.browser_tab import PATIENCE, SOURCE, Server
from tests.forked_commands import forking
from tests.review.texts import sent

from .conftest import Open, Serve
from .reviewing import TabAlone, reviews, wait_until

GOLDFISH, LADYBUG = "n01443537", "n02165456"
CLEAN = {"verdict": "clean"}


@pytest.mark.long
def test_kill_9_of_the_server_and_resume(edition: Path, start: Serve, visit: Open) -> None:
    server = start(alone=True)
    at = visit(server)
    first, second, third = at.shown[:3]
    at.press("c", "c")
    server.kill()
    at.page.keyboard.press("c")
    at.look(0.3)
    assert at.caption(third) == "not reviewed yet"
    assert reviews(edition) == {GOLDFISH: dict.fromkeys(sorted([first, second]), CLEAN)}
    at.page.evaluate("window.isLost = true")
    again = start(alone=True)
    assert again.address == server.address
    # the tab that is still open finds it and continues where it was
    at.page.wait_for_function("!window.isLost", timeout=PATIENCE)
    at.ready()
    at.page.wait_for_selector(".notice.error", timeout=PATIENCE)  # it reports the key
    assert (at.page.url.startswith(again.page), at.wnid, at.focus) == (True, GOLDFISH, third)
    at.look()  # the class has appeared again
    at.press("c")
    assert set(reviews(edition)[GOLDFISH]) == {first, second, third}


@pytest.mark.long
def test_keys_pressed_while_the_server_hangs(edition: Path, start: Serve, visit: Open) -> None:
    """A machine that is busy elsewhere for seconds delays a verdict; it does not drop it."""
    server = start(installed=True)  # its process is the command's
    at = visit(server)
    first, second = at.shown[:2]
    at.press("c")
    at.page.wait_for_function(  # so that nothing but the key is under way
        "[...document.querySelectorAll('[data-likeliest]')].every(each => each.dataset.likeliest)", timeout=PATIENCE
    )
    server.process.send_signal(signal.SIGSTOP)
    at.page.keyboard.press("c")
    at.look(9.0)
    assert at.caption(second) == "not reviewed yet"
    server.process.send_signal(signal.SIGCONT)
    at.page.wait_for_selector(f"[data-card='{second}'].clean", timeout=PATIENCE)
    assert set(reviews(edition)[GOLDFISH]) == {first, second}


@pytest.mark.long
def test_a_dead_line_is_reported_soon(edition: Path, start: Serve, visit: Open) -> None:
    """Without a key, and where one waits: long before the socket notices it; and no more once the server answers."""
    server = start(installed=True)  # its process is the command's
    at = visit(server)
    at.stop_clock()
    server.process.send_signal(signal.SIGSTOP)
    at.look(3.1)  # the page asks
    at.page.wait_for_selector("#lost", timeout=20_000)  # in real time, on a busy machine
    server.process.send_signal(signal.SIGCONT)

    def is_told_no_more() -> bool:
        # it asks again every three seconds; on a busy machine the first answer may come too late
        at.look(3.1)
        at.page.wait_for_timeout(500)
        return at.page.locator("#lost").count() == 0

    wait_until(is_told_no_more)
    at.page.evaluate("window.emitEvent = () => {}")
    at.page.keyboard.press("u")
    at.look(1.9)
    assert at.page.locator("#lost").count() == 0
    at.look(0.2)
    assert at.page.inner_text("#lost").startswith("No connection to the server.")


@contextmanager
def no_room(server: Server) -> Iterator[None]:
    """The server can write no byte into any file, as on a full disk."""
    old = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (0, old[1]))
    yield
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, old)


@pytest.mark.long
def test_a_verdict_that_cannot_be_written_is_not_shown_as_saved(edition: Path, start: Serve, visit: Open) -> None:
    server = start(installed=True)  # its process is the command's
    at = visit(server)
    zeroth, first, second = at.shown[:3]
    at.press("c", "c")
    file = edition / "reviews" / "ada" / f"{GOLDFISH}.yaml"
    before = file.read_bytes()
    with no_room(server):
        at.press("c")
        assert at.notice == f"Not saved: reviews/ada/{GOLDFISH}.yaml: File too large"
        assert (at.focus, at.caption(second)) == (second, "not reviewed yet")
        at.press("z")
        assert at.notice.startswith("Not saved:")
        assert at.caption(first) == "clean"
        at.press("r", "n")
        assert at.notice.startswith("Not saved:")
        assert at.mode == "reason"  # to be tried again
        at.press("Escape")
    assert file.read_bytes() == before
    at.press("r", "n")
    assert (at.caption(second), at.notice) == ("reject: noise", "")
    assert set(reviews(edition)[GOLDFISH]) == {zeroth, first, second}
    at.press("z", "z", "z")  # the step that could not be undone can be now
    assert reviews(edition) == {}


@pytest.mark.long
def test_a_file_broken_by_hand_is_reported_and_heals(edition: Path, start: Serve, visit: Open) -> None:
    at = visit(start())
    first, second = at.shown[:2]
    at.press("c")
    file = edition / "reviews" / "ada" / f"{GOLDFISH}.yaml"
    good = file.read_text()
    file.write_text(good + "  oops: [\n")
    at.press("ArrowRight", "c")
    assert "not YAML" in at.notice
    assert f"{GOLDFISH}.yaml, line" in at.notice
    assert file.read_text() == good + "  oops: [\n"
    at.press("n")
    assert at.wnid == LADYBUG  # the others continue
    at.press("p")
    file.write_text("# looked at twice\n" + good)
    at.page.wait_for_selector(f"[data-card='{first}'].clean", timeout=PATIENCE)
    at.open(GOLDFISH, second)
    at.press("c")
    assert file.read_text().startswith("# looked at twice\n")
    assert set(reviews(edition)[GOLDFISH]) == {first, second}


@pytest.mark.long
def test_an_edit_by_hand_is_shown_and_not_overwritten(edition: Path, start: Serve, visit: Open) -> None:
    at = visit(start())
    first = at.shown[0]
    at.press("c", "z")
    at.press("c")
    file = edition / "reviews" / "ada" / f"{GOLDFISH}.yaml"
    file.write_text(file.read_text().replace("verdict: clean", "verdict: unsure"))
    at.page.wait_for_selector(f"[data-card='{first}'].unsure", timeout=PATIENCE)
    at.press("z")
    assert "changed meanwhile" in at.notice
    assert reviews(edition) == {GOLDFISH: {first: {"verdict": "unsure"}}}


@pytest.mark.long
def test_two_tabs_do_not_overwrite_each_other(edition: Path, start: Serve, visit: Open) -> None:
    server = start()
    one, two = visit(server), visit(server)
    first = one.shown[0]
    one.press("c")
    two.page.wait_for_selector(f"[data-card='{first}'].clean", timeout=PATIENCE)  # told without asking
    assert two.focus == first
    two.press("r", "b")
    one.page.wait_for_selector(f"[data-card='{first}'].reject", timeout=PATIENCE)
    assert reviews(edition) == {GOLDFISH: {first: {"verdict": "reject", "reason": "border"}}}


def test_two_servers_of_one_reviewer(edition: Path) -> None:
    """The second says that the entry is another than it showed, and shows that; nothing is lost or doubled."""
    one, two = TabAlone(edition), TabAlone(edition)
    two.type()  # what it shows
    first, second = one.cursor.images()[:2]
    one.type("c", "c")
    two.press(sent("u", two.cursor.images()))
    assert "changed meanwhile" in two.said
    assert reviews(edition)[GOLDFISH] == dict.fromkeys(sorted([first, second]), CLEAN)
    assert two.cursor.own() == one.session.own(one.cursor.class_index, first)


def test_two_servers_of_two_reviewers(edition: Path) -> None:
    ada, ben = TabAlone(edition, "ada"), TabAlone(edition, "ben")
    while ada.wnid == GOLDFISH:
        ada.type("c")
        if ben.wnid == GOLDFISH and ben.cursor.focus:
            ben.type("u")
    assert {entry["verdict"] for entry in reviews(edition, "ada")[GOLDFISH].values()} == {"clean"}
    assert {entry["verdict"] for entry in reviews(edition, "ben")[GOLDFISH].values()} == {"unsure"}


@pytest.mark.long
def test_what_cannot_start_says_why(edition: Path, start: Serve) -> None:
    def answer(*options: str) -> str:
        done = subprocess.run(
            ["cleanset", "review", "serve", "--no-browser", "--reviewer", *options], cwd=edition, timeout=60,
            env=os.environ | forking(SOURCE), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (1, "")
        return done.stderr

    assert answer("../ada") == (
        "error: reviewer '../ada': expected a name of small letters, digits, - and _, at most 64\n"
    )
    assert "(300 characters)': expected a name of" in answer("a" * 300)
    server = start(alone=True)
    assert f"127.0.0.1:{server.port}: Address already in use" in answer("ada", "--port", str(server.port))
    (edition / "params.yaml").unlink()
    assert "params.yaml: missing" in answer("ada")
