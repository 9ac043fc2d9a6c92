#include "prefetch/learned/recording.h"

#include <algorithm>

namespace spillway::prefetch {
namespace {

// Compares events when `b` belongs to an iteration `later` iterations after that of `a`.
bool is_same(const RecordedEvent& a, const RecordedEvent& b, std::uint64_t later) {
  BlockName name = a.touch.block;
  if (name.is_fresh) name.born += later;
  if (a.kind != b.kind || name != b.touch.block || a.touch.size != b.touch.size) return false;
  return a.kind != RecordedEvent::Kind::kTouch || a.touch.access == b.touch.access;
}

// Returns the iterations since the birth of the oldest fresh block.
std::uint64_t oldest(const Recording& recording) {
  std::uint64_t age = 0;
  for (const RecordedEvent& event : recording.events()) {
    const BlockName& name = event.touch.block;
    if (name.is_fresh) age = std::max(age, recording.iteration() - name.born);
  }
  return age;
}

bool goes_through_twice(std::span<const Recording> iterations, std::size_t cycle) {
  for (std::size_t i = 0; i < cycle; ++i) {
    if (!agree(iterations[i], iterations[i + cycle]) || oldest(iterations[i]) >= cycle) {
      return false;
    }
  }
  return true;
}

}  // namespace

void Recording::allocate(BlockName block, um::Bytes size) {
  add({.kind = RecordedEvent::Kind::kAllocate, .touch = {.block = block, .size = size}});
}

void Recording::free(BlockName block) {
  add({.kind = RecordedEvent::Kind::kFree, .touch = {.block = block}});
}

void Recording::touch(const Touch& touch) {
  add({.kind = RecordedEvent::Kind::kTouch, .touch = touch});
}

void Recording::add(const RecordedEvent& event) {
  if (events_.size() == max_events_) {
    is_too_long_ = true;
    events_ = {};
  }
  if (!is_too_long_) events_.push_back(event);
}

bool agree(const Recording& a, const Recording& b) {
  return !a.is_too_long() && !b.is_too_long() &&
         std::ranges::equal(a.events(), b.events(),
                            [later = b.iteration() - a.iteration()](const RecordedEvent& one,
                                                                    const RecordedEvent& other) {
                              return is_same(one, other, later);
                            });
}

std::optional<RecordedCycles> find_cycle(std::span<const Recording> iterations,
                                         std::size_t longest) {
  for (std::size_t cycle = 1; cycle <= longest && 2 * cycle <= iterations.size(); ++cycle) {
    const auto last = iterations.last(2 * cycle);
    if (!goes_through_twice(last, cycle)) continue;
    return RecordedCycles{.iterations = {last.begin(), last.end()}, .cycle = cycle};
  }
  return std::nullopt;
}

}  // namespace spillway::prefetch
