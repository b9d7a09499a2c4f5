// Moving within what is over the class: from tile to tile, and through a long text.

// The tile above or below the one in focus.
export function tileBeside(name) {
  const tiles = [...document.querySelectorAll("#overlay [data-tile]")];
  const at = tiles.findIndex((tile) => tile.classList.contains("focus"));
  if (at < 0) return null;
  // the browser decides how many tiles are in a row
  const inRow = tiles.findIndex((tile) => tile.offsetTop > tiles[0].offsetTop);
  const down = Math.max(0, inRow); // in a single row, nothing is above or below
  const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -down, ArrowDown: down }[name];
  const next = Math.max(0, Math.min(tiles.length - 1, at + by));
  return tiles[next].dataset.tile;
}

// Scroll a text by a key; whether it is one of these keys.
export function scrollText(name) {
  const text = [...document.querySelectorAll("#overlay, #overlay .sheet")].findLast((each) => getComputedStyle(each).overflowY === "auto");
  const page = text ? text.clientHeight * 0.9 : 0;
  const by = { ArrowUp: -60, ArrowDown: 60, PageUp: -page, PageDown: page, " ": page, Home: -1e6, End: 1e6 }[name];
  if (by === undefined) return false;
  text?.scrollBy({ top: by });
  return true;
}
