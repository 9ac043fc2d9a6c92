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
#include "src/train/checkpoint/checkpoint_choice.h"
#include "src/train/checkpoint/state.h"
#include "src/train/next_token_model.h"
#include "src/train/token_sampler.h"

namespace spillway {

/// A network of texts read from a checkpoint, without its weights.
struct TrainedTextModel {
  nets::CatalogueEntry network;
  std::unique_ptr<TextCodec> codec;
  ChosenCheckpoint checkpoint;
  bool uses_weights = false;  ///< true: the weights even if the checkpoint has moving averages
};

/// Reads the newest checkpoint in `folder` that verifies. `tokenizer` is the folder of the byte
/// pairs it was trained with; empty for a network of bytes. Throws: um::Error if no checkpoint
/// exists, it is damaged, its network cannot predict a next token, or it was trained with another
/// tokenizer.
[[nodiscard]] TrainedTextModel open_text_model(const std::filesystem::path& folder,
                                               const std::string& tokenizer,
                                               bool uses_weights = false);

/// Fills `state` with the moving averages if the checkpoint has some and `uses_weights` is false,
/// otherwise with the weights. Throws: as weights_of().
void load_weights(const TrainedTextModel& model, State& state);

/// Continues a text by `count` tokens, and calls `on_token` with each as soon as it is drawn. Draws
/// only tokens below `known`. A text longer than the context is cut to its last tokens. Requires:
/// `text` has at least one token; `known` is at least 1. Throws: um::Error; um::OutOfMemory;
/// Interrupted, which says how many tokens there are.
void continue_text(NextTokenModel& model, TokenSampler& sampler, std::vector<std::int32_t> text,
                   std::size_t known, std::size_t count,
                   const std::function<void(std::int32_t)>& on_token);

}  // namespace spillway
