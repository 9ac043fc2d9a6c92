#pragma once

#include <cstddef>

#include "nets/network.h"
#include "prefetch/plan.h"
#include "src/ops/backend.h"
#include "src/plan/budget.h"
#include "src/plan/memory_mode.h"
#include "src/plan/plans.h"
#include "src/plan/workload.h"
#include "src/train/session.h"

namespace spillway::test {

/// A network ready to train on this machine's processor: resident, or within the smallest budget
/// there is unless another is given. What may not be read before it is written is poisoned.
class NetworkInMemory {
 public:
  NetworkInMemory(nets::Network network, const StepOptions& options, MemoryMode memory);
  /// On another processor.
  NetworkInMemory(ExecutionContext context, nets::Network network, const StepOptions& options,
                  MemoryMode memory);
  /// Likewise, within `budget`, of which a resident run takes no notice.
  NetworkInMemory(ExecutionContext context, nets::Network network, const StepOptions& options,
                  MemoryMode memory, const Budget& budget);
  /// Each batch of `options` in sub-batches of at most `sub_batch`.
  NetworkInMemory(nets::Network network, const StepOptions& options, MemoryMode memory,
                  std::size_t sub_batch);

  [[nodiscard]] Session& session() { return session_; }
  [[nodiscard]] const nets::Network& network() const { return network_; }
  [[nodiscard]] const Step& training_step() const { return workload_.training(); }
  [[nodiscard]] const prefetch::Plan& training_plan() const { return plans_.training.back(); }
  [[nodiscard]] const Plans& plans() const { return plans_; }
  [[nodiscard]] const Workload& workload() const { return workload_; }

 private:
  NetworkInMemory(ExecutionContext context, nets::Network network, const StepOptions& options,
                  MemoryMode memory, std::size_t sub_batch, const Budget& budget);

  ExecutionContext context_;
  nets::Network network_;
  Workload workload_;
  Plans plans_;
  Session session_;
};

}  // namespace spillway::test
