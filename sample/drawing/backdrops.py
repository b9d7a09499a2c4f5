"""Backdrops behind the objects: skies, meadows, water, tables, streets, walls."""

import math
from collections.abc import Callable
from itertools import pairwise
from random import Random

from drawing.canvas import Canvas, Colour, Point, mix, oval, rectangle, smooth
from drawing.tables import COLOURS, OUTLINES

WHITE: Colour = (252, 252, 250)
BLACK: Colour = (18, 20, 26)

SKIES: list[tuple[Colour, Colour]] = COLOURS["skies"]


def sky(canvas: Canvas, rng: Random) -> None:
    """A sky with clouds down to the lower edge, and hills."""
    _heaven(canvas, rng, canvas.height)
    far = rng.choice(COLOURS["sky hills"])
    _hills(canvas, rng, canvas.height * rng.randrange(82, 92) / 100, mix(far, WHITE, 25), swing=14)
    _hills(canvas, rng, canvas.height * rng.randrange(90, 97) / 100, far, swing=10)


def meadow(canvas: Canvas, rng: Random) -> None:
    """Grass under a sky, with flowers."""
    horizon = canvas.height * rng.randrange(35, 60) / 100
    _heaven(canvas, rng, horizon + 20)
    green = rng.choice(COLOURS["meadow grass"])
    _hills(canvas, rng, horizon - 8, mix(green, (90, 130, 150), 50), swing=12)
    canvas.gradient(mix(green, WHITE, 18), mix(green, BLACK, 30), horizon, canvas.height)
    for _ in range(160):
        y = rng.randrange(int(horizon) + 6, canvas.height + 12)
        length = 4 + 16 * (y - horizon) / canvas.height
        x = rng.randrange(canvas.width)
        tone = mix(green, rng.choice([BLACK, WHITE]), rng.randrange(6, 26))
        canvas.polygon([(x - 2, y), (x + 2, y), (x + rng.randrange(-5, 6), y - length)], tone)
    petals = rng.choice([WHITE, (250, 220, 90), (206, 130, 206)])
    for _ in range(rng.randrange(6, 22)):
        y = rng.randrange(int(horizon) + 8, canvas.height)
        reach = 1.2 + 3.0 * (y - horizon) / canvas.height
        centre = (rng.randrange(canvas.width), y)
        canvas.polygon(oval(centre, reach, reach), petals)


def beach(canvas: Canvas, rng: Random) -> None:
    """Sand, a strip of sea with foam, and a sky."""
    horizon = canvas.height * rng.randrange(18, 36) / 100
    shore = horizon + canvas.height * rng.randrange(14, 24) / 100
    _heaven(canvas, rng, horizon)
    sea = rng.choice(COLOURS["beach sea"])
    canvas.gradient(mix(sea, BLACK, 15), mix(sea, WHITE, 35), horizon, shore + 12)
    sand = rng.choice(COLOURS["beach sand"])
    _hills(canvas, rng, shore - 3, WHITE, swing=5)
    _hills(canvas, rng, shore + 3, sand, swing=5)
    canvas.gradient(sand, mix(sand, (130, 90, 50), 30), shore + 12, canvas.height)
    _grains(canvas, rng, sand, shore + 8, count=260)


def sand(canvas: Canvas, rng: Random) -> None:
    """Sand from above, with ripples, pebbles and shells."""
    tone = rng.choice(COLOURS["sand"])
    canvas.gradient(mix(tone, WHITE, 20), mix(tone, (120, 90, 60), 22), 0, canvas.height)
    for _ in range(9):
        y = rng.randrange(canvas.height)
        wave = [(x, y + 6 * math.sin(x / 31 + y)) for x in range(-10, canvas.width + 11, 10)]
        canvas.stroke(wave, 3, mix(tone, (140, 104, 66), 16))
    _grains(canvas, rng, tone, 0, count=420)
    for _ in range(rng.randrange(4, 10)):
        centre = canvas.anywhere(rng)
        reach = rng.randrange(4, 10)
        stone = rng.choice(COLOURS["sand stones"])
        canvas.shaded(
            oval(centre, reach, reach * 0.7),
            mix(stone, WHITE, 30),
            mix(stone, BLACK, 30),
            (centre[0] - 3, centre[1] - 3),
            2.0 * reach,
        )


