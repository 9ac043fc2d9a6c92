#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "prefetch/runtime/copy_memory.h"
#include "prefetch/runtime/given_step.h"
#include "prefetch/runtime/managed_memory.h"
#include "prefetch/runtime/resident_memory.h"
#include "prefetch/runtime/runner/step_runner.h"
#include "prefetch/runtime/step_layout.h"
#include "tests/um/cuda/declared_uses.h"
#include "tests/um/cuda/late_gpu.h"
#include "tests/um/cuda/recording_api.h"
#include "um/cuda/cuda_device.h"
#include "um/error.h"

namespace spillway::um {

/// The memory modes of a GPU.
enum class LateMode : std::uint8_t {
  kResident,
  kManaged,
  kDiscarding,  ///< managed, with discards reported to the driver
  kCopy
};

/// The order of a step, and who keeps it.
enum class LateOrder : std::uint8_t {
  kWalked,   ///< the host during the step, measuring times
  kUntimed,  ///< the host, without times
  kGiven     ///< the GPU, with all work submitted ahead; later steps repeat a captured step
};

/// A plan on a GPU that works as late as possible. Kernels only declare their uses.
class LateSteps {
 public:
  /// `graph` and `plan` outlive this object. Requires: the plan verifies.
  LateSteps(const prefetch::TaskGraph& graph, const prefetch::Plan& plan, LateMode mode,
            LateOrder order = LateOrder::kWalked,
            std::unique_ptr<RecordingApi> driver = std::make_unique<RecordingApi>())
      : graph_{graph},
        plan_{plan},
        order_{order},
        is_discarding_{mode == LateMode::kDiscarding},
        owned_{std::move(driver)},
        layout_{graph, plan},
        ledger_{plan.budget} {
    place_pinned();
    ledger_.charge(layout_.block_sizes.pinned());
    const Bytes near = round_down(ledger_.limit() - ledger_.in_use(), plan.page);
    const Bytes extent = std::max(plan.page, layout_.placement.extent);
    if (mode == LateMode::kManaged || mode == LateMode::kDiscarding) {
      managed_ = device_.make_managed_space({.size = extent,
                                             .near = std::min(near, extent),
                                             .page = plan.page,
                                             .gpu = {.discards = mode == LateMode::kDiscarding}},
                                            ledger_);
      const prefetch::SlabAddress address{layout_, *pinned_, managed_->slab()};
      memory_ = std::make_unique<prefetch::ManagedMemory>(layout_, address, managed_->hints());
      // The slab is not touched after a step, since discards are still in flight.
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
    runner_.emplace(plan_, *memory_, *compute_);
    if (order_ == LateOrder::kGiven) {
      lanes_ = compute_->make_lanes();
      prefetch::FixedPlaces* const places = memory_->fixed_places();
      expects(places != nullptr, "a step with fixed places");
      given_.emplace(plan_, *places, *lanes_);
    }
  }

  /// Runs steps like a training; `seed` draws the order of the GPU's streams. The state leaves the
  /// memory after every second step.
  void run(int steps, std::uint32_t seed) {
    const LateGpu late{gpu_, seed};
    for (int step = 0; step < steps; ++step) {
      if (step % 2 == 0) memory_->enter();
      run_one();
      if (step % 2 == 1) memory_->leave();
    }
    EXPECT_LE(ledger_.peak(), plan_.budget);
    if (is_discarding_) {
      EXPECT_LE(gpu_.near_peak() + layout_.block_sizes.pinned(), plan_.budget);
    }
  }
  /// Runs one step on a GPU that is as late as the test says. Returns the number of driver calls.
  std::size_t run_one() {
    const std::size_t before = gpu_.calls();
    compute_->enqueue([this] {
      if (order_ == LateOrder::kGiven) {
        give();
      } else {
        walk();
      }
    });
    compute_->synchronize();
    use_everything();
    ++steps_;
    return gpu_.calls() - before;
  }
  /// Returns the timeline of the last step that was not repeated.
  [[nodiscard]] prefetch::Timeline timeline() { return given_->timeline(); }

  /// Returns how often the arena was compacted.
  [[nodiscard]] std::uint64_t compactions() const {
    return copy_ == nullptr ? 0 : copy_->compactions();
  }

 private:
  void walk() {
    const auto launch = [this](prefetch::Position position) {
      const prefetch::TaskRun& run = plan_.runs[position];
      gpu_.launch(compute_->native(), graph_[run.task].name, declared_uses(graph_, run, *memory_));
    };
    if (order_ == LateOrder::kWalked) {
      static_cast<void>(runner_->run(launch));
    } else {
      runner_->run_untimed(launch);
    }
  }
  void give() {
    const prefetch::FixedPlaces& places = *memory_->fixed_places();
    const auto launch = [&](prefetch::Position position) {
      const prefetch::TaskRun& run = plan_.runs[position];
      const auto address = [&](prefetch::DataId id) { return places.address(position, id); };
      gpu_.launch(compute_->native(), graph_[run.task].name,
                  declared_uses(graph_, run, address, places.workspace(position)));
    };
    if (steps_ == 0) {
      given_->run(launch);
      return;
    }
    if (!given_->has_kept()) given_->keep(1, launch);
    launch(0);
    given_->repeat();
  }
  // All runs and moves of a finished step have ended, so the host may use their memory.
  void use_everything() {
    for (const Block& block : state_) gpu_.touch(block.bytes(), Access::kReadWrite);
    if (!still_.empty()) gpu_.touch(still_, Access::kReadWrite);
  }
  // Places state, small tensors and small workspaces in device memory.
  void place_pinned() {
    std::vector<std::byte*> state(graph_.data.size(), nullptr);
    for (std::size_t i = 0; i < state.size(); ++i) {
      const prefetch::DataBlock& block = graph_.data[i];
      if (block.kind == prefetch::DataKind::kTensor) continue;
      if (layout_.block_sizes.is_movable(prefetch::DataId(i))) continue;
      state[i] = state_.emplace_back(device_.memory(), block.size).data();
    }
    const Bytes buffer = prefetch::PinnedBlocks::buffer_size(graph_, layout_.block_sizes);
    const Block& small = state_.emplace_back(device_.memory(), std::max(plan_.page, buffer));
    pinned_ =
        std::make_unique<prefetch::PinnedBlocks>(graph_, layout_.block_sizes, state, small.bytes());
  }

  const prefetch::TaskGraph& graph_;
  const prefetch::Plan& plan_;
  const LateOrder order_;
  const bool is_discarding_;
  int steps_ = 0;
  std::unique_ptr<RecordingApi> owned_;
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
  std::optional<prefetch::StepRunner> runner_;
  std::unique_ptr<Lanes> lanes_;
  std::optional<prefetch::GivenStep> given_;
  prefetch::CopyMemory* copy_ = nullptr;  // memory_ in copy mode
  Range still_;                           // memory of moved blocks, idle between steps
};

}  // namespace spillway::um
