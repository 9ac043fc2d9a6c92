#include "src/io/text/token_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/io/file_digest.h"
#include "um/error.h"
#include "um/files/input_file.h"

namespace spillway {

void expect_in_vocabulary(const TokenSequence& text, std::size_t vocabulary) {
  constexpr std::size_t kPart = 1ULL << 18U;
  std::vector<std::int32_t> part;
  std::optional<std::uint64_t> place;  // of the first invalid token
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

namespace {

/// The encoding of tokens in a file.
struct TokenPacking {
  std::string form;          ///< for the user: "bytes of"
  std::uint64_t header = 0;  ///< bytes before the first token
  std::size_t width = 1;     ///< bytes of a token, little-endian: 1 or 2
};

/// The tokens of a file, read on demand.
class PackedTokens final : public TokenSequence {
 public:
  /// Requires: at least one token after the header, and only whole ones.
  PackedTokens(um::InputFile file, TokenPacking packing);

  [[nodiscard]] std::string name() const override { return packing_.form + " " + file(); }
  [[nodiscard]] std::string file() const override { return file_.path().string(); }
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  void read(std::uint64_t first, std::span<std::int32_t> tokens) const override;
  [[nodiscard]] std::string content_sha256() const override;

 private:
  um::InputFile file_;
  TokenPacking packing_;
  std::uint64_t size_;
  mutable std::once_flag is_digested_;
  mutable std::string sha256_;
};

PackedTokens::PackedTokens(um::InputFile file, TokenPacking packing)
    : file_{std::move(file)}, packing_{std::move(packing)} {
  um::expects(packing_.width == 1 || packing_.width == 2, "tokens of one byte or two");
  um::expects(file_.size() > packing_.header, "at least one token");
  const std::uint64_t bytes = file_.size() - packing_.header;
  um::expects(bytes % packing_.width == 0, "whole tokens");
  size_ = bytes / packing_.width;
}

void PackedTokens::read(std::uint64_t first, std::span<std::int32_t> tokens) const {
  um::expects(first <= size_ && tokens.size() <= size_ - first, "tokens of the file");
  std::vector<std::uint8_t> bytes(tokens.size() * packing_.width);
  file_.read(packing_.header + first * packing_.width, std::as_writable_bytes(std::span{bytes}));
  if (packing_.width == 1) {
    std::ranges::copy(bytes, tokens.begin());
    return;
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = bytes[2 * i] | bytes[2 * i + 1] << 8;
}

// Computed once for all callers, as it reads the whole file.
std::string PackedTokens::content_sha256() const {
  std::call_once(is_digested_, [&] {
    sha256_ = sha256_of("numbers of " + std::to_string(packing_.width) + " after " +
                        std::to_string(packing_.header) + ": " + sha256_of(file_));
  });
  return sha256_;
}

constexpr std::uint32_t kMagic = 20240520;
constexpr std::uint32_t kMagicOf32Bits = 20240801;
constexpr std::uint32_t kTokenFileVersion = 1;
constexpr std::uint64_t kHeader = 1024;  // 256 numbers
constexpr std::size_t kWidth = 2;

um::InputFile open_nonempty(const std::filesystem::path& path) {
  um::InputFile file{path};
  if (file.size() == 0) throw um::Error{path.string() + " is empty; there is nothing to learn"};
  return file;
}

// Returns number `index` of the header.
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

// Refuses files in formats that this reader does not know and would misread as tokens.
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
  if (version != kTokenFileVersion) {
    throw um::Error{name + " is a token file of version " + std::to_string(version) +
                    "; only version " + std::to_string(kTokenFileVersion) + " can be read"};
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
