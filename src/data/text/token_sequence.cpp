#include "src/data/text/token_sequence.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "um/error.h"

namespace spillway {

void expect_in_vocabulary(const TokenSequence& text, std::size_t vocabulary) {
  constexpr std::size_t kPart = 1ULL << 18U;
  std::vector<std::int32_t> part;
  std::optional<std::uint64_t> place;  // of the first one that is not
  std::int32_t foreign = 0;
  std::int32_t largest = 0;
  for (std::uint64_t first = 0; first < text.size(); first += part.size()) {
    part.resize(std::min<std::uint64_t>(kPart, text.size() - first));
    text.read(first, part);
    const auto last = std::ranges::max_element(part);
    largest = std::max(largest, *last);
    if (place || static_cast<std::size_t>(*last) < vocabulary) continue;
    const auto found = std::ranges::find_if(
        part, [=](std::int32_t token) { return static_cast<std::size_t>(token) >= vocabulary; });
    place = first + static_cast<std::uint64_t>(found - part.begin());
    foreign = *found;
  }
  if (!place) return;
  throw um::Error{"token " + std::to_string(*place) + " of " + text.file() + " is " +
                  std::to_string(foreign) + ", but the network's vocabulary has only " +
                  std::to_string(vocabulary) + "; use --vocabulary " +
                  std::to_string(std::size_t{1} + static_cast<std::size_t>(largest)) + " or more"};
}

}  // namespace spillway
