#include "src/cli/train/training_report.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <cmath>

#include "src/cli/terminal/tell.h"
#include "src/train/shortest_decimal.h"
#include "um/nanoseconds.h"
#include "um/text/count_of.h"

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

// Of the prediction.
double error_of(const TrainingSummary& summary) {
  return um::seconds(summary.predicted_step) / um::seconds(summary.median_step) - 1;
}

}  // namespace

TrainingReport::TrainingReport(const std::string& json_path, std::size_t batch, um::Bytes budget)
    : json_{json_path}, batch_{batch}, budget_{budget} {}

void TrainingReport::step(std::uint64_t step, std::uint64_t epoch, const StepReport& report) {
  json line{{"step", step},
            {"epoch", epoch},
            {"loss", report.loss},
            {"correct", report.correct},
            {"learning_rate", shortest_decimal(report.learning_rate)},
            {"seconds", um::seconds(report.duration)},
            {"near_peak_bytes", report.near_peak.count()}};
  if (report.stalled) line["stalled_seconds"] = um::seconds(*report.stalled);
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

void TrainingReport::finish(json line, const TrainingSummary& summary) {
  progress_.end();
  line.update(to_json(summary.counters));
  line["stalled_seconds"] = um::seconds(summary.stalled);
  line["timed_steps"] = summary.timed_steps;
  line["steps_run"] = summary.steps_run;
  line["median_step_seconds"] = um::seconds(summary.median_step);
  line["images_per_second"] = images_per_second(summary.median_step);
  line["predicted_step_seconds"] = um::seconds(summary.predicted_step);
  line["prediction_error"] = nullptr;
  if (summary.steps_run > 1) {  // the first step warms up
    line["prediction_error"] = error_of(summary);
  }
  if (summary.steps_run > 0) {
    line["first_loss"] = summary.first_loss;
    line["last_loss"] = summary.last_loss;
  }
  if (summary.evaluation) {
    line["test_accuracy"] = summary.evaluation->accuracy;
    line["test_loss"] = summary.evaluation->loss;
  }
  line["peak_resident_set_bytes"] = peak_resident_set().count();
  json_.write({{"summary", line}});
  print(summary);
}

double TrainingReport::images_per_second(um::Nanoseconds step) const {
  return step.count() == 0 ? 0 : static_cast<double>(batch_) / um::seconds(step);
}

void TrainingReport::print(const TrainingSummary& summary) const {
  const bool is_all = summary.timed_steps == summary.steps_run;
  tell("{}, median {:.4f} s ({:.1f} images/s), waiting {:.2f} s in {}\n",
       um::count_of(summary.steps_run, "step"), um::seconds(summary.median_step),
       images_per_second(summary.median_step), um::seconds(summary.stalled),
       is_all ? "all" : um::count_of(summary.timed_steps, "timed step"));
  const um::Counters& counters = summary.counters;
  tell("near peak {} of {}; moved {} in, {} out; {}, {}\n", um::to_string(summary.near_peak),
       um::to_string(budget_), um::to_string(counters.bytes_prefetched),
       um::to_string(counters.bytes_offloaded), um::count_of(counters.faults, "fault"),
       um::count_of(counters.evictions, "eviction"));
  if (counters.refused_hints > 0) {
    tell("{} not prefetched for want of near memory\n",
         um::count_of(counters.refused_hints, "page"));
  }
  tell("weights {}\n", summary.weights_sha256);
  if (summary.steps_run < 2) return;
  const double error = error_of(summary);
  tell("predicted step {:.4f} s ({:+.1f} %){}\n", um::seconds(summary.predicted_step), 100 * error,
       std::abs(error) > kLargestError
           ? ": more than 15 % off; perhaps the machine was busy, or the times are of another"
           : "");
}

}  // namespace spillway::cli