def water(canvas: Canvas, rng: Random) -> None:
    """Under water: rays of light, weeds, bubbles and a sandy floor."""
    deep = rng.choice(COLOURS["water"])
    canvas.gradient(mix(deep, (130, 214, 226), 75), deep, 0, canvas.height)
    for _ in range(4):
        x = rng.randrange(canvas.width)
        lean = rng.randrange(20, 90)
        ray = [
            (x, -4.0),
            (x + 24, -4.0),
            (x + 44 + lean, canvas.height),
            (x - 12 + lean, canvas.height),
        ]
        canvas.glow(ray, (200, 240, 240), 40, 8)
    floor = canvas.height * rng.randrange(84, 95) / 100
    _hills(canvas, rng, floor, mix((206, 186, 140), deep, 35), swing=8)
    for _ in range(rng.randrange(3, 8)):
        _weed(
            canvas,
            rng,
            rng.randrange(canvas.width),
            mix((40, 130, 70), deep, rng.randrange(10, 60)),
        )
    for _ in range(rng.randrange(5, 16)):
        centre = canvas.anywhere(rng)
        reach = rng.randrange(2, 7)
        canvas.polygon(oval(centre, reach, reach), (214, 244, 248), 90)
        canvas.polygon(oval((centre[0] - reach / 3, centre[1] - reach / 3), reach / 4, reach / 4), WHITE)


def table(canvas: Canvas, rng: Random) -> None:
    """A wooden table before a wall."""
    wall = rng.choice(COLOURS["table wall"])
    edge = canvas.height * rng.randrange(22, 46) / 100
    canvas.gradient(mix(wall, WHITE, 25), mix(wall, BLACK, 14), 0, edge)
    if rng.randrange(2):
        _window(canvas, rng, edge)
    wood = rng.choice(COLOURS["table wood"])
    canvas.gradient(mix(wood, WHITE, 12), mix(wood, BLACK, 18), edge, canvas.height)
    middle = canvas.width / 2
    for plank in range(-7, 8):
        foot = middle + plank * canvas.width * 0.21
        canvas.stroke(
            [(middle + (foot - middle) * 0.62, edge), (foot, canvas.height)],
            1.6,
            mix(wood, BLACK, 38),
        )
        for _ in range(3):
            x = foot + rng.randrange(4, 40)
            grain = [
                (middle + (x - middle) * 0.62, edge),
                (x + rng.randrange(-6, 7), canvas.height),
            ]
            canvas.stroke(grain, 0.8, mix(wood, BLACK, rng.randrange(8, 20)))
    canvas.gradient(mix(wood, BLACK, 45), mix(wood, BLACK, 10), edge - 1, edge + 3)


def cloth(canvas: Canvas, rng: Random) -> None:
    """A chequered cloth from above."""
    ground = rng.choice([(244, 240, 230), (236, 240, 246)])
    stripe = rng.choice(COLOURS["cloth stripes"])
    canvas.gradient(ground, mix(ground, BLACK, 10), 0, canvas.height)
    step = rng.randrange(34, 60)
    for x in range(rng.randrange(step) - step, canvas.width, step):
        canvas.polygon(
            rectangle(x, 0, x + step / 2, canvas.height),
            stripe,
            95,
        )
    for y in range(rng.randrange(step) - step, canvas.height, step):
        canvas.polygon(rectangle(0, y, canvas.width, y + step / 2), stripe, 95)


def foliage(canvas: Canvas, rng: Random) -> None:
    """Leaves, the far ones out of focus."""
    green = rng.choice(COLOURS["foliage"])
    canvas.gradient(mix(green, WHITE, 24), mix(green, BLACK, 46), 0, canvas.height)
    for _ in range(26):
        centre = canvas.anywhere(rng)
        reach = rng.randrange(10, 44)
        tone = mix(green, rng.choice([WHITE, BLACK, (206, 214, 70)]), rng.randrange(8, 45))
        canvas.polygon(oval(centre, reach, reach), tone, 130)
    canvas.soften(3)
    for _ in range(rng.randrange(9, 18)):
        tone = mix(green, rng.choice([WHITE, BLACK, (160, 200, 60)]), rng.randrange(10, 40))
        _leaf(canvas, rng, canvas.anywhere(rng), tone)


def big_leaf(canvas: Canvas, rng: Random) -> None:
    """One large leaf with veins, filling the image."""
    green = rng.choice(COLOURS["big leaf"])
    canvas.gradient(mix(green, WHITE, 20), mix(green, BLACK, 28), 0, canvas.height)
    tilt = rng.randrange(-60, 61)
    middle = canvas.height / 2
    vein = mix(green, WHITE, 34)
    canvas.stroke([(0, middle - tilt), (canvas.width, middle + tilt)], 5, vein)
    for x in range(-200, canvas.width + 200, 46):
        y = middle - tilt + 2 * tilt * x / canvas.width
        for side in (-1, 1):
            canvas.stroke([(x, y), (x + 70, y + side * 110), (x + 170, y + side * 260)], 2, vein)
    for _ in range(rng.randrange(3, 12)):
        centre = canvas.anywhere(rng)
        reach = rng.randrange(3, 8)
        canvas.shaded(
            oval(centre, reach, reach * 0.85),
            WHITE,
            mix(green, BLACK, 10),
            (centre[0] - 2, centre[1] - 2),
            1.3 * reach,
        )


