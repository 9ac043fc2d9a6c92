#include "nets/text/network_declaration.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "nets/shape.h"

namespace spillway::nets {
namespace {

bool is_control(char c) {
  return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == '\x7f';
}

std::string hexadecimal(char c) {
  std::array<char, 2> digits{'0', '0'};
  const auto value = static_cast<unsigned>(static_cast<unsigned char>(c));
  constexpr int kBase = 16;
  std::to_chars(digits.data() + (value < kBase ? 1 : 0), digits.data() + digits.size(), value,
                kBase);
  return {digits.begin(), digits.end()};
}

constexpr std::string_view kImage = "image";  // name of the first layer's input
constexpr std::size_t kLongestName = 200;

std::string joined(const std::vector<std::string>& words, std::size_t first) {
  std::string text;
  for (std::size_t i = first; i < words.size(); ++i) text += (i > first ? " " : "") + words[i];
  return text;
}

// Restricts names, which become parts of file formats and messages.
bool is_name(std::string_view word) {
  constexpr std::string_view kOthers = "_-.:,/+";
  return word.size() <= kLongestName && std::ranges::all_of(word, [&](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  kOthers.find(c) != std::string_view::npos;
         });
}

const char* const kWhatNamesAre =
    " is no name; names have letters, digits and _-.:,/+, and at most 200 of them";

// Reads the lines before the layers.
class Header {
 public:
  explicit Header(TextLines& lines) : lines_{lines} {}

  [[nodiscard]] NetworkDeclaration read() {
    read_format();
    NetworkDeclaration declaration{.file = lines_.file()};
    read_name(declaration);
    read_image(declaration);
    read_classes(declaration);
    return declaration;
  }

 private:
  void read_format() {
    const TextLine line = next(kNetworkFileFormat);
    if (joined(line.words, 0) == kNetworkFileFormat) return;
    if (line.words[0] == "spillway-network" && line.words.size() == 2) {
      throw lines_.error(line.number, "this is version " + quoted_start(line.words[1]) +
                                          " of network files; this program reads version 1");
    }
    throw lines_.error(line.number, std::string{"a network file begins with the line '"} +
                                        kNetworkFileFormat + "', this one with " +
                                        quoted_start(joined(line.words, 0)));
  }

  void read_name(NetworkDeclaration& declaration) {
    TextLine line = next("name NAME", "name");
    if (line.words.size() != 2) throw lines_.error(line.number, "a network has one word as a name");
    if (!is_name(line.words[1])) {
      throw lines_.error(line.number, quoted_start(line.words[1]) + kWhatNamesAre);
    }
    declaration.name = line.words[1];
    pending_ = lines_.next();
    if (!pending_ || pending_->words[0] != "description") return;
    declaration.description = joined(pending_->words, 1);
    pending_.reset();
  }

  void read_image(NetworkDeclaration& declaration) {
    const TextLine line = next("input CHANNELSxHEIGHTxWIDTH", "input");
    if (line.words.size() == 3 && line.words[2] == "tokens") return read_tokens(line, declaration);
    const auto sides = joined_numbers(joined(line.words, 1), 'x', kLargestSide);
    if (!sides || sides->size() != 3 || std::ranges::find(*sides, 0U) != sides->end()) {
      throw lines_.error(line.number, "an input of " + quoted_start(joined(line.words, 1)) +
                                          " is no CHANNELSxHEIGHTxWIDTH, each from 1 to " +
                                          std::to_string(kLargestSide) + ", as 3x224x224 is");
    }
    declaration.image = {.channels = sides->at(0), .height = sides->at(1), .width = sides->at(2)};
  }

  void read_tokens(const TextLine& line, NetworkDeclaration& declaration) {
    const auto count = joined_numbers(line.words[1], 'x', kLongestSequence);
    if (!count || count->size() != 1 || count->front() == 0) {
      throw lines_.error(line.number, quoted_start(line.words[1]) +
                                          " is no number of tokens; it must be a whole number "
                                          "from 1 to " +
                                          std::to_string(kLongestSequence) +
                                          ", as in input 256 tokens");
    }
    declaration.image = tokens(count->front());
  }

