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

#include "src/numbers/narrow_floats.h"
#include "src/ops/far_kernel.h"
#include "src/ops/operation.h"
#include "src/ops/parameter.h"
#include "src/ops/tensor.h"
#include "um/bytes.h"
#include "um/device.h"
#include "um/error.h"
#include "um/stream.h"

namespace spillway {

/// Images and labels of one step, in RAM: best in Backend::batch_memory().
struct Batch {
  /// Tells it from all other batches of the process, whatever their address; 0: nothing does.
  std::uint64_t number = 0;
  std::pmr::vector<float> images = {};  ///< (N, C, H, W), dense; empty where there are `bytes`
  /// Instead of `images`, where each image has one label: (N, C, H, W), each byte of a channel
  /// standing for a number of `byte_numbers`. An image whose label is negative is zero, whatever
  /// its bytes are.
  std::pmr::vector<std::uint8_t> bytes = {};
  std::span<const float> byte_numbers = {};  ///< (C, kByteValues)
  /// (N), or (N, H, W): one for each pixel. Negative: does not count, such as the border between
  /// two things, or the padding of a last batch.
  std::pmr::vector<std::int32_t> labels;
  bool is_mixed = false;  ///< labels are MixedLabels, one for each image, in three numbers each
};

/// Labels of `batch` that count.
[[nodiscard]] inline std::size_t count_labels(const Batch& batch) {
  std::size_t count = 0;
  const std::size_t each = batch.is_mixed ? kMixedLabelNumbers : 1;
  for (std::size_t i = 0; i < batch.labels.size(); i += each) count += batch.labels[i] >= 0 ? 1 : 0;
  return count;
}

/// A batch that will be in `memory`, which outlives it.
[[nodiscard]] inline Batch empty_batch(std::pmr::memory_resource& memory) {
  return {.number = 0,
          .images = std::pmr::vector<float>(&memory),
          .bytes = std::pmr::vector<std::uint8_t>(&memory),
          .labels = std::pmr::vector<std::int32_t>(&memory)};
}

/// True when `batch` has as many labels as it needs for its images, and the samples that are to be
/// loaded, from number `first` on.
[[nodiscard]] inline bool has_all_samples(const Batch& batch, const LoadBatch& load,
                                          std::size_t first) {
  const nets::Shape& image = load.x.image;
  const std::size_t count = batch.labels.size() / load.labels_each;
  const std::size_t numbers = load.has_bytes ? batch.bytes.size() : batch.images.size();
  return batch.labels.size() == count * load.labels_each && numbers == count * image.elements() &&
         (!load.has_bytes || batch.byte_numbers.size() == image.channels * kByteValues) &&
         first + load.x.batch <= count;
}

/// What kernels need to know of the step they run in.
struct StepContext {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;  ///< counts from 0 over the whole training
  float learning_rate = 0;
  const Batch* batch = nullptr;  ///< stays as it is until the step has ended
  std::size_t first_sample = 0;  ///< the step's in `batch`, of which it may be a part
  /// Of a batch of several ranks: samples that stand before `batch`, which is this rank's part.
  std::size_t samples_before = 0;
  /// Of the next step of this kind, where it is known: it is brought to the device meanwhile. Stays
  /// as it is until that step, or until Session::settle(). Null: nobody knows.
  const Batch* next_batch = nullptr;
  /// Labels of the whole batch that count, where the step is a part of it: what the mean loss is
  /// over.
  std::optional<std::size_t> counted_labels;
  /// The token of each sample that VocabularyLogits looks at, less than a sample has.
  std::size_t position = 0;
};

/// One call of a Kernel.
struct KernelArguments {
  std::span<std::byte* const>
      operands;  ///< in the order of the operation's Reads and Writes: operands_of()
  std::byte* workspace = nullptr;  ///< of the algorithm's workspace size
  /// As Backend::begin_step() has it. Where the launch is repeated later, of `batch` only the
  /// kernels of LoadBatch may use anything: they are launched anew in each step.
  const StepContext* context = nullptr;
  bool is_recomputation = false;  ///< the operation ran before in this step
};

/// An operation made ready to run with one algorithm.
///
/// Thread safety: run() is called from one thread at a time.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Returns when the work is done (host) or enqueued (CUDA). Writes all bytes of every operand
  /// that it only writes, padding included. The same arguments always give the same bits.
  virtual void run(const KernelArguments& arguments) = 0;
};

