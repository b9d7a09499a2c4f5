"""The process that measures images for the hints: what is kept, and when it ends."""

import io
import os
import signal
import subprocess
import threading
import time
import urllib.request
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFont

from cleanset.classes import imagenet
from cleanset.review.hints import background
from cleanset.review.hints.background import BackgroundHints
from cleanset.review.hints.text import can_read_text
from tests.browser_tab import INSTALLED

from .reviewing import wait_until


def children(pid: int) -> list[int]:
    """The processes that a process started and that still run."""
    found = Path(f"/proc/{pid}/task/{pid}/children")
    threads = Path(f"/proc/{pid}/task").glob("*/children") if found.exists() else []
    of_process: list[int] = []
    for thread in threads:
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended meanwhile
            of_process += map(int, thread.read_text().split())
    return of_process


def spawned(pid: int) -> list[int]:
    """Those of them that measure."""
    found = []
    for each in children(pid):
        with suppress(FileNotFoundError):  # it has ended meanwhile
            if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes():
                found.append(each)
    return found


@pytest.fixture
def jpeg() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (64, 48), "#4080c0").save(out, format="JPEG")
    return out.getvalue()


def test_only_the_last_ones_are_kept(jpeg: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "MAX_MEASURED", 3)
    hints = BackgroundHints(lambda _: jpeg, imagenet())
    names = [f"ILSVRC2012_val_{number:08}" for number in range(1, 7)]
    hints.request(names)
    wait_until(lambda: names[-1] in hints.of(names))
    assert list(hints.of(names)) == names[3:]
    hints.request(names[:1])  # dropped, and measured again when it is shown again
    wait_until(lambda: names[0] in hints.of(names))
    assert len(hints.of(names)) == 3
    hints.close()


class _Dropping(OrderedDict[str, Any]):
    """Drops an entry once it was found, as the thread that measures may at that moment."""

    def __contains__(self, key: object) -> bool:
        return self.pop(str(key), None) is not None


def test_an_image_that_is_dropped_while_it_is_asked_for(jpeg: bytes) -> None:
    hints = BackgroundHints(lambda _: jpeg, imagenet())
    hints._measured = _Dropping({"ILSVRC2012_val_00000001": ()})
    hints.request(["ILSVRC2012_val_00000001"])
    hints.close()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(
    not can_read_text() and not os.environ.get("CLEANSET_NO_SKIP"), reason="the extra text is not installed"
)
def test_text_is_read_in_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(background.NO_TEXT)
    image = Image.new("RGB", (320, 240), (90, 120, 90))
    ImageDraw.Draw(image).text((10, 215), "picture of the week", fill="white", font=ImageFont.load_default(16))
    out = io.BytesIO()
    image.save(out, format="JPEG", quality=95)
    hints = BackgroundHints(lambda _: out.getvalue(), imagenet())
    hints.request(["a"])
    wait_until(lambda: any(hint.kind == "text" for hint in hints.of(["a"]).get("a", [])))
    assert [hint.text for hint in hints.of(["a"])["a"] if hint.kind == "text"] == ["“picture of the week”, bottom left"]
    hints.close()


def test_the_last_request_comes_first() -> None:
    """What a reviewer looks at now, before what an earlier class asked for; each once."""
    done: list[str] = []
    begun, go_on = threading.Event(), threading.Event()

    def work(name: str) -> None:
        begun.set()
        assert go_on.wait(60)
        done.append(name)

    queue = background._Queue(work)
    queue.put("a")
    assert begun.wait(60)
    queue.put("bc")
    queue.put("dcae")
    go_on.set()
    wait_until(lambda: len(done) >= 5)
    queue.close()
    assert done == ["a", "d", "c", "e", "b"]


def test_an_image_that_fails_does_not_end_the_others() -> None:
    done: list[str] = []

    def work(name: str) -> None:
        done.append(name)
        if name == "a":
            raise ValueError

    queue = background._Queue(work)
    queue.put("abc")
    wait_until(lambda: len(done) == 3 and "c" not in queue)
    # idle again, and begun once more
    queue.put("d")
    wait_until(lambda: "d" not in queue)
    queue.close()
    assert done == ["a", "b", "c", "d"]


def test_many_images_wait_as_one_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """75,000 tasks took half a second of the page's start."""
    go_on, queue = threading.Event(), background._Queue(lambda _: None)
    monkeypatch.setattr(queue, "_function", lambda _: go_on.wait(60))
    queue.put(map(str, range(5000)))
    assert queue._thread._work_queue.qsize() <= 1
    queue.close()
    go_on.set()


@pytest.mark.long
@pytest.mark.slow
def test_a_killed_process_is_replaced(jpeg: bytes) -> None:
    others = set(spawned(os.getpid()))  # of other tests, which end some time after these
    hints = BackgroundHints(lambda _: jpeg, imagenet())
    hints.request(["a"])
    wait_until(lambda: "a" in hints.of(["a"]))
    (measuring,) = set(spawned(os.getpid())) - others
    os.kill(measuring, signal.SIGKILL)
    time.sleep(0.5)
    # the one that notices goes without hints
    hints.request(["b", "c"])
    wait_until(lambda: "c" in hints.of(["c"]))
    hints.close()


@pytest.mark.long
@pytest.mark.slow
def test_its_process_has_ended_once_it_is_closed(jpeg: bytes) -> None:
    """One that ended at the same time as the interpreter wrote to a closed pipe, rarely, after Ctrl+C."""
    others = set(spawned(os.getpid()))
    hints = BackgroundHints(lambda _: jpeg, imagenet())
    hints.request(["a"])
    wait_until(lambda: len(set(spawned(os.getpid())) - others) == 1)
    hints.close()
    assert not set(spawned(os.getpid())) - others


@pytest.mark.long
@pytest.mark.parametrize("how", [pytest.param(signal.SIGINT, marks=pytest.mark.long), signal.SIGKILL])
def test_it_ends_with_the_server(edition: Path, how: signal.Signals) -> None:
    """After Ctrl+C, which reaches both, without a traceback; after kill -9 of the server alone."""
    process = subprocess.Popen(
        [INSTALLED, "review", "serve", "--reviewer", "ada", "--no-browser"],
        cwd=edition,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    address = process.stdout.readline().split()[2]
    # the first address is exchanged for a cookie
    urllib.request.build_opener(urllib.request.HTTPCookieProcessor()).open(address).read()
    wait_until(lambda: len(spawned(process.pid)) == 1)
    (measuring,) = spawned(process.pid)  # it may still be importing
    if how == signal.SIGINT:
        os.killpg(process.pid, how)
        assert "Traceback" not in process.communicate(timeout=30)[1]
    else:  # one that is still starting may say that its parent is gone
        process.kill()
        process.communicate(timeout=30)
    wait_until(lambda: not Path(f"/proc/{measuring}").exists(), 10)
