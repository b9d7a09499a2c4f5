"""Attacks and answers on a cluster of two nodes; one joins later and is killed; needs root (make test-ray)."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from cleanset.classes import imagenet
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.evaluation.user_model import load_member
from cleanset.plumbing.files import sha256
from cleanset.scoring.engine import score_few, settings_for
from cleanset.scoring.shards import Shards
from cleanset.studies.attacks import earlier_disk
from cleanset.studies.attacks.attack_stage import run_attack
from cleanset.studies.attacks.study import AttackStudy
from cleanset.studies.robustness import answering, digests
from cleanset.studies.robustness.images import MASKS, STUDY_IMAGES
from cleanset.tables import CROP_SCORES, SCORES, write_table
from tests.finished_shards import finished_shards
from tests.scoring.cluster import WITH_TOKEN, Node, lack_of_namespaces, two_nodes, wait_for
from tests.ten_images import drawn_image, id_of, jpeg

pytestmark = pytest.mark.slow
pytest.importorskip("ray", reason="Ray is not installed: make test-ray")

ROLE = "standard"
IMAGES = 12
# writes a line for each query, and then waits while there is a file of its node's name
HELD_MODEL = """
import os, time
from pathlib import Path
import torch
from torch import nn

class Held(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.sin(torch.arange(3000.0)).reshape(3, 1000) * 20)

    def forward(self, pixels):
        folder, node = Path(__file__).parent, os.environ.get("NODE", "local")
        with (folder / f"queries-{node}").open("a") as file:
            print(len(pixels), file=file)
        while (folder / f"hold-{node}").exists():
            time.sleep(0.05)
        return pixels.mean(dim=(2, 3)) @ self.weight

def network():
    return Held(), "timm-bilinear-64-64"
"""
SMALL_SHARDS = """
import os, sys
from functools import partial
from pathlib import Path
# nothing that this process itself asks is held
os.environ["NODE"] = "driver"
from cleanset.studies.attacks import earlier_disk
from cleanset.studies.attacks.attack_stage import run_attack
from cleanset.studies.attacks.study import AttackStudy
from cleanset.studies.robustness import answering, digests
from cleanset.scoring.shards import Shards
earlier_disk.beginning = lambda *_: None
for module in (answering, digests):
    module.Shards = partial(Shards, min_images=4)
study = AttackStudy(Path.cwd() / "studies" / "attacks")
if sys.argv[1] == "attack":
    run_attack(study, "standard", "pgd")
else:
    answering.run(study.robustness, "standard", "corruptions")
