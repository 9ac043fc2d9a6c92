#include "src/ranks/gather_texts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "src/ranks/gather_values.h"

namespace spillway {

std::vector<std::string> gather_texts(Communicator& communicator, std::string_view text) {
  const auto sizes = gather_values(communicator, std::uint64_t{text.size()});
  std::vector<std::string> texts(communicator.ranks());
  std::vector<std::span<std::byte>> pieces(texts.size());
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    texts[rank].resize(sizes[rank]);
    pieces[rank] = std::as_writable_bytes(std::span{texts[rank]});
  }
  std::copy(text.begin(), text.end(), texts[communicator.rank()].begin());
  all_gather(communicator, pieces);
  return texts;
}

}  // namespace spillway
