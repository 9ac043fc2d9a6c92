#include "src/bench/train/train_subject.h"

#include <algorithm>
#include <utility>

#include "src/io/data/batch_loader.h"
#include "src/io/data/open_dataset.h"
#include "src/profile/link_profiler.h"
#include "src/profile/measured_profile.h"
#include "um/error.h"

namespace spillway {

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
  profile_ = measure_profile(context, workload_, means.limit, MemoryMode::kManaged, means.space,
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
  return make_plans(workload_, profile(MemoryMode::kResident), kEndless,
                    {.memory = MemoryMode::kResident});
}

}  // namespace spillway
