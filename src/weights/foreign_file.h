#pragma once

#include <filesystem>
#include <string>

#include "src/weights/model_files.h"
#include "src/weights/tensor_places.h"
#include "um/error.h"

namespace spillway {

/// What to say of a network that no table has the names of.
[[nodiscard]] um::Error without_names(const std::string& network);

/// What to say of a network with an obstacle in its table.
[[nodiscard]] um::Error other_network_there(const std::string& network, const NameTable& table);

/// What to say of a model with other names than `network` has by `wanted`.
[[nodiscard]] um::Error of_another_network(const ModelFiles& files,
                                           const std::filesystem::path& path,
                                           const std::string& network, const NamedTensors& wanted);

/// What to add to a sentence about a missing tensor where the name of the file is that of one of
/// several: "model-00001-of-00002.safetensors". Empty for others.
[[nodiscard]] std::string advice_on_parts(const std::filesystem::path& path);

}  // namespace spillway