def street(canvas: Canvas, rng: Random) -> None:
    """Houses with windows along a road."""
    ground = canvas.height * rng.randrange(76, 88) / 100
    _heaven(canvas, rng, ground)
    x = -20
    while x < canvas.width:
        wide = rng.randrange(44, 96)
        top = ground * rng.randrange(14, 62) / 100
        wall = rng.choice(COLOURS["street walls"])
        _house(canvas, (x, top), wide, ground, wall, rng)
        x += wide + rng.randrange(0, 8)
    canvas.soften(1)
    canvas.gradient((128, 128, 134), (84, 84, 90), ground, canvas.height)
    canvas.gradient((190, 186, 178), (160, 156, 150), ground, ground + 8)
    for x in range(rng.randrange(60), canvas.width, 80):
        y = (ground + 8 + canvas.height) / 2
        canvas.polygon([(x, y - 2), (x + 40, y - 2), (x + 38, y + 3), (x - 2, y + 3)], (236, 232, 214))


def sea(canvas: Canvas, rng: Random) -> None:
    """A sea with waves and a rocky coast under a large sky."""
    horizon = canvas.height * rng.randrange(62, 76) / 100
    _heaven(canvas, rng, horizon)
    blue = rng.choice(COLOURS["sea"])
    canvas.gradient(mix(blue, WHITE, 25), mix(blue, BLACK, 28), horizon, canvas.height)
    for _ in range(36):
        y = rng.randrange(int(horizon) + 3, canvas.height)
        x = rng.randrange(canvas.width)
        long = 5 + 30 * (y - horizon) / canvas.height
        canvas.stroke([(x, y), (x + long, y)], 1.2, mix(blue, WHITE, rng.randrange(30, 60)))
    rock = rng.choice(COLOURS["sea rocks"])
    _hills(canvas, rng, canvas.height * rng.randrange(86, 94) / 100, rock, swing=12)


def wall(canvas: Canvas, rng: Random) -> None:
    """A wall with striped paper, bricks or plain paint."""
    tone = rng.choice(COLOURS["wall"])
    canvas.gradient(mix(tone, WHITE, 22), mix(tone, BLACK, 18), 0, canvas.height)
    kind = rng.randrange(3)
    if kind == 0:
        for x in range(rng.randrange(30), canvas.width, 44):
            canvas.polygon(rectangle(x, 0, x + 20, canvas.height), WHITE, 60)
    elif kind == 1:
        _bricks(canvas, rng)
    if rng.randrange(2):
        skirting = canvas.height * 0.93
        canvas.gradient((236, 232, 224), (206, 200, 190), skirting, canvas.height)
        canvas.gradient(mix(tone, BLACK, 40), mix(tone, BLACK, 20), skirting - 2, skirting)


def snow(canvas: Canvas, rng: Random) -> None:
    """A snowy field with firs."""
    ground = canvas.height * rng.randrange(48, 66) / 100
    _heaven(canvas, rng, ground + 16)
    _hills(canvas, rng, ground - 18, (190, 206, 224), swing=16)
    for _ in range(rng.randrange(5, 12)):
        x = rng.randrange(canvas.width)
        tall = rng.randrange(26, 70)
        tone = mix((40, 86, 74), WHITE, rng.randrange(5, 35))
        for step in range(3):
            top = ground + 8 - tall + step * tall * 0.25
            wide = tall * (0.14 + 0.08 * step)
            canvas.polygon([(x, top), (x + wide, top + tall * 0.42), (x - wide, top + tall * 0.42)], tone)
    _hills(canvas, rng, ground, (238, 242, 248), swing=8)
    canvas.gradient((240, 244, 250), (198, 212, 230), ground + 14, canvas.height)


BACKDROPS: dict[str, Callable[[Canvas, Random], None]] = {
    drawer.__name__: drawer
    for drawer in (
        sky,
        meadow,
        beach,
        sand,
        water,
        table,
        cloth,
        foliage,
        big_leaf,
        street,
        sea,
        wall,
        snow,
    )
}


