#pragma once

#include <optional>
#include <string>

#include "nets/network.h"
#include "src/train/checkpoint.h"

namespace spillway {

/// What checkpoints of `network` keep, where that reads text: of the tokens of `tokenizer`, a
/// folder, or where that is empty without one. Throws: um::Error when the tokenizer cannot be read.
[[nodiscard]] std::optional<KeptTextModel> text_model_of(const nets::Network& network,
                                                         const std::string& tokenizer);

}  // namespace spillway
