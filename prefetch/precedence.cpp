#include "prefetch/precedence.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>

#include "prefetch/gradient_exchange.h"

namespace spillway::prefetch {
namespace {

// The tasks that use the content of a memory: its last writer, and those that have read it since.
struct Uses {
  std::optional<TaskId> writer;
  std::vector<TaskId> readers;
};

class PrecedenceFinder {
 public:
  PrecedenceFinder(const TaskGraph& graph, um::Bytes page,
                   std::vector<std::vector<TaskId>>& sources,
                   std::vector<std::vector<TaskId>>& hazards)
      : graph_{graph},
        block_sizes_{graph, page},
        sources_{sources},
        hazards_{hazards},
        uses_(graph.data.size()) {}

  void find() {
    for (std::size_t t = 0; t < graph_.tasks.size(); ++t) note(TaskId(t));
    follow_exchanges();
    for (auto* const lists : {&sources_, &hazards_}) {
      for (std::vector<TaskId>& tasks : *lists) {
        std::ranges::sort(tasks);
        tasks.erase(std::unique(tasks.begin(), tasks.end()), tasks.end());
      }
    }
  }

 private:
  [[nodiscard]] std::size_t memory_of(DataId id) const {
    return static_cast<std::size_t>(block_sizes_.host_of(graph_, id).value_or(id));
  }

  void note(TaskId id) {
    const Task& task = graph_[id];
    std::vector<TaskId>& sources = sources_[static_cast<std::size_t>(id)];
    std::vector<TaskId>& hazards = hazards_[static_cast<std::size_t>(id)];
    for (const auto* const ids : {&task.reads, &task.updates_once}) {
      for (const DataId read : *ids) {
        Uses& uses = uses_[memory_of(read)];
        if (uses.writer && *uses.writer != id) sources.push_back(*uses.writer);
        uses.readers.push_back(id);
      }
    }
    sources.insert(sources.end(), task.after.begin(), task.after.end());
    for_each_written(task, [&](DataId written) {
      Uses& uses = uses_[memory_of(written)];
      if (uses.writer && *uses.writer != id) hazards.push_back(*uses.writer);
      std::ranges::copy_if(uses.readers, std::back_inserter(hazards),
                           [id](TaskId reader) { return reader != id; });
    });
    for_each_written(
        task, [&](DataId written) { uses_[memory_of(written)] = {.writer = id, .readers = {}}; });
  }

  void follow_exchanges() {
    const std::vector<std::uint32_t> exchange = exchange_of_blocks(graph_);
    std::vector<std::vector<TaskId>> makers(graph_.exchanges.size());
    std::vector<std::vector<TaskId>> users(graph_.exchanges.size());
    for (std::size_t t = 0; t < graph_.tasks.size() && !makers.empty(); ++t) {
      for_each_operand(graph_.tasks[t], [&](DataId id) {
        const std::uint32_t e = exchange[static_cast<std::size_t>(id)];
        if (e == 0) return;
        const bool makes_it = TaskId(t) <= graph_.exchanges[e - 1].ready;
        (makes_it ? makers : users)[e - 1].push_back(TaskId(t));
      });
    }
    std::vector<TaskId> made;  // for the exchanges so far
    for (std::size_t e = 0; e < makers.size(); ++e) {
      made.insert(made.end(), makers[e].begin(), makers[e].end());
      for (const TaskId user : users[e]) {
        std::vector<TaskId>& hazards = hazards_[static_cast<std::size_t>(user)];
        std::ranges::copy_if(made, std::back_inserter(hazards),
                             [user](TaskId maker) { return maker < user; });
      }
    }
  }

  const TaskGraph& graph_;
  BlockSizes block_sizes_;
  std::vector<std::vector<TaskId>>& sources_;
  std::vector<std::vector<TaskId>>& hazards_;
  std::vector<Uses> uses_;  // by block; of blocks in one memory, that of the one they lie in
};

}  // namespace

std::size_t count_loads(const TaskGraph& graph) {
  const auto loads = [](const Task& task) { return task.reads.empty() && !task.is_recomputable; };
  return static_cast<std::size_t>(std::ranges::find_if_not(graph.tasks, loads) -
                                  graph.tasks.begin());
}

Precedence::Precedence(const TaskGraph& graph, um::Bytes page)
    : sources_(graph.tasks.size()), hazards_(graph.tasks.size()) {
  PrecedenceFinder{graph, page, sources_, hazards_}.find();
}

}  // namespace spillway::prefetch
