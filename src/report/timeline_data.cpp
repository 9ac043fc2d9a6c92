#include "src/report/timeline_data.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace spillway {
namespace {

using nlohmann::json;
using prefetch::JsonView;

// The counter of traces as they were, in whole MiB.
constexpr std::string_view kInMebibytes = "near memory (MiB)";

// The member of the page's process that holds the spans of a lane; empty for one of another
// program.
std::string member_of(std::string_view lane) {
  if (lane == "compute") return "compute";
  if (lane == "waiting") return "stalls";
  if (lane.starts_with("offload")) return "offload";
  if (lane.starts_with("prefetch")) return "prefetch";
  return {};
}

class Reader {
 public:
  explicit Reader(const JsonView& trace) : trace_{trace} {}

  json read() {
    const JsonView events = trace_.at("traceEvents");
    for (std::size_t i = 0; i < events.size(); ++i) read_name(events.at(i));
    for (std::size_t i = 0; i < events.size(); ++i) read_event(events.at(i));
    json result{{"planner", nullptr}, {"budget_bytes", nullptr}, {"on_demand", false}};
    if (trace_.has("spillway")) read_facts(trace_.at("spillway"), result);
    json processes = json::array();
    for (auto& [id, process] : processes_) processes.push_back(std::move(process));
    result["processes"] = std::move(processes);
    return result;
  }

 private:
  void read_name(const JsonView& event) {
    if (event.at("ph").string() != "M") return;
    const std::string what = event.at("name").string();
    if (what != "process_name" && what != "thread_name") return;
    const std::string name = event.at("args").at("name").string();
    const std::uint64_t id = event.at("pid").integer();
    json& process = processes_[id];
    if (process.is_null()) {
      process = {{"name", ""}};
      for (const char* lane : {"compute", "stalls", "offload", "prefetch", "curve", "near"}) {
        process[lane] = json::array();
      }
    }
    if (what == "process_name") {
      process["name"] = name;
    } else {
      lanes_[{id, event.at("tid").integer()}] = name;
    }
  }

  void read_event(const JsonView& event) {
    const std::string kind = event.at("ph").string();
    if (kind != "X" && kind != "C") return;
    const auto found = processes_.find(event.at("pid").integer());
    if (found == processes_.end()) return;
    json& process = found->second;
    if (kind == "X") {
      const std::string lane = member_of(lanes_[{found->first, event.at("tid").integer()}]);
      if (!lane.empty()) process[lane].push_back(span(event, lane));
    } else if (event.at("args").has("in use")) {
      const double unit = event.at("name").string() == kInMebibytes ? 1U << 20U : 1;
      process["curve"].push_back(
          {event.at("ts").number(), unit * event.at("args").at("in use").number()});
    }
  }

  static json span(const JsonView& event, std::string_view lane) {
    json result{event.at("ts").number(), event.at("dur").number(), event.at("name").string()};
    if (lane == "compute") {
      const JsonView args = event.at("args");
      for (const char* key : {"algorithm", "phase"}) {
        result.push_back(args.has(key) ? args.at(key).string() : "");
      }
    } else if (lane != "stalls") {
      result.push_back(event.at("args").at("bytes").integer());
    }
    return result;
  }

  void read_facts(const JsonView& facts, json& result) {
    result["planner"] = facts.at("planner").string();
    result["budget_bytes"] = facts.at("budget_bytes").integer();
    result["on_demand"] = facts.at("on_demand").boolean();
    const JsonView near = facts.at("near");
    for (auto& [id, process] : processes_) {
      if (!near.has(std::to_string(id))) continue;
      const JsonView holders = near.at(std::to_string(id));
      for (std::size_t i = 0; i < holders.size(); ++i) {
        process["near"].push_back(holder(holders.at(i)));
      }
    }
  }

  static json holder(const JsonView& entry) {
    json levels = json::array();
    const JsonView from = entry.at("bytes_from");
    for (std::size_t i = 0; i < from.size(); ++i) {
      levels.push_back({from.at(i).at(0).number(), from.at(i).at(1).integer()});
    }
    return {{"name", entry.at("name").string()},
            {"purpose", entry.at("purpose").string()},
            {"bytes_from", std::move(levels)}};
  }

  const JsonView& trace_;
  std::map<std::uint64_t, json> processes_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> lanes_;  // by process and thread
};

}  // namespace

json timeline_data(const JsonView& trace) { return Reader{trace}.read(); }

}  // namespace spillway
