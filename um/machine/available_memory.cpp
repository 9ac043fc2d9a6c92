#include "um/machine/available_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "um/error.h"
#include "um/machine/mapping.h"

namespace spillway::um {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kNoLimit{std::numeric_limits<std::uint64_t>::max()};

/// The files of one version of memory cgroups.
struct CgroupFiles {
  const char* folder;
  const char* limit;
  const char* usage;
  const char* idle_files;  ///< key in memory.stat: file pages that the kernel drops for room
  const char* peak;        ///< the most usage so far
};
constexpr CgroupFiles kVersion2{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file",
                                "memory.peak"};
constexpr CgroupFiles kVersion1{"sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                "memory.usage_in_bytes", "total_inactive_file",
                                "memory.max_usage_in_bytes"};

/// Returns the number after the word `key` in a file of words.
std::optional<std::uint64_t> number_after(const fs::path& path, std::string_view key) {
  std::ifstream file{path};
  std::string word;
  while (file >> word) {
    std::uint64_t number = 0;
    if (word == key && file >> number) return number;
  }
  return std::nullopt;
}

/// Returns the number that is the file's only content; nullopt for "max".
std::optional<std::uint64_t> number_in(const fs::path& path) {
  std::ifstream file{path};
  std::uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

Bytes room_in_one_cgroup(const fs::path& folder, const CgroupFiles& files) {
  const auto limit = number_in(folder / files.limit);
  const auto usage = number_in(folder / files.usage);
  if (!limit || !usage) return kNoLimit;
  const Bytes idle{number_after(folder / "memory.stat", files.idle_files).value_or(0)};
  return saturating_difference(Bytes{*limit}, saturating_difference(Bytes{*usage}, idle));
}

/// Returns whether a cgroup has a limit, which in version 1 is a large number where there is none.
bool is_limited(const fs::path& folder, const CgroupFiles& files) {
  constexpr std::uint64_t kLargest = 1ULL << 60U;
  return number_in(folder / files.limit).value_or(kLargest) < kLargest;
}

/// Returns the least room in the cgroup `name` ("/a/b") and its ancestors. A name from outside this
/// container's view is not found here; its top folder is.
Bytes room_in_cgroups(const fs::path& root, const fs::path& name, const CgroupFiles& files) {
  const fs::path top = root / files.folder;
  Bytes room = room_in_one_cgroup(top, files);
  for (fs::path at = name.relative_path(); !at.empty(); at = at.parent_path()) {
    room = std::min(room, room_in_one_cgroup(top / at, files));
  }
  return room;
}

/// A memory cgroup of this process.
struct MemoryCgroup {
  fs::path name;  ///< "/a/b"
  const CgroupFiles* files;
};

std::vector<MemoryCgroup> memory_cgroups(const fs::path& root) {
  std::vector<MemoryCgroup> found;
  std::ifstream file{root / "proc/self/cgroup"};  // lines such as 0::/a and 4:cpu,memory:/a
  std::string line;
  while (std::getline(file, line)) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const fs::path name = line.substr(second + 1);
    if (controllers == ",,") found.push_back({name, &kVersion2});
    if (controllers.find(",memory,") != std::string::npos) found.push_back({name, &kVersion1});
  }
  return found;
}

Bytes room_in_all_cgroups(const fs::path& root) {
  Bytes room = kNoLimit;
  for (const auto& [name, files] : memory_cgroups(root)) {
    room = std::min(room, room_in_cgroups(root, name, *files));
  }
  return room;
}

constexpr Bytes kMostLost = 4_GiB;
constexpr Bytes kSmallestStep = 16_MiB;
constexpr Bytes kLargestStep = 256_MiB;
constexpr int kPauses = 20;
constexpr std::uint64_t kMostGrowth = 256;  // times the memory available at first
constexpr auto kPause = std::chrono::milliseconds{10};

// Owns touched mappings.
class Touched {
 public:
  Touched() = default;
  Touched(const Touched&) = delete;
  Touched& operator=(const Touched&) = delete;
  ~Touched() {
    for (const Range memory : taken_) unmap_memory(memory);
  }
  [[nodiscard]] bool take(Bytes size) {
    try {
      taken_.reserve(taken_.size() + 1);
      taken_.push_back(map_memory(size));
      touch_memory(taken_.back());
    } catch (const OutOfMemory&) {
      return false;
    }
    return true;
  }

