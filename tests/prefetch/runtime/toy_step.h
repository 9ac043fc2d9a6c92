#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "prefetch/runtime/step_layout.h"
#include "prefetch/runtime/step_memory.h"
#include "prefetch/task_graph.h"
#include "um/hints.h"

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

inline void run_planned_step(const ToyPart& part, std::uint64_t step, ToyResult& result) {
  const StepLayout& layout = *part.layout;
  StepMemory& memory = *part.memory;
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
    if (!run.is_recomputation) result.read.push_back(read);
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

}  // namespace spillway::prefetch::testing
