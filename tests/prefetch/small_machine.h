#pragma once

#include <nlohmann/json.hpp>

namespace spillway::prefetch::testing {

/// Returns a machine file in the format spillway-machine.
inline nlohmann::json small_machine() {
  return nlohmann::json::parse(R"({
    "format": "spillway-machine", "version": 1, "name": "toy", "near_memory_bytes": 33554432,
    "flops_per_second": 1e9, "compute_efficiency": 0.5, "memory_bytes_per_second": 1e9,
    "memory_efficiency": 1.0,
    "link": {"offload_bytes_per_second": 1e10, "prefetch_bytes_per_second": 2e10,
             "latency_ns": 1000, "duplex": true, "compute_speed_while_moving": 0.9,
             "fault_ns": 2000}})");
}

}  // namespace spillway::prefetch::testing
