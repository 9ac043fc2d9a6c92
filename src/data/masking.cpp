#include "src/data/masking.h"

#include <algorithm>
#include <vector>

#include "src/data/random/permutation.h"
#include "src/data/random/random.h"

namespace spillway {
namespace {

constexpr std::size_t kVocabularyOfBert = 30'522;
constexpr std::int32_t kMaskOfBert = 103;
constexpr std::uint64_t kKinds = 1;  // not the numbers of the places

// Calls `visit` with each place of window `index` that is hidden.
template <typename Visit>
void for_each_hidden(const Masking& masking, std::size_t index, std::size_t length, Visit visit) {
  const std::size_t count = std::max<std::size_t>(1, (15 * length + 50) / 100);
  const Permutation places{length, masking.seed, index};
  for (std::size_t i = 0; i < count; ++i) visit(places(i));
}

}  // namespace

std::int32_t mask_of(std::size_t vocabulary) {
  return vocabulary == kVocabularyOfBert ? kMaskOfBert : static_cast<std::int32_t>(vocabulary - 1);
}

void hide_tokens(const Masking& masking, std::size_t index, std::span<std::int32_t> tokens) {
  Random random{masking.seed, index, kKinds};
  for_each_hidden(masking, index, tokens.size(), [&](std::size_t place) {
    const std::uint64_t kind = random.next() % 10;
    const std::uint64_t drawn = random.next() % masking.vocabulary;
    if (kind < 8) tokens[place] = masking.mask;
    if (kind == 8) tokens[place] = static_cast<std::int32_t>(drawn);
  });
}

void keep_hidden(const Masking& masking, std::size_t index, std::span<std::int32_t> tokens) {
  std::vector<std::int32_t> labels(tokens.size(), -1);
  for_each_hidden(masking, index, tokens.size(),
                  [&](std::size_t place) { labels[place] = tokens[place]; });
  std::ranges::copy(labels, tokens.begin());
}

}  // namespace spillway
