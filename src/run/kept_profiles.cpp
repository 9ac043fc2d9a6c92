#include "src/run/kept_profiles.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "prefetch/far_update.h"
#include "prefetch/files/json.h"
#include "prefetch/files/profile_file.h"
#include "prefetch/task_graph.h"
#include "um/error.h"
#include "um/files/folder.h"
#include "um/files/replaced_file.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kFormat = "spillway-kept-profile";
constexpr std::uint64_t kVersion = 2;
constexpr std::string_view kEnding = ".profile.json";

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string now_text() {
  return fmt::format(
      "{:%Y-%m-%d %H:%M} UTC",
      fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

// Tells programs apart that were built from other sources.
std::string program_stamp() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const auto time = fs::last_write_time(program, ignored).time_since_epoch().count();
  return fmt::format("{} {}", fs::file_size(program, ignored), time);
}

std::string far_of(const um::ManagedOptions& space) {
  if (space.far.file.empty()) return "ram";
  std::error_code ignored;
  return "file:" + fs::absolute(space.far.file, ignored).lexically_normal().string();
}

fs::file_time_type time_of(const fs::path& path) {
  std::error_code ignored;
  return fs::last_write_time(path, ignored);
}

}  // namespace

fs::path cache_folder() {
  if (const std::string own = variable("SPILLWAY_CACHE"); !own.empty()) {
    return own == "off" ? fs::path{} : fs::path{own};
  }
  const fs::path shared = variable("XDG_CACHE_HOME");
  if (shared.is_absolute()) return shared / "spillway";  // others are invalid by the standard
  const fs::path home = variable("HOME");
  return home.is_absolute() ? home / ".cache" / "spillway" : fs::path{};
}

ProfileKey profile_key(const ExecutionContext& context, const Measurement& measurement,
                       std::size_t ranks) {
  const um::ManagedOptions& space = measurement.space;
  return {.facts = {{"build", SPILLWAY_BUILD},
                    {"program", program_stamp()},
                    {"device", context.device->name()},
                    {"backend", context.backend->description()},
                    {"graph", prefetch::fingerprint(measurement.workload.training().graph)},
                    {"batch", measurement.workload.micro_batches().size},
                    {"page_bytes", measurement.workload.page().count()},
                    {"memory", to_string(measurement.mode)},
                    {"with_link", measurement.with_link},
                    {"with_far_updates", measurement.with_far_updates},
                    {"far", far_of(space)},
                    {"far_checksums", space.far.checksums},
                    {"link_bandwidth", space.link.bandwidth
                                           ? json(space.link.bandwidth->bytes_per_second())
                                           : json(nullptr)},
                    {"link_latency_ns", space.link.latency.count()},
                    {"fault_latency_ns", space.fault_latency.count()},
                    {"paging", static_cast<int>(space.paging)},
                    {"oversubscribe", space.gpu.oversubscribe},
                    {"discards", space.gpu.tells_discards()},
                    {"ranks", ranks}},
          .room = std::min(measurement.limit, measurement.workload.need().resident)};
}

std::optional<KeptProfile> KeptProfiles::find(const ProfileKey& key,
                                              const Workload& workload) const {
  const fs::path path = path_of(key);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  try {
    const prefetch::JsonFile file{path.string()};
    file.expect_format(kFormat, kVersion);
    const json& value = file.value();
    if (value.at("key") != prefetch::as_utf8(key.facts)) return std::nullopt;  // of the same hash
    if (um::Bytes{file.root().at("room_bytes").integer()} < key.room) return std::nullopt;
    const prefetch::TaskGraph& graph = workload.training().graph;
    prefetch::Profile profile = prefetch::read_profile(
        prefetch::JsonFile{value.at("profile").dump(), path.string()}, graph);
    profile.far_updates = prefetch::far_update_times(graph, profile.link);
    return KeptProfile{.profile = std::move(profile),
                       .measured = file.root().at("measured").string()};
  } catch (const um::Error&) {
    return std::nullopt;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

void KeptProfiles::keep(const ProfileKey& key, const std::string& title, const Workload& workload,
                        const prefetch::Profile& profile) const {
  const json value{{"format", kFormat},
                   {"version", kVersion},
                   {"title", title},
                   {"measured", now_text()},
                   {"key", key.facts},
                   {"room_bytes", key.room.count()},
                   {"profile", prefetch::to_json(profile, workload.training().graph)}};
  const um::Folder folder = um::Folder::make(folder_);
  um::ReplacedFile file{folder, path_of(key).filename().string()};
  const std::string text = prefetch::json_text(value) + "\n";
  file.write(std::as_bytes(std::span{text}));
  file.commit();
  const std::vector<fs::path> all = files();
  for (std::size_t i = kMost; i < all.size(); ++i) folder.remove(all[i].filename().string());
}

bool KeptProfiles::forget(const ProfileKey& key) const {
  std::error_code ignored;
  return fs::remove(path_of(key), ignored);
}

std::vector<KeptProfiles::Entry> KeptProfiles::entries() const {
  std::vector<Entry> all;
  for (const fs::path& path : files()) {
    std::error_code ignored;
    Entry entry{.file = path.filename().string(), .title = "cannot be read"};
    const std::uintmax_t bytes = fs::file_size(path, ignored);
    if (ignored) continue;  // it has just gone
    entry.size = um::Bytes{bytes};
    try {
      const prefetch::JsonFile file{path.string()};
      const prefetch::JsonView root = file.root();
      const prefetch::JsonView key = root.at("key");
      entry.device = key.at("device").string();
      entry.backend = key.at("backend").string();
      entry.memory = key.at("memory").string();
      entry.far = key.at("far").string();
      entry.measured = root.at("measured").string();
      entry.title = root.at("title").string();
    } catch (const um::Error&) {  // its title says so
    }
    all.push_back(std::move(entry));
  }
  return all;
}

std::size_t KeptProfiles::clear() const {
  const std::vector<fs::path> all = files();
  for (const fs::path& path : all) {
    std::error_code error;
    fs::remove(path, error);
    if (error) throw um::system_error("cannot remove " + path.string(), error.value());
  }
  return all.size();
}

fs::path KeptProfiles::path_of(const ProfileKey& key) const {
  return folder_ /
         fmt::format("{:016x}{}", prefetch::fingerprint(prefetch::json_text(key.facts)), kEnding);
}

// The newest first.
std::vector<fs::path> KeptProfiles::files() const {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code ignored;
  fs::directory_iterator entry{folder_, ignored};
  for (; !ignored && entry != fs::directory_iterator{}; entry.increment(ignored)) {
    // A killed process leaves files with longer names.
    if (entry->path().filename().string().find(kEnding) == std::string::npos) continue;
    found.emplace_back(time_of(entry->path()), entry->path());
  }
  std::ranges::sort(found, std::greater{});
  std::vector<fs::path> all;
  all.reserve(found.size());
  for (auto& [time, path] : found) all.push_back(std::move(path));
  return all;
}

}  // namespace spillway
