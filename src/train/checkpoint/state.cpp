#include "src/train/checkpoint/state.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <unordered_map>

#include "prefetch/block_sizes.h"
#include "src/io/file_digest.h"
#include "um/error.h"

namespace spillway {
namespace {

using um::Bytes;

constexpr const char* kForeign = "it is no checkpoint of this network";

// Of the parameters that an average is of.
std::string averaged_name(const StateBlock& average) {
  return average.name.substr(0, average.name.rfind('.'));
}

// Throws unless the numbers of a tensor in a file are what was written, as far as that is known.
void expect_sound(std::span<const float> tensor, const std::string& name,
                  const std::filesystem::path& path,
                  const std::map<std::string, std::string>* digests) {
  const std::string sentence = "tensor '" + name + "' of " + path.string() + " ";
  if (digests != nullptr) {
    const auto digest = digests->find(name);
    if (digest == digests->end()) throw um::Error{sentence + "has no digest"};
    if (digest->second != sha256_of(std::as_bytes(tensor))) {
      throw um::Error{sentence + "does not match its digest"};
    }
  }
  if (!is_finite(tensor)) throw um::Error{sentence + kNotFinite};
}

}  // namespace

std::vector<StoredTensor> tensors_of(std::span<const StateBlock> blocks) {
  std::vector<StoredTensor> tensors;
  for (const StateBlock& block : blocks) {
    for (const ParameterArray& array : arrays_of(block.spec)) {
      tensors.push_back({.name = block.name + array.suffix, .shape = array.shape});
    }
  }
  return tensors;
}

std::size_t element_count(const std::vector<std::size_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies{});
}

bool is_weight(StateRole role) {
  return role == StateRole::kParameters || role == StateRole::kStatistics;
}

std::vector<std::size_t> find_tensors(const SafetensorsReader& file,
                                      const std::filesystem::path& path,
                                      const std::vector<StoredTensor>& wanted) {
  std::vector<std::size_t> places;
  for (const auto& [name, shape] : wanted) {
    const std::optional<std::size_t> found = file.find(name);
    if (!found) throw um::Error{path.string() + " has no tensor '" + name + "'; " + kForeign};
    if (const auto& stored = file.tensors()[*found].shape; stored != shape) {
      throw um::Error{"tensor '" + name + "' of " + path.string() + " is " + shape_text(stored) +
                      ", but this network's is " + shape_text(shape) + "; " + kForeign};
    }
    places.push_back(*found);
  }
  return places;
}

std::vector<StoredTensor> weight_tensors(const Step& step) {
  std::vector<StateBlock> weights = step.state;
  std::erase_if(weights, [](const StateBlock& each) { return !is_weight(each.role); });
  return tensors_of(weights);
}

std::string weights_sha256(const std::filesystem::path& path, const Step& step) {
  const SafetensorsReader file{path};
  const std::vector<StoredTensor> wanted = weight_tensors(step);
  const std::vector<std::size_t> places = find_tensors(file, path, wanted);
  Sha256 hash;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    std::vector<float> numbers(element_count(wanted[i].shape));
    file.read(places[i], numbers);
    hash.update(std::as_bytes(std::span{numbers}));
  }
  return hash.hex();
}

State::State(const Step& step, Bytes page, const Backend& backend, um::Memory& memory)
    : backend_{backend}, blocks_{step.state} {
  const prefetch::BlockSizes block_sizes{step.graph, page};
  Bytes size;
  for (const StateBlock& block : blocks_) {
    std::vector<std::optional<std::size_t>>& offsets = offsets_.emplace_back();
    for (const prefetch::DataId id : block.ids) {
      std::optional<std::size_t>& offset = offsets.emplace_back();
      if (block_sizes.is_movable(id)) continue;
      offset = size.count();
      size += um::round_up(step.graph[id].size, prefetch::kNearAlignment);
    }
  }
  block_ = um::Block{memory, size};
  if (size > Bytes{}) backend_.clear(block_.bytes());
}

void State::initialise(std::uint64_t seed, Initialisation rule,
                       std::span<const std::string> zeroed) {
  std::uint64_t place = 0;                // the same whatever the optimizer keeps
  std::uint64_t place_of_parameters = 0;  // the last ones, which an average follows
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const StateBlock& block = blocks_[i];
    const bool is_average = block.role == StateRole::kAverage;
    const std::uint64_t own = is_average ? place_of_parameters : place;
    if (block.role == StateRole::kParameters) place_of_parameters = place;
    if (is_weight(block.role)) place += block.role == StateRole::kParameters ? 2 : 1;
    const std::string name = is_average ? averaged_name(block) : block.name;
    const bool is_zero =
        block.role == StateRole::kOptimizer || std::ranges::count(zeroed, name) > 0;
    import(i, is_zero ? std::vector<float>(element_count(block.spec))
                      : initial_values(block.spec, seed, own, rule));
  }
}

void State::follow() {
  um::expects(slices_ != nullptr && !slices_->is_rank_zero(), "a rank that has slices of a block");
  while (const auto call = slices_->next()) {
    const um::Access access = call->gathers ? um::Access::kRead : um::Access::kWrite;
    use(call->index, access, [&](std::span<std::byte* const> parts) {
      slices_->join(*call, blocks_[call->index], parts, backend_);
    });
  }
}

void State::change_values(const std::function<void(std::span<float>)>& change) {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (!blocks_[i].divided.empty()) continue;
    std::vector<float> numbers = values(i);
    change(numbers);
    import(i, numbers);
  }
}

