"""Print `file, class or abstain` for each image in a folder, by nothing but its colors.

Each image is a PPM of 299 x 299 pixels: a header, and then red, green and blue of each pixel, a byte each.
"""

import json
import sys
from collections import Counter
from pathlib import Path

PIXELS = 299 * 299

weights = json.loads(Path("weights.json").read_text())
for path in sorted(Path(sys.argv[1]).iterdir()):
    levels = [level // 64 for level in path.read_bytes()[-3 * PIXELS :]]
    colors = Counter(16 * red + 4 * green + blue for red, green, blue in zip(*[iter(levels)] * 3, strict=True))
    log_odds = sum(weights["weights"][color] * count / PIXELS for color, count in sorted(colors.items()))
    log_odds += weights["intercept"]
    answer = "fruit" if log_odds > 0 else "creature"
    print(f"{path.name}, {answer if abs(log_odds) >= weights['threshold'] else 'abstain'}")
