"""Downloads from servers on this machine: whole or not at all, and nothing elsewhere."""

import os
import pty
import shutil
import signal
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from cleanset.plumbing.files import sha256
from cleanset.plumbing.retries import MAX_ATTEMPTS
from cleanset.scoring import downloads
from cleanset.scoring.downloads import Drive, Hub, Web, digest_file, fetch, what_instead_of_weights
from tests.scoring.conftest import Serving
from tests.scoring.servers import COMMIT, QUOTA, Plan, web

pytestmark = pytest.mark.slow

HUB = Hub("timm/resnet50.a1_in1k", "model.safetensors")
DRIVE = Drive("1TmT5oGa1UvVjM3d-XeSj_XmKqBNRUg8r")
MAIN = "/timm/resnet50.a1_in1k/resolve/main/model.safetensors"
FILE = f"/timm/resnet50.a1_in1k/resolve/{COMMIT}/model.safetensors"
ON_DRIVE = f"drive.google.com/uc?id={DRIVE.id}"
MEGA = 1_000_000


def content(size: int) -> bytes:
    return np.random.default_rng(1).bytes(size)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "weights" / "deep" / "model.safetensors"


@pytest.fixture(autouse=True)
def nothing_elsewhere(tmp_path: Path, path: Path, home: Path) -> object:
    """After each test: the file with its digest next to it, or nothing, and the test's own certificate."""
    yield
    left = {found.relative_to(tmp_path).as_posix() for found in tmp_path.rglob("*")}
    written = {f"weights/deep/model.safetensors{end}" for end in ("", ".sha256")}
    assert left - {"certificate.pem", *written} <= {"home", "weights", "weights/deep"}


