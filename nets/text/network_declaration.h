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

/// A line of a network file that declares a layer.
struct LayerLine {
  std::size_t number = 0;  ///< in its file
  std::string name;
  LayerText text;
  std::vector<NodeId> inputs;
};

/// What a network file says, before shapes are inferred.
struct NetworkDeclaration {
  std::string file;
  std::string name;
  std::string description;
  Shape image;
  std::size_t classes = 0;
  std::vector<LayerLine> layers;

  /// `complaint` about a line: "my.net:12: " and what it says.
  [[nodiscard]] um::Error error(const LayerLine& line, const std::string& complaint) const {
    return um::Error{file + ":" + std::to_string(line.number) + ": " + complaint};
  }
};

/// Reads a network file (README.md says how it is written). Every layer is one that there is, with
/// parameters that it takes; it reads as many layers as it must, all before it; every layer but the
/// last is read, and that one is the loss.
/// Throws: um::Error that names the file, the line and the layer when that is not so.
[[nodiscard]] NetworkDeclaration read_declaration(TextLines& lines);

/// The first line of each network file.
inline constexpr const char* kNetworkFileFormat = "spillway-network 1";

}  // namespace spillway::nets
