#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "tests/fuzz/mutation.h"

namespace spillway::fuzz {

/// A reader of what comes from outside.
struct Target {
  std::string name;                ///< of its folder in the corpus, too
  std::vector<std::string> seeds;  ///< good inputs, beside those of the corpus
  /// Reads one input; `folder` is empty, and its own. Throws: um::Error when it refuses.
  std::function<void(const std::string& input, const std::filesystem::path& folder)> read;
  /// Makes an input of its own, for every second case; null: all cases are spoilt inputs.
  std::function<std::string(Generator& generator)> draw{};
};

/// Writes a file, and returns its path.
inline std::string write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream{path, std::ios::binary} << bytes;
  return path.string();
}

/// JPEG and PNG files, spoilt, as a training and an evaluation read them.
[[nodiscard]] Target image_target();
/// Networks of ONNX files, as train --net reads them.
[[nodiscard]] Target onnx_target();
/// Files of weights, spoilt: of a GPT-2 and of a ViT, each for its network.
[[nodiscard]] Target weights_target();
/// Manifests of checkpoints, as they are and with the digest that they should have.
[[nodiscard]] Target checkpoint_target();

/// The name of resumed_target().
inline constexpr const char* kResumed = "resumed";

/// Manifest, plan and tensors of a whole checkpoint, one of which is the input. The others fit it,
/// digests included. All that a checkpoint is used for is tried: verifying, judging, training on.
/// Makes its checkpoints first, which takes a while.
[[nodiscard]] Target resumed_target();

/// What is planned, far behind the reader:
/// - "trace": a trace is planned at several budgets by two planners, now and then by all; each plan
///   is verified, simulated and drawn.
/// - "profile": likewise, of a step whose times it has.
/// - "plan": a plan is verified, and if it holds simulated, drawn, placed and made a program.
/// - "planning": the one call of the planning library; the request is the first line of the input,
///   the trace the rest.
/// Plans and profiles are resealed: they say that they are of the step at hand.
[[nodiscard]] std::vector<Target> planning_targets();

/// The readers of that name; all there are where it is empty.
[[nodiscard]] std::vector<Target> targets_of(const std::string& name);

}  // namespace spillway::fuzz
