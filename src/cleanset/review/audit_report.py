"""`cleanset audit`: the results of the audits of an edition's sets; and the beginning of one."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from cleanset.edition.params import Params, read_params
from cleanset.edition.paths import Edition, images_are_official
from cleanset.errors import CleansetError
from cleanset.review.audit import AuditPlan, AuditResult, Kind, continued, new_plan, percent, sentences
from cleanset.review.audit_files import audited_roles, draws_of_auditor, read_audit, read_plan, set_images, write_plan
from cleanset.review.store import checked_reviews
from cleanset.statistics.finite import Draws, fixed_bound, open_bound
from cleanset.tables import INDEX, REJECTED, SELECTION, read_table


def one_role(params: Params, role: str | None) -> str:
    """The model to audit; the only one, if none is given. Raises CleansetError for an unknown or missing name."""
    if role is None and len(params.models) > 1:
        raise CleansetError(
            f"audit: no model, but the edition has {', '.join(params.models)}; expected one of them: add --model ROLE"
        )
    found = role or next(iter(params.models))
    params.model(found)
    return found


def draw(
    edition: Edition, role: str | None, drawn: int, kind: Kind | None, seed: str | None, auditor: str | None = None
) -> tuple[AuditPlan, bool]:
    """The plan of an audit, written if it is new or grows, and whether it was.

    `kind` and `seed`: None takes those of the audit that is there, else fixed and 1. `auditor`: who is to look at the
    draws. Raises CleansetError unless every class of the set is settled, where the plan that is there is another, and
    as `draws_of_auditor` does; then nothing is written.
    """
    params = read_params(edition.folder)
    role = one_role(params, role)
    plan = read_plan(edition.reviews, role)
    if plan is not None:
        if kind not in (None, plan.kind):
            raise CleansetError(f"audit of {role}: it was begun as {plan.kind}; that cannot be changed afterwards")
        if seed not in (None, plan.seed):
            raise CleansetError(f"audit of {role}: it was drawn with seed {plan.seed!r}; expected that one, or none")
        grown = continued(plan, drawn)
        if auditor is not None:
            draws_of_auditor(edition.reviews, grown, auditor)
        if grown != plan:
            write_plan(edition.reviews, grown)
        return grown, grown != plan
    rejected = read_table(edition.rejected(role), REJECTED)
    open_classes = int(rejected.loc[rejected["open"], "class_index"].nunique())
    if open_classes:
        raise CleansetError(
            f"audit of {role}: {open_classes} classes of its set still wait for reviews; expected a finished set: "
            "cleanset review --status names them; then run dvc repro"
        )
    images = set_images(read_table(edition.selection(role), SELECTION))
    new = new_plan(role, kind or "fixed", seed or "1", drawn, images)
    if auditor is not None:
        draws_of_auditor(edition.reviews, new, auditor)
    write_plan(edition.reviews, new)
    return new, True


def outlook(plan: AuditPlan) -> str:
    """A line on the least bound that the draws can give."""
    clean = Draws(len(plan.images), plan.drawn, 0)
    bound = open_bound(clean) if plan.kind == "open" else fixed_bound(clean)
    return (
        f"{plan.model}: {plan.drawn:,} of {len(plan.images):,} images are drawn ({plan.kind}). If all are clean, and "
        f"the auditors miss nothing, at most {percent(bound, len(plan.images))} of the set is flawed, with 95 % "
        "confidence."
    )


def run(edition: Edition, role: str | None = None) -> list[AuditResult]:
    """The results of the audits of an edition, of one model or of all. Raises CleansetError without one."""
    params = read_params(edition.folder)
    roles = audited_roles(edition.reviews, [one_role(params, role)] if role else list(params.models))
    if not roles:
        raise CleansetError(
            f"{edition.reviews / 'audit'}: no audit{f' of {role}' if role else ''}; expected one: cleanset review "
            "--audit 100 --model ROLE draws images of a finished set"
        )
    index = read_table(edition.index, INDEX)
    official = images_are_official(edition, params.dataset.images)
    votes = checked_reviews(edition.reviews, index, params.review.min_crop_pixels, official)
    results = []
    for each in roles:
        selection = read_table(edition.selection(each), SELECTION)
        result = read_audit(edition.reviews, each, list(params.models), votes, index, selection)
        assert result is not None
        results.append(result)
    return results


def as_json(results: Sequence[AuditResult]) -> str:
    """By model, the numbers of each audit; `bound` is the one to state, null while there is none."""
    return json.dumps({each.model: asdict(each) | {"bound": each.bound} for each in results}, indent=2)


def as_text(results: Sequence[AuditResult]) -> str:
    """A paragraph for each audit, the bound first."""
    return "\n\n".join(
        "\n".join([f"{each.model}: {lines[0]}", *lines[1:]]) for each in results if (lines := sentences(each))
    )
