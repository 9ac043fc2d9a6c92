#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "src/io/data/dataset.h"
#include "src/io/text/byte_pairs.h"
#include "src/io/text/token_file.h"
#include "tests/temporary_folder.h"

namespace spillway::test {

using Content = std::vector<std::uint8_t>;

/// Returns 16-bit numbers as bytes, little-endian.
[[nodiscard]] inline Content raw_tokens(std::span<const std::uint16_t> numbers) {
  Content bytes;
  for (const std::uint16_t number : numbers) {
    bytes.push_back(static_cast<std::uint8_t>(number & 0xFFU));
    bytes.push_back(static_cast<std::uint8_t>(number >> 8U));
  }
  return bytes;
}
[[nodiscard]] inline Content raw_tokens(std::initializer_list<std::uint16_t> numbers) {
  return raw_tokens(std::span{numbers.begin(), numbers.size()});
}

/// Stores `value` as number `index` of a header.
inline void set_number(Content& file, std::size_t index, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) {
    file.at(4 * index + i) = static_cast<std::uint8_t>(value >> (8 * i));
  }
}

/// Returns a token file of llm.c.
[[nodiscard]] inline Content token_file(std::span<const std::uint16_t> numbers) {
  Content file(1024, 0);
  set_number(file, 0, 20240520);
  set_number(file, 1, 1);
  set_number(file, 2, static_cast<std::uint32_t>(numbers.size()));
  const Content tokens = raw_tokens(numbers);
  file.insert(file.end(), tokens.begin(), tokens.end());
  return file;
}
[[nodiscard]] inline Content token_file(std::initializer_list<std::uint16_t> numbers) {
  return token_file(std::span{numbers.begin(), numbers.size()});
}

[[nodiscard]] inline std::vector<std::int32_t> all_tokens(const TokenSequence& text) {
  std::vector<std::int32_t> tokens(text.size());
  text.read(0, tokens);
  return tokens;
}

/// Return the tokens of a window, and its labels.
[[nodiscard]] inline std::vector<std::int32_t> window_tokens(const Dataset& set,
                                                             std::size_t index) {
  std::vector<float> image(set.image().elements());
  set.read(index, image);
  return {image.begin(), image.end()};
}
[[nodiscard]] inline std::vector<std::int32_t> window_labels(const Dataset& set,
                                                             std::size_t index) {
  std::vector<std::int32_t> labels(labels_each(set));
  set.labels(index, labels);
  return labels;
}

/// The files of a vocabulary: each byte is its own token, "th" is 256 and "the" is 257.
struct SmallVocabulary {
  nlohmann::json encoder = bytes();
  std::string merges = "#version: 0.2\nt h\nth e\n";

  SmallVocabulary() {
    encoder["th"] = 256;
    encoder["the"] = 257;
  }

  void write_to(const TemporaryFolder& folder) const {
    write(folder, "encoder.json", encoder.dump());
    write(folder, "vocab.bpe", merges);
  }
  static void write(const TemporaryFolder& folder, const std::string& name,
                    const std::string& text) {
    folder.write(name, std::vector<std::uint8_t>(text.begin(), text.end()));
  }

 private:
  static nlohmann::json bytes() {
    nlohmann::json tokens;
    int number = 0;
    for (const std::string& character : byte_characters()) tokens[character] = number++;
    return tokens;
  }
};

}  // namespace spillway::test