/// One way to run an operation, and the scratch bytes it needs.
struct AlgorithmInfo {
  std::string name;  ///< "direct", "winograd"; "default" where there is no choice
  um::Bytes workspace;
};

/// Whether plans may have updates on the far side: never; where they are asked for, as of a device
/// that is modelled and does not run them here; or wherever they are faster.
enum class FarUpdateSupport : std::uint8_t { kNone, kOnRequest, kAutomatic };

/// The sizes and choices that a task graph is made of; needs no device to be asked.
class SizeModel {
 public:
  virtual ~SizeModel() = default;
  /// Bytes of an activation or gradient of this shape, padding included.
  [[nodiscard]] virtual um::Bytes tensor_bytes(const TensorShape& shape) const = 0;
  [[nodiscard]] virtual um::Bytes parameter_bytes(const ParameterSpec& spec) const = 0;
  /// The fewest parts of the block none of which has more than `most`, as far as the block can be
  /// cut: 1 for all but linear layers.
  [[nodiscard]] virtual std::size_t parameter_parts(const ParameterSpec& /*spec*/,
                                                    um::Bytes /*most*/) const {
    return 1;
  }
  /// Bytes of a part of a gradient or of what an optimizer keeps: of the only part, those of
  /// parameter_bytes(). Requires: no more parts than the block can be cut into.
  [[nodiscard]] virtual um::Bytes parameter_part_bytes(const ParameterSpec& spec,
                                                       const ParameterPart& part) const {
    um::expects(part.count == 1, "a block that can be cut");
    return parameter_bytes(spec);
  }
  /// Bytes of the mask or index that a forward operation saves for its backward; zero for most.
  [[nodiscard]] virtual um::Bytes saved_bytes(const Operation& operation) const = 0;
  /// Near memory in which a batch waits for its step; zero where kernels take it from RAM.
  [[nodiscard]] virtual um::Bytes staged_bytes(const LoadBatch& /*operation*/) const { return {}; }
  /// At least one. The first is the baseline: always available, least workspace.
  [[nodiscard]] virtual std::vector<AlgorithmInfo> algorithms(const Operation& operation) const = 0;
  /// Bytes of all operands that it moves, for a roofline model.
  [[nodiscard]] virtual um::Bytes traffic(const Operation& operation) const {
    return cost_of(operation).traffic;
  }
  /// Whether updates may run on the far side: Backend::prepare_far().
  [[nodiscard]] virtual FarUpdateSupport far_update_support() const {
    return FarUpdateSupport::kNone;
  }
  /// The unit in which the device moves memory: pages are not smaller.
  [[nodiscard]] virtual um::Bytes smallest_page() const { return um::Bytes{4096}; }
};

