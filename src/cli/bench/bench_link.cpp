#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "src/bench/link/launch_bench.h"
#include "src/bench/link/link_bench.h"
#include "src/cli/bench/bench_command.h"
#include "src/cli/bench/bench_output.h"
#include "src/cli/flags/device_flags.h"
#include "src/cli/flags/memory_flags.h"
#include "src/cli/terminal/terminal.h"

namespace spillway::cli {
namespace {

using namespace um::literals;

struct LinkFlags {
  BenchFlags bench{.repeats = 20'000};
  DeviceFlags device;
  MemoryFlags memory;
  std::vector<std::string> sizes;
  std::vector<std::string> ways;
};

std::string check_size(const std::string& text) {
  constexpr um::Bytes kLargest = 1024 * 1024_GiB;  // more than any memory; multiples are numbers
  const auto size = um::parse_bytes(text);
  if (size && *size >= 4_KiB && *size <= kLargest && std::has_single_bit(size->count())) return {};
  return "'" + text + "' is no size: give a power of two from 4KiB to 1024TiB, such as 16MiB";
}

std::string check_link_way(const std::string& text) {
  if (find_way(text)) return {};
  return "there is no way '" + text + "'; give fault, prefetch, pageable_copy, pinned_copy or file";
}

std::vector<um::Bytes> sizes_of(const LinkFlags& options) {
  if (options.sizes.empty() && options.bench.quick) return {4_KiB, 1_MiB, 16_MiB};
  if (options.sizes.empty()) return link_sizes();
  std::vector<um::Bytes> sizes;
  for (const std::string& size : options.sizes) sizes.push_back(*um::parse_bytes(size));
  return sizes;
}

std::vector<Way> ways_of(const LinkFlags& options) {
  if (options.ways.empty()) {
    return {Way::kFault, Way::kPrefetch, Way::kPageableCopy, Way::kPinnedCopy, Way::kFile};
  }
  std::vector<Way> ways;
  for (const std::string& way : options.ways) ways.push_back(*find_way(way));
  return ways;
}

// What was found so far, however it ends.
struct LinkFindings {
  std::vector<LinkRow> rows;
  std::vector<LaunchRow> launches;
  std::vector<std::string> notes;
};

void measure_all(um::Device& device, const LinkFlags& options, const std::stop_token& stop,
                 LinkFindings& found) {
  TimeLeftLine line{"bench link"};
  const LinkListener listener{
      .on_progress = [&](double done, const std::string& next) { line.show(done, next); },
      .on_row = [&](const LinkRow& row) { found.rows.push_back(row); },
      .on_note = [&](const std::string& note) { found.notes.push_back(note); }};
  bench_link(device,
             {.sizes = sizes_of(options),
              .ways = ways_of(options),
              .space = options.memory.space(),
              .repetition = options.bench.repetition()},
             listener, stop);
}

// Beside moves that are as long as any of them, where there is room.
void measure_launches(ExecutionContext& context, const LinkFlags& options,
                      const std::stop_token& stop, LinkFindings& found) {
  const std::vector<Way> ways = ways_of(options);
  um::Bytes largest{};
  for (const LinkRow& row : found.rows) largest = std::max(largest, row.size);
  if (largest == um::Bytes{}) return;  // there was no room
  bench_launches(
      context,
      {.ways = ways,
       .size = std::min(largest, 256_MiB),
       .space = options.memory.space(),
       .max_time = Seconds{options.bench.quick ? 0.1 : 1.0}},
      [&](const LaunchRow& row) { found.launches.push_back(row); }, stop);
}

void run_link(const LinkFlags& options, const CLI::App& command) {
  options.memory.expect_far();
  ExecutionContext context = options.device.open();
  BenchOutput output{"link", bench_machine(*context.device, options.memory), options.bench.json};
  output.print_heading();
  LinkFindings found;
  const PartialMeasurement measurement{[&](const std::stop_token& stop) {
    measure_all(*context.device, options, stop, found);
    measure_launches(context, options, stop, found);
  }};
  if (output.is_for_people()) {
    fmt::print("{}", link_table(found.rows));
    if (!found.launches.empty()) fmt::print("\n{}", launch_table(found.launches));
    for (const std::string& note : found.notes) fmt::print("{}\n", note);
  }
  nlohmann::json rows = nlohmann::json::array();
  for (const LinkRow& row : found.rows) rows.push_back(to_json(row));
  nlohmann::json flags = flags_json(command);
  flags["notes"] = found.notes;
  nlohmann::json launches = nlohmann::json::array();
  for (const LaunchRow& row : found.launches) launches.push_back(to_json(row));
  output.add("launches", std::move(launches));
  output.write(std::move(flags), std::move(rows));
  measurement.expect_no_failure();
  measurement.expect_not_interrupted();
}

void add_link_flags(CLI::App& command, LinkFlags& options) {
  command
      .add_option("--sizes", options.sizes,
                  "Transfer sizes, separated by commas (default: 4KiB to 1GiB in powers of four)")
      ->delimiter(',')
      ->check(check_size);
  command
      .add_option(
          "--ways", options.ways,
          "Kinds of transfers: fault, prefetch, pageable_copy, pinned_copy, file (default: all)")
      ->delimiter(',')
      ->check(check_link_way);
}

}  // namespace

void add_bench_link(CLI::App& bench_group) {
  const auto [command, options] = add_bench_subcommand<LinkFlags>(
      bench_group, "link",
      "Measure time and bandwidth of page faults, prefetches, copies and files against size",
      run_link);
  add_link_flags(command, options);
  options.bench.add_to(command);
  options.device.add_memory_to(command);
  options.memory.add_space_to(command);
  command.footer(
      "`in` is from far to near memory. --far file:PATH is the file of the way `file`; the other\n"
      "ways have far memory in RAM. `held` is the time for which the call that starts a transfer\n"
      "blocks its thread. The second table is of a kernel that does nothing, launched alone and\n"
      "beside moves out: a driver that makes launches wait for a move shows there. A ~ marks a "
      "time that exceeds --deviation.\n"
      "Example: spillway bench link --far file:/scratch --json link.json\n"
      "Example: spillway bench link --ways prefetch,pinned_copy --sizes 2MiB,64MiB --paging memfd");
}

}  // namespace spillway::cli
