#include "src/files/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/files/safetensors_header.h"
#include "src/numbers/narrow_floats.h"
#include "um/error.h"
#include "um/text/count_of.h"

namespace spillway {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::size_t kAlignment = 8;

std::string header_of(std::span<const StoredTensor> tensors, const TensorMetadata& metadata) {
  json header = json::object();
  if (!metadata.empty()) header[kTensorMetadata] = metadata;
  std::uint64_t offset = 0;
  for (const StoredTensor& tensor : tensors) {
    um::expects(tensor.name != kTensorMetadata && !header.contains(tensor.name),
                "names that differ");
    const std::optional<std::uint64_t> count = count_elements(tensor.shape);
    um::expects(count.has_value(), "shapes of tensors that there can be");
    const std::uint64_t end = offset + *count * sizeof(float);
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return text;
}

}  // namespace

std::string shape_text(std::span<const std::size_t> shape) {
  std::string text;
  for (const std::size_t extent : shape) {
    text += (text.empty() ? "" : ", ") + std::to_string(extent);
  }
  return "(" + text + ")";
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::span<const StoredTensor> tensors,
                                     const TensorMetadata& metadata)
    : file_{path} {
  begin(tensors, metadata);
}

SafetensorsWriter::SafetensorsWriter(const um::Folder& folder, std::string name,
                                     std::span<const StoredTensor> tensors)
    : file_{folder, std::move(name)} {
  begin(tensors, {});
}

void SafetensorsWriter::begin(std::span<const StoredTensor> tensors,
                              const TensorMetadata& metadata) {
  const std::string header = header_of(tensors, metadata);
  const std::uint64_t length = header.size();
  write(std::as_bytes(std::span{&length, 1}));
  write(std::as_bytes(std::span{header}));
  for (const StoredTensor& tensor : tensors) missing_.push_back(*count_elements(tensor.shape));
  end_tensors();
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  file_.write(bytes);
  whole_.update(bytes);
  digests_.bytes += bytes.size();
}

// Goes on to the tensor that the next value belongs to; there are tensors without values.
void SafetensorsWriter::end_tensors() {
  for (; current_ < missing_.size() && missing_[current_] == 0; ++current_) {
    digests_.tensors.push_back(tensor_.hex());
    tensor_ = Sha256{};
  }
}

void SafetensorsWriter::append(std::span<const float> values) {
  while (!values.empty()) {
    um::expects(current_ < missing_.size(), "no more values than the tensors have");
    const auto count = std::min<std::uint64_t>(values.size(), missing_[current_]);
    const auto bytes = std::as_bytes(values.first(count));
    write(bytes);
    tensor_.update(bytes);
    missing_[current_] -= count;
    values = values.subspan(count);
    end_tensors();
  }
}

void SafetensorsWriter::expect_whole() const {
  um::expects(current_ == missing_.size(), "as many values as the tensors have");
}

TensorFileDigests SafetensorsWriter::flush() {
  expect_whole();
  file_.flush();
  digests_.file = whole_.hex();
  return std::move(digests_);
}

void SafetensorsWriter::commit() {
  expect_whole();
  file_.commit();
}

SafetensorsReader::SafetensorsReader(um::InputFile file) : file_{std::move(file)} {
  SafetensorsHeader header = read_safetensors_header(file_);
  offsets_.push_back(header.end);
  for (TensorEntry& entry : header.entries) {
    numbers_.emplace(entry.name, tensors_.size());
    tensors_.push_back({.name = std::move(entry.name), .shape = std::move(entry.shape)});
    types_.push_back(std::move(entry.type));
    offsets_.push_back(header.end + entry.end);
  }
}

std::optional<std::size_t> SafetensorsReader::find(std::string_view name) const {
  const auto found = numbers_.find(std::string{name});
  return found == numbers_.end() ? std::nullopt : std::optional{found->second};
}

void SafetensorsReader::read(std::size_t index, std::span<float> values) const {
  const StoredTensor& tensor = tensors_.at(index);
  if (values.size() != count_elements(tensor.shape)) {
    throw um::Error{"tensor '" + tensor.name + "' of " + file_.path().string() + " has the shape " +
                    shape_text(tensor.shape) + ", which is not of " +
                    um::count_of(values.size(), "number")};
  }
  const std::string& type = types_[index];
  if (type == "F32") return file_.read(offsets_[index], std::as_writable_bytes(values));
  if (type != "F16" && type != "BF16") {
    throw um::Error{"tensor '" + tensor.name + "' of " + file_.path().string() + " holds " + type +
                    ", and only F32, F16 and BF16 can be read"};
  }
  std::vector<std::uint16_t> narrow(values.size());
  file_.read(offsets_[index], std::as_writable_bytes(std::span{narrow}));
  if (type == "F16") {
    std::ranges::transform(narrow, values.begin(), float_of_half);
  } else {
    std::ranges::transform(narrow, values.begin(), Bfloat16::from_bits);
  }
}

}  // namespace spillway
