#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// One way to run a task, as far as it differs from the others: a forward task saves more or less
/// for the backward task, which then takes less or more time.
struct TaskVariant {
  std::vector<DataId> reads;                 ///< besides Task::reads
  std::vector<DataId> writes;                ///< besides Task::writes
  std::vector<Algorithm> algorithms;         ///< in place of Task::algorithms
  std::vector<um::Nanoseconds> durations{};  ///< by algorithm
};

/// Tasks that run in variants of the same name.
struct VariantGroup {
  struct Member {
    TaskId task{};
    std::vector<TaskVariant> variants;  ///< as `names`
  };
  std::vector<std::string> names;  ///< at least one
  std::vector<Member> members;     ///< at least one, in the graph's order

  /// Returns the time of all members in a variant with their fastest algorithms.
  [[nodiscard]] um::Nanoseconds time(std::size_t variant) const;
};

/// The variants that are taken: an index into VariantGroup::names, by group.
using VariantChoice = std::vector<std::uint32_t>;

/// A step and the times of its tasks.
struct TimedStep {
  TaskGraph graph;
  std::vector<std::vector<um::Nanoseconds>> durations;  ///< [task][algorithm]
};

/// A step with tasks that may run in several variants.
///
/// A tensor that only variants write is there if one of them is taken. Whatever reads it is a
/// variant that goes with those.
struct VariedStep {
  TimedStep common;  ///< what all variants share: not a step that can be planned
  std::vector<VariantGroup> groups;

  /// Returns the step in which every group takes the chosen variant (Task::variant), without
  /// tensors that only other variants use. Blocks thus have other ids; names stay. Requires: no
  /// exchanges and no far updates.
  [[nodiscard]] TimedStep with(const VariantChoice& choice) const;
  /// Returns the choice of every group's first variant.
  [[nodiscard]] VariantChoice first() const;
  /// Returns the choice of every group's fastest variant, the first among equals. No choice makes
  /// the time of all tasks shorter.
  [[nodiscard]] VariantChoice fastest() const;
  /// Returns the choice in which each group's largest task takes the fewest pages. If a budget is
  /// too small for it, no other choice keeps it either, small tensors aside. Among equals, takes
  /// the fastest, then the first.
  [[nodiscard]] VariantChoice leanest(um::Bytes page) const;
  /// Returns the choice with these variants, by task and name; of a group that none of them names,
  /// the first. Throws: um::Error if a task has no such variant.
  [[nodiscard]] VariantChoice named(
      const std::vector<std::pair<std::string, std::string>>& variants) const;
};

}  // namespace spillway::prefetch
