#pragma once

#include <span>
#include <string>
#include <string_view>

#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "um/bandwidth.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// A machine to plan for without having it: a roofline (the larger of arithmetic and memory time,
/// each at an efficiency) and a link.
struct Machine {
  std::string name;
  um::Bytes near_memory;
  double flops_per_second;  ///< peak
  double compute_efficiency;
  um::Bandwidth memory_bandwidth{1};  ///< peak
  double memory_efficiency;
  LinkProfile link;
};

/// The machines that come with Spillway.
[[nodiscard]] std::span<const Machine> built_in_machines();

/// A built-in machine by name, or a machine file by path (JSON, see prefetch/README.md).
/// Throws: um::Error that says what is wrong and where.
[[nodiscard]] Machine find_machine(const std::string& name_or_path);

/// The profile that `machine` gives `graph`. Algorithm 0 of a task runs at the roofline; a later
/// one, a fast convolution that trades workspace for arithmetic, at 0.55 of its time.
[[nodiscard]] Profile model_profile(const TaskGraph& graph, const Machine& machine);

}  // namespace spillway::prefetch
