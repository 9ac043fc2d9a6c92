#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "src/bench/paging/paging_bench.h"
#include "src/cli/bench/bench_command.h"
#include "src/cli/bench/bench_output.h"
#include "src/cli/flags/flag_values.h"
#include "src/cli/flags/memory_flags.h"
#include "src/cli/terminal/terminal.h"
#include "um/error.h"
#include "um/host/host_device.h"

namespace spillway::cli {
namespace {

using namespace um::literals;

// Fewer pages would leave nothing to advise or to ask for ahead.
constexpr std::size_t kFewestPages = 8;

struct PagingFlags {
  BenchFlags bench{.repeats = 1'000, .seconds = 0.5};
  MemoryFlags memory;
  std::string near = "128MiB";
  std::string page = "2MiB";
  std::vector<double> times{0.5, 1, 1.5, 2, 4};
  std::vector<std::string> patterns{"stream", "stride", "reverse", "random"};
  std::vector<std::string> ways{"faults", "advised", "prefetched", "discarded"};
};

std::string check_near(const std::string& text) {
  if (um::parse_bytes(text)) return {};
  return "'" + text + "' is no amount of memory: give one such as 128MiB";
}

std::string check_page(const std::string& text) {
  const auto page = um::parse_bytes(text);
  if (page && *page >= 4_KiB && *page <= 2_MiB && std::has_single_bit(page->count())) return {};
  return "'" + text + "' is no page: give a power of two from 4KiB to 2MiB";
}

std::string check_pattern(const std::string& text) {
  if (find_pattern(text)) return {};
  return "there is no pattern '" + text + "'; give stream, stride, reverse or random";
}

std::string check_paging_way(const std::string& text) {
  if (find_paging_way(text)) return {};
  return "there is no way '" + text + "'; give faults, advised, prefetched or discarded";
}

// Small amounts where the user wants a quick look and gave no others.
void make_quick(PagingFlags& options, const CLI::App& command) {
  const auto is_given = [&](const char* flag) { return command.get_option(flag)->count() > 0; };
  if (!is_given("--page")) options.page = "64KiB";
  if (!is_given("--near")) options.near = "1MiB";
  if (!is_given("--times")) options.times = {0.5, 2};
}

um::Bytes near_of(const PagingFlags& options, um::Bytes page) {
  const um::Bytes near = um::round_down(*um::parse_bytes(options.near), 2 * page);
  if (near < kFewestPages * page) {
    throw um::Error{"--near " + options.near + " does not hold " + std::to_string(kFewestPages) +
                    " pages of " + um::to_string(page) + "; give it more, or smaller pages"};
  }
  return near;
}

// Managed memory in RAM takes near and far memory, and plain memory is as large as far memory.
void expect_room(const um::Device& device, const PagingBenchOptions& options) {
  const double max = *std::ranges::max_element(options.near_times);
  const um::Bytes size = paged_size(options.near, max, options.space.page);
  const um::Bytes needed = options.near + (options.space.far.file.empty() ? 2 : 1) * size;
  const um::Bytes available = device.available_memory();
  if (needed <= available) return;
  throw um::Error{"bench paging would take " + um::to_string(needed) + " of the " +
                  um::to_string(available) + " available; give a smaller --near or --times"};
}

PagingBenchOptions bench_flags(const PagingFlags& options) {
  PagingBenchOptions bench{.near_times = options.times,
                           .space = options.memory.space(),
                           .repetition = options.bench.repetition()};
  bench.space.page = *um::parse_bytes(options.page);
  bench.near = near_of(options, bench.space.page);
  for (const std::string& name : options.patterns) bench.patterns.push_back(*find_pattern(name));
  for (const std::string& name : options.ways) bench.ways.push_back(*find_paging_way(name));
  return bench;
}

// The rows so far, however it ends.
void measure_all(um::Device& device, const PagingBenchOptions& options, const std::stop_token& stop,
                 std::vector<PagingRow>& rows) {
  TimeLeftLine line{"bench paging"};
  bench_paging(device, options,
               {.on_progress = [&](double done, const std::string& next) { line.show(done, next); },
                .on_row = [&](const PagingRow& row) { rows.push_back(row); }},
               stop);
}

// What --quick changed too.
nlohmann::json flags_used(const PagingFlags& options, const CLI::App& command) {
  nlohmann::json flags = flags_json(command);
  flags["near"] = options.near;
  flags["page"] = options.page;
  flags["times"] = options.times;
  flags["patterns"] = options.patterns;
  flags["ways"] = options.ways;
  return flags;
}

void run_paging(PagingFlags options, const CLI::App& command) {
  if (options.bench.quick) make_quick(options, command);
  options.memory.expect_far();
  um::HostDevice device;
  const PagingBenchOptions what = bench_flags(options);
  expect_room(device, what);
  BenchOutput output{"paging", bench_machine(device, options.memory), options.bench.json};
  output.print_heading();
  std::vector<PagingRow> rows;
  const PartialMeasurement measurement{
      [&](const std::stop_token& stop) { measure_all(device, what, stop, rows); }};
  if (output.is_for_people()) fmt::print("{}", paging_table(rows));
  nlohmann::json list = nlohmann::json::array();
  for (const PagingRow& row : rows) list.push_back(to_json(row));
  output.write(flags_used(options, command), std::move(list));
  measurement.expect_no_failure();
  measurement.expect_not_interrupted();
}

void add_paging_flags(CLI::App& command, PagingFlags& options) {
  command.add_option("--near", options.near, "Size of near memory (--quick: 1MiB)")
      ->check(check_near)
      ->capture_default_str();
  command.add_option("--page", options.page, "Page size (--quick: 64KiB)")
      ->check(check_page)
      ->capture_default_str();
  command
      .add_option("--times", options.times,
                  "Sizes of the accessed memory as multiples of near memory, separated by commas "
                  "(--quick: 0.5,2)")
      ->delimiter(',')
      ->check(within(SettingRange<double>{.least = 0.25, .most = 1000}))
      ->capture_default_str();
  command.add_option("--patterns", options.patterns, "Access patterns, separated by commas")
      ->delimiter(',')
      ->check(check_pattern)
      ->capture_default_str();
  command.add_option("--ways", options.ways, "Hints that the program gives, separated by commas")
      ->delimiter(',')
      ->check(check_paging_way)
      ->capture_default_str();
}

}  // namespace

void add_bench_paging(CLI::App& bench_group) {
  const auto [command, options] = add_bench_subcommand<PagingFlags>(
      bench_group, "paging", "Measure access patterns to more memory than is near, on the host",
      run_paging);
  add_paging_flags(command, options);
  options.bench.add_to(command);
  options.memory.add_host_space_to(command);
  command.footer(
      "Each access reads and writes a page; `discarded` only writes. `plain` is the time of the\n"
      "same accesses to ordinary memory. A ~ marks a time that exceeds --deviation.\n"
      "Example: spillway bench paging --json paging.json\n"
      "Example: spillway bench paging --link-bandwidth 2GB/s --times 1.5,4 --patterns random");
}

}  // namespace spillway::cli
