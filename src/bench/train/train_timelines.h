#pragma once

#include <filesystem>
#include <string>

#include "src/bench/train/train_comparison.h"
#include "src/bench/train/train_row.h"

namespace spillway {

/// Writes what a report shows of each row at a network's fixed batch that ran: "NAME.trace.json",
/// its last step as a Chrome trace, predicted and measured, and "NAME.plan.json". Throws: um::Error
/// when a file cannot be written.
void write_timelines(const TrainComparison& comparison, const std::filesystem::path& folder);

/// NAME of write_timelines(): "resnet18-b16-joint-40pct".
[[nodiscard]] std::string timeline_name(const TrainRowKey& key);

}  // namespace spillway
