#include "src/data/token_dataset.h"

#include <algorithm>
#include <vector>

#include "um/error.h"

namespace spillway {
namespace {

constexpr std::size_t kLargestVocabulary = 1ULL << 24U;  // a float tells its tokens apart

}  // namespace

std::size_t tokens_of_window(const TokenTask& task) {
  return task.length + (task.objective == Objective::kNextToken ? 1 : 0);
}

TokenDataset::TokenDataset(const TokenTask& task) : task_{task} {
  um::expects(task.length > 0, "windows of tokens");
  um::expects(task.vocabulary > 0 && task.vocabulary <= kLargestVocabulary,
              "tokens that are exact as floats");
}

void TokenDataset::read(std::size_t index, std::span<float> image) const {
  um::expects(index < size() && image.size() == task_.length, "a window and room for it");
  std::vector<std::int32_t> tokens(task_.length);
  read_window(index, tokens);
  if (task_.objective == Objective::kMaskedTokens) hide_tokens(masking(), index, tokens);
  std::ranges::transform(tokens, image.begin(),
                         [](std::int32_t token) { return static_cast<float>(token); });
}

void TokenDataset::labels(std::size_t index, std::span<std::int32_t> labels) const {
  um::expects(index < size() && labels.size() == task_.length, "a window and room for its labels");
  if (task_.objective == Objective::kMaskedTokens) {
    read_window(index, labels);
    keep_hidden(masking(), index, labels);
    return;
  }
  std::vector<std::int32_t> tokens(task_.length + 1);
  read_window(index, tokens);
  std::copy(tokens.begin() + 1, tokens.end(), labels.begin());
}

std::string TokenDataset::described_task() const {
  return std::to_string(task_.length) + " tokens of a vocabulary of " +
         std::to_string(task_.vocabulary) + ", seed " + std::to_string(task_.seed) +
         (task_.objective == Objective::kNextToken ? ", next"
                                                   : ", mask " + std::to_string(task_.mask));
}

Masking TokenDataset::masking() const {
  return {.mask = task_.mask, .vocabulary = task_.vocabulary, .seed = task_.seed};
}

}  // namespace spillway
