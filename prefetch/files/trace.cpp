#include "prefetch/files/trace.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "prefetch/files/json.h"
#include "prefetch/files/profile_file.h"
#include "um/bytes.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using um::Bytes;
using um::Nanoseconds;

// Returns by task the bytes of tensors that stay live after it: touched up to it, and again later.
std::vector<Bytes> live_after(const TaskGraph& graph) {
  constexpr std::size_t kNever = ~std::size_t{0};
  std::vector<std::size_t> first(graph.data.size(), kNever);
  std::vector<std::size_t> last(graph.data.size(), kNever);
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    for (const auto* ids : {&graph.tasks[t].reads, &graph.tasks[t].writes}) {
      for (const DataId id : *ids) {
        const auto data = static_cast<std::size_t>(id);
        if (first[data] == kNever) first[data] = t;
        last[data] = t;
      }
    }
  }
  std::vector<Bytes> begins(graph.tasks.size());
  std::vector<Bytes> ends(graph.tasks.size());
  for (std::size_t data = 0; data < graph.data.size(); ++data) {
    if (graph.data[data].kind == DataKind::kState || first[data] == kNever) continue;
    begins[first[data]] += graph.data[data].size;
    ends[last[data]] += graph.data[data].size;
  }
  std::vector<Bytes> live;
  Bytes now;
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    live.push_back(now = now + begins[t] - ends[t]);
  }
  return live;
}

// Limits that keep sums of sizes and times, and tables of pages and moves, in range.
constexpr std::uint64_t kMaxEntries = 1ULL << 20U;   // tasks, blocks
constexpr std::uint64_t kMaxOperands = 1ULL << 12U;  // reads of a task; writes; algorithms
constexpr std::uint64_t kLargestBlock = 1ULL << 42U;
constexpr std::uint64_t kLargestTotal = 1ULL << 46U;
constexpr std::uint64_t kLongestStep = kLongestDuration;

constexpr std::array kPhases{std::pair{"forward", Phase::kForward},
                             std::pair{"backward", Phase::kBackward},
                             std::pair{"update", Phase::kUpdate}};
constexpr std::array kKinds{std::pair{"other", TaskKind::kOther},
                            std::pair{"convolution", TaskKind::kConvolution},
                            std::pair{"linear", TaskKind::kLinear},
                            std::pair{"pool", TaskKind::kPool},
                            std::pair{"activation", TaskKind::kActivation},
                            std::pair{"normalization", TaskKind::kNormalization},
                            std::pair{"dropout", TaskKind::kDropout},
                            std::pair{"join", TaskKind::kJoin}};
constexpr std::array kDataKinds{std::pair{"weight", DataKind::kState},
                                std::pair{"tensor", DataKind::kTensor}};

using Keys = std::vector<std::string>;

// Reads one of the words in `choices`.
template <class Choices>
auto read_choice(const JsonView& value, const Choices& choices) {
  const std::string word = value.string();
  std::string words;
  for (const auto& [name, choice] : choices) {
    if (word == name) return choice;
    words += (words.empty() ? "" : ", ") + std::string{name};
  }
  throw value.error("is '" + word + "', none of " + words);
}

// Returns the word for `value` in `choices`.
template <class Choices, class Value>
const char* word_for(const Choices& choices, const Value& value) {
  return std::ranges::find(choices, value, [](const auto& one) { return one.second; })->first;
}

std::size_t count_of(const JsonView& array, std::uint64_t max) {
  if (array.size() > max) {
    throw array.error("has " + std::to_string(array.size()) + " elements, more than " +
                      std::to_string(max));
  }
  return array.size();
}

// Adds numbers up to a limit.
class Sum {
 public:
  Sum(std::uint64_t limit, std::string what) : limit_{limit}, what_{std::move(what)} {}

  std::uint64_t add(const JsonView& number, std::uint64_t largest) {
    const std::uint64_t value = number.integer(largest);
    if (value > limit_ - sum_) {
      throw number.error("makes all " + what_ + " together more than " + std::to_string(limit_));
    }
    sum_ += value;
    return value;
  }

 private:
  std::uint64_t limit_;
  std::string what_;
  std::uint64_t sum_ = 0;
};

// Appends its index to each name that occurs more than once.
template <class Named>
void make_names_unique(std::vector<Named>& all) {
  std::unordered_map<std::string, std::size_t> count;
  for (const Named& named : all) ++count[named.name];
  std::unordered_set<std::string> taken;
  for (const auto& [name, times] : count) taken.insert(name);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (count[all[i].name] == 1) continue;
    std::string& name = all[i].name;
    do name += " #" + std::to_string(i);
    while (!taken.insert(name).second);
  }
}

class TraceReader {
 public:
  TraceReader(const JsonFile& file, const TraceOptions& options)
      : value_{file.value()}, root_{file.root()}, options_{options} {
    file.expect_format("spillway-trace", 1);
  }

