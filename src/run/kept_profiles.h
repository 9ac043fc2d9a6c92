#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "prefetch/profile.h"
#include "src/ops/backend.h"
#include "src/run/measured_profile.h"
#include "um/bytes.h"

namespace spillway {

/// Returns the folder for what is kept between runs: "$XDG_CACHE_HOME/spillway", else
/// "~/.cache/spillway"; the folder in $SPILLWAY_CACHE instead if that is set. Empty where that is
/// "off", or where HOME is not set.
[[nodiscard]] std::filesystem::path cache_folder();

/// Everything that measured times depend on: steps, machine, library, build, memory mode and link.
struct ProfileKey {
  nlohmann::json facts;  ///< by name
  um::Bytes room;        ///< near memory of the measurement: a task that needs more has no time
};

/// Returns the key of `measurement` on `context`, made by this many ranks on the machine at once.
[[nodiscard]] ProfileKey profile_key(const ExecutionContext& context,
                                     const Measurement& measurement, std::size_t ranks);

/// The profile of the training step of a workload, and when it was measured.
struct KeptProfile {
  prefetch::Profile profile;
  std::string measured;  ///< "2026-11-29 19:10 UTC"
};

/// Measured times in files, one for each key. A file that cannot be used counts as missing.
///
/// Thread safety: any number of processes may use the same folder.
class KeptProfiles {
 public:
  /// The most files that stay; the oldest go first.
  static constexpr std::size_t kMost = 200;

  /// `cache` as of cache_folder(). Looks at nothing yet.
  explicit KeptProfiles(const std::filesystem::path& cache) : folder_{cache / "profiles"} {}

  /// Returns the profile of the step of `workload` that was kept under `key` with as much room.
  [[nodiscard]] std::optional<KeptProfile> find(const ProfileKey& key,
                                                const Workload& workload) const;
  /// Keeps the profile of the step of `workload`. `title` says what it is of. Throws: um::Error
  /// when it cannot be written.
  void keep(const ProfileKey& key, const std::string& title, const Workload& workload,
            const prefetch::Profile& profile) const;
  /// Removes what is kept under `key`. Returns whether something was.
  [[nodiscard]] bool forget(const ProfileKey& key) const;

  /// One file.
  struct Entry {
    std::string file;
    std::string title;     ///< "resnet50 at batch 32"
    std::string device;    ///< "host (AMD EPYC 9754, 2 CPUs)"
    std::string backend;   ///< "oneDNN 3.1, avx2, 2 threads"
    std::string memory;    ///< "managed"
    std::string far;       ///< "ram", or "file:/scratch"
    std::string measured;  ///< "2026-11-29 19:10 UTC"
    um::Bytes size;        ///< of the file
  };
  /// Returns what is kept, the newest first.
  [[nodiscard]] std::vector<Entry> entries() const;
  /// Removes all files of profiles, and nothing else. Returns how many there were. Throws:
  /// um::Error when one cannot be removed.
  [[nodiscard]] std::size_t clear() const;

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

 private:
  [[nodiscard]] std::filesystem::path path_of(const ProfileKey& key) const;
  [[nodiscard]] std::vector<std::filesystem::path> files() const;

  std::filesystem::path folder_;
};

}  // namespace spillway
