#include "src/cli/train/training_report.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/train/shortest_decimal.h"
#include "um/count_of.h"
#include "um/nanoseconds.h"

namespace spillway::cli {
namespace {

using nlohmann::json;

constexpr double kLargestError = 0.15;  // of a prediction, without a word about it

json to_json(const um::Counters& counters) {
  return {{"bytes_prefetched", counters.bytes_prefetched.count()},
          {"bytes_offloaded", counters.bytes_offloaded.count()},
          {"faults", counters.faults},
          {"evictions", counters.evictions},
          {"refused_hints", counters.refused_hints},
          {"fault_seconds", um::seconds(counters.fault_time)}};
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
  durations_.push_back(report.duration);
  counters_ += report.counters;
  stalled_ += report.stalled;
  if (!first_loss_) first_loss_ = report.loss;
  last_loss_ = report.loss;
  json line{{"step", step},
            {"epoch", epoch},
            {"loss", report.loss},
            {"correct", report.correct},
            {"learning_rate", shortest_decimal(report.learning_rate)},
            {"seconds", um::seconds(report.duration)},
            {"stalled_seconds", um::seconds(report.stalled)},
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
  std::vector<um::Nanoseconds> times = durations_;
  if (times.size() > 1) times.erase(times.begin());
  if (times.empty()) return um::Nanoseconds{0};
  std::ranges::sort(times);
  return times[times.size() / 2];
}

void TrainingReport::finish(json summary, um::Nanoseconds predicted) {
  progress_.end();
  const um::Nanoseconds median = median_step();
  summary.update(to_json(counters_));
  summary["stalled_seconds"] = um::seconds(stalled_);
  summary["steps_run"] = durations_.size();
  summary["median_step_seconds"] = um::seconds(median);
  summary["images_per_second"] = images_per_second(median);
  summary["predicted_step_seconds"] = um::seconds(predicted);
  summary["prediction_error"] = nullptr;
  if (durations_.size() > 1) {  // the first step warms up
    summary["prediction_error"] = um::seconds(predicted) / um::seconds(median) - 1;
  }
  if (first_loss_) {
    summary["first_loss"] = *first_loss_;
    summary["last_loss"] = last_loss_;
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
  return step.count() == 0 ? 0 : static_cast<double>(batch_) / um::seconds(step);
}

void TrainingReport::print(const json& summary) const {
  const auto bytes = [&](const char* key) {
    return um::to_string(um::Bytes{summary.at(key).get<std::uint64_t>()});
  };
  fmt::print(
      stderr, "{}, median {:.4f} s ({:.1f} images/s), waiting {:.2f} s in all\n",
      um::count_of(durations_.size(), "step"), summary.at("median_step_seconds").get<double>(),
      summary.at("images_per_second").get<double>(), summary.at("stalled_seconds").get<double>());
  fmt::print(stderr, "near peak {} of {}; moved {} in, {} out; {}, {}\n", bytes("near_peak_bytes"),
             bytes("budget_bytes"), bytes("bytes_prefetched"), bytes("bytes_offloaded"),
             um::count_of(summary.at("faults").get<std::uint64_t>(), "fault"),
             um::count_of(summary.at("evictions").get<std::uint64_t>(), "eviction"));
  if (const auto refused = summary.at("refused_hints").get<std::uint64_t>(); refused > 0) {
    fmt::print(stderr, "{} not prefetched for want of near memory\n",
               um::count_of(refused, "page"));
  }
  fmt::print(stderr, "weights {}\n", summary.at("weights_sha256").get<std::string>());
  const json& error = summary.at("prediction_error");
  if (error.is_null()) return;
  fmt::print(stderr, "predicted step {:.4f} s ({:+.1f} %){}\n",
             summary.at("predicted_step_seconds").get<double>(), 100 * error.get<double>(),
             std::abs(error.get<double>()) > kLargestError
                 ? ": more than 15 % off; perhaps the machine was busy, or the times are of another"
                 : "");
}

}  // namespace spillway::cli
