"""Honest and masked networks for bench/masking.py that were made after the limits of the signs had been set.

Honest: quantised networks, steps through which gradients pass straight, and what networks do to pixels and logits.
Masked: gradients that are wrong in other places, colors and frequencies, for steps of other lengths, or in other ways.
"""

from collections.abc import Callable, Iterator
from functools import partial
from math import pi

import torch
from torch import Tensor, nn

import masking
from docs import defences

Step = Callable[[Tensor], Tensor]
Listed = Iterator[tuple[str, masking.Network, int]]

ROBUST = "norm_robust"
VIT = "corruption_robust"
STEEPNESS = 1.963
"""Steepness of a ripple, by that of the pixels: a third of the gradients have the wrong sign."""


def quantised(role: str, bits: int, steps: int) -> nn.Module:
    """A network with weights of some bits and layers in steps, trained to be so: gradients pass straight through."""
    network = defences.Normalised(role)
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            weight = module.weight.detach()
            unit = weight.abs().max() / (2 ** (bits - 1) - 1)
            weight.copy_(torch.round(weight / unit) * unit)
            module.register_forward_hook(
                lambda _, given, found: straight(lambda of: torch.round(of * steps) / steps)(found)
            )
    return network


def straight(change: Step) -> Step:
    """A step through which the gradient passes straight."""
    return lambda pixels: pixels + (change(pixels.detach()) - pixels.detach())


def resized(side: int) -> Step:
    """Images of another size."""
    return lambda pixels: nn.functional.interpolate(pixels, (side, side), mode="bilinear")


def blurred(pixels: Tensor) -> Tensor:
    """The mean of 3 x 3 pixels."""
    return nn.functional.avg_pool2d(pixels, 3, stride=1, padding=1, count_include_pad=False)


def honest() -> Listed:
    """Name, network and side of the images of each."""
    side, trained = masking.SIDE, masking.TRAINED_SIDE
    for role, bits, steps in (
        ("standard", 6, 32),
        ("standard", 5, 16),
        ("standard", 8, 64),
        (ROBUST, 5, 32),
        (ROBUST, 8, 16),
    ):
        yield f"{role} of {bits} bits, layers in {steps}ths", partial(quantised, role, bits, steps), side
    yield "ViT of 6 bits, layers in 64ths", partial(quantised, VIT, 6, 64), trained
    on_pixels: dict[str, Step] = {
        "straight through 16 levels": straight(masking.levels(16)),
        "straight through 40 levels": straight(masking.levels(40)),
        "straight through blocks in 40ths": straight(partial(masking.blocks, steps=40)),
        "straight through blocks in 14ths": straight(partial(masking.blocks, steps=14)),
        "straight through a median": straight(masking.median),
        "blurred": blurred,
        "resized": resized(128),
        "grey": lambda pixels: pixels.mean(dim=1, keepdim=True).expand_as(pixels),
        "gamma": lambda pixels: pixels.clamp(min=1e-3) ** 0.8,
    }
    for role in ("standard", ROBUST):
        for name, step in on_pixels.items():
            yield f"{role} {name}", partial(masking.Around, before=step, role=role), side
    yield "logits times 8", lambda: masking.Around(after=lambda logits: 8 * logits), side
    yield "logits times .02", lambda: masking.Around(after=lambda logits: 0.02 * logits), side
    yield "robust in bfloat16", lambda: masking.Rounded(defences.Normalised(ROBUST), torch.bfloat16), side
    yield "robust in float16", lambda: masking.Rounded(defences.Normalised(ROBUST), torch.float16), side
    yield "robust, smoothed", lambda: masking.Smoothed(defences.Normalised(ROBUST), copies=3, deviation=0.05), side


def where(chosen: Callable[[Tensor, Tensor], Tensor]) -> Step:
    """1 at the rows and columns, given as shares of the side, that are chosen; 0 elsewhere."""

    def mask(pixels: Tensor) -> Tensor:
        place = (torch.arange(pixels.shape[-1]) + 0.5) / pixels.shape[-1]
        return chosen(place[:, None], place[None, :]).to(pixels).expand_as(pixels)

    return mask


def one_color(color: int) -> Step:
    """1 in a color."""
    return lambda pixels: (torch.arange(3) == color).to(pixels)[:, None, None].expand_as(pixels)


