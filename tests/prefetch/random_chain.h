#pragma once

#include <rapidcheck.h>

#include <string>
#include <vector>

#include "prefetch/task_graph.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch::testing {

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
