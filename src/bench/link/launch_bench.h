#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <stop_token>

#include "src/bench/link/transfer.h"
#include "src/bench/repetition.h"
#include "src/ops/backend.h"
#include "um/bytes.h"
#include "um/options.h"

namespace spillway {

/// How long the smallest kernel takes: whether a move holds up launches shows beside one.
struct LaunchRow {
  std::optional<Way> beside;  ///< a move from near to far memory that is under way; nothing: none
  um::Bytes size;             ///< of the move
  TimingSummary call;         ///< how long the launching call held its thread
  TimingSummary whole;        ///< until the kernel had ended
};

/// As a member of "launches" in a bench file.
[[nodiscard]] nlohmann::json to_json(const LaunchRow& row);

/// What to measure launches beside.
struct LaunchBenchOptions {
  std::span<const Way> ways;  ///< of which hints and explicit copies count
  um::Bytes size;             ///< of the moves
  um::ManagedOptions space;
  std::size_t max_launches = 2000;
  Seconds max_time{1};  ///< of each row
};

/// Times launches on the compute stream, first alone, then beside moves of each way from near to
/// far memory, and tells of each row. A way is left out whose moves are shorter than a launch. To
/// be called by a thread that touches no other managed memory. Throws: Interrupted when `stop` is
/// requested; um::Error when memory cannot be had.
void bench_launches(ExecutionContext& context, const LaunchBenchOptions& options,
                    const std::function<void(const LaunchRow&)>& on_row,
                    const std::stop_token& stop);

}  // namespace spillway
