#pragma once

#include <cstddef>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "um/error.h"

namespace spillway::nets {

/// A line that says something, cut into words.
struct TextLine {
  std::size_t number = 0;  ///< from 1, as editors count
  std::vector<std::string> words;
};

/// The lines of a text file that say something: words of printable ASCII with blanks between them,
/// without comments, which go from a # to the end of their line and may hold any characters but
/// control characters. Reads no further than it is asked to, so that what is no such text is found
/// out at its first bytes.
class TextLines {
 public:
  static constexpr std::size_t kLongestLine = 1U << 16U;  ///< bytes
  static constexpr std::size_t kLargestFile = 1U << 24U;  ///< bytes

  /// `file` is its name in sentences. `text` must outlive this.
  TextLines(std::istream& text, std::string file);

  /// The next one; nothing at the end. Throws: um::Error when the text cannot be read, is no text,
  /// or has a line or a size beyond the limits.
  [[nodiscard]] std::optional<TextLine> next();

  [[nodiscard]] const std::string& file() const { return file_; }
  /// Lines read so far.
  [[nodiscard]] std::size_t line() const { return line_; }
  /// An error about a line: "my.net:12: " and `complaint`.
  [[nodiscard]] um::Error error(std::size_t line, const std::string& complaint) const;

 private:
  bool read_line();
  void expect_text() const;
  void cut_comment();
  [[nodiscard]] um::Error error(const std::string& complaint) const;

  std::istream& text_;
  std::string file_;
  std::vector<char> buffer_;  // a line as it is read
  std::string content_;       // the line
  std::size_t line_ = 0;
  std::size_t bytes_ = 0;  // read so far
};

}  // namespace spillway::nets
