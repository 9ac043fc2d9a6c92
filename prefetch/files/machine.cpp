#include "prefetch/files/machine.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "prefetch/far_update.h"
#include "prefetch/files/json.h"
#include "prefetch/files/profile_file.h"
#include "um/error.h"

namespace spillway::prefetch {
namespace {

using namespace um::literals;
using um::Bandwidth;

constexpr LinkProfile copy_engines(double offload, double prefetch) {  // GB/s
  return {.offload = Bandwidth{offload * 1e9},
          .prefetch = Bandwidth{prefetch * 1e9},
          .latency = um::Nanoseconds{10'000},
          .copies_while_read = true};
}
constexpr LinkProfile copy_engines(double both) { return copy_engines(both, both); }

// Published peaks and efficiencies; tensor cores without sparsity. a100, h100 (SXM) and gh200 (96
// GB): data sheets, with the efficiencies of h200. The link of gh200: the middle of what users
// measured over NVLink-C2C, 170 to 295 GB/s to RAM and 340 to 420 GB/s from it. host: this
// project's two-core build machine with oneDNN, which runs bf16 convolutions at twice the fp32
// rate.
const std::array<Machine, 7> kMachines{{
    {.name = "k40m",
     .near_memory = 12_GiB,
     .flops_per_second = 4.29e12,
     .compute_efficiency = 0.5,
     .memory_bandwidth = Bandwidth{288e9},
     .memory_efficiency = 0.7,
     .link = copy_engines(11)},
    {.name = "v100",
     .near_memory = 16_GiB,
     .flops_per_second = 15.7e12,
     .compute_efficiency = 0.65,
     .memory_bandwidth = Bandwidth{900e9},
     .memory_efficiency = 0.8,
     .link = copy_engines(12.5)},
    {.name = "a100",
     .near_memory = 40_GiB,
     .flops_per_second = 19.5e12,
     .compute_efficiency = 0.65,
     .memory_bandwidth = Bandwidth{1555e9},
     .memory_efficiency = 0.75,
     .link = copy_engines(25),
     .tf32_flops_per_second = 156e12,
     .bf16_flops_per_second = 312e12},
    {.name = "h100",
     .near_memory = 80_GiB,
     .flops_per_second = 67e12,
     .compute_efficiency = 0.65,
     .memory_bandwidth = Bandwidth{3350e9},
     .memory_efficiency = 0.75,
     .link = copy_engines(50),
     .tf32_flops_per_second = 494e12,
     .bf16_flops_per_second = 989e12},
    {.name = "h200",
     .near_memory = 141_GiB,
     .flops_per_second = 67e12,
     .compute_efficiency = 0.65,
     .memory_bandwidth = Bandwidth{4800e9},
     .memory_efficiency = 0.75,
     .link = copy_engines(50),
     .tf32_flops_per_second = 494e12,
     .bf16_flops_per_second = 989e12},
    {.name = "gh200",
     .near_memory = 96_GiB,
     .flops_per_second = 67e12,
     .compute_efficiency = 0.65,
     .memory_bandwidth = Bandwidth{4000e9},
     .memory_efficiency = 0.75,
     .link = copy_engines(230, 380),
     .tf32_flops_per_second = 494e12,
     .bf16_flops_per_second = 989e12},
    {.name = "host",
     .near_memory = 24_GiB,
     .flops_per_second = 0.5e12,
     .compute_efficiency = 0.9,
     .memory_bandwidth = Bandwidth{60e9},
     .memory_efficiency = 0.6,
     .link = {.offload = Bandwidth{8e9},
              .prefetch = Bandwidth{8e9},
              .latency = um::Nanoseconds{10'000},
              .faults = um::kHostFaults,
              .far_update = Bandwidth{5.6e9},
              .compute_speed_while_updating = 0.45},
     .bf16_flops_per_second = 1e12},
}};

double fraction(const JsonView& value) {
  const double number = value.positive_number();
  if (number > 1) throw value.error("is larger than 1");
  if (number < 0.001) throw value.error("is smaller than 0.001");
  return number;
}

std::optional<double> read_peak(const JsonView& machine, const char* name) {
  if (!machine.has(name)) return std::nullopt;
  return read_rate(machine.at(name));
}

Machine read_machine(const JsonFile& file) {
  file.expect_format("spillway-machine", 1);
  const JsonView root = file.root();
  return {.name = root.at("name").string(),
          .near_memory = um::Bytes{root.at("near_memory_bytes").integer()},
          .flops_per_second = read_rate(root.at("flops_per_second")),
          .compute_efficiency = fraction(root.at("compute_efficiency")),
          .memory_bandwidth = Bandwidth{read_rate(root.at("memory_bytes_per_second"))},
          .memory_efficiency = fraction(root.at("memory_efficiency")),
          .link = read_link(root.at("link")),
          .tf32_flops_per_second = read_peak(root, "tf32_flops_per_second"),
          .bf16_flops_per_second = read_peak(root, "bf16_flops_per_second")};
}

}  // namespace

std::span<const Machine> built_in_machines() { return kMachines; }

Machine find_machine(const std::string& name_or_path) {
  const auto found = std::ranges::find(kMachines, name_or_path, &Machine::name);
  if (found != kMachines.end()) return *found;
  std::error_code none;  // a name that is too long for a path does not exist
  if (std::filesystem::exists(name_or_path, none)) return read_machine(JsonFile{name_or_path});
  std::string names;
  for (const Machine& machine : kMachines) names += machine.name + ", ";
  throw um::Error{"there is no machine called '" + name_or_path + "' and no such file; there are " +
                  names + "or a machine file"};
}

std::optional<Machine> machine_of(std::string_view device) {
  std::string word;  // letters and digits, in small letters
  const auto find_word = [&]() -> std::optional<Machine> {
    const auto found = std::ranges::find(kMachines, word, &Machine::name);
    word.clear();
    return found == kMachines.end() ? std::nullopt : std::optional{*found};
  };
  for (const char character : device) {
    const auto byte = static_cast<unsigned char>(character);
    if (std::isalnum(byte) != 0) {
      word += static_cast<char>(std::tolower(byte));
    } else if (auto machine = find_word()) {
      return machine;
    }
  }
  return find_word();
}

Machine in_precision(Machine machine, std::string_view precision) {
  um::expects(machine.precision == "fp32", "a machine in fp32 has all its peaks");
  struct Peak {
    std::string_view precision;
    std::optional<double> flops_per_second;
  };
  const std::array<Peak, 3> peaks{{{"fp32", machine.flops_per_second},
                                   {"tf32", machine.tf32_flops_per_second},
                                   {"bf16", machine.bf16_flops_per_second}}};
  std::string has;
  for (const Peak& peak : peaks) {
    if (!peak.flops_per_second) continue;
    if (peak.precision == precision) {
      machine.flops_per_second = *peak.flops_per_second;
      machine.precision = precision;
      return machine;
    }
    has += (has.empty() ? "" : " and ") + std::string{peak.precision};
  }
  throw um::Error{"the machine '" + machine.name + "' has no peak rate in " +
                  std::string{precision} + ", only in " + has};
}

Profile model_profile(const TaskGraph& graph, const Machine& machine) {
  constexpr double kFastConvolution = 0.55;  // of the plain algorithm
  const std::string precision = machine.precision == "fp32" ? "" : ", " + machine.precision;
  Profile profile{.source = "model " + machine.name + precision,
                  .graph = fingerprint(graph),
                  .durations = {},
                  .link = machine.link};
  const double flops = machine.flops_per_second * machine.compute_efficiency;
  const double bytes = machine.memory_bandwidth.bytes_per_second() * machine.memory_efficiency;
  const auto longest = static_cast<double>(longest_duration(graph.tasks.size()));
  for (const Task& task : graph.tasks) {
    const double seconds =
        std::max(task.flops / flops, static_cast<double>(task.traffic.count()) / bytes);
    std::vector<um::Nanoseconds> durations;
    for (std::size_t a = 0; a < task.algorithms.size(); ++a) {
      const double factor = a == 0 ? 1.0 : kFastConvolution;
      const double nanoseconds = std::min(seconds * factor * 1e9, longest);
      durations.emplace_back(static_cast<std::int64_t>(nanoseconds));
    }
    profile.durations.push_back(std::move(durations));
  }
  profile.far_updates = far_update_times(graph, profile.link);
  return profile;
}

}  // namespace spillway::prefetch
