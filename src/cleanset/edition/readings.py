"""The reading of SCOOTER that an edition follows, as sentences for the data card and the report."""

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING

from cleanset.plumbing.yaml_files import data_beside

if TYPE_CHECKING:
    from cleanset.edition.params import Params, ReviewPolicy

_SENTENCES = data_beside(__file__, "readings.yaml")
COUNTS_AS_CLEAN: str = _SENTENCES["unreviewed"]["clean"]
"""The end of the sentence on the policy of a set with images that nobody has reviewed."""


def readings(params: "Params", role: str | None = None) -> list[str]:
    """A sentence for each reading that the set of a model follows, or without a `role` any set of the edition.

    First the protocol and the differences from it, unless there is no model.
    """
    models = params.models.values() if role is None else [params.model(role)]
    sentences = _SENTENCES["readings"] | (_SENTENCES["of_own_images"] if params.dataset.is_own else {})
    if all(model.is_random for model in models):
        return [
            _of_label(params, sentences["dataset.label"]),
            *([] if params.dataset.is_own else [_SENTENCES["one_label"]]),
            _SENTENCES["random_order"],
            _SENTENCES["crops_in_random_order"][params.review.crops],
        ]
    tiers = ", ".join(params.select.tiers)
    several = "" if "relaxed" in params.select.tiers else "; an image with several labels is in no class"
    return [
        _protocol(params),
        *(
            _of_label(params, of_value) if key == "dataset.label" else of_value[attrgetter(key)(params)]
            for key, of_value in sentences.items()
        ),
        f"Classes are filled from these tiers, in this order: {tiers}{several}.",
        *_without_network(params),
    ]


def _of_label(params: "Params", of_value: Mapping[str, str]) -> str:
    """The sentence on which images have a label; one that a study confirms names it."""
    label = params.dataset.label
    if not params.dataset.label_is_study:
        return of_value[label]
    from cleanset.dataset.label_sources import sources_named

    (study,) = sources_named([label])
    return str(_SENTENCES["label_of_study"]).format(name=label, study=study.study)


def _without_network(params: "Params") -> Iterator[str]:
    """Yield sentences on what is in place of models: what it cannot say."""
    for source, sentence in _SENTENCES["without_network"].items():
        if roles := [role for role, model in params.models.items() if model.source == source]:
            yield sentence.format(roles=", ".join(roles))
    if any(model.source == "lists" and model.beyond for model in params.models.values()):
        yield _SENTENCES["beyond"]


def review_policy(review: "ReviewPolicy") -> str:
    """A sentence on how the reviewers' verdicts become one, and on how an image without any counts."""
    policy = _SENTENCES["policies"][review.policy].format(reviewers=review.min_reviewers)
    return f"{policy}; the board overrules; {_SENTENCES['unreviewed'][review.unreviewed]}."


def _protocol(params: "Params") -> str:
    from cleanset.edition.params import PROTOCOLS

    other = [
        f"{section}.{key}"
        for section, keys in PROTOCOLS[params.protocol].items()
        for key, value in keys.items()
        if attrgetter(f"{section}.{key}")(params) != value
    ]
    exceptions = f", except for {', '.join(other)}" if other else ""
    return f"Protocol {_SENTENCES['protocols'][params.protocol]}{exceptions}."
