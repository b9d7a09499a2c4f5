"""`cleanset review audit` and `cleanset audit`: draw the images of an audit, and report its result as text or JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from cleanset.classes import ClassTable
from cleanset.edition.params import Params, read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.review import audit, audit_files
from cleanset.review.decided import checked_votes
from cleanset.statistics.finite import Draws, fixed_bound, open_bound
from cleanset.tables import INDEX, REJECTED, SELECTION, read_table


def one_role(params: Params, role: str | None) -> str:
    """The model to audit; by default the only one. Raises CleansetError for an unknown or missing name."""
    if role is None and len(params.models) > 1:
        raise CleansetError(f"audit: several models ({', '.join(params.models)}); pass --model ROLE")
    found = role or next(iter(params.models))
    params.model(found)
    return found


def draw(
    edition: Edition,
    role: str | None,
    drawn: int,
    *,
    kind: audit.AuditKind | None = None,
    seed: str | None = None,
    auditor: str | None = None,
) -> tuple[audit.AuditPlan, bool]:
    """The plan of an audit, written if it is new or grows, and whether it was.

    `kind` and `seed`: None takes the existing audit's, else fixed and 1. `auditor`: who is to look at the
    draws. Raises CleansetError unless every class of the set is settled, where the existing plan differs, and
    as `draws_of_auditor` does; then nothing is written.
    """
    params = read_params(edition.folder)
    role = one_role(params, role)
    classes = edition.read_classes()
    plan = audit_files.read_plan(edition.reviews, role, classes)
    if plan is None:
        wanted = audit.new_plan(
            model=role,
            kind=kind or "fixed",
            seed=seed or "1",
            drawn=drawn,
            images=_finished_set(edition, role, classes),
            classes=classes,
        )
    elif kind not in (None, plan.kind):
        raise CleansetError(f"audit of {role}: it was begun as {plan.kind}; that cannot be changed afterwards")
    elif seed not in (None, plan.seed):
        raise CleansetError(f"audit of {role}: it was drawn with seed {plan.seed!r}, not {seed!r}; leave out --seed")
    else:
        wanted = audit.continued(plan, drawn)
    if auditor is not None:
        audit_files.draws_of_auditor(edition.reviews, wanted, auditor)
    if wanted != plan:
        audit_files.write_plan(edition.reviews, wanted)
    return wanted, wanted != plan


def _finished_set(edition: Edition, role: str, classes: ClassTable) -> list[audit.SetImage]:
    """The images of a model's set. Raises CleansetError unless every class is settled."""
    rejected = read_table(edition.rejected(role), REJECTED, classes)
    open_classes = int(rejected.loc[rejected["open"], "class_index"].nunique())
    if open_classes:
        raise CleansetError(
            f"audit of {role}: {open_classes} classes of its set still wait for reviews; expected a finished set: "
            "cleanset review status names them; then run dvc repro"
        )
    return audit.set_images(read_table(edition.selection(role), SELECTION, classes))


def outlook(plan: audit.AuditPlan) -> str:
    """A line on the least bound that the draws can give."""
    clean = Draws(len(plan.images), plan.drawn, 0)
    bound = open_bound(clean) if plan.kind == "open" else fixed_bound(clean)
    return (
        f"{plan.model}: {plan.drawn:,} of {len(plan.images):,} images are drawn ({plan.kind}). If all are clean, and "
        f"the auditors miss nothing, at most {audit.percent(bound, len(plan.images))} of the set is flawed, with 95 % "
        "confidence."
    )


def run_audit(edition: Edition, role: str | None = None) -> list[audit.AuditResult]:
    """The results of the audits of an edition, of one model or of all. Raises CleansetError without one."""
    params = read_params(edition.folder)
    roles = audit_files.audited_roles(edition.reviews, [one_role(params, role)] if role else list(params.models))
    if not roles:
        raise CleansetError(
            f"{edition.reviews / 'audit'}: no audit{f' of {role}' if role else ''}; cleanset review audit "
            "100 --model ROLE draws images of a finished set"
        )
    classes = edition.read_classes()
    index = read_table(edition.index, INDEX, classes)
    votes = checked_votes(edition, params, index, classes)
    results = []
    for each in roles:
        selection = read_table(edition.selection(each), SELECTION, classes)
        read = audit_files.read_audit_files(edition.reviews, each, roles=list(params.models), classes=classes)
        result = audit_files.result_of_audit(read, votes=votes, index=index, selection=selection, classes=classes)
        if result is not None:
            results.append(result)
    return results


def audit_as_json(results: Sequence[audit.AuditResult]) -> str:
    """By model, the numbers of each audit; `bound` is the one to state, or null."""
    return json.dumps({each.model: asdict(each) | {"bound": each.bound} for each in results}, indent=2)


def as_text(results: Sequence[audit.AuditResult]) -> str:
    """A paragraph for each audit, the bound first."""
    return "\n\n".join(f"{each.model}: " + "\n".join(audit.sentences(each)) for each in results)
