"""Hostile input at length: 10,000 damaged files of each kind, and how reading them ends.

`python bench/hostile.py [KIND …] [--cases N]`; the cases are seeded, so a number printed here is the same everywhere.
"""

import argparse
from collections.abc import Mapping
from time import perf_counter

from measuring import print_machine, print_table
from tests.hostile.kinds import KINDS
from tests.hostile.running import MAX_MESSAGE, Outcomes, run_cases

CASES = 10_000
SHOWN = 3
"""Defects printed of each kind."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; all if none is named")
    parser.add_argument("--cases", type=int, default=CASES)
    arguments = parser.parse_args()
    rows = []
    for kind in arguments.kinds or KINDS:
        start = perf_counter()
        outcomes = run_cases(kind, range(arguments.cases))
        rows.append(row(kind, outcomes, perf_counter() - start))
        print_defects(kind, outcomes.defects)
    print_machine()
    header = (
        "kind", "cases", "refused", "accepted", "tracebacks", "crashes or hangs", f"over {MAX_MESSAGE} characters",
        "seconds",
    )  # fmt: skip
    print_table("Hostile input", header, rows)


def row(kind: str, outcomes: Outcomes, seconds: float) -> tuple[str, ...]:
    counts = (
        outcomes.cases, outcomes.refused, outcomes.accepted, len(outcomes.tracebacks), len(outcomes.crashes),
        len(outcomes.long_messages),
    )  # fmt: skip
    return (kind, *(f"{count:,}" for count in counts), f"{seconds:.0f}")


def print_defects(kind: str, defects: Mapping[int, str]) -> None:
    for number, detail in sorted(defects.items())[:SHOWN]:
        print(f"{kind}, case {number}:\n{detail}\n", flush=True)


if __name__ == "__main__":
    main()
