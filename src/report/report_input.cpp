#include "src/report/report_input.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "prefetch/files/json.h"
#include "src/bench/bench_file.h"
#include "src/bench/link/link_bench.h"
#include "src/bench/paging/paging_bench.h"
#include "src/bench/train/train_row.h"
#include "src/report/training_log.h"
#include "um/error.h"
#include "um/files/input_file.h"

namespace spillway {
namespace {

using nlohmann::json;
using prefetch::JsonView;
namespace fs = std::filesystem;

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

// A file to read, or a folder that cannot be.
struct InputCandidate {
  std::string path;
  std::string name;
  bool is_named = false;          // by the user, rather than found in a folder
  std::error_code folder_failed;  // why this folder cannot be read
};

// What one folder holds.
struct FolderContent {
  std::vector<fs::path> files;  // *.json, *.jsonl
  std::vector<fs::path> folders;
  std::error_code failed;  // why there may be more
};

bool is_of_report(const fs::path& file) {
  return file.extension() == ".json" || file.extension() == ".jsonl";
}

FolderContent content_of(const fs::path& folder) {
  FolderContent content;
  for (fs::directory_iterator at{folder, content.failed}, end; !content.failed && at != end;
       at.increment(content.failed)) {
    std::error_code ignored;
    if (at->symlink_status(ignored).type() == fs::file_type::directory) {
      content.folders.push_back(at->path());
    } else if (is_of_report(at->path()) && !at->is_directory(ignored)) {
      content.files.push_back(at->path());
    }
  }
  return content;
}

std::vector<InputCandidate> find_in_folder(const std::string& folder, bool is_only_one) {
  std::vector<InputCandidate> found;
  const auto add = [&](const fs::path& path, std::error_code failed) {
    const fs::path name = is_only_one ? path.lexically_relative(folder) : path;
    found.push_back({.path = path.string(), .name = name.string(), .folder_failed = failed});
  };
  std::vector<fs::path> to_read{folder};
  while (!to_read.empty()) {
    const fs::path next = std::move(to_read.back());
    to_read.pop_back();
    const FolderContent content = content_of(next);
    if (content.failed && next == folder) {
      throw um::system_error("cannot read folder " + folder, content.failed.value());
    }
    if (content.failed) add(next, content.failed);
    for (const fs::path& file : content.files) add(file, {});
    to_read.insert(to_read.end(), content.folders.begin(), content.folders.end());
  }
  if (found.empty()) {
    throw um::Error{"there is no .json file in " + folder +
                    "; make some with 'spillway bench … --json " + folder + "/NAME.json'"};
  }
  std::ranges::sort(found, {}, &InputCandidate::name);
  return found;
}

// Those given by their own names first: as such they count where a folder has them too.
std::vector<InputCandidate> find_candidates(std::span<const std::string> paths) {
  std::vector<InputCandidate> found;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) {
      found.push_back({.path = path, .name = path, .is_named = true});
      continue;
    }
    for (InputCandidate& candidate : find_in_folder(path, paths.size() == 1)) {
      found.push_back(std::move(candidate));
    }
  }
  std::stable_partition(found.begin(), found.end(),
                        [](const InputCandidate& candidate) { return candidate.is_named; });
  return found;
}

std::string format_of(const nlohmann::json& content) {
  if (!content.is_object()) return {};
  const auto format = content.find("format");
  return format != content.end() && format->is_string() ? format->get<std::string>() : "";
}

std::optional<ReportInputKind> kind_of(const nlohmann::json& content) {
  const std::string format = format_of(content);
  if (format == "spillway-bench") return ReportInputKind::kBench;
  if (format == "spillway-plan") return ReportInputKind::kPlan;
  const bool is_trace = content.is_object() && content.contains("traceEvents");
  return is_trace ? std::optional{ReportInputKind::kTimeline} : std::nullopt;
}

// Members that the report does not know may be there.
void check_bench(const prefetch::JsonView& file) {
  expect_bench_file(file);
  const std::string bench = file.at("bench").string();
  if (bench == "link") {
    static_cast<void>(read_rows(file, read_link_row));
  } else if (bench == "paging") {
    static_cast<void>(read_rows(file, read_paging_row));
  } else {
    static_cast<void>(read_rows(file, read_train_row));
  }
}

