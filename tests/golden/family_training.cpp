#include "tests/golden/family_training.h"

#include <cmath>
#include <memory>
#include <vector>

#include "src/host/host_backend.h"
#include "src/train/session.h"
#include "tests/golden/drawn_state.h"
#include "tests/src/state_numbers.h"
#include "tools/golden/family_networks.h"
#include "um/host/host_device.h"

namespace spillway::test {
namespace {

double norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += std::pow(static_cast<double>(value), 2);
  return std::sqrt(sum);
}

}  // namespace

FamilyTraining::FamilyTraining(const FamilyGolden& golden, const SgdOptions& optimizer,
                               Precision precision)
    : golden_{golden},
      net_{host::open_context(std::make_unique<um::HostDevice>(), host::usable_cpus(), false,
                              precision),
           golden::family_network(golden.name),
           {.batch = golden.batch,
            .convolution = ConvolutionAlgorithm::kDirect,
            .optimizer = optimizer},
           MemoryMode::kResident} {
  set_numbers(net_.session().state(), net_.training_step(),
              drawn_state(net_.training_step(), golden.prefix, FirstValues::kGentle));
}

double FamilyTraining::train(std::uint64_t step) {
  const Batch batch = golden_.make_batch(net_.network(), step);
  const StepReport report = net_.session().train({.seed = golden_.seed,
                                                  .step = step,
                                                  .learning_rate = golden_.learning_rate,
                                                  .batch = &batch});
  return static_cast<double>(report.loss);
}

std::map<std::string, double> FamilyTraining::momentum_norms() {
  std::map<std::string, double> norms;
  for (const BlockNumbers& block : numbers_of(net_.session().state(), net_.training_step())) {
    if (!block.name.ends_with(".momentum")) continue;
    norms[block.name.substr(0, block.name.rfind('.'))] = norm(block.values);
  }
  return norms;
}

}  // namespace spillway::test
