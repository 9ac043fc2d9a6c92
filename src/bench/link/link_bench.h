#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <stop_token>
#include <string>
#include <vector>

#include "src/bench/bench_file.h"
#include "src/bench/link/transfer.h"
#include "src/bench/repetition.h"
#include "um/bytes.h"
#include "um/device.h"

namespace spillway {

/// What one way of moving bytes gave.
struct LinkRow {
  NameOf<Way> way;
  Direction direction;
  um::Bytes size;  ///< each way, where direction is both
  TimingSummary time;
  TimingSummary call;  ///< how long the issuing calls held their thread

  /// Of the median; both ways together.
  [[nodiscard]] double bytes_per_second() const;
};

/// As a row of a bench file.
[[nodiscard]] nlohmann::json to_json(const LinkRow& row);
/// Reads a row that to_json() wrote, with any name of the way. Throws: um::Error that names the
/// place of the mistake.
[[nodiscard]] LinkRow read_link_row(const prefetch::JsonView& row);

/// What to measure.
struct LinkBenchOptions {
  std::vector<um::Bytes> sizes;  ///< powers of two from 4 KiB on
  std::vector<Way> ways;
  um::ManagedOptions space;  ///< far file, link and paging; no file: nothing is measured by one
  Repetition repetition;
};

/// Told of rows as they come.
struct LinkListener {
  /// `done` is the part of the work before `next`, from 0 to 1; `next` is for people.
  std::function<void(double done, const std::string& next)> on_progress;
  std::function<void(const LinkRow&)> on_row;
  /// What cannot be measured and why, and what memory a way moves between: each once.
  std::function<void(const std::string& note)> on_note;
};

/// 4 KiB to 1 GiB, each four times the one before.
[[nodiscard]] std::vector<um::Bytes> link_sizes();

/// Measures each way and size, in, out and both. Sizes that would take more than half of what the
/// device has available are left out, with a note. To be called by a thread that touches no other
/// managed memory. Throws: Interrupted when `stop` is requested; um::Error when memory cannot be
/// had.
void bench_link(um::Device& device, const LinkBenchOptions& options, const LinkListener& listener,
                const std::stop_token& stop);

}  // namespace spillway
