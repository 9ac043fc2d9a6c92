#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>

#include "src/ops/backend.h"
#include "src/program/step.h"
#include "um/memory.h"
#include "um/stream.h"

namespace spillway {

/// Samples that a step is to load.
struct BatchSamples {
  LoadBatch load{};  ///< LoadBatch::staged() of the step's first
  const Batch* batch = nullptr;
};

/// Brings batches to the near memory in which they wait for the step that loads them (Step::staged)
/// while the step before is under way, on a stream of its own.
///
/// Thread safety: none, but for loaded().
class BatchStage {
 public:
  /// For steps that stage at most `size` bytes; none does where that is zero, and nothing is to be
  /// called but place() and settle(). Takes near memory from `memory`; both outlive it.
  /// Throws: um::OutOfMemory.
  BatchStage(ExecutionContext& context, um::Bytes size, um::Memory& memory);
  BatchStage(const BatchStage&) = delete;
  BatchStage& operator=(const BatchStage&) = delete;
  ~BatchStage() { settle(); }

  /// Puts the address of the step's staged batch into `addresses`, by DataId.
  void place(const Step& step, std::span<std::byte*> addresses) const;

  /// Returns when the samples are there for what the compute stream is given from now on; `next`
  /// will be brought when the step has loaded them, unless it is without a batch.
  /// Throws: what bringing them threw.
  void expect(const BatchSamples& now, const BatchSamples& next);
  /// The launches that read the samples have been given. Requires: called by work of the compute
  /// stream.
  void loaded();
  /// Waits until no batch is read any more: for who is about to free one.
  void settle() noexcept;

 private:
  void bring(const BatchSamples& samples);

  const Backend& backend_;
  um::Stream& compute_;
  um::Block near_;
  std::pmr::vector<std::byte> pinned_;
  std::unique_ptr<um::Stream> upload_;         // null where nothing is staged
  std::shared_ptr<const um::Event> uploaded_;  // when `pinned_` may be written again
  std::optional<BatchSamples> brought_;        // and not loaded yet
  std::uint64_t brought_number_ = 0;           // of its batch, when it was
  BatchSamples next_;
};

}  // namespace spillway
