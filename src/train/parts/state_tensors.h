#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "src/io/safetensors.h"
#include "src/step/step.h"

namespace spillway {

/// The tensors that a checkpoint of a training with this state consists of, in order.
[[nodiscard]] std::vector<StoredTensor> tensors_of(std::span<const StateBlock> blocks);

/// Whether a block is of the weights: parameters, or running statistics.
[[nodiscard]] bool is_weight(StateRole role);

/// How many numbers a tensor of this shape has.
[[nodiscard]] std::size_t element_count(const std::vector<std::size_t>& shape);

/// The number in `file`, which is at `path`, of each of the tensors `wanted`. Throws: um::Error
/// that names the file, and the tensor that is missing or has another shape.
[[nodiscard]] std::vector<std::size_t> find_tensors(const SafetensorsReader& file,
                                                    const std::filesystem::path& path,
                                                    const std::vector<StoredTensor>& wanted);

/// Those of State::tensors() that are no optimizer's nor averages, for a State of `step`.
[[nodiscard]] std::vector<StoredTensor> weight_tensors(const Step& step);

/// The State::sha256() that a State of `step` would have with the tensors of a file.
/// Throws: um::Error as State::load() does.
[[nodiscard]] std::string weights_sha256(const std::filesystem::path& path, const Step& step);

}  // namespace spillway
