"""The rates of the hints that the docs state, measured again and written to hint_rates.yaml.

Flaws on every other of 500 labelled photographs, those of photos/ and photos_more/ in the folder of real photographs;
copies on those of photos_apart/, 500 of other classes that no rule was set on. Text is read where the extra `text` is
installed.
"""

import csv
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date

import numpy as np
import timm
import torch
import yaml
from PIL import Image, ImageOps
from safetensors.torch import load_file

from cleanset.classes import imagenet
from cleanset.images.codec import decode
from cleanset.report import hints as any_hints
from cleanset.review.hints.hints import measures_of, signs_of_image
from cleanset.review.hints.kinds import HINTS
from cleanset.review.hints.measures import prepared
from cleanset.review.hints.ranked import FoundHint, duplicate_hints, look_at
from cleanset.statistics.basics import Floats
from measuring import PROJECT, REAL
from planted import FLAWS, saved

RATES = PROJECT / "bench" / "hint_rates.yaml"
"""The rates that the docs state, each with the day on which the rules that it was measured with changed last."""
LABELS = {"photos": REAL / "flaws.csv", "photos_more": PROJECT / "bench" / "photos_more.csv"}
"""Reasons by photograph, for each folder of photographs."""
APART = "photos_apart"
RATED = ("text", "border", "artificial_background", "filter", "collage")
NETWORK = "tf_efficientnet_lite0"
NETWORK_RATED = ("filter", "collage")
NETWORK_FALSE = 0.02
"""Share of the photographs without a flaw that are above the limit of the classifier."""
RIDGE = 1_000.0
"""Penalty of the classifier's squared weights; 100, 1,000 and 10,000 find about as much."""
PLANTED_PHOTOGRAPHS = 25
CROPPED_SHARES = (0.05, 0.12, 0.2)
"""Share of each side that a cropped copy lacks."""


def main() -> None:
    """Measure the rates; those of unseen photographs and of other tools are kept."""
    photographs = {name: image for folder in LABELS for name, image in photographs_of(folder).items()}
    apart = list(photographs_of(APART).values())
    flaws = flaws_of_photographs()
    found: dict[str, set[str]] = {
        f"{folder}/{image.image_id}": {hint.kind for hint in image.hints}
        for folder in LABELS
        for image in any_hints.write(str(REAL / folder), None).hinted
    }
    by_rules = {
        kind: sum(kind in flaws[name] and kind in found.get(name, ()) for name in photographs) for kind in NETWORK_RATED
    }
    # the others have set the limits
    half = list(photographs)[1::2]
    network = network_found({name: flaws[name] for name in photographs}, list(photographs.values()))
    text = RATES.read_text(encoding="utf-8")
    parts = {
        "half_of_500": rates_on(half, flaws, found),
        "copies": {"rules_of": rules_of("duplicate"), **copies_found(apart)},
        "planted": planted_found(apart),
        "network": {
            "rules_of": {kind: rules_of(kind) for kind in NETWORK_RATED},
            **network,
            "found_by_rules": by_rules,
        },
    }
    rates = yaml.safe_load(text)
    rates |= {name: {"date": date.today().isoformat(), **part} for name, part in parts.items()}
    head = text.partition("\n\n")[0]
    RATES.write_text(f"{head}\n\n{yaml.safe_dump(rates, sort_keys=False)}", encoding="utf-8")
    print(RATES.read_text(encoding="utf-8"))


def photographs_of(folder: str) -> dict[str, Image.Image]:
    """The photographs in a folder, by folder and name. Exits if there are none."""
    paths = sorted((REAL / folder).glob("*.JPEG"))
    if not paths:
        sys.exit(f"error: no photographs: set CLEANSET_REAL to the folder that holds {folder}/")
    return {f"{folder}/{path.name}": decode(path.read_bytes()).convert("RGB") for path in paths}


def flaws_of_photographs() -> dict[str, set[str]]:
    """The reasons that the photographs are labelled with, by folder and name."""
    flaws: dict[str, set[str]] = defaultdict(set)
    for folder, labels in LABELS.items():
        with labels.open(encoding="utf-8", newline="") as lines:
            for line in csv.DictReader(lines):
                flaws[f"{folder}/{line['file']}"].add(line["reason"])
    return flaws


def rates_on(names: Sequence[str], flaws: Mapping[str, set[str]], found: Mapping[str, set[str]]) -> dict[str, object]:
    """Flawed, found and falsely hinted photographs of each reason, and hints at those without a flaw."""
    by_kind = {}
    for kind in RATED:
        flawed = {name for name in names if kind in flaws[name]}
        hinted = {name for name in names if kind in found.get(name, ())}
        by_kind[kind] = {
            "rules_of": rules_of(kind),
            "flawed": len(flawed),
            "found": len(flawed & hinted),
            "false": len(hinted - flawed),
        }
    clean = [name for name in names if not flaws[name]]
    hinted_clean = sum(bool(found.get(name)) for name in clean)
    return {"photographs": len(names), "flaws": by_kind, "clean": len(clean), "clean_hinted": hinted_clean}


