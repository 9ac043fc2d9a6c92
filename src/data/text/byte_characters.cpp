#include "src/data/text/byte_characters.h"

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

}  // namespace spillway
