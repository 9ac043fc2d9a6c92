#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "src/bench/link/transfer.h"
#include "src/bench/timing_summary.h"
#include "um/bytes.h"

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

}  // namespace spillway
