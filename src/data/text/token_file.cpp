#include "src/data/text/token_file.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "src/data/text/packed_tokens.h"
#include "um/error.h"
#include "um/files/input_file.h"

namespace spillway {
namespace {

constexpr std::uint32_t kMagic = 20240520;
constexpr std::uint32_t kMagicOf32Bits = 20240801;
constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kHeader = 1024;  // 256 numbers
constexpr std::size_t kWidth = 2;

um::InputFile open_nonempty(const std::filesystem::path& path) {
  um::InputFile file{path};
  if (file.size() == 0) throw um::Error{path.string() + " is empty; there is nothing to learn"};
  return file;
}

// Number `index` of the header.
std::uint32_t header_number(const um::InputFile& file, std::uint64_t index) {
  std::array<std::byte, 4> bytes{};
  file.read(4 * index, bytes);
  std::uint32_t value = 0;
  for (std::size_t i = 4; i > 0; --i)
    value = value << 8 | std::to_integer<std::uint32_t>(bytes[i - 1]);
  return value;
}

std::uint32_t swapped(std::uint32_t value) {
  return value << 24 | (value & 0xFF00U) << 8 | (value >> 8 & 0xFF00U) | value >> 24;
}

bool begins_with(const um::InputFile& file, std::string_view prefix) {
  std::string begin(prefix.size(), '\0');
  if (file.size() < begin.size()) return false;
  file.read(0, std::as_writable_bytes(std::span{begin}));
  return begin == prefix;
}

// Files that hold tokens in a way that this reader does not know, and would take for tokens.
void expect_no_other_format(const um::InputFile& file) {
  const std::string name = file.path().string();
  if (begins_with(file, "\x1F\x8B")) throw um::Error{name + " is packed; unpack it with gunzip"};
  if (begins_with(file, "\x93NUMPY")) {
    throw um::Error{name +
                    " is a NumPy array with a header; write its uint16 numbers alone, with "
                    "ndarray.tofile()"};
  }
  if (file.size() < 4) return;
  const std::uint32_t first = header_number(file, 0);
  if (first == kMagicOf32Bits) {
    throw um::Error{name + " holds tokens of 32 bits; only those of 16 bits can be read"};
  }
  if (swapped(first) == kMagic) {
    throw um::Error{name +
                    " was written with the highest byte first; write it anew with the "
                    "lowest byte first"};
  }
}

void expect_header(const um::InputFile& file) {
  const std::string name = file.path().string();
  if (file.size() < kHeader) {
    throw um::Error{name + " has " + std::to_string(file.size()) +
                    " bytes, but its header alone needs " + std::to_string(kHeader) +
                    "; copy or download it again"};
  }
  const std::uint32_t version = header_number(file, 1);
  if (version != kVersion) {
    throw um::Error{name + " is a token file of version " + std::to_string(version) +
                    "; only version " + std::to_string(kVersion) + " can be read"};
  }
  const std::uint64_t promised = header_number(file, 2);
  const std::uint64_t bytes = file.size() - kHeader;
  if (promised * kWidth != bytes) {
    throw um::Error{name + " has " + std::to_string(bytes) +
                    " bytes after its header, which promises " + std::to_string(promised) +
                    " tokens of 2 bytes; copy or download it again"};
  }
  if (promised == 0) throw um::Error{name + " holds no tokens; there is nothing to learn"};
}

}  // namespace

std::unique_ptr<TokenSequence> open_bytes(const std::filesystem::path& file) {
  return std::make_unique<PackedTokens>(open_nonempty(file), TokenPacking{.form = "bytes of"});
}

std::unique_ptr<TokenSequence> open_token_file(const std::filesystem::path& path) {
  um::InputFile file = open_nonempty(path);
  expect_no_other_format(file);
  TokenPacking packing{.form = "16-bit tokens, without a header, in", .width = kWidth};
  if (file.size() >= 4 && header_number(file, 0) == kMagic) {
    expect_header(file);
    packing = {.form = "llm.c's tokens in", .header = kHeader, .width = kWidth};
  }
  if (file.size() % kWidth != 0) {
    throw um::Error{path.string() + " has " + std::to_string(file.size()) +
                    " bytes, an odd number, but each token has 2; it is no token file, or was cut "
                    "short"};
  }
  return std::make_unique<PackedTokens>(std::move(file), std::move(packing));
}

}  // namespace spillway
