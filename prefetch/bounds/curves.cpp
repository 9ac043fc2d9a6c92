#include "prefetch/bounds/curves.h"

#include <algorithm>
#include <utility>

namespace spillway::prefetch {

void TransferCurve::finish() {
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

double TransferCurve::time(double bytes) const {
  if (bytes <= free_) return 0;
  const auto part = std::ranges::lower_bound(totals_, bytes);
  if (part == totals_.end()) return kInfinite;
  return ends_[static_cast<std::size_t>(part - totals_.begin())] - (*part - bytes) / rate_;
}

void RecomputationCurve::finish() {
  sum_up_made();
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const std::size_t end =
        i + 1 < blocks_.size() ? blocks_[i + 1].first_recompute_input : recompute_inputs_.size();
    Block& block = blocks_[i];
    const auto all = std::span{recompute_inputs_};
    block.price =
        price(block, all.subspan(block.first_recompute_input, end - block.first_recompute_input));
  }
  std::erase_if(blocks_, [](const Block& block) { return block.price == kInfinite; });
  std::ranges::stable_sort(blocks_, {}, &Block::price);
  for (const Block& block : blocks_) {
    totals_.push_back(total() + block.size);
    ends_.push_back((ends_.empty() ? 0 : ends_.back()) + block.price * block.size);
  }
}

double RecomputationCurve::time(double bytes) const {
  if (bytes <= 0) return 0;
  const auto found = std::ranges::lower_bound(totals_, bytes);
  if (found == totals_.end()) return kInfinite;
  const auto i = static_cast<std::size_t>(found - totals_.begin());
  const double total_before = i == 0 ? 0 : totals_[i - 1];
  const double time_before = i == 0 ? 0 : ends_[i - 1];
  return time_before +
         (ends_[i] - time_before) * (bytes - total_before) / (totals_[i] - total_before);
}

// Merges the entries of each task into one, in order.
void RecomputationCurve::sum_up_made() {
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

double RecomputationCurve::share(std::span<const Position> producers, double size) const {
  double time = 0;
  for (const Position producer : producers) {
    time +=
        times_[producer] * size / std::ranges::lower_bound(made_, producer, {}, &Made::task)->size;
  }
  return time;
}

// Returns the least price over all choices of kept inputs. Considers inputs in order of cost per
// byte, the most expensive first.
double RecomputationCurve::price(const Block& block,
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
  if (room <= kNoRoom) return kInfinite;
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

}  // namespace spillway::prefetch
