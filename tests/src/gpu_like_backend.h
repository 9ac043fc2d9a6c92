#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "src/host/host_backend.h"
#include "src/ops/backend.h"
#include "src/program/step.h"
#include "tests/src/on_host_backend.h"
#include "tests/um/cuda/recorded_gpu.h"
#include "um/hints.h"

namespace spillway {

/// A kernel of the host that tells the driver what it is about to use, and is kept where the driver
/// keeps what it is given.
class DeclaredKernel final : public Kernel {
 public:
  using Launch = std::function<void(const KernelArguments&, std::function<void()> act)>;
  /// `current` is the context of the step in which kept work is repeated.
  DeclaredKernel(std::unique_ptr<Kernel> kernel, Launch launch, const StepContext& current)
      : kernel_{std::move(kernel)}, launch_{std::move(launch)}, current_{current} {}

  void run(const KernelArguments& arguments) override {
    const auto given = std::make_shared<const StepContext*>(arguments.context);
    const std::vector<std::byte*> operands{arguments.operands.begin(), arguments.operands.end()};
    launch_(arguments, [this, given, operands, arguments] {
      KernelArguments repeated = arguments;
      repeated.operands = operands;
      repeated.context = *given != nullptr ? *given : &current_;
      kernel_->run(repeated);
    });
    *given = nullptr;  // its step is over when this is repeated
  }

 private:
  std::unique_ptr<Kernel> kernel_;
  Launch launch_;
  const StepContext& current_;
};

/// A far kernel of the host, over memory that the driver keeps aside while it is far.
class DeclaredFarKernel final : public FarKernel {
 public:
  DeclaredFarKernel(std::unique_ptr<FarKernel> kernel, um::RecordedGpu& gpu)
      : kernel_{std::move(kernel)}, gpu_{gpu} {}
  [[nodiscard]] FloatRange range() const override { return kernel_->range(); }
  void run(const StepContext& context, const FloatRange& piece, std::span<float* const> updated,
           const float* gradient) override {
    const auto range_at = [&](const float* floats) {
      auto* const address = reinterpret_cast<std::byte*>(const_cast<float*>(floats));
      return um::Range{address, piece.count() * sizeof(float)};
    };
    std::vector<um::Range> ranges{range_at(gradient)};
    for (const float* floats : updated) ranges.push_back(range_at(floats));
    gpu_.use_on_host(ranges, [&] { kernel_->run(context, piece, updated, gradient); });
  }

 private:
  std::unique_ptr<FarKernel> kernel_;
  um::RecordedGpu& gpu_;
};

/// Updates one after the other, which all have as many operands.
class TogetherKernel final : public Kernel {
 public:
  explicit TogetherKernel(std::vector<std::unique_ptr<Kernel>> kernels)
      : kernels_{std::move(kernels)} {}
  void run(const KernelArguments& arguments) override {
    const std::size_t each = arguments.operands.size() / kernels_.size();
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      kernels_[i]->run(
          {.operands = arguments.operands.subspan(i * each, each), .context = arguments.context});
    }
  }

 private:
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

/// Loads its part of the labels, the numbers of bytes and the images that wait in near memory, as
/// the host loads a batch.
class StagedLoad final : public Kernel {
 public:
  StagedLoad(LoadBatch op, std::unique_ptr<Kernel> host)
      : op_{std::move(op)}, host_{std::move(host)} {}
  /// Of the numbers of bytes.
  static std::size_t byte_numbers(const LoadBatch& op) {
    return op.has_bytes ? op.x.image.channels * kByteValues : 0;
  }
  /// Of an image's number.
  static std::size_t element(const LoadBatch& op) { return op.has_bytes ? 1 : sizeof(float); }

  void run(const KernelArguments& arguments) override {
    const auto* const labels = reinterpret_cast<const std::int32_t*>(arguments.operands[0]);
    const LoadBatch all = op_.staged();
    const auto* const numbers = reinterpret_cast<const float*>(labels + all.label_count());
    const float* const images = numbers + byte_numbers(all);
    Batch batch;
    batch.labels.assign(labels, labels + all.label_count());
    batch.byte_numbers = {numbers, byte_numbers(op_)};
    if (op_.has_bytes) {
      const auto* const bytes = reinterpret_cast<const std::uint8_t*>(images);
      batch.bytes.assign(bytes, bytes + all.x.elements());
    } else {
      batch.images.assign(images, images + all.x.elements());
    }
    const StepContext context{.batch = &batch};
    host_->run({.operands = arguments.operands.subspan(1), .context = &context});
  }

 private:
  LoadBatch op_;
  std::unique_ptr<Kernel> host_;
};

/// The host's kernels with the page of a GPU, its pinned memory, and batches that wait in its near
/// memory.
class GpuLikeBackend final : public test::OnHostBackend {
 public:
  GpuLikeBackend(std::pmr::memory_resource& batches, um::RecordedGpu& gpu, cudaStream_t stream)
      : batches_{batches}, gpu_{gpu}, stream_{stream} {}

  /// The kernels of this step, prepared from now on, declare what they use. It outlives them.
  void declare(const Step& step) { steps_.push_back(&step); }

