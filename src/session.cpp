#include "src/session.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace spillway {
namespace {

um::ManagedOptions with_page(um::ManagedOptions options, um::Bytes page) {
  options.page = page;
  return options;
}

// Time of a step in which no run was under way.
um::Nanoseconds stalled_time(const prefetch::Timeline& timeline) {
  um::Nanoseconds stalled{0};
  um::Nanoseconds previous_end{0};
  for (const prefetch::Interval& run : timeline.runs) {
    stalled += run.begin - previous_end;
    previous_end = run.end;
  }
  return stalled;
}

}  // namespace

Session::Runner::Runner(const Step& step, const prefetch::StepLayout& layout, Session& session,
                        Processor& processor, const std::atomic<bool>& stop)
    : always_near{layout.graph, layout.occupancy, session.state_.addresses(step),
                  session.space_.always_near_buffer()},
      memory{session.space_.make_memory(layout, always_near)},
      executor{step, layout.plan, *processor.backend, *memory, *processor.compute, stop} {}

Session::Session(Processor& processor, const Workload& workload, const Plans& plans,
                 MemoryMode mode, const um::ManagedOptions& space, const std::atomic<bool>& stop)
    : ledger_{plans.budget},
      near_memory_{processor.device->memory(), ledger_},
      state_{workload.training(), *processor.backend, near_memory_},
      training_layout_{workload.training().graph, plans.training},
      evaluation_layout_{workload.evaluation().graph, plans.evaluation},
      space_{*processor.device,
             mode,
             with_page(space, plans.training.page),
             {&training_layout_, &evaluation_layout_},
             near_memory_,
             ledger_},
      training_{
          std::make_unique<Runner>(workload.training(), training_layout_, *this, processor, stop)},
      evaluation_{std::make_unique<Runner>(workload.evaluation(), evaluation_layout_, *this,
                                           processor, stop)} {}

StepReport Session::run(Runner& runner, const StepContext& context) {
  const um::Counters before = space_.counters();
  ledger_.reset_peak();
  const auto begin = std::chrono::steady_clock::now();
  StepResult result = runner.executor.run(context);
  const StepReport report{.loss = result.loss,
                          .correct = result.correct,
                          .learning_rate = context.learning_rate,
                          .duration = std::chrono::steady_clock::now() - begin,
                          .stalled = stalled_time(result.timeline),
                          .counters = space_.counters() - before,
                          .near_peak = ledger_.peak()};
  near_peak_ = std::max(near_peak_, report.near_peak);
  if (&runner == training_.get()) timeline_ = std::move(result.timeline);
  return report;
}

}  // namespace spillway
