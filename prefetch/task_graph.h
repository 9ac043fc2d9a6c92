#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "um/bytes.h"

namespace spillway::prefetch {

enum class TaskId : std::uint32_t {};
enum class DataId : std::uint32_t {};

/// Whether a data block outlives the step.
enum class DataKind {
  kState,  ///< weights, optimizer state, statistics: near, unless it is offloadable
  kTensor  ///< made and consumed within one step
};

/// One tensor that tasks read or write.
struct DataBlock {
  std::string name;  ///< unique in the graph; the block's identity in plan files
  um::Bytes size;
  DataKind kind = DataKind::kTensor;
  /// For state: true if it may be far. Each page ends a step where it began, near or far.
  bool is_offloadable = false;
  /// For offloadable state: written anew in each step, and far when the step ends, where a
  /// FarUpdate reads it. Its content of the previous step is not needed.
  bool is_sent = false;
  /// If this block and an earlier one, no smaller than it, are always near: shares the memory
  /// of the other, and adds no bytes. From its first write in a step on, the content of the other
  /// block is not used. Small tensors are always near (BlockSizes).
  std::optional<DataId> lies_in{};

  /// True if it may be far at some time.
  [[nodiscard]] bool may_leave() const { return kind == DataKind::kTensor || is_offloadable; }
};

enum class Phase { kForward, kBackward, kUpdate };

/// The kind of computation, for strategies: vDNN offloads inputs of convolutions, SuperNeurons
/// recomputes everything except convolutions and linear layers.
enum class TaskKind {
  kOther,
  kConvolution,
  kLinear,
  kPool,
  kActivation,
  kNormalization,
  kDropout,
  kJoin  ///< an addition or concatenation of several tensors
};

/// One way to run a task, and the scratch bytes it needs (SuperNeurons section 3.5, moDNN Eq. 1).
struct Algorithm {
  std::string name = "default";
  um::Bytes workspace;
};

/// One operation of a step. A block in `reads` and in `writes` is updated in place; a block only in
/// `writes` is overwritten completely.
struct Task {
  std::string name;  ///< unique in the graph
  Phase phase = Phase::kForward;
  TaskKind kind = TaskKind::kOther;
  std::vector<DataId> reads;
  std::vector<DataId> writes;
  /// State (running statistics) that the first run updates in place and a recomputation leaves
  /// unchanged.
  std::vector<DataId> updates_once;
  std::vector<Algorithm> algorithms = {{}};  ///< at least one; the first needs the least workspace
  double flops = 0;
  um::Bytes traffic;             ///< bytes of its operands: what a roofline model needs
  bool is_recomputable = false;  ///< a second run in the same step gives the same bits
  /// Earlier tasks that it follows though no block says so: every run of it follows their first
  /// runs.
  std::vector<TaskId> after{};
  std::optional<std::uint32_t> micro_batch{};  ///< the micro-batch it belongs to, if that is known
  std::string variant{};  ///< the way in which it runs, if it has several (VariedStep)
};

[[nodiscard]] inline bool is_update(const Task& task) { return task.phase == Phase::kUpdate; }

/// An update that the far side computes beside the step, on far memory. It has no operand in near
/// memory, and only the gradient crosses the link (ZeRO-Offload, section 4). It runs once per step,
/// when its gradient has been offloaded and no task needs the old parameters any more.
struct FarUpdate {
  std::string name;             ///< unique among far updates and tasks
  DataId gradient{};            ///< sent (DataBlock::is_sent)
  DataId parameters{};          ///< updates them, or a part; tasks only read them
  std::vector<DataId> numbers;  ///< optimizer state, updated; no task uses it
};

/// The collective operation of an exchange (MPI's words).
enum class Collective : std::uint8_t {
  kAllReduce,      ///< sums over all ranks
  kReduceScatter,  ///< for divided blocks, sums of this rank's slice only
  kAllGather       ///< every rank's slice
};

/// A collective between the ranks of a data-parallel training: each gradient of a bucket becomes
/// its sum over all ranks, in place. It begins when `ready` has run, and runs beside the following
/// tasks; tasks that use one of its blocks wait for it.
///
/// If the optimizer is divided among ranks (ZeRO, stage 1), a rank updates a slice of each large
/// block of parameters. It needs the sums of that slice only. A second collective gathers the
/// parameters when the slices are updated.
struct GradientExchange {
  std::string name;             ///< unique among exchanges: "bucket 1"
  std::vector<DataId> blocks;   ///< state that is always near; each is in one exchange
  std::vector<DataId> divided;  ///< the last of `blocks`: each rank has a slice of these
  /// Sums of earlier micro-batches that become a part of these sums, too: always near, and complete
  /// when `ready` has run in the graph's order.
  std::vector<DataId> waiting;
  TaskId ready{};  ///< the task that completes the last block
  Collective collective = Collective::kAllReduce;

  /// False for a gather of parameters that lie in the gradients of another exchange.
  [[nodiscard]] bool is_of_gradients() const { return collective != Collective::kAllGather; }
};

/// All tasks of one step in execution order, with the blocks each reads and writes: moDNN's task
/// and data flow graph (section III).
struct TaskGraph {
  std::vector<DataBlock> data;
  std::vector<Task> tasks;
  std::vector<FarUpdate> far_updates;  ///< empty: everything runs near
  /// In the order in which they are ready; empty: the training has one rank.
  std::vector<GradientExchange> exchanges;

  DataId add(DataBlock block) {
    data.push_back(std::move(block));
    return DataId(data.size() - 1);
  }
  TaskId add(Task task) {
    tasks.push_back(std::move(task));
    return TaskId(tasks.size() - 1);
  }

  [[nodiscard]] const DataBlock& operator[](DataId id) const {
    return data[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] const Task& operator[](TaskId id) const {
    return tasks[static_cast<std::size_t>(id)];
  }
};

/// Returns a hash over tasks, blocks, sizes and algorithms: everything that decides whether a plan
/// is valid. A plan stores it to identify its graph. Costs (`flops`, `traffic`) and kinds do not
/// count.
[[nodiscard]] std::uint64_t fingerprint(const TaskGraph& graph);
/// Returns a hash of a text, which is the same in each process.
[[nodiscard]] std::uint64_t fingerprint(std::string_view text);

/// Calls `use` with each block that the task reads or writes; twice for an update in place.
template <class Use>
void for_each_operand(const Task& task, const Use& use) {
  for (const auto* const ids : {&task.reads, &task.writes, &task.updates_once}) {
    for (const DataId id : *ids) use(id);
  }
}

/// Calls `use` with each block that the task writes, running statistics included.
template <class Use>
void for_each_written(const Task& task, const Use& use) {
  for (const auto* const ids : {&task.writes, &task.updates_once}) {
    for (const DataId id : *ids) use(id);
  }
}

}  // namespace spillway::prefetch
