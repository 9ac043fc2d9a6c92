#pragma once

#include <cstddef>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "nets/network.h"
#include "nets/text/layer_text.h"
#include "um/error.h"

namespace spillway::nets {

/// A line with content, split into words.
struct TextLine {
  std::size_t number = 0;  ///< from 1, as editors count
  std::vector<std::string> words;
};

/// Reads the non-empty lines of a text file: words of printable ASCII separated by blanks. A
/// comment runs from # to the end of its line and may contain anything except control characters.
/// Reads only as far as requested, so that a binary file is refused at its first bytes.
class TextLines {
 public:
  static constexpr std::size_t kLongestLine = 1U << 16U;  ///< bytes
  static constexpr std::size_t kLargestFile = 1U << 24U;  ///< bytes

  /// `file` is the name in messages. `text` must outlive this object.
  TextLines(std::istream& text, std::string file);

  /// Returns the next line; nullopt at the end. Throws: um::Error when the text cannot be read, is
  /// not text, or exceeds a limit of lines or size.
  [[nodiscard]] std::optional<TextLine> next();

  [[nodiscard]] const std::string& file() const { return file_; }
  /// Returns the number of lines read so far.
  [[nodiscard]] std::size_t line() const { return line_; }
  /// Returns an error about a line: "my.net:12: " and `complaint`.
  [[nodiscard]] um::Error error(std::size_t line, const std::string& complaint) const;

 private:
  bool read_line();
  void expect_text() const;
  [[nodiscard]] um::Error error(const std::string& complaint) const;

  std::istream& text_;
  std::string file_;
  std::vector<char> buffer_;  // a raw line
  std::string content_;       // the line
  std::size_t line_ = 0;
  std::size_t bytes_ = 0;  // read so far
};

/// A line of a network file that declares a layer.
struct LayerLine {
  std::size_t number = 0;  ///< in its file
  std::string name;
  LayerText text;
  std::vector<NodeId> inputs;
};

/// The content of a network file, before shapes are inferred.
struct NetworkDeclaration {
  std::string file;
  std::string name;
  std::string description;
  Shape image;
  std::size_t classes = 0;
  std::vector<LayerLine> layers;

  /// Returns an error about a line: "my.net:12: " and `complaint`.
  [[nodiscard]] um::Error error(const LayerLine& line, const std::string& complaint) const {
    return um::Error{file + ":" + std::to_string(line.number) + ": " + complaint};
  }
};

/// Reads a network file (README.md describes the format). Checks that every layer and its
/// parameters exist, that it has the right number of inputs, all before it, and that every layer
/// except the last is read. The last layer is a loss. Throws: um::Error that names the file, the
/// line and the layer otherwise.
[[nodiscard]] NetworkDeclaration read_declaration(TextLines& lines);

/// The first line of each network file.
inline constexpr const char* kNetworkFileFormat = "spillway-network 1";

}  // namespace spillway::nets
