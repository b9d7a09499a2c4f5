"""Precision and recall of the hints on labelled photographs, on the sample and on planted flaws; time.

Runs with sample/ on the path, for the flaws. Text is read where the extra `text` is installed. With --rates, only the
rates that the docs state are measured, and written to hint_rates.yaml.
"""

import csv
import io
import json
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from random import Random
from time import process_time

import numpy as np
import yaml
from numpy.typing import NDArray
from PIL import Image, ImageOps

from cleanset.classes import imagenet
from cleanset.drawing.flaws import PLANTERS, Planter
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition, verified_images
from cleanset.images.boxes import Box
from cleanset.images.codec import decode
from cleanset.images.fingerprints import Fingerprint
from cleanset.report import hints as any_hints
from cleanset.review.hints.crop_proposal import CropProposal, crop_proposal
from cleanset.review.hints.duplicates import hints_between_images
from cleanset.review.hints.hints import hints_of_image, measure
from cleanset.review.hints.kinds import HINTS
from cleanset.review.hints.ranked import FoundHint, duplicate_hints, look_at
from cleanset.review.hints.text import can_read_text, lines_of_text
from cleanset.tables import CANDIDATES, INDEX, read_table
from measuring import PROJECT, REAL, print_machine, print_table

FLAW_OF = {"text": ("text", "watermark")}
"""Which planted flaws a kind of hint is right on, where not only its own: a stamp with words is a line of letters."""
KINDS = (
    "border", "collage", "filter", "blur", "noise", "text", "artificial_background", "duplicate", "dark",
    "bright",
)  # fmt: skip
LABELLED = ("text", "border", "collage", "filter", "drawing", "artificial_background", "too_small", "blur", "noise")
"""Reasons that the photographs are labelled with, or that a hint may name."""
HINT_AT = {"too_small": "few_pixels"}
"""The kind of hint that was measured on a reason, where it is not the reason's own."""
FLAWLESS = 100
MILLISECONDS = 15.0
TEXT_MILLISECONDS = 500.0
SEED = 20_11


RATES = PROJECT / "bench" / "hint_rates.yaml"
"""The rates that the docs state, each with the day on which the rules that it was measured with changed last."""
RATED = ("text", "border", "artificial_background", "filter", "collage")
NETWORK = "tf_efficientnet_lite0"
NETWORK_RATED = ("filter", "collage")
NETWORK_FALSE = 0.02
"""Share of the photographs without a flaw that lie above the limit of the classifier."""
RIDGE = 1_000.0
"""Penalty of the classifier's squared weights; of 100, 1,000 and 10,000 all find about as much."""
CROPPED_SHARES = (0.05, 0.12, 0.2)
"""Share of each side that a cropped copy lacks."""


def main() -> None:
    print_machine()
    if "--rates" in sys.argv:
        write_rates()
        return
    if (REAL / "photos").is_dir():
        print_photographs()
    else:
        print("\nNo photographs: set CLEANSET_REAL to the folder that holds photos/.")
    print_sample()


# The rates that the docs state


