#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "src/io/safetensors.h"
#include "src/io/weights/name_table.h"

namespace spillway {

/// What was written.
struct ExportedWeights {
  std::string title;  ///< "Hugging Face's GPT-2"
  std::size_t tensors = 0;
};

/// Which numbers of a checkpoint are written.
enum class ExportedState : std::uint8_t {
  kWeights,
  kAverages  ///< of parameters whose moving average the checkpoint has, that; else the weights
};

/// What is written, and how it is named.
struct ExportOptions {
  WeightSource source = WeightSource::kTorchvision;
  ExportedState state = ExportedState::kWeights;
};

/// Writes the parameters and running statistics of a checkpoint's tensors, which are those of
/// `network`, to `file`, as F32. A file there is replaced as a whole, or stays. Throws: um::Error
/// when the network has no such names, or the file cannot be written.
ExportedWeights export_weights(const SafetensorsReader& checkpoint, const std::string& network,
                               const ExportOptions& options, const std::filesystem::path& file);

}  // namespace spillway
