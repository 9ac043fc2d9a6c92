#include <cstdio>

#include "um/bytes.h"
#include "um/host/host_device.h"

int main() {
  const spillway::um::HostDevice device;
  std::printf("%s\n", device.name().c_str());
  return device.available_memory() > spillway::um::Bytes{} ? 0 : 1;
}