  void read_classes(NetworkDeclaration& declaration) {
    const TextLine line = next("classes NUMBER", "classes");
    const auto number = joined_numbers(joined(line.words, 1), 'x', kLargestWidth);
    if (!number || number->size() != 1 || number->front() < 2) {
      throw lines_.error(line.number, quoted_start(joined(line.words, 1)) +
                                          " is no number of classes; it must be a whole number "
                                          "from 2 to " +
                                          std::to_string(kLargestWidth));
    }
    declaration.classes = number->front();
  }

  // Returns the next line, which must begin with `word`. `what` describes it in messages.
  TextLine next(const std::string& what, std::string_view word = {}) {
    std::optional<TextLine> line = pending_ ? std::exchange(pending_, {}) : lines_.next();
    if (!line) {
      throw um::Error{lines_.file() + (lines_.line() == 0 ? " is empty" : " ends too early") +
                      "; a line '" + what + "' is missing"};
    }
    if (!word.empty() && line->words[0] != word) {
      throw lines_.error(line->number, "here belongs the line '" + what + "', not " +
                                           quoted_start(joined(line->words, 0)));
    }
    return *std::move(line);
  }

  TextLines& lines_;
  std::optional<TextLine> pending_;  // read, but not yet processed
};

// Reads the lines of the layers.
class Layers {
 public:
  Layers(TextLines& lines, NetworkDeclaration& declaration)
      : lines_{lines}, declaration_{declaration} {
    nodes_.emplace(kImage, NodeId{0});
  }

  void read() {
    while (const std::optional<TextLine> line = lines_.next()) read_line(*line);
    if (layers().empty()) {
      throw um::Error{lines_.file() +
                      " has no layers; the last one must be the loss, such as "
                      "'loss softmax-cross-entropy'"};
    }
    is_read_.assign(layers().size() + 1, false);
    for (std::size_t i = 0; i < layers().size(); ++i) resolve(i);
    for (std::size_t i = 0; i < layers().size(); ++i) expect_role(i);
  }

 private:
  [[nodiscard]] std::vector<LayerLine>& layers() { return declaration_.layers; }

  void read_line(const TextLine& line) {
    if (layers().size() == kMaxLayers) {
      throw lines_.error(line.number, "a network has at most " + std::to_string(kMaxLayers) +
                                          " layers, and here comes another");
    }
    LayerLine layer{.number = line.number, .name = line.words[0]};
    if (!is_name(layer.name))
      throw lines_.error(line.number, quoted_start(layer.name) + kWhatNamesAre);
    if (line.words.size() == 1) {
      throw lines_.error(line.number, "layer " + layer.name +
                                          " says nothing but its name; what kind of layer it is "
                                          "belongs behind that");
    }
    layer.text.kind = line.words[1];
    std::vector<std::string> inputs;
    for (std::size_t i = 2; i < line.words.size(); ++i) {
      const std::string& word = line.words[i];
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos) {
        inputs.push_back(word);
      } else {
        layer.text.parameters.push_back(
            {.word = word.substr(0, equals), .value = word.substr(equals + 1)});
      }
    }
    expect_new(layer);
    layers().push_back(std::move(layer));
    input_names_.push_back(std::move(inputs));
  }

  void expect_new(const LayerLine& layer) {
    const auto id = NodeId(layers().size() + 1);
    const auto [at, is_new] = nodes_.emplace(layer.name, id);
    if (is_new) return;
    const auto index = static_cast<std::size_t>(at->second);
    throw declaration_.error(
        layer,
        "layer " + layer.name + " has the name of " +
            (index == 0 ? "the network's input"
                        : "the layer on line " + std::to_string(layers()[index - 1].number)) +
            "; give it one of its own");
  }