  [[nodiscard]] std::size_t parameter_parts(const ParameterSpec& spec,
                                            um::Bytes most) const override {
    return host_.parameter_parts(spec, most);
  }
  [[nodiscard]] um::Bytes parameter_part_bytes(const ParameterSpec& spec,
                                               const ParameterPart& part) const override {
    return host_.parameter_part_bytes(spec, part);
  }
  [[nodiscard]] um::Bytes staged_bytes(const LoadBatch& operation) const override {
    return um::Bytes{operation.label_count() * sizeof(std::int32_t)} +
           float_bytes(StagedLoad::byte_numbers(operation)) +
           um::Bytes{operation.x.elements() * StagedLoad::element(operation)};
  }
  void stage(const LoadBatch& operation, const Batch& batch,
             std::span<std::byte> staged) const override {
    um::expects(has_all_samples(batch, operation), "a batch has all samples of the step");
    on_stage();
    gpu_.touch(staged, um::Access::kWrite);
    std::byte* at = staged.data();
    const auto put = [&](const auto* numbers, std::size_t count) {
      std::memcpy(at, numbers, count * sizeof(*numbers));
      at += count * sizeof(*numbers);
    };
    put(batch.labels.data(), operation.label_count());
    if (operation.has_bytes) {
      put(batch.byte_numbers.data(), batch.byte_numbers.size());
      put(batch.bytes.data(), operation.x.elements());
    } else {
      put(batch.images.data(), operation.x.elements());
    }
  }
  [[nodiscard]] std::vector<AlgorithmInfo> algorithms(const Operation& operation) const override {
    std::vector<AlgorithmInfo> found = host_.algorithms(operation);
    if (!std::holds_alternative<ConvolutionForward>(operation)) return found;
    for (AlgorithmInfo& algorithm : found) {
      algorithm.workspace = std::max(algorithm.workspace, workspace);
    }
    return found;
  }
  [[nodiscard]] um::Bytes smallest_page() const override { return um::Bytes{2ULL << 20U}; }
  void begin_step(const StepContext& context) const override { current_ = context; }
  [[nodiscard]] std::unique_ptr<Kernel> prepare(const Operation& operation,
                                                std::string_view algorithm) const override {
    auto kernel = prepare_on_host(operation, algorithm);
    ++prepared_;
    for (const Step* step : steps_) {
      const auto of = [&](const Launch& launch) { return &launch.operation == &operation; };
      const auto launch = std::ranges::find_if(step->launches, of);
      if (launch == step->launches.end()) continue;
      const auto task = prefetch::TaskId(launch - step->launches.begin());
      const auto& choices = step->graph[task].algorithms;
      const auto& chosen = *std::ranges::find(choices, algorithm, &prefetch::Algorithm::name);
      return std::make_unique<DeclaredKernel>(
          std::move(kernel),
          [this, step, task, workspace = chosen.workspace](const auto& arguments, auto act) {
            gpu_.launch(stream_, step->graph[task].name, uses(*step, task, workspace, arguments),
                        std::move(act));
          },
          current_);
    }
    return kernel;
  }
  [[nodiscard]] FarUpdateSupport far_update_support() const override {
    return FarUpdateSupport::kOnRequest;
  }
  [[nodiscard]] std::unique_ptr<FarKernel> prepare_far(
      const UpdateParameters& update) const override {
    return std::make_unique<DeclaredFarKernel>(host_.prepare_far(update), gpu_);
  }

  /// The least of each forward convolution; kernels need not use all of it.
  um::Bytes workspace;
  /// Called before a batch is read to be staged, by the thread that does it.
  std::function<void()> on_stage = [] {};
  /// How many kernels.
  [[nodiscard]] std::size_t prepared() const { return prepared_; }
  void start_threads() const {
    host_.start_threads([] {});
  }

  [[nodiscard]] std::unique_ptr<Kernel> prepare_updates(
      std::span<const UpdateParameters> updates) const override {
    std::vector<std::unique_ptr<Kernel>> kernels;
    for (const UpdateParameters& update : updates)
      kernels.push_back(host_.prepare(update, "default"));
    return std::make_unique<DeclaredKernel>(
        std::make_unique<TogetherKernel>(std::move(kernels)),
        [this](const KernelArguments& arguments, std::function<void()> act) {
          std::vector<um::Use> uses;
          for (std::byte* operand : arguments.operands) {
            uses.push_back({.range = {operand, 1}, .access = um::Access::kReadWrite});
          }
          gpu_.launch(stream_, "updates", uses, std::move(act));
        },
        current_);
  }

  [[nodiscard]] std::pmr::memory_resource& batch_memory() const override { return batches_; }

 private:
  [[nodiscard]] std::unique_ptr<Kernel> prepare_on_host(const Operation& operation,
                                                        std::string_view algorithm) const {
    const auto* const load = std::get_if<LoadBatch>(&operation);
    if (load == nullptr) return host_.prepare(operation, algorithm);
    LoadBatch of_host = *load;
    of_host.is_staged = false;
    return std::make_unique<StagedLoad>(*load, host_.prepare(of_host, algorithm));
  }
  static std::vector<um::Use> uses(const Step& step, prefetch::TaskId task, um::Bytes workspace,
                                   const KernelArguments& arguments) {
    const auto& operands = step.launches[static_cast<std::size_t>(task)].operands;
    std::vector<prefetch::DataId> writes = step.graph[task].writes;
    if (!arguments.is_recomputation) {
      const auto& updates = step.graph[task].updates_once;
      writes.insert(writes.end(), updates.begin(), updates.end());
    }
    std::vector<um::Use> uses;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const bool is_written = std::ranges::find(writes, operands[i]) != writes.end();
      uses.push_back({.range = {arguments.operands[i], step.graph[operands[i]].size.count()},
                      .access = is_written ? um::Access::kReadWrite : um::Access::kRead});
    }
    if (workspace > um::Bytes{}) {
      uses.push_back(
          {.range = {arguments.workspace, workspace.count()}, .access = um::Access::kReadWrite});
    }
    return uses;
  }

  std::pmr::memory_resource& batches_;
  um::RecordedGpu& gpu_;
  const cudaStream_t stream_;
  std::vector<const Step*> steps_;
  mutable std::atomic<std::size_t> prepared_ = 0;
  mutable StepContext current_;
};

}  // namespace spillway
