"""The section `wrapped` of the params.yaml of studies/attacks: models of the edition with something around them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self

import pandas as pd
from pydantic import Field, field_validator, model_validator

from cleanset.errors import CleansetError
from cleanset.scoring.logits import Groups
from cleanset.validation import Role, Section, shown


class WrappedModel(Section):
    """A model of the edition with two groups of classes in place of all, in a wrapper, or both.

    `model`: its role. `groups`: the wnids of each of two groups by name, in the order of the model's answers.
    `wrapper`: uninteresting, the defense that only looks strong, of source 004's appendix E; it is around the groups.
    `images`: the largest number of images that it is attacked on; None for all.
    """

    model: Role
    wrapper: Literal["uninteresting"] | None = None
    groups: dict[Role, list[str]] | None = None
    images: Annotated[int, Field(ge=1)] | None = None

    @field_validator("groups")
    @classmethod
    def _two_groups(cls, groups: dict[str, list[str]] | None) -> dict[str, list[str]] | None:
        if groups is not None:
            try:
                Groups.of(groups, "groups")
            except CleansetError as error:
                raise ValueError(str(error).removeprefix("groups").lstrip(".: ")) from None
        return groups

    @model_validator(mode="after")
    def _something_around(self) -> Self:
        if self.wrapper is None and self.groups is None:
            raise ValueError("neither wrapper nor groups; expected one of them or both")
        return self

    @property
    def two_groups(self) -> Groups | None:
        """The groups; None where the model has all classes."""
        return None if self.groups is None else Groups.of(self.groups)

    def text(self) -> str:
        """The model and its surroundings, as the page names them."""
        groups = [] if self.groups is None else [f"two groups: {', '.join(self.groups)}"]
        return "; ".join((self.model, *groups, *([] if self.wrapper is None else [f"wrapper {self.wrapper}"])))


def check_wrapped(wrapped: Mapping[str, WrappedModel], roles: Sequence[str], others: Sequence[str], where: str) -> None:
    """Raise CleansetError unless each is a model of the edition, under a name that no other model has.

    `roles` are those of the edition, `others` those of further models; `where` names the section.
    """
    for name, each in wrapped.items():
        if name in (*roles, *others):
            raise CleansetError(
                f"{where}.{name}: a model has this name; expected another than {', '.join((*roles, *others))}"
            )
        if each.model not in roles:
            raise CleansetError(
                f"{where}.{name}.model: unknown model {shown(each.model)}; expected a role of the edition: "
                f"{', '.join(roles)}"
            )


def label(groups: Groups | None, class_index: int) -> int | None:
    """The correct answer of a model to an image of a class: the class, or its group; None for a class of no group."""
    return class_index if groups is None else groups.group_of(class_index)


def images_of(groups: Groups | None, images: pd.DataFrame, name: str) -> pd.DataFrame:
    """The images of the groups' classes; all without groups. Raises CleansetError, naming the model, if there is none.

    `images` are rows of STUDY_IMAGES.
    """
    found = [label(groups, index) is not None for index in images["class_index"].tolist()]
    if not any(found):
        raise CleansetError(
            f"wrapped.{name}.groups: none of the study's {len(images)} images is of one of their classes; "
            "expected at least one: name classes of the edition"
        )
    return images[found].reset_index(drop=True)
