"""The reading of SCOOTER (source 000) that an edition follows, as sentences for the data card and the report."""

from cleanset.edition.params import PROTOCOLS, Params, ReviewPolicy

_SENTENCES: dict[tuple[str, str], str] = {
    ("dataset.label", "real"): "The label of an image is its one reassessed label.",
    ("dataset.label", "both"): "An image has a label where its one reassessed label is its ILSVRC label too.",
    ("select.pool", "ensemble"): "Tier top5 is taken from the images that all models classify correctly.",
    ("select.pool", "model"): "Tier top5 is taken from the images that this model classifies correctly.",
    ("select.order", "log_odds"): "Images are ordered by the log-odds of the top-1 class.",
    ("select.order", "float32"): "Images are ordered by confidence in float32; equal ones by file name.",
    ("review.crops", "last"): "Within a tier, cropped images come after the clean ones.",
    ("review.crops", "in_rank"): "Within a tier, a cropped image counts like a clean one.",
}
_OF_OWN_IMAGES: dict[tuple[str, str], str] = {
    ("dataset.label", "real"): "The label of an image is the class that it came with.",
    ("dataset.label", "both"): "The label of an image is the class that it came with.",
}
_PROTOCOLS = {
    "as_written": "as written: the rules in the paper of SCOOTER",
    "as_published": "as published: how the set of SCOOTER was made",
}


COUNTS_AS_CLEAN = "an image that nobody has reviewed counts as clean"
"""The end of the sentence on the policy of a set with images that nobody has reviewed."""


def readings(params: Params) -> list[str]:
    """A sentence for each reading; first the protocol and the differences from it."""
    used = {
        "dataset.label": params.dataset.label,
        "select.pool": params.select.pool,
        "select.order": params.select.order,
        "review.crops": params.review.crops,
    }
    if all(model.source == "random" for model in params.models.values()):
        del used["select.pool"], used["select.order"]
    tiers = ", ".join(params.select.tiers)
    several = "" if "relaxed" in params.select.tiers else "; an image with several labels is in no class"
    sentences = {**_SENTENCES, **(_OF_OWN_IMAGES if params.dataset.is_own else {})}
    return [
        _protocol(params),
        *(sentences[key, value] for key, value in used.items()),
        f"Classes are filled from these tiers, in this order: {tiers}{several}.",
        *_lists(params),
    ]


def _lists(params: Params) -> list[str]:
    """Sentences on what stands in place of models: what it cannot say."""
    sentences = []
    for source, sentence in _WITHOUT_NETWORK.items():
        if of_source := [role for role, model in params.models.items() if model.source == source]:
            sentences.append(sentence.format(roles=", ".join(of_source)))
    roles = [role for role, model in params.models.items() if model.source == "lists"]
    if not roles:
        return sentences
    sentences += [
        f"The scores of {', '.join(roles)} are published lists of images that the model classifies correctly; no "
        "network was run. What it predicts for any other image or for a crop is not known: other images count as "
        "misclassified, crops as classified correctly."
    ]
    if any(params.models[role].beyond for role in roles):
        sentences.append(
            "Images that were taken from beyond a list come after its images; their confidence is not known and left "
            "empty."
        )
    return sentences


_WITHOUT_NETWORK = {
    "scores": "The scores of {roles} are from a table; no network was run. What it predicts for a crop is not known: "
    "crops count as classified correctly.",
    "random": "{roles}: no model was used; the images of a class are in a random order.",
}


def review_policy(review: ReviewPolicy) -> str:
    """A sentence on how the reviewers' verdicts become one, and on how an image without any counts."""
    policy = {
        "single": "One reviewer is enough, and all who reviewed an image must agree",
        "majority": f"At least {review.min_reviewers} must have reviewed an image, and more than half of them agree",
        "unanimous": f"At least {review.min_reviewers} must have reviewed an image, and all of them agree",
    }[review.policy]
    unreviewed = COUNTS_AS_CLEAN if review.unreviewed_are_clean else "an image that nobody has reviewed is left out"
    return f"{policy}; the board overrules; {unreviewed}."


def _protocol(params: Params) -> str:
    other = [
        f"{section}.{key}"
        for section, keys in PROTOCOLS[params.protocol].items()
        for key, value in keys.items()
        if getattr(getattr(params, section), key) != value
    ]
    exceptions = f", except for {', '.join(other)}" if other else ""
    return f"Protocol {_PROTOCOLS[params.protocol]}{exceptions}."
