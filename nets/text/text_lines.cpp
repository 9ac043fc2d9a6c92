#include "nets/text/text_lines.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <sstream>
#include <utility>

namespace spillway::nets {
namespace {

bool is_control(char c) {
  return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == '\x7f';
}

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80U; }

std::string hexadecimal(char c) {
  std::array<char, 2> digits{'0', '0'};
  const auto value = static_cast<unsigned>(static_cast<unsigned char>(c));
  constexpr int kBase = 16;
  std::to_chars(digits.data() + (value < kBase ? 1 : 0), digits.data() + digits.size(), value,
                kBase);
  return {digits.begin(), digits.end()};
}

std::vector<std::string> cut_into_words(const std::string& line) {
  std::istringstream stream{line};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(std::move(word));
  return words;
}

}  // namespace

TextLines::TextLines(std::istream& text, std::string file)
    : text_{text},
      file_{std::move(file)},
      buffer_(kLongestLine + 3) {}  // "\r\n", and getline()'s 0

std::optional<TextLine> TextLines::next() {
  while (read_line()) {
    expect_text();
    cut_comment();
    if (!std::ranges::all_of(content_, is_ascii)) {
      throw error("holds a character that is not ASCII, which only comments may");
    }
    std::vector<std::string> words = cut_into_words(content_);
    if (!words.empty()) return TextLine{.number = line_, .words = std::move(words)};
  }
  return std::nullopt;
}

// False at the end.
bool TextLines::read_line() {
  if (text_.eof()) return false;
  errno = 0;
  text_.getline(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  if (text_.bad()) throw um::system_error("cannot read " + file_, errno);
  const auto count = static_cast<std::size_t>(text_.gcount());
  const bool is_last = text_.eof();
  if (is_last && count == 0) return false;
  ++line_;
  bytes_ += count;
  if (bytes_ > kLargestFile) {
    throw um::Error{file_ + " is larger than the " + std::to_string(kLargestFile >> 20U) +
                    " MiB that a network file may be"};
  }
  const bool is_cut = text_.fail();  // the buffer is full
  content_.assign(buffer_.data(), count - (is_last || is_cut ? 0 : 1));
  if (content_.ends_with('\r')) content_.pop_back();
  if (is_cut || content_.size() > kLongestLine) {
    expect_text();
    throw error("is longer than the " + std::to_string(kLongestLine) +
                " bytes that a line may have");
  }
  return true;
}

void TextLines::expect_text() const {
  const auto found = std::ranges::find_if(content_, is_control);
  if (found == content_.end()) return;
  throw error("holds the byte 0x" + hexadecimal(*found) +
              ", so that this is no text; a network is written in plain text");
}

void TextLines::cut_comment() {
  const std::size_t begin = content_.find('#');
  if (begin != std::string::npos) content_.resize(begin);
}

um::Error TextLines::error(std::size_t line, const std::string& complaint) const {
  return um::Error{file_ + ":" + std::to_string(line) + ": " + complaint};
}

um::Error TextLines::error(const std::string& complaint) const {
  return error(line_, "this line " + complaint);
}

}  // namespace spillway::nets
