#include "src/data/synthetic_text.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "src/data/random/random.h"
#include "src/files/file_digest.h"
#include "um/error.h"

namespace spillway {
namespace {

constexpr std::size_t kMostSymbols = 64;
constexpr std::uint64_t kChain = 2;  // beside the splits, in the key of a generator

// Which of the four comes: 0 with probability 1/2, 1 with 1/4, 2 and 3 with 1/8.
std::uint64_t draw_branch(Random& random) {
  return static_cast<std::uint64_t>(std::countl_zero(random.next() | 1ULL << 60U));
}

}  // namespace

// The last token, and BERT's mask, are no multiples of the stride below.
SyntheticText::SyntheticText(const TokenTask& task, std::size_t size, Split split)
    : TokenDataset{task},
      size_{size},
      split_{split},
      symbols_{std::min(kMostSymbols, task.vocabulary - 1)},
      stride_{(task.vocabulary - 1) / symbols_} {
  um::expects(size > 0 && task.vocabulary > 1, "windows of at least two tokens");
}

std::string SyntheticText::name() const {
  return "synthetic text of " + std::to_string(symbols_) + " tokens";
}

std::string SyntheticText::content_sha256() const {
  return sha256_of("drawn text 1: " + std::to_string(size_) + ", split " +
                   std::to_string(static_cast<unsigned>(split_)) + ", " + described_task());
}

void SyntheticText::read_window(std::size_t index, std::span<std::int32_t> tokens) const {
  const std::uint64_t seed = task().seed;
  Random random{seed, static_cast<std::uint64_t>(split_), index};
  std::uint64_t symbol = random.next() % symbols_;
  for (std::int32_t& token : tokens) {
    token = static_cast<std::int32_t>(symbol * stride_);
    symbol = Random{seed, kChain, symbol, draw_branch(random)}.next() % symbols_;
  }
}

DatasetPair make_synthetic_text(const TokenTask& task) {
  return {.train = std::make_unique<SyntheticText>(task, kSyntheticTrainTexts, Split::kTrain),
          .test = std::make_unique<SyntheticText>(task, kSyntheticTestTexts, Split::kTest)};
}

}  // namespace spillway
