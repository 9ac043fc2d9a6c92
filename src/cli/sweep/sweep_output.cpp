#include "src/cli/sweep/sweep_output.h"

#include <CLI/CLI.hpp>

#include "prefetch/files/json.h"
#include "src/cli/flags/output_path.h"
#include "src/cli/sweep/plot_script.h"

namespace spillway::cli {

void SweepOutput::add_to(CLI::App& app) {
  app.add_option("--json", json, "Write all points here as JSON, - for stdout");
  auto* const picture = app.add_option(
      "--plot", plot, "Draw the points into this PNG, PDF or SVG; needs Python's matplotlib");
  app.add_option("--plot-of", plot_of,
                 "makespan against budget, against the speed of the link, or near memory task by "
                 "task (default: link where more links than budgets are compared, else makespan)")
      ->check(CLI::IsMember({"makespan", "link", "memory"}))
      ->needs(picture);
  app.add_flag("--memory-curves", memory_curves,
               "Keep in the JSON how much near memory each task of a plan meets");
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
