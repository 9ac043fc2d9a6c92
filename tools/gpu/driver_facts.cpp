// Writes what only a machine with a GPU can tell of the driver and the link, as one JSON object:
// driver_facts --out FILE [--device N] [--quick]. Each part stands beside the others: one that
// fails is {"failed": why}, and the exit status is 1.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tools/gpu/behaviour.h"
#include "tools/gpu/busy_work.h"
#include "tools/gpu/card.h"
#include "tools/gpu/fault_counts.h"
#include "tools/gpu/link_table.h"
#include "tools/gpu/managed_limit.h"
#include "tools/gpu/move_timer.h"
#include "tools/gpu/streaming.h"
#include "um/cuda/cuda_device.h"
#include "um/cuda/driver/runtime_api.h"
#include "um/cuda/managed/managed_room.h"
#include "um/error.h"

namespace spillway::gpu {
namespace {

using namespace um::literals;
using nlohmann::json;
using um::Bytes;

struct Options {
  std::string out;
  int device = 0;
  bool quick = false;
};

// The most unified memory that there is at any time: in measure_streaming().
constexpr Bytes kManagedNeed = 1_GiB;

class DriverFacts {
 public:
  explicit DriverFacts(const Options& options) : options_{options} {}

  // Returns whether every part succeeded.
  [[nodiscard]] bool measure() {
    open(/*counts_faults=*/false);
    const Bytes free = api_->memory().free;
    expect_within_limit(kManagedNeed, free);
    result_ = {{"format", "spillway-gpu-facts"},
               {"version", 1},
               {"quick", options_.quick},
               {"facts", to_json(device_->facts())},
               {"capabilities", to_json(device_->capabilities())},
               {"memory", {{"free", free.count()}, {"total", api_->memory().total.count()}}},
               {"managed_limit_bytes", um::shared_gpu_limit(free).count()},
               {"repeats", repeats()}};
    write();
    measure_moves();
    add("streaming", [&] {
      return measure_streaming(*device_, {.total = 512_MiB, .chunk = 32_MiB, .repeats = repeats()});
    });
    add("fault_counts", [&] {
      open(/*counts_faults=*/true);  // last: counting costs time
      return count_faults(*device_, *api_, kBlock);
    });
    return succeeded_;
  }

 private:
  static constexpr Bytes kBlock = 256_MiB;

  [[nodiscard]] int repeats() const { return options_.quick ? 3 : 7; }

  void open(bool counts_faults) {
    device_.reset();
    auto api = um::open_runtime_api(options_.device);
    api_ = api.get();
    device_ = std::make_unique<um::CudaDevice>(
        std::move(api), um::CudaOptions{.managed_limit = um::shared_gpu_limit(api_->memory().free),
                                        .counts_faults = counts_faults});
  }

  void measure_moves() {
    um::CudaManagedMemory managed{*api_, um::shared_gpu_limit(api_->memory().free)};
    BusyWork work{*api_, device_->memory(), 256_MiB};
    MoveTimer timer{*api_, work};
    const bool has_managed = device_->facts().has_concurrent_managed_access;
    LinkTableOptions table{.sizes = {2_MiB, 8_MiB, 32_MiB, 128_MiB, 512_MiB}, .repeats = repeats()};
    if (options_.quick) table.sizes = {2_MiB, 32_MiB, 128_MiB};
    add("links", [&] {
      return measure_links(*api_,
                           {.device = device_->memory(),
                            .pinned = device_->pinned_memory(),
                            .managed = has_managed ? &managed : nullptr},
                           timer, table);
    });
    if (!has_managed) return;
    const BehaviourOptions options{.size = kBlock, .repeats = repeats()};
    add("free_memory", [&] { return measure_free_memory(*api_, managed, timer, 512_MiB); });
    add("discard", [&] { return measure_discard(*api_, managed, timer, options); });
    add("faults",
        [&] { return measure_faults(*api_, managed, device_->memory(), timer, options); });
  }

  void add(const char* part, const std::function<json()>& measure) {
    std::fprintf(stderr, "driver_facts: %s\n", part);
    try {
      result_[part] = measure();
    } catch (const std::exception& error) {
      result_[part] = {{"failed", error.what()}};
      succeeded_ = false;
      std::fprintf(stderr, "driver_facts: %s: %s\n", part, error.what());
    }
    write();  // what is there counts, should the rest take too long
  }

  void write() const {
    std::ofstream file{options_.out};
    file << result_.dump(1) << "\n";
    if (!file.flush()) throw um::Error{"cannot write " + options_.out};
  }

  const Options& options_;
  um::CudaApi* api_ = nullptr;  // the device's
  std::unique_ptr<um::CudaDevice> device_;
  json result_;
  bool succeeded_ = true;
};

bool measure(const Options& options) {
  if (const auto reason = um::why_unusable(um::ask_driver(), options.device)) {
    throw um::Error{"CUDA cannot be used: " + *reason};
  }
  return DriverFacts{options}.measure();
}

}  // namespace
}  // namespace spillway::gpu

int main(int argc, char** argv) {
  try {
    spillway::gpu::Options options;
    CLI::App app{"Measures what the CUDA driver and the link of a GPU do"};
    app.add_option("--out", options.out, "File to write")->required();
    app.add_option("--device", options.device, "Number of the GPU")->capture_default_str();
    app.add_flag("--quick", options.quick, "Fewer sizes and repeats");
    CLI11_PARSE(app, argc, argv);
    return spillway::gpu::measure(options) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "driver_facts: %s\n", error.what());
    return 1;
  }
}
