#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "nets/text/network_file.h"
#include "tests/refusal.h"

namespace spillway::test {

inline const std::string kHeader = "spillway-network 1\nname toy\ninput 3x8x8\nclasses 5\n";
inline const std::string kEnd = "fc linear features=classes\nloss softmax-cross-entropy\n";

/// Returns the message that refuses "toy.net" with this text, its own image and its own classes, or
/// "accepted".
inline std::string refused(const std::string& text) {
  return refusal([&] {
    std::istringstream stream{text};
    const nets::CatalogueEntry entry = nets::read_network(stream, "toy.net");
    return entry.build(entry.image, entry.classes);
  });
}

/// Refuses layers after a header of four lines.
inline std::string refused_layers(const std::string& layers) { return refused(kHeader + layers); }

/// Refuses one layer on line 5, followed by correct layers.
inline std::string refused_layer(const std::string& layer) {
  return refused_layers(layer + "\n" + kEnd);
}

/// A refused text, the beginning of the message after "toy.net", and another part of it.
struct Refusal {
  std::string text;
  std::string place;
  std::string cause;
};

inline void expect_refusals(const std::vector<Refusal>& refusals,
                            std::string (*refuse)(const std::string&) = refused_layer) {
  for (const auto& [text, place, cause] : refusals) {
    const std::string sentence = refuse(text);
    EXPECT_TRUE(sentence.starts_with("toy.net" + place)) << sentence;
    EXPECT_NE(sentence.find(cause), std::string::npos) << "no '" << cause << "' in: " << sentence;
  }
}

}  // namespace spillway::test
