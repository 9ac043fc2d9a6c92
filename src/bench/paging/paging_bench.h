#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "src/bench/bench_file.h"
#include "src/bench/repetition.h"
#include "um/bytes.h"
#include "um/device.h"

namespace spillway {

/// In which order the pages of a slab are touched.
enum class TouchPattern {
  kStream,   ///< from the first to the last
  kStride,   ///< every eighth, then those behind them, until all have been
  kReverse,  ///< from the last to the first
  kRandom    ///< drawn with replacement, as many as there are
};

/// As bench files call them: "stream".
[[nodiscard]] std::string to_string(TouchPattern pattern);
/// Nothing when no pattern is called `name`.
[[nodiscard]] std::optional<TouchPattern> find_pattern(const std::string& name);

/// The pages that one pass over `pages` pages touches, in order: `pages` of them, always the same.
[[nodiscard]] std::vector<std::size_t> touch_order(TouchPattern pattern, std::size_t pages);

/// How much a program that touches pages tells of it.
enum class PagingWay {
  kFaults,      ///< nothing
  kAdvised,     ///< beforehand, that three quarters of near memory's worth of pages stay near
  kPrefetched,  ///< asks for each page some touches ahead, and sends it away behind
  kDiscarded    ///< that all content is dead before it is written anew
};

/// As bench files call them: "faults".
[[nodiscard]] std::string to_string(PagingWay way);
/// Nothing when no way is called `name`.
[[nodiscard]] std::optional<PagingWay> find_paging_way(const std::string& name);

/// True when passes of this way overwrite each page; else they read and write a word of each 64
/// bytes.
[[nodiscard]] constexpr bool overwrites(PagingWay way) { return way == PagingWay::kDiscarded; }

/// Pages of some memory, in the order in which a pass touches them.
struct TouchedPages {
  um::Range memory;
  um::Bytes page;
  std::vector<std::size_t> order;

  [[nodiscard]] um::Range at(std::size_t position) const {
    return memory.subspan(order[position] * page.count(), page.count());
  }
};

/// Touches the pages one after the other: pass number `pass`, which is what an overwriting pass
/// writes everywhere.
void touch_plainly(const TouchedPages& pages, PagingWay way, std::uint64_t pass);

/// Passes over managed memory.
///
/// Thread safety: none; the thread has been prepared by Device::prepare_kernel_thread().
class PagingPass {
 public:
  /// `pages` are of `space`, which has near memory for `near_pages` of them. Gives advice.
  PagingPass(um::ManagedSpace& space, TouchedPages pages, std::size_t near_pages, PagingWay way);

  /// As touch_plainly(), with what the way tells. Returns when all moves it began have ended.
  /// Throws: um::Error when a move failed.
  void run(std::uint64_t pass);

 private:
  void run_with_prefetches(std::uint64_t pass);
  void touch(std::size_t position, std::uint64_t pass);
  [[nodiscard]] bool is_touched_soon(std::size_t position) const;

  um::ManagedSpace& space_;
  TouchedPages pages_;
  PagingWay way_;
  std::size_t ahead_;  // touches between a prefetch and what it is for
  bool sends_away_;
};

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
/// Reads a row that to_json() wrote, with any names of pattern and way; counters may be missing.
/// Throws: um::Error that names the place of the mistake.
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
