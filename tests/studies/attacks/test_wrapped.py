"""Models that params.yaml wraps: the allowed names, and in the stages, that a random model's results do not change."""

import copy
import hashlib
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from cleanset.classes import imagenet
from cleanset.edition.params import read_params
from cleanset.errors import CleansetError
from cleanset.evaluation import models
from cleanset.scoring.differentiable import Uninteresting
from cleanset.scoring.models import load_model
from cleanset.scoring.shards import Shards
from cleanset.studies.attacks import attacking
from cleanset.studies.attacks.attack_stage import run_attack
from cleanset.studies.attacks.autoattack import AutoAttackAttack
from cleanset.studies.attacks.base import Result, seed_of
from cleanset.studies.attacks.candidate_files import candidate_file, pixels_of_png
from cleanset.studies.attacks.gradient_attacks import SpsaAttack
from cleanset.studies.attacks.judge import Judge, unwritten
from cleanset.studies.attacks.page import attacks_data, write_measures
from cleanset.studies.attacks.results import ATTACKED
from cleanset.studies.attacks.study import AttackParams, AttackStudy, WrappedModel, read_attack_params
from cleanset.studies.attacks.warning_stage import run_warnings
from cleanset.studies.robustness.images import STUDY_IMAGES
from cleanset.tables import read_table
from tests.studies.attacks.conftest import contents, copied
from tests.studies.attacks.networks import CPU, KNOWN, correct_subjects, loaded, on_cpu, random_linear, subject
from tests.studies.attacks.study import ROLE

pytestmark = pytest.mark.slow

ROLES = ["standard", "robust"]
GOLDFISH, BANANA = "n01443537", "n07753592"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{model: standard}", "wrapped.mine: neither wrapper nor groups; expected one of them or both"),
        (
            "{model: vgg, wrapper: uninteresting}",
            "mine.model: unknown model 'vgg'; expected a role of the edition: standard, robust",
        ),
        ("{model: more, wrapper: uninteresting}", "mine.model: unknown model 'more'"),
        ("{wrapper: uninteresting}", "wrapped.mine.model"),
        ("{model: standard, wrapper: dull}", "wrapped.mine.wrapper"),
        ("{model: standard, groups: {a: [n01443537]}}", "mine.groups: 1 groups; expected 2, each with a name"),
        ("{model: standard, groups: {a: [n01443537], b: []}}", "mine.groups: b: empty group"),
        (
            "{model: standard, groups: {a: [n01443537], b: [n1]}}",
            "mine.groups: b: unknown class 'n1'; expected a wnid of ILSVRC2012",
        ),
        ("{model: standard, groups: {a: [n01443537], b: [n01443537]}}", "n01443537 is in both groups, a and b"),
        ("{model: standard, groups: {A b: [n01443537], b: [n07753592]}}", "mine.groups"),
    ],
)
def test_what_is_wrong_is_reported(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "params.yaml"
    path.write_text(f"wrapped: {{mine: {text}}}\n")
    with pytest.raises(CleansetError) as error:
        read_attack_params(path, ROLES, imagenet(), others=["more"])
    assert message in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["robust", "more"])
def test_a_name_is_given_once(tmp_path: Path, name: str) -> None:
    path = tmp_path / "params.yaml"
    wrapped = f"{name}: {{model: standard, wrapper: uninteresting}}"
    path.write_text(f"wrapped: {{{wrapped}}}\n")
    with pytest.raises(CleansetError, match=rf"wrapped\.{name}: a model has this name; expected another than "):
        read_attack_params(path, ROLES, imagenet(), others=["more"])


def test_what_is_run() -> None:
    """Every attack on every model, the wrapped ones last; guess on those of the edition."""
    wrapped = {"random": {"model": "standard", "wrapper": "uninteresting"}}
    settings = AttackParams.model_validate({"attacks": {"none": {}}, "wrapped": wrapped})
    assert settings.runs(ROLES) == [
        ("none", "standard"), ("none", "robust"), ("none", "random"), ("guess", "standard"), ("guess", "robust"),
    ]  # fmt: skip


def test_what_it_is_in_words() -> None:
    groups = {"fish": [GOLDFISH], "fruit": [BANANA]}
    only = WrappedModel.model_validate({"model": "standard", "groups": groups}, context=imagenet())
    assert only.text() == "standard; two groups: fish, fruit"
    both = only.model_copy(update={"wrapper": "uninteresting"})
    assert both.text() == "standard; two groups: fish, fruit; wrapper uninteresting"


