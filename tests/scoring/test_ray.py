"""The Ray engine, on this machine and on a cluster of two nodes; skips if Ray is not installed (make test-ray)."""

import os
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml

from cleanset.classes import imagenet
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.user_model import load_member
from cleanset.scoring.engine import ScoringRun, Settings, settings_for
from cleanset.scoring.shards import Shards
from cleanset.scoring.validity import MadeFrom
from cleanset.stages import score
from cleanset.tables import SCORES, write_table
from tests import own_edition
from tests.scoring.cluster import WITH_TOKEN, Node, errors_of, lack_of_namespaces, two_nodes, wait_for
from tests.scoring.editions import make_edition

pytestmark = pytest.mark.slow
pytest.importorskip("ray", reason="Ray is not installed: make test-ray")

IMAGES, SHARDS, BATCHES = 2048, 4, 512
CHECKED_BATCHES = 5
"""Batches in which a custom model is asked whether its logits depend on more than the image."""
REMEDY = "expected the edition, code and libraries of the head node: update this node, or run ray stop on it"
PACKAGE = Path(score.__file__).parents[1]
# writes a line for each batch of four images, and then waits while there is a file of its node's name
HELD_MODEL = """
import os, time
from pathlib import Path
import torch
from torch import nn

class Held(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.sin(torch.arange(3000.0)).reshape(3, 1000))

    def forward(self, pixels):
        folder, node = Path(__file__).parent, os.environ.get("NODE", "local")
        with (folder / f"batches-{node}").open("a") as file:
            print(len(pixels), file=file)
        while (folder / f"hold-{node}").exists():
            time.sleep(0.05)
        return pixels.mean(dim=(2, 3)) @ self.weight

def network():
    return Held(), "timm-bilinear-64-64"
"""


@dataclass(frozen=True, slots=True)
class Held:
    """An edition whose model can be held on a node, and the bytes of its scores by the local engine."""

    edition: Edition
    local: bytes

    def batches(self, node: Node | None = None) -> int:
        """The number of batches that a node has begun, or the local engine."""
        path = self.edition.folder / f"batches-{node.address if node else 'local'}"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def hold(self, node: Node) -> Path:
        """Let a node wait in its next batch until the file is removed."""
        path = self.edition.folder / f"hold-{node.address}"
        path.touch()
        return path

    def finished_shards(self) -> int:
        return len(list(self.edition.partial_scores("standard").glob("*/[0-9]*.parquet")))

    def scores(self) -> bytes:
        return self.edition.scores("standard").read_bytes()


@pytest.fixture(scope="module", autouse=True)
def _token() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in WITH_TOKEN.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def _held(tmp_path_factory: pytest.TempPathFactory) -> Held:
    edition = make_edition(tmp_path_factory.mktemp("shared"), IMAGES)
    (edition.folder / "held.py").write_text(HELD_MODEL)
    set_params(edition, models={"standard": {"source": "module", "name": "held:network"}})
    digest = load_member(read_params(edition.folder).network("standard"), edition.folder, imagenet()).weights_sha256
    set_params(edition, models={"standard": {"source": "module", "name": "held:network", "sha256": digest}})
    score.run(edition, "standard")
    return Held(edition, edition.scores("standard").read_bytes())


@pytest.fixture
def held(_held: Held) -> Held:
    """The edition without scores, to be scored by Ray."""
    folder = _held.edition.folder
    for path in (*folder.glob("batches-*"), *folder.glob("hold-*")):
        path.unlink()
    shutil.rmtree(_held.edition.scores("standard").parent, ignore_errors=True)
    set_params(_held.edition, score={"device": "cpu"}, engine="ray")
    return _held


