#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "prefetch/learned/recording.h"
#include "prefetch/learned/replayer.h"
#include "tests/prefetch/toy.h"

namespace spillway::prefetch::testing {

/// One iteration of a program with its own numbering of blocks: the first blocks are persistent,
/// the others are allocated in ascending order.
struct Program {
  struct Action {
    RecordedEvent::Kind kind = RecordedEvent::Kind::kTouch;
    std::size_t block = 0;
    um::Access access = um::Access::kReadWrite;
    um::Nanoseconds gap{100};  ///< until the next action
  };
  std::size_t persistent = 0;
  std::vector<um::Bytes> sizes;  ///< by block
  std::vector<Action> actions;

  /// Returns the name of a block: persistent ones are 100, 101 …
  [[nodiscard]] BlockName name(std::size_t block) const {
    if (block < persistent) return {.is_fresh = false, .id = 100 + block};
    return {.is_fresh = true, .id = block - persistent};
  }
  [[nodiscard]] Touch touch(const Action& action, um::Nanoseconds at) const {
    return {.block = name(action.block),
            .size = sizes[action.block],
            .access = action.access,
            .at = at};
  }
};

/// True while the replayer reports that it follows a replay plan.
inline bool is_following(const Replayer& replayer) {
  return replayer.description().starts_with("following ");
}

/// Returns two identical iterations as a cycle of one.
inline RecordedCycles twice(const Recording& recording) {
  return {.iterations = {recording, recording}, .cycle = 1};
}

/// Returns a program with `blocks` persistent blocks of `size`, each used once per iteration, in
/// order.
inline Program stream(std::size_t blocks, um::Bytes size, um::Access access,
                      um::Nanoseconds computing) {
  Program program{.persistent = blocks, .sizes = std::vector<um::Bytes>(blocks, size)};
  for (std::size_t i = 0; i < blocks; ++i) {
    program.actions.push_back({.block = i, .access = access, .gap = computing});
  }
  return program;
}

/// Returns an iteration with up to 5 persistent blocks and 40 random actions: allocations, frees,
/// single touches and groups. Sizes are 1 to 6 pages, sometimes less than one. It frees what it
/// allocates.
inline Program random_program(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t n) { return static_cast<std::size_t>(random() % n); };
  const auto size = [&] { return below(8) == 0 ? um::Bytes{100} : pages(1 + below(6)); };
  Program program{.persistent = 1 + below(5)};
  std::vector<std::size_t> live;
  for (std::size_t i = 0; i < program.persistent; ++i) {
    program.sizes.push_back(size());
    live.push_back(i);
  }
  using Kind = RecordedEvent::Kind;
  const auto add = [&](Kind kind, std::size_t block) {
    program.actions.push_back({.kind = kind,
                               .block = block,
                               .access = static_cast<um::Access>(below(3)),
                               .gap = um::Nanoseconds{below(3) == 0 ? 0 : 20 + 40 * below(4)}});
  };
  const std::size_t length = 3 + below(38);
  for (std::size_t i = 0; i < length; ++i) {
    const std::size_t chosen = below(live.size());
    if (below(4) == 0) {
      live.push_back(program.sizes.size());
      program.sizes.push_back(size());
      add(Kind::kAllocate, live.back());
      if (below(8) != 0) add(Kind::kTouch, live.back());
    } else if (live[chosen] >= program.persistent && below(4) == 0) {
      add(Kind::kFree, live[chosen]);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(chosen));
    } else {
      add(Kind::kTouch, live[chosen]);
    }
  }
  for (const std::size_t block : live) {
    if (block >= program.persistent) add(Kind::kFree, block);
  }
  return program;
}

/// Records one iteration of the program.
inline Recording record(const Program& program, std::size_t max_events = 1000) {
  Recording recording{max_events};
  um::Nanoseconds now{0};
  for (const Program::Action& action : program.actions) {
    const BlockName name = program.name(action.block);
    switch (action.kind) {
      case RecordedEvent::Kind::kAllocate:
        recording.allocate(name, program.sizes[action.block]);
        break;
      case RecordedEvent::Kind::kFree:
        recording.free(name);
        break;
      case RecordedEvent::Kind::kTouch:
        recording.touch(program.touch(action, now));
    }
    now += action.gap;
  }
  recording.end(now);
  return recording;
}

}  // namespace spillway::prefetch::testing
