// Rows of a bench whose lines are ways of moving or of touching memory.

// A line for each way that there are rows of; `point` makes a point of a row.
function seriesByWay(rows, point) {
  const byWay = groupBy(rows, row => row.way);
  return byImportance(byWay.keys())
      .map(way => ({
             key: way,
             name: words(way),
             points: byWay.get(way).map(point).sort((a, b) => a.x - b.x)
           }));
}