@pytest.fixture(scope="module")
def namespaces() -> None:
    """Network namespaces; if they are impossible, skips with a message; fails if CLEANSET_NO_SKIP is set."""
    reason = lack_of_namespaces()
    if reason and os.environ.get("CLEANSET_NO_SKIP"):
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="module")
def _cluster(namespaces: None) -> Iterator[tuple[Node, Node]]:
    with two_nodes() as nodes:
        nodes[0].start()
        yield nodes


@pytest.fixture
def cluster(_cluster: tuple[Node, Node]) -> Iterator[tuple[Node, Node]]:
    """The head node, on which Ray runs, and another, on which it does not yet."""
    yield _cluster
    _cluster[1].kill()


def set_params(edition: Edition, **sections: object) -> None:
    path = edition.folder / "params.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | sections))


def prepared(edition: Edition, settings: Settings) -> tuple[ScoringRun, MadeFrom]:
    return score.network_run(score.read_inputs(edition, read_params(edition.folder), "standard"), settings)


def on_ray(edition: Edition) -> tuple[bytes, set[int]]:
    """The bytes of the table from shards of eight images, computed here, and the shards that were missing."""
    settings = replace(settings_for(read_params(edition.folder).score), batch_size=4)
    run, made_from = prepared(edition, settings)
    shards = Shards(
        edition.folder / "shards", "f", run.index["image_id"].tolist(), batch_size=4, classes=run.classes, min_images=8
    )
    missing = set(shards.missing)
    inputs = score.read_inputs(edition, read_params(edition.folder), "standard")
    run.computation(shards, elsewhere=score.elsewhere_of(inputs, settings, made_from)).run("ray")
    write_table(edition.folder / "table", shards.table(), SCORES, run.classes)
    return (edition.folder / "table").read_bytes(), missing


def test_the_same_bytes_as_the_local_engine(tmp_path: Path) -> None:
    edition = make_edition(tmp_path, 41)
    score.run(edition, "standard")
    local = edition.scores("standard").read_bytes(), edition.scored_with("standard").read_bytes()
    assert on_ray(edition) == (local[0], set(range(6)))
    (tmp_path / "shards" / "f" / "00003.parquet").unlink()
    assert on_ray(edition) == (local[0], {3})

    set_params(edition, engine="ray")
    edition.scores("standard").unlink()
    score.run(edition, "standard")
    assert (edition.scores("standard").read_bytes(), edition.scored_with("standard").read_bytes()) == local


def test_a_broken_image_is_reported(tmp_path: Path) -> None:
    edition = make_edition(tmp_path, 12)
    archive = bytearray((tmp_path / "images.tar").read_bytes())
    archive[600] ^= 255  # a byte of the first image
    (tmp_path / "images.tar").write_bytes(archive)
    with pytest.raises(CleansetError, match=r"^Ray node .*images\.tar: ILSVRC2012_val_00000001 has SHA-256 "):
        on_ray(edition)


def test_your_own_images(tmp_path: Path) -> None:
    edition = own_edition.make(tmp_path)
    (edition.folder / "nets.py").write_text(HELD_MODEL.replace("3000", "9").replace("1000", "3"))
    own_edition.change_params(edition, models={"standard": {"source": "module", "name": "nets:network"}})
    run, _ = prepared(edition, settings_for(read_params(edition.folder).score))
    write_table(tmp_path / "local", run.scores(None), SCORES, run.classes)
    assert on_ray(edition) == ((tmp_path / "local").read_bytes(), {0, 1})


def test_two_nodes_share_the_work(held: Held, cluster: tuple[Node, Node]) -> None:
    head, other = cluster
    other.start()
    holds = [held.hold(node) for node in cluster]
    with head.score(held.edition.folder) as run:
        wait_for(lambda: all(map(held.batches, cluster)), run)
        for hold in holds:
            hold.unlink()
        assert run.wait() == 0, run.communicate()
    assert held.scores() == held.local
    assert [held.batches(node) for node in cluster] == [BATCHES / 2, BATCHES / 2]


