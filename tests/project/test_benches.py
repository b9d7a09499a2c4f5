"""Every bench of bench/README.md in miniature: a copy with small constants runs to its end and prints its table."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from PIL import Image

from tests.forked_commands import forking

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Miniature:
    """A bench's options, and the constants to replace: by module, the left side of a line and what it becomes.

    `title`: the beginning of a line that is printed. `codes`: exit codes; a few benches end with 1 beyond a limit,
    which so small a run may be.
    """

    title: str
    options: tuple[str, ...] = ()
    constants: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    codes: tuple[int, ...] = (0,)


TWO_CHANGES = '[(UNCHANGED, 0), ("contrast", 1)]'
MINIATURES = {
    "effort": Miniature("995 classes, three models, no verdict yet"),
    "engine": Miniature(
        "Images a second by the number of stand-in devices",
        ("--devices", "1", "2"),
        {
            "engine": {
                "SHARDS_PER_DEVICE": "8", "SCORED_SHARD": "4", "BATCH": "4", "GROUP": "1", "SCORE_MILLISECONDS": "1.0",
                "QUERY_MILLISECONDS": "0.1", "PGD_STEPS": "1", "SPSA_STEPS": "1",
            }
        },
    ),
    "estimators": Miniature(
        "2 data sets whose levels are equal",
        constants={
            "estimators": {
                "DATA_SETS": "2", "DESIGN": "(3, 3, 2, 2)", "ECE_IMAGES": "(34,)", "SCORE_DESIGNS": "((3, 2),)",
                "RATED": "(10,)", "MANY_RATED": "500", "RATED_OF_TYPE": "((2, 2),)",
            }
        },
    ),
    "growth": Miniature(
        "Processor seconds by images",
        ("20", "40"),
        {
            "growth": {
                "MODELS": "(3, 4)", "PEOPLE": "(8, 16)", "IMAGES_OF_MODELS": "20", "RATED": "20", "RATINGS": "10",
                "LEAST": "10",
            }
        },
    ),
    "plans": Miniature(
        "plans with --measure, one core", (), {"plans": {"MEASURED": "1"}},
    ),
    "groups": Miniature(
        "Coverage by groups, intraclass correlation 0.3, 4 simulations",
        ("4",),
        {"groups": {"SIZES": '{"10": (10,)}', "GROUPS": "(10,)", "ACCURACIES": "(0.8,)"}},
    ),
    "intervals": Miniature(
        "Equal classes",
        constants={
            "intervals": {
                "SIMULATIONS": "4", "BLOCK": "2", "DESIGNS": "((3, 2),)", "ERRORS": "(0.5,)", "MIN_DEFINED": "1",
            }
        },
    ),
    "score": Miniature(
        "test_vit, float32, 4 images",
        ("--images", "4", "--rounds", "1", "--model", "test_vit", "--precision", "float32"),
        {"score": {"CLEANSET": '("cleanset",)', "START": '"fork"'}},
    ),
    "waiting": Miniature(
        "test_byobnet on cpu, 1 images x 2 changes",
        ("--images", "1", "--model", "test_byobnet"),
        {"waiting": {"BATCHES_ALONE": "1", "CHANGES": TWO_CHANGES}},
    ),
}  # fmt: skip
ELSEWHERE = {
    "check_gpu": "scoring/test_check_gpu.py",
    "checkpoints": "sets/published/test_which_checkpoint.py",
    "replay": "sets/published/test_replay.py",
}
"""Benches that other tests run."""
NOT_RUN = {
    "hints": "needs the photographs, and minutes",
    "masking": "needs the built sample",
}
EXHAUSTIVE = {"effort", "engine", "growth", "score", "waiting"}
"""These take more than six seconds of processor time each."""


def test_every_bench_has_a_miniature(repository: Path) -> None:
    text = (repository / "bench" / "README.md").read_text()
    names = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    assert names == {*MINIATURES, *ELSEWHERE, *NOT_RUN}
    for name, test in ELSEWHERE.items():
        assert name in (repository / "tests" / test).read_text()


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.exhaustive if name in EXHAUSTIVE else ()) for name in MINIATURES],
)
def test_a_bench_runs_in_miniature(name: str, repository: Path, tmp_path: Path) -> None:
    miniature = MINIATURES[name]
    copy_project(repository, tmp_path, miniature)
    draw_photographs(tmp_path / "real")
    forked = forking(tmp_path / "src")
    environment = os.environ | forked | {
        "PYTHONPATH": f"{tmp_path / 'sample'}:{tmp_path}:{forked['PYTHONPATH']}",
        "CLEANSET_REAL": str(tmp_path / "real"),
        "CLEANSET_BENCH_DIR": str(tmp_path),
    }  # fmt: skip
    command = ["python", f"bench/{name}.py", *miniature.options]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in miniature.codes, done.stderr
    assert "Traceback" not in done.stderr
    assert re.search(rf"^{re.escape(miniature.title)}.*\n\n\|.*\|\n\|[-:|]+\|\n\|", done.stdout, re.MULTILINE)


def copy_project(repository: Path, folder: Path, miniature: Miniature) -> None:
    """A copy of bench/ with other constants, and links to everything else in the repository."""
    for path in repository.iterdir():
        if path.name not in ("bench", ".dvc", "data"):
            (folder / path.name).symlink_to(path)
    for name in (".dvc", "data"):
        (folder / name).mkdir()
    shutil.copy(repository / "data" / "README.md", folder / "data")
    for name in (".gitignore", "config"):
        shutil.copy(repository / ".dvc" / name, folder / ".dvc")
    shutil.copytree(repository / "bench", folder / "bench", ignore=shutil.ignore_patterns("__pycache__"))
    for module, constants in miniature.constants.items():
        path = folder / "bench" / f"{module}.py"
        text = path.read_text()
        for left, value in constants.items():
            line = rf"^{re.escape(left)} = (?:\((?:\n    .*)+\n\)|.*)$"
            text, count = re.subn(line, f"{left} = {value}", text, flags=re.MULTILINE)
            assert count == 1, f"bench/{module}.py: no constant {left}"
        path.write_text(text)


def draw_photographs(folder: Path) -> None:
    """A hundred small JPEGs, and a devkit that only needs an MD5."""
    (folder / "photos").mkdir(parents=True)
    (folder / "ILSVRC2012_devkit_t12.tar.gz").write_bytes(b"")
    for number in range(100):
        pixels = Image.frombytes("RGB", (8, 6), Random(number).randbytes(8 * 6 * 3))
        pixels.resize((64, 48)).save(folder / "photos" / f"{number:03d}.JPEG", quality=90)
