#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/ops/backend.h"
#include "src/ranks/agreement.h"
#include "src/ranks/communicator.h"

namespace spillway::cli {

/// The device of one of several ranks, or of the only one, as --device says it: "host", or
/// "cuda:2", which no other rank of its node has. auto is a GPU where each rank of the node can
/// have one. Throws: um::Error, one sentence for the user, where there are too few.
[[nodiscard]] std::string device_of_rank(const std::string& device, const Communicator& ranks);

/// Which of a node's `gpus` a rank trains on. A rank that sees one only has been given it by its
/// launcher, so that it is another one than its neighbours'. Throws: um::Error, likewise.
[[nodiscard]] std::size_t gpu_of_rank(std::size_t gpus, std::size_t rank_on_node,
                                      std::size_t ranks_on_node);

/// What joins the GPUs of all ranks, CudaPlugin::join_ranks(); nothing where `device`, of
/// device_of_rank(), is the host. `ranks` outlives what it makes.
[[nodiscard]] std::function<std::unique_ptr<Communicator>(ExecutionContext&)> joining_of(
    const std::string& device, Communicator& ranks, const CommunicatorOptions& options);

/// In what all ranks of a command must agree (expect_agreement()): the program, its command line,
/// `arguments`, and whether `device`, of device_of_rank(), is a GPU.
[[nodiscard]] std::vector<NamedText> agreement_of_ranks(const std::string& arguments,
                                                        const std::string& device);

}  // namespace spillway::cli
