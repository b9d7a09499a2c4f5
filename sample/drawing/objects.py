"""The twelve objects of the sample, each drawn by one function.

Every function draws into the square from -1 to 1 (y downwards) and varies shape
and colours with the random numbers that it is given.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from random import Random

from drawing.canvas import Colour, Pen, Point, mix, oval, rectangle, smooth
from drawing.tables import COLOURS, OUTLINES

WHITE: Colour = (250, 250, 246)
BLACK: Colour = (26, 24, 28)


def goldfish(pen: Pen, rng: Random) -> None:
    """A goldfish seen from the side, its head to the left."""
    light, dark = rng.choice(COLOURS["goldfish"])
    fin = mix(light, WHITE, 20)
    sway = rng.randrange(-12, 13) / 100
    for up in (-1, 1):
        tail = [
            (0.34, 0.0),
            (0.6, 0.16 * up),
            (0.98, 0.62 * up + sway),
            (0.94, 0.2 * up + sway),
            (0.72, 0.02),
        ]
        pen.shade(smooth(tail), fin, dark, 2.0)
    for reach in (0.16, 0.3, 0.44):
        for up in (-1, 1):
            pen.line([(0.52, 0.06 * up), (0.88, reach * up + sway)], 0.012, mix(dark, light, 40))
    pen.shade(
        smooth(OUTLINES["goldfish back fin"]),
        fin,
        dark,
        1.6,
    )
    pen.shade(smooth(OUTLINES["goldfish belly fin"]), fin, dark, 1.8)
    body = smooth(OUTLINES["goldfish body"])
    pen.shade(body, light, dark, 1.5)
    for column in range(5):
        for row in range(-1, 2):
            centre = (-0.28 + 0.15 * column, 0.17 * row + (0.08 if column % 2 else 0.0))
            pen.line(oval(centre, 0.07, 0.08, -80, 80), 0.014, mix(dark, light, 45))
    pen.line(oval((-0.66, 0.0), 0.18, 0.26, -60, 60), 0.022, mix(dark, BLACK, 10))
    pen.shade(smooth(OUTLINES["goldfish side fin"]), fin, dark, 1.5)
    pen.fill(oval((-0.72, -0.1), 0.09, 0.09), WHITE)
    pen.fill(oval((-0.735, -0.1), 0.055, 0.055), BLACK)
    pen.fill(oval((-0.75, -0.12), 0.018, 0.018), WHITE)
    pen.line([(-0.95, 0.03), (-0.87, 0.07)], 0.022, mix(dark, BLACK, 30))


def ladybug(pen: Pen, rng: Random) -> None:
    """A ladybird from above, its head upwards."""
    light, dark = rng.choice(COLOURS["ladybug"])
    for y, reach in OUTLINES["ladybug legs"]:
        for side in (-1, 1):
            pen.line(
                [(0.5 * side, y), (0.84 * side, y + reach), (0.96 * side, y + 1.6 * reach)],
                0.06,
                BLACK,
            )
    for side in (-1, 1):
        pen.line([(0.14 * side, -0.72), (0.26 * side, -0.9), (0.4 * side, -0.96)], 0.035, BLACK)
    pen.shade(oval((0.0, -0.6), 0.34, 0.26), (80, 78, 84), BLACK, 1.0)
    pen.shade(oval((0.0, -0.42), 0.5, 0.28), (70, 68, 74), BLACK, 1.0)
    for side in (-1, 1):
        pen.fill(oval((0.3 * side, -0.5), 0.12, 0.1), WHITE)
        pen.fill(oval((0.17 * side, -0.72), 0.06, 0.05), WHITE)
    pen.shade(oval((0.0, 0.18), 0.74, 0.72), light, dark, 1.5)
    pen.line([(0.0, -0.5), (0.0, 0.88)], 0.035, BLACK)
    spot = rng.randrange(12, 17) / 100
    pen.fill(oval((0.0, -0.36), 0.18, 0.13), BLACK)
    for x, y in OUTLINES["ladybug spots"]:
        for side in (-1, 1):
            pen.fill(oval((x * side, y), spot, spot), BLACK)
    pen.fill(oval((-0.32, -0.18), 0.16, 0.08), WHITE, 90)


def starfish(pen: Pen, rng: Random) -> None:
    """A starfish with five arms."""
    light, dark = rng.choice(COLOURS["starfish"])
    inner = rng.randrange(30, 39) / 100
    corners: list[Point] = []
    for arm in range(5):
        middle = math.radians(72 * arm - 90)
        for turn, radius in ((-36, inner), (-8, 0.8), (0, 0.97), (8, 0.8)):
            angle = middle + math.radians(turn)
            corners.append((radius * math.cos(angle), radius * math.sin(angle)))
    pen.shade(smooth(corners, 6), light, dark, 1.6)
    for arm in range(5):
        angle = math.radians(72 * arm - 90)
        for step in range(1, 7):
            at = 0.14 * step - 0.04
            for aside in (-1, 0, 1):
                across = aside * 0.1 * (1.1 - at)
                centre = (
                    at * math.cos(angle) - across * math.sin(angle),
                    at * math.sin(angle) + across * math.cos(angle),
                )
                dot = 0.032 if aside == 0 else 0.02
                pen.fill(oval(centre, dot, dot), mix(light, WHITE, 55))
    pen.fill(oval((0.0, 0.0), 0.07, 0.07), mix(dark, BLACK, 15))


def clock(pen: Pen, rng: Random) -> None:
    """A round clock with numerals and two hands."""
    rim = rng.choice(COLOURS["clock rim"])
    pen.shade(oval((0.0, 0.0), 0.97, 0.97), mix(rim, WHITE, 45), mix(rim, BLACK, 35))
    pen.shade(oval((0.0, 0.0), 0.83, 0.83), mix(rim, BLACK, 40), mix(rim, WHITE, 15))
    pen.shade(oval((0.0, 0.0), 0.79, 0.79), WHITE, (222, 220, 208), 2.2)
    for minute in range(60):
        angle = math.radians(6 * minute)
        start, width = (0.66, 0.035) if minute % 5 == 0 else (0.71, 0.012)
        ends = [(r * math.sin(angle), -r * math.cos(angle)) for r in (start, 0.75)]
        pen.line(ends, width, BLACK)
    for hour in range(1, 13):
        angle = math.radians(30 * hour)
        pen.text((0.53 * math.sin(angle), -0.53 * math.cos(angle)), 0.2, str(hour), BLACK)
    minutes = rng.randrange(720)
    for turn, length, width in ((minutes / 2, 0.36, 0.07), (6 * minutes, 0.58, 0.045)):
        angle = math.radians(turn)
        pen.line(
            [
                (-0.1 * math.sin(angle), 0.1 * math.cos(angle)),
                (length * math.sin(angle), -length * math.cos(angle)),
            ],
            width,
            BLACK,
        )
    pen.fill(oval((0.0, 0.0), 0.06, 0.06), (190, 40, 36))


def balloon(pen: Pen, rng: Random) -> None:
    """A hot-air balloon with coloured gores and a basket."""
    colours = rng.choice(COLOURS["balloon"])
    edges = OUTLINES["balloon seams"]
    for index, (left, right) in enumerate(pairwise(edges)):
        base = colours[index % 2]
        gore = _meridian(left) + _meridian(right)[::-1]
        pen.shade(gore, mix(base, WHITE, 22), mix(base, BLACK, 32), 1.7)
    pen.fill(_meridian(-1.0)[9:12] + _meridian(1.0)[9:12][::-1], colours[1], 120)
    for x in (-0.11, -0.04, 0.04, 0.11):
        pen.line([(x * 1.5, 0.5), (x, 0.78)], 0.012, (70, 56, 44))
    pen.shade(
        OUTLINES["balloon basket"],
        (178, 126, 70),
        (98, 62, 34),
        2.0,
    )
    pen.fill(OUTLINES["balloon rim of the basket"], (92, 58, 32))


def _meridian(share: float) -> list[Point]:
    """A seam of the balloon from top to mouth, at `share` (-1..1) of its half width."""
    widths = [math.sin(math.radians(9 * i)) for i in range(11)]
    upper = [(0.72 * share * w, -0.26 - 0.72 * math.cos(math.radians(9 * i))) for i, w in enumerate(widths)]
    lower = [(share * (0.72 - 0.56 * (i / 8) ** 2 * (1.5 - 0.5 * i / 8)), -0.26 + 0.095 * i) for i in range(1, 9)]
    return upper + lower


def lighthouse(pen: Pen, rng: Random) -> None:
    """A lighthouse on a rock, with bands and a lit lantern."""
    band = rng.choice(COLOURS["lighthouse band"])
    pen.shade(
        smooth(OUTLINES["lighthouse rock"]),
        (150, 138, 122),
        (74, 68, 64),
        2.6,
    )
    stripes = rng.choice([5, 6, 7])
    for index in range(stripes):
        top, bottom = (-0.5 + 1.26 * i / stripes for i in (index, index + 1))
        base = band if index % 2 else WHITE
        sides = [
            (-_half(top), top),
            (_half(top), top),
            (_half(bottom), bottom),
            (-_half(bottom), bottom),
        ]
        pen.shade(sides, base, mix(base, BLACK, 40), 1.5)
    for y in (-0.2, 0.2):
        pen.fill(rectangle(-0.04, y, 0.04, y + 0.12), (60, 70, 84))
    pen.fill([*oval((0.0, 0.62), 0.08, 0.1, 180, 360), (0.08, 0.76), (-0.08, 0.76)], (84, 54, 36))
    pen.fill(OUTLINES["lighthouse gallery"], (54, 54, 62))
    for x in (-0.25, -0.12, 0.0, 0.12, 0.25):
        pen.line([(x, -0.64), (x, -0.55)], 0.014, (54, 54, 62))
    pen.line([(-0.25, -0.64), (0.25, -0.64)], 0.018, (54, 54, 62))
    pen.shade(
        OUTLINES["lighthouse lantern"],
        (255, 246, 176),
        (250, 204, 80),
        1.0,
    )
    for x in (-0.14, 0.0, 0.14):
        pen.line([(x, -0.78), (x, -0.56)], 0.02, (54, 54, 62))
    pen.shade(oval((0.0, -0.78), 0.18, 0.16, 180, 360), mix(band, WHITE, 20), mix(band, BLACK, 30), 1.2)
    pen.line([(0.0, -0.93), (0.0, -0.99)], 0.025, (54, 54, 62))


def _half(height: float) -> float:
    """Half the width of the lighthouse's tower at a height."""
    return 0.19 + 0.08 * (height + 0.5)


