#pragma once

#include "src/bench/link/transfer.h"

namespace spillway {

/// Copies between near memory and ordinary memory by the calling thread, and by a second one where
/// both ways are asked for. On a GPU only out.
[[nodiscard]] std::unique_ptr<Transfer> make_pageable_transfer(um::Device& device, um::Bytes size);

}  // namespace spillway
