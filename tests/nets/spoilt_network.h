#pragma once

#include <rapidcheck.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "nets/families/network_catalogue.h"
#include "nets/text/network_file.h"

namespace spillway::test {

/// Returns correct network files: small networks of each family.
inline const std::vector<std::string>& good_network_files() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> texts;
    for (const char* name : {"lenet", "vgg11", "resnet18", "resnet:1,1,1,1", "googlenet"}) {
      const nets::CatalogueEntry entry = nets::find_network(name);
      const nets::Shape image{.channels = entry.image.channels, .height = 32, .width = 32};
      texts.push_back(nets::to_text(entry, {.image = image, .classes = 10}));
    }
    return texts;
  }();
  return all;
}

/// Draws an element of `all` by rapidcheck. Requires: `all` is not empty.
template <typename Container>
auto& any_of(Container& all) {
  return all[*rc::gen::inRange<std::size_t>(0, all.size())];
}

using Words = std::vector<std::string>;

inline std::string strange_word() {
  return *rc::gen::element<std::string>(
      "", "x", "image", "loss", "add", "concat", "relu", "flatten", "pool", "classes", "channels=4",
      "features=classes", "kernel=1x7", "kernel=0", "stride=16384", "padding=16384",
      "channels=1048576", "features=1048576", "channels=-1", "kernel=16385x1", "epsilon=1e-30",
      "probability=nan", "=", "a=", "=b", "#", "rounds-up=yes", "kind=average", "3x0x1", "1",
      "18446744073709551616", "dropout", "batch-norm", "global-average-pool", "local-response-norm",
      "\x80", std::string(300, 'y'));
}

inline void spoil_words(Words& words, const std::vector<Words>& lines) {
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      if (!words.empty()) any_of(words) = strange_word();
      break;
    case 1:
      words.push_back(strange_word());
      break;
    case 2:
      if (!words.empty()) words.erase(words.begin() + *rc::gen::inRange<int>(0, int(words.size())));
      break;
    default: {
      const Words& other = any_of(lines);
      if (!words.empty() && !other.empty()) any_of(words) = any_of(other);
    }
  }
}

inline void spoil_lines(std::vector<Words>& lines) {
  switch (*rc::gen::inRange(0, 5)) {
    case 0:
      std::swap(any_of(lines), any_of(lines));
      break;
    case 1:
      any_of(lines) = Words(any_of(lines));
      break;
    case 2:
      any_of(lines).clear();
      break;
    default:
      spoil_words(any_of(lines), lines);
  }
}

/// Returns a correct network file, damaged in words and lines, and sometimes in bytes.
inline std::string spoilt_network_file() {
  std::vector<Words> lines;
  std::istringstream good{any_of(good_network_files())};
  for (std::string line; std::getline(good, line);) {
    std::istringstream stream{line.substr(0, line.find('#'))};
    Words& words = lines.emplace_back();
    for (std::string word; stream >> word;) words.push_back(word);
  }
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) spoil_lines(lines);
  std::string text;
  for (const Words& words : lines) {
    for (const std::string& word : words) text += word + " ";
    text += "\n";
  }
  if (*rc::gen::inRange(0, 8) == 0) text.resize(*rc::gen::inRange<std::size_t>(0, text.size()));
  for (int i = *rc::gen::element(0, 0, 0, 0, 1, 3); i > 0 && !text.empty(); --i) {
    any_of(text) = *rc::gen::arbitrary<char>();
  }
  return text;
}

}  // namespace spillway::test
