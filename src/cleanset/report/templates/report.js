"use strict";
// Everything can be read without this script; it makes what finds, filters, sorts and enlarges.

const made = (name, attributes = {}, ...children) => {
  const element = Object.assign(document.createElement(name), attributes);
  element.append(...children);
  return element;
};
const words = (name) => name.replaceAll("_", " ");
const labelled = (text, control) => made("label", {}, text + " ", control);

// A search that leads to another page.
for (const place of document.querySelectorAll("[data-find]")) {
  const wanted = made("input", {type: "search", name: "find", id: "wanted"});
  const form = made("form", {action: place.dataset.find, className: "controls"},
    labelled("Find a class by {{ search_words }}", wanted), made("button", {}, "Find"));
  place.append(form);
}

// Search, filters and order of the items that a selector names.
for (const place of document.querySelectorAll("[data-controls]")) {
  const items = [...document.querySelectorAll(place.dataset.controls)];
  const groups = [...document.querySelectorAll("[data-group]")];
  const fates = new Map(items.map((item) => [item, item.dataset.fates.split(" ").map((fate) => fate.split("/"))]));
  const asked = new URLSearchParams(location.search);
  const wanted = made("input", {type: "search", id: "wanted", value: asked.get("find") ?? ""});
  const found = made("small", {id: "found"});
  found.setAttribute("role", "status");
  const filters = place.dataset.filters.split(" ").map((name, position) => {
    const values = new Set([...fates.values()].flat().map((fate) => fate[position]).filter(Boolean));
    const select = made("select", {id: "filter-" + name}, made("option", {value: ""}, "any"),
      ...[...values].map((value) => made("option", {value}, words(value))));
    select.value = values.has(asked.get(name)) ? asked.get(name) : "";
    return {name, position, select};
  });
  place.className = "controls";
  place.setAttribute("role", "search");
  place.append(labelled(place.dataset.search, wanted), ...filters.map(({name, select}) => labelled(words(name), select)));
  if (place.dataset.sorts) {
    const sorts = made("select", {id: "sort"}, ...place.dataset.sorts.split(" ").map((value) => made("option", {value}, value)));
    sorts.addEventListener("change", () => sort(items, sorts.value));
    place.append(labelled("sort by", sorts));
  }
  place.append(found);

  const show = () => {
    const typed = wanted.value.toLowerCase().split(/\s+/);
    const chosen = filters.filter(({select}) => select.value);
    let shown = 0;
    for (const item of items) {
      const fits = typed.every((word) => item.dataset.words.includes(word))
        && fates.get(item).some((fate) => chosen.every(({position, select}) => fate[position] === select.value));
      item.hidden = !fits;
      shown += fits;
    }
    const active = wanted.value.trim() || chosen.length;
    for (const group of groups) group.hidden = active && !items.some((item) => !item.hidden && group.contains(item));
    found.textContent = active ? `${shown.toLocaleString("en")} ${shown === 1 ? place.dataset.one : place.dataset.several}` : "";
    const query = new URLSearchParams(chosen.map(({name, select}) => [name, select.value]));
    if (wanted.value.trim()) query.set("find", wanted.value.trim());
    history.replaceState(null, "", location.pathname + (query.size ? `?${query}` : "") + location.hash);
  };
  wanted.addEventListener("input", show);
  for (const {select} of filters) select.addEventListener("change", show);
  if (location.search) show();
}

// By a number of each item, the largest confidence first; equal ones stay in their order.
function sort(items, name) {
  const sign = name === "confidence" ? -1 : 1;
  const sorted = items.map((item, place) => [sign * item.dataset[name], place, item]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  for (const [, , item] of sorted) item.parentElement.append(item);
}

// Tables whose headings sort: names upwards first, numbers downwards.
for (const table of document.querySelectorAll("[data-sortable]")) {
  const body = table.tBodies[0];
  for (const [column, heading] of [...table.tHead.rows[0].cells].entries()) {
    if (heading.classList.contains("unsorted")) continue;
    const button = made("button", {type: "button"}, ...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const before = heading.getAttribute("aria-sort");
      const descending = before ? before === "ascending" : heading.classList.contains("n");
      for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const rows = [...body.rows].map((row) => [row.cells[column].textContent.trim(), row]);
      rows.sort(([a], [b]) => (descending ? -1 : 1) * a.localeCompare(b, "en", {numeric: true}));
      body.append(...rows.map(([, row]) => row));
    });
  }
}

// An image in a dialog; the arrow keys go to the next one that is shown.
const links = () => [...document.querySelectorAll("a.enlarge")].filter((link) => link.offsetParent);
let dialog;
let current;

function enlarge(link) {
  if (!dialog) {
    dialog = made("dialog", {className: "enlarged"});
    dialog.setAttribute("aria-label", "Enlarged image");
    const step = (text, by) => made("button", {type: "button", onclick: (event) => { go(by); event.target.focus(); }}, text);
    const close = made("button", {type: "button", className: "close", onclick: () => dialog.close()}, "Close");
    dialog.append(made("img"), made("div", {className: "about"}), made("p", {}, step("← Previous", -1), step("Next →", 1), close));
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    dialog.addEventListener("keydown", (event) => go({ArrowLeft: -1, ArrowRight: 1}[event.key]));
    dialog.addEventListener("close", () => current.focus());
    document.body.append(dialog);
  }
  current = link;
  const small = link.querySelector("img");
  const [width, height] = ["width", "height"].map((name) => Number(small.getAttribute(name)));
  // a new element: another address on the same one would show the image before until its own is there
  const large = made("img", {src: link.href, alt: small.alt, width, height});
  large.style.width = `min(${2 * width}px, 88vw, ${60 * width / height}vh)`;
  dialog.querySelector("img").replaceWith(large);
  const caption = link.closest("figure").querySelector("figcaption");
  dialog.querySelector(".about").replaceChildren(...[...caption.childNodes].map((node) => node.cloneNode(true)));
  if (!dialog.open) dialog.showModal();
  dialog.querySelector(".close").focus(); // what had the focus may just have been replaced
}

function go(by) {
  if (!by) return;
  const every = links();
  const next = every[every.indexOf(current) + by];
  if (next) enlarge(next);
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a.enlarge");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  enlarge(link);
});

