from pathlib import Path

import pytest

from cleanset.edition.params import Model
from cleanset.errors import CleansetError
from cleanset.evaluation.specs import ModuleModel, Spec, ZooModel, is_same_model, parse_specs
from cleanset.plumbing.files import sha256

ROLES = {"standard": Model(source="timm", name="resnet18")}
EDITION, WEIGHTS = Path("edition"), Path("weights")


def parse(*texts: str, architecture: str | None = None) -> list[Spec]:
    return parse_specs(texts, architecture, ROLES, EDITION, WEIGHTS)


def test_every_kind(tmp_path: Path) -> None:
    file = tmp_path / "my.safetensors"
    file.write_bytes(b"weights")
    texts = ["timm:resnet50.tv_in1k", "standard", "robustbench:Linf/Engstrom2019Robustness", str(file), "a.b_2:make"]
    texts.append("torchvision:alexnet.IMAGENET1K_V1")
    engstrom = Model(source="robustbench", name="Engstrom2019Robustness", threat_model="Linf")
    mine = Model(source="timm", name="resnet50", weights=str(file), sha256=sha256(b"weights"))
    assert parse(*texts, architecture="resnet50") == [
        ZooModel(texts[0], Model(source="timm", name="resnet50.tv_in1k"), WEIGHTS),
        ZooModel("standard", ROLES["standard"], EDITION),
        ZooModel(texts[2], engstrom, WEIGHTS),
        ZooModel(str(file), mine, tmp_path),
        ModuleModel("a.b_2:make", "a.b_2", "make"),
        ZooModel(texts[5], Model(source="torchvision", name="alexnet.IMAGENET1K_V1"), WEIGHTS),
    ]


def test_a_file_of_a_network_of_torchvision(tmp_path: Path) -> None:
    file = tmp_path / "my.pth"
    file.write_bytes(b"weights")
    (found,) = parse(str(file), architecture="torchvision:vgg16.IMAGENET1K_V1")
    digest = sha256(b"weights")
    model = Model(source="torchvision", name="vgg16.IMAGENET1K_V1", weights=str(file), sha256=digest)
    assert found == ZooModel(str(file), model, tmp_path)
    with pytest.raises(CleansetError, match="--architecture 'robustbench:a': expected a name of timm, or torchvision"):
        parse(str(file), architecture="robustbench:a")


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "evaluate: no --model; expected timm:NAME, "),
        (["other"], "--model 'other': no such model; expected timm:NAME, .* a role of the edition; its roles are"),
        (["timm:"], "--model 'timm:': no such model"),
        (["a b:c"], "--model 'a b:c': no such model"),
        (["mine:make.it"], "--model 'mine:make.it': no such model"),
        (["robustbench:Linf"], "--model 'robustbench:Linf': no name after the threat model"),
        (["robustbench:l8/A"], "--model 'robustbench:l8/A': threat_model: expected 'Linf', .* found 'l8'"),
        (["standard", "standard"], "--model standard: given twice; expected each model once"),
        (["no.pt"], "--model no.pt: missing; expected a file of weights"),
        (["a=no.pt"], "--model no.pt: missing; expected a file of weights"),
        (["a=timm:resnet18", "a=timm:resnet50"], "--model a: given twice; expected each model once"),
        (["standard=timm:resnet18"], "--model standard=timm:resnet18: standard is a role of the edition; expected ano"),
        (["a="], "--model 'a=': expected NAME=MODEL, with a name of 1 to 100 characters"),
        ([" a=timm:resnet18"], "--model ' a=timm:resnet18': expected NAME=MODEL, with a name of 1 to 100 characters"),
    ],
)
def test_what_names_no_model(texts: list[str], message: str) -> None:
    with pytest.raises(CleansetError, match=f"^{message}"):
        parse(*texts)


def test_a_name_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same model as without; a command, and the name of a file, may have an equals sign."""
    texts = ["timm:resnet18", "nets:make", "command:ask --size=3", "standard"]
    plain, named = parse(*texts), parse(*(f"Ours (v2){place}={text}" for place, text in enumerate(texts)))
    assert [each.text for each in plain] == texts
    assert [each.text for each in named] == [f"Ours (v2){place}" for place in range(4)]
    assert all(map(is_same_model, plain, named))
    assert not is_same_model(plain[0], plain[3])
    monkeypatch.chdir(tmp_path)
    Path("lr=1.pt").touch()
    (of_file,) = parse("lr=1.pt", architecture="resnet50")
    (renamed,) = parse("a=lr=1.pt", architecture="resnet50")
    assert (of_file.text, renamed.text) == ("lr=1.pt", "a")
    assert is_same_model(of_file, renamed)


def test_a_file_goes_with_an_architecture(tmp_path: Path) -> None:
    (tmp_path / "a.pt").touch()
    with pytest.raises(CleansetError, match="a file of weights; expected --architecture, too, such as resnet50"):
        parse(str(tmp_path / "a.pt"))
    with pytest.raises(CleansetError, match="--architecture resnet50: no --model is a file of weights"):
        parse("standard", architecture="resnet50")


def test_weights_with_a_record_are_read_by_what_is_registered_for_it(tmp_path: Path) -> None:
    """A training's own reader; a given architecture comes first."""
    file = tmp_path / "weights.safetensors"
    file.write_bytes(b"weights")
    (tmp_path / "record.json").write_text("{}")
    module = "cleanset.studies.training.networks"
    assert parse(str(file)) == [ModuleModel(str(file), module, "trained_network", weights=file)]
    (named,) = parse(str(file), architecture="resnet50")
    assert isinstance(named, ZooModel)
    # of a custom network, whose code runs
    assert parse(str(file), architecture="nets:mine") == [
        ModuleModel(str(file), module, "trained_network", weights=file, architecture="nets:mine")
    ]
