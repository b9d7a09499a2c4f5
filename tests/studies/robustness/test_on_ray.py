"""Answers and digests on a Ray cluster: the bytes of this machine, after a change of engine, too.

Skips without Ray (make test-ray).
"""

import shutil
from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
import yaml

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.scoring.computation import Tasks
from cleanset.scoring.shards import Shards
from cleanset.scoring.validity import MadeFrom
from cleanset.studies.robustness import answering, digests
from cleanset.studies.robustness.images import MASKS, STUDY_IMAGES, Study
from cleanset.studies.robustness.one_pass import PassWorker, ShownShard
from cleanset.tables import read_table, write_table
from tests.scoring.cluster import WITH_TOKEN
from tests.studies.attacks.study import ROLE, made_study

pytestmark = pytest.mark.slow
pytest.importorskip("ray", reason="Ray is not installed: make test-ray")

PARAMS = {"jpeg": None, "corruptions": {"names": ["gaussian_noise", "contrast"], "severities": [2, 5]}}
SHARDS = 5
"""Shards of four of the 20 images."""


@pytest.fixture(scope="module", autouse=True)
def _on_this_machine() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in WITH_TOKEN.items():
            patch.setenv(name, value)
        patch.delenv("RAY_ADDRESS", raising=False)
        for module in (answering, digests):
            patch.setattr(module, "Shards", partial(Shards, min_images=4))
        patch.setattr(digests, "BATCH_SIZE", 4)
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A study of two models; the further one is the edition's again."""
    study = made_study(tmp_path_factory.mktemp("made")).robustness
    shutil.rmtree(study.folder / "data" / "corruptions")
    images = read_table(study.images, STUDY_IMAGES, imagenet())
    masks = [(file, None, None, None, None, "no_mask") for file in images["file"]]
    write_table(study.masks_table, pd.DataFrame(masks, columns=MASKS.names), MASKS, imagenet())
    model = yaml.safe_load(study.edition.params_yaml.read_text())["models"][ROLE]
    study.params_yaml.write_text(yaml.safe_dump(PARAMS | {"further_models": {"again": model}}))
    return study


@pytest.fixture
def study(made: Study, tmp_path: Path) -> Study:
    shutil.copytree(made.edition.folder, tmp_path / "edition")
    return Study(tmp_path / "edition" / "studies" / "robustness")


@pytest.fixture(scope="module")
def local(made: Study, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files that this machine leaves."""
    folder = tmp_path_factory.mktemp("local") / "edition"
    shutil.copytree(made.edition.folder, folder)
    study = Study(folder / "studies" / "robustness")
    answering.run(study, ROLE, "corruptions")
    answering.run(study, "again", "corruptions")
    digests.run(study)
    return files_of(study)


def files_of(study: Study) -> dict[str, bytes]:
    """The bytes of answers and digests."""
    paths = [*(study.folder / "data" / "corruptions").glob("*"), *study.digests.glob("*")]
    return {str(path.relative_to(study.folder)): path.read_bytes() for path in paths}


def set_engine(study: Study, engine: str) -> None:
    study.params_yaml.write_text(yaml.safe_dump(yaml.safe_load(study.params_yaml.read_text()) | {"engine": engine}))


def test_the_same_bytes_as_on_this_machine_alone(study: Study, local: dict[str, bytes]) -> None:
    """One pass of both models, whose digests are taken; then digests that nothing has taken."""
    set_engine(study, "ray")
    answering.run(study, ROLE, "corruptions")
    assert len(list(study.answers.partial("corruptions", "again").rglob("0*.parquet"))) == SHARDS
    assert len(list(study.partial_digests("corruptions").rglob("0*.parquet"))) == SHARDS
    answering.run(study, "again", "corruptions")
    digests.run(study)
    assert files_of(study) == local
    assert len(local) == 9
    shutil.rmtree(study.digests)
    digests.run(study)
    assert files_of(study) == local


def test_ray_continues_what_this_machine_has_begun(study: Study, local: dict[str, bytes]) -> None:
    results = PassWorker.results

    def until_the_third(worker: PassWorker, tasks: Tasks) -> Generator[tuple[int, ShownShard], None, None]:
        for number, found in results(worker, tasks):
            if number == 2:
                raise CleansetError("interrupted")
            yield number, found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PassWorker, "results", until_the_third)
        with pytest.raises(CleansetError, match="interrupted"):
            answering.run(study, ROLE, "corruptions")
    finished = study.answers.partial("corruptions", ROLE)
    assert len(list(finished.rglob("0*.parquet"))) == 2
    set_engine(study, "ray")
    answering.run(study, ROLE, "corruptions")
    set_engine(study, "local")
    answering.run(study, "again", "corruptions")
    digests.run(study)
    assert files_of(study) == local


def test_a_node_that_finds_other_inputs_is_refused(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    made_from = answering.made_from_all
    # this process alone has other facts
    monkeypatch.setattr(
        answering, "made_from_all", lambda *given: MadeFrom({**made_from(*given).facts, "again": {"seed": 1}})
    )
    set_engine(study, "ray")
    with pytest.raises(CleansetError, match=r"^Ray node .*: again\.seed 0, expected 1.*; expected the edition, code"):
        answering.run(study, ROLE, "corruptions")
