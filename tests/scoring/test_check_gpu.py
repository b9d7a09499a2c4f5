"""`make check-gpu`, as far as it runs on a machine without a GPU."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.slow

TINY = ("--device", "cpu", "--images", "8", "--photographs", "2", "--drawings", "4", "--batch-size", "4")


def check_gpu(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script in a process of its own."""
    command = [sys.executable, str(repository / "bench" / "check_gpu.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def tables(text: str) -> dict[str, list[list[str]]]:
    """The rows of each Markdown table below its header, as cells, by the title above it."""
    found = {}
    for title, body in re.findall(r"^(.+)\n\n\|.*\n\|[-:|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE):
        found[title] = [[cell.strip() for cell in line.strip("|").split("|")] for line in body.splitlines()]
    return found


@pytest.fixture(scope="module")
def done(repository: Path) -> subprocess.CompletedProcess[str]:
    return check_gpu(repository, *TINY, "--model", "test_byobnet", "--precisions", "bfloat16")


@pytest.mark.exhaustive
def test_stored_scores_are_compared(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    rows = tables(done.stdout)["Stored scores in float64, on both devices"]
    sample = ["test_efficientnet", "test_byobnet", "test_vit"]
    assert [row[:4] for row in rows[-3:]] == [[name, "4", "4", "0"] for name in sample]
    assert [row[:4] for row in rows[:-3]] in (
        [],  # no real photographs here
        [[f"tf_efficientnet_lite{number}", "2", "2", "0"] for number in range(3)],
    )


@pytest.mark.exhaustive
def test_the_rates_are_a_table(done: subprocess.CompletedProcess[str]) -> None:
    found = tables(done.stdout)
    decoding, rates = (next(rows for title, rows in found.items() if re.match(s, title)) for s in ("Dec", "test_byo"))
    assert [row[0] for row in decoding] == [
        "decoding: threads", "decoding: shared batches", "decoding: DataLoader",
    ]  # fmt: skip
    assert all(float(row[1].replace(",", "")) > 0 for row in decoding)
    names = [row[0] for row in rates]
    assert names == [
        "forward alone", "cleanset score, without its start", "cleanset score, with its start",
        "scoring, fed by a DataLoader", "plain timm loop", "score by forward alone",
        "score by the slower of forward and decoding", "score by the plain timm loop",
        "largest difference from float64", "limit: score by forward alone, at least",
        "limit: score by the slower of both, at least", "limit: score by the plain timm loop, at least",
    ]  # fmt: skip
    cells = dict(zip(names, rates, strict=True))
    for name in ("forward alone", "cleanset score, with its start", "scoring, fed by a DataLoader", "plain timm loop"):
        assert all(float(value.replace(",", "")) > 0 for value in cells[name][1:]), name
    assert 0 < float(cells["largest difference from float64"][1]) < 0.1


@pytest.mark.exhaustive
def test_the_time_spent_waiting_is_a_table(done: subprocess.CompletedProcess[str]) -> None:
    ((title, rows),) = [(title, rows) for title, rows in tables(done.stdout).items() if " x 76 changes " in title]
    assert title.startswith("test_byobnet on cpu, 1 images x 76 changes (")
    found = {name: float(cell.replace(",", "")) for name, cell, _ in rows}
    assert all(found[name] > 0 for name in list(found)[:4])
    for when in (", start included", " after the first quarter"):
        assert 0 <= found[f"share spent waiting{when}"] < 1


def test_what_the_budget_leaves_out_is_named(repository: Path) -> None:
    done = check_gpu(repository, *TINY, "--budget", "-1")
    assert done.returncode == 1
    assert "stored scores on both devices: left out" in done.stderr
    assert done.stderr.endswith("error: stored scores: not compared\n")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_what_it_needs(repository: Path) -> None:
    done = check_gpu(repository)
    message = "error: check-gpu needs a CUDA device and a torch that finds it; without one: --device cpu --images 200\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)
