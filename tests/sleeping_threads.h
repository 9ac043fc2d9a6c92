#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <system_error>

namespace spillway::test {

/// The threads of this process that are not the caller, as Linux has them at one moment: by number,
/// how often each was switched away. Nothing when one of them runs or is about to.
[[nodiscard]] inline std::optional<std::map<std::string, std::string>> sleeping_threads() {
  const std::string own = std::to_string(gettid());
  std::map<std::string, std::string> threads;
  std::error_code failure;
  for (const auto& folder : std::filesystem::directory_iterator{"/proc/self/task", failure}) {
    const std::string number = folder.path().filename().string();
    if (number == own) continue;
    std::ifstream status{folder.path() / "status"};
    std::string switches;
    bool sleeps = false;
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("State:")) sleeps = line.find('S', 6) != std::string::npos;
      if (line.find("ctxt_switches:") != std::string::npos) switches += line;
    }
    if (!sleeps) return std::nullopt;
    threads[number] = switches;
  }
  return threads;
}

/// True when all threads but the caller slept at one moment: nothing happens any more unless the
/// caller does it, but for what a clock or another process wakes.
[[nodiscard]] inline bool all_others_sleep() {
  const auto before = sleeping_threads();
  // Who was asleep both times and not awake in between slept when the second look began.
  return before.has_value() && before == sleeping_threads();
}

}  // namespace spillway::test
