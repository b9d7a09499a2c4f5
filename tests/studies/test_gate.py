"""Twelve bad networks through every command that takes a network: each is refused in the same words by all of them."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from PIL import Image

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation import evaluate as measuring
from cleanset.evaluation.arguments import Arguments
from cleanset.evaluation.function import evaluate
from cleanset.scoring.logits import Groups
from cleanset.studies.attacks import earlier_disk
from cleanset.studies.attacks.request import AttackRequest, attack_params
from cleanset.studies.contest.entries import ModelOfEdition
from cleanset.studies.contest.models import ModelDefence
from cleanset.studies.robustness import evaluation
from cleanset.studies.training.run_params import Network
from tests.evaluation.compare.command import cleanset, says
from tests.own_edition import run
from tests.ten_images import drawn_image

pytestmark = pytest.mark.slow

MODULE = '''
import numpy as np
import torch
from torch import nn

class Network(nn.Module):
    """Linear in the pixels; `end` makes something else of its logits."""

    def __init__(self, end):
        super().__init__()
        self.layer = nn.Linear(3 * 8 * 8, 3)
        torch.manual_seed(0)
        nn.init.normal_(self.layer.weight)
        self.end = end

    def forward(self, pixels):
        return self.end(self.layer(pixels.flatten(1)))

def small(image):
    return np.asarray(image.resize((8, 8))).transpose(2, 0, 1)

def normalised(image):
    pixels = torch.from_numpy(small(image).copy()).float() / 255
    return (pixels - 0.5) / 0.2

def fail(logits):
    raise KeyError("no such layer")

ENDS = {
    "softmax": lambda z: z.softmax(1),
    "half_softmax": lambda z: z.bfloat16().softmax(1).to(z),
    "one_hot": lambda z: nn.functional.one_hot(z.argmax(1), 3).to(z),
    "fewer": lambda z: z[:, :2],
    "flat": lambda z: z.argmax(1).to(z),
    "maps": lambda z: z[:, :, None],
    "whole": lambda z: z.round().long(),
    "several": lambda z: (z, z),
    "raising": fail,
    "nan": lambda z: z * torch.nan,
    "infinite": lambda z: z.softmax(1).log() / 0.0,
    "of_batch": lambda z: z - z.mean(0),
    "random": lambda z: z + torch.rand_like(z),
    "log_softmax": lambda z: z.log_softmax(1),
    "honest": lambda z: z,
}

def __getattr__(name):
    if name == "tensors":
        return lambda: (Network(ENDS["honest"]), normalised)
    return lambda: (Network(ENDS[name]), "timm-bilinear-8-8")
'''
PROBABILITIES = "the network gives probabilities, rows from 0 to 1 with a sum of 1; expected logits, float ("
REFUSED = {
    "softmax": PROBABILITIES,
    "half_softmax": PROBABILITIES,
    "one_hot": PROBABILITIES,
    "fewer": "the network gives float",
    "flat": "the network gives float",
    "maps": "the network gives float",
    "whole": "the network gives int64 (",
    "several": "the network gives a ",
    "raising": "the network raises KeyError ('no such layer')",
    "nan": "a logit is NaN or infinite; the weights are broken, or the precision does not suffice: try float64",
    "infinite": "a logit is NaN or infinite; the weights are broken, or the precision does not suffice: try float64",
}
"""The prediction of every command for each network."""
FEW = {"corruptions": {"names": ["contrast"], "severities": [3]}, "bootstrap": {"draws": 20}}
DEPENDENT = ("of_batch", "random")
"""Networks whose answers depend on more than the image: an edition refuses them, measurements report it."""


@dataclass(frozen=True)
class Place:
    """An edition of nine images of three classes, whose model is the named one."""

    edition: Edition
    folder: Path

    def wanted(self, name: str) -> Arguments:
        return Arguments(str(self.folder / "photos"), [f"nets:{name}"], device="cpu")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("gate")
    for number, key in enumerate(("ash", "elm", "oak")):
        (folder / "photos" / key).mkdir(parents=True)
        for each in range(3):
            drawn_image(40, 40, seed=100 * number + each).save(folder / "photos" / key / f"{each}.png")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "path", [str(folder / "own"), *sys.path])
        # a process that bubblewrap or gVisor begins imports torch again, which takes seconds
        patch.setattr(earlier_disk, "beginning", lambda *_: None)
        (folder / "nets.py").write_text(MODULE)
        given = ("edition", "own", "--images", "photos", "--model", "mine=module:nets:honest")
        assert says(cleanset(*given, cwd=folder))[0] == 0
        (folder / "few.yaml").write_text(yaml.safe_dump(FEW))
        found = Place(Edition(folder / "own"), folder)
        run(found.edition, "preprocess")
        yield found
    sys.modules.pop("nets", None)


def of_edition(place: Place, name: str) -> None:
    """Stage score; every member of an ensemble is scored so."""
    use(place, name)
    run(place.edition, "score")


def of_evaluate(place: Place, name: str) -> None:
    """`cleanset evaluate`."""
    measuring.run(place.edition, place.wanted(name))


def of_python(place: Place, name: str) -> None:
    """`cleanset.evaluate`."""
    import torch

    nets = import_module("nets")

    def transform(image: Image.Image) -> torch.Tensor:
        return torch.from_numpy(nets.small(image).copy()).float() / 255

    network, _ = getattr(nets, name)()
    evaluate(network, place.folder / "photos", transform, name=f"nets:{name}", edition=place.edition.folder)


def of_robustness(place: Place, name: str) -> None:
    """`cleanset robustness evaluate`."""
    out = place.folder / f"robustness-{name}"
    evaluation.run(evaluation.request_of(place.edition, place.wanted(name), out, place.folder / "few.yaml"))


def of_attacks(place: Place, name: str) -> None:
    """`cleanset attacks evaluate`."""
    from cleanset.studies.attacks.evaluation import run as run_attacks

    params = attack_params("pgd", "8/255", 4)
    out = place.folder / f"attacks-{name}"
    run_attacks(AttackRequest.read(place.edition, place.wanted(name), params, out, warnings=False))


def of_contest(place: Place, name: str) -> None:
    """A defence that is a model of the edition."""
    use(place, name)
    model = {"role": "mine", "confidence": "softmax", "threshold": 0.0}
    groups = Groups.of({"one": ["ash"], "two": ["elm"]}, place.edition.read_classes())
    defence = ModelDefence(place.edition, ModelOfEdition.model_validate(model), groups)
    defence({str(path): path for path in (place.folder / "photos").rglob("*.png")})


def of_training(place: Place, name: str) -> None:
    """A network that is to be trained."""
    from cleanset.studies.training.networks import build_network

    wanted = Network(source="module", name=f"nets:{name}")
    build_network(wanted, classes=3, size=8, edition=place.edition.folder, seed=0, study=place.edition.folder)


COMMANDS = (of_edition, of_evaluate, of_python, of_robustness, of_attacks, of_contest, of_training)


def use(place: Place, name: str) -> None:
    """Put the network into the edition's params.yaml."""
    params = yaml.safe_load(place.edition.params_yaml.read_text())
    params["models"]["mine"]["name"] = f"nets:{name}"
    place.edition.params_yaml.write_text(yaml.safe_dump(params))


