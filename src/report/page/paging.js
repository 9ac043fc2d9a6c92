// What touching more than near memory holds costs, by pattern.

function pagingPoint(row) {
  const scale = 1 / row.plain_seconds.median;
  const facts = [
    ["touching it", timingText(row.seconds)],
    ["plain memory", secondsText(row.plain_seconds.median)], ["ratio", ratioText(row.ratio)],
    ["touched", bytesText(row.bytes)]
  ];
  for (const [name, key] of [["page faults", "faults"], ["evictions", "evictions"]]) {
    if (row[key] !== undefined && row[key] !== null) facts.push([name, countText(row[key])]);
  }
  if (row.bytes_in !== undefined)
    facts.push(
        ["moved in, out", `${bytesText(row.bytes_in ?? 0)}, ${bytesText(row.bytes_out ?? 0)}`]);
  return {
    x: row.near_times,
    y: row.ratio,
    min: row.seconds.min * scale,
    max: row.seconds.max * scale,
    title: `${row.pattern}, ${row.way}, ${plain(row.near_times)} times near memory`,
    facts
  };
}

function pagingAxes(points) {
  const times = [...new Set(points.map(p => p.x))].sort((a, b) => a - b);
  const ratios = [Math.min(0.9, d3.min(points, p => p.min)), d3.max(points, p => p.max) * 1.15];
  const x = {
    domain: [times[0] * 0.9, times.at(-1) * 1.08],
    isLog: true,
    ticks: times,
    format: tick => plain(tick) + "×",
    label: "touched bytes over near memory"
  };
  const y = {
    domain: ratios,
    isLog: true,
    ticks: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].filter(tick => tick <= ratios[1]),
    format: tick => tick + "×",
    label: "time over plain memory's"
  };
  return {x, y};
}

function pagingNumbers(bench) {
  return table(
      ["pattern", "way", "touched", "ratio", "time", "plain", "faults", "evictions"],
      bench.rows.map(
          row =>
              [row.pattern, row.way, `${plain(row.near_times)}×`, ratioText(row.ratio),
               secondsText(row.seconds.median), secondsText(row.plain_seconds.median),
               countText(row.faults ?? 0), countText(row.evictions ?? 0)]));
}

function pagingFigure(bench) {
  const patterns = [...new Set(bench.rows.map(row => row.pattern))];
  const ways = [...new Set(bench.rows.map(row => row.way))];
  const axes = pagingAxes(bench.rows.map(pagingPoint));
  const times = axes.x.ticks;
  return figure({
    title: "Paging: time over that of plain memory",
    caption: `By the pattern of touches, lower is better; near memory ends at the dashed line. ${
        bench.file}`,
    before: [legend(ways)],
    isWide: true,
    draw: (width, id) => panels(
        width, patterns.length,
        (each, i) => lineChart(each, id, {
          title: patterns[i],
          ...axes,
          height: 270,
          marks: times[0] < 1 && times.at(-1) > 1 ? [{x: 1, name: ""}] : [],
          series: seriesByWay(bench.rows.filter(row => row.pattern === patterns[i]), pagingPoint),
        })),
    numbers: pagingNumbers(bench),
  });
}
