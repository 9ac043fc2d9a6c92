#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "src/host/host_backend.h"
#include "src/ops/backend.h"

namespace spillway::test {

/// The layouts and algorithms of the host with one thread; how kernels run is left open.
class OnHostBackend : public Backend {
 public:
  [[nodiscard]] um::Bytes tensor_bytes(const TensorShape& shape) const override {
    return host_.tensor_bytes(shape);
  }
  [[nodiscard]] um::Bytes parameter_bytes(const ParameterSpec& spec) const override {
    return host_.parameter_bytes(spec);
  }
  [[nodiscard]] um::Bytes saved_bytes(const Operation& operation) const override {
    return host_.saved_bytes(operation);
  }
  [[nodiscard]] std::vector<AlgorithmInfo> algorithms(const Operation& operation) const override {
    return host_.algorithms(operation);
  }
  [[nodiscard]] std::string description() const override { return host_.description(); }
  void clear(um::Range block) const override { host_.clear(block); }
  void import_parameters(const ParameterSpec& spec, std::span<const float> values,
                         std::span<std::byte* const> parts) const override {
    host_.import_parameters(spec, values, parts);
  }
  void export_parameters(const ParameterSpec& spec, std::span<std::byte* const> parts,
                         std::span<float> values) const override {
    host_.export_parameters(spec, parts, values);
  }

 protected:
  host::HostBackend host_{1};
};

}  // namespace spillway::test
