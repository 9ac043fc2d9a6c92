#include "src/cuda/cudnn/device_less_planning.h"

#include <cudnn.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "nets/families/network_catalogue.h"
#include "src/cuda/cudnn/convolution_engines.h"
#include "src/cuda/cudnn/convolution_graph.h"
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

using Choice = std::vector<std::size_t>;

TEST(CountedWorkspace, IsInWholeMebibytesAndAtLeastOne) {
  EXPECT_EQ(counted_workspace(0_B), 1_MiB);
  EXPECT_EQ(counted_workspace(131_B), 1_MiB);
  EXPECT_EQ(counted_workspace(1_MiB), 1_MiB);
  EXPECT_EQ(counted_workspace(1_MiB + 1_B), 2_MiB);
}

// Returns candidates of engine 0, unless `engines` differs.
std::vector<EngineCandidate> candidates(const std::vector<um::Bytes>& workspaces,
                                        const std::vector<std::int64_t>& engines = {}) {
  std::vector<EngineCandidate> all;
  for (std::size_t i = 0; i < workspaces.size(); ++i) {
    all.push_back({.workspace = workspaces[i], .engine = engines.empty() ? 0 : engines[i]});
  }
  return all;
}

TEST(ChooseEngines, PutsTheLeastWorkspaceFirst) {
  EXPECT_EQ(choose_engines(candidates({50_MiB, 10_MiB, 1_MiB}), 1_GiB), (Choice{2, 1, 0}));
}

TEST(ChooseEngines, OfEqualWorkspacesPutsTheFasterFirst) {
  EXPECT_EQ(choose_engines(candidates({2_MiB, 1_MiB, 1_MiB}), 1_GiB), (Choice{1, 2, 0}));
}

TEST(ChooseEngines, LeavesOutWhatTakesTooMuch) {
  const auto three = candidates({50_MiB, 10_MiB, 1_MiB}, {0, 1, 2});
  EXPECT_EQ(choose_engines(three, 10_MiB), (Choice{2, 1}));
  EXPECT_EQ(choose_engines(three, 1_KiB), Choice{});
}

TEST(ChooseEngines, KeepsTheFrontAndTheFourFastestAndThenTenOfOneEngine) {
  // 0 to 3 are the four fastest. Among the others, 9, 11 and 13 need less than all before them. 4
  // to 7 fill up to ten.
  std::vector<um::Bytes> workspaces(16, 9_MiB);
  workspaces[9] = 5_MiB;
  workspaces[10] = 6_MiB;
  workspaces[11] = 4_MiB;
  workspaces[13] = 2_MiB;
  EXPECT_EQ(choose_engines(candidates(workspaces), 1_GiB),
            (Choice{13, 11, 9, 0, 1, 2, 3, 4, 5, 6}));
}

TEST(ChooseEngines, PutsOtherEnginesBeforeFurtherSettings) {
  // Chooses the four fastest of engine 7, the faster one of 8 and of 9, then 7's fifth and so on.
  const std::vector<um::Bytes> workspaces(14, 1_MiB);
  EXPECT_EQ(
      choose_engines(candidates(workspaces, {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 8, 9, 9}), 1_GiB),
      (Choice{0, 1, 2, 3, 4, 5, 6, 7, 10, 12}));
}

TEST(ChooseEngines, KeepsTwelveEnginesAtMost) {
  const std::vector<um::Bytes> workspaces(20, 1_MiB);
  std::vector<std::int64_t> engines(20);
  std::iota(engines.begin(), engines.end(), 0);
  EXPECT_EQ(choose_engines(candidates(workspaces, engines), 1_GiB),
            (Choice{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
}

TEST(ChooseEngines, TakesSlowOnesForWantOfOthersOnly) {
  auto listed = candidates(std::vector<um::Bytes>(12, 1_MiB), {7, 7, 7, 7, 7, 7, 7, 8, 1, 1, 2, 2});
  for (std::size_t i = 8; i < listed.size(); ++i) listed[i].is_slow = true;
  EXPECT_EQ(choose_engines(listed, 1_GiB), (Choice{0, 1, 2, 3, 4, 5, 6, 7, 8, 10}));
}

TEST(ChooseEngines, OfALongFrontKeepsTheLeastAndTheFastest) {
  std::vector<um::Bytes> workspaces;
  for (std::uint64_t i = 0; i < 20; ++i) workspaces.push_back((20 - i) * 1_MiB);
  EXPECT_EQ(choose_engines(candidates(workspaces), 1_GiB),
            (Choice{19, 18, 17, 16, 5, 4, 3, 2, 1, 0}));
}

// The attributes of a pointwise operation, recorded when they are set, because cuDNN does not
// support reading them.
struct ToldPointwise {
  cudnnPointwiseMode_t mode{};
  std::optional<cudnnNanPropagation_t> nans;
};

std::map<cudnnBackendDescriptor_t, ToldPointwise>& told() {
  static std::map<cudnnBackendDescriptor_t, ToldPointwise> all;
  return all;
}

}  // namespace
}  // namespace spillway::cuda

// Replaces cuDNN's function, and calls it.
extern "C" cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                                  cudnnBackendAttributeName_t name,
                                                  cudnnBackendAttributeType_t type,
                                                  std::int64_t count, const void* values) {
  using spillway::cuda::told;
  static auto* const real = reinterpret_cast<decltype(&cudnnBackendSetAttribute)>(
      dlsym(RTLD_NEXT, "cudnnBackendSetAttribute"));
  if (name == CUDNN_ATTR_POINTWISE_MODE) {
    told()[descriptor] = {.mode = *static_cast<const cudnnPointwiseMode_t*>(values), .nans = {}};
  }
  if (name == CUDNN_ATTR_POINTWISE_NAN_PROPAGATION) {
    told()[descriptor].nans = *static_cast<const cudnnNanPropagation_t*>(values);
  }
  return real(descriptor, name, type, count, values);
}

namespace spillway::cuda {
namespace {

TEST(NanPropagation, OfTheFusedReluIsAskedForAndAccepted) {
  if (cudnnGetVersion() < 90800) GTEST_SKIP() << "planning without a device takes cuDNN 9.8";
  std::ifstream file{std::string{SPILLWAY_GOLDEN_FILES} + "/h200_device_properties.json"};
  const CudnnTarget target =
      CudnnTarget::described(std::string{std::istreambuf_iterator{file}, {}});
  const ConvolutionProblem problem{.pass = ConvolutionPass::kForward,
                                   .geometry = {.x = {.batch = 16, .image = {64, 28, 28}},
                                                .y = {.batch = 16, .image = {128, 28, 28}},
                                                .kernel = nets::square(3),
                                                .stride = nets::square(1),
                                                .padding = nets::square(1),
                                                .bias = true},
                                   .relu = true};
  for (const Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kBf16}) {
    told().clear();
    EXPECT_NO_THROW((void)fused_graph(target, precision, problem));
    std::size_t relus = 0;
    for (const auto& [descriptor, pointwise] : told()) {
      if (pointwise.mode != CUDNN_POINTWISE_RELU_FWD) continue;
      ++relus;
      EXPECT_EQ(pointwise.nans, CUDNN_PROPAGATE_NAN);
    }
    EXPECT_EQ(relus, 1);
  }
}

}  // namespace
}  // namespace spillway::cuda
