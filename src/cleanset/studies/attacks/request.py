"""What is asked of attacks: models, images and attacks, of a command's arguments; checked before torch is imported."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from pydantic import TypeAdapter, ValidationError

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.arguments import Arguments
from cleanset.evaluation.request import Request
from cleanset.evaluation.specs import CommandModel, Spec, is_same_model, parse_specs
from cleanset.plumbing.validation import check_known, first_problem, is_callable_name, validate
from cleanset.plumbing.yaml_files import read_study_yaml
from cleanset.studies.attacks.base import InBall, L2Radius, LinfRadius, Norm, refuse_guess
from cleanset.studies.attacks.custom import CustomAttack, given_attack
from cleanset.studies.attacks.study import ATTACKS, AttackParams
from cleanset.studies.robustness.opened_images import open_images

BLACK_BOX = [name for name, kind in ATTACKS.items() if kind.uses == "classes" and not kind.reads_predictions]
"""The attacks that need a model's classes alone."""


DEFAULT_EPS = "4/255"
"""Linf radius of attacks that are given without one."""


def attack_params(
    attacks: str | Mapping[str, object],
    eps: str | None = None,
    images: int | None = None,
    norm: Norm | None = None,
    *,
    seed: int | None = None,
) -> AttackParams:
    """The params of a request: a file as a study's params.yaml, names with commas between, or attacks by name.

    An attack by name is its parameters, None for the defaults, or an object of Python (`custom.given_attack`).
    By name every attack has its defaults, and those that may search the ball of `norm` (Linf) and `eps` (4/255; needed
    with L2) do so, around the image itself. Raises CleansetError naming the attack or the key, and for a ball next to a
    file, which has its own.
    """
    if isinstance(attacks, str) and attacks.endswith((".yaml", ".yml")):
        where = attacks
        for option, value in (("norm", norm), ("eps", eps)):
            if value is not None:
                raise CleansetError(f"--{option} {value}: goes with names of attacks; expected {option} in {where}")
        read = read_study_yaml(Path(attacks), "a study of attacks")
        content: dict[str, object] = dict(read) if isinstance(read, dict) else {}
        if content.pop("wrapped", None):
            raise CleansetError(f"{where}: wrapped: expected the models as --model; remove the key")
    else:
        where = "--attacks" if isinstance(attacks, str) else "attacks"
        norm = norm or "Linf"
        if eps is None and norm == "L2":
            raise CleansetError("--norm L2: no radius; expected --eps, too, such as --eps 0.5")
        eps = DEFAULT_EPS if eps is None else eps
        try:
            TypeAdapter(L2Radius if norm == "L2" else LinfRadius).validate_python(eps)
        except ValidationError as error:
            raise CleansetError(f"--eps: {first_problem(error)}") from None
        named = _named_attacks(attacks, norm, eps) if isinstance(attacks, str) else _given(attacks, norm, eps)
        content = {"attacks": named, "probe": {"eps": eps} if norm == "Linf" else {}}
    given = {"images": images, "seed": seed}
    content |= {key: value for key, value in given.items() if value is not None}
    params = validate(AttackParams, content, where)
    # in a file a guess may have another name
    if any(attack.reads_predictions for attack in params.attacks.values()):
        refuse_guess()
    return params


def _named_attacks(attacks: str, norm: Norm, eps: str) -> dict[str, object]:
    found = dict[str, object]()
    for text in (each.strip() for each in attacks.split(",")):
        name = text
        if is_callable_name(text):
            # the name of results is one of small letters
            name = re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", text.partition(":")[2]).lower()
        else:
            check_known("--attacks", name, [each for each, kind in ATTACKS.items() if not kind.reads_predictions])
        if name in found:
            raise CleansetError(f"--attacks {name}: given twice; expected each attack once")
        found[name] = {"kind": text, **_in_ball(text, norm, eps)}
    return found


