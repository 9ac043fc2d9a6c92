#include "src/bench/bench_file.h"

#include <ctime>
#include <filesystem>
#include <system_error>

#include "prefetch/files/json.h"
#include "src/bench/build.h"
#include "um/error.h"

namespace spillway {
namespace {

constexpr const char* kFormat = "spillway-bench";
constexpr int kVersion = 1;

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
    file.expect_format(kFormat, kVersion);
    return {.bench = file.root().at("bench").string(),
            .machine = file.root().at("machine").at("id").string()};
  } catch (const um::Error&) {
    return {};
  }
}

}  // namespace

nlohmann::json to_json(const BenchFile& file) {
  const std::string commit = build_commit();
  return {{"format", kFormat},
          {"version", kVersion},
          {"bench", file.bench},
          {"date", date_text(file.begin)},
          {"seconds", file.took.count()},
          {"build",
           {{"version", build_version()},
            {"commit", commit.empty() ? nlohmann::json() : nlohmann::json(commit)}}},
          {"machine", to_json(file.machine)},
          {"options", file.options},
          {"rows", file.rows}};
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
