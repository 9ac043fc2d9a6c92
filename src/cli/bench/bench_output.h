#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "src/bench/bench_file.h"
#include "src/cli/flags/memory_flags.h"
#include "um/device.h"

namespace spillway::cli {

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

}  // namespace spillway::cli
