#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "prefetch/liveness.h"
#include "prefetch/profile.h"

namespace spillway::prefetch::testing {

/// Where a whole block of offloadable state is between steps (StateHome).
enum class ExactHome : std::uint8_t { kNear, kNearWithCopy, kFar };

/// A stretch between two uses of a block, or of state between a use and an end of the step, in
/// which it may be far.
struct ExactInterval {
  std::int64_t size;
  std::int64_t available;  ///< may be copied out when this run has ended; -1: from the start
  std::int64_t last;       ///< the run before it; -1: the start
  Position next;           ///< the run after it; the number of runs: the end
  std::int64_t out;        ///< ns
  std::int64_t in;
  std::size_t first;  ///< of the intervals of the same content; this one is among those that follow
  bool starts_far = false;
  bool stays_far = false;
  bool has_first_copy = false;  ///< its content has been far since before the step
  bool needs_copy = false;      ///< the step must end with a far copy of its content
};

/// Lists the intervals of one life after another.
class ExactIntervals {
 public:
  explicit ExactIntervals(const LinkProfile& link) : link_{link} {}

  void add(const Life& life, um::Bytes size, ExactHome home) {
    if (size == um::Bytes{}) return;
    first_ = intervals_.size();
    std::int64_t written = life.outlives_step() ? -1 : std::int64_t{life.begin()};
    std::int64_t last = -1;
    if (life.outlives_step()) {
      append(size, written, last, life.accesses.front().position);
      intervals_.back().starts_far = home == ExactHome::kFar;
    }
    const auto mark = [&] {
      intervals_.back().has_first_copy = home == ExactHome::kNearWithCopy && written < 0;
    };
    if (life.outlives_step()) mark();
    for (std::size_t a = 0; a < life.accesses.size(); ++a) {
      last = life.accesses[a].position;
      if (life.accesses[a].writes) {
        written = last;
        first_ = intervals_.size();
      }
      if (a + 1 == life.accesses.size()) break;
      const Position next = life.accesses[a + 1].position;
      if (next == last + 1) continue;
      append(size, written, last, next);
      mark();
    }
    if (!life.outlives_step()) return;
    append(size, written, last, life.whole_step);
    mark();
    intervals_.back().stays_far = home == ExactHome::kFar;
    intervals_.back().needs_copy = home == ExactHome::kNearWithCopy && written >= 0;
  }

  [[nodiscard]] std::vector<ExactInterval> take() { return std::move(intervals_); }

 private:
  void append(um::Bytes size, std::int64_t written, std::int64_t last, Position next) {
    intervals_.push_back({.size = static_cast<std::int64_t>(size.count()),
                          .available = link_.copies_while_read ? written : last,
                          .last = last,
                          .next = next,
                          .out = (link_.latency + size / link_.offload).count(),
                          .in = (link_.latency + size / link_.prefetch).count(),
                          .first = first_});
  }

  LinkProfile link_;
  std::size_t first_ = 0;
  std::vector<ExactInterval> intervals_;
};

}  // namespace spillway::prefetch::testing
