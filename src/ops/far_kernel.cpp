#include "src/ops/far_kernel.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "src/ops/backend.h"
#include "src/ops/update_elements.h"
#include "um/error.h"

namespace spillway {
namespace {

template <class Element>
void for_all(Element element, std::size_t count) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) element(i);
}

class FarUpdateKernel final : public FarKernel {
 public:
  FarUpdateKernel(Operation update, const FloatRange& range, std::size_t decayed)
      : update_{std::move(update)}, range_{range}, decayed_{decayed} {}

  [[nodiscard]] FloatRange range() const override { return range_; }

  void run(const StepContext& context, const FloatRange& piece, std::span<float* const> updated,
           const float* gradient) override {
    const std::size_t decayed = std::clamp(decayed_, piece.begin, piece.end) - piece.begin;
    if (const auto* const sgd = std::get_if<SgdUpdate>(&update_)) {
      um::expects(updated.size() == 2, "parameters and momentum");
      for_all(SgdElement{.options = sgd->options,
                         .rate = context.learning_rate,
                         .decayed = decayed,
                         .old_w = updated[0],
                         .old_v = updated[1],
                         .dw = gradient,
                         .w = updated[0],
                         .v = updated[1]},
              piece.count());
      return;
    }
    if (const auto* const rmsprop = std::get_if<RmspropUpdate>(&update_)) {
      um::expects(updated.size() == rmsprop->write_count(), "what the update writes");
      float* const velocity = rmsprop->has_velocity() ? updated[2] : nullptr;
      for_all(RmspropElement{.rates = rmsprop_rates(rmsprop->options, context),
                             .decayed = decayed,
                             .old_w = updated[0],
                             .old_s = updated[1],
                             .old_v = velocity,
                             .dw = gradient,
                             .w = updated[0],
                             .s = updated[1],
                             .v = velocity},
              piece.count());
      return;
    }
    um::expects(updated.size() == 3, "parameters and two moments");
    for_all(AdamElement{.rates = adam_rates(std::get<AdamUpdate>(update_).options, context),
                        .decayed = decayed,
                        .old_w = updated[0],
                        .old_m = updated[1],
                        .old_v = updated[2],
                        .dw = gradient,
                        .w = updated[0],
                        .m = updated[1],
                        .v = updated[2]},
            piece.count());
  }

 private:
  Operation update_;
  FloatRange range_;
  std::size_t decayed_;
};

}  // namespace

std::unique_ptr<FarKernel> make_far_kernel(const Operation& update, const FloatRange& range,
                                           std::size_t decayed) {
  return std::make_unique<FarUpdateKernel>(update, range, decayed);
}

}  // namespace spillway
