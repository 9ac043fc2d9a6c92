#include "src/ranks/gather_texts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace spillway {

std::vector<std::string> gather_texts(Communicator& communicator, std::string_view text) {
  std::vector<std::uint64_t> sizes(communicator.ranks());
  sizes[communicator.rank()] = text.size();
  std::vector<std::span<std::byte>> pieces;
  for (std::uint64_t& size : sizes) pieces.push_back(std::as_writable_bytes(std::span{&size, 1}));
  all_gather(communicator, pieces);

  std::vector<std::string> texts(communicator.ranks());
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    texts[rank].resize(sizes[rank]);
    pieces[rank] = std::as_writable_bytes(std::span{texts[rank]});
  }
  std::copy(text.begin(), text.end(), texts[communicator.rank()].begin());
  all_gather(communicator, pieces);
  return texts;
}

}  // namespace spillway
