"""Generated backgrounds, with a random pipeline of about a megabyte that the test makes itself; no network."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cleanset.errors import CleansetError
from cleanset.statistics.seeds import image_seed
from cleanset.studies.robustness.image_sets import (
    MADE_WITH,
    PaintOptions,
    generation_record,
    load_pipeline,
    paint_background,
    read_prompts,
    save_missing,
)
from cleanset.studies.robustness.scenarios.masks import regions_of
from tests.studies.robustness.drawn import drawn, drawn_object

IMAGE, REGIONS = drawn(224, 224), regions_of(drawn_object(224, 224))
OPTIONS = PaintOptions(seed=0, steps=2, guidance=2.0)


@pytest.fixture(scope="module")
def pipeline_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A latent diffusion pipeline for in-painting with random weights."""
    pytest.importorskip("diffusers", reason="needs the extra generate: make test-generate")
    import torch
    from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionInpaintPipeline, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

    folder = tmp_path_factory.mktemp("pipeline")
    words = ["<|startoftext|>", "<|endoftext|>", *"abcdefghijklmnopqrstuvwxyz", *(f"{c}</w>" for c in "abcdefghij")]
    (folder / "vocab.json").write_text(json.dumps({word: number for number, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    torch.manual_seed(0)
    text = CLIPTextConfig(
        vocab_size=len(words), hidden_size=32, intermediate_size=37, num_hidden_layers=1, num_attention_heads=4,
        bos_token_id=0, eos_token_id=1, pad_token_id=1,
    )  # fmt: skip
    pipeline = StableDiffusionInpaintPipeline(
        vae=AutoencoderKL(
            block_out_channels=(16, 32), down_block_types=("DownEncoderBlock2D",) * 2, norm_num_groups=8,
            up_block_types=("UpDecoderBlock2D",) * 2, latent_channels=4,
        ),
        text_encoder=CLIPTextModel(text),
        tokenizer=CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"), model_max_length=77),
        unet=UNet2DConditionModel(
            block_out_channels=(16, 32), layers_per_block=1, in_channels=9, out_channels=4, norm_num_groups=8,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"), sample_size=64,
            cross_attention_dim=32, attention_head_dim=4,
        ),
        scheduler=DDIMScheduler(),
        safety_checker=None, feature_extractor=None, requires_safety_checker=False,
    )  # fmt: skip
    pipeline.save_pretrained(folder / "saved")
    return folder / "saved"


def test_the_background_is_painted_and_the_object_stays(pipeline_folder: Path) -> None:
    pipeline = load_pipeline(pipeline_folder, "cpu")
    one, again, other = (
        paint_background(pipeline, IMAGE, REGIONS, "a goldfish on a table", image_seed(0, name), OPTIONS)
        for name in "aab"
    )
    assert (one.shape, one.dtype.name) == ((224, 224, 3), "uint8")
    assert np.array_equal(one[~REGIONS.background], IMAGE[~REGIONS.background])
    assert (one[REGIONS.background] != IMAGE[REGIONS.background]).mean() > 0.9
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_what_they_were_made_with(pipeline_folder: Path) -> None:
    record = generation_record(pipeline_folder, {"n01443537": "a sea"}, PaintOptions(0))
    assert "model_index.json" in record["pipeline"]
    assert sorted(record["versions"]) == ["diffusers", "torch", "transformers"]
    text = json.dumps(record)
    assert str(pipeline_folder) not in text


def test_no_pipeline(tmp_path: Path) -> None:
    with pytest.raises(CleansetError, match="expected the folder of a diffusers pipeline for in-painting"):
        load_pipeline(tmp_path, "cpu")


def test_a_pipeline_that_cannot_be_loaded(pipeline_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "model_index.json").write_text("{}")
    with pytest.raises(CleansetError, match="cannot be loaded"):
        load_pipeline(tmp_path, "cpu")


def test_prompts(tmp_path: Path) -> None:
    (tmp_path / "n01443537.txt").write_text("a goldfish in the sea\n")
    assert read_prompts(tmp_path, ["n01443537", "n01443537"]) == {"n01443537": "a goldfish in the sea"}
    with pytest.raises(CleansetError, match=r"n02165456\.txt: missing; expected the prompt"):
        read_prompts(tmp_path, ["n01443537", "n02165456"])
    (tmp_path / "n02165456.txt").write_text(" \n")
    with pytest.raises(CleansetError, match=r"n02165456\.txt: empty"):
        read_prompts(tmp_path, ["n02165456"])
    (tmp_path / "n02165456.txt").write_bytes(b"\xff")
    with pytest.raises(CleansetError, match=r"n02165456\.txt: not UTF-8 at byte 0; expected the prompt"):
        read_prompts(tmp_path, ["n02165456"])


def test_only_what_is_missing_is_made(tmp_path: Path) -> None:
    made: list[str] = []

    def paint(name: str) -> NDArray[np.uint8]:
        made.append(name)
        return IMAGE

    images = {name: (lambda name=name: paint(name)) for name in "ab"}
    assert list(save_missing(tmp_path, {"a": images["a"]}, {"seed": 0})) == ["a"]
    assert list(save_missing(tmp_path, images, {"seed": 0})) == ["b"]
    assert made == ["a", "b"]
    assert {path.name for path in tmp_path.iterdir()} == {"a.png", "b.png", MADE_WITH}
    with pytest.raises(CleansetError, match="were made with another pipeline, prompt, seed, option or version"):
        list(save_missing(tmp_path, images, {"seed": 1}))


def test_an_image_of_another_original_or_mask_is_made_again(tmp_path: Path) -> None:
    made: list[str] = []

    def paint(name: str) -> NDArray[np.uint8]:
        made.append(name)
        return IMAGE

    images = {name: (lambda name=name: paint(name)) for name in "abc"}
    first = {name: ["1" * 64, "2" * 64, "n01443537"] for name in "abc"}
    assert list(save_missing(tmp_path, images, {"seed": 0}, first)) == ["a", "b", "c"]
    assert list(save_missing(tmp_path, images, {"seed": 0}, first)) == []
    changed = {"a": ["3" * 64, "2" * 64, "n01443537"], "b": ["1" * 64, "3" * 64, "n01443537"], "c": first["c"]}
    assert list(save_missing(tmp_path, images, {"seed": 0}, changed)) == ["a", "b"]
    # killed before the second was painted
    (tmp_path / "b.png").unlink()
    assert list(save_missing(tmp_path, images, {"seed": 0}, changed)) == ["b"]
    # an image that somebody else made stays
    (tmp_path / "d.png").write_bytes(b"by hand")
    assert list(save_missing(tmp_path, {"d": images["a"]}, {"seed": 0}, {"d": first["a"]})) == []
    (tmp_path / MADE_WITH).write_text('{"seed": 0}')
    with pytest.raises(CleansetError, match="were made with another pipeline"):
        list(save_missing(tmp_path, images, {"seed": 0}, changed))