std::vector<std::byte*> State::addresses(const Step& step) const {
  std::unordered_map<std::string, std::size_t> by_name;
  for (std::size_t i = 0; i < blocks_.size(); ++i) by_name.emplace(blocks_[i].name, i);
  std::vector<std::byte*> addresses(step.graph.data.size(), nullptr);
  for (const StateBlock& block : step.state) {
    const std::vector<std::byte*> parts = pinned(by_name.at(block.name));
    um::expects(parts.size() == block.ids.size(), "steps of one network have the same parts");
    for (std::size_t i = 0; i < parts.size(); ++i) {
      addresses[static_cast<std::size_t>(block.ids[i])] = parts[i];
    }
  }
  return addresses;
}

std::string State::sha256() const {
  Sha256 hash;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (!is_weight(blocks_[i].role)) continue;
    const std::vector<float> numbers = values(i);
    hash.update(std::as_bytes(std::span{numbers}));
  }
  return hash.hex();
}

std::vector<StoredTensor> State::tensors() const { return tensors_of(blocks_); }

void State::write(SafetensorsWriter& writer) const {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const std::vector<float> numbers = values(i);
    std::span<const float> rest{numbers};
    for (const ParameterArray& array : arrays_of(blocks_[i].spec)) {
      const std::span<const float> tensor = rest.first(element_count(array.shape));
      if (!is_finite(tensor)) {
        throw um::Error{"tensor '" + blocks_[i].name + array.suffix + "' " + kNotFinite +
                        ": training has diverged; try a smaller --lr"};
      }
      writer.append(tensor);
      rest = rest.subspan(tensor.size());
    }
  }
}

void State::save(const std::filesystem::path& path) const {
  SafetensorsWriter writer{path, tensors()};
  write(writer);
  writer.commit();
}

void State::load(const std::filesystem::path& path,
                 const std::map<std::string, std::string>* digests) {
  const SafetensorsReader file{path};
  const std::vector<StoredTensor> wanted = tensors();
  const std::vector<std::size_t> places = find_tensors(file, path, wanted);
  std::size_t next = 0;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    fill(i, blocks_[i].name, [&](const std::string& name, std::span<float> tensor) {
      file.read(places[next++], tensor);
      expect_sound(tensor, name, path, digests);
    });
  }
}

void State::start_from(const TensorSource& weights) {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const bool is_zero = blocks_[i].role == StateRole::kOptimizer;
    if (is_zero) {
      import(i, std::vector<float>(element_count(blocks_[i].spec)));
    } else {
      const bool is_average = blocks_[i].role == StateRole::kAverage;
      fill(i, is_average ? averaged_name(blocks_[i]) : blocks_[i].name, weights);
    }
  }
}

bool State::has_averages() const {
  return std::ranges::any_of(
      blocks_, [](const StateBlock& block) { return block.role == StateRole::kAverage; });
}

void State::swap_averages() {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].role != StateRole::kAverage) continue;
    const auto averaged = std::ranges::find(blocks_, averaged_name(blocks_[i]), &StateBlock::name);
    const auto parameters = static_cast<std::size_t>(averaged - blocks_.begin());
    const std::vector<float> average = values(i);
    import(i, values(parameters));
    import(parameters, average);
  }
}

void State::fill(std::size_t index, const std::string& name, const TensorSource& source) {
  const ParameterSpec& spec = blocks_[index].spec;
  // What is divided is an optimizer's, of which all is read.
  std::vector<float> numbers =
      blocks_[index].divided.empty() ? values(index) : std::vector<float>(element_count(spec));
  std::span<float> rest{numbers};
  for (const ParameterArray& array : arrays_of(spec)) {
    const std::span<float> tensor = rest.first(element_count(array.shape));
    source(name + array.suffix, tensor);
    rest = rest.subspan(tensor.size());
  }
  import(index, numbers);
}

std::vector<float> State::values(std::size_t index) const {
  std::vector<float> numbers(element_count(blocks_[index].spec));
  use(index, um::Access::kRead, [&](std::span<std::byte* const> parts) {
    const StateBlock& block = blocks_[index];
    if (block.divided.empty()) {
      backend_.export_parameters(block.spec, parts, numbers);
    } else {
      um::expects(slices_ != nullptr, "ranks that keep slices exchange them");
      slices_->gather(index, block, parts, backend_, numbers);
    }
  });
  return numbers;
}

void State::import(std::size_t index, std::span<const float> numbers) {
  use(index, um::Access::kWrite, [&](std::span<std::byte* const> parts) {
    const StateBlock& block = blocks_[index];
    if (block.divided.empty()) {
      backend_.import_parameters(block.spec, numbers, parts);
    } else {
      um::expects(slices_ != nullptr, "ranks that keep slices exchange them");
      slices_->scatter(index, block, parts, backend_, numbers);
    }
  });
}

std::vector<std::byte*> State::pinned(std::size_t index) const {
  std::vector<std::byte*> parts;
  for (const std::optional<std::size_t> offset : offsets_[index]) {
    parts.push_back(offset ? block_.data() + *offset : nullptr);
  }
  return parts;
}

void State::use(std::size_t index, um::Access access, const Use& use) const {
  std::vector<std::byte*> parts = pinned(index);
  std::vector<prefetch::DataId> moving;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == nullptr) moving.push_back(blocks_[index].ids[i]);
  }
  if (moving.empty()) return use(parts);
  movable_(moving, access, [&](std::span<std::byte* const> places) {
    std::size_t next = 0;
    for (std::byte*& part : parts) {
      if (part == nullptr) part = places[next++];
    }
    use(parts);
  });
}

}  // namespace spillway
