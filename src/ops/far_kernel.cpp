#include "src/ops/far_kernel.h"

#include <algorithm>

#include "src/ops/backend.h"
#include "src/ops/update_element.h"
#include "um/error.h"

namespace spillway {
namespace {

template <class Rule, std::size_t kStates>
class FarUpdateKernel final : public FarKernel {
 public:
  FarUpdateKernel(const Rule& rule, const FloatRange& range, std::size_t decayed)
      : rule_{rule}, range_{range}, decayed_{decayed} {}

  [[nodiscard]] FloatRange range() const override { return range_; }

  void run(const StepContext& context, const FloatRange& piece, std::span<float* const> updated,
           const float* gradient) override {
    um::expects(updated.size() == 1 + kStates, "parameters and optimizer state");
    const std::size_t decayed = std::clamp(decayed_, piece.begin, piece.end) - piece.begin;
    UpdateElement<decltype(rule_.rates(context)), kStates> element{.rates = rule_.rates(context),
                                                                   .decayed = decayed,
                                                                   .old_w = updated[0],
                                                                   .dw = gradient,
                                                                   .w = updated[0],
                                                                   .state = {}};
    std::ranges::copy(updated.subspan(1), element.state.begin());
    const std::size_t count = piece.count();
#pragma omp simd
    for (std::size_t i = 0; i < count; ++i) element(i);
  }

 private:
  Rule rule_;
  FloatRange range_;
  std::size_t decayed_;
};

}  // namespace

std::unique_ptr<FarKernel> make_far_kernel(const UpdateParameters& update, const FloatRange& range,
                                           std::size_t decayed) {
  return with_rule(update.options, [&]<class Rule>(const Rule& rule, auto states) {
    return std::unique_ptr<FarKernel>{
        std::make_unique<FarUpdateKernel<Rule, decltype(states)::value>>(rule, range, decayed)};
  });
}

}  // namespace spillway