  // Resolves the inputs of layer `i`: by default the layer before it.
  void resolve(std::size_t i) {
    LayerLine& layer = layers()[i];
    if (input_names_[i].empty()) layer.inputs = {NodeId(i)};
    for (const std::string& name : input_names_[i]) layer.inputs.push_back(find(name, i));
    for (const NodeId input : layer.inputs) is_read_[static_cast<std::size_t>(input)] = true;
    const InputCount count = input_count(checked_layer(layer));
    const std::size_t inputs = layer.inputs.size();
    if (inputs >= count.min && inputs <= count.max) return;
    throw declaration_.error(
        layer, "layer " + layer.name + " (" + layer.text.kind + ") reads " +
                   std::to_string(count.min) +
                   (count.max == kSeveralInputs.max ? " or more"
                    : count.max > count.min         ? " or " + std::to_string(count.max)
                                                    : "") +
                   (count.min > 1 ? " layers" : " layer") + ", not " + std::to_string(inputs) +
                   "; their names belong behind '" + layer.text.kind + "'");
  }

  [[nodiscard]] NodeId find(const std::string& name, std::size_t reader) const {
    const LayerLine& layer = declaration_.layers[reader];
    const auto found = nodes_.find(name);
    if (found == nodes_.end()) {
      throw declaration_.error(layer, "layer " + layer.name + " reads " + quoted_start(name) +
                                          ", but there is no layer of that name");
    }
    const auto index = static_cast<std::size_t>(found->second);
    if (index <= reader) return found->second;
    const std::string place =
        index == reader + 1
            ? " itself"
            : " " + name + " of line " + std::to_string(declaration_.layers[index - 1].number);
    throw declaration_.error(layer, "layer " + layer.name + " reads" + place +
                                        ", but a layer can read only layers before it");
  }

  [[nodiscard]] Layer checked_layer(const LayerLine& layer) const {
    try {
      return to_layer(layer.name, layer.text, declaration_.classes);
    } catch (const um::Error& error) {
      throw declaration_.error(layer, error.what());
    }
  }

  // Checks that the last layer is a loss, and that all others are read or end auxiliary heads.
  void expect_role(std::size_t i) {
    const LayerLine& layer = layers()[i];
    const bool is_loss = nets::is_loss(checked_layer(layer));
    const bool is_last = i + 1 == layers().size();
    if (is_last && !is_loss) {
      throw declaration_.error(layer, "layer " + layer.name +
                                          " is the last one; there a loss belongs, such as 'loss "
                                          "softmax-cross-entropy'");
    }
    if (is_loss && is_read_[i + 1]) {
      throw declaration_.error(layer, "layer " + layer.name +
                                          " is a loss, which no other can read; the next line "
                                          "has to say which layer it reads");
    }
    if (!is_last && !is_loss && !is_read_[i + 1]) {
      throw declaration_.error(layer, "layer " + layer.name +
                                          " is read by no other; remove it, or name it behind the "
                                          "kind of the layer that shall read it");
    }
  }

  TextLines& lines_;
  NetworkDeclaration& declaration_;
  std::unordered_map<std::string, NodeId> nodes_;
  std::vector<std::vector<std::string>> input_names_;  // by layer
  std::vector<bool> is_read_;                          // by node
};

}  // namespace

TextLines::TextLines(std::istream& text, std::string file)
    : text_{text},
      file_{std::move(file)},
      buffer_(kLongestLine + 3) {}  // for "\r\n" and the 0 of getline()

std::optional<TextLine> TextLines::next() {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80U; };
  while (read_line()) {
    expect_text();
    if (const std::size_t comment = content_.find('#'); comment != std::string::npos) {
      content_.resize(comment);
    }
    if (!std::ranges::all_of(content_, is_ascii)) {
      throw error("holds a character that is not ASCII, which only comments may");
    }
    std::istringstream stream{content_};
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(std::move(word));
    if (!words.empty()) return TextLine{.number = line_, .words = std::move(words)};
  }
  return std::nullopt;
}

// Returns false at the end.
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

um::Error TextLines::error(std::size_t line, const std::string& complaint) const {
  return um::Error{file_ + ":" + std::to_string(line) + ": " + complaint};
}

um::Error TextLines::error(const std::string& complaint) const {
  return error(line_, "this line " + complaint);
}

NetworkDeclaration read_declaration(TextLines& lines) {
  NetworkDeclaration declaration = Header{lines}.read();
  Layers{lines, declaration}.read();
  return declaration;
}

}  // namespace spillway::nets