// That a plan has what report_data() counts. Whether it is right is verify()'s affair.
void check_plan(const prefetch::JsonView& plan) {
  static_cast<void>(plan.at("planner").string());
  static_cast<void>(plan.at("residency").string());
  static_cast<void>(plan.at("budget_bytes").integer());
  const prefetch::JsonView runs = plan.at("runs");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs.at(i).has("recomputation"))
      static_cast<void>(runs.at(i).at("recomputation").boolean());
  }
  for (const char* key : {"offloads", "prefetches"}) {
    const prefetch::JsonView moves = plan.at(key);
    for (std::size_t i = 0; i < moves.size(); ++i) {
      static_cast<void>(moves.at(i).at("size_bytes").integer());
      if (moves.at(i).has("clean")) static_cast<void>(moves.at(i).at("clean").boolean());
    }
  }
}

std::optional<ReportInput> read(const InputCandidate& candidate) {
  const std::string text = um::InputFile{candidate.path}.text(prefetch::kLargestJsonFile);
  if (is_training_log(text)) {
    return ReportInput{.name = candidate.name,
                       .kind = ReportInputKind::kTraining,
                       .training = read_training_log(text, candidate.path)};
  }
  const prefetch::JsonFile file{text, candidate.path};
  const auto kind = kind_of(file.value());
  if (!kind) return std::nullopt;
  if (*kind == ReportInputKind::kBench) {
    nlohmann::json content = bench_content(file);
    check_bench({content, candidate.path + ":"});
    return ReportInput{.name = candidate.name, .kind = *kind, .content = std::move(content)};
  }
  if (*kind == ReportInputKind::kPlan) {
    file.expect_format("spillway-plan", 1);
    check_plan(file.root());
  }
  return ReportInput{
      .name = candidate.name,
      .kind = *kind,
      .content = *kind == ReportInputKind::kTimeline ? timeline_data(file.root()) : file.value()};
}

// Throws: um::Error that names its path.
ReportInput read_or_complain(const InputCandidate& candidate) {
  if (candidate.folder_failed) {
    throw um::system_error("cannot read folder " + candidate.path, candidate.folder_failed.value());
  }
  if (auto input = read(candidate)) return std::move(*input);
  throw um::Error{candidate.path +
                  (candidate.is_named
                       ? " is neither a measurement of spillway bench, nor a training, nor a plan, "
                         "nor a timeline; leave it out"
                       : " is neither a measurement, nor a training, nor a plan, nor a timeline")};
}

// Why it was left out, with the name that the reader knows it by.
std::string complaint_of(const um::Error& error, const InputCandidate& candidate) {
  std::string text = error.what();
  const std::size_t at = text.find(candidate.path);
  if (at != std::string::npos) text.replace(at, candidate.path.size(), candidate.name);
  return text;
}

// The same for all names of one file. What cannot be looked up is nothing else's.
fs::path place_of(const InputCandidate& candidate) {
  std::error_code error;
  const fs::path place = fs::weakly_canonical(candidate.path, error);
  return error ? fs::path{candidate.path} : place;
}

void expect_something(const ReportInputs& inputs) {
  if (!inputs.files.empty()) return;
  const std::size_t others = inputs.left_out.size() - 1;
  throw um::Error{"none of the .json files can be shown: " + inputs.left_out.front() +
                  (others > 0 ? "; and " + std::to_string(others) + " more" : "") +
                  "; make a measurement with 'spillway bench'"};
}

}  // namespace

json timeline_data(const JsonView& trace) { return Reader{trace}.read(); }

ReportInputs read_report_inputs(std::span<const std::string> paths) {
  ReportInputs inputs;
  std::set<fs::path> seen;
  for (const InputCandidate& candidate : find_candidates(paths)) {
    if (!seen.insert(place_of(candidate)).second) continue;
    try {
      inputs.files.push_back(read_or_complain(candidate));
    } catch (const um::Error& error) {
      if (candidate.is_named) throw;
      inputs.left_out.push_back(complaint_of(error, candidate));
    }
  }
  expect_something(inputs);
  std::ranges::stable_sort(inputs.files, {}, &ReportInput::name);
  return inputs;
}

}  // namespace spillway
