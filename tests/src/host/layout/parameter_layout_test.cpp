#include "src/host/layout/parameter_layout.h"

#include <set>

#include "tests/src/host/kernel_runner.h"

namespace spillway::host {
namespace {

using Param = std::tuple<std::size_t, ParameterSpec>;

class ParameterLayout : public testing::TestWithParam<Param> {
 protected:
  const Layout layout_{std::get<0>(GetParam())};
  const ParameterSpec spec_ = std::get<1>(GetParam());
  const std::vector<float> values_ = to_floats(random_values(element_count(spec_), 1));
};

TEST_P(ParameterLayout, ReturnsWhatItWasGiven) {
  Block block{float_bytes(parts_of(layout_, spec_).total)};
  import_block(layout_, spec_, values_, block.floats().data());
  std::vector<float> returned(values_.size());
  export_block(layout_, spec_, block.floats().data(), returned);
  EXPECT_EQ(returned, values_);
  EXPECT_TRUE(block.guard_is_intact());
}

TEST_P(ParameterLayout, HasEachParameterOnceAndZerosBeside) {
  Block block{float_bytes(parts_of(layout_, spec_).total)};
  import_block(layout_, spec_, values_, block.floats().data());
  std::multiset<float> stored;
  for (const float value : block.floats()) {
    if (value != 0) stored.insert(value);
  }
  EXPECT_EQ(stored, std::multiset<float>(values_.begin(), values_.end()));
}

INSTANTIATE_TEST_SUITE_P(
    Specs, ParameterLayout,
    testing::Combine(
        testing::Values(1, 8, 16),
        testing::Values(ParameterSpec{ConvolutionParameters{20, 3, {3, 2}, true}},
                        ParameterSpec{ConvolutionParameters{33, 10, nets::square(1), false}},
                        ParameterSpec{ConvolutionParameters{3, 20, nets::square(3), true}},
                        ParameterSpec{ConvolutionParameters{20, 10, {3, 2}, true, 5}},
                        ParameterSpec{TransposedConvolutionParameters{20, 5, {2, 4}, true}},
                        ParameterSpec{TransposedConvolutionParameters{6, 4, {2, 3}, true, 2}},
                        ParameterSpec{LinearParameters{10, {6, 3, 2}, true}},
                        ParameterSpec{LinearParameters{2, {1, 5, 5}, false}},
                        ParameterSpec{BatchNormParameters{20}},
                        ParameterSpec{BatchNormStatistics{3}})));

// oneDNN's reorder of the padded canonical order must agree with our loops, for every block size.
TEST(ConvolutionWeights, LieWhereOnednnLooksForThem) {
  const ConvolutionParameters spec{.out = 16, .in = 32, .kernel = {3, 2}, .bias = false};
  const std::vector<float> values = to_floats(random_values(element_count(spec), 1));
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  for (const std::size_t size : {1U, 8U, 16U}) {
    const Layout layout{size};
    Block canonical{float_bytes(element_count(spec))};
    std::copy(values.begin(), values.end(), canonical.floats().begin());
    Block theirs{float_bytes(values.size())};
    const auto pd = reorder(engine, float_desc({16, 32, 3, 2}, dnnl::memory::format_tag::oihw),
                            weights_desc(layout, spec));
    Call call(engine, dnnl::reorder(pd),
              {{DNNL_ARG_FROM, pd.src_desc()}, {DNNL_ARG_TO, pd.dst_desc()}});
    call.run({{DNNL_ARG_FROM, canonical.data()}, {DNNL_ARG_TO, theirs.data()}});
    Block ours{float_bytes(values.size())};
    import_block(layout, spec, values, ours.floats().data());
    EXPECT_EQ(ours.bytes(), theirs.bytes()) << size;
  }
}

}  // namespace
}  // namespace spillway::host
