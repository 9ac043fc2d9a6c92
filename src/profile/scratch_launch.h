#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "prefetch/task_graph.h"
#include "src/ops/backend.h"
#include "src/profile/scratch_ring.h"
#include "src/step/step.h"
#include "um/bytes.h"

namespace spillway {

/// One launch of a step that can be run by itself, to measure it, with its operands in a scratch
/// ring. Values do not matter to the time, and no training state is touched.
class ScratchLaunch {
 public:
  /// Bytes of scratch that `task` needs with its algorithm number `algorithm`.
  [[nodiscard]] static um::Bytes size(const Step& step, prefetch::TaskId task,
                                      std::uint32_t algorithm);

  /// To be made and used on the thread that runs kernels. Both must outlive it.
  ScratchLaunch(const Step& step, prefetch::TaskId task, std::uint32_t algorithm,
                const Backend& backend);

  /// Finds places for its operands; what it reads and the ring has lost becomes zero, and is not in
  /// the processor's caches then; that is done or enqueued. Requires: the ring has at least size()
  /// bytes.
  void place(ScratchRing& ring);
  /// As Kernel::run(). Requires: place() has been called, and nothing else was placed since.
  void run();

 private:
  const Backend& backend_;
  std::vector<float> byte_numbers_;  // of the batch
  Batch batch_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<ScratchRing::Piece> pieces_;  // the workspace is the last
  std::vector<bool> is_read_;               // by piece
  std::vector<std::size_t> operand_pieces_;
  std::vector<std::byte*> operands_;
  std::byte* workspace_ = nullptr;
};

}  // namespace spillway
