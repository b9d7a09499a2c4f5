"""`make check-gpu`, as far as it runs on a machine without a GPU."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import torch

from tests.forked_commands import PYTHON, forking

pytestmark = pytest.mark.slow

TINY = ("--device", "cpu", "--images", "8", "--photographs", "2", "--drawings", "4", "--batch-size", "4")


def check_gpu(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script in a process of its own."""
    command = [PYTHON, str(repository / "bench" / "check_gpu.py"), *arguments]
    variables = os.environ | forking(repository / "src")
    return subprocess.run(command, capture_output=True, text=True, check=False, env=variables)


def tables(text: str) -> dict[str, list[list[str]]]:
    """The rows of each Markdown table below its header, as cells, by the title above it."""
    found: dict[str, list[list[str]]] = {}
    for title, body in re.findall(r"^(.+)\n\n\|.*\n\|[-:|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in body.splitlines()]
        found.setdefault(title, []).extend(rows)  # a row is printed when it is there, as a table of its own
    return found


@pytest.fixture(scope="module")
def done(repository: Path) -> subprocess.CompletedProcess[str]:
    return check_gpu(repository, *TINY, "--model", "test_byobnet", "--precisions", "float64", "bfloat16")


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
    assert [row[0] for row in decoding] == ["threads", "shared batches"]
    assert all(float(row[1].replace(",", "")) > 0 for row in decoding)
    assert [row[0] for row in rates] == ["float64", "bfloat16"]
    for row in rates:
        for name, value in (("forward", row[1]), ("with its start", row[3]), ("timm", row[4])):
            # a slow machine scores less than half an image a second
            assert float(value.replace(",", "")) >= 0, name
    assert rates[0][8] == ""
    assert 0 < float(rates[1][8]) < 0.1


@pytest.mark.exhaustive
def test_the_most_important_rows_come_first(done: subprocess.CompletedProcess[str]) -> None:
    marks = [
        "| float64 ", "Stored scores in float64", "| bfloat16 ", "Decoding, 8 images", "Cores that keep",
        " x 76 changes ",
    ]  # fmt: skip
    places = [done.stdout.index(mark) for mark in marks]
    assert places == sorted(places)


@pytest.mark.exhaustive
def test_the_cores_follow_from_the_rates(done: subprocess.CompletedProcess[str]) -> None:
    found = tables(done.stdout)
    ((title, rows),) = [(title, rows) for title, rows in found.items() if title.startswith("Cores that keep")]
    rates = {row[0]: row[1] for title, rows in found.items() if title.startswith("test_byobnet, 8") for row in rows}
    of_core = float(title.split()[-2].replace(",", ""))
    assert [row[0] for row in rows] == list(rates) == ["float64", "bfloat16"]
    for precision, *cores in rows:
        forward = float(rates[precision].replace(",", ""))
        for gpus, count in zip((1, 4, 8), cores, strict=True):
            expected = gpus * forward / of_core
            # all three are rounded
            assert abs(float(count.replace(",", "")) - expected) < 0.5 + 0.03 * expected


@pytest.mark.exhaustive
def test_the_time_spent_waiting_is_a_table(done: subprocess.CompletedProcess[str]) -> None:
    ((title, rows),) = [(title, rows) for title, rows in tables(done.stdout).items() if " x 76 changes " in title]
    assert title.startswith("test_byobnet on cpu, 1 images x 76 changes (")
    found = {name: float(cell.replace(",", "")) for name, cell, _ in rows}
    assert all(found[name] > 0 for name in list(found)[:4])
    for when in (", start included", " after the first quarter"):
        assert 0 <= found[f"share spent waiting{when}"] < 1


def test_what_the_budget_leaves_out_is_reported(repository: Path) -> None:
    done = check_gpu(repository, *TINY, "--budget", "-1")
    assert done.returncode == 1
    assert "stored scores on both devices: left out" in done.stderr
    assert done.stderr.endswith("error: stored scores: not compared\n")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_what_it_needs(repository: Path) -> None:
    done = check_gpu(repository)
    message = "error: check-gpu needs a CUDA device and a torch that finds it; without one: --device cpu --images 200\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)
