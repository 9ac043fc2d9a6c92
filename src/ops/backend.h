#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/ops/far_kernel.h"
#include "src/ops/narrow_floats.h"
#include "src/ops/operation.h"
#include "src/ops/parameter.h"
#include "src/ops/tensor.h"
#include "um/bytes.h"
#include "um/device.h"
#include "um/error.h"
#include "um/stream.h"

namespace spillway {

/// Images and labels of one step, in RAM, preferably allocated from Backend::batch_memory().
struct Batch {
  /// Unique among all batches of the process, whatever their address; 0 means no number.
  std::uint64_t number = 0;
  std::pmr::vector<float> images = {};  ///< (N, C, H, W), dense; empty if `bytes` is used
  /// Used instead of `images` if each image has one label: (N, C, H, W). Each byte stands for a
  /// number that `byte_numbers` lists per channel. An image with a negative label counts as zeros.
  std::pmr::vector<std::uint8_t> bytes = {};
  std::span<const float> byte_numbers = {};  ///< (C, kByteValues)
  /// (N), or (N, H, W) with one label per pixel. Negative labels are ignored, such as those of
  /// borders between objects or of the padding of a last batch.
  std::pmr::vector<std::int32_t> labels;
  bool is_mixed = false;  ///< each label is a MixedLabel and takes three numbers
};

/// Returns the number of labels of `batch` that are not ignored.
[[nodiscard]] inline std::size_t count_labels(const Batch& batch) {
  std::size_t count = 0;
  const std::size_t each = batch.is_mixed ? kMixedLabelNumbers : 1;
  for (std::size_t i = 0; i < batch.labels.size(); i += each) count += batch.labels[i] >= 0 ? 1 : 0;
  return count;
}

/// Returns an empty batch that allocates from `memory`. Requires: `memory` outlives the batch.
[[nodiscard]] inline Batch empty_batch(std::pmr::memory_resource& memory) {
  return {.number = 0,
          .images = std::pmr::vector<float>(&memory),
          .bytes = std::pmr::vector<std::uint8_t>(&memory),
          .labels = std::pmr::vector<std::int32_t>(&memory)};
}

/// Returns true if `batch` has one number per image element and all labels. It must also contain
/// the samples to load.
[[nodiscard]] inline bool has_all_samples(const Batch& batch, const LoadBatch& load) {
  const nets::Shape& image = load.x.image;
  const std::size_t count = batch.labels.size() / load.labels_each;
  const std::size_t numbers = load.has_bytes ? batch.bytes.size() : batch.images.size();
  return batch.labels.size() == count * load.labels_each && numbers == count * image.elements() &&
         (!load.has_bytes || batch.byte_numbers.size() == image.channels * kByteValues) &&
         load.first_sample + load.x.batch <= count;
}

/// The step in which kernels run, as far as they need to know.
struct StepContext {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;  ///< counts from 0 over the whole training
  float learning_rate = 0;
  const Batch* batch = nullptr;  ///< does not change until the step has ended
  /// Samples of the global batch that precede `batch`, which is this rank's part.
  std::size_t samples_before = 0;
  /// The batch of the next step of this kind, null if unknown. It is copied to the device in the
  /// meantime, and must not change until that step or Session::settle().
  const Batch* next_batch = nullptr;
  /// Number of labels of the whole batch that are not ignored. The mean loss divides by it; where
  /// it is not set, by those of the loss's own samples.
  std::optional<std::size_t> counted_labels;
  /// Token of each sample that VocabularyLogits reads; less than a sample's length.
  std::size_t position = 0;
};

/// One call of a Kernel.
struct KernelArguments {
  std::span<std::byte* const>
      operands;  ///< in the order of the operation's Reads and Writes: operands_of()
  std::byte* workspace = nullptr;  ///< as large as the algorithm's workspace
  /// The context of Backend::begin_step(). If the launch is captured and repeated later, no kernel
  /// may read `batch` but a LoadBatch at the step's beginning: it is launched anew in each step.
  const StepContext* context = nullptr;
  bool is_recomputation = false;  ///< the operation has run before in this step
};

/// An operation prepared to run with one algorithm.
///
/// Thread safety: run() is called from one thread at a time.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Returns when the work is done (host) or enqueued (CUDA). Writes all bytes, padding included,
  /// of every operand that is only written. The same arguments always give the same bits.
  virtual void run(const KernelArguments& arguments) = 0;
};

