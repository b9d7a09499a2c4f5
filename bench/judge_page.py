"""The judge page with 300 of a week's 700 images answered: time to the next image, and memory."""

import datetime
import io
import statistics
import subprocess
import time
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps
from playwright.sync_api import Page

from cleanset.studies.contest.entering import image_entry
from cleanset.studies.contest.judge_page.session import as_yaml
from cleanset.studies.contest.judging import JudgeAnswer
from contest import Entry, write
from contest import public as public_key
from measuring import print_machine, print_measures, scratch
from page import opened, peak_mib, photograph, served

TEAMS, IMAGES_A_DAY, DAYS = 14, 10, 5
ANSWERED, MEASURED = 300, 60
MONDAY = datetime.date(2026, 11, 2)
WEEK, ON = MONDAY + datetime.timedelta(4), MONDAY + datetime.timedelta(5)
JUDGE = "3f9c2a71"
LOOKED = """() => secondsSeen(document.querySelector("#view").dataset.subject,
  [...document.querySelectorAll("#view img[data-image]")]) >= 0.5"""
"""Whether the image has been shown for the half second after which an answer counts."""
LIMIT_MILLISECONDS, LIMIT_MIB = 100.0, 500.0
GROUPS = ("bird", "bicycle")
RULES: dict[str, object] = {
    "classes": {"bird": ["n01514668"], "bicycle": ["n02835271"]},
    "teams": [f"team{number}" for number in range(TEAMS)],
    "board": {"chair": {}},
    "made_up": True,
}
NEITHER = JudgeAnswer.model_validate({"date": str(ON), "contains": dict.fromkeys(GROUPS, "definitely_no")})

WATCH = """
() => { window.answered = (key) => new Promise((done) => {
  const shown = () => document.querySelector("img[data-image]");
  const before = shown().dataset.image;
  const start = performance.now();
  const look = () => {
    const image = shown();
    const there = image && image.dataset.image !== before && image.complete && image.naturalWidth;
    // the frame in which it is there has been painted when the next one begins
    if (there) requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start)));
    else setTimeout(look, 2);
  };
  addEventListener("keydown", look, { once: true, capture: true });
}); }
"""


def main() -> None:
    with scratch() as edition:
        contest = edition / "studies" / "contest"
        digests = write_contest(contest)
        path = contest / "answers" / JUDGE / f"{WEEK}.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(as_yaml(JUDGE, str(WEEK), dict.fromkeys(digests[:ANSWERED], NEITHER)))
        print_machine()
        with served(contest, "contest", "judge", "--judge", JUDGE, "--on", str(ON)) as (process, address):
            took = milliseconds(address)
            peak = peak_mib(process.pid)
    print_measures(
        f"{len(digests)} images of a week, {ANSWERED} of them answered",
        [
            (f"next image, median of {len(took)}, ms", statistics.median(took), ".0f", LIMIT_MILLISECONDS),
            ("next image, 95 % of them, ms", float(np.percentile(took, 95)), ".0f", LIMIT_MILLISECONDS),
            ("memory of the server, peak, MiB", peak, ".0f", LIMIT_MIB),
        ],
    )


def write_contest(contest: Path) -> list[str]:
    """A contest with a defence and a week of submissions; the SHA-256 of their images."""
    public, model = (
        {"source": "a file", "sha256": "0" * 64},
        {"role": "standard", "confidence": "softmax", "threshold": 0.5},
    )
    entries: list[Entry] = [
        (MONDAY, "contest", RULES),
        (MONDAY, "roster", {"roster": {JUDGE: None}}),
        (MONDAY, "defence", {"name": "team0/wall", "open": True, "public": public, "model": model}),
        (MONDAY, "stake", {"batch": "first", "by": "team0", "defences": ["team0/wall"]}),
    ]
    (contest / "objects").mkdir(parents=True)
    digests, number = [], 0
    for day in range(DAYS):
        for team in range(TEAMS):
            date, images = MONDAY + datetime.timedelta(day), []
            for _ in range(IMAGES_A_DAY):
                path = contest / "objects" / f"{number}.jpg"
                # submissions are square
                with Image.open(io.BytesIO(photograph(number))) as image:
                    ImageOps.fit(image, (min(image.size),) * 2).save(path, quality=95)
                images.append(image_entry(path))
                path.rename(path.with_name(str(images[-1]["sha256"])))
                number += 1
            digests += [str(each["sha256"]) for each in images]
            content = {"team": f"team{team}", "received": f"{date}T12:00:00Z", "target": "team0/wall", "images": images}
            entries.append((date, "submission", content))
    key = contest / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    entries[0] = (MONDAY, "contest", RULES | {"signers": {"staff": public_key(key)}})
    write(contest, [*entries, (WEEK, "publish", {})], {"staff": key})
    return digests


def milliseconds(address: str) -> list[float]:
    """Milliseconds from the second answer to an image until the next image is painted."""
    with opened(address) as page:
        page.evaluate(WATCH)
        page.keyboard.press("Enter")  # past the instructions
        page.wait_for_selector("img[data-image]")
        time.sleep(2)
        return [answered(page) for _ in range(MEASURED)]


def answered(page: Page) -> float:
    """Answer that both groups are absent, after a look at the image."""
    page.wait_for_function(LOOKED)
    before = page.get_attribute("#view", "data-pressed")
    page.keyboard.press("4")
    page.wait_for_function("before => document.querySelector('#view').dataset.pressed !== before", arg=before)
    page.evaluate("() => { window.answering = window.answered() }")
    page.keyboard.press("4")
    took: float = page.evaluate("() => window.answering")
    return took


if __name__ == "__main__":
    main()