 private:
  std::vector<Range> taken_;
};

}  // namespace

Bytes available_memory(const fs::path& root) {
  const fs::path path = root / "proc/meminfo";
  if (!std::ifstream{path}) throw system_error("cannot see how much memory is available", errno);
  const auto kibibytes = number_after(path, "MemAvailable:");
  if (!kibibytes) throw Error{"cannot read the available memory from " + path.string()};
  return std::min(*kibibytes * 1_KiB, room_in_all_cgroups(root));
}

Bytes usable_memory(const fs::path& root) {
  return saturating_difference(available_memory(root), kBesideTraining);
}

Bytes resident_memory(const fs::path& root) {
  std::ifstream file{root / "proc/self/statm"};  // pages: of addresses, in RAM, and others
  std::uint64_t all = 0;
  std::uint64_t in_ram = 0;
  if (!(file >> all >> in_ram)) return {};
  return in_ram * Bytes{static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))};
}

Bytes peak_resident_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1_KiB;
}

// A name from outside this container's view has no folder here; the top folder is the container's.
// Outside a container the top folder is the whole machine's.
std::optional<Bytes> peak_of_cgroup(const fs::path& root) {
  for (const auto& [name, files] : memory_cgroups(root)) {
    const fs::path top = root / files->folder;
    std::error_code ignored;
    const bool is_seen =
        name.has_relative_path() && fs::exists(top / name.relative_path(), ignored);
    if (!is_seen && !is_limited(top, *files)) continue;
    const fs::path folder = is_seen ? top / name.relative_path() : top;
    if (const auto peak = number_in(folder / files->peak)) return Bytes{*peak};
  }
  return std::nullopt;
}

void expect_available(Bytes size, const std::string& deed, const std::string& advice,
                      Bytes beside) {
  const auto for_this = [&](Bytes all) { return saturating_difference(all, beside); };
  Bytes available = for_this(available_memory());
  if (size <= available) return;
  if (size <= for_this(room_in_all_cgroups("/"))) {  // a cgroup does not grow with its use
    available = for_this(available_when_touched(size + beside));
    if (size <= available) return;
  }
  throw OutOfMemory{"cannot " + deed + ": " + to_string(available) + " are available; " + advice};
}

Bytes available_when_touched(Bytes wanted, const MemoryToTouch& memory) {
  const Bytes at_first = memory.available();
  if (wanted.count() / kMostGrowth > at_first.count()) return at_first;
  const Bytes most_lost = std::min(kMostLost, Bytes{at_first.count() / 2});
  const Bytes step = std::clamp(Bytes{most_lost.count() / 4}, kSmallestStep, kLargestStep);
  Bytes taken;
  Bytes now = at_first;
  int pauses = 0;  // since the last step
  while (now + taken < wanted) {
    if (saturating_difference(at_first, now) + step <= most_lost) {
      if (!memory.take(step)) break;
      taken += step;
      pauses = 0;
    } else {
      if (++pauses > kPauses) break;
      memory.pause();
    }
    now = memory.available();
  }
  return now + taken;
}

Bytes available_when_touched(Bytes wanted) {
  Touched touched;
  return available_when_touched(wanted, {.available = [] { return available_memory(); },
                                         .take = [&](Bytes size) { return touched.take(size); },
                                         .pause = [] { std::this_thread::sleep_for(kPause); }});
}

}  // namespace spillway::um
