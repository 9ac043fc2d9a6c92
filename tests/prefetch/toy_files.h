#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

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

/// Returns a step of `layers` layers as a spillway-trace of version 2. Each forward task saves all
/// for its backward task, 64 MiB, some of it, 24 MiB, or nothing: "all", "some" or "none". These
/// take 10 ms forward and 20, 24 or 30 ms backward.
inline nlohmann::json varied_trace(int layers) {
  using nlohmann::json;
  constexpr int kMiB = 1 << 20;
  json data = json::array();
  const auto block = [&](const std::string& name, int size) {
    data.push_back(
        {{"id", data.size()}, {"bytes", size * kMiB}, {"kind", "tensor"}, {"name", name}});
    return data.size() - 1;
  };
  const auto ways = [](const char* key, std::size_t all, std::size_t some, std::vector<int> ms) {
    const auto way = [&](const char* name, int time, const json& blocks) {
      json made{{"name", name}, {"duration_ns", time * 1'000'000}, {"workspace_bytes", 0}};
      if (!blocks.empty()) made[key] = blocks;
      return made;
    };
    return json{way("all", ms[0], {all}), way("some", ms[1], {some}),
                way("none", ms[2], json::array())};
  };
  json tasks = json::array();
  const auto task = [&](const std::string& name, const json& reads, const json& writes) -> json& {
    tasks.push_back({{"name", name}, {"reads", reads}, {"writes", writes}});
    return tasks.back();
  };
  const auto plain = [](json& made) {
    made["duration_ns"] = 1'000'000;
    made["workspace_bytes"] = 0;
  };
  std::vector<std::size_t> x{block("x0", 8)};
  std::vector<std::size_t> saved;
  plain(task("load", json::array(), {x[0]}));
  for (int i = 1; i <= layers; ++i) {
    const std::string number = std::to_string(i);
    x.push_back(block("x" + number, 8));
    saved.push_back(block("all" + number, 64));
    saved.push_back(block("some" + number, 24));
    task("f" + number, {x[x.size() - 2]}, {x.back()})["variants"] =
        ways("writes", saved[saved.size() - 2], saved.back(), {10, 10, 10});
  }
  std::size_t gradient = block("g", 8);
  plain(task("loss", {x.back()}, {gradient}));
  for (int i = layers; i >= 1; --i) {
    const auto place = static_cast<std::size_t>(i);
    const std::size_t next = block("g" + std::to_string(i), 8);
    json& made = task("b" + std::to_string(i), {x[place - 1], gradient}, {next});
    made["variants"] = ways("reads", saved[2 * place - 2], saved[2 * place - 1], {20, 24, 30});
    made["same_variant_as"] = i;
    gradient = next;
  }
  return {{"format", "spillway-trace"},
          {"version", 2},
          {"name", "layers in variants"},
          {"data", std::move(data)},
          {"tasks", std::move(tasks)}};
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
