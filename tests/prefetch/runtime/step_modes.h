#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/runtime/copy_memory.h"
#include "prefetch/runtime/given_step.h"
#include "prefetch/runtime/managed_memory.h"
#include "prefetch/runtime/resident_memory.h"
#include "tests/prefetch/runtime/given_copies.h"
#include "tests/prefetch/runtime/toy_step.h"
#include "um/host/host_device.h"
#include "um/memory.h"

namespace spillway::prefetch::testing {

/// A toy step submitted ahead: the second one is captured, and replayed from then on.
class GivenToyStep {
 public:
  /// Both arguments must outlive it. Requires: the memory has fixed places.
  GivenToyStep(const StepLayout& layout, StepMemory& memory)
      : layout_{layout},
        places_{*memory.fixed_places()},
        given_{layout.plan, places_, lanes_},
        // The run that loads the batch is not replayed if it waits for no move.
        first_{layout.plan.runs[0].after == Progress{} ? 1U : 0U} {}

  void run(std::uint64_t step, ToyResult& result) {
    step_ = step;
    result_ = &result;
    const auto launch = [this](Position position) {
      lanes_.launch([this, position] { run_kernel(position); });
    };
    if (!has_run_) {
      given_.run(launch);
      has_run_ = true;
      return;
    }
    if (!given_.has_kept()) given_.keep(first_, launch);
    for (Position position = 0; position < first_; ++position) launch(position);
    given_.repeat();
  }

 private:
  void run_kernel(Position position) {
    const TaskRun& run = layout_.plan.runs[position];
    const um::Bytes workspace = layout_.graph[run.task].algorithms[run.algorithm].workspace;
    const ToyArguments arguments{
        .address = [&](DataId id) { return places_.address(position, id); },
        .workspace = {places_.workspace(position), workspace.count()},
        .step = step_,
        .is_recomputation = run.is_recomputation};
    const std::uint64_t read =
        run_toy_kernel(layout_.graph, run.task, arguments, result_->workspaces_kept);
    if (!run.is_recomputation) result_->read.push_back(read);
  }

  const StepLayout& layout_;
  FixedPlaces& places_;
  PlainLanes lanes_;
  GivenStep given_;
  Position first_;
  bool has_run_ = false;
  std::uint64_t step_ = 0;
  ToyResult* result_ = nullptr;
};

/// The result of executing a plan.
struct Executed {
  ToyResult result;
  um::Counters counters;
  um::Bytes peak;                 ///< of near memory, including everything that is always near
  bool has_fixed_places = false;  ///< in copy mode
  std::uint64_t compactions = 0;
};

inline constexpr std::uint64_t kSteps = 2;

/// A plan with its pinned blocks, for any memory.
struct Stage {
  Stage(const TaskGraph& graph, const Plan& plan)
      : layout{graph, plan},
        state{graph},
        buffer(PinnedBlocks::buffer_size(graph, layout.block_sizes).count() / 8 + 1),
        pinned{graph, layout.block_sizes, pinned_state(),
               std::as_writable_bytes(std::span{buffer})},
        ledger{plan.budget} {
    ledger.charge(layout.block_sizes.pinned());
  }

  /// Returns the near bytes that the budget leaves for movable blocks.
  [[nodiscard]] um::Bytes room() const {
    return um::round_down(ledger.limit() - ledger.in_use(), layout.plan.page);
  }
  [[nodiscard]] std::vector<std::byte*> pinned_state() const {
    std::vector<std::byte*> addresses = state.addresses();
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      if (layout.block_sizes.is_movable(DataId(i))) addresses[i] = nullptr;
    }
    return addresses;
  }

  StepLayout layout;
  ToyState state;
  std::vector<std::uint64_t> buffer;  ///< small tensors and workspaces
  PinnedBlocks pinned;
  um::Ledger ledger;
};

/// One of several steps with the same blocks, page and budget.
struct StepCase {
  const TaskGraph& graph;
  const Plan& plan;
};

/// Executes `cases`, each in its own memory, in an order given by indices. The first needs the most
/// pinned memory. State is initialized from the plain state of the first.
class Execution {
 public:
  using Order = std::vector<std::size_t>;

  explicit Execution(std::span<const StepCase> cases) {
    for (const StepCase& each : cases) {
      stages_.push_back(std::make_unique<Stage>(each.graph, each.plan));
      stages_.back()->pinned = PinnedBlocks{
          each.graph, stages_.back()->layout.block_sizes, stages_.front()->pinned_state(),
          std::as_writable_bytes(std::span{stages_.back()->buffer})};
    }
  }

  [[nodiscard]] Executed resident(const Order& order) {
    std::vector<std::uint64_t> slab(slab_size().count() / 8);
    const um::Range range = std::as_writable_bytes(std::span{slab});
    for (const auto& stage : stages_) {
      memories_.push_back(
          std::make_unique<ResidentMemory>(SlabAddress{stage->layout, stage->pinned, range}));
    }
    return {.result = run(order)};
  }

