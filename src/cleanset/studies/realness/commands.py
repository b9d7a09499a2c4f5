"""The commands `cleanset study …`: do people take images for real? Imports are made when a command runs."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cleanset.edition.paths import LOOPBACK, Browser, Host, Port

app = typer.Typer(no_args_is_help=True, help="Plan and analyse a study in which people rate how real images look.")

Bound = Annotated[
    float, typer.Option(min=0.001, max=4, help="Largest difference, in steps of the scale, that counts as equivalent.")
]
Alpha = Annotated[float, typer.Option(min=0.0001, max=0.4999, help="Level of each of the two one-sided tests.")]


class RandomEffects(StrEnum):
    """The random effects of the mixed model."""

    SLOPES = "slopes"
    INTERCEPTS = "intercepts"


class DegreesOfFreedom(StrEnum):
    """The degrees of freedom of the tests."""

    SATTERTHWAITE = "satterthwaite"
    NORMAL = "normal"


@app.command()
def plan(
    set_folder: Annotated[Path, typer.Option("--set", help="The folder of a finished set.")],
    attacked: Annotated[Path, typer.Option(help="A folder of attacked images, JPEGs or PNGs at any depth.")],
    out: Annotated[Path, typer.Option(help="A new or empty folder.")],
    people: Annotated[
        int | None,
        typer.Option(
            min=2, max=10_000, help="Number of people, and of lists.", show_default="as many as the bound needs"
        ),
    ] = None,
    real: Annotated[int, typer.Option(min=1, help="Real images for each person.")] = 50,
    modified: Annotated[int, typer.Option(min=1, help="Modified images for each person.")] = 50,
    attention: Annotated[int, typer.Option(min=0, help="Attention checks for each person.")] = 3,
    pairs: Annotated[int, typer.Option(min=0, help="Comprehension pairs for each person.")] = 4,
    bound: Bound = 0.2,
    alpha: Alpha = 0.05,
    power: Annotated[float, typer.Option(min=0.01, max=0.999, help="Wanted probability of finding equivalence.")] = 0.8,
    effect: Annotated[float, typer.Option(help="Assumed true difference, modified minus real.")] = 0.0,
    pilot: Annotated[
        Path | None,
        typer.Option(
            help="Ratings of a pilot study, for the variances.", show_default="medians of six published studies"
        ),
    ] = None,
    side: Annotated[
        int | None,
        typer.Option(
            min=16,
            max=2048,
            help="Width and height of all images in pixels.",
            show_default="size of the attacked images",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all orders and file names; keep it secret.")] = 0,
) -> None:
    """Plan who rates which images, and make the page on which they rate them.

    Writes page/ (for people: open index.html?list=1), trials.csv (the same
    lists for a survey tool), and key.csv and plan.json, which are for you
    alone.
    """
    from cleanset.studies.realness import planning
    from cleanset.studies.realness.analysis import EquivalenceQuestion

    wish = planning.PlanRequest(
        people, real, modified, attention, pairs, EquivalenceQuestion(bound, alpha, effect), power, side, seed
    )
    typer.echo(planning.plan_summary(planning.run(set_folder, attacked, out, wish, pilot), wish, out))


@app.command()
def serve(
    plan: Annotated[Path, typer.Option(help="The plan's folder.")],
    host: Host = LOOPBACK,
    port: Port = None,
    browser: Browser = True,
) -> None:
    """Serve a plan's page from this machine, and save the answers in its folder.

    Every visitor gets the next unanswered list. Answers are saved in answers/;
    nobody has to send a file.
    """
    from cleanset.studies.realness import serving

    serving.run(plan, host, port, browser)


@app.command()
def analyse(
    ratings: Annotated[list[Path], typer.Argument(help="CSV files of ratings, or of the page's answers.")],
    plan: Annotated[Path | None, typer.Option(help="The plan's folder, for the page's answers.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the results into a new or empty folder.")] = None,
    random: Annotated[RandomEffects, typer.Option(help="Random effects of person and image.")] = RandomEffects.SLOPES,
    degrees: Annotated[
        DegreesOfFreedom, typer.Option(help="Degrees of freedom of the tests.")
    ] = DegreesOfFreedom.SATTERTHWAITE,
    bound: Bound = 0.2,
    alpha: Alpha = 0.05,
    min_ratings: Annotated[int, typer.Option(min=1, help="Minimum ratings of an image for its majority to count.")] = 5,
    max_attention: Annotated[int, typer.Option(min=0, help="Failed attention checks that a person may have.")] = 1,
    max_comprehension: Annotated[
        int, typer.Option(min=0, help="Failed comprehension pairs that a person may have.")
    ] = 0,
    min_attention: Annotated[
        int, typer.Option(min=0, help="Attention checks that a person must have answered; 0: the rule is not applied.")
    ] = 0,
    min_share: Annotated[
        float, typer.Option(min=0, max=1, help="Share of the trials of a list that a person must have answered.")
    ] = 0.0,
    max_same: Annotated[
        float | None,
        typer.Option(
            min=0.2, max=1, help="Share of a person's ratings that may be equal.", show_default="any: no rule"
        ),
    ] = None,
    min_milliseconds: Annotated[
        float, typer.Option(min=0, help="Least median time of a person for an image; 0: the rule is not applied.")
    ] = 0.0,
    one_person_a_list: Annotated[
        bool, typer.Option("--one-person-a-list", help="Of people with the same list, keep who answered most of it.")
    ] = False,
    ordinal: Annotated[
        bool, typer.Option("--ordinal", help="Fit an ordinal model, too, as a check; needs statsmodels.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Analyse ratings: means, agreement, and whether modified images pass for real.

    A mixed model and two one-sided tests show whether modified images are
    rated like real ones; real images taken for modified are listed.
    """
    from rich.console import Console

    from cleanset.studies.realness import analysing
    from cleanset.studies.realness.analysis import AnalysisSettings
    from cleanset.studies.realness.ratings import ExclusionLimits

    limits = ExclusionLimits(
        max_attention, max_comprehension, min_attention, min_share, max_same, min_milliseconds, one_person_a_list
    )
    settings = AnalysisSettings(random.value, degrees.value, bound, alpha, min_ratings, limits, ordinal)
    analysis = analysing.run(ratings, settings, plan, out)
    if as_json:
        print(analysing.as_json(analysis))
    else:
        Console().print(analysing.as_text(analysis), highlight=False)
