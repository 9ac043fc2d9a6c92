#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
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
#include "prefetch/runtime/step_layout.h"
#include "prefetch/runtime/step_memory.h"
#include "prefetch/task_graph.h"
#include "tests/prefetch/runtime/given_copies.h"
#include "um/hints.h"
#include "um/host/host_device.h"
#include "um/memory.h"

namespace spillway::prefetch::testing {

/// The result of steps of a toy graph: each task's reads by the end of its first run, and the final
/// state.
struct ToyResult {
  std::vector<std::uint64_t> read;  ///< by step and task
  std::vector<std::byte> state;     ///< all state blocks, concatenated
  bool workspaces_kept = true;      ///< only its task wrote to each workspace
  friend bool operator==(const ToyResult&, const ToyResult&) = default;
};

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a ^ b) * 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 29U)) * 0xbf58476d1ce4e5b9ULL;
  return x ^ (x >> 32U);
}

/// The operands of one task, in any memory.
struct ToyArguments {
  std::function<std::byte*(DataId)> address;
  std::span<std::byte> workspace;
  std::uint64_t step = 0;
  bool is_recomputation = false;
};

/// The kernel of every task: each word of its outputs is a hash of all words of its inputs, of the
/// task, and of the word's index. Only the first task uses the step number. Returns the hash of the
/// inputs; clears `workspace_kept` when the workspace changed while the outputs were written.
inline std::uint64_t run_toy_kernel(const TaskGraph& graph, TaskId id,
                                    const ToyArguments& arguments, bool& workspace_kept) {
  const Task& task = graph[id];
  const auto words = [](std::size_t bytes) { return bytes / sizeof(std::uint64_t); };
  std::uint64_t hash = mix(static_cast<std::uint64_t>(id), id == TaskId{0} ? arguments.step : 0);
  for (const DataId read : task.reads) {
    const auto* in = reinterpret_cast<const std::uint64_t*>(arguments.address(read));
    for (std::size_t i = 0; i < words(graph[read].size.count()); ++i) hash = mix(hash, in[i]);
  }
  auto* scratch = reinterpret_cast<std::uint64_t*>(arguments.workspace.data());
  for (std::size_t i = 0; i < words(arguments.workspace.size()); ++i) scratch[i] = hash;
  const auto write = [&](DataId written, std::uint64_t salt) {
    auto* out = reinterpret_cast<std::uint64_t*>(arguments.address(written));
    for (std::size_t i = 0; i < words(graph[written].size.count()); ++i) {
      out[i] = mix(hash ^ salt, i);
    }
  };
  for (std::size_t i = 0; i < task.writes.size(); ++i) write(task.writes[i], i);
  if (!arguments.is_recomputation) {
    for (const DataId once : task.updates_once) write(once, ~std::uint64_t{0});
  }
  for (std::size_t i = 0; i < words(arguments.workspace.size()); ++i) {
    workspace_kept = workspace_kept && scratch[i] == hash;
  }
  return hash;
}

/// The state blocks of a graph, in one buffer of 64-bit words.
class ToyState {
 public:
  explicit ToyState(const TaskGraph& graph) : addresses_(graph.data.size(), nullptr) {
    std::size_t size = 0;
    for (const DataBlock& block : graph.data) {
      if (block.kind == DataKind::kState) size += block.size.count();
    }
    words_.resize(size / sizeof(std::uint64_t));
    std::byte* next = std::as_writable_bytes(std::span{words_}).data();
    for (std::size_t i = 0; i < graph.data.size(); ++i) {
      if (graph.data[i].kind != DataKind::kState) continue;
      addresses_[i] = next;
      next += graph.data[i].size.count();
    }
  }
  /// Returns addresses by DataId; null for tensors.
  [[nodiscard]] const std::vector<std::byte*>& addresses() const { return addresses_; }
  [[nodiscard]] std::vector<std::byte> bytes() const {
    const auto all = std::as_bytes(std::span{words_});
    return {all.begin(), all.end()};
  }

 private:
  std::vector<std::uint64_t> words_;
  std::vector<std::byte*> addresses_;
};

/// Passes the address of a state block to a function that uses it between two steps.
using ToyStateAccess =
    std::function<void(DataId, um::Access, const std::function<void(std::byte*)>&)>;

/// Runs after every other step: of three state blocks it changes one, and reads one.
inline void use_toy_state(const TaskGraph& graph, std::uint64_t step, const ToyStateAccess& access,
                          ToyResult& result) {
  if (step % 2 == 0) return;
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    if (graph.data[i].kind != DataKind::kState) continue;
    const auto words = [&](std::byte* at) {
      return std::span{reinterpret_cast<std::uint64_t*>(at), graph.data[i].size.count() / 8};
    };
    if ((i + step) % 3 == 0) {
      access(DataId(i), um::Access::kReadWrite,
             [&](std::byte* at) { words(at).back() = mix(words(at).back(), step); });
    } else if ((i + step) % 3 == 1) {
      access(DataId(i), um::Access::kRead, [&](std::byte* at) {
        std::uint64_t hash = i;
        for (const std::uint64_t word : words(at)) hash = mix(hash, word);
        result.read.push_back(hash);
      });
    }
  }
}