  /// `poison`: dead pages are poisoned; otherwise kept mapped, as in training.
  [[nodiscard]] Executed managed(const Order& order, um::Paging paging, bool poison) {
    const um::Bytes page = first().layout.plan.page;
    const um::Bytes size = std::max(page, slab_size());
    const auto space = device_.make_managed_space({.size = size,
                                                   .near = std::min(size, first().room()),
                                                   .page = page,
                                                   .paging = paging,
                                                   .poison = poison},
                                                  first().ledger);
    for (const auto& stage : stages_) {
      memories_.push_back(std::make_unique<ManagedMemory>(
          stage->layout, SlabAddress{stage->layout, stage->pinned, space->slab()}, space->hints()));
    }
    ToyResult result = run(order);
    memories_.clear();
    return {
        .result = std::move(result), .counters = space->counters(), .peak = first().ledger.peak()};
  }

  [[nodiscard]] Executed copy(const Order& order, const std::string& far_file = {}) {
    um::Bytes far = first().layout.plan.page;
    for (const auto& stage : stages_) far = std::max(far, FarPlacement{stage->layout}.extent);
    const auto space =
        device_.make_copy_space({.size = far, .near = first().room(), .far = {.file = far_file}});
    Executed executed{.has_fixed_places = true};
    for (const auto& stage : stages_) {
      memories_.push_back(std::make_unique<CopyMemory>(stage->layout, stage->pinned, space->near(),
                                                       space->copies(), first().ledger));
    }
    executed.result = run(order);
    for (const auto& each : memories_) {
      const auto& memory = static_cast<const CopyMemory&>(*each);
      executed.has_fixed_places = executed.has_fixed_places && memory.placed().fits;
      executed.compactions += memory.compactions();
    }
    memories_.clear();
    executed.counters = space->counters();
    executed.peak = first().ledger.peak();
    return executed;
  }

  /// Executes in copy mode, submitted ahead; nullopt if not all steps have fixed places.
  [[nodiscard]] std::optional<Executed> given(const Order& order) {
    um::Bytes far = first().layout.plan.page;
    for (const auto& stage : stages_) far = std::max(far, FarPlacement{stage->layout}.extent);
    AddressedCopies copies{far};
    std::vector<std::byte> near(first().room().count());
    std::vector<std::unique_ptr<GivenToyStep>> steps;
    for (const auto& stage : stages_) {
      memories_.push_back(
          std::make_unique<CopyMemory>(stage->layout, stage->pinned, near, copies, first().ledger));
      if (memories_.back()->fixed_places() == nullptr) return std::nullopt;
      steps.push_back(std::make_unique<GivenToyStep>(stage->layout, *memories_.back()));
    }
    ToyResult result = run(order, [&](std::size_t i, std::uint64_t step, ToyResult& sofar) {
      steps[i]->run(step, sofar);
    });
    memories_.clear();
    return Executed{.result = std::move(result), .peak = first().ledger.peak()};
  }

 private:
  [[nodiscard]] Stage& first() const { return *stages_.front(); }
  [[nodiscard]] um::Bytes slab_size() const {
    um::Bytes size;
    for (const auto& stage : stages_) size = std::max(size, stage->layout.placement.extent);
    return size;
  }
  using RunStep = std::function<void(std::size_t index, std::uint64_t step, ToyResult& result)>;
  [[nodiscard]] ToyResult run(const Order& order, const RunStep& run_step = {}) const {
    std::vector<ToyPart> parts;
    for (const std::size_t i : order) {
      parts.push_back({.layout = &stages_[i]->layout, .memory = memories_[i].get()});
      if (!run_step) continue;
      parts.back().run = [i, &run_step](std::uint64_t step, ToyResult& result) {
        run_step(i, step, result);
      };
    }
    return run_planned(parts, first().state);
  }

  std::vector<std::unique_ptr<Stage>> stages_;
  um::HostDevice device_;
  std::vector<std::unique_ptr<StepMemory>> memories_;
};

inline const Execution::Order kOneStepRepeated(kSteps, 0);

inline Executed execute_resident(const TaskGraph& graph, const Plan& plan) {
  return Execution{std::vector<StepCase>{{graph, plan}}}.resident(kOneStepRepeated);
}

inline Executed execute_managed(const TaskGraph& graph, const Plan& plan, um::Paging paging,
                                bool poison = true) {
  return Execution{std::vector<StepCase>{{graph, plan}}}.managed(kOneStepRepeated, paging, poison);
}

inline Executed execute_copy(const TaskGraph& graph, const Plan& plan) {
  return Execution{std::vector<StepCase>{{graph, plan}}}.copy(kOneStepRepeated);
}

}  // namespace spillway::prefetch::testing
