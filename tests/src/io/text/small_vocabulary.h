#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/io/text/byte_pairs.h"
#include "tests/temporary_folder.h"

namespace spillway::test {

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
