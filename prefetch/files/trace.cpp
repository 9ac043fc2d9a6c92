#include "prefetch/files/trace.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
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

constexpr std::uint64_t kFirstVersion = 1;
constexpr std::uint64_t kVersion = 2;

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
    const bool is_first = root_.has("version") && value_.at("version") == kFirstVersion;
    version_ = is_first ? kFirstVersion : kVersion;
    file.expect_format("spillway-trace", version_);
  }

  Trace read() {
    const Keys known{"format", "version", "name", "tasks", "data"};
    expect_known_keys(value_, root_, known);
    trace_.name = root_.at("name").string();
    read_data(root_.at("data"));
    read_tasks(root_.at("tasks"));
    make_names_unique(trace_.graph.data);
    make_names_unique(trace_.graph.tasks);
    if (!groups_.empty()) {
      trace_.varied = {.common = {std::move(trace_.graph), std::move(trace_.durations)},
                       .groups = std::move(groups_)};
      take_first_variants();
    }
    const std::vector<Phase> phases = phases_of(trace_.graph);
    set_phases(phases, trace_.graph);
    if (!trace_.varied.groups.empty()) set_phases(phases, trace_.varied.common.graph);
    return std::move(trace_);
  }

 private:
  // A variant of a group of tasks.
  struct Taken {
    std::size_t group = 0;
    std::uint32_t variant = 0;
    friend bool operator==(const Taken&, const Taken&) = default;
  };

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
    variant_writers_.resize(data.size());
  }

  void read_tasks(const JsonView& tasks) {
    if (tasks.size() == 0) throw tasks.error("is empty: a step has tasks");
    Keys known{"name",       "reads", "writes", "duration_ns", "workspace_bytes",
               "algorithms", "phase", "kind",   "recomputable"};
    if (version_ > kFirstVersion) {
      for (const char* const key : {"micro_batch", "after", "variants", "same_variant_as"}) {
        known.emplace_back(key);
      }
    }
    Sum duration{kLongestStep, "times"};
    for (std::size_t i = 0; i < count_of(tasks, kMaxEntries); ++i) {
      const JsonView entry = tasks.at(i);
      expect_known_keys(value_["tasks"][i], entry, known);
      Task task{.name = entry.at("name").string(),
                .reads = read_ids(entry.at("reads")),
                .writes = read_ids(entry.at("writes"))};
      if (entry.has("kind")) task.kind = read_choice(entry.at("kind"), kKinds);
      if (entry.has("recomputable")) task.is_recomputable = entry.at("recomputable").boolean();
      std::optional<Phase>& phase = phases_.emplace_back();
      if (entry.has("phase")) phase = read_choice(entry.at("phase"), kPhases);
      if (entry.has("micro_batch")) {
        const std::uint64_t number = entry.at("micro_batch").integer(kMaxEntries);
        task.micro_batch = static_cast<std::uint32_t>(number);
      }
      if (entry.has("after")) task.after = read_after(entry.at("after"));
      note_reads(task.reads, entry.at("reads"), std::nullopt);
      if (entry.has("variants")) {
        trace_.durations.emplace_back();
        read_variants(entry, duration, task);
      } else if (entry.has("same_variant_as")) {
        throw entry.at("same_variant_as").error("is only for tasks with variants");
      } else {
        auto [algorithms, durations] = read_algorithms(entry, value_["tasks"][i], duration);
        task.algorithms = std::move(algorithms);
        trace_.durations.push_back(std::move(durations));
      }
      note_writes(task);
      trace_.graph.add(std::move(task));
    }
  }

  // Returns each earlier task once, in order.
  [[nodiscard]] std::vector<TaskId> read_after(const JsonView& entries) const {
    std::vector<TaskId> result;
    for (std::size_t i = 0; i < count_of(entries, kMaxOperands); ++i) {
      result.push_back(TaskId(read_earlier(entries.at(i))));
    }
    std::ranges::sort(result);
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }

  // Returns the number of a task before the one that is read.
  [[nodiscard]] std::size_t read_earlier(const JsonView& number) const {
    const std::uint64_t task = number.integer();
    const std::size_t count = trace_.graph.tasks.size();
    if (task < count) return task;
    throw number.error("is " + std::to_string(task) + "; of this task it must be less than " +
                       std::to_string(count) + ", the number of tasks before it");
  }

  void read_variants(const JsonView& entry, Sum& duration, Task& task) {
    for (const char* const key : {"duration_ns", "workspace_bytes", "algorithms"}) {
      if (entry.has(key)) throw entry.at(key).error("is for each of the variants, not beside them");
    }
    const JsonView entries = entry.at("variants");
    if (entries.size() == 0) throw entries.error("is empty: leave it out");
    const std::size_t g = group_of(entry);
    const bool begins = g == groups_.size();
    if (begins) groups_.emplace_back();
    const auto id = static_cast<std::uint32_t>(trace_.graph.tasks.size());
    group_of_task_.emplace(id, g);
    std::vector<std::string> names;
    std::vector<TaskVariant> variants;
    for (std::size_t v = 0; v < count_of(entries, kMaxOperands); ++v) {
      const JsonView name = entries.at(v).at("name");
      if (std::ranges::count(names, name.string()) > 0) {
        throw name.error("is '" + name.string() + "', which an earlier variant has");
      }
      names.push_back(name.string());
      if (!begins && std::ranges::count(groups_[g].names, names.back()) == 0) {
        throw name.error("is '" + names.back() +
                         "', which the variants that it goes with (\"same_variant_as\") have not");
      }
    }
    if (begins) groups_[g].names = names;
    for (const std::string& name : groups_[g].names) {
      const auto found = std::ranges::find(names, name);
      if (found == names.end()) throw entries.error("lacks one with the name '" + name + "'");
      const auto v = static_cast<std::size_t>(found - names.begin());
      const auto number = static_cast<std::uint32_t>(variants.size());
      variants.push_back(read_variant(entries.at(v), value_["tasks"][id]["variants"][v], duration,
                                      Taken{.group = g, .variant = number}));
    }
    task.algorithms = variants.front().algorithms;
    groups_[g].members.push_back({.task = TaskId{id}, .variants = std::move(variants)});
  }

  // Returns the group of the task's variants; a new one's if it goes with no other task.
  [[nodiscard]] std::size_t group_of(const JsonView& entry) const {
    if (!entry.has("same_variant_as")) return groups_.size();
    const JsonView other = entry.at("same_variant_as");
    const auto found = group_of_task_.find(static_cast<std::uint32_t>(read_earlier(other)));
    if (found != group_of_task_.end()) return found->second;
    throw other.error("is " + std::to_string(other.integer()) + ", a task without variants");
  }

  TaskVariant read_variant(const JsonView& entry, const nlohmann::json& value, Sum& duration,
                           const Taken& taken) {
    const Keys known{"name", "reads", "writes", "duration_ns", "workspace_bytes", "algorithms"};
    expect_known_keys(value, entry, known);
    TaskVariant variant;
    if (entry.has("reads")) {
      variant.reads = read_ids(entry.at("reads"));
      note_reads(variant.reads, entry.at("reads"), taken);
    }
    if (entry.has("writes")) variant.writes = read_ids(entry.at("writes"));
    std::tie(variant.algorithms, variant.durations) = read_algorithms(entry, value, duration);
    for (const DataId id : variant.writes) {
      variant_writers_[static_cast<std::size_t>(id)].push_back(taken);
    }
    return variant;
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

  using Algorithms = std::pair<std::vector<Algorithm>, std::vector<Nanoseconds>>;

  // Puts the algorithm with the least workspace first. `value` is what `entry` shows.
  static Algorithms read_algorithms(const JsonView& entry, const nlohmann::json& value,
                                    Sum& duration) {
    std::vector<std::pair<Algorithm, Nanoseconds>> read;
    const auto add = [&](const JsonView& view, std::string name) {
      const std::uint64_t workspace = view.at("workspace_bytes").integer(kLargestBlock);
      const std::uint64_t time = duration.add(view.at("duration_ns"), kLongestDuration);
      read.push_back({{.name = std::move(name), .workspace = Bytes{workspace}},
                      Nanoseconds{static_cast<std::int64_t>(time)}});
    };
    if (entry.has("algorithms")) {
      const Keys known{"name", "duration_ns", "workspace_bytes"};
      const JsonView algorithms = entry.at("algorithms");
      if (algorithms.size() == 0) throw algorithms.error("is empty: leave it out");
      for (std::size_t i = 0; i < count_of(algorithms, kMaxOperands); ++i) {
        expect_known_keys(value["algorithms"][i], algorithms.at(i), known);
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
    Algorithms result;
    for (auto& [algorithm, time] : read) {
      result.first.push_back(std::move(algorithm));
      result.second.push_back(time);
    }
    return result;
  }

  // A block that is read before it is written comes from outside the step. `ids` are those of
  // `entries`, read by a task in every variant or only if one is `taken`.
  void note_reads(const std::vector<DataId>& ids, const JsonView& entries,
                  const std::optional<Taken>& taken) {
    for (const DataId id : ids) {
      const auto data = static_cast<std::size_t>(id);
      DataBlock& block = trace_.graph.data[data];
      if (is_written_[data] || block.kind == DataKind::kState) continue;
      const std::vector<Taken>& writers = variant_writers_[data];
      if (writers.empty()) block.kind = DataKind::kState;
      if (writers.empty() || (taken && std::ranges::count(writers, *taken) > 0)) continue;
      throw entries.error(
          "has " + block.name +
          ", which only variants write that need not be taken with this; read it in variants "
          "with \"same_variant_as\"");
    }
  }

  void note_writes(Task& task) {
    for (const DataId id : task.reads) task.traffic += trace_.graph[id].size;
    for (const DataId id : task.writes) {
      is_written_[static_cast<std::size_t>(id)] = true;
      task.traffic += trace_.graph[id].size;
    }
  }

  void take_first_variants() {
    TimedStep step = trace_.varied.with(trace_.varied.first());
    trace_.graph = std::move(step.graph);
    trace_.durations = std::move(step.durations);
  }

  [[nodiscard]] std::vector<Phase> phases_of(const TaskGraph& graph) const {
    std::vector<Phase> phases = guess_phases(graph);
    for (std::size_t t = 0; t < phases_.size(); ++t) phases[t] = phases_[t].value_or(phases[t]);
    return phases;
  }

  static void set_phases(const std::vector<Phase>& phases, TaskGraph& graph) {
    for (std::size_t t = 0; t < phases.size(); ++t) graph.tasks[t].phase = phases[t];
  }

  const nlohmann::json& value_;  // of root_
  JsonView root_;
  std::uint64_t version_ = 0;
  TraceOptions options_;
  Trace trace_;
  std::unordered_map<std::uint64_t, DataId> ids_;
  std::vector<bool> is_written_;                     // by block: in every variant
  std::vector<std::optional<Phase>> phases_;         // by task, if the file says it
  std::vector<std::vector<Taken>> variant_writers_;  // by block
  std::vector<VariantGroup> groups_;
  std::unordered_map<std::uint32_t, std::size_t> group_of_task_;  // for tasks with variants
};

using nlohmann::json;

json algorithms_json(const std::vector<Algorithm>& algorithms,
                     const std::vector<Nanoseconds>& durations) {
  json result = json::array();
  for (std::size_t a = 0; a < durations.size(); ++a) {
    result.push_back({{"name", algorithms[a].name},
                      {"workspace_bytes", algorithms[a].workspace.count()},
                      {"duration_ns", durations[a].count()}});
  }
  return result;
}

// Returns all of the task but its algorithms and variants.
json task_json(const Task& task) {
  json reads = task.reads;
  json writes = task.writes;
  for (const DataId id : task.updates_once) {
    reads.push_back(id);
    writes.push_back(id);
  }
  json entry{{"name", task.name},
             {"phase", word_for(kPhases, task.phase)},
             {"kind", word_for(kKinds, task.kind)},
             {"recomputable", task.is_recomputable && task.updates_once.empty()},
             {"reads", std::move(reads)},
             {"writes", std::move(writes)}};
  if (task.micro_batch) entry["micro_batch"] = *task.micro_batch;
  if (!task.after.empty()) entry["after"] = task.after;
  return entry;
}

void add_variants(const VariantGroup& group, json& tasks) {
  for (const VariantGroup::Member& member : group.members) {
    json& entry = tasks.at(static_cast<std::size_t>(member.task));
    entry.erase("algorithms");
    for (std::size_t v = 0; v < group.names.size(); ++v) {
      const TaskVariant& variant = member.variants[v];
      json own{{"name", group.names[v]},
               {"algorithms", algorithms_json(variant.algorithms, variant.durations)}};
      if (!variant.reads.empty()) own["reads"] = variant.reads;
      if (!variant.writes.empty()) own["writes"] = variant.writes;
      entry["variants"].push_back(std::move(own));
    }
    if (&member != &group.members.front()) {
      entry["same_variant_as"] = group.members.front().task;
    }
  }
}

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

json to_json(const Trace& trace) {
  const bool is_varied = !trace.varied.groups.empty();
  const TaskGraph& graph = is_varied ? trace.varied.common.graph : trace.graph;
  um::expects(graph.far_updates.empty() && graph.exchanges.empty(), "a step of one rank, all near");
  json data = json::array();
  for (std::size_t d = 0; d < graph.data.size(); ++d) {
    const DataBlock& block = graph.data[d];
    data.push_back({{"id", d},
                    {"bytes", block.size.count()},
                    {"kind", word_for(kDataKinds, block.kind)},
                    {"name", block.name}});
    if (block.kind == DataKind::kState) data.back()["offloadable"] = block.is_offloadable;
  }
  bool needs_second = is_varied;
  json tasks = json::array();
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    json entry = task_json(task);
    if (is_varied) {
      entry["algorithms"] = algorithms_json(task.algorithms, trace.varied.common.durations[t]);
    } else {
      entry["algorithms"] = algorithms_json(task.algorithms, trace.durations[t]);
    }
    needs_second = needs_second || task.micro_batch || !task.after.empty();
    tasks.push_back(std::move(entry));
  }
  for (const VariantGroup& group : trace.varied.groups) add_variants(group, tasks);
  return {{"format", "spillway-trace"},
          {"version", needs_second ? kVersion : kFirstVersion},
          {"name", trace.name},
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
