"""Full scale without a GPU: intersect, select, crops and review_apply for 50,000 images and three models."""

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow.parquet as pq

import simulation
from measuring import Run, cleanset, figures, in_child, print_machine, print_table, scratch, share, together
from replay import real_labels

ROUNDS = 5
IMAGES = 50_000
SECONDS = 10.0
MIB = 1000.0
ONE_LABEL = 39_394
FROM_ONE_LABEL = 2_996
FULL = 3_000

Stages = dict[str, list[Run]]
BEFORE_REVIEW = ("intersect", "select")
STAGES = (*BEFORE_REVIEW, "crops", "review_apply")


def main() -> None:
    with scratch() as folder:
        drawn, perfect = folder / "drawn", folder / "perfect"
        # the memory of this process would count as the stages' own
        in_child(build, drawn, simulation.RIGHT)
        run_stages(drawn, BEFORE_REVIEW)
        verdicts = in_child(simulation.write_reviews, drawn)
        in_child(build, perfect, dict.fromkeys(simulation.ROLES, 1.0))
        rounds = [run_stages(drawn, STAGES) for _ in range(ROUNDS)]
        run_stages(perfect, STAGES)
        print_machine()
        print_times(rounds, verdicts)
        print_counts(drawn, perfect)


def build(folder: Path, right: Mapping[str, float]) -> None:
    """An edition with the real reassessed labels; a perfect ensemble needs no reviews."""
    is_perfect = min(right.values()) == 1
    simulation.write_edition(folder, simulation.fewest_first(list(real_labels().values())[:IMAGES]), right)
    simulation.write_params(folder, review={"unreviewed": "clean" if is_perfect else "pending"})


def run_stages(edition: Path, stages: Sequence[str]) -> Stages:
    """Run the stages as DVC does, one process after the other."""
    if stages[-1] == "review_apply":
        for name in ("shared.parquet", "crops.parquet", "candidates", "selection", "rejected"):
            remove(edition / "data" / name)
    return {stage: [cleanset(stage, *of, edition=edition) for of in arguments(stage)] for stage in stages}


def arguments(stage: str) -> list[tuple[str, ...]]:
    return [()] if stage in ("intersect", "crops") else [("--model", role) for role in simulation.ROLES]


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def print_times(rounds: Sequence[Stages], verdicts: int) -> None:
    rows = [time_row(stage, [each[stage] for each in rounds]) for stage in rounds[0]]
    every = [[run for runs in each.values() for run in runs] for each in rounds]
    rows.append(time_row("all", every))
    seconds, processor_seconds, peak = figures([*map(together, every)])
    rows.append(("limit", f"{SECONDS:g}", f"{SECONDS:g}", f"{MIB:g}"))
    rows.append(("of the limit", share(seconds, SECONDS), share(processor_seconds, SECONDS), share(peak, MIB)))
    title = f"{IMAGES:,} images, three models, {verdicts:,} verdicts in 1,000 files, median of {len(rounds)} rounds"
    print_table(title, ("stage", "seconds", "processor seconds", "peak MiB"), rows)


def time_row(name: str, rounds: Sequence[Sequence[Run]]) -> tuple[str, str, str, str]:
    """Medians of the times, the largest of the memories."""
    count = f", {len(rounds[0])} processes" if len(rounds[0]) > 1 else ""
    seconds, processor_seconds, peak = figures([*map(together, rounds)])
    return name + count, f"{seconds:.2f}", f"{processor_seconds:.2f}", f"{peak:.0f}"


def print_counts(drawn: Path, perfect: Path) -> None:
    one_label = sum(pq.read_table(drawn / "data" / "index.parquet", columns=["single"])["single"].to_pylist())
    rows = [("images with one label", f"{one_label:,}", f"{ONE_LABEL:,}", verdict(one_label == ONE_LABEL))]
    for role in simulation.ROLES:
        relaxed, total = filled(perfect, role)
        single = total - relaxed
        ok = single <= FROM_ONE_LABEL
        rows.append((f"perfect, {role}: from one label", f"{single:,}", f"at most {FROM_ONE_LABEL:,}", verdict(ok)))
        rows.append((f"perfect, {role}: with relaxed", f"{total:,}", f"{FULL:,}", verdict(total == FULL)))
    for role in simulation.ROLES:
        relaxed, total = filled(drawn, role)
        ok = total - relaxed <= FROM_ONE_LABEL and total <= FULL
        rows.append((f"simulated, {role}: from one label", f"{total - relaxed:,}", "", verdict(ok)))
        rows.append((f"simulated, {role}: with relaxed", f"{total:,}", "", verdict(ok)))
    print_table("Images", ("what", "found", "expected", ""), rows)


def filled(edition: Path, role: str) -> tuple[int, int]:
    """Number of images kept from tier relaxed, and in all."""
    tiers = pq.read_table(edition / "data" / "selection" / f"{role}.parquet", columns=["tier"])["tier"].to_pylist()
    return Counter(tiers)["relaxed"], len(tiers)


def verdict(is_right: bool) -> str:
    return "ok" if is_right else "WRONG"


if __name__ == "__main__":
    main()
