#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace spillway::um {

/// A vector clock: how much of each stream's work is done.
class WorkClock {
 public:
  void join(const WorkClock& other) {
    counts_.resize(std::max(counts_.size(), other.counts_.size()));
    for (std::size_t i = 0; i < other.counts_.size(); ++i) {
      counts_[i] = std::max(counts_[i], other.counts_[i]);
    }
  }
  /// Adds a piece of work of `stream` and returns its number, from 1.
  std::uint64_t tick(std::size_t stream) {
    counts_.resize(std::max(counts_.size(), stream + 1));
    return ++counts_[stream];
  }
  [[nodiscard]] bool covers(std::size_t stream, std::uint64_t number) const {
    return stream < counts_.size() && counts_[stream] >= number;
  }
  [[nodiscard]] bool covers(const WorkClock& other) const {
    for (std::size_t i = 0; i < other.counts_.size(); ++i) {
      if (other.counts_[i] > 0 && !covers(i, other.counts_[i])) return false;
    }
    return true;
  }

 private:
  std::vector<std::uint64_t> counts_;
};

/// The effect of work on a range of memory.
enum class Effect : std::uint8_t {
  kRead,
  kWrite,     ///< also a discard: the old content is lost
  kMoveNear,  ///< a prefetch
  kMoveFar,   ///< an offload by unified memory
  kAdvise,
  kFree
};

/// Returns whether two overlapping accesses must be ordered. A driver keeps pages consistent that
/// move under a kernel, by page faults. A planned step must not fault, so a move needs an order
/// with every kernel on its pages. Advice moves nothing by itself.
[[nodiscard]] inline bool must_be_ordered(Effect one, Effect other) {
  if (one == Effect::kFree || other == Effect::kFree) return true;
  if (one == Effect::kAdvise || other == Effect::kAdvise) return false;
  return one != other || one == Effect::kWrite;
}

/// The order that a program has given its work, and the accesses without one.
///
/// Each stream and the host has a vector clock. Work of a stream comes after its earlier work,
/// after the events that it waited for, and after all work that the host knew to be done at
/// submission. The host knows the work that it has waited for or seen to be done.
///
/// All host threads count as one, in the real order of their calls, because mutexes and condition
/// variables are not visible here. When one thread has waited for work, another thread may use the
/// result without synchronizing, and no conflict shows. LateGpu, which does work as late as
/// possible, exposes such a thread.
///
/// Thread safety: none.
class HappensBefore {
 public:
  struct Access {
    std::span<const std::byte> range;
    Effect effect;
  };
  /// Two accesses without an order, by name, and their overlap.
  struct Conflict {
    std::string earlier;
    std::string later;
    std::span<const std::byte> range;
  };

  /// Registers an allocation. Accesses outside all allocations are ignored.
  void allocate(std::span<const std::byte> range) {
    allocations_[address(range.data())] = {.end = address(range.data()) + range.size()};
  }
  /// Frees the memory at `begin`, which must be unused.
  [[nodiscard]] std::vector<Conflict> free(const std::byte* begin, const std::string& name) {
    const auto found = allocations_.find(address(begin));
    if (found == allocations_.end()) return {};
    const Access all{.range = {begin, found->second.end - found->first}, .effect = Effect::kFree};
    std::vector<Conflict> conflicts = check(host_, name, {&all, 1});
    allocations_.erase(found);
    return conflicts;
  }

  /// Returns the clock of an event recorded now: it fires when this work is done.
  [[nodiscard]] WorkClock record(std::size_t stream) { return of(stream); }
  /// Delays later work of `stream` until `event`.
  void wait(std::size_t stream, const WorkClock& event) { of(stream).join(event); }
  /// Records that the host has seen this work done.
  void host_knows(const WorkClock& done) {
    host_.join(done);
    for (auto& [begin, allocation] : allocations_) {
      std::erase_if(allocation.past, [&](const Past& past) { return is_before(past, host_); });
    }
  }

  /// Returns the clock of a host that has waited for all streams.
  [[nodiscard]] WorkClock everything() const {
    WorkClock all = host_;
    for (const auto& [stream, clock] : clocks_) all.join(clock);
    return all;
  }

  /// Submits work to a stream.
  [[nodiscard]] std::vector<Conflict> give(std::size_t stream, const std::string& name,
                                           std::span<const Access> accesses) {
    WorkClock& clock = of(stream);
    const std::uint64_t number = clock.tick(stream);
    std::vector<Conflict> conflicts = check(clock, name, accesses);
    for (const Access& access : accesses) {
      if (Allocation* const allocation = find(access)) {
        allocation->past.push_back(
            {.access = access, .stream = stream, .number = number, .name = name});
      }
    }
    return conflicts;
  }
  /// Records an access by the host now.
  [[nodiscard]] std::vector<Conflict> touch(const std::string& name, const Access& access) {
    return check(host_, name, {&access, 1});
  }

 private:
  struct Past {
    Access access;
    std::size_t stream;
    std::uint64_t number;
    std::string name;
  };
  struct Allocation {
    std::uintptr_t end = 0;
    std::vector<Past> past;  // accesses that the host does not know to be done
  };

  static std::uintptr_t address(const std::byte* at) {
    return reinterpret_cast<std::uintptr_t>(at);
  }
  static bool is_before(const Past& past, const WorkClock& clock) {
    return clock.covers(past.stream, past.number);
  }
  static std::span<const std::byte> overlap(const Access& one, const Access& other) {
    const std::byte* const begin = std::max(one.range.data(), other.range.data());
    const std::byte* const end =
        std::min(one.range.data() + one.range.size(), other.range.data() + other.range.size());
    return begin < end ? std::span{begin, end} : std::span<const std::byte>{};
  }

  // Later work of a stream comes after all work that the host knows to be done.
  WorkClock& of(std::size_t stream) {
    clocks_[stream].join(host_);
    return clocks_[stream];
  }
  Allocation* find(const Access& access) {
    const std::uintptr_t at = address(access.range.data());
    const auto after = allocations_.upper_bound(at);
    if (after == allocations_.begin()) return nullptr;
    Allocation& allocation = std::prev(after)->second;
    return at < allocation.end ? &allocation : nullptr;
  }
  std::vector<Conflict> check(const WorkClock& clock, const std::string& name,
                              std::span<const Access> accesses) {
    std::vector<Conflict> conflicts;
    for (const Access& access : accesses) {
      const Allocation* const allocation = find(access);
      if (allocation == nullptr) continue;
      for (const Past& past : allocation->past) {
        const std::span<const std::byte> both = overlap(past.access, access);
        if (both.empty() || is_before(past, clock) ||
            !must_be_ordered(past.access.effect, access.effect)) {
          continue;
        }
        conflicts.push_back({.earlier = past.name, .later = name, .range = both});
      }
    }
    return conflicts;
  }

  WorkClock host_;
  std::map<std::size_t, WorkClock> clocks_;           // by stream
  std::map<std::uintptr_t, Allocation> allocations_;  // by begin
};

}  // namespace spillway::um
