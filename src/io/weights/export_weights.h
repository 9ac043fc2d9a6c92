#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "src/io/safetensors.h"
#include "src/io/weights/name_table.h"

namespace spillway {

/// A summary of what was written.
struct ExportedWeights {
  std::string title;  ///< "Hugging Face's GPT-2"
  std::size_t tensors = 0;
};

/// The numbers of a checkpoint to write.
enum class ExportedState : std::uint8_t {
  kWeights,
  kAverages  ///< moving averages where the checkpoint has them; otherwise weights
};

/// The state to write and the names to use.
struct ExportOptions {
  WeightSource source = WeightSource::kTorchvision;
  ExportedState state = ExportedState::kWeights;
};

/// Writes the parameters and running statistics of `checkpoint`, which belongs to `network`, to
/// `file` as F32. Replaces an existing file atomically. Throws: um::Error when the network has no
/// such names, or the file cannot be written.
ExportedWeights export_weights(const SafetensorsReader& checkpoint, const std::string& network,
                               const ExportOptions& options, const std::filesystem::path& file);

}  // namespace spillway
