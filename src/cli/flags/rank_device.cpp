#include "src/cli/flags/rank_device.h"

#include "src/cli/flags/cuda_side.h"
#include "src/io/file_digest.h"
#include "um/error.h"
#include "um/files/input_file.h"
#include "um/text/wording.h"

namespace spillway::cli {
namespace {

// 0 where there is none, or none of use.
std::size_t usable_gpus() {
  if (!has_nvidia_driver()) return 0;
  try {
    return load_cuda_side().count_devices();
  } catch (const um::Error&) {
    return 0;
  }
}

std::string numbered(std::size_t gpu) { return "cuda:" + std::to_string(gpu); }

}  // namespace

std::size_t gpu_of_rank(std::size_t gpus, std::size_t rank_on_node, std::size_t ranks_on_node) {
  if (gpus == 1) return 0;  // what it should not be, CudaPlugin::join_ranks() sees
  if (ranks_on_node <= gpus) return rank_on_node;
  throw um::Error{"this machine has " + um::count_of(gpus, "GPU") + " for " +
                  um::count_of(ranks_on_node, "rank") +
                  ", and each needs one of its own; start fewer ranks, or use --device host"};
}

std::string device_of_rank(const std::string& device, const Communicator& ranks) {
  if (device == "host") return device;
  const std::size_t on_node = ranks.ranks_on_node();
  if (device == "auto") {
    return usable_gpus() >= on_node ? numbered(ranks.rank_on_node()) : "host";
  }
  if (device == "cuda") {
    const std::size_t gpus = use_cuda([] { return load_cuda_side().count_devices(); });
    return numbered(gpu_of_rank(gpus, ranks.rank_on_node(), on_node));
  }
  if (on_node == 1) return device;
  throw um::Error{"--device " + device + " is one GPU, and " + um::count_of(on_node, "rank") +
                  " are on this machine; give --device cuda, for a GPU each"};
}

std::function<std::unique_ptr<Communicator>(ExecutionContext&)> joining_of(
    const std::string& device, Communicator& ranks, const CommunicatorOptions& options) {
  if (device == "host") return {};
  return [&ranks, options](ExecutionContext& context) {
    return load_cuda_side().join_ranks(context, ranks, options);
  };
}

std::vector<NamedText> agreement_of_ranks(const std::string& arguments, const std::string& device) {
  const um::InputFile program{"/proc/self/exe"};
  return {{.name = "program", .text = sha256_of(program)},
          {.name = "command line", .text = arguments},
          {.name = "device", .text = device == "host" ? "host" : "GPU"}};
}

}  // namespace spillway::cli
