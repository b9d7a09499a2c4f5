"""The params of a training study: protocols, operations and their corruptions, and what is refused."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.studies.robustness.corruptions.params import IMAGENET_C
from cleanset.studies.robustness.scenarios.params import SCENARIOS
from cleanset.studies.training.finished import network_name
from cleanset.studies.training.params import SegmentationMeasures, TrainingParams, read_training_params
from cleanset.studies.training.recipes import RECIPES, Adversarial, Augmix, Madry
from cleanset.studies.training.run_params import AMOUNTS_TO, Run
from tests.documents import all_blocks

AUGMIX_OPERATIONS = [
    "AutoContrast", "Equalize", "Posterize", "Rotate", "Solarize", "ShearX", "ShearY", "TranslateX", "TranslateY",
]  # fmt: skip
NETWORK = {"source": "timm", "name": "test_efficientnet"}


def run(**keys: Any) -> Run:
    return Run.model_validate({"network": NETWORK, "epochs": 2, **keys})


def read(folder: Path, **keys: Any) -> TrainingParams:
    content = {"data": {"images": "images"}, "runs": {"one": {"network": NETWORK, "epochs": 2, **keys}}}
    (folder / "params.yaml").write_text(yaml.safe_dump(content))
    return read_training_params(folder / "params.yaml", imagenet())


@pytest.mark.parametrize(
    ("network", "protocol", "wanted"),
    [
        ("resnet50", "as_written", ("sgd", 0.01, 0.0, 100, 16, None, "best", "bilinear", "own", True)),
        ("vit_base_patch16_224", "as_written", ("adam", 1e-4, 0.9, 200, 16, None, "best", "bilinear", "own", True)),
        ("resnet50", "as_coded", ("adam", 1e-3, 0.9, 200, 128, None, "last", "nearest", "as_coded", False)),
    ],
)
def test_protocols(network: str, protocol: str, wanted: tuple[object, ...]) -> None:
    """As the paper's section 3.1 has it, where transformers differ, and as its script."""
    found = Run.model_validate({"network": {"name": network}, "protocol": protocol})
    names = ("optimizer", "rate", "momentum", "epochs", "batch", "early_stopping", "keep", "resizing", "split")
    assert (*(getattr(found, name) for name in names), found.network.normalised) == wanted
    assert (found.size, found.augmentation, found.folds, found.incomplete_batch) == (224, "none", 1, True)


def test_ex2_as_written_names_when_it_stops() -> None:
    """The text stops it early, and names no number of epochs; EX1 has none."""
    ex2 = {"network": NETWORK, "protocol": "as_written", "scenario": "image_r"}
    with pytest.raises(
        ValidationError, match="the text names no number of epochs; expected early_stopping: set it, or"
    ):
        Run.model_validate(ex2)
    assert Run.model_validate({**ex2, "early_stopping": 10}).early_stopping == 10
    assert Run.model_validate({**ex2, "early_stopping": None}).early_stopping is None
    assert Run.model_validate({**ex2, "folds": 0}).early_stopping is None


