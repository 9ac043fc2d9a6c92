#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "prefetch/planner.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch::testing {

/// A random step of 8 to 12 tasks: a chain forward and back, or any DAG, in which some tasks update
/// a tensor in place or need a workspace. The link is of any kind. Equal seeds give equal steps on
/// every machine.
class DrawnStep {
 public:
  explicit DrawnStep(std::uint64_t seed, bool is_chain) : generator_{seed} {
    const auto tasks = static_cast<int>(8 + draw(5));
    is_chain ? add_chain(tasks / 2) : add_dag(tasks);
    profile_.source = "drawn";
    profile_.graph = fingerprint(graph_);
    for (std::size_t t = 0; t < graph_.tasks.size(); ++t) {
      profile_.durations.push_back({um::Nanoseconds{100'000 * static_cast<int>(draw(8))}});
    }
    const um::Bandwidth slow{static_cast<double>(kPage.count()) / 20e-6};
    const um::Bandwidth fast{2 * slow.bytes_per_second()};
    profile_.link = {.offload = draw(2) == 0 ? slow : fast,
                     .prefetch = draw(2) == 0 ? slow : fast,
                     .latency = um::Nanoseconds{draw(2) == 0 ? 0 : 1000},
                     .is_duplex = draw(2) == 0,
                     .copies_while_read = draw(2) == 0};
    const NearNeed need = near_need(graph_, BlockSizes{graph_, kPage});
    budget_ = need.smallest + pages((need.resident - need.smallest) / kPage * draw(70) / 100);
  }

  /// Valid as long as this object lives.
  [[nodiscard]] Problem problem(bool whole_blocks) const {
    return {.graph = graph_,
            .profile = profile_,
            .budget = budget_,
            .page = kPage,
            .chunk = pages(16),
            .whole_blocks = whole_blocks};
  }

 private:
  std::uint64_t draw(std::uint64_t below) { return generator_() % below; }
  template <typename T>
  T any_of(const std::vector<T>& all) {
    return all[draw(all.size())];
  }

  DataId new_tensor() {
    return graph_.add(DataBlock{.name = "x" + std::to_string(graph_.data.size()),
                                .size = pages(4 * (1 + draw(10)))});
  }
  Task new_task() {
    Task task{.name = "t" + std::to_string(graph_.tasks.size())};
    if (draw(3) == 0) task.algorithms = {{.workspace = pages(4 * (1 + draw(4)))}};
    return task;
  }
  void read(Task& task, DataId id) {
    if (std::ranges::count(task.reads, id) == 0) task.reads.push_back(id);
  }

  void add_chain(int layers) {
    std::vector<DataId> x;
    for (int i = 0; i < layers; ++i) {
      Task task = new_task();
      if (!x.empty()) task.reads = {x.back()};
      x.push_back(new_tensor());
      task.writes = {x.back()};
      graph_.add(task);
    }
    DataId gradient = x.back();
    for (int i = layers - 1; i >= 0; --i) {
      Task task = new_task();
      task.phase = Phase::kBackward;
      task.reads = {x[static_cast<std::size_t>(i)]};
      if (i > 0 && draw(2) == 0) read(task, x[static_cast<std::size_t>(i - 1)]);
      read(task, gradient);
      gradient = new_tensor();
      task.writes = {gradient};
      graph_.add(task);
    }
  }

  void add_dag(int tasks) {
    std::vector<DataId> tensors;
    for (int i = 0; i < tasks; ++i) {
      Task task = new_task();
      if (i > tasks / 2) task.phase = Phase::kBackward;
      for (std::uint64_t reads = tensors.empty() ? 0 : draw(4); reads > 0; --reads) {
        read(task, any_of(tensors));
      }
      if (!task.reads.empty() && draw(6) == 0) {
        task.writes = {task.reads.front()};
      } else {
        tensors.push_back(new_tensor());
        task.writes = {tensors.back()};
      }
      graph_.add(task);
    }
  }

  std::mt19937_64 generator_;
  TaskGraph graph_;
  Profile profile_;
  um::Bytes budget_;
};

}  // namespace spillway::prefetch::testing
