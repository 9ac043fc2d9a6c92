#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "nets/network.h"

namespace spillway::cli {

/// Throws: um::Error when a sample of the network has several labels, so that there is no matrix.
void expect_confusion_matrix_of(const nets::Network& network);

/// Writes Evaluation::confusion as CSV: "label,0,1,..." with a column for each prediction, then a
/// row for each label. "-" is standard output. Throws: um::Error when it cannot be written.
void write_confusion_matrix(std::span<const std::uint64_t> confusion, const std::string& path);

}  // namespace spillway::cli