def write_rates() -> None:
    """Measure the rates on every other photograph, and on copies of all; write them beside those of unseen ones."""
    found = {image.image_id: {hint.kind for hint in image.hints} for image in any_hints.write(str(REAL), None).hinted}
    photographs = {
        f"{folder}/{name}": image
        for folder in ("photos", "photos_more")
        for name, image in read_photographs(folder).items()
    }
    flaws: dict[str, set[str]] = defaultdict(set)
    for folder, labels in (("photos", REAL / "flaws.csv"), ("photos_more", PROJECT / "bench" / "photos_more.csv")):
        with labels.open(encoding="utf-8", newline="") as lines:
            for line in csv.DictReader(lines):
                flaws[f"{folder}/{line['file']}"].add(line["reason"])
    by_rules = {
        kind: sum(kind in flaws[name] and kind in found.get(name, ()) for name in photographs) for kind in NETWORK_RATED
    }
    # the others have set the limits
    half = list(photographs)[1::2]
    by_kind = {}
    for kind in RATED:
        flawed = {name for name in half if kind in flaws[name]}
        hinted = {name for name in half if kind in found.get(name, ())}
        by_kind[kind] = {
            "rules_of": rules_of(kind),
            "flawed": len(flawed),
            "found": len(flawed & hinted),
            "false": len(hinted - flawed),
        }
    clean = [name for name in half if not flaws[name]]
    kept = yaml.safe_load(RATES.read_text(encoding="utf-8"))
    kept["half_of_500"] = {
        "date": date.today().isoformat(),
        "photographs": len(half),
        "flaws": by_kind,
        "clean": len(clean),
        "clean_hinted": sum(bool(found.get(name)) for name in clean),
    }
    kept["copies"] = {
        "date": date.today().isoformat(),
        "rules_of": rules_of("duplicate"),
        **copies_found(list(photographs.values())),
    }
    kept["network"] = {
        "date": date.today().isoformat(),
        "rules_of": {kind: rules_of(kind) for kind in NETWORK_RATED},
        **network_found({name: flaws[name] for name in photographs}, list(photographs.values())),
        "found_by_rules": by_rules,
    }
    head = RATES.read_text(encoding="utf-8").partition("\n\n")[0]
    RATES.write_text(f"{head}\n\n{yaml.safe_dump(kept, sort_keys=False)}", encoding="utf-8")
    print(RATES.read_text(encoding="utf-8"))


def rules_of(kind: str) -> str:
    """The day on which the rules of a hint changed last."""
    return next(hint.rules_of for hint in HINTS.values() if hint.kind == kind).isoformat()