/// One way to run an operation, and the scratch bytes it needs.
struct AlgorithmInfo {
  std::string name;  ///< "direct", "winograd"; "default" if there is only one
  um::Bytes workspace;
};

/// Whether plans may contain far updates: never; only on request, for a modelled device that cannot
/// run them here; or automatically where they are faster.
enum class FarUpdateSupport : std::uint8_t { kNone, kOnRequest, kAutomatic };

/// The sizes and choices from which a task graph is built; can be asked without a device.
class SizeModel {
 public:
  virtual ~SizeModel() = default;
  /// Returns the bytes of an activation or gradient of this shape, padding included.
  [[nodiscard]] virtual um::Bytes tensor_bytes(const TensorShape& shape) const = 0;
  [[nodiscard]] virtual um::Bytes parameter_bytes(const ParameterSpec& spec) const = 0;
  /// Returns the fewest parts of at most `most` bytes each, or as many parts as possible. Only
  /// linear layers can be cut; all other blocks have 1 part.
  [[nodiscard]] virtual std::size_t parameter_parts(const ParameterSpec& /*spec*/,
                                                    um::Bytes /*most*/) const {
    return 1;
  }
  /// Returns the bytes of one part of a gradient or optimizer state; equals parameter_bytes() for
  /// an only part. Requires: the block can be cut into `part.count` parts.
  [[nodiscard]] virtual um::Bytes parameter_part_bytes(const ParameterSpec& spec,
                                                       const ParameterPart& part) const {
    um::expects(part.count == 1, "a block that can be cut");
    return parameter_bytes(spec);
  }
  /// Returns the bytes of the mask or index that a forward operation saves for backward; zero for
  /// most.
  [[nodiscard]] virtual um::Bytes saved_bytes(const Operation& operation) const = 0;
  /// Returns the near memory in which a batch waits for its step; zero if kernels read it from RAM.
  [[nodiscard]] virtual um::Bytes staged_bytes(const LoadBatch& /*operation*/) const { return {}; }
  /// Returns at least one. The first is the baseline: always available, smallest workspace.
  [[nodiscard]] virtual std::vector<AlgorithmInfo> algorithms(const Operation& operation) const = 0;
  /// Returns the bytes of all operands that the operation moves, for a roofline model.
  [[nodiscard]] virtual um::Bytes traffic(const Operation& operation) const {
    return cost_of(operation).traffic;
  }
  /// Returns whether updates may run on the far side: Backend::prepare_far().
  [[nodiscard]] virtual FarUpdateSupport far_update_support() const {
    return FarUpdateSupport::kNone;
  }
  /// Returns a lower bound of the page size, the unit in which the device moves memory.
  [[nodiscard]] virtual um::Bytes smallest_page() const { return um::Bytes{4096}; }
};

