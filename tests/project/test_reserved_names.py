"""Names that mean something else, or that no file system takes, are refused wherever people choose one."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from cleanset.classes import check_class_key, imagenet
from cleanset.errors import CleansetError
from cleanset.plumbing.validation import Role, first_problem, validate
from cleanset.review.audit import AuditPlan
from cleanset.review.audit_files import draws_of_auditor
from cleanset.review.store import review_file
from cleanset.studies.attacks.study import read_attack_params
from cleanset.studies.contest.rules import ContestRules
from cleanset.studies.robustness.families import read_study_params

RULES = {
    "classes": {"bird": ["n01514668"], "bicycle": ["n02835271"]}, "teams": ["red", "blue"],
    "board": {"ada": []},
}  # fmt: skip


def reviewer(name: str, folder: Path) -> None:
    review_file(folder, name, "n01440764", imagenet())


def auditor(name: str, folder: Path) -> None:
    plan = AuditPlan(classes=imagenet(), model="standard", kind="fixed", seed="1", drawn=1, images=())
    draws_of_auditor(folder, plan, name)


def class_key(name: str, _: Path) -> None:
    check_class_key(name, "labels.csv")


def role(name: str, _: Path) -> None:
    try:
        TypeAdapter(Role).validate_python(name)
    except ValidationError as error:
        raise CleansetError(first_problem(error)) from None


def group(name: str, _: Path) -> None:
    validate(ContestRules, RULES | {"classes": {"bird": ["n01514668"], name: ["n02835271"]}}, "rules.yaml")


def further_model(name: str, folder: Path) -> None:
    path = folder / "params.yaml"
    path.write_text(f"further_models: {{{name}: {{source: timm, name: resnet18}}}}\n")
    read_study_params(path, ["standard"], imagenet())


def wrapped_model(name: str, folder: Path) -> None:
    path = folder / "params.yaml"
    path.write_text(f"wrapped: {{{name}: {{model: standard, wrapper: uninteresting}}}}\n")
    read_attack_params(path, ["standard"], imagenet(), others=["more"])


def scenario(name: str, folder: Path) -> None:
    path = folder / "params.yaml"
    path.write_text(f"scenarios: {{published: a, names: ['{name}']}}\n")
    read_study_params(path, ["standard"], imagenet())


REFUSED = [
    (reviewer, "audit", "reviewer 'audit': the folder of the audits has this name; choose another"),
    *(
        (reviewer, name, f"reviewer {name!r}: expected a name of small letters, digits, - and _, at most 64")
        for name in ("", ".", "..", "gold.csv", "README.md", "Ada", "-a", "a/b")
    ),
    (reviewer, "a" * 65, "(65 characters)': expected a name of small letters, digits, - and _, at most 64"),
    (auditor, "audit", "reviewer 'audit': the folder of the audits has this name; choose another"),
    (auditor, "board", "audit of standard: board decides on reviews; expected the name of an auditor"),
    *(
        (class_key, name, f"labels.csv: {name!r} as a class; ")
        for name in ("", ".", "..", "con", "NUL.png", "com1", "lpt9.x.y", "a/b", ".hidden", "a ", "a.")
    ),
    (class_key, "a\0", r"labels.csv: 'a\x00' with the invisible '\x00' as a class; "),
    *(
        (role, name, "expected a match of '^[a-z][a-z0-9_]*$'")
        for name in ("", "standard\n", "Standard", "a-b", "../a", "_a", "1a")
    ),
    (role, "a" * 65, "expected at most 64 characters"),
    *(
        (group, name, f"rules.yaml: classes.{name}.[key]: expected a name other than abstain, invalid")
        for name in ("abstain", "invalid")
    ),
    (further_model, "alexnet", "params.yaml: further_models: alexnet names the published table; choose another role"),
    (further_model, "standard", "params.yaml: further_models.standard: the edition has this role; choose another one"),
    (wrapped_model, "standard", "wrapped.standard: a model has this name; expected another than standard, more"),
    (wrapped_model, "more", "wrapped.more: a model has this name; expected another than standard, more"),
    *(
        (scenario, name, f"scenarios.names: {name!r} cannot name a scenario; expected a folder in published, of small")
        for name in ("clean", "unchanged", "In Rain", "..")
    ),
]  # fmt: skip


@pytest.mark.parametrize(("choose", "name", "message"), REFUSED)
def test_a_reserved_name_is_refused(
    choose: Callable[[str, Path], None], name: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(CleansetError) as error:
        choose(name, tmp_path)
    assert message in str(error.value)
    assert str(error.value).isprintable()


@pytest.mark.parametrize("choose", [reviewer, class_key, role, group, further_model, wrapped_model, scenario])
def test_another_name_is_taken(choose: Callable[[str, Path], None], tmp_path: Path) -> None:
    choose("fog_a", tmp_path)
