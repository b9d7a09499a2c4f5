// The grid of a class, in which its images are as large as their own aspects and the window allow. Those that the class
// was opened with keep their places, whatever joins them; a place, or a strip next to them, is left for replacements.
import { view } from "../web/view.js";

const GAP = 10;
const ACROSS = 12; // border and padding of a card on both sides
const DOWN = 14; // the same above and below, and the space above the caption
const WIDE = 330; // at least so wide, the hints are next to the keys
const READABLE = 30_000; // area on the screen below which images are scrolled instead
const USUAL_RATIO = 4 / 3;
const WORTH = 0.59; // of the area that images could have, what places for replacements have to leave
const CARD = 4; // tracks of the grid that a card has both ways

// Area from which an image can be taken as clean with others.
const smallest = () => Number(view().dataset.pixels);

const sheet = new CSSStyleSheet();
document.adoptedStyleSheets.push(sheet);
let drawn = "";

// The area in which an image is shown on a card of this size.
function area(ratio, width, height) {
  const room = height - DOWN - (width < WIDE ? 41 : 22);
  const wide = Math.min(width - ACROSS, room * ratio);
  return wide > 0 ? (wide * wide) / ratio : 0;
}

// The grids for `count` images; `spare` of them may be replaced: the columns, the rows, and where replacements are, as
// column, row, columns, rows; without it, they follow the others. In tracks; a card has CARD both ways.
function* grids(count, spare) {
  for (let columns = 1; columns <= count + spare; columns++) {
    const [across, down] = [columns, Math.ceil(count / columns)].map((cards) => CARD * cards);
    const left = columns * Math.ceil(count / columns) - count;
    yield { across, down: CARD * Math.ceil((count + spare) / columns) };
    if (spare === 0) continue;
    if (left === 0) yield { across: across + CARD / 2, down, place: [across + 1, 1, CARD / 2, down] };
    if (left === 0) yield { across, down: down + CARD / 2, place: [1, down + 1, across, CARD / 2] };
    if (left === 1) yield { across, down, place: [across - CARD + 1, down - CARD + 1, CARD, CARD] };
  }
}

// The size of a number of tracks of `whole` pixels.
const tracks = (whole, of, count) => ((whole + GAP) * count) / of - GAP;

// The parts of a place for `count` replacements, as large as can be; fewer of them if they could not be judged.
function partsOf([column, row, columns, rows], count, size) {
  let best = { size: 0, parts: [] };
  for (const [beside, below] of [[1, 1], [2, 1], [1, 2], [2, 2], [4, 1], [1, 4]]) {
    const [wide, high] = [columns / beside, rows / below];
    if (beside * below < count || !Number.isInteger(wide) || !Number.isInteger(high) || size(wide, high) <= best.size) continue;
    const part = (at) => [column + (at % beside) * wide, row + Math.floor(at / beside) * high, wide, high];
    best = { size: size(wide, high), parts: [...Array(count).keys()].map(part) };
  }
  return best.size >= smallest() || count === 1 ? best.parts : partsOf([column, row, columns, rows], count - 1, size);
}

// The grid without scrolling in which most images can be judged, and of these the one in which they are largest; null if
// they cannot be judged there. A strip is large only where all others are small.
function fitting(ratios, count, spare, width, height) {
  let best = null;
  for (const { across, down, place } of grids(count, spare)) {
    const size = (columns, rows, ratio = USUAL_RATIO) => area(ratio, tracks(width, across, columns), tracks(height, down, rows));
    const parts = (joined) => (place ? partsOf(place, Math.max(1, Math.min(joined, 4)), size) : []);
    const isTooSmall = ([, , ...part] = []) => !(size(...part) >= smallest()) || size(...part, 1 / USUAL_RATIO) < smallest();
    if (place && (parts(spare).length < spare || isTooSmall(parts(spare)[0]))) continue;
    const [wide, high] = [tracks(width, across, CARD), tracks(height, down, CARD)];
    const areas = ratios.map((ratio) => area(ratio, wide, high));
    const shown = areas.reduce((sum, each) => sum + each, 0) / areas.length;
    const judged = areas.filter((each) => each >= smallest()).length;
    const isBetter = judged > (best?.judged ?? 0) || (judged === best?.judged && shown > best.shown);
    if (shown >= READABLE && isBetter) best = { across, high, parts, shown, judged };
  }
  const alone = spare > 0 && best !== null ? fitting(ratios, count, 0, width, height) : best;
  return alone !== null && best.shown < WORTH * alone.shown ? alone : best;
}

// The grid with most images on the screen at a time that can be judged; the others are below.
function scrolled(ratios, width, height) {
  const ratio = [...ratios].sort((one, other) => one - other)[Math.floor(ratios.length / 2)]; // whatever strips there are
  const best = { across: CARD, high: height, count: 0, size: 0, parts: () => [] };
  for (let columns = 1; columns <= 12; columns++) {
    for (let rows = 1; rows <= 8; rows++) {
      const [wide, high] = [tracks(width, columns, 1), tracks(height, rows, 1)];
      const [size, visible] = [area(ratio, wide, high), Math.min(columns * rows, ratios.length)];
      if (size < READABLE || visible < best.count || (visible === best.count && size <= best.size)) continue;
      best.high = Math.min(high, (wide - ACROSS) / Math.min(ratio, USUAL_RATIO) + DOWN + 41);
      Object.assign(best, { across: CARD * columns, count: visible, size });
    }
  }
  return best;
}

// Lay the cards out; only what changes the grid moves them.
export function layOut() {
  const cards = document.querySelector("#cards.grid");
  if (cards === null) return;
  const style = getComputedStyle(cards);
  const width = cards.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  const height = cards.clientHeight - parseFloat(style.paddingTop) - parseFloat(style.paddingBottom);
  const [count, spare] = [Number(cards.dataset.first), Number(cards.dataset.spare)];
  const ratios = [...cards.children].slice(0, count).map((card) => Number(card.dataset.ratio));
  const joined = cards.children.length - count;
  const now = [view().dataset.classKey, width, height, spare, joined, ...ratios].join(" ");
  if (now === drawn || ratios.length === 0) return;
  drawn = now;
  const { across, high, parts } = fitting(ratios, count, spare, width, height) ?? scrolled(ratios, width, height);
  const rules = parts(joined).map(
    ([column, row, columns, rows], at) =>
      `#cards.grid figure:nth-child(${count + at + 1}) { grid-area: ${row} / ${column} / span ${rows} / span ${columns}; }`,
  );
  const size = (high + GAP) / CARD - GAP;
  rules.push(`#cards.grid { grid-template-columns: repeat(${across}, minmax(0, 1fr)); grid-auto-rows: ${size}px; }`);
  sheet.replaceSync(rules.join("\n"));
}
