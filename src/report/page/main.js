// The page, from top to bottom.

function timelineSection() {
  const shown = data.timelines.filter(timeline => timeline.end > 0);
  if (shown.length === 0) return null;
  return h(
      "section", {id: "timelines", "aria-labelledby": "timelines-name"},
      h("h2", {id: "timelines-name"},
        shown.length === 1 ? "One step in detail" : "Steps in detail"),
      h("p", {class: "facts", id: "timeline-keys"},
        "When each task ran, what moved meanwhile, and what was near. These files do not say " +
            "on which machine."),
      timelinePictures(shown));
}

function picturesOf(timeline) {
  return [timelineFigure(timeline), nearMemoryFigure(timeline)].filter(node => node !== null);
}

// Two files are shown; of more, the reader chooses two. A picture is made when it is first seen.
function timelinePictures(shown) {
  if (shown.length <= 2) return h("div", {class: "figures"}, shown.flatMap(picturesOf));
  const made = new Map();
  const [first, second] = startingPair(shown);
  return h("div", {}, [["Show", first], ["and below it", second]].map(([name, start]) => {
    const place = h("div", {class: "figures"});
    const choice =
        h("select", {"aria-label": `${name} the timeline`},
          shown.map((timeline, i) => h("option", {value: i}, timeline.file)));
    const show = () => {
      const key = `${name} ${choice.value}`;
      if (!made.has(key)) made.set(key, picturesOf(shown[choice.value]));
      place.replaceChildren(...made.get(key));
      redraw();
    };
    choice.value = start;
    choice.addEventListener("change", show);
    show();
    return h(
        "div", {class: "slot"}, h("label", {class: "chooser"}, h("span", {}, name), choice), place);
  }));
}

// A step with a plan, and the same without.
function startingPair(shown) {
  const files = shown.map(timeline => timeline.file);
  const find = pattern => files.findIndex(file => pattern.test(file));
  const planned = [find(/joint.*40/), find(/joint/), 0].find(place => place >= 0);
  const paged = files.indexOf(files[planned].replace("joint", "on-demand"));
  return [planned, paged >= 0 && paged !== planned ? paged : (planned + 1) % files.length];
}

function trainingSection() {
  const {trainings} = data;
  if (trainings.length === 0) return null;
  return h(
      "section", {id: "trainings", "aria-labelledby": "trainings-name"},
      h("h2", {id: "trainings-name"}, trainings.length === 1 ? "Training" : "Trainings"),
      h("p", {class: "lead"}, trainings[0].said[0]),
      h("div", {class: "figures"}, trainingFigures(trainings)));
}

function planSection() {
  if (data.plans.length === 0) return null;
  return h(
      "section", {id: "plans", "aria-labelledby": "plans-name"},
      h("h2", {id: "plans-name"}, "Plans"),
      table(
          ["file", "planner", "budget", "task runs", "run again", "out", "in"],
          data.plans.map(
              plan =>
                  [plan.file,
                   plan.planner + (plan.residency === "on-demand" ? ", pages on demand" : ""),
                   bytesText(plan.budget_bytes), plan.runs, plan.run_again,
                   bytesText(plan.offload_bytes), bytesText(plan.prefetch_bytes)])));
}

// What this page could show, and does not have: a short row each, which opens to a command. All are
// open where there is nothing else.
function missingSection() {
  const isMeasured = kind => benches(kind).some(bench => bench.rows.length > 0);
  const wanted = [
    [
      isMeasured("train"), "Strategies against budget and batch, and predictions",
      "spillway bench train --net resnet18:16 --json DIR/train.json"
    ],
    [
      isMeasured("planners"), "Every planner, executed",
      "spillway bench planners --net resnet18:16 --json DIR/planners.json"
    ],
    [
      isMeasured("link"), "Bandwidth of the link", "spillway bench link --json DIR/link.json"
    ],
    [
      isMeasured("paging"), "What paging costs", "spillway bench paging --json DIR/paging.json"
    ],
    [
      data.trainings.some(training => training.steps > 0), "Curves of a training",
      "spillway train --net resnet18 --batch 32 --data synthetic --steps 200 --budget 40% " +
          "--json DIR/run.json"
    ],
    [
      data.timelines.some(timeline => timeline.end > 0), "The timeline of a step and its memory",
      "spillway train --net resnet18 --batch 16 --data synthetic --steps 3 --budget 40% " +
          "--timeline DIR/step.json"
    ]
  ];
  const lacking = wanted.filter(([isThere]) => !isThere);
  const open = lacking.length === wanted.length;
  const missing = lacking.map(
      ([, what, command]) =>
          h("li", {}, h("details", {open}, h("summary", {}, what), h("code", {}, command))));
  const others = data.left_out.length === 0
      ? null
      : h("div", {}, h("p", {class: "facts"}, "Files that were given and could not be shown:"),
          h("ul", {class: "missing"}, data.left_out.map(complaint => h("li", {}, complaint))));
  if (missing.length === 0 && !others) return null;
  return h(
      "section", {id: "missing", "aria-labelledby": "missing-name"},
      h("h2", {id: "missing-name"}, "Not in this report"), others,
      others && missing.length > 0 ? h("p", {class: "facts"}, "What else it could show:") : null,
      h("ul", {class: "wanted"}, missing));
}

function summaryText() {
  const files = data.machines.reduce((sum, machine) => sum + machine.benches.length, 0);
  const dates = data.machines.flatMap(machine => machine.benches.map(bench => bench.date)).sort();
  const parts = [
    files > 0
        ? `${countOf(files, "file")} of measurements on ${countOf(data.machines.length, "machine")}`
        : data.trainings.length > 0 ? null : "no measurements",
    data.trainings.length > 0 ? countOf(data.trainings.length, "training") : null,
    data.timelines.length > 0 ? countOf(data.timelines.length, "timeline") : null,
    data.plans.length > 0 ? countOf(data.plans.length, "plan") : null
  ];
  const when = dates.length === 0
      ? ""
      : ` Measured ${dateText(dates[0])}${
            dates.length > 1 && dates.at(-1) !== dates[0] ? ` to ${dateText(dates.at(-1))}` : ""}.`;
  const text = parts.filter(part => part !== null).join(", ") + "." + when;
  return text[0].toUpperCase() + text.slice(1);
}

function contents(sections) {
  if (sections.length < 2) return [];
  return h(
      "ul", {},
      sections.map(
          section =>
              h("li", {},
                h("a", {href: `#${section.id}`}, section.querySelector("h2").textContent))));
}

assignLooks();
data.timelines.forEach(prepareTimeline);
const severalMachines = data.machines.length < 2
    ? null
    : h("p", {class: "notice"},
        `These measurements are of ${data.machines.length} different machines or devices. Each ` +
            "has a section of its own: times of one say nothing about another, so no table or " +
            "picture has both.");
const sections = [
  trainingSection(), ...data.machines.map(machineSection), timelineSection(), planSection(),
  missingSection()
].filter(section => section !== null);
document.getElementById("summary").textContent = summaryText();
document.getElementById("contents").append(contents(sections));
document.getElementById("made").textContent =
    `Made by spillway ${data.version} report. Everything is in this one file; it needs no network.`;
document.getElementById("main").append(
    ...[severalMachines].filter(node => node !== null), ...sections);
followTheme();
redraw();
