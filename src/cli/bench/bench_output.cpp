#include "src/cli/bench/bench_output.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "prefetch/files/json.h"
#include "src/cli/flags/flag_values.h"
#include "src/cli/flags/output_path.h"
#include "src/cli/terminal/terminal.h"
#include "src/run/executor.h"
#include "um/bytes.h"

namespace spillway::cli {
namespace {

// Of the host, which pages in software; nothing on a GPU.
std::optional<std::string> paging_of(const um::Device& device, const std::string& wanted) {
  const std::vector<um::Capability> all = device.capabilities();
  const auto uffd = std::ranges::find(all, "uffd_move", &um::Capability::name);
  if (uffd == all.end()) return std::nullopt;
  if (wanted != "auto") return wanted;
  return uffd->available ? "uffd" : "memfd";
}

bool are_on_one_line(const LinkRow& a, const LinkRow& b) {
  return a.way == b.way && a.size == b.size;
}

// Columns after the way and the size.
std::size_t column_of(Direction direction) {
  constexpr std::size_t kFirst = 2;
  return kFirst + 2 * static_cast<std::size_t>(direction);
}

std::string heading(const TrainRowKey& key) {
  const std::string size = um::to_string(key.budget_bytes);
  const bool is_size = key.budget == size;
  return fmt::format("{} at batch {}, images of {}x{}, budget {}{} (resident {})", key.net,
                     key.batch, key.image_size, key.image_size, key.budget,
                     is_size ? "" : " = " + size, um::to_string(key.resident_bytes));
}

std::string ratio_text(const std::optional<double>& ratio) {
  return ratio ? fmt::format("{:.2f}", *ratio) : "-";
}

// Marked with ! where it says little about the step.
std::string prediction_text(const std::optional<double>& ratio) {
  constexpr double kMaxOff = 0.15;
  const bool is_off = ratio && std::abs(*ratio - 1) > kMaxOff;
  return ratio_text(ratio) + (is_off ? "!" : " ");
}

std::string duration_of(Seconds time) {
  return duration_text(std::chrono::duration_cast<um::Nanoseconds>(time));
}

TableLine columns() {
  return {"  strategy", "step",      "+-", "images/s", "/resident",
          "predicted/", "near peak", "in", "out",      "faults"};
}

TableLine line_of(const TrainRow& row, bool wins, bool is_settled) {
  const TrainMeasurement& as = *row.measurement;
  return {(wins ? "* " : "  ") + row.key.strategy.name,
          duration_of(as.step.median),
          fmt::format("{:.0f} %", 100 * as.step.deviation),
          fmt::format("{:.1f}", row.images_per_second().value_or(0)),
          ratio_text(row.ratio()) + (is_settled ? ' ' : '~'),
          prediction_text(row.predicted_over_measured()),
          um::to_string(as.near_peak),
          um::to_string(as.bytes_in),
          um::to_string(as.bytes_out),
          std::to_string(as.faults)};
}

// By row.
struct Standing {
  std::vector<bool> settled;
  std::vector<bool> wins;
};

// Rows that are compared with each other.
void print_group(std::span<const TrainRow> rows, const Standing& standing, std::size_t first) {
  fmt::print("\n{}\n", heading(rows.front().key));
  std::vector<TableLine> lines{columns()};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].measurement) continue;
    lines.push_back(line_of(rows[i], standing.wins[first + i], standing.settled[first + i]));
  }
  if (lines.size() > 1) fmt::print("{}", text_table(lines));
  for (const TrainRow& row : rows) {
    if (!row.measurement) fmt::print("  {} failed: {}\n", row.key.strategy.name, row.failure);
  }
}

}  // namespace

