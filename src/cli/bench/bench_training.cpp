#include "src/cli/bench/bench_training.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <utility>

#include "src/bench/train/train_comparison.h"
#include "src/cli/bench/bench_tables.h"
#include "src/cli/bench/partial_measurement.h"
#include "src/cli/flags/output_path.h"
#include "src/cli/terminal/progress_line.h"
#include "src/cli/terminal/tell.h"
#include "src/plan/budget.h"
#include "um/error.h"
#include "um/machine/available_memory.h"

namespace spillway::cli {
namespace {

using um::Bytes;

constexpr const char* kHost = "host";

// What resident runs may take: the system needs some.
Bytes nine_tenths(Bytes size) { return Bytes{size.count() / 10 * 9}; }

}  // namespace

BenchTraining::BenchTraining(const BenchTrainingFlags& flags, const std::string& bench)
    : flags_{flags},
      context_{flags.device.open()},
      is_host_{bench_machine(*context_.device, flags.memory).device == kHost},
      available_{context_.device->available_memory()},
      output_{bench, bench_machine(*context_.device, flags.memory), flags.json},
      comparison_{nine_tenths(available_), flags.settling()} {
  flags.memory.expect_far();
  if (flags.timelines.empty()) return;
  expect_writable_folder(flags.timelines);
  std::filesystem::create_directories(flags.timelines);
}

const TrainSubject& BenchTraining::subject(const NetAtBatch& at) {
  for (const auto& subject : comparison_.subjects()) {
    if (subject->name() == at.net && subject->batch() == at.batch) return *subject;
  }
  const WorkloadFlags workload = flags_.workload(at);
  return comparison_.add(std::make_unique<TrainSubject>(at.net, workload.network(),
                                                        *context_.backend, workload.step()));
}

NamedBudget BenchTraining::resolve(const std::string& budget, const TrainSubject& subject) const {
  return {.text = budget,
          .size = Budget::parse(budget).resolve(subject.workload().need(), available_)};
}

std::vector<NamedBudget> BenchTraining::resolve(const std::vector<std::string>& budgets,
                                                const TrainSubject& subject) const {
  std::vector<NamedBudget> resolved;
  resolved.reserve(budgets.size());
  for (const std::string& budget : budgets) resolved.push_back(resolve(budget, subject));
  return resolved;
}

TrainRoom BenchTraining::room() const {
  return {.near = available_,
          .ram = is_host_ ? available_ : um::available_memory(),
          .is_shared = is_host_};
}

void BenchTraining::run(nlohmann::json options) {
  const TrainBenchOptions measuring = flags_.measuring();
  expect_room(comparison_, room(), !measuring.space.far.file.empty());
  if (output_.is_for_people()) output_.print_heading();
  const PartialMeasurement measurement{[&](const std::stop_token& stop) {
    ProgressLine progress;
    TrainBench bench{context_, comparison_, measuring, stop};
    bench.run([&](const std::string& text) { progress.show(text); });
  }};
  report(std::move(options));
  measurement.expect_no_failure();
  expect_run_checks();
  measurement.expect_not_interrupted();
  expect_reached();
}

void BenchTraining::report(nlohmann::json options) {
  const std::vector<TrainRow> rows = comparison_.rows();
  if (output_.is_for_people()) print_training_rows(rows);
  output_.write(std::move(options), to_json(rows));
  if (!flags_.timelines.empty()) write_timelines(comparison_, flags_.timelines);
}

void BenchTraining::expect_run_checks() const {
  const std::vector<std::string> complaints =
      comparison_.complaints(flags_.must_have_same_losses(is_host_));
  if (complaints.empty()) return;
  std::string all;
  for (const std::string& each : complaints) all += (all.empty() ? "" : "; ") + each;
  throw um::Error{"these figures are not to be trusted: " + all};
}

void BenchTraining::expect_reached() const {
  const std::size_t reached = comparison_.rows().size();
  const std::size_t wanted = comparison_.planned_rows().size();
  if (reached == 0) {
    throw um::Error{"no run was reached in time; give more --seconds, or smaller batches"};
  }
  if (reached < wanted) {
    tell("note: only {} of {} rows reached in {:g} s; give more --seconds\n", reached, wanted,
         flags_.repeats.seconds);
  }
}

}  // namespace spillway::cli
