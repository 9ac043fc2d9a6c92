#include "src/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "src/input_file.h"
#include "src/replaced_file.h"
#include "um/error.h"

namespace spillway {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::size_t kAlignment = 8;
constexpr std::uint64_t kLongestHeader = 100'000'000;  // the format's own limit
constexpr auto kMetadata = "__metadata__";

// Number of values of a shape; nothing when their bytes are too many for a 64-bit number.
std::optional<std::uint64_t> element_count(const std::vector<std::size_t>& shape) {
  if (std::find(shape.begin(), shape.end(), 0U) != shape.end()) return 0;
  std::uint64_t count = 1;
  for (const std::size_t extent : shape) {
    if (extent > std::numeric_limits<std::uint64_t>::max() / sizeof(float) / count) return {};
    count *= extent;
  }
  return count;
}

std::string header_of(std::span<const NamedTensor> tensors,
                      const std::map<std::string, std::string>& metadata) {
  json header = json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  std::uint64_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    um::expects(tensor.name != kMetadata && !header.contains(tensor.name), "names that differ");
    um::expects(element_count(tensor.shape) == tensor.values.size(), "as many values as the shape");
    const std::uint64_t end = offset + tensor.values.size() * sizeof(float);
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return text;
}

/// Where a tensor's values lie behind the header.
struct Entry {
  std::string name;
  std::vector<std::size_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Reads one file; every refusal names it.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : file_{path} { read_header(); }

  [[nodiscard]] Safetensors read() const {
    std::vector<Entry> entries;
    Safetensors result;
    for (const auto& [name, value] : header_.items()) {
      if (name == kMetadata) {
        result.metadata = read_metadata(value);
      } else {
        entries.push_back(read_entry(name, value));
      }
    }
    check_places(entries);
    for (Entry& entry : entries) {
      std::vector<float> values((entry.end - entry.begin) / sizeof(float));
      file_.read(data_ + entry.begin, std::as_writable_bytes(std::span{values}));
      result.tensors.push_back({.name = std::move(entry.name),
                                .shape = std::move(entry.shape),
                                .values = std::move(values)});
    }
    return result;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw um::Error{"cannot read " + file_.path().string() + " as a safetensors file: " + why};
  }

  void read_header() {
    if (file_.size() < sizeof(std::uint64_t)) refuse("it has fewer than 8 bytes");
    std::uint64_t length = 0;
    file_.read(0, std::as_writable_bytes(std::span{&length, 1}));
    if (length > kLongestHeader || length > file_.size() - sizeof(length)) {
      refuse("its header claims " + std::to_string(length) + " bytes, but the file has " +
             std::to_string(file_.size()));
    }
    data_ = sizeof(length) + length;
    std::string text(length, ' ');
    file_.read(sizeof(length), std::as_writable_bytes(std::span{text}));
    header_ = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!header_.is_object()) refuse("its header is no JSON object");
  }

  [[nodiscard]] std::map<std::string, std::string> read_metadata(const json& value) const {
    if (!value.is_object()) refuse("its __metadata__ is no JSON object");
    std::map<std::string, std::string> metadata;
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) refuse("its __metadata__ '" + key + "' is no string");
      metadata[key] = text.get<std::string>();
    }
    return metadata;
  }

  [[nodiscard]] std::vector<std::size_t> read_numbers(const std::string& name, const json& value,
                                                      const char* key) const {
    const auto at = value.find(key);
    const bool is_numbers =
        at != value.end() && at->is_array() &&
        std::all_of(at->begin(), at->end(), [](const json& x) { return x.is_number_unsigned(); });
    if (!is_numbers) refuse("tensor '" + name + "' has no list of whole numbers as its " + key);
    return at->get<std::vector<std::size_t>>();
  }

  [[nodiscard]] Entry read_entry(const std::string& name, const json& value) const {
    if (!value.is_object()) refuse("the entry of tensor '" + name + "' is no JSON object");
    const auto dtype = value.find("dtype");
    if (dtype == value.end() || !dtype->is_string()) refuse("tensor '" + name + "' has no dtype");
    if (*dtype != "F32") {
      refuse("tensor '" + name + "' holds " + dtype->get<std::string>() +
             ", and only F32 can be read");
    }
    Entry entry{.name = name, .shape = read_numbers(name, value, "shape")};
    const std::vector<std::size_t> offsets = read_numbers(name, value, "data_offsets");
    if (offsets.size() != 2 || offsets[0] > offsets[1]) {
      refuse("tensor '" + name + "' has no begin and end as its data_offsets");
    }
    entry.begin = offsets[0];
    entry.end = offsets[1];
    const std::optional<std::uint64_t> count = element_count(entry.shape);
    if (!count || entry.end - entry.begin != *count * sizeof(float)) {
      refuse("the bytes of tensor '" + name + "' do not match its shape");
    }
    return entry;
  }

  // Sorts `entries` by place: each must begin where the one before it ends, and the last must end
  // with the file.
  void check_places(std::vector<Entry>& entries) const {
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return std::pair{a.begin, a.end} < std::pair{b.begin, b.end};
    });
    std::uint64_t at = 0;
    for (const Entry& entry : entries) {
      if (entry.begin < at) refuse("tensor '" + entry.name + "' overlaps the one before it");
      if (entry.begin > at) refuse("there is a hole before tensor '" + entry.name + "'");
      at = entry.end;
    }
    if (at != file_.size() - data_) {
      refuse("its tensors need " + std::to_string(at) + " bytes after the header, but it has " +
             std::to_string(file_.size() - data_));
    }
  }

  InputFile file_;
  std::uint64_t data_ = 0;  // where the values begin
  json header_;
};

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::string header = header_of(tensors, metadata);
  const std::uint64_t length = header.size();
  ReplacedFile file{path};
  file.write(std::as_bytes(std::span{&length, 1}));
  file.write(std::as_bytes(std::span{header}));
  for (const NamedTensor& tensor : tensors) file.write(std::as_bytes(std::span{tensor.values}));
  file.commit();
}

Safetensors read_safetensors(const std::filesystem::path& path) { return Reader{path}.read(); }

}  // namespace spillway
