#include "src/bench/train/train_timelines.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "prefetch/files/json.h"
#include "prefetch/files/plan_file.h"
#include "prefetch/simulate/chrome_trace.h"
#include "prefetch/simulate/simulate.h"

namespace spillway {
namespace {

// The last step of `trial`; in which nothing moves, what was measured alone.
nlohmann::json trace_of(const TrainTrial& trial) {
  const prefetch::TaskGraph& graph = trial.subject().workload().training().graph;
  const prefetch::Plan& plan = trial.plans()->training.back();
  std::vector<prefetch::NamedTimeline> timelines;
  if (!trial.strategy().is_resident()) {
    const prefetch::Profile& profile = trial.subject().profile(trial.strategy().memory);
    timelines.push_back({"predicted", prefetch::simulate(graph, plan, profile)});
  }
  timelines.push_back({"measured, last step", trial.timeline()});
  return prefetch::to_chrome_trace(graph, plan, timelines);
}

}  // namespace

std::string timeline_name(const TrainRowKey& key) {
  std::string name = key.net + "-b" + std::to_string(key.batch) + "-" + key.strategy.name;
  if (!key.strategy.is_resident()) name += "-" + key.budget;
  std::erase(name, ' ');
  if (name.ends_with('%')) name.replace(name.size() - 1, 1, "pct");
  const auto has_no_place = [](unsigned char c) {
    return std::isalnum(c) == 0 && c != '-' && c != '+' && c != '.';
  };
  std::ranges::replace_if(name, has_no_place, '_');
  return name;
}

void write_timelines(const TrainComparison& comparison, const std::filesystem::path& folder) {
  for (const auto& [key, trial] : comparison.planned_rows()) {
    if (key.series == TrainSeries::kBatch || trial->timeline().runs.empty()) continue;
    const std::string path = (folder / timeline_name(key)).string();
    prefetch::write_json(trace_of(*trial), path + ".trace.json");
    prefetch::write_json(prefetch::to_json(trial->plans()->training.back(),
                                           trial->subject().workload().training().graph),
                         path + ".plan.json");
  }
}

}  // namespace spillway
