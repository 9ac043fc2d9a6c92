#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "um/bytes.h"

namespace spillway::prefetch {

enum class TaskId : std::uint32_t {};
enum class DataId : std::uint32_t {};

/// Whether a data block outlives the step.
enum class DataKind {
  kState,  ///< weights, optimizer state, statistics: near, unless it is offloadable
  kTensor  ///< made and used up within one step
};

/// One tensor that tasks read or write.
struct DataBlock {
  std::string name;  ///< unique in the graph: plan files know it by its name
  um::Bytes size;
  DataKind kind = DataKind::kTensor;
  /// Of state: it may be far. It ends each step where it began it, near or far, page by page.
  bool is_offloadable = false;
  /// Of offloadable state: made anew in each step, and far when the step ends, where a FarUpdate
  /// reads it. Its content of the step before is needed by nobody.
  bool is_sent = false;
  /// Of state that is always near: it lies in the memory of another such block, and counts no bytes
  /// of its own. From its first write in a step on nobody uses what was there.
  std::optional<DataId> lies_in{};

  /// True when it may be far at some time.
  [[nodiscard]] bool may_leave() const { return kind == DataKind::kTensor || is_offloadable; }
};

enum class Phase { kForward, kBackward, kUpdate };

/// What a task computes, for the strategies that ask: vDNN offloads what convolutions read,
/// SuperNeurons runs again what is neither convolution nor linear.
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
/// `writes` is overwritten whole.
struct Task {
  std::string name;  ///< unique in the graph
  Phase phase = Phase::kForward;
  TaskKind kind = TaskKind::kOther;
  std::vector<DataId> reads;
  std::vector<DataId> writes;
  /// State that the first run updates in place and a recomputation leaves alone (running
  /// statistics).
  std::vector<DataId> updates_once;
  std::vector<Algorithm> algorithms = {{}};  ///< at least one; the first needs the least workspace
  double flops = 0;
  um::Bytes traffic;             ///< bytes of its operands: what a roofline model needs
  bool is_recomputable = false;  ///< run again in the same step it gives the same bits
};

[[nodiscard]] inline bool is_update(const Task& task) { return task.phase == Phase::kUpdate; }

/// An update that the far side computes beside the step, over far memory: it has no operand in near
/// memory, and nothing of it crosses the link but the gradient (ZeRO-Offload, section 4). It runs
/// once in a step, when its gradient has left and nobody needs the old parameters any more.
struct FarUpdate {
  std::string name;             ///< unique among tasks, too
  DataId gradient{};            ///< sent (DataBlock::is_sent)
  DataId parameters{};          ///< updates them, or a part; tasks only read them
  std::vector<DataId> numbers;  ///< the optimizer's: updates them; no task uses them
};

/// What an exchange makes of its blocks (MPI's words).
enum class Collective : std::uint8_t {
  kAllReduce,      ///< sums over all ranks
  kReduceScatter,  ///< of those that are divided, the sums of this rank's slice alone
  kAllGather       ///< every rank's slice
};

/// A collective between the ranks of a data-parallel training: each of a bucket of gradients
/// becomes its sum over all ranks, in place. It begins when `ready` has run, and takes place beside
/// the tasks that follow; those that use one of its blocks wait for it.
///
/// Where the optimizer is divided among ranks (ZeRO, stage 1), a rank updates a slice of each large
/// block of parameters. It needs the sums of that slice alone, and a second collective, when the
/// slices are updated, gathers the parameters.
struct GradientExchange {
  std::string name;             ///< unique among exchanges: "bucket 1"
  std::vector<DataId> blocks;   ///< state that is always near; each is in one exchange
  std::vector<DataId> divided;  ///< of them: those of which each rank has a slice; they come last
  TaskId ready{};               ///< with this task the last of them is complete
  Collective collective = Collective::kAllReduce;

  /// Else of the parameters that lie in the gradients of another one.
  [[nodiscard]] bool is_of_gradients() const { return collective != Collective::kAllGather; }
};

/// All tasks of one step in execution order, with the blocks each reads and writes: moDNN's task
/// and data flow graph (section III).
struct TaskGraph {
  std::vector<DataBlock> data;
  std::vector<Task> tasks;
  std::vector<FarUpdate> far_updates;  ///< none: everything runs near
  /// In the order in which they are ready; none: the training has one rank.
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

/// A number that differs between graphs with different tasks, blocks, sizes or algorithms, whatever
/// decides whether a plan is right: tells a plan whether it was made for this graph. Costs
/// (`flops`, `traffic`) and kinds do not count.
[[nodiscard]] std::uint64_t fingerprint(const TaskGraph& graph);

/// Calls `use` with each block that the task reads or writes; twice where it updates one in place.
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
