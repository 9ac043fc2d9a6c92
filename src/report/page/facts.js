// The data, and how a strategy, a way of moving or of touching memory looks in every picture.

const data = JSON.parse(document.getElementById("data").textContent);

const looks = {
  "resident": ["resident", "circle", "1 4"],
  "joint": ["blue", "circle", ""],
  "copy": ["green", "diamond", "9 3"],
  "capacity": ["orange", "square", "5 3"],
  "on-demand": ["red", "triangle-up", "2 2"],
  "fault": ["red", "triangle-up", "2 2"],
  "prefetch": ["blue", "circle", ""],
  "pinned_copy": ["green", "diamond", "9 3"],
  "pageable_copy": ["olive", "triangle-down", "5 3"],
  "file": ["purple", "square", "9 3 2 3"],
  "faults": ["red", "triangle-up", "2 2"],
  "advised": ["orange", "square", "5 3"],
  "prefetched": ["blue", "circle", ""],
  "discarded": ["purple", "diamond", "9 3"],
  "training": ["blue", "circle", ""],
  "test": ["red", "diamond", "9 3"],
  "test, top-5": ["orange", "square", "2 2"],
  "near at most": ["blue", "circle", ""],
  "moved in": ["orange", "square", "5 3"],
  "moved out": ["green", "diamond", "9 3"],
  "step": ["green", "circle", ""],
  "waiting for data": ["red", "triangle-up", "2 2"],
};

const spareLooks = [
  ["purple", "triangle-down", "9 3 2 3"],
  ["sky", "square", "6 2"],
  ["brown", "diamond", "3 3"],
  ["pink", "cross", "12 3"],
  ["olive", "triangle-up", "7 2 2 2"],
  ["resident", "cross", "4 2"],
  ["purple", "circle", "2 4"],
  ["sky", "triangle-up", ""],
  ["brown", "square", "12 2"],
  ["pink", "circle", "5 5"],
  ["olive", "diamond", ""],
  ["sky", "cross", "3 5"],
];

function assignLooks() {
  const labels = new Set();
  for (const bench of benches("train", "planners"))
    bench.rows.forEach(row => labels.add(row.label));
  if (data.trainings.length > 1) data.trainings.forEach(training => labels.add(training.file));
  let spare = 0;
  for (const label of [...labels].sort()) {
    looks[label] ??= spareLooks[spare++ % spareLooks.length];
  }
}

function benches(...kinds) {
  return data.machines.flatMap(machine => machine.benches)
      .filter(bench => kinds.includes(bench.bench));
}

function look(key) {
  const [name, symbol, dash] = looks[key] ?? ["resident", "circle", ""];
  return {colour: `var(--${name})`, symbol, dash};
}

// The order in which series stand in legends and tables.
function byImportance(keys) {
  const order = Object.keys(looks);
  const place = key => order.includes(key) ? order.indexOf(key) : order.length;
  return [...keys].sort((a, b) => place(a) - place(b) || (a < b ? -1 : 1));
}

function groupBy(rows, keyOf) {
  const groups = new Map();
  for (const row of rows) {
    const key = keyOf(row);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(row);
  }
  return groups;
}

function subject(row) {
  return `${row.net}, ${row.image_size} px`;
}
function ran(row) {
  return row.seconds !== undefined && row.seconds !== null;
}

function shareOf(row) {
  return row.budget_bytes / row.resident_bytes;
}

// What a tooltip says of a training step.
function stepFacts(row) {
  const facts = [
    ["step", secondsText(row.seconds.median)],
    ["min to max", `${secondsText(row.seconds.min)} to ${secondsText(row.seconds.max)}`],
    ["runs", `${row.seconds.runs}${row.seconds.settled ? "" : ", not settled"}`]
  ];
  if (row.ratio && row.is_comparable)
    facts.push([
      `over resident${row.resident_is === "simulated" ? " (simulated)" : ""}`, ratioText(row.ratio)
    ]);
  if (row.predicted_seconds) {
    const off = row.predicted_seconds / row.seconds.median - 1;
    facts.push([
      "predicted",
      `${secondsText(row.predicted_seconds)} (${off < 0 ? "−" : "+"}${
          Math.abs(100 * off).toFixed(0)} %)`
    ]);
  }
  facts.push(
      ["images a second", digits(row.images_per_second)],
      ["near memory", `${bytesText(row.budget_bytes)} (${percentText(shareOf(row))})`]);
  if (row.bytes_in || row.bytes_out)
    facts.push(
        ["moved in, out", `${bytesText(row.bytes_in ?? 0)}, ${bytesText(row.bytes_out ?? 0)}`]);
  if (row.faults) facts.push(["page faults", countText(row.faults)]);
  if (row.stalled_seconds) facts.push(["waiting", secondsText(row.stalled_seconds)]);
  return facts;
}
