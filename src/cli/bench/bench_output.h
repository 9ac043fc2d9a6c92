#pragma once

#include <exception>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <stop_token>
#include <string>
#include <utility>

#include "src/bench/bench_file.h"
#include "src/bench/link/launch_bench.h"
#include "src/bench/link/link_bench.h"
#include "src/bench/paging/paging_bench.h"
#include "src/bench/repetition.h"
#include "src/bench/train/train_row.h"
#include "src/cli/flags/memory_flags.h"
#include "src/cli/terminal/interrupt.h"
#include "um/device.h"

namespace spillway::cli {

/// A measurement whose figures so far are to be written however it ends: whole, by Ctrl-C, or by a
/// failure, which waits until they are. While it lives, a first Ctrl-C does not end the program,
/// and once the figures are being written it is ignored. Where writing them fails too, only that is
/// told. At most one at a time.
class PartialMeasurement {
 public:
  /// Runs `measure`, which is to throw Interrupted when `stop` is requested, to its end.
  explicit PartialMeasurement(const std::function<void(const std::stop_token& stop)>& measure);

  /// Throws: what `measure` did, unless that was Interrupted.
  void expect_no_failure() const;
  /// Throws: Interrupted when `measure` did.
  void expect_not_interrupted() const;

 private:
  Interrupt interrupt_;
  std::exception_ptr failure_;
  bool is_interrupted_ = false;
};

/// This machine as a bench file names it, with `device` and how it pages under `memory`.
[[nodiscard]] BenchMachine bench_machine(const um::Device& device, const MemoryFlags& memory);

/// Where one bench's rows go. Made before the bench begins, so that a long one does not find out at
/// its end that its file cannot be written.
class BenchOutput {
 public:
  /// `path` is empty, "-" or a file. Throws: um::Error when it cannot be written, or holds what was
  /// measured by another bench or on another machine.
  BenchOutput(std::string bench, BenchMachine machine, std::string path);

  /// False when standard output is for programs.
  [[nodiscard]] bool is_for_people() const { return path_ != "-"; }
  /// A further member of the file, beside the rows.
  void add(const std::string& name, nlohmann::json value) { file_.more[name] = std::move(value); }
  /// On standard output, unless it is for programs: what is measured, and where.
  void print_heading() const;

  /// Writes the file that was asked for, if any; `options` as flags_json() gives them. Without rows
  /// a file that is there stays as it is.
  void write(nlohmann::json options, nlohmann::json rows);

 private:
  BenchFile file_;
  std::string path_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// The median for people, "12.345 ms"; with a ~ behind it when it has not settled, else a space.
[[nodiscard]] std::string time_text(const TimingSummary& timing);

/// A line for each way and size, a time and a bandwidth for each direction.
[[nodiscard]] std::string link_table(std::span<const LinkRow> rows);
[[nodiscard]] std::string launch_table(std::span<const LaunchRow> rows);

/// A line for each pattern, size and way, with its counters.
[[nodiscard]] std::string paging_table(std::span<const PagingRow> rows);

/// Prints `rows` to standard output: those that are compared with each other under one heading, the
/// fastest marked.
void print_training_rows(std::span<const TrainRow> rows);

}  // namespace spillway::cli
