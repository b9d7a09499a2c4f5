// For a pilot: what is on the study's page, and how it may be answered. `kind` is empty until it can be.
() => {
  const inStudy = (selector) => document.querySelector(`#study ${selector}`);
  const images = [...document.querySelectorAll("#study .frame img[data-file]")];
  const buttons = [...document.querySelectorAll("#jspsych-html-button-response-btngroup button")];
  const state = (kind, text = "") => ({
    kind,
    text,
    files: images.map((image) => image.dataset.file),
    labels: buttons.map((button) => (button.querySelector("span") ?? button).textContent),
  });
  const heading = document.querySelector("main h1");
  if (!heading || heading.hasAttribute("data-answered")) return state("");
  const refused = document.querySelector("#window");
  if (refused) return state("window", refused.textContent);
  if (!document.querySelector("#study")) return state(document.querySelector("main > .left") ? "consent" : "end", heading.textContent);
  if (buttons.length === 0 || buttons.some((button) => button.disabled)) return state("");
  if (inStudy("#card-width")) return state("card");
  if (inStudy(".check strong")) return state("attention", inStudy(".check strong").textContent);
  if (inStudy(".plate")) return state("plate");
  if (inStudy(".pair")) return state("pair");
  return state(inStudy(".shown") ? "image" : "page");
};
