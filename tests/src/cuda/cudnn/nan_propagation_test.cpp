#include <cudnn.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <optional>

#include "src/cuda/cudnn/convolution_graph.h"

namespace spillway::cuda {
namespace {

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
