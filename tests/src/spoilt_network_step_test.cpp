// A network that a user wrote may be strange: whatever the reader takes becomes steps that are
// right, or is refused in one line.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <sstream>

#include "nets/text/network_file.h"
#include "prefetch/plan.h"
#include "prefetch/verify/dataflow.h"
#include "src/plan/workload.h"
#include "src/step/machine_size_model.h"
#include "tests/nets/spoilt_network.h"
#include "um/error.h"

namespace spillway {
namespace {

void expect_right(const Workload& workload) {
  RC_ASSERT(workload.need().smallest <= workload.need().resident);
  for (const Step* step : {&workload.training(), &workload.evaluation()}) {
    const auto violation =
        prefetch::check_dataflow(step->graph, prefetch::runs_in_order(step->graph));
    if (violation) RC_FAIL(violation->reason);
  }
}

RC_GTEST_PROP(SpoiltNetworkFile, BecomesStepsThatAreRightOrIsRefusedInOneLine, ()) {
  std::istringstream text{test::spoilt_network_file()};
  try {
    const nets::CatalogueEntry entry = nets::read_network(text, "spoilt.net");
    const nets::Network network = entry.build(entry.image, entry.classes);
    expect_right(Workload{network, MachineSizeModel{}, {.batch = 3}});
    RC_TAG("right");
  } catch (const um::Error& error) {
    RC_TAG("refused");
    const std::string sentence = error.what();
    RC_ASSERT(std::ranges::none_of(sentence, [](char c) { return c < ' ' || c == '\x7f'; }));
  }
}

}  // namespace
}  // namespace spillway
