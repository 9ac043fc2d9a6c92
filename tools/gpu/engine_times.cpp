// Times every way to run each convolution of a network's training step: the engines that the
// planner chooses from, with their workspaces, and which one is fastest.
// engine_times --net NET --batch N --out FILE [--device DEVICE] [--precision PRECISION]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

#include "prefetch/files/json.h"
#include "src/cli/flags/device_flags.h"
#include "src/cli/flags/workload_flags.h"
#include "src/profile/profiler.h"
#include "src/profile/scratch_launch.h"
#include "tools/gpu/distinct_convolutions.h"
#include "tools/gpu/engine_table.h"
#include "um/error.h"

namespace spillway::gpu {
namespace {

struct Options {
  cli::WorkloadFlags workload;
  cli::DeviceFlags context;
  std::string out;
};

// What the launch that needs most takes: so every engine is measured.
um::Bytes largest_launch(const Step& step) {
  um::Bytes max;
  for (std::size_t t = 0; t < step.graph.tasks.size(); ++t) {
    for (std::uint32_t a = 0; a < step.graph.tasks[t].algorithms.size(); ++a) {
      max = std::max(max, ScratchLaunch::size(step, prefetch::TaskId(t), a));
    }
  }
  return max;
}

void measure(const Options& options) {
  const std::atomic<bool> stop = false;
  const nets::Network network = options.workload.network();
  ExecutionContext context = options.context.open();
  const DistinctConvolutions convolutions =
      distinct_convolutions(make_training_step(network, *context.backend, options.workload.step()));
  if (convolutions.tasks.empty()) throw um::Error{options.workload.net + " has no convolution"};
  const um::Bytes limit = largest_launch(convolutions.step);
  const um::Bytes free = context.device->available_memory();
  if (limit > free) {
    throw um::Error{"one convolution takes " + um::to_string(limit) + " and " +
                    um::to_string(free) + " are free; choose a smaller --batch"};
  }
  const prefetch::Profile times =
      measure_tasks(convolutions.step, *context.backend, context.device->memory(), limit,
                    *context.compute, stop, [](double) {});
  nlohmann::json result = engine_table(convolutions, times);
  result["network"] = network.name;
  result["batch"] = options.workload.batch;
  result["device"] = context.device->name();
  result["backend"] = context.backend->description();
  prefetch::write_json(result, options.out);
}

}  // namespace
}  // namespace spillway::gpu

int main(int argc, char** argv) {
  try {
    spillway::gpu::Options options;
    CLI::App app{"Times the engines of a network's convolutions"};
    options.workload.add_to(app);
    options.context.add_to(app);
    app.add_option("--out", options.out, "File to write, - for standard output")->required();
    CLI11_PARSE(app, argc, argv);
    spillway::gpu::measure(options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "engine_times: %s\n", error.what());
    return 1;
  }
}