/// The only seam to cuDNN and oneDNN.
///
/// Thread safety: none; use from the thread that runs the kernels.
class Backend : public SizeModel {
 public:
  /// Returns text for the run's summary: "oneDNN 2.6.3, avx512_core, 2 threads".
  [[nodiscard]] virtual std::string description() const = 0;
  /// Sets the step of the kernels launched from now on, for kernels that read it from device
  /// memory. Requires: all work of earlier steps has ended.
  virtual void begin_step(const StepContext& /*context*/) const {}
  /// Requires: `algorithm` is one of algorithms(operation); the backend outlives the kernel.
  [[nodiscard]] virtual std::unique_ptr<Kernel> prepare(const Operation& operation,
                                                        std::string_view algorithm) const = 0;
  /// Copies the samples of `operation`, which is LoadBatch::staged() of some, into `staged` in the
  /// layout that their kernels read. Requires: has_all_samples(); `staged` has
  /// staged_bytes(operation), which is not zero. Thread safety: safe to call concurrently with any
  /// other function.
  virtual void stage(const LoadBatch& /*operation*/, const Batch& /*batch*/,
                     std::span<std::byte> /*staged*/) const {
    um::expects(false, "a backend that stages batches");
  }
  /// Returns one kernel for several independent updates with equal options; null if that saves
  /// nothing. Its operands are those of the updates, one after the other. Its results
  /// are the bits of separate kernels. Requires: the backend outlives the kernel.
  [[nodiscard]] virtual std::unique_ptr<Kernel> prepare_updates(
      std::span<const UpdateParameters> /*updates*/) const {
    return nullptr;
  }
  /// Returns a kernel for a far update, or null if the backend has none. It may outlive the
  /// backend.
  [[nodiscard]] virtual std::unique_ptr<FarKernel> prepare_far(
      const UpdateParameters& /*update*/) const {
    return nullptr;
  }
  /// Returns the memory from which copies to near memory are fastest; any other RAM works, too.
  /// Lives as long as the backend and everything allocated from it. Thread safety: safe to use from
  /// several threads at once.
  [[nodiscard]] virtual std::pmr::memory_resource& batch_memory() const {
    return *std::pmr::new_delete_resource();
  }
  /// Zeroes near memory, bypassing the processor's caches where possible. Like run(), returns when
  /// that is done or enqueued. Requires: a multiple of 64 bytes, aligned to 64.
  virtual void clear(um::Range block) const = 0;
  /// Converts between the canonical order of parameter.h and the backend's own; padding becomes
  /// zero. Requires: `parts` are the blocks of all parts in order, each of parameter_part_bytes();
  /// `values` has element_count(spec) numbers.
  virtual void import_parameters(const ParameterSpec& spec, std::span<const float> values,
                                 std::span<std::byte* const> parts) const = 0;
  virtual void export_parameters(const ParameterSpec& spec, std::span<std::byte* const> parts,
                                 std::span<float> values) const = 0;
};

/// A device to train on, its kernels, and their stream.
struct ExecutionContext {
  ExecutionContext() = default;
  ExecutionContext(const ExecutionContext&) = delete;
  ExecutionContext& operator=(const ExecutionContext&) = delete;
  ExecutionContext(ExecutionContext&&) noexcept = default;
  ExecutionContext& operator=(ExecutionContext&&) =
      delete;  // would destroy the old members in the wrong order
  /// Waits for the stream's work, which uses the backend.
  ~ExecutionContext() {
    if (compute == nullptr) return;
    try {
      compute->synchronize();
    } catch (...) {  // a caller that waited has already received the error
    }
  }

  // Settings of the kernels; results depend on each of them, bit by bit.
  std::size_t threads = 1;
  Precision precision = Precision::kFp32;
  bool deterministic = false;  ///< use only kernels that give the same bits in each run
  std::unique_ptr<um::Device> device;
  std::unique_ptr<um::Stream> compute;  // destroyed after the backend, which may use it
  std::unique_ptr<Backend> backend;
};

/// A kernel that calls `body` with the operands of `Op`, and with the call's arguments if `body`
/// takes them.
template <class Op, class Body>
class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(Op op, Body body) : op_{std::move(op)}, body_{std::move(body)} {}

  void run(const KernelArguments& arguments) override {
    um::expects(arguments.operands.size() == operand_count(op_),
                "as many operands as the operation lists");
    const Operands<Op> operands = operands_of(op_, arguments.operands);
    if constexpr (std::invocable<Body&, const Operands<Op>&>) {
      body_(operands);
    } else {
      body_(operands, arguments);
    }
  }

 private:
  Op op_;
  Body body_;
};

/// Returns a kernel that calls its own copy of `body`.
///
/// Requires: run() gets as many operands as `op` has.
template <class Op, class Body>
[[nodiscard]] std::unique_ptr<Kernel> kernel_of(const Op& op, Body body) {
  return std::make_unique<FunctionKernel<Op, Body>>(op, std::move(body));
}

/// A kernel that calls `body` with the addresses of all operands.
template <class Body>
class OperandsKernel final : public Kernel {
 public:
  explicit OperandsKernel(Body body) : body_{std::move(body)} {}
  void run(const KernelArguments& arguments) override { body_(arguments.operands); }

 private:
  Body body_;
};

}  // namespace spillway
