#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <stop_token>
#include <string>
#include <vector>

#include "src/bench/name_of.h"
#include "src/bench/paging/paging_pass.h"
#include "src/bench/paging/touch_pattern.h"
#include "src/bench/repetition.h"
#include "um/bytes.h"
#include "um/device.h"

namespace spillway {

/// What one pattern and way gave.
struct PagingRow {
  NameOf<TouchPattern> pattern;
  NameOf<PagingWay> way;
  double near_times;  ///< bytes over near bytes
  um::Bytes size;
  um::Bytes near;
  TimingSummary time;     ///< of a pass
  TimingSummary plain;    ///< of the same touches of plain memory, in turns with it
  um::Counters counters;  ///< of the last pass

  /// Median over median.
  [[nodiscard]] double ratio() const { return time.median / plain.median; }
};

/// As a row of a bench file.
[[nodiscard]] nlohmann::json to_json(const PagingRow& row);
/// What to_json() wrote, whatever pattern and way are called; counters may be missing. Throws:
/// um::Error that names the place of what is wrong.
[[nodiscard]] PagingRow read_paging_row(const prefetch::JsonView& row);

/// What to measure.
struct PagingBenchOptions {
  um::Bytes near;
  std::vector<double> near_times;  ///< of all these sizes, each at least two pages
  std::vector<TouchPattern> patterns;
  std::vector<PagingWay> ways;
  um::ManagedOptions space;  ///< page, far memory, link and paging
  Repetition repetition;
};

/// Told of rows as they come.
struct PagingListener {
  /// `done` is the part of the work before `next`, from 0 to 1; `next` is for people.
  std::function<void(double done, const std::string& next)> on_progress;
  std::function<void(const PagingRow&)> on_row;
};

/// The bytes of `near_times` near memories, in whole pages.
[[nodiscard]] um::Bytes paged_size(um::Bytes near, double near_times, um::Bytes page);

/// Measures every size, pattern and way, in this order. Requires: a device that evicts. Throws:
/// Interrupted when `stop` is requested; um::Error when memory cannot be had; ContractError when
/// managed memory does not hold at the end what plain memory does.
void bench_paging(um::Device& device, const PagingBenchOptions& options,
                  const PagingListener& listener, const std::stop_token& stop);

}  // namespace spillway
