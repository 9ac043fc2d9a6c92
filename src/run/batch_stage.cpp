#include "src/run/batch_stage.h"

#include <utility>

namespace spillway {
namespace {

// Steps of one network, training and evaluation, may load as many samples.
bool are_staged_alike(const LoadBatch& a, const LoadBatch& b) {
  return a.x.batch == b.x.batch && a.labels_each == b.labels_each && a.has_bytes == b.has_bytes;
}

}  // namespace

BatchStage::BatchStage(ExecutionContext& context, um::Bytes size, um::Memory& memory)
    : backend_{*context.backend},
      compute_{*context.compute},
      near_{memory, size},
      pinned_(size.count(), &context.backend->batch_memory()) {
  if (size > um::Bytes{}) upload_ = context.device->make_copy_stream("upload");
}

void BatchStage::place(const Step& step, std::span<std::byte*> addresses) const {
  if (step.staged) addresses[static_cast<std::size_t>(*step.staged)] = near_.data();
}

void BatchStage::expect(const BatchSamples& now, const BatchSamples& next) {
  // A batch without a number may be another one at the same address.
  const bool is_there = brought_ && are_staged_alike(brought_->load, now.load) &&
                        brought_number_ != 0 && brought_number_ == now.batch->number;
  if (!is_there) bring(now);
  upload_->synchronize();
  next_ = next;
}

void BatchStage::loaded() {
  upload_->wait(compute_.record());
  brought_.reset();
  if (next_.batch != nullptr) bring(std::exchange(next_, {}));
}

void BatchStage::bring(const BatchSamples& samples) {
  brought_ = samples;
  brought_number_ = samples.batch->number;
  upload_->enqueue([this, samples, before = uploaded_] {
    if (before != nullptr) before->wait();
    const um::Bytes size = backend_.staged_bytes(samples.load);
    const std::span<std::byte> pinned = std::span{pinned_}.first(size.count());
    backend_.stage(samples.load, *samples.batch, pinned);
    upload_->write(pinned, near_.bytes().first(size.count()));
  });
  uploaded_ = upload_->record();
}

void BatchStage::settle() noexcept {
  if (upload_ == nullptr) return;
  try {
    upload_->synchronize();
  } catch (...) {  // nobody wants that batch any more
  }
  brought_.reset();
}

}  // namespace spillway
