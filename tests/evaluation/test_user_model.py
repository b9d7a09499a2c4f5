"""What a module's callable may return, and the line for each way in which it does not keep the contract."""

import pickle
import pydoc
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.arguments import Arguments
from cleanset.evaluation.evaluate import run
from cleanset.evaluation.measured_models import notes_of, results_content
from cleanset.evaluation.sets import open_set
from cleanset.evaluation.specs import ModuleModel
from cleanset.evaluation.user_model import CommandNetwork, callable_of, load_module, tensors_sha256
from cleanset.scoring.decoding import pixels_of
from tests.evaluation.conftest import COLOURS

pytestmark = pytest.mark.slow

NOWHERE = Edition(Path("nowhere"))


def test_network_and_preprocessing(mine: str) -> None:
    loaded = load_module(ModuleModel("mine:colours", mine, "colours"), imagenet())
    assert loaded.preprocessing.size == 8
    assert not loaded.network.training
    logits = loaded.network(torch.tensor([0.5, 0.25, 0]).view(1, 3, 1, 1).expand(1, 3, 8, 8))
    assert logits[0, :3].tolist() == [5.0, 2.5, 0.0]
    by_name = load_module(ModuleModel("mine:keras", mine, "keras"), imagenet())
    assert (by_name.preprocessing.name, by_name.preprocessing.size) == ("keras256", 224)
    assert by_name.weights_sha256 == loaded.weights_sha256


BY_BRIGHTNESS = """
import pathlib, sys
from PIL import Image

for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    print(f"{path.name}, {'n01443537' if Image.open(path).getpixel((0, 0))[0] > 127 else 'n01440764'}")
"""


def test_a_command_is_shown_copies_and_answers_by_class() -> None:
    network = CommandNetwork("command:mine", (sys.executable, "-c", BY_BRIGHTNESS), imagenet())
    pixels = torch.tensor([0.0, 1.0, 0.2], dtype=torch.float64).view(3, 1, 1, 1).expand(3, 3, 8, 8)
    logits = network(pixels)
    assert (logits.shape, logits.dtype, logits.sum().item()) == ((3, 1000), torch.float64, 3.0)
    assert logits.argmax(dim=1).tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("sh", "-c", "echo one >&2; echo two >&2; exit 3"), "ends with exit code 3 ('two'); expected 0"),
        (("./nowhere",), "does not start ([Errno 2] No such file or directory: './nowhere'); expected a program"),
        (
            ("true",),
            "no answer to 1 of 1 images, 00000.png among them; expected a line of a file, a comma and a wnid for each",
        ),
        (
            ("sh", "-c", "echo 00000.png, tench"),
            "line 1 of its output: answers 'tench'; expected a wnid such as n01440764",
        ),
    ],
)
def test_a_command_that_does_not_answer(command: tuple[str, ...], message: str) -> None:
    with pytest.raises(CleansetError, match=f"^command:mine: {re.escape(message)}"):
        CommandNetwork("command:mine", command, imagenet())(torch.zeros(1, 3, 8, 8))


