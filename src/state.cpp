#include "src/state.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <unordered_map>

#include "prefetch/occupancy.h"
#include "src/initial_values.h"
#include "src/sha256.h"
#include "um/error.h"

namespace spillway {

using um::Bytes;

State::State(const Step& step, const Backend& backend, um::Memory& memory)
    : backend_{backend}, blocks_{step.state} {
  Bytes size;
  for (const StateBlock& block : blocks_) {
    offsets_.push_back(size.count());
    size += um::round_up(backend_.parameter_bytes(block.spec), prefetch::kNearAlignment);
  }
  block_ = um::Block{memory, size};
  if (size > Bytes{}) std::memset(block_.data(), 0, size.count());
}

void State::initialise(std::uint64_t seed) {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const ParameterSpec& spec = blocks_[i].spec;
    const bool is_momentum = blocks_[i].role == StateRole::kMomentum;
    backend_.import_parameters(
        spec, is_momentum ? std::vector<float>(element_count(spec)) : initial_values(spec, seed, i),
        at(i));
  }
}

std::vector<std::byte*> State::addresses(const Step& step) const {
  std::unordered_map<std::string, std::byte*> by_name;
  for (std::size_t i = 0; i < blocks_.size(); ++i) by_name.emplace(blocks_[i].name, at(i));
  std::vector<std::byte*> addresses(step.graph.data.size(), nullptr);
  for (const StateBlock& block : step.state) {
    addresses[static_cast<std::size_t>(block.id)] = by_name.at(block.name);
  }
  return addresses;
}

std::string State::sha256() const {
  Sha256 hash;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].role == StateRole::kMomentum) continue;
    const std::vector<float> numbers = values(i);
    hash.update(std::as_bytes(std::span{numbers}));
  }
  return hash.hex();
}

std::vector<NamedTensor> State::save() const {
  std::vector<NamedTensor> tensors;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    std::vector<float> numbers = values(i);
    const std::size_t count = numbers.size();
    tensors.push_back({.name = blocks_[i].name, .shape = {count}, .values = std::move(numbers)});
  }
  return tensors;
}

void State::load(const std::vector<NamedTensor>& tensors) {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const std::string& name = blocks_[i].name;
    const auto found = std::ranges::find(tensors, name, &NamedTensor::name);
    if (found == tensors.end()) throw um::Error{"the checkpoint has no tensor '" + name + "'"};
    const std::size_t count = element_count(blocks_[i].spec);
    if (found->values.size() != count) {
      throw um::Error{"the checkpoint's tensor '" + name + "' has " +
                      std::to_string(found->values.size()) + " numbers, but the network needs " +
                      std::to_string(count)};
    }
    backend_.import_parameters(blocks_[i].spec, found->values, at(i));
  }
}

std::vector<float> State::values(std::size_t index) const {
  std::vector<float> numbers(element_count(blocks_[index].spec));
  backend_.export_parameters(blocks_[index].spec, at(index), numbers);
  return numbers;
}

}  // namespace spillway