def soccer_ball(pen: Pen, rng: Random) -> None:
    """A white ball with black pentagons, turned at random."""
    pen.shade(oval((0.0, 0.0), 0.96, 0.96), (255, 255, 255), (150, 152, 160), 1.9)
    corners = _turned(_icosahedron(), [rng.randrange(360) for _ in range(3)])
    for vertex in corners:
        near = sorted(corners, key=lambda other: _distance(vertex, other))[1:6]
        for other in near:
            seam = [_on_ball(vertex, other, part) for part in (0.34, 0.42, 0.5)]
            if all(p[2] > 0.02 for p in seam):
                pen.line([(p[0], p[1]) for p in seam], 0.025, (60, 60, 66))
        patch = [_on_ball(vertex, other, 0.34) for other in _around(near)]
        if vertex[2] > -0.25 and sum(p[2] > 0 for p in patch) >= 2:
            pen.shade([_to_rim(p) for p in patch], (64, 64, 70), (18, 18, 22), 1.5)


Vector = tuple[float, float, float]


def _icosahedron() -> list[Vector]:
    """Its twelve corners, at distance 1 from the middle."""
    golden = (1 + math.sqrt(5)) / 2
    length = math.sqrt(1 + golden * golden)
    corners: list[Vector] = []
    for a in (-1 / length, 1 / length):
        for b in (-golden / length, golden / length):
            corners += [(0.0, a, b), (a, b, 0.0), (b, 0.0, a)]
    return corners


