#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "prefetch/task_graph.h"
#include "src/backend.h"
#include "src/step.h"
#include "um/bytes.h"
#include "um/range.h"

namespace spillway {

/// One launch of a step that can be run by itself, to measure it: its operands lie one after the
/// other in a scratch block, and what it reads is zero. Values do not matter to the time, and no
/// training state is touched.
class ScratchLaunch {
 public:
  /// Bytes of scratch that `task` needs with its algorithm number `algorithm`.
  [[nodiscard]] static um::Bytes size(const Step& step, prefetch::TaskId task,
                                      std::uint32_t algorithm);

  /// Requires: `scratch` has at least size() bytes. To be made and run on the thread that runs
  /// kernels.
  ScratchLaunch(const Step& step, prefetch::TaskId task, std::uint32_t algorithm,
                const Backend& backend, um::Range scratch);
  ScratchLaunch(const ScratchLaunch&) = delete;
  ScratchLaunch& operator=(const ScratchLaunch&) = delete;
  ~ScratchLaunch() = default;

  void run();

 private:
  Batch batch_;
  StepContext context_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<std::byte*> operands_;
  std::byte* workspace_ = nullptr;
};

}  // namespace spillway