"""


@dataclass(frozen=True, slots=True)
class Held:
    """A study whose model can be held on a node."""

    study: AttackStudy

    @property
    def folder(self) -> Path:
        return self.study.edition.folder.resolve()

    def queries(self, node: Node) -> int:
        """The number of queries that a node has begun."""
        path = self.folder / f"queries-{node.address}"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def hold(self, node: Node) -> Path:
        """Let a node wait in its next query until the file is removed."""
        path = self.folder / f"hold-{node.address}"
        path.touch()
        return path

    def finished(self) -> int:
        """The number of finished shards and groups."""
        return len(finished_shards(self.study.folder.parent))

    def results(self) -> dict[str, bytes]:
        """The files of answers and attacks."""
        folders = (self.study.results("pgd", ROLE).folder, self.study.robustness.folder / "data" / "corruptions")
        paths = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
        return {str(path.resolve().relative_to(self.folder)): path.read_bytes() for path in paths}


@pytest.fixture(scope="module", autouse=True)
def _token() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in WITH_TOKEN.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def nodes() -> Iterator[tuple[Node, Node]]:
    """The head node, on which Ray runs, and another, on which it does not yet."""
    if reason := lack_of_namespaces():
        if os.environ.get("CLEANSET_NO_SKIP"):
            pytest.fail(reason)
        pytest.skip(reason)
    with two_nodes() as both:
        both[0].start()
        yield both


def made(folder: Path, engine: str) -> Held:
    """An edition of one set, of images with the class that the model predicts."""
    study = AttackStudy(folder / "studies" / "attacks")
    for each in (study.folder, study.robustness.folder):
        each.mkdir(parents=True)
    (folder / "held_on_a_node.py").write_text(HELD_MODEL)
    params = {
        "root": ".", "protocol": "as_written", "dataset": {"images": "a.tar", "label": "real"},
        "models": {ROLE: {"source": "module", "name": "held_on_a_node:network"}}, "engine": engine,
        "score": {"device": "cpu", "precision": "float64", "batch_size": 4}, "count": {"published_top1": {}},
    }  # fmt: skip
    (folder / "params.yaml").write_text(json.dumps(params))
    digest = load_member(read_params(folder).network(ROLE), folder, imagenet()).weights_sha256
    params["models"] = {ROLE: {"source": "module", "name": "held_on_a_node:network", "sha256": digest}}
    (folder / "params.yaml").write_text(json.dumps(params))
    corruptions = "{names: [contrast, gaussian_noise], severities: [3]}"
    study.robustness.params_yaml.write_text(f"jpeg: null\ncorruptions: {corruptions}\n")
    study.params_yaml.write_text("attacks: {pgd: {steps: 3, group: 1}}\nprobe: {images: 5}\n")
    with_images(study)
    return Held(study)


def with_images(study: AttackStudy) -> None:
    """Write the set, its scores and the images of the studies."""
    edition: Edition = study.edition
    classes = imagenet()
    params = read_params(edition.folder)
    model = load_member(params.network(ROLE), edition.folder, classes)
    images = {id_of(number): jpeg(drawn_image(180, 170, seed=number)) for number in range(1, IMAGES + 1)}
    scores = score_few(model, images.__getitem__, settings_for(params.score), list(images))
    write_table(edition.scores(ROLE), scores, SCORES, classes)
    write_table(edition.crop_scores(ROLE), pd.DataFrame(columns=CROP_SCORES.names), CROP_SCORES, classes)
    rows = []
    for (image_id, data), top in zip(images.items(), scores["top5_class"], strict=True):
        file = f"{classes.keys[int(top[0])]}/{image_id}.JPEG"
        path = edition.export(ROLE) / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        rows.append((file, image_id, int(top[0]), None, sha256(data), [ROLE]))
    table = pd.DataFrame(rows, columns=STUDY_IMAGES.names)
    write_table(study.robustness.images, table, STUDY_IMAGES, classes)
    masks = pd.DataFrame([(file, *[None] * 4, "no_mask") for file in sorted(table["file"])], columns=MASKS.names)
    write_table(study.robustness.masks_table, masks, MASKS, classes)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files that one machine leaves."""
    held = made(tmp_path_factory.mktemp("local"), "local")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(earlier_disk, "beginning", lambda *_: None)
        patch.setenv("CLEANSET_WORKERS", "1")
        for module in (answering, digests):
            patch.setattr(module, "Shards", partial(Shards, min_images=4))
        run_attack(held.study, ROLE, "pgd")
        answering.run(held.study.robustness, ROLE, "corruptions")
    return held.results()


@pytest.mark.parametrize("what", ["attack", "answers"])
def test_one_joins_later_and_is_killed(
    what: str, nodes: tuple[Node, Node], expected: dict[str, bytes], tmp_path: Path
) -> None:
    """It has finished some by then, and works on another, which the first node computes again."""
    head, other = nodes
    held = made(tmp_path, "ray")
    hold = held.hold(head)
    with head.run([sys.executable, "-c", SMALL_SHARDS, what], cwd=held.folder, stderr=subprocess.PIPE) as run:
        wait_for(lambda: held.queries(head), run)
        assert held.finished() == 0
        other.start()
        wait_for(held.finished, run)
        held.hold(other)
        other.kill()
        hold.unlink()
        assert run.wait() == 0, run.communicate()
    found = held.results()
    assert found == {name: content for name, content in expected.items() if name in found}
    assert len(found) == {"attack": IMAGES + 2, "answers": 2}[what]
