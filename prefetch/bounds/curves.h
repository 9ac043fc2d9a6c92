#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "prefetch/bounds/timed_intervals.h"
#include "prefetch/liveness.h"

namespace spillway::prefetch {

/// A time or price that is never reached.
inline constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// Lower bound of the time until a number of bytes have crossed a link, where parts become
/// available one after another.
class TransferCurve {
 public:
  explicit TransferCurve(double bytes_per_second) : rate_{bytes_per_second} {}

  void add(double available, double size) {
    parts_.push_back({.available = available, .size = size});
  }

  /// Adds bytes that need not cross.
  void add_free(double size) { free_ += size; }

  /// Requires: called once, after all add().
  void finish();

  /// Returns the time for `bytes`: increasing, with jumps where the next part is not yet available.
  [[nodiscard]] double time(double bytes) const;
  [[nodiscard]] const std::vector<double>& totals() const { return totals_; }

 private:
  struct Part {
    double available;
    double size;
  };
  double rate_;
  double free_ = 0;
  std::vector<Part> parts_;
  std::vector<double> totals_;  // bytes of the first parts together, plus free ones
  std::vector<double> ends_;    // when these have crossed
};

/// Lower bound of the time to recompute a number of discarded bytes.
///
/// A block costs the time of all its tasks, and of those of its inputs that are not kept; a kept
/// input takes room instead. A task's time is divided among its blocks by size, and so is a
/// block's. Any choice of blocks thus costs at least its tasks' time. Inputs are kept if that
/// minimizes the cost per byte of room.
class RecomputationCurve {
 public:
  /// `times`: by task; must outlive this object.
  explicit RecomputationCurve(std::span<const double> times) : times_{times} {}

  /// `producers`: the tasks that make the block, each once; must outlive this object.
  void add(std::span<const Position> producers, double size) {
    blocks_.push_back(
        {.producers = producers, .size = size, .first_recompute_input = recompute_inputs_.size()});
    note(producers, size);
  }
  /// Adds an input of the last added block; must outlive this object.
  void add_recompute_input(RecomputeInput&&) = delete;
  void add_recompute_input(const RecomputeInput& recompute_input) {
    recompute_inputs_.push_back(&recompute_input);
    note(recompute_input.producers, recompute_input.size);
  }

  /// Requires: called once, after all add().
  void finish();

  [[nodiscard]] double total() const { return totals_.empty() ? 0 : totals_.back(); }
  [[nodiscard]] const std::vector<double>& totals() const { return totals_; }

  [[nodiscard]] double time(double bytes) const;

 private:
  struct Block {
    std::span<const Position> producers;
    double size = 0;
    std::size_t first_recompute_input = 0;
    double price = 0;  // seconds per byte
  };
  struct Made {
    Position task;
    double size;
  };

  void note(std::span<const Position> producers, double size) {
    for (const Position producer : producers) made_.push_back({.task = producer, .size = size});
  }

  void sum_up_made();

  [[nodiscard]] double share(std::span<const Position> producers, double size) const;

  [[nodiscard]] double price(const Block& block,
                             std::span<const RecomputeInput* const> recompute_inputs) const;

  std::span<const double> times_;
  std::vector<Block> blocks_;
  std::vector<const RecomputeInput*> recompute_inputs_;
  std::vector<Made> made_;      // the bytes that each task makes
  std::vector<double> totals_;  // bytes of the first blocks together
  std::vector<double> ends_;    // the time for these
};

}  // namespace spillway::prefetch
