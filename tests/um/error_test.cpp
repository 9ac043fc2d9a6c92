#include "um/error.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::um {
namespace {

TEST(Error, KeepsASentence) {
  EXPECT_STREQ(Error{"cannot open /a/b: 'x  y'"}.what(), "cannot open /a/b: 'x  y'");
  EXPECT_EQ(shortened(" a  b "), " a  b ");
  EXPECT_EQ(shortened(""), "");
}

TEST(Error, ShortensALongNameInTheMiddle) {
  const std::string name = std::string(100'000, 'a') + "/end";
  EXPECT_EQ(shortened("there is no " + name + " here"), "there is no " + std::string(80, 'a') +
                                                            "[...99864 bytes...]" +
                                                            std::string(56, 'a') + "/end here");
  EXPECT_STREQ(OutOfMemory{name}.what(), shortened(name).c_str());
  EXPECT_EQ(shortened(std::string(1000, 'a')), std::string(1000, 'a'));  // a path to copy
  EXPECT_NE(shortened(std::string(1001, 'a')), std::string(1001, 'a'));
}

TEST(Error, ShortensManyWords) {
  std::string words;
  for (int i = 0; i < 50'000; ++i) words += "a ";
  EXPECT_LT(shortened(words).size(), 4000U);
}

TEST(Error, ShowsNoControlCharacters) {
  EXPECT_STREQ(Error{"tensor 'a\x1b[31m\nb\x7f' is"}.what(), "tensor 'a?[31m?b?' is");
}

TEST(Error, DoesNotCutThroughACharacter) {
  std::string name = "a";
  for (int i = 0; i < 1000; ++i) name += "\xc3\xa4";  // 79 bytes of them fit, that is 39 and a half
  const std::string cut = shortened(name);
  EXPECT_EQ(cut.find("[..."), 1U + 2 * 39);
  EXPECT_EQ(cut.substr(cut.size() - 60).front(), '\xc3');
}

}  // namespace
}  // namespace spillway::um