def plain_seed(kind: str, words: str, seed: int, names: str) -> int:
    """By SHA-256 of names, as the documentation has it."""
    image = int.from_bytes(hashlib.sha256(json.dumps([seed, names]).encode()).digest())
    return int.from_bytes(hashlib.sha256(json.dumps([image, kind, words, 0]).encode()).digest()[:4])


def test_seeds_are_made_of_names() -> None:
    assert seed_of(7, "judged", "random spsa", "a") == plain_seed("judged", "random spsa", 7, "a")
    assert seed_of(7, "searched", "random spsa", "a", "b") == plain_seed("searched", "random spsa", 7, "a\nb")


class TestRandomModels:
    """An even gray, whose class the noise alone decides."""

    gray = np.full((3, 12, 12), 128, np.uint8)

    def network(self) -> Uninteresting:
        weight = torch.stack((torch.ones(432), torch.zeros(432))).double()
        linear = random_linear(2)
        linear.weight, linear.bias = (
            nn.Parameter(weight),
            nn.Parameter(torch.tensor([-432 * 128 / 255, 0.0], dtype=torch.float64)),
        )
        return Uninteresting(linear)

    def test_a_seed_draws_the_same_again(self) -> None:
        network = on_cpu(nn.Sequential(self.network()), 64)
        pixels = torch.full((20, 3, 12, 12), 128 / 255, dtype=torch.float64)
        found = []
        for seed in (3, 4, 3):
            network.reseed(seed)
            found.append(network(pixels))
            network(pixels)
        assert torch.equal(found[0], found[2])
        assert not torch.equal(found[0], found[1])

    def test_a_judged_image_depends_on_its_seed_alone(self) -> None:
        judge, seeds = Judge(loaded(self.network()), CPU), list(range(30))
        forward = [int(each.argmax()) for each in (judge.logits(self.gray, seed) for seed in seeds)]
        backward = [int(each.argmax()) for each in (judge.logits(self.gray, seed) for seed in seeds[::-1])]
        assert forward == backward[::-1]
        assert {0, 1} == set(forward)
        one, result = subject(1, 0, self.gray), Result(self.gray, 1)
        file = partial(candidate_file, unwritten(one, result, None))
        verdict = judge.verdict(one, result, np.zeros(2), file, 5)
        assert int(verdict["logits_after"].argmax()) == forward[5]


@pytest.mark.parametrize("classes", [5, 2])
def test_autoattack_on_a_model_without_gradient(classes: int) -> None:
    """It ends with candidates in the ball; APGD, if run on all classes, remarks that there is no gradient."""
    network = random_linear(classes, seed=2)
    group = correct_subjects(network, 3, least=30, most=220)
    attack = AutoAttackAttack(steps=3, square_queries=10, group=3)
    results = attack.results(on_cpu(Uninteresting(network)), group, KNOWN)
    assert all(attack.ball.contains(one.pixels, each.candidate) for one, each in zip(group, results, strict=True))
    assert any("zero gradient" in notice for notice in results[0].notices) == (classes == 5)


@pytest.fixture(scope="module")
def study(made: AttackStudy, tmp_path_factory: pytest.TempPathFactory) -> AttackStudy:
    return copied(made, tmp_path_factory.mktemp("wrapped") / "edition")


@pytest.fixture(scope="module")
def settings(study: AttackStudy) -> AttackParams:
    """Groups of the classes of three images."""
    first, second, third, fourth = read_table(study.robustness.images, STUDY_IMAGES, imagenet())["class_index"]
    assert fourth not in {first, second, third}
    groups = {
        "left": [imagenet().keys[first], GOLDFISH],
        "right": sorted({imagenet().keys[second], imagenet().keys[third]} - {imagenet().keys[first]}),
    }
    return AttackParams.model_validate(
        {
            "search_precision": "float64",
            "attacks": {"none": {}, "pgd": {"steps": 2, "group": 2}},
            "probe": {"images": 4, "steps": 1, "group": 2, "spsa_steps": 1, "spsa_samples": 2},
            "wrapped": {
                "random": {"model": ROLE, "wrapper": "uninteresting"},
                "grouped": {"model": ROLE, "groups": groups},
                "both": {"model": ROLE, "wrapper": "uninteresting", "groups": groups},
            },
        },
        context=imagenet(),
    )


