// loader_rate DIR SIDE BATCH THREADS WARM_UP BATCHES AUGMENTATION: loads batches of images as a
// training does, and prints images, seconds and processor seconds as JSON, without the warm-up.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <span>
#include <string>

#include "src/io/data/batch_loader.h"
#include "src/io/data/image_folder.h"

namespace {

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int run(std::span<char*> words) {
  if (words.size() != 8) {
    std::fputs("usage: loader_rate DIR SIDE BATCH THREADS WARM_UP BATCHES AUGMENTATION\n", stderr);
    return 2;
  }
  const auto number = [&](std::size_t i) { return std::stoul(words[i]); };
  const std::size_t side = number(2);
  const std::size_t batch = number(3);
  const spillway::DatasetPair data = spillway::open_image_folder(
      words[1], {.image = {.channels = 3, .height = side, .width = side},
                 .classes = 1000,
                 .seed = 1,
                 .options = {.augmentation = spillway::find_augmentation(words[7]).value()}});
  spillway::BatchLoader loader{
      *data.train,
      batch,
      1,
      0,
      {.threads = number(4), .has_bytes = spillway::can_load_bytes(*data.train, {})}};
  for (std::size_t i = 0; i < number(5); ++i) static_cast<void>(loader.next());
  const double processor = processor_seconds();
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < number(6); ++i) static_cast<void>(loader.next());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("{\"images\": %zu, \"seconds\": %f, \"processor_seconds\": %f}\n", number(6) * batch,
              seconds.count(), processor_seconds() - processor);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run({words, static_cast<std::size_t>(count)});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "loader_rate: %s\n", error.what());
    return 1;
  }
}