@pytest.mark.parametrize("asked", COMMANDS)
def test_each_is_refused_in_the_same_words(asked: Callable[[Place, str], None], place: Place) -> None:
    for name, words in REFUSED.items():
        with pytest.raises(CleansetError) as raised:
            asked(place, name)
        text = str(raised.value)
        assert words in text, name
        assert "\n" not in text


@pytest.mark.long
@pytest.mark.parametrize("name", DEPENDENT)
def test_answers_that_depend_on_more_than_the_image(name: str, place: Place) -> None:
    """An edition, whose scores have to come out the same again, refuses them; measurements report it."""
    with pytest.raises(CleansetError, match=r"^score mine: the network gives an image other logits (when|in) .*: turn"):
        of_edition(place, name)
    assert not place.edition.scores("mine").exists()
    _, (row,) = measuring.run(place.edition, place.wanted(name))
    assert row.is_deterministic is False
    wanted = place.wanted(name)
    found = evaluation.run(evaluation.request_of(place.edition, wanted, place.folder / name, place.folder / "few.yaml"))
    assert found.random == [f"nets:{name}"]


@pytest.mark.parametrize("asked", [of_evaluate, of_robustness, of_attacks, of_training])
def test_a_preprocessing_that_ends_in_to_tensor_and_normalize(
    asked: Callable[[Place, str], None], place: Place
) -> None:
    with pytest.raises(CleansetError) as raised:
        asked(place, "tensors")
    assert str(raised.value) == (
        "nets:tensors: the preprocessing gives float32 (3, 8, 8); expected uint8 pixels, 0 to 255: end it with "
        "PILToTensor in place of ToTensor, and leave Normalize to the network"
    )


@pytest.mark.long
@pytest.mark.parametrize("asked", COMMANDS)
@pytest.mark.parametrize("name", ["log_softmax", "honest"])
def test_what_is_accepted(
    name: str, asked: Callable[[Place, str], None], place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    asked(place, name)
    noted = "the network gives log-probabilities, as log-softmax does" in capsys.readouterr().err
    assert noted == (name == "log_softmax")


def test_log_probabilities_have_the_confidences_of_their_logits(place: Place) -> None:
    (one,), (other,) = (measuring.run(place.edition, place.wanted(name))[1] for name in ("honest", "log_softmax"))
    assert one.measures.calibration_error == pytest.approx(other.measures.calibration_error, abs=1e-12)