def test_the_digest_is_of_names_types_shapes_and_values() -> None:
    def digest(name: str, *values: float, dtype: torch.dtype = torch.float32) -> str:
        network = torch.nn.Module()
        network.register_buffer(name, torch.tensor(values, dtype=dtype))
        return tensors_sha256(network)

    first = digest("a", 1, 2)
    assert first == digest("a", 1, 2)
    others = [digest("b", 1, 2), digest("a", 1, 3), digest("a", 1), digest("a", 1, 2, dtype=torch.bfloat16)]
    assert len({first, *others}) == 5
    assert tensors_sha256(torch.nn.BatchNorm2d(2)) != first  # which has a number without dimensions


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ten", r"mine:ten: the network gives float64 \(2, 10\); expected logits, float \(2, 1000\)"),
        ("nan", "mine:nan, an image of random pixels: a logit is NaN or infinite; the weights are broken"),
        ("whole_numbers", r"mine:whole_numbers: the network gives int64 \(2, 1000\); expected logits, float"),
        ("several", "mine:several: the network gives a tuple of 2; expected logits"),
        (
            "single_precision",
            r"mine:single_precision: the network raises RuntimeError \(.*\) for float64 pixels \(2, 3, 8, 8\); "
            "expected logits: correct it, or try --precision float32",
        ),
        (
            "leaving",
            r"mine:leaving: the network raises SystemExit \(bye\) for float64 pixels \(2, 3, 8, 8\); expected logits: "
            "correct it$",
        ),
        ("leaving_at_once", r"mine:leaving_at_once: raises SystemExit \(bye\); expected a network and its preproc"),
        ("alone", "mine:alone: returns a value of type Colours; expected a network and its preprocessing"),
        ("no_network", "mine:no_network: returns a value of type str as its network; expected a torch.nn.Module"),
        ("no_preprocessing", "mine:no_preprocessing: a value of type NoneType as preprocessing; expected keras256,"),
        ("unknown_preprocessing", "preprocessing 'timm-bilinear-8-9'; expected keras256, Res256Crop224 or timm-<"),
        ("oblong", r"mine:oblong: the preprocessing gives uint8 \(3, 8, 9\); expected \(3, size, size\), red first"),
        ("floats", r"mine:floats: the preprocessing gives float64 \(3, 8, 8\); expected uint8 pixels"),
        ("one_size_each", r"the preprocessing gives \(3, 9, 9\) for an image of 12 x 10 .* \(3, 8, 8\) for others"),
        ("broken_preprocessing", r"raises KeyError \('no such.+key'\) for an image of 400 x 300 pixels"),
        ("raising", r"mine:raising: raises OSError \(no weights\); expected a network and its preprocessing"),
        ("text", "--model mine:text: mine has a value of type str as text; expected a callable"),
        ("nothing", "--model mine:nothing: mine has no nothing; expected a callable"),
    ],
)
def test_what_does_not_keep_the_contract(name: str, message: str, mine: str, folder: Path) -> None:
    with pytest.raises(CleansetError, match=message) as raised:
        run(NOWHERE, Arguments(str(folder), [f"{mine}:{name}"]))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("other", "no module other here or installed"),
        (r"mine\.py", r"no module mine\.py here or installed; expected a module's name, not its file's: mine:make"),
        ("failing", "importing failing raises ModuleNotFoundError .*nothing_of_that_name"),
        ("ending", r"importing ending raises SystemExit \(bye\)"),
    ],
)
def test_a_module_that_is_not_there_or_fails(name: str, message: str, mine: str, folder: Path) -> None:
    Path("failing.py").write_text("import nothing_of_that_name\n")
    Path("ending.py").write_text("raise SystemExit('bye')\n")
    with pytest.raises(CleansetError, match=f"--model {name}:make: {message}"):
        run(NOWHERE, Arguments(str(folder), [f"{name}:make".replace("\\", "")]))


def test_a_constant_in_float32_runs_in_float32(mine: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the comparison with float64, in which it does not run, is left out."""
    wanted = Arguments(str(folder), [f"{mine}:single_precision"], precision="float32", device="cpu")
    _, (row,) = run(NOWHERE, wanted)
    assert (row.measures.overall.correct, row.record["against_float64"]) == (2, None)
    assert capsys.readouterr().err == (
        "mine:single_precision: float32 not compared with float64, which the network does not run in\n"
    )


@pytest.mark.parametrize("name", ["random", "random_preprocessing", "batch_normalised"])
def test_a_model_that_is_not_deterministic_is_reported(name: str, mine: str, folder: Path, tmp_path: Path) -> None:
    wanted = Arguments(str(folder), [f"{mine}:{name}", f"{mine}:colours"], report=tmp_path / "page")
    images, rows = run(NOWHERE, wanted)
    assert [row.is_deterministic for row in rows] == [False, True]
    assert {model["model"]: model["deterministic"] for model in results_content(images, rows)["models"]} == {
        f"mine:{name}": False,
        "mine:colours": True,
    }
    note = f"mine:{name} is not deterministic: the same images got other scores in a second run or another batch"
    assert [notes_of(row, images) for row in rows] == [[f"{note}, so its numbers vary"], []]
    assert note in (tmp_path / "page" / "index.html").read_text()


def test_a_file_of_weights_puts_no_folder_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its reader is installed; nothing is imported from the current folder, which may be a stranger's."""
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    reader = ModuleModel("net", "cleanset.studies.training.networks", "trained_network", weights=tmp_path / "net")
    assert callable_of(reader).__name__ == "trained_network"
    assert sys.path == before


def test_processes_that_decode_can_read_and_preprocess(mine: str, folder: Path) -> None:
    """On a GPU both are sent to other processes."""
    preprocessing = load_module(ModuleModel("mine:colours", mine, "colours"), imagenet()).preprocessing
    read, preprocess = pickle.loads(pickle.dumps((open_set(str(folder), NOWHERE, []).read, preprocessing)))
    found = [np.unique(pixels_of(file, read, preprocess).reshape(3, -1), axis=1).tolist() for file in COLOURS]
    assert found == [[[255], [0], [0]], [[0], [0], [255]], [[0], [255], [0]]]


def test_the_contract_is_in_pydoc() -> None:
    assert "(n, 3, size, size)" in pydoc.render_doc("cleanset.evaluation.user_model")