@pytest.fixture(scope="module")
def attacked(study: AttackStudy, settings: AttackParams) -> AttackStudy:
    """The study with all of it run."""
    for name, model in settings.runs([ROLE]):
        run_attack(study, model, name, settings)
    return study


def results(study: AttackStudy, name: str, model: str) -> pd.DataFrame:
    return read_table(study.results(name, model).table, ATTACKED, imagenet())


def test_groups(attacked: AttackStudy, settings: AttackParams) -> None:
    """What is stored of a model with groups, from what is stored of the model."""
    whole, grouped = results(attacked, "none", ROLE), results(attacked, "none", "grouped")
    assert grouped["file"].tolist() == [whole["file"][place] for place in (0, 1, 2)]
    whole = whole.set_index("file").loc[grouped["file"]].reset_index()
    assert grouped["class_index"].tolist() == whole["class_index"].tolist()
    groups = settings.wrapped["grouped"].groups or {}
    members = [[imagenet().keys.index(wnid) for wnid in group] for group in groups.values()]
    for (_, one), (_, all_classes) in zip(grouped.iterrows(), whole.iterrows(), strict=True):
        shares = np.exp(all_classes["logits_after"].astype(np.float64))
        expected = [np.log(sum(shares[index] for index in group)) for group in members]
        assert one["logits_after"] == pytest.approx(expected, rel=1e-5)
        group = next(place for place, each in enumerate(members) if one["class_index"] in each)
        assert one["was_correct"] == (expected[group] > expected[1 - group]) == (not one["is_error"])
    assert {len(logits) for logits in results(attacked, "none", "both")["logits_after"]} == {2}


def test_the_record_says_what_is_around(attacked: AttackStudy, settings: AttackParams) -> None:
    record = json.loads(attacked.results("pgd", "both").record.read_text())
    groups = settings.wrapped["both"].groups
    assert record["wrapped"] == {"model": ROLE, "wrapper": "uninteresting", "groups": groups, "images": None}
    assert record["images"] == 3
    assert "wrapped" not in json.loads(attacked.results("pgd", ROLE).record.read_text())


class Noisy(Uninteresting):
    """The wrapper without one-hot answers: whatever it draws is seen in its logits."""

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        if self._generator is None:
            self.reseed(self._seed, pixels.device)
        logits: torch.Tensor = self.network(
            pixels + 0.05 * torch.randn(pixels.shape, generator=self._generator).double()
        )
        return logits

    def __deepcopy__(self, memo: dict[int, object]) -> "Noisy":
        return Noisy(copy.deepcopy(self.network, memo), self._seed)


@pytest.fixture
def noisy(settings: AttackParams, monkeypatch: pytest.MonkeyPatch) -> AttackParams:
    """Settings with SPSA and a wrapped model `noisy`."""
    monkeypatch.setattr(models, "wrap_network", lambda network, *_: Noisy(network))
    attacks = settings.attacks | {"spsa": SpsaAttack(steps=2, samples=4, after=None)}
    return settings.model_copy(update={"attacks": attacks, "wrapped": {"noisy": settings.wrapped["random"]}})


@pytest.mark.long
def test_a_stored_file_gives_its_logits_again(study: AttackStudy, noisy: AttackParams) -> None:
    """By hand: the file's pixels, the noise of a seed of names, the model."""
    params = read_params(study.edition.folder)
    network = load_model(params.model(ROLE), study.edition.folder).network.double()
    folders = {name: study.results(name, "noisy").folder for name in ("none", "pgd")}
    for name in folders:
        run_attack(study, "noisy", name, noisy)
    for _, row in results(study, "pgd", "noisy").iterrows():
        found = {}
        for column, attack, name in (("logits_before", "", "none"), ("logits_after", "pgd", "pgd")):
            pixels = torch.from_numpy(pixels_of_png((folders[name] / row["png"]).read_bytes())[None] / 255)
            generator = torch.Generator().manual_seed(plain_seed("judged", f"noisy {attack}", 0, row["file"]))
            noise = torch.randn(pixels.shape, generator=generator).double()
            with torch.inference_mode():
                found[column] = network(pixels + 0.05 * noise)[0].numpy()
            assert row[column] == pytest.approx(found[column], rel=1e-5, abs=1e-5)
        assert row["is_error"] == (int(found["logits_after"].argmax()) != row["class_index"])
    none = results(study, "none", "noisy")
    assert not any(np.array_equal(*pair) for pair in zip(none["logits_before"], none["logits_after"], strict=True))


