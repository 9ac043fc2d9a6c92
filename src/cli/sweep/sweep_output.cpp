#include "src/cli/sweep/sweep_output.h"

#include <CLI/CLI.hpp>

#include "prefetch/files/json.h"
#include "src/cli/flags/output_path.h"
#include "src/cli/sweep/plot_script.h"

namespace spillway::cli {

void SweepOutput::add_to(CLI::App& app) {
  app.add_option("--json", json, "Write all points as JSON to this file, - for standard output");
  auto* const picture = app.add_option(
      "--plot", plot, "Plot the points to this PNG, PDF or SVG file; needs Python's matplotlib");
  app.add_option(
         "--plot-of", plot_of,
         "makespan: step time against budget; link: step time against link bandwidth; memory: "
         "near memory per task (default: link if there are more links than budgets, else "
         "makespan)")
      ->check(CLI::IsMember({"makespan", "link", "memory"}))
      ->needs(picture);
  app.add_flag("--memory-curves", memory_curves,
               "Add the near memory in use at each task to the JSON");
}

void SweepOutput::expect_possible() const {
  expect_writable(json);
  expect_writable(plot);
  if (!plot.empty()) expect_plotting();
}

void SweepOutput::write(const nlohmann::json& sweep) const {
  if (!json.empty()) prefetch::write_json(sweep, json);
  if (plot.empty() || sweep.at("points").empty()) return;
  draw_sweep(sweep, plot, plot_of);
}

}  // namespace spillway::cli