def test_a_killed_node_costs_no_shard(held: Held, cluster: tuple[Node, Node]) -> None:
    head, other = cluster
    other.start()
    held.hold(other)
    with head.score(held.edition.folder) as run:
        wait_for(lambda: held.batches(other) and held.batches(head), run)
        other.kill()
        assert run.wait() == 0, run.communicate()
    assert held.scores() == held.local
    assert held.batches(head) == BATCHES


def test_a_node_that_joins_later_gets_work(held: Held, cluster: tuple[Node, Node]) -> None:
    head, other = cluster
    hold = held.hold(head)
    with head.score(held.edition.folder) as run:
        wait_for(lambda: held.batches(head), run)
        other.start()
        wait_for(lambda: held.batches(other), run)
        hold.unlink()
        assert run.wait() == 0, run.communicate()
    assert held.scores() == held.local


def test_finished_shards_outlive_the_head(held: Held, namespaces: None) -> None:
    with two_nodes() as (head, other):
        for node in (head, other):
            node.start()
        held.hold(other)
        with head.score(held.edition.folder) as run:
            wait_for(held.finished_shards, run)
            head.kill(but=[run.pid])
            lines = errors_of(run)
    assert (run.returncode, lines) == (
        1,
        [
            "error: engine ray: the cluster 10.77.0.1:6379 cannot be reached, or its head node has died; "
            "expected it to run until the end: start it and the run again, which continues after the finished shards"
        ],
    )
    finished = held.finished_shards()
    assert finished in (1, 2)  # of the two that were given to the head, which may just have finished the second
    set_params(held.edition, engine="local")
    score.run(held.edition, "standard")
    assert held.batches() == BATCHES * (SHARDS - finished) / SHARDS + CHECKED_BATCHES
    assert held.scores() == held.local


@pytest.mark.parametrize(
    ("difference", "message"),
    [
        (
            "no edition",
            "/params.yaml: missing; expected the folder of an edition, with params.yaml in UTF-8, as cleanset edition "
            "makes one; " + REMEDY,
        ),
        ("other images", "/images.tar: ILSVRC2012_val_"),
        (
            "another version",
            "record.code 'scoring 999', expected 'scoring {}'; " + REMEDY,
        ),
        (
            "an older version",
            "AttributeError: Can't get attribute 'RayWorker' on <module 'cleanset.scoring.cluster' from '{}'>; "
            + REMEDY,
        ),
    ],
)
def test_a_node_that_differs_is_refused(
    difference: str, message: str, held: Held, cluster: tuple[Node, Node], tmp_path: Path
) -> None:
    head, other = cluster
    folder, version, module = held.edition.folder, PACKAGE / "scoring" / "VERSION", PACKAGE / "scoring" / "cluster.py"
    (tmp_path / "empty").mkdir()
    (tmp_path / "VERSION").write_text("999\n")
    (tmp_path / "cluster.py").write_text("")
    corrupt_images(folder / "images.tar", tmp_path / "images.tar")
    other.start(
        {
            "no edition": (tmp_path / "empty", folder),
            "other images": (tmp_path / "images.tar", folder / "images.tar"),
            "another version": (tmp_path / "VERSION", version),
            "an older version": (tmp_path / "cluster.py", module),
        }[difference]
    )
    held.hold(head)  # which would finish alone otherwise, before the other has started its worker
    with head.score(folder) as run:
        (line,) = errors_of(run)
    assert run.returncode == 1
    assert "Ray node 10.77.0.2" in line
    expected = {"another version": version.read_text().strip(), "an older version": str(module)}.get(difference)
    assert message.format(expected) in line
    assert not held.edition.scores("standard").exists()


def corrupt_images(archive: Path, corrupted: Path) -> None:
    """Copy an archive with one byte changed in every image."""
    content = bytearray(archive.read_bytes())
    with tarfile.open(archive) as tar:
        for member in tar:
            content[member.offset_data + 100] ^= 255
    corrupted.write_bytes(content)
