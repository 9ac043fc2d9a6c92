#include "nets/text/layer_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <system_error>

#include "nets/shape.h"
#include "um/error.h"

namespace spillway::nets {
namespace {

constexpr std::string_view kClasses = "classes";
constexpr std::string_view kYes = "yes";
constexpr std::string_view kNo = "no";

// Shortens a word for a message.
std::string cut(const std::string& word) {
  constexpr std::size_t kLongest = 60;
  return word.size() > kLongest ? word.substr(0, kLongest) + "..." : word;
}

// "a, b and c"
std::string listed(const std::vector<std::string_view>& words, std::string_view last = " and ") {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 < words.size() ? ", " : last;
    text += words[i];
  }
  return text;
}

// ---- values: each type has a word(), a description of its values, and an overload of read().
// read() leaves the value unchanged when it fails.

std::string word(std::size_t value) { return std::to_string(value); }
std::string word(bool value) { return std::string{value ? kYes : kNo}; }
std::string word(const Extent& value) {
  const std::string height = std::to_string(value.height);
  return value.height == value.width ? height : height + "x" + std::to_string(value.width);
}
std::string word(float value) {
  std::array<char, 32> text{};  // enough for the shortest decimal of any float
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}
template <typename Enumeration>
requires std::is_enum_v<Enumeration> std::string word(Enumeration value) {
  return std::string{kWordsOf<Enumeration>.at(static_cast<std::size_t>(value))};
}

bool read(std::string_view text, std::size_t classes, std::size_t& value) {
  if (text == kClasses) {
    value = classes;
    return true;
  }
  const auto numbers = joined_numbers(text, 'x', kLargestWidth);
  if (!numbers || numbers->size() != 1) return false;
  value = numbers->front();
  return true;
}
bool read(std::string_view text, std::size_t /*classes*/, bool& value) {
  if (text != kYes && text != kNo) return false;
  value = text == kYes;
  return true;
}
bool read(std::string_view text, std::size_t /*classes*/, Extent& value) {
  const auto numbers = joined_numbers(text, 'x', kLargestSide);
  if (!numbers || numbers->size() > 2) return false;
  value = {.height = numbers->front(), .width = numbers->back()};
  return true;
}
bool read(std::string_view text, std::size_t /*classes*/, float& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end && std::isfinite(value);
}
template <typename Enumeration>
requires std::is_enum_v<Enumeration>
bool read(std::string_view text, std::size_t /*classes*/, Enumeration& value) {
  const auto& words = kWordsOf<Enumeration>;
  const auto found = std::ranges::find(words, text);
  if (found == words.end()) return false;
  value = static_cast<Enumeration>(found - words.begin());
  return true;
}

template <typename Value>
std::string what_it_may_be() {
  if constexpr (std::is_same_v<Value, std::size_t>) {
    return "a whole number from 0 to " + std::to_string(kLargestWidth) + " or the word classes";
  } else if constexpr (std::is_same_v<Value, bool>) {
    return "yes or no";
  } else if constexpr (std::is_same_v<Value, Extent>) {
    return "a whole number from 0 to " + std::to_string(kLargestSide) +
           ", or two of them, height and width, as 1x7";
  } else if constexpr (std::is_same_v<Value, float>) {
    return "a number";
  } else {
    return listed({kWordsOf<Value>.begin(), kWordsOf<Value>.end()}, " or ");
  }
}

// ---- layers

// Reads a layer of one kind from its text.
template <typename Kind>
class Reader {
 public:
  Reader(const Kind& kind, const std::string& name, const LayerText& text, std::size_t classes)
      : kind_{kind}, name_{name}, text_{text}, classes_{classes} {}

  [[nodiscard]] Layer read_all() const {
    typename Kind::Type layer{};
    for (const LayerParameter& parameter : text_.parameters) read_one(parameter, layer);
    for_each_field(kind_, [&](const auto& field) {
      if (!field.has_default && count(field.word) == 0) {
        throw error("needs " + std::string{field.word} + "=NUMBER");
      }
    });
    return layer;
  }

 private:
  void read_one(const LayerParameter& parameter, typename Kind::Type& layer) const {
    if (count(parameter.word) > 1) throw error("says " + quoted_start(parameter.word) + " twice");
    bool is_known = false;
    for_each_field(kind_, [&](const auto& field) {
      if (field.word != parameter.word) return;
      is_known = true;
      auto& value = layer.*field.member;
      if (!read(parameter.value, classes_, value)) {
        throw error("says " + parameter.word + "=" + cut(parameter.value) + "; there belongs " +
                    what_it_may_be<std::decay_t<decltype(value)>>());
      }
    });
    if (!is_known) throw error("has no parameter " + quoted_start(parameter.word) + "; " + takes());
  }

  [[nodiscard]] std::ptrdiff_t count(std::string_view parameter) const {
    return std::ranges::count(text_.parameters, parameter, &LayerParameter::word);
  }

  [[nodiscard]] std::string takes() const {
    std::vector<std::string_view> words;
    for_each_field(kind_, [&](const auto& field) { words.push_back(field.word); });
    return "it takes " + (words.empty() ? "none" : listed(words));
  }

  [[nodiscard]] um::Error error(const std::string& complaint) const {
    return um::Error{"layer " + name_ + " (" + text_.kind + ") " + complaint};
  }

  const Kind& kind_;
  const std::string& name_;
  const LayerText& text_;
  std::size_t classes_;
};

template <typename L>
LayerText text_of(const L& layer, const L& twin) {
  constexpr const auto& kKind = kind_of<L>();
  LayerText text{.kind = std::string{kKind.word}, .parameters = {}};
  for_each_field(kKind, [&](const auto& field) {
    const auto& value = layer.*field.member;
    const auto& other = twin.*field.member;
    if (field.has_default && value == L{}.*field.member && value == other) return;
    text.parameters.push_back({.word = std::string{field.word},
                               .value = value == other ? word(value) : std::string{kClasses}});
  });
  return text;
}

}  // namespace

LayerText to_text(const Layer& layer, const Layer& twin) {
  um::expects(layer.index() == twin.index(), "one kind of layer, whatever the number of classes");
  return std::visit([&]<typename L>(const L& own) { return text_of(own, std::get<L>(twin)); },
                    layer);
}

Layer to_layer(const std::string& name, const LayerText& text, std::size_t classes) {
  std::optional<Layer> layer;
  std::vector<std::string_view> kinds;
  for_each_kind([&](const auto& kind) {
    kinds.push_back(kind.word);
    if (kind.word == text.kind) layer = Reader{kind, name, text, classes}.read_all();
  });
  if (layer) return *layer;
  throw um::Error{"layer " + name + " is a " + quoted_start(text.kind) +
                  ", which is no layer; there are " + listed(kinds)};
}

std::string quoted_start(const std::string& word) { return "'" + cut(word) + "'"; }

}  // namespace spillway::nets