  Trace read() {
    const Keys known{"format", "version", "name", "tasks", "data"};
    expect_known_keys(value_, root_, known);
    trace_.name = root_.at("name").string();
    read_data(root_.at("data"));
    read_tasks(root_.at("tasks"));
    make_names_unique(trace_.graph.data);
    make_names_unique(trace_.graph.tasks);
    fill_phases();
    return std::move(trace_);
  }

 private:
  void read_data(const JsonView& data) {
    const Keys known{"id", "bytes", "kind", "name", "offloadable"};
    Sum bytes{kLargestTotal, "sizes"};
    for (std::size_t i = 0; i < count_of(data, kMaxEntries); ++i) {
      const JsonView block = data.at(i);
      expect_known_keys(value_["data"][i], block, known);
      const JsonView id = block.at("id");
      const std::uint64_t number = id.integer();
      if (!ids_.emplace(number, DataId(i)).second) {
        throw id.error("is " + std::to_string(number) + ", which an earlier block has");
      }
      const JsonView kind = block.at("kind");
      DataBlock read{.name = block.has("name") ? block.at("name").string()
                                               : kind.string() + " " + std::to_string(number),
                     .size = Bytes{bytes.add(block.at("bytes"), kLargestBlock)},
                     .kind = read_choice(kind, kDataKinds)};
      if (read.kind == DataKind::kState) read.is_offloadable = options_.offload_weights;
      if (block.has("offloadable")) {
        const JsonView value = block.at("offloadable");
        if (read.kind != DataKind::kState) {
          throw value.error("is only for weights: tensors always are");
        }
        read.is_offloadable = value.boolean();
      }
      trace_.graph.add(std::move(read));
    }
    is_written_.resize(data.size(), false);
  }

  void read_tasks(const JsonView& tasks) {
    if (tasks.size() == 0) throw tasks.error("is empty: a step has tasks");
    const Keys known{"name",       "reads", "writes", "duration_ns", "workspace_bytes",
                     "algorithms", "phase", "kind",   "recomputable"};
    Sum duration{kLongestStep, "times"};
    for (std::size_t i = 0; i < count_of(tasks, kMaxEntries); ++i) {
      const JsonView entry = tasks.at(i);
      expect_known_keys(value_["tasks"][i], entry, known);
      if (entry.has("algorithms")) expect_known_algorithm_keys(i, entry.at("algorithms"));
      Task task{.name = entry.at("name").string(),
                .reads = read_ids(entry.at("reads")),
                .writes = read_ids(entry.at("writes"))};
      if (entry.has("kind")) task.kind = read_choice(entry.at("kind"), kKinds);
      if (entry.has("recomputable")) task.is_recomputable = entry.at("recomputable").boolean();
      std::optional<Phase>& phase = phases_.emplace_back();
      if (entry.has("phase")) phase = read_choice(entry.at("phase"), kPhases);
      read_algorithms(entry, duration, task);
      note_operands(task);
      trace_.graph.add(std::move(task));
    }
  }

  void expect_known_algorithm_keys(std::size_t task, const JsonView& algorithms) const {
    const Keys known{"name", "duration_ns", "workspace_bytes"};
    for (std::size_t i = 0; i < count_of(algorithms, kMaxOperands); ++i) {
      expect_known_keys(value_["tasks"][task]["algorithms"][i], algorithms.at(i), known);
    }
  }

  // Returns each id once, in order of first occurrence.
  [[nodiscard]] std::vector<DataId> read_ids(const JsonView& entries) const {
    std::vector<DataId> result;
    for (std::size_t i = 0; i < count_of(entries, kMaxOperands); ++i) {
      const JsonView entry = entries.at(i);
      const auto found = ids_.find(entry.integer());
      if (found == ids_.end()) {
        throw entry.error("is " + std::to_string(entry.integer()) + ", which is no id in data");
      }
      if (std::ranges::count(result, found->second) == 0) result.push_back(found->second);
    }
    return result;
  }

