#include "prefetch/planners/chain/rotor_table.h"

#include <algorithm>

#include "um/error.h"

namespace spillway::prefetch {

RotorTable::RotorTable(const Chain& chain, um::Bytes unit, std::size_t slots) : slots_{slots + 1} {
  um::expects(!chain.stages.empty(), "a chain has a stage at least");
  const auto units = [&](um::Bytes size) -> std::size_t { return um::round_up(size, unit) / unit; };
  std::size_t input = units(chain.input);
  std::size_t input_gradient = units(chain.input_gradient);
  for (const ChainStage& stage : chain.stages) {
    stages_.push_back({.forward_time = stage.forward_time.count(),
                       .backward_time = stage.backward_time.count(),
                       .input = input,
                       .output = units(stage.output),
                       .kept = units(stage.kept),
                       .gradient = units(stage.gradient),
                       .input_gradient = input_gradient,
                       .forward_extra = units(stage.forward_extra),
                       .passing_extra = units(stage.passing_extra),
                       .backward_extra = units(stage.backward_extra),
                       .is_recomputable = stage.is_recomputable});
    input = stages_.back().output;
    input_gradient = stages_.back().gradient;
  }
  cells_.resize(stages_.size() * stages_.size() * slots_);
  for (std::size_t length = 1; length <= stages_.size(); ++length) {
    for (std::size_t s = 0; s + length <= stages_.size(); ++s) fill(s, s + length - 1);
  }
}

void RotorTable::fill(std::size_t s, std::size_t t) {
  try_saving(s, t);
  if (t > s) try_splits(s, t);
}

void RotorTable::try_saving(std::size_t s, std::size_t t) {
  const Stage& stage = stages_[s];
  const std::size_t min =
      stage.kept + std::max(stages_[t].gradient + stage.forward_extra,
                            stage.gradient + stage.input_gradient + stage.backward_extra);
  for (std::size_t m = min; m < slots_; ++m) {
    const std::int64_t between = t == s ? 0 : cells_[row(s + 1, t) + m - stage.kept].time;
    const std::int64_t time = stage.forward_time + between + stage.backward_time;
    if (between < kNever) cells_[row(s, t) + m] = {.time = time, .split = std::uint32_t(s)};
  }
}

void RotorTable::try_splits(std::size_t s, std::size_t t) {
  std::size_t min = 0;  // for running s ... r-1 forward
  std::int64_t passing_time = 0;
  for (std::size_t r = s + 1; r <= t; ++r) {
    const Stage& last = stages_[r - 1];
    if (!last.is_recomputable) return;
    const std::size_t input = r - 1 == s ? 0 : last.input;
    min = std::max(min, stages_[t].gradient + input + last.output + last.passing_extra);
    passing_time += last.forward_time;
    for (std::size_t m = std::max(min, last.output); m < slots_; ++m) {
      const std::int64_t time =
          passing_time + cells_[row(r, t) + m - last.output].time + cells_[row(s, r - 1) + m].time;
      Cell& cell = cells_[row(s, t) + m];
      if (time < cell.time) cell = {.time = time, .split = std::uint32_t(r)};
    }
  }
}

std::optional<um::Nanoseconds> RotorTable::makespan(std::size_t slots) const {
  if (slots < stages_.front().input) return std::nullopt;
  const std::size_t m = slots - stages_.front().input;
  um::expects(m < slots_, "a memory that the table has");
  const std::int64_t time = cells_[row(0, stages_.size() - 1) + m].time;
  if (time >= kNever) return std::nullopt;
  return um::Nanoseconds{time};
}

std::vector<RotorOperation> RotorTable::sequence(std::size_t slots) const {
  um::expects(makespan(slots).has_value(), "a memory that suffices");
  std::vector<RotorOperation> operations;
  append(0, stages_.size() - 1, slots - stages_.front().input, operations);
  return operations;
}

void RotorTable::append(std::size_t s, std::size_t t, std::size_t m,
                        std::vector<RotorOperation>& to) const {
  using Kind = RotorOperation::Kind;
  const std::size_t split = cells_[row(s, t) + m].split;
  if (split == s) {
    to.push_back({.kind = Kind::kForwardAll, .stage = s});
    if (t > s) append(s + 1, t, m - stages_[s].kept, to);
    to.push_back({.kind = Kind::kBackward, .stage = s});
    return;
  }
  to.push_back({.kind = Kind::kForwardKeeping, .stage = s});
  for (std::size_t j = s + 1; j < split; ++j) {
    to.push_back({.kind = Kind::kForwardPassing, .stage = j});
  }
  append(split, t, m - stages_[split - 1].output, to);
  append(s, split - 1, m, to);
}

}  // namespace spillway::prefetch
