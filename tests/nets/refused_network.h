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

/// The sentence with which "toy.net" of this text is refused, read and built with its own image and
/// classes; "accepted" when it is not.
inline std::string refused(const std::string& text) {
  return refusal([&] {
    std::istringstream stream{text};
    const nets::CatalogueEntry entry = nets::read_network(stream, "toy.net");
    return entry.build(entry.image, entry.classes);
  });
}

/// Of layers behind a header of four lines.
inline std::string refused_layers(const std::string& layers) { return refused(kHeader + layers); }

/// Of one layer on line 5, before others that are right.
inline std::string refused_layer(const std::string& layer) {
  return refused_layers(layer + "\n" + kEnd);
}

/// What is refused, the beginning of the sentence behind "toy.net", and what else it says.
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
