"""One number with its interval, whatever was measured; differences of two models; both as rows of declared columns."""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

from cleanset.plumbing.metrics import Lines, metric_lines
from cleanset.statistics.differences import holm

if TYPE_CHECKING:
    import pandas as pd

NAN = math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A number with its interval. Fields that do not apply are empty."""

    selection: str = ""
    """The selection of images that it is of, such as those in the sets of all models."""
    family: str = ""
    """The family of changes."""
    measure: str = ""
    """The name of the measure."""
    change: str = ""
    """A change or a group of them, an attack or a threat model; empty: over all changes."""
    model: str = ""
    """The name of the model."""
    value: float = NAN
    """The number, a share unless the measure says otherwise; NaN if it is undefined, which needs a `problem`."""
    low: float = NAN
    """The lower end of the interval; NaN for a measure without one."""
    high: float = NAN
    """The upper end of the interval; NaN for a measure without one."""
    images: int = 0
    """The number of images that it is of."""
    problem: str = ""
    """The reason why it is undefined; empty if it has a value."""

    def __post_init__(self) -> None:
        """Raise ValueError for no value without a reason, and for a reason with a value."""
        if self.is_defined == bool(self.problem):
            raise ValueError(
                f"{self.measure or 'measure'}: value {self.value}, problem {self.problem!r}; expected a finite value, "
                "or the reason why there is none"
            )

    @classmethod
    def of(
        cls, value: float | None, interval: tuple[float, float] | None = None, problem: str = "", **labels: Any
    ) -> Self:
        """The measure of a value and its interval, each None or NaN if it is undefined; `labels`: further fields.

        `problem`: the reason why the value is undefined, if it is.
        """
        number = NAN if value is None else value
        low, high = interval or (NAN, NAN)
        return cls(value=number, low=low, high=high, problem="" if math.isfinite(number) else problem, **labels)

    @property
    def is_defined(self) -> bool:
        """Whether it has a value."""
        return math.isfinite(self.value)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ends of the interval, if it has one."""
        return (self.low, self.high) if math.isfinite(self.low) else None

    def scaled(self, factor: float) -> Self:
        """The measure times a factor, such as 100 for percent."""
        return replace(self, value=factor * self.value, low=factor * self.low, high=factor * self.high)

    def as_json(self) -> dict[str, Any]:
        """Value and interval, None if there is none, and the reason for no value."""
        interval = self.interval
        found = {
            "value": self.value if self.is_defined else None,
            "interval": None if interval is None else [*interval],
        }
        return found | ({"problem": self.problem} if self.problem else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(Measure):
    """A measure of `model` minus that of `other` on the same images."""

    other: str = ""
    """The model whose measure is subtracted."""
    p: float = NAN
    """The p-value of the test that neither is better; NaN for what is not tested."""
    p_holm: float = NAN
    """`p` after Holm's correction for all differences that are tested together."""


NOT_MEASURED = Measure(problem="not measured")
"""In place of a measure that was not computed."""

OneDifference = TypeVar("OneDifference", bound=Difference)


def corrected(
    differences: Sequence[OneDifference], together: Callable[[OneDifference], Hashable]
) -> list[OneDifference]:
    """The differences with Holm's correction over those that are tested and have the same key `together`."""
    groups: dict[Hashable, list[int]] = {}
    for place, each in enumerate(differences):
        if math.isfinite(each.p):
            groups.setdefault(together(each), []).append(place)
    found = list(differences)
    for places in groups.values():
        for place, p in zip(places, holm([found[place].p for place in places]), strict=True):
            found[place] = replace(found[place], p_holm=p)
    return found


def images_text(images: Mapping[str, int]) -> str:
    """The number of images, or that of each model where they differ; `images`: by model."""
    counts = [f"{count:,}" for count in images.values()]
    return counts[0] if len(set(counts)) == 1 else ", ".join(map(" ".join, zip(images, counts, strict=True)))


Columns = Mapping[str, str]
"""The field of each column of a file of measures."""


def columns_of(*names: str, **others: str) -> Columns:
    """Columns that are named as their fields; `others`: the fields of columns with another name, which come first."""
    return {**others, **{name: name for name in names}}


def measures_frame(measures: Iterable[Measure], columns: Columns) -> "pd.DataFrame":
    """A row for each measure, with the declared columns."""
    import pandas as pd

    rows = [[getattr(each, name) for name in columns.values()] for each in measures]
    return pd.DataFrame(rows, columns=list(columns))


def read_measures(table: "pd.DataFrame", columns: Columns) -> list[Measure]:
    """The measures of a table with the declared columns, new or read back."""
    # pandas reads an empty text as a missing number
    of_text = {each.name for each in fields(Measure) if each.type is str}
    texts = {column: "" for column, name in columns.items() if name in of_text}
    whole = table[list(columns)].astype(dict.fromkeys(texts, object)).fillna(texts)
    rows = (dict(zip(columns.values(), row, strict=True)) for row in whole.itertuples(index=False, name=None))
    return [
        Measure.of(
            row.pop("value"),
            (row.pop("low"), row.pop("high")),
            row.pop("problem", "") or "no reason is in the file",
            **row,
        )
        for row in rows
    ]


def metrics_of(measures: Iterable[Measure], name: Callable[[Measure], str], with_intervals: Sequence[str]) -> Lines:
    """The lines of `dvc metrics show`, each named by `name`; the measures `with_intervals` with both ends, too."""
    return metric_lines(
        (
            name(each),
            each.model,
            (each.value, each.low, each.high) if each.measure in with_intervals else (each.value,),
        )
        for each in measures
    )
