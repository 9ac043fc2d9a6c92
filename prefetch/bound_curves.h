#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <vector>

#include "prefetch/liveness.h"

namespace spillway::prefetch {

/// What never happens ends then.
inline constexpr double kNever = std::numeric_limits<double>::infinity();

/// How long it takes at least until some of the bytes that become available one after another have
/// crossed a link.
class TransferCurve {
 public:
  explicit TransferCurve(double bytes_per_second) : rate_{bytes_per_second} {}

  void add(double available, double size) {
    parts_.push_back({.available = available, .size = size});
  }

  // Call it once, after all add().
  void finish() {
    std::ranges::stable_sort(parts_, {}, &Part::available);
    double bytes = 0;
    double now = 0;
    for (Part& part : parts_) {
      now = std::max(now, part.available) + part.size / rate_;
      bytes += part.size;
      totals_.push_back(bytes);
      ends_.push_back(now);
    }
  }

  // Increases with `bytes`, and jumps where the next part is not available yet.
  [[nodiscard]] double time(double bytes) const {
    if (bytes <= 0) return 0;
    const auto part = std::ranges::lower_bound(totals_, bytes);
    if (part == totals_.end()) return kNever;
    return ends_[static_cast<std::size_t>(part - totals_.begin())] - (*part - bytes) / rate_;
  }
  [[nodiscard]] const std::vector<double>& totals() const { return totals_; }

 private:
  struct Part {
    double available;
    double size;
  };
  double rate_;
  std::vector<Part> parts_;
  std::vector<double> totals_;  // bytes of the first parts together
  std::vector<double> ends_;    // when they have crossed
};

/// How long it takes at least to compute some of the dropped bytes again, a task being divisible.
class RecomputationCurve {
 public:
  // A task makes all its blocks in one go.
  void add(Position task, double time, double size) {
    Part& part = by_task_[task];
    part.time = time;
    part.size += size;
  }

  void finish() {
    std::vector<Part> parts;
    for (const auto& [task, part] : by_task_) parts.push_back(part);
    std::ranges::stable_sort(parts, {}, [](const Part& part) { return part.time / part.size; });
    for (const Part& part : parts) {
      totals_.push_back(total() + part.size);
      times_.push_back((times_.empty() ? 0 : times_.back()) + part.time);
    }
  }

  [[nodiscard]] double total() const { return totals_.empty() ? 0 : totals_.back(); }
  [[nodiscard]] const std::vector<double>& totals() const { return totals_; }

  [[nodiscard]] double time(double bytes) const {
    if (bytes <= 0) return 0;
    const auto found = std::ranges::lower_bound(totals_, bytes);
    if (found == totals_.end()) return kNever;
    const auto i = static_cast<std::size_t>(found - totals_.begin());
    const double total_before = i == 0 ? 0 : totals_[i - 1];
    const double time_before = i == 0 ? 0 : times_[i - 1];
    return time_before +
           (times_[i] - time_before) * (bytes - total_before) / (totals_[i] - total_before);
  }

 private:
  struct Part {
    double time = 0;
    double size = 0;
  };
  std::map<Position, Part> by_task_;
  std::vector<double> totals_;
  std::vector<double> times_;
};

}  // namespace spillway::prefetch
