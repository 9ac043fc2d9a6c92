#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prefetch/plan.h"
#include "prefetch/task_graph.h"
#include "um/bytes.h"
#include "um/device.h"

namespace spillway::prefetch {

/// The link between near and far memory, measured or modelled.
struct LinkProfile {
  um::Bandwidth offload{1e9};   ///< near to far
  um::Bandwidth prefetch{1e9};  ///< far to near
  um::Nanoseconds latency{0};   ///< of one move
  bool is_duplex = true;        ///< both directions at once
  /// A block may be copied out while tasks still read it, as a copy engine can. Where leaving means
  /// to be unmapped, only afterwards.
  bool copies_while_read = false;
  /// Speed of the running task, relative to undisturbed, while one move is under way: 1 where copy
  /// engines do the work, less where copies take a processor's time.
  double compute_speed_while_moving = 1.0;
  um::Faults faults{};  ///< where nobody hints; the default is a GPU's
  /// Bytes that updates on the far side read and write a second. The default is that of a
  /// processor with a few memory channels beside a GPU, whose Adam reads 16 bytes a number and
  /// writes 12.
  um::Bandwidth far_update{30e9};
  /// Speed of the running task, relative to undisturbed, while an update on the far side is under
  /// way: 1 where a processor of its own does that.
  double compute_speed_while_updating = 1.0;
};

/// How long ranks exchange a bucket of gradients, and what of the link that takes.
struct ExchangeTime {
  um::Nanoseconds alone{0};  ///< when no move is under way
  /// The part of the link's bandwidth that it takes meanwhile, near to far and far to near; 0 where
  /// ranks have an interconnect beside the link. On a link that is not duplex at most 1 together.
  double outward = 0;
  double inward = 0;
  /// Speed of the running task, relative to undisturbed, meanwhile: 1 where a network card and a
  /// copy engine do the work, less where a processor that computes does.
  double compute_speed = 1;
};

/// Times of one step, task by task and algorithm by algorithm, with all operands near.
struct Profile {
  std::string source;       ///< where it comes from: "measured on host, 2 threads", "model v100"
  std::uint64_t graph = 0;  ///< fingerprint of the graph
  std::vector<std::vector<um::Nanoseconds>> durations;  ///< [task][algorithm]
  LinkProfile link;
  std::vector<um::Nanoseconds> far_updates;  ///< by TaskGraph::far_updates
  std::vector<ExchangeTime> exchanges;       ///< by TaskGraph::exchanges

  [[nodiscard]] um::Nanoseconds operator()(TaskId task, std::uint32_t algorithm) const {
    return durations[static_cast<std::size_t>(task)][algorithm];
  }
  [[nodiscard]] um::Nanoseconds operator()(const TaskRun& run) const {
    return (*this)(run.task, run.algorithm);
  }
};

/// The sum of the run times of `runs`: the length of a step that never waits.
[[nodiscard]] um::Nanoseconds compute_time(const Profile& profile,
                                           const std::vector<TaskRun>& runs);

}  // namespace spillway::prefetch
