#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "prefetch/runtime/copy_memory.h"
#include "prefetch/runtime/managed_memory.h"
#include "prefetch/runtime/resident_memory.h"
#include "prefetch/runtime/slab_address.h"
#include "prefetch/runtime/step_layout.h"
#include "prefetch/runtime/step_runner.h"
#include "tests/um/cuda/declared_uses.h"
#include "tests/um/cuda/late_gpu.h"
#include "tests/um/cuda/recording_api.h"
#include "um/cuda/cuda_device.h"

namespace spillway::um {

/// The memory modes of a GPU.
enum class LateMode : std::uint8_t { kResident, kManaged, kCopy };

/// A plan on a GPU that does its work as late as can be. Kernels do nothing but say what they use.
class LateSteps {
 public:
  /// Both outlive it. Requires: the plan verifies.
  LateSteps(const prefetch::TaskGraph& graph, const prefetch::Plan& plan, LateMode mode)
      : graph_{graph}, plan_{plan}, layout_{graph, plan}, ledger_{plan.budget} {
    place_pinned();
    ledger_.charge(layout_.block_sizes.pinned());
    const Bytes near = round_down(ledger_.limit() - ledger_.in_use(), plan.page);
    const Bytes extent = std::max(plan.page, layout_.placement.extent);
    if (mode == LateMode::kManaged) {
      managed_ = device_.make_managed_space(
          {.size = extent, .near = std::min(near, extent), .page = plan.page}, ledger_);
      const prefetch::SlabAddress address{layout_, *pinned_, managed_->slab()};
      memory_ = std::make_unique<prefetch::ManagedMemory>(layout_, address, managed_->hints());
      // The slab is nobody's after a step: discards are still under way.
    } else if (mode == LateMode::kCopy) {
      const Bytes far = std::max(plan.page, prefetch::FarPlacement{layout_}.extent);
      copied_ = device_.make_copy_space({.size = far, .near = near});
      auto memory = std::make_unique<prefetch::CopyMemory>(layout_, *pinned_, copied_->near(),
                                                           copied_->copies(), ledger_);
      copy_ = memory.get();
      still_ = copied_->near();
      memory_ = std::move(memory);
    } else {
      slab_ = std::make_unique<Block>(device_.memory(), extent);
      memory_ = std::make_unique<prefetch::ResidentMemory>(
          prefetch::SlabAddress{layout_, *pinned_, slab_->bytes()});
      still_ = slab_->bytes();
    }
  }

  /// As a training does; `seed` draws in which order the GPU's streams get on.
  void run(int steps, std::uint32_t seed) {
    const LateGpu late{gpu_, seed};
    prefetch::StepRunner runner{plan_, *memory_, *compute_};
    for (int step = 0; step < steps; ++step) {
      compute_->enqueue([&] {
        static_cast<void>(runner.run([&](prefetch::Position position) {
          const prefetch::TaskRun& run = plan_.runs[position];
          gpu_.launch(compute_->native(), graph_[run.task].name,
                      declared_uses(graph_, run, *memory_));
        }));
        use_everything();
      });
      compute_->synchronize();
    }
    EXPECT_LE(ledger_.peak(), plan_.budget);
  }

  /// How often the arena was compacted.
  [[nodiscard]] std::uint64_t compactions() const {
    return copy_ == nullptr ? 0 : copy_->compactions();
  }

 private:
  // All runs and moves of a step have ended when it has: the host may use what they used.
  void use_everything() {
    for (const Block& block : state_) gpu_.touch(block.bytes(), Access::kReadWrite);
    if (!still_.empty()) gpu_.touch(still_, Access::kReadWrite);
  }
  // State, small tensors and small workspaces lie in memory of the device as well.
  void place_pinned() {
    std::vector<std::byte*> state(graph_.data.size(), nullptr);
    for (std::size_t i = 0; i < state.size(); ++i) {
      const prefetch::DataBlock& block = graph_.data[i];
      if (block.kind == prefetch::DataKind::kTensor) continue;
      state[i] = state_.emplace_back(device_.memory(), block.size).data();
    }
    const Bytes buffer = prefetch::PinnedBlocks::buffer_size(graph_, layout_.block_sizes);
    const Block& small = state_.emplace_back(device_.memory(), std::max(plan_.page, buffer));
    pinned_ =
        std::make_unique<prefetch::PinnedBlocks>(graph_, layout_.block_sizes, state, small.bytes());
  }

  const prefetch::TaskGraph& graph_;
  const prefetch::Plan& plan_;
  std::unique_ptr<RecordingApi> owned_ = std::make_unique<RecordingApi>();
  RecordedGpu& gpu_ = *owned_;
  CudaDevice device_{std::move(owned_), {}};
  std::vector<Block> state_;
  const prefetch::StepLayout layout_;
  std::unique_ptr<prefetch::PinnedBlocks> pinned_;
  Ledger ledger_;
  std::unique_ptr<ManagedSpace> managed_;
  std::unique_ptr<CopySpace> copied_;
  std::unique_ptr<Block> slab_;
  std::unique_ptr<CudaStream> compute_ = device_.make_cuda_stream("compute");
  std::unique_ptr<prefetch::StepMemory> memory_;
  prefetch::CopyMemory* copy_ = nullptr;  // memory_, where it is one
  Range still_;  // where blocks move, and nothing is under way between steps
};

}  // namespace spillway::um
