#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

/// Returns layers with a weight and a moment each, of random sizes; some weights are updated in two
/// parts. Weights and moments are offloadable with `has_offloadable_state`.
inline TaskGraph random_layers(bool has_offloadable_state = true) {
  TaskGraph graph;
  const auto add = [&](const std::string& name, bool is_state = false) {
    return graph.add(DataBlock{.name = name,
                               .size = pages(*rc::gen::inRange<std::uint64_t>(1, 6)),
                               .kind = is_state ? DataKind::kState : DataKind::kTensor,
                               .is_offloadable = is_state && has_offloadable_state});
  };
  const int layers = *rc::gen::inRange(1, 7);
  std::vector<DataId> y{add("y0")};
  std::vector<DataId> weights;
  graph.add(Task{.name = "load", .writes = {y[0]}});
  for (int i = 1; i <= layers; ++i) {
    const std::string number = std::to_string(i);
    y.push_back(add("y" + number));
    weights.push_back(add("w" + number, true));
    graph.add(Task{.name = "f" + number,
                   .reads = {y[y.size() - 2], weights.back()},
                   .writes = {y.back()},
                   .is_recomputable = true});
  }
  DataId dy = add("d" + std::to_string(layers));
  graph.add(Task{.name = "loss", .phase = Phase::kBackward, .reads = {y.back()}, .writes = {dy}});
  for (int i = layers; i >= 1; --i) {
    const std::string number = std::to_string(i);
    const DataId w = weights[static_cast<std::size_t>(i - 1)];
    const DataId x = y[static_cast<std::size_t>(i - 1)];
    const DataId dx = add("d" + std::to_string(i - 1));
    graph.add(
        Task{.name = "b" + number, .phase = Phase::kBackward, .reads = {dy, w}, .writes = {dx}});
    const int parts = *rc::gen::inRange(1, 3);
    for (int part = 0; part < parts; ++part) {
      const std::string name = number + "." + std::to_string(part);
      const DataId g = add("g" + name);
      const DataId m = add("m" + name, true);
      graph.add(
          Task{.name = "bw" + name, .phase = Phase::kBackward, .reads = {x, dy}, .writes = {g}});
      graph.add(
          Task{.name = "u" + name, .phase = Phase::kUpdate, .reads = {w, m, g}, .writes = {w, m}});
    }
    dy = dx;
  }
  return graph;
}

/// Builds one random chain, pass by pass: see random_chain().
class RandomChain {
 public:
  explicit RandomChain(bool with_second_blocks) : with_second_blocks_{with_second_blocks} {}

  TaskGraph make(int layers) {
    x_ = {new_block("x0")};
    graph_.add(
        Task{.name = "load", .writes = {x_[0]}, .is_recomputable = *rc::gen::arbitrary<bool>()});
    for (int i = 1; i <= layers; ++i) add_forward(std::to_string(i));
    dx_ = new_block("loss");
    graph_.add(
        Task{.name = "loss", .phase = Phase::kBackward, .reads = {x_.back()}, .writes = {dx_}});
    for (int i = layers; i >= 1; --i) add_backward(static_cast<std::size_t>(i));
    return std::move(graph_);
  }

 private:
  DataId new_block(const std::string& name) {
    return graph_.add(
        DataBlock{.name = name, .size = pages(*rc::gen::inRange<std::uint64_t>(1, 7))});
  }
  static um::Bytes workspace() {
    const bool has_one = *rc::gen::inRange(0, 4) == 0;
    return has_one ? pages(*rc::gen::inRange<std::uint64_t>(1, 5)) : um::Bytes{};
  }

  void add_forward(const std::string& name) {
    Task task{.name = "f" + name, .reads = {x_.back()}};
    task.algorithms = {{.workspace = workspace()}};
    task.is_recomputable = *rc::gen::inRange(0, 8) > 0;
    x_.push_back(new_block("x" + name));
    task.writes = {x_.back()};
    second_.emplace_back();
    if (with_second_blocks_ && *rc::gen::inRange(0, 3) == 0) {
      second_.back().push_back(new_block("s" + name));
      task.writes.push_back(second_.back()[0]);
    }
    graph_.add(task);
  }

  void add_backward(std::size_t layer) {
    Task task{.name = "b" + std::to_string(layer), .phase = Phase::kBackward};
    task.reads = {x_[layer - 1], x_[layer], dx_};
    task.reads.insert(task.reads.end(), second_[layer - 1].begin(), second_[layer - 1].end());
    task.algorithms = {{.workspace = workspace()}};
    dx_ = new_block("d" + std::to_string(layer - 1));
    task.writes = {dx_};
    graph_.add(task);
  }

  bool with_second_blocks_;
  TaskGraph graph_;
  std::vector<DataId> x_;                    // x(i), and x0
  std::vector<std::vector<DataId>> second_;  // by layer: its second block, if it has one
  DataId dx_{};                              // gradient of the last backward task
};

/// Returns a random chain of up to `max_layers` layers. Forward i reads x(i-1) and writes x(i), and
/// sometimes a second block that only its backward reads. Backward i reads x(i-1), x(i) and dx(i)
/// and writes dx(i-1). Sizes are 1 to 6 pages, some tasks need a workspace, most are recomputable.
inline TaskGraph random_chain(int max_layers, bool with_second_blocks = true) {
  return RandomChain{with_second_blocks}.make(*rc::gen::inRange(1, max_layers + 1));
}

}  // namespace spillway::prefetch::testing
