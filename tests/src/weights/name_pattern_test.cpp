#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "src/io/weights/name_table.h"
#include "src/io/weights/tensor_places.h"

namespace spillway {
namespace {

using Parts = std::vector<std::string>;

TEST(NamePattern, FindsWhatStandsForItsWildcards) {
  EXPECT_EQ(match_name("h.#.ln_#.*", "h.10.ln_2.weight"), (Parts{"10", "2", "weight"}));
  EXPECT_EQ(match_name("wte.weight", "wte.weight"), Parts{});
  EXPECT_EQ(match_name("*.#", "a.b.3"), (Parts{"a.b", "3"}));
}

TEST(NamePattern, IsNotThatOfOtherNames) {
  for (const char* const name : {"h.x.ln_1.weight", "h..ln_1.weight", "h.1.ln_1.", "h.1.ln_1", "",
                                 "transformer.h.1.ln_1.weight", "h.1a.ln_1.weight"}) {
    EXPECT_EQ(match_name("h.#.ln_#.*", name), std::nullopt) << name;
  }
  EXPECT_EQ(match_name("wte", "wte2"), std::nullopt);
  EXPECT_EQ(match_name("*", std::string(257, 'a')), std::nullopt);
}

TEST(NamePattern, IsFilledInOrder) {
  EXPECT_EQ(fill_name("layer.#.*", Parts{"3", "bias", "unused"}), "layer.3.bias");
}

TEST(NamePattern, HasANameForEachWordOfItsList) {
  EXPECT_EQ(each_word_of("a.{q,key}_proj.*"), (Parts{"a.q_proj.*", "a.key_proj.*"}));
  EXPECT_EQ(each_word_of("a.*"), Parts{"a.*"});
}

TEST(Transposed, RowsAreColumns) {
  const std::vector<float> from{1, 2, 3, 4, 5, 6};  // (2, 3)
  std::vector<float> to(6);
  transpose(from, 3, to);
  EXPECT_EQ(to, (std::vector<float>{1, 4, 2, 5, 3, 6}));
}

}  // namespace
}  // namespace spillway
