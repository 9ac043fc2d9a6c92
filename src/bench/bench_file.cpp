#include "src/bench/bench_file.h"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "src/bench/build.h"
#include "src/io/file_digest.h"
#include "um/error.h"
#include "um/text/wording.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Returns the text behind "name : " in a file of /proc, or an empty string if there is none.
std::string value_in(const fs::path& path, const std::string& name) {
  std::ifstream file{path};
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (!line.starts_with(name) || colon == std::string::npos) continue;
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? std::string{} : line.substr(begin);
  }
  return {};
}

std::string processor_in(const fs::path& root) {
  std::string name = value_in(root / "proc/cpuinfo", "model name");
  return name.empty() ? "unknown processor" : name;
}

// "MemTotal:  24000000 kB", where kB are 1024 bytes.
um::Bytes memory_in(const fs::path& root) {
  std::uint64_t kilobytes = 0;
  std::istringstream{value_in(root / "proc/meminfo", "MemTotal")} >> kilobytes;
  return kilobytes * um::Bytes{1024};
}

double load_in(const fs::path& root) {
  double load = 0;
  std::ifstream{root / "proc/loadavg"} >> load;
  return load;
}

std::string kernel_release() {
  utsname names{};
  return uname(&names) == 0 ? static_cast<const char*>(names.release) : "unknown";
}

constexpr const char* kFormat = "spillway-bench";
constexpr int kVersion = 2;
constexpr int kOldVersion = 1;  // whose timings have "least" and "most" for "min" and "max"

// "2026-11-22T11:00:00Z"
std::string date_text(std::chrono::system_clock::time_point moment) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(moment);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::string text(sizeof "2026-11-22T11:00:00Z", '\0');
  text.resize(std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts));
  return text;
}

// The bench and machine that the file at a path says it is of; empty where it is no bench file.
struct Origin {
  std::string bench;
  std::string machine;
};

Origin origin_of(const std::string& path) {
  std::error_code ignored;  // what cannot be looked at is not there
  if (!std::filesystem::is_regular_file(path, ignored)) return {};
  try {
    const prefetch::JsonFile file{path};
    static_cast<void>(bench_content(file));
    return {.bench = file.root().at("bench").string(),
            .machine = file.root().at("machine").at("id").string()};
  } catch (const um::Error&) {
    return {};
  }
}

void rename(json& object, const char* from, const char* to) {
  const auto member = object.find(from);
  if (member == object.end()) return;
  object[to] = std::move(*member);
  object.erase(from);
}

// What is damaged stays so, for whoever reads it.
void make_new(json& bench) {
  bench["version"] = kVersion;
  if (!bench.contains("rows") || !bench.at("rows").is_array()) return;
  for (json& row : bench.at("rows")) {
    for (const char* key : {"seconds", "plain_seconds", "call_seconds"}) {
      if (!row.is_object() || !row.contains(key) || !row.at(key).is_object()) continue;
      rename(row.at(key), "least", "min");
      rename(row.at(key), "most", "max");
    }
  }
}

std::optional<std::string> find_bench(const std::string& name) {
  constexpr std::array kBenches{"link", "paging", "train", "planners"};
  return std::ranges::find(kBenches, name) == kBenches.end() ? std::nullopt : std::optional{name};
}

void expect_machine(const prefetch::JsonView& machine) {
  for (const char* key : {"id", "processor", "kernel", "device"}) {
    static_cast<void>(machine.at(key).string());
  }
  for (const char* key : {"processors", "memory_bytes"}) {
    static_cast<void>(machine.at(key).integer());
  }
  static_cast<void>(number_or_zero(machine, "load_at_start"));
  if (const auto paging = find_value(machine, "paging")) static_cast<void>(paging->string());
}

}  // namespace

std::string BenchMachine::id() const {
  constexpr std::size_t kDigits = 12;
  Sha256 digest;
  const std::string facts = processor + '\n' + std::to_string(processors) + '\n' +
                            std::to_string(memory.count()) + '\n' + kernel + '\n' + device;
  digest.update(std::as_bytes(std::span{facts}));
  return digest.hex().substr(0, kDigits);
}

BenchMachine find_bench_machine(std::string device, std::optional<std::string> paging,
                                const fs::path& root) {
  return {.processor = processor_in(root),
          .processors = std::thread::hardware_concurrency(),
          .memory = memory_in(root),
          .kernel = kernel_release(),
          .device = std::move(device),
          .paging = std::move(paging),
          .load = load_in(root)};
}

nlohmann::json to_json(const BenchMachine& machine) {
  return {{"id", machine.id()},
          {"processor", machine.processor},
          {"processors", machine.processors},
          {"memory_bytes", machine.memory.count()},
          {"kernel", machine.kernel},
          {"device", machine.device},
          {"paging", machine.paging ? nlohmann::json(*machine.paging) : nlohmann::json()},
          {"load_at_start", machine.load}};
}

std::string to_string(const BenchMachine& machine) {
  return machine.processor + ", " + um::count_of(machine.processors, "processor") + ", " +
         um::to_string(machine.memory) + ", Linux " + machine.kernel + ", " + machine.device;
}

json to_json(const BenchFile& file) {
  const std::string commit = build_commit();
  json all = {
      {"format", kFormat},
      {"version", kVersion},
      {"bench", file.bench},
      {"date", date_text(file.begin)},
      {"seconds", file.took.count()},
      {"build", {{"version", build_version()}, {"commit", commit.empty() ? json() : json(commit)}}},
      {"machine", to_json(file.machine)},
      {"options", file.options},
      {"rows", file.rows}};
  all.update(file.more);
  return all;
}

json bench_content(const prefetch::JsonFile& file) {
  const bool is_old = file.root().has("version") && file.value().at("version") == kOldVersion;
  file.expect_format(kFormat, is_old ? kOldVersion : kVersion);
  json content = file.value();
  if (is_old) make_new(content);
  return content;
}

std::optional<prefetch::JsonView> find_value(const prefetch::JsonView& object,
                                             const std::string& key) {
  if (!object.has(key) || object.at(key).is_null()) return std::nullopt;
  return object.at(key);
}

double number_or_zero(const prefetch::JsonView& object, const std::string& key) {
  const auto value = find_value(object, key);
  return value ? value->number() : 0;
}

std::uint64_t count_or_zero(const prefetch::JsonView& object, const std::string& key) {
  constexpr double kMax = 0x1p63;
  return static_cast<std::uint64_t>(std::min(number_or_zero(object, key), kMax));
}

um::Error unknown_word(const prefetch::JsonView& word) {
  return word.error("is '" + word.string() + "', which this program does not know");
}

void expect_bench_file(const prefetch::JsonView& file) {
  static_cast<void>(read_word(file.at("bench"), find_bench));
  static_cast<void>(file.at("date").string());
  static_cast<void>(file.at("seconds").number());
  static_cast<void>(file.at("build").at("version").string());
  if (const auto commit = find_value(file.at("build"), "commit")) {
    static_cast<void>(commit->string());
  }
  expect_machine(file.at("machine"));
  static_cast<void>(file.at("options").has(""));  // it is an object
}

void expect_replaceable(const std::string& path, const std::string& bench,
                        const BenchMachine& machine) {
  const Origin origin = origin_of(path);
  if (origin.bench.empty()) return;
  if (origin.bench != bench) {
    throw um::Error{path + " holds a bench " + origin.bench + "; give bench " + bench +
                    " another file"};
  }
  if (origin.machine != machine.id()) {
    throw um::Error{path + " was measured on another machine or device; give this one (" +
                    machine.id() + ") another file"};
  }
}

}  // namespace spillway