PLACES: dict[str, Step] = {
    "right 30 %": where(lambda row, column: (column > 0.7) | (row < 0)),
    "top 25 %": where(lambda row, column: (row < 0.25) | (column < 0)),
    "stripes of 12": where(lambda row, column: (row * 8 % 2 < 1) | (column < 0)),
    "3 of 8 columns": where(lambda row, column: (column * 96 % 8 < 3) | (row < 0)),
    "border of 8": where(lambda row, column: ((row - 0.5).abs() > 0.417) | ((column - 0.5).abs() > 0.417)),
    "quarter": where(lambda row, column: (row > 0.5) & (column < 0.5)),
    "every second of 25 squares": where(lambda row, column: ((row * 5).floor() + (column * 5).floor()) % 2 == 0),
    "one of 25 squares": where(lambda row, column: ((row * 5).floor() == 2) & ((column * 5).floor() == 1)),
    "disk": where(lambda row, column: (row - 0.6) ** 2 + (column - 0.4) ** 2 < 0.04),
    "red": one_color(0),
    "blue": one_color(2),
    "scattered 30 %": masking.scattered(0.3),
}
"""Parts of an image."""


def frequencies(low: float, high: float) -> Step:
    """The part of a gradient between two frequencies, in cycles a pixel, turned around."""

    def turned(gradient: Tensor) -> Tensor:
        rows, columns = torch.fft.fftfreq(gradient.shape[-2]), torch.fft.rfftfreq(gradient.shape[-1])
        size = (rows[:, None] ** 2 + columns[None, :] ** 2).sqrt()
        sign = torch.where((size >= low) & (size < high), -1.0, 1.0)
        found: Tensor = torch.fft.irfft2(torch.fft.rfft2(gradient) * sign, s=gradient.shape[-2:])
        return found

    return masking.with_gradient(turned)


def ripple(period: float, mask: Step = torch.ones_like, wave: Step = torch.sin) -> Step:
    """Pixels less a wave of a period in levels."""
    depth = STEEPNESS * period / (2 * pi) / 255
    return lambda pixels: pixels - depth * mask(pixels) * wave(2 * pi * 255 / period * pixels)


def sawtooth(interval: float) -> Step:
    """Logits whose largest margin is reversed in each interval (S. Chen and others 2022)."""

    def reversed_in_intervals(logits: Tensor) -> Tensor:
        values, classes = logits.topk(2, dim=1)
        margin = values[:, :1] - values[:, 1:]
        start = torch.floor(margin.detach() / interval) * interval
        return logits.scatter(1, classes[:, :1], values[:, 1:] + 2 * start + interval - margin)

    return reversed_in_intervals


def masked() -> Listed:
    """Name, network and side of the images of each."""
    side = masking.SIDE
    for place, (name, mask) in enumerate(PLACES.items()):
        yield f"{name} turned around", partial(masking.Around, before=masking.masked(mask, -1)), side
        if place % 2 == 0:
            step = masking.masked(mask, -1)
            yield f"robust, {name} turned around", partial(masking.Around, before=step, role=ROBUST), side
        else:
            yield f"{name} 0", partial(masking.Around, before=masking.masked(mask, 0)), side
    for low, high in ((0, 0.08), (0.08, 0.2), (0.2, 1)):
        step = frequencies(low, high)
        yield f"frequencies {low} to {high} turned around", partial(masking.Around, before=step), side
    for period in (2.5, 3, 5, 6, 10, 16):
        yield f"ripple of {period} levels", partial(masking.Around, before=ripple(period)), side
    yield "robust, ripple of 6 levels", partial(masking.Around, before=ripple(6), role=ROBUST), side
    yield "ripple in stripes", partial(masking.Around, before=ripple(7, PLACES["stripes of 12"])), side
    triangle = ripple(7, wave=lambda angle: torch.asin(0.99 * torch.sin(angle)))
    yield "ripple of triangles", partial(masking.Around, before=triangle), side
    for interval in (1, 2.5, 8, 20):
        yield f"sawtooth of {interval}", partial(masking.Around, after=sawtooth(interval)), side
    yield "robust, sawtooth of 1", partial(masking.Around, after=sawtooth(1), role=ROBUST), side
    rolled = masking.with_gradient(lambda gradient: gradient.roll(1, 3))
    yield "gradient rolled by a pixel", partial(masking.Around, before=rolled), side
    mirrored = masking.with_gradient(lambda gradient: gradient.flip(3))
    yield "gradient mirrored", partial(masking.Around, before=mirrored), side
    mixed = masking.with_gradient(lambda gradient: gradient + 2 * gradient.abs().mean() * torch.randn_like(gradient))
    yield "noise added to the gradient", partial(masking.Around, before=mixed), side
    yield (
        "12 levels, a leak turned around",
        partial(masking.Around, before=masking.instead(masking.levels(12), -1e-3)),
        side,
    )
    through = straight(masking.levels(16))
    turned = masking.masked(PLACES["right 30 %"], -1)
    both = partial(masking.Around, before=lambda pixels: turned(through(pixels)))
    yield "straight through 16 levels, right 30 % turned around", both, side
