#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "src/sample/next_token_model.h"
#include "src/sample/token_sampler.h"

namespace spillway {

/// Continues a text by `count` tokens, and calls `on_token` with each as soon as it is drawn. Only
/// tokens below `known` are. Where the text is longer than the network looks, its last tokens
/// count. Requires: `text` has at least one token; `known` is at least 1. Throws: um::Error;
/// um::OutOfMemory; Interrupted, which says how many tokens there are.
void continue_text(NextTokenModel& model, TokenSampler& sampler, std::vector<std::int32_t> text,
                   std::size_t known, std::size_t count,
                   const std::function<void(std::int32_t)>& on_token);

}  // namespace spillway
