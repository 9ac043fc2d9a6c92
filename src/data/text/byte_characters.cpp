#include "src/data/text/byte_characters.h"

#include <cstddef>
#include <unordered_map>

namespace spillway {
namespace {

bool is_printed(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
}

// UTF-8 of a character below U+0800.
std::string utf8(unsigned character) {
  if (character < 0x80) return {static_cast<char>(character)};
  return {static_cast<char>(0xC0U | character >> 6),
          static_cast<char>(0x80U | (character & 0x3FU))};
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

}  // namespace spillway
