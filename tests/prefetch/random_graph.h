#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "prefetch/task_graph.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch::testing {

/// Options of random_graph().
struct RandomGraphOptions {
  int max_layers = 13;
  int in_place_one_in = 4;  ///< one in this many forward tasks updates a tensor in place
  std::optional<bool> has_offloadable_weights;  ///< random if not given: one graph in four
};

/// Builds one random step, pass by pass: see random_graph().
class RandomStep {
 public:
  explicit RandomStep(const RandomGraphOptions& options)
      : options_{options},
        layers_{*rc::gen::inRange(1, options.max_layers + 1)},
        has_offloadable_weights_{options.has_offloadable_weights ? *options.has_offloadable_weights
                                                                 : one_in(4)} {}

  TaskGraph make() {
    add_load();
    for (int i = 1; i <= layers_; ++i) add_forward(i);
    add_loss();
    for (int i = layers_; i >= 1; --i) {
      add_backward(i);
      if (!weights_.empty() && one_in(2)) add_update(i);
    }
    return std::move(graph_);
  }

 private:
  static bool one_in(int times) { return *rc::gen::inRange(0, times) == 0; }
  static DataId any_of(const std::vector<DataId>& ids) {
    return ids[*rc::gen::inRange<std::size_t>(0, ids.size())];
  }
  static um::Bytes some_pages(std::uint64_t max) {
    return pages(*rc::gen::inRange<std::uint64_t>(1, max + 1));
  }
  static void read(Task& task, DataId id) {
    if (std::ranges::count(task.reads, id) == 0) task.reads.push_back(id);
  }

  DataId new_tensor(const std::string& name) {
    return graph_.add(DataBlock{.name = name, .size = some_pages(6)});
  }

  void add_load() {
    tensors_ = {new_tensor("x0")};
    graph_.add(Task{.name = "load", .writes = tensors_, .is_recomputable = one_in(2)});
  }

  void add_forward(int layer) {
    const std::string name = std::to_string(layer);
    Task task{.name = "f" + name,
              .kind = *rc::gen::element(TaskKind::kOther, TaskKind::kConvolution, TaskKind::kPool),
              .is_recomputable = !one_in(4)};
    task.reads = {tensors_.back()};
    if (one_in(3)) read(task, any_of(tensors_));
    if (layer > 1 && one_in(options_.in_place_one_in)) {
      update_in_place(task);
    } else {
      write_new(task, name);
    }
    if (one_in(3)) task.algorithms.push_back({.name = "fast", .workspace = some_pages(4)});
    saved_.push_back(*rc::gen::element(task.reads, task.writes, std::vector<DataId>{}));
    if (task.kind == TaskKind::kConvolution || one_in(4)) use_weight(task, name);
    if (one_in(8)) task.updates_once = {new_statistics(name)};
    graph_.add(task);
  }

  void write_new(Task& task, const std::string& name) {
    tensors_.push_back(new_tensor("x" + name));
    task.writes = {tensors_.back()};
    if (!one_in(4)) return;
    tensors_.push_back(new_tensor("y" + name));
    task.writes.push_back(tensors_.back());
  }

  // Half of the time updates a tensor that other tasks have read. The next task reads it, too.
  void update_in_place(Task& task) {
    const DataId updated = one_in(2) ? any_of(tensors_) : tensors_.back();
    std::erase(tensors_, updated);
    tensors_.push_back(updated);
    read(task, updated);
    task.writes = {updated};
  }

  // The backward task reads the weight again. Sometimes it is shared with an earlier layer, or
  // already changes in the forward pass.
  void use_weight(Task& task, const std::string& name) {
    const bool is_shared = !weights_.empty() && one_in(4);
    if (!is_shared) weights_.push_back(new_weight(name));
    const DataId weight = is_shared ? any_of(weights_) : weights_.back();
    read(task, weight);
    saved_.back().push_back(weight);
    if (one_in(12)) task.writes.push_back(weight);
  }

  DataId new_weight(const std::string& name) {
    return graph_.add(DataBlock{.name = "w" + name,
                                .size = one_in(2) ? um::Bytes{64} : some_pages(6),
                                .kind = DataKind::kState,
                                .is_offloadable = has_offloadable_weights_ && !one_in(4)});
  }

  DataId new_statistics(const std::string& name) {
    return graph_.add(
        DataBlock{.name = "statistics " + name, .size = um::Bytes{24}, .kind = DataKind::kState});
  }

  void add_loss() {
    gradients_ = {new_tensor("g")};
    graph_.add(Task{.name = "loss",
                    .phase = Phase::kBackward,
                    .reads = {tensors_.back()},
                    .writes = gradients_});
    gradient_ = gradients_[0];
  }

  void add_backward(int layer) {
    Task task{.name = "b" + std::to_string(layer), .phase = Phase::kBackward};
    for (const DataId id : saved_[static_cast<std::size_t>(layer - 1)]) read(task, id);
    if (one_in(3)) read(task, any_of(tensors_));
    read(task, gradient_);
    const DataId other = any_of(gradients_);
    if (other != gradient_ && one_in(2)) {
      read(task, other);
      gradient_ = other;
    } else {
      gradient_ = new_tensor("g" + std::to_string(layer));
      gradients_.push_back(gradient_);
    }
    task.writes = {gradient_};
    graph_.add(task);
  }

  // Adds an update of any weight, even if a backward task still has to read it.
  void add_update(int layer) {
    const DataId weight = any_of(weights_);
    graph_.add(Task{.name = "u" + std::to_string(layer),
                    .phase = Phase::kUpdate,
                    .reads = {weight, gradient_},
                    .writes = {weight}});
  }

  RandomGraphOptions options_;
  int layers_;
  bool has_offloadable_weights_;
  TaskGraph graph_;
  std::vector<DataId> tensors_;  // of the forward pass; the next task reads the last one
  std::vector<DataId> weights_;
  std::vector<DataId> gradients_;
  DataId gradient_{};                       // of the last backward task
  std::vector<std::vector<DataId>> saved_;  // by layer: blocks that its backward task reads
};

/// Returns a random training step. The forward pass is a DAG. Its tasks read one or two earlier
/// tensors. They write one or two new ones, or update one in place, which others may have read
/// before. Backward tasks read blocks that forward saved, its inputs, its outputs or nothing,
/// sometimes another tensor, and sometimes accumulate into an earlier gradient. Sizes are 1 to 6
/// pages. Some tasks are convolutions, some pool. Convolutions and some others read weights of 64
/// bytes or of pages (offloadable in some graphs), which update tasks change during the backward
/// pass. Some tasks update running statistics once, and some have a second algorithm. Most are
/// recomputable, sometimes also the first one, which loads the batch.
inline TaskGraph random_graph(const RandomGraphOptions& options = {}) {
  return RandomStep{options}.make();
}

/// Gives the tasks of `graph` phases as in a trace: any, task by task; or the same for stretches of
/// tasks, such as the rounds of gradient accumulation.
inline void state_phases(TaskGraph& graph) {
  const bool in_stretches = *rc::gen::arbitrary<bool>();
  Phase phase = Phase::kForward;
  for (Task& task : graph.tasks) {
    if (!in_stretches || *rc::gen::inRange(0, 4) == 0) {
      phase = *rc::gen::element(Phase::kForward, Phase::kBackward, Phase::kUpdate);
    }
    task.phase = phase;
  }
}

}  // namespace spillway::prefetch::testing