/// The one seam to cuDNN and oneDNN.
///
/// Thread safety: none; use from the thread that runs the kernels.
class Backend : public SizeModel {
 public:
  /// For the run's summary: "oneDNN 2.6.3, avx512_core, 2 threads".
  [[nodiscard]] virtual std::string description() const = 0;
  /// Says in which step the kernels launched from now on run, for those that keep to what is in
  /// memory of the device. Requires: all work of steps before has ended.
  virtual void begin_step(const StepContext& /*context*/) const {}
  /// Requires: `algorithm` is one of algorithms(operation). The backend outlives the kernel.
  [[nodiscard]] virtual std::unique_ptr<Kernel> prepare(const Operation& operation,
                                                        std::string_view algorithm) const = 0;
  /// Puts the samples of `operation`, from number `first` of `batch` on, into `staged` as its
  /// kernel wants them in near memory. Requires: has_all_samples(); `staged` has
  /// staged_bytes(operation), which is not zero. Thread safety: safe to call beside any other
  /// function.
  virtual void stage(const LoadBatch& /*operation*/, const Batch& /*batch*/, std::size_t /*first*/,
                     std::span<std::byte> /*staged*/) const {
    um::expects(false, "a backend that stages batches");
  }
  /// One kernel for updates of parameters that do not depend on each other, all of one type and
  /// with the same options: its operands are theirs, one update after the other, its bits those of
  /// a kernel each. Null where that would save nothing. The backend outlives the kernel.
  [[nodiscard]] virtual std::unique_ptr<Kernel> prepare_updates(
      std::span<const Operation> /*updates*/) const {
    return nullptr;
  }
  /// An update to run on the far side; null where the backend does not. May outlive the backend.
  [[nodiscard]] virtual std::unique_ptr<FarKernel> prepare_far(const Operation& /*update*/) const {
    return nullptr;
  }
  /// RAM that copies to near memory take least time from; any other will do. Lives as long as the
  /// backend and all that is allocated from it. Thread safety: safe to use from several threads at
  /// once.
  [[nodiscard]] virtual std::pmr::memory_resource& batch_memory() const {
    return *std::pmr::new_delete_resource();
  }
  /// Zeroes near memory and leaves none of it in the processor's caches, where that can be. As
  /// run(), returns when that is done or enqueued. Requires: whole 64 bytes, aligned to that.
  virtual void clear(um::Range block) const = 0;
  /// Between the canonical order of parameter.h and this backend's own. Padding becomes zero.
  /// Requires: `parts` are the blocks of all parts in order, each of parameter_part_bytes();
  /// `values` has element_count(spec) numbers.
  virtual void import_parameters(const ParameterSpec& spec, std::span<const float> values,
                                 std::span<std::byte* const> parts) const = 0;
  virtual void export_parameters(const ParameterSpec& spec, std::span<std::byte* const> parts,
                                 std::span<float> values) const = 0;
};

/// Something to train on: a device, the kernels that run on it, and the stream they run on.
struct ExecutionContext {
  ExecutionContext() = default;
  ExecutionContext(const ExecutionContext&) = delete;
  ExecutionContext& operator=(const ExecutionContext&) = delete;
  ExecutionContext(ExecutionContext&&) noexcept = default;
  ExecutionContext& operator=(ExecutionContext&&) =
      delete;  // what it had would end in the wrong order
  /// Waits for the stream's work, which uses the backend.
  ~ExecutionContext() {
    if (compute == nullptr) return;
    try {
      compute->synchronize();
    } catch (...) {  // who waited for the work has been told, or nobody asked
    }
  }

  // Of the kernels; bits depend on all of it:
  std::size_t threads = 1;
  Precision precision = Precision::kFp32;
  bool deterministic = false;  ///< only kernels that give the same bits in each run
  std::unique_ptr<um::Device> device;
  std::unique_ptr<um::Stream> compute;  // a GPU's backend ends before the stream it was made for
  std::unique_ptr<Backend> backend;
};

/// A kernel that only calls `body` with the operands of `Op`, and with the arguments of the call
/// where it takes them.
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

/// A kernel that calls `body`, of which it has a copy that lives as long as it does.
///
/// Requires: run() gets as many operands as `op` has.
template <class Op, class Body>
[[nodiscard]] std::unique_ptr<Kernel> kernel_of(const Op& op, Body body) {
  return std::make_unique<FunctionKernel<Op, Body>>(op, std::move(body));
}

/// A kernel that only calls `body` with the addresses of all operands.
template <class Body>
class OperandsKernel final : public Kernel {
 public:
  explicit OperandsKernel(Body body) : body_{std::move(body)} {}
  void run(const KernelArguments& arguments) override { body_(arguments.operands); }

 private:
  Body body_;
};

}  // namespace spillway
