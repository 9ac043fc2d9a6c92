#include "src/cli/plan/noise_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "prefetch/simulate/simulate.h"
#include "src/cli/flags/number_checks.h"
#include "src/plan/percent.h"
#include "um/bytes.h"

namespace spillway::cli {
namespace {

constexpr int kDraws = 5;

}  // namespace

void NoiseFlags::add_to(CLI::App& app) {
  auto* const fraction =
      app.add_option(
             "--noise", noise,
             "Also simulate with task times varied at random by up to this much, e.g. 10%: mean "
             "and worst of five runs")
          ->check(check_noise);
  app.add_option("--seed", seed, "Random seed of the first run of --noise; the others follow")
      ->check(check_whole_number)
      ->needs(fraction);
}

nlohmann::json NoiseFlags::try_out(const prefetch::TaskGraph& graph, const prefetch::Plan& plan,
                                   const prefetch::Profile& profile) const {
  const double fraction = parse_percent(noise).value();
  double sum = 0;
  double worst = 0;
  for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
    const prefetch::SimulateOptions options{.noise = fraction, .seed = seed + draw};
    const double makespan =
        um::seconds(prefetch::simulate(graph, plan, profile, options).makespan());
    sum += makespan;
    worst = std::max(worst, makespan);
  }
  return {{"fraction", fraction},
          {"seed", seed},
          {"draws", kDraws},
          {"mean_makespan_seconds", sum / kDraws},
          {"worst_makespan_seconds", worst}};
}

}  // namespace spillway::cli
