#include "nets/families/fcn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "nets/families/network_catalogue.h"
#include "tests/nets/layers_of.h"

namespace spillway::nets {
namespace {

// 500 + 198 pixels padded: 349, 175, 88, 44 and 22 after the poolings, 16 scores, (16 - 1) 32 + 64
// = 544 upsampled; an odd image takes the same way.
TEST(Fcn, ScoresEachPixelOfAnImageOfAnySize) {
  const Network coarse = build_network("fcn32s");
  EXPECT_EQ(shape_of(coarse, "pool5"), "512x22x22");
  EXPECT_EQ(shape_of(coarse, "score_fr"), "21x16x16");
  EXPECT_EQ(shape_of(coarse, "upscore"), "21x544x544");
  EXPECT_EQ(coarse.labels(), square(500));
  EXPECT_EQ(shape_of(build_network("fcn8s"), "fuse_pool3"), "21x70x70");
  for (const Shape& image : {Shape{3, 1, 1}, Shape{3, 33, 58}, Shape{3, 375, 500}}) {
    for (const char* name : {"fcn8s", "fcn32s"}) {
      const Network network = build_network(name, {.image = image, .classes = 4});
      EXPECT_EQ(network.nodes.back().output, (Shape{4, image.height, image.width})) << name;
    }
  }
}

}  // namespace
}  // namespace spillway::nets