def rules_of(kind: str) -> str:
    """The day on which the rules of a hint changed last."""
    return next(hint.rules_of for hint in HINTS.values() if hint.kind == kind).isoformat()


def network_found(flaws: Mapping[str, set[str]], photographs: Sequence[Image.Image]) -> dict[str, object]:
    """What a linear classifier on the penultimate layer of a network finds of each flaw, one photograph left out.

    `flaws`: those of each photograph, in their order. The classifier is a ridge regression on standardized features, in
    which both classes weigh the same.
    """
    features = penultimate_features(photographs)
    features = (features - features.mean(axis=0)) / (features.std(axis=0) + 1e-6)
    features = np.hstack([features, np.ones((len(features), 1))])
    is_clean = np.array([not of_one for of_one in flaws.values()])
    found = {}
    for kind in NETWORK_RATED:
        is_flawed = np.array([kind in of_one for of_one in flaws.values()])
        share = is_flawed.mean()
        weights = np.sqrt(np.where(is_flawed, 0.5 / share, 0.5 / (1 - share)))
        rows = features * weights[:, None]
        wanted = np.where(is_flawed, 1.0, -1.0) * weights
        kernel = rows @ rows.T
        hat = kernel @ np.linalg.inv(kernel + RIDGE * np.eye(len(rows)))
        own = np.diag(hat)
        # the prediction for a photograph by a regression without it
        scores = (hat @ wanted - own * wanted) / (1 - own) / weights
        limit = np.quantile(scores[is_clean], 1 - NETWORK_FALSE)
        found[kind] = {"flawed": int(is_flawed.sum()), "found": int((scores[is_flawed] > limit).sum())}
    return {"network": NETWORK, "photographs": len(photographs), "false_share": NETWORK_FALSE, "flaws": found}


def penultimate_features(photographs: Sequence[Image.Image]) -> Floats:
    """The penultimate layer of NETWORK for each photograph, preprocessed as timm does."""
    network = timm.create_model(NETWORK, pretrained=False)
    network.load_state_dict(load_file(str(REAL / "weights" / f"{NETWORK}.safetensors")))
    network.eval()
    config = timm.data.resolve_data_config({}, model=network)
    transform = timm.data.create_transform(**config)
    with torch.inference_mode():
        found = [
            network.forward_head(network.forward_features(transform(image)[None]), pre_logits=True)
            for image in photographs
        ]
    return np.asarray(torch.cat(found).double())


def copies_found(photographs: Sequence[Image.Image]) -> dict[str, object]:
    """The cropped copies that are found among all photographs, and the photographs taken for another one."""
    looks = {f"{place}": look_at(saved(image)) for place, image in enumerate(photographs)}
    wrong = duplicate_hints(looks)
    found = {}
    for name, change in (("found_by_share", Image.Image.copy), ("mirrored_by_share", ImageOps.mirror)):
        of_shares = {}
        for share in CROPPED_SHARES:
            copies = [look_at(saved(change(cropped(image, share)))) for image in photographs]
            hints = duplicate_hints({**looks, **{f"{place}-copy": copy for place, copy in enumerate(copies)}})
            of_shares[f"{share:g}"] = sum(is_pair(hints, place, f"{place}-copy") for place in looks)
            wrong |= {
                one: of for one, of in hints.items() if of[0].other.removesuffix("-copy") != one.removesuffix("-copy")
            }
        found[name] = of_shares
    count = len(photographs)
    return {"photographs": count, "pairs": count * (count - 1) // 2, "wrong": len(wrong), **found}


def planted_found(photographs: Sequence[Image.Image]) -> dict[str, object]:
    """The number with each planted flaw that have a hint, of photographs without one before; text is not read."""
    unhinted = [image for image in photographs if not kinds_in(saved(image))]
    chosen = unhinted[:: len(unhinted) // PLANTED_PHOTOGRAPHS][:PLANTED_PHOTOGRAPHS]
    kinds = {name: [kinds_in(saved(plant(image))) for image in chosen] for name, plant in FLAWS.items()}
    found = {name: sum(map(bool, of_one)) for name, of_one in kinds.items()}
    return {"photographs": len(chosen), "hinted_as_they_are": len(photographs) - len(unhinted), "found": found}


def kinds_in(image: Image.Image) -> set[str]:
    """The kinds of hints from the pixels of one image."""
    return {kind for kind, _ in signs_of_image(measures_of(prepared(image)), imagenet())}


def is_pair(hints: Mapping[str, Sequence[FoundHint]], one: str, other: str) -> bool:
    """Whether each of two images has the other as its most similar one."""
    return all(
        any(hint.other == second for hint in hints.get(first, ())) for first, second in ((one, other), (other, one))
    )


def cropped(image: Image.Image, share: float) -> Image.Image:
    """An image without a share of each side."""
    across = round(image.width * share)
    down = round(image.height * share)
    return image.crop((across, down, image.width - across, image.height - down))


if __name__ == "__main__":
    main()
