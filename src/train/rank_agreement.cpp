#include "src/train/rank_agreement.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "nets/text/network_file.h"
#include "src/io/file_digest.h"
#include "src/io/text/byte_pairs.h"
#include "src/train/checkpoint/settings.h"
#include "um/error.h"

namespace spillway {
namespace {

constexpr std::size_t kMostSamples = 64;
constexpr std::size_t kFewestSamples = 3;
constexpr std::size_t kMostNumbers = std::size_t{1} << 24U;  // of samples
constexpr std::size_t kDigits = 16;                          // of a digest, for people

// SHA-256 of samples that are spread over all, the first and the last among them, as the first
// epoch has them: of a large data set enough to tell another one, or other decoders, apart.
std::string sampled_sha256(const Dataset& set) {
  std::vector<float> image(set.image().elements());
  std::vector<std::int32_t> labels(labels_each(set));
  const std::size_t count =
      std::min(set.size(), std::clamp(kMostNumbers / image.size(), kFewestSamples, kMostSamples));
  Sha256 digest;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t index = count == 1 ? 0 : i * (set.size() - 1) / (count - 1);
    try {
      set.read(index, image);
      set.labels(index, labels);
    } catch (const um::Error&) {  // told when its turn comes, if it is not passed over
      std::ranges::fill(image, 0.F);
      std::ranges::fill(labels, -1);
    }
    digest.update(std::as_bytes(std::span{image}));
    digest.update(std::as_bytes(std::span{labels}));
  }
  return digest.hex();
}

std::string summary_of(const DatasetPair& data) {
  std::string text;
  for (const Dataset* const set : {data.train.get(), data.test.get()}) {
    if (set == nullptr) continue;
    text += (text.empty() ? "" : "; ") + set->name() + ", " + std::to_string(set->size()) +
            " samples, " + std::to_string(set->classes()) + " classes, content " +
            set->content_sha256().substr(0, kDigits) + ", samples " +
            sampled_sha256(*set).substr(0, kDigits);
  }
  return text;
}

std::string with_commas(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// Returns the settings that a checkpoint keeps. Each rank may have read them from a checkpoint of
// its own.
std::string settings_text(const TrainerOptions& options, const ExecutionContext& context) {
  nlohmann::json settings = to_json(kept_settings(options, context, {}));
  settings["batch"] = options.step.batch;
  settings["seed"] = options.training.seed;
  settings.erase("threads");  // compared by themselves
  settings["planning"].erase("device");
  settings["planning"].erase("far_folder");  // ranks may run in folders of their own
  return settings.dump();
}

}  // namespace

void expect_ranks_agree(const TrainerOptions& options, const DatasetPair& data,
                        const ExecutionContext& context) {
  Communicator& communicator = options.ranks.communicator;
  if (communicator.size() == 1) return;
  std::vector<NamedText> texts = options.ranks.agreement;
  texts.push_back({.name = "settings", .text = settings_text(options, context)});
  texts.push_back({.name = "what they find in the checkpoint folder",
                   .text = options.checkpoint.resume ? "a checkpoint" : ""});
  if (!options.tokenizer.empty()) {
    texts.push_back({.name = "tokenizer", .text = read_byte_pairs(options.tokenizer).sha256});
  }
  texts.push_back({.name = "network", .text = nets::to_text(options.network)});
  texts.push_back({.name = "data",
                   .text = summary_of(data),
                   .advice = "copy the same data to the machines of all ranks"});
  texts.push_back({.name = "class names", .text = with_commas(data.class_names)});
  texts.push_back({.name = "threads", .text = std::to_string(context.threads)});
  expect_agreement(communicator, texts);
  const std::array kernels{
      NamedText{.name = "kernels",  // whose text has the threads, too
                .text = context.backend->description(),
                .advice = "install the same libraries for all ranks; where processors differ, "
                          "ONEDNN_MAX_CPU_ISA=AVX2 in the environment of all has them use the same "
                          "instructions"}};
  expect_agreement(communicator, kernels);
}

void expect_same_weights(Communicator& communicator, const std::string& name,
                         const std::string& sha256) {
  const std::array texts{NamedText{.name = name, .text = sha256}};
  expect_agreement(communicator, texts);
}

}  // namespace spillway
