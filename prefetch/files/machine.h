#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "prefetch/profile.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"

namespace spillway::prefetch {

/// A model of a machine: a roofline (the larger of arithmetic and memory time, each at an
/// efficiency) and a link.
struct Machine {
  std::string name;
  um::Bytes near_memory;
  double flops_per_second;  ///< peak, in `precision`
  double compute_efficiency;
  um::Bandwidth memory_bandwidth{1};  ///< peak
  double memory_efficiency;
  LinkProfile link;
  /// Peaks of dense tensor cores; nullopt if the machine has none for these numbers.
  std::optional<double> tf32_flops_per_second = {};
  std::optional<double> bf16_flops_per_second = {};
  std::string precision = "fp32";  ///< "fp32", "tf32" or "bf16"
};

/// Returns the machines that come with Spillway.
[[nodiscard]] std::span<const Machine> built_in_machines();

/// Returns a built-in machine by name, or reads a machine file by path (JSON, see
/// prefetch/README.md). Throws: um::Error that says what is wrong and where.
[[nodiscard]] Machine find_machine(const std::string& name_or_path);

/// Returns the built-in machine with a name that is a word of `device`, such as gh200 for "NVIDIA
/// GH200 480GB"; nullopt if there is none: an "RTX A1000" is not an a100.
[[nodiscard]] std::optional<Machine> machine_of(std::string_view device);

/// Returns `machine` with its peak in `precision`, one of those of Machine::precision. Requires:
/// `machine` is in fp32. Throws: um::Error when the machine lacks that peak, listing those that it
/// has.
[[nodiscard]] Machine in_precision(Machine machine, std::string_view precision);

/// Returns the modelled profile of `graph`. Algorithm 0 of a task runs at the roofline; a later
/// one, a fast convolution that trades workspace for arithmetic, at 0.55 of its time.
[[nodiscard]] Profile model_profile(const TaskGraph& graph, const Machine& machine);

}  // namespace spillway::prefetch
