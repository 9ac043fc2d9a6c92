#pragma once

#include <string>

#include "src/files/safetensors.h"

namespace spillway {

/// What a checkpoint calls the moving average of an array: "conv1.average.weight" of
/// "conv1.weight".
[[nodiscard]] std::string average_of(const std::string& array);

/// Whether the array `name` of `checkpoint` is kept beside another one there, by an optimizer or as
/// its average: "conv1.momentum.weight" beside "conv1.weight".
[[nodiscard]] bool is_kept_beside(const std::string& name, const SafetensorsReader& checkpoint);

/// Whether it has averages.
[[nodiscard]] bool has_averages(const SafetensorsReader& checkpoint);

}  // namespace spillway
