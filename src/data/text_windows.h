#pragma once

#include <memory>

#include "src/data/dataset.h"
#include "src/data/text/token_sequence.h"
#include "src/data/token_dataset.h"

namespace spillway {

/// Windows of a text, one behind the other. What is over where all whole windows are cut is in part
/// before the first one: the windows to learn from begin where the seed says.
///
/// The windows to test on are of the last tenth of the text, or of one window where that is more.
/// Throws: um::Error when there are too few tokens to learn from and to test on.
[[nodiscard]] DatasetPair cut_windows(std::unique_ptr<TokenSequence> text, const TokenTask& task);
/// Likewise, with a text to learn from and another to test on.
[[nodiscard]] DatasetPair cut_windows(std::unique_ptr<TokenSequence> train,
                                      std::unique_ptr<TokenSequence> test, const TokenTask& task);

}  // namespace spillway