class Backwards(Shards):
    """The last group first."""

    def __init__(self, *given: object, **named: object) -> None:
        super().__init__(*given, **named)  # type: ignore[arg-type]
        self.missing.reverse()


@pytest.mark.long
def test_neither_order_nor_resumption_changes_what_a_random_model_answers(
    study: AttackStudy, noisy: AttackParams, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = study.results("spsa", "noisy").folder
    run_attack(study, "noisy", "spsa", noisy)
    expected = contents(folder)
    with monkeypatch.context() as context:
        context.setattr(attacking, "Shards", Backwards)
        run_attack(study, "noisy", "spsa", noisy)
    assert contents(folder) == expected
    asked, result = [], SpsaAttack.result

    def interrupted(attack: SpsaAttack, *given: Any) -> Result:
        asked.append(given)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return result(attack, *given)

    with monkeypatch.context() as context:
        context.setattr(SpsaAttack, "result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_attack(study, "noisy", "spsa", noisy)
    assert len(list(study.results("spsa", "noisy").partial.rglob("0*.parquet"))) == 2
    run_attack(study, "noisy", "spsa", noisy)
    assert contents(folder) == expected


def test_a_guess_needs_stored_predictions(study: AttackStudy, settings: AttackParams) -> None:
    with pytest.raises(CleansetError, match="guess random: guess reads stored predictions, which only the edition's"):
        run_attack(study, "random", "guess", settings)


def test_a_model_that_is_none(study: AttackStudy, settings: AttackParams) -> None:
    with pytest.raises(CleansetError, match="unknown model 'vgg'; expected one of standard, random, grouped, both"):
        run_attack(study, "vgg", "none", settings)


def test_groups_that_no_image_is_of(study: AttackStudy) -> None:
    wrapped = {"mine": {"model": ROLE, "groups": {"a": [GOLDFISH], "b": [BANANA]}}}
    with pytest.raises(CleansetError, match=r"wrapped\.mine\.groups: none of the study's 4 images is of one"):
        run_attack(study, "mine", "none", AttackParams.model_validate({"wrapped": wrapped}, context=imagenet()))


@pytest.mark.long
def test_the_page_and_the_table(attacked: AttackStudy, settings: AttackParams, tmp_path: Path) -> None:
    """The signs of the wrapper; predictions by group; no guess on wrapped models."""
    for model in settings.models([ROLE]):
        run_warnings(attacked, model, settings)
    write_measures(attacked, settings)
    lines = pd.read_csv(attacked.folder / "data" / "attack_measures.csv")
    assert set(lines["model"]) == {ROLE, "random", "grouped", "both"}
    assert set(lines["model"][lines["attack"] == "guess"]) == {ROLE}
    assert set(lines["images"][(lines["model"] == "grouped") & (lines["measure"] == "error")]) == {3}
    of_masked = lines[(lines["model"] == "random") & (lines["attack"] == "Linf 4/255")].set_index("measure")["value"]
    assert of_masked.notna().to_dict() == {
        "clean_accuracy": True, "robust_accuracy": False, "robust_low": True, "robust_high": True, "reached": True,
    }  # fmt: skip
    attacked.params_yaml.write_text(settings.model_dump_json(exclude_none=True))
    found = attacks_data(attacked, tmp_path)
    signs = {each.role: {seen.sign for seen in each.warnings} for each in found.warnings}
    assert signs["random"] >= {"saturated_answers", "no_gradient"}
    assert "no_gradient" not in signs["grouped"]
    row = found.sheets["pgd", "both"][0]
    assert {row["before"].split()[0], row["after"].split()[0]} <= {"left", "right"}
    assert ("guess", "grouped") not in found.answers
    answers = found.answers["none", "both"]
    assert answers["log_sum_exp"].tolist() == pytest.approx([np.log(1 + np.e)] * 3)
    assert found.sizes["grouped"] == found.sizes[ROLE] == 160
