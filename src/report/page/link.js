// How fast bytes move, by size, way and direction.

const directions = {
  in : "far to near",
  out: "near to far",
  both: "both ways at once"
};

function linkPoint(row) {
  const scale = row.bytes_per_second * row.seconds.median;
  const facts = [["bandwidth", rateText(row.bytes_per_second)], ["time", timingText(row.seconds)]];
  if (row.call_seconds) facts.push(["the call alone", secondsText(row.call_seconds.median)]);
  return {
    x: row.bytes,
    y: row.bytes_per_second,
    min: scale / row.seconds.max,
    max: scale / row.seconds.min,
    title: `${words(row.way)}, ${bytesText(row.bytes)} ${directions[row.direction]}`,
    facts
  };
}

function linkAxes(points) {
  const sizes = d3.extent(points, p => p.x);
  const rates = [d3.min(points, p => p.min) / 1.2, d3.max(points, p => p.max) * 1.2];
  const isOneSize = sizes[0] === sizes[1];
  const x = {
    domain: isOneSize ? [sizes[0] / 2, sizes[1] * 2] : sizes,
    isLog: true,
    ticks: isOneSize ? [sizes[0]] : powers(...sizes, 16),
    format: bytesText,
    label: "size of a transfer"
  };
  const y = {
    domain: rates,
    isLog: true,
    ticks: powers(...rates, 10),
    format: rate => tickText(rateText(rate)),
    label: "bandwidth"
  };
  return {x, y};
}

function linkFigure(bench) {
  const present = Object.keys(directions)
                      .filter(direction => bench.rows.some(row => row.direction === direction));
  const axes = linkAxes(bench.rows.map(linkPoint));
  const ways = [...new Set(bench.rows.map(row => row.way))];
  return figure({
    title: "Bandwidth of the link against size",
    caption: `By the way the bytes go; both axes are logarithmic, higher is better. ${bench.file}`,
    before: [legend(ways)],
    isWide: true,
    draw: (width, id) => panels(
        width, present.length,
        (each, i) => lineChart(each, id, {
          title: directions[present[i]],
          ...axes,
          height: 300,
          series: seriesByWay(bench.rows.filter(row => row.direction === present[i]), linkPoint),
        })),
    numbers: linkNumbers(bench),
  });
}

function linkNumbers(bench) {
  return table(
      ["way", "direction", "size", "bandwidth", "time", "the call alone"],
      bench.rows.map(
          row =>
              [words(row.way), directions[row.direction], bytesText(row.bytes),
               rateText(row.bytes_per_second), timingText(row.seconds),
               row.call_seconds ? secondsText(row.call_seconds.median) : "—"]));
}

// Bandwidth at the largest size that all ways of a direction have: small ones fit in the
// processor's cache.
function linkTable(bench) {
  const ways = byImportance(new Set(bench.rows.map(row => row.way)));
  const cells = new Map(Object.keys(directions).map(direction => {
    const own = bench.rows.filter(row => row.direction === direction);
    const sizes =
        [...groupBy(own, row => row.way).values()].map(rows => new Set(rows.map(row => row.bytes)));
    const size = d3.max([...(sizes[0] ?? [])].filter(one => sizes.every(all => all.has(one))));
    return [
      direction, {
        size,
        rates: new Map(
            own.filter(row => row.bytes === size).map(row => [row.way, row.bytes_per_second]))
      }
    ];
  }));
  const heads =
      Object.entries(directions)
          .map(
              ([direction, name]) => h(
                  "span", {}, name,
                  cells.get(direction).size ? h("span", {class: "sub"},
                                                `${bytesText(cells.get(direction).size)} at a time`)
                                            : null));
  return h(
      "div", {}, h("h3", {}, "The link"),
      table(
          ["way", ...heads],
          ways.map(
              way =>
                  [words(way),
                   ...[...cells.values()].map(
                       ({rates}) => (rates.has(way) ? rateText(rates.get(way)) : "—"))])));
}
