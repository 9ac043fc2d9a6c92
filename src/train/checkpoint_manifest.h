#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/train/checkpoint.h"
#include "um/error.h"

namespace spillway {

/// A file of a checkpoint, as it was written.
struct StoredFile {
  std::string name;  ///< in the checkpoint's folder
  std::uint64_t bytes = 0;
  std::string sha256;
};

/// All there is to know of a checkpoint but the numbers of its tensors: what proves them whole.
struct CheckpointManifest {
  Checkpoint checkpoint;
  StoredFile tensors;                                 ///< the safetensors file
  std::map<std::string, std::string> tensor_digests;  ///< SHA-256 of each tensor, by name
  std::vector<StoredFile> plans;                      ///< of each training step, in order
};

/// A checkpoint's file is whole, but of another program or of another version of this one.
class ForeignCheckpoint final : public um::Error {
 public:
  using um::Error::Error;
};

/// "step-12.json", the manifest of that checkpoint.
[[nodiscard]] std::string manifest_file(std::uint64_t step);
/// The step of "step-12.json"; nothing for other names.
[[nodiscard]] std::optional<std::uint64_t> step_of_manifest(const std::string& name);
/// The step of a name that manifest_file(), tensor_file() or plan_file() gives; nothing for others.
[[nodiscard]] std::optional<std::uint64_t> step_of_file(std::string_view name);
/// "step-12.safetensors"
[[nodiscard]] std::string tensor_file(std::uint64_t step);
/// "step-12-plan.json", that of the last of `count` training steps; "step-12-plan-1.json" of the
/// first of several.
[[nodiscard]] std::string plan_file(std::uint64_t step, std::size_t index, std::size_t count);

/// The text of a JSON object with its own digest: SHA-256 of the object without it, under "sha256".
[[nodiscard]] std::string sealed(nlohmann::json object);

[[nodiscard]] std::string to_text(const CheckpointManifest& manifest);
/// Throws: ForeignCheckpoint; um::Error when the file cannot be read, does not match its own digest
/// is named after another step or says what no training does. Both name the file.
[[nodiscard]] CheckpointManifest read_manifest(const std::filesystem::path& path);

}  // namespace spillway
