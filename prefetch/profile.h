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
  /// True if a block may be copied out while tasks still read it, as a copy engine can. False if it
  /// is unmapped when it leaves.
  bool copies_while_read = false;
  /// Speed of the running task, relative to undisturbed, during a move: 1 with copy engines, less
  /// if copies take a processor's time.
  double compute_speed_while_moving = 1.0;
  um::Faults faults{};  ///< behaviour of page faults; the default is a GPU's
  /// Bytes per second that updates on the far side read and write. The default is a processor with
  /// a few memory channels beside a GPU: its Adam reads 16 bytes a number and writes 12.
  um::Bandwidth far_update{30e9};
  /// Speed of the running task, relative to undisturbed, during an update on the far side: 1 if
  /// another processor does it.
  double compute_speed_while_updating = 1.0;
};

/// The time of an exchange of a bucket between ranks, and the part of the link that it takes.
struct ExchangeTime {
  um::Nanoseconds alone{0};  ///< while no move is in flight
  /// Parts of the link's bandwidth that it takes, near to far and far to near; 0 with a separate
  /// interconnect. At most 1 together on a link that is not duplex.
  double outward = 0;
  double inward = 0;
  /// Speed of the running task during an exchange, relative to undisturbed: 1 with a network card
  /// and a copy engine, less if a computing processor does the work.
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

/// Returns the sum of the durations of `runs`: the length of a step that never waits.
[[nodiscard]] inline um::Nanoseconds compute_time(const Profile& profile,
                                                  const std::vector<TaskRun>& runs) {
  um::Nanoseconds total{0};
  for (const TaskRun& run : runs) total += profile(run);
  return total;
}

}  // namespace spillway::prefetch