def _heaven(canvas: Canvas, rng: Random, end: float) -> None:
    top, bottom = rng.choice(SKIES)
    canvas.gradient(top, bottom, 0, end)
    if rng.randrange(4) == 0:
        sun = (rng.randrange(canvas.width), end * rng.randrange(15, 50) / 100)
        canvas.glow(oval(sun, 26, 26), (255, 250, 220), 230, 9)
    for _ in range(rng.randrange(1, 5)):
        x = rng.randrange(canvas.width)
        y = end * rng.randrange(8, 75) / 100
        long = rng.randrange(24, 64)
        for step in (-1, 0, 1):
            puff = oval((x + step * long * 0.55, y - (5 if step == 0 else 0)), long * 0.6, long * 0.2 + 2)
            canvas.glow(puff, WHITE, 190, 4)


def _hills(canvas: Canvas, rng: Random, height: float, colour: Colour, *, swing: int) -> None:
    first = rng.randrange(60, 120)
    second = rng.randrange(25, 50)
    shift = rng.randrange(300)
    line: list[Point] = [
        (
            x,
            height + swing * (0.7 * math.sin((x + shift) / first) + 0.3 * math.sin((x + shift) / second)),
        )
        for x in range(-8, canvas.width + 9, 8)
    ]
    base = canvas.height + 5
    canvas.polygon([*line, (canvas.width + 8, base), (-8, base)], colour)


def _grains(canvas: Canvas, rng: Random, tone: Colour, top: float, *, count: int) -> None:
    for _ in range(count):
        x = rng.randrange(canvas.width)
        y = rng.randrange(int(top), canvas.height)
        grain = mix(tone, rng.choice([WHITE, (100, 76, 50)]), rng.randrange(12, 40))
        canvas.polygon(rectangle(x, y, x + 1.5, y + 1.2), grain)


def _weed(canvas: Canvas, rng: Random, x: int, colour: Colour) -> None:
    tall = rng.randrange(40, 120)
    sway = rng.randrange(6, 16)
    stalk = [(x + sway * math.sin(step / 2), canvas.height - tall * step / 12) for step in range(13)]
    for step, (point, following) in enumerate(pairwise(stalk)):
        canvas.stroke([point, following], 7 - step * 0.45, colour)


def _leaf(canvas: Canvas, rng: Random, centre: Point, colour: Colour) -> None:
    size = rng.randrange(18, 46)
    angle = math.radians(rng.randrange(360))
    cos = math.cos(angle) * size
    sin = math.sin(angle) * size
    shape = smooth(OUTLINES["leaf"])
    placed = [(centre[0] + x * cos - y * sin, centre[1] + x * sin + y * cos) for x, y in shape]
    canvas.shaded(
        placed,
        mix(colour, WHITE, 25),
        mix(colour, BLACK, 15),
        (centre[0] - size / 2, centre[1] - size / 2),
        1.6 * size,
    )
    canvas.stroke(
        [(centre[0] - cos, centre[1] - sin), (centre[0] + cos, centre[1] + sin)],
        1.2,
        mix(colour, BLACK, 30),
    )


def _window(canvas: Canvas, rng: Random, edge: float) -> None:
    left = rng.randrange(10, max(11, canvas.width - 110))
    wide = rng.randrange(70, 110)
    frame = rectangle(left, -5.0, left + wide, edge * 0.7)
    canvas.polygon(frame, (244, 242, 236))
    half = wide / 2
    for x in (left + 4, left + half + 2):
        pane = rectangle(x, -5.0, x + half - 6, edge * 0.7 - 5)
        canvas.polygon(pane, (176, 212, 234))


def _house(canvas: Canvas, corner: tuple[int, float], wide: int, ground: float, tone: Colour, rng: Random) -> None:
    x, top = corner
    right = x + wide
    canvas.shaded(
        rectangle(x, top, right, ground),
        mix(tone, WHITE, 15),
        mix(tone, BLACK, 22),
        (x, top),
        ground,
    )
    if rng.randrange(2):
        canvas.polygon(
            [(x - 4, top), (right + 4, top), (x + wide / 2, top - wide * 0.35)],
            mix(tone, (120, 50, 40), 60),
        )
    y = top + 12
    while y < ground - 24:
        for column in range(x + 8, right - 12, 20):
            lit = rng.choice(COLOURS["house windows"])
            canvas.polygon(rectangle(column, y, column + 11, y + 15), lit)
        y += 28


def _bricks(canvas: Canvas, rng: Random) -> None:
    base = rng.choice(COLOURS["bricks"])
    canvas.gradient(mix(base, WHITE, 40), mix(base, WHITE, 25), 0, canvas.height)
    for row, y in enumerate(range(0, canvas.height, 16)):
        for x in range(-20 * (row % 2) - 20, canvas.width, 40):
            tone = mix(base, rng.choice([WHITE, BLACK]), rng.randrange(2, 18))
            canvas.polygon(rectangle(x, y, x + 37, y + 13), tone)