def _turned(points: list[Vector], degrees: list[int]) -> list[Vector]:
    """The points turned about the three axes, one after the other."""
    for axis, turn in enumerate(degrees):
        cos = math.cos(math.radians(turn))
        sin = math.sin(math.radians(turn))
        first = (axis + 1) % 3
        second = (axis + 2) % 3
        turned: list[Vector] = []
        for point in points:
            moved = list(point)
            moved[first] = point[first] * cos - point[second] * sin
            moved[second] = point[first] * sin + point[second] * cos
            turned.append((moved[0], moved[1], moved[2]))
        points = turned
    return points


def _distance(one: Vector, other: Vector) -> float:
    return round(sum((p - q) ** 2 for p, q in zip(one, other, strict=True)), 9)


def _on_ball(start: Vector, end: Vector, part: float) -> Vector:
    """The point of the ball's surface above `part` of the way; its radius is 0.95."""
    x, y, z = (p + part * (q - p) for p, q in zip(start, end, strict=True))
    stretch = 0.95 / math.sqrt(x * x + y * y + z * z)
    return x * stretch, y * stretch, z * stretch


def _around(near: list[Vector]) -> list[Vector]:
    """The five neighbours of a corner in the order in which they are around it."""
    ordered = [near[0]]
    left = near[1:]
    while left:
        following = min(left, key=lambda other: _distance(ordered[-1], other))
        ordered.append(following)
        left.remove(following)
    return ordered