def test_the_recipe_of_madrylab() -> None:
    """The defaults of its package for ImageNet; eps and the length of a step have none there."""
    jitter = ["brightness", "contrast", "saturate"]
    found = Run.model_validate({"network": NETWORK, "recipe": "madry", "trained_on": jitter, "folds": 0})
    names = ("optimizer", "rate", "momentum", "weight_decay", "schedule", "decay_epochs", "epochs", "batch")
    assert tuple(getattr(found, name) for name in names) == ("sgd", 0.1, 0.9, 1e-4, "step", 50, 200, 256)
    how = found.training_recipe
    assert isinstance(how, Madry)
    assert (how.steps, how.random_start, how.evaluation_mode, how.best_iterate) == (7, False, True, True)
    assert (how.warm_up_epochs, found.is_attacked, found.incomplete_batch) == (0, True, True)
    assert list(found.operations) == ["crop_and_jitter", "projected gradient ascent"]
    # a key of the run goes before the recipe's, in its section too
    other = {"adversarial": {"eps": "2/255", "steps": 3}, "augmentation": "none", "epochs": 5}
    found = Run.model_validate({"network": NETWORK, "recipe": "madry", **other})
    assert found.training_recipe == Madry(eps=2 / 255, steps=3)
    assert (found.epochs, found.batch) == (5, 256)
    with pytest.raises(
        ValidationError, match="crop_and_jitter amounts to the test corruptions brightness, contrast, sat"
    ):
        Run.model_validate({"network": NETWORK, "recipe": "madry"})


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"folds": 0},
        {"protocol": "as_written"},
        {"protocol": "as_coded"},
        {"recipe": "augmix_mixing"},
        {"recipe": "madry", "augmentation": "none"},
    ],
)
def test_all_settings_of_a_run_are_a_run(keys: dict[str, Any]) -> None:
    found = run(**keys)
    assert Run.model_validate(found.model_dump()) == found


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("timm:resnet18", {"source": "timm", "name": "resnet18"}),
        ("torchvision:vgg16.IMAGENET1K_V1, pretrained", {"source": "torchvision", "name": "vgg16.IMAGENET1K_V1",
                                                         "pretrained": True}),
        ("smp:fpn/resnet50", {"source": "smp", "name": "fpn", "encoder": "resnet50"}),
    ],
)  # fmt: skip
def test_a_network_in_short(text: str, keys: dict[str, Any]) -> None:
    """As tables show it, and as keys."""
    task = {"task": "segmentation" if "smp" in text else "classification", "epochs": 2}
    found = Run.model_validate({"network": text, **task})
    assert found == Run.model_validate({"network": keys, **task})
    assert network_name(found.network) == text
    vit = Run.model_validate({"network": "torchvision:vit_b_16", "protocol": "as_written"})
    assert vit.optimizer == "adam"


@pytest.mark.parametrize("text", ["resnet18", "keras:vgg-16", "timm:", "timm:resnet18, trained"])
def test_what_is_no_network_in_short(text: str) -> None:
    with pytest.raises(ValidationError, match="expected SOURCE:NAME, such as timm:resnet18, MODULE:CALLABLE, or keys"):
        run(network=text)


