#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "prefetch/runtime/step_memory.h"
#include "src/ops/backend.h"
#include "src/ops/far_kernel.h"
#include "src/program/step.h"
#include "um/bytes.h"
#include "um/options.h"

namespace spillway {

/// Where the operands of an update lie in far memory: blocks, of which the first is the parameters'
/// and the others have one float for each that is updated.
struct FarOperands {
  std::vector<um::Bytes> updated;  ///< parameters, then the optimizer's numbers
  um::Bytes gradient;
};

/// Runs far kernels over far memory: in place where that has addresses, else piece by piece through
/// a few buffers, which stay in a processor's cache.
///
/// Thread safety: one thread at a time.
class FarProcessor {
 public:
  /// `far` outlives it.
  explicit FarProcessor(um::FarSide& far) : far_{far} {}

  /// Throws: um::Error when far memory cannot be read or written.
  void run(FarKernel& kernel, const StepContext& context, const FarOperands& operands);

 private:
  [[nodiscard]] bool run_in_place(FarKernel& kernel, const StepContext& context,
                                  const FarOperands& operands);
  void run_piece(FarKernel& kernel, const StepContext& context, const FarOperands& operands,
                 const FloatRange& piece);

  um::FarSide& far_;
  std::vector<std::vector<std::byte>> buffers_;
};

/// The updates of a step on the far side.
///
/// Thread safety: one thread at a time.
class FarUpdates {
 public:
  /// Does nothing for a step that has none. Everything outlives it. Throws: um::Error when the
  /// device has no processor beside its far memory, in this memory mode.
  FarUpdates(const Step& step, const Backend& backend, prefetch::StepMemory& memory);

  /// Throws: as FarProcessor::run().
  void run(std::uint32_t update, const StepContext& context);

 private:
  std::unique_ptr<FarProcessor> processor_;
  std::vector<std::unique_ptr<FarKernel>> kernels_;  // by TaskGraph::far_updates
  std::vector<FarOperands> operands_;                // likewise
};

}  // namespace spillway
