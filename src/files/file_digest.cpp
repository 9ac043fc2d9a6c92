#include "src/files/file_digest.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/files/sha256.h"

namespace spillway {

std::string sha256_of(const um::InputFile& file) {
  constexpr std::uint64_t kPart = 1ULL << 20U;
  std::vector<std::byte> part(std::min(kPart, file.size()));
  Sha256 digest;
  for (std::uint64_t at = 0; at < file.size(); at += part.size()) {
    const std::span<std::byte> bytes =
        std::span{part}.first(std::min<std::uint64_t>(part.size(), file.size() - at));
    file.read(at, bytes);
    digest.update(bytes);
  }
  return digest.hex();
}

std::string sha256_of(std::span<const std::byte> bytes) {
  Sha256 digest;
  digest.update(bytes);
  return digest.hex();
}

std::string sha256_of(const std::string& text) { return sha256_of(std::as_bytes(std::span{text})); }

}  // namespace spillway
