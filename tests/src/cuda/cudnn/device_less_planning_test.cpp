#include "src/cuda/cudnn/device_less_planning.h"

#include <cudnn.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <tuple>

#include "nets/families/network_catalogue.h"
#include "src/cuda/cudnn/convolution_engines.h"
#include "tools/golden/cudnn_listing.h"

namespace spillway::cuda {
namespace {

using namespace um::literals;

std::string golden_path(const std::string& name) {
  return std::string{SPILLWAY_GOLDEN_FILES} + "/" + name;
}

std::string described(const std::string& device) {
  std::ifstream file{golden_path(device + "_device_properties.json")};
  return {std::istreambuf_iterator<char>{file}, {}};
}

std::string h200() { return described("h200"); }

ConvolutionProblem problem(ConvolutionPass pass, bool bias, bool relu) {
  return {.pass = pass,
          .geometry = {.x = {.batch = 16, .image = {64, 28, 28}},
                       .y = {.batch = 16, .image = {128, 28, 28}},
                       .kernel = nets::square(3),
                       .stride = nets::square(1),
                       .padding = nets::square(1),
                       .bias = bias},
          .relu = relu};
}

class DeviceLessPlanning : public testing::Test {
 protected:
  void SetUp() override {
    if (cudnnGetVersion() < 90800) GTEST_SKIP() << "planning without a device takes cuDNN 9.8";
  }
  static ConvolutionEngines engines(const EngineRules& rules) {
    return {CudnnTarget::described(h200()), rules};
  }
  static constexpr EngineRules kRules{.precision = Precision::kTf32, .max_workspace = 1_GiB};
};

// A non-trivial geometry for the tests below.
constexpr ConvolutionPass kPasses[] = {ConvolutionPass::kForward, ConvolutionPass::kBackwardData,
                                       ConvolutionPass::kBackwardWeights};

TEST_F(DeviceLessPlanning, OffersTheLeastWorkspaceFirstAndKeepsToTheLimit) {
  for (const Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kBf16}) {
    ConvolutionEngines all = engines({.precision = precision, .max_workspace = 8_MiB});
    for (const ConvolutionPass pass : kPasses) {
      const OfferedEngines& offered = all.offered(problem(pass, false, false));
      ASSERT_FALSE(offered.empty());
      for (const auto& engine : offered) {
        EXPECT_GE(engine->workspace(), offered.front()->workspace());
        EXPECT_LE(engine->workspace(), 8_MiB);
      }
    }
  }
}

// Two groups, small groups as in ResNeXt, depthwise layers with padding, dilation, and FCN's
// upsampling: each pass has engines, also deterministic ones.
TEST_F(DeviceLessPlanning, OffersEnginesForGroupsDilationAndLargeKernels) {
  const auto geometry = [](std::size_t channels, std::size_t side, nets::Extent kernel,
                           std::size_t stride, std::size_t dilation, std::size_t groups) {
    const std::size_t padding = stride == 1 ? dilation : 0;
    const std::size_t y = (side + 2 * padding - dilation * (kernel.width - 1) - 1) / stride + 1;
    return ConvolutionGeometry{.x = {2, {channels, side, side}},
                               .y = {2, {channels, y, y}},
                               .kernel = kernel,
                               .stride = nets::square(stride),
                               .padding = nets::square(padding),
                               .bias = false,
                               .dilation = nets::square(dilation),
                               .groups = groups};
  };
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    ConvolutionEngines all =
        engines({.precision = precision, .deterministic = true, .max_workspace = 1_GiB});
    for (const ConvolutionPass pass : kPasses) {
      for (const ConvolutionGeometry& g :
           {geometry(64, 14, nets::square(3), 1, 1, 2), geometry(64, 14, nets::square(3), 1, 1, 16),
            geometry(20, 9, nets::square(3), 1, 1, 20), geometry(32, 13, nets::square(3), 1, 2, 1),
            geometry(21, 128, nets::square(64), 32, 1, 1)}) {
        const ConvolutionProblem problem{.pass = pass, .geometry = g};
        EXPECT_NO_THROW((void)all.offered(problem)) << describe(problem);
      }
    }
  }
}

TEST_F(DeviceLessPlanning, RefusesGroupsThatPaddingWouldCut) {
  ConvolutionProblem cut = problem(ConvolutionPass::kForward, false, false);
  cut.geometry.x.image.channels = 12;
  cut.geometry.y.image.channels = 6;
  cut.geometry.groups = 3;
  ConvolutionEngines none = engines(kRules);
  EXPECT_THROW((void)none.offered(cut), um::Error);
}

