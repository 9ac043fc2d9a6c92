#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "nets/network.h"
#include "prefetch/profile.h"
#include "src/ops/backend.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "src/profile/profiler.h"
#include "src/step/step.h"
#include "um/bytes.h"
#include "um/options.h"

namespace spillway {

/// A network at a batch size, with the images and the times of tasks that all strategies share, so
/// that nothing but memory and plan differs between them. Stays where it is made.
class TrainSubject {
 public:
  TrainSubject(std::string name, nets::Network network, const SizeModel& size_model,
               const StepOptions& step);

  /// As the user calls the network.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::size_t image_size() const { return network_.input().height; }
  [[nodiscard]] std::size_t batch() const { return batch_; }
  [[nodiscard]] const Workload& workload() const { return workload_; }
  /// Memory that drawn images will take, while they are drawn.
  [[nodiscard]] um::Bytes image_bytes() const;
  /// "resnet18 at batch 16"
  [[nodiscard]] std::string description() const;

  /// What measure() needs beside a processor.
  struct Means {
    um::Bytes limit;                  ///< of near memory, which is given back
    const um::ManagedOptions& space;  ///< far memory, link and paging
    bool with_copies = false;         ///< the link of explicit copies too
  };
  /// Measures the tasks, and the link as unified memory uses it. Throws: um::Error; Interrupted.
  void measure(ExecutionContext& context, const Means& means, const std::stop_token& stop,
               const OnProgress& on_progress);
  /// Times of the tasks, and of the link as `memory` uses it. Requires: measured.
  [[nodiscard]] const prefetch::Profile& profile(MemoryMode memory) const;

  /// Draws one batch, which every step trains on: loading costs the same each time, and little.
  void draw(std::uint64_t seed);
  /// Requires: drawn.
  [[nodiscard]] const Batch& images() const { return images_; }

  /// The plans of a run in which nothing moves, and what it needs, whether there is so much memory
  /// or not. Requires: measured.
  [[nodiscard]] Plans resident_plans() const;

 private:
  std::string name_;
  nets::Network network_;
  std::size_t batch_;
  Workload workload_;
  Batch images_;
  std::optional<prefetch::Profile> profile_;
  std::optional<prefetch::Profile> copy_profile_;
};

}  // namespace spillway
