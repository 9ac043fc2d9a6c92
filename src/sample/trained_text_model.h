#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "src/io/text/text_codec.h"
#include "src/sample/next_token_model.h"
#include "src/sample/token_sampler.h"
#include "src/train/checkpoint_choice.h"
#include "src/train/state.h"

namespace spillway {

/// A network of texts as a checkpoint has it, but for its weights.
struct TrainedTextModel {
  nets::CatalogueEntry network;
  std::unique_ptr<TextCodec> codec;
  ChosenCheckpoint checkpoint;
  bool uses_weights = false;  ///< themselves, where the checkpoint has their averages, too
};

/// Reads the newest checkpoint in `folder` that verifies. `tokenizer` is the folder of the byte
/// pairs that it was trained with, empty where bytes were its tokens. Throws: um::Error when there
/// is no checkpoint, it is damaged, its network does not say what follows a text, or it was trained
/// with another tokenizer than that.
[[nodiscard]] TrainedTextModel open_text_model(const std::filesystem::path& folder,
                                               const std::string& tokenizer,
                                               bool uses_weights = false);

/// Fills `state` with the weights, or with their moving averages where the checkpoint has some,
/// unless `uses_weights`. Throws: as weights_of() says.
void load_weights(const TrainedTextModel& model, State& state);

/// Continues a text by `count` tokens, and calls `on_token` with each as soon as it is drawn. Only
/// tokens below `known` are. Where the text is longer than the network looks, its last tokens
/// count. Requires: `text` has at least one token; `known` is at least 1. Throws: um::Error;
/// um::OutOfMemory; Interrupted, which says how many tokens there are.
void continue_text(NextTokenModel& model, TokenSampler& sampler, std::vector<std::int32_t> text,
                   std::size_t known, std::size_t count,
                   const std::function<void(std::int32_t)>& on_token);

}  // namespace spillway