def network_found(flaws: Mapping[str, set[str]], photographs: Sequence[Image.Image]) -> dict[str, object]:
    """What a linear classifier on the penultimate layer of a network finds of each flaw, one photograph left out.

    `flaws`: of each photograph, in their order. The classifier is a ridge regression on standardized features, in which
    both classes weigh the same.
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


def penultimate_features(photographs: Sequence[Image.Image]) -> NDArray[np.float64]:
    """The penultimate layer of NETWORK for each photograph, preprocessed as timm does."""
    import timm
    import torch
    from safetensors.torch import load_file

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
    """The cropped copies that are found beside all photographs, and the photographs taken for another one."""
    looks = {f"{place}": look_at(saved(image)) for place, image in enumerate(photographs)}
    wrong = duplicate_hints(looks)
    count = len(photographs)
    found = {}
    for share in CROPPED_SHARES:
        copies = {f"{place}-copy": look_at(saved(cropped(image, share))) for place, image in enumerate(photographs)}
        hints = duplicate_hints({**looks, **copies})
        found[f"{share:g}"] = sum(is_pair(hints, f"{place}", f"{place}-copy") for place in range(count))
        wrong |= {
            name: of for name, of in hints.items() if of[0].other.removesuffix("-copy") != name.removesuffix("-copy")
        }
    return {"photographs": count, "pairs": count * (count - 1) // 2, "wrong": len(wrong), "found_by_share": found}


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


def print_photographs() -> None:
    seconds: dict[str, list[float]] = {"measures": [], "text": []}
    further = read_photographs("photos_more")
    # without the time to load what reads text
    kinds_in(next(iter(further.values())))
    print_labelled(further, PROJECT / "bench" / "photos_more.csv", seconds)
    photographs = read_photographs("photos")
    found = print_labelled(photographs, REAL / "flaws.csv", seconds)
    images = list(photographs.values())
    print_time(images, seconds)
    print_proposals(
        {"the 150": photographs, "even": dict(list(further.items())[::2]), "odd": dict(list(further.items())[1::2])}
    )
    print_copies({**photographs, **further})
    flawless = [name for name, (flaws, _) in found.items() if not flaws][:FLAWLESS]
    print_false_alarms({name: (photographs[name], found[name][1]) for name in flawless})
    print_planted([kinds for _, kinds in found.values()], images)


def read_photographs(folder: str) -> dict[str, Image.Image]:
    return {path.name: decode(path.read_bytes()).convert("RGB") for path in sorted((REAL / folder).glob("*.JPEG"))}


def kinds_in(image: Image.Image, seconds: Mapping[str, list[float]] | None = None, text: bool = True) -> set[str]:
    start = process_time()
    measures, _ = measure(image)
    middle = process_time()
    lines = lines_of_text(image) if text and can_read_text() else ()
    if seconds is not None:
        seconds["measures"].append(middle - start)
        seconds["text"].append(process_time() - middle)
    return {hint.kind for hint in hints_of_image(measures, imagenet(), lines)}


def kinds_between(fingerprints: Mapping[str, Fingerprint]) -> dict[str, set[str]]:
    return {name: {hint.kind for hint in of_one} for name, of_one in hints_between_images(fingerprints).items()}


# The sample


def print_sample() -> None:
    """Precision and recall by kind, over all images and over those that a reviewer may see."""
    truth = json.loads((PROJECT / "sample" / "truth.json").read_text(encoding="utf-8"))
    edition = Edition(PROJECT)
    params = read_params(edition.folder)
    index = read_table(edition.index, INDEX, imagenet())
    read = verified_images(edition, params.dataset.images, index, imagenet()).read
    tables = [read_table(edition.candidates(role), CANDIDATES, imagenet()) for role in params.models]
    seen = set().union(*(set(table["image_id"]) for table in tables))
    found: dict[str, set[str]] = {}
    fingerprints: dict[int, dict[str, Fingerprint]] = {}
    for image_id, class_index in zip(index["image_id"], index["ilsvrc_class"], strict=True):
        image = decode(read(image_id))
        found[image_id] = kinds_in(image)
        fingerprints.setdefault(class_index, {})[image_id] = measure(image)[1]
    for of_class in fingerprints.values():
        for image_id, kinds in kinds_between(of_class).items():
            found[image_id] |= kinds
    flaws = {image_id: of_image["flaw"] for image_id, of_image in truth.items()}
    for title, ids in (("all images", set(truth)), ("candidates of any model", seen)):
        images = {image_id: ({str(flaws[image_id])}, found[image_id]) for image_id in ids}
        rows = [row(kind, FLAW_OF.get(kind, (kind,)), images) for kind in KINDS]
        print_table(f"The sample's planted flaws, {title}: {len(ids)}", HEADER, rows)


HEADER = ("hint", "flawed so", "hinted", "right", "precision", "recall")


def row(kind: str, flaws: Iterable[str], images: Mapping[str, tuple[set[str], set[str]]]) -> tuple[str, ...]:
    """One hint's counts over images with their flaws and their hints."""
    flawed = {name for name, (of_one, _) in images.items() if of_one.intersection(flaws)}
    hinted = {name for name, (_, kinds) in images.items() if kind in kinds}
    right = len(flawed & hinted)
    shares = (f"{right / len(of):.2f}" if of else "" for of in (hinted, flawed))
    return (kind, str(len(flawed)), str(len(hinted)), str(right), *shares)


# Photographs


def print_labelled(
    photographs: Mapping[str, Image.Image], labels: Path, seconds: Mapping[str, list[float]]
) -> dict[str, tuple[set[str], set[str]]]:
    """Precision and recall by reason, on every other photograph of 350 apart. Return flaws and hints by name."""
    flaws: dict[str, set[str]] = defaultdict(set)
    with labels.open(encoding="utf-8", newline="") as lines:
        for line in csv.DictReader(lines):
            flaws[line["file"]].add(line["reason"])
    unknown = flaws.keys() - photographs.keys()
    assert not unknown, f"{labels}: no photograph {min(unknown)}"
    found = {name: (flaws[name], kinds_in(image, seconds)) for name, image in photographs.items()}
    names = list(photographs)
    halves = {"even": names[::2], "odd": names[1::2]} if labels.parent != REAL else {"all": names}
    for title, some in halves.items():
        images = {name: found[name] for name in some}
        rows = [row(HINT_AT.get(reason, reason), (reason,), images) for reason in LABELLED]
        print_table(f"Photographs of {labels.name}, {title}: {len(some)}", HEADER, rows)
    return found


