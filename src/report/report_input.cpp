#include "src/report/report_input.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "prefetch/json.h"
#include "src/report/bench_check.h"
#include "src/report/timeline_data.h"
#include "um/error.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

// A file to read.
struct Candidate {
  std::string path;
  std::string name;
  bool is_named = false;  // by the user, rather than found in a folder
};

std::vector<Candidate> find_in_folder(const std::string& folder, bool is_only_one) {
  std::vector<Candidate> found;
  std::error_code error;
  for (fs::recursive_directory_iterator at{folder, error}, end; !error && at != end;
       at.increment(error)) {
    std::error_code ignored;
    if (at->path().extension() != ".json" || at->is_directory(ignored)) continue;
    const fs::path name = is_only_one ? at->path().lexically_relative(folder) : at->path();
    found.push_back({.path = at->path().string(), .name = name.string()});
  }
  if (error) throw um::system_error("cannot read folder " + folder, error.value());
  if (found.empty()) {
    throw um::Error{"there is no .json file in " + folder +
                    "; make some with 'spillway bench … --json " + folder + "/NAME.json'"};
  }
  std::ranges::sort(found, {}, &Candidate::name);
  return found;
}

std::vector<Candidate> find_candidates(std::span<const std::string> paths) {
  std::vector<Candidate> found;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) {
      found.push_back({.path = path, .name = path, .is_named = true});
      continue;
    }
    for (Candidate& candidate : find_in_folder(path, paths.size() == 1)) {
      found.push_back(std::move(candidate));
    }
  }
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

std::optional<ReportInput> read(const Candidate& candidate) {
  const prefetch::JsonFile file{candidate.path};
  const auto kind = kind_of(file.value());
  if (!kind) return std::nullopt;
  if (*kind == ReportInputKind::kBench) {
    file.expect_format("spillway-bench", 1);
    check_bench(file.root());
  } else if (*kind == ReportInputKind::kPlan) {
    file.expect_format("spillway-plan", 1);
    check_plan(file.root());
  }
  return ReportInput{
      .name = candidate.name,
      .kind = *kind,
      .content = *kind == ReportInputKind::kTimeline ? timeline_data(file.root()) : file.value()};
}

}  // namespace

ReportInputs read_report_inputs(std::span<const std::string> paths) {
  ReportInputs inputs;
  std::set<fs::path> seen;
  for (const Candidate& candidate : find_candidates(paths)) {
    std::error_code ignored;
    if (!seen.insert(fs::weakly_canonical(candidate.path, ignored)).second) continue;
    if (auto input = read(candidate)) {
      inputs.files.push_back(std::move(*input));
    } else if (candidate.is_named) {
      throw um::Error{candidate.path +
                      " is neither a measurement of spillway bench, nor a plan, nor a timeline; "
                      "leave it out"};
    } else {
      inputs.left_out.push_back(candidate.name);
    }
  }
  if (inputs.files.empty()) {
    throw um::Error{
        "none of the .json files is a measurement, a plan or a timeline; make one with 'spillway "
        "bench'"};
  }
  std::ranges::stable_sort(inputs.files, {}, &ReportInput::name);
  return inputs;
}

}  // namespace spillway
