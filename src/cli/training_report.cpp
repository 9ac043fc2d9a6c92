#include "src/cli/training_report.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace spillway::cli {
namespace {

using nlohmann::json;

double seconds(um::Nanoseconds time) { return static_cast<double>(time.count()) * 1e-9; }

json to_json(const um::Counters& counters) {
  return {{"bytes_prefetched", counters.bytes_prefetched.count()},
          {"bytes_offloaded", counters.bytes_offloaded.count()},
          {"faults", counters.faults},
          {"evictions", counters.evictions},
          {"refused_hints", counters.refused_hints},
          {"fault_seconds", seconds(counters.fault_time)}};
}

um::Counters sum(um::Counters a, const um::Counters& b) {
  a.faults += b.faults;
  a.evictions += b.evictions;
  a.refused_hints += b.refused_hints;
  a.discarded_pages += b.discarded_pages;
  a.bytes_prefetched += b.bytes_prefetched;
  a.bytes_offloaded += b.bytes_offloaded;
  a.fault_time += b.fault_time;
  return a;
}

um::Bytes peak_resident_set() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return um::Bytes{static_cast<std::uint64_t>(usage.ru_maxrss) << 10U};
}

}  // namespace

TrainingReport::TrainingReport(const std::string& json_path, std::size_t batch, um::Bytes budget)
    : json_{json_path}, batch_{batch}, budget_{budget} {}

void TrainingReport::step(std::uint64_t step, std::uint64_t epoch, const StepReport& report) {
  steps_.push_back(report);
  json line{{"step", step},
            {"epoch", epoch},
            {"loss", report.loss},
            {"correct", report.correct},
            {"seconds", seconds(report.duration)},
            {"stalled_seconds", seconds(report.stalled)},
            {"near_peak_bytes", report.near_peak.count()}};
  line.update(to_json(report.counters));
  json_.write(line);
  progress_.show(fmt::format(
      "step {} (epoch {})  loss {:.4f}  {:.1f} images/s  near {} of {}  in {} out {}  faults {}",
      step, epoch, report.loss, images_per_second(report.duration), um::to_string(report.near_peak),
      um::to_string(budget_), um::to_string(report.counters.bytes_prefetched),
      um::to_string(report.counters.bytes_offloaded), report.counters.faults));
}

void TrainingReport::evaluation(std::uint64_t step, std::uint64_t epoch,
                                const Evaluation& evaluation) {
  evaluation_ = evaluation;
  json_.write({{"evaluation",
                {{"step", step},
                 {"epoch", epoch},
                 {"test_loss", evaluation.loss},
                 {"test_accuracy", evaluation.accuracy}}}});
  progress_.end();
  progress_.show(fmt::format("epoch {}: test loss {:.4f}, accuracy {:.2f} %", epoch,
                             evaluation.loss, 100 * evaluation.accuracy));
  progress_.end();
}

um::Nanoseconds TrainingReport::median_step() const {
  std::vector<um::Nanoseconds> times;
  for (const StepReport& step : steps_) times.push_back(step.duration);
  if (times.size() > 1) times.erase(times.begin());
  if (times.empty()) return um::Nanoseconds{0};
  std::ranges::sort(times);
  return times[times.size() / 2];
}

void TrainingReport::finish(json summary, std::optional<um::Nanoseconds> predicted) {
  progress_.end();
  um::Counters counters;
  um::Nanoseconds stalled{0};
  for (const StepReport& step : steps_) {
    counters = sum(counters, step.counters);
    stalled += step.stalled;
  }
  summary.update(to_json(counters));
  summary["stalled_seconds"] = seconds(stalled);
  summary["steps_run"] = steps_.size();
  summary["median_step_seconds"] = seconds(median_step());
  summary["images_per_second"] = images_per_second(median_step());
  summary["predicted_step_seconds"] = predicted ? json(seconds(*predicted)) : json(nullptr);
  if (!steps_.empty()) {
    summary["first_loss"] = steps_.front().loss;
    summary["last_loss"] = steps_.back().loss;
  }
  if (evaluation_) {
    summary["test_accuracy"] = evaluation_->accuracy;
    summary["test_loss"] = evaluation_->loss;
  }
  summary["peak_resident_set_bytes"] = peak_resident_set().count();
  json_.write({{"summary", summary}});
  print(summary);
}

double TrainingReport::images_per_second(um::Nanoseconds step) const {
  return step.count() == 0 ? 0 : static_cast<double>(batch_) / seconds(step);
}

void TrainingReport::print(const json& summary) const {
  const auto bytes = [&](const char* key) {
    return um::to_string(um::Bytes{summary.at(key).get<std::uint64_t>()});
  };
  const double median = summary.at("median_step_seconds").get<double>();
  fmt::print(stderr, "{} steps, median {:.4f} s ({:.1f} images/s), waiting {:.2f} s in all\n",
             steps_.size(), median, summary.at("images_per_second").get<double>(),
             summary.at("stalled_seconds").get<double>());
  fmt::print(stderr, "near peak {} of {}; moved {} in, {} out; {} faults, {} evictions\n",
             bytes("near_peak_bytes"), bytes("budget_bytes"), bytes("bytes_prefetched"),
             bytes("bytes_offloaded"), summary.at("faults").get<std::uint64_t>(),
             summary.at("evictions").get<std::uint64_t>());
  if (const auto refused = summary.at("refused_hints").get<std::uint64_t>(); refused > 0) {
    fmt::print(stderr, "{} prefetched pages were refused for want of near memory\n", refused);
  }
  fmt::print(stderr, "weights {}\n", summary.at("weights_sha256").get<std::string>());
  const json& predicted = summary.at("predicted_step_seconds");
  if (predicted.is_null() || steps_.size() < 2) return;
  const double error = predicted.get<double>() / median - 1;
  fmt::print(stderr, "predicted step {:.4f} s ({:+.1f} %){}\n", predicted.get<double>(),
             100 * error,
             std::abs(error) > 0.15
                 ? ": more than 15 % off; the machine was busy, or the profile is of another one"
                 : "");
}

}  // namespace spillway::cli
