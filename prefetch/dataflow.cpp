#include "prefetch/dataflow.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spillway::prefetch {
namespace {

using Value = std::uint64_t;
constexpr Value kNothing = 0;

Value mix(Value a, Value b) {
  Value x = a ^ (b + 0x9e3779b97f4a7c15ULL + (a << 6U) + (a >> 2U));
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

class ValueNumbering {
 public:
  explicit ValueNumbering(const TaskGraph& graph)
      : graph_{graph}, value_(graph.data.size(), kNothing), first_read_(graph.tasks.size()) {
    for (std::size_t i = 0; i < graph.data.size(); ++i) {
      if (graph.data[i].kind == DataKind::kState) value_[i] = mix(1, i);
    }
  }

  std::optional<Violation> run(const TaskRun& run) {
    const Task& task = graph_[run.task];
    std::vector<Value> read;
    for (const DataId id : task.reads) {
      read.push_back(at(id));
      if (read.back() == kNothing) {
        return Violation{task.name + " reads " + graph_[id].name + " before anything wrote it"};
      }
    }
    std::vector<Value>& first = first_read_[static_cast<std::size_t>(run.task)];
    if (!run.is_recomputation) {
      first = read;
      for (const DataId id : task.updates_once) at(id) = mix(at(id), static_cast<Value>(run.task));
    } else if (read != first) {
      return Violation{"the recomputation of " + task.name +
                       " reads other values than its first run"};
    }
    write(run.task, read);
    return std::nullopt;
  }

 private:
  Value& at(DataId id) { return value_[static_cast<std::size_t>(id)]; }

  void write(TaskId task, const std::vector<Value>& read) {
    Value inputs = mix(2, static_cast<Value>(task));
    for (const Value value : read) inputs = mix(inputs, value);
    Value index = 0;
    for (const DataId id : graph_[task].writes) at(id) = mix(inputs, ++index);
  }

  const TaskGraph& graph_;
  std::vector<Value> value_;
  std::vector<std::vector<Value>> first_read_;
};

std::optional<Violation> check_order(const TaskGraph& graph, std::span<const TaskRun> runs) {
  std::size_t next = 0;
  for (const TaskRun& run : runs) {
    const auto task = static_cast<std::size_t>(run.task);
    if (task >= graph.tasks.size())
      return Violation{"a run names task " + std::to_string(task) + ", which is not there"};
    const std::string& name = graph.tasks[task].name;
    if (run.algorithm >= graph.tasks[task].algorithms.size()) {
      return Violation{name + " has no algorithm " + std::to_string(run.algorithm)};
    }
    if (run.is_recomputation) {
      if (task >= next) return Violation{name + " is recomputed before its first run"};
      if (!graph.tasks[task].is_recomputable) return Violation{name + " cannot be recomputed"};
    } else if (task != next++) {
      return Violation{name + " runs out of order"};
    }
  }
  if (next != graph.tasks.size()) return Violation{graph.tasks[next].name + " never runs"};
  return std::nullopt;
}

}  // namespace

std::optional<Violation> check_dataflow(const TaskGraph& graph, std::span<const TaskRun> runs) {
  if (auto violation = check_order(graph, runs)) return violation;
  ValueNumbering numbering{graph};
  // A recomputation runs the algorithm of the first run: another one rounds differently.
  std::vector<std::uint32_t> algorithm(graph.tasks.size());
  for (const TaskRun& run : runs) {
    std::uint32_t& first = algorithm[static_cast<std::size_t>(run.task)];
    if (!run.is_recomputation) first = run.algorithm;
    if (run.algorithm != first) {
      return Violation{"the recomputation of " + graph[run.task].name + " uses another algorithm"};
    }
    if (auto violation = numbering.run(run)) return violation;
  }
  return std::nullopt;
}

}  // namespace spillway::prefetch
