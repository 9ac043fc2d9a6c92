// All that was measured on one machine.

const benchNames = {
  train: "bench train",
  planners: "bench planners",
  link: "bench link",
  paging: "bench paging"
};

// As one would type it.
function optionsText(bench) {
  const given = Object.entries(bench.options)
                    .filter(
                        ([name, value]) => name !== "notes" && value !== null && value !== false &&
                            value !== "" && value.length !== 0);
  return [
    "spillway", benchNames[bench.bench],
    ...given.map(
        ([name, value]) => value === true
            ? `--${name}`
            : `--${name} ${
                  Array.isArray(value)            ? value.join(",")
                      : typeof value === "object" ? JSON.stringify(value)
                                                  : value}`)
  ].join(" ");
}

// What a bench says of itself beside its flags.
function noteTexts(bench) {
  return Array.isArray(bench.options.notes) ? bench.options.notes.map(String) : [];
}

function measuredTable(machine) {
  const rows = machine.benches.map(
      bench =>
          [h("span", {}, bench.file, h("span", {class: "sub"}, benchNames[bench.bench])),
           dateText(bench.date), lengthText(bench.seconds),
           h("span", {}, bench.build.version,
             h("span", {class: "sub"},
               h("code", {},
                 bench.build.commit ? bench.build.commit.slice(0, 12) : "no commit known"))),
           bench.load === null ? "—" : digits(bench.load), bench.paging ?? "—", bench.rows.length,
           h("details", {class: "command"}, h("summary", {}, "options"),
             h("code", {}, optionsText(bench)),
             noteTexts(bench).map(text => h("span", {class: "sub"}, text)))]);
  return h(
      "div", {}, h("h3", {}, "Files"),
      table(["file", "date", "took", "Spillway", "load before", "paging", "cases", ""], rows));
}

function versionNotice(benches) {
  const commits = new Set(benches.map(bench => bench.build.commit ?? bench.build.version));
  return commits.size < 2 ? null
                          : "These files were measured with different versions of Spillway; " +
          "differences between files may come from that.";
}

function namesOf(benches) {
  return benches.map(bench => bench.file).join(", ");
}

function busyNotice(benches, processors) {
  const busy = benches.filter(bench => bench.load !== null && bench.load > 0.5 * processors);
  if (busy.length === 0) return null;
  const load = digits(d3.max(busy, bench => bench.load));
  return `The machine was busy when ${namesOf(busy)} began (load ${load} on ` +
      `${countOf(processors, "processor")}), so times may be too long.`;
}

function quickNotice(benches) {
  const quick = benches.filter(bench => bench.options.quick === true);
  if (quick.length === 0) return null;
  return namesOf(quick) + ": measured with --quick, a few runs of something small to see that " +
      "all works. These are no figures to judge by.";
}

function machineNotices(machine) {
  const several = [...groupBy(machine.benches, bench => bench.bench)].map(
      ([kind, own]) => own.length < 2 ? null
                                      : `There are ${own.length} files of ${benchNames[kind]}: ` +
              "each is shown by itself, by its name.");
  return [
    versionNotice(machine.benches),
    busyNotice(machine.benches, machine.machine.processors),
    quickNotice(machine.benches),
    ...several,
  ].filter(text => text !== null)
      .map(text => h("p", {class: "notice"}, text));
}

const verdictNames = {
  train: "Strategies",
  planners: "Every planner",
  link: "The link",
  paging: "Paging"
};

// The most important sentence, then the others by what was measured.
function verdict(measured) {
  const told = measured.filter(bench => bench.verdict.length > 0);
  if (told.length === 0) return [];
  const [lead] = told[0].verdict;
  const several = new Set(told.map(bench => bench.bench)).size < told.length;
  const rest =
      told.map((bench, i) => ({bench, texts: i === 0 ? bench.verdict.slice(1) : bench.verdict}))
          .filter(({texts}) => texts.length > 0);
  return [
    h("p", {class: "lead"}, lead),
    h("div", {class: "verdicts"},
      rest.map(
          ({bench, texts}) =>
              h("div", {},
                h("h3", {}, verdictNames[bench.bench] + (several ? `, ${bench.file}` : "")),
                texts.map(text => h("p", {}, text)))))
  ];
}

function machineSection(machine, i) {
  const facts = machine.machine;
  const of = (...kinds) =>
      kinds.flatMap(kind => machine.benches.filter(bench => bench.bench === kind));
  const pictures = [
    ...of("train", "planners")
        .flatMap(
            bench =>
                [...overheadFigures(bench), ...throughputFigures(bench), predictionFigure(bench)]),
    ...of("link").filter(bench => bench.rows.length > 0).map(linkFigure),
    ...of("paging").filter(bench => bench.rows.length > 0).map(pagingFigure)
  ];
  return h(
      "section", {id: `machine-${i + 1}`, "aria-labelledby": `machine-${i + 1}-name`},
      h("h2", {id: `machine-${i + 1}-name`},
        facts.device === "host" ? facts.processor : facts.device),
      h("p", {class: "facts"},
        [
          facts.device === "host" ? null : facts.processor, countOf(facts.processors, "processor"),
          bytesText(facts.memory_bytes), `kernel ${facts.kernel}`, `device ${facts.device}`,
          `machine ${facts.id}`
        ].filter(text => text !== null)
            .join(" · ")),
      machineNotices(machine), verdict(of("train", "planners", "link", "paging")),
      of("train", "planners")
          .filter(bench => bench.comparison.lines.length > 0)
          .map(comparisonTable),
      h("div", {class: "figures"}, pictures.filter(node => node !== null)),
      of("link").filter(bench => bench.rows.length > 0).map(linkTable), measuredTable(machine));
}
