#include "src/data/text/encoded_text.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/files/file_digest.h"
#include "um/error.h"
#include "um/files/input_file.h"

namespace spillway {
namespace {

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
