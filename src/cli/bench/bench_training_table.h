#pragma once

#include <span>

#include "src/bench/train/train_row.h"

namespace spillway::cli {

/// Prints `rows` to standard output: those that are compared with each other under one heading, the
/// fastest marked.
void print_training_rows(std::span<const TrainRow> rows);

}  // namespace spillway::cli
