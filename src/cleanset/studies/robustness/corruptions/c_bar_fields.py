"""The patterns of ImageNet-C-bar's corruptions, value by value, as machine code.

The order of operations is that of the authors' program (`c_bar`). Sines and powers are those of the C library, which
numpy replaces by others on processors with AVX-512; the last digit, in which they differ, moves no pixel that was seen.
"""

from math import atan2, cos, sin, sqrt

import numpy as np
from numpy.typing import NDArray

from cleanset.statistics.basics import Flags, Floats, Ints
from cleanset.studies.robustness.exact import compiled

Shape = tuple[int, ...]
"""Height and width of an image."""

Gradients = tuple[Ints, Floats]
"""The order of the gradients of Perlin noise, and the gradients: n x 2."""

OCTAVES = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Frequencies of perlin_noise, relative to its lattice."""

FAR = 16 * 256
"""Cells of the lattice that are added to a place, a multiple of its period."""


@compiled
def sine(shape: Shape, across: float, down: float, phase: float) -> Floats:
    """A sine wave, -1 to 1, of these frequencies in radians a pixel."""
    field = np.empty((shape[0], shape[1]))
    for y in range(shape[0]):
        for x in range(shape[1]):
            field[y, x] = sin(x * across + y * down + phase)
    return field


@compiled
def concentric(shape: Shape, centre: Floats, frequency: float, amplitude: float, ring: float) -> Floats:
    """Sawtooth rings, -1/2 to 1/2, of this width in pixels; the distance to `centre` (x, y) waves with the angle."""
    field = np.empty((shape[0], shape[1]))
    for y in range(shape[0]):
        for x in range(shape[1]):
            right = x - centre[0]
            down = y - centre[1]
            wave = sin(atan2(right, down) * frequency) * amplitude
            field[y, x] = ((sqrt(right * right + down * down) + wave) % ring) / ring - 0.5
    return field


@compiled
def plasma(shape: Shape, time: float, iterations: int, sharpness: float, scale: float) -> Floats:
    """Swirls, -1 to 1, of shape height x width x 3."""
    field = np.empty((shape[0], shape[1], 3))
    for row in range(shape[0]):
        for column in range(shape[1]):
            x = column / scale
            y = row / scale
            wave = 1.0
            turn = 1.0
            divisor = 1.0
            shift = 0.0
            for _ in range(iterations):
                right = cos(y * wave - shift + time / turn) / divisor
                down = sin(x * wave - shift + time / turn) / divisor
                x += right + -down * 0.3
                y += down + right * 0.3
                wave *= 1.93
                shift *= time * turn
                turn *= 1.15
                divisor *= 2.25 - sharpness
            field[row, column, 0] = sin(x - time)
            field[row, column, 1] = sin((x + y + sin(time)) * 0.5)
            field[row, column, 2] = sin(y + time)
    return field


@compiled
def light_rays(shape: Shape, centre: Floats, lengths: Floats, exponent: float) -> Floats:
    """The light of a star, 0 to 1: a power of squared ray length over squared distance to `centre` (y, x)."""
    field = np.empty((shape[0], shape[1]))
    rays = len(lengths)
    for y in range(shape[0]):
        for x in range(shape[1]):
            down = y - centre[0]
            right = x - centre[1]
            distance = sqrt(down * down + right * right)
            turned = (atan2(right, down) + np.pi) / (2 * np.pi) * rays
            ray = int(turned)
            between = turned - ray
            length = lengths[ray % rays] + between * (lengths[(ray + 1) % rays] - lengths[ray % rays])
            strength = (length * length / (distance * distance + 1e-4)) ** exponent
            between -= 0.5
            field[y, x] = min(max((1 - between * between) * strength, 0.0), 1.0)
    return field


@compiled
def perlin_turbulence(shape: Shape, step: float, gradients: Gradients) -> Floats:
    """Half the sum of the absolute noise of all octaves plus a half, clipped to 0..1; `step`: cells a pixel."""
    field = np.empty((shape[0], shape[1]))
    for y in range(shape[0]):
        for x in range(shape[1]):
            total = 0.0
            for octave in OCTAVES:
                total += abs(_perlin(octave * (y * step), octave * (x * step), gradients)) / octave
            total = 0.5 * total + 0.5
            # written so that NaN stays
            field[y, x] = 1.0 if total > 1.0 else total
    return field


@compiled
def _perlin(x: float, y: float, gradients: Gradients) -> float:
    """Perlin noise at a place of its lattice."""
    order, vectors = gradients
    left = int(x + FAR) % 256
    top = int(y + FAR) % 256
    right = (left + 1) % 256
    bottom = (top + 1) % 256
    across = (x + FAR) % 1
    down = (y + FAR) % 1
    weight = across * across * (3.0 - 2.0 * across)
    first = _slope(vectors[order[order[left] + top]], across, down)
    second = _slope(vectors[order[order[right] + top]], across - 1.0, down)
    upper = first + weight * (second - first)
    first = _slope(vectors[order[order[left] + bottom]], across, down - 1.0)
    second = _slope(vectors[order[order[right] + bottom]], across - 1.0, down - 1.0)
    lower = first + weight * (second - first)
    return 1.5 * (upper + down * down * (3.0 - 2.0 * down) * (lower - upper))


@compiled
def _slope(gradient: Floats, across: float, down: float) -> float:
    """The rise of a gradient over a distance."""
    rise: float = across * gradient[0] + down * gradient[1]
    return rise


@compiled
def spectrum(power: Floats, phases: Floats) -> NDArray[np.complex128]:
    """Complex amplitudes of these absolute values and phases."""
    field = np.empty(power.shape, np.complex128)
    for row in range(power.shape[0]):
        for column in range(power.shape[1]):
            phase = phases[row, column]
            field[row, column] = complex(power[row, column] * cos(phase), power[row, column] * sin(phase))
    return field


@compiled
def checkerboard(shape: Shape, angle: float, square: float, is_grey: Flags) -> Flags:
    """Whether a pixel is in a square that is grey, of the white squares of a turned checkerboard."""
    field = np.empty((shape[0], shape[1]), np.bool_)
    for y in range(shape[0]):
        for x in range(shape[1]):
            first = (cos(angle) * y + sin(angle) * x) / square
            second = (-sin(angle) * y + cos(angle) * x) / square
            is_white = int(first % 2) == int(second % 2)
            # numbers below 0 count from the end
            field[y, x] = is_white and is_grey[int(first), int(second)]
    return field
