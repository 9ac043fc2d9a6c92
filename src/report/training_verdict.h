#pragma once

#include <span>
#include <string>
#include <vector>

#include "src/bench/train/train_row.h"

namespace spillway {

/// What rows of `bench train` or `bench planners` say, in a few sentences, the most important
/// first. What has not settled is compared with nothing.
[[nodiscard]] std::vector<std::string> training_verdict(std::span<const TrainRow> rows);

}  // namespace spillway
