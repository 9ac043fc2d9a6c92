#include "src/io/text/byte_pairs.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "src/io/file_digest.h"
#include "src/io/text/token_file.h"
#include "um/error.h"
#include "um/files/input_file.h"

namespace spillway {
namespace {

bool is_printed(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
}

// Returns a character below U+0800 in UTF-8.
std::string utf8(unsigned character) {
  if (character < 0x80) return {static_cast<char>(character)};
  return {static_cast<char>(0xC0U | character >> 6),
          static_cast<char>(0x80U | (character & 0x3FU))};
}

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kLargestPairsFile = 256ULL << 20U;

using Tokens = std::unordered_map<std::string, std::int32_t>;

struct VocabularyFiles {
  fs::path tokens;
  fs::path merges;
};

// Returns the names of the files in `folder`.
VocabularyFiles find_files(const fs::path& folder) {
  const auto is_there = [&](const char* name) {
    std::error_code ignored;
    return fs::exists(folder / name, ignored);
  };
  for (const auto& [tokens, merges] :
       {std::pair{"encoder.json", "vocab.bpe"}, std::pair{"vocab.json", "merges.txt"}}) {
    if (is_there(tokens) && is_there(merges)) return {folder / tokens, folder / merges};
  }
  throw um::Error{"the folder " + folder.string() +
                  " has no tokenizer: put encoder.json and vocab.bpe there, or vocab.json and "
                  "merges.txt"};
}

// Throws: um::Error when the text is not an object or repeats a name, as a parser would drop one.
json parse_tokens(const std::string& text, const std::string& name) {
  std::size_t names = 0;
  const auto count = [&](int depth, json::parse_event_t event, const json& /*value*/) {
    names += depth == 1 && event == json::parse_event_t::key ? 1 : 0;
    return true;
  };
  json tokens;
  try {
    tokens = json::parse(text, count);
  } catch (const json::exception& error) {
    throw um::Error{name + " is no JSON: " + error.what()};
  }
  if (!tokens.is_object()) throw um::Error{name + " is no JSON object of tokens and their numbers"};
  if (names != tokens.size()) throw um::Error{name + " has a token twice"};
  return tokens;
}

std::int32_t token_number(const std::string& token, const json& number, const std::string& name) {
  if (number.is_number_integer() && number >= 0 && number < kLargestVocabulary) {
    return number.get<std::int32_t>();
  }
  throw um::Error{name + " gives token '" + token + "' the number " + number.dump() +
                  "; it must be a whole number from 0 to " +
                  std::to_string(kLargestVocabulary - 1)};
}

Tokens read_tokens(const json& numbers, const std::string& name) {
  Tokens tokens;
  std::unordered_set<std::int32_t> used;
  const auto repeated = [&](std::int32_t number, const std::string& token) {
    return um::Error{name + " gives the number " + std::to_string(number) +
                     " to several tokens, one of them '" + token + "'"};
  };
  for (const auto& [token, value] : numbers.items()) {
    const std::int32_t number = token_number(token, value, name);
    if (!used.insert(number).second) throw repeated(number, token);
    tokens.emplace(token, number);
  }
  return tokens;
}

// Reads merges and the tokens that they make.
class MergeReader {
 public:
  MergeReader(const Tokens& tokens, std::string file, BytePairs& pairs)
      : tokens_{tokens}, file_{std::move(file)}, pairs_{pairs} {}

