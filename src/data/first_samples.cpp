#include "src/data/first_samples.h"

#include <string>
#include <utility>

#include "src/files/file_digest.h"
#include "um/error.h"

namespace spillway {
namespace {

class FirstSamples final : public Dataset {
 public:
  FirstSamples(std::unique_ptr<Dataset> whole, std::size_t count)
      : whole_{std::move(whole)}, count_{count} {}

  [[nodiscard]] std::string name() const override {
    return "the first " + std::to_string(count_) + " of " + whole_->name();
  }
  [[nodiscard]] nets::Shape image() const override { return whole_->image(); }
  [[nodiscard]] std::size_t classes() const override { return whole_->classes(); }
  [[nodiscard]] std::size_t size() const override { return count_; }
  void read(std::size_t index, std::span<float> image) const override {
    whole_->read(index, image);
  }
  [[nodiscard]] std::int32_t label(std::size_t index) const override {
    return whole_->label(index);
  }
  [[nodiscard]] bool labels_pixels() const override { return whole_->labels_pixels(); }
  void labels(std::size_t index, std::span<std::int32_t> labels) const override {
    whole_->labels(index, labels);
  }
  void show(std::size_t index, std::uint64_t epoch, std::span<float> image,
            std::span<std::int32_t> labels) const override {
    whole_->show(index, epoch, image, labels);
  }
  void look(std::size_t index, BrokenFiles& found) const override { whole_->look(index, found); }
  [[nodiscard]] const ByteImages* as_bytes() const override { return whole_->as_bytes(); }
  [[nodiscard]] std::string content_sha256() const override {
    return sha256_of("first " + std::to_string(count_) + ": " + whole_->content_sha256());
  }

 private:
  std::unique_ptr<Dataset> whole_;
  std::size_t count_;
};

}  // namespace

std::unique_ptr<Dataset> first_samples(std::unique_ptr<Dataset> whole, std::size_t count) {
  if (count <= whole->size()) return std::make_unique<FirstSamples>(std::move(whole), count);
  throw um::Error{"there are only " + std::to_string(whole->size()) +
                  " samples to learn from, not " + std::to_string(count) +
                  "; give a smaller --train-samples"};
}

}  // namespace spillway
