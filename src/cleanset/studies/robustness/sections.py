"""The sections of params.yaml that name changes, and the two changes that every family has: clean and unchanged."""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Self

from pydantic import Field, model_validator

from cleanset.errors import CleansetError
from cleanset.plumbing.validation import NonEmpty, Section, shown

UNCHANGED = "unchanged"
"""The base image that corruptions and scenarios start from."""


CLEAN = "clean"
"""The image with the model's own preprocessing."""


class FamilySection(Section):
    """The section of params.yaml that decides a family's changed images; without a section it is not measured."""

    # before names, which are checked by it
    published: NonEmpty | None = None
    """A folder of published images, which are read instead of made. null: the images are made."""
    names: Annotated[list[str], Field(default_factory=list)]
    """The changes; a group among them stands for its members. By default those of the published benchmark; an empty
    list: none."""

    @model_validator(mode="after")
    def _measures_what_is_published(self) -> Self:
        if self.published is not None and not self.names:
            raise ValueError(
                f"names: [], and published: {self.published}: nothing would be read; expected names, no names "
                "for all of the benchmark, or published: null"
            )
        return self

    @classmethod
    def unmeasured(cls) -> Self:
        """Placeholder for the section of an unmeasured family."""
        return cls.model_validate({"names": []})

    def changes(self) -> list[tuple[str, int]]:
        """Each change and its step, a severity or a frame; 0 for neither."""
        raise NotImplementedError


def expand_groups(
    what: str,
    wanted: Iterable[str],
    groups: Mapping[str, tuple[str, ...]],
    known: tuple[str, ...],
    listed: tuple[str, ...] | None = None,
) -> tuple[str, ...]:
    """The names and the members of the groups among `wanted`, in the order of `known`, each once.

    Raises CleansetError for a name that is neither known nor a group; `what` is the singular of the names.
    `listed`: the known names that its message lists; None: all.
    """
    # a single name is a sequence of letters otherwise
    wanted = [wanted] if isinstance(wanted, str) else list(wanted)
    found: set[str] = set()
    for name in wanted:
        # a misspelled name must not silently measure less
        if name not in groups and name not in known:
            names = ", ".join(listed or known)
            raise CleansetError(
                f"unknown {what} {shown(name)}; expected one of {names}, or a group: {', '.join(groups)}"
            )
        found.update(groups.get(name, (name,)))
    return tuple(name for name in known if name in found)


def check_names(names: list[str], expand: Callable[[list[str]], object]) -> list[str]:
    """The names, as pydantic's validators take them: ValueError for one that `expand` does not know."""
    try:
        expand(names)
    except CleansetError as error:
        raise ValueError(str(error)) from None
    return names
