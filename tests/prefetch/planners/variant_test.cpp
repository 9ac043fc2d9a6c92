// Variants of tasks, chosen with the plan: a forward task saves all, some or nothing.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "prefetch/files/json.h"
#include "prefetch/files/trace.h"
#include "prefetch/planners/variant_search.h"
#include "tests/prefetch/planned.h"
#include "tests/prefetch/toy_files.h"

namespace spillway::prefetch {
namespace {

using namespace testing;
using namespace um::literals;
using namespace std::chrono_literals;
using um::Nanoseconds;

// A step of some layers in variants, with 4 GB/s to far memory.
class Layers {
 public:
  explicit Layers(int layers) : Layers{layers, 4e9} {}
  Layers(int layers, double rate)
      : trace_{read_trace(JsonFile{varied_trace(layers).dump(), "t"})},
        link_{.offload = um::Bandwidth{rate}, .prefetch = um::Bandwidth{rate}},
        profile_{trace_profile(trace_, link_)},
        page_{choose_page(trace_.graph)} {}

  [[nodiscard]] ChosenStep step_of(const VariantChoice& choice) const {
    TimedStep step = trace_.varied.with(choice);
    Profile profile{.source = "toy",
                    .graph = fingerprint(step.graph),
                    .durations = std::move(step.durations),
                    .link = link_};
    return {.graph = std::make_unique<const TaskGraph>(std::move(step.graph)),
            .profile = std::move(profile)};
  }

  // Returns the problem of the first variants.
  [[nodiscard]] Problem problem(um::Bytes budget) const {
    return {.graph = trace_.graph, .profile = profile_, .budget = budget, .page = page_};
  }

  [[nodiscard]] VariedAnswer planned(const Problem& like) const {
    return plan_varied(
        find_planner("joint"), varied(),
        [this](const VariantChoice& choice) { return step_of(choice); }, like);
  }

  // Returns the makespan of joint's plan in these variants; max() if there is none.
  [[nodiscard]] Nanoseconds makespan(const VariantChoice& choice, const Problem& like) const {
    const ChosenStep step = step_of(choice);
    const auto answer = ask(find_planner("joint"), like.with(*step.graph, step.profile));
    const auto* const found = std::get_if<Answer>(&answer);
    return found != nullptr ? found->timeline.makespan() : Nanoseconds::max();
  }

  // Returns the shortest makespan of all choices.
  [[nodiscard]] Nanoseconds best(const Problem& like) const {
    Nanoseconds shortest = Nanoseconds::max();
    VariantChoice choice = varied().first();
    for (bool is_last = false; !is_last;) {
      shortest = std::min(shortest, makespan(choice, like));
      std::size_t g = 0;
      while (g < choice.size() && ++choice[g] == 3) choice[g++] = 0;
      is_last = g == choice.size();
    }
    return shortest;
  }

  [[nodiscard]] NearNeed need(const VariantChoice& choice) const {
    const ChosenStep step = step_of(choice);
    return near_need(*step.graph, BlockSizes{*step.graph, page_});
  }

  [[nodiscard]] const VariedStep& varied() const { return trace_.varied; }

 private:
  Trace trace_;
  LinkProfile link_;
  Profile profile_;
  um::Bytes page_;
};

Nanoseconds makespan_of(const VariedAnswer& answer) {
  return std::get<Answer>(answer.answer).timeline.makespan();
}

// 4 layers of 10 ms forward and 20 ms backward, a load and a loss of 1 ms.
TEST(Variants, AreTheFastestWhereThereIsRoom) {
  const Layers layers{4};
  const VariedAnswer answer = layers.planned(layers.problem(1_GiB));
  EXPECT_EQ(answer.choice, layers.varied().fastest());
  EXPECT_EQ(makespan_of(answer), 122ms);
}

TEST(Variants, AreThoseThatFitWhereNoOthersDo) {
  const Layers layers{4};
  const VariantChoice none(4, 2);
  Problem given = layers.problem(layers.need(none).resident);
  given.may_move = false;
  EXPECT_EQ(layers.makespan(layers.varied().first(), given), Nanoseconds::max());
  const VariedAnswer answer = layers.planned(given);
  EXPECT_EQ(answer.choice, none);
  EXPECT_EQ(makespan_of(answer), 162ms);
}

TEST(Variants, AreTheLeanestInARefusal) {
  const Layers layers{4};
  const um::Bytes smallest = layers.need(VariantChoice(4, 2)).smallest;
  EXPECT_LT(smallest, layers.need(layers.varied().first()).smallest);
  const VariedAnswer answer = layers.planned(layers.problem(smallest - um::Bytes{1}));
  EXPECT_EQ(answer.choice, VariantChoice(4, 2));
  EXPECT_EQ(std::get<Infeasible>(answer.answer).smallest_budget, smallest);
  EXPECT_TRUE(std::holds_alternative<Answer>(layers.planned(layers.problem(smallest)).answer));
}

TEST(Variants, AreTheBestOfAllIfThereAreFew) {
  const Layers layers{3};
  for (const um::Bytes budget : {40_MiB, 100_MiB, 140_MiB, 200_MiB}) {
    const Problem given = layers.problem(budget);
    EXPECT_EQ(makespan_of(layers.planned(given)), layers.best(given)) << um::to_string(budget);
  }
}

// There are 81 and 243 choices. Not all are planned.
TEST(Variants, AreNearlyTheBestOfMany) {
  for (const auto& [count, budget] : {std::pair{4, 100_MiB}, std::pair{5, 60_MiB}}) {
    const Layers layers{count};
    const Problem given = layers.problem(budget);
    EXPECT_LE(um::to_double(makespan_of(layers.planned(given))),
              1.01 * um::to_double(layers.best(given)))
        << um::to_string(budget);
  }
}

RC_GTEST_PROP(Variants, AreNeverLongerThanTheFirst, ()) {
  const Layers layers{*rc::gen::inRange(1, 6), 1e9 * *rc::gen::inRange(1, 12)};
  const um::Bytes smallest = layers.need(layers.varied().leanest(2_MiB)).smallest;
  const um::Bytes resident = layers.need(layers.varied().first()).resident;
  const um::Bytes more{*rc::gen::inRange<std::uint64_t>(0, (resident - smallest).count() + 1)};
  Problem given = layers.problem(smallest + more);
  given.whole_blocks = *rc::gen::arbitrary<bool>();
  given.may_reorder = false;
  const VariedAnswer answer = layers.planned(given);
  RC_ASSERT(reason_against(*answer.step.graph, std::get<Answer>(answer.answer).plan).empty());
  RC_ASSERT(makespan_of(answer) <= layers.makespan(layers.varied().first(), given));
  RC_ASSERT(layers.planned(given).choice == answer.choice);
}

}  // namespace
}  // namespace spillway::prefetch
