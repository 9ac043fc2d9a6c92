#include "tests/src/cuda/processor/memory_watch.h"

#include <link.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/src/cuda/processor/grid_run.h"

namespace spillway::processor {
namespace {

// The last accesses to some adjacent bytes. Two readers suffice: a writer differs from at least one
// of them.
struct Cell {
  Moment writer;
  Moment reader;
  Moment other_reader;
};

// The cells of a page of memory; each covers as many bytes as the page's smallest access so far.
class Page {
 public:
  static constexpr std::size_t kBytes = 4096;

  // Returns the cells of these bytes. Requires: all bytes are in the page.
  [[nodiscard]] std::pair<Cell*, Cell*> cells(std::size_t offset, std::size_t size) {
    const std::size_t fine = std::size_t{1}
                             << static_cast<unsigned>(std::countr_zero(offset | size | kBytes));
    while (cell_bytes_ > fine) split();
    return {&cells_[offset / cell_bytes_], &cells_[(offset + size - 1) / cell_bytes_] + 1};
  }
  void add_to(Touched& touched) const {
    for (const Cell& cell : cells_) {
      if (cell.reader.block != 0) touched.read += cell_bytes_;
      if (cell.writer.block != 0) touched.written += cell_bytes_;
    }
  }

 private:
  void split() {
    std::vector<Cell> halves;
    halves.reserve(2 * cells_.size());
    for (const Cell& cell : cells_) halves.insert(halves.end(), {cell, cell});
    cells_ = std::move(halves);
    cell_bytes_ /= 2;
  }

  std::size_t cell_bytes_ = 16;
  std::vector<Cell> cells_ = std::vector<Cell>(kBytes / 16);
};

// A range of memory, with pages for the accessed parts.
struct Stretch {
  std::size_t size;
  std::uint32_t launch = 0;  // the launch that the pages belong to
  std::size_t accessed = 0;
  std::unordered_map<std::size_t, Page> pages;
  std::size_t last_number = 0;
  Page* last = nullptr;

  explicit Stretch(std::size_t bytes) : size{bytes} {}

  [[nodiscard]] Page& page(std::size_t number) {
    if (last == nullptr || last_number != number) {
      last = &pages[number];
      last_number = number;
    }
    return *last;
  }
};

std::map<const std::byte*, Stretch>& blocks() {
  static std::map<const std::byte*, Stretch> all;
  return all;
}

// Thread-local variables of the process, which kernels use as a block's shared memory.
struct SharedMemory {
  const std::byte* begin = nullptr;
  Stretch stretch{0};
};
SharedMemory& shared_memory() {
  static SharedMemory memory = [] {
    SharedMemory found;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t /*size*/, void* result) {
          auto& to = *static_cast<SharedMemory*>(result);
          to.begin = static_cast<const std::byte*>(info->dlpi_tls_data);
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            const auto& header = info->dlpi_phdr[i];
            if (header.p_type == PT_TLS) to.stretch.size = header.p_memsz;
          }
          return 1;  // the program itself comes first
        },
        &found);
    return found;
  }();
  return memory;
}

// Returns the block with the address, or the last block before it.
auto block_of(const std::byte* address) {
  auto next = blocks().upper_bound(address);
  return next == blocks().begin() ? blocks().end() : std::prev(next);
}

void forget_other_launches(Stretch& stretch) {
  if (stretch.launch == launch_number()) return;
  stretch.launch = launch_number();
  stretch.pages.clear();
  stretch.last = nullptr;
  stretch.accessed = 0;
}

const char* kind(bool writes) { return writes ? "writes" : "reads"; }

