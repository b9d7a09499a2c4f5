"""The writer of results, and results as the `model-index` of model cards on the Hugging Face Hub, one for each model.

The YAML front matter is in the form of huggingface_hub's `ModelCardData`. Each kind of measurement is a dataset of its
own, whose revision is the digest of the comparability card: results with other revisions are never merged.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from cleanset.errors import CleansetError
from cleanset.evaluation.comparability import ComparabilityCard
from cleanset.evaluation.compare.result_files import RESULTS, ResultFile, headlines_of, parse_results
from cleanset.evaluation.measures import NOT_MEASURED, Measure
from cleanset.evaluation.specs import WEIGHTS
from cleanset.plumbing.files import read_bytes, write_text
from cleanset.plumbing.json_files import JsonObject, with_digest, write_json
from cleanset.plumbing.markup import markdown_text
from cleanset.statistics.formats import counted

TASK = {"type": "image-classification", "name": "Image Classification"}
# the type of the dataset: not that of all validation images, whose numbers these must not be mixed with
DATASET = "cleanset"
CARD_SUFFIXES = (".md", ".yaml", ".yml")
INDEX_PATTERN = r"model-index:\n(?:[ -].*\n)+"
WRITTEN = re.compile(rf"---\n{INDEX_PATTERN}---\n\n# .*\n\nMeasured with cleanset:\n\n(?:- .*\n)+(?P<added>(?s:.*))\Z")
WRITTEN_YAML = re.compile(rf"{INDEX_PATTERN}(?P<added>(?s:.*))\Z")
"""A card as this module writes it, and its author's additions below."""
# the types of metrics that the Hub knows by another name
HUB_METRICS = {"top5": "top_5_accuracy"}


def hub_cards(results: ResultFile) -> dict[str, str]:
    """The model card of each model, by name: front matter, and a sentence on how to compare it."""
    names = list(dict.fromkeys(name for measured in results.measured.values() for name in measured.models))
    return {name: _card(name, results) for name in names}


def check_hub(path: Path, names: Sequence[str]) -> None:
    """Raise CleansetError for a path that the cards of these models cannot be written to; call it before computing."""
    is_file = path.suffix in CARD_SUFFIXES
    if is_file and len(names) > 1:
        raise CleansetError(f"--hub {path}: a file for {len(names)} models; expected one --model, or a folder")
    if is_file and path.is_dir():
        raise CleansetError(f"--hub {path}: a folder; expected a file, or a folder of another name")
    if not is_file and path.exists() and not path.is_dir():
        raise CleansetError(f"--hub {path}: a file; expected one that ends in {', '.join(CARD_SUFFIXES)}, or a folder")
    if is_file:
        _added_text(path)


def _added_text(path: Path) -> str:
    """The text that an author has added below a card that this module wrote; empty for a file that is not there.

    Raises CleansetError for a file that this module did not write, and for one that was changed elsewhere.
    """
    if not path.exists():
        return ""
    found = (WRITTEN if path.suffix == CARD_SUFFIXES[0] else WRITTEN_YAML).match(
        read_bytes(path).decode("utf-8", "replace")
    )
    if found is None:
        raise CleansetError(
            f"{path}: a model card of another origin, or changed above its end; expected a new file: name another, and "
            "copy its model-index"
        )
    return found["added"]


def write_results(
    results: JsonObject, name: str, stems: Mapping[str, str], *, out: Path | None, hub: Path | None
) -> None:
    """Write the results of models into the folder `out`, and their cards as `write_hub` does; `name`: in messages."""
    if out is not None:
        write_json(out / RESULTS, with_digest(results))
    if hub is not None:
        write_hub(hub, parse_results(results, name), stems)


def write_hub(path: Path, results: ResultFile, stems: Mapping[str, str]) -> list[Path]:
    """Write the card of the only model into the file `path`, or the cards of all into the folder, as <stem>.md.

    `stems`: stems of the files' names, by model. A YAML file gets the front matter alone. Text that an author has added
    below a card stays. Raises CleansetError, before anything is written, for a file of another origin.
    """
    cards = hub_cards(results)
    check_hub(path, list(cards))
    is_file = path.suffix in CARD_SUFFIXES
    texts = {path if is_file else path / f"{stems[name]}.md": text for name, text in cards.items()}
    added = {file: _added_text(file) for file in texts}
    for file, text in texts.items():
        front = text.removeprefix("---\n").partition("\n---\n")[0]
        write_text(file, (text if file.suffix == CARD_SUFFIXES[0] else f"{front}\n") + added[file])
    return list(texts)


def _card(name: str, results: ResultFile) -> str:
    lines = []
    entries = []
    for measured, found in results.measured.items():
        card = found.card
        of = f"{counted(card.images.count, 'image')} of {counted(card.classes.of_images, 'class')}"
        lines.append(
            f"- {card.measured} on {of}, comparability card `{card.digest}`: only numbers of the same card belong in "
            "one ranking (`cleanset compare`)"
        )
        metrics = list(_metrics(measured, found.models.get(name, {})))
        if metrics:
            dataset = {
                "name": f"cleanset {Path(results.images.name).name or 'images'}, {card.measured}: {of}",
                "type": DATASET,
                "config": card.measured,
                "revision": card.digest,
                "args": _arguments(card, name),
            }
            entries.append({"task": TASK, "dataset": dataset, "metrics": metrics})
    # folders belong to a machine
    hub_name = Path(name).stem if name.endswith(WEIGHTS) else name
    index = {"model-index": [{"name": hub_name, "results": entries}]}
    front = yaml.safe_dump(index, sort_keys=False, allow_unicode=True, width=120)
    lines += [f"- {markdown_text(note)}" for note in results.images.notes]
    return "\n".join([f"---\n{front}---\n", f"# {markdown_text(hub_name)}\n", "Measured with cleanset:\n", *lines, ""])


def _arguments(card: ComparabilityCard, model: str) -> JsonObject:
    """The card in full but for other models; empty parts are left out, as huggingface_hub's writer does."""
    fields = card.model_dump(mode="json", exclude={"models", "measured"}, exclude_none=True)
    of_model = card.models[model].model_dump(mode="json", exclude_none=True)
    return {key: value for key, value in {"comparability": card.digest, **fields, **of_model}.items() if value}


def _metrics(measured: str, values: Mapping[str, Measure]) -> Iterator[JsonObject]:
    """Yield an entry of `metrics` for each measure that has a value."""
    for headline in headlines_of(measured):
        found = values.get(headline.name, NOT_MEASURED)
        if found.is_defined:
            metric = {
                "type": HUB_METRICS.get(headline.name, headline.name),
                "value": found.value,
                "name": headline.title,
            }
            yield metric | ({} if found.interval is None else {"args": {"interval": list(found.interval)}})
