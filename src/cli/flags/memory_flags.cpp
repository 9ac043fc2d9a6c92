#include "src/cli/flags/memory_flags.h"

#include <CLI/CLI.hpp>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "src/cli/flags/flag_values.h"
#include "src/cli/terminal/terminal.h"
#include "um/host/far/far_file.h"

namespace spillway::cli {
namespace {

constexpr const char* kMemory = "Memory";

const std::map<std::string, MemoryMode> kModes{{"managed", MemoryMode::kManaged},
                                               {"copy", MemoryMode::kCopy},
                                               {"resident", MemoryMode::kResident}};
constexpr const char* kModesHelp =
    "managed: unified memory with prefetch and eviction hints; copy: explicit copies; resident: "
    "everything in near memory";
const std::map<std::string, um::Paging> kPaging{{"auto", um::Paging::kAuto},
                                                {"uffd", um::Paging::kUffdMove},
                                                {"memfd", um::Paging::kMemfdSegv}};
const std::map<std::string, bool> kSwitch{{"on", true}, {"off", false}};
const std::map<std::string, std::optional<bool>> kDiscards{
    {"auto", std::nullopt}, {"on", true}, {"off", false}};

// A flag that does nothing in some modes.
struct FlagOfModes {
  const char* flag;
  bool is_of_copy;
  bool is_of_resident;
};
constexpr std::array kFlagsOfModes{FlagOfModes{"--planner", true, false},
                                   FlagOfModes{"--recompute", true, false},
                                   FlagOfModes{"--state", true, false},
                                   FlagOfModes{"--update", true, false},
                                   FlagOfModes{"--far", true, false},
                                   FlagOfModes{"--far-checksums", true, false},
                                   FlagOfModes{"--link-bandwidth", true, false},
                                   FlagOfModes{"--link-latency", true, false},
                                   FlagOfModes{"--fault-latency", false, false},
                                   FlagOfModes{"--paging", false, false},
                                   FlagOfModes{"--oversubscribe", false, false},
                                   FlagOfModes{"--discard", false, false}};

constexpr const char* kChosenFar = "auto";

std::string check_far(const std::string& text, bool has_auto) {
  if (text == "ram" || (text.starts_with("file:") && text.size() > 5)) return {};
  if (has_auto && text == kChosenFar) return {};
  return "'" + text + "' is no far memory: give " + (has_auto ? "auto, " : "") +
         "ram, or file:PATH";
}

std::string check_duration(const std::string& text) {
  if (parse_duration(text)) return {};
  return "'" + text + "' is no time: give a number with ns, us, ms or s, such as 20us";
}

um::Nanoseconds duration(const std::string& text) {
  return text.empty() ? um::Nanoseconds{0} : parse_duration(text).value();
}

}  // namespace

void MemoryFlags::add_mode_to(CLI::App& app) {
  app.add_option("--memory", memory,
                 std::string{kModesHelp} +
                     "; auto: what spillway devices says of the device, managed where it can be")
      ->check(CLI::IsMember{{"auto", "managed", "copy", "resident"}})
      ->capture_default_str()
      ->group(kMemory);
}

void MemoryFlags::add_planned_mode_to(CLI::App& app) {
  memory = "managed";
  app.add_option("--memory", memory, kModesHelp)
      ->check(CLI::IsMember{kModes})
      ->capture_default_str()
      ->group(kMemory);
}

void MemoryFlags::add_space_to(CLI::App& app) {
  add_host_space_to(app);
  app.add_flag(
         "--oversubscribe", oversubscribe,
         "Let --memory managed allocate more unified memory than the GPU has free. Some drivers "
         "hang the GPU for all programs when they must evict")
      ->group(kMemory);
  app.add_option(
         "--discard", discard,
         "on: tell the driver of a GPU which pages of --memory managed are dead, so that it "
         "never writes them back; off: leave them where they are, which takes fewer calls, and "
         "does not count them: they are the first that anything else overwrites; "
         "auto: on with --oversubscribe")
      ->check(CLI::IsMember{kDiscards})
      ->capture_default_str()
      ->group(kMemory);
}

void MemoryFlags::add_host_space_to(CLI::App& app) {
  const bool has_auto = far == kChosenFar;
  app.add_option("--far", far,
                 std::string{"Far memory: ram, or file:PATH, where PATH is a folder that exists, "
                             "or a new file in one; on the host only a file saves RAM"} +
                     (has_auto ? "; auto: a file in $TMPDIR, /var/tmp or the current folder where "
                                 "the host's RAM has no room for near and far memory, else ram"
                               : "") +
                     ". --memory resident has no far memory")
      ->check([has_auto](const std::string& text) { return check_far(text, has_auto); })
      ->capture_default_str()
      ->group(kMemory);
  app.add_option("--far-checksums", far_checksums,
                 "on: check what is read back from a far file by checksums (CRC-32C), which take "
                 "1/1024 of its size in RAM; off: trust the disk. Far memory in RAM has none")
      ->check(CLI::IsMember{kSwitch})
      ->capture_default_str()
      ->group(kMemory);
  app.add_option("--link-bandwidth", link_bandwidth,
                 "Limit the link's bandwidth in each direction, e.g. 2GB/s (default: no limit)")
      ->check(check_bandwidth)
      ->group(kMemory);
  app.add_option("--link-latency", link_latency,
                 "Latency added to each transfer over the link, e.g. 10us")
      ->check(check_duration)
      ->group(kMemory);
  app.add_option("--fault-latency", fault_latency,
                 "Latency added to each page fault of --memory managed, e.g. 20us")
      ->check(check_duration)
      ->group(kMemory);
  app.add_option("--paging", paging,
                 "How --memory managed handles page faults on the host: uffd (userfaultfd), memfd "
                 "(memfd and SIGSEGV), or auto (uffd where the kernel supports it)")
      ->check(CLI::IsMember{kPaging})
      ->capture_default_str()
      ->group(kMemory);
}

void MemoryFlags::add_graph_to(CLI::App& app) {
  app.add_option("--graph", graph,
                 "How a GPU is given steps. auto: capture a step as a CUDA graph and repeat it, "
                 "with --memory resident, and "
                 "with --memory copy where all tensors have fixed places; off: launch each step "
                 "anew, as --memory managed always does")
      ->check(CLI::IsMember({"auto", "off"}))
      ->capture_default_str()
      ->group(kMemory);
}

void MemoryFlags::note_idle_flags(const CLI::App& command) const {
  if (planned_mode() == MemoryMode::kManaged) return;
  for (const auto& [flag, is_of_copy, is_of_resident] : kFlagsOfModes) {
    if (mode() == MemoryMode::kCopy ? is_of_copy : is_of_resident) continue;
    const CLI::Option* const option = command.get_option_no_throw(flag);
    if (option == nullptr || option->count() == 0) continue;
    tell("note: {} does nothing with --memory {}\n", flag, memory);
  }
}

std::optional<MemoryMode> MemoryFlags::mode() const {
  if (memory != "auto") return kModes.at(memory);
  const bool is_of_managed =
      oversubscribe || discard != "auto" || paging != "auto" || !fault_latency.empty();
  return is_of_managed ? std::optional{MemoryMode::kManaged} : std::nullopt;
}

um::ManagedOptions MemoryFlags::space() const {
  um::ManagedOptions options{.fault_latency = duration(fault_latency),
                             .paging = kPaging.at(paging),
                             .gpu = {.oversubscribe = oversubscribe,
                                     .discards = kDiscards.at(discard),
                                     .graph = graph == "auto"}};
  if (far.starts_with("file:")) options.far.file = far.substr(std::string_view{"file:"}.size());
  options.far.checksums = kSwitch.at(far_checksums);
  if (!link_bandwidth.empty()) options.link.bandwidth = um::parse_bandwidth(link_bandwidth);
  options.link.latency = duration(link_latency);
  return options;
}

MemoryOptions MemoryFlags::options() const {
  MemoryOptions options{.mode = mode(), .space = space()};
  if (far == kChosenFar) {
    options.find_far_folder = [](um::Bytes size) { return um::find_far_folder(size).string(); };
  }
  return options;
}

void MemoryFlags::restore_far_folder(const std::string& folder) {
  if (folder.empty() || planned_mode() == MemoryMode::kResident) return;
  std::error_code unreadable;
  if (std::filesystem::is_directory(folder, unreadable)) {
    far = "file:" + folder;
    return;
  }
  tell(
      "warning: the checkpoint's far memory was a file in {}, which is not there; --far file:DIR "
      "names another folder\n",
      folder);
}

void MemoryFlags::expect_far() const {
  const um::ManagedOptions options = space();
  if (options.far.file.empty() || planned_mode() == MemoryMode::kResident) return;
  const um::UnnamedFile probe{options.far.file, um::Bytes{}};
}

std::string check_bandwidth(const std::string& text) {
  if (um::parse_bandwidth(text)) return {};
  return "'" + text + "' is no bandwidth: give a rate such as 2GB/s or 500MB/s";
}

}  // namespace spillway::cli
