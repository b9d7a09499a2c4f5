// The study's page: asks one person for the ratings of one list, and saves the answers as a CSV file.
"use strict";
(() => {
  const COLUMNS = ["person", "list", "position", "stimulus", "answer", "milliseconds"];
  const SIDES = ["left", "right"];
  const main = document.querySelector("main");
  const parameters = new URLSearchParams(location.search);
  const numbers = STUDY.scale.map((step) => step.rating);
  const answers = [];

  const text = (value) => {
    const element = document.createElement("span");
    element.textContent = value;
    return element.innerHTML;
  };
  const person = () => {
    const named = parameters.get("person");
    if (named !== null && /^[A-Za-z0-9._-]{1,64}$/.test(named)) return named;
    const bytes = crypto.getRandomValues(new Uint8Array(8));
    return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  };
  const image = (file, alt, kind) => `<img class="${kind}" src="images/${encodeURIComponent(file)}" alt="${alt}">`;
  const button = (label, index) => `<button type="button"><span>${text(label)}</span><kbd>${index + 1}</kbd></button>`;

  function askForList() {
    main.innerHTML = `<h1>Which images are real?</h1><form><p><label>The number of your list:
      <input name="list" type="number" min="1" max="${STUDY.lists.length}" required></label></p>
      <p><button>Continue</button></p></form>`;
    const given = parameters.get("list");
    if (given !== null)
      main.insertAdjacentHTML("beforeend", `<p class="error" role="alert">There is no list ${text(given)}:
        expected a number from 1 to ${STUDY.lists.length}.</p>`);
    main.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      parameters.set("list", new FormData(event.target).get("list"));
      begin();
    });
    main.querySelector("input").focus();
  }

  // jsPsych's buttons have no keys of their own: the digits press them
  function onDigit(event) {
    if (event.repeat || event.ctrlKey || event.altKey || event.metaKey) return;
    const buttons = main.querySelectorAll("#jspsych-html-button-response-btngroup button");
    const chosen = buttons[Number(event.key) - 1];
    if (chosen && !chosen.disabled) chosen.click();
  }

  const INSTRUCTIONS = `<h1>Which images are real?</h1><div class="left">
    <p>You will see images one after the other. Some are photographs as they were taken. Others were modified by a
    computer afterwards. For each image, choose how sure you are, from surely modified to surely real.</p>
    <p>A change may be small, and may be anywhere in the image. Low resolution, blur or an odd scene alone do not mean
    that an image was modified. There is no time limit. Please do not search for the images elsewhere.</p>
    <p>First you see a few images in two versions, and say which one was modified. Now and then an attention check
    asks for a certain answer. ${STUDY.saved_at ? "Your answers are saved at the end." :
    "At the end your browser saves a file with your answers: please send it to the organizers."} Closing this page
    before the end discards your answers.</p></div>`;

  function shown(trial) {
    if (trial.kind === "pair")
      return `<h1>Which of the two was modified?</h1><div class="pair">
        ${image(trial.left, "the left image", "")}${image(trial.right, "the right image", "")}</div>`;
    if (trial.kind === "attention")
      return `<h1>Was this image modified?</h1>
        <div class="check"><p>This is an attention check, not an image.
        Please choose <strong>${text(trial.choose)}</strong>.</p></div>`;
    return `<h1>Was this image modified?</h1>${image(trial.file, "the image to be rated", "shown")}`;
  }

  function asked(plugin, trials, who, list) {
    return trials.map((trial, index) => ({
      type: plugin,
      stimulus: shown(trial),
      choices: trial.kind === "pair" ? ["the left one", "the right one"] : STUDY.scale.map((step) => step.label),
      button_html: button,
      button_layout: "flex",
      prompt: `<p class="progress">${index + 1} of ${trials.length}</p>`,
      on_load: () => {
        const next = trials[index + 1];
        for (const file of next ? [next.file, next.left, next.right] : [])
          if (file) new Image().src = `images/${encodeURIComponent(file)}`;
      },
      on_finish: (data) => {
        const answer = trial.kind === "pair" ? SIDES[data.response] : numbers[data.response];
        answers.push([who, list, index + 1, trial.stimulus, answer, data.rt]);
      },
    }));
  }

  // Resolves to true once a local server, `cleanset study serve`, has saved the answers. Retries bridge a short outage.
  async function kept(name, csv) {
    if (!STUDY.saved_at) return false;
    for (const seconds of [0, 1, 3, 10]) {
      await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
      const answer = await fetch(`${STUDY.saved_at}/${name}`, { method: "PUT", body: csv }).catch(() => null);
      if (answer?.ok) return true;
    }
    return false;
  }

  async function finish(who, list) {
    const csv = [COLUMNS, ...answers].map((row) => row.join(",") + "\n").join("");
    const name = `answers-${list}-${who}.csv`;
    const isKept = await kept(name, csv);
    removeEventListener("beforeunload", onLeaving);
    if (isKept) main.innerHTML = "<h1>Thank you</h1><p>Your answers are saved. You may close this page.</p>";
    else giveFile(name, csv);
  }

  function giveFile(name, csv) {
    const address = URL.createObjectURL(new Blob([csv], { type: "text/csv" }));
    main.innerHTML = `<h1>Thank you</h1><p>Your browser has just saved your answers in the file <strong id="file"></strong>.
      If it has not, save it here:</p><p><a class="button">Save my answers</a></p>`;
    const link = main.querySelector("a");
    main.querySelector("#file").textContent = name;
    link.href = address;
    link.download = name;
    link.click();
  }

  function onLeaving(event) {
    event.preventDefault();
  }

  function begin() {
    const list = Number(parameters.get("list"));
    if (!Number.isInteger(list) || list < 1 || list > STUDY.lists.length) return askForList();
    const who = person();
    main.innerHTML = '<div id="study"></div>';
    const study = initJsPsych({
      display_element: "study",
      override_safe_mode: true, // which only concerns sound and video
      on_finish: () => finish(who, list),
    });
    addEventListener("beforeunload", onLeaving);
    addEventListener("keydown", onDigit);
    const start = { type: jsPsychHtmlButtonResponse, stimulus: INSTRUCTIONS, choices: ["Begin"], button_layout: "flex" };
    return study.run([start, ...asked(jsPsychHtmlButtonResponse, STUDY.lists[list - 1], who, list)]);
  }

  begin();
})();
