# Sets SPILLWAY_HAS_ONNX: whether ONNX's library is here, which reads and writes ONNX files, and protobuf,
# which that needs (Debian's libonnx-dev and libprotobuf-dev). Without them the build goes on.
find_package(Protobuf QUIET)
if(TARGET protobuf::libprotobuf)
  find_package(ONNX QUIET)
endif()
set(SPILLWAY_HAS_ONNX OFF)
if(TARGET onnx_proto)
  set(SPILLWAY_HAS_ONNX ON)
endif()
message(STATUS "ONNX files: ${SPILLWAY_HAS_ONNX}")
