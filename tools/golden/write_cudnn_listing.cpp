// Writes tests/golden/cudnn_h200.txt, what the installed cuDNN offers on an H200. Usage:
// write_cudnn_listing DEVICE_PROPERTIES.json >tests/golden/cudnn_h200.txt
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>

#include "tools/golden/cudnn_listing.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_cudnn_listing DEVICE_PROPERTIES.json >cudnn_h200.txt\n", stderr);
    return 2;
  }
  try {
    std::ifstream file{argv[1]};
    const std::string properties{std::istreambuf_iterator<char>{file}, {}};
    for (const std::string& line : spillway::golden::cudnn_listing(properties)) {
      std::puts(line.c_str());
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
