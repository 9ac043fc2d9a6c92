#pragma once

#include <nlohmann/json.hpp>

namespace spillway::prefetch::testing {

/// Returns a step of two layers and one weight as a spillway-trace: forward 1 and 2, the loss,
/// backward 2 and 1, the update of the weight. Sizes are in MiB, so that moving tensors pays.
inline nlohmann::json small_trace() {
  return nlohmann::json::parse(R"({
    "format": "spillway-trace", "version": 1, "name": "two layers",
    "data": [{"id": 7, "bytes": 4194304, "kind": "weight", "name": "w"},
             {"id": 10, "bytes": 2097152, "kind": "tensor", "name": "x"},
             {"id": 11, "bytes": 8388608, "kind": "tensor"},
             {"id": 12, "bytes": 8388608, "kind": "tensor", "name": "y"},
             {"id": 20, "bytes": 8388608, "kind": "tensor", "name": "dy"},
             {"id": 21, "bytes": 8388608, "kind": "tensor"},
             {"id": 22, "bytes": 4194304, "kind": "tensor", "name": "dw"}],
    "tasks": [
      {"name": "MatMul", "duration_ns": 1000, "reads": [10, 7], "writes": [11],
       "workspace_bytes": 0, "kind": "linear", "recomputable": true},
      {"name": "ReLU", "duration_ns": 200, "reads": [11], "writes": [12], "workspace_bytes": 64,
       "kind": "activation", "phase": "forward"},
      {"name": "Loss", "duration_ns": 300, "reads": [12], "writes": [20], "workspace_bytes": 0},
      {"name": "ReLU", "duration_ns": 400, "reads": [12, 20], "writes": [21],
       "workspace_bytes": 0, "phase": "backward"},
      {"name": "MatMul", "reads": [10, 11, 21], "writes": [22],
       "algorithms": [{"name": "fast", "duration_ns": 500, "workspace_bytes": 2097152},
                      {"name": "small", "duration_ns": 900, "workspace_bytes": 0}]},
      {"name": "Update", "duration_ns": 100, "reads": [22, 7], "writes": [7],
       "workspace_bytes": 0}]})");
}

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
