#include "src/io/text/text_codec.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/io/file_digest.h"
#include "src/io/text/byte_pair_encoder.h"
#include "um/error.h"
#include "um/files/input_file.h"

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

class EncodedText final : public TokenSequence {
 public:
  EncodedText(std::string file, std::vector<std::int32_t> tokens, std::string content)
      : file_{std::move(file)}, tokens_{std::move(tokens)}, content_{std::move(content)} {}

  [[nodiscard]] std::string name() const override { return "byte pairs of " + file_; }
  [[nodiscard]] std::string file() const override { return file_; }
  [[nodiscard]] std::uint64_t size() const override { return tokens_.size(); }
  void read(std::uint64_t first, std::span<std::int32_t> tokens) const override {
    um::expects(first <= size() && tokens.size() <= size() - first, "tokens of the text");
    std::ranges::copy(std::span{tokens_}.subspan(first, tokens.size()), tokens.begin());
  }
  [[nodiscard]] std::string content_sha256() const override { return content_; }

 private:
  std::string file_;
  std::vector<std::int32_t> tokens_;
  std::string content_;
};

}  // namespace

std::unique_ptr<TextCodec> make_byte_codec() { return std::make_unique<ByteCodec>(); }
std::unique_ptr<TextCodec> make_byte_pair_codec(BytePairs pairs) {
  return std::make_unique<BytePairCodec>(std::move(pairs));
}

std::unique_ptr<TokenSequence> encode_file(const std::filesystem::path& path,
                                           BytePairEncoder& encoder) {
  const um::InputFile file{path};
  if (file.size() == 0) throw um::Error{path.string() + " is empty; there is nothing to learn"};
  std::string text(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span{text}));
  if (const auto place = encoder.first_broken(text)) {
    throw um::Error{path.string() + " is no UTF-8 at byte " + std::to_string(*place) +
                    "; convert it with iconv, or leave out --tokenizer"};
  }
  const std::string content =
      sha256_of("byte pairs " + encoder.pairs().sha256 + ' ' + sha256_of(text));
  return std::make_unique<EncodedText>(path.string(), encoder.encode(text), content);
}

}  // namespace spillway
