// Trains LeNet in a memory budget half of the way from the smallest possible to all that it needs.
#include <iostream>
#include <memory>

#include "nets/families/network_catalogue.h"
#include "src/host/host_backend.h"
#include "src/train/trainer.h"
#include "um/host/host_device.h"

using namespace spillway;

int main() {
  Trainer trainer{host::open_context(std::make_unique<um::HostDevice>()),
                  {.network = nets::build_network("lenet"),
                   .data = "synthetic",  // or idx:FOLDER, with the files of MNIST
                   .step = {.batch = 32},
                   .memory = {.budget = "min+50%"},
                   .training = {.steps = 20}},
                  {.on_step = [](auto step, auto /*epoch*/, const StepReport& report) {
                    std::cout << "step " << step << ": loss " << report.loss << '\n';
                  }}};
  const TrainingSummary summary = trainer.run();
  std::cout << summary.steps << " steps in " << um::to_string(summary.near_peak) << " of "
            << um::to_string(summary.budget) << '\n';
}