PartialMeasurement::PartialMeasurement(
    const std::function<void(const std::stop_token& stop)>& measure) {
  try {
    measure(interrupt_.token());
  } catch (const Interrupted&) {
    is_interrupted_ = true;
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void PartialMeasurement::expect_no_failure() const {
  if (failure_) std::rethrow_exception(failure_);
}

void PartialMeasurement::expect_not_interrupted() const {
  if (is_interrupted_) throw Interrupted{"rows that were not reached are left out"};
}

BenchMachine bench_machine(const um::Device& device, const MemoryFlags& memory) {
  const std::optional<std::string> paging = paging_of(device, memory.paging);
  return find_bench_machine(paging ? "host" : device.name(), paging);
}

BenchOutput::BenchOutput(std::string bench, BenchMachine machine, std::string path)
    : path_{std::move(path)} {
  expect_writable(path_);
  expect_replaceable(path_, bench, machine);
  file_.bench = std::move(bench);
  file_.machine = std::move(machine);
  file_.begin = std::chrono::system_clock::now();
}

void BenchOutput::print_heading() const {
  if (!is_for_people()) return;
  fmt::print("bench {} on {} (load {:.2f})\n", file_.bench, to_string(file_.machine),
             file_.machine.load);
}

void BenchOutput::write(nlohmann::json options, nlohmann::json rows) {
  if (path_.empty()) return;
  // A bench that was stopped before its first row has nothing that is worth an older file.
  std::error_code ignored;
  if (rows.empty() && path_ != "-" && std::filesystem::exists(path_, ignored)) {
    tell("nothing was measured: {} stays as it was\n", path_);
    return;
  }
  file_.took = std::chrono::steady_clock::now() - begin_;
  file_.options = std::move(options);
  file_.rows = std::move(rows);
  prefetch::write_json(to_json(file_), path_);
}

std::string time_text(const TimingSummary& timing) {
  const auto median = std::chrono::round<um::Nanoseconds>(timing.median);
  return duration_text(median) + (timing.settled ? ' ' : '~');
}

std::string link_table(std::span<const LinkRow> rows) {
  std::vector<TableLine> lines{
      {"way", "size", "in", "GB/s", "out", "GB/s", "both", "GB/s", "held"}};
  const LinkRow* previous = nullptr;
  for (const LinkRow& row : rows) {
    if (previous == nullptr || !are_on_one_line(*previous, row)) {
      lines.push_back({to_string(row.way), um::to_string(row.size), "-", "", "-", "", "-", "",
                       time_text(row.call)});
    }
    previous = &row;
    TableLine& line = lines.back();
    line[column_of(row.direction)] = time_text(row.time);
    line[column_of(row.direction) + 1] = fmt::format("{:.2f}", row.bytes_per_second() * 1e-9);
  }
  return text_table(lines);
}

std::string launch_table(std::span<const LaunchRow> rows) {
  const auto longest = [](const TimingSummary& timing) {
    return duration_text(std::chrono::round<um::Nanoseconds>(timing.max));
  };
  std::vector<TableLine> lines{{"launch", "size", "call", "longest", "done", "longest"}};
  for (const LaunchRow& row : rows) {
    lines.push_back({row.beside ? "beside " + to_string(*row.beside) + " out" : "alone",
                     row.beside ? um::to_string(row.size) : "", time_text(row.call),
                     longest(row.call), time_text(row.whole), longest(row.whole)});
  }
  return text_table(lines);
}

std::string paging_table(std::span<const PagingRow> rows) {
  std::vector<TableLine> lines{
      {"size", "pattern", "way", "time", "plain", "ratio", "faults", "evictions", "in", "out"}};
  for (const PagingRow& row : rows) {
    lines.push_back({fmt::format("{:g}x", row.near_times), to_string(row.pattern),
                     to_string(row.way), time_text(row.time), time_text(row.plain),
                     fmt::format("{:.2f}", row.ratio()), fmt::format("{}", row.counters.faults),
                     fmt::format("{}", row.counters.evictions),
                     um::to_string(row.counters.bytes_prefetched),
                     um::to_string(row.counters.bytes_offloaded)});
  }
  constexpr std::size_t kNames = 3;
  return text_table(lines, kNames);
}

void print_training_rows(std::span<const TrainRow> rows) {
  if (rows.empty()) return;
  Standing standing{.settled = find_settled(rows), .wins = {}};
  standing.wins = find_winners(rows, standing.settled);
  for (std::size_t first = 0; first < rows.size();) {
    std::size_t end = first + 1;
    while (end < rows.size() && rows[end].key.competes_with(rows[first].key)) ++end;
    print_group(rows.subspan(first, end - first), standing, first);
    first = end;
  }
  fmt::print(
      "\n*: the fastest of its budget, or not to be told from it. step: median and median absolute "
      "deviation;\n/resident: over the resident step, with ~ where one of both has not settled, "
      "which never is the fastest;\npredicted/: what was predicted over the "
      "step, with ! where they differ by more than 15 %; in, out: bytes a step\n");
}

}  // namespace spillway::cli