def _to_rim(point: Vector) -> Point:
    """A point as seen; one on the far side moves out to the ball's rim."""
    x, y, z = point
    if z >= 0:
        return x, y
    stretch = 0.95 / max(math.sqrt(x * x + y * y), 1e-9)
    return x * stretch, y * stretch


def umbrella(pen: Pen, rng: Random) -> None:
    """An open umbrella from the side, with a hooked handle."""
    first = rng.choice(COLOURS["umbrella"])
    second = rng.choice([first, WHITE, mix(first, BLACK, 35)])
    pen.line([(0.0, -0.6), (0.0, 0.78)], 0.045, (92, 62, 40))
    hook = oval((0.13, 0.8), 0.13, 0.16, 0, 180)[::-1]
    pen.line(hook, 0.07, (74, 44, 26))
    pen.line([(0.0, -0.86), (0.0, -0.98)], 0.04, (74, 44, 26))
    edges = [-0.96, -0.66, -0.26, 0.26, 0.66, 0.96]
    for index, (left, right) in enumerate(pairwise(edges)):
        base = second if index % 2 else first
        scallop = oval(((left + right) / 2, 0.06), (right - left) / 2, 0.12, 180, 360)
        panel = _rib(left)[::-1] + scallop[1:-1] + _rib(right)
        pen.shade(panel, mix(base, WHITE, 18), mix(base, BLACK, 38), 1.7)
    for edge in edges[1:-1]:
        pen.line(_rib(edge), 0.012, mix(first, BLACK, 45))


def _rib(edge: float) -> list[Point]:
    """A rib of the umbrella from its rim at x = `edge` to the top."""
    angles = [math.radians(10 * i) for i in range(10)]
    return [(edge * math.cos(a), 0.06 - 0.94 * math.sin(a)) for a in angles]


def traffic_light(pen: Pen, rng: Random) -> None:
    """A traffic light with three lamps, one of them lit."""
    case = rng.choice(COLOURS["traffic light case"])
    pen.shade(OUTLINES["traffic light pole"], (150, 152, 156), (80, 82, 88))
    pen.shade(_rounded(0.4, -0.97, 0.72, 0.1), mix(case, WHITE, 25), mix(case, BLACK, 30), 1.9)
    lit = rng.randrange(3)
    lamps: list[Colour] = COLOURS["traffic light lamps"]
    for index, colour in enumerate(lamps):
        y = -0.68 + 0.56 * index
        pen.fill(oval((0.0, y), 0.26, 0.26), (14, 14, 16))
        if index == lit:
            pen.shade(oval((0.0, y), 0.22, 0.22), mix(colour, WHITE, 30), colour, 1.5)
            pen.fill(oval((0.0, y), 0.12, 0.12), mix(colour, WHITE, 65), 170)
        else:
            pen.fill(oval((0.0, y), 0.22, 0.22), mix(colour, BLACK, 72))
        visor = oval((0.0, y), 0.29, 0.29, 190, 350) + oval((0.0, y + 0.05), 0.25, 0.25, 190, 350)[::-1]
        pen.fill(visor, mix(case, BLACK, 45))


def _rounded(half: float, top: float, bottom: float, corner: float) -> list[Point]:
    """An upright rectangle with round corners, symmetrical about x = 0."""
    x = half - corner
    return (
        oval((x, top + corner), corner, corner, 270, 360)
        + oval((x, bottom - corner), corner, corner, 0, 90)
        + oval((-x, bottom - corner), corner, corner, 90, 180)
        + oval((-x, top + corner), corner, corner, 180, 270)
    )


