# The program in an image:
#   docker build -t spillway .
#   docker run --rm spillway spillway train --net lenet --batch 32 --steps 100
# With the CUDA side (not tried yet), CUDA being a version of the images nvidia/cuda with cuDNN for Ubuntu 24.04:
#   docker build --build-arg CUDA=13.0.1 -t spillway .
#   docker run --rm --gpus all spillway spillway train --net lenet --batch 32 --steps 100
ARG CUDA=
ARG BUILD_BASE=${CUDA:+nvidia/cuda:${CUDA}-cudnn-devel-ubuntu24.04}
ARG RUN_BASE=${CUDA:+nvidia/cuda:${CUDA}-cudnn-runtime-ubuntu24.04}

FROM ${BUILD_BASE:-debian:12} AS build
ARG CUDA
RUN apt-get update && apt-get install -y --no-install-recommends ccache dpkg-dev libopenmpi-dev
COPY . /spillway
WORKDIR /spillway
RUN tools/setup
RUN --mount=type=cache,target=/root/.cache/ccache \
    cmake --preset release -DSPILLWAY_TESTS=OFF -DSPILLWAY_MPI=ON -DSPILLWAY_CUDA=$([ "$CUDA" ] && echo ON || echo OFF) \
      -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache \
    && cmake --build --preset release --target spillway spillway_um_dropin spillway_um_preload \
    && cpack --config build/release/CPackConfig.cmake

FROM ${RUN_BASE:-debian:12}
COPY --from=build /spillway/build/release/packages /packages
RUN apt-get update \
    && apt-get install -y --no-install-recommends openmpi-bin openssh-client /packages/*.deb \
    && rm -rf /var/lib/apt/lists/* /packages
# Containers are root's here, and one may not read another process's memory.
ENV OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
CMD ["spillway", "--help"]