TEST_F(DeviceLessPlanning, SaysWhenTheLimitIsTooLow) {
  ConvolutionEngines none = engines({.precision = Precision::kTf32, .max_workspace = 1_KiB});
  EXPECT_THROW((void)none.offered(problem(ConvolutionPass::kForward, false, false)), um::Error);
}

TEST_F(DeviceLessPlanning, GivesTheSameNamesAgainAndFindsEnginesByThem) {
  ConvolutionEngines first = engines(kRules);
  ConvolutionEngines second = engines(kRules);
  const ConvolutionProblem forward = problem(ConvolutionPass::kForward, true, true);
  for (const auto& engine : first.offered(forward)) {
    EXPECT_EQ(second.named(forward, engine->name()).workspace(), engine->workspace());
    EXPECT_EQ(&first.named(forward, engine->name()), engine.get());
  }
}

TEST_F(DeviceLessPlanning, FusesBiasAndReluInEachPrecision) {
  for (const Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kBf16}) {
    for (const bool relu : {false, true}) {
      ConvolutionEngines all = engines({.precision = precision, .max_workspace = 1_GiB});
      const auto& offered = all.offered(problem(ConvolutionPass::kForward, true, relu));
      EXPECT_TRUE(std::any_of(offered.begin(), offered.end(),
                              [](const auto& engine) { return engine->is_fused(); }));
    }
  }
}

TEST_F(DeviceLessPlanning, LeavesTensorCoresOutForFp32Only) {
  const CudnnTarget target = CudnnTarget::described(h200());
  const CudnnGraph graph =
      plain_graph(target, Precision::kFp32, problem(ConvolutionPass::kForward, false, false));
  std::size_t in_fp32 = 0;
  std::size_t on_tensor_cores = 0;
  for (const EngineConfig& engine : engine_configs(target, graph)) {
    if (engine.uses_tensor_cores) {
      EXPECT_FALSE(is_permitted(engine, {.precision = Precision::kFp32}));
      EXPECT_TRUE(is_permitted(engine, {.precision = Precision::kTf32}));
      ++on_tensor_cores;
    }
    in_fp32 += is_permitted(engine, {.precision = Precision::kFp32}) ? 1 : 0;
  }
  EXPECT_GT(in_fp32, 0);
  EXPECT_GT(on_tensor_cores, 0);
}

TEST_F(DeviceLessPlanning, LeavesOutWhatIsNotDeterministicOnlyWhenAsked) {
  const CudnnTarget target = CudnnTarget::described(h200());
  const CudnnGraph graph = plain_graph(target, Precision::kTf32,
                                       problem(ConvolutionPass::kBackwardWeights, false, false));
  std::size_t others = 0;
  for (const EngineConfig& engine : engine_configs(target, graph)) {
    if (engine.is_deterministic || engine.loses_precision) continue;
    ++others;
    EXPECT_FALSE(is_permitted(engine, {.precision = Precision::kTf32, .deterministic = true}));
    EXPECT_TRUE(is_permitted(engine, {.precision = Precision::kTf32, .deterministic = false}));
  }
  EXPECT_GT(others, 0);
}

// Engine 47 adds up in its output, engines 33 and 49 have a workspace for the parts.
TEST_F(DeviceLessPlanning, LeavesOutWhatAddsUpInBfloat16) {
  if (cudnnGetVersion() != 91900) GTEST_SKIP() << "these are engines of cuDNN 9.19";
  const CudnnTarget target = CudnnTarget::described(h200());
  const ConvolutionProblem small{.pass = ConvolutionPass::kBackwardWeights,
                                 .geometry = {.x = {.batch = 4, .image = {32, 14, 14}},
                                              .y = {.batch = 4, .image = {64, 7, 7}},
                                              .kernel = nets::square(1),
                                              .stride = nets::square(2),
                                              .padding = nets::square(0)}};
  ConvolutionProblem in_groups = problem(ConvolutionPass::kBackwardWeights, false, false);
  in_groups.geometry.x = in_groups.geometry.y = {.batch = 2, .image = {24, 9, 7}};
  in_groups.geometry.groups = 24;
  for (const ConvolutionProblem& problem : {small, in_groups}) {
    const CudnnGraph graph = plain_graph(target, Precision::kBf16, problem);
    std::size_t adding = 0;
    std::size_t splitting = 0;
    for (const EngineConfig& engine : engine_configs(target, graph)) {
      const bool splits = engine.name.find("_k0=") != std::string::npos &&
                          engine.name.find("_k0=1_") == std::string::npos;
      EXPECT_EQ(engine.adds_up_in_output, splits && engine.engine == 47) << engine.name;
      adding += engine.adds_up_in_output ? 1 : 0;
      splitting += splits ? 1 : 0;
      if (!engine.adds_up_in_output) continue;
      EXPECT_FALSE(is_permitted(engine, {.precision = Precision::kBf16})) << engine.name;
    }
    EXPECT_GT(adding, 0);
    if (problem.geometry.groups > 1) {
      EXPECT_GT(splitting, adding);
    }
  }
}

