#include "src/train/trained_text_model.h"

#include <algorithm>
#include <span>
#include <sstream>
#include <string>
#include <utility>

#include "nets/text/network_file.h"
#include "src/io/text/byte_pairs.h"
#include "src/run/executor.h"
#include "src/train/evaluator.h"
#include "src/train/next_token_model.h"
#include "um/error.h"

namespace spillway {
namespace {

namespace fs = std::filesystem;

um::Error refusal_of(const fs::path& folder, const std::string& what) {
  return um::Error{"the checkpoint in " + folder.string() + ' ' + what};
}

// Returns the network that the checkpoint kept. Throws: um::Error if it reads images, or was saved
// without its network.
const KeptTextModel& text_model_in(const fs::path& folder, const Checkpoint& checkpoint) {
  if (checkpoint.text_model) return *checkpoint.text_model;
  const std::string& network = checkpoint.key.network;  // "gpt2 256 tokens, 50257 classes"
  if (network.find(" tokens, ") == network.npos) {
    throw refusal_of(folder, "is of network '" + network +
                                 "', which reads images; only a network of texts says what "
                                 "comes next, such as gpt2");
  }
  throw refusal_of(folder,
                   "was saved by a spillway that did not write the network into it; train it one "
                   "step more with train --resume");
}

// Opens the byte pairs that the network was trained with.
std::unique_ptr<TextCodec> open_byte_pairs(const fs::path& folder, const std::string& tokenizer,
                                           const std::string& sha256) {
  BytePairs pairs = read_byte_pairs(tokenizer);
  if (!sha256.empty() && pairs.sha256 != sha256) {
    throw refusal_of(folder, "was trained with another tokenizer than that in " + tokenizer +
                                 "; give --tokenizer the folder that train had");
  }
  return make_byte_pair_codec(std::move(pairs));
}

std::unique_ptr<TextCodec> open_codec(const fs::path& folder, const std::string& tokenizer,
                                      const Checkpoint& checkpoint) {
  const std::string& sha256 = checkpoint.text_model->byte_pairs;
  if (!sha256.empty()) {
    if (!tokenizer.empty()) return open_byte_pairs(folder, tokenizer, sha256);
    throw refusal_of(folder,
                     "was trained on the tokens of a byte-pair encoding; give --tokenizer the "
                     "folder that train had");
  }
  if (checkpoint.key.data.starts_with("text:")) {
    if (tokenizer.empty()) return make_byte_codec();
    throw refusal_of(folder, "was trained on bytes; leave out --tokenizer");
  }
  if (!tokenizer.empty()) return open_byte_pairs(folder, tokenizer, {});
  throw refusal_of(folder, "was trained on numbers, with --data " + checkpoint.key.data +
                               "; give --tokenizer the folder of the encoding that they are of");
}

}  // namespace

TrainedTextModel open_text_model(const fs::path& folder, const std::string& tokenizer,
                                 bool uses_weights) {
  ChosenCheckpoint chosen = find_trained(folder, /*wants_best=*/false);
  const Checkpoint& checkpoint = chosen.manifest.checkpoint;
  std::istringstream text{text_model_in(folder, checkpoint).network};
  nets::CatalogueEntry entry = nets::read_network(text, chosen.path.string());
  const nets::Network network = nets::build_network(entry);
  if (const std::string why = why_no_next_token(network); !why.empty()) {
    throw refusal_of(folder, "is of network '" + checkpoint.key.network + "', which " + why);
  }
  std::unique_ptr<TextCodec> codec = open_codec(folder, tokenizer, checkpoint);
  if (!tokenizer.empty() && codec->size() > network.classes()) {
    throw refusal_of(folder, "is of a vocabulary of " + std::to_string(network.classes()) +
                                 ", but the tokenizer in " + tokenizer + " has " +
                                 std::to_string(codec->size()) + " tokens");
  }
  return {.network = std::move(entry),
          .codec = std::move(codec),
          .checkpoint = std::move(chosen),
          .uses_weights = uses_weights};
}

void load_weights(const TrainedTextModel& model, State& state) {
  state.start_from(weights_of(model.checkpoint, model.uses_weights));
}

void continue_text(NextTokenModel& model, TokenSampler& sampler, std::vector<std::int32_t> text,
                   std::size_t known, std::size_t count,
                   const std::function<void(std::int32_t)>& on_token) {
  um::expects(!text.empty() && known > 0, "a text to continue, and tokens to do so with");
  std::size_t made = 0;
  try {
    for (; made < count; ++made) {
      const std::span<const std::int32_t> all{text};
      const std::span<const float> logits =
          model.logits(all.last(std::min(all.size(), model.longest())));
      const std::int32_t token = sampler.draw(logits.first(std::min(known, logits.size())));
      text.push_back(token);
      on_token(token);
    }
  } catch (const Interrupted&) {
    throw Interrupted{std::to_string(made) + " of " + std::to_string(count) + " tokens were made"};
  }
}

}  // namespace spillway
