// Lines of marks with their names.

const swatchPath = key => d3.svg.symbol().type(look(key).symbol).size(44)();

function legend(keys, nameOf = words) {
  return h("ul", {class: "legend"}, byImportance(keys).map(key => {
    const {colour: paint, dash} = look(key);
    const item = h("li");
    const svg =
        d3.select(item).append("svg").attr("viewBox", "0 0 30 14").attr("aria-hidden", true);
    svg.append("line")
        .attr({x1: 0, x2: 30, y1: 7, y2: 7, "stroke-width": 2, "stroke-dasharray": dash})
        .style("stroke", paint);
    svg.append("path")
        .attr("d", swatchPath(key))
        .attr("transform", "translate(15,7)")
        .style("fill", paint);
    item.append(nameOf(key));
    return item;
  }));
}

// A chart whose lines have their names at their ends; where that leaves no room for them, a legend.
function labelledChart(width, id, spec) {
  if (width >= 420) return lineChart(width, id, {...spec, hasLabels: true});
  return [legend(spec.series.map(one => one.key), key => key), lineChart(width, id, spec)];
}

// Squares of colour: [name, variable, isHatched, opacity].
function swatches(entries) {
  return h("ul", {class: "legend"}, entries.map(([name, variable, isHatched, opacity = 1]) => {
    const item = h("li");
    const svg = d3.select(item).append("svg").attr(
        {viewBox: "0 0 14 14", "aria-hidden": true, class: "square"});
    svg.append("rect").attr({x: 0, y: 1, width: 14, height: 12}).style({
      fill: `var(--${variable})`,
      "fill-opacity": opacity
    });
    if (isHatched) {
      svg.append("path").attr("d", "M0 13L10 1M5 13L14 3").style("stroke", "var(--paper)");
    }
    item.append(name);
    return item;
  }));
}