  void read(std::string_view text) {
    for (std::size_t number = 1; !text.empty(); ++number) {
      const std::size_t length = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, length);
      text.remove_prefix(std::min(length + 1, text.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
      add(line, file_ + ", line " + std::to_string(number));
    }
  }

 private:
  void add(std::string_view line, const std::string& where) {
    const std::size_t space = line.find(' ');
    const std::string left{line.substr(0, space)};
    const std::string right{space == line.npos ? "" : line.substr(space + 1)};
    if (left.empty() || right.empty() || right.find(' ') != right.npos) {
      throw um::Error{where + ": '" + std::string{line} +
                      "' is no merge, which is two tokens and a space between"};
    }
    const BytePairs::Merge merge{.rank = static_cast<std::uint32_t>(pairs_.merges.size()),
                                 .token = find(left + right, where)};
    if (!pairs_.merges.emplace(BytePairs::key(find(left, where), find(right, where)), merge)
             .second) {
      throw um::Error{where + ": the tokens '" + left + "' and '" + right +
                      "' are merged a second time"};
    }
  }

  [[nodiscard]] std::int32_t find(const std::string& token, const std::string& where) const {
    const auto found = tokens_.find(token);
    if (found != tokens_.end()) return found->second;
    throw um::Error{where + ": the vocabulary has no token '" + token +
                    "'; take both files from the same tokenizer"};
  }

  const Tokens& tokens_;
  std::string file_;
  BytePairs& pairs_;
};

std::array<std::int32_t, 256> tokens_of_bytes(const Tokens& tokens, const std::string& name) {
  const std::array<std::string, 256> characters = byte_characters();
  std::array<std::int32_t, 256> bytes{};
  for (std::size_t byte = 0; byte < bytes.size(); ++byte) {
    const auto found = tokens.find(characters[byte]);
    if (found == tokens.end()) {
      throw um::Error{name + " has no token for byte " + std::to_string(byte) + ", '" +
                      characters[byte] + "'; only encodings of bytes, as GPT-2's, can be read"};
    }
    bytes[byte] = found->second;
  }
  return bytes;
}

}  // namespace

std::array<std::string, 256> byte_characters() {
  std::array<std::string, 256> characters;
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    characters[byte] = utf8(is_printed(byte) ? byte : next++);
  }
  return characters;
}

std::string bytes_of_characters(std::string_view characters) {
  static const std::unordered_map<std::string, char> bytes = [] {
    std::unordered_map<std::string, char> all;
    const std::array<std::string, 256> names = byte_characters();
    for (unsigned byte = 0; byte < 256; ++byte) all.emplace(names[byte], static_cast<char>(byte));
    return all;
  }();
  std::string text;
  while (!characters.empty()) {
    const std::size_t length = (static_cast<unsigned char>(characters[0]) & 0xE0U) == 0xC0U ? 2 : 1;
    const std::string_view character = characters.substr(0, length);
    const auto found = bytes.find(std::string{character});
    if (found == bytes.end()) {
      text += character;
    } else {
      text += found->second;
    }
    characters.remove_prefix(character.size());
  }
  return text;
}

BytePairs read_byte_pairs(const fs::path& folder) {
  const VocabularyFiles files = find_files(folder);
  const std::string name = files.tokens.string();
  const std::string text = um::InputFile{files.tokens}.text(kLargestPairsFile);
  const std::string merges = um::InputFile{files.merges}.text(kLargestPairsFile);
  const Tokens tokens = read_tokens(parse_tokens(text, name), name);
  BytePairs pairs{.bytes = tokens_of_bytes(tokens, name),
                  .sha256 = sha256_of(sha256_of(text) + ' ' + sha256_of(merges))};
  for (const auto& [own, token] : tokens) {
    pairs.size = std::max(pairs.size, std::size_t{1} + static_cast<std::size_t>(token));
  }
  pairs.texts.resize(pairs.size);
  for (const auto& [own, token] : tokens) {
    pairs.texts[static_cast<std::size_t>(token)] = bytes_of_characters(own);
  }
  const auto end = tokens.find(std::string{kEndOfText});
  if (end != tokens.end()) pairs.end_of_text = end->second;
  MergeReader{tokens, files.merges.string(), pairs}.read(merges);
  if (pairs.merges.empty()) {
    throw um::Error{files.merges.string() + " has no merges; copy or download it again"};
  }
  return pairs;
}

}  // namespace spillway
