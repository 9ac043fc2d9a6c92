#include "src/data/text/text_codec.h"

#include <array>
#include <string>
#include <utility>

#include "src/data/text/byte_pair_encoder.h"
#include "um/error.h"

namespace spillway {
namespace {

constexpr std::size_t kBytes = 256;

class ByteCodec final : public TextCodec {
 public:
  ByteCodec() {
    for (std::size_t byte = 0; byte < kBytes; ++byte) bytes_[byte] = static_cast<char>(byte);
  }
  [[nodiscard]] std::size_t size() const override { return kBytes; }
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text) override {
    std::vector<std::int32_t> tokens;
    for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
    return tokens;
  }
  [[nodiscard]] std::string_view text(std::int32_t token) const override {
    return {&bytes_.at(static_cast<std::size_t>(token)), 1};
  }
  [[nodiscard]] std::int32_t beginning() const override { return '\n'; }

 private:
  std::array<char, kBytes> bytes_{};
};

class BytePairCodec final : public TextCodec {
 public:
  explicit BytePairCodec(BytePairs pairs) : encoder_{std::move(pairs)} {}
  [[nodiscard]] std::size_t size() const override { return encoder_.pairs().size; }
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text) override {
    if (const auto place = encoder_.first_broken(text)) {
      throw um::Error{"the text is no UTF-8 at byte " + std::to_string(*place)};
    }
    return encoder_.encode(text);
  }
  [[nodiscard]] std::string_view text(std::int32_t token) const override {
    return encoder_.pairs().texts.at(static_cast<std::size_t>(token));
  }
  [[nodiscard]] std::int32_t beginning() const override {
    const BytePairs& pairs = encoder_.pairs();
    return pairs.end_of_text.value_or(pairs.bytes['\n']);
  }

 private:
  BytePairEncoder encoder_;
};

}  // namespace

std::unique_ptr<TextCodec> make_byte_codec() { return std::make_unique<ByteCodec>(); }
std::unique_ptr<TextCodec> make_byte_pair_codec(BytePairs pairs) {
  return std::make_unique<BytePairCodec>(std::move(pairs));
}

}  // namespace spillway
