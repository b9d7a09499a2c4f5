"""Grids: runs of a study's params by name, so that a laboratory runs those that it can pay for."""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from cleanset.errors import CleansetError
from cleanset.validation import check_known, join_names, shown


def grid_runs(grids: Mapping[str, Sequence[str]], runs: Iterable[str], name: str) -> list[str]:
    """The runs of a grid, in the order of the runs; a grid is of names, and of patterns such as `ex2_*`.

    Raises CleansetError for an unknown grid, and for a name or pattern that fits no run.
    """
    known = list(runs)
    if not grids:
        raise CleansetError(f"grids: found none in params.yaml; expected {shown(name)} as a list of runs: add it")
    check_known("grid", name, grids)
    found = set[str]()
    for pattern in grids[name]:
        fitting = {run for run in known if fnmatchcase(run, pattern)}
        if not fitting:
            raise CleansetError(
                f"grids.{name}: {shown(pattern)} fits no run; expected names or patterns of {join_names(known)}"
            )
        found |= fitting
    return [run for run in known if run in found]