def test_a_key_goes_before_the_protocol() -> None:
    found = Run.model_validate({"network": NETWORK, "protocol": "as_coded", "steps": 10, "batch": 8})
    assert (found.steps, found.epochs, found.batch) == (10, None, 8)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"adversarial": {"eps": 0}},
            "runs.one.adversarial.eps: expected greater than 0",
        ),
        ({"adversarial": {"eps": "4/255", "step": "8/255"}}, "step 0.0313725 is larger than eps 0.0156863; expected"),
        ({"recipe": "noise"}, "gaussian noise amounts to the test corruptions gaussian_noise, shot_noise"),
        ({"recipe": "augmix", "augmix": {"all_ops": True}}, "Color amounts to the test corruption saturate"),
        ({"scenario": "image_brightness"}, "image_brightness amounts to the test corruption brightness"),
        ({"scenario": "indoors"}, "expected one of original, blur_background.*, generated_background; found 'indoors'"),
        ({"steps": 5}, "expected epochs or steps, and not both"),
        ({"epoch": 5}, "unknown key 'epoch'; expected optimizer"),
        ({"folds": 13}, "runs.one.folds: 13; expected at most folds, 12"),
        ({"trained_on": ["fogg"]}, "unknown corruption 'fogg'"),
        ({"warm_up_epochs": 50}, "warm_up_epochs 50 of 2 epochs; expected fewer than are trained: set fewer"),
        ({"folds": 0, "early_stopping": 5}, "folds 0 leaves no images out for early_stopping 5; expected 1 or more"),
        ({"folds": 0, "keep": "best"}, "folds 0 leaves no images out for keep 'best'; expected 1 or more folds"),
        ({"folds": 0, "test": ["image_r"]}, r"folds 0 leaves no images out for test \['image_r'\]"),
        ({"folds": 0, "max_tested": 3}, "folds 0 leaves no images out for max_tested 3"),
        ({"folds": 0, "validation": "as_written"}, "folds 0 leaves no images out for validation 'as_written'"),
        ({"folds": 0, "split": "as_coded"}, "folds 0 leaves no images out for split 'as_coded'"),
        ({"recipe": "adversarial", "adversarial": {"eps": 4}}, "adversarial.eps 4 in Linf; expected less than 0.5, w"),
        ({"recipe": "adversarial", "adversarial": {"eps": 0.5}}, "adversarial.eps 0.5 in Linf; expected less than 0"),
        ({"recipe": "adversarial", "adversarial": {"eps": 200, "norm": "L2"}}, "eps 200 in L2; expected less than 194"),
        ({"recipe": "adversarial", "adversarial": {"warm_up_epochs": 2}}, "adversarial.warm_up_epochs 2 of 2 epochs"),
        ({"adversarial": {"eps": 0.1}}, "adversarial: settings of adversarial or madry for recipe standard; expected"),
        (
            {"recipe": "adversarial", "augmix": {"width": 2}},
            "augmix: settings of augmix or augmix_mixing for recipe adversarial",
        ),
        ({"noise": {"largest": 0.1}}, "noise: settings of noise for recipe standard"),
        ({"classes": ["n01443537", "n01443537"]}, "runs.one.classes: 'n01443537' twice; expected each once"),
        ({"classes": ["n01443537", "n00000000"]}, "runs.one.classes.1: expected one of the 1,000 wnids, such as n0"),
        ({"test": ["original", "original"]}, "runs.one.test: 'original' twice; expected each once"),
        ({"test": []}, "runs.one.test"),
        ({"devices": 4, "batch": 2}, "devices 4 share batches of 2; expected at least one image each"),
    ],
)
def test_what_is_refused(tmp_path: Path, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(CleansetError, match=message) as raised:
        read(tmp_path, **keys)
    assert "\n" not in str(raised.value)


def test_the_least_that_is_not_refused(tmp_path: Path) -> None:
    """An image for each device, and a warm-up that leaves one epoch."""
    found = read(tmp_path, devices=2, batch=2, recipe="adversarial", adversarial={"eps": 0.49, "warm_up_epochs": 1})
    run = found.runs["one"]
    assert (run.devices, run.batch, run.epochs) == (2, 2, 2)
    assert run.warm_ups() == {"warm_up_epochs": 0, "adversarial.warm_up_epochs": 1}


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (
            {"settings": {"a": {}}, "networks": {"b": "timm:x"}, "scenarios": {"c": {}}},
            "runs.a_b_c: a run of the matrix",
        ),
        (
            {"settings": {"x": {}, "x_y": {}}, "networks": {"z": "timm:x", "y_z": "timm:x"}, "scenarios": {"c": {}}},
            "matrix: two runs are called x_y_z_c; name their settings otherwise",
        ),
        ({"networks": ["timm:x"]}, "matrix.networks: expected a dictionary; found"),
        ({"setings": {}}, "matrix: unknown key 'setings'"),
        (
            {"settings": {"x": {"foo": 1}}, "networks": {"y": "timm:x"}, "scenarios": {"z": {}}},
            "runs.x_y_z: unknown key 'foo'",
        ),
    ],
)
def test_what_is_refused_in_a_matrix(tmp_path: Path, matrix: dict[str, Any], message: str) -> None:
    content = {"data": {"images": "images"}, "matrix": matrix, "runs": {"a_b_c": {"network": NETWORK, "epochs": 2}}}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(CleansetError, match=re.escape(message)) as raised:
        read_training_params(tmp_path / "params.yaml", imagenet())
    assert "\n" not in str(raised.value)


