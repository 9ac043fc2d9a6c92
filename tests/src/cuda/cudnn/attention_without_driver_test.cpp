#include <cudnn.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "nets/families/network_catalogue.h"
#include "src/cuda/cudnn/device_less_planning.h"

namespace spillway::cuda {
namespace {

TEST(AttentionWithoutADriver, IsOfOurKernelsAlone) {
  if (cudnnGetVersion() < 90800) GTEST_SKIP() << "planning without a device takes cuDNN 9.8";
  if (dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr) GTEST_SKIP() << "has a driver";
  std::ifstream file{std::string{SPILLWAY_GOLDEN_FILES} + "/h200_device_properties.json"};
  const std::string h200{std::istreambuf_iterator<char>{file}, {}};
  const EngineRules rules{.precision = Precision::kBf16, .max_workspace = um::Bytes{1U << 30U}};
  const auto planned = plan_attention(h200, rules, nets::build_network("gpt:2,4,64,48"), 2);
  ASSERT_EQ(planned.size(), 2);
  EXPECT_EQ(to_line(planned[0]),
            "h.0.attn forward default:0 (cuDNN lists no engine for attention's forward pass, 2 x "
            "48 tokens, 4 heads of 16 within 1.00 GiB; without a driver it lists none)");
  EXPECT_EQ(to_line(planned[1]),
            "h.0.attn backward default:1536 (cuDNN lists no engine for attention's gradient, 2 x "
            "48 tokens, 4 heads of 16 within 1.00 GiB; without a driver it lists none)");
}

}  // namespace
}  // namespace spillway::cuda
