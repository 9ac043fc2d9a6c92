#include "um/error.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <system_error>

namespace spillway::um {
namespace {

constexpr std::size_t kLongestWord = 1000;
constexpr std::size_t kLongestSentence = 4000;

bool is_control(char byte) { return static_cast<unsigned char>(byte) < ' ' || byte == '\x7f'; }

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U; }

/// Returns the first and last bytes of `text`, and between them the count of bytes left out.
std::string with_ends(std::string_view text, std::size_t first, std::size_t last) {
  while (first > 0 && continues_character(text[first])) --first;
  std::size_t end = text.size() - last;
  while (end < text.size() && continues_character(text[end])) ++end;
  return std::string{text.substr(0, first)} + "[..." + std::to_string(end - first) + " bytes...]" +
         std::string{text.substr(end)};
}

}  // namespace

std::string shortened(std::string_view sentence) {
  std::string result;
  while (!sentence.empty()) {
    const std::size_t length = std::min(sentence.find(' '), sentence.size());
    const std::string_view word = sentence.substr(0, length);
    if (word.size() > kLongestWord) {
      result += with_ends(word, 80, 60);
    } else {
      result += word;
    }
    const std::size_t spaces = std::min(sentence.find_first_not_of(' ', length), sentence.size());
    result += sentence.substr(length, spaces - length);
    sentence.remove_prefix(spaces);
  }
  std::ranges::replace_if(result, is_control, '?');
  return result.size() > kLongestSentence ? with_ends(result, 2000, 1500) : result;
}

void expects(bool holds, std::string_view what, Caller where) {
  if (holds) return;
  throw ContractError{std::string{where.file} + ":" + std::to_string(where.line) +
                      ": expected: " + std::string{what}};
}

SystemError system_error(std::string_view what, int errno_value) {
  const char* const advice =
      errno_value == EMFILE ? "; raise this program's limit of open files (ulimit -n)" : "";
  return {std::string{what} + ": " + std::generic_category().message(errno_value) + advice,
          errno_value};
}

}  // namespace spillway::um
