#include "prefetch/files/profile_file.h"

#include <cstdint>

#include "prefetch/files/graph_stamp.h"

namespace spillway::prefetch {
namespace {

using nlohmann::json;

um::Nanoseconds read_duration(const JsonView& value, std::uint64_t longest = kLongestDuration) {
  return um::Nanoseconds{static_cast<std::int64_t>(value.integer(longest))};
}

}  // namespace

double read_rate(const JsonView& rate) {
  const double number = rate.positive_number();
  if (number < 1000) throw rate.error("is smaller than 1000");
  return number;
}

json to_json(const LinkProfile& link) {
  return {{"offload_bytes_per_second", link.offload.bytes_per_second()},
          {"prefetch_bytes_per_second", link.prefetch.bytes_per_second()},
          {"latency_ns", link.latency.count()},
          {"duplex", link.is_duplex},
          {"copies_while_read", link.copies_while_read},
          {"compute_speed_while_moving", link.compute_speed_while_moving},
          {"far_update_bytes_per_second", link.far_update.bytes_per_second()},
          {"compute_speed_while_updating", link.compute_speed_while_updating},
          {"fault_ns", link.faults.time.count()},
          {"faults_spare_overwritten", link.faults.spare_overwritten},
          {"faults_evict_by_use", link.faults.evict_by_use}};
}

LinkProfile read_link(const JsonView& link) {
  LinkProfile result{.offload = um::Bandwidth{read_rate(link.at("offload_bytes_per_second"))},
                     .prefetch = um::Bandwidth{read_rate(link.at("prefetch_bytes_per_second"))},
                     .latency = read_duration(link.at("latency_ns")),
                     .is_duplex = link.at("duplex").boolean()};
  if (link.has("fault_ns")) result.faults.time = read_duration(link.at("fault_ns"));
  const auto read_flag = [&](const char* name, bool& flag) {
    if (link.has(name)) flag = link.at(name).boolean();
  };
  read_flag("faults_spare_overwritten", result.faults.spare_overwritten);
  read_flag("faults_evict_by_use", result.faults.evict_by_use);
  read_flag("copies_while_read", result.copies_while_read);
  if (link.has("far_update_bytes_per_second")) {
    result.far_update = um::Bandwidth{read_rate(link.at("far_update_bytes_per_second"))};
  }
  const auto read_speed = [&](const char* name, double& speed) {
    if (!link.has(name)) return;
    speed = link.at(name).positive_number();
    if (speed > 1) throw link.at(name).error("is larger than 1");
  };
  read_speed("compute_speed_while_moving", result.compute_speed_while_moving);
  read_speed("compute_speed_while_updating", result.compute_speed_while_updating);
  return result;
}

json to_json(const Profile& profile, const TaskGraph& graph) {
  json tasks = json::array();
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    json durations = json::object();
    for (std::uint32_t a = 0; a < graph.tasks[t].algorithms.size(); ++a) {
      durations[graph.tasks[t].algorithms[a].name] = profile(TaskId(t), a).count();
    }
    tasks.push_back({{"task", graph.tasks[t].name}, {"duration_ns", std::move(durations)}});
  }
  return {{"format", "spillway-profile"},  {"version", 1},
          {"source", profile.source},      {"graph", graph_stamp(profile.graph)},
          {"link", to_json(profile.link)}, {"tasks", std::move(tasks)}};
}

Profile read_profile(const JsonFile& file, const TaskGraph& graph) {
  file.expect_format("spillway-profile", 1);
  const JsonView root = file.root();
  Profile profile{.source = root.at("source").string(),
                  .graph = expect_made_for(graph, root),
                  .durations = {},
                  .link = read_link(root.at("link"))};
  const JsonView tasks = root.at("tasks");
  if (tasks.size() != graph.tasks.size()) {
    throw tasks.error("are " + std::to_string(tasks.size()) + ", but the network here has " +
                      std::to_string(graph.tasks.size()));
  }
  const std::uint64_t longest = longest_duration(graph.tasks.size());
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    const JsonView name = tasks.at(t).at("task");
    if (name.string() != task.name)
      throw name.error("is '" + name.string() + "', not " + task.name);
    std::vector<um::Nanoseconds> durations;
    for (const Algorithm& algorithm : task.algorithms) {
      durations.push_back(read_duration(tasks.at(t).at("duration_ns").at(algorithm.name), longest));
    }
    profile.durations.push_back(std::move(durations));
  }
  return profile;
}

}  // namespace spillway::prefetch