def test_an_unknown_run_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match="unknown run 'two'; expected one of one"):
        read(tmp_path).run("two")


def test_folds_have_names() -> None:
    assert run(folds=0).fold_names() == ["all"]
    assert run(folds=2).fold_names() == ["fold_01", "fold_02"]


def test_the_length_of_a_step() -> None:
    assert Adversarial(eps=0.1, steps=5).length == pytest.approx(0.05)
    assert Adversarial(eps=0.1, steps=1).length == pytest.approx(0.1)
    assert Adversarial(eps=0.1, step=0.02).length == pytest.approx(0.02)


def test_what_is_kept_is_reported() -> None:
    attacked = {"recipe": "adversarial", "adversarial": {"warm_up_epochs": 1}}
    assert run().kept == "the smallest loss on images set aside"
    assert run(keep="last").kept == "the last epoch"
    assert (
        run(**attacked).kept == "the smallest loss under attack on images set aside, of the epochs after 1 of warm-up"
    )
    assert run(recipe="adversarial").kept == "the smallest loss under attack on images set aside"
    assert run(validation="as_written").kept == "the smallest loss on the images that are tested on"


@pytest.mark.parametrize("protocol", ["own", "as_written", "as_coded"])
def test_without_folds_the_last_epoch_is_kept(protocol: str) -> None:
    found = run(folds=0, protocol=protocol)
    assert (found.keep, found.early_stopping, found.test, found.kept) == ("last", None, None, "the last epoch")


def test_nothing_is_chosen_by_what_is_reported_but_as_ximagenet_12_does() -> None:
    assert run().validation == "set_aside"
    assert run(protocol="as_written").validation == run(protocol="as_coded").validation == "as_written"
    assert run(protocol="as_written", validation="set_aside").validation == "set_aside"


def test_every_operation_has_its_corruptions() -> None:
    assert set(SCENARIOS) <= set(AMOUNTS_TO)
    of_recipes = [Augmix(all_ops=True).operations, *(each().operations for each in RECIPES.values())]
    for operations in (AMOUNTS_TO, *of_recipes):
        assert {name for names in operations.values() for name in names} <= set(IMAGENET_C)
    assert not any(Augmix().operations.values())


def test_an_operation_without_its_corruptions_is_reported() -> None:
    mixed = {"recipe": "augmix", "augmix": {"all_ops": True}}
    message = "Contrast amounts to the test corruption contrast; expected trained_on"
    with pytest.raises(ValidationError, match=message):
        run(**mixed, trained_on=["brightness", "saturate"])
    run(**mixed, trained_on=["brightness", "saturate", "contrast", "defocus_blur", "gaussian_blur"])
    # groups name corruptions, too
    run(recipe="noise", trained_on=["noise", "speckle_noise"])
    with pytest.raises(ValidationError, match="blur_object amounts to the test corruptions defocus_blur, gauss"):
        run(scenario="blur_object")


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ({"augmentation": "none"}, []),
        ({"scenario": "image_r"}, ["shift_and_mirror", "image_r"]),
        ({"recipe": "adversarial", "augmentation": "none"}, ["projected gradient ascent"]),
        ({"recipe": "noise", "augmentation": "none", "trained_on": ["noise", "speckle_noise"]}, ["gaussian noise"]),
        ({"recipe": "augmix_mixing", "augmentation": "none"}, AUGMIX_OPERATIONS),
    ],
)
def test_operations(keys: dict[str, Any], found: list[str]) -> None:
    assert list(run(**keys).operations) == found


def segmenting(**keys: Any) -> Run:
    network = {"source": "smp", "name": "fpn", "encoder": "resnet50"}
    return Run.model_validate({"task": "segmentation", "network": network, **keys})


