#include "src/host/host_processor.h"

#include <utility>

#include "src/host/host_backend.h"

namespace spillway::host {

Processor open_processor(std::unique_ptr<um::Device> device, std::size_t threads) {
  Processor processor;
  processor.threads = threads;
  processor.device = std::move(device);
  auto backend = std::make_unique<HostBackend>(threads);
  processor.compute = processor.device->make_stream("compute");
  processor.compute->enqueue(
      [&] { backend->start_threads([&] { processor.device->prepare_kernel_thread(); }); });
  processor.compute->synchronize();
  processor.backend = std::move(backend);
  return processor;
}

}  // namespace spillway::host
