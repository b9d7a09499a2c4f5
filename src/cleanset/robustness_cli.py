"""The commands `cleanset robustness …`: the stages of a study. Each imports what it needs only when it runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from cleanset.robustness.study import Study

app = typer.Typer(
    no_args_is_help=True, help="Measure robustness on finished sets: the stages of a study, and what is run by hand."
)

Folder = Annotated[Path, typer.Option("--study", help="Folder of the study.", show_default="the current one")]
HERE = Path()
ModelRole = Annotated[str, typer.Option("--model", help="Role of the model in the edition's params.yaml.")]


def _study(folder: Path) -> "Study":
    from cleanset.files import remove_abandoned
    from cleanset.robustness.study import FAMILIES, Study

    for each in (folder, folder / "data", *(folder / "data" / family for family in FAMILIES)):
        remove_abandoned(each)
    return Study(folder)


@app.command()
def images(study: Folder = HERE) -> None:
    """Join the images of all finished sets."""
    from cleanset.stages.robustness import images as stage

    stage.run(_study(study))


@app.command()
def digests(study: Folder = HERE) -> None:
    """Keep the SHA-256 of every changed image."""
    from cleanset.stages.robustness import digests as stage

    stage.run(_study(study))


@app.command()
def corruptions(model: ModelRole, study: Folder = HERE) -> None:
    """Keep one model's answers to the corrupted images."""
    from cleanset.stages.robustness import corruptions as stage

    stage.run(_study(study), model)


@app.command()
def perturbations(model: ModelRole, study: Folder = HERE) -> None:
    """Keep one model's answers to the frames of perturbation sequences."""
    from cleanset.stages.robustness import perturbations as stage

    stage.run(_study(study), model)


@app.command()
def scenarios(model: ModelRole, study: Folder = HERE) -> None:
    """Keep one model's answers to images with another background or object."""
    from cleanset.stages.robustness import scenarios as stage

    stage.run(_study(study), model)


@app.command()
def measure(study: Folder = HERE) -> None:
    """Measure all models from their answers."""
    from cleanset.stages.robustness import measure as stage

    stage.run(_study(study))


@app.command()
def pages(study: Folder = HERE) -> None:
    """Make the study's pages."""
    from cleanset.stages.robustness import pages as stage

    stage.run(_study(study))


@app.command()
def generate(
    pipeline: Annotated[Path, typer.Option("--pipeline", help="Folder of a diffusers pipeline for in-painting.")],
    prompts: Annotated[Path, typer.Option(help="Folder with a prompt for each class: <wnid>.txt.")] = Path("prompts"),
    steps: Annotated[int, typer.Option(min=1)] = 50,
    guidance: Annotated[float, typer.Option(min=0)] = 7.5,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, …")] = "cpu",
    study: Folder = HERE,
) -> None:
    """Make the images with generated backgrounds that are missing."""
    from cleanset.stages.robustness import generate as stage

    made = stage.run(_study(study), pipeline, prompts, steps, guidance, device)
    print(f"{made} images made")


@app.command()
def verify(study: Folder = HERE) -> None:
    """Make every changed image again; exit code 1 if one is not as it was.

    Names each that differs, and the versions of the libraries that make them.
    """
    from cleanset.robustness.verifying import verify as tool

    found = tool(_study(study))
    for line in found.lines():
        typer.echo(line)
    raise typer.Exit(1 if found.different else 0)
