#include "src/host/host_context.h"

#include <utility>

#include "src/host/host_backend.h"

namespace spillway::host {

ExecutionContext open_context(std::unique_ptr<um::Device> device, std::size_t threads,
                              bool deterministic, Precision precision) {
  ExecutionContext context;
  context.threads = threads;
  context.deterministic = deterministic;
  context.precision = precision;
  context.device = std::move(device);
  auto backend = std::make_unique<HostBackend>(threads, precision);
  context.compute = context.device->make_stream("compute");
  context.compute->enqueue(
      [&] { backend->start_threads([&] { context.device->prepare_kernel_thread(); }); });
  context.compute->synchronize();
  context.backend = std::move(backend);
  return context;
}

}  // namespace spillway::host
