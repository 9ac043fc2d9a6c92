#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "src/files/safetensors.h"
#include "src/weights/name_table.h"

namespace spillway {

/// What was written.
struct ExportedWeights {
  std::string title;  ///< "Hugging Face's GPT-2"
  std::size_t tensors = 0;
};

/// Writes the parameters and running statistics of a checkpoint's tensors, which are those of
/// `network`, to `file`, by the names of `source` and as F32. A file there is replaced as a whole,
/// or stays. Throws: um::Error when the network has no such names, or the file cannot be written.
ExportedWeights export_weights(const SafetensorsReader& checkpoint, const std::string& network,
                               WeightSource source, const std::filesystem::path& file);

}  // namespace spillway
