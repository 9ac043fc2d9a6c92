#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "nets/families/network_catalogue.h"
#include "tests/nets/layers_of.h"
#include "tests/refusal.h"

namespace spillway::nets {
namespace {

TEST(AuxiliaryHeads, GivesThePapersHeadsOnRequest) {
  const Network googlenet = build_network("googlenet", {.auxiliary_heads = true});
  EXPECT_EQ(count<SoftmaxCrossEntropy>(googlenet), 3);
  EXPECT_EQ(count_parameters(googlenet), 13'004'888U);  // torchvision's
  EXPECT_EQ(to_string(find(googlenet, "aux1.pool").output), "512x4x4");
  EXPECT_EQ(std::get<SoftmaxCrossEntropy>(find(googlenet, "aux2.loss").layer).weight, 0.3F);
  const Network inception = build_network("inception-v3", {.auxiliary_heads = true});
  EXPECT_EQ(count<SoftmaxCrossEntropy>(inception), 2);
  EXPECT_EQ(count_parameters(inception), 27'161'264U);  // torchvision's
  EXPECT_EQ(std::get<SoftmaxCrossEntropy>(find(inception, "aux.loss").layer).weight, 0.4F);
  EXPECT_EQ(test::refusal([] { return build_network("vgg16", {.auxiliary_heads = true}); }),
            "network vgg16 has no auxiliary heads; googlenet and inception-v3 have");
}

TEST(AuxiliaryHeads, WithoutTheHeadsANetworkIsTheOneThatNeverHadThem) {
  const Network with = build_network("googlenet", {.auxiliary_heads = true});
  const Network rest = without_auxiliary_heads(with);
  const Network plain = build_network("googlenet");
  ASSERT_EQ(rest.nodes.size(), plain.nodes.size());
  for (std::size_t i = 0; i < rest.nodes.size(); ++i) {
    EXPECT_EQ(rest.nodes[i].name, plain.nodes[i].name);
    EXPECT_EQ(rest.nodes[i].inputs, plain.nodes[i].inputs);
    EXPECT_EQ(rest.nodes[i].output, plain.nodes[i].output);
  }
}

}  // namespace
}  // namespace spillway::nets