void touch(Cell& cell, bool writes, const char* memory, const void* code) {
  const Moment& moment = now();
  if (!cell.writer.is_before(moment)) {
    report_fault(std::string{"a race: "} + kind(writes) + " what another thread wrote to " +
                     memory + " with no barrier between",
                 code);
  }
  if (writes) {
    if (!cell.reader.is_before(moment) || !cell.other_reader.is_before(moment)) {
      report_fault(std::string{"a race: writes what another thread read of "} + memory +
                       " with no barrier between",
                   code);
    }
    cell.writer = moment;
  } else {
    if (cell.reader.block != moment.block || cell.reader.thread != moment.thread) {
      cell.other_reader = cell.reader;
    }
    cell.reader = moment;
  }
}

template <class Visit>
void for_each_cell(Stretch& stretch, std::size_t offset, std::size_t size, const Visit& visit) {
  forget_other_launches(stretch);
  stretch.accessed += size;
  while (size > 0) {
    const std::size_t in_page = offset % Page::kBytes;
    const std::size_t part = std::min(size, Page::kBytes - in_page);
    const auto [first, last] = stretch.page(offset / Page::kBytes).cells(in_page, part);
    for (Cell* cell = first; cell != last; ++cell) visit(*cell);
    offset += part;
    size -= part;
  }
}

// Blocks use shared memory one after the other: contents of an earlier block are lost.
void note_shared(std::size_t offset, std::size_t size, bool writes, const void* code) {
  for_each_cell(shared_memory().stretch, offset, size, [&](Cell& cell) {
    if (cell.writer.block != now().block && !writes) {
      report_fault("reads shared memory that nobody in the block has written", code);
    }
    for (Moment* moment : {&cell.writer, &cell.reader, &cell.other_reader}) {
      if (moment->block != now().block) *moment = {};
    }
    touch(cell, writes, "shared memory", code);
  });
}

void note(const std::byte* address, std::size_t size, bool writes, const void* code) {
  SharedMemory& shared = shared_memory();
  if (address >= shared.begin && address < shared.begin + shared.stretch.size) {
    if (is_behind_shared_bytes(address, size)) {
      report_fault(std::string{kind(writes)} + " behind the launch's shared memory", code);
    }
    note_shared(static_cast<std::size_t>(address - shared.begin), size, writes, code);
    return;
  }
  if (is_private(address)) return;
  const auto block = block_of(address);
  if (block == blocks().end() || address + size > block->first + block->second.size) {
    std::string where = "no block of device memory is near";
    if (block != blocks().end()) {
      where = "a block of " + std::to_string(block->second.size) + " bytes begins " +
              std::to_string(address - block->first) + " before";
    }
    report_fault(std::string{kind(writes)} + " " + std::to_string(size) +
                     " bytes of foreign memory; " + where,
                 code);
    return;
  }
  for_each_cell(block->second, static_cast<std::size_t>(address - block->first), size,
                [&](Cell& cell) { touch(cell, writes, "device memory", code); });
}

}  // namespace

void add_block(const std::byte* begin, std::size_t size) { blocks().emplace(begin, size); }
void remove_block(const std::byte* begin) { blocks().erase(begin); }

Touched touched_by_last_launch() {
  Touched touched;
  for (const auto& [begin, stretch] : blocks()) {
    if (stretch.launch != launch_number()) continue;
    touched.accessed += stretch.accessed;
    for (const auto& [number, page] : stretch.pages) page.add_to(touched);
  }
  return touched;
}

bool is_in_a_block(const std::byte* begin, std::size_t size) {
  const auto block = block_of(begin);
  return block != blocks().end() && begin + size <= block->first + block->second.size;
}

void note_access(const void* address, std::size_t size, std::size_t alignment, bool writes,
                 const void* code) {
  static bool is_noting = false;  // accesses of this function do not count
  if (!is_in_kernel() || is_noting) return;
  is_noting = true;
  if (reinterpret_cast<std::uintptr_t>(address) % alignment != 0) {
    report_fault("an access of " + std::to_string(size) + " bytes that is not aligned", code);
  }
  note(static_cast<const std::byte*>(address), size, writes, code);
  is_noting = false;
}

}  // namespace spillway::processor