/// Returns the expected result of consecutive steps of `graphs`, which have the same state: every
/// task once, in order, with separate memory for each block. Independent of plans.
inline ToyResult run_plainly(std::span<const TaskGraph* const> graphs) {
  ToyState state{*graphs.front()};
  ToyResult result;
  for (std::uint64_t step = 0; step < graphs.size(); ++step) {
    const TaskGraph& graph = *graphs[step];
    std::vector<std::vector<std::uint64_t>> blocks;
    for (const DataBlock& block : graph.data) blocks.emplace_back(block.size.count() / 8);
    const auto address = [&](DataId id) {
      std::byte* at = state.addresses()[static_cast<std::size_t>(id)];
      return at != nullptr
                 ? at
                 : std::as_writable_bytes(std::span{blocks[static_cast<std::size_t>(id)]}).data();
    };
    for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
      result.read.push_back(run_toy_kernel(graph, TaskId(t), {.address = address, .step = step},
                                           result.workspaces_kept));
    }
    use_toy_state(
        graph, step, [&](DataId id, um::Access /*access*/, const auto& use) { use(address(id)); },
        result);
  }
  result.state = state.bytes();
  return result;
}

/// Returns the expected result of `steps` steps of one graph.
inline ToyResult run_plainly(const TaskGraph& graph, std::uint64_t steps) {
  return run_plainly(std::vector<const TaskGraph*>(steps, &graph));
}

/// A step to execute, and the memory of its blocks.
struct ToyPart {
  const StepLayout* layout;
  StepMemory* memory;
  /// Replaces run_planned_step() if set.
  std::function<void(std::uint64_t step, ToyResult& result)> run = {};
};

/// Makes room for what the tasks of a step read. Returns the place of the first task's. Plans may
/// run tasks in another order.
inline std::size_t add_reads(const TaskGraph& graph, ToyResult& result) {
  const std::size_t first = result.read.size();
  result.read.resize(first + graph.tasks.size());
  return first;
}

inline void run_planned_step(const ToyPart& part, std::uint64_t step, ToyResult& result) {
  const StepLayout& layout = *part.layout;
  StepMemory& memory = *part.memory;
  const std::size_t first = add_reads(layout.graph, result);
  memory.begin_step();
  for (Position p = 0; p < layout.plan.runs.size(); ++p) {
    const TaskRun& run = layout.plan.runs[p];
    const um::Bytes workspace = layout.graph[run.task].algorithms[run.algorithm].workspace;
    memory.begin_run(p);
    const ToyArguments arguments{.address = [&](DataId id) { return memory.address(id); },
                                 .workspace = {memory.workspace(), workspace.count()},
                                 .step = step,
                                 .is_recomputation = run.is_recomputation};
    const std::uint64_t read =
        run_toy_kernel(layout.graph, run.task, arguments, result.workspaces_kept);
    if (!run.is_recomputation) result.read[first + static_cast<std::size_t>(run.task)] = read;
    memory.end_run(p);
  }
  memory.end_step();
}

/// Copies movable state from its plain place into the memory, or back.
inline void copy_toy_state(const ToyPart& part, const ToyState& state, um::Access access) {
  const TaskGraph& graph = part.layout->graph;
  for (std::size_t i = 0; i < graph.data.size(); ++i) {
    const bool is_state = graph.data[i].kind == DataKind::kState;
    if (!is_state || !part.layout->block_sizes.is_movable(DataId(i))) continue;
    const DataId id{static_cast<std::uint32_t>(i)};
    part.memory->with_state({&id, 1}, access, [&](std::span<std::byte* const> places) {
      std::byte* const at = places.front();
      std::byte* plain = state.addresses()[i];
      const std::size_t size = graph.data[i].size.count();
      access == um::Access::kRead ? std::memcpy(plain, at, size) : std::memcpy(at, plain, size);
    });
  }
}

/// Executes consecutive steps as the executor does; each memory passes the state on to the next.
inline ToyResult run_planned(std::span<const ToyPart> parts, const ToyState& state) {
  ToyResult result;
  parts.front().memory->enter();
  copy_toy_state(parts.front(), state, um::Access::kWrite);
  for (std::uint64_t step = 0; step < parts.size(); ++step) {
    const ToyPart& part = parts[step];
    if (step > 0 && part.memory != parts[step - 1].memory) {
      parts[step - 1].memory->leave();
      part.memory->enter();
    }
    if (part.run) {
      part.run(step, result);
    } else {
      run_planned_step(part, step, result);
    }
    use_toy_state(
        part.layout->graph, step,
        [&](DataId id, um::Access access, const auto& use) {
          if (!part.layout->block_sizes.is_movable(id)) {
            use(state.addresses()[static_cast<std::size_t>(id)]);
            return;
          }
          part.memory->with_state({&id, 1}, access,
                                  [&](std::span<std::byte* const> places) { use(places.front()); });
        },
        result);
  }
  copy_toy_state(parts.back(), state, um::Access::kRead);
  parts.back().memory->leave();
  result.state = state.bytes();
  return result;
}

/// Executes `steps` steps in one memory.
inline ToyResult run_planned(const StepLayout& layout, StepMemory& memory, const ToyState& state,
                             std::uint64_t steps) {
  return run_planned(std::vector<ToyPart>(steps, {.layout = &layout, .memory = &memory}), state);
}

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
    first_read_ = add_reads(layout_.graph, result);
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
    if (run.is_recomputation) return;
    result_->read[first_read_ + static_cast<std::size_t>(run.task)] = read;
  }

  const StepLayout& layout_;
  FixedPlaces& places_;
  PlainLanes lanes_;
  GivenStep given_;
  Position first_;
  bool has_run_ = false;
  std::uint64_t step_ = 0;
  std::size_t first_read_ = 0;  // of the step, in the result
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
