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

#include "src/io/data/image_folder.h"
#include "src/io/data/mixing.h"
#include "src/ops/learning_rate.h"
#include "src/ops/tensor.h"
#include "src/ops/training_operations.h"
#include "um/bytes.h"
#include "um/error.h"

namespace spillway {

/// What a training must have in common with the checkpoint it goes on from.
struct CheckpointKey {
  std::string network;      ///< name, image and classes: "resnet50 3x224x224, 10 classes"
  std::string layers;       ///< SHA-256 of nets::layers_text()
  std::string data;         ///< as the user gave it; another path to the same content will do
  std::string data_sha256;  ///< content_sha256() of the data
  std::uint64_t batch = 0;
  std::uint64_t seed = 0;
};

/// When a training evaluates, and what follows from it.
struct EvaluationRule {
  std::optional<std::uint64_t> every = {};  ///< steps; TrainOptions::evaluate_every
  std::uint64_t patience = 0;               ///< TrainerOptions::patience
  bool keeps_best = false;                  ///< CheckpointOptions::keep_best
  friend bool operator==(const EvaluationRule&, const EvaluationRule&) = default;
};

/// How the plan of a checkpoint was asked for, and where it was made.
struct KeptPlanning {
  std::string budget;           ///< MemoryOptions::budget
  std::string memory;           ///< MemoryOptions::mode, or "auto"
  std::string planner;          ///< PlanningOptions::planner
  bool may_recompute = true;    ///< PlanningOptions::may_recompute
  std::string state;            ///< PlanningOptions::state: "auto", "near" or "far"
  std::string update;           ///< PlanningOptions::update, the same words
  std::string far_folder = {};  ///< of the far file; empty: none, or not known
  std::string device;           ///< with its kernels: "host (AMD EPYC 9R14) with oneDNN 3.1, AVX2"
  std::string mode = {};        ///< that it ran in, "managed"
  um::Bytes budget_bytes = {};  ///< of the whole run
};

/// What a training that goes on takes from its checkpoint, unless the user gives something else.
/// Its bits depend on all of it except the planning, where algorithms are kept.
struct KeptSettings {
  LearningRateOptions learning_rate;
  OptimizerOptions optimizer;
  float label_smoothing = 0;
  MixOptions mixing = {};                ///< it cannot be given anew: plans are for it
  double average_decay = 0;              ///< StepOptions::average_decay; it cannot be given anew
  std::vector<std::string> frozen = {};  ///< StepOptions::frozen; likewise
  std::size_t threads = 1;               ///< of the kernels
  Precision precision = Precision::kFp32;
  bool deterministic = false;  ///< only kernels that give the same bits in each run
  /// Samples of a micro-batch; nothing where the batch is not cut. It cannot be given anew.
  std::optional<std::size_t> micro_batch_size;
  std::optional<float> dropout;  ///< of all layers that drop; nothing where they differ. Likewise
  std::optional<ImageOptions> images = {};  ///< of a training on a folder of images
  EvaluationRule evaluations = {};
  std::uint64_t train_samples = 0;            ///< TrainerOptions::train_samples
  std::optional<KeptPlanning> planning = {};  ///< older programs did not write it
};

/// What it takes to use a network of texts without its training.
struct KeptTextModel {
  std::string network;     ///< the text of a network file
  std::string byte_pairs;  ///< BytePairs::sha256 of the tokenizer; empty: there was none
  friend bool operator==(const KeptTextModel&, const KeptTextModel&) = default;
};

/// The best evaluation of a training so far, and how long ago that was: what keeping the best
/// checkpoint and ending early depend on. It goes into checkpoints.
struct BestEvaluation {
  std::uint64_t step = 0;
  double loss = 0;
  double accuracy = 0;
  std::uint64_t evaluations_since = 0;  ///< none of which was better
  friend bool operator==(const BestEvaluation&, const BestEvaluation&) = default;
};

/// The last evaluation of a training, without its confusion matrix.
struct LastEvaluation {
  std::uint64_t step = 0;  ///< that it followed
  double loss = 0;
  double accuracy = 0;
  std::optional<double> top5 = {};
  friend bool operator==(const LastEvaluation&, const LastEvaluation&) = default;
};

/// A moment of a training, between two steps, but for the numbers of its State.
struct Checkpoint {
  CheckpointKey key;
  KeptSettings settings;
  std::uint64_t step = 0;                        ///< steps done
  std::optional<BestEvaluation> best = {};       ///< where there was an evaluation
  std::optional<LastEvaluation> last = {};       ///< likewise; older programs did not write it
  std::string network_file = {};                 ///< its text; empty: it was not written
  std::optional<KeptTextModel> text_model = {};  ///< of a network that reads text
  std::vector<std::string> class_names = {};     ///< by label; empty where classes have no names
  bool lacks_evaluation = false;  ///< one was due after `step`, and a stop came first
};

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
/// The step of a name that manifest_file(), tensor_file() or plan_file() gives, or that earlier
/// versions gave to one of several plans ("step-12-plan-1.json"); nothing for others.
[[nodiscard]] std::optional<std::uint64_t> step_of_file(std::string_view name);
/// "step-12.safetensors"
[[nodiscard]] std::string tensor_file(std::uint64_t step);
/// "step-12-plan.json"
[[nodiscard]] std::string plan_file(std::uint64_t step);

/// The text of a JSON object with its own digest: SHA-256 of the object without it, under "sha256".
[[nodiscard]] std::string sealed(nlohmann::json object);

[[nodiscard]] std::string to_text(const CheckpointManifest& manifest);
/// Throws: ForeignCheckpoint; um::Error when the file cannot be read, does not match its own digest
/// is named after another step or says what no training does. Both name the file.
[[nodiscard]] CheckpointManifest read_manifest(const std::filesystem::path& path);

}  // namespace spillway
