"""With the weights in place nothing goes over the network; nothing is ever written outside data/weights."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import timm
import torch
from safetensors.torch import save_file
from torchvision.models import resnet18

from cleanset.plumbing.files import sha256
from tests.scoring.conftest import Serving
from tests.scoring.networks import settle
from tests.scoring.servers import QUOTA, Plan

pytestmark = pytest.mark.slow

PARAMS = """\
root: .
dataset: {images: none.tar}
models:
  standard: {source: timm, name: test_byobnet.r160_in1k}
  norm_robust: {source: robustbench, name: Salman2020Do_R18, threat_model: Linf}
"""
PLACES = {
    "standard": "data/weights/timm/test_byobnet.r160_in1k/model.safetensors",
    "norm_robust": "data/weights/imagenet/Linf/Salman2020Do_R18.pt",
}
LOAD = """
from pathlib import Path
from cleanset.errors import CleansetError
from cleanset.scoring.models import load_model
from cleanset.edition.params import read_params
for model in read_params(Path()).models.values():
    try:
        print(load_model(model, Path()).weights_sha256)
    except CleansetError as error:
        print(error)
"""
NO_SOCKETS = """
import sys
refused = True
def refuse(event, arguments):
    if refused and event in ("socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"):
        raise SystemExit(f"{event} {arguments}")
sys.addaudithook(refuse)
"""


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("weights")
    save_file(dict(settle(timm.create_model("test_byobnet"), 1).state_dict()), folder / "hub")
    torch.save({"state_dict": dict(settle(resnet18(), 2).state_dict())}, folder / "drive")
    return {"standard": (folder / "hub").read_bytes(), "norm_robust": (folder / "drive").read_bytes()}


@pytest.fixture
def edition(tmp_path: Path) -> Path:
    folder = tmp_path / "edition"
    folder.mkdir()
    (folder / "params.yaml").write_text(PARAMS)
    return folder


def run(edition: Path, program: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=edition, capture_output=True, text=True, check=False, env=os.environ,
    )  # fmt: skip


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.exhaustive
def test_downloaded_once_then_no_connection_is_made(
    edition: Path, home: Path, serving: Serving, weights: dict[str, bytes], tmp_path: Path
) -> None:
    plans = [Plan(weights["standard"]), Plan(weights["norm_robust"])]
    serving(plans[0])
    serving(plans[1], as_drive=True)
    digests = "".join(f"{sha256(data)}\n" for data in weights.values())
    first = run(edition, LOAD)
    assert (first.stdout, first.stderr) == (digests, "")
    assert {name: (edition / place).read_bytes() for name, place in PLACES.items()} == weights
    asked = [len(plan.asked) for plan in plans]
    again = run(edition, NO_SOCKETS + LOAD)
    assert (again.stdout, again.stderr) == (digests, "")
    assert [len(plan.asked) for plan in plans] == asked
    assert files(tmp_path) == {"certificate.pem", "edition/params.yaml"} | {
        f"edition/{name}{end}" for name in PLACES.values() for end in ("", ".sha256")
    }
    assert list(home.rglob("*")) == []


def test_the_block_of_connections_works(edition: Path, home: Path) -> None:
    done = run(edition, NO_SOCKETS + "import socket; socket.create_connection(('127.0.0.1', 1))")
    assert done.stderr.startswith("socket.getaddrinfo ")


@pytest.mark.exhaustive
def test_pages_that_lie_there_and_nothing_to_be_had(
    edition: Path, home: Path, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pages are removed without a connection; then, in the same process, the line says what to do."""
    serving(Plan(b"", page=QUOTA), as_drive=True)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    for place in PLACES.values():
        (edition / place).parent.mkdir(parents=True)
        (edition / place).write_text(QUOTA)
    page = 'a web page ("Google Drive - Quota exceeded"), not weights: removed; run again to download the weights of'
    *removed, hub, drive = run(edition, f"{NO_SOCKETS}{LOAD}refused = False\n{LOAD}").stdout.splitlines()
    assert removed == [
        f"{PLACES['standard']}: {page} test_byobnet.r160_in1k",
        f"{PLACES['norm_robust']}: {page} Salman2020Do_R18",
    ]
    assert hub.startswith(f"{PLACES['standard']}: cannot be downloaded (ConnectError: ")
    assert "save https://huggingface.co/timm/test_byobnet.r160_in1k/resolve/main/model.safetensors under" in hub
    assert drive == (
        f"{PLACES['norm_robust']}: cannot be downloaded (FileURLRetrievalError: Too many users have viewed or "
        "downloaded this file recently. Please try again.); run again, or save "
        "https://drive.google.com/uc?id=1OThCOQCOxY6lAgxZxgiK3YuZDD7PPfPx under that name, "
        "or name a file with the weights of Salman2020Do_R18 in params.yaml (weights and sha256)"
    )
    assert files(edition) == {"params.yaml"}
