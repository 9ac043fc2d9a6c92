#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "tests/fuzz/mutation.h"

namespace spillway::fuzz {

/// A reader of external input.
struct Target {
  std::string name;                ///< also the name of its folder in the corpus
  std::vector<std::string> seeds;  ///< valid inputs in addition to the corpus
  /// Reads one input; `folder` is empty and only for it. Throws: um::Error when it refuses the
  /// input.
  std::function<void(const std::string& input, const std::filesystem::path& folder)> read;
  /// Makes a new input, for every second case; null: all inputs are damaged ones.
  std::function<std::string(Generator& generator)> draw{};
};

/// Writes a file and returns its path.
inline std::string write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream{path, std::ios::binary} << bytes;
  return path.string();
}

/// Damaged JPEG and PNG files, read as in training and evaluation.
[[nodiscard]] Target image_target();
/// Networks in ONNX files, read as by train --net.
[[nodiscard]] Target onnx_target();
/// Damaged files of weights of a GPT-2 and a ViT, each read for its network.
[[nodiscard]] Target weights_target();
/// Manifests of checkpoints, unchanged and with a valid digest.
[[nodiscard]] Target checkpoint_target();

/// Name of resumed_target().
inline constexpr const char* kResumed = "resumed";

/// The input is the manifest, plan or tensors of a checkpoint; the other files match it, digests
/// included. The target verifies, evaluates and resumes the checkpoint. It trains its checkpoints
/// first, which takes a while.
[[nodiscard]] Target resumed_target();

/// Planning, deep behind the reader:
/// - "trace": plans a trace at several budgets by two planners, sometimes by all; verifies,
///   simulates and draws each plan.
/// - "profile": does the same for a step with times from the profile.
/// - "plan": verifies a plan; if it is valid, simulates, draws, places and compiles it.
/// - "planning": calls the planning library; the first line of the input is the request, the rest
///   the trace.
/// Plans and profiles get the stamp of the current step.
[[nodiscard]] std::vector<Target> planning_targets();

/// Returns the targets with this name; all targets if it is empty.
[[nodiscard]] std::vector<Target> targets_of(const std::string& name);

}  // namespace spillway::fuzz