def mushroom(pen: Pen, rng: Random) -> None:
    """A mushroom: a red cap with white flecks, or a brown one."""
    red = rng.randrange(3) > 0
    light, dark = ((238, 78, 52), (160, 22, 20)) if red else ((206, 150, 96), (120, 72, 38))
    wide = rng.randrange(16, 25) / 100
    stem = smooth(
        [
            (-wide, -0.1),
            (-wide * 0.9, 0.4),
            (-wide * 1.5, 0.88),
            (0.0, 0.97),
            (wide * 1.5, 0.88),
            (wide * 0.9, 0.4),
            (wide, -0.1),
        ]
    )
    pen.shade(stem, (252, 246, 228), (186, 170, 140), 1.9)
    pen.fill(oval((0.0, -0.02), 0.9, 0.17), (214, 194, 160))
    for index in range(-8, 9):
        pen.line([(0.02 * index, 0.06), (0.105 * index, 0.0)], 0.012, (160, 136, 104))
    if red:
        pen.shade(
            smooth(
                [
                    (-wide * 1.1, 0.2),
                    (wide * 1.1, 0.2),
                    (wide * 1.7, 0.38),
                    (0.0, 0.42),
                    (-wide * 1.7, 0.38),
                ]
            ),
            (250, 244, 226),
            (200, 186, 158),
            1.8,
        )
    cap = smooth(OUTLINES["mushroom cap"])
    pen.shade(cap, light, dark, 1.5)
    if red:
        for x, y, size in OUTLINES["mushroom flecks"]:
            pen.fill(oval((x, y), size, size * 0.8), WHITE)
    else:
        pen.fill(oval((-0.3, -0.62), 0.26, 0.1), WHITE, 70)


def strawberry(pen: Pen, rng: Random) -> None:
    """A strawberry with seeds and leaves."""
    light, dark = rng.choice(COLOURS["strawberry"])
    body = smooth(OUTLINES["strawberry body"])
    pen.shade(body, light, dark, 1.5)
    for row in range(6):
        y = -0.32 + 0.22 * row
        reach = 0.66 - 0.1 * row - (0.06 * row if row > 3 else 0)
        for column in range(-3, 4):
            x = 0.24 * column + (0.12 if row % 2 else 0.0)
            if abs(x) < reach:
                pen.fill(oval((x, y + 0.01), 0.036, 0.056), mix(dark, BLACK, 25))
                pen.fill(oval((x, y), 0.026, 0.044), (250, 218, 110))
    pen.fill(oval((-0.38, -0.3), 0.14, 0.2), WHITE, 45)
    for turn in (-72, -40, -12, 16, 44, 76):
        tip = (
            0.72 * math.sin(math.radians(turn)),
            -0.62 + 0.5 * math.cos(math.radians(turn)) - 0.12,
        )
        side = (-tip[1] - 0.66, tip[0])
        leaf = [
            (0.0, -0.7),
            (0.5 * tip[0] + 0.22 * side[0], 0.5 * (tip[1] - 0.66) + 0.22 * side[1]),
            tip,
            (0.5 * tip[0] - 0.22 * side[0], 0.5 * (tip[1] - 0.66) - 0.22 * side[1]),
        ]
        pen.shade(smooth(leaf), (126, 190, 70), (40, 104, 40), 1.4)
    pen.line(OUTLINES["strawberry stalk"], 0.07, (78, 132, 52))


def banana(pen: Pen, rng: Random) -> None:
    """One banana, or a bunch of two or three."""
    count = rng.choice([1, 2, 3])
    for index in range(count):
        _one_banana(pen, 0.16 * (index - (count - 1) / 2), rng.choice([(255, 226, 80), (250, 214, 60)]))


def _one_banana(pen: Pen, shift: float, colour: Colour) -> None:
    dark = (206, 142, 20)
    outer = oval((0.0, -0.62 + shift), 0.94, 1.22, 12, 168)
    inner = oval((0.0, -0.66 + shift), 0.86, 0.72, 12, 168)[::-1]
    pen.shade(outer + inner, colour, dark, 1.9)
    ridge = oval((0.0, -0.64 + shift), 0.9, 1.0, 16, 164)
    pen.line(ridge, 0.02, mix(dark, colour, 35))
    pen.line(oval((0.0, -0.62 + shift), 0.94, 1.22, 12, 168), 0.014, mix(dark, BLACK, 25))
    pen.fill(
        [
            outer[0],
            inner[-1],
            (inner[-1][0] + 0.1, -0.72 + shift),
            (outer[0][0] + 0.08, -0.72 + shift),
        ],
        (150, 130, 40),
    )
    pen.fill(oval((-0.88, -0.44 + shift), 0.06, 0.07), (72, 50, 26))


DRAWERS: dict[str, Callable[[Pen, Random], None]] = {
    "n01443537": goldfish,
    "n02165456": ladybug,
    "n02317335": starfish,
    "n02708093": clock,
    "n02782093": balloon,
    "n02814860": lighthouse,
    "n04254680": soccer_ball,
    "n04507155": umbrella,
    "n06874185": traffic_light,
    "n07734744": mushroom,
    "n07745940": strawberry,
    "n07753592": banana,
}
