#include "src/bench/train/train_trial.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "prefetch/files/json.h"
#include "prefetch/files/plan_file.h"
#include "src/io/data/batch_loader.h"
#include "src/io/data/open_dataset.h"
#include "src/plan/memory_choice.h"
#include "src/plan/plan_question.h"
#include "src/run/link_profiler.h"
#include "src/run/measured_profile.h"
#include "um/error.h"

namespace spillway {
namespace {

// Zero where one began before the other ended.
Seconds time_between(const Round& a, const Round& b) {
  return std::max({Seconds{0}, Seconds{a.begin - b.end}, Seconds{b.begin - a.end}});
}

bool is_same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

constexpr float kLearningRate = 0.01F;

std::optional<PlanOfFile> file_of(const TrainStrategy& strategy, const Workload& workload) {
  const std::string& name = strategy.plan_file;
  if (name.empty()) return std::nullopt;
  return PlanOfFile{
      .plan = prefetch::read_plan(prefetch::JsonFile{name}, workload.training().graph),
      .name = name};
}

}  // namespace

TrainSubject::TrainSubject(std::string name, nets::Network network, const SizeModel& size_model,
                           const StepOptions& step)
    : name_{std::move(name)},
      network_{std::move(network)},
      batch_{step.batch},
      workload_{network_, size_model, step} {}

um::Bytes TrainSubject::image_bytes() const {
  return 3 * um::Bytes{batch_ * network_.input().elements() * sizeof(float)};  // two in the loader
}

std::string TrainSubject::description() const {
  return name_ + " at batch " + std::to_string(batch_);
}

void TrainSubject::measure(ExecutionContext& context, const Means& means,
                           const std::stop_token& stop, const OnProgress& on_progress) {
  profile_ = measure_profile(context,
                             {.workload = workload_,
                              .limit = means.limit,
                              .mode = MemoryMode::kManaged,
                              .space = means.space},
                             stop, on_progress);
  if (!means.with_copies) return;
  copy_profile_ = profile_;
  um::ManagedOptions options = means.space;
  options.page = workload_.page();
  copy_profile_->link =
      measure_link({.device = *context.device,
                    .mode = MemoryMode::kCopy,
                    .options = options,
                    .limit = means.limit},
                   workload_.training(), *context.backend, *profile_, *context.compute, stop);
}

const prefetch::Profile& TrainSubject::profile(MemoryMode memory) const {
  const auto& profile = memory == MemoryMode::kCopy ? copy_profile_ : profile_;
  um::expects(profile.has_value(), "a subject that was measured");
  return *profile;
}

void TrainSubject::draw(std::uint64_t seed) {
  const DatasetPair data = open_dataset("synthetic", dataset_options(network_, batch_, seed));
  BatchLoader loader{*data.train, batch_, seed, 0, {.prefetch_depth = 1}};
  images_ = loader.next();
}

Plans TrainSubject::resident_plans() const {
  constexpr um::Bytes kEndless{1ULL << 62U};
  return answer({.steps = workload_,
                 .profile = profile(MemoryMode::kResident),
                 .budget = kEndless,
                 .request = {.memory = MemoryMode::kResident}})
      .plans;
}

Seconds step_about(std::span<const Round> rounds, std::span<const Round> resident) {
  um::expects(!resident.empty(), "a resident run to compare with");
  constexpr std::size_t kNearest = 3;
  std::vector<Round> by_distance(resident.begin(), resident.end());
  Samples steps;
  for (const Round& round : rounds) {
    std::ranges::stable_sort(by_distance, {},
                             [&](const Round& other) { return time_between(round, other); });
    for (std::size_t i = 0; i < std::min(kNearest, by_distance.size()); ++i) {
      steps.add(by_distance[i].step);
    }
  }
  if (rounds.empty()) {
    for (const Round& round : resident) steps.add(round.step);
  }
  return steps.timing().median;
}

bool is_warm(std::size_t steps, Seconds before, Seconds last) {
  constexpr double kHardlyShorter = 0.98;
  if (steps < kMinWarmUps) return false;
  return steps >= kMaxWarmUps || last >= kHardlyShorter * before;
}

bool are_same_losses(const std::vector<float>& a, const std::vector<float>& b) {
  const std::size_t count = std::min(a.size(), b.size());
  return std::ranges::equal(std::span{a}.first(count), std::span{b}.first(count), is_same_bits);
}

std::vector<std::string> complaints_about(const RunRecord& run_record, const RunRecord* expected) {
  std::vector<std::string> all;
  if (run_record.near_peak > run_record.budget) {
    all.push_back(run_record.name + ", took " + um::to_string(run_record.near_peak) +
                  " of near memory, more than its budget of " + um::to_string(run_record.budget));
  }
  if (expected == nullptr) return all;
  if (!run_record.repeats_itself) {
    all.push_back(run_record.name + ", had other losses in one round than in another");
  }
  if (!are_same_losses(run_record.losses, expected->losses)) {
    all.push_back(run_record.name + ", had other losses than " + expected->name);
  }
  return all;
}

void TrainTrial::plan(const um::Device& device) {
  try {
    const Workload& workload = subject_.workload();
    PlanAnswer planned = answer({.steps = workload,
                                 .profile = subject_.profile(strategy_.memory),
                                 .budget = budget_,
                                 .request = strategy_.request(),
                                 .file = file_of(strategy_, workload)});
    const prefetch::Plan& plan = planned.plans.training;
    expect_budget_kept(strategy_.memory, plan.residency == prefetch::Residency::kOnDemand, device);
    predicted_ = planned.step;
    plans_ = std::move(planned.plans);
  } catch (const um::Error& error) {
    failure_ = error.what();
  }
}

void TrainTrial::train(ExecutionContext& context, const TrainRound& round,
                       const std::stop_token& stop) {
  um::expects(plans_.has_value() && !has_failed(), "a trial that was planned");
  const auto begin = std::chrono::steady_clock::now();
  try {
    Session session{context, subject_.workload(), *plans_, strategy_.memory, round.space, stop};
    session.state().initialise(round.seed);
    const Samples steps = train_steps(session, round);
    rounds_.push_back(
        {.begin = begin, .end = std::chrono::steady_clock::now(), .step = steps.timing().median});
  } catch (const um::Error& error) {
    failure_ = error.what();
  }
}

Samples TrainTrial::train_steps(Session& session, const TrainRound& round) {
  std::vector<float> losses;
  const auto train_step = [&] {
    StepReport report = session.train({.seed = round.seed,
                                       .step = losses.size(),
                                       .learning_rate = kLearningRate,
                                       .batch = &subject_.images(),
                                       .next_batch = &subject_.images()});
    losses.push_back(report.loss);
    near_peak_ = std::max(near_peak_, session.near_peak());
    if (report.stalled) last_stalled_ = *report.stalled;
    return report;
  };
  Seconds before{0};
  Seconds last = train_step().duration;
  while (!is_warm(losses.size(), before, last)) {
    before = std::exchange(last, train_step().duration);
  }
  Samples steps;
  for (std::size_t i = 0; i < round.steps; ++i) {
    const StepReport report = train_step();
    count(report);
    steps.add(report.duration);
  }
  timeline_ = session.timeline();
  if (losses_.empty()) losses_ = losses;
  repeats_itself_ = repeats_itself_ && are_same_losses(losses_, losses);
  return steps;
}

RunRecord TrainTrial::run_record() const {
  return {.name = description(*this),
          .budget = plans_ ? plans_->budget : budget_,
          .near_peak = near_peak_,
          .losses = losses_,
          .repeats_itself = repeats_itself_};
}

void TrainTrial::count(const StepReport& report) {
  samples_.add(report.duration);
  counters_ += report.counters;
  stalled_ += last_stalled_;
}

std::string description(const TrainTrial& trial) {
  return trial.subject().description() + ", " + trial.strategy().name +
         (trial.strategy().is_resident() ? "" : " within " + um::to_string(trial.budget()));
}

}  // namespace spillway
