#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/cli/flags/suggest_name.h"

namespace spillway::cli {
namespace {

const std::vector<std::string> kNames{"lenet", "resnet18", "resnet50", "inception-v3", "vdnn+"};

TEST(NearestName, IgnoresCaseAndPunctuation) {
  EXPECT_EQ(nearest_name("ResNet-50", kNames), "resnet50");
  EXPECT_EQ(nearest_name("Inception_V3", kNames), "inception-v3");
  EXPECT_EQ(nearest_name("vdnn", kNames), "vdnn+");
}

TEST(NearestName, ForgivesALetterInFour) {
  EXPECT_EQ(nearest_name("lnet", kNames), "lenet");   // one is missing
  EXPECT_EQ(nearest_name("lneet", kNames), "lenet");  // two are exchanged
  EXPECT_EQ(nearest_name("resnut5", kNames), std::nullopt);
  EXPECT_EQ(nearest_name("resnet5", kNames), "resnet50");
  EXPECT_EQ(nearest_name("incaption-v4", kNames), "inception-v3");
}

TEST(NearestName, IsNothingWhereNoNameIsClose) {
  for (const std::string wrong : {"", "--", "perceptron", "le"}) {
    EXPECT_EQ(nearest_name(wrong, kNames), std::nullopt) << wrong;
  }
  EXPECT_EQ(nearest_name(std::string(100'000, 'x'), kNames), std::nullopt);
  EXPECT_EQ(nearest_name("lenet", {}), std::nullopt);
}

TEST(NearestName, IsAskedForInOneSentence) {
  EXPECT_EQ(suggest_name("network", "Lenet", kNames, "there are many"),
            "no network 'Lenet'; did you mean 'lenet'?");
  EXPECT_EQ(suggest_name("network", "magic", kNames, "there are many"), "there are many");
}

}  // namespace
}  // namespace spillway::cli