def print_proposals(sets: Mapping[str, Mapping[str, Image.Image]]) -> None:
    """Count the crop boxes proposed for photographs with a border or text, and what was seen of them by eye."""
    with (PROJECT / "bench" / "crop_proposals.csv").open(encoding="utf-8", newline="") as lines:
        judged = {line["file"]: line for line in csv.DictReader(lines)}
    flawed = {
        line["file"]
        for labels in (PROJECT / "bench" / "photos_more.csv", REAL / "flaws.csv")
        for line in csv.DictReader(labels.open(encoding="utf-8", newline=""))
        if line["reason"] in ("text", "border")
    }
    rows = []
    for title, photographs in sets.items():
        images = {name: image for name, image in photographs.items() if name in flawed}
        found = {name: proposal_of(image) for name, image in images.items()}
        proposals = {name: each for name, each in found.items() if each is not None}
        # a box that has changed since was not judged
        same = [
            judged[name]
            for name, each in proposals.items()
            if name in judged and [judged[name][edge] for edge in EDGES] == [str(edge) for edge in each.box]
        ]
        kept, gone = ([line[column] == "yes" for line in same] for column in ("object_kept", "flaw_gone"))
        share = statistics.median(kept_share(each.box, images[name]) for name, each in proposals.items())
        both = sum(map(all, zip(kept, gone, strict=True)))
        counts = (len(images), len(proposals), len(same), sum(kept), sum(gone), both)
        rows.append((title, *map(str, counts), f"{share:.2f}"))
    header = ("photographs", "flawed", "proposed", "judged", "object kept", "flaw gone", "both", "median share kept")
    print_table("Crop boxes proposed for photographs with a border or text", header, rows)


EDGES = ("left", "top", "right", "bottom")
MIN_CROP_PIXELS = 32


def kept_share(box: Box, image: Image.Image) -> float:
    """The share of an image's area that a box keeps."""
    return (box[2] - box[0]) * (box[3] - box[1]) / (image.width * image.height)


def proposal_of(image: Image.Image) -> CropProposal | None:
    lines = lines_of_text(image) if can_read_text() else ()
    return crop_proposal(measure(image)[0], lines, MIN_CROP_PIXELS)


