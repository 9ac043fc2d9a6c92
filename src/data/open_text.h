#pragma once

#include <string>
#include <string_view>

#include "src/data/dataset.h"
#include "src/data/token_dataset.h"

namespace spillway {

/// Opens `files`, a file of text or two, "TRAIN,TEST": bytes as tokens, or with `tokenizer` the
/// tokens of the byte-pair encoding in that folder. Masks are the last token of the vocabulary,
/// whatever `task` says. Throws: um::Error for missing or broken files, tokens that the network's
/// vocabulary has not, or too few of them.
[[nodiscard]] DatasetPair open_text(std::string_view files, const std::string& tokenizer,
                                    TokenTask task);

/// Opens `files`, likewise, of token numbers. Throws: likewise.
[[nodiscard]] DatasetPair open_tokens(std::string_view files, const TokenTask& task);

}  // namespace spillway