// A configuration states the kernel's workspace, its plan how much it needs.
TEST_F(DeviceLessPlanning, ConfigurationsTellTheWorkspaceOfTheirPlans) {
  const CudnnTarget target = CudnnTarget::described(h200());
  for (const ConvolutionPass pass : kPasses) {
    const CudnnGraph graph = plain_graph(target, Precision::kTf32, problem(pass, false, false));
    const std::vector<EngineConfig> configs = engine_configs(target, graph);
    EXPECT_GT(configs.size(), 4);
    for (const EngineConfig& engine : configs) {
      EXPECT_EQ(EnginePlan(target, engine.config).workspace(), engine.workspace) << engine.name;
    }
  }
}

// Number of engines that cuDNN lists and the rules permit, and of offered ones.
struct Offered {
  std::size_t listed = 0;
  std::size_t offered = 0;
};

Offered count(const CudnnTarget& target, const EngineRules& rules,
              const PlannedConvolution& planned) {
  const ConvolutionProblem& problem = planned.problem;
  Offered result{.offered = planned.algorithms.size()};
  const auto add = [&](const CudnnGraph& graph) {
    for (const EngineConfig& engine : engine_configs(target, graph)) {
      const bool fits = counted_workspace(engine.workspace) <= rules.max_workspace;
      result.listed += fits && is_permitted(engine, rules) ? 1 : 0;
    }
  };
  if (problem.pass == ConvolutionPass::kForward && problem.geometry.bias) {
    add(fused_graph(target, rules.precision, problem));
  }
  add(plain_graph(target, rules.precision, problem));
  return result;
}

class EachDevice : public DeviceLessPlanning,
                   public testing::WithParamInterface<std::tuple<std::string, std::string>> {};

// (The limit also covers the kernel's own scratch, which is not counted here: no engine of these is
// that close to the limit.)
TEST_P(EachDevice, OffersTenWaysWhereverAsManyAreListed) {
  const auto& [device, net] = GetParam();
  const std::string properties = described(device);
  const CudnnTarget target = CudnnTarget::described(properties);
  for (const Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kBf16}) {
    const EngineRules rules{.precision = precision, .max_workspace = 1_GiB};
    const auto all = plan_convolutions(properties, rules, nets::build_network(net), 64);
    for (const PlannedConvolution& planned : all) {
      const Offered ways = count(target, rules, planned);
      EXPECT_GE(ways.offered, std::min<std::size_t>(ways.listed, 10)) << to_line(planned);
      EXPECT_LE(ways.offered, 12) << to_line(planned);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, EachDevice,
                         testing::Values(std::tuple{"a100", "vgg16"},
                                         std::tuple{"h200", "resnet50"}));

TEST_F(DeviceLessPlanning, RefusesADescriptionThatIsNone) {
  EXPECT_THROW((void)CudnnTarget::described("{}"), CudnnError);
}

TEST_F(DeviceLessPlanning, OffersOnAnH200WhatTheGoldenFileSays) {
  std::ifstream file{golden_path("cudnn_h200.txt")};
  std::vector<std::string> golden;
  for (std::string line; std::getline(file, line);) golden.push_back(line);
  ASSERT_FALSE(golden.empty());
  if (golden.front() != golden::cudnn_version_line()) {
    GTEST_SKIP() << "golden/cudnn_h200.txt is of " << golden.front() << ", installed is "
                 << golden::cudnn_version_line()
                 << ": write it anew with write_cudnn_listing to compare";
  }
  const std::vector<std::string> now = golden::cudnn_listing(h200());
  ASSERT_EQ(now.size(), golden.size());
  for (std::size_t i = 0; i < now.size(); ++i) EXPECT_EQ(now[i], golden[i]);
}

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