def _given(attacks: Mapping[str, object], norm: Norm, eps: str) -> dict[str, object]:
    found = dict[str, object]()
    for name, each in attacks.items():
        if each is not None and not isinstance(each, Mapping | str):
            found[name] = given_attack(name, each, {"norm": norm, "eps": eps})
            continue
        fields = {"kind": each} if isinstance(each, str) else dict(each or {})
        kind = str(fields.get("kind", name))
        # an unknown one is refused with all others
        known = kind in ATTACKS or is_callable_name(kind)
        found[name] = {**(_in_ball(kind, norm, eps) if known else {}), **fields}
    return found


def _in_ball(name: str, norm: Norm, eps: str) -> dict[str, object]:
    """Parameters with which an attack searches the ball of `norm` and `eps` around the image, if it may.

    Raises CleansetError for an attack that has a ball of another norm only.
    """
    kind = ATTACKS.get(name, CustomAttack)
    if issubclass(kind, InBall):
        return {"norm": norm, "eps": eps}
    ball = kind.model_validate({}).ball
    if "eps" not in kind.model_fields or ball is None or kind.family == "nearest":
        return {}
    if ball.norm != norm:
        raise CleansetError(f"--norm {norm}: {name} searches in {ball.norm} only; expected --norm {ball.norm}")
    return {"eps": eps} | ({"after": None} if "after" in kind.model_fields else {})


@dataclass(frozen=True, eq=False, kw_only=True)
class AttackRequest(Request[AttackParams]):
    """A request for attacks; the path of LPIPS's weights is relative to the folder of the params."""

    straight_through: Sequence[str] = ()
    """Steps of the networks that gradients pass straight through."""
    warnings: bool = True
    """Whether signs of gradient masking are looked for."""

    @classmethod
    def read(
        cls,
        edition: Edition,
        wanted: Arguments,
        params: AttackParams,
        out: Path,
        *,
        transfer_from: Sequence[str] = (),
        lpips_folder: Path = Path(),
        straight_through: Sequence[str] = (),
        warnings: bool = True,
    ) -> Self:
        """Check the names, and read all images; `transfer_from`: models to make images on, in place of the edition's.

        Raises CleansetError; imports no torch.
        """
        specs, score, roles = replace(wanted, out=out).models_to_run(edition)
        others = _sources(edition, roles, specs, transfer_from)
        for spec in specs:
            _check_attacks(spec, params)
        kinds = {attack.kind for attack in params.attacks.values()}
        if "transfer" in kinds:
            _check_sources(specs, others)
        images = open_images(str(wanted.name), edition, roles)
        if "boundary" in kinds and images.class_count < 2:
            raise CleansetError(
                f"boundary: all images of {wanted.name} are of one class; expected one of another class to start from: "
                "name other images, or leave boundary out"
            )
        return cls.of_command(
            specs,
            images,
            others=others,
            score=score,
            params=params,
            out=out,
            folder=lpips_folder,
            straight_through=straight_through,
            warnings=warnings,
        )


def _check_attacks(spec: Spec, params: AttackParams) -> None:
    """Raise CleansetError for an attack that a command cannot be asked by."""
    for name, attack in params.attacks.items() if isinstance(spec, CommandModel) else ():
        if attack.uses != "classes":
            raise CleansetError(
                f"{name}: asks for {attack.uses}; a command gives only classes: expected some of {', '.join(BLACK_BOX)}"
            )


def _sources(edition: Edition, roles: Sequence[str], specs: Sequence[Spec], given: Sequence[str]) -> list[Spec]:
    """The models that images are made on: the given ones, else the edition's, else those under attack."""
    models = read_params(edition.folder).models if roles else {}
    networks = {role: each for role, each in models.items() if not each.is_list}
    texts = [*given] or [*networks]
    if not texts:
        return [spec for spec in specs if not isinstance(spec, CommandModel)]
    return parse_specs(texts, None, networks, edition.folder, edition.folder if roles else None)


def _check_sources(specs: Sequence[Spec], others: Sequence[Spec]) -> None:
    """Raise CleansetError for a model that transfer has no other one for."""
    for spec in specs:
        if all(is_same_model(other, spec) for other in others):
            raise CleansetError(
                f"transfer: no source model for {spec.text}; expected --transfer-from, a second "
                "--model, or the --edition whose models it may take"
            )