  // Puts the algorithm with the least workspace first.
  void read_algorithms(const JsonView& entry, Sum& duration, Task& task) {
    std::vector<std::pair<Algorithm, Nanoseconds>> read;
    const auto add = [&](const JsonView& view, std::string name) {
      const std::uint64_t workspace = view.at("workspace_bytes").integer(kLargestBlock);
      const std::uint64_t time = duration.add(view.at("duration_ns"), kLongestDuration);
      read.push_back({{.name = std::move(name), .workspace = Bytes{workspace}},
                      Nanoseconds{static_cast<std::int64_t>(time)}});
    };
    if (entry.has("algorithms")) {
      const JsonView algorithms = entry.at("algorithms");
      if (algorithms.size() == 0) throw algorithms.error("is empty: leave it out");
      for (std::size_t i = 0; i < count_of(algorithms, kMaxOperands); ++i) {
        const JsonView name = algorithms.at(i).at("name");
        const auto is_same = [&](const auto& other) { return other.first.name == name.string(); };
        if (std::ranges::any_of(read, is_same)) {
          throw name.error("is '" + name.string() + "', which an earlier algorithm has");
        }
        add(algorithms.at(i), name.string());
      }
    } else {
      add(entry, Algorithm{}.name);
    }
    std::ranges::stable_sort(read, {}, [](const auto& one) { return one.first.workspace; });
    task.algorithms.clear();
    std::vector<Nanoseconds>& durations = trace_.durations.emplace_back();
    for (auto& [algorithm, time] : read) {
      task.algorithms.push_back(std::move(algorithm));
      durations.push_back(time);
    }
  }

  // A block that is read before it is written comes from outside the step.
  void note_operands(Task& task) {
    for (const DataId id : task.reads) {
      const auto data = static_cast<std::size_t>(id);
      if (!is_written_[data]) trace_.graph.data[data].kind = DataKind::kState;
      task.traffic += trace_.graph[id].size;
    }
    for (const DataId id : task.writes) {
      is_written_[static_cast<std::size_t>(id)] = true;
      task.traffic += trace_.graph[id].size;
    }
  }

  void fill_phases() {
    const std::vector<Phase> guessed = guess_phases(trace_.graph);
    for (std::size_t t = 0; t < phases_.size(); ++t) {
      trace_.graph.tasks[t].phase = phases_[t].value_or(guessed[t]);
    }
  }

  const nlohmann::json& value_;  // of root_
  JsonView root_;
  TraceOptions options_;
  Trace trace_;
  std::unordered_map<std::uint64_t, DataId> ids_;
  std::vector<bool> is_written_;              // by block
  std::vector<std::optional<Phase>> phases_;  // by task, if the file says it
};

}  // namespace

std::vector<Phase> guess_phases(const TaskGraph& graph) {
  std::vector<Phase> phases(graph.tasks.size(), Phase::kForward);
  const std::vector<Bytes> live = live_after(graph);
  const auto max = std::ranges::max_element(live);
  if (max == live.end() || *max == Bytes{}) return phases;
  const auto is_state = [&](DataId id) { return graph[id].kind == DataKind::kState; };
  for (auto t = static_cast<std::size_t>(max - live.begin()) + 1; t < phases.size(); ++t) {
    const bool is_update = std::ranges::any_of(graph.tasks[t].writes, is_state);
    phases[t] = is_update ? Phase::kUpdate : Phase::kBackward;
  }
  return phases;
}

Trace read_trace(const JsonFile& file, const TraceOptions& options) {
  return TraceReader{file, options}.read();
}

nlohmann::json trace_json(const TaskGraph& graph, const Profile& profile, const std::string& name) {
  um::expects(graph.far_updates.empty() && graph.exchanges.empty(), "a step of one rank, all near");
  nlohmann::json data = nlohmann::json::array();
  for (std::size_t d = 0; d < graph.data.size(); ++d) {
    const DataBlock& block = graph.data[d];
    data.push_back({{"id", d},
                    {"bytes", block.size.count()},
                    {"kind", word_for(kDataKinds, block.kind)},
                    {"name", block.name}});
    if (block.kind == DataKind::kState) data.back()["offloadable"] = block.is_offloadable;
  }
  nlohmann::json tasks = nlohmann::json::array();
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    nlohmann::json algorithms = nlohmann::json::array();
    for (std::size_t a = 0; a < task.algorithms.size(); ++a) {
      algorithms.push_back({{"name", task.algorithms[a].name},
                            {"workspace_bytes", task.algorithms[a].workspace.count()},
                            {"duration_ns", profile.durations[t][a].count()}});
    }
    nlohmann::json reads = task.reads;
    nlohmann::json writes = task.writes;
    for (const DataId id : task.updates_once) {
      reads.push_back(id);
      writes.push_back(id);
    }
    tasks.push_back({{"name", task.name},
                     {"phase", word_for(kPhases, task.phase)},
                     {"kind", word_for(kKinds, task.kind)},
                     {"recomputable", task.is_recomputable && task.updates_once.empty()},
                     {"reads", std::move(reads)},
                     {"writes", std::move(writes)},
                     {"algorithms", std::move(algorithms)}});
  }
  return {{"format", "spillway-trace"},
          {"version", 1},
          {"name", name},
          {"data", std::move(data)},
          {"tasks", std::move(tasks)}};
}

Profile trace_profile(const Trace& trace, const LinkProfile& link) {
  return {.source = "trace " + trace.name,
          .graph = fingerprint(trace.graph),
          .durations = trace.durations,
          .link = link};
}

}  // namespace spillway::prefetch