class TestHub:
    def test_whole(self, path: Path, serving: Serving, capfd: pytest.CaptureFixture[str]) -> None:
        plan = serving(Plan(content(3 * MEGA)))
        fetch(HUB, path)
        assert path.read_bytes() == plan.content
        assert digest_file(path).read_text() == f"{plan.sha256()}  model.safetensors\n"
        assert plan.asked == [f"HEAD {MAIN}", f"HEAD {FILE}", f"GET {FILE}"]
        assert capfd.readouterr() == ("", "")  # no bar if nobody looks
        path.write_bytes(b"weights")
        fetch(HUB, path)  # it is there already
        assert (path.read_bytes(), len(plan.asked)) == (b"weights", 3)

    @pytest.mark.long
    @pytest.mark.parametrize("ranges", [True, False])
    def test_continues_after_a_break(self, path: Path, serving: Serving, ranges: bool) -> None:
        """From where it was, if the server knows ranges."""
        plan = serving(Plan(content(30 * MEGA), breaks=[21 * MEGA], ranges=ranges))
        fetch(HUB, path)
        assert path.read_bytes() == plan.content
        # huggingface_hub writes pieces of 10 MiB
        assert not ranges or plan.asked[2:] == [f"GET {FILE}", f"GET {FILE} bytes={20 * 1024**2}-"]

    @pytest.mark.long
    def test_other_bytes_than_the_hub_says(self, path: Path, serving: Serving) -> None:
        plan = serving(Plan(content(MEGA), etag="ab" * 32))
        with pytest.raises(ValueError, match=f"SHA-256 {plan.sha256()} arrived; the hub has {'ab' * 32}"):
            fetch(HUB, path)
        assert plan.asked.count(f"GET {FILE}") == 3

    def test_a_small_file_whose_etag_is_no_sum(self, path: Path, serving: Serving) -> None:
        plan = serving(Plan(content(1000), etag="ab" * 20))
        fetch(HUB, path)
        assert path.read_bytes() == plan.content

    @pytest.mark.long
    def test_a_page_in_place_of_the_file(self, path: Path, serving: Serving) -> None:
        plan = serving(Plan(content(len(QUOTA)), page=QUOTA))
        with pytest.raises(ValueError, match=r'a web page \("Google Drive - Quota exceeded"\)'):
            fetch(HUB, path)
        plan.content = content(MEGA)
        with pytest.raises(ValueError, match=f"should be of size 1000000 but has size {len(QUOTA)}"):
            fetch(HUB, path)

    def test_no_such_file(self, path: Path, serving: Serving) -> None:
        serving(Plan(b""))
        with pytest.raises(ValueError, match=r"^RemoteEntryNotFoundError: 404 .*/timm/none/resolve/main/a\.bin"):
            fetch(Hub("timm/none", "a.bin"), path)

    @pytest.mark.long
    def test_nobody_there(self, path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
        with pytest.raises(ValueError, match=r"^ConnectError: .*Connection refused"):
            fetch(HUB, path)


FETCH = """
import sys
from pathlib import Path
from cleanset.scoring.downloads import Hub, Web, fetch
for path, kind, *words in (each.split() for each in sys.argv[1:]):
    try:
        fetch({"hub": Hub, "web": Web}[kind](*words), Path(path))
    except ValueError as error:
        print(error)
"""


@pytest.mark.exhaustive
def test_copies_in_the_users_caches_if_nobody_answers(tmp_path: Path, home: Path) -> None:
    """From the hub and from torch; then with both copies damaged, which are not used."""
    data = content(1000)
    digest = sha256(data)
    hub = home / ".cache/huggingface/hub/models--timm--resnet50.a1_in1k"
    blob = hub / "blobs" / digest
    link = hub / "snapshots" / COMMIT / "model.safetensors"
    checkpoint = home / ".cache/torch/hub/checkpoints" / f"resnet50-{digest[:8]}.pth"
    for each in (blob, link, checkpoint, hub / "refs" / "main"):
        each.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(blob)
    (hub / "refs" / "main").write_text(COMMIT)
    origins = [f"hub {HUB.repository} {HUB.file}", f"web http://127.0.0.1:1/{checkpoint.name} {digest[:8]}"]
    program = [sys.executable, "-c", FETCH]
    environment = os.environ | {"HF_ENDPOINT": "http://127.0.0.1:1"}

    def run(*names: str) -> subprocess.CompletedProcess[str]:
        wanted = [f"{tmp_path / name} {origin}" for name, origin in zip(names, origins, strict=True)]
        return subprocess.run([*program, *wanted], env=environment, capture_output=True, text=True, check=True)

    for copy in (blob, checkpoint):
        copy.write_bytes(data)
    done = run("weights/one", "weights/two")
    assert done.stdout == ""
    notices = done.stderr.splitlines()
    assert notices[0].startswith(f"{blob}: used because the download failed (ConnectError: ")
    assert notices[1].startswith(f"{checkpoint}: used because the download failed (ConnectError: ")
    assert [(tmp_path / "weights" / name).read_bytes() for name in ("one", "two")] == [data, data]
    for copy in (blob, checkpoint):
        copy.write_bytes(data[:-1])
    done = run("weights/three", "weights/four")
    assert done.stdout.count("Connection refused") == 2
    assert sorted(path.name for path in (tmp_path / "weights").iterdir()) == ["one", "one.sha256", "two", "two.sha256"]
    # what this test has put there itself
    shutil.rmtree(home / ".cache")
    shutil.rmtree(tmp_path / "weights")


class TestDrive:
    @pytest.mark.parametrize("confirm", [False, True])
    def test_whole(self, path: Path, serving: Serving, capfd: pytest.CaptureFixture[str], confirm: bool) -> None:
        """A large file is confirmed."""
        plan = serving(Plan(content(3 * MEGA), confirm=confirm), as_drive=True)
        fetch(DRIVE, path)
        assert path.read_bytes() == plan.content
        confirmed = f"drive.usercontent.google.com/download?id={DRIVE.id}&export=download&confirm=t&uuid=5f0c"
        assert plan.asked == [ON_DRIVE, confirmed][: 1 + confirm]
        assert capfd.readouterr() == ("", "")

    @pytest.mark.long
    def test_breaks_every_time(self, path: Path, serving: Serving) -> None:
        plan = serving(Plan(content(3 * MEGA), breaks=[MEGA] * 9), as_drive=True)
        with pytest.raises(ValueError, match=r"^ConnectionError: .*1000000 bytes read, 2000000 more expected"):
            fetch(DRIVE, path)
        assert plan.asked == [ON_DRIVE] * 3
        plan.breaks[:] = [2 * MEGA, MEGA]
        fetch(DRIVE, path)  # the next run begins again
        assert path.read_bytes() == plan.content
        assert plan.asked == [ON_DRIVE] * 6

    def test_quota_exceeded(self, path: Path, serving: Serving) -> None:
        serving(Plan(b"", page=QUOTA), as_drive=True)
        wanted = (
            r"^FileURLRetrievalError: Too many users have viewed or downloaded this file recently\. Please try again\.$"
        )
        with pytest.raises(ValueError, match=wanted):
            fetch(DRIVE, path)

    @pytest.mark.long
    def test_a_page_sent_as_the_file(self, path: Path, serving: Serving) -> None:
        serving(Plan(QUOTA.encode()), as_drive=True)
        with pytest.raises(
            ValueError, match=r'^a web page \("Google Drive - Quota exceeded"\) received instead of weights$'
        ):
            fetch(DRIVE, path)

    @pytest.mark.long
    def test_a_certificate_of_somebody_else(
        self, path: Path, serving: Serving, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        serving(Plan(b"x"), as_drive=True)
        monkeypatch.delenv("REQUESTS_CA_BUNDLE")
        with pytest.raises(ValueError, match=r"^ConnectionError: .*certificate verify failed"):
            fetch(DRIVE, path)


PROGRAM = """
import sys
from pathlib import Path
from cleanset.scoring import downloads
from cleanset.scoring.downloads import Drive, Hub, fetch
fetch(Hub(*sys.argv[2:]) if len(sys.argv) == 4 else Drive(sys.argv[2]), Path(sys.argv[1]))
"""


class TestWeb:
    """A file at an address, as torchvision names them."""

    @pytest.fixture(autouse=True)
    def directly(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def test_the_file(self, path: Path) -> None:
        plan = Plan(content(MEGA))
        with web(plan) as url:
            fetch(Web(url, plan.sha256()[:8]), path)
        assert path.read_bytes() == plan.content
        assert plan.asked == ["/weights.pth"]

    @pytest.mark.long
    def test_it_breaks_off(self, path: Path) -> None:
        plan = Plan(content(MEGA), breaks=[MEGA // 2])
        with web(plan) as url:
            fetch(Web(url), path)
        assert path.read_bytes() == plan.content
        assert len(plan.asked) == 2

    @pytest.mark.long
    def test_other_bytes(self, path: Path) -> None:
        plan = Plan(content(1000))
        with web(plan) as url, pytest.raises(ValueError, match=r"SHA-256 [0-9a-f]{64} arrived; expected .* 00000000"):
            fetch(Web(url, "00000000"), path)
        assert not path.exists()
        assert len(plan.asked) == MAX_ATTEMPTS

    def test_it_is_not_there(self, path: Path) -> None:
        with web(Plan(b"", page="<html>gone</html>")) as url, pytest.raises(ValueError, match="404 Not Found"):
            fetch(Web(url), path)


def start(origin: Hub | Drive, path: Path, **options: object) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", PROGRAM, path, *origin], **options)  # type: ignore[call-overload, no-any-return]


@pytest.mark.long
@pytest.mark.parametrize("origin", [HUB, DRIVE], ids=["hub", "drive"])
def test_killed_in_the_middle(origin: Hub | Drive, path: Path, serving: Serving) -> None:
    plan = serving(Plan(content(30 * MEGA), stall=threading.Event()), as_drive=origin is DRIVE)
    process = start(origin, path, start_new_session=True)
    assert plan.halfway.wait(30)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert [found.name for found in path.parent.iterdir()] == ["model.safetensors.partial"]
    assert plan.stall is not None
    plan.stall.set()
    fetch(origin, path)
    assert path.read_bytes() == plan.content
    assert sorted(found.name for found in path.parent.iterdir()) == ["model.safetensors", "model.safetensors.sha256"]


@pytest.mark.long
def test_two_at_once_download_once(path: Path, serving: Serving) -> None:
    plan = serving(Plan(content(5 * MEGA), stall=threading.Event()))
    first = start(HUB, path)
    assert plan.halfway.wait(30)
    second = start(HUB, path)
    time.sleep(0.5)
    assert plan.stall is not None
    plan.stall.set()
    assert (first.wait(), second.wait()) == (0, 0)
    assert path.read_bytes() == plan.content
    assert plan.asked.count(f"GET {FILE}") == 1


@pytest.mark.long
@pytest.mark.parametrize("origin", [HUB, DRIVE], ids=["hub", "drive"])
def test_a_server_that_falls_silent(
    origin: Hub | Drive, path: Path, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "STALL_SECONDS", 3)
    plan = serving(Plan(content(30 * MEGA), stall=threading.Event()), as_drive=origin is DRIVE)
    with pytest.raises(ValueError, match=r"^no byte came for 3 seconds$"):
        fetch(origin, path)
    assert plan.stall is not None
    plan.stall.set()
    assert list(path.parent.iterdir()) == []


@pytest.mark.long
@pytest.mark.parametrize("origin", [HUB, DRIVE], ids=["hub", "drive"])
def test_a_bar_for_a_person(origin: Hub | Drive, path: Path, serving: Serving) -> None:
    serving(Plan(content(3 * MEGA)), as_drive=origin is DRIVE)
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    assert start(origin, path, stderr=theirs).wait() == 0
    os.close(theirs)
    shown = os.read(ours, 2**16)
    os.close(ours)
    assert b"100%" in shown
    assert b"3.00M/3.00M" in shown


@pytest.mark.parametrize(
    ("begin", "expected"),
    [
        (b"", "an empty file"),
        (b"\n <!DOCTYPE HTML><html><head><TITLE>Sign in\n - Google</TITLE>", 'a web page ("Sign in - Google")'),
        (b"<html><body>404</body>", "a web page"),
        (b"<?xml version='1.0'?><Error/>", "a web page"),
        (b"PK\x03\x04<html>", None),
        (b"\x80\x02}q\x00", None),
        (b"\x10\x00\x00\x00\x00\x00\x00\x00{}", None),
    ],
)
def test_what_instead_of_weights(tmp_path: Path, begin: bytes, expected: str | None) -> None:
    path = tmp_path / "certificate.pem"
    path.write_bytes(begin)
    assert what_instead_of_weights(path) == expected