def test_as_written_is_the_papers_training() -> None:
    found = segmenting(protocol="as_written")
    assert (found.size, found.batch, found.steps, found.epochs) == (256, 4, 40_000, None)
    assert (found.optimizer, found.rate, found.momentum, found.schedule) == ("sgd", 0.01, 0.9, "poly")
    assert (found.weight_decay, found.undecayed, found.end_rate) == (5e-4, [], 1e-4)
    assert (found.augmentation, found.early_stopping, found.folds) == ("none", None, 1)
    assert len(found.tests) == 9
    assert found.tests[0] == "original"
    assert found.tests[-1] == "generated_background"


@pytest.mark.parametrize("name", ["upernet_swin", "upernet_vit-b16_ln_mln", "dpt_vit-b16"])
def test_transformers_are_trained_with_adamw(name: str) -> None:
    found = segmenting(protocol="as_written", network={"source": "smp", "name": name})
    assert (found.optimizer, found.rate, found.schedule, found.end_rate) == ("adamw", 6e-5, "linear", 0)
    assert found.undecayed == ["norm", "pos_embed", "cls_token", "relative_position_bias_table"]
    assert segmenting(protocol="as_written", network={"source": "smp", "name": "fpn_r50"}).optimizer == "sgd"


def test_epochs_take_the_place_of_the_iterations() -> None:
    found = segmenting(protocol="as_written", epochs=2)
    assert (found.steps, found.epochs) == (None, 2)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"protocol": "as_coded"},
            "protocol as_coded: the published code does not segment; expected as_written or own",
        ),
        ({"recipe": "adversarial"}, "recipe adversarial; expected standard for segmentation"),
        ({"scenario": "image_r"}, "scenario image_r; expected original for segmentation"),
        ({"augmentation": "random_resized_crop"}, "expected none or shift_and_mirror for segmentation"),
        ({"resizing": "nearest"}, "resizing nearest; expected cropped for segmentation"),
        ({"incomplete_batch": True}, "incomplete_batch True; expected False for segmentation"),
        (
            {"network": {"source": "timm", "name": "resnet50"}},
            "network resnet50 of timm for segmentation; expected one of",
        ),
        ({"task": "classification"}, "network fpn of smp for classification; expected one of smp for segmentation"),
        ({"test": ["original", "image_x"]}, "test.1\n  Value error, expected one of original, "),
    ],
)
def test_what_does_not_segment_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        segmenting(**({"epochs": 1} | keys if "protocol" not in keys else keys))


def test_an_unknown_measure_of_the_regression_is_refused() -> None:
    with pytest.raises(ValidationError, match="'accuracy', 'iou' or 'boundary_iou'"):
        SegmentationMeasures.model_validate({"measure": "dice"})


@pytest.mark.slow
def test_the_imagenet_editions_grid_has_the_seven_networks(repository: Path) -> None:
    from cleanset.studies.training.segmentation.networks import PUBLISHED, decoder_and_encoder

    params = yaml.safe_load((repository / "imagenet/studies/training/params.yaml").read_text())
    runs = [
        Run.model_validate(each, context=imagenet()) for name, each in params["runs"].items() if name.startswith("ex3_")
    ]
    found = [decoder_and_encoder(each.network.name, each.network.encoder) for each in runs]
    assert sorted(found) == sorted(PUBLISHED.values())
    # the first run is the baseline of the regression
    assert found[0] == PUBLISHED["deeplabv3plus_r50-d8"]
    assert all(each.steps == 40_000 and len(each.tests) == 9 for each in runs)


@pytest.mark.slow
def test_the_documented_run_is_one(repository: Path) -> None:
    from cleanset.studies.training.segmentation.networks import decoder_and_encoder

    page = "docs/training_scenarios.md"
    blocks = [each for each in all_blocks(repository) if (each.page, each.language) == (page, "yaml")]
    (found,) = [yaml.safe_load(each.text) for each in blocks if each.text.startswith("ex3_")]
    documented = Run.model_validate(found["ex3_fpn"])
    assert documented.steps == 40_000
    assert decoder_and_encoder(documented.network.name, documented.network.encoder) == ("fpn", "resnet50")
