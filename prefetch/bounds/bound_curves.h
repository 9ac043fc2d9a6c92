#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "prefetch/bounds/timed_intervals.h"

namespace spillway::prefetch {

/// The end time of an event that never happens.
inline constexpr double kNever = std::numeric_limits<double>::infinity();

/// Lower bound of the time until a number of bytes have crossed a link, where parts become
/// available one after another.
class TransferCurve {
 public:
  explicit TransferCurve(double bytes_per_second) : rate_{bytes_per_second} {}

  void add(double available, double size) {
    parts_.push_back({.available = available, .size = size});
  }

  // Adds bytes that need not cross.
  void add_free(double size) { free_ += size; }

  // Requires: called once, after all add().
  void finish() {
    std::ranges::stable_sort(parts_, {}, &Part::available);
    double bytes = free_;
    double now = 0;
    for (Part& part : parts_) {
      now = std::max(now, part.available) + part.size / rate_;
      bytes += part.size;
      totals_.push_back(bytes);
      ends_.push_back(now);
    }
  }

  // Returns the time for `bytes`: increasing, with jumps where the next part is not yet available.
  [[nodiscard]] double time(double bytes) const {
    if (bytes <= free_) return 0;
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

  // Requires: called once, after all add().
  void finish() {
    sum_up_made();
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const std::size_t end =
          i + 1 < blocks_.size() ? blocks_[i + 1].first_recompute_input : recompute_inputs_.size();
      Block& block = blocks_[i];
      const auto all = std::span{recompute_inputs_};
      block.price =
          price(block, all.subspan(block.first_recompute_input, end - block.first_recompute_input));
    }
    std::erase_if(blocks_, [](const Block& block) { return block.price == kNever; });
    std::ranges::stable_sort(blocks_, {}, &Block::price);
    for (const Block& block : blocks_) {
      totals_.push_back(total() + block.size);
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + block.price * block.size);
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
    const double time_before = i == 0 ? 0 : ends_[i - 1];
    return time_before +
           (ends_[i] - time_before) * (bytes - total_before) / (totals_[i] - total_before);
  }

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

  // Merges the entries of each task into one, in order.
  void sum_up_made() {
    std::ranges::sort(made_, {}, [](const Made& made) { return std::pair{made.task, made.size}; });
    std::size_t count = 0;
    for (const Made& made : made_) {
      if (count > 0 && made_[count - 1].task == made.task) {
        made_[count - 1].size += made.size;
      } else {
        made_[count++] = made;
      }
    }
    made_.resize(count);
  }

  [[nodiscard]] double share(std::span<const Position> producers, double size) const {
    double time = 0;
    for (const Position producer : producers) {
      time += times_[producer] * size /
              std::ranges::lower_bound(made_, producer, {}, &Made::task)->size;
    }
    return time;
  }

  // Returns the least price over all choices of kept inputs. Considers inputs in order of cost per
  // byte, the most expensive first.
  [[nodiscard]] double price(const Block& block,
                             std::span<const RecomputeInput* const> recompute_inputs) const {
    double time = share(block.producers, block.size);
    double room = block.size;
    std::vector<std::pair<double, double>> made;  // seconds per byte, bytes
    for (const RecomputeInput* recompute_input : recompute_inputs) {
      if (recompute_input->producers.empty()) {
        room -= recompute_input->size;
        continue;
      }
      const double again = share(recompute_input->producers, recompute_input->size);
      time += again;
      made.emplace_back(again / recompute_input->size, recompute_input->size);
    }
    constexpr double kNoRoom = 1e-9;  // of a byte
    if (room <= kNoRoom) return kNever;
    std::ranges::sort(made, std::ranges::greater{});
    double min = time / room;
    for (const auto& [again, size] : made) {
      room -= size;
      time -= again * size;
      if (room <= kNoRoom) break;
      min = std::min(min, time / room);
    }
    return min;
  }

  std::span<const double> times_;
  std::vector<Block> blocks_;
  std::vector<const RecomputeInput*> recompute_inputs_;
  std::vector<Made> made_;      // the bytes that each task makes
  std::vector<double> totals_;  // bytes of the first blocks together
  std::vector<double> ends_;    // the time for these
};

}  // namespace spillway::prefetch