def print_copies(photographs: Mapping[str, Image.Image]) -> None:
    """Count the pairs of different photographs, and of copies, that hint at a duplicate."""
    fingerprints = {name: measure(image)[1] for name, image in photographs.items()}
    pairs = sum(
        len(hint.others)
        for hints in hints_between_images(fingerprints).values()
        for hint in hints
        if hint.kind == "duplicate"
    )
    count = len(photographs)
    rows = [("different photographs", str(count * (count - 1) // 2), str(pairs // 2))]
    for title, change in COPIES.items():
        same = sum(
            "duplicate" in kinds_between({"": fingerprints[name], "copy": measure(saved(change(image)))[1]})[""]
            for name, image in photographs.items()
        )
        rows.append((title, str(count), str(same)))
    print_table("Pairs", ("of", "pairs", "hinted as duplicates"), rows)


def print_false_alarms(photographs: Mapping[str, tuple[Image.Image, set[str]]]) -> None:
    """Count the hints at photographs, each with those of it alone, comparisons with each other included."""
    others = kinds_between({name: measure(image)[1] for name, (image, _) in photographs.items()})
    every = [kinds | others[name] for name, (_, kinds) in photographs.items()]
    counts = Counter(kind for kinds in every for kind in kinds)
    rows = [*((kind, str(counts[kind])) for kind in KINDS), ("any", str(sum(map(bool, every))))]
    print_table(f"Photographs without a flaw: {len(every)}", ("hint", "hinted"), rows)


def print_planted(found: Sequence[set[str]], photographs: Sequence[Image.Image]) -> None:
    """Count the photographs that get the hint with the flaw, among those without such a hint before."""
    rows: list[tuple[str, ...]] = []
    for name, (reason, plant) in (PLANTERS | EXPOSED).items():
        kind = "text" if reason == "watermark" else reason
        clean = [place for place, kinds in enumerate(found) if kind not in kinds]
        count = 0
        for place in clean:
            rng = Random(SEED + place)
            photograph = photographs[place]
            other = photographs[place - 1].resize(photographs[place].size)
            flawed, _ = plant(photograph.copy(), rng, lambda other=other: other)  # type: ignore[misc]
            count += kind in kinds_in(saved(flawed), text=kind == "text")
        rows.append((name, kind, str(len(clean)), str(count), f"{count / len(clean):.2f}"))
    rows += [related_row(*case, photographs) for case in RELATED]
    print_table("Photographs with a planted flaw", ("flaw", "hint", "planted", "found", "recall"), rows)


def saved(image: Image.Image, quality: int = 90) -> Image.Image:
    """Return the image as read back from a JPEG file."""
    out = io.BytesIO()
    image.save(out, "JPEG", quality=quality)
    return decode(out.getvalue())


EXPOSED: dict[str, tuple[str, Planter]] = {
    "a fifth of the brightness": ("dark", lambda i, *_: (i.point(lambda level: level // 5), None)),
    "a fifth of the darkness": ("bright", lambda i, *_: (i.point(lambda level: 255 - (255 - level) // 5), None)),
}
Change = Callable[[Image.Image], Image.Image]
COPIES: dict[str, Change] = {
    "mirrored": ImageOps.mirror,
    "upside down": ImageOps.flip,
    "turned by 90 degrees": lambda image: image.transpose(Image.Transpose.ROTATE_90),
    "half the size, mirrored": lambda image: ImageOps.mirror(image.reduce(2)),
}
RELATED: tuple[tuple[str, str, Change, Change], ...] = (
    ("copy at half the size, quality 40", "duplicate", lambda i: i, lambda i: saved(i.reduce(2), 40)),
    (
        "copy without a tenth on the right",
        "duplicate",
        lambda i: i,
        lambda i: i.crop((0, 0, i.width * 9 // 10, i.height)),
    ),
    (
        "copy without a twentieth on each side",
        "duplicate",
        lambda i: i,
        lambda i: i.crop((i.width // 20, i.height // 20, i.width - i.width // 20, i.height - i.height // 20)),
    ),
    ("copy turned left to right", "duplicate", lambda i: i, ImageOps.mirror),
)
"""Flaws that only a second image shows: a function for each of the two images."""


def related_row(
    name: str, kind: str, first: Change, second: Change, photographs: Sequence[Image.Image]
) -> tuple[str, ...]:
    count = 0
    for photograph in photographs:
        pair = {"first": saved(first(photograph)), "second": saved(second(photograph))}
        count += kind in kinds_between({which: measure(image)[1] for which, image in pair.items()})["first"]
    return name, kind, str(len(photographs)), str(count), f"{count / len(photographs):.2f}"


def print_time(photographs: Iterable[Image.Image], seconds: Mapping[str, Sequence[float]]) -> None:
    class_of_60 = {str(place): measure(image)[1] for place, image in zip(range(60), photographs, strict=False)}
    start = process_time()
    hints_between_images(class_of_60)
    rows = [
        ("one image, median", 1000 * statistics.median(seconds["measures"]), MILLISECONDS),
        ("one image, 95th of 100", 1000 * statistics.quantiles(seconds["measures"], n=20)[-1], MILLISECONDS),
        ("text of one image, median", 1000 * statistics.median(seconds["text"]), TEXT_MILLISECONDS),
        ("text of one image, 95th of 100", 1000 * statistics.quantiles(seconds["text"], n=20)[-1], TEXT_MILLISECONDS),
        ("text of one image, most", 1000 * max(seconds["text"]), TEXT_MILLISECONDS),
        ("between 60 images of a class", 1000 * (process_time() - start), MILLISECONDS),
    ]
    print_table(
        "Processor milliseconds beyond decoding",
        ("what", "found", "limit"),
        [(name, f"{found:.1f}", f"{limit:g}") for name, found, limit in rows],
    )


if __name__ == "__main__":
    main()
